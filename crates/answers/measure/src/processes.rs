//! Throughput of each process, and fairness.

use crate::moments::TimeMoments;
use crate::sample::{CompletedSample, OperationClass, TRANSFER, megabytes};
use serde::Serialize;

/// One process. The number is that of the hints of its requests.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProcessReport {
    /// Number of the process, from 1.
    pub process: u32,
    /// Name of the process, which all processes of its group share.
    pub name: String,
    /// Number of successful reads.
    pub reads: u64,
    /// Number of successful writes.
    pub writes: u64,
    /// Bytes read and written, in 10^6 bytes per second of the run.
    pub mb_per_s: f64,
    /// Bytes read, in 10^6 bytes per second of the run.
    pub read_mb_per_s: f64,
    /// Bytes written, in 10^6 bytes per second of the run.
    pub write_mb_per_s: f64,
    /// Time from arrival to completion, over reads and writes.
    pub response_ms: ResponseSummary,
}

/// The processes of one name.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GroupReport {
    /// Name of the processes.
    pub name: String,
    /// Number of processes.
    pub processes: usize,
    /// Number of successful reads.
    pub reads: u64,
    /// Number of successful writes.
    pub writes: u64,
    /// Successful reads for which no sector passed under a head: a buffer of a drive or a cache above had all data.
    pub reads_from_memory: u64,
    /// Bytes read and written by all processes together, in 10^6 bytes per second.
    pub mb_per_s: f64,
    /// Bytes read and written by each process.
    pub process_mb_per_s: AcrossProcesses,
    /// Jain's index of the bandwidths: 1 if all processes have the same bandwidth, `1 / n` if one
    /// process has all of the bandwidth (Jain, Chiu & Hawe, DEC-TR-301, 1984).
    pub fairness: f64,
    /// Time from arrival to completion, over all requests of the group.
    pub response_ms: ResponseSummary,
}

/// Response times, exact. NaN if nothing was measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ResponseSummary {
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation of the sample.
    pub stddev: f64,
    /// Maximum.
    pub max: f64,
}

/// One number of each process, over all processes. NaN without a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct AcrossProcesses {
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation of the sample (over `n - 1`); zero for one process.
    pub stddev: f64,
    /// Smallest value of a process.
    pub min: f64,
    /// Largest value of a process.
    pub max: f64,
}

/// Counts for each process in memory of fixed size.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProcessTotals {
    names: Vec<String>,
    counts: Vec<ProcessCounts>,
}

#[derive(Clone, Copy, Debug, Default)]
struct ProcessCounts {
    requests: [u64; 2],
    sectors: [u64; 2],
    reads_from_memory: u64,
    response: TimeMoments,
}

impl ProcessTotals {
    /// Creates counters for processes 1, 2, ... with these names.
    pub(crate) fn new(names: Vec<String>) -> ProcessTotals {
        ProcessTotals {
            counts: vec![ProcessCounts::default(); names.len()],
            names,
        }
    }

    /// Records a request of `process`. Requests of unknown processes are not counted.
    #[inline]
    pub(crate) fn record(&mut self, process: u32, class: OperationClass, sample: &CompletedSample) {
        // Process 0 is unknown. It wraps to an index beyond every list and is not counted.
        let index = (process as usize).wrapping_sub(1);
        if let Some(counts) = self.counts.get_mut(index) {
            counts.requests[class as usize] += 1;
            counts.sectors[class as usize] += sample.sectors;
            if class == OperationClass::Read {
                // A read that takes even one sector from the medium has a transfer time.
                counts.reads_from_memory += u64::from(sample.parts[TRANSFER] == 0);
            }
            counts.response.record(sample.response);
        }
    }

    /// Returns a report for each process over a run of `seconds`.
    pub(crate) fn each(&self, seconds: f64) -> Vec<ProcessReport> {
        let report = |(index, (counts, name)): (usize, (&ProcessCounts, &String))| ProcessReport {
            process: index as u32 + 1,
            name: name.clone(),
            reads: counts.requests[OperationClass::Read as usize],
            writes: counts.requests[OperationClass::Write as usize],
            mb_per_s: counts.bandwidth(seconds),
            read_mb_per_s: megabytes(counts.sectors[OperationClass::Read as usize], seconds),
            write_mb_per_s: megabytes(counts.sectors[OperationClass::Write as usize], seconds),
            response_ms: ResponseSummary::new(&counts.response),
        };
        self.counts
            .iter()
            .zip(&self.names)
            .enumerate()
            .map(report)
            .collect()
    }

    /// Returns a report for each name, in the order of first occurrence.
    pub(crate) fn groups(&self, seconds: f64) -> Vec<GroupReport> {
        let mut names: Vec<&String> = Vec::new();
        for name in &self.names {
            if names.last() != Some(&name) && !names.contains(&name) {
                names.push(name);
            }
        }
        names
            .into_iter()
            .map(|name| self.group(name, seconds))
            .collect()
    }

    fn group(&self, name: &String, seconds: f64) -> GroupReport {
        let members = || {
            self.counts
                .iter()
                .zip(&self.names)
                .filter(|(_, other)| *other == name)
        };
        let mut sum = ProcessCounts::default();
        members().for_each(|(counts, _)| sum.add(counts));
        let each: Vec<f64> = members()
            .map(|(counts, _)| counts.bandwidth(seconds))
            .collect();
        GroupReport {
            name: name.clone(),
            processes: each.len(),
            reads: sum.requests[OperationClass::Read as usize],
            writes: sum.requests[OperationClass::Write as usize],
            reads_from_memory: sum.reads_from_memory,
            mb_per_s: sum.bandwidth(seconds),
            process_mb_per_s: AcrossProcesses::new(&each),
            fairness: fairness(&each),
            response_ms: ResponseSummary::new(&sum.response),
        }
    }
}

