//! The identity of a member at a place of its own, far from the description of its array.
//!
//! A label is a sealed record (`copies.rs`) with one copy. The label identifies the array or folder
//! and the member.
//!
//! - **Arrays on devices**: the label is written once, when the device becomes the member.
//!   Superblocks are written far from the label. So two members whose superblocks were exchanged
//!   whole (for example by a restored backup of partition heads) contradict their labels, and are
//!   refused. The label stands in the last 4 KiB before the data. If the journal or the bitmap ends
//!   there, the label stands in the last 4 KiB before the bitmap. Arrays without labels get labels
//!   during their next assembly; until then an exchange is not found.
//! - **Folders**: the label stands in the 4 KiB behind the bytes of a drive, and is written with each
//!   event. So a file from an earlier time, or in the place of another file, is found.
//!
//! Older arrays have labels of another form, which is read:
//!
//! | bytes | content |
//! |---|---|
//! | 0..8 | `fslabel1` |
//! | 8..24 | the array |
//! | 24..40 | the member |
//! | 40..44 | CRC-32 of bytes 0 to 40 |

use crate::copies::{PlaceContent, RecordKind, StoreRecord};
use crate::device::Aligned;
use crate::uuid::Uuid;
use crate::{ArrayError, Device};
use std::io;

/// Size of a label.
pub(crate) const BYTES: u64 = 4096;

/// Labels of arrays.
pub(crate) const OF_ARRAYS: LabelKind = LabelKind(RecordKind {
    magic: *b"fslabel2",
    oldest: 1,
    version: 1,
    room: BYTES,
});
/// Labels of folders. The version is that of all files in the folder.
pub(crate) const OF_FOLDERS: LabelKind = LabelKind(RecordKind {
    magic: *b"fsmember",
    oldest: 3,
    version: 3,
    room: BYTES,
});

/// Magic of older labels of arrays, and the length of such a label.
const OLD_MAGIC: [u8; 8] = *b"fslabel1";
const OLD_BYTES: usize = 44;
/// Identifier of members that are identified by their place.
const NOBODY: Uuid = Uuid::from_bytes([0; 16]);

/// A kind of labels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LabelKind(RecordKind);

/// The label of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Label {
    store: Uuid,
    member: Uuid,
    place: String,
    events: u64,
}

impl Label {
    /// Returns the label of a member of an array.
    pub(crate) fn of_device(array: Uuid, member: Uuid) -> Label {
        Label {
            store: array,
            member,
            place: String::new(),
            events: 0,
        }
    }

    /// Returns the label of a folder's drive: its place is the indices of the member from the top.
    /// At the count `events` the drive was last part of the store.
    pub(crate) fn of_file(store: Uuid, place: String, events: u64) -> Label {
        Label {
            store,
            member: NOBODY,
            place,
            events,
        }
    }

    /// The array or folder.
    pub(crate) fn store(&self) -> Uuid {
        self.store
    }

    /// The member of an array.
    pub(crate) fn member(&self) -> Uuid {
        self.member
    }

    /// Describes the fault of a folder's drive, if the label `found` is not the expected one. A
    /// label may be one event ahead, because labels are written before the folder's description.
    pub(crate) fn complaint(&self, found: Option<&Label>) -> Option<String> {
        let expected = format!("expected member `{}` of store {}", self.place, self.store);
        let found = match found {
            None => "has no whole label behind its bytes".to_owned(),
            Some(found) if found.store != self.store => {
                format!("is of another store, {}", found.store)
            }
            Some(found) if found.place != self.place => format!("is member `{}`", found.place),
            Some(found) if found.events < self.events => {
                format!(
                    "is out of date: it was last part of the store at event {}",
                    found.events
                )
            }
            Some(found) if found.events > self.events + 1 => {
                format!(
                    "is newer than the store's description: it is of event {}",
                    found.events
                )
            }
            Some(_) => return None,
        };
        Some(format!("{found}; {expected} at event {}", self.events))
    }
}

impl LabelKind {
    /// Reads the label at the byte `at` of a device; `None` if the label is missing, damaged or
    /// unreadable.
    pub(crate) fn read(&self, device: &dyn Device, at: u64) -> Option<Label> {
        let mut buffer = Aligned::default();
        let bytes = buffer.of(BYTES as usize);
        device.read(at, bytes).ok()?;
        match self.0.decode(bytes) {
            PlaceContent::Whole(record) => Some(Label {
                store: record.store,
                member: record.member,
                place: String::from_utf8(record.body).ok()?,
                events: record.number,
            }),
            _ if self.0.magic == OF_ARRAYS.0.magic => decode_old(bytes),
            _ => None,
        }
    }

