//! Reads of metadata above the records of files: the inode, and the blocks of pointers
//! (`dnode_hold_impl`, `dbuf_findbp` and `dmu_tx_check_ioerr`, OpenZFS 2.2).
//!
//! A request for a file needs the block of inodes with the inode of the file. A file of several
//! records also needs the block of pointers above each record, for reads and for writes. Each such
//! block is read once and then lies in the ARC, beside the data. The blocks of the start of a run lie
//! between the records of the start, at places that their numbers give; with a special vdev they lie
//! there. Higher levels of pointers, and the levels above the table of inodes, are in memory: they
//! are a thousandth of the blocks below.

use super::Pool;
use crate::classes::Class;
use crate::files::{Files, KnownMetadata, METADATA_PSIZE, POINTER, is_metadata, is_pointers};
use crate::io::Cause;
use crate::place::Dva;
use fullstroke_contract::{DatasetObject, Operation, RequestStatus};
use fullstroke_units::Time;

impl Pool {
    /// Looks up the metadata of a request. Returns true if the request waits for a read of metadata;
    /// the request begins anew after this read.
    pub(super) fn waits_for_metadata(&mut self, now: Time, asked: u32) -> bool {
        while let Some(blocks) = self.next_metadata(asked) {
            for block in blocks {
                self.counts.metadata_asked += 1;
                let is_known = self.txg.holds(block)
                    || self.records.arc.access(block)
                    || !self.is_stored(block);
                if !is_known {
                    self.counts.metadata_read += 1;
                    self.wait_for(now, block, asked);
                }
            }
            if self.asked[asked].remaining > 0 {
                return true;
            }
        }
        false
    }

    /// Returns the metadata of the next step of a request; `None` if all is known.
    fn next_metadata(&mut self, asked: u32) -> Option<Vec<u64>> {
        let files = self.records.files.as_ref()?;
        // Without an ARC no metadata would ever be in memory.
        if self.settings.memory.arc.0 == 0 {
            return None;
        }
        let at = &mut self.asked[asked];
        let extent = at.request.extent;
        let (object, _) = DatasetObject::at(extent.start);
        // A request for a block of metadata names the block itself.
        if object.is_metadata || !at.request.operation.transfers() {
            return None;
        }
        match at.known {
            KnownMetadata::Nothing => {
                at.known = KnownMetadata::Inode;
                Some(vec![Files::inode_block(object.number)])
            }
            KnownMetadata::Inode => {
                at.known = KnownMetadata::Pointers;
                Some(files.pointer_blocks(extent).collect())
            }
            KnownMetadata::Pointers => None,
        }
    }

    /// Takes note that a request with new data has changed the metadata above the data, which
    /// therefore lie in memory.
    pub(super) fn keep_pointers(&mut self, asked: u32) {
        let request = self.asked[asked].request;
        if request.operation != Operation::Write {
            return;
        }
        let Some(files) = &self.records.files else {
            return;
        };
        if DatasetObject::at(request.extent.start).0.is_metadata {
            return;
        }
        let blocks: Vec<u64> = files.pointer_blocks(request.extent).collect();
        for block in blocks {
            self.keep_metadata(block);
        }
    }

    /// Puts a block of metadata into memory.
    pub(crate) fn keep_metadata(&mut self, block: u64) {
        self.keep_in_memory(block);
    }

    /// Reads a directory or a block of inodes ahead of a change (`dmu_buf_will_dirty`). Returns true
    /// if the change waits.
    pub(super) fn reads_before_change(&mut self, now: Time, asked: u32) -> bool {
        let request = self.asked[asked].request;
        let has_files = self.records.files.is_some() && self.settings.memory.arc.0 > 0;
        if !has_files || !DatasetObject::at(request.extent.start).0.is_metadata {
            return false;
        }
        for block in self.units_of(request.extent) {
            self.counts.metadata_asked += 1;
            if !self.txg.holds(block) && !self.records.arc.access(block) && self.is_stored(block) {
                self.counts.metadata_read += 1;
                self.wait_for(now, block, asked);
            }
        }
        self.asked[asked].remaining > 0
    }

    /// Lets a request for a file go on behind a read of metadata. Returns false for other requests and
    /// other records.
    pub(super) fn goes_on_behind_metadata(&mut self, now: Time, asked: u32, record: u64) -> bool {
        if !self.is_of_metadata(record) {
            return false;
        }
        let at = &self.asked[asked];
        let is_of_file = !DatasetObject::at(at.request.extent.start).0.is_metadata;
        if !is_of_file || at.status != RequestStatus::Done {
            return false;
        }
        match at.request.operation {
            Operation::Read => {
                self.read(now, asked);
                if self.asked[asked].remaining == 0 {
                    self.finish(now, asked);
                }
            }
            _ => self.write(now, asked),
        }
        true
    }

    /// Returns the bytes of a block of metadata on a vdev.
    pub(crate) fn metadata_psize(&self, block: u64) -> u64 {
        let sector = 1u64 << self.settings.ashift;
        let bytes = match &self.records.files {
            Some(files) if is_pointers(block) => files.pointers(block) * POINTER,
            _ => METADATA_PSIZE,
        };
        bytes.next_multiple_of(sector)
    }

    /// Returns the place of a block of metadata.
    pub(crate) fn place_of_metadata(&self, block: u64) -> Dva {
        let files = self.records.files.as_ref();
        let written = files.and_then(|files| files.metadata.get(&block));
        if let Some(dva) = written.and_then(|places| places.iter().flatten().next()) {
            return *dva;
        }
        let initial = files.map_or(1, Files::initial).max(1);
        // An odd factor spreads the numbers (Knuth's multiplicative hash).
        let spread = (block ^ (block >> 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 16;
        if let Some((vdev, child)) = &self.settings.special {
            // The metadata of the start fill the front half at most.
            let psize = self.metadata_psize(block);
            let slots = (vdev.size(*child) / 2 / psize).clamp(1, initial);
            return Dva {
                vdev: self.settings.vdevs.len() as u32,
                offset: spread % slots * psize,
            };
        }
        self.records.first_place(spread % initial)
    }

    /// Reads a block of metadata that a request waits for.
    pub(super) fn read_metadata(&mut self, now: Time, block: u64, cause: Cause) {
        let place = (
            self.place_of_metadata(block),
            self.metadata_psize(block),
            false,
        );
        let purpose = crate::io::Purpose::Read { record: block };
        self.counts.metadata_bytes += place.1;
        self.io.read(now, place, Class::SyncRead, purpose, cause);
    }

    /// Returns true for a block of metadata of files.
    pub(crate) fn is_of_metadata(&self, record: u64) -> bool {
        self.records.files.is_some() && (is_metadata(record) || is_pointers(record))
    }
}
