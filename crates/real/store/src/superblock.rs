//! The superblock: the description of a member and its array on each member.
//!
//! A superblock is a record of `copies.rs` with the magic `fsarray1` and version 1 or 2. The number
//! of the record is the count of events, and the store is the array. The body is JSON: of version 1
//! a [`Roster`], of version 2 a [`DeviceBinding`] and a [`Roster`]. Two copies stand at 4 KiB from
//! the start and 16 KiB before the end. Arrays of version 1 are read, and become version 2 during
//! their assembly.
//!
//! # Events
//! A change of the roster is an event. Each event is written twice, as two numbers. First every
//! member learns of the change, then every member learns that all others know of the change. Data
//! is written after that. Each number has a random [id](Stamp), and contains the id of the number
//! before.
//!
//! An interrupted write of an event may leave a member one number behind. In this case the newest
//! superblock names the member's id as the number before. A member restored from a backup of an
//! earlier assembly is at least two numbers behind. Two members with the same number and different
//! ids have been used apart from each other.
//!
//! # Doubts
//! If the size of a member or its copies changed, the member was cut, or overwritten by another
//! program ([`Copies::doubts`]). A write torn by a loss of power leaves the magic at the beginning
//! of a copy, because a sector is written whole. So a copy without the magic was not torn, but
//! overwritten or cut off.

use crate::bitmap;
use crate::copies::{PlaceContent, RecordKind, START_BYTES, StoreRecord};
use crate::label;
use crate::uuid::Uuid;
use crate::{ArrayError, Device};
use fullstroke_units::SECTOR_BYTES;
use serde::{Deserialize, Serialize};
use std::io;

pub(crate) const MAGIC: [u8; 8] = *b"fsarray1";
/// Version of new superblocks; version 1 is read, too.
const VERSION: u32 = 2;
/// Size of a copy.
pub(crate) const SUPERBLOCK_BYTES: u64 = 16 << 10;

/// The two copies of a superblock.
pub(crate) const COPIES: RecordKind = RecordKind {
    magic: MAGIC,
    oldest: 1,
    version: VERSION,
    room: SUPERBLOCK_BYTES,
};

/// Changes to write to the journal first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JournalPolicy {
    /// All changes except writes of whole rows with all members present.
    #[default]
    Partial,
    /// All changes.
    All,
    /// No changes. If a member is missing after a loss of power, its data may be computed wrongly.
    None,
}

/// State of a slot of the array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SlotState {
    /// The member holds the right data.
    Alive,
    /// The slot has no member with the right data.
    Failed,
    /// The member is being filled.
    Filling {
        /// Number of filled sectors.
        done_sectors: u64,
        /// True if only missed regions are filled: see the bitmap.
        missed_only: bool,
    },
}

/// Identification of the event of a superblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// Random identifier of this number of events.
    pub id: Uuid,
    /// Identifier of the number before; `None` if version 1 counted that number.
    pub before: Option<Uuid>,
    /// True if all members know of the change. Data may have been written since.
    pub is_known_to_all: bool,
}

/// Description of the superblock's device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceBinding {
    /// The device's size in bytes.
    pub bytes: u64,
    /// First byte of this copy.
    pub copy_at: u64,
}

/// The body of version 2.
#[derive(Serialize, Deserialize)]
struct Body<O, R> {
    own: O,
    roster: R,
}

/// A slot of the array.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemberSlot {
    /// Member in the slot, now or last.
    pub member: Uuid,
    /// Name of the device when it was last part of the array.
    pub device: String,
    /// Sectors for data.
    pub sectors: u64,
    /// State of the slot.
    pub state: SlotState,
    /// Count of events in the first record of the failure; 0 unless the member has failed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failed_at: u64,
    /// Identifier of the event before the failure. A member alive until its failure knows this
    /// event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_after: Option<Uuid>,
    /// Rates measured when the array was made; `None` without a measurement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<MemberRates>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Rates of a member, measured by timed reads in its data area.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemberRates {
    /// Rate of the outermost zone.
    pub outer_bytes_per_s: u64,
    /// Rate of the innermost zone.
    pub inner_bytes_per_s: u64,
    /// Outer over inner rate at the edges: a 95 % interval.
    pub ratio_interval: (f64, f64),
    /// Number of distinguishable zones.
    pub zones: u32,
    /// Duration of the measurement.
    pub seconds: f64,
}

