//! CSV files of hfplayer, the Hitachi block trace player.
//!
//! The first non-empty line names the columns, each with its type behind a dot. The line may begin
//! with `#`. A file is recognised by the names of the required columns. Their order does not
//! matter, and further columns are ignored.

use super::{Confidence, Format, PlaceUnit, TraceHead, bad_header};
use crate::fault::TraceFault;
use crate::fields::{LineFields, Mismatch, Parsed};
use crate::input::Input;
use crate::row::{LineParser, LineRows, Parser, TraceRow};
use fullstroke_contract::Operation;

pub(super) const FORMAT: Format = Format {
    name: "hfplayer",
    summary: "hfplayer CSV: traces of storage controllers; the header names the columns; times in us",
    columns: "ELAPSED_USECS.D (us), CMD.S (RD... = read, WR... = write), LBA.I (512-byte blocks), NBLKS.I (512-byte \
              blocks); where they are there: LATENCY_USECS.D (us, from arrival to completion), LUN_SSID.I (the device)",
    counted: PlaceUnit::Lines,
    detect,
    open,
};

/// Content of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ColumnContent {
    Arrival,
    Command,
    Start,
    Sectors,
    Latency,
    Device,
    Other,
}

/// Required columns.
const NEEDED: [ColumnContent; 4] = [
    ColumnContent::Arrival,
    ColumnContent::Command,
    ColumnContent::Start,
    ColumnContent::Sectors,
];

/// Returns the columns named by a header. Returns `None` if a required column is missing or a
/// column occurs twice.
fn columns_of(header: &[u8]) -> Option<Vec<ColumnContent>> {
    let names = header.trim_ascii();
    let names = names.strip_prefix(b"#").unwrap_or(names);
    let columns: Vec<ColumnContent> = names
        .split(|&byte| byte == b',')
        .map(|name| column_of(name.trim_ascii()))
        .collect();
    let count = |column| columns.iter().filter(|&&other| other == column).count();
    let once = NEEDED.iter().all(|&column| count(column) == 1);
    (once && count(ColumnContent::Latency) <= 1 && count(ColumnContent::Device) <= 1)
        .then_some(columns)
}

/// Returns true if the line is the header of this format.
pub(super) fn is_header(line: &[u8]) -> bool {
    columns_of(line).is_some()
}

fn column_of(name: &[u8]) -> ColumnContent {
    match name {
        b"ELAPSED_USECS.D" => ColumnContent::Arrival,
        b"CMD.S" => ColumnContent::Command,
        b"LBA.I" => ColumnContent::Start,
        b"NBLKS.I" => ColumnContent::Sectors,
        b"LATENCY_USECS.D" => ColumnContent::Latency,
        b"LUN_SSID.I" => ColumnContent::Device,
        _ => ColumnContent::Other,
    }
}

fn detect(head: &TraceHead<'_>) -> Confidence {
    let header = head.lines().next().and_then(columns_of);
    if header.is_some() {
        Confidence::Certain
    } else {
        Confidence::No
    }
}

fn open(input: &mut Input<'_>) -> Result<Box<dyn Parser>, TraceFault> {
    while let Some(line) = input.line()? {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let Some(columns) = columns_of(line) else {
            return Err(no_header(line));
        };
        return Ok(Box::new(LineRows(HfPlayer { columns })));
    }
    Err(no_header(b""))
}

fn no_header(line: &[u8]) -> TraceFault {
    bad_header(
        line,
        "names of columns, among them ELAPSED_USECS.D, CMD.S, LBA.I and NBLKS.I, each once",
    )
}

struct HfPlayer {
    columns: Vec<ColumnContent>,
}

