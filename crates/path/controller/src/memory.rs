//! The controller's memory: a table of clean and dirty blocks.
//!
//! Every block is found in constant time. Once all blocks have been in use, no further memory is
//! allocated.

use crate::block::{BlockSectors, CacheBlock, NONE};
use crate::epochs::Epochs;
use crate::lists::BlockList;
use fullstroke_contract::Extent;

/// Read cache and write buffer.
pub(crate) struct ControllerMemory {
    block_sectors: u64,
    pub(crate) read_blocks: usize,
    pub(crate) write_blocks: usize,
    pub(crate) read_used: usize,
    pub(crate) write_used: usize,
    pub(crate) blocks: Vec<CacheBlock>,
    pub(crate) free: Vec<u32>,
    /// First block of each hash chain. The length is a power of two.
    pub(crate) table: Vec<u32>,
    /// Replaceable blocks of the read cache, the least recently used first.
    pub(crate) clean: BlockList,
    /// Writable blocks, the block that became dirty first in front.
    dirty: BlockList,
    epochs: Epochs,
}

impl ControllerMemory {
    pub(crate) fn new(
        block_sectors: u64,
        read_blocks: usize,
        write_blocks: usize,
    ) -> ControllerMemory {
        // At least two chains, because a table of one chain would shift the hash by 64 bits (an
        // overflow).
        let chains = (read_blocks + write_blocks).next_power_of_two().max(2);
        ControllerMemory {
            block_sectors,
            read_blocks,
            write_blocks,
            read_used: 0,
            write_used: 0,
            blocks: Vec::new(),
            free: Vec::new(),
            table: vec![NONE; chains],
            clean: BlockList::EMPTY,
            dirty: BlockList::EMPTY,
            epochs: Epochs::default(),
        }
    }

    /// Number of blocks of the write buffer in use: dirty, or being written.
    pub(crate) fn buffered(&self) -> usize {
        self.write_used
    }

    /// Number of free blocks of the write buffer.
    pub(crate) fn room(&self) -> usize {
        assert!(
            self.write_used <= self.write_blocks,
            "{} blocks are buffered, of {}",
            self.write_used,
            self.write_blocks
        );
        self.write_blocks - self.write_used
    }

    /// Number of currently writable blocks.
    pub(crate) fn writable(&self) -> usize {
        self.dirty.len()
    }

    /// Ends the epoch of the current dirty blocks, and returns its number.
    pub(crate) fn end_epoch(&mut self) -> u64 {
        self.epochs.end()
    }

    /// True if all blocks of `epoch` or earlier epochs are on the array.
    pub(crate) fn epoch_over(&self, epoch: u64) -> bool {
        self.epochs.over(epoch)
    }

    /// Returns the blocks of an extent, each with the covered sectors.
    fn pieces(&self, extent: Extent) -> impl Iterator<Item = (u64, BlockSectors)> + use<> {
        let size = self.block_sectors;
        let (start, end) = (extent.start.0, extent.end().0);
        let numbers = if start < end {
            start / size..(end - 1) / size + 1
        } else {
            0..0
        };
        numbers.map(move |number| {
            let first = number * size;
            let from = start.max(first) - first;
            let to = end.min(first + size) - first;
            (
                number,
                BlockSectors {
                    from: from as u32,
                    to: to as u32,
                },
            )
        })
    }

    /// Returns the extent from the first to the last missing sector of `extent`. `None` if all
    /// sectors are in memory.
    pub(crate) fn missing(&self, extent: Extent) -> Option<Extent> {
        let mut found: Option<(u64, u64)> = None;
        for (number, span) in self.pieces(extent) {
            let valid = self
                .find(number)
                .map_or(0, |index| self.blocks[index as usize].valid);
            let missing = span.bits() & !valid;
            if missing != 0 {
                let first = number * self.block_sectors;
                let start = first + u64::from(missing.trailing_zeros());
                let end = first + u64::from(64 - missing.leading_zeros());
                found = Some((found.map_or(start, |(start, _)| start), end));
            }
        }
        found.map(|(start, end)| Extent::new(start, end - start))
    }

    /// Returns the slot, plus one, of the I/O that fetches the block of a sector; 0 if there is
    /// none.
    pub(crate) fn fetch_of(&self, sector: u64) -> u32 {
        self.find(sector / self.block_sectors)
            .map_or(0, |index| self.blocks[index as usize].fetch)
    }

