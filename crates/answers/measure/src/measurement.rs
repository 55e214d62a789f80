//! Counters of a run, one request at a time.

use crate::backlog::Flow;
use crate::batches::Batches;
use crate::distribution::TimeParts;
use crate::energy::EnergyReport;
use crate::heads::HeadMovement;
use crate::hosts::host_reports;
use crate::interval::interval;
use crate::layers::layer_reports;
use crate::members::{MemberReport, in_memory, member_reports};
use crate::metric::{CONFIDENCE, Metric};
use crate::operations::{OperationsReport, operation_report};
use crate::processes::{AcrossProcesses, ProcessTotals, fairness};
use crate::rebuild::{RebuildPlan, RebuildWatch};
use crate::report::{
    ArrayReport, Arrived, BatchReport, ByProcess, BySource, DriveIo, HostCost, OverTime,
    PerOperation, Quantity, ReadWriteRates, ReadWriteTimes, Repeat, Report,
};
use crate::sample::{CompletedSample, OperationClass, megabytes, rate};
use crate::slowest::Slowest;
use crate::spread::TimeDistribution;
use crate::workloads::Workloads;
use fullstroke_contract::{Notice, Operation, Request, RequestStatus};
use fullstroke_counters::Counter;
use fullstroke_engine::{Finished, Observer, RunOutcome};
use fullstroke_units::Time;

/// The beginning of a run that is simulated but not counted. A request counts when both limits are
/// passed.
///
/// The time limit applies to the completion, as in measurements of running systems (fio's
/// `ramp_time`). Requests in flight when counting begins are work of the counted time. If the limit
/// applied to the arrival, the work of these requests would be missing from the rates. The work of
/// the requests in flight at the end would not be missing. A load of `n` outstanding requests would
/// therefore count `n` requests too few.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WarmUp {
    /// Number of requests at the begin that are left out, by arrival number.
    pub requests: u64,
    /// Time before which finished requests are left out.
    pub until: Time,
}

impl WarmUp {
    fn is_over(self, finished: &Finished) -> bool {
        finished.origin >= self.requests && finished.completion.finished >= self.until
    }

    /// Returns the time from which a counted request is part of the counted time.
    fn entered(self, finished: &Finished) -> Time {
        finished.arrived.max(self.until)
    }
}

/// Identity of a run, copied into the report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunIdentity {
    /// The stack's name.
    pub name: String,
    /// The seed of all randomness.
    pub seed: u64,
    /// A digest of the whole configuration.
    pub config_digest: String,
    /// Version of the program.
    pub version: String,
}

/// Measures of a run, and its batches for comparison with another run.
#[derive(Clone, Debug)]
pub struct MeasuredRun {
    /// The measures.
    pub report: Report,
    /// The batches.
    pub batches: Batches,
}

/// Counts every request of a run, in memory that does not grow with the run.
///
/// Times, rates and batches count successful reads and writes. Flushes and discards move no data
/// and have times and rates of their own. Requests that were lost or out of range are only counted.
#[derive(Clone, Debug)]
pub struct Measurement {
    warm_up: WarmUp,
    /// Arrival of the first request.
    began: Time,
    /// Arrival of the last request.
    last_arrival: Time,
    /// Arrival of the first counted request, or the end of the warm-up if that is later.
    counted_from: Time,
    skipped: u64,
    responses: [TimeDistribution; 2],
    /// Flushes, then discards.
    others: [DatalessRequests; 2],
    queue: TimeDistribution,
    service: TimeDistribution,
    slowest: Slowest,
    batches: Batches,
    processes: ProcessTotals,
    workloads: Workloads,
    rebuilds: RebuildWatch,
    /// Flow of an open load; `None` for a closed load.
    flow: Option<Flow>,
    heads: HeadMovement,
}

/// Requests without data transfer.
#[derive(Clone, Debug)]
struct DatalessRequests {
    responses: TimeDistribution,
    sectors: u64,
}

impl DatalessRequests {
    fn new() -> DatalessRequests {
        DatalessRequests {
            responses: TimeDistribution::new(),
            sectors: 0,
        }
    }
}

impl MeasuredRun {
    /// Returns half the width of the interval of `metric` at this confidence (0 to 1). `None` if
    /// there are too few requests, if the queue grows, or if the metric has no interval
    /// (deviations, maxima, percentiles of parts, members).
    pub fn half_width(&self, metric: Metric, confidence: f64) -> Option<f64> {
        // The response times of a growing queue depend on the length of the run, so an interval
        // around their mean says nothing.
        if self.report.grows() {
            return None;
        }
        interval(
            metric,
            &self.batches,
            metric.value(&self.report),
            confidence,
        )
    }
}

