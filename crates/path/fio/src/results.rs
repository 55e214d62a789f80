//! Results of a run, by job or by group.

use crate::JobSet;
use crate::floors;
use crate::job::{FioJob, IoDirection};
use crate::tally::WorkerTally;
use crate::worker::JobWorker;
use fullstroke_contract::MemberStatistics;
use fullstroke_units::Duration;
use std::sync::Arc;

/// Statistics collected by a [`FioSource`](crate::FioSource).
pub struct FioResults {
    set: JobSet,
    /// Job of each worker.
    jobs: Vec<Arc<FioJob>>,
    tallies: Vec<WorkerTally>,
    /// Number of different bytes of the volume in the regions of all jobs; 0 for jobs on files.
    footprint: u64,
}

/// Results for each worker, or for each group with `group_reporting`.
#[derive(Clone, Debug)]
pub struct FioGroupResults {
    pub(crate) global: Vec<(String, String)>,
    pub(crate) jobs: Vec<JobResult>,
    pub(crate) ignored: Vec<crate::IgnoredOption>,
    pub(crate) notes: Vec<String>,
    pub(crate) drives: Vec<(String, MemberStatistics)>,
    /// Time span of the drives' statistics.
    pub(crate) span: Duration,
    pub(crate) footprint: u64,
}

/// Least number of times that data is read for a sentence about it.
const READ_AGAIN: f64 = 2.0;
/// Least share of I/Os that the drives' buffers answer for the same sentence.
const FROM_BUFFERS: f64 = 0.5;

/// One result.
#[derive(Clone, Debug)]
pub(crate) struct JobResult {
    /// The job. For a group, its first job.
    pub(crate) job: Arc<FioJob>,
    pub(crate) tally: WorkerTally,
    /// Number of workers in the result.
    pub(crate) workers: usize,
}

/// A job that did not reach its rate.
#[derive(Clone, Debug, PartialEq)]
pub struct BehindRate {
    /// Name of the job.
    pub job: String,
    /// Achieved share of the rate, from 0 to 1.
    pub share: f64,
    /// Delay against the timetable at the end of the job.
    pub behind: Duration,
}

/// Smallest delay, as a share of the job's time, at which a job counts as behind its rate.
const LATE: f64 = 0.02;

impl FioGroupResults {
    /// Returns the options of the job file that change nothing.
    pub fn ignored(&self) -> &[crate::IgnoredOption] {
        &self.ignored
    }

    /// Returns a sentence if most reads are repeated and come from the buffers of the drives. Then a
    /// volume reads faster than its media.
    pub(crate) fn read_again(&self) -> Option<String> {
        let read: u64 = self
            .jobs
            .iter()
            .map(|result| result.tally.lanes[IoDirection::Read as usize].bytes)
            .sum();
        let drives = |count: fn(&MemberStatistics) -> u64| -> f64 {
            self.drives
                .iter()
                .map(|(_, drive)| count(drive) as f64)
                .sum()
        };
        let times = read as f64 / self.footprint.max(1) as f64;
        let hits = drives(|drive| drive.buffer_hits) / drives(MemberStatistics::requests).max(1.0);
        (self.footprint > 0 && times >= READ_AGAIN && hits >= FROM_BUFFERS).then(|| {
            format!(
                "The jobs read the same {:.3} GiB {times:.1} times, and the buffers of the drives answered {:.0} % of the drives' I/Os: the rate may exceed that of the media.",
                self.footprint as f64 / (1u64 << 30) as f64,
                100.0 * hits
            )
        })
    }

    /// Returns sentences about the jobs: the places of their files, and values that fio reads
    /// otherwise than they look.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}

impl FioResults {
    pub(crate) fn new(
        set: &JobSet,
        workers: &[JobWorker],
        tallies: Vec<WorkerTally>,
        footprint: u64,
    ) -> FioResults {
        let jobs = workers
            .iter()
            .map(|worker| Arc::clone(&worker.job))
            .collect();
        FioResults {
            set: set.clone(),
            jobs,
            tallies,
            footprint,
        }
    }

    /// Returns the results without the ignored options for which `matters` is true. Some options
    /// that change nothing on a volume have an effect on files.
    #[must_use]
    pub(crate) fn without_ignored(mut self, matters: fn(&str) -> bool) -> FioResults {
        self.set.ignored.retain(|option| !matters(option.name));
        self
    }

    /// Returns the job with the smallest share of its rate, if a job is clearly behind.
    pub fn behind_rate(&self) -> Option<BehindRate> {
        let late = |(job, tally): (&Arc<FioJob>, &WorkerTally)| {
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
        // The job furthest behind speaks for the run.
        all.min_by(|one, other| one.share.total_cmp(&other.share))
    }

    /// Returns the totals of all jobs by name: MB/s, I/Os per second of the longest job's time, and
    /// latencies. Directions without I/O are left out.
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
        let mut all = WorkerTally::default();
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

    /// Returns the results so far; they are complete when the run is over. `drives` are names and
    /// statistics over `span`.
    pub fn report(
        &self,
        drives: Vec<(String, MemberStatistics)>,
        span: Duration,
    ) -> FioGroupResults {
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
        // One clone speaks for the clones of a job.
        let mut missed: Vec<String> = Vec::new();
        let mut told = None;
        for (job, tally) in self.jobs.iter().zip(&self.tallies) {
            let notes = floors::missed(job, tally);
            if !notes.is_empty() && told != Some(job.place) {
                told = Some(job.place);
                missed.extend(notes);
            }
        }
        FioGroupResults {
            global: self.set.global.clone(),
            jobs,
            ignored: self.set.ignored().to_vec(),
            notes: self.set.notes.iter().cloned().chain(missed).collect(),
            drives,
            span,
            footprint: self.footprint,
        }
    }
}
