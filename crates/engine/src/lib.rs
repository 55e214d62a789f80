//! What drives a tree of layers: as fast as it goes, under a virtual clock.
//!
//! [`Machine`] holds the layers, tells each the time with every event, carries
//! effects from one to the next, and wakes whoever asked first. [`Engine`]
//! gives it a source of requests and lets virtual time jump from event to
//! event. Events at one instant are served in the order of the tree, from the
//! source down, so that a run repeats to the bit.

mod flight;
mod machine;
mod rebuilds;
mod tree;

pub use machine::{Above, Machine};
pub use rebuilds::{Mark, Rebuild, Rebuilds};
pub use tree::{MemberName, Node, Tree};

use fullstroke_contract::{Completion, Extent, LayerReadings, MemberStatistics, Operation, Request, Signal};
use fullstroke_contract::{Source, SourceError, Status};
use fullstroke_units::Time;

/// A request of the workload that has finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished {
    /// Its number in order of arrival, from 0.
    pub origin: u64,
    /// What it did.
    pub operation: Operation,
    /// Where.
    pub extent: Extent,
    /// The process it came from; 0 = unknown.
    pub process: u32,
    /// Which of the stack's workloads it came from, by index.
    pub workload: u16,
    /// When it arrived.
    pub arrived: Time,
    /// How and when it ended, and where the time went.
    pub completion: Completion,
}

/// Sees what happens in a run. Every method has an empty default.
pub trait Observer {
    /// A request of the workload has finished.
    fn finished(&mut self, _finished: &Finished) {}
    /// The drive number `drive` (in the order of the tree) was given
    /// `request`, on behalf of the workload's request `request.origin` or, if
    /// that is [`Request::BACKGROUND`], of a layer's own work.
    fn drive_io(&mut self, _now: Time, _drive: usize, _request: &Request) {}
    /// The layer at `path` (the indices of the members on the way to it) sent
    /// a signal of its own.
    fn signalled(&mut self, _now: Time, _path: &[usize], _signal: Signal) {}
}

/// An observer that looks away.
impl Observer for () {}

/// What a run amounted to.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Requests that arrived.
    pub requests: u64,
    /// Requests that finished as [`Status::Done`].
    pub completed: u64,
    /// Requests that touched data lost with failed members.
    pub lost: u64,
    /// Requests outside of the volume.
    pub out_of_range: u64,
    /// Damaged rows of the source that were left out.
    pub skipped_rows: u64,
    /// What the source says is wrong with what it read; a sentence each.
    pub source_notes: Vec<String>,
    /// The instant of the last completion.
    pub end: Time,
    /// What each drive counted until then, in the order of the tree. What layers
    /// do later on their own account, such as writing back what they hold, is
    /// carried out but not counted.
    pub drives: Vec<MemberStatistics>,
    /// What other layers counted until then, in the order of the tree.
    pub layers: Vec<LayerReadings>,
}

/// Runs one source on one tree of layers.
pub struct Engine {
    machine: Machine,
    source: Box<dyn Source>,
    arrivals: Vec<Request>,
    outcome: Outcome,
}

/// What the machine tells a run.
struct Run<'a, O> {
    source: &'a mut dyn Source,
    outcome: &'a mut Outcome,
    observer: &'a mut O,
}

impl Engine {
    /// An engine at time 0.
    pub fn new(tree: Tree, source: Box<dyn Source>) -> Engine {
        Engine {
            machine: Machine::new(tree),
            source,
            arrivals: Vec::new(),
            outcome: Outcome {
                requests: 0,
                completed: 0,
                lost: 0,
                out_of_range: 0,
                skipped_rows: 0,
                source_notes: Vec::new(),
                end: Time::ZERO,
                drives: Vec::new(),
                layers: Vec::new(),
            },
        }
    }

    /// Runs until the source has ended and nothing is in flight. A rebuild that
    /// is not done by then stays so.
    ///
    /// # Errors
    /// The source's, as soon as it has one.
    ///
    /// # Panics
    /// If a layer loses a request: nothing is in flight in any drive, and yet
    /// not every request has finished.
    pub fn run<O: Observer>(mut self, observer: &mut O) -> Result<Outcome, SourceError> {
        let mut counted = None;
        loop {
            let arrival = self.source.next_wake();
            let due = self.machine.next_wake();
            if arrival == Time::NEVER && self.machine.in_flight() == 0 && counted.is_none() {
                counted = Some((self.machine.drive_statistics(), self.machine.layer_readings()));
                let run = &mut Run { source: &mut *self.source, outcome: &mut self.outcome, observer };
                self.machine.rest(run);
                continue;
            }
            if arrival.min(due) == Time::NEVER {
                break;
            }
            if arrival <= due {
                let now = arrival.max(self.machine.now());
                self.source.wake(now, &mut self.arrivals)?;
                let run = &mut Run { source: &mut *self.source, outcome: &mut self.outcome, observer };
                self.machine.submit_all(now, &mut self.arrivals, run);
            } else {
                let run = &mut Run { source: &mut *self.source, outcome: &mut self.outcome, observer };
                self.machine.wake(run);
            }
        }
        let lost = self.machine.in_flight();
        assert_eq!(lost, 0, "a layer has lost {lost} requests");
        self.outcome.requests = self.machine.submitted();
        self.outcome.skipped_rows = self.source.skipped_rows();
        self.outcome.source_notes = self.source.notes();
        (self.outcome.drives, self.outcome.layers) = counted.unwrap_or_default();
        Ok(self.outcome)
    }
}

impl<O: Observer> Observer for Run<'_, O> {
    #[inline]
    fn finished(&mut self, finished: &Finished) {
        match finished.completion.status {
            Status::Done => self.outcome.completed += 1,
            Status::Lost => self.outcome.lost += 1,
            Status::OutOfRange => self.outcome.out_of_range += 1,
        }
        self.outcome.end = self.outcome.end.max(finished.completion.finished);
        self.observer.finished(finished);
    }

    #[inline]
    fn drive_io(&mut self, now: Time, drive: usize, request: &Request) {
        self.observer.drive_io(now, drive, request);
    }

    fn signalled(&mut self, now: Time, path: &[usize], signal: Signal) {
        self.observer.signalled(now, path, signal);
    }
}

impl<O: Observer> Above for Run<'_, O> {
    #[inline]
    fn follow(&mut self, finished: &Finished, next: &mut Vec<Request>) {
        self.source.completed(finished.completion.finished, &finished.completion, next);
    }
}
