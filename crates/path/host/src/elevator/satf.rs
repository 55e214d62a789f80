//! `satf`: shortest access time first, seek and rotation together. The times follow from the track
//! table of a single drive and from the future position of its arm.
//!
//! The host knows the arm at the time of the dispatch, but not the requests waiting in the drive.
//! With a queue depth of 1 the times are therefore exact, except for the command overhead of the
//! drive.

use super::fifos::{Fifos, RequestFifo};
use super::forest::{Forest, SlotTree};
use super::{Context, Elevator, ElevatorSite};
use crate::block::{JoinKind, Queued, Requests};
use fullstroke_contract::registry::{Keys, read};
use fullstroke_contract::{ConfigError, TrackTable};
use fullstroke_units::{Duration, Time};
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) const SUMMARY: &str =
    "shortest access time first, above a single drive; requests may starve";

#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Config {
    /// With `coordinate` of the volume above, a request carries the length of a queue at another
    /// member that serves a part of the same request. Each request of that queue adds this time to
    /// the access time. Default: no time. Qian and Wang (section 6.2) let 128 requests count as
    /// much as the longest distance; this is 100us if no access takes longer than 13 ms.
    #[serde(default)]
    queue_weight: Option<Duration>,
}

#[derive(Default)]
struct Satf {
    /// Time added for each request at another member.
    weight: Duration,
    /// Requests that arrived since the last dispatch. Only a dispatch sees the track table, so the
    /// cylinders are not known yet.
    fresh: RequestFifo,
    links: Fifos,
    /// The other requests, by cylinder.
    placed: SlotTree,
    forest: Forest,
    /// By slot: true if the request is sorted by cylinder.
    is_placed: Vec<bool>,
}

pub(super) fn build(keys: &Keys, site: &ElevatorSite) -> Result<Box<dyn Elevator>, ConfigError> {
    let Config { queue_weight } = read(keys)?;
    if !site.drive {
        return Err(ConfigError::new(
            "elevator",
            "`satf` needs the track table of a single drive, but the volume has several drives; set it in [host.members], or use the queues of the drives",
        ));
    }
    Ok(Box::new(Satf {
        weight: queue_weight.unwrap_or_default(),
        ..Satf::default()
    }))
}

/// Longer than any queue takes, and short enough for additions.
const LONGEST_NS: u64 = 1 << 60;

impl Satf {
    fn forget(&mut self, slot: u32) {
        if self.is_placed[slot as usize] {
            self.forest.remove(&mut self.placed, slot);
        } else {
            self.links.remove(&mut self.fresh, slot);
        }
    }

    /// Returns the cost of the queue at another member, as a time.
    fn elsewhere(&self, request: &Queued) -> Duration {
        let each_ns = self.weight.as_nanos();
        Duration::from_nanos(
            each_ns
                .saturating_mul(u64::from(request.stripe_queue))
                .min(LONGEST_NS),
        )
    }

    fn place(&mut self, tracks: &dyn TrackTable, requests: &Requests) {
        while let Some(slot) = self.links.pop_front(&mut self.fresh) {
            let cylinder = tracks.cylinder_of(requests[slot].extent.start);
            self.forest
                .insert(&mut self.placed, u64::from(cylinder.0), slot);
            self.is_placed[slot as usize] = true;
        }
    }

    /// Returns the request of the shortest access time, plus the time for queues at other members.
    /// The search goes outward from the arm on both sides. Because the seek time grows with the
    /// distance, the search ends when the seek alone takes longer than the best access.
    fn nearest(&self, now: Time, tracks: &dyn TrackTable, context: &Context<'_>) -> Option<u32> {
        let head = context.device.head;
        let distance = |slot: u32| self.forest.key(slot).abs_diff(u64::from(head.0)) as u32;
        let mut inward = self.forest.at_or_after(&self.placed, u64::from(head.0));
        let mut outward = self.forest.before(&self.placed, u64::from(head.0));
        let mut best: Option<(Duration, u32)> = None;
        loop {
            let slot = match (inward, outward) {
                (Some(inner), outer)
                    if outer.is_none_or(|outer| distance(inner) <= distance(outer)) =>
                {
                    inward = self.forest.next(inner);
                    inner
                }
                (_, Some(outer)) => {
                    outward = self.forest.previous(outer);
                    outer
                }
                _ => break,
            };
            if best.is_some_and(|(least, _)| tracks.seek_at_least(distance(slot)) > least) {
                break;
            }
            let request = &context.requests[slot];
            let access =
                tracks.positioning(now, &context.device, request.extent.start, request.writes());
            let cost = access + self.elsewhere(request);
            if best.is_none_or(|(least, _)| cost < least) {
                best = Some((cost, slot));
            }
        }
        best.map(|(_, slot)| slot)
    }
}

