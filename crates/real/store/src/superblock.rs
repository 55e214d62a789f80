//! What each member says of itself and of its array.
//!
//! | bytes | what |
//! |---|---|
//! | 0..8 | `fsarray1` |
//! | 8..12 | version of the format, 1 |
//! | 12..16 | length of the body |
//! | 16..20 | CRC-32 of bytes 12 to 16, and of all from byte 20 to the end of the body |
//! | 20..24 | 0 |
//! | 24..32 | events |
//! | 32..48 | the array |
//! | 48..64 | this member |
//! | 64.. | the body: [`Roster`] as JSON |
//!
//! Numbers are little-endian. Two copies stand at 4 KiB from the start and 16
//! KiB before the end; each change goes to the older one, and is flushed
//! before the next goes to the other, so that one is always whole.

use crate::{ArrayError, Device};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io::{self, Read as _};
use std::str::FromStr;

pub(crate) const MAGIC: [u8; 8] = *b"fsarray1";
const VERSION: u32 = 1;
const HEADER_BYTES: usize = 64;
/// The room of a copy.
pub(crate) const SUPERBLOCK_BYTES: u64 = 16 << 10;
/// Where the first copy stands. Before it is nothing, so that nobody takes the
/// device for a boot disk.
pub(crate) const START_BYTES: u64 = 4096;

/// Names an array or a member among all others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uuid([u8; 16]);

impl Uuid {
    /// A new one, by the host's randomness (RFC 9562, version 4).
    ///
    /// # Errors
    /// The host's.
    pub fn new() -> io::Result<Uuid> {
        let mut bytes = [0; 16];
        std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        bytes[6] = bytes[6] & 0x0F | 0x40;
        bytes[8] = bytes[8] & 0x3F | 0x80;
        Ok(Uuid(bytes))
    }

    /// Its sixteen bytes.
    pub fn bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// The one with these bytes.
    pub const fn from_bytes(bytes: [u8; 16]) -> Uuid {
        Uuid(bytes)
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, byte) in self.0.iter().enumerate() {
            if [4, 6, 8, 10].contains(&index) {
                write!(f, "-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Uuid {
    type Err = String;
    fn from_str(text: &str) -> Result<Uuid, String> {
        let digits: String = text.chars().filter(|&digit| digit != '-').collect();
        let number = u128::from_str_radix(&digits, 16)
            .ok()
            .filter(|_| digits.len() == 32);
        let number =
            number.ok_or_else(|| format!("found `{text}`; expected 32 hexadecimal digits"))?;
        Ok(Uuid(number.to_be_bytes()))
    }
}

impl Serialize for Uuid {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Uuid {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Uuid, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

/// Which changes are written to the journal before they are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JournalPolicy {
    /// All but rows that are written whole while all members are there.
    #[default]
    Partial,
    /// All.
    All,
    /// None: a loss of power may cost what a member held that is missing
    /// afterwards.
    None,
}

/// How one place of the array is filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SlotState {
    /// Its member holds what it should.
    Alive,
    /// It has no member that does.
    Failed,
    /// Its member is being filled.
    Filling {
        /// Below this it is.
        done_sectors: u64,
        /// Only what it has missed is filled: see the bitmap.
        missed_only: bool,
    },
}

/// One place of the array.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Slot {
    /// The member that is there, or was last.
    pub member: Uuid,
    /// Where it was when it was last part of the array.
    pub device: String,
    /// Sectors for data.
    pub sectors: u64,
    /// How it is.
    pub state: SlotState,
    /// The count of events that first knew that it has failed.
    #[serde(default)]
    pub failed_at: u64,
    /// What was measured of it when the array was made, if anything was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<Measured>,
}

/// How fast a member reads, measured by timed reads where its data is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Of its outermost zone.
    pub outer_bytes_per_s: u64,
    /// Of its innermost one.
    pub inner_bytes_per_s: u64,
    /// Outer over inner rate at the edges: a 95 % interval.
    pub ratio_interval: (f64, f64),
    /// Zones that could be told apart.
    pub zones: u32,
    /// How long that took.
    pub seconds: f64,
}

/// A member that waits for one to fail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spare {
    /// Which.
    pub member: Uuid,
    /// Where.
    pub device: String,
}

/// Since when members stand: nothing was written to them, and they know of no event behind that.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LowGear {
    /// The count of events that first had it.
    pub since: u64,
    /// The places of the members that stand.
    pub standing: Vec<usize>,
}

