//! The records of files in a pool: sizes, places and the end of each record.

use super::Pool;
use crate::config::compressed;
use crate::files::{COPIES, Files, METADATA_PSIZE};
use fullstroke_contract::{DatasetObject, Extent};
use fullstroke_units::{SECTOR_BYTES, Time};
use std::ops::Range;

impl Pool {
    /// Returns the bytes of a record.
    pub(crate) fn size_of(&self, record: u64) -> u64 {
        match &self.records.files {
            Some(files) => files.size(record),
            None => self.settings.record,
        }
    }

    /// Returns the bytes of a record after compression, in whole sectors of the pool.
    pub(crate) fn psize_of(&self, record: u64) -> u64 {
        let settings = &self.settings;
        if self.is_of_metadata(record) {
            return self.metadata_psize(record);
        }
        match self.size_of(record) {
            whole if whole == settings.record => settings.psize,
            size => {
                let size = size.next_multiple_of(1 << settings.ashift);
                compressed(size, settings.compression, settings.ashift)
            }
        }
    }

    /// Returns true if the record has a place on the vdevs.
    pub(crate) fn is_stored(&self, record: u64) -> bool {
        if let Some(files) = &self.records.files
            && self.is_of_metadata(record)
        {
            return files.has_metadata(record);
        }
        let start = |files: &Files| files.is_initial(record);
        self.records.files.as_ref().is_none_or(start) || self.records.moved.contains_key(&record)
    }

    /// Returns the record at the address of a unit.
    pub(crate) fn record_at(&self, unit: u64) -> u64 {
        match &self.records.files {
            Some(files) => files.record_at(unit),
            None => unit,
        }
    }

    /// Returns the record at an address, and the part that an extent covers, in bytes.
    pub(crate) fn part(&self, extent: Extent, unit: u64) -> (u64, Range<u64>) {
        if let Some(files) = &self.records.files {
            return (files.record_at(unit), files.part(extent, unit));
        }
        let record = self.settings.record;
        let (begin, end) = (extent.start.0 * SECTOR_BYTES, extent.end().0 * SECTOR_BYTES);
        let from = unit * record;
        (unit, begin.saturating_sub(from)..(end - from).min(record))
    }

    /// Puts the small blocks of the start on the special vdev.
    pub(crate) fn place_small_blocks(mut self) -> Pool {
        let records = self.records.files.as_ref().map(Files::single);
        for record in records.into_iter().flatten() {
            let psize = self.psize_of(record);
            if self.goes_to_special(psize)
                && let Some(dva) = self.special_place(psize)
            {
                self.records.moved.insert(record, (dva, psize as u32));
            }
        }
        self
    }

    /// Lets a record take a write that ends at byte `end` of the record. Returns the bytes of the
    /// record.
    pub(crate) fn grow(&mut self, record: u64, end: u64) -> u64 {
        let exists = self.is_stored(record) || self.txg.holds(record);
        let before = if exists { self.size_of(record) } else { 0 };
        match &mut self.records.files {
            Some(files) => files.grow(record, before, end),
            None => self.settings.record,
        }
    }

    /// Writes a dirty block of metadata of the file system, in two copies.
    pub(crate) fn write_file_metadata(&mut self, now: Time, record: u64) {
        let psize = METADATA_PSIZE.next_multiple_of(1 << self.settings.ashift);
        let mut places = [None; COPIES];
        for (copy, place) in places.iter_mut().enumerate() {
            *place = self.metadata_place(psize, copy as u32);
            if let Some(dva) = *place {
                self.write_copy(now, dva, psize);
            }
        }
        let files = self.records.files.as_mut();
        let old = files.and_then(|files| files.metadata.insert(record, places));
        for dva in old.into_iter().flatten().flatten() {
            self.free_place(dva, psize, false);
        }
    }

    /// Frees the records of an extent: a file was removed or cut.
    pub(crate) fn free_extent(&mut self, extent: Extent) {
        let Some(files) = &mut self.records.files else {
            return;
        };
        let (object, sector) = DatasetObject::at(extent.start);
        if sector == 0 && !object.is_metadata {
            self.zil.forget_file(object.number);
            let pointers = files.pointer_blocks(extent);
            pointers.for_each(|block| self.records.arc.forget(block));
        }
        for record in files.take(extent) {
            self.records.arc.forget(record);
            if let Some(dva) = self.txg.logged.remove(&record) {
                let psize = self.psize_of(record);
                self.free_place(dva, psize, false);
            }
            if self.txg.undirty(record) {
                // The group writes the record already, and `record_written` frees the place.
                if let Some(files) = &mut self.records.files {
                    files.freed.insert(record);
                }
                continue;
            }
            self.free_record(record);
        }
    }

    /// Frees the place of a record.
    fn free_record(&mut self, record: u64) {
        if !self.is_stored(record) {
            return;
        }
        let (dva, psize, old) = self.place_of(record);
        if !self.is_in_snapshot(record) {
            self.free_place(dva, psize, old);
        }
        self.records.moved.remove(&record);
        if let Some(files) = &mut self.records.files {
            files.sizes.remove(&record);
        }
    }

    /// Frees a record that was removed while the group wrote it. Returns true if so.
    pub(crate) fn was_freed(&mut self, record: u64) -> bool {
        let files = self.records.files.as_mut();
        let freed = files.is_some_and(|files| files.freed.remove(&record));
        if freed && !self.txg.holds(record) {
            self.free_record(record);
        }
        freed
    }

    /// Returns true if an extent lies in one object.
    pub(crate) fn is_in_object(extent: Extent) -> bool {
        let (object, sector) = DatasetObject::at(extent.start);
        object.number <= DatasetObject::NUMBER_MAX
            && sector + extent.sectors.0 <= DatasetObject::SECTORS
    }
}
