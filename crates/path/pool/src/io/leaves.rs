//! I/O for single drives: repairs, labels, the log, and commands to whole drives.

use super::{Cause, PoolIo, Purpose, WHOLE};
use crate::capacity::{END, FRONT};
use crate::classes::Class;
use crate::place::Dva;
use crate::queue::LeafIo;
use fullstroke_contract::{Effects, Operation, Request, RequestId};
use fullstroke_units::Time;

impl PoolIo {
    /// Writes the columns of a block that lie on drives under repair. Returns false if there are
    /// none.
    pub(crate) fn repair(
        &mut self,
        now: Time,
        (dva, psize, old): (Dva, u64, bool),
        class: Class,
    ) -> bool {
        self.place_with_skips(dva, psize, old);
        let map = std::mem::take(&mut self.map);
        let first = self.first(dva.vdev);
        let lost: Vec<(usize, u64, u64)> = map
            .columns()
            .iter()
            .filter(|column| column.size > 0 && self.filling[first + column.child as usize])
            .map(|column| (first + column.child as usize, column.offset, column.size))
            .collect();
        // The buffer of the map goes back before the early return below, so that the next block
        // allocates nothing.
        self.map = map;
        if lost.is_empty() {
            return false;
        }
        let block = self.keep(Purpose::Repair, Cause::background());
        for (member, offset, size) in lost {
            let io = LeafIo {
                class,
                operation: Operation::Write,
                offset: FRONT + offset,
                size,
                block: Some(block),
            };
            self.push(now, member, io);
        }
        true
    }

    /// Lets a read-ahead of a block go as a synchronous read, as far as its columns still wait
    /// (`zio_change_priority`).
    pub(crate) fn hurry(&mut self, (dva, psize, old): (Dva, u64, bool), block: u32) {
        self.place(dva, psize, old);
        let first = self.first(dva.vdev);
        for column in self.map.columns() {
            let member = first + column.child as usize;
            self.leaves[member].hurry(block, FRONT + column.offset);
        }
    }

    /// Returns true if a column of the block lies on a drive under repair.
    pub(crate) fn needs_repair(&mut self, (dva, psize, old): (Dva, u64, bool)) -> bool {
        self.place(dva, psize, old);
        let first = self.first(dva.vdev);
        let mut columns = self.map.columns().iter();
        columns.any(|column| column.size > 0 && self.filling[first + column.child as usize])
    }

    /// Writes `size` bytes at `offset` of a drive that is no part of a vdev's map: a log drive, or a
    /// label. `offset` counts from the beginning of the partition.
    pub(crate) fn write_leaf(
        &mut self,
        now: Time,
        member: usize,
        offset: u64,
        size: u64,
        purpose: Purpose,
    ) {
        let place = (member, offset, size);
        let how = (Operation::Write, Class::SyncWrite);
        self.leaf(now, place, how, purpose, Cause::background());
    }

    /// Reads or writes a piece of one drive: the drive, the first byte behind the beginning of the
    /// partition, and the number of bytes.
    pub(crate) fn leaf(
        &mut self,
        now: Time,
        (member, offset, size): (usize, u64, u64),
        (operation, class): (Operation, Class),
        purpose: Purpose,
        cause: Cause,
    ) {
        let block = self.keep(purpose, cause);
        let io = LeafIo {
            class,
            operation,
            offset,
            size,
            block: Some(block),
        };
        self.push(now, member, io);
    }

    /// Writes the uberblock of transaction group `group` into the four labels of each drive of a
    /// vdev (`vdev_uberblock_sync`).
    pub(crate) fn write_labels(&mut self, now: Time, vdev: usize, group: u64) {
        const LABEL: u64 = 256 << 10;
        // The ring of uberblocks is the second half of a label.
        let size = (1u64 << self.ashift).max(1024);
        let slots = (LABEL / 2) / size;
        let within = LABEL / 2 + group % slots * size;
        for member in vdev * self.width..(vdev + 1) * self.width {
            if self.failed[member] {
                continue;
            }
            let end = self.ends[member];
            // Two labels lie at the front and two at the end, so that one overwritten end leaves
            // two (`vdev_label_offset`).
            for label in [0, LABEL, end + END - 2 * LABEL, end + END - LABEL] {
                self.write_leaf(now, member, label + within, size, Purpose::Group);
            }
        }
    }

    /// Sends a command to whole drives: all that answer, or those of `only`.
    pub(crate) fn command(
        &mut self,
        operation: Operation,
        only: Option<&[bool]>,
        purpose: Purpose,
        out: &mut Effects,
    ) {
        let block = self.keep(purpose, Cause::background());
        for member in 0..self.leaves.len() {
            // Nobody waits for what lies in a cache.
            let is_cached = operation == Operation::Flush && self.caches.contains(&member);
            if self.failed[member] || is_cached || only.is_some_and(|only| !only[member]) {
                continue;
            }
            self.blocks[block].remaining += 1;
            let request = Request {
                id: RequestId(WHOLE | u64::from(block)),
                origin: Request::BACKGROUND,
                operation,
                ..Request::default()
            };
            out.issue(member, request);
        }
        // Without a living drive no completion would ever end the block.
        self.end_if_empty(block);
    }
}
