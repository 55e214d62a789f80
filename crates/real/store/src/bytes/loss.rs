//! Lost data, and its sectors with later writes.
//!
//! A volume that has lost more members than its redundancy covers has failed. The volume takes no
//! writes and no empty members until
//! [`Store::accept_data_loss`](crate::bytes::Store::accept_data_loss). From then on the volume is
//! filled again as far as possible. Reads of sectors without a source fail until the next write.
//!
//! The states of the members at the acceptance of the loss determine the lost sectors: a sector is
//! lost if its read could not be planned. So a loss consists of these states, and of a bit for each
//! sector with a later write.

use crate::bitmap::{BITS_BYTES, SECTOR as BLOCK_BYTES, seal, unseal};
use crate::bytes::StoreError;
use crate::bytes::description::StateRecord;
use crate::bytes::node::Array;
use crate::bytes::sync::ToSync;
use crate::sparse::{FileLengths, SparseFile};
use crate::uuid::Uuid;
use crate::{Device, MemoryDevice};
use fullstroke_contract::{Extent, MemberState, Operation};
use fullstroke_units::{Lbn, Sectors};
use fullstroke_volume::MemberStates;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Number of the volume's sectors whose bits stand in one block.
const SECTORS_A_BLOCK: u64 = BITS_BYTES as u64 * 8;

/// Returns the name of the file with the bits of the loss number `index`.
pub(crate) fn file_name(index: usize) -> String {
    format!("written-since-{index}")
}

/// Data that was given up.
pub(crate) struct LostData {
    /// States of the outermost volume's members when the data was given up.
    then: MemberStates,
    /// Device with a bit for each sector of the volume; the bit is set if the sector was written
    /// since.
    written: Arc<dyn Device>,
    /// Store of the bits; `None` if the bits are only in memory.
    store: Option<Uuid>,
    /// Epoch of the last change of the bits.
    changed: u64,
}

impl LostData {
    /// Opens a loss whose bits are in `folder`, or else in memory. A missing file means no write
    /// since the loss.
    pub(crate) fn open(
        index: usize,
        states: &[StateRecord],
        capacity: Sectors,
        kept: Option<(&Path, Uuid)>,
    ) -> Result<LostData, StoreError> {
        let bytes = bytes_for(capacity);
        let written: Arc<dyn Device> = match kept {
            None => Arc::new(MemoryDevice::new(bytes)),
            Some((folder, _)) => {
                let path = folder.join(file_name(index));
                let file = SparseFile::open(&path, bytes, 0);
                Arc::new(file.map_err(|error| StoreError::host("open", &path, error))?)
            }
        };
        let mut then = MemberStates::alive(states.len());
        states
            .iter()
            .enumerate()
            .for_each(|(member, &state)| then.set(member, state.into()));
        Ok(LostData {
            then,
            written,
            store: kept.map(|(_, store)| store),
            changed: 0,
        })
    }

    /// Opens a loss of a folder without changing the folder.
    pub(crate) fn look(
        index: usize,
        states: &[StateRecord],
        capacity: Sectors,
        folder: &Path,
        store: Uuid,
    ) -> Result<LostData, StoreError> {
        let path = folder.join(file_name(index));
        let file = SparseFile::open_read_only(&path, FileLengths::new(bytes_for(capacity), 0));
        let file = file.map_err(|error| StoreError::host("open", &path, error))?;
        let loss = LostData::open(index, states, capacity, None)?;
        Ok(LostData {
            written: Arc::new(file),
            store: Some(store),
            ..loss
        })
    }

    /// True if members in these states have at least the data of the time when the loss was
    /// accepted.
    pub(crate) fn covers(&self, states: &MemberStates) -> bool {
        let reach = |state: MemberState| match state {
            MemberState::Alive => u64::MAX,
            MemberState::Failed => 0,
            MemberState::Rebuilding { done } => done.0,
        };
        (0..states.members())
            .all(|member| reach(self.then.get(member)) <= reach(states.get(member)))
    }

    /// Returns the first lost sector of `extent` without a later write.
    pub(crate) fn first_lost(
        &mut self,
        array: &mut Array,
        extent: Extent,
    ) -> Result<Option<Lbn>, StoreError> {
        assert_eq!(
            self.then.members(),
            array.members.len(),
            "a loss is of the volume with these members"
        );
        // Planning uses the member states in the array's layout, so these are exchanged for the
        // time of the search.
        array.layout.exchange_states(&mut self.then);
        let found = self.search(array, extent);
        array.layout.exchange_states(&mut self.then);
        found
    }