/// A spare, for the place of a failed member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spare {
    /// Identifier of the member.
    pub member: Uuid,
    /// Name of the device.
    pub device: String,
}

/// The low gear: standing members are not written to, and know of no later event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LowGear {
    /// Count of events in the first record of the low gear.
    pub since: u64,
    /// Slots of the standing members.
    pub standing: Vec<usize>,
}

/// Description of the array, as recorded on each member.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Roster {
    /// Name of the array, for people and clients.
    pub name: String,
    /// Name of the layout.
    pub layout: String,
    /// Keys of the layout.
    pub keys: serde_json::Map<String, serde_json::Value>,
    /// Time when the array was made, in seconds since 1970.
    pub created_s: u64,
    /// Number of assemblies, stops and changes of members, each counted twice.
    pub events: u64,
    /// Identification of the newest event; `None` in arrays of version 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stamp: Option<Stamp>,
    /// True if the array was stopped properly.
    pub clean: bool,
    /// Changes to write to the journal first.
    pub journal: JournalPolicy,
    /// First byte of the bitmap on each member.
    pub bitmap_at: u64,
    /// Sectors of a member for each bit.
    pub region_sectors: u64,
    /// Number of regions.
    pub regions: u64,
    /// First byte of the journal on each member.
    pub journal_at: u64,
    /// Length of the journal; 0 without parity.
    pub journal_bytes: u64,
    /// First byte of the data on each member.
    pub data_at: u64,
    /// Granularity of requests to members, in bytes.
    pub block_bytes: u64,
    /// Count of events at the beginning of the bitmap's record of missed regions; `None` while all
    /// members are present.
    pub missed_since: Option<u64>,
    /// Slots, in order.
    pub slots: Vec<MemberSlot>,
    /// Spares.
    pub spares: Vec<Spare>,
    /// Set while an array with gears is in the low gear or rising.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low_gear: Option<LowGear>,
}

/// Comparison of a member's superblock with the newest one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Knowledge {
    /// The member was part of the array to the end.
    Fresh,
    /// The member is one event behind, because the write of the event was interrupted. No data was
    /// written after the event.
    Interrupted,
    /// The member has missed an event, or may have missed one.
    Behind,
    /// The member and the others have been used apart from each other.
    Apart,
}

impl Roster {
    /// Returns the identifier of the newest event.
    pub(crate) fn event_id(&self) -> Option<Uuid> {
        self.stamp.map(|stamp| stamp.id)
    }

    /// Counts one event, with an identifier of its own, for the next superblocks.
    pub(crate) fn next_event(&mut self, is_known_to_all: bool) -> io::Result<()> {
        let before = self.event_id();
        self.events += 1;
        self.stamp = Some(Stamp {
            id: Uuid::new()?,
            before,
            is_known_to_all,
        });
        Ok(())
    }

    /// Compares the superblock of the member in `slot`, whose roster is `own`, with this one.
    pub(crate) fn knowledge(&self, slot: usize, own: &Roster) -> Knowledge {
        debug_assert!(
            slot < self.slots.len(),
            "place {slot} of an array of {}",
            self.slots.len()
        );
        if own.events == self.events {
            return match own.event_id() == self.event_id() {
                true => Knowledge::Fresh,
                false => Knowledge::Apart,
            };
        }
        let is_next = self.events == own.events + 1;
        let follows = self
            .stamp
            .is_some_and(|stamp| stamp.before == own.event_id());
        if is_next && follows {
            return Knowledge::Interrupted;
        }
        let low = self.low_gear.as_ref();
        // Standing members of the low gear are not written to. They may be events behind without
        // having missed data.
        let stands = low.is_some_and(|low| low.standing.contains(&slot) && own.events >= low.since);
        match stands && own.events < self.events {
            true => Knowledge::Fresh,
            false => Knowledge::Behind,
        }
    }

