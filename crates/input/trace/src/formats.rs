//! Trace formats. Each format is one file; the list below is their registry.

use crate::fault::{Problem, TraceFault};
use crate::fields::excerpt;
use crate::fio_report::FioReport;
use crate::input::{Input, beginning};
use crate::row::{LineParser, Parser};
use crate::{TraceError, TracePlace};
use std::fmt;

/// Declares the module of each format, and adds its `FORMAT` to the registry.
macro_rules! formats {
    ($($(#[$attribute:meta])* $visibility:vis $module:ident,)*) => {
        $($visibility mod $module;)*
        /// All formats, as documented in `docs/traces.md`.
        pub const FORMATS: &[&Format] = &[$(&$module::FORMAT,)*];
    };
}

// To add a format, write its file and add its line here.
formats! {
    pub(crate) native,
    msr,
    spc1,
    disksim,
    mqsim,
    pub(crate) disksim_validate,
    blktrace,
    blkparse,
    fio,
    fio_ms,
    fio_log,
    vscsi,
    blkreplay,
    hp_srt,
    alibaba,
    tencent,
    systor,
    fiu,
    oracle_general,
    hfplayer,
    pub(crate) csv,
    biosnoop,
    ftrace,
}

/// Name of the format of tables with named columns.
pub(crate) const CSV: &str = csv::FORMAT.name;

/// The example of CONTRIBUTING.md, compiled and tested.
#[cfg(test)]
#[path = "../../../../docs/examples/trace_format.rs"]
mod worked_example;

/// One trace format.
pub struct Format {
    /// Name, as given with `--format`.
    pub name: &'static str,
    /// One-sentence description for lists and reference pages.
    pub summary: &'static str,
    /// Columns and their units.
    pub columns: &'static str,
    /// Unit in which places in the file are counted.
    pub counted: PlaceUnit,
    /// Returns the confidence that a trace with this beginning is in this format.
    pub(crate) detect: fn(&TraceHead<'_>) -> Confidence,
    /// Makes a parser for a trace, from its first byte on.
    pub(crate) open: fn(&mut Input<'_>) -> Result<Box<dyn Parser>, TraceFault>,
}

/// Unit in which places in a format are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaceUnit {
    /// Lines of text.
    Lines,
    /// Bytes.
    Bytes,
    /// Rows of a table.
    Rows,
}

/// Confidence that a trace is in a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// The trace is in another format.
    No,
    /// The trace may be in this format, but has no mark of it.
    Possible,
    /// The rows have the shape of this format.
    Likely,
    /// The trace has the format's mark.
    Certain,
}

/// Beginning of a trace, from which its format is recognised.
#[derive(Clone, Copy, Debug)]
pub struct TraceHead<'h> {
    /// Name of the file, without folders.
    pub name: &'h str,
    /// First bytes, at most 64 KiB.
    pub bytes: &'h [u8],
}

/// Number of bytes used to recognise a format.
const HEAD_BYTES: usize = 64 * 1024;
/// Number of bytes that decide whether a trace is text.
const TEXT_BYTES: usize = 4096;
/// Smallest share of printable characters in text. Records of binary formats have small numbers in
/// wide fields, so at least a third of their bytes are zeros.
const TEXT_SHARE: f64 = 0.8;
/// Number of lines used to recognise a format.
const HEAD_LINES: usize = 32;
/// Smallest number of separators in front of a damaged field of a row that is almost in a format.
const FIELDS_NEAR: usize = 2;

impl<'h> TraceHead<'h> {
    /// Yields the first non-empty lines. The last line may be cut off.
    pub fn lines(&self) -> impl Iterator<Item = &'h [u8]> {
        self.bytes
            .split(|&byte| byte == b'\n')
            .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
            .filter(|line| !line.trim_ascii().is_empty())
    }

    /// Returns true if the bytes are text: no binary record has so few zeros and control characters.
    pub(crate) fn is_text(&self) -> bool {
        let bytes = &self.bytes[..self.bytes.len().min(TEXT_BYTES)];
        let printable = |byte: &&u8| matches!(byte, b' '..=b'~' | b'\t' | b'\n' | b'\r');
        let text = bytes.iter().filter(printable).count();
        text as f64 >= TEXT_SHARE * bytes.len() as f64
    }

    /// Returns `sure` if the parser accepts at least one of the first lines, and at least as many
    /// as it rejects.
    pub(crate) fn understood_by(
        &self,
        mut parser: impl LineParser,
        sure: Confidence,
    ) -> Confidence {
        let (mut good, mut bad) = (0, 0);
        for line in self.lines().take(HEAD_LINES) {
            match parser.row(line) {
                Ok(Some(_)) => good += 1,
                Ok(None) => {}
                Err(_) => bad += 1,
            }
        }
        if good > 0 && good >= bad {
            sure
        } else {
            Confidence::No
        }
    }
}

impl Format {
    /// Makes a place in this format.
    pub(crate) fn place(&self, at: u64) -> TracePlace {
        match self.counted {
            PlaceUnit::Lines => TracePlace::Line {
                line: at,
                column: 0,
            },
            PlaceUnit::Bytes => TracePlace::Byte(at),
            PlaceUnit::Rows => TracePlace::Row(at),
        }
    }
}

impl fmt::Debug for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Format").field("name", &self.name).finish()
    }
}