    fn search(&self, array: &mut Array, extent: Extent) -> Result<Option<Lbn>, StoreError> {
        let mut is_lost = |extent| {
            matches!(
                array.prepare(Operation::Read, extent),
                Err(StoreError::Lost { .. })
            )
        };
        // One plan suffices in the usual case, without lost sectors.
        if !is_lost(extent) {
            return Ok(None);
        }
        let mut at = extent.start;
        while at < extent.end() {
            if is_lost(Extent {
                start: at,
                sectors: Sectors(1),
            }) && !self.was_written(at)?
            {
                return Ok(Some(at));
            }
            at += Sectors(1);
        }
        Ok(None)
    }

    fn was_written(&self, lbn: Lbn) -> Result<bool, StoreError> {
        let block = self.read(lbn.0 / SECTORS_A_BLOCK)?;
        let bit = lbn.0 % SECTORS_A_BLOCK;
        Ok(block[bit as usize / 8] >> (bit % 8) & 1 == 1)
    }

    /// Notes a write of the extent in `epoch`.
    pub(crate) fn note_written(&mut self, extent: Extent, epoch: u64) -> Result<(), StoreError> {
        let end = extent.end().0;
        let mut at = extent.start.0;
        while at < end {
            let number = at / SECTORS_A_BLOCK;
            let next = end.min((number + 1) * SECTORS_A_BLOCK);
            let mut block = self.read(number)?;
            let before = block;
            for bit in (at..next).map(|lbn| lbn % SECTORS_A_BLOCK) {
                block[bit as usize / 8] |= 1 << (bit % 8);
            }
            if block != before {
                self.changed = epoch;
                let block = match &self.store {
                    Some(store) => seal(store, number as u32, &bits_of(&block)),
                    None => block,
                };
                let written = self.written.write(number * BLOCK_BYTES as u64, &block);
                written.map_err(|error| self.error("write to", error))?;
            }
            at = next;
        }
        Ok(())
    }

    fn read(&self, block: u64) -> Result<[u8; BLOCK_BYTES], StoreError> {
        let mut bits = [0; BLOCK_BYTES];
        self.written
            .read(block * BLOCK_BYTES as u64, &mut bits)
            .map_err(|error| self.error("read", error))?;
        if let Some(store) = self.store.filter(|_| bits != [0; BLOCK_BYTES]) {
            let Some(whole) = unseal(&store, block as u32, &bits) else {
                let detail = format!(
                    "block {block} was changed after its last write: its check sum does not fit"
                );
                return Err(StoreError::Damaged {
                    file: self.written.name().into(),
                    detail,
                });
            };
            let mut only = [0; BLOCK_BYTES];
            only[..BITS_BYTES].copy_from_slice(&whole);
            return Ok(only);
        }
        Ok(bits)
    }

    fn error(&self, action: &'static str, source: io::Error) -> StoreError {
        StoreError::Host {
            file: self.written.name(),
            action,
            source,
        }
    }

    /// Returns the device with the bits, if it was changed after the epoch `synced` and is not in
    /// memory.
    pub(crate) fn changed_since(&self, synced: u64) -> Option<ToSync> {
        let changed = self.changed > synced && !self.written.is_volatile();
        changed.then(|| ToSync::own(&self.written))
    }
}

/// Returns the size of the bits of a volume in bytes.
fn bytes_for(capacity: Sectors) -> u64 {
    capacity.0.div_ceil(SECTORS_A_BLOCK) * BLOCK_BYTES as u64
}

fn bits_of(block: &[u8; BLOCK_BYTES]) -> [u8; BITS_BYTES] {
    let mut bits = [0; BITS_BYTES];
    bits.copy_from_slice(&block[..BITS_BYTES]);
    bits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_of_lost_sectors_becomes_durable_with_the_data() {
        let folder = tempfile::tempdir().unwrap();
        let (store, capacity) = (Uuid::from_bytes([3; 16]), Sectors(10_000));
        let kept = Some((folder.path(), store));
        let mut loss = LostData::open(0, &[StateRecord::Failed; 2], capacity, kept).unwrap();
        assert!(loss.changed_since(0).is_none());
        loss.note_written(Extent::new(100, 8), 5).unwrap();
        assert!(loss.changed_since(4).is_some() && loss.changed_since(5).is_none());
        // The bits are set already, so there is nothing to write.
        loss.note_written(Extent::new(102, 4), 6).unwrap();
        assert!(loss.changed_since(5).is_none());
        let found = [99, 100, 107, 108].map(|lbn| loss.was_written(Lbn(lbn)).unwrap());
        assert_eq!(found, [false, true, true, false]);
    }
}
