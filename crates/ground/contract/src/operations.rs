//! What hosts count of the programs that run on them: calls and transactions.

use fullstroke_units::Duration;
use serde::Serialize;

/// How often something happened, and how long it took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Times {
    /// How often.
    pub count: u64,
    /// How long each took.
    pub latency_ms: Latency,
}

/// How long something took that happened many times, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Latency {
    /// Arithmetic mean, exact.
    pub mean: f64,
    /// Median, to three significant digits, as are the other percentiles.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// The longest, exact.
    pub max: f64,
}

/// What a host with programs has counted, from when it counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostReadings {
    /// What it is called; empty where it is the only one.
    pub name: String,
    /// How long it has counted.
    pub elapsed: Duration,
    /// Calls of all its programs, by kind.
    pub operations: Vec<OperationReadings>,
    /// Its programs.
    pub programs: Vec<ProgramReadings>,
    /// Dirty memory over the run: seconds, and 10^6 bytes.
    pub dirty_mb: Vec<(f64, f64)>,
}

/// Calls of one kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OperationReadings {
    /// Which: `fsync`.
    pub kind: &'static str,
    /// From when it was made to its end.
    pub times: Times,
    /// Those that failed.
    pub failed: u64,
    /// What reads and writes moved between program and host, in bytes.
    pub bytes: u64,
    /// Requests to the device that all calls of this kind cost since the beginning of
    /// the run; of a request for several, each has its share.
    pub device_reads: f64,
    /// The same for writes, whenever they were made.
    pub device_writes: f64,
    /// Calls of this kind since the beginning of the run.
    pub calls: u64,
}

/// One program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProgramReadings {
    /// What it is called.
    pub name: String,
    /// From its begin, or from when the host counts, to its end.
    pub elapsed: Duration,
    /// Its transactions, by what it calls them.
    pub transactions: Vec<(&'static str, Times)>,
    /// What it says of itself, by name, with the unit in it.
    pub figures: Vec<(&'static str, f64)>,
    /// Its own words.
    pub text: String,
    /// What was left out: a sentence each.
    pub notes: Vec<String>,
}
