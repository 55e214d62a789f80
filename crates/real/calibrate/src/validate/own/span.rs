//! A request of a log, from its start to its end.

use fullstroke_contract::{Extent, Operation};
use fullstroke_units::Time;

/// A request from its start at the device to its completion.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServiceSpan {
    pub(super) operation: Operation,
    pub(super) extent: Extent,
    pub(super) start: Time,
    pub(super) end: Time,
}
