//! What is counted, a request at a time.

use crate::backlog::Flow;
use crate::batches::Batches;
use crate::energy::EnergyReport;
use crate::heads::Heads;
use crate::hosts::host_reports;
use crate::interval::interval;
use crate::layers::layer_reports;
use crate::members::{MemberReport, member_reports};
use crate::metric::{CONFIDENCE, Metric};
use crate::processes::{Across, Processes, fairness};
use crate::rebuild::{RebuildPlan, RebuildReport};
use crate::report::{
    ArrayReport, Arrived, BatchReport, ByProcess, BySource, Cost, DriveIo, Kinds, OperationReport,
    OperationsReport, OverTime, Quantity, Rates, Repeat, Report, TimeParts, Times,
};
use crate::spread::Spread;
use crate::workloads::Workloads;
use fullstroke_contract::{Notice, Operation, Request, Status};
use fullstroke_counters::Counter;
use fullstroke_engine::{Finished, Observer, Outcome, Rebuilds};
use fullstroke_units::{SECTOR_BYTES, Sectors, Time};

/// The beginning of a run that is simulated but not counted. A request counts
/// when it has passed both limits.
///
/// Time is judged by completion, as a measurement of a running system does it
/// (fio's `ramp_time`): what is under way when counting begins is work of the
/// time that is counted. Were it judged by arrival, its work would be missing
/// from the rates while that of the requests under way at the end is not, and a
/// load of `n` outstanding requests would read `n` requests too low.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WarmUp {
    /// Requests that are left out, by number of arrival.
    pub requests: u64,
    /// Requests that finish before this are left out.
    pub until: Time,
}

impl WarmUp {
    fn is_over(self, finished: &Finished) -> bool {
        finished.origin >= self.requests && finished.completion.finished >= self.until
    }

    /// Since when a request that counts is part of the time that is counted.
    fn entered(self, finished: &Finished) -> Time {
        finished.arrived.max(self.until)
    }
}

/// What was run: goes into the report as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The stack's name.
    pub name: String,
    /// The seed of all randomness.
    pub seed: u64,
    /// A digest of the whole configuration.
    pub config_digest: String,
    /// The version that made the result.
    pub version: String,
}

/// A run's numbers, and its batches for comparison with another run.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The numbers.
    pub report: Report,
    /// The batches.
    pub batches: Batches,
}

/// Counts every request of a run, in memory that does not grow with it.
///
/// Times, rates and batches count reads and writes that were done; flushes and
/// discards, which move no data, have times and rates of their own, and requests
/// that were lost or out of range are counted only.
#[derive(Clone, Debug)]
pub struct Measurement {
    warm_up: WarmUp,
    /// When the first request of all arrived.
    began: Time,
    /// When the first request that counts arrived, but not before the warm-up
    /// was over.
    counted_from: Time,
    skipped: u64,
    responses: [Spread; 2],
    /// Flushes, then discards.
    others: [Apart; 2],
    queue: Spread,
    service: Spread,
    batches: Batches,
    processes: Processes,
    workloads: Workloads,
    rebuild_plans: Vec<RebuildPlan>,
    rebuilds: Rebuilds,
    /// Where requests arrive by their own times.
    flow: Option<Flow>,
    heads: Heads,
}

/// Requests that move no data.
#[derive(Clone, Debug)]
struct Apart {
    responses: Spread,
    sectors: u64,
}

impl Apart {
    fn new() -> Apart {
        Apart {
            responses: Spread::new(),
            sectors: 0,
        }
    }
}

/// The operations that move data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Read = 0,
    Write = 1,
}

/// One read or write that was done; times in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) response: u64,
    /// Queue, parity, overhead, seek, rotation, transfer.
    pub(crate) parts: [u64; 6],
    pub(crate) sectors: u64,
    pub(crate) finished: Time,
}

