//! What each member says of itself and of its array.
//!
//! | bytes | what |
//! |---|---|
//! | 0..8 | `fsarray1` |
//! | 8..12 | version of the format, 1 or 2 |
//! | 12..16 | length of the body |
//! | 16..20 | CRC-32 of bytes 12 to 16, and of all from byte 20 to the end of the body |
//! | 20..24 | 0 |
//! | 24..32 | events |
//! | 32..48 | the array |
//! | 48..64 | this member |
//! | 64.. | the body as JSON: of version 1 a [`Roster`], of version 2 an [`Own`] and a [`Roster`] |
//!
//! Numbers are little-endian. Two copies stand at 4 KiB from the start and 16
//! KiB before the end; each change goes to the older one, and is flushed
//! before the next goes to the other, so that one is always whole. Arrays of
//! version 1 are read, and become version 2 when they are assembled.
//!
//! # Events
//! A change of the roster is an event. Each event is written twice, as two
//! numbers: first every member is told of the change, then every member is told
//! that all others know of the change. Data are written after that. Each number
//! has a random [id](Stamp), and names the id of the number before.
//!
//! So a member that is one number behind was interrupted while it was told if its
//! id is the one that the newest superblock names as the number before. A member that was
//! restored from a backup of an earlier assembly is at least two numbers behind.
//! Two members with the same number and different ids have been used apart from
//! each other.
//!
//! # Doubts
//! A member whose size, copies or their places are not as they were left was cut,
//! or somebody else has written to it ([`Copies::doubts`]). A write that was torn
//! by a loss of power leaves the mark at the beginning of a copy, since a sector is
//! written whole: a copy without the mark was not torn, but overwritten or cut off.

use crate::label::{self, Label};
use crate::{ArrayError, Device};
use fullstroke_units::SECTOR_BYTES;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io::{self, Read as _};
use std::str::FromStr;

pub(crate) const MAGIC: [u8; 8] = *b"fsarray1";
/// The version that is written; version 1 is read, too.
const VERSION: u32 = 2;
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

/// Which event a superblock knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// Random: names this number of events among all that were ever counted.
    pub id: Uuid,
    /// The id of the number before; none if that was counted by version 1.
    pub before: Option<Uuid>,
    /// True if all members know of the change. Data may have been written since.
    pub is_known_to_all: bool,
}

/// What a superblock says of the device that it stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Own {
    /// The device's size in bytes.
    pub bytes: u64,
    /// The byte at which this copy stands.
    pub copy_at: u64,
}

/// The body of version 2.
#[derive(Serialize, Deserialize)]
struct Body<O, R> {
    own: O,
    roster: R,
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
    /// The count of events that first knew that it has failed; 0 unless it has.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failed_at: u64,
    /// The id of the event before that, which a member that held everything until it failed knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_after: Option<Uuid>,
    /// What was measured of it when the array was made, if anything was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<Measured>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
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
    /// Counts assemblies, stops and changes of members, each twice.
    pub events: u64,
    /// Which event that is; none in arrays of version 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stamp: Option<Stamp>,
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

/// How what a member knows compares with what is known of the array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Knowledge {
    /// It was part of the array to the end.
    Fresh,
    /// It was told of the newest event, or was about to be: nobody has acted on that.
    Interrupted,
    /// It has missed something, or nothing proves that it has not.
    Behind,
    /// It was used without the others, and they without it.
    Apart,
}

impl Roster {
    /// The id of the newest event.
    pub(crate) fn event_id(&self) -> Option<Uuid> {
        self.stamp.map(|stamp| stamp.id)
    }

    /// Counts on: the next superblock that is written has a number and an id of its own.
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

    /// What the member in `slot` knows, whose superblock has the roster `own`.
    pub(crate) fn knowledge(&self, slot: usize, own: &Roster) -> Knowledge {
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
        let stands = low.is_some_and(|low| low.standing.contains(&slot) && own.events >= low.since);
        match stands && own.events < self.events {
            true => Knowledge::Fresh,
            false => Knowledge::Behind,
        }
    }

