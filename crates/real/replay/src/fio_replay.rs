//! fio, replaying the same requests on the same device.
//!
//! fio receives the issued requests as an iolog and writes a latency log. The log has the
//! completion time of a request in whole milliseconds, and its latency. So the time of issue is
//! known to a millisecond.

use crate::prepared::Commands;
use crate::report_parts::ReplayDistribution;
use crate::tally::ReplayTally;
use crate::target::Target;
use crate::{ReplayError, ReplayOptions, WriteTreatment};
use fullstroke_contract::Extent;
use fullstroke_trace::{OUTPUTS, TraceError, TraceRecord, TraceWriter};
use fullstroke_units::{Duration, SECTOR_BYTES, Time};
use serde::Serialize;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use thiserror::Error;

/// Queue depth of fio. fio reaps completions when this depth is reached, or before a long wait. So
/// its latencies do not measure the device, but its times of issue are correct.
const IODEPTH: &str = "256";

/// Result of fio's replay.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FioReplay {
    /// Version string of fio.
    pub version: String,
    /// Number of requests in fio's log.
    pub requests: u64,
    /// Time in s from fio's first issue to its last.
    pub duration_s: f64,
    /// Time in s from the first issue to the last by the schedule.
    pub scheduled_s: f64,
    /// Difference between the time of issue and the schedule in us, counted from the first request.
    /// The resolution is 1000 us.
    pub issue_error_us: ReplayDistribution,
    /// Growth of the issue delay in us per second.
    pub drift_us_per_s: f64,
}

/// Reason why there is no result of fio.
#[derive(Debug, Error)]
pub enum BesideError {
    /// fio is not installed.
    #[error("fio is not installed")]
    NotInstalled,
    /// The trace or the device cannot be used.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// The trace cannot be converted for fio.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The folder for fio's files cannot be created.
    #[error("`{}`: {source}", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// fio cannot be started.
    #[error("{0}")]
    Host(io::Error),
    /// fio failed.
    #[error("fio ended with {status}: {said}")]
    Failed {
        /// Exit status.
        status: ExitStatus,
        /// First line of fio's error output.
        said: String,
    },
    /// fio's log cannot be read.
    #[error("fio's log: {0}")]
    Log(io::Error),
    /// A line of fio's log is no latency.
    #[error("fio's log has a line that is no latency")]
    NoLatency,
    /// fio issued no request.
    #[error("fio's log is empty")]
    EmptyLog,
}

/// A temporary folder, removed on drop.
struct RemovedFolder(PathBuf);

impl Drop for RemovedFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Replays the trace by timing with fio.
///
/// # Errors
/// If fio is absent, if fio fails, or if the trace cannot be converted for fio.
pub fn fio_beside(options: &ReplayOptions, requests: u64) -> Result<FioReplay, BesideError> {
    let version = Command::new("fio")
        .arg("--version")
        .output()
        .map_err(|_| BesideError::NotInstalled)?;
    let target = Target::open(&options.target, options.writes, options.buffered)?;
    let name = format!("fullstroke-replay-{}", std::process::id());
    let folder = RemovedFolder(std::env::temp_dir().join(name));
    fs::create_dir(&folder.0).map_err(|source| BesideError::Folder {
        folder: folder.0.clone(),
        source,
    })?;
    let schedule = write_iolog(options, &target, requests, &folder.0.join("trace.iolog"))?;
    // fio opens the device itself, so the claim must end first.
    drop(target);
    run(options, &folder.0)?;
    let issues = issues(&folder.0.join("fio_lat.1.log"))?;
    let tally = tally(&schedule, &issues);
    Ok(FioReplay {
        version: String::from_utf8_lossy(&version.stdout).trim().to_owned(),
        requests: issues.len() as u64,
        duration_s: tally.span().as_secs_f64(),
        scheduled_s: tally.scheduled_span().as_secs_f64(),
        issue_error_us: tally.issue_error_us(),
        drift_us_per_s: tally.drift_us_per_s(),
    })
}

/// Writes the requests as an iolog. Returns the scheduled time of each.
fn write_iolog(
    options: &ReplayOptions,
    target: &Target,
    requests: u64,
    path: &Path,
) -> Result<Vec<Time>, BesideError> {
    let Some(iolog) = OUTPUTS.iter().find(|output| output.name == "fio") else {
        unreachable!("fio's format can be written")
    };
    let mut writer = TraceWriter::create(iolog, path)?;
    let mut commands = Commands::open(options, target)?;
    let mut schedule = Vec::new();
    while schedule.len() < requests as usize
        && let Some(command) = commands.next()?
    {
        let arrival = options.rules.scaled(command.record.arrival);
        let extent = Extent::new(command.start / SECTOR_BYTES, command.bytes / SECTOR_BYTES);
        let operation = command.action.operation();
        let record = TraceRecord {
            arrival,
            operation,
            extent,
            device: 0,
            ..command.record
        };
        writer.write(&record)?;
        schedule.push(arrival);
    }
    writer.finish()?;
    Ok(schedule)
}

fn run(options: &ReplayOptions, folder: &Path) -> Result<(), BesideError> {
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
    // An unescaped colon separates files for fio.
    let target = fs::canonicalize(&options.target).map_err(BesideError::Host)?;
    fio.arg(format!(
        "--replay_redirect={}",
        target.display().to_string().replace(':', "\\:")
    ));
    if options.writes != WriteTreatment::Overwrite {
        fio.arg("--readonly");
    }
    let ended = fio
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .map_err(BesideError::Host)?;
    if ended.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&ended.stderr);
    let said = said.lines().next().unwrap_or("it did not say why");
    Err(BesideError::Failed {
        status: ended.status,
        said: said.to_owned(),
    })
}

/// Returns the times of issue in us, in order.
fn issues(log: &Path) -> Result<Vec<u64>, BesideError> {
    let text = fs::read_to_string(log).map_err(BesideError::Log)?;
    let issue = |line: &str| {
        // The fields are: completion in ms, latency in ns, direction, bytes, offset.
        let mut fields = line.split(',').map(str::trim);
        let completed_us = fields.next()?.parse::<u64>().ok()? * 1000;
        // The log gives the end in ms and the latency in ns. The difference is the issue, to a
        // millisecond.
        Some(completed_us.saturating_sub(fields.next()?.parse::<u64>().ok()? / 1000))
    };
    let issues: Option<Vec<u64>> = text.lines().map(issue).collect();
    let mut issues = issues.ok_or(BesideError::NoLatency)?;
    // The log is in the order of completion, the comparison in the order of issue.
    issues.sort_unstable();
    if issues.is_empty() {
        Err(BesideError::EmptyLog)
    } else {
        Ok(issues)
    }
}

/// Compares the times of issue with the schedule. Both are counted from the first request.
fn tally(schedule: &[Time], issues: &[u64]) -> ReplayTally {
    let mut tally = ReplayTally::new();
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
        assert!(matches!(issues(&log), Err(BesideError::NoLatency)));
    }
}
