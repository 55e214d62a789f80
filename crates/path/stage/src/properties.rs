//! Properties of every stage, with an array of any speed below.

use crate::fairness::REGISTRY;
use crate::{CostKeys, HostRegions, RegionRequest, Stage};
use fullstroke_contract::registry::Keys;
use fullstroke_contract::{
    Breakdown, Completion, Effect, Effects, Extent, Node, NodeContext, Operation, Port, Request,
    RequestId, RequestStatus,
};
use fullstroke_units::{Duration, Sectors, Time};
use proptest::prelude::*;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Host, gap to the previous request in µs, first sector, sectors.
type Arrival = (u16, u64, u64, u64);

struct StageTrial {
    stage: Stage,
    out: Effects,
    array: Below,
    /// Issue times, and the number of requests in the array at each.
    issued: Vec<(Time, usize)>,
    /// Extents of the requests.
    extents: Vec<Extent>,
    done: Vec<(Port, Completion)>,
    speeds_us: Vec<u64>,
}

impl StageTrial {
    fn collect(&mut self, now: Time) {
        let effects: Vec<Effect> = self.out.drain().collect();
        for effect in effects {
            match effect {
                Effect::Issue { request, .. } => {
                    let speed = self.speeds_us[self.issued.len() % self.speeds_us.len()];
                    self.array.push(Reverse((
                        now + Duration::from_micros(speed),
                        request.id.0,
                        now,
                    )));
                    self.extents.push(request.extent);
                    self.issued.push((now, self.array.len()));
                }
                Effect::Complete { port, completion } => self.done.push((port, completion)),
                Effect::Notice { .. } => {}
            }
        }
    }

    /// Lets events due before `until` happen.
    fn run(&mut self, until: Time) {
        while let Some(now) = step(&mut self.stage, &mut self.array, &mut self.out, until) {
            self.collect(now);
        }
    }
}

/// Requests below a stage: end, id and issue time.
pub(crate) type Below = BinaryHeap<Reverse<(Time, u64, Time)>>;

/// Lets the first event due before `until` happen: the stage wakes, or a request below ends.
/// Returns its time.
pub(crate) fn step(
    stage: &mut Stage,
    below: &mut Below,
    out: &mut Effects,
    until: Time,
) -> Option<Time> {
    let ends = below.peek().map_or(Time::NEVER, |&Reverse((at, ..))| at);
    let wakes = stage.next_wake().at();
    let now = ends.min(wakes);
    if now >= until {
        return None;
    }
    if wakes <= ends {
        stage.wake(now, &mut NodeContext::alone(out));
    } else if let Some(Reverse((finished, id, submitted))) = below.pop() {
        let breakdown = Breakdown {
            transfer: finished.since(submitted),
            ..Breakdown::default()
        };
        let (id, status) = (RequestId(id), RequestStatus::Done);
        let completion = Completion {
            id,
            submitted,
            finished,
            status,
            breakdown,
        };
        stage.completed(now, Port::FIRST, completion, &mut NodeContext::alone(out));
    }
    Some(now)
}

proptest! {
    #[test]
    fn each_request_is_answered_once_to_its_host_and_its_parts_add_up(
        arrivals in prop::collection::vec((0u16..3, 0u64..500, 0u64..90, 1u64..20), 1..80),
        rule in 0..REGISTRY.len(),
        in_order in any::<bool>(),
        (cost_us, depth) in (0u64..300, prop::option::of(1u32..6)),
        speeds_us in prop::collection::vec(0u64..2000, 1..8),
    ) {
        // Regions in a row, or with gaps and out of order.
        let chosen = [(320, 160), (0, 152), (160, 152)].map(|(at, size)| RegionRequest { at: Some(Sectors(at)), size: Some(Sectors(size)) });
        let behind = [None, Some(Sectors(160)), None].map(|size| RegionRequest { at: None, size });
        let regions = HostRegions::parts(if in_order { &behind } else { &chosen }, Sectors(480)).unwrap();
        let fairness = (REGISTRY[rule].build)(&Keys::new(), &[1, 2, 3]).unwrap();
        let cost = Duration::from_micros(cost_us);
        let stage = Stage::new(regions.clone(), fairness, CostKeys::Time(cost).build().unwrap(), depth);
        let mut trial = StageTrial {
            stage, out: Effects::new(), array: BinaryHeap::new(), issued: Vec::new(), extents: Vec::new(), done: Vec::new(), speeds_us,
        };
        let mut now = Time::ZERO;
        let arrivals: Vec<Arrival> = arrivals;
        for (number, &(host, gap_us, start, sectors)) in arrivals.iter().enumerate() {
            now += Duration::from_micros(gap_us);
            trial.run(now);
            let id = RequestId(number as u64);
            let request =
                Request { id, operation: Operation::Read, extent: Extent::new(start * 2, sectors), ..Request::default() };
            trial.stage.submit(now, Port(host), request, &mut NodeContext::alone(&mut trial.out));
            trial.collect(now);
        }
        trial.run(Time::NEVER);
        let mut answered = vec![0; arrivals.len()];
        let mut meant = Vec::new();
        for (port, completion) in &trial.done {
            let number = completion.id.0 as usize;
            let (host, _, start, sectors) = arrivals[number];
            answered[number] += 1;
            prop_assert_eq!(port.0, host);
            let below = regions.below(*port, Extent::new(start * 2, sectors));
            meant.extend(below);
            let inside = below.is_some();
            prop_assert_eq!(completion.status, if inside { RequestStatus::Done } else { RequestStatus::OutOfRange });
            prop_assert_eq!(completion.breakdown.response(), completion.finished.since(completion.submitted));
        }
        prop_assert!(answered.iter().all(|&times| times == 1));
        // No request leaves its host's region.
        let order = |extent: &Extent| (extent.start, extent.sectors);
        meant.sort_by_key(order);
        trial.extents.sort_by_key(order);
        prop_assert_eq!(meant, trial.extents);
        prop_assert!(trial.issued.iter().all(|&(_, with)| with <= depth.unwrap_or(u32::MAX) as usize));
        // The processor works on one request at a time.
        prop_assert!(trial.issued.windows(2).all(|pair| pair[1].0.since(pair[0].0) >= cost));
        prop_assert_eq!(trial.stage.gauge().queue_length, 0);
    }
}
