//! A record of the changes that are about to be made, so that they can be made
//! to the end after the process was killed.
//!
//! A degraded array cannot be mended from its own redundancy: if data was
//! written and parity was not yet, what the failed member held is computed
//! wrongly, also where nobody wrote. So all changes of a request are written
//! down before the first of them is made. Requests are carried out one at a
//! time, so that there is never more than one record to keep; it is
//! overwritten by the next. The file's first block says which store it is of.

use crate::bytes::StoreError;
use crate::bytes::lock::OWNER;
use crate::bytes::sealed::{BLOCK_BYTES, StoreId, seal, unseal};
use crate::bytes::sync::ToSync;
use crate::bytes::transaction::{Change, Kind, Transaction};
use fullstroke_contract::Extent;
use fullstroke_units::SECTOR_BYTES;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The file's name in a store's folder.
pub(crate) const NAME: &str = "journal";

/// What a record begins with: the format and its version.
const MAGIC: [u8; 8] = *b"fsredo01";
/// Magic, checksum, number of changes, and number of bytes behind them.
const HEAD_BYTES: usize = 24;
/// Medium, kind, first sector, sectors.
const CHANGE_BYTES: usize = 24;

const WRITE: u32 = 0;
const ZERO_KEEPING_ROOM: u32 = 1;
const ZERO_AS_HOLE: u32 = 2;

/// The file with the record: a head, the changes, then the bytes that they
/// write. The checksum covers all that follows it.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    file: Arc<File>,
    /// The epoch of the file's last change.
    changed: u64,
    /// Head and changes; kept for its room.
    index: Vec<u8>,
}

impl Journal {
    /// Opens or makes the file. An error if it is not this store's and may have
    /// been `needed`.
    pub(crate) fn open(folder: &Path, id: StoreId, needed: bool) -> Result<Journal, StoreError> {
        let path = folder.join(NAME);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(OWNER)
            .open(&path);
        let file = file.map_err(|error| StoreError::host("open", &path, error))?;
        let mut head = [0; BLOCK_BYTES];
        let whole = file.read_exact_at(&mut head, 0).is_ok() && unseal(&head, 0, &id).is_some();
        if !whole && needed {
            return Err(missing(path, id));
        }
        if !whole {
            let made = file
                .set_len(0)
                .and_then(|()| file.write_all_at(&seal(&[], 0, &id), 0));
            made.and_then(|()| file.sync_data())
                .map_err(|error| StoreError::host("make", &path, error))?;
        }
        Ok(Journal {
            path,
            file: Arc::new(file),
            changed: 0,
            index: Vec::new(),
        })
    }

    /// Writes the transaction down. The head comes last: until it stands there
    /// whole, there is no record.
    pub(crate) fn record(
        &mut self,
        transaction: &Transaction,
        epoch: u64,
    ) -> Result<(), StoreError> {
        self.changed = epoch;
        encode(transaction, &mut self.index);
        let written = self
            .file
            .write_all_at(&transaction.bytes, (BLOCK_BYTES + self.index.len()) as u64)
            .and_then(|()| self.file.write_all_at(&self.index, BLOCK_BYTES as u64));
        written.map_err(|error| StoreError::host("write to", &self.path, error))
    }

    /// The record, if there is a whole one.
    pub(crate) fn read(&self) -> Result<Option<Transaction>, StoreError> {
        let bytes = std::fs::read(&self.path)
            .map_err(|error| StoreError::host("read", &self.path, error))?;
        Ok(decode(bytes.get(BLOCK_BYTES..).unwrap_or_default()))
    }

    /// The file, if it was changed after the epoch `synced`. It is made durable
    /// with the media: after a loss of power, a record from before would undo
    /// what was durable.
    pub(crate) fn file_changed_since(&self, synced: u64) -> Option<ToSync> {
        let name = self.path.display().to_string();
        (self.changed > synced).then(|| ToSync {
            medium: None,
            name,
            file: self.file.clone(),
        })
    }

    /// Forgets the record.
    pub(crate) fn clear(&mut self, epoch: u64) -> Result<(), StoreError> {
        self.changed = epoch;
        let emptied = self.file.set_len(BLOCK_BYTES as u64);
        emptied.map_err(|error| StoreError::host("empty", &self.path, error))
    }
}

/// The record of a folder, if there is a whole one; nothing is changed. An error
/// if there is no journal of this store and it may have been `needed`.
pub(crate) fn look(
    folder: &Path,
    id: StoreId,
    needed: bool,
) -> Result<Option<Transaction>, StoreError> {
    let path = folder.join(NAME);
    let bytes = std::fs::read(&path).unwrap_or_default();
    let whole = bytes
        .get(..BLOCK_BYTES)
        .is_some_and(|head| unseal(head, 0, &id).is_some());
    match bytes.get(BLOCK_BYTES..) {
        Some(record) if whole => Ok(decode(record)),
        _ if needed => Err(missing(path, id)),
        _ => Ok(None),
    }
}

