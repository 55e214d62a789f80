//! Blocks and labels that say what they belong to, with check sums: what was
//! flipped, zeroed, swapped or put back from elsewhere is found.

use std::fmt;
use std::io::{self, Read};
use std::str::FromStr;

/// A block of bits in a file: one sector.
pub(crate) const BLOCK_BYTES: usize = 512;
/// The bits in it.
pub(crate) const BITS_BYTES: usize = 500;
const MAGIC: [u8; 4] = *b"fsbt";

const LABEL_MAGIC: [u8; 8] = *b"fsmemb02";
/// The room of a label behind the bytes of a drive.
pub(crate) const LABEL_BYTES: u64 = 4096;
const PATH_BYTES: usize = 128;

/// Names a store among all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoreId([u8; 16]);

impl StoreId {
    /// A new one, by the host's randomness.
    pub(crate) fn new() -> io::Result<StoreId> {
        let mut bytes = [0; 16];
        std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        Ok(StoreId(bytes))
    }
}

impl fmt::Display for StoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for StoreId {
    type Err = String;
    fn from_str(text: &str) -> Result<StoreId, String> {
        let number = u128::from_str_radix(text, 16)
            .ok()
            .filter(|_| text.len() == 32);
        let number =
            number.ok_or_else(|| format!("found `{text}`; expected 32 hexadecimal digits"))?;
        Ok(StoreId(number.to_be_bytes()))
    }
}

fn check_sum(id: &StoreId, parts: &[&[u8]]) -> [u8; 4] {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&id.0);
    parts.iter().for_each(|part| hasher.update(part));
    hasher.finalize().to_le_bytes()
}

/// The block number `index` of bits, at most [`BITS_BYTES`] of them.
pub(crate) fn seal(bits: &[u8], index: u64, id: &StoreId) -> [u8; BLOCK_BYTES] {
    let mut block = [0; BLOCK_BYTES];
    block[..bits.len()].copy_from_slice(bits);
    block[BITS_BYTES..][..4].copy_from_slice(&MAGIC);
    block[BITS_BYTES + 4..][..4].copy_from_slice(&(index as u32).to_le_bytes());
    let sum = check_sum(id, &[&block[..BITS_BYTES + 8]]);
    block[BITS_BYTES + 8..].copy_from_slice(&sum);
    block
}

/// The bits of the block number `index`; `None` if it is no such block.
pub(crate) fn unseal<'a>(block: &'a [u8], index: u64, id: &StoreId) -> Option<&'a [u8]> {
    let bits = block.get(..BITS_BYTES)?;
    (block == seal(bits, index, id)).then_some(bits)
}

/// What a drive's file says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Label {
    pub(crate) id: StoreId,
    /// Which member it is: its indices from the top.
    pub(crate) member: String,
    /// How often the store was opened, and members failed or were replaced, when
    /// this one was last part of it.
    pub(crate) events: u64,
}

impl Label {
    pub(crate) fn encode(&self) -> [u8; BLOCK_BYTES] {
        let mut block = [0; BLOCK_BYTES];
        block[..8].copy_from_slice(&LABEL_MAGIC);
        block[8..24].copy_from_slice(&self.id.0);
        block[24..32].copy_from_slice(&self.events.to_le_bytes());
        let member = &self.member.as_bytes()[..self.member.len().min(PATH_BYTES)];
        block[32] = member.len() as u8;
        block[33..][..member.len()].copy_from_slice(member);
        let sum = check_sum(&self.id, &[&block[..BLOCK_BYTES - 4]]);
        block[BLOCK_BYTES - 4..].copy_from_slice(&sum);
        block
    }

    /// `None` if this is no label, or not as it was written.
    pub(crate) fn decode(block: &[u8; BLOCK_BYTES]) -> Option<Label> {
        let id = StoreId(block[8..24].try_into().ok()?);
        let events = u64::from_le_bytes(block[24..32].try_into().ok()?);
        let member = block.get(33..33 + block[32] as usize)?;
        let member = String::from_utf8(member.to_vec()).ok()?;
        let label = Label { id, member, events };
        (label.encode() == *block).then_some(label)
    }

    /// What is the matter with a member whose label was `found`, if this was
    /// expected. A label may be one event ahead: labels are written before the
    /// store's description.
    pub(crate) fn complaint(&self, found: Option<&Label>) -> Option<String> {
        let expected = format!("expected member `{}` of store {}", self.member, self.id);
        let found = match found {
            None => "has no whole label behind its bytes".to_owned(),
            Some(found) if found.id != self.id => format!("is of another store, {}", found.id),
            Some(found) if found.member != self.member => format!("is member `{}`", found.member),
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

#[cfg(test)]
mod tests {
    use super::*;

    const ID: StoreId = StoreId([7; 16]);

    #[test]
    fn every_flipped_bit_of_a_block_or_label_is_found() {
        let label = Label {
            id: ID,
            member: "1.0".into(),
            events: 9,
        };
        assert_eq!(Label::decode(&label.encode()), Some(label.clone()));
        let block = seal(&[0x5A; 17], 3, &ID);
        assert_eq!(
            unseal(&block, 3, &ID).unwrap()[..18],
            [&[0x5A; 17][..], &[0]].concat()
        );
        assert!(unseal(&block, 4, &ID).is_none() && unseal(&block, 3, &StoreId([8; 16])).is_none());
        assert!(unseal(&[0; BLOCK_BYTES], 0, &ID).is_none());
        for bit in 0..BLOCK_BYTES * 8 {
            let (mut block, mut coded) = (block, label.encode());
            block[bit / 8] ^= 1 << (bit % 8);
            coded[bit / 8] ^= 1 << (bit % 8);
            assert!(
                unseal(&block, 3, &ID).is_none() && Label::decode(&coded).is_none(),
                "bit {bit}"
            );
        }
    }

    #[test]
    fn a_store_is_named_by_digits_that_name_it_again() {
        let id = StoreId::new().unwrap();
        assert_eq!(id.to_string().parse(), Ok(id));
        assert!(
            "12".parse::<StoreId>()
                .unwrap_err()
                .contains("32 hexadecimal digits")
        );
    }
}
