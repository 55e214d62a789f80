//! Reports of all devices, from the texts and the JSON of `iostat`, `sar` and `zpool iostat`.

use crate::StackError;
use fullstroke_units::map_of;
use serde_json::Value;
use std::collections::BTreeMap;

/// Columns of a report by their names.
pub(super) type Row = BTreeMap<String, f64>;

/// A report of all devices.
#[derive(Default)]
pub(super) struct Report {
    pub(super) tool: &'static str,
    /// True for the line of averages of sar.
    pub(super) average: bool,
    pub(super) rows: Vec<(String, Row)>,
}

impl Report {
    /// True if the first report of the tool covers the time since the start of the system.
    pub(super) fn covers_start(&self) -> bool {
        matches!(self.tool, IOSTAT | ZPOOL)
    }

    fn new(tool: &'static str, average: bool) -> Report {
        Report {
            tool,
            average,
            rows: Vec::new(),
        }
    }
}

pub(super) const IOSTAT: &str = "iostat";
const SAR: &str = "sar -d";
/// Transfers of all disks together.
const SAR_ALL: &str = "sar -b";
/// Name of the only row of `sar -b`.
pub(super) const ALL_DISKS: &str = "all disks";
pub(super) const ZPOOL: &str = "zpool iostat";

/// Columns of `zpool iostat`. Further columns are latencies (`-l`).
const OF_ZPOOL: [&str; 7] = ["pool", "alloc", "free", "r/s", "w/s", "rB/s", "wB/s"];

/// Heading of a table: the tool, the place of the device's name, and the names of all columns.
#[derive(Clone, Debug, PartialEq)]
struct Header<'a> {
    tool: &'static str,
    at: usize,
    names: Vec<&'a str>,
}

impl<'a> Header<'a> {
    /// Returns the names of the columns. In front of the device, sar has the time of the report.
    fn columns(&self) -> &[&'a str] {
        match self.tool {
            SAR | SAR_ALL => &self.names[self.at..],
            _ => &self.names,
        }
    }
}

/// Returns true if the text has a report.
pub(super) fn recognise(text: &str) -> bool {
    is_json(text) || text.lines().any(|line| header(line).is_some())
}

fn is_json(text: &str) -> bool {
    text.trim_start().starts_with('{') && text.contains("\"sysstat\"")
}

/// Returns the fields of a line. `sadf -d` writes semicolons, and times with spaces inside.
fn fields(line: &str) -> Vec<&str> {
    let line = line.trim().trim_start_matches('#');
    match line.contains(';') {
        true => line.split(';').map(str::trim).collect(),
        false => line.split_whitespace().collect(),
    }
}

/// Returns the heading in a line; `None` if the line is none.
fn header(line: &str) -> Option<Header<'_>> {
    let names = fields(line);
    let named = |name: &str| matches!(name.trim_end_matches(':'), "Device" | "device");
    let (tool, at) = match names.as_slice() {
        // sysstat wrote `Device:` until version 11 and `Device` since.
        [first, ..] if named(first) => (IOSTAT, 0),
        // Human units (`iostat -h`) and Solaris have the device at the end.
        [.., last] if named(last) => (IOSTAT, names.len() - 1),
        // The words above the columns, `capacity operations bandwidth`, tell the second read and write
        // from the first.
        [
            "pool",
            "alloc",
            "free",
            "read",
            "write",
            "read",
            "write",
            ..,
        ] => {
            let mut columns = OF_ZPOOL.to_vec();
            columns.extend(&names[OF_ZPOOL.len()..]);
            return Some(Header {
                tool: ZPOOL,
                at: 0,
                names: columns,
            });
        }
        // The last word of the time stands where another table has the device.
        [_, .., "bread/s", "bwrtn/s"] | [_, .., "bread/s", "bwrtn/s", "bdscd/s"] => {
            let tps = names.iter().position(|word| *word == "tps")?;
            (SAR_ALL, tps.checked_sub(1)?)
        }
        _ => (SAR, names.iter().position(|word| *word == "DEV")?),
    };
    let has = |name: &str| names.contains(&name);
    let is_one = has("tps") || has("r/s") || has("w/s");
    // A line of prose may begin with "Device", and has none of the rates.
    is_one.then_some(Header { tool, at, names })
}