/// The array, as each member has it written down.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Roster {
    /// Its name, for people and clients.
    pub name: String,
    /// The layout's name.
    pub layout: String,
    /// The layout's keys.
    pub keys: serde_json::Map<String, serde_json::Value>,
    /// Seconds since 1970 when it was made.
    pub created_s: u64,
    /// How often the array was assembled or stopped, or its members changed.
    pub events: u64,
    /// Whether it was stopped in order.
    pub clean: bool,
    /// Which changes go through the journal.
    pub journal: JournalPolicy,
    /// Where on each member the bitmap begins.
    pub bitmap_at: u64,
    /// Sectors of a member that one bit stands for.
    pub region_sectors: u64,
    /// How many regions there are.
    pub regions: u64,
    /// Where on each member the journal begins.
    pub journal_at: u64,
    /// Its length; 0 where there is no parity.
    pub journal_bytes: u64,
    /// Where on each member the data begins.
    pub data_at: u64,
    /// Requests of members are multiples of this.
    pub block_bytes: u64,
    /// Since which count of events the bitmap knows what failed members have
    /// missed; none while all are there.
    pub missed_since: Option<u64>,
    /// The places, in order.
    pub slots: Vec<Slot>,
    /// Members that wait.
    pub spares: Vec<Spare>,
    /// Whether an array with gears is in the low one; it counts as such while it rises.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low_gear: Option<LowGear>,
}

impl Roster {
    /// A member that knows so many events has been part of the array to the end.
    pub(crate) fn is_fresh(&self, slot: usize, events: u64) -> bool {
        let standing = self
            .low_gear
            .as_ref()
            .filter(|low| low.standing.contains(&slot));
        // One event behind: power failed while the others were told of something that nobody had acted on yet.
        events + 1 >= standing.map_or(self.events, |low| low.since)
    }
}

/// A member's superblock.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Superblock {
    /// The array.
    pub array: Uuid,
    /// This member.
    pub member: Uuid,
    /// What it knows.
    pub roster: Roster,
}

/// What is read from a device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Copies {
    /// The newer of the copies that are whole.
    pub superblock: Superblock,
    /// Which that is: 0 is the one at the start.
    pub newest: usize,
    /// Whether each is whole.
    pub whole: [bool; 2],
}

impl Superblock {
    /// As it stands on the device, in a copy's room.
    ///
    /// # Errors
    /// It does not fit: too many members, or too long names.
    pub fn encode(&self) -> Result<Vec<u8>, ArrayError> {
        let body = serde_json::to_vec(&self.roster)
            .map_err(|error| ArrayError::Refused(error.to_string()))?;
        let mut bytes = vec![0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&(body.len() as u32).to_le_bytes());
        bytes[24..32].copy_from_slice(&self.roster.events.to_le_bytes());
        bytes[32..48].copy_from_slice(self.array.bytes());
        bytes[48..64].copy_from_slice(self.member.bytes());
        bytes.extend(body);
        let sum = check_sum(&bytes);
        bytes[16..20].copy_from_slice(&sum.to_le_bytes());
        if bytes.len() as u64 > SUPERBLOCK_BYTES {
            return Err(ArrayError::Refused(format!(
                "what is to be known of the array takes {} bytes; expected at most {SUPERBLOCK_BYTES}: fewer \
                 members, or shorter names and keys",
                bytes.len()
            )));
        }
        bytes.resize(SUPERBLOCK_BYTES as usize, 0);
        Ok(bytes)
    }

    /// `None` if this is none, or not as it was written; an error if it is of a
    /// version that is not known here.
    ///
    /// # Errors
    /// The version.
    pub fn decode(bytes: &[u8]) -> Result<Option<Superblock>, ArrayError> {
        let Some(header) = bytes
            .get(..HEADER_BYTES)
            .filter(|header| header[..8] == MAGIC)
        else {
            return Ok(None);
        };
        let number = |at: usize| {
            u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        let body = HEADER_BYTES..HEADER_BYTES.saturating_add(number(12) as usize);
        let Some(body) = bytes
            .get(body.clone())
            .filter(|_| body.end as u64 <= SUPERBLOCK_BYTES)
        else {
            return Ok(None);
        };
        if check_sum(&bytes[..HEADER_BYTES + body.len()]) != number(16) {
            return Ok(None);
        }
        if number(8) != VERSION {
            return Err(ArrayError::Refused(format!(
                "the superblock is of version {}; expected {VERSION}: use the fullstroke that made it, or a newer one",
                number(8)
            )));
        }
        let uuid = |at: usize| {
            let mut bytes = [0; 16];
            bytes.copy_from_slice(&header[at..at + 16]);
            Uuid(bytes)
        };
        let roster = serde_json::from_slice(body).map_err(|error| {
            ArrayError::Refused(format!(
                "the superblock is whole, but not as expected: {error}"
            ))
        })?;
        Ok(Some(Superblock {
            array: uuid(32),
            member: uuid(48),
            roster,
        }))
    }
}

/// Of all but the magic, the version and itself: of a version that is not known
/// that much must be told.
fn check_sum(bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&bytes[12..16]);
    hasher.update(&bytes[20..]);
    hasher.finalize()
}

