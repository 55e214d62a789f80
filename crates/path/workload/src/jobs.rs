//! Jobs with known requests: each job issues its requests one after the other.

use fullstroke_contract::{
    Completion, Extent, Hints, Node, NodeContext, Operation, Port, Request, RequestId,
    RequestStatus, Source, Wake,
};
use fullstroke_units::{Duration, Time};

/// Requests of one job in order: a file to read or to move.
pub type Job = Vec<(Operation, Extent)>;

/// A number of processes. A process that has finished a job takes the next.
pub struct Jobs {
    jobs: Vec<Job>,
    next: usize,
    processes: Vec<JobProcess>,
    took: Vec<Duration>,
    begun: bool,
    failed: u64,
}

#[derive(Clone, Copy, Default)]
struct JobProcess {
    /// The job, and the number of its issued requests.
    job: usize,
    issued: usize,
    began: Time,
}

impl Jobs {
    /// The jobs, run by `processes` at the same time.
    pub fn new(jobs: Vec<Job>, processes: u32) -> Jobs {
        Jobs {
            took: vec![Duration::ZERO; jobs.len()],
            jobs,
            next: 0,
            processes: vec![JobProcess::default(); processes as usize],
            begun: false,
            failed: 0,
        }
    }

    /// Duration of each job; zero for a job without requests.
    pub fn took(&self) -> &[Duration] {
        &self.took
    }

    /// Requests that were not done.
    pub fn failed(&self) -> u64 {
        self.failed
    }

    /// A process continues its job, or takes the next job.
    fn go_on(&mut self, now: Time, number: usize, cx: &mut NodeContext<'_>) {
        loop {
            let JobProcess { job, issued, .. } = self.processes[number];
            // A job without requests is over at once, and the loop takes the next job.
            if let Some(&(operation, extent)) = self.jobs.get(job).and_then(|job| job.get(issued)) {
                self.processes[number].issued += 1;
                // Numbers from 1, because 0 means unknown in hints.
                let hints = Hints {
                    process: number as u32 + 1,
                    stream: job as u32 + 1,
                    ..Hints::default()
                };
                let id = RequestId(number as u64);
                cx.out.issue(
                    0,
                    Request {
                        id,
                        operation,
                        extent,
                        hints,
                        ..Request::default()
                    },
                );
                return;
            }
            if self.next == self.jobs.len() {
                return;
            }
            self.processes[number] = JobProcess {
                job: self.next,
                issued: 0,
                began: now,
            };
            self.next += 1;
        }
    }
}

impl Node for Jobs {
    fn wake(&mut self, now: Time, cx: &mut NodeContext<'_>) {
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        for number in 0..self.processes.len().min(self.jobs.len()) {
            self.processes[number] = JobProcess {
                job: number,
                issued: 0,
                began: now,
            };
        }
        self.next = self.processes.len().min(self.jobs.len());
        (0..self.next).for_each(|number| self.go_on(now, number, cx));
    }

    fn completed(&mut self, now: Time, _: Port, completion: Completion, cx: &mut NodeContext<'_>) {
        self.failed += u64::from(completion.status != RequestStatus::Done);
        let number = completion.id.0 as usize;
        let JobProcess { job, issued, began } = self.processes[number];
        // A process has one request in flight, so the last issued request is the last to complete.
        if issued == self.jobs[job].len() {
            self.took[job] = now.since(began);
        }
        self.go_on(now, number, cx);
    }

    fn next_wake(&self) -> Wake {
        if self.begun {
            Wake::NEVER
        } else {
            Time::ZERO.into()
        }
    }
}

impl Source for Jobs {
    fn expected_requests(&self) -> Option<u64> {
        Some(self.jobs.iter().map(|job| job.len() as u64).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_contract::{Effect, Effects};

    /// Completes requests in the order of issue, each after a millisecond.
    fn run(mut jobs: Jobs) -> (Jobs, Vec<Extent>) {
        let (mut out, mut order, mut now) = (Effects::new(), Vec::new(), Time::ZERO);
        jobs.wake(now, &mut NodeContext::alone(&mut out));
        while let Some((_, effect)) = out.take_first() {
            let Effect::Issue { request, .. } = effect else {
                panic!("{effect:?}")
            };
            order.push(request.extent);
            now += Duration::from_millis(1);
            let completion = Completion {
                id: request.id,
                finished: now,
                ..Completion::default()
            };
            jobs.completed(
                now,
                Port::FIRST,
                completion,
                &mut NodeContext::alone(&mut out),
            );
        }
        (jobs, order)
    }

    #[test]
    fn each_process_takes_the_next_job_and_each_request_waits_for_the_one_before() {
        let job = |starts: &[u64]| {
            starts
                .iter()
                .map(|&at| (Operation::Read, Extent::new(at, 8)))
                .collect()
        };
        let jobs = vec![job(&[0, 8]), job(&[]), job(&[100]), job(&[200, 208])];
        let (jobs, order) = run(Jobs::new(jobs, 2));
        let starts: Vec<u64> = order.iter().map(|extent| extent.start.0).collect();
        assert_eq!(starts, [0, 100, 8, 200, 208]);
        let ms: Vec<f64> = jobs
            .took()
            .iter()
            .map(|took| took.as_nanos() as f64 / 1e6)
            .collect();
        assert_eq!(ms, [3.0, 0.0, 2.0, 3.0]);
        assert_eq!(jobs.failed(), 0);
    }

    #[test]
    fn more_processes_than_jobs_do_no_harm() {
        assert_eq!(run(Jobs::new(Vec::new(), 3)).1, []);
        let one = vec![vec![(Operation::Write, Extent::new(0, 8))]];
        assert_eq!(run(Jobs::new(one, 3)).1.len(), 1);
    }
}
