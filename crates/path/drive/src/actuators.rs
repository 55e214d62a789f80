//! A drive with several arms. Each arm serves a share of the addresses with a separate queue,
//! buffer and heads.

use crate::geometry::Geometry;
use fullstroke_contract::{
    Completion, Extent, Gauge, Node, NodeContext, Port, Request, RequestId, RequestStatus, Slots,
    TrackExtent, TrackTable, Wake, ZoneRate,
};
use fullstroke_units::{Cylinder, Lbn, Sectors, Time};
use std::sync::Arc;

/// The layer above several arms. Arm `n`, at lower port `n`, has the `n`th share of the addresses.
/// The counters of the arms count for the drive.
///
/// - **Events in**: `submit`, `completed`.
/// - **Effects out**: `issue`, `complete`.
/// - **Getter**: `gauge`.
pub struct MultiActuator {
    arms: usize,
    /// Number of addresses of each arm.
    share: Sectors,
    slots: Slots<SplitRequest>,
    /// Number of request parts in flight at the arms.
    parts: u32,
    idle_since: Time,
}

/// A request, possibly split over several arms.
#[derive(Clone, Copy)]
struct SplitRequest {
    id: RequestId,
    parts_left: u32,
    /// Completion of the part with the latest end so far.
    last: Completion,
}

impl MultiActuator {
    /// Creates the layer above `arms` arms. Each arm has `share` addresses, in order.
    pub(crate) fn new(arms: usize, share: Sectors) -> MultiActuator {
        MultiActuator {
            arms,
            share,
            slots: Slots::default(),
            parts: 0,
            idle_since: Time::ZERO,
        }
    }

    /// Returns the first and the last arm of a request.
    fn concerned(&self, request: &Request) -> (usize, usize) {
        // A flush or a stop concerns the whole drive, so each arm gets the command.
        if request.operation.is_of_all() {
            return (0, self.arms - 1);
        }
        let arm = |lbn: u64| (lbn / self.share.0) as usize;
        let (start, end) = (request.extent.start.0, request.extent.end().0);
        // The last sector decides, not the end: a request that ends at the border leaves the next
        // arm alone.
        (arm(start), arm(end.max(start + 1) - 1))
    }

    /// Returns the part of `extent` on arm `arm`, in the addresses of the arm.
    fn part(&self, arm: usize, extent: Extent) -> Extent {
        debug_assert!(arm < self.arms, "there is no arm {arm} among {}", self.arms);
        let base = self.share.0 * arm as u64;
        let start = extent.start.0.max(base);
        let end = extent.end().0.min(base + self.share.0).max(start);
        Extent::new(start - base, end - start)
    }
}

impl Node for MultiActuator {
    fn submit(&mut self, now: Time, _: Port, request: Request, cx: &mut NodeContext<'_>) {
        let none = Completion::at_once(request.id, now, RequestStatus::Done);
        let empty = request.extent.sectors == Sectors::ZERO && request.operation.transfers();
        if empty
            || !request
                .extent
                .within(Sectors(self.share.0 * self.arms as u64))
        {
            return cx.out.complete(Completion {
                status: RequestStatus::OutOfRange,
                ..none
            });
        }
        let (first, last) = self.concerned(&request);
        let parts_left = (last - first + 1) as u32;
        self.parts += parts_left;
        let slot = self.slots.keep(SplitRequest {
            id: request.id,
            parts_left,
            last: none,
        });
        for arm in first..=last {
            let id = RequestId(u64::from(slot));
            let of_all = request.operation.is_of_all();
            let extent = if of_all {
                request.extent
            } else {
                self.part(arm, request.extent)
            };
            cx.out.issue(
                arm,
                Request {
                    id,
                    extent,
                    ..request
                },
            );
        }
    }

    fn completed(&mut self, now: Time, _: Port, part: Completion, cx: &mut NodeContext<'_>) {
        assert!(
            self.parts > 0,
            "an arm answers at {now:?}, and none has a part of a request"
        );
        self.parts -= 1;
        self.idle_since = self.idle_since.max(now);
        let slot = &mut self.slots[part.id.0 as u32];
        assert!(slot.parts_left > 0, "a part of a request comes back twice");
        slot.parts_left -= 1;
        // The worst status of the parts holds for the request.
        let status = part.status.max(slot.last.status);
        // The breakdown of the last part explains the response time of the request.
        if part.finished >= slot.last.finished {
            slot.last = part;
        }
        slot.last.status = status;
        if slot.parts_left == 0 {
            let SplitRequest { id, last, .. } = self.slots.take(part.id.0 as u32);
            cx.out.complete(Completion { id, ..last });
        }
    }

    fn wake(&mut self, _: Time, _: &mut NodeContext<'_>) {}

    fn next_wake(&self) -> Wake {
        Wake::NEVER
    }

    /// The head position in the gauge is cylinder 0, whatever the arms do.
    fn gauge(&self) -> Gauge {
        let idle_since = (self.parts == 0).then_some(self.idle_since);
        Gauge {
            queue_length: self.parts,
            idle_since,
            ..Gauge::default()
        }
    }
}

/// The track table of a drive with several arms of equal geometry.
pub(crate) struct ArmTracks {
    pub(crate) geometry: Arc<Geometry>,
    pub(crate) actuators: u32,
}

impl TrackTable for ArmTracks {
    fn capacity(&self) -> Sectors {
        Sectors(self.geometry.capacity().0 * u64::from(self.actuators))
    }
    fn track_at(&self, lbn: Lbn) -> TrackExtent {
        let share = self.geometry.capacity().0;
        let track = self.geometry.track_at(Lbn(lbn.0 % share));
        TrackExtent {
            first: Lbn(lbn.0 - lbn.0 % share + track.first.0),
            ..track
        }
    }
    fn cylinder_of(&self, lbn: Lbn) -> Cylinder {
        // A scheduler may ask for the place behind the last sector, where a sequential stream ends.
        let lbn = lbn.0.min(self.capacity().0 - 1);
        self.geometry
            .cylinder_of(Lbn(lbn % self.geometry.capacity().0))
    }
    fn zone_rates(&self) -> Vec<ZoneRate> {
        let share = self.geometry.capacity().0;
        let zones = self.geometry.zone_rates();
        let of_arm = |arm: u64| {
            zones.iter().map(move |zone| ZoneRate {
                first: Lbn(arm * share + zone.first.0),
                ..*zone
            })
        };
        (0..u64::from(self.actuators)).flat_map(of_arm).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::DriveConfig;
    use crate::config::tests::small_drive;
    use crate::drive::DriveModel;

    fn two_arms() -> DriveModel {
        let small = small_drive();
        let capacity_sectors = Sectors(small.capacity_sectors.0 * 2);
        DriveModel::new(DriveConfig {
            actuators: 2,
            capacity_sectors,
            ..small
        })
        .unwrap()
    }

    #[test]
    fn the_zones_of_all_arms_cover_the_drive_in_order() {
        let table = two_arms().tracks();
        let mut next = Lbn(0);
        for zone in table.zone_rates() {
            assert_eq!(zone.first, next);
            assert!(zone.bytes_per_s > 0);
            next += zone.sectors;
        }
        assert_eq!(Sectors(next.0), table.capacity());
    }

    #[test]
    fn tracks_cover_both_shares() {
        let tracks = two_arms().tracks();
        assert_eq!(tracks.capacity(), Sectors(2800));
        assert_eq!(tracks.track_at(Lbn(1405)).first, Lbn(1400));
    }
}
