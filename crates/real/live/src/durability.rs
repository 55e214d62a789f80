//! Makes writes durable without delaying the model: a separate thread waits for the host's disks.

use crate::completed::CompletedRequest;
use crate::ticket::Ticket;
use fullstroke_store::bytes::{MarkJob, MarkResult, SyncJob, SyncResult};
use fullstroke_transport::socket::Waker;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

/// A request whose answer waits until earlier writes are durable.
pub(crate) struct UndurableRequest {
    pub(crate) ended: CompletedRequest,
    pub(crate) ticket: Ticket,
}

/// Work waiting for the host's disks.
pub(crate) trait DeferredWork: Send + 'static {
    type Outcome: Send + 'static;
    fn run(self) -> Self::Outcome;
}

impl DeferredWork for SyncJob {
    type Outcome = SyncResult;
    fn run(self) -> SyncResult {
        SyncJob::run(self)
    }
}

impl DeferredWork for MarkJob {
    type Outcome = MarkResult;
    fn run(self) -> MarkResult {
        MarkJob::run(self)
    }
}

/// A thread that waits for the host's disks.
pub(crate) struct Syncer<J: DeferredWork> {
    pub(crate) waker: Arc<Waker>,
    jobs: Sender<(usize, J)>,
    done: Receiver<(usize, J::Outcome)>,
}

/// Changes of one stack that wait for durable marks of their regions, in the order of completion in
/// the layers.
#[derive(Default)]
pub(crate) struct AwaitedMarks {
    pub(crate) running: bool,
    pub(crate) waiting: VecDeque<UndurableRequest>,
}

/// Waiting requests of one stack. A request that comes during a job waits for the next job, because
/// the running job may have begun before the request's data were written.
#[derive(Default)]
pub(crate) struct SyncQueue {
    running: bool,
    under_way: Vec<UndurableRequest>,
    next: Vec<UndurableRequest>,
}

impl<J: DeferredWork> Syncer<J> {
    pub(crate) fn start(name: &str) -> io::Result<Syncer<J>> {
        let waker = Arc::new(Waker::new()?);
        let (jobs, todo) = channel::<(usize, J)>();
        let (report, done) = channel();
        let waker_of_poll = Arc::clone(&waker);
        thread::Builder::new().name(name.into()).spawn(move || {
            for (world, job) in todo {
                // The server has ended, and nobody waits for outcomes.
                if report.send((world, job.run())).is_err() {
                    return;
                }
                waker_of_poll.wake();
            }
        })?;
        Ok(Syncer { waker, jobs, done })
    }

    pub(crate) fn begin(&self, world: usize, job: J) {
        // The thread ends only after this end of the channel is closed.
        let _ = self.jobs.send((world, job));
    }

    /// Returns a finished job: the number of its stack, and the outcome.
    pub(crate) fn finished(&self) -> Option<(usize, J::Outcome)> {
        self.done.try_recv().ok()
    }
}

impl AwaitedMarks {
    pub(crate) fn is_empty(&self) -> bool {
        !self.running && self.waiting.is_empty()
    }
}

impl SyncQueue {
    /// Adds a request. Returns true if a job must begin.
    pub(crate) fn push(&mut self, waiting: UndurableRequest) -> bool {
        self.next.push(waiting);
        !self.running
    }

    /// Returns true if a job is running.
    pub(crate) fn is_running(&self) -> bool {
        self.running
    }

    /// Begins a job for all waiting requests.
    pub(crate) fn begin(&mut self) {
        debug_assert!(!self.running, "one job at a time");
        self.running = true;
        self.under_way.append(&mut self.next);
    }

    /// Ends the job. Returns the waiting requests, and true if another job must begin.
    pub(crate) fn end(&mut self) -> (Vec<UndurableRequest>, bool) {
        self.running = false;
        (std::mem::take(&mut self.under_way), !self.next.is_empty())
    }

    pub(crate) fn is_empty(&self) -> bool {
        !self.running && self.next.is_empty()
    }
}
