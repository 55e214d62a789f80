//! Messages over the link.

/// Meaning of a transfer, stored in the low bits of the token. The other bits are the piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    Command,
    Ready,
    Data,
    Status,
    ParityCommand,
    ParityReady,
    Result,
    ParityStatus,
}

impl Message {
    const ALL: [Message; 8] = [
        Message::Command,
        Message::Ready,
        Message::Data,
        Message::Status,
        Message::ParityCommand,
        Message::ParityReady,
        Message::Result,
        Message::ParityStatus,
    ];

    /// Returns the token of a transfer with this message about the piece in `slot`.
    pub(crate) fn about(self, slot: u32) -> u64 {
        u64::from(slot) * Message::ALL.len() as u64 + self as u64
    }

    /// Returns the message of a token, and the piece.
    pub(crate) fn of(token: u64) -> (Message, u32) {
        let messages = Message::ALL.len() as u64;
        (
            Message::ALL[(token % messages) as usize],
            (token / messages) as u32,
        )
    }
}
