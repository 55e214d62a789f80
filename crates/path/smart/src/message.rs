//! Messages over the link.

/// Meaning of a transfer, stored in the low bits of the token. The other bits are the piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransferMeaning {
    Command,
    Ready,
    Data,
    Status,
    ParityCommand,
    ParityReady,
    Result,
    ParityStatus,
}

impl TransferMeaning {
    // `of` finds a message by its discriminant, so the order is the order of the enum.
    const ALL: [TransferMeaning; 8] = [
        TransferMeaning::Command,
        TransferMeaning::Ready,
        TransferMeaning::Data,
        TransferMeaning::Status,
        TransferMeaning::ParityCommand,
        TransferMeaning::ParityReady,
        TransferMeaning::Result,
        TransferMeaning::ParityStatus,
    ];

    /// Returns the token of a transfer with this message about the piece in `slot`.
    pub(crate) fn about(self, slot: u32) -> u64 {
        u64::from(slot) * TransferMeaning::ALL.len() as u64 + self as u64
    }

    /// Returns the message of a token, and the piece.
    pub(crate) fn of(token: u64) -> (TransferMeaning, u32) {
        let messages = TransferMeaning::ALL.len() as u64;
        (
            TransferMeaning::ALL[(token % messages) as usize],
            (token / messages) as u32,
        )
    }
}
