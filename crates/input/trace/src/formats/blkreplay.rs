//! Load files of blkreplay.
//!
//! The line of column names (`start ; sector; ...`) may follow any text. The format is recognised
//! by this line, or by rows of the same shape. Users concatenate loads together with their headers.
//! Such a header is skipped wherever it stands. If the times begin again behind a header, its
//! requests follow the requests before it.

use super::{Confidence, Format, PlaceUnit, TraceHead};
use crate::events::operation_of_flags;
use crate::fault::TraceFault;
use crate::fields::{LineFields, Parsed};
use crate::input::Input;
use crate::row::{LineParser, Parser, TraceRow};

pub(super) const FORMAT: Format = Format {
    name: "blkreplay",
    summary: "blkreplay load: production servers, times in seconds",
    columns: "start (s); sector; length (512-byte sectors); op (R or W, flags may follow; D = discard, F = flush); \
              replay_delay (s, from start to issue); replay_duration (s, from issue to completion; 0 = unknown). \
              Text before a line of column names is passed over, wherever it stands",
    counted: PlaceUnit::Lines,
    detect,
    open,
};

/// Largest number of bytes in front of the column names.
const HEADER_BYTES_MAX: usize = 64 * 1024;

struct BlkReplay;

fn detect(head: &TraceHead<'_>) -> Confidence {
    if head.lines().any(names_columns) {
        return Confidence::Certain;
    }
    head.understood_by(BlkReplay, Confidence::Likely)
}

/// Continues behind the column names, if there are any.
fn open(input: &mut Input<'_>) -> Result<Box<dyn Parser>, TraceFault> {
    pass_header(input)?;
    Ok(Box::new(Loads::default()))
}

/// Skips a header, if one stands before the next request. Returns true if a header was skipped.
fn pass_header(input: &mut Input<'_>) -> Result<bool, TraceFault> {
    let head = TraceHead {
        name: "",
        bytes: input.peek(HEADER_BYTES_MAX)?,
    };
    let request = |line: &[u8]| matches!(BlkReplay.row(line), Ok(Some(_)));
    let first = head
        .lines()
        .find(|line| names_columns(line) || request(line));
    // Column names behind a request belong to a later load.
    if !first.is_some_and(names_columns) {
        return Ok(false);
    }
    while input.line()?.is_some_and(|line| !names_columns(line)) {}
    Ok(true)
}

/// One load, or several concatenated loads.
#[derive(Default)]
struct Loads {
    /// Time added to the times of the current load.
    offset: u64,
    /// Latest arrival so far.
    latest: u64,
    /// True if a header was skipped and no request has followed yet.
    fresh: bool,
    /// Number of headers behind which the times began again.
    joined: u64,
}

impl Parser for Loads {
    fn read(
        &mut self,
        input: &mut Input<'_>,
        rows: &mut Vec<TraceRow>,
        limit: usize,
    ) -> Result<bool, TraceFault> {
        for _ in 0..limit {
            let number = input.line_number() + 1;
            let Some(line) = input.line()? else {
                return Ok(false);
            };
            match BlkReplay.row(line) {
                Ok(Some(row)) => rows.push(self.placed(TraceRow {
                    place: number,
                    ..row
                })),
                Ok(None) => {}
                Err(_) if line.trim_ascii().is_empty() => {}
                Err(_) if names_columns(line) => self.fresh = true,
                Err(mismatch) => {
                    // The line may be text of a header. Then column names follow before any
                    // request.
                    if !pass_header(input)? {
                        return Err(TraceFault::in_line(number, *mismatch));
                    }
                    self.fresh = true;
                }
            }
        }
        Ok(true)
    }

    fn notes(&self) -> Vec<String> {
        let note = || {
            format!(
                "{} more loads follow the first; they are read as one after the other",
                self.joined
            )
        };
        (self.joined > 0).then(note).into_iter().collect()
    }
}

impl Loads {
    /// Converts `row` to the clock of the first load.
    fn placed(&mut self, row: TraceRow) -> TraceRow {
        // The first row of a load that begins before the latest time shows a clock that began anew.
        if std::mem::take(&mut self.fresh) && row.arrival.saturating_add(self.offset) < self.latest
        {
            self.offset = self.latest;
            self.joined += 1;
        }
        let later = |time: u64| time.saturating_add(self.offset);
        let row = TraceRow {
            arrival: later(row.arrival),
            issued: row.issued.map(later),
            completed: row.completed.map(later),
            ..row
        };
        self.latest = self.latest.max(row.arrival);
        row
    }
}

pub(super) fn names_columns(line: &[u8]) -> bool {
    let mut names = line.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
    names.next() == Some(b"start")
        && names.next() == Some(b"sector")
        && names.next() == Some(b"length")
}

impl LineParser for BlkReplay {
    #[inline]
    fn row(&mut self, line: &[u8]) -> Parsed<Option<TraceRow>> {
        if line.starts_with(b"#") {
            return Ok(None);
        }
        let mut fields = LineFields::new(line);
        fields.spaces();
        let arrival = fields.decimal(9, "a start time in seconds")?;
        fields.separator(b';')?;
        let start = fields.whole("a sector number")?;
        fields.separator(b';')?;
        let sectors = fields.whole("a number of sectors")?;
        fields.separator(b';')?;
        let before = fields.clone();
        let operation = operation_of_flags(fields.until(b';').trim_ascii(), sectors)
            .ok_or_else(|| before.mismatch("an operation such as R or W"))?;
        let (issued, completed) = replayed(&mut fields, arrival)?;
        fields.end()?;
        Ok(Some(TraceRow {
            issued,
            completed,
            ..TraceRow::new(arrival, operation, start, sectors)
        }))
    }
}

