//! `v-r`: V(R) in the version of Carroll for Linux (his thesis, section 3.2), with the defaults of
//! his table 3.1.
//!
//! Reads and writes are sorted together. The nearest request goes next. A distance against the
//! present direction is multiplied by `rev_penalty`. Requests expire, but expired requests are
//! served only between batches. Otherwise a deadline avalanche would turn the order into first
//! come, first served.

use super::by_position::{ByPosition, Neighbour};
use super::coordinated::{FURTHER, QueueWeight};
use super::fifos::{Fifos, RequestFifo};
use super::{Context, Elevator, ElevatorSite};
use crate::TickClock;
use crate::block::{JoinKind, Queued, Requests};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use fullstroke_units::{Duration, Time};
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) const SUMMARY: &str = "V(R): the nearest request first; a reversal multiplies the distance; expired requests go between batches";

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Config {
    /// Expiry of synchronous requests; 0s = no expiry. Default 500ms.
    #[serde(default = "sync_expire")]
    sync_expire: Duration,
    /// Expiry of asynchronous requests; 0s = no expiry. Default 5s.
    #[serde(default = "async_expire")]
    async_expire: Duration,
    /// Requests of a batch. Expired requests are served between batches. Default 16.
    #[serde(default = "fifo_batch")]
    fifo_batch: u32,
    /// Factor on the distance of a reversal of direction. 1 is SSTF. 0 never turns while a request
    /// lies ahead, and so is SCAN. Default 10.
    #[serde(default = "rev_penalty")]
    rev_penalty: u32,
    /// With `coordinate` of the volume above, a request carries the length of a queue at another
    /// member that serves a part of the same request. Each request of that queue counts as
    /// 2^queue_weight sectors of distance. A reversal does not multiply this distance. Default: no
    /// distance.
    #[serde(default)]
    queue_weight: Option<u32>,
}

fn sync_expire() -> Duration {
    Duration::from_millis(500)
}

fn async_expire() -> Duration {
    Duration::from_secs(5)
}

fn fifo_batch() -> u32 {
    16
}

fn rev_penalty() -> u32 {
    10
}

impl Config {
    /// Converts the expiries to `clock`. The comparison is as in `deadline`, the source of
    /// Carroll's patch. An expiry of 0 stays 0.
    fn at(self, clock: TickClock) -> Config {
        let past = |expire| {
            if expire == Duration::ZERO {
                expire
            } else {
                clock.past(expire)
            }
        };
        Config {
            sync_expire: past(self.sync_expire),
            async_expire: past(self.async_expire),
            ..self
        }
    }
}

struct Vr {
    config: Config,
    weight: Option<QueueWeight>,
    waiting: ByPosition,
    downwards: bool,
    /// Number of requests dispatched since the last search for expired requests.
    batched: u32,
    /// By kind, asynchronous and synchronous: requests in order of expiry.
    expiring: [RequestFifo; 2],
    links: Fifos,
    /// Deadline by slot.
    deadlines: Vec<Time>,
}

pub(super) fn build(keys: &Keys, site: &ElevatorSite) -> Result<Box<dyn Elevator>, ConfigError> {
    let config = read::<Config>(keys)?.at(site.clock);
    if config.fifo_batch == 0 {
        return Err(ConfigError::new(
            "fifo_batch",
            "found 0; expected at least 1",
        ));
    }
    Ok(Box::new(Vr {
        weight: QueueWeight::checked(config.queue_weight)?,
        config,
        waiting: ByPosition::default(),
        downwards: false,
        batched: 0,
        expiring: [RequestFifo::default(); 2],
        links: Fifos::default(),
        deadlines: Vec::new(),
    }))
}

impl Vr {
    fn expiry(&self, synchronous: bool) -> Duration {
        if synchronous {
            self.config.sync_expire
        } else {
            self.config.async_expire
        }
    }

    fn deadline(&self, slot: u32) -> Time {
        self.deadlines[slot as usize]
    }

