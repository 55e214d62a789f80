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

use crate::Device;
use crate::bitmap;
use crate::device::Aligned;
use crate::superblock::{Roster, Uuid};
use std::io;

const MAGIC: [u8; 8] = *b"fslabel1";
/// Size of a label.
const BYTES: u64 = 4096;
const SEALED: usize = 44;

/// The label of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Label {
    pub(crate) array: Uuid,
    pub(crate) member: Uuid,
}

/// Returns the first byte of the label on each member of the array.
pub(crate) fn place(roster: &Roster) -> u64 {
    let bitmap_end = roster.bitmap_at + bitmap::room(roster.regions);
    let end = bitmap_end.max(roster.journal_at + roster.journal_bytes);
    match roster.data_at.checked_sub(BYTES) {
        Some(at) if at >= end => at,
        _ => roster.bitmap_at.saturating_sub(BYTES),
    }
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

    /// Reads the label of a device; `None` if the label is missing, damaged or unreadable.
    pub(crate) fn read(device: &dyn Device, roster: &Roster) -> Option<Label> {
        let mut buffer = Aligned::default();
        let bytes = buffer.of(BYTES as usize);
        device.read(place(roster), bytes).ok()?;
        let uuid = |at: usize| bytes[at..at + 16].try_into().ok().map(Uuid::from_bytes);
        let label = Label {
            array: uuid(8)?,
            member: uuid(24)?,
        };
        (bytes[..SEALED] == label.encode()).then_some(label)
    }

    /// Writes the label. The caller flushes the device.
    pub(crate) fn write(&self, device: &dyn Device, roster: &Roster) -> io::Result<()> {
        let mut buffer = Aligned::default();
        let bytes = buffer.of(BYTES as usize);
        bytes.fill(0);
        bytes[..SEALED].copy_from_slice(&self.encode());
        device.write(place(roster), bytes)
    }
}

/// Removes the label.
pub(crate) fn wipe(device: &dyn Device, roster: &Roster) -> io::Result<()> {
    let mut buffer = Aligned::default();
    let bytes = buffer.of(BYTES as usize);
    bytes.fill(0);
    device.write(place(roster), bytes)
}
