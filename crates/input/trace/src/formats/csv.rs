//! Tables of text whose first line names the columns: CSV with commas, semicolons, tabs or bars,
//! and tables aligned with spaces.
//!
//! The usual names are recognised (`columns/names.rs`). [`TraceOptions::columns`](crate::TraceOptions) names
//! the columns of other tables, also by their number. A unit stands in the name (`latency_us`,
//! `LAT(ms)`), or follows from the first rows (`guess.rs`); a note says each guess.

mod blocks;
mod guess;
mod map;
mod split;
mod values;

use super::{Confidence, Format, PlaceUnit, TraceHead};
use crate::columns::ColumnMap;
use crate::columns::names::Role;
use crate::fault::TraceFault;
use crate::fields::{Mismatch, Parsed, excerpt};
use crate::input::Input;
use crate::row::{LineParser, Parser, TraceRow, sectors_of_bytes};
use fullstroke_contract::Operation;
use std::collections::HashMap;

use map::{PlannedColumn, Table, option_of};
use values::Clock;

pub(super) const FORMAT: Format = Format {
    name: "csv",
    summary: "CSV with named columns: comma, semicolon, tab or bar; --columns names the columns of other tables",
    columns: "by their names, in any order: time (or time of completion), operation, address, size; where they are \
              there: latency, queue time, device, host, process. The unit stands in the name, or follows from the \
              first rows, and a note says so",
    counted: PlaceUnit::Lines,
    detect,
    open,
};

/// Number of bytes from which units are guessed.
const SAMPLE_BYTES: usize = 64 * 1024;
/// Largest number of devices with names. Names are kept, and memory must be bounded.
const DEVICES_MAX: usize = 65_536;
/// Largest number of devices named in a note.
const DEVICES_NAMED: usize = 8;
/// Time added to all times of a table that has times of completion, so that the arrival of the
/// first request is not before 0: one day.
const COMPLETION_BASE_NS: u64 = 86_400_000_000_000;

/// Headers of formats that have their own parser.
const OWN_HEADERS: [&str; 4] = [
    "device_id,opcode,offset,length,timestamp",
    "timestamp,offset,size,iotype,volumeid",
    "timestamp,response,iotype,lun,offset,size",
    "timestamp,hostname,disknumber,type,offset,size,responsetime",
];

/// Address of a request without an address.
const UNPLACED: &[u8] = b"-1";
/// The same address as an unsigned number, in the tables of tracers.
const UNPLACED_UNSIGNED: &[u8] = b"18446744073709551615";

/// Number of lines among which the header stands; comments and titles may stand in front.
const HEADER_LINES: usize = 16;

fn detect(head: &TraceHead<'_>) -> Confidence {
    let Some(first) = header_of(head, &ColumnMap::default()) else {
        return Confidence::No;
    };
    let own = first.to_ascii_lowercase();
    // Formats with a header of their own know more about their columns than names can tell, such as
    // the unit of a time.
    if OWN_HEADERS.iter().any(|header| own == header.as_bytes())
        || super::hfplayer::is_header(first)
        || super::biosnoop::is_header(first)
        || super::blkreplay::names_columns(first)
    {
        return Confidence::No;
    }
    let Some(table) = Table::of_header(first) else {
        return Confidence::No;
    };
    match (table.missing().is_empty(), table.delimiter.is_spaces()) {
        (true, false) => Confidence::Certain,
        // Words between spaces make a header in many outputs that are no trace, so a table with
        // separators counts more.
        (true, true) => Confidence::Likely,
        // The error of `open` lists the columns.
        (false, spaces) if is_near(&table, spaces, head, first) => Confidence::Possible,
        _ => Confidence::No,
    }
}

/// Returns true if a table without all required columns is more likely a trace than something else:
/// enough columns have known names, or one has and the rows below have as many fields.
fn is_near(table: &Table, spaces: bool, head: &TraceHead<'_>, header: &[u8]) -> bool {
    let enough = if spaces { 3 } else { 2 };
    let rows = || {
        let mut fields = Vec::new();
        let rows = head.lines().skip_while(|line| *line != header).skip(1);
        let mut same = rows.take(4).map(|line| {
            table.delimiter.split(line, &mut fields);
            fields.len() == table.fields()
        });
        same.next() == Some(true) && same.all(|same| same)
    };
    (table.recognised() >= enough || (table.recognised() >= 1 && !spaces && rows()))
        // The output of iostat or vmstat names columns like a trace does, and has an error of its
        // own.
        && crate::pasted::other_output(head.bytes).is_none()
}

