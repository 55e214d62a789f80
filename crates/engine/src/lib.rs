//! The virtual clock: drives a tree of layers as fast as the machine goes.
//!
//! [`Engine`] holds the layers, tells each the time with every event, carries
//! effects from one to the next, and wakes whoever asked first. Events at one
//! instant are served in the order of the tree, from the source down, so that a
//! run repeats to the bit.

mod alarm;
mod flight;
mod tree;

pub use tree::{MemberName, Node, Tree};

use alarm::Alarms;
use flight::Flights;
use fullstroke_contract::{
    Below, Completion, Effect, Extent, Layer, MemberStatistics, Operation, Out, Request, Signal,
};
use fullstroke_contract::{Source, SourceError, Status};
use fullstroke_units::Time;
use std::collections::VecDeque;

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
    /// When it arrived.
    pub arrived: Time,
    /// How and when it ended, and where the time went.
    pub completion: Completion,
}

/// Sees what happens in a run. Every method has an empty default.
pub trait Observer {
    /// A request of the workload has finished.
    fn finished(&mut self, _finished: &Finished) {}
    /// The drive number `drive` (in the order of the tree) was given I/O on
    /// behalf of request `origin`.
    fn drive_io(&mut self, _origin: u64, _drive: usize) {}
    /// A signal reached the top of the stack.
    fn signalled(&mut self, _now: Time, _signal: Signal) {}
}

/// An observer that looks away.
impl Observer for () {}

/// What a run amounted to.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// The instant of the last completion.
    pub end: Time,
    /// What each drive counted, in the order of the tree.
    pub drives: Vec<MemberStatistics>,
}

/// Runs one source on one tree of layers.
pub struct Engine {
    tree: Tree,
    source: Box<dyn Source>,
    alarms: Alarms,
    flights: Flights,
    arrivals: Vec<Request>,
    out: Out,
    pending: VecDeque<(usize, Effect)>,
    outcome: Outcome,
}

/// The alarm of the source; node `n` of the tree has alarm `n + 1`.
const SOURCE: usize = 0;

impl Engine {
    /// An engine at time 0.
    pub fn new(tree: Tree, source: Box<dyn Source>) -> Engine {
        let alarms = Alarms::new(tree.len() + 1);
        Engine {
            tree,
            source,
            alarms,
            flights: Flights::default(),
            arrivals: Vec::new(),
            out: Out::new(),
            pending: VecDeque::with_capacity(64),
            outcome: Outcome {
                requests: 0,
                completed: 0,
                lost: 0,
                out_of_range: 0,
                skipped_rows: 0,
                end: Time::ZERO,
                drives: Vec::new(),
            },
        }
    }

    /// Runs until the source has ended and nothing is in flight.
    ///
    /// # Errors
    /// The source's, as soon as it has one.
    ///
    /// # Panics
    /// If a layer loses a request: nothing is in flight in any drive, and yet
    /// not every request has finished.
    pub fn run<O: Observer>(mut self, observer: &mut O) -> Result<Outcome, SourceError> {
        self.alarms.set(SOURCE, self.source.next_wake());
        let mut now = Time::ZERO;
        loop {
            let (alarm, due) = self.alarms.first();
            if due == Time::NEVER {
                break;
            }
            now = now.max(due);
            if alarm == SOURCE {
                self.source.wake(now, &mut self.arrivals)?;
                self.admit(now);
            } else {
                self.call(alarm - 1, |layer, below, out| layer.wake(now, below, out));
            }
            self.settle(now, observer);
            self.alarms.set(SOURCE, self.source.next_wake());
        }
        assert_eq!(self.flights.len(), 0, "a layer has lost {} requests", self.flights.len());
        self.outcome.skipped_rows = self.source.skipped_rows();
        self.outcome.drives = self.tree.drive_statistics();
        Ok(self.outcome)
    }

    /// Submits what the source has issued to the root.
    fn admit(&mut self, now: Time) {
        for mut request in self.arrivals.drain(..) {
            request.origin = self.outcome.requests;
            self.outcome.requests += 1;
            request.id = self.flights.take_off(now, request);
            self.pending.push_back((Tree::ABOVE_ROOT, Effect::Issue { member: 0, request }));
        }
    }

    /// Carries effects from layer to layer until there are none.
    fn settle<O: Observer>(&mut self, now: Time, observer: &mut O) {
        while let Some((node, effect)) = self.pending.pop_front() {
            match effect {
                Effect::Issue { member, request } => {
                    let child = self.tree.child(node, member as usize);
                    if let Some(drive) = self.tree.drive_number(child) {
                        observer.drive_io(request.origin, drive);
                    }
                    self.call(child, |layer, below, out| layer.submit(now, request, below, out));
                }
                Effect::Complete(completion) => match self.tree.parent(node) {
                    Some((parent, member)) => {
                        let at = completion.finished;
                        self.call(parent, |layer, below, out| {
                            layer.completed(at, member, completion, below, out)
                        });
                    }
                    None => self.land(now, completion, observer),
                },
                Effect::Signal(signal) => match self.tree.parent(node) {
                    Some((parent, member)) => {
                        self.call(parent, |layer, below, out| {
                            layer.signalled(now, member, signal, below, out)
                        });
                    }
                    None => observer.signalled(now, signal),
                },
            }
        }
    }

    /// A request has reached the top again.
    fn land<O: Observer>(&mut self, now: Time, mut completion: Completion, observer: &mut O) {
        let flight = self.flights.land(completion.id);
        completion.id = flight.id;
        match completion.status {
            Status::Done => self.outcome.completed += 1,
            Status::Lost => self.outcome.lost += 1,
            Status::OutOfRange => self.outcome.out_of_range += 1,
        }
        self.outcome.end = self.outcome.end.max(completion.finished);
        observer.finished(&Finished {
            origin: flight.origin,
            operation: flight.operation,
            extent: flight.extent,
            process: flight.process,
            arrived: flight.arrived,
            completion,
        });
        self.source.completed(completion.finished, &completion, &mut self.arrivals);
        self.admit(now);
    }

    /// Calls a layer, then publishes its gauge and its alarm and collects its
    /// effects.
    #[inline]
    fn call(&mut self, node: usize, event: impl FnOnce(&mut dyn Layer, Below<'_>, &mut Out)) {
        let next_wake = self.tree.call(node, |layer, below| event(layer, below, &mut self.out));
        self.alarms.set(node + 1, next_wake);
        self.pending.extend(self.out.drain().map(|effect| (node, effect)));
    }
}