/// Returns the reports of a text. `file` is the name of the text in errors.
pub(super) fn reports(file: &str, text: &str) -> Result<Vec<Report>, StackError> {
    if is_json(text) {
        return of_json(file, text);
    }
    let mut reports: Vec<Report> = Vec::new();
    let mut heading: Option<Header<'_>> = None;
    let mut first: Option<Header<'_>> = None;
    for (index, line) in text.lines().enumerate() {
        if let Some(found) = header(line) {
            let average = found.tool != IOSTAT && is_average(line);
            // A report with human units has a table of reads and a table of writes. The report
            // begins where the first heading comes again.
            let begins = first
                .as_ref()
                .is_none_or(|first| first.columns() == found.columns())
                || average;
            first.get_or_insert_with(|| found.clone());
            if begins {
                reports.push(Report::new(found.tool, average));
            }
            heading = Some(found);
            continue;
        }
        let Some(columns) = &heading else {
            continue;
        };
        let mut words = fields(line);
        if columns.tool == SAR_ALL && words.first() == Some(&"Average:") {
            // The averages have no heading of their own, and no AM or PM.
            words.splice(..1, columns.names[..=columns.at].iter().copied());
            reports.push(Report::new(SAR_ALL, true));
        }
        if columns.tool == ZPOOL && line.starts_with('-') {
            continue;
        }
        if words.len() != columns.names.len() {
            // An empty line ends the table.
            heading = None;
            continue;
        }
        if columns.tool == SAR && begins_averages(line, &reports) {
            reports.push(Report::new(SAR, true));
        }
        let row = row(file, index + 1, columns, &words)?;
        let Some(report) = reports.last_mut() else {
            continue;
        };
        if columns.tool == ZPOOL {
            // A row further to the right is a part of the row above: disks count, and not the pool
            // and the vdevs that consist of them.
            report
                .rows
                .retain(|(_, row)| !row.contains_key(PARENT_OF_NEXT));
        }
        let is_parent = columns.tool == ZPOOL
            && text
                .lines()
                .nth(index + 1)
                .is_some_and(|next| indent(next) > indent(line));
        let mut row = row;
        if is_parent {
            row.insert(PARENT_OF_NEXT.to_owned(), 1.0);
        }
        let device = match columns.tool {
            SAR_ALL => ALL_DISKS,
            _ => words[columns.at],
        };
        report.rows.push((device.to_owned(), row));
    }
    for report in &mut reports {
        report
            .rows
            .retain(|(_, row)| !row.contains_key(PARENT_OF_NEXT));
    }
    Ok(reports)
}

/// Returns true for a line of averages: sar writes a word in place of the time, in the language of the
/// user (`Average:`, `Durchschn.:`, `Moyenne :`).
fn is_average(line: &str) -> bool {
    let front = line.trim_start().split_once(':').map(|(front, _)| front);
    front.is_some_and(|front| {
        front.starts_with(char::is_alphabetic)
            && !front.contains(|letter: char| letter.is_ascii_digit())
    })
}

/// Returns true for the first line of averages: they may stand below the heading of the last report.
fn begins_averages(line: &str, reports: &[Report]) -> bool {
    is_average(line) && reports.last().is_some_and(|report| !report.average)
}

/// Mark of the row of a pool or of a vdev.
pub(super) const WHOLE_POOL: &str = "alloc";

