//! Making writes durable without holding up the world: the host's disks are
//! waited for in a thread of their own.

use crate::poll::Bell;
use crate::watch::Ended;
use crate::world::Ticket;
use fullstroke_bytes::{SyncJob, Synced};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

/// A request whose answer waits until what was written before is durable.
pub(crate) struct Waiting {
    pub(crate) ended: Ended,
    pub(crate) ticket: Ticket,
}

/// The thread that waits for the host's disks.
pub(crate) struct Syncer {
    pub(crate) bell: Arc<Bell>,
    jobs: Sender<(usize, SyncJob)>,
    done: Receiver<(usize, Synced)>,
}

/// The requests of one world that wait. Those that come while a job is under
/// way wait for the next: it may have begun before their bytes were written.
#[derive(Default)]
pub(crate) struct SyncQueue {
    running: bool,
    under_way: Vec<Waiting>,
    next: Vec<Waiting>,
}

impl Syncer {
    pub(crate) fn start() -> io::Result<Syncer> {
        let bell = Arc::new(Bell::new()?);
        let (jobs, todo) = channel::<(usize, SyncJob)>();
        let (report, done) = channel();
        let ring = Arc::clone(&bell);
        thread::Builder::new().name("durability".into()).spawn(move || {
            for (world, job) in todo {
                if report.send((world, job.run())).is_err() {
                    return;
                }
                ring.ring();
            }
        })?;
        Ok(Syncer { bell, jobs, done })
    }

    pub(crate) fn begin(&self, world: usize, job: SyncJob) {
        // The thread ends only after this end of the channel is closed.
        let _ = self.jobs.send((world, job));
    }

    /// A job that has ended, of which world, and what it made durable.
    pub(crate) fn finished(&self) -> Option<(usize, Synced)> {
        self.done.try_recv().ok()
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