    /// Returns the first byte of the label on each member.
    pub(crate) fn label_at(&self) -> u64 {
        let bitmap_end = self.bitmap_at + bitmap::room(self.regions);
        let end = bitmap_end.max(self.journal_at + self.journal_bytes);
        match self.data_at.checked_sub(label::BYTES) {
            Some(at) if at >= end => at,
            _ => self.bitmap_at.saturating_sub(label::BYTES),
        }
    }

    /// Shortens the devices' paths to their last characters. The names are only for people.
    fn shorten_names(&mut self, most: usize) {
        let slots = self.slots.iter_mut().map(|slot| &mut slot.device);
        let spares = self.spares.iter_mut().map(|spare| &mut spare.device);
        for name in slots.chain(spares) {
            if name.len() > most {
                let mut from = name.len() - most + 3;
                // A cut within a character would make the name invalid UTF-8.
                while !name.is_char_boundary(from) {
                    from += 1;
                }
                *name = format!("...{}", &name[from..]);
            }
        }
    }

    /// Returns an error if a superblock could become too small for this array: when as many members
    /// as the array survives have failed and are filled again.
    pub(crate) fn check_room(&self, survived: usize, has_gears: bool) -> Result<(), ArrayError> {
        let id = Uuid::from_bytes([0xFF; 16]);
        let mut fullest = self.clone();
        (fullest.events, fullest.clean) = (EVENTS_MOST, false);
        fullest.missed_since = Some(EVENTS_MOST);
        fullest.stamp = Some(Stamp {
            id,
            before: Some(id),
            is_known_to_all: false,
        });
        for slot in fullest.slots.iter_mut().take(survived) {
            slot.state = SlotState::Filling {
                done_sectors: slot.sectors,
                missed_only: false,
            };
            (slot.failed_at, slot.failed_after) = (EVENTS_MOST, Some(id));
        }
        fullest.low_gear = has_gears.then(|| LowGear {
            since: EVENTS_MOST,
            standing: (0..self.slots.len()).collect(),
        });
        // Names count with a fixed length, so the number of members that fit does not depend on
        // their devices' names.
        let name = "x".repeat(NAME_LEAST_BYTES);
        for slot in &mut fullest.slots {
            slot.device.clone_from(&name);
        }
        for spare in &mut fullest.spares {
            spare.device.clone_from(&name);
        }
        let fullest = Superblock {
            array: id,
            member: id,
            own: Some(DeviceBinding {
                bytes: u64::MAX,
                copy_at: u64::MAX,
            }),
            roster: fullest,
        };
        let bytes = fullest.encoded()?.len() as u64;
        if bytes <= SUPERBLOCK_BYTES {
            return Ok(());
        }
        Err(ArrayError::Refused(format!(
            "a superblock of {} members and {} spares takes up to {bytes} bytes; expected at most \
             {SUPERBLOCK_BYTES}: fewer devices, or a shorter name and fewer keys; nothing was changed",
            self.slots.len(),
            self.spares.len()
        )))
    }
}

/// Upper bound of the count of events: no array reaches this number, because each event takes some
/// flushes.
const EVENTS_MOST: u64 = 999_999_999_999;
/// Number of bytes of a device's path to keep in any case.
const NAME_LEAST_BYTES: usize = 24;

/// A member's superblock.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Superblock {
    /// Identifier of the array.
    pub array: Uuid,
    /// Identifier of this member.
    pub member: Uuid,
    /// Description of the device; `None` in version 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own: Option<DeviceBinding>,
    /// Description of the array.
    pub roster: Roster,
}

