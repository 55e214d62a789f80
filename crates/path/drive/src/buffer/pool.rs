//! Dirty data, written to the medium in the order of a queue discipline.

use super::segments::BufferSegment;
use crate::arm::DriveArm;
use crate::mechanics::Mechanics;
use crate::queue::{ArmView, Discipline, WaitingRequest};
use fullstroke_contract::Extent;
use fullstroke_units::{Lbn, Time};

/// The dirty segments of a buffer.
pub(super) struct DirtySegments {
    discipline: Box<dyn Discipline>,
    sectors: u64,
    /// Start of the time in which the pool has not been empty.
    since: Time,
}

impl DirtySegments {
    pub(super) fn new(discipline: Box<dyn Discipline>) -> DirtySegments {
        DirtySegments {
            discipline,
            sectors: 0,
            since: Time::ZERO,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.discipline.len()
    }

    pub(super) fn sectors(&self) -> u64 {
        self.sectors
    }

    /// Start of the time in which the pool has not been empty; `None` if the pool is empty.
    pub(super) fn since(&self) -> Option<Time> {
        (self.len() > 0).then_some(self.since)
    }

    /// Adds segment number `index`. The arm may move for the segment from `since` on.
    pub(super) fn insert(
        &mut self,
        index: usize,
        extent: Extent,
        since: Time,
        mechanics: &Mechanics,
    ) {
        // The delay counts from the first write to an empty pool. Later writes do not put the
        // destaging off.
        if self.len() == 0 {
            self.since = since;
        }
        let position = mechanics.geometry().locate(extent.start);
        let first_track = extent.sectors.min(position.sectors_left);
        self.sectors += extent.sectors.0;
        self.discipline.insert(WaitingRequest {
            slot: index as u32,
            lbn: extent.start,
            position,
            span: mechanics.span(&position, first_track),
            write: true,
            arrived: since,
        });
    }

    /// Records that a segment has grown at the end.
    pub(super) fn grown(&mut self, sectors: u64) {
        self.sectors += sectors;
    }

    /// Removes a completely overwritten segment.
    pub(super) fn remove(&mut self, index: usize, segment: &BufferSegment) {
        if self.discipline.remove(index as u32).is_some() {
            assert!(
                segment.end - segment.start <= self.sectors,
                "a segment of {} sectors goes, and {} are dirty",
                segment.end - segment.start,
                self.sectors
            );
            self.sectors -= segment.end - segment.start;
        }
    }

    /// Removes the segment that goes to the medium next. The arm is free at `now`, and `next_lbn`
    /// follows the last destaged sector.
    pub(super) fn take(
        &mut self,
        now: Time,
        next_lbn: Lbn,
        arm: &DriveArm,
    ) -> Option<WaitingRequest> {
        let view = ArmView {
            now,
            head: arm.head(),
            next_lbn,
            mechanics: arm.mechanics(),
        };
        self.discipline.take(view).map(|choice| choice.waiting)
    }

    /// Records that a segment was taken out to be written.
    pub(super) fn taken(&mut self, segment: &BufferSegment) {
        assert!(
            segment.end - segment.start <= self.sectors,
            "a segment of {} sectors is written, and {} are dirty",
            segment.end - segment.start,
            self.sectors
        );
        self.sectors -= segment.end - segment.start;
    }
}