impl LineParser for HfPlayer {
    fn row(&mut self, line: &[u8]) -> Parsed<Option<TraceRow>> {
        // The header stands again in a file of several traces.
        if line.starts_with(b"#") || line.starts_with(b"ELAPSED_USECS.D") {
            return Ok(None);
        }
        let mut fields = LineFields::new(line);
        let mut row = TraceRow::new(0, Operation::Read, 0, 0);
        let mut latency = None;
        for (index, &column) in self.columns.iter().enumerate() {
            if index > 0 {
                fields.separator(b',')?;
            }
            match column {
                ColumnContent::Arrival => {
                    row.arrival = fields.decimal(3, "an arrival time in us")?
                }
                ColumnContent::Command => row.operation = command(&mut fields)?,
                ColumnContent::Start => row.start = fields.integer("a block number")?,
                ColumnContent::Sectors => row.sectors = fields.integer("a number of blocks")?,
                ColumnContent::Latency => latency = Some(fields.decimal(3, "a latency in us")?),
                ColumnContent::Device => row.device = fields.small("a logical unit number")?,
                ColumnContent::Other => {
                    fields.until(b',');
                }
            }
        }
        fields.end()?;
        // A sum beyond 584 years stays at the largest time.
        row.completed = latency.map(|latency| row.arrival.saturating_add(latency));
        Ok(Some(row))
    }
}

/// Parses `RD_...` or `WR_...`.
fn command(fields: &mut LineFields<'_>) -> Result<Operation, Box<Mismatch>> {
    let before = fields.clone();
    match fields.until(b',') {
        [b'R', b'D', ..] => Ok(Operation::Read),
        [b'W', b'R', ..] => Ok(Operation::Write),
        _ => Err(before.mismatch("a command that begins with RD or WR")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TracePlace;
    use crate::formats::blktrace::testing::{rows_of, rows_of_shared};

    #[test]
    fn columns_are_found_by_their_names() {
        let text = b"#NBLKS.I,SEQID.I,LBA.I,CMD.S,ELAPSED_USECS.D,LATENCY_USECS.D,LUN_SSID.I\r\n\
            8,1,4096,WR_IN,81442951.096,56.910,3\r\n16,2,8192,RD_XFER,81442952,1,3\r\n";
        assert_eq!(
            detect(&TraceHead {
                name: "",
                bytes: text
            }),
            Confidence::Certain
        );
        let rows = rows_of(&FORMAT, text).unwrap();
        let expected = [
            TraceRow {
                place: 2,
                device: 3,
                completed: Some(81_443_008_006),
                ..TraceRow::new(81_442_951_096, Operation::Write, 4096, 8)
            },
            TraceRow {
                place: 3,
                device: 3,
                completed: Some(81_442_953_000),
                ..TraceRow::new(81_442_952_000, Operation::Read, 8192, 16)
            },
        ];
        assert_eq!(rows, expected);
    }

    #[test]
    fn an_error_names_line_and_column() {
        for (line, column) in [
            ("1.5,QQ,0,8", 5),
            ("-1.5,RD,0,8", 1),
            ("1.5,RD,0", 9),
            ("1.5,RD,0,8,9", 11),
            ("1.5,RD,,8", 8),
        ] {
            let text = format!("ELAPSED_USECS.D,CMD.S,LBA.I,NBLKS.I\n{line}\n");
            let Err(TraceFault::Row(problem)) = rows_of(&FORMAT, text.as_bytes()) else {
                panic!("no fault")
            };
            assert_eq!(
                problem.place,
                TracePlace::Line { line: 2, column },
                "{line}"
            );
        }
    }

    #[test]
    fn a_header_without_the_needed_columns_is_refused() {
        for header in [
            "",
            "\n",
            "CMD.S,LBA.I,NBLKS.I\n",
            "ELAPSED_USECS.D,CMD.S,LBA.I,LBA.I,NBLKS.I\n",
        ] {
            assert!(
                matches!(
                    rows_of(&FORMAT, header.as_bytes()),
                    Err(TraceFault::Broken(_))
                ),
                "{header}"
            );
            assert_eq!(
                detect(&TraceHead {
                    name: "",
                    bytes: header.as_bytes()
                }),
                Confidence::No
            );
        }
    }

    #[test]
    fn the_shared_trace_has_its_documented_requests() {
        let Some(rows) = rows_of_shared(&FORMAT, "hfplayer/small-tpch.csv.gz") else {
            return;
        };
        assert_eq!(rows.len(), 780);
        assert!(
            rows.iter()
                .all(|row| row.operation == Operation::Write && row.completed.is_some())
        );
    }
}
