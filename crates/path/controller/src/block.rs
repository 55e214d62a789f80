//! A block of memory; its sectors are the bits of a word.

/// What a chain, a list or a table holds where it holds nothing.
pub(crate) const NONE: u32 = u32::MAX;

/// A block. It belongs to the write buffer while it is dirty or being written,
/// else to the read cache.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    /// Its first sector, divided by the size of a block.
    pub(crate) number: u64,
    /// Sectors whose data are here.
    pub(crate) valid: u64,
    /// Sectors that the array does not have yet, nor is being given.
    pub(crate) dirty: u64,
    /// Sectors that the array is being given.
    pub(crate) writing: u64,
    /// The epochs of those two.
    pub(crate) dirty_epoch: u64,
    pub(crate) writing_epoch: u64,
    /// The I/O that fetches further sectors, plus one; 0 = none. Such a block
    /// keeps its place.
    pub(crate) fetch: u32,
    /// The next block in the chain of its hash.
    pub(crate) chain: u32,
    /// Its neighbours in the list that it is in.
    pub(crate) previous: u32,
    pub(crate) next: u32,
}

/// Neighbouring sectors of a block, from one to before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) from: u32,
    pub(crate) to: u32,
}

impl Span {
    /// Its sectors as bits.
    pub(crate) fn bits(self) -> u64 {
        debug_assert!(
            self.from < self.to && self.to <= 64,
            "{self:?} are no sectors of a block"
        );
        let upto = |end: u32| if end == 64 { u64::MAX } else { (1 << end) - 1 };
        upto(self.to) & !upto(self.from)
    }
}

impl Block {
    pub(crate) fn new(number: u64) -> Block {
        Block {
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

    /// Whether it belongs to the write buffer.
    pub(crate) fn is_buffered(&self) -> bool {
        (self.dirty | self.writing) != 0
    }

    /// Whether its dirty sectors could go to the array now: not while older
    /// data of it are on their way.
    pub(crate) fn can_be_written(&self) -> bool {
        self.dirty != 0 && self.writing == 0
    }

    /// What one I/O would write: all dirty sectors, if what lies between them
    /// is here too, else the first that are neighbours.
    pub(crate) fn writable(&self) -> Span {
        let from = self.dirty.trailing_zeros();
        let all = Span {
            from,
            to: 64 - self.dirty.leading_zeros(),
        };
        if all.bits() & !self.valid == 0 {
            return all;
        }
        Span {
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
        let block = |dirty, valid| Block {
            dirty,
            valid,
            ..Block::new(0)
        };
        assert_eq!(
            block(0b0110_0100, 0b0111_1100).writable(),
            Span { from: 2, to: 7 }
        );
        assert_eq!(
            block(0b0110_0110, 0b0110_0110).writable(),
            Span { from: 1, to: 3 }
        );
        assert_eq!(
            block(u64::MAX, u64::MAX).writable(),
            Span { from: 0, to: 64 }
        );
    }
}
