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
//! | `interval.rs` | confidence intervals from batches |
//! | `difference.rs` | two runs of one workload, batch by batch |
//! | `metric.rs` | the numbers of a report by their dotted names |
//! | `report.rs`, `members.rs`, `layers.rs`, `processes.rs` | what is handed over, as JSON |
//! | `workloads.rs` | what each of several workloads saw |
//! | `streams.rs` | what the clients of media streams saw |
//! | `render.rs` | the same for people |
//! | `log.rs` | every request as a row of a table |
//! | `recorder.rs` | measurement, log and progress side by side |
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
//! and batch `i` of the other hold the same requests: the difference is taken
//! batch by batch, and what both have in common drops out. Real traces are
//! bursty: a few batches can decide a mean and stretch its interval over zero
//! although one run is better in nearly every batch. A sign test over the same
//! batches tells that case apart ([`Significance::Consistent`]).
//!
//! An interval says how much of a number is chance *within this workload*. It
//! says nothing about another trace.

mod batches;
mod difference;
mod interval;
mod layers;
mod log;
mod measurement;
mod members;
mod metric;
mod moments;
mod processes;
mod rebuild;
mod recorder;
mod render;
mod report;
mod spread;
mod streams;
mod workloads;

pub use batches::Batches;
pub use difference::{Difference, Significance, paired_difference};
pub use interval::BATCHES_FOR_INTERVAL;
pub use layers::LayerReport;
pub use log::RequestLog;
pub use measurement::{Identity, Measured, Measurement, WarmUp};
pub use members::MemberReport;
pub use metric::{Metric, UnknownMetric};
pub use processes::{Across, GroupReport, Latency, ProcessReport};
pub use rebuild::{RebuildPlan, RebuildReport};
pub use recorder::{Progress, Recorder};
pub use render::{number, table};
pub use report::{BatchReport, Distribution, OperationReport, OperationsReport, Quantity, Report, TimeParts};
pub use streams::{StreamReport, StreamsReport};
pub use workloads::WorkloadReport;