    /// Writes the label to the byte `at`. The caller flushes the device.
    pub(crate) fn write(&self, label: &Label, device: &dyn Device, at: u64) -> io::Result<()> {
        let sealed = self.0.seal(&StoreRecord {
            version: self.0.version,
            number: label.events,
            store: label.store,
            member: label.member,
            body: label.place.clone().into_bytes(),
        });
        assert!(
            sealed.len() as u64 <= BYTES,
            "the label of member {} takes {} bytes",
            label.place,
            sealed.len()
        );
        // Only whole blocks with the record, so that the rest of a file's label stays a hole.
        let blocks = sealed.len().next_multiple_of(device.block_bytes() as usize);
        let mut buffer = Aligned::default();
        let bytes = buffer.of(blocks);
        bytes.fill(0);
        bytes[..sealed.len()].copy_from_slice(&sealed);
        device.write(at, bytes)
    }
}

/// Decodes an older label of an array.
fn decode_old(bytes: &[u8]) -> Option<Label> {
    let uuid = |at: usize| bytes[at..at + 16].try_into().ok().map(Uuid::from_bytes);
    let sum = crc32fast::hash(&bytes[..OLD_BYTES - 4]).to_le_bytes();
    let is_whole = bytes[..8] == OLD_MAGIC && bytes[OLD_BYTES - 4..OLD_BYTES] == sum;
    is_whole.then_some(Label::of_device(uuid(8)?, uuid(24)?))
}

/// Writes the label of an array's member to the byte `at`, unless the label is there already.
pub(crate) fn write_unless_there(
    device: &dyn Device,
    at: u64,
    label: &Label,
) -> Result<(), ArrayError> {
    if OF_ARRAYS.read(device, at).as_ref() == Some(label) {
        return Ok(());
    }
    OF_ARRAYS
        .write(label, device, at)
        .map_err(|error| ArrayError::device(device.name(), "write the label of", error))
}

/// Removes the label at the byte `at`.
pub(crate) fn wipe(device: &dyn Device, at: u64) -> io::Result<()> {
    let mut buffer = Aligned::default();
    let bytes = buffer.of(BYTES as usize);
    bytes.fill(0);
    device.write(at, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryDevice;

    #[test]
    fn a_label_says_what_it_is_of_and_one_flipped_bit_makes_it_none() {
        let device = MemoryDevice::new(8192);
        let file = Label::of_file(Uuid::from_bytes([7; 16]), "1.0".into(), 9);
        let member = Label::of_device(Uuid::from_bytes([7; 16]), Uuid::from_bytes([9; 16]));
        for (kind, label, length) in [(OF_FOLDERS, &file, 67), (OF_ARRAYS, &member, 64)] {
            kind.write(label, &device, 4096).unwrap();
            assert_eq!(kind.read(&device, 4096).as_ref(), Some(label));
            for at in (0..length).filter(|at| !(20..24).contains(at)) {
                let mut byte = [0];
                device.read(4096 + at, &mut byte).unwrap();
                device.write(4096 + at, &[byte[0] ^ 4]).unwrap();
                assert_eq!(kind.read(&device, 4096), None, "byte {at}");
                device.write(4096 + at, &byte).unwrap();
            }
        }
        assert_eq!(
            OF_FOLDERS.read(&device, 4096),
            None,
            "the label of an array"
        );
    }

    #[test]
    fn a_label_of_a_folder_names_the_fault_of_a_file() {
        let label = Label::of_file(Uuid::from_bytes([7; 16]), "1.0".into(), 9);
        let other = |change: fn(&mut Label)| {
            let mut other = label.clone();
            change(&mut other);
            label.complaint(Some(&other))
        };
        assert_eq!(other(|_| {}), None);
        assert_eq!(other(|label| label.events = 10), None, "one event ahead");
        for change in [
            (|label: &mut Label| label.events = 8) as fn(&mut Label),
            |label| label.events = 11,
            |label| label.place = "1.1".into(),
            |label| label.store = Uuid::from_bytes([8; 16]),
        ] {
            assert!(other(change).is_some());
        }
        assert!(label.complaint(None).is_some());
    }

    #[test]
    fn a_label_of_an_older_array_is_read_and_stays() {
        let (array, member) = (Uuid::from_bytes([3; 16]), Uuid::from_bytes([4; 16]));
        let device = MemoryDevice::new(8192);
        let mut old = [0; OLD_BYTES];
        old[..8].copy_from_slice(&OLD_MAGIC);
        old[8..24].copy_from_slice(array.bytes());
        old[24..40].copy_from_slice(member.bytes());
        let sum = crc32fast::hash(&old[..40]);
        old[40..].copy_from_slice(&sum.to_le_bytes());
        device.write(4096, &old).unwrap();
        let label = Label::of_device(array, member);
        assert_eq!(OF_ARRAYS.read(&device, 4096).as_ref(), Some(&label));
        write_unless_there(&device, 4096, &label).unwrap();
        let mut present = [0; OLD_BYTES];
        device.read(4096, &mut present).unwrap();
        assert_eq!(present, old);
        device.write(4096 + 24, &[5]).unwrap();
        assert_eq!(OF_ARRAYS.read(&device, 4096), None);
        write_unless_there(&device, 4096, &label).unwrap();
        assert_eq!(OF_ARRAYS.read(&device, 4096), Some(label));
    }
}