/// The superblocks of a device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Copies {
    /// The newer of the whole copies.
    pub superblock: Superblock,
    /// Index of the newer copy: 0 is the copy at the start.
    pub newest: usize,
    /// True for each copy that is whole.
    pub whole: [bool; 2],
    /// Reasons why the device may not hold its superblock's data: its size, or a missing copy.
    /// Empty without doubts.
    pub doubts: Vec<String>,
    /// Member in the device's label (`label.rs`); `None` if the device has no label of this
    /// array.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<Uuid>,
}

impl Superblock {
    /// Encodes the superblock with the size of a copy. Paths of devices are shortened if necessary.
    ///
    /// # Errors
    /// The superblock is too long: too many members, or a long name or many keys.
    pub fn encode(&self) -> Result<Vec<u8>, ArrayError> {
        let mut bytes = self.encoded()?;
        // Names are shortened in steps and only as far as necessary, because they help people to
        // find the device.
        for most in [96, 48, NAME_LEAST_BYTES, 8] {
            if bytes.len() as u64 <= SUPERBLOCK_BYTES {
                break;
            }
            let mut shorter = self.clone();
            shorter.roster.shorten_names(most);
            bytes = shorter.encoded()?;
        }
        if bytes.len() as u64 > SUPERBLOCK_BYTES {
            return Err(ArrayError::Refused(format!(
                "the description of the array takes {} bytes; expected at most {SUPERBLOCK_BYTES}: fewer \
                 members, or shorter names and keys",
                bytes.len()
            )));
        }
        bytes.resize(SUPERBLOCK_BYTES as usize, 0);
        Ok(bytes)
    }

    /// Adds the description of the device and of the copy's place.
    pub(crate) fn on(mut self, device: &dyn Device, copy: usize) -> Superblock {
        let bytes = device.bytes();
        self.own = Some(DeviceBinding {
            bytes,
            copy_at: COPIES.place(copy, bytes),
        });
        self
    }

    /// Encodes the superblock with any length.
    fn encoded(&self) -> Result<Vec<u8>, ArrayError> {
        let roster = &self.roster;
        let (version, body) = match &self.own {
            Some(own) => (VERSION, serde_json::to_vec(&Body { own, roster })),
            None => (1, serde_json::to_vec(roster)),
        };
        let body = body.map_err(|error| ArrayError::Refused(error.to_string()))?;
        Ok(COPIES.seal(&StoreRecord {
            version,
            number: roster.events,
            store: self.array,
            member: self.member,
            body,
        }))
    }

    /// Decodes a superblock. Returns `None` if the bytes are none, or are damaged.
    ///
    /// # Errors
    /// The version is not known.
    pub fn decode(bytes: &[u8]) -> Result<Option<Superblock>, ArrayError> {
        let record = match COPIES.decode(bytes) {
            PlaceContent::Whole(record) => record,
            PlaceContent::Nothing => return Ok(None),
            PlaceContent::OtherVersion(version) => {
                return Err(ArrayError::Refused(format!(
                    "the superblock is of version {version}; expected 1 or {VERSION}: use the fullstroke that made it, or a newer one"
                )));
            }
        };
        let read = match record.version {
            1 => serde_json::from_slice(&record.body).map(|roster| (None, roster)),
            _ => {
                serde_json::from_slice(&record.body).map(|Body { own, roster }| (Some(own), roster))
            }
        };
        let (own, roster) = read.map_err(|error| {
            ArrayError::Refused(format!(
                "the superblock is whole, but not as expected: {error}"
            ))
        })?;
        Ok(Some(Superblock {
            array: record.store,
            member: record.member,
            own,
            roster,
        }))
    }
}

/// Content at the place of a copy.
enum Copy {
    Whole(Box<Superblock>),
    /// The magic is there, but the rest does not match: a write was torn.
    Torn,
    /// Zeros, or other data.
    Absent,
    Unread(io::Error),
}

