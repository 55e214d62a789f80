//! Epochs of dirty blocks, for flushes.

use std::collections::VecDeque;

/// Counts dirty blocks by epoch. Each flush ends the current epoch. The flush is over when this
/// epoch and all earlier epochs have no blocks left.
#[derive(Clone, Debug)]
pub(crate) struct Epochs {
    first: u64,
    blocks: VecDeque<u32>,
}

impl Default for Epochs {
    fn default() -> Epochs {
        Epochs {
            first: 0,
            blocks: VecDeque::from([0]),
        }
    }
}

impl Epochs {
    /// Counts a new dirty block, and returns the epoch of the block.
    pub(crate) fn enter(&mut self) -> u64 {
        let last = self.blocks.len() - 1;
        self.blocks[last] += 1;
        self.first + last as u64
    }

    /// Counts a block of `epoch` once more, because a part of the block is written before the rest.
    pub(crate) fn enter_again(&mut self, epoch: u64) {
        self.blocks[(epoch - self.first) as usize] += 1;
    }

    /// Removes a block of `epoch` after the write to the array.
    pub(crate) fn leave(&mut self, epoch: u64) {
        self.blocks[(epoch - self.first) as usize] -= 1;
        // The last epoch stays even when empty, because the next dirty block enters it.
        while self.blocks.len() > 1 && self.blocks[0] == 0 {
            self.blocks.pop_front();
            self.first += 1;
        }
    }

    /// Ends the current epoch, and returns its number.
    pub(crate) fn end(&mut self) -> u64 {
        let epoch = self.first + self.blocks.len() as u64 - 1;
        self.blocks.push_back(0);
        // A flush without dirty data is over at once, and no block would ever leave its epoch.
        if self.blocks[0] == 0 {
            self.blocks.pop_front();
            self.first += 1;
        }
        epoch
    }

    /// True if `epoch` and all earlier epochs have no blocks left.
    pub(crate) fn over(&self, epoch: u64) -> bool {
        epoch < self.first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_is_over_when_all_before_it_are() {
        let mut epochs = Epochs::default();
        let (early, empty) = (epochs.enter(), epochs.end());
        assert_eq!(early, empty);
        let late = epochs.enter();
        let second = epochs.end();
        assert!(!epochs.over(empty) && !epochs.over(second));
        epochs.leave(late);
        assert!(!epochs.over(second));
        epochs.leave(early);
        assert!(epochs.over(empty) && epochs.over(second));
        let third = epochs.end();
        assert!(epochs.over(third));
    }
}
