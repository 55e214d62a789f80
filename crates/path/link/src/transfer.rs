//! Transfers over a link.

use fullstroke_units::{Bytes, Time};

/// A port of a link, different from a port of a node: 0 is the host, member `n` is `Station(n +
/// 1)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Station(pub u32);

impl Station {
    /// Station of the host, or of the controller in place of the host.
    pub const HOST: Station = Station(0);

    /// The port of a member.
    pub const fn of_member(member: usize) -> Station {
        Station(member as u32 + 1)
    }

    /// The member of this port; `None` for the host.
    pub const fn member(self) -> Option<usize> {
        match self.0 {
            0 => None,
            port => Some(port as usize - 1),
        }
    }
}

/// Contents of a transfer: an information unit of a serial protocol (FCP, SSP), or the equivalent
/// phases of a parallel bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload {
    /// A command.
    Command,
    /// The receiver of a write has room for the data.
    TransferReady,
    /// A number of bytes of data.
    Data(Bytes),
    /// The end status of the command.
    Status,
}

impl Payload {
    /// Bytes of data; zero for other contents.
    pub const fn data(self) -> Bytes {
        match self {
            Payload::Data(bytes) => bytes,
            _ => Bytes(0),
        }
    }
}

/// A transfer to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkTransfer {
    /// Name of the exchange, returned with the delivery. A later transfer of the exchange to the
    /// same port may use the open connection.
    pub token: u64,
    /// The sender.
    pub from: Station,
    /// The receiver; another port.
    pub to: Station,
    /// The contents.
    pub payload: Payload,
}

impl LinkTransfer {
    /// True if this transfer continues `before`: same exchange, same ports.
    pub(crate) fn continues(&self, before: &LinkTransfer) -> bool {
        // The payload is not compared: the status follows the data of the same exchange.
        (self.token, self.from, self.to) == (before.token, before.from, before.to)
    }
}

/// A transfer after arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeliveredTransfer {
    /// Token of the transfer.
    pub token: u64,
    /// Time of the offer.
    pub offered: Time,
    /// Time when the sender got the link.
    pub began: Time,
    /// Time when the last word reached the receiver.
    pub finished: Time,
}
