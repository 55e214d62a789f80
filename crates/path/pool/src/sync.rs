//! The steps of a transaction group (`spa_sync`, `dsl_pool_sync`, OpenZFS 2.1).
//!
//! A block of 128 KiB of pointers has 1,024 of them, and 84 KiB on the vdevs after compression.
//! Metadata of a volume is written twice (`redundant_metadata=all`), that of the pool three times.

use crate::allocate::{NoPlace, PoolSpace};
use crate::classes::Class;
use crate::files::{POINTER, POINTERS_SHIFT, is_metadata};
use crate::io::{Cause, Purpose};
use crate::place::Dva;
use crate::pool::Pool;
use crate::txg::Step;
use fullstroke_contract::{Effects, Operation};
use fullstroke_units::Time;

/// Percentage of the special vdev below which data goes there; the rest is kept for metadata
/// (`zfs_special_class_metadata_reserve_pct` is 25).
const SPECIAL_PERCENT: u64 = 75;

/// Blocks of the pool's own objects that a round of a group writes: object set, its dnodes and their
/// indirect blocks, the lists of free space and of deferred frees.
#[derive(Clone, Copy, Debug)]
struct Round {
    /// Blocks at new places.
    new: usize,
    /// Blocks of the same group that are written again in place: from `zfs_sync_pass_rewrite` on.
    again: usize,
}

/// Rounds of a group, one after the other. A round changes the space maps, so that another round has to
/// write them (`spa_sync_iterate_to_convergence`). Counted in traces of a mirror in the kernel laboratory
/// (OpenZFS 2.3.2).
const ROUNDS: [Round; 3] = [
    Round { new: 3, again: 0 },
    Round { new: 5, again: 3 },
    Round { new: 0, again: 4 },
];

/// Rounds of a group with nothing but the progress of a scan: the same traces.
const ROUNDS_WITHOUT_RECORDS: [Round; 3] = [
    Round { new: 9, again: 0 },
    Round { new: 5, again: 1 },
    Round { new: 0, again: 4 },
];

/// Copies of a block of the pool's own objects (`dmu_objset_open_impl`).
const COPIES: u32 = 3;

/// Levels of indirect blocks above the table of objects: 2^48 objects of 512 bytes in blocks of
/// 16 KiB, with 1,024 pointers in a block (`DN_MAX_OBJECT_SHIFT`, `dmu_objset_create_impl`).
const TABLE_LEVELS: u32 = 5;

/// Bytes of an entry in the log of space maps (`space_map_entry`, two words).
const SPACE_ENTRY: u64 = 16;

/// Ratio of compression of the log of space maps, whose entries ascend. An estimate: 300 random records
/// of a group needed no block beyond the first 4 KiB in the kernel laboratory.
const SPACE_MAP_COMPRESSION: u64 = 2;

/// Vdevs whose labels a group writes: `SPA_SYNC_MIN_VDEVS`.
const LABELLED: usize = 3;

impl Pool {
    /// Takes the next steps of the group, as far as no step waits for a drive.
    pub(crate) fn sync_step(&mut self, now: Time, out: &mut Effects) {
        self.begin_if_due(now);
        loop {
            if self.txg.step == Step::Data {
                self.write_records(now);
            }
            let waits = self.txg.outstanding > 0 || self.txg.taken < self.txg.writing.len();
            if self.txg.step == Step::Idle || waits {
                return;
            }
            match self.txg.step {
                Step::Idle => return,
                Step::Data => {
                    self.txg.step = Step::Indirect;
                    self.write_indirect(now);
                }
                // `spa_sync` runs the scan after the dirty data, so a scan takes its turn before
                // the last metadata.
                Step::Indirect => match self.resilver.turn() {
                    Some(least) => self.txg.begin_scan(now, least),
                    None => {
                        self.txg.step = Step::Pool;
                        self.write_pool(now);
                    }
                },
                Step::Scan => {
                    let goes_on = !self.txg.end_scan(now) || self.resilver.is_busy();
                    if goes_on && self.resilver.turn().is_some() {
                        return;
                    }
                    self.txg.step = Step::Pool;
                    self.write_pool(now);
                }
                // The uberblock may become durable only after all blocks to which it points.
                Step::Pool if self.txg.round < self.rounds().len() => self.write_round(now),
                Step::Pool => {
                    self.txg.step = Step::FlushBefore;
                    self.flush(out);
                }
                Step::FlushBefore => {
                    self.txg.step = Step::Labels;
                    self.write_labels(now);
                }
                // The group counts as ended when the uberblock is on the platters.
                Step::Labels => {
                    self.txg.step = Step::FlushAfter;
                    self.flush(out);
                }
                Step::FlushAfter => self.group_ended(now),
            }
            if !self.io.ended.is_empty() {
                // Blocks without a drive end at once; the caller takes them first.
                return;
            }
        }
    }