    /// Returns the request whose deadline has passed for the longest time.
    fn expired(&self, now: Time) -> Option<u32> {
        let fronts = self.expiring.iter().filter_map(RequestFifo::front);
        fronts
            .min_by_key(|&slot| self.deadline(slot))
            .filter(|&slot| self.deadline(slot) <= now)
    }

    /// Returns the nearest request under `rev_penalty`.
    fn nearest(&self) -> Option<u32> {
        let (ahead, behind) = (self.waiting.ahead(), self.waiting.behind());
        let (onwards, back) = if self.downwards {
            (behind, ahead)
        } else {
            (ahead, behind)
        };
        let turns = |onwards: &Neighbour, back: &Neighbour| {
            let penalty = u64::from(self.config.rev_penalty);
            penalty > 0 && back.0.saturating_mul(penalty) < onwards.0
        };
        match (onwards, back) {
            (Some(onwards), Some(back)) if turns(&onwards, &back) => Some(back.1),
            (onwards, back) => onwards.or(back).map(|(_, slot)| slot),
        }
    }

    /// Returns the distance from `here` to an address under `rev_penalty`.
    fn distance(&self, here: u64, address: u64) -> u64 {
        let distance = address.abs_diff(here);
        match (
            (address < here) != self.downwards,
            u64::from(self.config.rev_penalty),
        ) {
            (false, _) => distance,
            // Behind every request ahead, so that the arm turns only without one: SCAN.
            (true, 0) => FURTHER + distance,
            (true, penalty) => distance.saturating_mul(penalty),
        }
    }

    /// Returns the next request of a batch.
    fn next(&self, requests: &Requests) -> Option<u32> {
        match self.weight {
            None => self.nearest(),
            Some(weight) => self.waiting.cheapest(weight, requests, |here, address| {
                self.distance(here, address)
            }),
        }
    }

    fn forget(&mut self, slot: u32, requests: &Requests) {
        let fifo = &mut self.expiring[usize::from(requests[slot].synchronous)];
        self.links.remove(fifo, slot);
    }
}

impl Elevator for Vr {
    fn add(&mut self, now: Time, slot: u32, requests: &Requests) {
        let synchronous = requests[slot].synchronous;
        let expiry = self.expiry(synchronous);
        if self.deadlines.len() <= slot as usize {
            self.deadlines.resize(slot as usize + 1, Time::NEVER);
        }
        self.deadlines[slot as usize] = if expiry == Duration::ZERO {
            Time::NEVER
        } else {
            now + expiry
        };
        self.links
            .push_back(&mut self.expiring[usize::from(synchronous)], slot);
        self.waiting.add(slot, requests);
    }

    fn grown(
        &mut self,
        _: Time,
        slot: u32,
        join: JoinKind,
        _: &Queued,
        _: &Queued,
        requests: &Requests,
    ) {
        self.waiting.grown(slot, join, requests);
    }

    /// The kept request takes the earlier deadline of the two, and its place in the order.
    fn coalesced(&mut self, _: Time, kept: u32, gone: u32, requests: &Requests) {
        self.waiting.forget(gone);
        let alike = requests[kept].synchronous == requests[gone].synchronous;
        // Requests of one kind share a list, and a place in the list of another kind has no
        // meaning.
        if alike && self.deadline(gone) < self.deadline(kept) {
            self.forget(kept, requests);
            let fifo = &mut self.expiring[usize::from(requests[gone].synchronous)];
            self.links.replace(fifo, gone, kept);
            self.deadlines[kept as usize] = self.deadlines[gone as usize];
        } else {
            self.forget(gone, requests);
        }
    }

    fn dispatch(&mut self, now: Time, context: &Context<'_>) -> Option<u32> {
        let mut expired = None;
        if self.batched >= self.config.fifo_batch {
            self.batched = 0;
            expired = self.expired(now);
        }
        let slot = expired.or_else(|| self.next(context.requests))?;
        self.batched += 1;
        self.downwards = context.requests[slot].extent.start < self.waiting.here();
        self.forget(slot, context.requests);
        Some(self.waiting.take(slot, context.requests))
    }

    fn may_starve(&self) -> bool {
        self.config.sync_expire == Duration::ZERO || self.config.async_expire == Duration::ZERO
    }
}