    /// Records a use of the extent.
    pub(crate) fn touch(&mut self, extent: Extent) {
        for (number, _) in self.pieces(extent) {
            if let Some(index) = self.find(number) {
                let block = &self.blocks[index as usize];
                // Only these blocks are in the list of replaceable blocks. A removal of a block
                // outside the list would damage the list.
                if !block.is_buffered() && block.fetch == 0 {
                    self.clean.remove(&mut self.blocks, index);
                    self.clean.push(&mut self.blocks, index);
                }
            }
        }
    }

    /// Records the start of a fetch of the extent by the I/O `fetch`. Sectors without a place in
    /// memory will not be kept.
    pub(crate) fn begin_fetch(&mut self, extent: Extent, fetch: u32) {
        for (number, _) in self.pieces(extent) {
            let Some(index) = self.find(number).or_else(|| self.place_for_read(number)) else {
                continue;
            };
            let block = &mut self.blocks[index as usize];
            if block.fetch == 0 {
                block.fetch = fetch;
                // A block with a fetch is not replaceable, so that its place is there when the data
                // come.
                if !block.is_buffered() {
                    self.clean.remove(&mut self.blocks, index);
                }
            }
        }
    }

    /// Records the end of the I/O `fetch`; `done` is false if the fetch failed. A block forgotten
    /// since then no longer waits for the fetch.
    pub(crate) fn end_fetch(&mut self, extent: Extent, fetch: u32, done: bool) {
        for (number, span) in self.pieces(extent) {
            let Some(index) = self.find(number) else {
                continue;
            };
            let block = &mut self.blocks[index as usize];
            // After a discard or a write-through, the block may be new, or another I/O may fetch
            // the block. The data of the old fetch are then out of date.
            if block.fetch != fetch {
                continue;
            }
            block.fetch = 0;
            block.valid |= if done { span.bits() } else { 0 };
            if !block.is_buffered() {
                self.clean.push(&mut self.blocks, index);
                self.drop_if_empty(index);
            }
        }
    }

    /// Takes the part of `extent` from sector `from` on into memory, block by block, while there is
    /// room. Returns the number of sectors of `extent` taken so far.
    pub(crate) fn write(&mut self, extent: Extent, from: u64) -> u64 {
        assert!(
            from <= extent.sectors.0,
            "{extent:?} is written from sector {from} of it on"
        );
        let rest = Extent::new(extent.start.0 + from, extent.sectors.0 - from);
        let mut written = from;
        for (number, span) in self.pieces(rest) {
            if !self.write_block(number, span) {
                break;
            }
            written += u64::from(span.to - span.from);
        }
        written
    }

    fn write_block(&mut self, number: u64, span: BlockSectors) -> bool {
        let Some(index) = self.place_for_write(number) else {
            return false;
        };
        let block = &mut self.blocks[index as usize];
        block.valid |= span.bits();
        if block.dirty == 0 {
            block.dirty_epoch = self.epochs.enter();
        }
        // The block enters the list of writable blocks once. A second entry would break the links
        // of the list.
        let waits = block.can_be_written();
        block.dirty |= span.bits();
        if !waits && block.can_be_written() {
            self.dirty.push(&mut self.blocks, index);
        }
        true
    }

    /// Takes the next dirty data to write: the oldest dirty block, with dirty neighbours within an
    /// aligned unit of `unit_blocks`. The data count as on the way from now on.
    pub(crate) fn take_dirty(&mut self, unit_blocks: u64) -> Option<Extent> {
        let oldest = self.dirty.first()?;
        let number = self.blocks[oldest as usize].number;
        let unit =
            number / unit_blocks * unit_blocks..number / unit_blocks * unit_blocks + unit_blocks;
        let size = self.block_sectors as u32;
        // The oldest block is taken before the neighbours, because only its span tells on which
        // side data can continue.
        let span = self.take_block(oldest);
        let (mut lowest, mut start) = (number, span.from);
        while start == 0 && lowest > unit.start {
            let Some(below) = self.writable_at(lowest - 1, |span| span.to == size) else {
                break;
            };
            lowest -= 1;
            start = self.take_block(below).from;
        }
        let (mut highest, mut end) = (number, span.to);
        while end == size && highest + 1 < unit.end {
            let Some(above) = self.writable_at(highest + 1, |span| span.from == 0) else {
                break;
            };
            highest += 1;
            end = self.take_block(above).to;
        }
        let start = lowest * self.block_sectors + u64::from(start);
        Some(Extent::new(
            start,
            highest * self.block_sectors + u64::from(end) - start,
        ))
    }

