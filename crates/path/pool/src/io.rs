//! Blocks on their way to the drives: the columns of each block, and the drives' queues.

mod leaves;
mod trim;

use crate::block::{BlockMap, Column};
use crate::capacity::{FRONT, PARTITION};
use crate::classes::Class;
use crate::config::PoolSettings;
use crate::keys::ResilverKind;
use crate::place::Dva;
use crate::queue::{LeafIo, LeafQueue, Sent};
use crate::vdev::Vdev;
use fullstroke_contract::{
    Completion, Effects, Extent, Hints, Operation, Request, RequestId, RequestStatus, Slots,
};
use fullstroke_units::{SECTOR_BYTES, Time};
use std::ops::Range;

/// Bit of the ids of commands to a whole drive, which pass no queue.
const WHOLE: u64 = 1 << 63;

/// Distance of two reads of a mirror's child that still count as near: `zfs_vdev_mirror_rotating_seek_offset`.
const NEAR: u64 = 1 << 20;

/// Load of a seek to a near and to a far place: half of `zfs_vdev_mirror_rotating_seek_inc`, and all.
const NEAR_LOAD: u64 = 2;
const FAR_LOAD: u64 = 5;

/// Load of a read of a flash device that does not follow the last one:
/// `zfs_vdev_mirror_non_rotating_seek_inc`.
const FLASH_LOAD: u64 = 1;

/// Equal copies change with this part of the address: `vdev_mirror_shift`.
const COPY_SHIFT: u32 = 21;

/// The purpose of a block in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A record is read, for requests or ahead of them.
    Read {
        /// The record.
        record: u64,
    },
    /// A record is written by a transaction group.
    Data {
        /// The record.
        record: u64,
        /// The vdev.
        vdev: u32,
    },
    /// Metadata, labels and flushes of a transaction group.
    Group,
    /// Blocks and flushes of the intent log.
    Log,
    /// A command for all drives from above.
    Whole {
        /// The request from above.
        asked: u32,
    },
    /// A unit of a resilver is read.
    Resilver {
        /// Number of the unit.
        unit: u64,
    },
    /// A record is read by a scrub.
    Scrub,
    /// A block of pointers is read by a scan.
    Walk,
    /// A block of a resilver is written.
    Repair,
    /// A range of free space is trimmed.
    Trim {
        /// Number of the range.
        range: u32,
    },
    /// A record is written into the cache on flash devices.
    Fill {
        /// The record.
        record: u64,
    },
}

/// A block in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    pub(crate) purpose: Purpose,
    remaining: u32,
    pub(crate) status: RequestStatus,
    /// The I/O that ended last.
    pub(crate) last: Completion,
    origin: u64,
    hints: Hints,
}

/// The cause of a block: the request from above whose number and hints the drives see.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cause {
    pub(crate) origin: u64,
    pub(crate) hints: Hints,
}

impl Cause {
    /// The cause of blocks that no request waits for.
    pub(crate) fn background() -> Cause {
        Cause {
            origin: Request::BACKGROUND,
            hints: Hints {
                synchronous: false,
                ..Hints::default()
            },
        }
    }

    /// The cause of blocks of a request.
    pub(crate) fn of(request: &Request) -> Cause {
        Cause {
            origin: request.origin,
            hints: Hints {
                force_unit_access: false,
                ..request.hints
            },
        }
    }
}

/// The drives of a pool, and the blocks in flight.
#[derive(Debug)]
pub(crate) struct PoolIo {
    /// The vdevs, the special vdev last.
    vdevs: Vec<Vdev>,
    /// The map of records from before an expansion.
    old: Option<Vdev>,
    width: usize,
    pub(crate) leaves: Vec<LeafQueue>,
    /// Drives that do not answer, and drives without valid data that take writes.
    failed: Vec<bool>,
    filling: Vec<bool>,
    /// True if writes to a drive under repair go to the distributed spare.
    to_spare: bool,
    /// I/Os that left the queues at their arrival, by drive, for the end of the event.
    early: Vec<(usize, Sent)>,
    /// The largest number of asynchronous writes in a drive, as of the last event.
    async_writes: u32,
    blocks: Slots<Block>,
    /// Blocks that ended in the present event.
    pub(crate) ended: Vec<Block>,
    map: BlockMap,
    /// Drives with a cache of records.
    caches: Range<usize>,
    /// Bytes before the labels at the end of each drive.
    ends: Vec<u64>,
    ashift: u32,
    /// Bytes read and written by the drives.
    pub(crate) moved: (u64, u64),
    /// True for each drive that takes TRIM.
    trims: Vec<bool>,
}