impl Copy {
    fn read(device: &dyn Device, at: u64) -> Result<Copy, ArrayError> {
        let mut buffer = crate::device::Aligned::default();
        let bytes = buffer.of(SUPERBLOCK_BYTES as usize);
        if let Err(error) = device.read(at, bytes) {
            return Ok(Copy::Unread(error));
        }
        Ok(match Superblock::decode(bytes)? {
            // The copy is of another device, or of a partition that ends where this device ends.
            Some(found) if found.own.is_some_and(|own| own.copy_at != at) => Copy::Absent,
            Some(found) => Copy::Whole(Box::new(found)),
            None if bytes[..8] == MAGIC => Copy::Torn,
            None => Copy::Absent,
        })
    }

    fn whole(&self) -> Option<&Superblock> {
        match self {
            Copy::Whole(superblock) => Some(superblock),
            _ => None,
        }
    }
}

/// Reads the superblocks of a device; `None` without any.
///
/// # Errors
/// The device's, or an unknown version.
pub fn read(device: &dyn Device) -> Result<Option<Copies>, ArrayError> {
    let bytes = device.bytes();
    if bytes < START_BYTES + 2 * SUPERBLOCK_BYTES {
        return Ok(None);
    }
    let copies = [
        Copy::read(device, COPIES.place(0, bytes))?,
        Copy::read(device, COPIES.place(1, bytes))?,
    ];
    let whole = [0, 1].map(|copy: usize| copies[copy].whole().is_some());
    let newest = match (copies[0].whole(), copies[1].whole()) {
        (Some(start), Some(end)) => usize::from(end.roster.events > start.roster.events),
        (None, Some(_)) => 1,
        _ => 0,
    };
    let Some(superblock) = copies[newest].whole() else {
        return match copies.into_iter().find_map(|copy| match copy {
            Copy::Unread(error) => Some(error),
            _ => None,
        }) {
            Some(error) => Err(ArrayError::device(
                device.name(),
                "read the superblock of",
                error,
            )),
            None => Ok(None),
        };
    };
    let label = label::OF_ARRAYS
        .read(device, superblock.roster.label_at())
        .filter(|label| label.store() == superblock.array)
        .map(|label| label.member());
    let mut doubts = reasons_of_doubt(device, &copies, superblock)?;
    if let Some(label) = label.filter(|label| *label != superblock.member) {
        doubts.push(format!(
            "the superblocks name member {}, but the label, at byte {}, names member {label}: another program has written the superblocks",
            superblock.member,
            superblock.roster.label_at()
        ));
    }
    Ok(Some(Copies {
        superblock: superblock.clone(),
        newest,
        whole,
        doubts,
        label,
    }))
}