    fn writable_at(&self, number: u64, fits: impl Fn(BlockSectors) -> bool) -> Option<u32> {
        let index = self.find(number)?;
        let block = &self.blocks[index as usize];
        (block.can_be_written() && fits(block.writable())).then_some(index)
    }

    fn take_block(&mut self, index: u32) -> BlockSectors {
        self.dirty.remove(&mut self.blocks, index);
        let block = &mut self.blocks[index as usize];
        let span = block.writable();
        debug_assert!(
            block.writing == 0 && span.from < span.to,
            "a block goes to the array of which {span:?} is dirty: {block:?}"
        );
        block.writing = block.dirty & span.bits();
        block.dirty &= !span.bits();
        block.writing_epoch = block.dirty_epoch;
        // The rest of the dirty sectors belongs to the same epoch. A flush of this epoch must wait
        // for both parts.
        if block.dirty != 0 {
            self.epochs.enter_again(block.dirty_epoch);
        }
        span
    }

    /// Records that the array has written the data of [`take_dirty`](ControllerMemory::take_dirty),
    /// or has lost them if `done` is false.
    pub(crate) fn written(&mut self, extent: Extent, done: bool) {
        for (number, _) in self.pieces(extent) {
            let Some(index) = self.find(number) else {
                continue;
            };
            let block = &mut self.blocks[index as usize];
            if block.writing == 0 {
                continue;
            }
            if !done {
                // The array has older data of these sectors than memory, and the write was lost.
                // Only sectors that are dirty again stay valid.
                block.valid &= !block.writing | block.dirty;
            }
            block.writing = 0;
            self.epochs.leave(block.writing_epoch);
            if block.dirty != 0 {
                self.dirty.push(&mut self.blocks, index);
            } else {
                self.turn_clean(index);
            }
        }
    }

    /// Drops the extent from memory. Running fetches of the extent will not be kept.
    pub(crate) fn forget(&mut self, extent: Extent) {
        // A discard can cover the whole array. Visiting the blocks in memory is then faster than
        // visiting the blocks of the extent.
        if extent.sectors.0 / self.block_sectors > self.blocks.len() as u64 {
            for index in 0..self.blocks.len() {
                let number = self.blocks[index].number;
                let (first, size) = (number * self.block_sectors, self.block_sectors);
                let start = extent.start.0.max(first);
                let end = extent.end().0.min(first + size);
                // A released block keeps its number until the block is used again. Only `find`
                // tells if the block is in use.
                if start < end && self.find(number) == Some(index as u32) {
                    self.forget_within(Extent::new(start, end - start));
                }
            }
        } else {
            self.forget_within(extent);
        }
    }

    fn forget_within(&mut self, extent: Extent) {
        for (number, span) in self.pieces(extent) {
            let Some(index) = self.find(number) else {
                continue;
            };
            let block = &mut self.blocks[index as usize];
            let (was_writable, was_dirty) = (block.can_be_written(), block.dirty != 0);
            let (was_listed, was_buffered) = (
                !block.is_buffered() && block.fetch == 0,
                block.is_buffered(),
            );
            block.valid &= !span.bits();
            block.dirty &= !span.bits();
            // The I/O of the fetch goes on, but `end_fetch` finds no fetch of this number and drops
            // the data.
            block.fetch = 0;
            let block = *block;
            if was_dirty && block.dirty == 0 {
                self.epochs.leave(block.dirty_epoch);
            }
            if was_writable && !block.can_be_written() {
                self.dirty.remove(&mut self.blocks, index);
            }
            if was_buffered && !block.is_buffered() {
                self.turn_clean(index);
            } else if !was_buffered {
                if !was_listed {
                    self.clean.push(&mut self.blocks, index);
                }
                self.drop_if_empty(index);
            }
        }
    }
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
