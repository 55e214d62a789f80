//! The shape of everything in a machine: a state machine with ports that never
//! looks at a clock.

use crate::{
    Below, Completion, Counters, Extent, Gauge, NodeId, Notice, Order, Refusal, Request, Signal,
    SourceError,
};
use fullstroke_units::Time;
use std::any::Any;
use std::collections::VecDeque;

/// One end of an edge between two nodes. Each side numbers its own: a node's
/// upper ports, at which requests arrive, and its lower ports, at which it
/// issues them, are both counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Port(pub u16);

impl Port {
    /// The only one, where there is one.
    pub const FIRST: Port = Port(0);

    /// Port number `index`.
    ///
    /// # Panics
    /// If there cannot be so many.
    #[inline]
    pub fn of(index: usize) -> Port {
        Port(u16::try_from(index).expect("a node has at most 65,536 ports a side"))
    }

    /// Its number.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// When a node wants to be woken, and whether a run has to wait for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// For something that must happen before a run is over: a request is served,
    /// issued or waits. [`Time::NEVER`] = there is nothing.
    Work(Time),
    /// For something that goes on for ever by itself, such as a flusher's rounds
    /// or a look at how long drives have been idle. A run ends when only chores
    /// are left.
    Chore(Time),
}

impl Wake {
    /// There is nothing to be woken for.
    pub const NEVER: Wake = Wake::Work(Time::NEVER);

    /// The instant, whatever it is for.
    #[inline]
    pub const fn at(self) -> Time {
        match self {
            Wake::Work(at) | Wake::Chore(at) => at,
        }
    }

    /// Whether a run must wait for it.
    #[inline]
    pub fn is_work(self) -> bool {
        matches!(self, Wake::Work(at) if at != Time::NEVER)
    }
}

impl From<Time> for Wake {
    /// Work is the rule.
    #[inline]
    fn from(at: Time) -> Wake {
        Wake::Work(at)
    }
}

/// One node of a machine's graph: a workload, a layer of the host, a controller,
/// a volume, a link, a drive.
///
/// - **Events in**: [`submit`](Node::submit), [`completed`](Node::completed),
///   [`noticed`](Node::noticed), [`ordered`](Node::ordered),
///   [`wake`](Node::wake). A node without uppers, such as a workload, is never
///   given a request; one without lowers never a completion.
/// - **Effects out**: through the context; the driver carries them out before it
///   calls any node again.
/// - **Getters**: [`next_wake`](Node::next_wake), [`owners`](Node::owners),
///   [`gauge`](Node::gauge), [`count`](Node::count).
///
/// The polling rule, once: after each event the driver takes the effects, then
/// asks `next_wake`. Time is monotonic over all calls to a node. Waking early is
/// harmless. Waking late does not shift the node's own timeline: what it began
/// or finished in the meantime carries the instants at which it did, and every
/// event first catches up with them.
pub trait Node: Any + Send {
    /// `request` arrives at the upper port `from`. Its completion goes back
    /// there.
    fn submit(&mut self, _now: Time, _from: Port, _request: Request, _cx: &mut Cx<'_>) {
        unreachable!("a node with somebody above it says what it does with requests")
    }

    /// A request that this node issued at the lower port `from` has finished.
    fn completed(&mut self, _now: Time, _from: Port, _completion: Completion, _cx: &mut Cx<'_>) {
        unreachable!("a node that issues requests says what it does with completions")
    }