impl PoolIo {
    pub(crate) fn new(settings: &PoolSettings) -> PoolIo {
        let members = settings.members.len();
        let mut failed = vec![false; members];
        for &member in &settings.failed {
            failed[member as usize] = true;
        }
        PoolIo {
            vdevs: settings
                .vdevs
                .iter()
                .chain(&settings.special)
                .map(|(vdev, _)| vdev.clone())
                .collect(),
            old: settings.old.clone(),
            width: settings.width(),
            leaves: settings
                .flash
                .iter()
                .map(|&flash| LeafQueue::new(flash))
                .collect(),
            failed,
            filling: vec![false; members],
            to_spare: settings.resilver == ResilverKind::Spare,
            early: Vec::new(),
            async_writes: crate::classes::async_writes(0, 1),
            blocks: Slots::default(),
            ended: Vec::new(),
            map: BlockMap::default(),
            ends: settings
                .members
                .iter()
                .map(|disk| FRONT + crate::capacity::child_size(*disk))
                .collect(),
            caches: settings.caches(),
            ashift: settings.ashift,
            moved: (0, 0),
            trims: settings.trims.clone(),
        }
    }

    /// Returns the bytes of a block on a vdev. `old` is true for a record from before an expansion.
    pub(crate) fn asize(&self, vdev: usize, psize: u64, old: bool) -> u64 {
        // Blocks from before an expansion keep the ratio of parity of the old width.
        match &self.old {
            Some(narrow) if old => narrow.asize(psize),
            _ => self.vdevs[vdev].asize(psize),
        }
    }

    /// Returns true if the drive answers and has valid data.
    fn is_readable(&self, member: usize) -> bool {
        !self.failed[member] && !self.filling[member]
    }

    /// Returns true if the drive has failed.
    pub(crate) fn has_failed(&self, member: usize) -> bool {
        self.failed[member]
    }

    /// Sets the state of a drive.
    pub(crate) fn set(&mut self, member: usize, failed: bool, filling: bool) {
        self.failed[member] = failed;
        self.filling[member] = filling;
    }

    /// Returns true if each vdev has lost at most as many drives as it survives.
    pub(crate) fn answers(&self) -> bool {
        self.vdevs.iter().enumerate().all(|(index, vdev)| {
            let lost = self
                .drives(index)
                .filter(|&drive| !self.is_readable(drive))
                .count();
            lost as u64 <= vdev.survives()
        })
    }

    /// Returns the drives of a vdev.
    pub(crate) fn drives(&self, vdev: usize) -> Range<usize> {
        let first = vdev * self.width;
        first..first + self.vdevs[vdev].children() as usize
    }

    /// Returns the first drive of a vdev.
    fn first(&self, vdev: u32) -> usize {
        vdev as usize * self.width
    }

    fn is_draid(&self, vdev: u32) -> bool {
        matches!(self.vdevs[vdev as usize], Vdev::Draid(_))
    }

    /// Returns true if a column of the block in `self.map` lies on a drive without valid data.
    fn has_lost_column(&self, vdev: u32) -> bool {
        let first = self.first(vdev);
        let mut columns = self.map.columns().iter();
        columns.any(|column| !self.is_readable(first + column.child as usize))
    }

    /// Writes the map of a block into `self.map`, of a dRAID with the skipped sectors.
    fn place_with_skips(&mut self, dva: Dva, psize: u64, old: bool) {
        self.place(dva, psize, old);
        if self.is_draid(dva.vdev) {
            self.map.pad();
        }
    }

    /// Writes the map of a block into `self.map`.
    fn place(&mut self, dva: Dva, psize: u64, old: bool) {
        let mut map = std::mem::take(&mut self.map);
        match &self.old {
            Some(narrow) if old => narrow.map(dva.offset, psize, &mut map),
            _ => self.vdevs[dva.vdev as usize].map(dva.offset, psize, &mut map),
        }
        self.map = map;
    }

    fn keep(&mut self, purpose: Purpose, cause: Cause) -> u32 {
        self.blocks.keep(Block {
            purpose,
            remaining: 0,
            status: RequestStatus::Done,
            last: Completion::default(),
            origin: cause.origin,
            hints: cause.hints,
        })
    }

