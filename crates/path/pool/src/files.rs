//! Objects of a file system in a pool: records of any size (`module/zfs/dmu.c`, `dbuf.c`, `dnode.c`,
//! OpenZFS 2.2).
//!
//! A volume has records of one size, all written before the run. A file system differs:
//!
//! 1. A file of at most one record is a block of its own size, in sectors of 512 bytes. The block
//!    grows with the file (`dmu_object_set_blocksize` in `zfs_grow_blocksize`).
//! 2. A longer file has whole records. The rest of the last record is zeros, which compression
//!    removes (`compression=on`, the default since 2.2). So the last record ends with the file.
//! 3. A record that was never written is a hole: a write of a part reads nothing, and a read has no
//!    I/O (`dbuf_read_hole`).
//! 4. A removed or cut file frees its records. Dirty records of the open group are not written
//!    (`dbuf_undirty`).
//!
//! Metadata of files are blocks of 16 KiB: inodes and directories; and blocks of pointers to records.
//! The pool reads metadata when a request needs it (`pool/metadata.rs`), and writes two copies of each
//! dirty block in each group. Files of the start of a run lie one after the other, each in whole
//! records.

use crate::place::Dva;
use fullstroke_contract::{DatasetObject, DatasetStart, Extent, Object};
use fullstroke_units::SECTOR_BYTES;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

/// Metadata that a request has found in memory on its way to the records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum KnownMetadata {
    /// Nothing has been looked up.
    #[default]
    Nothing,
    /// The inode is in memory.
    Inode,
    /// The blocks of pointers are in memory as well.
    Pointers,
}

/// Flag of records that were written first in the run.
const NEW: u64 = 1 << 62;

/// Flag of blocks of metadata.
const METADATA: u64 = 1 << 63;

/// Bytes of a block of inodes or of a directory: `DNODE_BLOCK_SHIFT` and `fzap_default_block_shift`
/// are 14.
const METADATA_BLOCK: u64 = 16 << 10;

/// Bytes of such a block after compression: an inode of 512 bytes has about 200 bytes of times,
/// lengths and checksums, and zeros. Estimate.
pub(crate) const METADATA_PSIZE: u64 = 4 << 10;

/// Flag of blocks of pointers to records.
const POINTERS: u64 = 1 << 61;

/// Pointers in a block of pointers, as a shift: 128 KiB of 128 bytes each
/// (`DN_MAX_INDBLKSHIFT`, `SPA_BLKPTRSHIFT`).
pub(crate) const POINTERS_SHIFT: u32 = 10;

/// Compressed bytes of a pointer: 128 bytes hold a checksum of 32 bytes, places, sizes and the number of a
/// group. 512 pointers to records of 128 KiB had 11 sectors of 4 KiB in the kernel laboratory (OpenZFS
/// 2.3.2).
pub(crate) const POINTER: u64 = 84;

/// Inodes in a block: `DNODES_PER_BLOCK`.
const INODES: u64 = 32;

/// Copies of metadata of a dataset (`dmu_write_policy`).
pub(crate) const COPIES: usize = 2;

/// Returns true for a block of metadata.
pub(crate) fn is_metadata(record: u64) -> bool {
    record & METADATA != 0
}

/// Returns true for a block of pointers to records.
pub(crate) fn is_pointers(record: u64) -> bool {
    record & POINTERS != 0 && record & (NEW | METADATA) == 0
}

/// A file at the start of the run.
#[derive(Clone, Copy, Debug)]
struct StartFile {
    /// Number of the first record.
    first: u64,
    records: u64,
}

/// The objects of a file system.
#[derive(Debug)]
pub(crate) struct Files {
    /// Bytes of a whole record.
    record: u64,
    /// Files of the start that have not been removed.
    start: BTreeMap<u32, StartFile>,
    /// Number of records at the start.
    initial: u64,
    /// Number of blocks of inodes at the start, and of blocks of each directory.
    inode_blocks: u64,
    directories: HashMap<u32, u64>,
    /// Bytes of records that are smaller than a whole record.
    pub(crate) sizes: HashMap<u64, u32>,
    /// Number of records of each object behind the records of the start.
    ends: HashMap<DatasetObject, u64>,
    /// Places of metadata.
    pub(crate) metadata: HashMap<u64, [Option<Dva>; COPIES]>,
    /// Records of removed files that the transaction group was just writing. The end of the write frees their places.
    pub(crate) freed: HashSet<u64>,
}

/// Returns the number of records of a file.
fn records_of(bytes: u64, record: u64) -> u64 {
    bytes.div_ceil(record)
}

