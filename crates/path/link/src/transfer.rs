//! What goes over a link, and what a link is.

use crate::LinkStatistics;
use fullstroke_units::{Bytes, Time};

/// A port of a link, as opposed to one of a node: 0 is the host, member `n` is `Station(n + 1)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Station(pub u32);

impl Station {
    /// The host, or the controller that stands for it.
    pub const HOST: Station = Station(0);

    /// The port of a member.
    pub const fn of_member(member: usize) -> Station {
        Station(member as u32 + 1)
    }

    /// The member whose port it is; `None` for the host.
    pub const fn member(self) -> Option<usize> {
        match self.0 {
            0 => None,
            port => Some(port as usize - 1),
        }
    }
}

/// What a transfer carries: an information unit of a serial protocol (FCP, SSP),
/// or the phases of a parallel bus that do the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload {
    /// A command.
    Command,
    /// The receiver of a write has room for its data.
    TransferReady,
    /// So many bytes of data.
    Data(Bytes),
    /// How the command ended.
    Status,
}

impl Payload {
    /// Bytes of data; none in anything but data.
    pub const fn data(self) -> Bytes {
        match self {
            Payload::Data(bytes) => bytes,
            _ => Bytes(0),
        }
    }
}

/// What a port wants to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Comes back with the delivery. What follows an exchange's transfer to the
    /// same port under the same token may use what that one has opened.
    pub token: u64,
    /// Who sends it.
    pub from: Station,
    /// Who receives it; another port.
    pub to: Station,
    /// What it is.
    pub payload: Payload,
}

impl Transfer {
    /// Whether it goes on where `before` ends: of the same exchange, between the
    /// same ports.
    pub(crate) fn continues(&self, before: &Transfer) -> bool {
        (self.token, self.from, self.to) == (before.token, before.from, before.to)
    }
}

/// A transfer that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Delivered {
    /// The transfer's.
    pub token: u64,
    /// When it wanted to go.
    pub offered: Time,
    /// When its port had the link.
    pub began: Time,
    /// When its last word was with the receiver.
    pub finished: Time,
}

/// A link with its ports.
///
/// - **Events in**: [`offer`](Link::offer), [`advance`](Link::advance).
/// - **Effects out**: what `advance` delivers.
/// - **Getters**: [`next_wake`](Link::next_wake), [`statistics`](Link::statistics).
///
/// The polling rule, once: after each event ask `next_wake`. Calls come in order
/// of time; a call that comes late changes nothing: who goes next is decided at
/// the instant at which the link becomes free, among what was offered until then.
pub trait Link: Send {
    /// `transfer` wants to go. What a port sends goes in the order of its
    /// offers; over a link of several lanes, what it sends over each of them.
    ///
    /// # Panics
    /// If one of its ports is not there, or both are the same.
    fn offer(&mut self, now: Time, transfer: Transfer);

    /// When the link wants to be advanced; [`Time::NEVER`] if nothing is on its
    /// way.
    fn next_wake(&self) -> Time;

    /// Puts all that has arrived up to and including `now` into `delivered`, in
    /// order of arrival.
    fn advance(&mut self, now: Time, delivered: &mut Vec<Delivered>);

    /// What was counted up to the latest call.
    fn statistics(&self) -> LinkStatistics;
}
