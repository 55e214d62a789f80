//! What both clocks drive: the nodes, their alarms, and what is on its way
//! between them.

use crate::flight::Flights;
use crate::graph::{Edge, Graph, Seat};
use crate::{Finished, Observer};
use fullstroke_contract::{
    Alarms, Completion, Counters, Cx, Effect, Node, NodeId, Notice, Order, Out, Port, Refusal,
    Request, SourceError, Status, Wake,
};
use fullstroke_units::Time;

/// A graph of nodes with all that happens between them. It knows no clock:
/// [`Engine`](crate::Engine) gives it virtual time, a live server real time and
/// clients. The same events at the same times lead to the same decisions under
/// both.
///
/// - **Events in**: [`submit`](Machine::submit), [`order`](Machine::order),
///   [`advance`](Machine::advance), [`wake`](Machine::wake).
/// - **Effects out**: what the observer is told.
/// - **Getters**: [`next_wake`](Machine::next_wake), [`now`](Machine::now),
///   [`in_flight`](Machine::in_flight), [`graph`](Machine::graph).
///
/// The polling rule, once: before an event at `now`, call
/// [`advance`](Machine::advance) up to that instant; after it, ask
/// [`next_wake`](Machine::next_wake). A driver that is late calls with the
/// instant that it is, and everything that was due happens at the instants at
/// which it was due.
///
/// At one instant, nodes are woken in the order of the graph, from the top.
/// Effects are carried out in the order in which they were issued, one queue for
/// the whole graph, so that a node is never called while it is being called.
pub struct Machine {
    graph: Graph,
    alarms: Alarms,
    /// By node: what its alarm counts among.
    awaited: Vec<Awaited>,
    /// Alarms that a run must wait for, and those of workloads among them.
    work: usize,
    arrivals: usize,
    flights: Flights,
    /// What nodes have done and is not carried out yet.
    out: Out,
    submitted: u64,
    ended: Ended,
    now: Time,
}

/// How the requests that have finished did so.
///
/// The machine counts them itself. An observer that counted on behalf of another one would have to pass every other
/// event on, and would lose those of a method that is added later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ended {
    /// Requests that were done.
    pub(crate) completed: u64,
    /// Requests that touched lost data.
    pub(crate) lost: u64,
    /// Requests outside of the volume.
    pub(crate) out_of_range: u64,
    /// The instant of the last completion.
    pub(crate) last: Time,
}

impl Ended {
    #[inline]
    fn count(&mut self, completion: &Completion) {
        match completion.status {
            Status::Done | Status::Differs => self.completed += 1,
            Status::Lost => self.lost += 1,
            Status::OutOfRange => self.out_of_range += 1,
        }
        self.last = self.last.max(completion.finished);
    }
}

/// What the alarm of a node is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Awaited {
    root: bool,
    work: bool,
}

impl Machine {
    /// The nodes at time 0.
    pub fn new(graph: Graph) -> Machine {
        let roots = graph.nodes().map(|node| Awaited {
            root: graph.is_root(node),
            work: false,
        });
        let mut machine = Machine {
            alarms: Alarms::new(graph.len()),
            awaited: roots.collect(),
            work: 0,
            arrivals: 0,
            graph,
            flights: Flights::default(),
            out: Out::new(),
            submitted: 0,
            ended: Ended::default(),
            now: Time::ZERO,
        };
        for node in machine.graph.nodes() {
            machine.set_alarm(node, machine.graph.next_wake(node));
        }
        machine
    }

    /// When a node wants to be woken; [`Time::NEVER`] if none does.
    #[inline]
    pub fn next_wake(&self) -> Time {
        self.alarms.first().1
    }

    /// Whether anything but chores is left to wake nodes for.
    #[inline]
    pub fn has_work(&self) -> bool {
        self.work > 0
    }

    /// Whether a workload wants to be woken.
    #[inline]
    pub fn has_arrivals(&self) -> bool {
        self.arrivals > 0
    }

    /// The instant of the latest event.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Requests that workloads have issued, or that were submitted from outside,
    /// and that have not finished.
    #[inline]
    pub fn in_flight(&self) -> usize {
        self.flights.len()
    }

