//! Steps of TRIM in a pool: freed space has its turn, ranges go to the drives, and their ends.

use super::Pool;
use crate::allocate::PoolSpace;
use crate::io::Purpose;
use crate::place::Dva;
use crate::trim_ranges::BATCH;
use fullstroke_units::Time;

impl Pool {
    /// Returns the free space of a vdev, and the number of the vdev in this space.
    fn space_of(&mut self, vdev: usize) -> (&mut PoolSpace, usize) {
        match &mut self.special {
            Some(special) if vdev == self.settings.vdevs.len() => (special, 0),
            _ => (&mut self.space, vdev),
        }
    }

    /// Lets the metaslabs of the group that has ended have their turn.
    pub(crate) fn trim_freed(&mut self) {
        if !self.trim.is_auto() {
            return;
        }
        let turn = self.txg.groups % BATCH;
        for vdev in 0..self.trim.vdevs() {
            let (space, index) = self.space_of(vdev);
            let freed = space.freed_for_trim(index, turn);
            self.trim.add_freed(vdev, freed);
        }
    }

    /// Sends the next ranges to the drives.
    pub(crate) fn trim_step(&mut self, now: Time) {
        for vdev in 0..self.trim.vdevs() {
            while let Some(range) = self.next_trim(now, vdev) {
                self.trim_range(now, vdev, range);
            }
        }
    }

    fn next_trim(&mut self, now: Time, vdev: usize) -> Option<(u64, u64)> {
        let (space, index) = match &self.special {
            Some(special) if vdev == self.settings.vdevs.len() => (special, 0),
            _ => (&self.space, vdev),
        };
        let free = |from| space.free_from(index, from);
        self.trim.next_range(now, vdev, free)
    }

    /// Sends the free parts of a range.
    fn trim_range(&mut self, now: Time, vdev: usize, (start, size): (u64, u64)) {
        let (space, index) = self.space_of(vdev);
        for (offset, size) in space.hold(index, start, size) {
            let vdev = vdev as u32;
            let dva = Dva { vdev, offset };
            let range = self.trim.begin(dva, size);
            self.io.trim(now, (dva, size), Purpose::Trim { range });
        }
    }

    /// A range has been trimmed: its space is free again.
    pub(crate) fn trimmed(&mut self, range: u32) {
        let (dva, size) = self.trim.end(range);
        let (space, index) = self.space_of(dva.vdev as usize);
        space.let_go(index, dva.offset, size);
    }
}
