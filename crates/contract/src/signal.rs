//! What comes up unasked.

use crate::Extent;
use fullstroke_units::Sectors;

/// A message from a layer to the one above it, sent on the layer's own
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
    /// The platters have stopped.
    SpunDown,
    /// The platters turn at full speed again.
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
}