impl Default for Measurement {
    fn default() -> Measurement {
        Measurement::new(WarmUp::default())
    }
}

impl Measurement {
    /// Creates a measurement that leaves `warm_up` out.
    pub fn new(warm_up: WarmUp) -> Measurement {
        Measurement {
            warm_up,
            began: Time::NEVER,
            last_arrival: Time::ZERO,
            counted_from: Time::NEVER,
            skipped: 0,
            responses: [TimeDistribution::new(), TimeDistribution::new()],
            others: [DatalessRequests::new(), DatalessRequests::new()],
            queue: TimeDistribution::new(),
            service: TimeDistribution::new(),
            slowest: Slowest::new(),
            batches: Batches::default(),
            processes: ProcessTotals::default(),
            workloads: Workloads::default(),
            rebuilds: RebuildWatch::default(),
            flow: None,
            heads: HeadMovement::default(),
        }
    }

    /// Enables the verdict on overload if arrivals are open, because only open arrivals do not wait
    /// for completions.
    #[must_use]
    pub fn with_open_arrivals(mut self, open: bool) -> Measurement {
        self.flow = open.then(Flow::default);
        self
    }

    /// Counts each process separately. `names` are the names of processes 1, 2, and so on.
    #[must_use]
    pub fn with_processes(mut self, names: Vec<String>) -> Measurement {
        self.processes = ProcessTotals::new(names);
        self
    }

    /// Counts each workload separately. `names` are the names by index.
    #[must_use]
    pub fn with_workloads(mut self, names: Vec<String>) -> Measurement {
        self.workloads = Workloads::new(names);
        self
    }

    /// Follows the heads of `drives` drives.
    #[must_use]
    pub fn with_drives(mut self, drives: usize) -> Measurement {
        self.heads = HeadMovement::new(drives);
        self
    }

    /// Reports the rebuild of the members in `plans`.
    #[must_use]
    pub fn with_rebuilds(mut self, plans: Vec<RebuildPlan>) -> Measurement {
        self.rebuilds.begin(plans);
        self
    }

    /// Leaves out the time until `until` in the slowness of rebuilds.
    #[must_use]
    pub fn with_rebuild_settling(mut self, until: Time) -> Measurement {
        self.rebuilds.settle(until);
        self
    }

    /// Returns true if the report's times and rates include this request.
    pub(crate) fn includes(&self, finished: &Finished) -> bool {
        self.warm_up.is_over(finished)
            && finished.operation.transfers()
            && finished.completion.status == RequestStatus::Done
    }

    /// Returns the measures of the run that ended as `outcome`. `drives` are the drives' names in
    /// the order of the tree. The caller fills in wall-clock time and memory.
    pub fn finish(
        self,
        outcome: &RunOutcome,
        drives: &[String],
        identity: RunIdentity,
    ) -> MeasuredRun {
        let counters = &outcome.counters;
        assert_eq!(
            counters.drives.len(),
            drives.len(),
            "each drive that is counted has a name"
        );
        let simulated_s = outcome
            .end
            // A run may end before the warm-up does.
            .saturating_since(self.counted_from)
            .as_secs_f64();
        // Without requests, `began` is `Time::NEVER`.
        let whole_s = outcome.end.saturating_since(self.began).as_secs_f64();
        let both = self.batches.total().both();
        let members = member_reports(&counters.drives, drives, whole_s);
        let mut report = Report {
            name: identity.name,
            arrived: self.arrived(outcome, &members),
            times: self.times(),
            rates: ReadWriteRates {
                iops: rate(both.requests as f64, simulated_s),
                mb_per_s: megabytes(both.sectors, simulated_s),
                simulated_s,
            },
            cost: HostCost::default(),
            kinds: self.kinds(simulated_s),
            drive_io: DriveIo {
                zero_seek_share: share(&counters.drives),
                drive_io_kib: drive_io_kib(&counters.drives),
            },
            batches: BatchReport {
                count: self.batches.count(),
                requests_per_batch: self.batches.size(),
            },
            shares: self.shares(simulated_s),
            streams: None,
            sources: BySource {
                workloads: self.workloads.reports(simulated_s),
                hosts: host_reports(&counters.hosts),
            },
            array: self.array(outcome, members),
            heads: self.heads.report(outcome.end),
            over_time: OverTime::default(),
            repeat: Repeat {
                seed: identity.seed,
                config_digest: identity.config_digest,
                version: identity.version,
            },
        };
        if !report.grows() {
            add_intervals(&mut report, &self.batches);
        }
        // After the intervals, so that the copies have them too.
        report.kinds.operations = OperationsReport {
            read: report.kinds.reads,
            write: report.kinds.writes,
            ..report.kinds.operations
        };
        MeasuredRun {
            report,
            batches: self.batches,
        }
    }