/// Returns the header: the first line that names all required columns, or else the line that names
/// the most, or else the first line.
fn header_of<'h>(head: &TraceHead<'h>, map: &ColumnMap) -> Option<&'h [u8]> {
    let lines = || {
        head.lines()
            .filter(|line| !is_rule(line))
            .take(HEADER_LINES)
    };
    lines()
        .find(|line| Table::mapped(line, map).is_ok_and(|table| table.has_header))
        .or_else(|| {
            // Of equally good lines, `max_by_key` returns the last.
            let named =
                |line: &&'h [u8]| Table::of_header(line).map_or(0, |table| table.recognised());
            lines()
                .collect::<Vec<_>>()
                .into_iter()
                .rev()
                .max_by_key(named)
        })
}

/// Returns the name of a role in `--columns`.
fn map_option(role: Role) -> &'static str {
    option_of(role).unwrap_or("time")
}

/// Returns true for a line of dashes below or above a header.
fn is_rule(line: &[u8]) -> bool {
    line.iter()
        .all(|byte| matches!(byte, b'-' | b'=' | b'+' | b'|' | b' ' | b'\t'))
}

/// Returns true for the line of a terminal on which a tracer was stopped.
fn is_end(line: &[u8]) -> bool {
    line.trim_ascii() == b"^C"
}

fn open(input: &mut Input<'_>) -> Result<Box<dyn Parser>, TraceFault> {
    let map = input.columns().cloned().unwrap_or_default();
    Ok(Box::new(CsvRows::open(input, &map)?))
}

/// Parser of a table.
pub(super) struct CsvRows {
    table: Table,
    /// Text of the header, which may stand again in a file of several tables.
    header: Vec<u8>,
    clock: Clock,
    /// Time added to all times.
    base_ns: u64,
    /// Number of each device with a name, and the names in their order.
    devices: HashMap<Vec<u8>, u32>,
    names: Vec<String>,
    /// Fields of the current line, as begin and end.
    fields: Vec<(usize, usize)>,
    guesses: Vec<String>,
    /// Number of rows without an address, which some tools write as -1.
    unplaced: u64,
}

impl CsvRows {
    /// Reads the header, and chooses the units from the rows below.
    pub(super) fn open(input: &mut Input<'_>, map: &ColumnMap) -> Result<CsvRows, TraceFault> {
        let mut header = Vec::new();
        let head = TraceHead {
            name: "",
            bytes: input.peek(SAMPLE_BYTES)?,
        };
        let first = header_of(&head, map).unwrap_or_default();
        let mut table = Table::mapped(first, map).map_err(|message| {
            TraceFault::broken(
                crate::TracePlace::Line { line: 1, column: 0 },
                message.found,
                message.expected,
            )
        })?;
        if table.has_header {
            header = first.to_vec();
        }
        let guesses = guess::settle(&mut table, &head, &header);
        while table.has_header
            && let Some(line) = input.line()?
        {
            if line == header {
                break;
            }
        }
        // The arrival of the first request lies before its completion, and times are unsigned.
        let base_ns = if table.has_completion_times() {
            COMPLETION_BASE_NS
        } else {
            0
        };
        Ok(CsvRows {
            table,
            header,
            clock: Clock::default(),
            base_ns,
            devices: HashMap::new(),
            names: Vec::new(),
            fields: Vec::new(),
            guesses,
            unplaced: 0,
        })
    }

    /// Returns the number of the device called `name`.
    fn device(&mut self, name: &[u8]) -> Option<u32> {
        if let Some(&number) = self.devices.get(name) {
            return Some(number);
        }
        // A column of addresses that was taken for a device would otherwise fill the memory with
        // names.
        if self.names.len() == DEVICES_MAX {
            return None;
        }
        let number = u32::try_from(self.names.len()).ok()?;
        self.devices.insert(name.to_vec(), number);
        self.names.push(String::from_utf8_lossy(name).into_owned());
        Some(number)
    }

    /// Returns true for a row of a table aligned with spaces that lacks a name and has no address:
    /// biosnoop of older bcc prints `?` for the program and nothing for the disk of such requests.
    fn is_unnamed(&mut self, line: &[u8]) -> bool {
        if !self.table.delimiter.is_spaces() {
            return false;
        }
        self.table.split(line, &mut self.fields);
        let mut fields = self.fields.iter().map(|&(begin, end)| &line[begin..end]);
        self.fields.len() < self.table.width && fields.any(|text| self.is_unplaced(text))
    }

    /// Returns true for the address of a request without an address.
    fn is_unplaced(&self, text: &[u8]) -> bool {
        text == UNPLACED || (text == UNPLACED_UNSIGNED && self.table.delimiter.is_spaces())
    }

