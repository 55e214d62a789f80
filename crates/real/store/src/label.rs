//! What a device says of itself at a place of its own, far from its superblocks.
//!
//! A label names the array and the member. It is written once, when the device becomes that member, and
//! superblocks are written far from it. So two members whose superblocks were exchanged whole (by a
//! restored backup of partition heads, say) contradict their labels, and are refused.
//!
//! | bytes | what |
//! |---|---|
//! | 0..8 | `fslabel1` |
//! | 8..24 | the array |
//! | 24..40 | the member |
//! | 40..44 | CRC-32 of bytes 0 to 40 |
//!
//! The label stands in the last 4 KiB before the data. Where the journal or the bitmap ends there, it
//! stands in the last 4 KiB before the bitmap. Arrays that were made without labels get them when they
//! are assembled; until then an exchange is not found.

use crate::Device;
use crate::bitmap;
use crate::device::Aligned;
use crate::superblock::{Roster, Uuid};
use std::io;

const MAGIC: [u8; 8] = *b"fslabel1";
/// The room of a label.
const BYTES: u64 = 4096;
const SEALED: usize = 44;

/// What a device says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Label {
    pub(crate) array: Uuid,
    pub(crate) member: Uuid,
}

/// Where it stands on each member of the array.
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

    /// The label of a device; none if there is none, it is not whole, or it cannot be read.
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

    /// Writes it. To be flushed.
    pub(crate) fn write(&self, device: &dyn Device, roster: &Roster) -> io::Result<()> {
        let mut buffer = Aligned::default();
        let bytes = buffer.of(BYTES as usize);
        bytes.fill(0);
        bytes[..SEALED].copy_from_slice(&self.encode());
        device.write(place(roster), bytes)
    }
}

/// Takes the label away.
pub(crate) fn wipe(device: &dyn Device, roster: &Roster) -> io::Result<()> {
    let mut buffer = Aligned::default();
    let bytes = buffer.of(BYTES as usize);
    bytes.fill(0);
    device.write(place(roster), bytes)
}
