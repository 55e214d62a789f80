//! All workers of a job file as one source of requests.

use crate::job::{ExitWhat, FioJob, IoDirection};
use crate::placement::Placement;
use crate::places::WorkerRegions;
use crate::region::Misfit;
use crate::results::FioResults;
use crate::tally::WorkerTally;
use crate::worker::{InFlight, JobWorker, WorkerContext};
use crate::{FioError, JobSet};
use fullstroke_contract::{
    Completion, Effects, Node, NodeContext, Port, RequestStatus, Slots, Source, Wake,
};
use fullstroke_units::{Sectors, Seed, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// A source with one closed loop for each clone of each job. It issues I/O in fio's order and at
/// fio's times.
///
/// The hint `process` of a request is the worker's number, counted from 1.
pub struct FioSource {
    workers: Vec<JobWorker>,
    slots: Slots<InFlight>,
    /// Alarms of workers. An alarm is stale if its worker has another alarm time by now.
    alarms: BinaryHeap<Reverse<(Time, u32)>>,
    /// Number of running or waiting workers of each stage, and of each job.
    stages: Vec<usize>,
    jobs: Vec<usize>,
    stage: usize,
    /// Workers that can continue now.
    ready: Vec<u32>,
    left: u64,
    expected: Option<u64>,
    /// Statistics of each worker.
    tallies: Vec<WorkerTally>,
    set: JobSet,
    /// Number of different bytes of the volume in all regions; 0 for jobs on files.
    footprint: u64,
}

impl FioSource {
    /// Makes the source for a volume of `capacity`. The source ends after `requests` requests, if
    /// that comes first.
    ///
    /// # Errors
    /// Fails if an offset or a size is beyond the volume. The error names the job and the option.
    pub fn new(
        set: &JobSet,
        capacity: Sectors,
        seed: Seed,
        requests: Option<u64>,
    ) -> Result<FioSource, FioError> {
        if let Some(error) = &set.off_volume {
            return Err(error.clone());
        }
        let placement = Placement::new(set, capacity).map_err(|(place, (option, message))| {
            let job = &set.jobs[place];
            set.error(Some(job.line), option, format!("[{}]: {message}", job.name))
        })?;
        let ground = |job: &FioJob, clone: u32| placement.ground(job, clone);
        let expected = set
            .jobs
            .iter()
            .map(|job| expected(job, &ground(job, 0).ok()?))
            .sum::<Option<u64>>();
        let mut set = set.clone();
        set.notes.extend(placement.notes(&set));
        let source = FioSource::on(&set, &ground, seed, requests, expected)?;
        let footprint = placement.footprint(&set);
        Ok(FioSource {
            footprint,
            ..source
        })
    }

    /// Makes the source. `ground` gives the space of each worker, by job and clone.
    pub(crate) fn on(
        set: &JobSet,
        ground: &dyn Fn(&FioJob, u32) -> Result<WorkerRegions, Misfit>,
        seed: Seed,
        requests: Option<u64>,
        expected: Option<u64>,
    ) -> Result<FioSource, FioError> {
        let mut workers = Vec::with_capacity(set.workers());
        for job in &set.jobs {
            let job = Arc::new(job.clone());
            for clone in 0..job.clones {
                let number = workers.len() as u32;
                let worker = ground(&job, clone)
                    .and_then(|ground| JobWorker::new(&job, number, ground, seed));
                let worker = worker.map_err(|(option, message)| {
                    set.error(Some(job.line), option, format!("[{}]: {message}", job.name))
                })?;
                workers.push(worker);
            }
        }
        let mut stages = vec![0; workers.last().map_or(0, |worker| worker.job.stage) + 1];
        workers
            .iter()
            .for_each(|worker| stages[worker.job.stage] += 1);
        let jobs = set.jobs.iter().map(|job| job.clones as usize).collect();
        let mut source = FioSource {
            tallies: vec![WorkerTally::default(); workers.len()],
            set: set.clone(),
            footprint: 0,
            workers,
            slots: Slots::default(),
            alarms: BinaryHeap::new(),
            stages,
            jobs,
            stage: 0,
            ready: Vec::new(),
            left: requests.unwrap_or(u64::MAX),
            expected: match (expected, requests) {
                (Some(expected), Some(requests)) => Some(expected.min(requests)),
                (expected, _) => expected,
            },
        };
        // Only the start times are set here. I/O may be issued from the first wake on, when the
        // rest of the stack exists.
        source.release(Time::ZERO);
        source.ready.clear();
        let alarms = source
            .workers
            .iter()
            .filter(|worker| worker.alarm() != Time::NEVER);
        source.alarms = alarms
            .map(|worker| Reverse((worker.alarm(), worker.number)))
            .collect();
        Ok(source)
    }

    /// Returns the results so far; they are complete when the run is over. Only the source knows
    /// when a job began, ended its ramp, and ended.
    pub fn results(&self) -> FioResults {
        FioResults::new(
            &self.set,
            &self.workers,
            self.tallies.clone(),
            self.footprint,
        )
    }

    pub(crate) fn worker(&mut self, number: usize) -> &mut JobWorker {
        &mut self.workers[number]
    }

    /// Lets one worker continue, if its time has come.
    pub(crate) fn go_on(&mut self, now: Time, number: u32, out: &mut Effects) {
        self.ready.push(number);
        self.settle(now, out);
    }

    /// Handles the end of a request whose call began at `began`, later than its issue.
    pub(crate) fn finished(
        &mut self,
        began: Time,
        now: Time,
        slot: u32,
        status: RequestStatus,
        out: &mut Effects,
    ) {
        // The latency on files is that of the call alone, without the open in front of it.
        self.slots[slot].submitted = began;
        let flight = self.slots.take(slot);
        let at = flight.worker as usize;
        self.workers[at].completed(now, &flight, status, &mut self.tallies[at]);
        self.go_on(now, flight.worker, out);
    }

    /// Runs all workers that can continue, until none is left.
    fn settle(&mut self, now: Time, out: &mut Effects) {
        let mut tallies = std::mem::take(&mut self.tallies);
        while let Some(number) = self.ready.pop() {
            let at = number as usize;
            let ended = self.workers[at].has_ended();
            let tally = &mut tallies[at];
            let mut context = WorkerContext {
                out,
                slots: &mut self.slots,
                tally,
                left: &mut self.left,
            };
            debug_assert!(
                self.workers[at].alarm() == Time::NEVER || !ended,
                "worker {number} has ended and has an alarm"
            );
            self.workers[at].advance(now, &mut context);
            let alarm = self.workers[at].alarm();
            if alarm != Time::NEVER {
                self.alarms.push(Reverse((alarm, number)));
            }
            if !ended && self.workers[at].has_ended() {
                self.ended(now, at);
            }
        }
        self.tallies = tallies;
        self.drop_stale_alarms();
    }

    /// Handles the end of a worker: ends the jobs that end with it, and starts the jobs that waited
    /// for it.
    fn ended(&mut self, now: Time, at: usize) {
        self.count_out(at);
        // As in fio, `exitall` in one job holds for all jobs.
        if self.workers.iter().any(|worker| worker.job.exit_all) {
            self.exit_all(now, at);
        }
        // `exitall` may have ended whole stages behind this one.
        while self.stages.get(self.stage) == Some(&0) {
            self.stage += 1;
        }
        self.release(now);
    }

    fn count_out(&mut self, at: usize) {
        assert!(
            self.stages[self.workers[at].job.stage] > 0
                && self.jobs[self.workers[at].job.place] > 0,
            "worker {at} ends twice"
        );
        self.stages[self.workers[at].job.stage] -= 1;
        self.jobs[self.workers[at].job.place] -= 1;
    }

    fn exit_all(&mut self, now: Time, at: usize) {
        let FioJob {
            group,
            stage,
            exit_what,
            ..
        } = *self.workers[at].job;
        for number in 0..self.workers.len() {
            let worker = &mut self.workers[number];
            let with_it = match exit_what {
                ExitWhat::Group => worker.job.group == group,
                ExitWhat::Stonewall => worker.job.stage == stage,
                ExitWhat::All => true,
            };
            if !with_it || worker.has_ended() {
                continue;
            }
            worker.terminate(now);
            if worker.has_ended() {
                self.count_out(number);
            } else {
                self.ready.push(number as u32);
            }
        }
    }

    /// Starts the workers that no longer wait for the end of another job.
    fn release(&mut self, now: Time) {
        let free = |worker: &&JobWorker| {
            worker.is_waiting()
                && worker.job.stage <= self.stage
                && worker
                    .job
                    .waits_for
                    .is_none_or(|place| self.jobs[place] == 0)
        };
        let mut numbers: Vec<u32> = self
            .workers
            .iter()
            .filter(free)
            .map(|worker| worker.number)
            .collect();
        // `ready` is a stack, so the first worker must be pushed last.
        numbers.reverse();
        numbers
            .iter()
            .for_each(|number| self.workers[*number as usize].release(now));
        self.ready.append(&mut numbers);
    }

    fn drop_stale_alarms(&mut self) {
        while let Some(&Reverse((due, number))) = self.alarms.peek() {
            // A worker may have set an earlier alarm since, or none. The heap has no way to change
            // an entry.
            if self.workers[number as usize].alarm() == due {
                break;
            }
            self.alarms.pop();
        }
    }
}

impl Node for FioSource {
    fn wake(&mut self, now: Time, cx: &mut NodeContext<'_>) {
        while let Some(&Reverse((due, number))) = self.alarms.peek() {
            if due > now {
                break;
            }
            self.alarms.pop();
            if self.workers[number as usize].alarm() == due {
                self.ready.push(number);
                self.settle(now, cx.out);
            }
        }
        self.drop_stale_alarms();
    }

    fn completed(&mut self, now: Time, _: Port, completion: Completion, cx: &mut NodeContext<'_>) {
        let flight = self.slots.take(completion.id.0 as u32);
        let at = flight.worker as usize;
        self.workers[at].completed(now, &flight, completion.status, &mut self.tallies[at]);
        self.ready.push(flight.worker);
        self.settle(now, cx.out);
    }

    fn next_wake(&self) -> Wake {
        self.alarms
            .peek()
            .map_or(Wake::NEVER, |Reverse((due, _))| (*due).into())
    }
}

impl Source for FioSource {
    fn expected_requests(&self) -> Option<u64> {
        self.expected
    }
}

/// Returns the number of I/Os of a job, if its end does not depend on time.
fn expected(job: &FioJob, ground: &WorkerRegions) -> Option<u64> {
    let bytes = job.single_size()?;
    let region = ground.whole;
    let verifies = job.verify.on && job.work.goes(IoDirection::Write);
    // The time decides how many I/Os such a job does, so the number is unknown.
    if job.runtime.is_some() || job.exit_all || job.ramp.as_nanos() > 0 || verifies {
        return None;
    }
    let each = region.iteration.min(region.limit) / bytes;
    let ios = each.saturating_mul(job.loops).max(region.limit / bytes);
    let flushes = ios.checked_div(job.flush_every).unwrap_or(0);
    let ios = job
        .number_ios
        .map_or(ios, |most| ios.min(most.saturating_mul(job.loops)));
    Some(
        ios.saturating_add(flushes)
            .saturating_mul(u64::from(job.clones)),
    )
}
