//! The report of a run. Every field has its unit in its name.

use crate::distribution::{Distribution, TimeParts};
use crate::layers::over_layers;
use crate::operations::{OperationReport, OperationsReport};
use crate::{
    AcrossProcesses, Backlog, EnergyReport, GroupReport, HeadsReport, HostReport, LayerReport,
    MemberReport, Overload, ProcessReport, RebuildReport, ScrubReport, SlowestReport,
    StreamsReport, TimelineReport, WattsReport, WindowsReport, WorkloadReport,
};
use serde::Serialize;

/// The numbers of one run. `run --json` prints this structure with the fields of all parts side by
/// side.
///
/// A number without a measurement is NaN (`null` in JSON). The fields keep the order of the JSON,
/// because programs of users read it. Each part holds neighbouring fields of the JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// The stack's name.
    pub name: String,
    /// Number of requests that arrived, and the verdict on overload.
    #[serde(flatten)]
    pub arrived: Arrived,
    /// Times of reads and writes.
    #[serde(flatten)]
    pub times: ReadWriteTimes,
    /// Rates of reads and writes.
    #[serde(flatten)]
    pub rates: ReadWriteRates,
    /// Cost of the simulation on the host.
    #[serde(flatten)]
    pub cost: HostCost,
    /// Each operation separately.
    #[serde(flatten)]
    pub kinds: PerOperation,
    /// I/Os of the drives.
    #[serde(flatten)]
    pub drive_io: DriveIo,
    /// Batches behind the intervals.
    pub batches: BatchReport,
    /// Shares of reads, writes and processes in the rates.
    #[serde(flatten)]
    pub shares: ByProcess,
    /// Media streams; `null` if the workload has none.
    pub streams: Option<StreamsReport>,
    /// Distance between the drives' heads.
    pub heads: HeadsReport,
    /// Each workload and each host separately.
    #[serde(flatten)]
    pub sources: BySource,
    /// The array: its drives and layers.
    #[serde(flatten)]
    pub array: ArrayReport,
    /// Measures over time.
    #[serde(flatten)]
    pub over_time: OverTime,
    /// Values that reproduce the run.
    #[serde(flatten)]
    pub repeat: Repeat,
}

/// True for a number that a report leaves out.
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Requests that arrived, by status.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Arrived {
    /// Number of requests of all kinds, including the warm-up.
    pub requests: u64,
    /// Number of successful requests.
    pub completed: u64,
    /// Number of requests for data that were lost with failed members.
    pub lost: u64,
    /// Number of requests that a drive with zones refused. Left out if 0.
    #[serde(skip_serializing_if = "is_zero")]
    pub refused: u64,
    /// Number of requests beyond the volume.
    pub out_of_range: u64,
    /// Number of damaged rows of the trace that were left out.
    pub skipped_rows: u64,
    /// Defects of the trace that its requests do not show, such as lost events; one sentence each,
    /// as in `trace info`.
    pub trace_notes: Vec<String>,
    /// Number of requests that finished within the warm-up. Times and rates leave these requests
    /// out.
    pub warm_up_requests: u64,
    /// Present if the load exceeds the capacity of the drives. Response times then grow with the
    /// length of the load and have no intervals.
    pub overload: Option<Overload>,
    /// Pending requests; `null` for a closed load, which waits for completions.
    pub backlog: Option<Backlog>,
}

impl Arrived {
    /// Returns true if every request was successful.
    pub fn is_complete(&self) -> bool {
        self.completed == self.requests
    }

    /// Returns the share of the load that the drives carry: 1 without overload.
    pub fn carried_share(&self) -> f64 {
        self.overload
            .as_ref()
            .map_or(1.0, |overload| overload.carried_share)
    }
}

/// Times of reads and writes.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ReadWriteTimes {
    /// Time from arrival to completion, over reads and writes.
    pub response_ms: Distribution,
    /// Time in which a drive worked on the request.
    pub service_ms: Distribution,
    /// Time in which the request waited for a busy resource.
    pub queue_ms: Distribution,
    /// Parts of the mean response time; their sum is the mean.
    pub time_ms: TimeParts,
    /// Half the width of the 95 % confidence interval of `response_ms.p99`; `None` if the run is
    /// too short for an interval.
    pub response_p99_ci95_half_width: Option<f64>,
    /// Parts of the response time of the slowest requests, by share; empty without requests.
    pub slowest: Vec<SlowestReport>,
}