    /// Requests that have been issued or submitted so far.
    pub fn submitted(&self) -> u64 {
        self.submitted
    }

    /// How requests have finished so far.
    pub(crate) fn ended(&self) -> Ended {
        self.ended
    }

    /// The nodes.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// What the nodes have counted.
    pub fn counters(&self) -> Counters {
        self.graph.count(self.now)
    }

    /// The same at an instant between now and the [next wake](Machine::next_wake).
    pub(crate) fn counters_at(&self, at: Time) -> Counters {
        self.graph.count(at.max(self.now))
    }

    /// Takes the error with which a workload has stopped, if one has.
    #[inline]
    pub fn take_stop(&mut self) -> Option<SourceError> {
        self.out.take_stop()
    }

    /// A request from outside. Its id comes back in [`Finished`]; its origin is
    /// given here, by number of submission.
    #[inline]
    pub fn submit<O: Observer>(&mut self, now: Time, request: Request, observer: &mut O) {
        self.now = self.now.max(now);
        self.out.of(Graph::OUTSIDE).issue(0, request);
        self.settle(observer);
    }

    /// Says something to the volume at `path` (the indices of the members on
    /// the way to it, from the root; empty for the uppermost volume).
    ///
    /// # Errors
    /// There is no such volume, or it refuses.
    pub fn order<O: Observer>(
        &mut self,
        now: Time,
        path: &[usize],
        order: Order,
        observer: &mut O,
    ) -> Result<(), Refusal> {
        self.now = self.now.max(now);
        let node = self.graph.volume_at(path)?;
        let now = self.now;
        let mut answer = Ok(());
        self.call(node, |volume, cx| answer = volume.ordered(now, order, cx));
        self.settle(observer);
        answer
    }

    /// Nobody asks for anything any more: no volume goes on rebuilding, and no opportunity asks.
    pub fn rest<O: Observer>(&mut self, observer: &mut O) {
        let volumes: Vec<Vec<usize>> = self.graph.volume_paths().map(<[usize]>::to_vec).collect();
        for path in volumes {
            // Volumes that rebuild nothing may refuse.
            let _ = self.order(self.now, &path, Order::Rest, observer);
        }
        // What watches for opportunities asks for nothing of its own any more: a run would not end
        // while it does.
        let now = self.now;
        for node in self.graph.nodes() {
            self.call(node, |node, cx| drop(node.ordered(now, Order::Rest, cx)));
        }
        self.settle(observer);
    }

    /// Lets everything happen that is due up to and including `until`, each at
    /// its own instant.
    pub fn advance<O: Observer>(&mut self, until: Time, observer: &mut O) {
        while self.next_wake() <= until && self.next_wake() != Time::NEVER {
            self.wake(observer);
        }
        if until != Time::NEVER {
            self.now = self.now.max(until);
        }
    }

    /// Lets the first thing happen that is due, whenever that is.
    #[inline]
    pub fn wake<O: Observer>(&mut self, observer: &mut O) {
        let (node, due) = self.alarms.first();
        if due == Time::NEVER {
            return;
        }
        self.now = self.now.max(due);
        let now = self.now;
        debug_assert!(self.out.is_empty(), "effects of an earlier event wait");
        self.call(NodeId(node as u32), |node, cx| node.wake(now, cx));
        self.settle(observer);
    }

