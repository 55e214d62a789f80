//! What a run is reported as. Every field has its unit in its name.

use crate::layers::over_layers;
use crate::{
    Across, Backlog, EnergyReport, GroupReport, HeadsReport, HostReport, LayerReport, MemberReport,
    Overload, ProcessReport, RebuildReport, StreamsReport, TimelineReport, WattsReport,
    WindowsReport, WorkloadReport,
};
use fullstroke_contract::Operation;
use serde::Serialize;

/// The numbers of one run; what `run --json` prints, where the fields of all parts stand side by side.
///
/// Numbers that nothing was measured for are not a number (`null` in JSON). The order of the fields is that of the
/// JSON, which programs of users read: a part holds fields that follow each other there.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// The stack's name.
    pub name: String,
    /// How many requests arrived, and whether the drives carry them.
    #[serde(flatten)]
    pub arrived: Arrived,
    /// The times of reads and writes.
    #[serde(flatten)]
    pub times: Times,
    /// The rates of reads and writes.
    #[serde(flatten)]
    pub rates: Rates,
    /// What the simulation cost its host.
    #[serde(flatten)]
    pub cost: Cost,
    /// Each operation by itself.
    #[serde(flatten)]
    pub kinds: Kinds,
    /// What reached the drives.
    #[serde(flatten)]
    pub drive_io: DriveIo,
    /// The batches behind the intervals.
    pub batches: BatchReport,
    /// How reads and writes, and processes, share the rates.
    #[serde(flatten)]
    pub shares: ByProcess,
    /// The media streams; `null` where the workload has none.
    pub streams: Option<StreamsReport>,
    /// How far apart the drives' heads were.
    pub heads: HeadsReport,
    /// Each workload and each host by itself.
    #[serde(flatten)]
    pub sources: BySource,
    /// The array: its drives and layers.
    #[serde(flatten)]
    pub array: ArrayReport,
    /// What was measured over time.
    #[serde(flatten)]
    pub over_time: OverTime,
    /// What gives the same numbers again.
    #[serde(flatten)]
    pub repeat: Repeat,
}

/// The requests that arrived, by how they ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Arrived {
    /// Requests that arrived, of all kinds, the warm-up included.
    pub requests: u64,
    /// Requests that were done.
    pub completed: u64,
    /// Requests that touched data lost with failed members.
    pub lost: u64,
    /// Requests outside of the volume.
    pub out_of_range: u64,
    /// Damaged rows of the trace that were left out.
    pub skipped_rows: u64,
    /// What is wrong with the trace that its requests do not tell, such as
    /// events that it has lost; a sentence each, as `trace info` has them.
    pub trace_notes: Vec<String>,
    /// Requests that finished within the warm-up. Times and rates leave them out.
    pub warm_up_requests: u64,
    /// Set where arrivals outrun the drives. Times grow with the length of such
    /// a load; they have no intervals then.
    pub overload: Option<Overload>,
    /// What waited; `null` where the load waits for completions itself.
    pub backlog: Option<Backlog>,
}

impl Arrived {
    /// True if every request that arrived was done.
    pub fn is_complete(&self) -> bool {
        self.completed == self.requests
    }

    /// The share of the load that the drives carry: 1 unless they are outrun.
    pub fn carried_share(&self) -> f64 {
        self.overload
            .as_ref()
            .map_or(1.0, |overload| overload.carried_share)
    }
}

/// The times of reads and writes.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Times {
    /// From arrival to completion, over reads and writes.
    pub response_ms: Distribution,
    /// The part in which a drive worked on the request.
    pub service_ms: Distribution,
    /// The part in which the request waited for a busy resource.
    pub queue_ms: Distribution,
    /// Where the mean response time went; the parts add up to it.
    pub time_ms: TimeParts,
}

/// The rates of reads and writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Rates {
    /// Reads and writes completed a second.
    pub iops: f64,
    /// Read and written, in 10^6 bytes a second.
    pub mb_per_s: f64,
    /// From the end of the warm-up (without one, and if it is later, the first
    /// arrival) to the last completion.
    pub simulated_s: f64,
}

/// What the simulation cost its host; whoever ran it fills this in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Cost {
    /// Time that the simulation took; differs from run to run.
    pub wall_s: Option<f64>,
    /// Requests simulated for each second of `wall_s`.
    pub requests_per_wall_s: Option<f64>,
    /// Largest resident memory of the process, in 10^6 bytes.
    pub peak_rss_mb: Option<f64>,
}

/// Each operation by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Kinds {
    /// The reads; `null` if there were none.
    pub reads: Option<OperationReport>,
    /// The writes; `null` if there were none.
    pub writes: Option<OperationReport>,
    /// Operations without data; the times and rates of reads and writes leave them out.
    pub flushes_and_discards: u64,
    /// All four operations, each by itself.
    pub operations: OperationsReport,
}

/// What reached the drives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct DriveIo {
    /// Share of member I/Os whose first track lay under the arm already.
    pub zero_seek_share: f64,
    /// Mean size in KiB of the reads and writes that reached drives; not a number
    /// if none did.
    pub drive_io_kib: f64,
}

