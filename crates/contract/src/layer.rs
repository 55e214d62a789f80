//! The shape of every layer: a state machine that never looks at a clock.

use crate::{Below, Completion, Gauge, LayerReadings, MemberStatistics, Order, Refusal, Request, Signal};
use fullstroke_units::Time;

/// One layer of a stack.
///
/// - **Events in**: [`submit`](Layer::submit), [`completed`](Layer::completed),
///   [`signalled`](Layer::signalled), [`ordered`](Layer::ordered),
///   [`wake`](Layer::wake).
/// - **Effects out**: pushed into `out`; the driver drains it before it calls
///   any layer again.
/// - **Getters**: [`next_wake`](Layer::next_wake), [`gauge`](Layer::gauge),
///   [`statistics`](Layer::statistics), [`readings`](Layer::readings).
///
/// The polling rule, once: after each event the driver drains `out`, then asks
/// `next_wake`. Time is monotonic over all calls to a layer. Waking early is
/// harmless. Waking late does not shift the layer's own timeline: what it began
/// or finished in the meantime carries the instants at which it did, and every
/// event first catches up with them.
pub trait Layer: Send {
    /// `request` arrives from above.
    fn submit(&mut self, now: Time, request: Request, below: Below<'_>, out: &mut Out);

    /// A request that this layer issued to `member` has finished.
    fn completed(
        &mut self,
        now: Time,
        member: usize,
        completion: Completion,
        below: Below<'_>,
        out: &mut Out,
    );

    /// The time that the layer asked for has come (or any other time).
    fn wake(&mut self, now: Time, below: Below<'_>, out: &mut Out);

    /// `member` has sent `signal`. Unless the layer uses it, it goes on upwards.
    fn signalled(&mut self, _now: Time, _member: usize, signal: Signal, _below: Below<'_>, out: &mut Out) {
        out.signal(signal);
    }

    /// An operator says something about a member.
    ///
    /// # Errors
    /// The layer has no members, not this one, or cannot do it now; nothing
    /// has changed then.
    fn ordered(
        &mut self,
        _now: Time,
        _order: Order,
        _below: Below<'_>,
        _out: &mut Out,
    ) -> Result<(), Refusal> {
        Err(Refusal("this layer does not manage members".into()))
    }

    /// When the layer wants to be woken; [`Time::NEVER`] if it does not.
    fn next_wake(&self) -> Time;

    /// The layer's readings now.
    fn gauge(&self) -> Gauge;

    /// What the layer has counted, if it is a drive.
    fn statistics(&self) -> Option<MemberStatistics> {
        None
    }

    /// What the layer has counted until `now`, if it is not a drive: pushed into
    /// `out`.
    fn readings(&self, _now: Time, _out: &mut Vec<LayerReadings>) {}
}

/// What a layer does in answer to an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Submit `request` to `member`.
    Issue {
        /// Index among the layer's members.
        member: u32,
        /// What is submitted.
        request: Request,
    },
    /// Tell the layer above that its request has finished.
    Complete(Completion),
    /// Tell the layer above something else.
    Signal(Signal),
}

/// Collects the effects of one call. The driver owns it and reuses it, so that
/// the hot path allocates nothing.
#[derive(Debug, Default)]
pub struct Out {
    effects: Vec<Effect>,
}

impl Out {
    /// An empty collection.
    pub fn new() -> Out {
        Out { effects: Vec::with_capacity(64) }
    }
    /// Submit `request` to `member`.
    #[inline]
    pub fn issue(&mut self, member: usize, request: Request) {
        self.effects.push(Effect::Issue { member: member as u32, request });
    }
    /// Answer a request.
    #[inline]
    pub fn complete(&mut self, completion: Completion) {
        self.effects.push(Effect::Complete(completion));
    }
    /// Send a signal upwards.
    pub fn signal(&mut self, signal: Signal) {
        self.effects.push(Effect::Signal(signal));
    }
    /// What was collected so far, in order.
    pub fn effects(&self) -> &[Effect] {
        &self.effects
    }
    /// Takes the effects out, in order; the room is kept.
    pub fn drain(&mut self) -> std::vec::Drain<'_, Effect> {
        self.effects.drain(..)
    }
}
