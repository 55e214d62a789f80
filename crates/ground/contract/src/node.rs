//! The interface of every node in a machine: a state machine with ports that never reads a clock.

use crate::{
    Completion, Counters, Extent, Gauge, LayerOrder, LayersBelow, NodeId, Notice, Refusal, Request,
    RequestId, Signal, SourceError,
};
use fullstroke_units::Time;
use std::any::Any;
use std::collections::VecDeque;

/// One end of an edge between two nodes. Requests arrive at a node's upper ports; the node issues
/// requests at its lower ports. Each side of a node numbers its ports from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Port(pub u16);

impl Port {
    /// The first port, and the only port of a node with one port.
    pub const FIRST: Port = Port(0);

    /// Returns port number `index`.
    ///
    /// # Panics
    /// If `index` is above 65,535.
    #[inline]
    pub fn of(index: usize) -> Port {
        Port(u16::try_from(index).expect("a node has at most 65,536 ports a side"))
    }

    /// Returns the number of the port.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The next wake-up time of a node. A run waits for work, but not for chores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// A wake-up for something that must happen before a run ends: a request is served, issued or
    /// waits. [`Time::NEVER`] = no wake-up.
    Work(Time),
    /// A wake-up for an endless periodic task, such as a flusher's rounds or a check of the drives'
    /// idle times. A run ends when only chores are left.
    Chore(Time),
}

impl Wake {
    /// No wake-up.
    pub const NEVER: Wake = Wake::Work(Time::NEVER);

    /// Returns the wake-up time of work or of a chore.
    #[inline]
    pub const fn at(self) -> Time {
        match self {
            Wake::Work(at) | Wake::Chore(at) => at,
        }
    }

    /// Returns true if a run must wait for this wake-up.
    #[inline]
    pub fn is_work(self) -> bool {
        // A node without an alarm says `NEVER`, a kind of work. A run must not wait for this alarm.
        matches!(self, Wake::Work(at) if at != Time::NEVER)
    }
}

impl From<Time> for Wake {
    /// Converts a time to a wake-up for work, the usual case.
    #[inline]
    fn from(at: Time) -> Wake {
        Wake::Work(at)
    }
}

/// One node of a machine's graph: a workload, a layer of the host, a controller, a volume, a link,
/// a drive.
///
/// - **Events in**: [`submit`](Node::submit), [`completed`](Node::completed),
///   [`noticed`](Node::noticed), [`ordered`](Node::ordered), [`wake`](Node::wake). A node without
///   upper ports, such as a workload, never gets a request. A node without lower ports never gets a
///   completion.
/// - **Effects out**: through the context. The driver carries effects out after the call of the
///   node has returned.
/// - **Getters**: [`next_wake`](Node::next_wake), [`owners`](Node::owners), [`gauge`](Node::gauge),
///   [`count`](Node::count).
///
/// The polling rule: after each event the driver takes the effects, then asks `next_wake`. Time is
/// monotonic over all calls to a node. An early wake-up is harmless. A late wake-up does not shift
/// the node's own timeline. Events of the time between carry their original instants, and the node
/// catches up with all of them before it handles a new event.
pub trait Node: Any + Send {
    /// Handles a request that arrives at the upper port `from`. The completion goes back through
    /// the same port.
    fn submit(&mut self, _now: Time, _from: Port, _request: Request, _cx: &mut NodeContext<'_>) {
        unreachable!("a node below another node implements the handling of requests")
    }

    /// Handles the completion of a request that this node issued at the lower port `from`.
    fn completed(
        &mut self,
        _now: Time,
        _from: Port,
        _completion: Completion,
        _cx: &mut NodeContext<'_>,
    ) {
        unreachable!("a node that issues requests implements the handling of completions")
    }

    /// Wakes the node at the time that it asked for, or at any other time.
    fn wake(&mut self, now: Time, cx: &mut NodeContext<'_>);

    /// Handles a notice from the node at lower port `from`. The default passes the notice on to the
    /// [owners](Node::owners) of its addresses, translated into their addresses. A notice about
    /// addresses without owner ends here. A notice without addresses goes up unchanged.
    fn noticed(&mut self, _now: Time, from: Port, notice: Notice, cx: &mut NodeContext<'_>) {
        self.pass_on(from, notice, cx.out);
    }

    /// Passes a notice on upwards, as the default of [`noticed`](Node::noticed) does.
    fn pass_on(&self, from: Port, notice: Notice, out: &mut Effects) {
        match notice.signal.extent() {
            None => out.notice(Port::FIRST, notice),
            Some(extent) => self.owners(from, extent, &mut |port, extent| {
                out.notice(
                    port,
                    Notice {
                        signal: notice.signal.at_extent(extent),
                        ..notice
                    },
                );
            }),
        }
    }

    /// Calls `owner` for each part of `extent`, an extent below the lower port `from`. The
    /// arguments are the upper port that owns the part, and the part in the addresses above. Calls
    /// come in ascending order of the addresses below. Addresses without data of an upper port,
    /// such as parity, have no owner. By default, addresses are the same above and below.
    fn owners(&self, _from: Port, extent: Extent, owner: &mut dyn FnMut(Port, Extent)) {
        owner(Port::FIRST, extent);
    }

    /// Carries out an operator's order about a member.
    ///
    /// # Errors
    /// The node has no members or not this member, or cannot carry out the order now. The state is
    /// unchanged in these cases.
    fn ordered(
        &mut self,
        _now: Time,
        _order: LayerOrder,
        _cx: &mut NodeContext<'_>,
    ) -> Result<(), Refusal> {
        Err(Refusal("this layer does not manage members".into()))
    }

    /// Carries out a host's order about a request in the queue of a drive. Returns false if the
    /// request does not wait there, and nothing changes then.
    fn manage(
        &mut self,
        _now: Time,
        _id: RequestId,
        _order: QueueOrder,
        _cx: &mut NodeContext<'_>,
    ) -> bool {
        false
    }

    /// Returns when the node wants to be woken. A [`Time`] converts to a [`Wake`] for work.
    fn next_wake(&self) -> Wake;

    /// Returns the node's readings now. A workload has no readings.
    fn gauge(&self) -> Gauge {
        Gauge::default()
    }

    /// Adds the node's counters up to `now` to the counters of the machine.
    fn count(&self, _now: Time, _counters: &mut Counters) {}
}

/// An order about a request that waits in the queue of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueOrder {
    /// Asks whether the request waits.
    Ask,
    /// Serves the request next.
    Hurry,
    /// Ends the request without its data, as lost.
    Abort,
}