    /// Writes records of the group, as many as may be in flight.
    fn write_records(&mut self, now: Time) {
        if !self.processor.prepares() {
            self.throttle.hand_over(now);
        }
        self.write_records_in_turn(now);
        self.throttle.close();
    }

    fn write_records_in_turn(&mut self, now: Time) {
        while let Some(&record) = self.txg.prepared.front() {
            if !self.write_record(now, record) {
                break;
            }
            self.txg.prepared.pop_front();
        }
        while let Some(&record) = self.txg.writing.get(self.txg.taken) {
            if is_metadata(record) {
                self.txg.taken += 1;
                self.write_file_metadata(now, record);
                self.txg.written(record);
                self.keep_metadata(record);
                self.admit_stalled(now);
                continue;
            }
            if let Some(dva) = self.txg.logged.remove(&record) {
                // The intent log has written the record to its place.
                self.txg.taken += 1;
                self.move_record(record, dva);
                self.txg.written(record);
                self.was_freed(record);
                self.admit_stalled(now);
                continue;
            }
            let is_taken = match self.processor.prepares() {
                true => self.processor.prepare(now, record),
                false => self.write_record(now, record),
            };
            if !is_taken {
                return;
            }
            self.txg.taken += 1;
            self.txg.outstanding += 1;
        }
    }

    /// Writes a record of the group. Returns false if no further write may go now.
    fn write_record(&mut self, now: Time, record: u64) -> bool {
        if !self.throttle.has_turn() {
            return false;
        }
        let Some(dva) = self.new_place(record) else {
            return false;
        };
        self.throttle.started(dva.vdev as usize);
        self.counts.written += self.size_of(record);
        let purpose = Purpose::Data {
            record,
            vdev: dva.vdev,
        };
        let block = (dva, self.psize_of(record));
        let cause = Cause::background();
        self.io.write(now, block, Class::AsyncWrite, purpose, cause);
        true
    }

    /// Moves a record to a new place; `None` if no vdev takes a further write now.
    fn new_place(&mut self, record: u64) -> Option<Dva> {
        match self.take_place(self.psize_of(record), true) {
            Ok(dva) => {
                self.move_record(record, dva);
                Some(dva)
            }
            Err(NoPlace::Busy) => None,
            Err(NoPlace::Full) => {
                self.counts.in_place += 1;
                if self.is_stored(record) {
                    return Some(self.place_of(record).0);
                }
                // A full pool takes no new record (ENOSPC). Here the record goes to the place of
                // another, so that the run goes on.
                let records = self.settings.volsize / self.settings.record;
                Some(self.place_of(record % records).0)
            }
        }
    }

    /// Takes a place for a block of data: on the special vdev if the block is small, and if room
    /// for metadata stays there (`spa_preferred_class`). With `is_limited`, vdevs with too many
    /// writes in flight take none.
    pub(crate) fn take_place(&mut self, psize: u64, is_limited: bool) -> Result<Dva, NoPlace> {
        let special = self.settings.vdevs.len();
        if self.goes_to_special(psize) {
            if is_limited && !self.throttle.is_open(special) {
                return Err(NoPlace::Busy);
            }
            if let Some(dva) = self.special_place(psize) {
                return Ok(dva);
            }
        }
        let (io, throttle) = (&self.io, &self.throttle);
        self.space.take(
            |vdev| io.asize(vdev, psize, false),
            |vdev| !is_limited || throttle.is_open(vdev),
        )
    }