/// How reads and writes, and processes, share the rates.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ByProcess {
    /// Bytes read for each byte written; not a number if none was written.
    pub read_write_ratio: f64,
    /// Jain's index of the processes' bandwidths; not a number where the
    /// workload names no processes.
    pub fairness: f64,
    /// Read and written by each process, in 10^6 bytes a second.
    pub process_mb_per_s: Across,
    /// The processes by name; empty where the workload names none.
    pub groups: Vec<GroupReport>,
    /// The processes, in the order of their numbers.
    pub processes: Vec<ProcessReport>,
}

/// Each workload and each host by itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct BySource {
    /// Each workload, where the stack has several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub workloads: Vec<WorkloadReport>,
    /// The hosts on which programs ran.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostReport>,
}

/// The array: its drives and layers.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ArrayReport {
    /// The rebuild that went on meanwhile; `null` if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rebuild: Option<RebuildReport>,
    /// What it cost; `null` where no drive's file says what it draws.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy: Option<EnergyReport>,
    /// The drives, in the order of the tree.
    pub members: Vec<MemberReport>,
    /// The layers between host and drives that count something.
    pub layers: Vec<LayerReport>,
    /// When arrays with gears began to shift, in seconds: each array's first 256.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gear_shifts_s: Vec<f64>,
}

/// What was measured over time, each where it was asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct OverTime {
    /// Mean response times by windows of the arrivals, if a study looks at them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub windows: Option<WindowsReport>,
    /// What happened when, if a page was asked for (`--report`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeline: Option<TimelineReport>,
    /// What the drives drew over time, if a picture was asked for (`--plot-power`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watts: Option<WattsReport>,
}

/// What gives the same numbers again.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Repeat {
    /// The seed of all randomness.
    pub seed: u64,
    /// A digest of the whole configuration.
    pub config_digest: String,
    /// The version that made the result.
    pub version: String,
}

/// The spread of one quantity, in the unit of the field's name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Distribution {
    /// Arithmetic mean, exact.
    pub mean: f64,
    /// Standard deviation of the sample, exact.
    pub stddev: f64,
    /// Median, to three significant digits, as are the other percentiles.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p999: f64,
    /// The largest, exact.
    pub max: f64,
    /// Half the width of the 95 % confidence interval of the mean; `None` if
    /// there are too few requests to claim one.
    pub ci95_half_width: Option<f64>,
}

/// The operations of a run, each by itself; `null` for those that there were
/// none of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct OperationsReport {
    /// Reads.
    pub read: Option<OperationReport>,
    /// Writes.
    pub write: Option<OperationReport>,
    /// Flushes.
    pub flush: Option<OperationReport>,
    /// Discards; their megabytes are those that were discarded.
    pub discard: Option<OperationReport>,
}

impl OperationsReport {
    /// One of them.
    pub fn of(&self, operation: Operation) -> Option<&OperationReport> {
        match operation {
            Operation::Read => self.read.as_ref(),
            Operation::Write => self.write.as_ref(),
            Operation::Flush => self.flush.as_ref(),
            Operation::Discard => self.discard.as_ref(),
            Operation::Standby | Operation::Start | Operation::Answer => None,
        }
    }
}

/// The requests of one operation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct OperationReport {
    /// How many were done.
    pub requests: u64,
    /// From arrival to completion.
    pub response_ms: Distribution,
    /// Completed a second.
    pub iops: f64,
    /// 10^6 bytes a second.
    pub mb_per_s: f64,
}

/// The parts of the mean response time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct TimeParts {
    /// Waiting for a busy resource.
    pub queue: f64,
    /// Waiting for old data and parity to be read, or for the stripe.
    pub parity: f64,
    /// Command overhead and bus.
    pub overhead: f64,
    /// Arm movement, head switches and settling.
    pub seek: f64,
    /// Rotational latency.
    pub rotation: f64,
    /// Sectors passing under the head.
    pub transfer: f64,
}

/// How the run was cut into batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BatchReport {
    /// Batches at least half full.
    pub count: usize,
    /// Requests of a full one.
    pub requests_per_batch: u64,
}

/// The three times whose spread a report shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// From arrival to completion.
    Response,
    /// While a drive worked on it.
    Service,
    /// While it waited.
    Queue,
}

impl Report {
    /// The reading called `name` over the layers that have it: the sum of amounts (`_mb`), the
    /// mean of all else.
    pub fn reading(&self, name: &str) -> Option<f64> {
        over_layers(&self.array.layers, name)
    }

    /// Whether response times grow with the length of the load.
    pub fn grows(&self) -> bool {
        self.arrived
            .overload
            .as_ref()
            .is_some_and(|overload| overload.grows)
    }
}

impl TimeParts {
    pub(crate) fn new([queue, parity, overhead, seek, rotation, transfer]: [f64; 6]) -> TimeParts {
        TimeParts {
            queue,
            parity,
            overhead,
            seek,
            rotation,
            transfer,
        }
    }

    /// The parts with their names, in the order of a request's life.
    pub fn named(&self) -> [(&'static str, f64); 6] {
        [
            ("queue", self.queue),
            ("parity", self.parity),
            ("overhead", self.overhead),
            ("seek", self.seek),
            ("rotation", self.rotation),
            ("transfer", self.transfer),
        ]
    }
}