/// Returns the number of records of files.
pub(crate) fn records_of_all(files: &[(Object, u64)], record: u64) -> u64 {
    files
        .iter()
        .map(|(_, bytes)| records_of(*bytes, record))
        .sum()
}

impl Files {
    /// Returns the objects of a file system that has those of `start` at the start.
    pub(crate) fn new(start: &DatasetStart, record: u64) -> Files {
        let DatasetStart { files, directories } = start;
        let last = files.iter().chain(directories).map(|(object, _)| object.0);
        let mut all = Files {
            record,
            start: BTreeMap::new(),
            initial: 0,
            inode_blocks: last.max().map_or(0, |last| u64::from(last) / INODES + 1),
            directories: directories
                .iter()
                .map(|(object, bytes)| (object.0, bytes.div_ceil(METADATA_BLOCK).max(1)))
                .collect(),
            sizes: HashMap::new(),
            ends: HashMap::new(),
            metadata: HashMap::new(),
            freed: HashSet::new(),
        };
        for &(object, bytes) in files.iter().filter(|(_, bytes)| *bytes > 0) {
            let records = records_of(bytes, record);
            let first = all.initial;
            all.start.insert(object.0, StartFile { first, records });
            all.initial += records;
            let rest = bytes - (records - 1) * record;
            all.set_size(all.initial - 1, rest);
        }
        all
    }

    fn set_size(&mut self, record: u64, bytes: u64) {
        let bytes = bytes.next_multiple_of(SECTOR_BYTES);
        if bytes < self.record {
            self.sizes.insert(record, bytes as u32);
        } else {
            self.sizes.remove(&record);
        }
    }

    /// Returns the bytes of a unit of an address: a block of metadata or a record.
    fn unit(&self, object: DatasetObject) -> u64 {
        match object.is_metadata {
            true => METADATA_BLOCK,
            false => self.record,
        }
    }

    /// Returns the addresses of the units of an extent.
    pub(crate) fn units_of(&self, extent: Extent) -> Range<u64> {
        let (object, sector) = DatasetObject::at(extent.start);
        let unit = self.unit(object) / SECTOR_BYTES;
        let base = u64::from(object.number) * (DatasetObject::SECTORS / unit);
        let base = base | if object.is_metadata { METADATA } else { NEW };
        base + sector / unit..base + (sector + extent.sectors.0).div_ceil(unit)
    }

    /// Returns the object of a unit, and the number of the unit in the object.
    fn object_of(&self, unit: u64) -> (DatasetObject, u64) {
        let is_metadata = is_metadata(unit);
        let bytes = if is_metadata {
            METADATA_BLOCK
        } else {
            self.record
        };
        let per = DatasetObject::SECTORS / (bytes / SECTOR_BYTES);
        let plain = unit & !(NEW | METADATA);
        let object = DatasetObject {
            number: (plain / per) as u32,
            is_metadata,
        };
        (object, plain % per)
    }

    /// Returns the record at the address of a unit.
    pub(crate) fn record_at(&self, unit: u64) -> u64 {
        let (object, index) = self.object_of(unit);
        match self.start.get(&object.number) {
            Some(file) if !object.is_metadata && index < file.records => file.first + index,
            _ => unit,
        }
    }

    /// Returns the part of a unit that an extent covers, in bytes.
    pub(crate) fn part(&self, extent: Extent, unit: u64) -> Range<u64> {
        let (object, sector) = DatasetObject::at(extent.start);
        let (_, index) = self.object_of(unit);
        let (bytes, start) = (self.unit(object), sector * SECTOR_BYTES);
        let (from, end) = (index * bytes, start + extent.sectors.0 * SECTOR_BYTES);
        start.saturating_sub(from)..(end - from).min(bytes)
    }

    /// Returns the records of files of one record at the start, ascending.
    pub(crate) fn single(&self) -> Vec<u64> {
        let files = self.start.values().filter(|file| file.records == 1);
        let mut records: Vec<u64> = files.map(|file| file.first).collect();
        records.sort_unstable();
        records
    }

    /// Returns the number of records at the start.
    pub(crate) fn initial(&self) -> u64 {
        self.initial
    }

    /// Returns the block with the inode of an object.
    pub(crate) fn inode_block(number: u32) -> u64 {
        METADATA | (u64::from(number) / INODES)
    }

    /// Returns the number of records of a file.
    fn count(&self, object: DatasetObject) -> u64 {
        let start = self
            .start
            .get(&object.number)
            .map_or(0, |file| file.records);
        start.max(self.ends.get(&object).copied().unwrap_or(0))
    }