/// Rates of reads and writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ReadWriteRates {
    /// Reads and writes completed per second.
    pub iops: f64,
    /// Bytes read and written, in 10^6 bytes per second.
    pub mb_per_s: f64,
    /// Seconds from the end of the warm-up, or from the first arrival if that is later, to the last
    /// completion.
    pub simulated_s: f64,
}

/// Cost of the simulation on the host. The caller of the run fills this in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct HostCost {
    /// Wall-clock time of the simulation, in seconds; differs from run to run.
    pub wall_s: Option<f64>,
    /// Number of requests simulated per second of `wall_s`.
    pub requests_per_wall_s: Option<f64>,
    /// Largest resident memory of the process, in 10^6 bytes.
    pub peak_rss_mb: Option<f64>,
}

/// Each operation separately.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct PerOperation {
    /// Reads; `null` if there were none.
    pub reads: Option<OperationReport>,
    /// Writes; `null` if there were none.
    pub writes: Option<OperationReport>,
    /// Number of operations without data. The times and rates of reads and writes leave these
    /// operations out.
    pub flushes_and_discards: u64,
    /// All four operations, each separately.
    pub operations: OperationsReport,
}

/// I/Os of the drives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct DriveIo {
    /// Share of member I/Os whose first track was already under the arm.
    pub zero_seek_share: f64,
    /// Mean size of the drives' reads and writes, in KiB; NaN without any.
    pub drive_io_kib: f64,
}

/// Shares of reads, writes and processes in the rates.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ByProcess {
    /// Bytes read divided by bytes written; NaN if nothing was written.
    pub read_write_ratio: f64,
    /// Jain's index of the processes' bandwidths; NaN if the workload names no processes.
    pub fairness: f64,
    /// Bytes read and written by each process, in 10^6 bytes per second.
    pub process_mb_per_s: AcrossProcesses,
    /// Processes by name; empty if the workload names none.
    pub groups: Vec<GroupReport>,
    /// Processes in the order of their numbers.
    pub processes: Vec<ProcessReport>,
}

/// Each workload and each host separately.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct BySource {
    /// Each workload, if the stack has several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub workloads: Vec<WorkloadReport>,
    /// Hosts with programs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostReport>,
}

/// The array: its drives and layers.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ArrayReport {
    /// Rebuild during the run; `null` if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rebuild: Option<RebuildReport>,
    /// Scrub of a pool, from windows all over its records; `null` if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scrub: Option<ScrubReport>,
    /// Energy; `null` if no drive has power figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy: Option<EnergyReport>,
    /// Drives in the order of the tree.
    pub members: Vec<MemberReport>,
    /// Drives whose requests lie outside the requests with which the drive was measured; one
    /// sentence for each model.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub drive_notes: Vec<String>,
    /// Sentences on rates that media cannot hold: writes that are in memory at the end of the run, and
    /// drives whose buffers moved data faster than their media.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub media_notes: Vec<String>,
    /// Layers with readings between host and drives.
    pub layers: Vec<LayerReport>,
    /// Times when arrays with gears began to shift, in seconds; the first 256 of each array.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gear_shifts_s: Vec<f64>,
}

/// Measures over time, each only if requested.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct OverTime {
    /// Mean response times by windows of the arrivals, if a study reads them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub windows: Option<WindowsReport>,
    /// Timeline, if a page was requested (`--report`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeline: Option<TimelineReport>,
    /// Power of the drives over time, if a picture was requested (`--plot-power`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watts: Option<WattsReport>,
}

/// Values that reproduce the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Repeat {
    /// The seed of all randomness.
    pub seed: u64,
    /// A digest of the whole configuration.
    pub config_digest: String,
    /// Version of the program.
    pub version: String,
}

/// Batches of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BatchReport {
    /// Number of batches that are at least half full.
    pub count: usize,
    /// Number of requests of a full batch.
    pub requests_per_batch: u64,
}

/// Times whose distribution a report shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Time from arrival to completion.
    Response,
    /// Time in which a drive worked on the request.
    Service,
    /// Time in which the request waited.
    Queue,
}

impl Report {
    /// Returns the reading called `name` over the layers that have it: the sum for amounts (`_mb`),
    /// the mean for all others.
    pub fn reading(&self, name: &str) -> Option<f64> {
        over_layers(&self.array.layers, name)
    }

    /// Returns true if response times grow with the length of the load.
    pub fn grows(&self) -> bool {
        self.arrived
            .overload
            .as_ref()
            .is_some_and(|overload| overload.grows)
    }
}
