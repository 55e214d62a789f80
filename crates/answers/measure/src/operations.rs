//! The requests of each operation.

use crate::distribution::Distribution;
use crate::sample::{megabytes, rate};
use crate::spread::TimeDistribution;
use fullstroke_contract::Operation;
use serde::Serialize;

/// Operations of a run, each separately; `null` for operations without requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct OperationsReport {
    /// Reads.
    pub read: Option<OperationReport>,
    /// Writes.
    pub write: Option<OperationReport>,
    /// Flushes.
    pub flush: Option<OperationReport>,
    /// Discards; `mb_per_s` counts the discarded bytes.
    pub discard: Option<OperationReport>,
}

impl OperationsReport {
    /// Returns the report of one operation.
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
    /// Number of successful requests.
    pub requests: u64,
    /// Time from arrival to completion.
    pub response_ms: Distribution,
    /// Requests completed per second.
    pub iops: f64,
    /// Bytes transferred, in 10^6 bytes per second.
    pub mb_per_s: f64,
}

/// Returns the report of one operation; `None` without requests.
pub(crate) fn operation_report(
    responses: &TimeDistribution,
    sectors: u64,
    simulated_s: f64,
) -> Option<OperationReport> {
    (responses.count() > 0).then(|| OperationReport {
        requests: responses.count(),
        response_ms: responses.distribution(),
        iops: rate(responses.count() as f64, simulated_s),
        mb_per_s: megabytes(sectors, simulated_s),
    })
}
