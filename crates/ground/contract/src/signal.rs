//! Messages that go up without a request.

use crate::{Extent, Gear};
use fullstroke_units::{Sectors, Time};

/// A signal with its sender and time. Nodes that pass a notice on keep both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The message. Each node that passes the message up translates the addresses into its own.
    pub signal: Signal,
    /// Time of the event; [`Time::NEVER`] until the driver fills in the present.
    pub at: Time,
    /// Node that sent the notice first; `None` until the driver fills it in.
    pub sender: Option<NodeId>,
}

/// The number of a node in its machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct NodeId(pub u32);

impl Notice {
    /// Creates a notice about an event of the present.
    pub fn new(signal: Signal) -> Notice {
        Notice::of_instant(signal, Time::NEVER)
    }
    /// Creates a notice about an event at `at`, at the latest the present.
    pub fn of_instant(signal: Signal, at: Time) -> Notice {
        Notice {
            signal,
            at,
            sender: None,
        }
    }
}

/// A message from a node to the node above, sent on the node's own initiative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// The layer offers data from its memory: PUSH(lbn, n) of pro-active storage.
    Push(Extent),
    /// The layer asks for dirty data: PULL(lbn, n), or PULL(none, n) for any `n` sectors.
    Pull {
        /// The wanted extent; `None` leaves the choice to the layer above.
        extent: Option<Extent>,
        /// Number of sectors.
        sectors: Sectors,
    },
    /// The layer asks for a host with a clean copy of these addresses: PULL of co-operative
    /// caching. A node with a page cache answers at once, by
    /// [`Operation::Answer`](crate::Operation::Answer). Other nodes need not answer.
    Ask(Extent),
    /// The platters of a drive have stopped. Volumes pass this signal on, one per drive. A node
    /// that counts the signals knows the number of drives below.
    SpunDown,
    /// The platters of a drive turn at full speed again.
    SpunUp,
    /// A drive with shingled tracks has begun to clean bands. Volumes pass this signal on, one per
    /// drive, and stages pass it to every host.
    CleaningBegan,
    /// The drive has nothing to clean any more.
    CleaningEnded,
    /// The layer has failed: more members are missing than the redundancy covers.
    Failed,
    /// The layer answers again after a failure, but holds no data.
    Replaced,
    /// The layer answers again after a failure, with its data at the time of the failure.
    Returned,
    /// The layer has filled one of its members up to `done`. When `done` reaches the end, the
    /// member is whole again.
    Rebuilt {
        /// Index among the layer's members.
        member: u32,
        /// Addresses of the member below this are filled.
        done: Sectors,
        /// End of the addresses to fill.
        used: Sectors,
        /// True if all addresses are filled.
        whole: bool,
    },
    /// An array with gears has begun to shift, or is in a gear.
    Shifted(Gear),
}

impl Signal {
    /// Returns the addresses in the signal; `None` for a signal without addresses.
    pub fn extent(&self) -> Option<Extent> {
        match *self {
            Signal::Push(extent) | Signal::Ask(extent) => Some(extent),
            Signal::Pull { extent, .. } => extent,
            _ => None,
        }
    }

    /// Returns the same signal with other addresses. A signal without addresses stays the same.
    #[must_use]
    pub fn at_extent(self, extent: Extent) -> Signal {
        match self {
            Signal::Push(_) => Signal::Push(extent),
            Signal::Ask(_) => Signal::Ask(extent),
            Signal::Pull {
                extent: Some(_), ..
            } => Signal::Pull {
                extent: Some(extent),
                // A volume answers for a part of the extent, so the amount shrinks with the extent.
                sectors: extent.sectors,
            },
            other => other,
        }
    }
}