impl Elevator for Satf {
    fn add(&mut self, _: Time, slot: u32, _: &Requests) {
        if self.is_placed.len() <= slot as usize {
            self.is_placed.resize(slot as usize + 1, false);
        }
        self.is_placed[slot as usize] = false;
        self.links.push_back(&mut self.fresh, slot);
    }

    fn grown(
        &mut self,
        now: Time,
        slot: u32,
        join: JoinKind,
        _: &Queued,
        _: &Queued,
        requests: &Requests,
    ) {
        // Only a front join moves the start, and with it the cylinder.
        if join == JoinKind::Front {
            self.forget(slot);
            self.add(now, slot, requests);
        }
    }

    fn coalesced(&mut self, _: Time, _: u32, gone: u32, _: &Requests) {
        self.forget(gone);
    }

    fn dispatch(&mut self, now: Time, context: &Context<'_>) -> Option<u32> {
        let tracks = context.tracks?;
        self.place(tracks, context.requests);
        let slot = self.nearest(now, tracks, context)?;
        self.forget(slot);
        Some(slot)
    }

    fn may_starve(&self) -> bool {
        true
    }
}

#[cfg(test)]
pub(super) fn tunables() -> Vec<super::testing::Tunable> {
    let weights = [r#""0s""#, r#""1s""#];
    vec![super::testing::Tunable {
        values: weights,
        ..super::coordinated::tunable()
    }]
}

#[cfg(test)]
mod tests {
    use super::super::testing::{CAPACITY, ModelTracks, SITE};
    use super::*;
    use fullstroke_contract::{Extent, Gauge};
    use fullstroke_units::Cylinder;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_takes_what_a_look_at_every_request_would(
            starts in prop::collection::vec((0..CAPACITY.0, 0u32..200), 1..60), head in 0u32..100_000,
            now in 0u64..1_000_000_000, weight_us in 0u64..3000,
        ) {
            let mut requests = Requests::default();
            let weight = Duration::from_micros(weight_us);
            let mut satf = Satf { weight, ..Satf::default() };
            for &(start, stripe_queue) in &starts {
                let extent = Extent::new(start, 8);
                let slot = requests.keep(Queued { extent, stripe_queue, ..Queued::default() });
                satf.add(Time::ZERO, slot, &requests);
            }
            let (now, device) = (Time::from_nanos(now), Gauge { head: Cylinder(head), ..Gauge::default() });
            let cost = |start: u64, queue: u32| {
                let access = ModelTracks.positioning(now, &device, fullstroke_units::Lbn(start), false);
                access + Duration::from_micros(weight_us * u64::from(queue))
            };
            let context = Context {
                requests: &requests,
                waiting: starts.len() as u32,
                issued: 0,
                queue_depth: 1,
                device,
                tracks: Some(&ModelTracks),
                stripes: None,
            };
            let chosen = satf.dispatch(now, &context).unwrap();
            let best = starts.iter().map(|&(start, queue)| cost(start, queue)).min().unwrap();
            let chosen = &requests[chosen];
            prop_assert_eq!(cost(chosen.extent.start.0, chosen.stripe_queue), best);
        }
    }

    #[test]
    fn it_refuses_a_volume_of_several_drives() {
        let site = ElevatorSite {
            drive: false,
            ..SITE
        };
        assert_eq!(build(&Keys::new(), &site).err().unwrap().key, "elevator");
    }
}
