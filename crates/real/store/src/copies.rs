//! A sealed record with two copies on a device.
//!
//! | bytes | content |
//! |---|---|
//! | 0..8 | the magic of the record's kind |
//! | 8..12 | version of the format |
//! | 12..16 | length of the body |
//! | 16..20 | CRC-32 of bytes 12 to 16, and of all from byte 20 to the end of the body |
//! | 20..24 | 0 |
//! | 24..32 | number: the newer of two copies has the higher one |
//! | 32..48 | the store |
//! | 48..64 | the member |
//! | 64.. | the body |
//!
//! Numbers are little-endian. One copy stands at 4 KiB from the start of the device, the other at
//! its end. Each change goes to the older copy, and is flushed before the next goes to the other.
//! So one copy is always whole. The superblocks of arrays (`superblock.rs`) and the descriptions and
//! labels of folders (`bytes/description.rs`) are such records.

use crate::Device;
use crate::device::Aligned;
use crate::uuid::Uuid;
use std::io;

const HEADER_BYTES: usize = 64;
/// Size of a block for every device.
const BLOCK_BYTES: usize = 4096;
/// First byte of the first copy. The bytes before it stay zero, so no program takes the device for
/// a boot disk.
pub(crate) const START_BYTES: u64 = 4096;

/// A kind of records.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordKind {
    pub(crate) magic: [u8; 8],
    /// Oldest version that is read.
    pub(crate) oldest: u32,
    /// Newest version that is read.
    pub(crate) version: u32,
    /// Size of a copy.
    pub(crate) room: u64,
}

/// A record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoreRecord {
    pub(crate) version: u32,
    pub(crate) number: u64,
    pub(crate) store: Uuid,
    pub(crate) member: Uuid,
    pub(crate) body: Vec<u8>,
}

/// Content at the place of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PlaceContent {
    /// No whole record.
    Nothing,
    /// A whole record of another version.
    OtherVersion(u32),
    Whole(StoreRecord),
}

impl RecordKind {
    /// Encodes the record in whole blocks; `None` if the record is too long.
    pub(crate) fn encode(&self, record: &StoreRecord) -> Option<Vec<u8>> {
        let mut bytes = self.seal(record);
        bytes.resize(bytes.len().next_multiple_of(BLOCK_BYTES), 0);
        (bytes.len() as u64 <= self.room).then_some(bytes)
    }

    /// Encodes the record with any length.
    pub(crate) fn seal(&self, record: &StoreRecord) -> Vec<u8> {
        assert!(
            (self.oldest..=self.version).contains(&record.version),
            "a record is written only in a version that is read"
        );
        let mut bytes = vec![0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&self.magic);
        bytes[8..12].copy_from_slice(&record.version.to_le_bytes());
        bytes[12..16].copy_from_slice(&(record.body.len() as u32).to_le_bytes());
        bytes[24..32].copy_from_slice(&record.number.to_le_bytes());
        bytes[32..48].copy_from_slice(record.store.bytes());
        bytes[48..64].copy_from_slice(record.member.bytes());
        bytes.extend(&record.body);
        let sum = check_sum(&bytes);
        bytes[16..20].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Decodes a record.
    pub(crate) fn decode(&self, bytes: &[u8]) -> PlaceContent {
        let Some(header) = bytes
            .get(..HEADER_BYTES)
            .filter(|header| header[..8] == self.magic)
        else {
            return PlaceContent::Nothing;
        };
        let number = |at: usize| u32_at(header, at).unwrap_or_default();
        // The length comes from the device and may be damaged.
        let body = bytes[HEADER_BYTES..].get(..number(12) as usize);
        let Some(body) = body.filter(|body| (HEADER_BYTES + body.len()) as u64 <= self.room) else {
            return PlaceContent::Nothing;
        };
        // Checked before the version: only a whole record can be one of another version.
        if check_sum(&bytes[..HEADER_BYTES + body.len()]) != number(16) {
            return PlaceContent::Nothing;
        }
        if !(self.oldest..=self.version).contains(&number(8)) {
            return PlaceContent::OtherVersion(number(8));
        }
        let sixteen = |at: usize| {
            let mut bytes = [0; 16];
            bytes.copy_from_slice(&header[at..at + 16]);
            Uuid::from_bytes(bytes)
        };
        PlaceContent::Whole(StoreRecord {
            version: number(8),
            number: u64::from(number(24)) | u64::from(number(28)) << 32,
            store: sixteen(32),
            member: sixteen(48),
            body: body.to_vec(),
        })
    }

    /// Returns the first byte of a copy on a device with so many bytes: 0 is the copy at the start.
    pub(crate) fn place(&self, copy: usize, bytes: u64) -> u64 {
        debug_assert!(
            copy < 2 && bytes >= self.room,
            "copy {copy} has no place on {bytes} bytes"
        );
        if copy == 0 {
            START_BYTES
        } else {
            bytes / 4096 * 4096 - self.room
        }
    }

    /// Reads both copies of a device.
    pub(crate) fn read(&self, device: &dyn Device) -> [io::Result<PlaceContent>; 2] {
        [0, 1].map(|copy| {
            let place = self.place(copy, device.bytes());
            let mut buffer = Aligned::default();
            let first = buffer.of(BLOCK_BYTES);
            device.read(place, first)?;
            let length = u32_at(first, 12).map_or(0, |body| HEADER_BYTES as u64 + u64::from(body));
            // A damaged length must not ask for more memory than a record takes.
            if first[..8] != self.magic || length > self.room {
                return Ok(PlaceContent::Nothing);
            }
            let bytes = buffer.of((length as usize).next_multiple_of(BLOCK_BYTES));
            device.read(place, bytes)?;
            Ok(self.decode(bytes))
        })
    }

    /// Writes one copy. The caller flushes the device before the next write.
    pub(crate) fn write(&self, device: &dyn Device, copy: usize, encoded: &[u8]) -> io::Result<()> {
        assert!(
            encoded.len() as u64 <= self.room && encoded.len().is_multiple_of(BLOCK_BYTES),
            "a copy of {} bytes does not fit into {}",
            encoded.len(),
            self.room
        );
        let mut buffer = Aligned::default();
        let bytes = buffer.of(encoded.len());
        bytes.copy_from_slice(encoded);
        device.write(self.place(copy, device.bytes()), bytes)
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// Returns the check sum of all bytes but the magic, the version and the sum itself. The version is
/// left out, so another version is recognised as such and does not look like damage.
fn check_sum(bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&bytes[12..16]);
    hasher.update(&bytes[20..]);
    hasher.finalize()
}
