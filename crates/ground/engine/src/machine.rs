//! The part common to virtual and real time: nodes, alarms, and effects on the way between nodes.

use crate::flight::Flights;
use crate::graph::{Edge, Graph, LowerEnd};
use crate::{Finished, Observer};
use fullstroke_contract::{
    Alarms, Completion, Counters, Effect, Effects, LayerOrder, Node, NodeContext, NodeId, Notice,
    Port, Refusal, Request, RequestStatus, SourceError, Wake,
};
use fullstroke_units::Time;

/// A graph of nodes with all events between them. A machine has no clock: [`Engine`](crate::Engine)
/// gives it virtual time; a live server gives it real time and clients. The same events at the same
/// times lead to the same decisions in both cases.
///
/// - **Events in**: [`submit`](Machine::submit), [`order`](Machine::order),
///   [`advance`](Machine::advance), [`wake`](Machine::wake).
/// - **Effects out**: calls of the observer.
/// - **Getters**: [`next_wake`](Machine::next_wake), [`now`](Machine::now),
///   [`in_flight`](Machine::in_flight), [`graph`](Machine::graph).
///
/// The polling rule: before an event at `now`, call [`advance`](Machine::advance) up to `now`.
/// After the event, ask [`next_wake`](Machine::next_wake). A late driver passes the actual time.
/// Every past event then happens at the time when it was due.
///
/// At one instant, nodes are woken in the order of the graph, from the top. Effects are carried out
/// in the order of issue, from one queue for the whole graph. Therefore no node is called while a
/// call of the same node is running.
pub struct Machine {
    graph: Graph,
    alarms: Alarms,
    /// By node: the kind of the alarm.
    awaited: Vec<Awaited>,
    /// Number of alarms for work, and of these the number of workloads' alarms.
    work: usize,
    arrivals: usize,
    flights: Flights,
    /// Effects that wait to be carried out.
    out: Effects,
    submitted: u64,
    ended: CompletedCounts,
    now: Time,
}

/// Number of completed requests by result.
///
/// The machine counts results itself. An observer that counts for another observer would have to
/// pass every event on. It would lose the events of any method added later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CompletedCounts {
    /// Number of requests that were done.
    pub(crate) completed: u64,
    /// Number of requests to lost data.
    pub(crate) lost: u64,
    /// Number of requests that a drive with zones refused.
    pub(crate) refused: u64,
    /// Number of requests outside the volume.
    pub(crate) out_of_range: u64,
    /// Time of the last completion.
    pub(crate) last: Time,
}

impl CompletedCounts {
    #[inline]
    fn count(&mut self, completion: &Completion) {
        match completion.status {
            RequestStatus::Done | RequestStatus::Differs => self.completed += 1,
            RequestStatus::Lost => self.lost += 1,
            RequestStatus::Refused => self.refused += 1,
            RequestStatus::OutOfRange => self.out_of_range += 1,
        }
        self.last = self.last.max(completion.finished);
    }
}

/// The kind of a node's alarm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Awaited {
    root: bool,
    work: bool,
}

