//! Response times, intervals and the parts of the response time.
//!
//! [`Measurement`] observes a run through the engine's `Observer` trait and ends as
//! [`MeasuredRun`]. A [`MeasuredRun`] holds a [`Report`] of plain numbers, with the units in their
//! names, and the [`Batches`] for the computation of intervals. [`paired_difference`] compares two
//! runs.
//!
//! | file | contents |
//! |---|---|
//! | `measurement.rs` | counters, one request at a time |
//! | `moments.rs`, `spread.rs`, `distribution.rs` | exact moments, and percentiles, of one quantity |
//! | `sample.rs`, `operations.rs` | one read or write, and the requests of each operation |
//! | `batches.rs` | the same requests in batches by arrival number |
//! | `backlog.rs` | verdict on overload |
//! | `interval.rs` | confidence intervals from batches |
//! | `difference.rs` | two runs of one workload, batch by batch |
//! | `metric.rs` | the numbers of a report by their dotted names |
//! | `report.rs`, `members.rs`, `layers.rs`, `processes.rs`, `hosts.rs` | the report as JSON |
//! | `workloads.rs` | measures of each of several workloads |
//! | `heads.rs` | distance between the heads of an array |
//! | `streams.rs` | measures of the clients of media streams |
//! | `timeline.rs` | events over time, for pictures |
//! | `windows.rs` | mean response times by windows of the arrivals |
//! | `watts.rs` | power of the drives over time |
//! | `perfetto.rs` | a window of a run as a trace for Perfetto |
//! | `render.rs` | the report as text |
//! | `words.rs` | sentences about breakdown and counts |
//! | `log.rs` | every request as a row of a table |
//! | `reference.rs` | the page of metrics and of the log's columns |
//! | `recorder.rs` | measurement, log and progress side by side |
//! | `stop.rs` | early end of a run |
//!
//! # Confidence of a number
//!
//! Response times of neighbouring requests depend on each other. The textbook interval over single
//! requests would therefore be far too narrow. The method here is *batch means*: requests are put
//! into 32 to 64 batches of equal size by their arrival number, and the batches are treated as
//! independent observations.
//!
//! - The centre is always the number over the whole run. Each batch gives one residual. For means
//!   and rates, which are ratios of sums, this is the linearised residual `(numerator - ratio x
//!   denominator) / mean denominator`. For percentiles it is the batch's own percentile less that
//!   of the run (sectioning).
//! - The half-width is `t x sqrt(sum of squared residuals / (k (k - 1)))`, with Student's t for `k
//!   - 1` degrees of freedom.
//! - Neighbouring batches are merged in two cases: their residuals are still correlated (lag-1
//!   coefficient above 1.645 / sqrt(k)), or the batches are too small for the percentile (fewer
//!   than ten requests expected beyond it). At least ten batches must be left. With 10 to 30
//!   batches the interval loses little (Schmeiser, "Batch size effects in the analysis of
//!   simulation output", Operations Research 30(3), 1982).
//! - No interval is claimed with fewer than [`BATCHES_FOR_INTERVAL`] batches or with fewer than ten
//!   requests a batch. A percentile has no interval either if a batch of the largest size is too
//!   small for it.
//! - A batch that is less than half full (the last one; those cut by the warm-up) is left out of
//!   the interval, but not out of the number.
//!
//! Two runs of one workload have the same arrivals. Batch `i` of one run and batch `i` of the other
//! therefore hold the same requests, except for those in flight at the end of a warm-up, when one
//! run may be ahead. The difference is taken batch by batch, so the common part drops out. Real
//! traces are bursty: a few batches can decide a mean and stretch its interval over zero although
//! one run is better in nearly every batch. A sign test over the same batches recognises this case
//! ([`Significance::Consistent`]).
//!
//! # Overload
//!
//! In an open load (a trace, an open synthetic load), more requests may arrive than the drives can
//! serve. Response times then grow with the length of the load. Their mean depends on that length
//! and says nothing about the drives. Such a run is recognised by its queue, not by its response
//! times, because a discipline that reorders requests may hide the growth. The requests in flight
//! are counted at the ends of 256 to 512 equal spans of the run, for any order of completion. The
//! steps from one count to the next (in 32 groups or more, from the first arrival to the last) are
//! tested with Student's t for a mean above zero (99.5 %, one-sided).
//!
//! - A queue that rises and falls has steps that cancel. Bursts that the drives work off, and a
//!   steady load at nine tenths, are carried. The test needs no correction for correlated steps,
//!   because the steps of a stationary queue are correlated negatively.
//! - A queue that grows in the last tenth of a load is one large step among many small ones; that
//!   is a burst. If the queue grows in the last fifth, or longer, the load is an overload, and the
//!   carried share is that of this time.
//! - Nothing is claimed below 320 requests, or if fewer than 1 % are pending at the last arrival.
//!
//! An interval gives the part of chance in a number *within this workload*. An interval says
//! nothing about another trace.

mod backlog;
mod batches;
mod difference;
mod distribution;
mod energy;
mod heads;
mod hosts;
mod interval;
mod layers;
mod log;
mod measurement;
mod members;
mod metric;
mod moments;
mod names;
mod operations;
mod perfetto;
mod processes;
mod rebuild;
mod recorder;
mod reference;
mod render;
mod report;
mod sample;
mod scrub;
mod slowest;
mod spread;
mod stop;
mod streams;
mod student;
mod tallies;
mod timeline;
mod watts;
mod windows;
mod words;
mod workloads;

pub use backlog::{Backlog, Overload};
pub use batches::Batches;
pub use difference::{
    Difference, Significance, chance_below_zero, difference_over_seeds, half_width_over_seeds,
    paired_difference,
};
pub use distribution::{BEYOND_MIN, Distribution, TimeParts, requests_beyond};
pub use energy::{EnergyReport, StateShares};
pub use heads::HeadsReport;
pub use hosts::{CallReport, HostReport, ProgramReport, TransactionReport};
pub use interval::{BATCHES_FOR_INTERVAL, half_width_of_mean, series_half_width};
pub use layers::LayerReport;
pub use log::{LOG_COLUMNS, LogColumn, RequestLog};
pub use measurement::{MeasuredRun, Measurement, RunIdentity, WarmUp};
pub use members::MemberReport;
pub use metric::{AbsentMetric, Metric, UnknownMetric};
pub use operations::{OperationReport, OperationsReport};
pub use perfetto::{PERFETTO_REQUESTS, PerfettoFile, PerfettoRun, PerfettoTrace, PerfettoWindow};
pub use processes::{AcrossProcesses, GroupReport, ProcessReport, ResponseSummary};
pub use rebuild::{RebuildPace, RebuildPlan, RebuildReport};
pub use recorder::{Progress, RunRecorder};
pub use reference::reference;
pub use render::{STAR, factor_in_words, number, p99_in_words, percentile, table};
pub use report::{
    ArrayReport, Arrived, BatchReport, ByProcess, BySource, DriveIo, HostCost, OverTime,
    PerOperation, Quantity, ReadWriteRates, ReadWriteTimes, Repeat, Report,
};
pub use scrub::ScrubReport;
pub use slowest::{SLOWEST_SHARES, SlowestReport};
pub use stop::Stop;
pub use streams::{StreamReport, StreamsReport};
pub use timeline::{
    Cause, CauseReport, CellReport, DriveTimeline, PercentileReport, Timeline, TimelineReport,
};
pub use watts::{WattsOverTime, WattsReport};
pub use windows::{ResponseWindows, WindowLatencies, WindowsReport};
pub use words::{comes_round, parity_in_words};
pub use workloads::WorkloadReport;