/// Where the copy at the end stands on a device of so many bytes.
pub(crate) fn end_copy(bytes: u64) -> u64 {
    bytes / 4096 * 4096 - SUPERBLOCK_BYTES
}

fn place(copy: usize, bytes: u64) -> u64 {
    if copy == 0 {
        START_BYTES
    } else {
        end_copy(bytes)
    }
}

/// The superblock of a device, if it has one.
///
/// # Errors
/// The device's, or a version that is not known here.
pub fn read(device: &dyn Device) -> Result<Option<Copies>, ArrayError> {
    if device.bytes() < START_BYTES + 2 * SUPERBLOCK_BYTES {
        return Ok(None);
    }
    let mut buffer = crate::device::Aligned::default();
    let mut found = [None, None];
    let mut failed = None;
    for (copy, found) in found.iter_mut().enumerate() {
        let bytes = buffer.of(SUPERBLOCK_BYTES as usize);
        match device.read(place(copy, device.bytes()), bytes) {
            Ok(()) => *found = Superblock::decode(bytes)?,
            Err(error) => failed = Some(error),
        }
    }
    let whole = [found[0].is_some(), found[1].is_some()];
    let [start, end] = found;
    let newest = match (&start, &end) {
        (Some(start), Some(end)) => usize::from(end.roster.events > start.roster.events),
        (None, Some(_)) => 1,
        _ => 0,
    };
    match (if newest == 0 { start } else { end }, failed) {
        (Some(superblock), _) => Ok(Some(Copies {
            superblock,
            newest,
            whole,
        })),
        (None, Some(error)) => Err(ArrayError::device(
            device.name(),
            "read the superblock of",
            error,
        )),
        (None, None) => Ok(None),
    }
}

/// Writes one copy. To be flushed before the next.
pub(crate) fn write(device: &dyn Device, copy: usize, encoded: &[u8]) -> io::Result<()> {
    let mut buffer = crate::device::Aligned::default();
    let bytes = buffer.of(encoded.len());
    bytes.copy_from_slice(encoded);
    device.write(place(copy, device.bytes()), bytes)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::power::{Random, simulated};
    use proptest::prelude::*;

    pub(crate) fn sample(events: u64) -> Superblock {
        let slot = |index: u8, state| Slot {
            member: Uuid([index; 16]),
            device: format!("/dev/sd{index}"),
            sectors: 1 << 20,
            state,
            failed_at: 0,
            measured: (index == 1).then_some(Measured {
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
                member: Uuid([9; 16]),
                device: "/dev/sdz".into(),
            }],
            low_gear: None,
        };
        Superblock {
            array: Uuid([5; 16]),
            member: Uuid([1; 16]),
            roster,
        }
    }

    #[test]
    fn a_superblock_reads_back_and_every_flipped_bit_is_found() {
        let sample = sample(7);
        let encoded = sample.encode().unwrap();
        assert_eq!(Superblock::decode(&encoded).unwrap(), Some(sample));
        let length =
            HEADER_BYTES + u32::from_le_bytes(encoded[12..16].try_into().unwrap()) as usize;
        // The version is told rather than doubted, once the sum is right.
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

    /// A member as the first version of the format has it: what arrays that are there say.
    const GOLDEN: &str = include_str!("superblock/version1.hex");

    #[test]
    fn superblocks_of_arrays_that_are_there_read_as_they_were_written() {
        let digits: String = GOLDEN.split_whitespace().collect();
        let golden = (0..digits.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&digits[at..at + 2], 16));
        let mut golden = golden.collect::<Result<Vec<u8>, _>>().unwrap();
        golden.resize(SUPERBLOCK_BYTES as usize, 0);
        let found = Superblock::decode(&golden).unwrap().expect("it is whole");
        assert_eq!(found, sample(7));
        // An older program reads what is written now.
        assert_eq!(found.encode().unwrap(), golden);
    }

    #[test]
    fn a_torn_copy_never_leaves_none() {
        let (devices, _) = simulated(1, 1 << 20);
        let device = &*devices[0];
        let mut newest = 1;
        let mut random = Random(4);
        for events in 1..60 {
            let copy = 1 - newest;
            write(device, copy, &sample(events).encode().unwrap()).unwrap();
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
        encoded[8] = 2;
        let length =
            HEADER_BYTES + u32::from_le_bytes(encoded[12..16].try_into().unwrap()) as usize;
        assert!(
            Superblock::decode(&encoded)
                .unwrap_err()
                .to_string()
                .contains("version 2; expected 1")
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
            let uuid = Uuid(bytes);
            prop_assert_eq!(uuid.to_string().parse(), Ok(uuid));
        }
    }
}
