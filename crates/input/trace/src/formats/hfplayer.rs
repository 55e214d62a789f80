//! CSV files of hfplayer, the Hitachi block trace player.
//!
//! The first non-empty line names the columns, each with its type behind a dot. The line may begin
//! with `#`. A file is recognised by the names of the required columns. Their order does not
//! matter, and further columns are ignored.

use super::{Confidence, Counted, Format, Head, bad_header};
use crate::fault::Fault;
use crate::fields::{Fields, Mismatch, Parsed};
use crate::input::Input;
use crate::row::{LineParser, Lines, Parser, Row};
use fullstroke_contract::Operation;

pub(super) const FORMAT: Format = Format {
    name: "hfplayer",
    summary: "hfplayer CSV: traces of storage controllers; the header names the columns; times in us",
    columns: "ELAPSED_USECS.D (us), CMD.S (RD... = read, WR... = write), LBA.I (512-byte blocks), NBLKS.I (512-byte \
              blocks); where they are there: LATENCY_USECS.D (us, from arrival to completion), LUN_SSID.I (the device)",
    counted: Counted::Lines,
    detect,
    open,
};

/// Content of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Arrival,
    Command,
    Start,
    Sectors,
    Latency,
    Device,
    Other,
}

/// Required columns.
const NEEDED: [Column; 4] = [
    Column::Arrival,
    Column::Command,
    Column::Start,
    Column::Sectors,
];

/// Returns the columns named by a header. Returns `None` if a required column is missing or a
/// column occurs twice.
fn columns_of(header: &[u8]) -> Option<Vec<Column>> {
    let names = header.trim_ascii();
    let names = names.strip_prefix(b"#").unwrap_or(names);
    let columns: Vec<Column> = names
        .split(|&byte| byte == b',')
        .map(|name| column_of(name.trim_ascii()))
        .collect();
    let count = |column| columns.iter().filter(|&&other| other == column).count();
    let once = NEEDED.iter().all(|&column| count(column) == 1);
    (once && count(Column::Latency) <= 1 && count(Column::Device) <= 1).then_some(columns)
}

fn column_of(name: &[u8]) -> Column {
    match name {
        b"ELAPSED_USECS.D" => Column::Arrival,
        b"CMD.S" => Column::Command,
        b"LBA.I" => Column::Start,
        b"NBLKS.I" => Column::Sectors,
        b"LATENCY_USECS.D" => Column::Latency,
        b"LUN_SSID.I" => Column::Device,
        _ => Column::Other,
    }
}

fn detect(head: &Head<'_>) -> Confidence {
    let header = head.lines().next().and_then(columns_of);
    if header.is_some() {
        Confidence::Certain
    } else {
        Confidence::No
    }
}

fn open(input: &mut Input<'_>) -> Result<Box<dyn Parser>, Fault> {
    while let Some(line) = input.line()? {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let Some(columns) = columns_of(line) else {
            return Err(no_header(line));
        };
        return Ok(Box::new(Lines(HfPlayer { columns })));
    }
    Err(no_header(b""))
}

fn no_header(line: &[u8]) -> Fault {
    bad_header(
        line,
        "names of columns, among them ELAPSED_USECS.D, CMD.S, LBA.I and NBLKS.I, each once",
    )
}

struct HfPlayer {
    columns: Vec<Column>,
}

impl LineParser for HfPlayer {
    fn row(&mut self, line: &[u8]) -> Parsed<Option<Row>> {
        if line.starts_with(b"#") {
            return Ok(None);
        }
        let mut fields = Fields::new(line);
        let mut row = Row::new(0, Operation::Read, 0, 0);
        let mut latency = None;
        for (index, &column) in self.columns.iter().enumerate() {
            if index > 0 {
                fields.separator(b',')?;
            }
            match column {
                Column::Arrival => row.arrival = fields.decimal(3, "an arrival time in us")?,
                Column::Command => row.operation = command(&mut fields)?,
                Column::Start => row.start = fields.integer("a block number")?,
                Column::Sectors => row.sectors = fields.integer("a number of blocks")?,
                Column::Latency => latency = Some(fields.decimal(3, "a latency in us")?),
                Column::Device => row.device = fields.small("a logical unit number")?,
                Column::Other => {
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
fn command(fields: &mut Fields<'_>) -> Result<Operation, Box<Mismatch>> {
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
    use crate::Place;
    use crate::formats::blktrace::testing::{rows_of, rows_of_shared};

    #[test]
    fn columns_are_found_by_their_names() {
        let text = b"#NBLKS.I,SEQID.I,LBA.I,CMD.S,ELAPSED_USECS.D,LATENCY_USECS.D,LUN_SSID.I\r\n\
            8,1,4096,WR_IN,81442951.096,56.910,3\r\n16,2,8192,RD_XFER,81442952,1,3\r\n";
        assert_eq!(
            detect(&Head {
                name: "",
                bytes: text
            }),
            Confidence::Certain
        );
        let rows = rows_of(&FORMAT, text).unwrap();
        let expected = [
            Row {
                place: 2,
                device: 3,
                completed: Some(81_443_008_006),
                ..Row::new(81_442_951_096, Operation::Write, 4096, 8)
            },
            Row {
                place: 3,
                device: 3,
                completed: Some(81_442_953_000),
                ..Row::new(81_442_952_000, Operation::Read, 8192, 16)
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
            let Err(Fault::Row(problem)) = rows_of(&FORMAT, text.as_bytes()) else {
                panic!("no fault")
            };
            assert_eq!(problem.place, Place::Line { line: 2, column }, "{line}");
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
                matches!(rows_of(&FORMAT, header.as_bytes()), Err(Fault::Broken(_))),
                "{header}"
            );
            assert_eq!(
                detect(&Head {
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
