//! A block of memory. The sectors of a block are the bits of a word.

/// Value for "no block" in chains, lists and tables.
pub(crate) const NONE: u32 = u32::MAX;

/// A block. While a block is dirty or being written, the block belongs to the write buffer.
/// Otherwise the block belongs to the read cache.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CacheBlock {
    /// First sector divided by the size of a block.
    pub(crate) number: u64,
    /// Sectors with data in memory.
    pub(crate) valid: u64,
    /// Dirty sectors, not yet on the way to the array.
    pub(crate) dirty: u64,
    /// Sectors on the way to the array.
    pub(crate) writing: u64,
    /// Epochs of the dirty sectors and of the sectors on the way.
    pub(crate) dirty_epoch: u64,
    pub(crate) writing_epoch: u64,
    /// Slot, plus one, of the I/O that fetches missing sectors of the block; 0 means none. A block
    /// with a fetch keeps its place in memory.
    pub(crate) fetch: u32,
    /// Next block in the hash chain.
    pub(crate) chain: u32,
    /// Neighbours in the list of the block.
    pub(crate) previous: u32,
    pub(crate) next: u32,
}

/// Neighbouring sectors of a block, from `from` to `to` (exclusive).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockSectors {
    pub(crate) from: u32,
    pub(crate) to: u32,
}

impl BlockSectors {
    /// Returns the sectors as bits.
    pub(crate) fn bits(self) -> u64 {
        debug_assert!(
            self.from < self.to && self.to <= 64,
            "{self:?} are no sectors of a block"
        );
        // Shifting a 64-bit word by 64 is an overflow, so the end of a full block has a case of its
        // own.
        let upto = |end: u32| if end == 64 { u64::MAX } else { (1 << end) - 1 };
        upto(self.to) & !upto(self.from)
    }
}

impl CacheBlock {
    pub(crate) fn new(number: u64) -> CacheBlock {
        CacheBlock {
            number,
            valid: 0,
            dirty: 0,
            writing: 0,
            dirty_epoch: 0,
            writing_epoch: 0,
            fetch: 0,
            chain: NONE,
            previous: NONE,
            next: NONE,
        }
    }

    /// True if the block belongs to the write buffer.
    pub(crate) fn is_buffered(&self) -> bool {
        (self.dirty | self.writing) != 0
    }

    /// True if dirty sectors of the block could go to the array now. While older data of the block
    /// are on the way, newer data must wait, because two writes in flight could end in either
    /// order.
    pub(crate) fn can_be_written(&self) -> bool {
        self.dirty != 0 && self.writing == 0
    }

    /// Returns the sectors for one write I/O: all dirty sectors if the gaps between them are valid,
    /// otherwise the first run of dirty sectors.
    pub(crate) fn writable(&self) -> BlockSectors {
        let from = self.dirty.trailing_zeros();
        let all = BlockSectors {
            from,
            to: 64 - self.dirty.leading_zeros(),
        };
        // Clean sectors in a gap may be written again, because memory and array agree there. A gap
        // without data in memory would put garbage on the array.
        if all.bits() & !self.valid == 0 {
            return all;
        }
        BlockSectors {
            from,
            to: from + (self.dirty >> from).trailing_ones(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_bridged_where_their_data_are_here() {
        let block = |dirty, valid| CacheBlock {
            dirty,
            valid,
            ..CacheBlock::new(0)
        };
        assert_eq!(
            block(0b0110_0100, 0b0111_1100).writable(),
            BlockSectors { from: 2, to: 7 }
        );
        assert_eq!(
            block(0b0110_0110, 0b0110_0110).writable(),
            BlockSectors { from: 1, to: 3 }
        );
        assert_eq!(
            block(u64::MAX, u64::MAX).writable(),
            BlockSectors { from: 0, to: 64 }
        );
    }
}