/// The context of one call of a node: the view on the nodes below, and the collector of effects.
pub struct NodeContext<'a> {
    /// Gauges and address maps of the nodes at the lower ports, by port.
    pub below: LayersBelow<'a>,
    /// Collector of the node's effects.
    pub out: &'a mut Effects,
}

impl<'a> NodeContext<'a> {
    /// Creates the context of a node without nodes below.
    pub fn alone(out: &'a mut Effects) -> NodeContext<'a> {
        NodeContext {
            below: LayersBelow::NOTHING,
            out,
        }
    }
}

/// An effect of a node: the reaction to an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Submits a request.
    Issue {
        /// Lower port.
        port: Port,
        /// The request to submit.
        request: Request,
    },
    /// Completes a request.
    Complete {
        /// Upper port at which the request arrived.
        port: Port,
        /// Result of the request.
        completion: Completion,
    },
    /// Sends a notice to the node above.
    Notice {
        /// Upper port.
        port: Port,
        /// The notice to send.
        notice: Notice,
    },
}

/// Collects effects, each with its node, until they are carried out. The driver owns one queue for
/// the whole graph and reuses it, because the hot path must not allocate.
#[derive(Debug, Default)]
pub struct Effects {
    effects: VecDeque<(NodeId, Effect)>,
    node: NodeId,
    stopped: Option<SourceError>,
}

impl Effects {
    /// Creates an empty collection.
    pub fn new() -> Effects {
        Effects {
            effects: VecDeque::with_capacity(64),
            ..Effects::default()
        }
    }
    /// Sets the node of all following effects to `node`.
    #[inline]
    pub fn of(&mut self, node: NodeId) -> &mut Effects {
        self.node = node;
        self
    }
    /// Submits `request` at lower port `port`.
    #[inline]
    pub fn issue(&mut self, port: usize, request: Request) {
        self.effects.push_back((
            self.node,
            Effect::Issue {
                port: Port::of(port),
                request,
            },
        ));
    }
    /// Completes a request at the first upper port.
    #[inline]
    pub fn complete(&mut self, completion: Completion) {
        self.complete_to(Port::FIRST, completion);
    }
    /// Completes a request at the upper port at which it arrived.
    #[inline]
    pub fn complete_to(&mut self, port: Port, completion: Completion) {
        debug_assert!(
            completion.submitted <= completion.finished,
            "request {} ends at {:?}, before it came at {:?}",
            completion.id.0,
            completion.finished,
            completion.submitted
        );
        self.effects
            .push_back((self.node, Effect::Complete { port, completion }));
    }
    /// Sends a signal now at the first upper port.
    pub fn signal(&mut self, signal: Signal) {
        self.notice(Port::FIRST, Notice::new(signal));
    }
    /// Sends or passes on a notice at upper port `port`.
    pub fn notice(&mut self, port: Port, notice: Notice) {
        self.effects
            .push_back((self.node, Effect::Notice { port, notice }));
    }
    /// Ends the run with an error, because a workload cannot continue. The first error counts.
    pub fn stop(&mut self, why: SourceError) {
        // The first reason is the cause. Later ones may only follow from it.
        self.stopped.get_or_insert(why);
    }
    /// Takes the error with which a workload has stopped; `None` if no workload has stopped.
    #[inline]
    pub fn take_stop(&mut self) -> Option<SourceError> {
        self.stopped.take()
    }
    /// Returns the number of effects that wait.
    pub fn len(&self) -> usize {
        self.effects.len()
    }
    /// Returns true if no effects wait.
    pub fn is_empty(&self) -> bool {
        self.effects.is_empty()
    }
    /// Drops all effects that wait.
    pub fn clear(&mut self) {
        self.effects.clear();
    }
    /// Returns the effects that wait, in order.
    pub fn effects(&self) -> impl Iterator<Item = &Effect> {
        self.effects.iter().map(|(_, effect)| effect)
    }
    /// Returns the first effect and its node, and leaves both in the queue. The driver copies only
    /// what the effect carries, and then calls [`drop_first`](Effects::drop_first).
    #[inline]
    pub fn first(&self) -> Option<&(NodeId, Effect)> {
        self.effects.front()
    }
    /// Takes the first effect and its node out of the queue.
    #[inline]
    pub fn take_first(&mut self) -> Option<(NodeId, Effect)> {
        self.effects.pop_front()
    }
    /// Removes the first effect.
    #[inline]
    pub fn drop_first(&mut self) {
        self.effects.pop_front();
    }
    /// Takes all effects out, in order. The allocated memory is kept.
    pub fn drain(&mut self) -> impl Iterator<Item = Effect> {
        self.effects.drain(..).map(|(_, effect)| effect)
    }
    /// Takes all effects out and returns the issued requests of all ports, in order.
    pub fn requests(&mut self) -> impl Iterator<Item = Request> {
        self.drain().filter_map(|effect| match effect {
            Effect::Issue { request, .. } => Some(request),
            _ => None,
        })
    }
}