impl Machine {
    /// Creates a machine at time 0.
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
            out: Effects::new(),
            submitted: 0,
            ended: CompletedCounts::default(),
            now: Time::ZERO,
        };
        for node in machine.graph.nodes() {
            machine.set_alarm(node, machine.graph.next_wake(node));
        }
        machine
    }

    /// Returns the time of the next wake-up; [`Time::NEVER`] if no node wants one.
    #[inline]
    pub fn next_wake(&self) -> Time {
        self.alarms.first().1
    }

    /// Returns true if a node waits for work, not only for chores.
    #[inline]
    pub fn has_work(&self) -> bool {
        self.work > 0
    }

    /// Returns true if a workload wants to be woken.
    #[inline]
    pub fn has_arrivals(&self) -> bool {
        self.arrivals > 0
    }

    /// Returns the time of the latest event.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Returns the number of requests from workloads or from outside that have not completed.
    #[inline]
    pub fn in_flight(&self) -> usize {
        self.flights.len()
    }

    /// Returns the number of requests from workloads or from outside so far.
    pub fn submitted(&self) -> u64 {
        self.submitted
    }

    /// Returns the results of all requests so far.
    pub(crate) fn ended(&self) -> CompletedCounts {
        self.ended
    }

    /// Returns the graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Returns the nodes' counters.
    pub fn counters(&self) -> Counters {
        self.graph.count(self.now)
    }

    /// Returns the counters at an instant between now and the [next wake](Machine::next_wake).
    pub(crate) fn counters_at(&self, at: Time) -> Counters {
        self.graph.count(at.max(self.now))
    }

    /// Takes the error with which a workload has stopped; `None` if no workload has stopped.
    #[inline]
    pub fn take_stop(&mut self) -> Option<SourceError> {
        self.out.take_stop()
    }

    /// Submits a request from outside. The id comes back in [`Finished`]. The machine replaces the
    /// origin by the number of the submission.
    #[inline]
    pub fn submit<O: Observer>(&mut self, now: Time, request: Request, observer: &mut O) {
        // A live driver may pass a time before the latest event. The clock of the machine does not
        // go back.
        self.now = self.now.max(now);
        self.out.of(Graph::OUTSIDE).issue(0, request);
        self.carry_out_effects(observer);
    }

    /// Gives an order to the volume at `path`: the member indices from the root, empty for the
    /// uppermost volume. [`LayerOrder::Slow`] goes to the drive at `path`.
    ///
    /// # Errors
    /// There is no such volume or drive, or it refuses the order.
    pub fn order<O: Observer>(
        &mut self,
        now: Time,
        path: &[usize],
        order: LayerOrder,
        observer: &mut O,
    ) -> Result<(), Refusal> {
        self.now = self.now.max(now);
        let node = match order {
            LayerOrder::Slow { .. } => self.graph.drive_at(path)?,
            _ => self.graph.volume_at(path)?,
        };
        let now = self.now;
        let mut answer = Ok(());
        self.call(node, |volume, cx| answer = volume.ordered(now, order, cx));
        self.carry_out_effects(observer);
        answer
    }

    /// Ends all background work, because no more requests will come. Volumes stop rebuilding;
    /// watchers of opportunities stop asking.
    pub fn rest<O: Observer>(&mut self, observer: &mut O) {
        // Watchers of opportunities would otherwise ask for ever, and the run would never end. A
        // volume without a rebuild may refuse.
        let now = self.now;
        for node in self.graph.nodes() {
            self.call(node, |node, cx| {
                drop(node.ordered(now, LayerOrder::Rest, cx))
            });
        }
        self.carry_out_effects(observer);
    }

    /// Carries out all events up to and including `until`, each at its own instant.
    pub fn advance<O: Observer>(&mut self, until: Time, observer: &mut O) {
        while self.next_wake() <= until && self.next_wake() != Time::NEVER {
            self.wake(observer);
        }
        // `Time::NEVER` asks for all events, and is no time that the clock can show.
        if until != Time::NEVER {
            self.now = self.now.max(until);
        }
    }

    /// Carries out the next event, at any time in the future.
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
        self.carry_out_effects(observer);
    }

    /// Carries effects from node to node until none are left.
    fn carry_out_effects<O: Observer>(&mut self, observer: &mut O) {
        let now = self.now;
        while let Some(&(node, ref effect)) = self.out.first() {
            match *effect {
                Effect::Issue { port, mut request } => {
                    // The effect is removed before the call, because the call adds effects to the
                    // same queue.
                    self.out.drop_first();
                    let Edge {
                        lower,
                        lower_end,
                        by_root,
                        lower_kind,
                        ..
                    } = *self.graph.lower(node, port);
                    // A request gets its number at the first edge. The observers below then see the
                    // number of the workload's request.
                    if by_root {
                        self.begin_flight(&mut request);
                    }
                    match lower_kind {
                        LowerEnd::Layer => {}
                        LowerEnd::Drive(drive) => {
                            observer.drive_io(now, drive as usize, &request);
                            // The gauge is read before the call below, so the new request is not
                            // counted.
                            let ahead = self.graph.gauge_below(node, port).queue_length;
                            observer.drive_ahead(now, drive as usize, &request, ahead);
                        }
                        LowerEnd::Arm { drive, arm } => {
                            observer.arm_io(now, drive as usize, arm.into(), &request);
                        }
                    }
                    self.call(lower, |node, cx| node.submit(now, lower_end, request, cx));
                }
                Effect::Complete { port, completion } => {
                    self.out.drop_first();
                    debug_assert!(
                        completion.finished <= now,
                        "a node says at {now:?} that a request has ended at {:?}",
                        completion.finished
                    );
                    let Some(up) = self.graph.upper(node, port) else {
                        unreachable!("a workload is asked for nothing")
                    };
                    match up.lower_kind {
                        LowerEnd::Layer => {}
                        LowerEnd::Drive(drive) => observer.drive_done(drive as usize, &completion),
                        LowerEnd::Arm { drive, arm } => {
                            observer.arm_done(drive as usize, arm.into(), &completion)
                        }
                    }
                    if up.root {
                        self.end_flight(up.node, up.port, completion, observer);
                    } else {
                        // The upper node continues at the end of the request. With `now`, a late
                        // wake-up would shift its timeline.
                        let at = completion.finished;
                        self.call(up.node, |node, cx| {
                            node.completed(at, up.port, completion, cx)
                        });
                    }
                }
                Effect::Notice { port, notice } => {
                    self.out.drop_first();
                    self.rise(node, port, notice, observer);
                }
            }
        }
    }

    /// Takes a notice to the node above `node`. Observers see a notice once, at the first sender,
    /// even if nodes pass the notice on.
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
            // `Time::NEVER`, the mark for the present, becomes the present.
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

    /// Ends a request at the workload that issued it, or outside.
    fn end_flight<O: Observer>(
        &mut self,
        root: NodeId,
        from: Port,
        mut completion: Completion,
        observer: &mut O,
    ) {
        let flight = self.flights.end_flight(completion.id);
        assert!(
            completion.submitted == flight.arrived || completion.status != RequestStatus::Done,
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
        let finished = Finished {
            origin: flight.origin,
            operation: flight.operation,
            extent: flight.extent,
            process: flight.process,
            workload: flight.workload,
            arrived: flight.arrived,
            completion,
        };
        observer.finished(&finished);
        if root != Graph::OUTSIDE {
            self.call(root, |workload, cx| {
                let completion = finished.completion;
                workload.completed(completion.finished, from, completion, cx)
            });
        }
    }

    /// Calls a node, then publishes its gauge and sets its alarm.
    #[inline]
    fn call(&mut self, node: NodeId, event: impl FnOnce(&mut dyn Node, &mut NodeContext<'_>)) {
        let next_wake = self.graph.call(node, self.out.of(node), event);
        self.set_alarm(node, next_wake);
    }

    /// Gives a workload's request a number and a place among the requests in flight.
    #[inline]
    fn begin_flight(&mut self, request: &mut Request) {
        request.origin = self.submitted;
        self.submitted += 1;
        request.id = self.flights.begin_flight(self.now, request);
    }

    #[inline]
    fn set_alarm(&mut self, node: NodeId, wake: Wake) {
        let node = node.0 as usize;
        self.alarms.set(node, wake.at());
        let awaited = &mut self.awaited[node];
        let work = wake.is_work();
        // Most events leave the kind of a node's alarm unchanged, and the counters are then right
        // already.
        if awaited.work != work {
            awaited.work = work;
            // Adding `usize::MAX` with wrap-around subtracts 1.
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
