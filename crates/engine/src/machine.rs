//! What both clocks drive: the layers, their alarms, and what is on its way
//! between them.

use crate::flight::Flights;
use crate::tree::Tree;
use crate::{Finished, Observer};
use fullstroke_contract::{
    Alarms, Below, Completion, Effect, Layer, LayerReadings, MemberStatistics, Order, Out, Refusal, Request,
    Signal,
};
use fullstroke_units::Time;
use std::collections::VecDeque;

/// What stands above the layers.
pub trait Above: Observer {
    /// A request has finished, and may be followed by others at once: they are
    /// pushed into `next`.
    fn follow(&mut self, _finished: &Finished, _next: &mut Vec<Request>) {}
}

impl Above for () {}

/// A stack's layers with all that happens between them. It knows no clock and
/// no source of requests: [`Engine`](crate::Engine) gives it virtual time and a
/// source, a live server real time and clients. The same events at the same
/// times lead to the same decisions under both.
///
/// - **Events in**: [`submit`](Machine::submit), [`order`](Machine::order),
///   [`advance`](Machine::advance), [`wake`](Machine::wake).
/// - **Effects out**: what `above` is told.
/// - **Getters**: [`next_wake`](Machine::next_wake), [`now`](Machine::now),
///   [`in_flight`](Machine::in_flight), [`tree`](Machine::tree).
///
/// The polling rule, once: before an event at `now`, call
/// [`advance`](Machine::advance) up to that instant; after it, ask
/// [`next_wake`](Machine::next_wake). A driver that is late calls with the
/// instant that it is, and everything that was due happens at the instants at
/// which it was due.
pub struct Machine {
    tree: Tree,
    alarms: Alarms,
    flights: Flights,
    follow_ups: Vec<Request>,
    out: Out,
    pending: VecDeque<Pending>,
    submitted: u64,
    now: Time,
}

/// An effect that has not been carried out yet.
#[derive(Clone, Copy, Debug)]
struct Pending {
    /// The layer that it came from.
    node: usize,
    /// The layer that sent the signal first, if it is one.
    sender: usize,
    effect: Effect,
}

impl Machine {
    /// The layers at time 0.
    pub fn new(tree: Tree) -> Machine {
        let alarms = Alarms::new(tree.len());
        let mut machine = Machine {
            tree,
            alarms,
            flights: Flights::default(),
            follow_ups: Vec::new(),
            out: Out::new(),
            pending: VecDeque::with_capacity(64),
            submitted: 0,
            now: Time::ZERO,
        };
        for node in 0..machine.tree.len() {
            machine.alarms.set(node, machine.tree.next_wake(node));
        }
        machine
    }

    /// When a layer wants to be woken; [`Time::NEVER`] if none does.
    #[inline]
    pub fn next_wake(&self) -> Time {
        self.alarms.first().1
    }

    /// The instant of the latest event.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Requests that have been submitted and have not finished.
    pub fn in_flight(&self) -> usize {
        self.flights.len()
    }

    /// Requests that have been submitted so far.
    pub fn submitted(&self) -> u64 {
        self.submitted
    }

    /// The layers.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// What each drive has counted, in the order of the tree.
    pub fn drive_statistics(&self) -> Vec<MemberStatistics> {
        self.tree.drive_statistics()
    }

    /// What other layers have counted, in the order of the tree.
    pub fn layer_readings(&self) -> Vec<LayerReadings> {
        self.tree.readings(self.now)
    }

    /// A request from above. Its id comes back in [`Finished`]; its origin is
    /// given here, by number of submission.
    #[inline]
    pub fn submit<A: Above>(&mut self, now: Time, request: Request, above: &mut A) {
        self.now = self.now.max(now);
        self.admit(request);
        self.settle(above);
    }

    /// Several requests from above that arrive at once, in order.
    #[inline]
    pub(crate) fn submit_all<A: Above>(&mut self, now: Time, requests: &mut Vec<Request>, above: &mut A) {
        self.now = self.now.max(now);
        requests.drain(..).for_each(|request| self.admit(request));
        self.settle(above);
    }

    /// Says something to the volume at `path` (the indices of the members on
    /// the way to it, from the root; empty for the uppermost volume).
    ///
    /// # Errors
    /// There is no such volume, or it refuses.
    pub fn order<A: Above>(
        &mut self,
        now: Time,
        path: &[usize],
        order: Order,
        above: &mut A,
    ) -> Result<(), Refusal> {
        self.now = self.now.max(now);
        let node = self.tree.volume_at(path)?;
        let now = self.now;
        let mut answer = Ok(());
        self.call(node, None, |layer, below, out| answer = layer.ordered(now, order, below, out));
        self.settle(above);
        answer
    }

