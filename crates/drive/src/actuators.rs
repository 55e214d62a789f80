//! A drive with several arms: each serves its share of the addresses with a
//! queue, a buffer and heads of its own.

use crate::drive::Drive;
use crate::geometry::Geometry;
use fullstroke_contract::{
    Completion, Counters, Cx, Effect, Extent, Gauge, MemberStatistics, Node, Operation, Out, Port, Request,
    RequestId, Slots, Track, TrackTable, Wake, ZoneRate,
};
use fullstroke_units::{Angle, Cylinder, Lbn, Sectors, Time};
use std::sync::Arc;

/// Several arms behind one interface.
pub struct MultiActuator {
    arms: Vec<Drive>,
    /// Addresses of each arm.
    share: Sectors,
    slots: Slots<Slot>,
    inner: Out,
    finished: Vec<Completion>,
}

/// A request of which parts may be with several arms.
#[derive(Clone, Copy)]
struct Slot {
    id: RequestId,
    parts_left: u32,
    /// The part that finished last so far.
    last: Completion,
}

impl MultiActuator {
    /// `arms` with `share` addresses each, in order.
    pub(crate) fn new(arms: Vec<Drive>, share: Sectors) -> MultiActuator {
        MultiActuator { arms, share, slots: Slots::default(), inner: Out::new(), finished: Vec::new() }
    }

    /// Takes what arms have completed, and answers requests of which nothing is
    /// left, in order of time.
    fn collect(&mut self, out: &mut Out) {
        for effect in self.inner.drain() {
            let Effect::Complete { completion: part, .. } = effect else { continue };
            let slot = &mut self.slots[part.id.0 as u32];
            slot.parts_left -= 1;
            if part.finished >= slot.last.finished {
                slot.last = Completion { status: part.status.max(slot.last.status), ..part };
            } else {
                slot.last.status = part.status.max(slot.last.status);
            }
            if slot.parts_left == 0 {
                let Slot { id, last, .. } = self.slots.take(part.id.0 as u32);
                self.finished.push(Completion { id, ..last });
            }
        }
        self.finished.sort_by_key(|completion| completion.finished);
        self.finished.drain(..).for_each(|completion| out.complete(completion));
    }
}

impl Node for MultiActuator {
    fn submit(&mut self, now: Time, _: Port, request: Request, cx: &mut Cx<'_>) {
        let (below, out) = (cx.below, &mut *cx.out);
        let all = Sectors(self.share.0 * self.arms.len() as u64);
        let (first, last) = if request.operation == Operation::Flush || !request.extent.within(all) {
            // A flush concerns all; what lies beyond is refused by the last.
            let first = if request.operation == Operation::Flush { 0 } else { self.arms.len() - 1 };
            (first, self.arms.len() - 1)
        } else {
            let arm = |lbn: u64| (lbn / self.share.0) as usize;
            let end = request.extent.end().0.max(request.extent.start.0 + 1);
            (arm(request.extent.start.0), arm(end - 1))
        };
        let last_part = Completion { submitted: now, finished: now, ..Completion::default() };
        let slot =
            self.slots.keep(Slot { id: request.id, parts_left: (last - first + 1) as u32, last: last_part });
        for arm in first..=last {
            let base = self.share.0 * arm as u64;
            let start = request.extent.start.0.max(base);
            let end = request.extent.end().0.min(base + self.share.0).max(start);
            let extent = if request.extent.within(all) && request.operation != Operation::Flush {
                Extent::new(start - base, end - start)
            } else {
                request.extent
            };
            let part = Request { id: RequestId(u64::from(slot)), extent, ..request };
            self.arms[arm].submit(now, Port::FIRST, part, &mut Cx { below, out: &mut self.inner });
        }
        self.collect(out);
    }

    fn wake(&mut self, now: Time, cx: &mut Cx<'_>) {
        let (below, out) = (cx.below, &mut *cx.out);
        for arm in &mut self.arms {
            arm.wake(now, &mut Cx { below, out: &mut self.inner });
        }
        self.collect(out);
    }

    fn next_wake(&self) -> Wake {
        self.arms.iter().map(|arm| arm.next_wake().at()).min().unwrap_or(Time::NEVER).into()
    }

    fn gauge(&self) -> Gauge {
        let gauges = self.arms.iter().map(Node::gauge);
        let together = |all: Gauge, one: Gauge| Gauge {
            queue_length: all.queue_length + one.queue_length,
            idle_since: all.idle_since.zip(one.idle_since).map(|(all, one)| all.max(one)),
            free_segments: all.free_segments + one.free_segments,
            buffer_hits: all.buffer_hits + one.buffer_hits,
            ..all
        };
        gauges.reduce(together).unwrap_or_default()
    }

    /// Sums over the arms; how long the drive was busy is their mean.
    fn count(&self, _: Time, counters: &mut Counters) {
        let all = self.arms.iter().map(Drive::statistics);
        let sum = all.reduce(MemberStatistics::plus).unwrap_or_default();
        counters.drives.push(MemberStatistics { busy: sum.busy / self.arms.len() as u64, ..sum });
    }
}