/// Returns the doubts about a device: its size, or a missing copy.
fn reasons_of_doubt(
    device: &dyn Device,
    copies: &[Copy; 2],
    newest: &Superblock,
) -> Result<Vec<String>, ArrayError> {
    let bytes = device.bytes();
    let mut doubts = Vec::new();
    let roster = &newest.roster;
    let slot = roster
        .slots
        .iter()
        .find(|slot| slot.member == newest.member);
    let data_end = slot.map(|slot| roster.data_at + slot.sectors * SECTOR_BYTES);
    // Version 1 does not record the size of the device, but the size of the data.
    let expected = match newest.own {
        Some(own) => own.bytes,
        None => data_end.map_or(0, |end| end + SUPERBLOCK_BYTES),
    };
    let was_cut = bytes < expected;
    if was_cut {
        doubts.push(format!(
            "it has {bytes} bytes; expected {expected}: it was cut"
        ));
    }
    if let (Some(start), Some(end)) = (copies[0].whole(), copies[1].whole())
        && (start.array, start.member) != (end.array, end.member)
    {
        doubts.push(format!(
            "its first superblock is of member {} of array {}, and its last of member {} of array {}",
            start.member, start.array, end.member, end.array
        ));
    }
    if matches!(copies[0], Copy::Absent) {
        doubts.push(format!(
            "the first superblock, at byte {START_BYTES}, is missing: another program has overwritten the beginning"
        ));
    }
    if matches!(copies[1], Copy::Absent) && !was_cut {
        // On a device that has grown, the last copy is at the former end.
        let before = match newest.own {
            Some(own) => COPIES.place(1, own.bytes),
            None => data_end.unwrap_or(0),
        };
        let has_grown = before >= START_BYTES + SUPERBLOCK_BYTES && before < COPIES.place(1, bytes);
        let is_same = |old: &Superblock| (old.array, old.member) == (newest.array, newest.member);
        if !(has_grown && Copy::read(device, before)?.whole().is_some_and(is_same)) {
            doubts.push(format!(
                "the last superblock, at byte {}, is missing: it was cut, or another program has overwritten the end",
                if has_grown { before } else { COPIES.place(1, bytes) }
            ));
        }
    }
    Ok(doubts)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::power::{SplitMix, simulated};
    use proptest::prelude::*;

    #[test]
    fn a_number_with_a_sign_is_no_uuid() {
        let digits = "0123456789abcdef0123456789abcdef";
        assert!(digits.parse::<Uuid>().is_ok());
        assert!(format!("+{}", &digits[1..]).parse::<Uuid>().is_err());
    }

    pub(crate) fn sample(events: u64) -> Superblock {
        let slot = |index: u8, state| MemberSlot {
            member: Uuid::from_bytes([index; 16]),
            device: format!("/dev/sd{index}"),
            sectors: 1 << 20,
            state,
            failed_at: 0,
            failed_after: None,
            measured: (index == 1).then_some(MemberRates {
                outer_bytes_per_s: 210_000_000,
                inner_bytes_per_s: 98_000_000,
                ratio_interval: (2.1, 2.2),
                zones: 24,
                seconds: 121.5,
            }),
        };
        let filling = SlotState::Filling {
            done_sectors: 77,
            missed_only: true,
        };
        let roster = Roster {
            name: "vol".into(),
            layout: "raid5".into(),
            keys: serde_json::Map::new(),
            created_s: 1,
            events,
            stamp: None,
            clean: false,
            journal: JournalPolicy::Partial,
            bitmap_at: 1 << 16,
            region_sectors: 2048,
            regions: 9,
            journal_at: 1 << 17,
            journal_bytes: 1 << 20,
            data_at: 2 << 20,
            block_bytes: 512,
            missed_since: Some(3),
            slots: vec![
                slot(1, SlotState::Alive),
                slot(2, SlotState::Failed),
                slot(3, filling),
            ],
            spares: vec![Spare {
                member: Uuid::from_bytes([9; 16]),
                device: "/dev/sdz".into(),
            }],
            low_gear: None,
        };
        Superblock {
            array: Uuid::from_bytes([5; 16]),
            member: Uuid::from_bytes([1; 16]),
            own: None,
            roster,
        }
    }

    /// A superblock of version 2, with all its new fields.
    fn sample_of_version_2(events: u64) -> Superblock {
        let mut sample = sample(events);
        sample.own = Some(DeviceBinding {
            bytes: 1 << 30,
            copy_at: START_BYTES,
        });
        sample.roster.stamp = Some(Stamp {
            id: Uuid::from_bytes([7; 16]),
            before: Some(Uuid::from_bytes([8; 16])),
            is_known_to_all: true,
        });
        let failed = &mut sample.roster.slots[1];
        (failed.failed_at, failed.failed_after) = (5, Some(Uuid::from_bytes([6; 16])));
        sample
    }

    #[test]
    fn a_superblock_reads_back_and_every_flipped_bit_is_found() {
        for sample in [sample(7), sample_of_version_2(7)] {
            let encoded = sample.encode().unwrap();
            assert_eq!(Superblock::decode(&encoded).unwrap(), Some(sample));
            let length = 64 + u32::from_le_bytes(encoded[12..16].try_into().unwrap()) as usize;
            // A flipped bit in the version is reported as an unknown version, because the sum is
            // right.
            for bit in (0..length * 8).step_by(3) {
                let mut flipped = encoded.clone();
                flipped[bit / 8] ^= 1 << (bit % 8);
                let found = Superblock::decode(&flipped);
                let is_version = (64..96).contains(&bit);
                assert!(
                    if is_version {
                        found.is_err()
                    } else {
                        found.unwrap().is_none()
                    },
                    "bit {bit}"
                );
            }
        }
    }

    /// A superblock of each version of the format, as existing arrays have it.
    const GOLDEN: [&str; 2] = [
        include_str!("superblock/version1.hex"),
        include_str!("superblock/version2.hex"),
    ];

    #[test]
    fn superblocks_of_arrays_that_are_there_read_as_they_were_written() {
        let digits: String = GOLDEN[1].split_whitespace().collect();
        let written = sample_of_version_2(7).encode().unwrap();
        let written: String = written[..digits.len() / 2]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        for (golden, expected) in GOLDEN.into_iter().zip([sample(7), sample_of_version_2(7)]) {
            let digits: String = golden.split_whitespace().collect();
            let golden = (0..digits.len())
                .step_by(2)
                .map(|at| u8::from_str_radix(&digits[at..at + 2], 16));
            let mut golden = golden.collect::<Result<Vec<u8>, _>>().unwrap();
            golden.resize(SUPERBLOCK_BYTES as usize, 0);
            let found = Superblock::decode(&golden).unwrap().expect("it is whole");
            assert_eq!(found, expected);
        }
        assert_eq!(written, digits, "version 2 is written as it was");
    }

    /// The table of docs/arrays.md.
    #[test]
    fn so_many_members_fit_into_a_superblock() {
        let most = |may_fail: fn(usize) -> usize| {
            let fits = |members: &usize| {
                let mut roster = sample(7).roster;
                // A disk of 20 TB.
                let slot = MemberSlot {
                    sectors: 39_062_500_000,
                    measured: None,
                    ..roster.slots[0].clone()
                };
                roster.slots = vec![slot; *members];
                roster.check_room(may_fail(*members), false).is_ok()
            };
            (1..200).take_while(fits).last()
        };
        let found = [
            most(|_| 0),
            most(|_| 1),
            most(|_| 2),
            most(|members| members - 1),
        ];
        assert_eq!(found, [Some(126), Some(125), Some(124), Some(61)]);
    }

    #[test]
    fn a_torn_copy_never_leaves_none() {
        let (devices, _) = simulated(1, 1 << 20);
        let device = &*devices[0];
        let mut newest = 1;
        let mut random = SplitMix(4);
        for events in 1..60 {
            let copy = 1 - newest;
            let encoded = sample(events).encode().unwrap();
            COPIES.write(device, copy, &encoded).unwrap();
            if events % 3 == 0 {
                // Power fails before the flush: the copy has some of its sectors.
                device.lose_power(&mut random, 50);
                let found = read(device).unwrap().expect("one copy is whole");
                assert!(found.superblock.roster.events >= events - 1);
                newest = found.newest;
            } else {
                device.flush().unwrap();
                newest = copy;
            }
        }
    }

    #[test]
    fn a_version_that_is_not_known_is_told() {
        let mut encoded = sample(7).encode().unwrap();
        encoded[8] = 3;
        let length = 64 + u32::from_le_bytes(encoded[12..16].try_into().unwrap()) as usize;
        assert!(
            Superblock::decode(&encoded)
                .unwrap_err()
                .to_string()
                .contains("version 3; expected 1 or 2")
        );
        encoded.truncate(length - 1);
        assert_eq!(Superblock::decode(&encoded).unwrap(), None);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_no_superblock(bytes in prop::collection::vec(any::<u8>(), 0..400), magic: bool) {
            let mut bytes = bytes;
            if magic && bytes.len() > 8 {
                bytes[..8].copy_from_slice(&MAGIC);
            }
            prop_assert!(!matches!(Superblock::decode(&bytes), Ok(Some(_))));
        }

        #[test]
        fn a_uuid_reads_back(bytes: [u8; 16]) {
            let uuid = Uuid::from_bytes(bytes);
            prop_assert_eq!(uuid.to_string().parse(), Ok(uuid));
        }
    }
}
