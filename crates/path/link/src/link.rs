//! The trait of links.

use crate::statistics::LinkStatistics;
use crate::transfer::{DeliveredTransfer, LinkTransfer};
use fullstroke_units::Time;

/// A link with its ports.
///
/// - **Events in**: [`offer`](Link::offer), [`advance`](Link::advance).
/// - **Effects out**: the deliveries of `advance`.
/// - **Getters**: [`next_wake`](Link::next_wake), [`statistics`](Link::statistics).
///
/// After each event, the caller asks `next_wake`. Calls come in order of time. A late call changes
/// nothing: the next port is chosen at the instant when the link becomes free, among the offers
/// until then.
pub trait Link: Send {
    /// Queues `transfer`. Transfers of a port go in the order of the offers; on a link with several
    /// lanes, in order on each lane.
    ///
    /// # Panics
    /// Panics if one of the ports does not exist, or if both are the same.
    fn offer(&mut self, now: Time, transfer: LinkTransfer);

    /// Returns the time of the next due `advance`; [`Time::NEVER`] if nothing is in flight.
    fn next_wake(&self) -> Time;

    /// Puts all arrivals up to and including `now` into `delivered`, in order of arrival.
    fn advance(&mut self, now: Time, delivered: &mut Vec<DeliveredTransfer>);

    /// Counters up to the latest call.
    fn statistics(&self) -> LinkStatistics;
}
