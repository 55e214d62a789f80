//! What a flush has to wait for.

use std::collections::VecDeque;

/// Counts dirty blocks by the flush before which they became dirty. A flush
/// ends the present epoch, and is over when that epoch and all before it have
/// no block left.
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
    /// A block became dirty; the epoch that it belongs to.
    pub(crate) fn enter(&mut self) -> u64 {
        let last = self.blocks.len() - 1;
        self.blocks[last] += 1;
        self.first + last as u64
    }

    /// A block of `epoch` counts once more: a part of it goes before the rest.
    pub(crate) fn enter_again(&mut self, epoch: u64) {
        self.blocks[(epoch - self.first) as usize] += 1;
    }

    /// A block of `epoch` is on the medium.
    pub(crate) fn leave(&mut self, epoch: u64) {
        self.blocks[(epoch - self.first) as usize] -= 1;
        while self.blocks.len() > 1 && self.blocks[0] == 0 {
            self.blocks.pop_front();
            self.first += 1;
        }
    }

    /// Ends the present epoch, and names it.
    pub(crate) fn end(&mut self) -> u64 {
        let epoch = self.first + self.blocks.len() as u64 - 1;
        self.blocks.push_back(0);
        if self.blocks[0] == 0 {
            self.blocks.pop_front();
            self.first += 1;
        }
        epoch
    }

    /// Whether nothing of `epoch` or before is left.
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
