//! What came out of a run, by job or by group.

use crate::JobSet;
use crate::job::Job;
use crate::tally::Tally;
use crate::worker::Worker;
use fullstroke_contract::MemberStatistics;
use fullstroke_units::Duration;
use std::sync::Arc;

/// What a [`FioSource`](crate::FioSource) has counted.
pub struct FioResults {
    set: JobSet,
    /// The job of each worker.
    jobs: Vec<Arc<Job>>,
    tallies: Vec<Tally>,
}

/// The results, one for each worker, or for each group with `group_reporting`.
#[derive(Clone, Debug)]
pub struct FioReport {
    pub(crate) global: Vec<(String, String)>,
    pub(crate) jobs: Vec<JobResult>,
    pub(crate) ignored: Vec<crate::IgnoredOption>,
    pub(crate) drives: Vec<(String, MemberStatistics)>,
    /// The time over which the drives counted.
    pub(crate) span: Duration,
}

/// One result.
#[derive(Clone, Debug)]
pub(crate) struct JobResult {
    /// The first job's, where several are reported together.
    pub(crate) job: Arc<Job>,
    pub(crate) tally: Tally,
    /// Workers that it is made of.
    pub(crate) workers: usize,
}

/// A job that did not get the rate that it was given.
#[derive(Clone, Debug, PartialEq)]
pub struct BehindRate {
    /// The job's name.
    pub job: String,
    /// What it got of its rate, 0 to 1.
    pub share: f64,
    /// How far it was behind its timetable at its end.
    pub behind: Duration,
}

/// A job is behind its rate if it is late by this share of its time.
const LATE: f64 = 0.02;

impl FioReport {
    /// The options of the job file that change nothing.
    pub fn ignored(&self) -> &[crate::IgnoredOption] {
        &self.ignored
    }
}

impl FioResults {
    pub(crate) fn new(set: &JobSet, workers: &[Worker], tallies: Vec<Tally>) -> FioResults {
        let jobs = workers
            .iter()
            .map(|worker| Arc::clone(&worker.job))
            .collect();
        FioResults {
            set: set.clone(),
            jobs,
            tallies,
        }
    }

    /// The same, where some of the options that change nothing on a volume do.
    #[must_use]
    pub(crate) fn without_ignored(mut self, matters: fn(&str) -> bool) -> FioResults {
        self.set.ignored.retain(|option| !matters(option.name));
        self
    }

    /// The job that got least of its rate, if one got clearly less than all.
    pub fn behind_rate(&self) -> Option<BehindRate> {
        let late = |(job, tally): (&Arc<Job>, &Tally)| {
            let lag = tally.lag?;
            let late = lag.behind.as_secs_f64() / lag.elapsed.as_secs_f64().max(f64::MIN_POSITIVE);
            let behind = BehindRate {
                job: job.name.clone(),
                share: 1.0 - late,
                behind: lag.behind,
            };
            (late > LATE).then_some(behind)
        };
        let all = self.jobs.iter().zip(&self.tallies).filter_map(late);
        all.min_by(|one, other| one.share.total_cmp(&other.share))
    }

    /// All jobs together, by name: MB/s, I/Os a second of the longest job's time, and
    /// latencies, of the directions that there were.
    pub(crate) fn figures(&self) -> Vec<(&'static str, f64)> {
        const NAMES: [[&str; 4]; 2] = [
            [
                "read_mb_per_s",
                "read_iops",
                "read_clat_ms_mean",
                "read_clat_ms_p99",
            ],
            [
                "write_mb_per_s",
                "write_iops",
                "write_clat_ms_mean",
                "write_clat_ms_p99",
            ],
        ];
        let mut all = Tally::default();
        self.tallies.iter().for_each(|tally| all.add(tally));
        let seconds = all.elapsed.as_secs_f64();
        let there = NAMES
            .iter()
            .zip(&all.lanes)
            .filter(|(_, lane)| lane.ios() > 0 && seconds > 0.0);
        let told = there.flat_map(|(names, lane)| {
            let ms = |ns: f64| ns / 1e6;
            let figures = [
                lane.bytes as f64 / 1e6 / seconds,
                lane.ios() as f64 / seconds,
                ms(lane.latency_ns.mean()),
                ms(lane.percentile_ns(99.0) as f64),
            ];
            names.iter().copied().zip(figures)
        });
        told.collect()
    }

    /// The results so far; complete when the run is over. `drives` are named
    /// with what they counted over `span`.
    pub fn report(&self, drives: Vec<(String, MemberStatistics)>, span: Duration) -> FioReport {
        let mut jobs: Vec<JobResult> = Vec::new();
        for (job, tally) in self.jobs.iter().zip(&self.tallies) {
            match jobs.last_mut() {
                Some(last)
                    if job.group_reporting
                        && last.job.group_reporting
                        && last.job.group == job.group =>
                {
                    last.tally.add(tally);
                    last.workers += 1;
                }
                _ => jobs.push(JobResult {
                    job: Arc::clone(job),
                    tally: tally.clone(),
                    workers: 1,
                }),
            }
        }
        FioReport {
            global: self.set.global.clone(),
            jobs,
            ignored: self.set.ignored().to_vec(),
            drives,
            span,
        }
    }
}
