//! fio, replaying the same requests on the same device.
//!
//! fio is given the requests as they were issued here, as an iolog, and asked for the latency of each. Its
//! log tells when a request completed, in whole milliseconds, and how long it took; so when it was issued is
//! known to a millisecond.

use crate::prepared::Commands;
use crate::report::Spread;
use crate::tally::Tally;
use crate::target::Target;
use crate::{ReplayOptions, Writes};
use fullstroke_contract::Extent;
use fullstroke_trace::{OUTPUTS, Record, TraceWriter};
use fullstroke_units::{Duration, SECTOR_BYTES, Time};
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What fio may have outstanding. It reaps when that is reached, or when it would wait for long: so its
/// latencies are no measure of the device's, but its times of issue are its own.
const IODEPTH: &str = "256";

/// What came of fio's replay.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FioReport {
    /// As it names itself.
    pub version: String,
    /// Requests that its log has.
    pub requests: u64,
    /// From its first issue to its last.
    pub duration_s: f64,
    /// The same by the schedule.
    pub scheduled_s: f64,
    /// How far from their times requests were issued, counted from the first; known to 1000 us.
    pub issue_error_us: Spread,
    /// How much later requests were issued with each second that went by.
    pub drift_us_per_s: f64,
}

/// A folder that goes when it is dropped.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Replays the trace by timing with fio.
///
/// # Errors
/// fio is not there or fails, in its own words; the trace cannot be handed to it.
pub fn fio_beside(options: &ReplayOptions, requests: u64) -> Result<FioReport, String> {
    let version = Command::new("fio")
        .arg("--version")
        .output()
        .map_err(|_| "fio is not installed".to_owned())?;
    let target = Target::open(&options.target, options.writes, options.buffered)
        .map_err(|error| error.to_string())?;
    let name = format!("fullstroke-replay-{}", std::process::id());
    let folder = Folder(std::env::temp_dir().join(name));
    fs::create_dir(&folder.0).map_err(|error| format!("`{}`: {error}", folder.0.display()))?;
    let schedule = write_iolog(options, &target, requests, &folder.0.join("trace.iolog"))?;
    // It opens the device itself.
    drop(target);
    run(options, &folder.0)?;
    let issues = issues(&folder.0.join("fio_lat.1.log"))?;
    let tally = tally(&schedule, &issues);
    Ok(FioReport {
        version: String::from_utf8_lossy(&version.stdout).trim().to_owned(),
        requests: issues.len() as u64,
        duration_s: tally.span().as_secs_f64(),
        scheduled_s: tally.scheduled_span().as_secs_f64(),
        issue_error_us: tally.issue_error_us(),
        drift_us_per_s: tally.drift_us_per_s(),
    })
}

/// Writes what is replayed; returns when each goes.
fn write_iolog(
    options: &ReplayOptions,
    target: &Target,
    requests: u64,
    path: &Path,
) -> Result<Vec<Time>, String> {
    let Some(iolog) = OUTPUTS.iter().find(|output| output.name == "fio") else {
        unreachable!("fio's format can be written")
    };
    let mut writer = TraceWriter::create(iolog, path).map_err(|error| error.to_string())?;
    let mut commands = Commands::open(options, target).map_err(|error| error.to_string())?;
    let mut schedule = Vec::new();
    while schedule.len() < requests as usize
        && let Some(command) = commands.next().map_err(|error| error.to_string())?
    {
        let arrival = options.rules.scaled(command.record.arrival);
        let extent = Extent::new(command.start / SECTOR_BYTES, command.bytes / SECTOR_BYTES);
        let operation = command.action.operation();
        let record = Record {
            arrival,
            operation,
            extent,
            device: 0,
            ..command.record
        };
        writer.write(&record).map_err(|error| error.to_string())?;
        schedule.push(arrival);
    }
    writer.finish().map_err(|error| error.to_string())?;
    Ok(schedule)
}

fn run(options: &ReplayOptions, folder: &Path) -> Result<(), String> {
    let mut fio = Command::new("fio");
    fio.args([
        "--name=beside",
        "--read_iolog=trace.iolog",
        "--ioengine=io_uring",
        "--write_lat_log=fio",
    ]);
    fio.args(["--log_offset=1", "--output=report"])
        .arg(format!("--iodepth={IODEPTH}"));
    fio.arg(format!("--direct={}", u8::from(!options.buffered)));
    // A colon separates files for fio, unless it is escaped.
    let target = fs::canonicalize(&options.target).map_err(|error| error.to_string())?;
    fio.arg(format!(
        "--replay_redirect={}",
        target.display().to_string().replace(':', "\\:")
    ));
    if options.writes != Writes::Overwrite {
        fio.arg("--readonly");
    }
    let ended = fio
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    if ended.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&ended.stderr);
    Err(format!(
        "fio ended with {}: {}",
        ended.status,
        said.lines().next().unwrap_or("it did not say why")
    ))
}

/// When requests were issued, in us, in order.
fn issues(log: &Path) -> Result<Vec<u64>, String> {
    let text = fs::read_to_string(log).map_err(|error| format!("fio's log: {error}"))?;
    let issue = |line: &str| {
        // Milliseconds of the completion, latency in ns, direction, bytes, offset.
        let mut fields = line.split(',').map(str::trim);
        let completed_us = fields.next()?.parse::<u64>().ok()? * 1000;
        Some(completed_us.saturating_sub(fields.next()?.parse::<u64>().ok()? / 1000))
    };
    let issues: Option<Vec<u64>> = text.lines().map(issue).collect();
    let mut issues = issues.ok_or("fio's log has a line that is no latency")?;
    issues.sort_unstable();
    if issues.is_empty() {
        Err("fio's log is empty".to_owned())
    } else {
        Ok(issues)
    }
}

/// The issues beside their schedule, both counted from the first.
fn tally(schedule: &[Time], issues: &[u64]) -> Tally {
    let mut tally = Tally::new();
    for (due, issue) in schedule.iter().zip(issues) {
        let due = Time::ZERO + due.since(schedule[0]);
        tally.issued(
            due,
            due,
            Time::ZERO + Duration::from_micros(issue - issues[0]),
        );
    }
    tally
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fio_logs_is_counted_back_to_the_issue() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        fs::write(
            &log,
            "487, 317000000, 0, 4096, 36065280, 0\n488, 328000000, 0, 4096, 8, 0\n",
        )
        .unwrap();
        assert_eq!(issues(&log).unwrap(), [160_000, 170_000]);
        let at = |us| Time::ZERO + Duration::from_micros(us);
        let tally = tally(&[at(5), at(9005)], &issues(&log).unwrap());
        assert_eq!(
            (tally.issued, tally.scheduled_span()),
            (2, Duration::from_millis(9))
        );
        assert_eq!(tally.span(), Duration::from_millis(10));
        fs::write(&log, "rubbish\n").unwrap();
        assert!(issues(&log).unwrap_err().contains("no latency"));
    }
}
