//! The order of addresses in anticipatory and CFQ: ascending, with short seeks back if they are
//! cheaper (`as_choose_req` of `block/as-iosched.c` and `cfq_choose_req` of `block/cfq-iosched.c`,
//! Linux 2.6.24).

use super::coordinated::FURTHER;
use super::forest::{Forest, SlotTree};

/// Limit and cost of seeks back.
#[derive(Clone, Copy, Debug)]
pub(super) struct BackSeek {
    /// Longest seek back, in sectors.
    pub(super) sectors_max: u64,
    /// Factor on the distance of a seek back.
    pub(super) penalty: u64,
}

impl BackSeek {
    /// Returns the cheapest request from `here`, in a tree by first address. If no request lies
    /// ahead, and none lies behind within reach, returns the lowest: one long seek back, and then
    /// ascending again.
    pub(super) fn cheapest(&self, forest: &Forest, tree: &SlotTree, here: u64) -> Option<u32> {
        let cost_onwards = |slot: u32| (forest.key(slot) - here, slot);
        let cost_back = |slot: u32| {
            let distance = here - forest.key(slot);
            (distance <= self.sectors_max).then(|| (distance.saturating_mul(self.penalty), slot))
        };
        let ahead = forest.at_or_after(tree, here).map(cost_onwards);
        let behind = forest.before(tree, here).and_then(cost_back);
        match (ahead, behind) {
            // At equal cost the arm goes on, as `as_choose_req` and `cfq_choose_req` do.
            (Some(ahead), Some(behind)) if behind.0 < ahead.0 => Some(behind.1),
            (None, None) => forest.first(tree),
            (ahead, behind) => ahead.or(behind).map(|(_, slot)| slot),
        }
    }

    /// Returns the cost of going from `here` to an address. The request of least cost is the
    /// [`cheapest`](BackSeek::cheapest).
    pub(super) fn cost(&self, here: u64, address: u64) -> u64 {
        match address.checked_sub(here) {
            Some(onwards) => onwards,
            None if here - address <= self.sectors_max => {
                (here - address).saturating_mul(self.penalty)
            }
            // Beyond the reach back, all requests lie one sweep further, the lowest first.
            None => FURTHER + address,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_cheapest_of_all_is_found(
            starts in prop::collection::btree_set(0u64..2000, 1..40),
            here in 0u64..2000, sectors_max in 0u64..500, penalty in 1u64..4,
        ) {
            let (mut forest, mut tree) = (Forest::default(), SlotTree::default());
            for (slot, &start) in (0..).zip(&starts) {
                forest.insert(&mut tree, start, slot);
            }
            // Requests beyond reach come last, in ascending order.
            let back_seek = BackSeek { sectors_max, penalty };
            let found = back_seek.cheapest(&forest, &tree, here).unwrap();
            let least = starts.iter().map(|&start| back_seek.cost(here, start)).min().unwrap();
            prop_assert_eq!(back_seek.cost(here, forest.key(found)), least);
        }
    }
}