/// Parses the times of issue and completion, which may be missing.
#[inline]
fn replayed(fields: &mut LineFields<'_>, arrival: u64) -> Parsed<(Option<u64>, Option<u64>)> {
    if fields.is_end() {
        return Ok((None, None));
    }
    fields.separator(b';')?;
    let delay = fields.decimal(9, "a replay delay in seconds")?;
    fields.separator(b';')?;
    let duration = fields.decimal(9, "a replay duration in seconds")?;
    if duration == 0 {
        return Ok((None, None));
    }
    // Damaged delays may exceed the range; the time then stays at the top.
    let issued = arrival.saturating_add(delay);
    Ok((Some(issued), Some(issued.saturating_add(duration))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TracePlace;
    use crate::formats::blktrace::testing::{rows_of, rows_of_shared};
    use fullstroke_contract::Operation;

    const TEXT: &[u8] = b"Some notice of 2012\n7 words before the names\n\
        start ; sector; length ; op ;  replay_delay=0 ; replay_duration=0\n\
        \x20     0.000000000 ;     37766853 ;   64 ; W ; 0.0 ; 0.0\n\
        \x20     0.449518165 ;     16 ;   8 ; RA ; 0.5 ; 0.001\r\n";

    #[test]
    fn the_header_is_passed_over() {
        let rows = rows_of(&FORMAT, TEXT).unwrap();
        let [first, second] = rows.as_slice() else {
            panic!("{rows:?}")
        };
        assert_eq!(
            (first.arrival, first.start, first.sectors),
            (0, 37_766_853, 64)
        );
        assert_eq!(
            (first.operation, first.completed, first.place),
            (Operation::Write, None, 4)
        );
        assert_eq!(
            (second.operation, second.issued),
            (Operation::Read, Some(949_518_165))
        );
        assert_eq!(second.completed, Some(950_518_165));
        assert_eq!(
            detect(&TraceHead {
                name: "",
                bytes: TEXT
            }),
            Confidence::Certain
        );
    }

    #[test]
    fn headers_may_stand_in_the_midst() {
        let twice =
            b"notice\nstart ; sector; length ; op\nstart ; sector; length ; op\n0.0 ; 8 ; 8 ; W\n";
        assert_eq!(rows_of(&FORMAT, twice).unwrap().len(), 1);
        // Two whole files: the times of the second file follow those of the first.
        let rows = rows_of(&FORMAT, &[TEXT, TEXT].concat()).unwrap();
        let times: Vec<_> = rows
            .iter()
            .map(|row| (row.arrival, row.completed, row.place))
            .collect();
        let (late, done) = (449_518_165, 950_518_165);
        let expected = [
            (0, None, 4),
            (late, Some(done), 5),
            (late, None, 9),
            (late * 2, Some(late + done), 10),
        ];
        assert_eq!(times, expected);
        // Times that continue are not changed.
        let text = b"start ; sector; length ; op\n1.0 ; 8 ; 8 ; W\nsome words\nstart ; sector; length ; op\n\
            2.0 ; 8 ; 8 ; W\n";
        let arrivals: Vec<u64> = rows_of(&FORMAT, text)
            .unwrap()
            .iter()
            .map(|row| row.arrival)
            .collect();
        assert_eq!(arrivals, [1_000_000_000, 2_000_000_000]);
        // Text without column names behind it is damage.
        let text =
            b"start ; sector; length ; op\n1.0 ; 8 ; 8 ; W\nwords\n2.0 ; 8 ; 8 ; W\nstart ; sector; length\n";
        assert!(matches!(rows_of(&FORMAT, text), Err(TraceFault::Row(_))));
    }

    #[test]
    fn an_error_names_line_and_column() {
        let text = b"start ; sector; length ; op\n0.0 ; 8 ; 8 ; W\n0.5 ; 8 ; 8 ; Q ; 0 ; 0\n";
        let Err(TraceFault::Row(problem)) = rows_of(&FORMAT, text) else {
            panic!("no error")
        };
        assert_eq!(
            problem.place,
            TracePlace::Line {
                line: 3,
                column: 15
            }
        );
        let text = b"0.0 ; 8 ; 8 ; W ; 0.0 ; 0.0\n0.5 ; 8 ; 8";
        let Err(TraceFault::Row(problem)) = rows_of(&FORMAT, text) else {
            panic!("no error")
        };
        assert_eq!(
            problem.place,
            TracePlace::Line {
                line: 2,
                column: 12
            }
        );
    }

    #[test]
    fn the_shared_traces_have_their_documented_requests() {
        for (file, count) in [
            ("linux-webserver-2.load.gz", 269_007),
            ("linux-mysql.load.gz", 80_794),
            ("windows-shared-server.load.gz", 1_371),
        ] {
            let Some(rows) = rows_of_shared(&FORMAT, &format!("blkreplay/{file}")) else {
                return;
            };
            assert_eq!(rows.len(), count, "{file}");
        }
    }
}
