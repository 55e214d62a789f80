//! Steps of TRIM in a pool: freed space has its turn, ranges go to the drives, and their ends.

use super::Pool;
use crate::allocate::Space;
use crate::io::Purpose;
use crate::place::Dva;
use crate::trim::IN_FLIGHT;
use crate::trim_ranges::BATCH;
use fullstroke_units::{Duration, Time};

impl Pool {
    /// Returns the free space of a vdev, and the number of the vdev in this space.
    fn space_of(&mut self, vdev: usize) -> (&mut Space, usize) {
        match &mut self.special {
            Some(special) if vdev == self.settings.vdevs.len() => (special, 0),
            _ => (&mut self.space, vdev),
        }
    }

    /// Lets the metaslabs of the group that has ended have their turn.
    pub(crate) fn trim_freed(&mut self) {
        if !self.trim.auto {
            return;
        }
        let turn = self.txg.groups % BATCH;
        for vdev in 0..self.trim.vdevs.len() {
            let (space, index) = self.space_of(vdev);
            let freed = space.freed_for_trim(index, turn);
            let state = &mut self.trim.vdevs[vdev];
            if state.takes {
                state.waiting.extend(freed);
            }
        }
    }

    /// Sends the next ranges to the drives.
    pub(crate) fn trim_step(&mut self, now: Time) {
        for vdev in 0..self.trim.vdevs.len() {
            while self.trim.vdevs[vdev].in_flight < IN_FLIGHT {
                let mut state = std::mem::take(&mut self.trim.vdevs[vdev]);
                let is_on_demand = state.waiting.is_empty();
                let (space, index) = self.space_of(vdev);
                let range = state.take(now, |from| space.free_from(index, from));
                if let (Some((_, size)), Some(rate), true) = (range, self.trim.rate, is_on_demand) {
                    let nanos = u128::from(size) * 1_000_000_000 / u128::from(rate.max(1));
                    state.next = state.next.max(now)
                        + Duration::from_nanos(nanos.min(u64::MAX.into()) as u64);
                }
                self.trim.vdevs[vdev] = state;
                let Some(range) = range else { break };
                self.trim_range(now, vdev, range);
            }
        }
    }

    /// Sends the free parts of a range.
    fn trim_range(&mut self, now: Time, vdev: usize, (start, size): (u64, u64)) {
        let (space, index) = self.space_of(vdev);
        for (start, size) in space.hold(index, start, size) {
            let dva = Dva {
                vdev: vdev as u32,
                offset: start,
            };
            let range = self.trim.ranges.keep((dva, size));
            self.trim.vdevs[vdev].in_flight += 1;
            self.trim.counts.0 += 1;
            self.trim.counts.1 += size;
            self.io.trim(now, (dva, size), Purpose::Trim { range });
        }
    }

    /// A range has been trimmed: its space is free again.
    pub(crate) fn trimmed(&mut self, range: u32) {
        let (dva, size) = self.trim.ranges.take(range);
        let vdev = dva.vdev as usize;
        self.trim.vdevs[vdev].in_flight -= 1;
        let (space, index) = self.space_of(vdev);
        space.let_go(index, dva.offset, size);
    }
}