    /// Writes a block of metadata in `copies` copies.
    fn write_metadata(&mut self, now: Time, psize: u64, copies: u32) {
        let psize = psize.next_multiple_of(1 << self.settings.ashift);
        for copy in 0..copies {
            let Some(dva) = self.metadata_place(psize, copy) else {
                continue;
            };
            let asize = self.io.asize(dva.vdev as usize, psize, false);
            self.space.metadata.push((dva, asize));
            self.write_copy(now, dva, psize);
        }
    }

    /// Writes a copy of a block of metadata to its place.
    pub(crate) fn write_copy(&mut self, now: Time, dva: Dva, psize: u64) {
        self.counts.metadata += psize;
        self.txg.outstanding += 1;
        let cause = Cause::background();
        self.io
            .write(now, (dva, psize), Class::AsyncWrite, Purpose::Group, cause);
    }

    /// Returns a place for a copy of a block of metadata: on the special vdev, or on the other
    /// vdevs if the special vdev is full (`spa_preferred_class`, `zio_dva_allocate`).
    pub(crate) fn metadata_place(&mut self, psize: u64, copy: u32) -> Option<Dva> {
        if let Some(dva) = self.special_place(psize) {
            return Some(dva);
        }
        let io = &self.io;
        self.space
            .take_copy(|vdev| io.asize(vdev, psize, false), copy)
    }

    /// Returns true if a block of data of this size lies on the special vdev.
    pub(crate) fn goes_to_special(&self, psize: u64) -> bool {
        let has_room = |space: &PoolSpace| space.is_below(SPECIAL_PERCENT);
        psize <= self.settings.small_blocks && self.special.as_ref().is_some_and(has_room)
    }

    /// Takes a place on the special vdev; `None` without one, or if the vdev is full.
    pub(crate) fn special_place(&mut self, psize: u64) -> Option<Dva> {
        let special = self.settings.vdevs.len();
        let io = &self.io;
        let space = self.special.as_mut()?;
        let found = space.take(|_| io.asize(special, psize, false), |_| true);
        found.ok().map(|dva| Dva {
            vdev: special as u32,
            offset: dva.offset,
        })
    }

    /// Frees the blocks of metadata of the group before.
    fn free_metadata(&mut self) {
        for (dva, asize) in std::mem::take(&mut self.space.metadata) {
            match &mut self.special {
                Some(space) if dva.vdev as usize == self.settings.vdevs.len() => {
                    space.free(Dva { vdev: 0, ..dva }, asize);
                }
                _ => self.space.free(dva, asize),
            }
        }
    }

    /// Writes the indirect blocks above the records of the group, level by level.
    fn write_indirect(&mut self, now: Time) {
        // Each group writes the metadata anew at other places, so the places of the group before
        // become free.
        self.free_metadata();
        if self.records.files.is_some() {
            return self.write_indirect_of_files(now);
        }
        let records = self.settings.volsize / self.settings.record;
        let mut shift = POINTERS_SHIFT;
        loop {
            let mut blocks = 0u64;
            let mut before = None;
            for &record in &self.txg.writing {
                blocks += u64::from(before != Some(record >> shift));
                before = Some(record >> shift);
            }
            let below = records.div_ceil(1 << (shift - POINTERS_SHIFT));
            let psize = below.min(1 << POINTERS_SHIFT) * POINTER;
            for _ in 0..blocks {
                // `dmu_write_policy`: metadata of a dataset has one copy more than the data.
                self.write_metadata(now, psize, 2);
            }
            if records >> shift == 0 {
                return;
            }
            shift += POINTERS_SHIFT;
        }
    }