/// Returns the format called `name`.
///
/// # Errors
/// Fails if the name is unknown. The error names the nearest format.
pub fn find_format(name: &str) -> Result<&'static Format, TraceError> {
    FORMATS
        .iter()
        .copied()
        .find(|format| format.name == name)
        .ok_or_else(|| {
            let names: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
            TraceError::UnknownFormat {
                name: name.to_owned(),
                nearest: fullstroke_contract::registry::nearest(name, &names),
                known: names.join(", "),
            }
        })
}

/// Recognises the format of the trace called `name` by its first bytes. If several formats have the
/// same confidence, the format whose name is part of the file's name wins.
pub(crate) fn recognise(name: &str, input: &mut Input<'_>) -> Result<&'static Format, TraceError> {
    let bytes = input
        .peek(HEAD_BYTES)
        .map_err(|source| TraceError::from_io(name.to_owned(), source))?;
    if bytes.is_empty() {
        return Err(TraceError::Empty {
            file: name.to_owned(),
        });
    }
    let short = name
        .rsplit(['/', '\\'])
        .next()
        .unwrap_or(name)
        .to_ascii_lowercase();
    let head = TraceHead {
        name: &short,
        bytes,
    };
    if crate::pasted::other_form(bytes).is_some() {
        return Err(unrecognised(name, &head));
    }
    let opinions: Vec<(Confidence, &'static Format)> = FORMATS
        .iter()
        .map(|format| ((format.detect)(&head), *format))
        .collect();
    let best = opinions
        .iter()
        .map(|opinion| opinion.0)
        .max()
        .unwrap_or(Confidence::No);
    if best == Confidence::No {
        return Err(unrecognised(name, &head));
    }
    let top: Vec<&'static Format> = opinions
        .iter()
        .filter(|opinion| opinion.0 == best)
        .map(|opinion| opinion.1)
        .collect();
    let mut named = top.iter().filter(|format| short.contains(format.name));
    match (top.as_slice(), named.next(), named.next()) {
        ([only], _, _) => Ok(only),
        (_, Some(only), None) => Ok(only),
        _ => {
            let candidates: Vec<String> = top
                .iter()
                .map(|format| format!("--format {}", format.name))
                .collect();
            Err(TraceError::Ambiguous {
                file: name.to_owned(),
                candidates: candidates.join(" or "),
            })
        }
    }
}

/// Returns the error of a file that is in no format.
fn unrecognised(name: &str, head: &TraceHead<'_>) -> TraceError {
    let file = name.to_owned();
    if FioReport::recognise(head.bytes) {
        return TraceError::FioReport { file };
    }
    if let Some((tool, remedy)) = crate::pasted::other_output(head.bytes) {
        return TraceError::OtherOutput { file, tool, remedy };
    }
    if let Some((form, remedy)) = crate::pasted::other_form(head.bytes) {
        return TraceError::OtherForm { file, form, remedy };
    }
    let known: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
    nearly(name, head).unwrap_or_else(|| TraceError::Unrecognised {
        file,
        found: beginning(head.bytes),
        known: known.join(", "),
    })
}

/// Returns the error of text that is almost in a format: its rows, or at least two fields of its first
/// row, are as in the format. The format that reads the longest part counts.
fn nearly(name: &str, head: &TraceHead<'_>) -> Option<TraceError> {
    let mut nearest: Option<((u64, usize), TraceError)> = None;
    // The last line may be cut off.
    let whole = memchr::memrchr(b'\n', head.bytes).map_or(head.bytes.len(), |end| end + 1);
    for format in FORMATS
        .iter()
        .filter(|format| format.counted == PlaceUnit::Lines)
    {
        let Some((rows, problem)) = first_problem(format, &head.bytes[..whole]) else {
            continue;
        };
        let TracePlace::Line { line, column } = problem.place else {
            continue;
        };
        let text = head
            .bytes
            .split(|&byte| byte == b'\n')
            .nth(line.saturating_sub(1) as usize);
        let read = text.unwrap_or_default();
        let read = &read[..read.len().min(column.saturating_sub(1))];
        let fields = read.iter().filter(|byte| b",; \t".contains(byte)).count();
        let reach = (rows, column);
        let near = rows > 0 || fields >= FIELDS_NEAR;
        if near && nearest.as_ref().is_none_or(|(most, _)| reach > *most) {
            let error = TraceError::Nearly {
                file: name.to_owned(),
                format: format.name,
                place: problem.place,
                found: problem.found,
                expected: problem.expected,
            };
            nearest = Some((reach, error));
        }
    }
    nearest.map(|(_, error)| error)
}

/// Returns the first damaged row of `bytes` as `format`, and the number of rows before.
fn first_problem(format: &Format, bytes: &[u8]) -> Option<(u64, Problem)> {
    let mut input = crate::source::unpack(bytes, None, HEAD_BYTES).ok()?;
    let mut parser = (format.open)(&mut input).ok()?;
    let mut rows = Vec::new();
    loop {
        match parser.read(&mut input, &mut rows, HEAD_LINES) {
            Ok(true) if rows.len() < HEAD_LINES => {}
            Err(TraceFault::Row(problem)) => return Some((rows.len() as u64, *problem)),
            _ => return None,
        }
    }
}

/// Makes a fault for a header that does not match the format.
pub(crate) fn bad_header(line: &[u8], expected: &str) -> TraceFault {
    TraceFault::broken(
        TracePlace::Line { line: 1, column: 0 },
        excerpt(line),
        expected,
    )
}
