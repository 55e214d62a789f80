//! Making writes durable without holding up the world: the host's disks are
//! waited for in a thread of their own.

use crate::ticket::Ticket;
use crate::watch::Ended;
use fullstroke_store::bytes::{MarkJob, Marked, SyncJob, Synced};
use fullstroke_transport::socket::Waker;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

/// A request whose answer waits until what was written before is durable.
pub(crate) struct Waiting {
    pub(crate) ended: Ended,
    pub(crate) ticket: Ticket,
}

/// Something that waits for the host's disks.
pub(crate) trait Job: Send + 'static {
    type Outcome: Send + 'static;
    fn run(self) -> Self::Outcome;
}

impl Job for SyncJob {
    type Outcome = Synced;
    fn run(self) -> Synced {
        SyncJob::run(self)
    }
}

impl Job for MarkJob {
    type Outcome = Marked;
    fn run(self) -> Marked {
        MarkJob::run(self)
    }
}

/// A thread that waits for the host's disks.
pub(crate) struct Syncer<J: Job> {
    pub(crate) waker: Arc<Waker>,
    jobs: Sender<(usize, J)>,
    done: Receiver<(usize, J::Outcome)>,
}

/// The changes of one world that wait until it is durable that their regions are
/// being written, in the order in which the layers have finished them.
#[derive(Default)]
pub(crate) struct Marks {
    pub(crate) running: bool,
    pub(crate) waiting: VecDeque<Waiting>,
}

/// The requests of one world that wait. Those that come while a job is under
/// way wait for the next: it may have begun before their bytes were written.
#[derive(Default)]
pub(crate) struct SyncQueue {
    running: bool,
    under_way: Vec<Waiting>,
    next: Vec<Waiting>,
}

impl<J: Job> Syncer<J> {
    pub(crate) fn start(name: &str) -> io::Result<Syncer<J>> {
        let waker = Arc::new(Waker::new()?);
        let (jobs, todo) = channel::<(usize, J)>();
        let (report, done) = channel();
        let waker_of_poll = Arc::clone(&waker);
        thread::Builder::new().name(name.into()).spawn(move || {
            for (world, job) in todo {
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

    /// A job that has ended, of which world, and what came of it.
    pub(crate) fn finished(&self) -> Option<(usize, J::Outcome)> {
        self.done.try_recv().ok()
    }
}

impl Marks {
    pub(crate) fn is_empty(&self) -> bool {
        !self.running && self.waiting.is_empty()
    }
}

impl SyncQueue {
    /// One more waits. Answers whether a job is to begin.
    pub(crate) fn push(&mut self, waiting: Waiting) -> bool {
        self.next.push(waiting);
        !self.running
    }

    /// Whether a job is under way.
    pub(crate) fn is_running(&self) -> bool {
        self.running
    }

    /// A job begins for all that wait for one.
    pub(crate) fn begin(&mut self) {
        debug_assert!(!self.running, "one job at a time");
        self.running = true;
        self.under_way.append(&mut self.next);
    }

    /// The job has ended: those that waited for it, and whether another is to
    /// begin.
    pub(crate) fn end(&mut self) -> (Vec<Waiting>, bool) {
        self.running = false;
        (std::mem::take(&mut self.under_way), !self.next.is_empty())
    }

    pub(crate) fn is_empty(&self) -> bool {
        !self.running && self.next.is_empty()
    }
}
