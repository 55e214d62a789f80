//! I/Os in order of address.

use fullstroke_units::Lbn;

/// I/Os in ascending order of start address, then of arrival. There are at most some hundreds of
/// I/Os. For so few, moving the tail of a vector is cheaper than a tree and allocates no memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Sorted(Vec<(u64, u32)>);

impl Sorted {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn insert(&mut self, slot: u32, start: Lbn) {
        // `<=` puts the I/O behind all I/Os with the same start. Equal addresses thus go in order
        // of arrival.
        let at = self.0.partition_point(|&(other, _)| other <= start.0);
        self.0.insert(at, (start.0, slot));
    }

    /// Returns the index of the first I/O at `position` or behind; the length if there is none.
    pub(super) fn at_or_behind(&self, position: Lbn) -> usize {
        self.0.partition_point(|&(other, _)| other < position.0)
    }

    pub(super) fn start(&self, index: usize) -> Option<u64> {
        self.0.get(index).map(|&(start, _)| start)
    }

    /// Removes the earliest arrival among the I/Os with the same start as the I/O at `index`.
    pub(super) fn remove(&mut self, index: usize) -> u32 {
        let first = self.at_or_behind(Lbn(self.0[index].0));
        self.0.remove(first).1
    }
}
