//! Measures of each of several workloads.

use crate::distribution::Distribution;
use crate::operations::{OperationReport, operation_report};
use crate::sample::{CompletedSample, OperationClass, megabytes, rate};
use crate::spread::TimeDistribution;
use serde::Serialize;

/// One of several workloads of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorkloadReport {
    /// Name in the stack file.
    pub name: String,
    /// Number of successful reads and writes.
    pub requests: u64,
    /// Time from arrival to completion.
    pub response_ms: Distribution,
    /// Requests completed per second of the run.
    pub iops: f64,
    /// Bytes transferred, in 10^6 bytes per second of the run.
    pub mb_per_s: f64,
    /// Reads, if there were any.
    pub reads: Option<OperationReport>,
    /// Writes, if there were any.
    pub writes: Option<OperationReport>,
}

/// Counters of each workload, in memory of fixed size. Empty if the stack has only one workload,
/// because the report already has its numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Workloads(Vec<Workload>);

#[derive(Clone, Debug)]
struct Workload {
    name: String,
    responses: [TimeDistribution; 2],
    sectors: [u64; 2],
}

impl Workloads {
    pub(crate) fn new(names: Vec<String>) -> Workloads {
        let counts = |name| Workload {
            name,
            responses: [TimeDistribution::new(), TimeDistribution::new()],
            sectors: [0; 2],
        };
        Workloads(names.into_iter().map(counts).collect())
    }

    /// Records a request of workload number `workload`.
    #[inline]
    pub(crate) fn record(
        &mut self,
        workload: u16,
        class: OperationClass,
        sample: &CompletedSample,
    ) {
        if let Some(counts) = self.0.get_mut(usize::from(workload)) {
            counts.responses[class as usize].record(sample.response);
            counts.sectors[class as usize] += sample.sectors;
        }
    }

    /// Returns a report for each workload over a run of `seconds`.
    pub(crate) fn reports(&self, seconds: f64) -> Vec<WorkloadReport> {
        self.0
            .iter()
            .map(|workload| workload.report(seconds))
            .collect()
    }
}

impl Workload {
    fn report(&self, seconds: f64) -> WorkloadReport {
        let mut response = self.responses[0].clone();
        response.add(&self.responses[1]);
        let operation = |class: OperationClass| {
            operation_report(
                &self.responses[class as usize],
                self.sectors[class as usize],
                seconds,
            )
        };
        WorkloadReport {
            name: self.name.clone(),
            requests: response.count(),
            response_ms: response.distribution(),
            iops: rate(response.count() as f64, seconds),
            mb_per_s: megabytes(self.sectors.iter().sum(), seconds),
            reads: operation(OperationClass::Read),
            writes: operation(OperationClass::Write),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_units::Time;

    #[test]
    fn each_workload_has_its_own_times_and_rates() {
        let mut workloads = Workloads::new(vec!["postgres".into(), "backup".into()]);
        let sample = |response_ms: u64, sectors| CompletedSample {
            response: response_ms * 1_000_000,
            parts: [0; 6],
            sectors,
            finished: Time::ZERO,
        };
        workloads.record(0, OperationClass::Read, &sample(2, 8));
        workloads.record(0, OperationClass::Write, &sample(4, 8));
        workloads.record(1, OperationClass::Read, &sample(10, 2000));
        // A request of a workload that the stack does not name.
        workloads.record(2, OperationClass::Read, &sample(99, 9));
        let [postgres, backup] = workloads.reports(2.0).try_into().unwrap();
        assert_eq!(
            (postgres.name.as_str(), postgres.requests, postgres.iops),
            ("postgres", 2, 1.0)
        );
        assert_eq!(
            (postgres.response_ms.mean, postgres.response_ms.max),
            (3.0, 4.0)
        );
        assert_eq!(
            postgres.writes.map(|writes| writes.response_ms.mean),
            Some(4.0)
        );
        assert_eq!((backup.mb_per_s, backup.writes), (0.512, None));
    }
}
