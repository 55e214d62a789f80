//! Errors of candidates.

use fullstroke_contract::SourceError;
use fullstroke_measure::{AbsentMetric, UnknownMetric};
use fullstroke_stack::StackError;
use fullstroke_table::TableError;
use thiserror::Error;

/// Reason why candidates could not be run or ranked.
#[derive(Debug, Error)]
pub enum LabError {
    /// A stack file cannot be used.
    #[error(transparent)]
    Stack(#[from] StackError),
    /// A combination of varied values makes an invalid stack.
    #[error("{combination}: {source}")]
    Combination {
        /// The values, each as `key=value`.
        combination: String,
        /// Error of the stack.
        source: StackError,
    },
    /// The workload broke off.
    #[error("{candidate}: {source}")]
    Workload {
        /// The candidate's name.
        candidate: String,
        /// Error of the workload.
        source: SourceError,
    },
    /// The workload has no requests.
    #[error("{candidate}: the workload issued no request; raise its requests or its duration")]
    NoRequests {
        /// The candidate's name.
        candidate: String,
    },
    /// All requests finished before the warm-up was over.
    #[error(
        "{candidate}: all {requests} requests finish within the warm-up; lower measurement.warm_up, or give a longer load"
    )]
    OnlyWarmUp {
        /// The candidate's name.
        candidate: String,
        /// Number of requests.
        requests: u64,
    },
    /// The request log could not be written.
    #[error(transparent)]
    Log(#[from] TableError),
    /// The metric is not known.
    #[error(transparent)]
    Metric(#[from] UnknownMetric),
    /// No candidate has a value of this metric.
    #[error("{0}")]
    Absent(#[from] AbsentMetric),
    /// No candidate has a value.
    #[error(
        "no combination has a value by {by} that serves every request in any part of the workload; fewer --batches are longer"
    )]
    NothingMeasured {
        /// The metric.
        by: String,
    },
    /// Parts of the load do not tell the metric, because the work goes on behind the load.
    #[error(
        "{by}: found a rebuild or scrub that goes on behind the load; expected one that ends in each part. `fullstroke compare --vary KEY=VALUES --by {by}` samples it all over the drives"
    )]
    BehindTheLoad {
        /// The metric.
        by: String,
    },
    /// The workload has no media streams.
    #[error("{candidate}: --find streams needs [workload] with kind = \"streams\"")]
    NoStreams {
        /// The candidate's name.
        candidate: String,
    },
    /// The load cannot be varied.
    #[error(
        "{candidate}: --find load needs open arrivals: a trace without `outstanding`, or [workload] with kind = \"synthetic\" and an arrival process that is not closed; the rates of a job file are keys of its own"
    )]
    NoArrivals {
        /// The candidate's name.
        candidate: String,
    },
    /// Arrivals cannot be known without a run.
    #[error("{0}")]
    NoTimes(&'static str),
    /// `--vary` was not understood.
    #[error(
        "--vary `{argument}`: {problem}; write --vary key=value,value as in --vary volume.chunk=64KiB,256KiB"
    )]
    Vary {
        /// The argument as given.
        argument: String,
        /// Reason of the refusal.
        problem: String,
    },
}
