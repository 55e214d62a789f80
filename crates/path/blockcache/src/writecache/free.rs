//! Free blocks of the flash device.

use std::collections::BTreeSet;

/// Free blocks, which are taken in order of their places (`WC_MODE_SORT_FREELIST`). A device has
/// many blocks, and most runs use few, so blocks from `fresh` on take no memory.
pub(super) struct FreeBlocks {
    /// Free blocks below `fresh`.
    given_back: BTreeSet<u32>,
    /// First of the blocks that were never in use.
    fresh: u32,
    blocks: u32,
    /// Where the search goes on.
    next: u32,
}

impl FreeBlocks {
    /// Returns the blocks of a new cache.
    pub(super) fn new(blocks: u32) -> FreeBlocks {
        FreeBlocks {
            given_back: BTreeSet::new(),
            fresh: 0,
            blocks,
            next: 0,
        }
    }

    /// Number of free blocks.
    pub(super) fn len(&self) -> usize {
        self.given_back.len() + (self.blocks - self.fresh) as usize
    }

    /// Takes the next block in the order of places.
    pub(super) fn take(&mut self) -> Option<u32> {
        let used_before = self.given_back.range(self.next..).next().copied();
        let index = match used_before {
            Some(index) => index,
            None if self.fresh < self.blocks => {
                self.fresh += 1;
                self.fresh - 1
            }
            None => self.given_back.first().copied()?,
        };
        self.given_back.remove(&index);
        self.next = index + 1;
        Some(index)
    }

    /// Gives a block back.
    pub(super) fn give_back(&mut self, index: u32) {
        let was_used = index < self.fresh && self.given_back.insert(index);
        assert!(was_used, "block {index} is given back, and was not in use");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_taken_in_order_of_their_places_and_from_the_start_again() {
        let mut free = FreeBlocks::new(4);
        assert_eq!([(); 3].map(|()| free.take()), [Some(0), Some(1), Some(2)]);
        free.give_back(1);
        assert_eq!(free.len(), 2);
        assert_eq!(free.take(), Some(3), "before the block behind the search");
        free.give_back(2);
        assert_eq!([(); 3].map(|()| free.take()), [Some(1), Some(2), None]);
    }
}
