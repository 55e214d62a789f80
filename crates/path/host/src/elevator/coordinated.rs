//! Coordinated queues (Qian & Wang, section 6.2). An array tells each part of a request the length
//! of the queue at the other members of the request. The elevators of the members count this queue
//! as distance. So a part that must wait for another member anyway does not go first.
//!
//! The kernel's `cfq_choose_req` compares two requests at a time: the neighbours of the last
//! request, and each arrival with the present choice. This implementation takes the least cost of
//! all waiting requests.

use super::forest::{Forest, SlotTree};
use crate::block::Requests;
use fullstroke_contract::ConfigError;
use schemars::JsonSchema;
use serde::Deserialize;

/// A distance longer than any address.
pub(super) const FURTHER: u64 = 1 << 48;

/// Largest weight. With this weight a queue of one request is longer than any address.
const MOST: u32 = 48;

/// Weight of a request at another member: the exponent of its distance in sectors.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueueWeight(u32);

impl QueueWeight {
    /// Reads the key `queue_weight`.
    pub(super) fn checked(weight: Option<u32>) -> Result<Option<QueueWeight>, ConfigError> {
        match weight {
            Some(weight) if weight > MOST => Err(ConfigError::new(
                "queue_weight",
                format!("found {weight}; expected 0 to {MOST}"),
            )),
            weight => Ok(weight.map(QueueWeight)),
        }
    }

    /// Returns the distance plus the cost of the queue at the other member.
    pub(super) fn added(self, distance: u64, stripe_queue: u32) -> u64 {
        distance.saturating_add(u64::from(stripe_queue).saturating_mul(1 << self.0))
    }

    /// Returns the request of least cost; of equal costs, the lowest address. The cost of the
    /// queues has no order, so the search visits the whole tree.
    pub(super) fn cheapest(
        self,
        forest: &Forest,
        tree: &SlotTree,
        requests: &Requests,
        distance: impl Fn(u64) -> u64,
    ) -> Option<u32> {
        let cost = |slot: u32| self.added(distance(forest.key(slot)), requests[slot].stripe_queue);
        std::iter::successors(forest.first(tree), |&slot| forest.next(slot))
            .min_by_key(|&slot| cost(slot))
    }
}

/// The keys of the classics.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Coordinated {
    /// With `coordinate` of the volume above, a request carries the length of a queue at another
    /// member that serves a part of the same request. Each request of that queue counts as
    /// 2^queue_weight sectors of distance. Default: no distance.
    queue_weight: Option<u32>,
}

impl Coordinated {
    pub(super) fn checked(self) -> Result<Option<QueueWeight>, ConfigError> {
        QueueWeight::checked(self.queue_weight)
    }
}

/// Returns a test of `queue_weight`: a process with requests at another member, and one without.
#[cfg(test)]
pub(super) fn tunable() -> super::testing::Tunable {
    use super::testing::{Load, LoopProcess, Tunable};
    let process = |stripe_queue, start| LoopProcess {
        stripe_queue,
        start,
        span: 400_000,
        outstanding: 60,
        ..LoopProcess::default()
    };
    let processes = vec![process(0, 0), process(100, 100_000)];
    Tunable {
        key: "queue_weight",
        values: ["0", "40"],
        others: "{}",
        load: Load {
            queue_depth: 1,
            processes,
        },
    }
}

#[cfg(test)]
mod tests {
    use crate::elevator::REGISTRY;
    use crate::elevator::testing::{Load, LoopProcess, run};
    use fullstroke_contract::registry::find;
    use fullstroke_units::Time;
    use serde_json::json;

    /// Returns the starts of the dispatched requests, in order. The head stands at 100. Each
    /// request has a start and a queue at another member.
    fn order(name: &str, weight: u32, requests: &[(u64, u32)]) -> Vec<u64> {
        let one = |start, stripe_queue, begins| LoopProcess {
            start,
            stripe_queue,
            count: 1,
            begins: Time::from_nanos(begins),
            ..LoopProcess::default()
        };
        let others = requests.iter().map(|&(start, queue)| one(start, queue, 1));
        let processes = std::iter::once(one(92, 0, 0)).chain(others).collect();
        let keys = format!(r#"{{ "queue_weight": {weight} }}"#);
        let sent = run(
            name,
            &keys,
            &Load {
                queue_depth: 1,
                processes,
            },
        );
        sent.iter()
            .skip(1)
            .map(|sent| sent.extent.start.0)
            .collect()
    }

    #[test]
    fn what_must_wait_elsewhere_goes_later() {
        let requests = [(120, 3), (200, 0), (90, 1), (1000, 0)];
        assert_eq!(order("sstf", 0, &requests), [90, 120, 200, 1000]);
        // Each request at the other member counts as 1,024 sectors.
        for name in ["sstf", "scan", "c-scan"] {
            assert_eq!(order(name, 10, &requests), [200, 1000, 90, 120], "{name}");
        }
        // V(R) turns for 90 only if ten times the distance to 90 is less than the distance to 120.
        assert_eq!(order("v-r", 0, &requests), [120, 200, 1000, 90]);
        assert_eq!(order("v-r", 10, &requests), [200, 1000, 90, 120]);
    }

    /// CFQ sorts the requests of one round again by address. A round holds up to sixteen requests,
    /// so the test checks the set and not the order.
    #[test]
    fn what_cfq_sends_in_one_go_waits_nowhere_else() {
        let requests: Vec<(u64, u32)> =
            (0..40).map(|at| (1000 * (at + 1), at as u32 % 2)).collect();
        let elsewhere = |weight| {
            let sent = order("cfq", weight, &requests);
            sent[..16]
                .iter()
                .filter(|&&start| start / 1000 % 2 == 0)
                .count()
        };
        assert_eq!((elsewhere(0), elsewhere(20)), (8, 0));
    }

    #[test]
    fn weights_that_no_distance_reaches_are_refused() {
        for name in ["sstf", "scan", "c-scan", "v-r", "cfq"] {
            let entry = find("elevator", REGISTRY, "elevator", name).unwrap();
            let keys = json!({ "queue_weight": 49 });
            let error =
                (entry.build.build)(keys.as_object().unwrap(), &crate::elevator::testing::SITE);
            assert_eq!(error.err().unwrap().key, "queue_weight");
        }
    }
}