    /// Parses one line into the values of its columns.
    fn values(&mut self, line: &[u8]) -> Parsed<Option<RowValues>> {
        // Taken out and put back, so that no line allocates.
        let mut fields = std::mem::take(&mut self.fields);
        let parsed = self.values_of(line, &mut fields);
        self.fields = fields;
        parsed
    }

    fn values_of(
        &mut self,
        line: &[u8],
        fields: &mut Vec<(usize, usize)>,
    ) -> Parsed<Option<RowValues>> {
        self.table.split(line, fields);
        if fields.len() < self.table.width {
            let found = format!("{} columns", fields.len());
            let expected = format!("{} columns, as the table begins", self.table.width);
            return Err(mismatch(0, found, expected));
        }
        let mut values = RowValues::default();
        let mut device: Vec<u8> = Vec::new();
        for index in 0..self.table.columns.len() {
            let column = self.table.columns[index].clone();
            let Some(&(begin, end)) = fields.get(column.index) else {
                continue;
            };
            let field = Field {
                column: &column,
                text: split::bare(&line[begin..end]),
                begin,
            };
            // A host and a disk name one device together, because each host counts its disks from
            // 0.
            if column.role == Role::Device || column.role == Role::Host {
                if !device.is_empty() {
                    device.push(b'/');
                }
                device.extend_from_slice(field.text);
            } else if !self.take(&field, &mut values)? {
                return Ok(None);
            }
        }
        if let Some(operation) = self.table.operation {
            values.operation = operation;
        }
        if values.in_bytes(&self.table).is_none() {
            let found = format!("blocks of {} bytes", values.block_size);
            let expected = "a range of bytes that ends below 2^64".to_owned();
            return Err(mismatch(0, found, expected));
        }
        values.device = self.number_of(&device).ok_or_else(|| {
            mismatch(
                0,
                excerpt(&device),
                "one of the first 65536 devices".to_owned(),
            )
        })?;
        Ok(Some(values))
    }

    /// Sets the value of a field. Returns `false` if the row is a command that moves no data.
    fn take(&mut self, field: &Field<'_>, values: &mut RowValues) -> Parsed<bool> {
        let (column, text) = (field.column, field.text);
        let comma = self.table.delimiter.allows_decimal_comma();
        match column.role {
            Role::Time | Role::EndTime => {
                let time = self.clock.time(text, column.unit, comma);
                let time = Some(time.ok_or_else(|| field.mismatch("a time from 0 on"))?);
                if column.role == Role::Time {
                    values.time = time;
                } else {
                    values.end = time;
                }
            }
            Role::Latency => values.latency = field.duration(comma)?,
            Role::Queue => values.queue = field.duration(comma)?,
            Role::Start => {
                values.unplaced = self.is_unplaced(text);
                if !values.unplaced {
                    let start = values::scaled(text, column.unit, comma)
                        .or_else(|| values::suffixed(column.role, text, comma));
                    values.start = start.ok_or_else(|| field.mismatch("an address from 0 on"))?;
                }
            }
            Role::BlockSize => {
                let size = values::scaled(text, column.unit, comma)
                    .or_else(|| values::suffixed(Role::Size, text, comma));
                values.block_size = size.ok_or_else(|| field.mismatch("the size of a block"))?;
            }
            Role::Size => {
                let size = values::scaled(text, column.unit, comma)
                    .or_else(|| values::suffixed(column.role, text, comma));
                values.size = size.ok_or_else(|| field.mismatch("a size from 0 on"))?;
            }
            Role::Operation | Role::IsWrite | Role::IsRead => {
                let operation = values::operation(text, column.role == Role::IsRead);
                let expected = "an operation such as R, W, read or write";
                match operation.map_err(|()| field.mismatch(expected))? {
                    Some(operation) => values.operation = operation,
                    None => return Ok(false),
                }
            }
            Role::Process => {
                values.process = values::scaled(text, 1, false)
                    // A process without a number has the number 0. Names of programs have no use
                    // here.
                    .and_then(|number| u32::try_from(number).ok())
                    .unwrap_or(0);
            }
            Role::Device | Role::Host | Role::Text | Role::Other => {}
        }
        Ok(true)
    }

    /// Returns the number of a device: the number in its only column, or else the place of the name
    /// in the order of appearance.
    fn number_of(&mut self, name: &[u8]) -> Option<u32> {
        if name.is_empty() && self.names.is_empty() {
            return Some(0);
        }
        if self.table.numbered {
            let text = std::str::from_utf8(name).ok()?;
            return text.parse().ok();
        }
        self.device(name)
    }
}

/// One field of a row.
struct Field<'l> {
    column: &'l PlannedColumn,
    text: &'l [u8],
    /// Place of the field in the line.
    begin: usize,
}