fn missing(file: PathBuf, id: StoreId) -> StoreError {
    let detail = format!(
        "found no journal of this store ({id}), which was killed while a parity volume lacked a member: \
         what that member held may be computed wrongly now; put the file back as the server left it"
    );
    StoreError::Damaged { file, detail }
}

fn encode(transaction: &Transaction, index: &mut Vec<u8>) {
    index.clear();
    index.extend(MAGIC);
    index.extend([0; 4]);
    index.extend((transaction.changes.len() as u32).to_le_bytes());
    index.extend((transaction.bytes.len() as u64).to_le_bytes());
    for Change {
        medium,
        extent,
        kind,
    } in &transaction.changes
    {
        let kind = match kind {
            Kind::Write { .. } => WRITE,
            Kind::Zero { hole: false } => ZERO_KEEPING_ROOM,
            Kind::Zero { hole: true } => ZERO_AS_HOLE,
        };
        index.extend(medium.to_le_bytes());
        index.extend(kind.to_le_bytes());
        index.extend(extent.start.0.to_le_bytes());
        index.extend(extent.sectors.0.to_le_bytes());
    }
    let checksum = checksum(&index[12..], &transaction.bytes);
    index[8..12].copy_from_slice(&checksum.to_le_bytes());
}

fn checksum(index: &[u8], bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(index);
    hasher.update(bytes);
    hasher.finalize()
}

/// `None` if this is no whole record.
fn decode(file: &[u8]) -> Option<Transaction> {
    let head = file.get(..HEAD_BYTES)?;
    let stored = u32_at(head, 8)?;
    let (count, length) = (u32_at(head, 12)? as usize, u64_at(head, 16)? as usize);
    let index_end = HEAD_BYTES.checked_add(count.checked_mul(CHANGE_BYTES)?)?;
    let bytes = file.get(index_end..index_end.checked_add(length)?)?;
    if head[..8] != MAGIC || stored != checksum(&file[12..index_end], bytes) {
        return None;
    }
    let mut at = 0;
    let changes = file[HEAD_BYTES..index_end]
        .chunks(CHANGE_BYTES)
        .map(|change| {
            let extent = Extent::new(u64_at(change, 8)?, u64_at(change, 16)?);
            let kind = match u32_at(change, 4)? {
                WRITE => Kind::Write { at },
                ZERO_KEEPING_ROOM => Kind::Zero { hole: false },
                ZERO_AS_HOLE => Kind::Zero { hole: true },
                _ => return None,
            };
            if matches!(kind, Kind::Write { .. }) {
                at = at.checked_add(extent.sectors.0.checked_mul(SECTOR_BYTES)? as usize)?;
            }
            Some(Change {
                medium: u32_at(change, 0)?,
                extent,
                kind,
            })
        });
    let changes = changes.collect::<Option<Vec<Change>>>()?;
    (at == length).then(|| Transaction {
        changes,
        bytes: bytes.to_vec(),
    })
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_units::Lbn;

    fn id() -> StoreId {
        "0123456789abcdef0123456789abcdef".parse().unwrap()
    }

    fn transaction() -> Transaction {
        let mut transaction = Transaction::default();
        transaction.write(3, Lbn(17), &[0xAB; 1024]);
        transaction.zero(0, Extent::new(5, 6), true);
        transaction.zero(1, Extent::new(1 << 40, 1 << 30), false);
        transaction.write(2, Lbn(0), &[0xCD; 512]);
        transaction
    }

    #[test]
    fn a_record_is_read_as_it_was_written_and_then_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(folder.path(), id(), false).unwrap();
        assert_eq!(journal.read().unwrap(), None);
        journal.record(&transaction(), 1).unwrap();
        assert_eq!(journal.read().unwrap(), Some(transaction()));
        let mut shorter = Transaction::default();
        shorter.write(1, Lbn(9), &[1; 512]);
        journal.record(&shorter, 1).unwrap();
        assert_eq!(
            Journal::open(folder.path(), id(), false)
                .unwrap()
                .read()
                .unwrap(),
            Some(shorter)
        );
        journal.clear(2).unwrap();
        assert_eq!(journal.read().unwrap(), None);
        assert!(journal.file_changed_since(1).is_some() && journal.file_changed_since(2).is_none());
    }

    #[test]
    fn a_record_that_is_cut_short_or_changed_anywhere_is_none() {
        let mut whole = Vec::new();
        encode(&transaction(), &mut whole);
        whole.extend(&transaction().bytes);
        assert_eq!(decode(&whole), Some(transaction()));
        for length in 0..whole.len() {
            assert_eq!(decode(&whole[..length]), None, "{length} bytes");
        }
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 0x10;
            assert_eq!(decode(&changed), None, "byte {at}");
        }
    }
}
