//! Tables that are wider than the output: columns that do not fit go below, with the name of each
//! row repeated.

use std::ops::Range;

/// Blanks between two columns of a table.
const GAP: usize = 2;

/// Smallest number of characters for a wrapped sentence. In a narrower column each line would have
/// two or three words, so the sentence stays whole there.
const WRAPPED_MIN: usize = 24;

/// Returns `text` with each table that is wider than `width` characters split into several tables,
/// one below the other. Other text stays as it is.
pub(crate) fn folded(text: &str, width: usize) -> String {
    let lines: Vec<&str> = text.split('\n').collect();
    let mut out: Vec<String> = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let is_head = lines.get(at + 1).is_some_and(|next| is_rule(next));
        match Grid::read(&lines[at..]).filter(|_| is_head) {
            Some(grid) if grid.width() > width => {
                // `lines` leaves out the rule below the head.
                out.extend(grid.folded(width));
                at += grid.lines.len() + 1;
            }
            _ => {
                out.push(lines[at].to_owned());
                at += 1;
            }
        }
    }
    out.join("\n")
}

/// True for the line between the head and the rows of a table.
fn is_rule(line: &str) -> bool {
    // In bytes, of which `─` has 3: two or more of them.
    line.len() > 3 && line.chars().all(|letter| letter == '─')
}

/// A table with head, rows, and the places of the columns.
struct Grid {
    /// Head and rows, without the rule.
    lines: Vec<Vec<char>>,
    columns: Vec<Range<usize>>,
}

impl Grid {
    /// Reads the table whose head is the first line. The table ends at an empty line, or at a line
    /// that has letters between the columns, such as a note.
    fn read(lines: &[&str]) -> Option<Grid> {
        let head: Vec<char> = lines.first()?.chars().collect();
        let mut used = mask(&head, Vec::new());
        let mut columns = runs(&used);
        let mut read = vec![head];
        for line in lines.iter().skip(2).take_while(|line| !line.is_empty()) {
            let row: Vec<char> = line.chars().collect();
            // Columns follow from all rows together: a cell may be shorter than its head, and the
            // head alone would end the column early.
            let with = mask(&row, used.clone());
            let found = runs(&with);
            // A line that closes a gap between columns is a sentence below the table.
            if found.len() < columns.len() {
                break;
            }
            (used, columns) = (with, found);
            read.push(row);
        }
        Some(Grid {
            lines: read,
            columns,
        })
    }

    fn width(&self) -> usize {
        self.columns.last().map_or(0, |column| column.end)
    }

    /// Returns the number of columns that name a row: up to the first column with a letter.
    fn names(&self) -> usize {
        let has_letter = |column: &Range<usize>| {
            self.lines
                .iter()
                .skip(1)
                .any(|line| cell(line, column).contains(|letter: char| letter.is_alphabetic()))
        };
        let first = self.columns.iter().position(has_letter).unwrap_or(0);
        // The last column cannot name the rows, because no column would be left to show.
        if first + 1 < self.columns.len() {
            first + 1
        } else {
            1
        }
    }

    /// Returns the lines of the tables of at most `width` characters. A column that is wider alone
    /// has its sentences wrapped.
    fn folded(&self, width: usize) -> Vec<String> {
        let (names, others) = self.columns.split_at(self.names());
        let size =
            |columns: &[Range<usize>]| columns.iter().map(|one| one.len() + GAP).sum::<usize>();
        let beside_names = width.saturating_sub(size(names));
        let mut out = Vec::new();
        let mut from = 0;
        while from < others.len() {
            let mut to = from + 1;
            // The last column has no gap behind it.
            while to < others.len() && size(names) + size(&others[from..=to]) - GAP <= width {
                to += 1;
            }
            // An empty line between two parts, because without one the second head would read as a
            // row of the first part.
            if from > 0 {
                out.push(String::new());
            }
            let columns = [names, &others[from..to]].concat();
            let is_wrapped =
                to == from + 1 && others[from].len() > beside_names && beside_names >= WRAPPED_MIN;
            for (index, line) in self.lines.iter().enumerate() {
                let cells: Vec<String> = columns.iter().map(|column| cell(line, column)).collect();
                match cells.split_last() {
                    Some((sentence, names)) if is_wrapped => {
                        out.extend(wrapped(&names.join("  "), sentence, beside_names));
                    }
                    _ => out.push(cells.join("  ").trim_end().to_owned()),
                }
                if index == 0 {
                    out.push("─".repeat((size(&columns) - GAP).min(width)));
                }
            }
            from = to;
        }
        out
    }
}