    /// The time that the node asked for has come (or any other time).
    fn wake(&mut self, now: Time, cx: &mut Cx<'_>);

    /// Whoever is below the lower port `from` gives notice of something. Unless
    /// the node uses it, it goes on to the [owners](Node::owners) of the
    /// addresses that it speaks of, in their addresses; where nobody owns them,
    /// it ends. What speaks of no addresses goes on as it is.
    fn noticed(&mut self, _now: Time, from: Port, notice: Notice, cx: &mut Cx<'_>) {
        self.pass_on(from, notice, cx.out);
    }

    /// Sends notice on upwards, as [`noticed`](Node::noticed) does unless the node
    /// uses it.
    fn pass_on(&self, from: Port, notice: Notice, out: &mut Out) {
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

    /// Whom addresses below the lower port `from` belong to: tells `owner` each
    /// upper port, with the extent as it is known there, in ascending order of
    /// the addresses below. Addresses that hold nothing of anybody's, such as
    /// parity, have no owner. Unless the node says otherwise, addresses are the
    /// same above and below.
    fn owners(&self, _from: Port, extent: Extent, owner: &mut dyn FnMut(Port, Extent)) {
        owner(Port::FIRST, extent);
    }

    /// An operator says something about a member.
    ///
    /// # Errors
    /// The node has no members, not this one, or cannot do it now; nothing
    /// has changed then.
    fn ordered(&mut self, _now: Time, _order: Order, _cx: &mut Cx<'_>) -> Result<(), Refusal> {
        Err(Refusal("this layer does not manage members".into()))
    }

    /// When the node wants to be woken. [`Time`]s convert, and are work.
    fn next_wake(&self) -> Wake;

    /// The node's readings now. A workload has none.
    fn gauge(&self) -> Gauge {
        Gauge::default()
    }

    /// Adds what the node has counted until `now`.
    fn count(&self, _now: Time, _counters: &mut Counters) {}
}

/// What a node may see and do in one call: read what is below it, and act.
pub struct Cx<'a> {
    /// The nodes at its lower ports, by port.
    pub below: Below<'a>,
    /// Takes what it does.
    pub out: &'a mut Out,
}

impl<'a> Cx<'a> {
    /// The context of a node below which there is nothing.
    pub fn alone(out: &'a mut Out) -> Cx<'a> {
        Cx {
            below: Below::NOTHING,
            out,
        }
    }
}

/// What a node does in answer to an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Submit a request.
    Issue {
        /// The lower port.
        port: Port,
        /// What is submitted.
        request: Request,
    },
    /// A request has finished.
    Complete {
        /// The upper port at which it came.
        port: Port,
        /// How it ended.
        completion: Completion,
    },
    /// Tell the node above something else.
    Notice {
        /// The upper port.
        port: Port,
        /// What is told.
        notice: Notice,
    },
}

/// Collects effects, and who they are of, until they are carried out: what nodes
/// do goes straight into the queue of the whole graph. The driver owns it and
/// reuses it, so that the hot path allocates nothing.
#[derive(Debug, Default)]
pub struct Out {
    effects: VecDeque<(NodeId, Effect)>,
    node: NodeId,
    stopped: Option<SourceError>,
}

impl Out {
    /// An empty collection.
    pub fn new() -> Out {
        Out {
            effects: VecDeque::with_capacity(64),
            ..Out::default()
        }
    }
    /// What is collected from now on is of `node`.
    #[inline]
    pub fn of(&mut self, node: NodeId) -> &mut Out {
        self.node = node;
        self
    }
    /// Submit `request` at lower port `port`.
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
    /// Answer a request of a node that has one upper port.
    #[inline]
    pub fn complete(&mut self, completion: Completion) {
        self.complete_to(Port::FIRST, completion);
    }
    /// Answer a request that came at upper port `port`.
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
    /// Give notice of something now, at the first upper port.
    pub fn signal(&mut self, signal: Signal) {
        self.notice(Port::FIRST, Notice::new(signal));
    }
    /// Give notice, or pass it on, at upper port `port`.
    pub fn notice(&mut self, port: Port, notice: Notice) {
        self.effects
            .push_back((self.node, Effect::Notice { port, notice }));
    }
    /// A workload cannot go on: the run ends with this error. The first counts.
    pub fn stop(&mut self, why: SourceError) {
        self.stopped.get_or_insert(why);
    }
    /// Takes why a workload could not go on.
    #[inline]
    pub fn take_stop(&mut self) -> Option<SourceError> {
        self.stopped.take()
    }
    /// Effects that have not been taken out yet.
    pub fn len(&self) -> usize {
        self.effects.len()
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.effects.is_empty()
    }
    /// Leaves undone what was collected.
    pub fn clear(&mut self) {
        self.effects.clear();
    }
    /// What was collected so far, in order.
    pub fn effects(&self) -> impl Iterator<Item = &Effect> {
        self.effects.iter().map(|(_, effect)| effect)
    }
    /// Takes the first effect out, and whose it is.
    #[inline]
    pub fn take_first(&mut self) -> Option<(NodeId, Effect)> {
        self.effects.pop_front()
    }
    /// Takes the effects out, in order; the room is kept.
    pub fn drain(&mut self) -> impl Iterator<Item = Effect> {
        self.effects.drain(..).map(|(_, effect)| effect)
    }
    /// Takes the requests out that were issued, in order, whatever their ports.
    pub fn requests(&mut self) -> impl Iterator<Item = Request> {
        self.drain().filter_map(|effect| match effect {
            Effect::Issue { request, .. } => Some(request),
            _ => None,
        })
    }
}
