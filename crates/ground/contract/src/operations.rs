//! Counters of a host for its programs: calls and transactions.

use fullstroke_units::Duration;
use serde::Serialize;

/// Number and latency of events of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct EventTimes {
    /// Number of events.
    pub count: u64,
    /// Latency of the events in milliseconds.
    pub latency_ms: LatencyDistribution,
}

/// Distribution of a latency, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LatencyDistribution {
    /// Arithmetic mean, exact.
    pub mean: f64,
    /// Median, rounded to three significant digits like the other percentiles.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Maximum, exact.
    pub max: f64,
}

/// Counters of a host with programs, since the host began to count.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostReadings {
    /// Name of the host; empty for an only host.
    pub name: String,
    /// Time since the host began to count.
    pub elapsed: Duration,
    /// Calls of all programs, by kind.
    pub operations: Vec<OperationReadings>,
    /// Counters of each program.
    pub programs: Vec<ProgramReadings>,
    /// Dirty memory over the run, as pairs of seconds and 10^6 bytes.
    pub dirty_mb: Vec<(f64, f64)>,
}

/// Calls of one kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OperationReadings {
    /// Name of the call, such as `fsync`.
    pub kind: &'static str,
    /// Number and latency of the calls, from the call to its return.
    pub times: EventTimes,
    /// Number of failed calls.
    pub failed: u64,
    /// Bytes moved by reads and writes between program and host.
    pub bytes: u64,
    /// Device reads caused by all calls of this kind since the beginning of the run. If several
    /// calls share a request, each call gets its share.
    pub device_reads: f64,
    /// Device writes caused by all calls of this kind. A write counts even if the device gets it
    /// later.
    pub device_writes: f64,
    /// Number of calls of this kind since the beginning of the run.
    pub calls: u64,
}

/// Counters of one program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProgramReadings {
    /// Name of the program.
    pub name: String,
    /// Time until the end of the program. Starts with the program or, if later, when the host
    /// begins to count.
    pub elapsed: Duration,
    /// Transactions, by the program's names for them.
    pub transactions: Vec<(&'static str, EventTimes)>,
    /// The program's own measures, by name; the unit is part of the name.
    pub figures: Vec<(&'static str, f64)>,
    /// Output text of the program.
    pub text: String,
    /// Parts that were left out, one sentence each.
    pub notes: Vec<String>,
}