    /// Returns the blocks of pointers above the records of an extent. The pointer of a file of one
    /// record is in the inode.
    pub(crate) fn pointer_blocks(&self, extent: Extent) -> Range<u64> {
        let units = self.units_of(extent);
        let (object, first) = self.object_of(units.start);
        let count = match self.count(object) {
            0 | 1 => 0,
            several => several,
        };
        let end = (first + (units.end - units.start)).min(count);
        let per = (DatasetObject::SECTORS / (self.record / SECTOR_BYTES)) >> POINTERS_SHIFT;
        let base = POINTERS | (u64::from(object.number) * per);
        base + (first.min(end) >> POINTERS_SHIFT)..base + end.div_ceil(1 << POINTERS_SHIFT)
    }

    /// Returns the number of pointers in a block.
    pub(crate) fn pointers(&self, block: u64) -> u64 {
        let per = (DatasetObject::SECTORS / (self.record / SECTOR_BYTES)) >> POINTERS_SHIFT;
        let plain = block & !POINTERS;
        let object = DatasetObject {
            number: (plain / per) as u32,
            is_metadata: false,
        };
        let before = (plain % per) << POINTERS_SHIFT;
        self.count(object)
            .saturating_sub(before)
            .clamp(1, 1 << POINTERS_SHIFT)
    }

    /// Returns true if a block of metadata has been written, before the run or in the run.
    pub(crate) fn has_metadata(&self, block: u64) -> bool {
        if is_pointers(block) {
            // The request has asked for blocks of files with pointers only.
            return true;
        }
        let (object, index) = self.object_of(block);
        let at_start = match object {
            DatasetObject::TABLE => self.inode_blocks,
            _ => self.directories.get(&object.number).copied().unwrap_or(0),
        };
        // An empty dataset has nothing to read.
        (self.initial > 0 && index < at_start) || self.metadata.contains_key(&block)
    }

    /// Returns true if a record was written before the run.
    pub(crate) fn is_initial(&self, record: u64) -> bool {
        record < self.initial
    }

    /// Returns the bytes of a record.
    pub(crate) fn size(&self, record: u64) -> u64 {
        match self.sizes.get(&record) {
            _ if is_metadata(record) => METADATA_BLOCK,
            Some(&bytes) => bytes.into(),
            None => self.record,
        }
    }

    /// Lets a record of `before` bytes grow to `end`. Returns the new size.
    pub(crate) fn grow(&mut self, record: u64, before: u64, end: u64) -> u64 {
        if is_metadata(record) {
            return METADATA_BLOCK;
        }
        self.set_size(record, before.max(end));
        if !self.is_initial(record) {
            let (object, index) = self.object_of(record);
            let count = self.ends.entry(object).or_default();
            *count = (*count).max(index + 1);
        }
        self.size(record)
    }

    /// Takes the records of an object from a sector on, for their removal.
    pub(crate) fn take(&mut self, extent: Extent) -> Vec<u64> {
        let units = self.units_of(extent);
        let (object, first) = self.object_of(units.start);
        let base = units.start - first;
        let mut taken = Vec::new();
        if let Some(file) = self
            .start
            .get_mut(&object.number)
            .filter(|_| !object.is_metadata)
        {
            taken.extend(file.first + first.min(file.records)..file.first + file.records);
            file.records = file.records.min(first);
        }
        if let Some(count) = self.ends.get_mut(&object) {
            taken.extend(base + first.min(*count)..base + *count);
            *count = (*count).min(first);
        }
        taken
    }

    /// Counts the indirect blocks above the records that a group has written: the number of blocks of
    /// each size in pointers. Files of one record have their pointer in the inode.
    pub(crate) fn indirect_blocks(&self, written: &[u64], shift: u32) -> BTreeMap<u64, u64> {
        let mut blocks: BTreeMap<u64, u64> = BTreeMap::new();
        let mut before = None;
        for &record in written.iter().filter(|&&record| !self.is_initial(record)) {
            let (object, index) = self.object_of(record);
            let count = self.ends.get(&object).copied().unwrap_or(1);
            let mut level = shift;
            while count > 1 << (level - shift) {
                let block = (object, index >> level, level);
                if before != Some((object, index)) && !self.shares(before, block) {
                    let pointers = count.div_ceil(1 << (level - shift)).min(1 << shift);
                    *blocks.entry(pointers).or_default() += 1;
                }
                level += shift;
            }
            before = Some((object, index));
        }
        blocks
    }

    /// Returns true if the record before lies below the same indirect block.
    fn shares(
        &self,
        before: Option<(DatasetObject, u64)>,
        (object, block, level): (DatasetObject, u64, u32),
    ) -> bool {
        before.is_some_and(|(other, index)| other == object && index >> level == block)
    }
}