/// How addresses lie on a drive of several arms of equal geometry.
pub(crate) struct Shares {
    pub(crate) geometry: Arc<Geometry>,
    pub(crate) actuators: u32,
}

impl TrackTable for Shares {
    fn capacity(&self) -> Sectors {
        Sectors(self.geometry.capacity().0 * u64::from(self.actuators))
    }
    fn track_at(&self, lbn: Lbn) -> Track {
        let share = self.geometry.capacity().0;
        let track = self.geometry.track_at(Lbn(lbn.0 % share));
        Track { first: Lbn(lbn.0 - lbn.0 % share + track.first.0), ..track }
    }
    fn cylinder_of(&self, lbn: Lbn) -> Cylinder {
        let lbn = lbn.0.min(self.capacity().0 - 1);
        self.geometry.cylinder_of(Lbn(lbn % self.geometry.capacity().0))
    }
    fn angle_at(&self, now: Time) -> Angle {
        self.geometry.angle_at(now)
    }
    fn zone_rates(&self) -> Vec<ZoneRate> {
        let share = self.geometry.capacity().0;
        let zones = self.geometry.zone_rates();
        let of_arm = |arm: u64| {
            zones.iter().map(move |zone| ZoneRate { first: Lbn(arm * share + zone.first.0), ..*zone })
        };
        (0..u64::from(self.actuators)).flat_map(of_arm).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::DriveConfig;
    use crate::config::tests::small_drive;
    use crate::drive::Model;
    use fullstroke_contract::Status;

    fn two_arms() -> (Model, Box<dyn Node>) {
        let small = small_drive();
        let capacity_sectors = Sectors(small.capacity_sectors.0 * 2);
        let model = Model::new(DriveConfig { actuators: 2, capacity_sectors, ..small }).unwrap();
        let layer = model.layer().unwrap();
        (model, layer)
    }

    fn run(layer: &mut dyn Node, requests: &[(u64, u64)]) -> Vec<Completion> {
        let mut out = Out::new();
        for (id, &(lbn, sectors)) in requests.iter().enumerate() {
            let request =
                Request { id: RequestId(id as u64), extent: Extent::new(lbn, sectors), ..Request::default() };
            layer.submit(Time::ZERO, Port::FIRST, request, &mut Cx::alone(&mut out));
        }
        while layer.next_wake().is_work() {
            layer.wake(layer.next_wake().at(), &mut Cx::alone(&mut out));
        }
        let completions = out.drain().filter_map(|effect| match effect {
            Effect::Complete { completion, .. } => Some(completion),
            _ => None,
        });
        completions.collect()
    }

    #[test]
    fn arms_serve_their_shares_at_the_same_time() {
        let (_, mut layer) = two_arms();
        let one = run(&mut *layer, &[(1000, 8)])[0].finished;
        let (_, mut layer) = two_arms();
        let both = run(&mut *layer, &[(1000, 8), (1400 + 1000, 8)]);
        assert_eq!(both.iter().map(|completion| completion.finished).collect::<Vec<_>>(), [one, one]);
    }

    #[test]
    fn a_drive_of_which_one_arm_works_is_half_busy() {
        let (_, mut layer) = two_arms();
        let finished = run(&mut *layer, &[(1000, 8)])[0].finished;
        let mut counters = Counters::default();
        layer.count(finished, &mut counters);
        assert_eq!(counters.drives[0].busy, finished.since(Time::ZERO) / 2);
    }

    #[test]
    fn the_zones_of_all_arms_cover_the_drive_in_order() {
        let (model, _) = two_arms();
        let table = model.tracks();
        let mut next = Lbn(0);
        for zone in table.zone_rates() {
            assert_eq!(zone.first, next);
            assert!(zone.bytes_per_s > 0);
            next += zone.sectors;
        }
        assert_eq!(Sectors(next.0), table.capacity());
    }

    #[test]
    fn a_request_over_the_border_is_complete_when_both_parts_are() {
        let (_, mut layer) = two_arms();
        let whole = run(&mut *layer, &[(1390, 20)]);
        assert_eq!(whole.len(), 1);
        let (_, mut layer) = two_arms();
        let parts = run(&mut *layer, &[(1390, 10), (1400, 10)]);
        let last = parts.iter().map(|part| part.finished).max();
        assert_eq!(Some(whole[0].finished), last);
        assert_eq!(whole[0].breakdown.response(), whole[0].finished.since(whole[0].submitted));
    }

    #[test]
    fn what_lies_beyond_is_refused_and_tracks_cover_both_shares() {
        let (model, mut layer) = two_arms();
        assert_eq!(run(&mut *layer, &[(2799, 2), (u64::MAX, 1)])[1].status, Status::OutOfRange);
        let tracks = model.tracks();
        assert_eq!(tracks.capacity(), Sectors(2800));
        assert_eq!(tracks.track_at(Lbn(1405)).first, Lbn(1400));
    }
}
