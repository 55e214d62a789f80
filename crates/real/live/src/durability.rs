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

/// The threads that wait for the host's disks, and the requests of each stack that wait for them.
pub(crate) struct Durability {
    syncer: Syncer<SyncJob>,
    syncs: Vec<SyncQueue>,
    /// A second thread, because the first may be busy with gigabytes.
    marker: Syncer<MarkJob>,
    marks: Vec<AwaitedMarks>,
}

/// A request whose answer waits until earlier writes are durable.
pub(crate) struct UndurableRequest {
    pub(crate) ended: CompletedRequest,
    pub(crate) ticket: Ticket,
}

/// Work waiting for the host's disks.
trait DeferredWork: Send + 'static {
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
struct Syncer<J: DeferredWork> {
    waker: Arc<Waker>,
    jobs: Sender<(usize, J)>,
    done: Receiver<(usize, J::Outcome)>,
}

/// Changes of one stack that wait for durable marks of their regions, in the order of completion in
/// the layers.
#[derive(Default)]
struct AwaitedMarks {
    running: bool,
    waiting: VecDeque<UndurableRequest>,
}

/// Waiting requests of one stack. A request that comes during a job waits for the next job, because
/// the running job may have begun before the request's data were written.
#[derive(Default)]
struct SyncQueue {
    running: bool,
    under_way: Vec<UndurableRequest>,
    next: Vec<UndurableRequest>,
}

impl Durability {
    /// Starts the threads for so many stacks.
    pub(crate) fn start(stacks: usize) -> io::Result<Durability> {
        Ok(Durability {
            syncer: Syncer::start("durability")?,
            syncs: (0..stacks).map(|_| SyncQueue::default()).collect(),
            marker: Syncer::start("marks")?,
            marks: (0..stacks).map(|_| AwaitedMarks::default()).collect(),
        })
    }

    /// Returns the wakers of the two threads: for writes, and for marks.
    pub(crate) fn wakers(&self) -> [&Waker; 2] {
        [&self.syncer.waker, &self.marker.waker]
    }

    /// Returns true if no request waits and no job runs.
    pub(crate) fn is_idle(&self) -> bool {
        self.syncs.iter().all(SyncQueue::is_empty) && self.marks.iter().all(AwaitedMarks::is_empty)
    }

    /// Returns true if a job makes writes of the stack durable.
    pub(crate) fn is_syncing(&self, stack: usize) -> bool {
        self.syncs[stack].running
    }

    /// Lets a request wait until earlier writes are durable. Returns true if a job must begin.
    pub(crate) fn wait_for_sync(&mut self, stack: usize, waiting: UndurableRequest) -> bool {
        self.syncs[stack].push(waiting)
    }

    /// Begins a job for all requests that wait for a sync of the stack.
    pub(crate) fn begin_sync(&mut self, stack: usize) {
        self.syncs[stack].begin();
    }

    /// Carries out the job in its thread.
    pub(crate) fn run_sync(&self, stack: usize, job: SyncJob) {
        self.syncer.begin(stack, job);
    }

    /// Returns a finished job: the number of its stack, and the outcome.
    pub(crate) fn synced(&self) -> Option<(usize, SyncResult)> {
        self.syncer.finished()
    }

    /// Ends the job. Returns the waiting requests, and true if another job must begin.
    pub(crate) fn end_sync(&mut self, stack: usize) -> (Vec<UndurableRequest>, bool) {
        self.syncs[stack].end()
    }

    /// Returns true if marks of the stack are being made durable.
    pub(crate) fn is_marking(&self, stack: usize) -> bool {
        self.marks[stack].running
    }

    /// Returns true if changes of the stack wait for durable marks.
    pub(crate) fn has_unmarked(&self, stack: usize) -> bool {
        !self.marks[stack].waiting.is_empty()
    }

    /// Lets a change wait for the durable marks of its regions.
    pub(crate) fn wait_for_marks(&mut self, stack: usize, waiting: UndurableRequest) {
        self.marks[stack].waiting.push_back(waiting);
    }

    /// Returns the first change that waits for marks.
    pub(crate) fn next_unmarked(&mut self, stack: usize) -> Option<UndurableRequest> {
        self.marks[stack].waiting.pop_front()
    }

    /// Lets the first change wait again.
    pub(crate) fn put_back(&mut self, stack: usize, waiting: UndurableRequest) {
        self.marks[stack].waiting.push_front(waiting);
    }

    /// Makes announced marks durable in their thread.
    pub(crate) fn run_marking(&mut self, stack: usize, job: MarkJob) {
        self.marks[stack].running = true;
        self.marker.begin(stack, job);
    }

    /// Returns finished marks: the number of their stack, and the outcome.
    pub(crate) fn marked(&self) -> Option<(usize, MarkResult)> {
        self.marker.finished()
    }

    /// Notes the end of the job of the stack's marks.
    pub(crate) fn end_marking(&mut self, stack: usize) {
        self.marks[stack].running = false;
    }
}

impl<J: DeferredWork> Syncer<J> {
    fn start(name: &str) -> io::Result<Syncer<J>> {
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

    fn begin(&self, world: usize, job: J) {
        // The thread ends only after this end of the channel is closed.
        let _ = self.jobs.send((world, job));
    }

    /// Returns a finished job: the number of its stack, and the outcome.
    fn finished(&self) -> Option<(usize, J::Outcome)> {
        self.done.try_recv().ok()
    }
}

impl AwaitedMarks {
    fn is_empty(&self) -> bool {
        !self.running && self.waiting.is_empty()
    }
}

impl SyncQueue {
    /// Adds a request. Returns true if a job must begin.
    fn push(&mut self, waiting: UndurableRequest) -> bool {
        self.next.push(waiting);
        !self.running
    }

    /// Begins a job for all waiting requests.
    fn begin(&mut self) {
        debug_assert!(!self.running, "one job at a time");
        self.running = true;
        self.under_way.append(&mut self.next);
    }

    /// Ends the job. Returns the waiting requests, and true if another job must begin.
    fn end(&mut self) -> (Vec<UndurableRequest>, bool) {
        self.running = false;
        (std::mem::take(&mut self.under_way), !self.next.is_empty())
    }

    fn is_empty(&self) -> bool {
        !self.running && self.next.is_empty()
    }
}