    /// Returns the drives and the layers between host and drives.
    fn array(&self, outcome: &RunOutcome, members: Vec<MemberReport>) -> ArrayReport {
        let counters = &outcome.counters;
        let total = self.batches.total();
        let written = total.classes[OperationClass::Write as usize].sectors;
        let shifts = counters.gear_shifts.iter();
        ArrayReport {
            rebuild: self.rebuilds.report(self.last_arrival),
            energy: EnergyReport::new(&members, total.both().requests),
            members,
            media_notes: in_memory(written, &counters.drives).into_iter().collect(),
            layers: layer_reports(&counters.layers),
            gear_shifts_s: shifts.map(|at| at.as_secs_f64()).collect(),
            ..ArrayReport::default()
        }
    }

    /// Returns the number of requests by status, and the verdict on the load.
    fn arrived(&self, outcome: &RunOutcome, members: &[MemberReport]) -> Arrived {
        let busy = members.iter().map(|member| member.value(Counter::BUSY));
        let flow = self.flow.as_ref();
        Arrived {
            requests: outcome.requests,
            completed: outcome.completed,
            lost: outcome.lost,
            refused: outcome.refused,
            out_of_range: outcome.out_of_range,
            skipped_rows: outcome.counters.skipped_rows,
            trace_notes: outcome.counters.notes.clone(),
            warm_up_requests: self.skipped,
            overload: flow.and_then(|flow| flow.overload(busy)),
            backlog: flow.and_then(Flow::backlog),
        }
    }

    /// Returns the times of reads and writes together, without intervals.
    fn times(&self) -> ReadWriteTimes {
        // The distributions are kept by kind and added here, because percentiles of the whole do
        // not follow from percentiles of the parts.
        let mut response = self.responses[0].clone();
        response.add(&self.responses[1]);
        let total = self.batches.total();
        let requests = total.both().requests as f64;
        let mean_ms = |sum_ns: u128| sum_ns as f64 / 1e6 / requests;
        ReadWriteTimes {
            response_ms: response.distribution(),
            service_ms: self.service.distribution(),
            queue_ms: self.queue.distribution(),
            time_ms: TimeParts::new(total.parts.map(mean_ms)),
            response_p99_ci95_half_width: None,
            slowest: self.slowest.reports(),
        }
    }

    /// Returns the times and rates of each kind of operation, without intervals.
    fn kinds(&self, simulated_s: f64) -> PerOperation {
        let total = self.batches.total();
        let class = |class: OperationClass| {
            let sectors = total.classes[class as usize].sectors;
            operation_report(&self.responses[class as usize], sectors, simulated_s)
        };
        let apart = |apart: &DatalessRequests| {
            operation_report(&apart.responses, apart.sectors, simulated_s)
        };
        let [flushes, discards] = &self.others;
        PerOperation {
            reads: class(OperationClass::Read),
            writes: class(OperationClass::Write),
            flushes_and_discards: flushes.responses.count() + discards.responses.count(),
            operations: OperationsReport {
                flush: apart(flushes),
                discard: apart(discards),
                ..OperationsReport::default()
            },
        }
    }

    /// Returns the shares of reads, writes and processes.
    fn shares(&self, simulated_s: f64) -> ByProcess {
        let [reads, writes] = self.batches.total().classes;
        let processes = self.processes.each(simulated_s);
        let bandwidths: Vec<f64> = processes.iter().map(|process| process.mb_per_s).collect();
        ByProcess {
            read_write_ratio: ratio(reads.sectors, writes.sectors),
            fairness: fairness(&bandwidths),
            process_mb_per_s: AcrossProcesses::new(&bandwidths),
            groups: self.processes.groups(simulated_s),
            processes,
        }
    }

    #[inline]
    fn counts(&mut self, finished: &Finished) -> bool {
        self.began = self.began.min(finished.arrived);
        self.last_arrival = self.last_arrival.max(finished.arrived);
        let counts = self.warm_up.is_over(finished);
        if counts {
            self.counted_from = self.counted_from.min(self.warm_up.entered(finished));
        } else {
            self.skipped += 1;
        }
        counts
    }
}

