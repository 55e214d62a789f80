//! What can go wrong with a candidate.

use fullstroke_contract::SourceError;
use fullstroke_measure::UnknownMetric;
use fullstroke_stack::StackError;
use fullstroke_table::TableError;
use thiserror::Error;

/// Why candidates could not be run or ranked.
#[derive(Debug, Error)]
pub enum LabError {
    /// A stack file cannot be used.
    #[error(transparent)]
    Stack(#[from] StackError),
    /// The workload broke off.
    #[error("{candidate}: {source}")]
    Workload {
        /// The candidate's name.
        candidate: String,
        /// What the workload said.
        source: SourceError,
    },
    /// The request log could not be written.
    #[error(transparent)]
    Log(#[from] TableError),
    /// The metric is not known.
    #[error(transparent)]
    Metric(#[from] UnknownMetric),
    /// There are no streams to be found.
    #[error("{candidate}: --find streams needs [workload] with kind = \"streams\"")]
    NoStreams {
        /// The candidate's name.
        candidate: String,
    },
    /// `--vary` was not understood.
    #[error(
        "--vary `{argument}`: {problem}; write --vary key=value,value as in --vary volume.chunk=64KiB,256KiB"
    )]
    Vary {
        /// What was given.
        argument: String,
        /// What is wrong with it.
        problem: String,
    },
}
