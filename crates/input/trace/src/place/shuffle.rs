//! A random order of numbers that needs no memory.

use crate::footprint::mixed;

/// Number of rounds: four rounds make a permutation that no statistics of a trace can tell from a
/// random one (M. Luby and C. Rackoff, SIAM Journal on Computing 17, 1988).
const ROUNDS: u64 = 4;

/// A permutation of the numbers below a limit. A Feistel network permutes the numbers below a power of
/// four; results at or above the limit are permuted again.
#[derive(Clone, Debug)]
pub(super) struct Shuffle {
    limit: u64,
    half_bits: u32,
    seed: u64,
}

impl Shuffle {
    pub(super) fn new(limit: u64, seed: u64) -> Shuffle {
        let bits = u64::BITS - limit.max(1).leading_zeros();
        Shuffle {
            limit,
            half_bits: bits.div_ceil(2).max(1),
            seed,
        }
    }

    /// Returns the number at the place of `number`; `None` if `number` is at or above the limit.
    pub(super) fn slot(&self, number: u64) -> Option<u64> {
        if number >= self.limit {
            return None;
        }
        let mut slot = self.permuted(number);
        // The walk ends, because it returns to `number`, which is below the limit, at the latest.
        while slot >= self.limit {
            slot = self.permuted(slot);
        }
        Some(slot)
    }

    fn permuted(&self, number: u64) -> u64 {
        let mask = (1u64 << self.half_bits) - 1;
        let (mut left, mut right) = (number >> self.half_bits & mask, number & mask);
        for round in 0..ROUNDS {
            let mixed = mixed(right ^ self.seed.rotate_left(16 * round as u32) ^ round << 56);
            (left, right) = (right, left ^ (mixed & mask));
        }
        left << self.half_bits | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_number_has_a_slot_of_its_own() {
        for limit in [1, 2, 3, 7, 64, 1000, 4097] {
            let shuffle = Shuffle::new(limit, 7);
            let slots: BTreeSet<u64> = (0..limit)
                .map(|number| shuffle.slot(number).unwrap())
                .collect();
            assert_eq!(slots.len() as u64, limit);
            assert!(slots.iter().all(|&slot| slot < limit));
            assert_eq!(shuffle.slot(limit), None);
        }
    }

    #[test]
    fn the_seed_decides_and_the_order_is_lost() {
        let slots = |seed| {
            (0..1000)
                .map(|number| Shuffle::new(1000, seed).slot(number).unwrap())
                .collect::<Vec<_>>()
        };
        assert_eq!(slots(1), slots(1));
        assert_ne!(slots(1), slots(2));
        let near = slots(1)
            .windows(2)
            .filter(|pair| pair[0].abs_diff(pair[1]) < 10)
            .count();
        // Of 999 pairs, 2 % lie that near by chance.
        assert!(near < 60, "{near}");
    }
}