    /// Keeps the end of each device's path: these names are only for people.
    fn shorten_names(&mut self, most: usize) {
        let slots = self.slots.iter_mut().map(|slot| &mut slot.device);
        let spares = self.spares.iter_mut().map(|spare| &mut spare.device);
        for name in slots.chain(spares) {
            if name.len() > most {
                let mut from = name.len() - most + 3;
                while !name.is_char_boundary(from) {
                    from += 1;
                }
                *name = format!("...{}", &name[from..]);
            }
        }
    }

    /// An error if a superblock could be too small for this array one day: when as many members as it
    /// survives have failed and are filled again.
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
        // So that the number of members that fit does not depend on what their devices are called.
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
            own: Some(Own {
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

/// No array counts so many events: each takes some flushes.
const EVENTS_MOST: u64 = 999_999_999_999;
/// So much of a device's path is kept in any case.
const NAME_LEAST_BYTES: usize = 24;

/// A member's superblock.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Superblock {
    /// The array.
    pub array: Uuid,
    /// This member.
    pub member: Uuid,
    /// What it says of its device; nothing in version 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own: Option<Own>,
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
    /// Why the device may not hold what its superblock says: its size, or a copy that is not where it
    /// was written. Empty if nothing speaks against it.
    pub doubts: Vec<String>,
    /// The member that the device's [label](crate::label) names; none if the device has no label of this
    /// array.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<Uuid>,
}

impl Superblock {
    /// As it stands on the device, in a copy's room. Paths of devices are shortened if they do not fit.
    ///
    /// # Errors
    /// It does not fit: too many members, or a long name or many keys.
    pub fn encode(&self) -> Result<Vec<u8>, ArrayError> {
        let mut bytes = self.encoded()?;
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
                "what is to be known of the array takes {} bytes; expected at most {SUPERBLOCK_BYTES}: fewer \
                 members, or shorter names and keys",
                bytes.len()
            )));
        }
        bytes.resize(SUPERBLOCK_BYTES as usize, 0);
        Ok(bytes)
    }

    /// The same for a copy on a device, of which it says where it stands.
    pub(crate) fn on(mut self, device: &dyn Device, copy: usize) -> Superblock {
        let bytes = device.bytes();
        self.own = Some(Own {
            bytes,
            copy_at: place(copy, bytes),
        });
        self
    }

    /// However long it is.
    fn encoded(&self) -> Result<Vec<u8>, ArrayError> {
        let roster = &self.roster;
        let (version, body) = match &self.own {
            Some(own) => (VERSION, serde_json::to_vec(&Body { own, roster })),
            None => (1, serde_json::to_vec(roster)),
        };
        let body = body.map_err(|error| ArrayError::Refused(error.to_string()))?;
        let mut bytes = vec![0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&version.to_le_bytes());
        bytes[12..16].copy_from_slice(&(body.len() as u32).to_le_bytes());
        bytes[24..32].copy_from_slice(&self.roster.events.to_le_bytes());
        bytes[32..48].copy_from_slice(self.array.bytes());
        bytes[48..64].copy_from_slice(self.member.bytes());
        bytes.extend(body);
        let sum = check_sum(&bytes);
        bytes[16..20].copy_from_slice(&sum.to_le_bytes());
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
        if !(1..=VERSION).contains(&number(8)) {
            return Err(ArrayError::Refused(format!(
                "the superblock is of version {}; expected 1 or {VERSION}: use the fullstroke that made it, or a newer one",
                number(8)
            )));
        }
        let uuid = |at: usize| {
            let mut bytes = [0; 16];
            bytes.copy_from_slice(&header[at..at + 16]);
            Uuid(bytes)
        };
        let read = match number(8) {
            1 => serde_json::from_slice(body).map(|roster| (None, roster)),
            _ => serde_json::from_slice(body).map(|Body { own, roster }| (Some(own), roster)),
        };
        let (own, roster) = read.map_err(|error| {
            ArrayError::Refused(format!(
                "the superblock is whole, but not as expected: {error}"
            ))
        })?;
        Ok(Some(Superblock {
            array: uuid(32),
            member: uuid(48),
            own,
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

/// Where a copy stands on a device of so many bytes.
pub(crate) fn place(copy: usize, bytes: u64) -> u64 {
    if copy == 0 {
        START_BYTES
    } else {
        end_copy(bytes)
    }
}

/// What stands at the place of a copy.
enum Copy {
    Whole(Box<Superblock>),
    /// Its mark is there: a write was torn.
    Torn,
    /// Nothing, or something else.
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
            // A copy of another device, or of a partition that ends where this device ends.
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

/// The superblock of a device, if it has one.
///
/// # Errors
/// The device's, or a version that is not known here.
pub fn read(device: &dyn Device) -> Result<Option<Copies>, ArrayError> {
    let bytes = device.bytes();
    if bytes < START_BYTES + 2 * SUPERBLOCK_BYTES {
        return Ok(None);
    }
    let copies = [
        Copy::read(device, place(0, bytes))?,
        Copy::read(device, place(1, bytes))?,
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
    let label = Label::read(device, &superblock.roster)
        .filter(|label| label.array == superblock.array)
        .map(|label| label.member);
    let mut doubts = doubts(device, &copies, superblock)?;
    if let Some(label) = label.filter(|label| *label != superblock.member) {
        doubts.push(format!(
            "its superblocks say that it is member {}, and its label, at byte {}, that it is member {label}: its \
             superblocks were written by somebody else",
            superblock.member,
            label::place(&superblock.roster)
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

/// What speaks against a device: its size, or a copy that is not there.
fn doubts(
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
    // Version 1 does not say how large the device was, but how much of it is data.
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
            "its first superblock, at byte {START_BYTES}, is not there: somebody has written over its beginning"
        ));
    }
    if matches!(copies[1], Copy::Absent) && !was_cut {
        // A device that has grown has it where its end was before.
        let before = match newest.own {
            Some(own) => end_copy(own.bytes),
            None => data_end.unwrap_or(0),
        };
        let has_grown = before >= START_BYTES + SUPERBLOCK_BYTES && before < end_copy(bytes);
        let is_same = |old: &Superblock| (old.array, old.member) == (newest.array, newest.member);
        if !(has_grown && Copy::read(device, before)?.whole().is_some_and(is_same)) {
            doubts.push(format!(
                "its last superblock, at byte {}, is not there: it was cut, or somebody has written over its end",
                if has_grown { before } else { end_copy(bytes) }
            ));
        }
    }
    Ok(doubts)
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
            failed_after: None,
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
                member: Uuid([9; 16]),
                device: "/dev/sdz".into(),
            }],
            low_gear: None,
        };
        Superblock {
            array: Uuid([5; 16]),
            member: Uuid([1; 16]),
            own: None,
            roster,
        }
    }

    /// The same as version 2 has it, with all that version 1 does not know.
    fn sample_of_version_2(events: u64) -> Superblock {
        let mut sample = sample(events);
        sample.own = Some(Own {
            bytes: 1 << 30,
            copy_at: START_BYTES,
        });
        sample.roster.stamp = Some(Stamp {
            id: Uuid([7; 16]),
            before: Some(Uuid([8; 16])),
            is_known_to_all: true,
        });
        let failed = &mut sample.roster.slots[1];
        (failed.failed_at, failed.failed_after) = (5, Some(Uuid([6; 16])));
        sample
    }

    #[test]
    fn a_superblock_reads_back_and_every_flipped_bit_is_found() {
        for sample in [sample(7), sample_of_version_2(7)] {
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
    }

    /// A member as each version of the format has it: what arrays that are there say.
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
                let slot = Slot {
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
        encoded[8] = 3;
        let length =
            HEADER_BYTES + u32::from_le_bytes(encoded[12..16].try_into().unwrap()) as usize;
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
            let uuid = Uuid(bytes);
            prop_assert_eq!(uuid.to_string().parse(), Ok(uuid));
        }
    }
}
