//! Lists through blocks, in order of use.

use crate::block::{CacheBlock, NONE};

/// A list, with the links in the blocks. A block is in at most one list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockList {
    first: u32,
    last: u32,
    length: usize,
}

impl BlockList {
    pub(crate) const EMPTY: BlockList = BlockList {
        first: NONE,
        last: NONE,
        length: 0,
    };

    /// Returns the oldest block of the list.
    pub(crate) fn first(&self) -> Option<u32> {
        (self.first != NONE).then_some(self.first)
    }

    pub(crate) fn len(&self) -> usize {
        self.length
    }

    pub(crate) fn push(&mut self, blocks: &mut [CacheBlock], index: u32) {
        blocks[index as usize].previous = self.last;
        blocks[index as usize].next = NONE;
        match self.last {
            NONE => self.first = index,
            last => blocks[last as usize].next = index,
        }
        self.last = index;
        self.length += 1;
    }

    /// Removes a block from the list.
    pub(crate) fn remove(&mut self, blocks: &mut [CacheBlock], index: u32) {
        let CacheBlock { previous, next, .. } = blocks[index as usize];
        match previous {
            NONE => self.first = next,
            previous => blocks[previous as usize].next = next,
        }
        match next {
            NONE => self.last = previous,
            next => blocks[next as usize].previous = previous,
        }
        self.length -= 1;
    }
}