impl ProcessCounts {
    fn add(&mut self, other: &ProcessCounts) {
        for class in [
            OperationClass::Read as usize,
            OperationClass::Write as usize,
        ] {
            self.requests[class] += other.requests[class];
            self.sectors[class] += other.sectors[class];
        }
        self.reads_from_memory += other.reads_from_memory;
        self.response.add(&other.response);
    }

    fn bandwidth(&self, seconds: f64) -> f64 {
        megabytes(self.sectors.iter().sum(), seconds)
    }
}

impl ResponseSummary {
    fn new(moments: &TimeMoments) -> ResponseSummary {
        ResponseSummary {
            mean: moments.mean() / 1e6,
            stddev: moments.deviation() / 1e6,
            max: moments.max() / 1e6,
        }
    }
}

impl AcrossProcesses {
    pub(crate) fn new(values: &[f64]) -> AcrossProcesses {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        AcrossProcesses {
            mean,
            stddev: if values.is_empty() {
                f64::NAN
            } else {
                // One process has a deviation of 0.
                (squares / (count - 1.0).max(1.0)).sqrt()
            },
            min: values.iter().copied().fold(f64::NAN, f64::min),
            max: values.iter().copied().fold(f64::NAN, f64::max),
        }
    }
}

/// Returns Jain's index; NaN if no process transferred anything.
pub(crate) fn fairness(values: &[f64]) -> f64 {
    let sum: f64 = values.iter().sum();
    let squares: f64 = values.iter().map(|value| value * value).sum();
    sum * sum / (values.len() as f64 * squares)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_units::Time;
    use proptest::prelude::*;

    fn sample(response_ms: u64, sectors: u64) -> CompletedSample {
        CompletedSample {
            response: response_ms * 1_000_000,
            parts: [0; 6],
            sectors,
            finished: Time::ZERO,
        }
    }

    #[test]
    fn fairness_is_one_for_equals_and_one_nth_for_a_monopoly() {
        assert_eq!(fairness(&[3.0; 7]), 1.0);
        assert_eq!(fairness(&[0.0, 5.0, 0.0, 0.0]), 0.25);
        // An example of Jain's report: a fraction of the users gets everything.
        assert_eq!(fairness(&[1.0, 1.0, 0.0, 0.0, 0.0]), 0.4);
        assert!(fairness(&[]).is_nan() && fairness(&[0.0, 0.0]).is_nan());
    }

    #[test]
    fn processes_are_counted_one_by_one_and_by_name() {
        let names = ["reader", "reader", "writer"].map(str::to_owned).into();
        let mut processes = ProcessTotals::new(names);
        // 1000 sectors a second are 0.512 MB/s.
        for _ in 0..3 {
            processes.record(1, OperationClass::Read, &sample(2, 1000));
        }
        let mut from_medium = sample(8, 1000);
        from_medium.parts[TRANSFER] = 1;
        processes.record(2, OperationClass::Read, &from_medium);
        processes.record(3, OperationClass::Write, &sample(5, 2000));
        processes.record(0, OperationClass::Read, &sample(99, 9));
        processes.record(4, OperationClass::Read, &sample(99, 9));
        let each = processes.each(1.0);
        let bandwidths: Vec<f64> = each.iter().map(|process| process.mb_per_s).collect();
        assert_eq!(bandwidths, [1.536, 0.512, 1.024]);
        assert_eq!(
            (each[2].read_mb_per_s, each[2].write_mb_per_s),
            (0.0, 1.024)
        );
        let groups = processes.groups(1.0);
        assert_eq!(
            groups
                .iter()
                .map(|group| group.name.as_str())
                .collect::<Vec<_>>(),
            ["reader", "writer"]
        );
        let readers = &groups[0];
        assert_eq!(
            (readers.processes, readers.reads, readers.mb_per_s),
            (2, 4, 2.048)
        );
        assert_eq!(readers.reads_from_memory, 3);
        assert_eq!(groups[1].reads_from_memory, 0, "writes do not count");
        assert_eq!(
            (readers.process_mb_per_s.min, readers.process_mb_per_s.max),
            (0.512, 1.536)
        );
        assert!((readers.fairness - 0.8).abs() < 1e-12);
        assert_eq!(
            readers.response_ms,
            ResponseSummary {
                mean: 3.5,
                stddev: 3.0,
                max: 8.0
            }
        );
        assert_eq!(groups[1].process_mb_per_s.stddev, 0.0);
    }

    #[test]
    fn a_process_that_starved_counts_as_unfairness() {
        let mut processes = ProcessTotals::new(vec!["reader".into(); 2]);
        processes.record(1, OperationClass::Read, &sample(2, 1000));
        assert_eq!(processes.groups(1.0)[0].fairness, 0.5);
        assert!(processes.each(1.0)[1].response_ms.mean.is_nan());
    }

    proptest! {
        #[test]
        fn fairness_lies_between_one_nth_and_one(values in prop::collection::vec(0.001f64..1e3, 1..50)) {
            let index = fairness(&values);
            prop_assert!(index <= 1.0 + 1e-12 && index >= 1.0 / values.len() as f64 - 1e-12, "{}", index);
        }
    }
}