impl Observer for Measurement {
    #[inline]
    fn drive_io(&mut self, now: Time, drive: usize, request: &Request) {
        // A flush moves no head.
        if request.operation.transfers() {
            self.heads.sent(now, drive, request.extent.start);
        }
    }

    fn noticed(&mut self, path: &[usize], notice: &Notice) {
        self.rebuilds.note(path, notice);
    }

    #[inline]
    fn finished(&mut self, finished: &Finished) {
        // The queue counts all arrivals and completions, also those of the warm-up. Otherwise
        // requests in flight at the end of the warm-up would be missing.
        if let Some(flow) = &mut self.flow {
            flow.record(finished.arrived, finished.completion.finished);
        }
        if !self.counts(finished) {
            return;
        }
        let batch = self
            .batches
            .of(finished.origin, self.warm_up.entered(finished));
        // Lost requests count as seen, so that a batch is full by arrival numbers in every run and
        // pairs stay aligned.
        batch.seen += 1;
        if finished.completion.status != RequestStatus::Done {
            return;
        }
        let response = finished
            .completion
            .finished
            .since(finished.arrived)
            .as_nanos();
        let class = match finished.operation {
            Operation::Read => OperationClass::Read,
            Operation::Write => OperationClass::Write,
            Operation::Flush | Operation::Discard => {
                let apart = &mut self.others[usize::from(finished.operation == Operation::Discard)];
                apart.responses.record(response);
                apart.sectors += finished.extent.sectors.0;
                return;
            }
            Operation::Standby | Operation::Start | Operation::Answer => return,
        };
        let parts = &finished.completion.breakdown;
        let sample = CompletedSample {
            response,
            parts: [
                parts.queue,
                parts.parity,
                parts.overhead,
                parts.seek,
                parts.rotation,
                parts.transfer,
            ]
            .map(|part| part.as_nanos()),
            sectors: finished.extent.sectors.0,
            finished: finished.completion.finished,
        };
        batch.record(class, &sample);
        self.slowest.record(sample.response, &sample.parts);
        self.processes.record(finished.process, class, &sample);
        self.workloads.record(finished.workload, class, &sample);
        self.responses[class as usize].record(sample.response);
        self.queue.record(parts.queue.as_nanos());
        self.service.record(parts.service().as_nanos());
    }
}

/// Adds the intervals of the mean times.
fn add_intervals(report: &mut Report, batches: &Batches) {
    let half_width = |metric: Metric, value: f64| interval(metric, batches, value, CONFIDENCE);
    for (distribution, which) in [
        (&mut report.times.response_ms, Quantity::Response),
        (&mut report.times.service_ms, Quantity::Service),
        (&mut report.times.queue_ms, Quantity::Queue),
    ] {
        distribution.ci95_half_width = half_width(Metric::mean_of(which), distribution.mean);
    }
    let p99 = report.times.response_ms.p99;
    report.times.response_p99_ci95_half_width = half_width(Metric::RESPONSE_P99, p99);
    for (operation, class) in [
        (&mut report.kinds.reads, OperationClass::Read),
        (&mut report.kinds.writes, OperationClass::Write),
    ] {
        if let Some(operation) = operation {
            let response = &mut operation.response_ms;
            response.ci95_half_width = half_width(Metric::mean_of_class(class), response.mean);
        }
    }
}

/// Returns `one` divided by `other`; NaN if `other` is zero.
fn ratio(one: u64, other: u64) -> f64 {
    if other == 0 {
        f64::NAN
    } else {
        one as f64 / other as f64
    }
}

/// Returns the mean size of the members' reads and writes, in KiB.
fn drive_io_kib(drives: &[fullstroke_contract::MemberStatistics]) -> f64 {
    let sectors: u64 = drives
        .iter()
        .map(|drive| (drive.sectors_read + drive.sectors_written).0)
        .sum();
    let ios: u64 = drives.iter().map(|drive| drive.reads + drive.writes).sum();
    // Two sectors are 1 KiB.
    // A drive without I/O gives NaN, which tables show as `-`.
    sectors as f64 / 2.0 / ios as f64
}

/// Returns the share of member requests without a seek.
fn share(drives: &[fullstroke_contract::MemberStatistics]) -> f64 {
    let requests: u64 = drives.iter().map(|drive| drive.requests()).sum();
    let zero_seeks: u64 = drives.iter().map(|drive| drive.zero_seeks).sum();
    if requests == 0 {
        0.0
    } else {
        zero_seeks as f64 / requests as f64
    }
}
