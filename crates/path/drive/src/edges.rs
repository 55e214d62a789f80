//! Reads of the physical sectors that a write covers in part.

use crate::arm::DriveArm;
use crate::mechanics::AccessTimes;
use fullstroke_contract::Extent;
use fullstroke_units::{Sectors, Time};

impl DriveArm {
    /// Reads the physical sectors that a write of `extent` covers in part, from `now` on. Adds the
    /// work to `work`, and returns the time when the arm can begin the write. A write of whole
    /// physical sectors begins at `now`.
    pub(crate) fn read_edges(&mut self, now: Time, extent: Extent, work: &mut AccessTimes) -> Time {
        let sizes = self.sizes();
        if !sizes.cuts(extent) {
            return now;
        }
        let capacity = self.mechanics().geometry().capacity().0;
        let mut at = now;
        for edge in sizes.edges(extent) {
            let sectors = edge.sectors.0.min(capacity - edge.start.0);
            let edge = Extent {
                sectors: Sectors(sectors),
                ..edge
            };
            let position = self.mechanics().geometry().locate(edge.start);
            let access = self.access(at, edge, &position, false);
            at += access.duration();
            work.seek += access.seek;
            work.rotation += access.rotation;
            work.transfer += access.transfer;
            work.seek_cylinders += access.seek_cylinders;
        }
        at
    }
}
