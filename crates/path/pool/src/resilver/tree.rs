//! The walk of a scan through the tree of pointers (`dsl_scan_visit`, `dsl_scan_prefetch_thread`, OpenZFS
//! 2.2).
//!
//! A scan finds records by their pointers. The walk reads blocks of pointers in the order of the volume, many
//! at a time, and the scan reads the found records afterwards. ZFS walks until the memory for sorting is full.
//! Here a walk covers [`STEP`] records, so that a window of a minute sees both.

use crate::classes::Class;
use crate::files::{POINTER, POINTERS_SHIFT};
use crate::io::{Cause, Purpose};
use crate::place::Dva;
use crate::pool::Pool;
use fullstroke_units::Time;

/// Blocks of pointers that a walk reads at a time. ZFS keeps as many in flight as `scan_limit` allows.
const AT_A_TIME: u64 = 32;

/// Records of a walk.
pub(super) const STEP: u64 = AT_A_TIME << POINTERS_SHIFT;

impl Pool {
    /// Reads the pointers of the next records if the scan has not read these pointers. Returns true while the
    /// walk is under way.
    pub(super) fn walks(&mut self, now: Time) -> bool {
        let (next, records) = (self.resilver.next, self.resilver.records());
        if self.resilver.walking > 0 {
            return true;
        }
        if next < self.resilver.walked || next >= records {
            return false;
        }
        // A scan waits for its reads before the next walk (`dsl_scan_sync` ends with `zio_wait`).
        if self.resilver.is_busy() {
            return true;
        }
        self.resilver.walked = next + STEP;
        for unit in (next..records.min(next + STEP)).step_by(1 << POINTERS_SHIFT) {
            let pointers = (records - unit).min(1 << POINTERS_SHIFT);
            let place = self.pointers_at_rest(unit, pointers);
            self.resilver.walking += 1;
            self.io
                .read(now, place, Class::Scrub, Purpose::Walk, Cause::background());
        }
        true
    }

    /// Returns the place of the block of pointers above a unit of the scan. Blocks of pointers lie beside their
    /// records, or on the special vdev. In an aged pool they lie at random places, because each write of one
    /// of their records moves them.
    fn pointers_at_rest(&mut self, unit: u64, pointers: u64) -> (Dva, u64, bool) {
        let sector = 1u64 << self.settings.ashift;
        let psize = (pointers * POINTER).next_multiple_of(sector);
        let record = self.resilver.order.near(unit);
        if let Some((vdev, child)) = &self.settings.special {
            let number = record >> POINTERS_SHIFT;
            let size = vdev.size(*child);
            let room = (size / 2 / psize).max(1);
            let dva = Dva {
                vdev: self.settings.vdevs.len() as u32,
                offset: number % room * psize,
            };
            return (dva, psize, false);
        }
        let (dva, _, old) = self.place_of(record);
        (dva, psize, old)
    }
}