/// Returns `sentence` in lines of at most `width` characters, the first of them beside `names`.
fn wrapped(names: &str, sentence: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in sentence.split_whitespace() {
        let line = lines.last().map_or(0, |line| line.chars().count());
        if line > 0 && line + 1 + word.chars().count() > width {
            lines.push(String::new());
        }
        if let Some(last) = lines.last_mut() {
            if !last.is_empty() {
                last.push(' ');
            }
            last.push_str(word);
        }
    }
    let margin = " ".repeat(names.chars().count());
    let beside = |(index, line): (usize, String)| {
        let names = if index == 0 { names } else { &margin };
        format!("{names}  {line}").trim_end().to_owned()
    };
    lines.into_iter().enumerate().map(beside).collect()
}

/// Returns the letters of a line within a column, padded to the width of the column.
fn cell(line: &[char], column: &Range<usize>) -> String {
    column
        .clone()
        .map(|at| line.get(at).copied().unwrap_or(' '))
        .collect()
}

/// Marks the places of letters in `line`, in addition to those in `used`.
fn mask(line: &[char], mut used: Vec<bool>) -> Vec<bool> {
    used.resize(used.len().max(line.len()), false);
    for (place, letter) in used.iter_mut().zip(line) {
        *place |= *letter != ' ';
    }
    used
}

/// Returns the ranges of used places that are at least [`GAP`] places apart.
fn runs(used: &[bool]) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for at in (0..used.len()).filter(|&at| used[at]) {
        match runs.last_mut() {
            Some(last) if at < last.end + GAP => last.end = at + 1,
            _ => runs.push(at..at + 1),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
The best is a.

#  candidate   response  MB/s   difference
──────────────────────────────────────────
1  raid5 of 4    12.345  10.1            -
2  raid10         1.000   9.0  + 2.0 ± 1.0
?: no interval here, and this line is no row of the table.
";

    #[test]
    fn a_wide_table_is_folded_and_names_its_rows_again() {
        let expected = "\
The best is a.

#  candidate   response  MB/s
─────────────────────────────
1  raid5 of 4    12.345  10.1
2  raid10         1.000   9.0

#  candidate    difference
──────────────────────────
1  raid5 of 4            -
2  raid10      + 2.0 ± 1.0
?: no interval here, and this line is no row of the table.
";
        assert_eq!(folded(TABLE, 34), expected);
    }

    #[test]
    fn a_sentence_wider_than_the_output_is_wrapped_beside_its_name() {
        let table = "\
name    description
──────────────────────────────────────────────────
native  one row per request, times in nanoseconds
fio     one line per request, with waits and offsets
";
        let expected = "\
name    description
────────────────────────────────────
native  one row per request, times
        in nanoseconds
fio     one line per request, with
        waits and offsets
";
        assert_eq!(folded(table, 36), expected);
    }

    #[test]
    fn a_table_with_words_in_its_last_column_only_is_folded() {
        let table = "\
#  response  MB/s  verdict
─────────────────────────
1    12.345  10.1  too slow
";
        let expected = "\
#  response  MB/s
─────────────────
1    12.345  10.1

#  verdict
───────────
1  too slow
";
        assert_eq!(folded(table, 18), expected);
    }

    #[test]
    fn a_table_that_fits_stays_as_it_is() {
        assert_eq!(folded(TABLE, 80), TABLE);
        assert_eq!(folded("no table\n", 3), "no table\n");
    }
}
