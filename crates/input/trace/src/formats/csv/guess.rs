//! Units of columns whose names have no unit, from the first rows of a table.

use super::map::Table;
use super::values::{of_suffix, scaled};
use crate::columns::names::Role;
use crate::formats::TraceHead;

/// Number of rows from which units follow.
const ROWS: usize = 512;
const SECOND: u64 = 1_000_000_000;
const SECTOR_BYTES: u64 = 512;
/// Units of times from the largest on.
const TIME_UNITS: [(u64, &str); 4] = [(SECOND, "s"), (1_000_000, "ms"), (1000, "us"), (1, "ns")];
/// Largest mean gap between requests of a trace whose times have no unit: 5 s. The largest unit with a
/// smaller gap is taken.
const GAP_NS_MAX: f64 = 5e9;
/// Times of 1995 to 2100 as seconds since 1970. Times in this range have an absolute unit.
const EPOCH_S: std::ops::Range<f64> = 0.8e9..4.1e9;
/// Times of 1995 to 2100 in 100 ns since 1601, as Windows counts (FILETIME).
const FILETIME: std::ops::Range<f64> = 1.24e17..1.58e17;

/// Sets the units that are not known yet. Returns a note for each guess.
pub(super) fn settle(table: &mut Table, head: &TraceHead<'_>, header: &[u8]) -> Vec<String> {
    let rows: Vec<&[u8]> = head
        .lines()
        .skip_while(|line| table.has_header && *line != header)
        .filter(|line| !line.starts_with(b"#") && !super::is_rule(line) && *line != header)
        .take(ROWS)
        .collect();
    let of_vscsi = table.is_of_vscsi(&rows);
    let mut notes = Vec::new();
    let mut of_times = None;
    let comma = table.delimiter.allows_decimal_comma();
    for at in 0..table.columns.len() {
        let column = table.columns[at].clone();
        if column.unit != 0 {
            if matches!(column.role, Role::Time | Role::EndTime) {
                of_times = of_times.or(Some(column.unit));
            }
            continue;
        }
        let texts = table.sample(&rows, column.index);
        let found = match column.role {
            Role::Time | Role::EndTime => {
                let (unit, word, sure) = time_unit(&texts, of_vscsi, comma);
                of_times = of_times.or(Some(unit));
                Some((unit, word, sure))
            }
            // In the unit of the times, which come first in most tables.
            Role::Latency | Role::Queue => {
                let unit = of_times.unwrap_or_else(|| times_of(table, &rows, of_vscsi));
                Some((unit, name_of(unit), false))
            }
            // Each value has a unit of its own, such as `64k`.
            Role::Start | Role::Size
                if !texts.is_empty()
                    && texts
                        .iter()
                        .all(|text| of_suffix(column.role, text).is_some()) =>
            {
                Some((1, "bytes", true))
            }
            Role::Start | Role::Size => {
                let bytes = are_bytes(&texts, comma);
                Some(match (bytes, table.has(Role::BlockSize)) {
                    (true, _) => (1, "bytes", of_vscsi),
                    (false, false) => (SECTOR_BYTES, "sectors of 512 bytes", false),
                    (false, true) => {
                        match column.role {
                            Role::Start => table.start_in_blocks = true,
                            _ => table.size_in_blocks = true,
                        }
                        (1, "blocks of the size in the table", false)
                    }
                })
            }
            _ => None,
        };
        let Some((unit, word, sure)) = found else {
            table.columns[at].unit = 1;
            continue;
        };
        table.columns[at].unit = unit;
        if !sure {
            let option = super::map_option(column.role);
            notes.push(format!(
                "column `{}` has no unit and is taken as {word}; --columns {option}={}:UNIT sets another unit",
                column.name, column.name
            ));
        }
    }
    settle_numbers(table, &rows);
    notes
}

/// Notes whether the only column of devices holds numbers.
fn settle_numbers(table: &mut Table, rows: &[&[u8]]) {
    let device = table
        .columns
        .iter()
        .filter(|column| matches!(column.role, Role::Device | Role::Host));
    let devices: Vec<usize> = device.map(|column| column.index).collect();
    if let [only] = devices[..] {
        table.numbered = table
            .sample(rows, only)
            .iter()
            .all(|text| std::str::from_utf8(text).is_ok_and(|text| text.parse::<u32>().is_ok()));
    }
}

fn name_of(unit: u64) -> &'static str {
    match TIME_UNITS.iter().find(|(value, _)| *value == unit) {
        Some((_, name)) => name,
        None => "100 ns",
    }
}

/// Returns the unit of the table's times.
fn times_of(table: &Table, rows: &[&[u8]], of_vscsi: bool) -> u64 {
    let time = table
        .columns
        .iter()
        .find(|column| matches!(column.role, Role::Time | Role::EndTime));
    match time {
        Some(time) if time.unit != 0 => time.unit,
        Some(time) => {
            let comma = table.delimiter.allows_decimal_comma();
            time_unit(&table.sample(rows, time.index), of_vscsi, comma).0
        }
        None => SECOND,
    }
}

/// Returns the unit of times, its name, and true if the times leave no doubt.
fn time_unit(texts: &[&[u8]], of_vscsi: bool, comma: bool) -> (u64, &'static str, bool) {
    if of_vscsi {
        return (SECOND, "s", true);
    }
    // Dates and times of the day have a unit of their own.
    if texts.iter().any(|text| text.contains(&b':')) {
        return (SECOND, "s", true);
    }
    let times: Vec<f64> = texts
        .iter()
        // In millionths, because `scaled` cuts off the digits behind the unit.
        .filter_map(|text| scaled(text, 1_000_000, comma))
        .map(|millionths| millionths as f64 / 1e6)
        .collect();
    // Numbers too large for millionths: FILETIME and ns since 1970.
    let times = match times.is_empty() {
        true => texts
            .iter()
            .filter_map(|text| scaled(text, 1, comma))
            .map(|time| time as f64)
            .collect(),
        false => times,
    };
    let Some(&first) = times.first() else {
        return (SECOND, "s", false);
    };
    if FILETIME.contains(&first) {
        return (100, "100 ns since 1601", true);
    }
    for (unit, name) in TIME_UNITS {
        if EPOCH_S.contains(&(first * unit as f64 / 1e9)) && first * unit as f64 >= 0.8e18 {
            return (unit, name, true);
        }
    }
    let (least, most) = times.iter().fold((first, first), |(least, most), &time| {
        (least.min(time), most.max(time))
    });
    let gap = (most - least) / (times.len().max(2) - 1) as f64;
    let fitting = TIME_UNITS
        .into_iter()
        .find(|&(unit, _)| gap * unit as f64 <= GAP_NS_MAX);
    let (unit, name) = fitting.unwrap_or((1, "ns"));
    (unit, name, false)
}

/// Returns true if numbers count bytes: all are multiples of a sector, and one is not 0.
fn are_bytes(texts: &[&[u8]], comma: bool) -> bool {
    let mut any = false;
    for number in texts.iter().filter_map(|text| scaled(text, 1, comma)) {
        if number % SECTOR_BYTES != 0 {
            return false;
        }
        any |= number > 0;
    }
    any || texts.len() < 2
}