    fn push(&mut self, now: Time, member: usize, io: LeafIo) {
        if let Some(block) = io.block {
            self.blocks[block].remaining += 1;
        }
        // Reads still come from the other drives. Only repairs go to the spare space.
        let to_spare = self.to_spare && self.filling[member] && io.operation == Operation::Write;
        let member = match &self.vdevs[(member / self.width).min(self.vdevs.len() - 1)] {
            Vdev::Draid(draid) if to_spare => {
                let child = draid.spare_child(io.offset.saturating_sub(FRONT));
                // The spare space is spread over all children, so each offset has a spare child of
                // its own.
                member / self.width * self.width + child as usize
            }
            _ => member,
        };
        match io.operation {
            Operation::Read => self.moved.0 += io.size,
            Operation::Discard => {}
            _ => self.moved.1 += io.size,
        }
        self.leaves[member].push(now, io);
        // `vdev_queue_io` sends one I/O at each arrival, so the first I/Os of a burst join no
        // neighbour.
        if let Some(sent) = self.leaves[member].next(self.async_writes) {
            self.early.push((member, sent));
        }
    }

    /// Ends a block that needs no drive.
    fn end_if_empty(&mut self, block: u32) {
        if self.blocks[block].remaining == 0 {
            let ended = self.blocks.take(block);
            self.ended.push(ended);
        }
    }

    /// Reads a block. A RAIDZ reads all data columns; with a column lost, the parity columns as well
    /// (`vdev_raidz_io_start_read`). A mirror reads one copy.
    pub(crate) fn read(
        &mut self,
        now: Time,
        (dva, psize, old): (Dva, u64, bool),
        class: Class,
        purpose: Purpose,
        cause: Cause,
    ) -> u32 {
        self.place(dva, psize, old);
        let block = self.keep(purpose, cause);
        // A scan checks the skipped sectors of a dRAID, and reconstruction needs them, because parity
        // counts their zeros (`vdev_draid_map_alloc_scrub`, `vdev_draid_map_alloc_empty`).
        let checks = class.is_of_scans() && purpose != Purpose::Walk;
        let needs_skips = checks || self.has_lost_column(dva.vdev);
        if self.is_draid(dva.vdev) && needs_skips {
            self.map.pad();
        }
        let map = std::mem::take(&mut self.map);
        let first = self.first(dva.vdev);
        let read = |io: &mut PoolIo, index: usize| {
            io.read_column(now, first, map.columns()[index], (class, block));
        };
        for row in map.rows() {
            let child = |index: usize| first + map.columns()[index].child as usize;
            if self.vdevs[dva.vdev as usize].is_mirror() {
                if purpose == Purpose::Scrub {
                    // A scrub compares all copies (`vdev_mirror_io_start`).
                    for copy in row.all() {
                        if self.is_readable(child(copy)) {
                            read(self, copy);
                        }
                    }
                    continue;
                }
                match self.choose_copy(self.drives(dva.vdev as usize), dva.offset) {
                    Some(copy) => read(self, row.all().start + copy),
                    None => self.blocks[block].status = RequestStatus::Lost,
                }
                continue;
            }
            let is_lost = |io: &PoolIo, index: usize| !io.is_readable(child(index));
            let missing = row
                .data()
                .filter(|&index| map.columns()[index].size > 0 && is_lost(self, index));
            let missing = missing.count();
            let parities = row.all().start..row.data().start;
            let left = parities.clone().filter(|&index| !is_lost(self, index));
            if missing > left.count() {
                self.blocks[block].status = RequestStatus::Lost;
                continue;
            }
            for index in row.data() {
                if !is_lost(self, index) {
                    read(self, index);
                }
            }
            for index in parities {
                // A scan checks the parity also. Other reads need the parity only to recompute lost
                // columns (`vdev_raidz_io_start`).
                if (missing > 0 || checks) && !is_lost(self, index) {
                    read(self, index);
                }
            }
        }
        self.map = map;
        self.end_if_empty(block);
        block
    }

    /// Reads a column of a block from a drive of the vdev whose first drive is `first`.
    fn read_column(
        &mut self,
        now: Time,
        first: usize,
        column: Column,
        (class, block): (Class, u32),
    ) {
        if column.size > 0 {
            let io = LeafIo {
                class,
                operation: Operation::Read,
                offset: FRONT + column.offset,
                size: column.size,
                block: Some(block),
            };
            self.push(now, first + column.child as usize, io);
        }
    }