    /// Writes the indirect blocks of the files of the group, and those of the table of objects.
    fn write_indirect_of_files(&mut self, now: Time) {
        let files = self.records.files.as_ref();
        let blocks = files.map(|files| files.indirect_blocks(&self.txg.writing, POINTERS_SHIFT));
        for (pointers, count) in blocks.into_iter().flatten() {
            for _ in 0..count {
                self.write_metadata(now, pointers * POINTER, 2);
            }
        }
        if self.txg.writing.iter().any(|&record| is_metadata(record)) {
            // The table of objects has all levels from the start (`DN_MAX_LEVELS` for the
            // meta-dnode), and nearly all of the levels are one small block.
            for _ in 0..TABLE_LEVELS {
                self.write_metadata(now, 1 << self.settings.ashift, 2);
            }
        }
    }

    /// Writes the pool's own metadata, in the first round with the log of space maps.
    fn write_pool(&mut self, now: Time) {
        self.txg.round = 0;
        self.txg.objects_from = self.space.metadata.len();
        self.write_round(now);
        let mut bytes = self.space_map_bytes();
        while bytes > 0 {
            // zfs_metaslab_sm_blksz_with_log, before compression.
            let block = bytes.min((128 << 10) / SPACE_MAP_COMPRESSION);
            self.write_metadata(now, block, COPIES);
            bytes -= block;
        }
    }

    /// Returns the bytes of the log of space maps that the pool's own objects do not hold: an entry for
    /// each run of places that the group takes or frees (`space_map_write`).
    fn space_map_bytes(&self) -> u64 {
        let writing = &self.txg.writing;
        let runs = writing.windows(2).filter(|pair| pair[0] + 1 != pair[1]);
        // The new places follow each other. The old places follow each other where the records do.
        let entries = 2 + runs.count() as u64;
        let bytes = entries * SPACE_ENTRY / SPACE_MAP_COMPRESSION;
        bytes.saturating_sub(1 << self.settings.ashift)
    }

    /// Returns the rounds of the present group.
    fn rounds(&self) -> &'static [Round] {
        match self.txg.writing.is_empty() {
            true => &ROUNDS_WITHOUT_RECORDS,
            false => &ROUNDS,
        }
    }

    /// Writes the blocks of the next round.
    fn write_round(&mut self, now: Time) {
        let Round { new, again } = self.rounds()[self.txg.round];
        self.txg.round += 1;
        let psize = 1 << self.settings.ashift;
        let first = self.txg.objects_from;
        let written = (self.space.metadata.len() - first) / COPIES as usize;
        for block in 0..again.min(written) {
            // The blocks lie between others, which stay as they are.
            let block = match 2 * again <= written {
                true => 2 * block + 1,
                false => block,
            };
            for copy in 0..COPIES as usize {
                let (dva, _) = self.space.metadata[first + block * COPIES as usize + copy];
                self.write_copy(now, dva, psize);
            }
        }
        for _ in 0..new {
            self.write_metadata(now, psize, COPIES);
        }
    }

    fn flush(&mut self, out: &mut Effects) {
        self.txg.outstanding += 1;
        self.io.command(Operation::Flush, None, Purpose::Group, out);
    }

    fn write_labels(&mut self, now: Time) {
        let vdevs = self.settings.vdevs.len();
        let width = self.settings.width();
        for number in 0..vdevs.min(LABELLED) {
            // `spa_sync_rewrite_vdev_config` begins at a random vdev. Turns spread the writes as
            // evenly.
            let vdev = (self.txg.groups as usize + number) % vdevs;
            let alive = (vdev * width..(vdev + 1) * width).filter(|&m| !self.io.has_failed(m));
            self.txg.outstanding += 4 * alive.count() as u32;
            self.io.write_labels(now, vdev, self.txg.groups);
        }
    }

    fn group_ended(&mut self, now: Time) {
        self.txg.step = Step::Idle;
        self.txg.groups += 1;
        self.space.group_ended();
        if let Some(space) = &mut self.special {
            space.group_ended();
        }
        self.trim_freed();
        self.zil.forget();
        self.begin_if_due(now);
    }

    fn begin_if_due(&mut self, now: Time) {
        if self.due().is_some_and(|due| due <= now) {
            self.txg.begin(now);
            self.throttle.begin(now, self.txg.writing.len());
            self.zil.close();
        }
    }
}
