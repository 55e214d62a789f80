//! A transfer of a member's bytes.

use fullstroke_units::Sectors;
use fullstroke_volume::BufferPlace;
use std::io;

/// A run of a member's bytes, and the memory of its source or target.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemberTransfer {
    pub(crate) slot: usize,
    /// First byte on the device.
    pub(crate) at: u64,
    pub(crate) place: BufferPlace,
    pub(crate) sectors: Sectors,
}

/// A transfer with failures in all attempts.
#[derive(Debug)]
pub(crate) struct FailedTransfer {
    pub(crate) transfer: MemberTransfer,
    pub(crate) error: io::Error,
}

/// Direction of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransferDirection {
    Read,
    Write,
}