impl Field<'_> {
    fn mismatch(&self, expected: &str) -> Box<Mismatch> {
        let found = if self.text.is_empty() {
            "nothing".to_owned()
        } else {
            excerpt(self.text)
        };
        let expected = format!("{expected} in column `{}`", self.column.name);
        mismatch(self.begin, found, expected)
    }

    /// Returns the duration in ns; `None` if it is unknown.
    fn duration(&self, comma: bool) -> Parsed<Option<u64>> {
        if self.text.is_empty() || matches!(self.text, b"-" | b"NaN" | b"nan") {
            return Ok(None);
        }
        let duration = values::scaled(self.text, self.column.unit, comma)
            .or_else(|| values::suffixed(self.column.role, self.text, comma));
        duration
            .ok_or_else(|| self.mismatch("a duration from 0 on"))
            .map(Some)
    }
}

/// Values of one row, in ns and bytes.
#[derive(Default)]
struct RowValues {
    time: Option<u64>,
    end: Option<u64>,
    latency: Option<u64>,
    queue: Option<u64>,
    operation: Operation,
    start: u64,
    size: u64,
    block_size: u64,
    device: u32,
    process: u32,
    unplaced: bool,
}

#[cold]
fn mismatch(column: usize, found: String, expected: String) -> Box<Mismatch> {
    Box::new(Mismatch {
        column,
        found,
        expected,
    })
}

impl LineParser for CsvRows {
    fn row(&mut self, line: &[u8]) -> Parsed<Option<TraceRow>> {
        if line.starts_with(b"#") || is_rule(line) || line == self.header || is_end(line) {
            return Ok(None);
        }
        if self.is_unnamed(line) {
            self.unplaced += 1;
            return Ok(None);
        }
        let Some(values) = self.values(line)? else {
            return Ok(None);
        };
        // A flush has no address.
        if values.unplaced && !values.operation.is_of_all() {
            self.unplaced += 1;
            return Ok(None);
        }
        let latency = values.latency.unwrap_or(0);
        let queue = values.queue.unwrap_or(0);
        // Sums beyond 584 years stay at the largest time; differences stay at 0.
        let (arrival, completed) = match (values.time, values.end) {
            (Some(time), _) if self.table.time_is_end => {
                let end = time.saturating_add(self.base_ns);
                (
                    end.saturating_sub(latency.saturating_add(queue)),
                    values.latency.map(|_| end),
                )
            }
            (Some(time), end) => {
                let time = time.saturating_add(self.base_ns);
                let by_latency = || {
                    values
                        .latency
                        .map(|latency| time.saturating_add(queue).saturating_add(latency))
                };
                let end = end
                    .map(|end| end.saturating_add(self.base_ns))
                    .or_else(by_latency);
                (time, end)
            }
            (None, Some(end)) => {
                let end = end.saturating_add(self.base_ns);
                (
                    end.saturating_sub(latency.saturating_add(queue)),
                    values.latency.map(|_| end),
                )
            }
            // `Table::missing` requires one of the two.
            (None, None) => (0, None),
        };
        let is_of_all = values.operation.is_of_all();
        let range = if is_of_all {
            Some((0, 0))
        } else {
            sectors_of_bytes(values.start, values.size)
        };
        let Some((start, sectors)) = range else {
            let found = format!("{} bytes from byte {}", values.size, values.start);
            let expected = "a range of bytes that ends below 2^64".to_owned();
            return Err(mismatch(0, found, expected));
        };
        Ok(Some(TraceRow {
            device: values.device,
            process: values.process,
            issued: values.queue.map(|queue| arrival.saturating_add(queue)),
            completed: completed.map(|completed| completed.max(arrival)),
            ..TraceRow::new(arrival, values.operation, start, sectors)
        }))
    }
}

impl Parser for CsvRows {
    fn read(
        &mut self,
        input: &mut Input<'_>,
        rows: &mut Vec<TraceRow>,
        limit: usize,
    ) -> Result<bool, TraceFault> {
        crate::row::read_lines(self, input, rows, limit)
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = self.guesses.clone();
        if self.unplaced > 0 {
            notes.push(format!(
                "{} rows without an address (sector -1) are left out",
                self.unplaced
            ));
        }
        if self.names.len() > 1 {
            let named: Vec<String> = self
                .names
                .iter()
                .take(DEVICES_NAMED)
                .enumerate()
                .map(|(number, name)| format!("{number} = {name}"))
                .collect();
            let more = match self.names.len() > DEVICES_NAMED {
                true => ", ...",
                false => "",
            };
            notes.push(format!(
                "devices are numbered as they appear: {}{more}",
                named.join(", ")
            ));
        }
        notes
    }
}

#[cfg(test)]
mod tests;
