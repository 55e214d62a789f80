//! What came out of a run, by job or by group.

use crate::JobSet;
use crate::job::Job;
use crate::source::Tallies;
use crate::tally::Tally;
use crate::worker::Worker;
use fullstroke_contract::MemberStatistics;
use fullstroke_units::Duration;
use std::sync::{Arc, PoisonError};

/// Where the results of a [`FioSource`](crate::FioSource) are, once its run is
/// over. It counts itself: only it knows when a job began, ramped up and ended.
pub struct FioResults {
    set: JobSet,
    /// The job of each worker.
    jobs: Vec<Arc<Job>>,
    tallies: Tallies,
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

impl FioReport {
    /// The options of the job file that change nothing.
    pub fn ignored(&self) -> &[crate::IgnoredOption] {
        &self.ignored
    }
}

impl FioResults {
    pub(crate) fn new(set: &JobSet, workers: &[Worker], tallies: Tallies) -> FioResults {
        let jobs = workers.iter().map(|worker| Arc::clone(&worker.job)).collect();
        FioResults { set: set.clone(), jobs, tallies }
    }

    /// The results so far; complete when the run is over. `drives` are named
    /// with what they counted over `span`.
    pub fn report(&self, drives: Vec<(String, MemberStatistics)>, span: Duration) -> FioReport {
        let tallies = self.tallies.lock().unwrap_or_else(PoisonError::into_inner);
        let mut jobs: Vec<JobResult> = Vec::new();
        for (job, tally) in self.jobs.iter().zip(tallies.iter()) {
            match jobs.last_mut() {
                Some(last)
                    if job.group_reporting && last.job.group_reporting && last.job.group == job.group =>
                {
                    last.tally.add(tally);
                    last.workers += 1;
                }
                _ => jobs.push(JobResult { job: Arc::clone(job), tally: tally.clone(), workers: 1 }),
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
