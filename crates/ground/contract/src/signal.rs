//! What comes up unasked.

use crate::{Extent, Gear};
use fullstroke_units::{Sectors, Time};

/// A signal on its way up: who sent it, and when. Nodes that pass it on keep
/// both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notice {
    /// What it says. Addresses are those of the node whose upper port it left
    /// last.
    pub signal: Signal,
    /// The instant of which it speaks; [`Time::NEVER`] until the driver has
    /// written down the present one.
    pub at: Time,
    /// The node that sent it first; `None` until the driver has written it down.
    pub sender: Option<NodeId>,
}

/// The number of a node in its machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct NodeId(pub u32);

impl Notice {
    /// Notice of something that is so now.
    pub fn new(signal: Signal) -> Notice {
        Notice::of_instant(signal, Time::NEVER)
    }
    /// Notice of something that was so at `at`, which is not behind the present.
    pub fn of_instant(signal: Signal, at: Time) -> Notice {
        Notice {
            signal,
            at,
            sender: None,
        }
    }
}

/// A message from a node to the one above it, sent on the node's own
/// initiative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// The layer offers data that it holds: PUSH(lbn, n) of pro-active storage.
    Push(Extent),
    /// The layer asks for dirty data: PULL(lbn, n), or PULL(none, n) for any
    /// `n` sectors.
    Pull {
        /// The wanted extent; `None` leaves the choice to the layer above.
        extent: Option<Extent>,
        /// How much.
        sectors: Sectors,
    },
    /// The layer asks whether these addresses are held, clean: PULL of co-operative
    /// caching. Who holds a page cache answers at once, by
    /// [`Operation::Answer`](crate::Operation::Answer); others need not.
    Ask(Extent),
    /// The platters of a drive have stopped. Volumes pass it on: whoever counts
    /// knows how many drives stand below.
    SpunDown,
    /// Those of a drive turn at full speed again.
    SpunUp,
    /// The layer no longer answers: more of its members have failed than its
    /// redundancy covers.
    Failed,
    /// Where the layer had failed, it answers again, but holds nothing.
    Replaced,
    /// Where the layer had failed, it answers again, and holds what it held
    /// when it failed.
    Returned,
    /// The layer has filled a member of its own up to here; at the member's end
    /// it is whole again.
    Rebuilt {
        /// Index among the layer's members.
        member: u32,
        /// The member's addresses below this are filled.
        done: Sectors,
        /// As far as it is to be filled.
        used: Sectors,
        /// Whether that is all of them.
        whole: bool,
    },
    /// An array with gears has begun to shift, or is in a gear.
    Shifted(Gear),
}

impl Signal {
    /// The addresses that it speaks of, if it does.
    pub fn extent(&self) -> Option<Extent> {
        match *self {
            Signal::Push(extent) | Signal::Ask(extent) => Some(extent),
            Signal::Pull { extent, .. } => extent,
            _ => None,
        }
    }

    /// The same of other addresses; of a signal that speaks of none, the same.
    #[must_use]
    pub fn at_extent(self, extent: Extent) -> Signal {
        match self {
            Signal::Push(_) => Signal::Push(extent),
            Signal::Ask(_) => Signal::Ask(extent),
            Signal::Pull {
                extent: Some(_), ..
            } => Signal::Pull {
                extent: Some(extent),
                sectors: extent.sectors,
            },
            other => other,
        }
    }
}
