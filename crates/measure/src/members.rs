//! What each drive did.

use crate::measurement::{megabytes, rate};
use fullstroke_contract::MemberStatistics;
use fullstroke_units::Duration;
use serde::Serialize;

/// One drive over the whole run, the warm-up included. Means are over the I/Os
/// that the drive served, and zero if it served none.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MemberReport {
    /// Its place in the tree: `0`, or `2.0` where volumes nest.
    pub name: String,
    /// I/Os served.
    pub requests: u64,
    /// Reads among them.
    pub reads: u64,
    /// Writes among them.
    pub writes: u64,
    /// Share of the simulated time in which an I/O was in service, 0 to 1.
    pub utilisation: f64,
    /// I/Os in the drive, waiting or in service, on average over time.
    pub queue_depth: f64,
    /// Mean time in the drive's queue.
    pub queue_ms: f64,
    /// Mean command overhead.
    pub overhead_ms: f64,
    /// Mean seek time, I/Os without a seek included.
    pub seek_ms: f64,
    /// Mean distance of the first seek in cylinders, zeros included.
    pub seek_cylinders: f64,
    /// Share of I/Os whose first track lay under the arm already, 0 to 1.
    pub zero_seek_share: f64,
    /// Mean rotational latency.
    pub rotation_ms: f64,
    /// Mean transfer time.
    pub transfer_ms: f64,
    /// Read and written, in 10^6 bytes a second.
    pub mb_per_s: f64,
}

/// One report for each drive; `seconds` is the length of the whole run.
pub(crate) fn member_reports(
    drives: &[MemberStatistics],
    names: &[String],
    seconds: f64,
) -> Vec<MemberReport> {
    drives.iter().zip(names).map(|(drive, name)| member_report(drive, name, seconds)).collect()
}

fn member_report(drive: &MemberStatistics, name: &str, seconds: f64) -> MemberReport {
    let requests = drive.requests();
    let mean = |sum: f64| if requests == 0 { 0.0 } else { sum / requests as f64 };
    let mean_ms = |sum: Duration| mean(sum.as_millis_f64());
    MemberReport {
        name: name.to_owned(),
        requests,
        reads: drive.reads,
        writes: drive.writes,
        utilisation: rate(drive.busy.as_secs_f64(), seconds),
        queue_depth: rate(drive.queue_length_ns as f64 / 1e9, seconds),
        queue_ms: mean_ms(drive.queue),
        overhead_ms: mean_ms(drive.overhead),
        seek_ms: mean_ms(drive.seek),
        seek_cylinders: mean(drive.seek_cylinders as f64),
        zero_seek_share: mean(drive.zero_seeks as f64),
        rotation_ms: mean_ms(drive.rotation),
        transfer_ms: mean_ms(drive.transfer),
        mb_per_s: megabytes((drive.sectors_read + drive.sectors_written).0, seconds),
    }
}