    /// Nobody asks for anything any more: no volume goes on rebuilding.
    pub fn rest<A: Above>(&mut self, above: &mut A) {
        let volumes: Vec<Vec<usize>> = self.tree.volume_paths().map(<[usize]>::to_vec).collect();
        for path in volumes {
            // Volumes that rebuild nothing may refuse.
            let _ = self.order(self.now, &path, Order::Rest, above);
        }
    }

    /// Lets everything happen that is due up to and including `until`, each at
    /// its own instant.
    pub fn advance<A: Above>(&mut self, until: Time, above: &mut A) {
        while self.next_wake() <= until && self.next_wake() != Time::NEVER {
            self.wake(above);
        }
        if until != Time::NEVER {
            self.now = self.now.max(until);
        }
    }

    /// Lets the first thing happen that is due, whenever that is.
    #[inline]
    pub fn wake<A: Above>(&mut self, above: &mut A) {
        let (node, due) = self.alarms.first();
        if due == Time::NEVER {
            return;
        }
        self.now = self.now.max(due);
        let now = self.now;
        self.call(node, None, |layer, below, out| layer.wake(now, below, out));
        self.settle(above);
    }

    fn admit(&mut self, mut request: Request) {
        request.origin = self.submitted;
        self.submitted += 1;
        request.id = self.flights.take_off(self.now, request);
        let effect = Effect::Issue { member: 0, request };
        self.pending.push_back(Pending { node: Tree::ABOVE_ROOT, sender: Tree::ABOVE_ROOT, effect });
    }

    /// Carries effects from layer to layer until there are none.
    fn settle<A: Above>(&mut self, above: &mut A) {
        let now = self.now;
        while let Some(Pending { node, sender, effect }) = self.pending.pop_front() {
            match effect {
                Effect::Issue { member, request } => {
                    let child = self.tree.child(node, member as usize);
                    if let Some(drive) = self.tree.drive_number(child) {
                        above.drive_io(now, drive, &request);
                    }
                    self.call(child, None, |layer, below, out| layer.submit(now, request, below, out));
                }
                Effect::Complete(completion) => match self.tree.parent(node) {
                    Some((parent, member)) => {
                        let at = completion.finished;
                        self.call(parent, None, |layer, below, out| {
                            layer.completed(at, member, completion, below, out)
                        });
                    }
                    None => self.land(completion, above),
                },
                Effect::Signal(signal) => self.rise(node, sender, signal, above),
            }
        }
    }

    /// A signal reaches the layer above `node`. It is observed once, however
    /// far it is passed on.
    fn rise<A: Above>(&mut self, node: usize, sender: usize, signal: Signal, above: &mut A) {
        let now = self.now;
        if sender == node {
            above.signalled(now, self.tree.path(node), signal);
        }
        if let Some((parent, member)) = self.tree.parent(node) {
            let passed = Some((sender, signal));
            self.call(parent, passed, |layer, below, out| layer.signalled(now, member, signal, below, out));
        }
    }

    /// A request has reached the top again.
    fn land<A: Above>(&mut self, mut completion: Completion, above: &mut A) {
        let flight = self.flights.land(completion.id);
        completion.id = flight.id;
        let finished = Finished {
            origin: flight.origin,
            operation: flight.operation,
            extent: flight.extent,
            process: flight.process,
            workload: flight.workload,
            arrived: flight.arrived,
            completion,
        };
        above.finished(&finished);
        let mut follow_ups = std::mem::take(&mut self.follow_ups);
        above.follow(&finished, &mut follow_ups);
        follow_ups.drain(..).for_each(|request| self.admit(request));
        self.follow_ups = follow_ups;
    }

    /// Calls a layer, then publishes its gauge and its alarm and collects its
    /// effects. A signal that it was given and gives on, `passed`, stays that
    /// of its first sender.
    #[inline]
    fn call(
        &mut self,
        node: usize,
        passed: Option<(usize, Signal)>,
        event: impl FnOnce(&mut dyn Layer, Below<'_>, &mut Out),
    ) {
        let next_wake = self.tree.call(node, |layer, below| event(layer, below, &mut self.out));
        self.alarms.set(node, next_wake);
        if self.out.effects().is_empty() {
            return;
        }
        self.pending.extend(self.out.drain().map(|effect| match (effect, passed) {
            (Effect::Signal(signal), Some((sender, first))) if signal == first => {
                Pending { node, sender, effect }
            }
            _ => Pending { node, sender: node, effect },
        }));
    }
}