#[cfg(test)]
pub(super) fn tunables() -> Vec<super::testing::Tunable> {
    use super::testing::{Load, LoopProcess, Tunable};
    use fullstroke_contract::Operation;
    let crowd = |process| LoopProcess {
        process,
        outstanding: 8,
        span: 40_000,
        count: 400,
        ..LoopProcess::default()
    };
    let far = LoopProcess {
        process: 9,
        start: 90_000_000,
        count: 1,
        ..LoopProcess::default()
    };
    let far_write = LoopProcess {
        operation: Operation::Write,
        synchronous: false,
        ..far
    };
    let load = |last| Load {
        queue_depth: 1,
        processes: vec![crowd(1), crowd(2), last],
    };
    let scattered = LoopProcess {
        process: 1,
        outstanding: 8,
        span: 90_000_000,
        ..LoopProcess::default()
    };
    let tunable = |key, values, last| Tunable {
        key,
        values,
        others: "{}",
        load: load(last),
    };
    vec![
        tunable("sync_expire", [r#""20ms""#, r#""10s""#], far),
        tunable("async_expire", [r#""20ms""#, r#""10s""#], far_write),
        Tunable {
            key: "fifo_batch",
            values: ["1", "100"],
            others: r#"{ "sync_expire": "20ms" }"#,
            load: load(far),
        },
        Tunable {
            key: "rev_penalty",
            values: ["1", "10"],
            others: "{}",
            load: Load {
                queue_depth: 1,
                processes: vec![scattered],
            },
        },
        super::coordinated::tunable(),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Load, LoopProcess, order, run};

    const STARTS: [u64; 5] = [500, 90, 10, 120, 1300];

    #[test]
    fn a_penalty_of_1_is_sstf_and_of_0_is_scan() {
        let at = |penalty: u32| {
            order(
                "v-r",
                &format!(r#"{{ "rev_penalty": {penalty} }}"#),
                &STARTS,
                100,
            )
        };
        assert_eq!(at(1), order("sstf", "{}", &STARTS, 100));
        assert_eq!(at(0), order("scan", "{}", &STARTS, 100));
        // From 128, 90 lies 38 sectors back and 500 lies 372 ahead. Nine times 38 is less than 372,
        // ten times 38 is more.
        assert_eq!(at(9), [120, 90, 10, 500, 1300]);
        assert_eq!(at(10), [120, 500, 1300, 90, 10]);
    }

    /// With empty queues at other members a weight changes the order only between equal distances.
    #[test]
    fn a_weight_without_queues_leaves_the_order() {
        for penalty in [0, 1, 3, 10] {
            for start in 0..40 {
                let starts: Vec<u64> = STARTS.iter().map(|at| at + 7 * start).collect();
                let keys = |more: &str| format!(r#"{{ "rev_penalty": {penalty}{more} }}"#);
                let weighed = order("v-r", &keys(r#", "queue_weight": 16"#), &starts, 101);
                assert_eq!(
                    weighed,
                    order("v-r", &keys(""), &starts, 101),
                    "{penalty} {start}"
                );
            }
        }
    }

    /// Returns the position of the request at 90 000 000 in the order of dispatch.
    fn turn_of_the_distant_request(keys: &str) -> usize {
        let near = LoopProcess {
            outstanding: 8,
            span: 40_000,
            count: 200,
            ..LoopProcess::default()
        };
        let far = LoopProcess {
            process: 9,
            start: 90_000_000,
            count: 1,
            ..LoopProcess::default()
        };
        let sent = run(
            "v-r",
            keys,
            &Load {
                queue_depth: 1,
                processes: vec![near, far],
            },
        );
        sent.iter().position(|sent| sent.process == 9).unwrap()
    }

    #[test]
    fn an_expired_request_begins_a_batch_and_does_not_break_one() {
        let expired_at_once = r#"{ "sync_expire": "1ns", "fifo_batch": 16 }"#;
        assert_eq!(turn_of_the_distant_request(expired_at_once) % 16, 0);
        assert!(turn_of_the_distant_request(r#"{ "sync_expire": "0s" }"#) > 150);
    }
}
