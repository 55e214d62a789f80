//! Allocation, release and search of blocks in memory.

use crate::block::{CacheBlock, NONE};
use crate::memory::ControllerMemory;

impl ControllerMemory {
    /// Moves a block without dirty data from the write buffer to the read cache, if the read cache
    /// has room. Otherwise releases the block.
    pub(crate) fn turn_clean(&mut self, index: u32) {
        self.write_used -= 1;
        let fetched = self.blocks[index as usize].fetch != 0;
        // A running fetch will bring data, so an empty block with a fetch keeps its place.
        let empty = self.blocks[index as usize].valid == 0 && !fetched;
        if empty || !self.make_room_for_read() {
            self.release(index);
            return;
        }
        self.read_used += 1;
        if !fetched {
            self.clean.push(&mut self.blocks, index);
        }
    }

    /// Releases a block of the read cache without data.
    pub(crate) fn drop_if_empty(&mut self, index: u32) {
        if self.blocks[index as usize].valid == 0 {
            self.clean.remove(&mut self.blocks, index);
            self.read_used -= 1;
            self.release(index);
        }
    }

    /// Makes room for a block in the read cache by releasing the least recently used block. Returns
    /// false if no block can go.
    fn make_room_for_read(&mut self) -> bool {
        if self.read_used < self.read_blocks {
            return true;
        }
        let Some(oldest) = self.clean.first() else {
            return false;
        };
        self.clean.remove(&mut self.blocks, oldest);
        self.read_used -= 1;
        self.release(oldest);
        true
    }

    /// Adds an empty block to the read cache. `None` if there is no room.
    pub(crate) fn place_for_read(&mut self, number: u64) -> Option<u32> {
        if !self.make_room_for_read() {
            return None;
        }
        self.read_used += 1;
        let index = self.add(number);
        self.clean.push(&mut self.blocks, index);
        Some(index)
    }

    /// Returns the block of the write buffer with this number, newly allocated if necessary. `None`
    /// if there is no room.
    pub(crate) fn place_for_write(&mut self, number: u64) -> Option<u32> {
        let known = self.find(number);
        if let Some(index) = known.filter(|&index| self.blocks[index as usize].is_buffered()) {
            return Some(index);
        }
        // The room counts blocks of the write buffer. A block that the read cache holds needs room
        // as well.
        if self.room() == 0 {
            return None;
        }
        self.write_used += 1;
        let Some(index) = known else {
            return Some(self.add(number));
        };
        self.read_used -= 1;
        // A block with a fetch is in no list.
        if self.blocks[index as usize].fetch == 0 {
            self.clean.remove(&mut self.blocks, index);
        }
        Some(index)
    }

    fn chain_of(&self, number: u64) -> usize {
        // Fibonacci hashing: 2^64 divided by the golden ratio spreads neighbouring numbers over the
        // chains.
        let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> (64 - self.table.len().trailing_zeros())) as usize
    }

    pub(crate) fn find(&self, number: u64) -> Option<u32> {
        let mut index = self.table[self.chain_of(number)];
        while index != NONE && self.blocks[index as usize].number != number {
            index = self.blocks[index as usize].chain;
        }
        (index != NONE).then_some(index)
    }

    fn add(&mut self, number: u64) -> u32 {
        let chain = self.chain_of(number);
        let block = CacheBlock {
            chain: self.table[chain],
            ..CacheBlock::new(number)
        };
        let index = match self.free.pop() {
            Some(index) => {
                self.blocks[index as usize] = block;
                index
            }
            None => {
                self.blocks.push(block);
                self.blocks.len() as u32 - 1
            }
        };
        self.table[chain] = index;
        index
    }

    /// Removes a block from the table. The block must be in no list.
    fn release(&mut self, index: u32) {
        let CacheBlock {
            number,
            chain: rest,
            ..
        } = self.blocks[index as usize];
        let chain = self.chain_of(number);
        let mut at = self.table[chain];
        if at == index {
            self.table[chain] = rest;
        } else {
            while self.blocks[at as usize].chain != index {
                at = self.blocks[at as usize].chain;
            }
            self.blocks[at as usize].chain = rest;
        }
        self.free.push(index);
    }
}
