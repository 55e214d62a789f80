//! What is sent over the link.

/// What a transfer means: the low bits of its token; the others are the piece.
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

    /// The token of a transfer that means this about the piece in `slot`.
    pub(crate) fn about(self, slot: u32) -> u64 {
        u64::from(slot) * Message::ALL.len() as u64 + self as u64
    }

    /// What a token means, and about which piece.
    pub(crate) fn of(token: u64) -> (Message, u32) {
        let messages = Message::ALL.len() as u64;
        (
            Message::ALL[(token % messages) as usize],
            (token / messages) as u32,
        )
    }
}