/// Mark of a row that consists of the rows below.
const PARENT_OF_NEXT: &str = "";

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Reads the numbers of a row.
fn row(file: &str, line: usize, columns: &Header<'_>, words: &[&str]) -> Result<Row, StackError> {
    let mut row = Row::new();
    for (place, (name, word)) in columns.names.iter().zip(words).enumerate() {
        let is_before = matches!(columns.tool, SAR | SAR_ALL) && place < columns.at;
        let is_other = columns.tool == ZPOOL && !(3..OF_ZPOOL.len()).contains(&place);
        // A disk of a pool has no space of its own.
        if columns.tool == ZPOOL && *name == "alloc" && *word != "-" {
            row.insert(WHOLE_POOL.to_owned(), 1.0);
        }
        if place == columns.at || is_before || is_other {
            continue;
        }
        let value = number(name, word).ok_or_else(|| StackError {
            file: file.to_owned(),
            line: Some(line),
            key: (*name).to_owned(),
            message: format!("found `{word}`; expected a number"),
        })?;
        match *name {
            // zpool iostat counts bytes.
            "rB/s" => row.insert("rkB/s".to_owned(), value / 1024.0),
            "wB/s" => row.insert("wkB/s".to_owned(), value / 1024.0),
            // `sar -b` names the columns of `iostat -x` anew; its blocks are sectors of 512 bytes
            // (sysstat, man page of sar).
            "rtps" => row.insert("r/s".to_owned(), value),
            "wtps" => row.insert("w/s".to_owned(), value),
            "bread/s" => row.insert("rsec/s".to_owned(), value),
            "bwrtn/s" => row.insert("wsec/s".to_owned(), value),
            name => row.insert(name.to_owned(), value),
        };
    }
    Ok(row)
}

/// Returns a number, which may have a unit of people such as `920.0k` or `18.0%`. Columns in kB have
/// their values in kB.
fn number(name: &str, word: &str) -> Option<f64> {
    // sysstat follows the locale, and many locales have a decimal comma.
    let word = word.replace(',', ".");
    let (digits, factor) = match word.chars().last()? {
        '%' => (&word[..word.len() - 1], 1.0),
        unit if unit.is_ascii_alphabetic() => {
            // The place of the letter is the power of 1024.
            let power = "BKMGTP".find(unit.to_ascii_uppercase())? as i32;
            let in_kib = name.contains("kB") || name.ends_with("-sz");
            let base = if in_kib { power - 1 } else { power };
            (&word[..word.len() - 1], 1024f64.powi(base))
        }
        _ => (&word[..], 1.0),
    };
    // `zpool iostat` prints `-` where a vdev has no value.
    if digits == "-" {
        return Some(0.0);
    }
    let value: f64 = digits.parse().ok()?;
    value.is_finite().then_some(value * factor)
}

/// Reads the JSON of `iostat -o JSON` and of `sadf -j -- -d`.
fn of_json(file: &str, text: &str) -> Result<Vec<Report>, StackError> {
    let json: Value = serde_json::from_str(text).map_err(|error| StackError {
        file: file.to_owned(),
        line: Some(error.line()),
        key: String::new(),
        message: format!("found text that is no JSON: {error}"),
    })?;
    let list = |value: &Value, key: &str| value[key].as_array().cloned().unwrap_or_default();
    let mut reports = Vec::new();
    for host in list(&json["sysstat"], "hosts") {
        for statistics in list(&host, "statistics") {
            // sadf writes date and time as an object, iostat a text or nothing.
            let is_sar = statistics.get("timestamp").is_some_and(Value::is_object);
            let mut report = Report {
                tool: if is_sar { SAR } else { IOSTAT },
                ..Report::default()
            };
            for disk in list(&statistics, "disk") {
                let name = ["disk_device", "disk-device"]
                    .iter()
                    .find_map(|key| disk[*key].as_str());
                let (Some(name), Some(columns)) = (name, disk.as_object()) else {
                    continue;
                };
                let numbers = columns
                    .iter()
                    .filter_map(|(key, value)| Some((key.clone(), value.as_f64()?)));
                report.rows.push((name.to_owned(), map_of(numbers)));
            }
            if !report.rows.is_empty() {
                reports.push(report);
            }
        }
    }
    Ok(reports)
}
