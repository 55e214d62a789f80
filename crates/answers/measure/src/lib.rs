//! Response times, intervals and where the time went.
//!
//! [`Measurement`] watches a run through the engine's `Observer` window and
//! ends as [`Measured`]: a [`Report`] of plain numbers with their units in
//! their names, and the [`Batches`] from which intervals are computed.
//! [`paired_difference`] holds two of them against each other.
//!
//! | file | what |
//! |---|---|
//! | `measurement.rs` | what is counted, a request at a time |
//! | `moments.rs`, `spread.rs` | exact moments, and percentiles, of one quantity |
//! | `batches.rs` | the same requests in batches by arrival number |
//! | `backlog.rs` | whether the drives carry what arrives |
//! | `interval.rs` | confidence intervals from batches |
//! | `difference.rs` | two runs of one workload, batch by batch |
//! | `metric.rs` | the numbers of a report by their dotted names |
//! | `report.rs`, `members.rs`, `layers.rs`, `processes.rs`, `hosts.rs` | what is handed over, as JSON |
//! | `workloads.rs` | what each of several workloads saw |
//! | `heads.rs` | how far apart the heads of an array are |
//! | `streams.rs` | what the clients of media streams saw |
//! | `timeline.rs` | what happened when, for pictures |
//! | `windows.rs` | mean responses by windows of the arrivals |
//! | `watts.rs` | what drives drew over time |
//! | `perfetto.rs` | a window of a run as a trace for Perfetto |
//! | `render.rs` | the same for people |
//! | `words.rs` | what breakdown and counts say, in words |
//! | `log.rs` | every request as a row of a table |
//! | `reference.rs` | the page of metrics and of the log's columns |
//! | `recorder.rs` | measurement, log and progress side by side |
//! | `stop.rs` | ending a run before its end |
//!
//! # How sure is a number?
//!
//! Response times of neighbouring requests depend on each other, so that the
//! textbook interval over single requests would be far too narrow. The method
//! here is that of *batch means*: requests are put into 32 to 64 batches of
//! equal size by their arrival number, and the batches are treated as
//! independent observations.
//!
//! - The centre is always the number over the whole run. Each batch gives one
//!   residual: for means and rates, which are ratios of sums, the linearised
//!   one `(numerator - ratio x denominator) / mean denominator`; for
//!   percentiles the batch's own percentile less that of the run (sectioning).
//! - The half-width is `t x sqrt(sum of squared residuals / (k (k - 1)))`, with
//!   Student's t for `k - 1` degrees of freedom.
//! - Neighbouring batches are merged while their residuals are still
//!   correlated (lag-1 coefficient above 1.645 / sqrt(k)) or too small for the
//!   percentile (fewer than ten requests expected beyond it), and at least ten
//!   batches would be left; with 10 to 30 batches the interval loses little
//!   (Schmeiser, "Batch size effects in the analysis of simulation output",
//!   Operations Research 30(3), 1982).
//! - No interval is claimed with fewer than [`BATCHES_FOR_INTERVAL`] batches,
//!   with fewer than ten requests a batch, or for a percentile that a batch of
//!   the largest size still cannot show.
//! - A batch that is less than half full (the last one; those cut by the
//!   warm-up) is left out of the interval, not out of the number.
//!
//! Two runs of one workload have the same arrivals, so that batch `i` of one
//! and batch `i` of the other hold the same requests (but for those under way
//! at the end of a warm-up, where one run may be ahead): the difference is taken
//! batch by batch, and what both have in common drops out. Real traces are
//! bursty: a few batches can decide a mean and stretch its interval over zero
//! although one run is better in nearly every batch. A sign test over the same
//! batches tells that case apart ([`Significance::Consistent`]).
//!
//! # Do the drives carry the load?
//!
//! Where requests arrive by their own times (a trace, an open synthetic load),
//! more may arrive than can be served. Response times grow with the length of
//! the load then; their mean says how long it was, and nothing of the drives.
//! Such a run is told by its queue, not by its times, which a discipline that
//! overtakes may hide: the requests under way are counted at the ends of 256 to
//! 512 equal spans of the run, whatever the order of completion, and the steps
//! from one to the next (in 32 groups or more, from the first arrival to the
//! last) are tested with Student's t for a mean above zero (99.5 %, one-sided).
//!
//! - A queue that rises and falls has steps that cancel: bursts that the drives
//!   work off, and a steady load at nine tenths, are carried. The test needs no
//!   correction for correlated steps: those of a stationary queue are
//!   correlated negatively.
//! - A queue that grows in the last tenth of a load is one large step among
//!   many small ones; that is a burst. If it grows in the last fifth, or longer,
//!   it is an overload, and the share that is carried is that of this time.
//! - Below 320 requests, and where fewer than 1 % wait at the last arrival,
//!   nothing is claimed.
//!
//! An interval says how much of a number is chance *within this workload*. It
//! says nothing about another trace.

mod backlog;
mod batches;
mod difference;
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
mod perfetto;
mod processes;
mod rebuild;
mod recorder;
mod reference;
mod render;
mod report;
mod spread;
mod stop;
mod streams;
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
pub use energy::{EnergyReport, Shares};
pub use heads::HeadsReport;
pub use hosts::{CallReport, HostReport, ProgramReport, TransactionReport};
pub use interval::BATCHES_FOR_INTERVAL;
pub use layers::LayerReport;
pub use log::{LOG_COLUMNS, LogColumn, RequestLog};
pub use measurement::{Identity, Measured, Measurement, WarmUp};
pub use members::MemberReport;
pub use metric::{AbsentMetric, Metric, UnknownMetric};
pub use perfetto::{PERFETTO_REQUESTS, PerfettoFile, PerfettoRun, PerfettoTrace, PerfettoWindow};
pub use processes::{Across, GroupReport, Latency, ProcessReport};
pub use rebuild::{RebuildPlan, RebuildReport};
pub use recorder::{Progress, Recorder};
pub use reference::reference;
pub use render::{number, table};
pub use report::{
    ArrayReport, Arrived, BatchReport, ByProcess, BySource, Cost, Distribution, DriveIo, Kinds,
    OperationReport, OperationsReport, OverTime, Quantity, Rates, Repeat, Report, TimeParts, Times,
};
pub use stop::Stop;
pub use streams::{StreamReport, StreamsReport};
pub use timeline::{
    Cause, CauseReport, CellReport, DriveTimeline, PercentileReport, Timeline, TimelineReport,
};
pub use watts::{WattsOverTime, WattsReport};
pub use windows::{WindowLatencies, Windows, WindowsReport};
pub use words::{comes_round, parity_in_words};
pub use workloads::WorkloadReport;
