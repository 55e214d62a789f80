//! The file format of track tables.
//!
//! ```text
//! fullstroke-tracks 1
//! capacity 143666192
//! source address translation of a Maxtor Atlas 10K V
//! 32 of 1144
//! 49 times 64 of 1092, 64 of 1144
//! 31 of 1092, 1 of 1091
//! ```
//!
//! The first lines have the version, the capacity in sectors and the source (optional). Each
//! further line has tracks in the order of addresses: runs of a number of tracks and their length
//! in sectors, with commas between runs. `times` in front repeats the line. The sum of all tracks
//! is the capacity. Text after a `#` is a comment.

use crate::boundaries::Boundaries;
use crate::builder::Builder;
use crate::error::{TextError, TrackError};
use fullstroke_units::Sectors;
use std::fmt::Write as _;

const MAGIC: &str = "fullstroke-tracks";
const VERSION: &str = "1";
/// Approximate length of a line with many runs, in characters.
const LINE_CHARACTERS: usize = 100;

impl Boundaries {
    /// Reads a file of tracks.
    ///
    /// # Errors
    /// Returns the line, the text found and the text expected.
    pub fn parse(text: &str) -> Result<Boundaries, TextError> {
        LineReader::new(text).read()
    }

    /// Returns the table as text in the file format.
    pub fn to_text(&self) -> String {
        let mut text = format!("{MAGIC} {VERSION}\ncapacity {}\n", self.capacity);
        let source: String = self
            .source
            .chars()
            // A `#` would begin a comment, and a line break would begin a line of tracks.
            .map(|c| if c.is_control() || c == '#' { ' ' } else { c })
            .collect();
        let source = source.trim();
        if !source.is_empty() {
            // Writing to a `String` does not fail.
            let _ = writeln!(text, "source {source}");
        }
        for index in 0..self.segments.len() {
            self.write_segment(index, &mut text);
        }
        text
    }

    fn write_segment(&self, index: usize, text: &mut String) {
        let segment = &self.segments[index];
        let times = self.times(index);
        if segment.listed() == 1 {
            let equal = self.equal_tracks(segment, 0);
            let _ = writeln!(text, "{} of {}", times * equal.tracks, equal.sectors);
            return;
        }
        if times > 1 {
            let _ = write!(text, "{times} times ");
        }
        let mut line_start = text.len();
        for number in 0..segment.listed() {
            // Only a list without repetition may be broken over lines: the count of a repetition
            // holds for one line.
            if times == 1 && text.len() - line_start > LINE_CHARACTERS {
                text.push('\n');
                line_start = text.len();
            } else if number > 0 {
                text.push_str(", ");
            }
            let equal = self.equal_tracks(segment, number);
            let _ = write!(text, "{} of {}", equal.tracks, equal.sectors);
        }
        text.push('\n');
    }
}

/// Reads the lines of a file.
struct LineReader<'a> {
    lines: std::iter::Enumerate<std::str::Lines<'a>>,
    /// Number of the current line, counted from 1.
    line: usize,
    capacity: u64,
    builder: Builder,
}

impl<'a> LineReader<'a> {
    fn new(text: &'a str) -> LineReader<'a> {
        LineReader {
            lines: text.lines().enumerate(),
            line: 0,
            capacity: 0,
            builder: Builder::default(),
        }
    }

    fn read(mut self) -> Result<Boundaries, TextError> {
        match self
            .next_line()
            .and_then(|line| line.split_once(char::is_whitespace))
        {
            Some((MAGIC, version)) if version.trim() == VERSION => {}
            Some((MAGIC, version)) => {
                return self.fail(version.trim(), &format!("version {VERSION}"));
            }
            _ => return self.fail("no such beginning", &format!("`{MAGIC} {VERSION}`")),
        }
        match self
            .next_line()
            .and_then(|line| line.strip_prefix("capacity "))
        {
            Some(sectors) => self.capacity = self.number(sectors)?,
            None => return self.fail("no capacity", "`capacity` and the device's sectors"),
        }
        let mut source = String::new();
        let mut first = true;
        while let Some(line) = self.next_line() {
            // Only the first line behind the capacity can be the source, so that a misplaced
            // `source` is an error of this line.
            match line.strip_prefix("source ").filter(|_| first) {
                Some(words) => source = words.trim().to_owned(),
                None => self.tracks(line)?,
            }
            first = false;
        }
        self.finish(source)
    }

    fn finish(self, source: String) -> Result<Boundaries, TextError> {
        let (line, capacity, sectors) = (self.line.max(1), self.capacity, self.builder.sectors().0);
        let fail = |found: String, expected: String| {
            Err(TextError {
                line,
                found,
                expected,
            })
        };
        if sectors != capacity {
            let found = format!("the end, after tracks of {sectors} sectors");
            return fail(found, format!("{capacity}, the capacity"));
        }
        self.builder
            .finish(source)
            .or_else(|error| fail(error.to_string(), "at least one track".into()))
    }

    /// Returns the next line with contents.
    fn next_line(&mut self) -> Option<&'a str> {
        for (index, line) in self.lines.by_ref() {
            self.line = index + 1;
            let said = line
                .split_once('#')
                .map_or(line, |(before, _)| before)
                .trim();
            if !said.is_empty() {
                return Some(said);
            }
        }
        None
    }

    /// Reads a line of tracks.
    fn tracks(&mut self, line: &str) -> Result<(), TextError> {
        let (times, runs) = match line.split_once(" times ") {
            Some((times, runs)) => (self.number(times)?, runs),
            None => (1, line),
        };
        let mut pattern = Vec::new();
        for run in runs.split(',') {
            let Some((tracks, sectors)) = run.split_once(" of ") else {
                return self.fail(
                    &format!("`{}`", run.trim()),
                    "tracks `of` sectors, as in `32 of 1144`",
                );
            };
            pattern.push((Sectors(self.number(sectors)?), self.number(tracks)?));
        }
        let each = pattern.iter().try_fold(0u64, |sum, (sectors, tracks)| {
            sectors
                .0
                .checked_mul(*tracks)
                .and_then(|sectors| sum.checked_add(sectors))
        });
        let all = each.and_then(|each| {
            each.checked_mul(times)?
                .checked_add(self.builder.sectors().0)
        });
        // The check comes before the tracks are added, so that a count such as 10^15 is refused
        // without work.
        if all.is_none_or(|all| all > self.capacity) {
            let expected = format!("no more than {}, the capacity", self.capacity);
            return self.fail("tracks beyond the capacity", &expected);
        }
        self.add(&pattern, times)
            .or_else(|error| self.fail(&error.to_string(), "tracks that a disk can have"))
    }

    fn add(&mut self, pattern: &[(Sectors, u64)], times: u64) -> Result<(), TrackError> {
        // Runs given one by one may be longer than a pattern.
        if times == 1 {
            return pattern
                .iter()
                .try_for_each(|&(sectors, tracks)| self.builder.push_run(sectors, tracks));
        }
        self.builder.push_pattern(pattern, times)
    }

    fn number(&self, text: &str) -> Result<u64, TextError> {
        let text = text.trim();
        text.parse()
            .or_else(|_| self.fail(&format!("`{text}`"), "a whole number"))
    }

    fn fail<T>(&self, found: &str, expected: &str) -> Result<T, TextError> {
        Err(TextError {
            line: self.line.max(1),
            found: shortened(found),
            expected: expected.to_owned(),
        })
    }
}

/// Returns `text`, shortened for a message if necessary.
fn shortened(text: &str) -> String {
    const CHARACTERS: usize = 60;
    match text.char_indices().nth(CHARACTERS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}
