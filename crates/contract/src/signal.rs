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
    /// The member no longer answers.
    Failed,
}