    /// Chooses the copy of a mirror by the number of I/Os in each drive and the distance to the last
    /// one (`vdev_mirror_load`, `vdev_mirror_child_select`).
    fn choose_copy(&self, drives: Range<usize>, offset: u64) -> Option<usize> {
        let first = drives.start;
        let load = |copy: usize| {
            let (length, last) = self.leaves[first + copy].load();
            let distance = last.abs_diff(FRONT + offset);
            let seek = match distance {
                0 => 0,
                _ if self.leaves[first + copy].is_flash() => FLASH_LOAD,
                distance if distance < NEAR => NEAR_LOAD,
                _ => FAR_LOAD,
            };
            u64::from(length) + seek
        };
        let alive = || (0..drives.len()).filter(|copy| self.is_readable(first + copy));
        let least = alive().map(load).min()?;
        let equal = alive().filter(|&copy| load(copy) == least);
        // Copies with equal load take turns by address, so that a sequential read stays on one copy
        // for 2 MiB.
        let count = equal.clone().count() as u64;
        equal.clone().nth(((offset >> COPY_SHIFT) % count) as usize)
    }

    /// Writes a block: all columns, and the skipped sectors of a RAIDZ as optional writes. A column of a
    /// dRAID and its skipped sector are one write (`vdev_draid_map_alloc_write`).
    pub(crate) fn write(
        &mut self,
        now: Time,
        (dva, psize): (Dva, u64),
        class: Class,
        purpose: Purpose,
        cause: Cause,
    ) -> u32 {
        self.place_with_skips(dva, psize, false);
        let block = self.keep(purpose, cause);
        let map = std::mem::take(&mut self.map);
        let first = self.first(dva.vdev);
        let columns = map.columns().iter().map(|column| (column, Some(block)));
        // The padding of RAIDZ is optional: a write without a block only joins neighbours.
        let skips = map.skips().iter().map(|column| (column, None));
        for (column, block) in columns.chain(skips) {
            let member = first + column.child as usize;
            if column.size > 0 && !self.failed[member] {
                let io = LeafIo {
                    class,
                    operation: Operation::Write,
                    offset: FRONT + column.offset,
                    size: column.size,
                    block,
                };
                self.push(now, member, io);
            }
        }
        self.map = map;
        self.end_if_empty(block);
        block
    }

    /// Issues everything that the drives' queues let go.
    pub(crate) fn pump(&mut self, async_writes: u32, out: &mut Effects) {
        self.async_writes = async_writes;
        let mut early = std::mem::take(&mut self.early);
        for (member, sent) in early.drain(..) {
            out.issue(member, self.request(&sent));
        }
        self.early = early;
        for member in 0..self.leaves.len() {
            self.send(member, out);
        }
    }

    /// Issues everything that the queue of one drive lets go.
    pub(crate) fn send(&mut self, member: usize, out: &mut Effects) {
        while let Some(sent) = self.leaves[member].next(self.async_writes) {
            out.issue(member, self.request(&sent));
        }
    }

    fn request(&self, sent: &Sent) -> Request {
        let start = sent.offset / SECTOR_BYTES + PARTITION;
        let sectors = sent.size.div_ceil(SECTOR_BYTES);
        let block = &self.blocks[sent.block];
        Request {
            id: RequestId(sent.id.into()),
            origin: block.origin,
            operation: sent.operation,
            extent: Extent::new(start, sectors),
            hints: block.hints,
            ..Request::default()
        }
    }

    /// Takes the completion of a drive. Blocks that end are added to [`ended`](PoolIo::ended).
    pub(crate) fn completed(&mut self, member: usize, completion: &Completion) {
        let (blocks, ended) = (&mut self.blocks, &mut self.ended);
        let mut part = |block: u32| {
            let at = &mut blocks[block];
            at.remaining -= 1;
            // The last part to end determines the breakdown of the whole block.
            if completion.finished >= at.last.finished {
                at.last = *completion;
            }
            at.status = at.status.max(completion.status);
            if at.remaining == 0 {
                ended.push(blocks.take(block));
            }
        };
        match completion.id.0 & WHOLE {
            0 => self.leaves[member].done(completion.id.0 as u32, &mut part),
            _ => part((completion.id.0 & !WHOLE) as u32),
        }
    }
}
