//! The identity of a member at a place of its own, far from its superblocks.
//!
//! A label identifies the array and the member. The label is written once, when the device becomes
//! the member. Superblocks are written far from the label. So two members whose superblocks were
//! exchanged whole (for example by a restored backup of partition heads) contradict their labels,
//! and are refused.
//!
//! | bytes | content |
//! |---|---|
//! | 0..8 | `fslabel1` |
//! | 8..24 | the array |
//! | 24..40 | the member |
//! | 40..44 | CRC-32 of bytes 0 to 40 |
//!
//! The label stands in the last 4 KiB before the data. If the journal or the bitmap ends there, the
//! label stands in the last 4 KiB before the bitmap. Older arrays get labels during their next
//! assembly; until then an exchange is not found.

use crate::device::Aligned;
use crate::uuid::Uuid;
use crate::{ArrayError, Device};
use std::io;

const MAGIC: [u8; 8] = *b"fslabel1";
/// Size of a label.
pub(crate) const BYTES: u64 = 4096;
const SEALED: usize = 44;

/// The label of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Label {
    pub(crate) array: Uuid,
    pub(crate) member: Uuid,
}

impl Label {
    fn encode(&self) -> [u8; SEALED] {
        let mut bytes = [0; SEALED];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..24].copy_from_slice(self.array.bytes());
        bytes[24..40].copy_from_slice(self.member.bytes());
        let sum = crc32fast::hash(&bytes[..40]);
        bytes[40..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Reads the label at the byte `at` of a device; `None` if the label is missing, damaged or unreadable.
    pub(crate) fn read(device: &dyn Device, at: u64) -> Option<Label> {
        let mut buffer = Aligned::default();
        let bytes = buffer.of(BYTES as usize);
        device.read(at, bytes).ok()?;
        let uuid = |at: usize| bytes[at..at + 16].try_into().ok().map(Uuid::from_bytes);
        let label = Label {
            array: uuid(8)?,
            member: uuid(24)?,
        };
        (bytes[..SEALED] == label.encode()).then_some(label)
    }

    /// Writes the label to the byte `at`. The caller flushes the device.
    pub(crate) fn write(&self, device: &dyn Device, at: u64) -> io::Result<()> {
        let mut buffer = Aligned::default();
        let bytes = buffer.of(BYTES as usize);
        bytes.fill(0);
        bytes[..SEALED].copy_from_slice(&self.encode());
        device.write(at, bytes)
    }
}

/// Writes the label with the device's member to the byte `at`, unless the label is there already.
pub(crate) fn write_unless_there(
    device: &dyn Device,
    at: u64,
    label: Label,
) -> Result<(), ArrayError> {
    if Label::read(device, at) == Some(label) {
        return Ok(());
    }
    label
        .write(device, at)
        .map_err(|error| ArrayError::device(device.name(), "write the label of", error))
}

/// Removes the label at the byte `at`.
pub(crate) fn wipe(device: &dyn Device, at: u64) -> io::Result<()> {
    let mut buffer = Aligned::default();
    let bytes = buffer.of(BYTES as usize);
    bytes.fill(0);
    device.write(at, bytes)
}