    /// Carries effects from node to node until there are none.
    fn settle<O: Observer>(&mut self, observer: &mut O) {
        let now = self.now;
        while let Some((node, effect)) = self.out.take_first() {
            match effect {
                Effect::Issue { port, mut request } => {
                    let Edge {
                        lower,
                        lower_end,
                        by_root,
                        seat,
                        ..
                    } = *self.graph.lower(node, port);
                    if by_root {
                        self.take_off(&mut request);
                    }
                    match seat {
                        Seat::Layer => {}
                        Seat::Drive(drive) => {
                            observer.drive_io(now, drive as usize, &request);
                            let ahead = self.graph.gauge_below(node, port).queue_length;
                            observer.drive_ahead(now, drive as usize, &request, ahead);
                        }
                        Seat::Arm { drive, arm } => {
                            observer.arm_io(now, drive as usize, arm.into(), &request);
                        }
                    }
                    self.call(lower, |node, cx| node.submit(now, lower_end, request, cx));
                }
                Effect::Complete { port, completion } => {
                    debug_assert!(
                        completion.finished <= now,
                        "a node says at {now:?} that a request has ended at {:?}",
                        completion.finished
                    );
                    let Some(up) = self.graph.upper(node, port) else {
                        unreachable!("a workload is asked for nothing")
                    };
                    match up.seat {
                        Seat::Layer => {}
                        Seat::Drive(drive) => observer.drive_done(drive as usize, &completion),
                        Seat::Arm { drive, arm } => {
                            observer.arm_done(drive as usize, arm.into(), &completion)
                        }
                    }
                    if up.root {
                        self.land(up.node, up.port, completion, observer);
                    } else {
                        let at = completion.finished;
                        self.call(up.node, |node, cx| {
                            node.completed(at, up.port, completion, cx)
                        });
                    }
                }
                Effect::Notice { port, notice } => self.rise(node, port, notice, observer),
            }
        }
    }

    /// Notice reaches the node above `node`. It is observed once, where it is
    /// first given, however far it is passed on.
    fn rise<O: Observer>(
        &mut self,
        node: NodeId,
        port: Port,
        mut notice: Notice,
        observer: &mut O,
    ) {
        let now = self.now;
        if notice.sender.is_none() {
            notice.sender = Some(node);
            notice.at = notice.at.min(now);
            observer.noticed(self.graph.path(node), &notice);
        }
        let above = self
            .graph
            .upper(node, port)
            .filter(|up| up.node != Graph::OUTSIDE);
        if let Some(up) = above {
            self.call(up.node, |node, cx| node.noticed(now, up.port, notice, cx));
        }
    }

    /// A request has come back to the workload that issued it, or outside.
    fn land<O: Observer>(
        &mut self,
        root: NodeId,
        from: Port,
        mut completion: Completion,
        observer: &mut O,
    ) {
        let flight = self.flights.land(completion.id);
        assert!(
            completion.submitted == flight.arrived || completion.status != Status::Done,
            "request {} arrived at {:?}, and its answer counts from {:?}",
            flight.origin,
            flight.arrived,
            completion.submitted
        );
        debug_assert_eq!(
            completion.breakdown.response(),
            completion.finished.since(completion.submitted),
            "the parts of a response time add up, for request {}: {completion:?}",
            flight.origin
        );
        completion.id = flight.id;
        self.ended.count(&completion);
        observer.finished(&Finished {
            origin: flight.origin,
            operation: flight.operation,
            extent: flight.extent,
            process: flight.process,
            workload: flight.workload,
            arrived: flight.arrived,
            completion,
        });
        if root != Graph::OUTSIDE {
            self.call(root, |workload, cx| {
                workload.completed(completion.finished, from, completion, cx)
            });
        }
    }

    /// Calls a node, then publishes its gauge and its alarm.
    #[inline]
    fn call(&mut self, node: NodeId, event: impl FnOnce(&mut dyn Node, &mut Cx<'_>)) {
        let next_wake = self.graph.call(node, self.out.of(node), event);
        self.set_alarm(node, next_wake);
    }

    /// A request of a workload gets its number, and a place among those in flight.
    #[inline]
    fn take_off(&mut self, request: &mut Request) {
        request.origin = self.submitted;
        self.submitted += 1;
        request.id = self.flights.take_off(self.now, request);
    }

    #[inline]
    fn set_alarm(&mut self, node: NodeId, wake: Wake) {
        let node = node.0 as usize;
        self.alarms.set(node, wake.at());
        let awaited = &mut self.awaited[node];
        let work = wake.is_work();
        if awaited.work != work {
            awaited.work = work;
            let step = if work { 1 } else { usize::MAX };
            self.work = self.work.wrapping_add(step);
            if awaited.root {
                self.arrivals = self.arrivals.wrapping_add(step);
            }
            debug_assert!(
                self.arrivals <= self.work && self.work <= self.awaited.len(),
                "{} nodes want work, {} of them workloads, of {} nodes",
                self.work,
                self.arrivals,
                self.awaited.len()
            );
        }
    }
}