impl Measured {
    /// Half the width of the interval of `metric` at this confidence (0 to 1);
    /// `None` if there are too few requests to claim one, the queue grows, or
    /// the metric has none (deviations, maxima, percentiles of parts, members).
    pub fn half_width(&self, metric: Metric, confidence: f64) -> Option<f64> {
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
    /// A measurement that leaves `warm_up` out.
    pub fn new(warm_up: WarmUp) -> Measurement {
        Measurement {
            warm_up,
            began: Time::NEVER,
            counted_from: Time::NEVER,
            skipped: 0,
            responses: [Spread::new(), Spread::new()],
            others: [Apart::new(), Apart::new()],
            queue: Spread::new(),
            service: Spread::new(),
            batches: Batches::default(),
            processes: Processes::default(),
            workloads: Workloads::default(),
            rebuild_plans: Vec::new(),
            rebuilds: Rebuilds::default(),
            flow: None,
            heads: Heads::default(),
        }
    }

    /// Watches whether the drives carry what arrives, if requests do so by
    /// their own times and wait for nothing.
    #[must_use]
    pub fn with_open_arrivals(mut self, open: bool) -> Measurement {
        self.flow = open.then(Flow::default);
        self
    }

    /// Counts for each process as well: those of these names, numbered from 1.
    #[must_use]
    pub fn with_processes(mut self, names: Vec<String>) -> Measurement {
        self.processes = Processes::new(names);
        self
    }

    /// Counts for each workload as well: those of these names, by index.
    #[must_use]
    pub fn with_workloads(mut self, names: Vec<String>) -> Measurement {
        self.workloads = Workloads::new(names);
        self
    }

    /// Follows the heads of so many drives.
    #[must_use]
    pub fn with_drives(mut self, drives: usize) -> Measurement {
        self.heads = Heads::new(drives);
        self
    }

    /// Reports how the members in `plans` are rebuilt.
    #[must_use]
    pub fn with_rebuilds(mut self, plans: Vec<RebuildPlan>) -> Measurement {
        for plan in &plans {
            self.rebuilds
                .begin(Time::ZERO, &plan.path, Sectors::ZERO, plan.used);
        }
        self.rebuild_plans = plans;
        self
    }

    /// Whether the report's times and rates count this request.
    pub(crate) fn includes(&self, finished: &Finished) -> bool {
        self.warm_up.is_over(finished)
            && finished.operation.transfers()
            && finished.completion.status == Status::Done
    }

    /// The numbers of the run that ended as `outcome`; `drives` are the drives'
    /// names in the order of the tree. Wall-clock time and memory are left for
    /// the caller to fill in.
    pub fn finish(self, outcome: &Outcome, drives: &[String], identity: Identity) -> Measured {
        let counters = &outcome.counters;
        assert_eq!(
            counters.drives.len(),
            drives.len(),
            "each drive that is counted has a name"
        );
        let simulated_s = outcome
            .end
            .saturating_since(self.counted_from)
            .as_secs_f64();
        let whole_s = outcome.end.saturating_since(self.began).as_secs_f64();
        let both = self.batches.total().both();
        let members = member_reports(&counters.drives, drives, whole_s);
        let mut report = Report {
            name: identity.name,
            arrived: self.arrived(outcome, &members),
            times: self.times(),
            rates: Rates {
                iops: rate(both.requests as f64, simulated_s),
                mb_per_s: megabytes(both.sectors, simulated_s),
                simulated_s,
            },
            cost: Cost::default(),
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
            array: ArrayReport {
                rebuild: RebuildReport::new(&self.rebuild_plans, self.rebuilds.all()),
                energy: EnergyReport::new(&members, both.requests),
                members,
                layers: layer_reports(&counters.layers),
                gear_shifts_s: counters
                    .gear_shifts
                    .iter()
                    .map(|at| at.as_secs_f64())
                    .collect(),
            },
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
        report.kinds.operations = OperationsReport {
            read: report.kinds.reads,
            write: report.kinds.writes,
            ..report.kinds.operations
        };
        Measured {
            report,
            batches: self.batches,
        }
    }

    /// What arrived and what became of it.
    fn arrived(&self, outcome: &Outcome, members: &[MemberReport]) -> Arrived {
        let busy = members.iter().map(|member| member.value(Counter::BUSY));
        let flow = self.flow.as_ref();
        Arrived {
            requests: outcome.requests,
            completed: outcome.completed,
            lost: outcome.lost,
            out_of_range: outcome.out_of_range,
            skipped_rows: outcome.counters.skipped_rows,
            trace_notes: outcome.counters.notes.clone(),
            warm_up_requests: self.skipped,
            overload: flow.and_then(|flow| flow.overload(busy)),
            backlog: flow.and_then(Flow::backlog),
        }
    }

    /// Times of reads and writes together, without intervals.
    fn times(&self) -> Times {
        let mut response = self.responses[0].clone();
        response.add(&self.responses[1]);
        let total = self.batches.total();
        let requests = total.both().requests as f64;
        let mean_ms = |sum_ns: u128| sum_ns as f64 / 1e6 / requests;
        Times {
            response_ms: response.distribution(),
            service_ms: self.service.distribution(),
            queue_ms: self.queue.distribution(),
            time_ms: TimeParts::new(total.parts.map(mean_ms)),
        }
    }

    /// Times and rates of each kind of operation, without intervals.
    fn kinds(&self, simulated_s: f64) -> Kinds {
        let total = self.batches.total();
        let class = |class: Class| {
            let sectors = total.classes[class as usize].sectors;
            operation_report(&self.responses[class as usize], sectors, simulated_s)
        };
        let apart = |apart: &Apart| operation_report(&apart.responses, apart.sectors, simulated_s);
        let [flushes, discards] = &self.others;
        Kinds {
            reads: class(Class::Read),
            writes: class(Class::Write),
            flushes_and_discards: flushes.responses.count() + discards.responses.count(),
            operations: OperationsReport {
                flush: apart(flushes),
                discard: apart(discards),
                ..OperationsReport::default()
            },
        }
    }

    /// What reads and writes, and each process, had of the whole.
    fn shares(&self, simulated_s: f64) -> ByProcess {
        let [reads, writes] = self.batches.total().classes;
        let processes = self.processes.each(simulated_s);
        let bandwidths: Vec<f64> = processes.iter().map(|process| process.mb_per_s).collect();
        ByProcess {
            read_write_ratio: ratio(reads.sectors, writes.sectors),
            fairness: fairness(&bandwidths),
            process_mb_per_s: Across::new(&bandwidths),
            groups: self.processes.groups(simulated_s),
            processes,
        }
    }

    #[inline]
    fn counts(&mut self, finished: &Finished) -> bool {
        self.began = self.began.min(finished.arrived);
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
        if request.operation.transfers() {
            self.heads.sent(now, drive, request.extent.start);
        }
    }

    fn noticed(&mut self, path: &[usize], notice: &Notice) {
        if !self.rebuild_plans.is_empty() {
            self.rebuilds.hear(path, notice);
        }
    }

    #[inline]
    fn finished(&mut self, finished: &Finished) {
        if let Some(flow) = &mut self.flow {
            flow.record(finished.arrived, finished.completion.finished);
        }
        if !self.counts(finished) {
            return;
        }
        let batch = self
            .batches
            .of(finished.origin, self.warm_up.entered(finished));
        batch.seen += 1;
        if finished.completion.status != Status::Done {
            return;
        }
        let response = finished
            .completion
            .finished
            .since(finished.arrived)
            .as_nanos();
        let class = match finished.operation {
            Operation::Read => Class::Read,
            Operation::Write => Class::Write,
            Operation::Flush | Operation::Discard => {
                let apart = &mut self.others[usize::from(finished.operation == Operation::Discard)];
                apart.responses.record(response);
                apart.sectors += finished.extent.sectors.0;
                return;
            }
            Operation::Standby | Operation::Start | Operation::Answer => return,
        };
        let parts = &finished.completion.breakdown;
        let sample = Sample {
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
        self.processes.record(finished.process, class, &sample);
        self.workloads.record(finished.workload, class, &sample);
        self.responses[class as usize].record(sample.response);
        self.queue.record(parts.queue.as_nanos());
        self.service.record(parts.service().as_nanos());
    }
}

pub(crate) fn operation_report(
    responses: &Spread,
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
    for (operation, class) in [
        (&mut report.kinds.reads, Class::Read),
        (&mut report.kinds.writes, Class::Write),
    ] {
        if let Some(operation) = operation {
            let response = &mut operation.response_ms;
            response.ci95_half_width = half_width(Metric::mean_of_class(class), response.mean);
        }
    }
}

/// `amount` a second; zero for a run without duration.
pub(crate) fn rate(amount: f64, seconds: f64) -> f64 {
    if seconds > 0.0 { amount / seconds } else { 0.0 }
}

/// Megabytes (10^6) a second.
pub(crate) fn megabytes(sectors: u64, seconds: f64) -> f64 {
    rate(sectors as f64 * SECTOR_BYTES as f64 / 1e6, seconds)
}

/// `one` over `other`; not a number where there is no `other`.
fn ratio(one: u64, other: u64) -> f64 {
    if other == 0 {
        f64::NAN
    } else {
        one as f64 / other as f64
    }
}

/// Mean size of members' reads and writes, in KiB.
fn drive_io_kib(drives: &[fullstroke_contract::MemberStatistics]) -> f64 {
    let sectors: u64 = drives
        .iter()
        .map(|drive| (drive.sectors_read + drive.sectors_written).0)
        .sum();
    let ios: u64 = drives.iter().map(|drive| drive.reads + drive.writes).sum();
    sectors as f64 / 2.0 / ios as f64
}

/// Member requests that needed no seek, of all.
fn share(drives: &[fullstroke_contract::MemberStatistics]) -> f64 {
    let requests: u64 = drives.iter().map(|drive| drive.requests()).sum();
    let zero_seeks: u64 = drives.iter().map(|drive| drive.zero_seeks).sum();
    if requests == 0 {
        0.0
    } else {
        zero_seeks as f64 / requests as f64
    }
}
