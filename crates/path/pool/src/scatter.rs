//! Records that lie scattered, as after years of overwriting.
//!
//! 1. A share of the records is scattered, evenly spread over the volume.
//! 2. The scattered records have exchanged their places among each other, by a permutation.
//! 3. All other records lie in the order of the volume.
//!
//! The permutation is a Feistel network of four rounds (Luby & Rackoff, "How to construct
//! pseudorandom permutations", 1988). A number outside of the range goes through the network again
//! until the number is inside. So no table of places is needed.

/// Unit of the share.
const WHOLE: u128 = 1 << 16;

/// Number of rounds.
const ROUNDS: u64 = 4;

/// The scattered records of a volume.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scatter {
    /// Share of scattered records, in [`WHOLE`] parts.
    share: u128,
    records: u64,
    /// Bits of each half of the Feistel network.
    half: u32,
}

impl Scatter {
    /// Returns the scattered records of a volume of `records` records. `share` is 0 to 1.
    pub(crate) fn new(records: u64, share: f64) -> Scatter {
        let mut scatter = Scatter {
            share: (share * WHOLE as f64).round() as u128,
            records,
            half: 0,
        };
        let bits = u64::BITS - scatter.count().saturating_sub(1).leading_zeros();
        scatter.half = bits.div_ceil(2).max(1);
        scatter
    }

    /// Returns the number of scattered records.
    pub(crate) fn count(&self) -> u64 {
        self.before(self.records)
    }

    /// Returns the number of scattered records below `record`.
    pub(crate) fn before(&self, record: u64) -> u64 {
        (u128::from(record) * self.share / WHOLE) as u64
    }

    /// Returns the scattered record with this number. `number` is below [`count`](Scatter::count).
    pub(crate) fn scattered(&self, number: u64) -> u64 {
        let above = (u128::from(number) + 1) * WHOLE;
        above.div_ceil(self.share) as u64 - 1
    }

    /// Returns the record with this number among the records that are not scattered.
    pub(crate) fn ordered(&self, number: u64) -> u64 {
        (u128::from(number) * WHOLE / (WHOLE - self.share)) as u64
    }

    /// Returns the place of a record in the order of places.
    pub(crate) fn place(&self, record: u64) -> u64 {
        let number = self.before(record);
        if self.before(record + 1) == number {
            return record;
        }
        self.scattered(self.permuted(number))
    }

    /// Returns the rank of the place of a scattered record among the places of scattered records.
    pub(crate) fn permuted(&self, number: u64) -> u64 {
        let mut at = number;
        // Cycle walking: the network permutes a power of four, and results from `count` on are
        // permuted again.
        loop {
            at = (0..ROUNDS).fold(at, |at, round| self.round(at, round));
            if at < self.count() {
                return at;
            }
        }
    }

    /// Returns the number of the scattered record whose place has this rank: the inverse of
    /// [`permuted`](Scatter::permuted).
    pub(crate) fn at_rank(&self, rank: u64) -> u64 {
        let mut at = rank;
        loop {
            at = (0..ROUNDS)
                .rev()
                .fold(at, |at, round| self.round_back(at, round));
            if at < self.count() {
                return at;
            }
        }
    }

    fn round(&self, at: u64, round: u64) -> u64 {
        let mask = (1 << self.half) - 1;
        let (left, right) = (at >> self.half, at & mask);
        (right << self.half) | ((left ^ mixed(right, round)) & mask)
    }

    fn round_back(&self, at: u64, round: u64) -> u64 {
        let mask = (1 << self.half) - 1;
        let (right, mixed_left) = (at >> self.half, at & mask);
        (((mixed_left ^ mixed(right, round)) & mask) << self.half) | right
    }
}

/// Mixes the bits of a half: the last steps of MurmurHash3 (Appleby, public domain).
fn mixed(half: u64, round: u64) -> u64 {
    // The increment of SplitMix64 and the factors of MurmurHash3's fmix64: all bits of the half
    // reach all bits of the result.
    let mut bits = half ^ (round + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for factor in [0xff51_afd7_ed55_8ccd, 0xc4ce_b9fe_1a85_ec53] {
        bits = (bits ^ (bits >> 33)).wrapping_mul(factor);
    }
    bits ^ (bits >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_place_belongs_to_one_record_and_the_share_is_kept() {
        for (records, share) in [
            (1, 0.0),
            (10, 1.0),
            (1000, 0.05),
            (4097, 0.3),
            (77_777, 0.999),
        ] {
            let scatter = Scatter::new(records, share);
            let places: BTreeSet<u64> = (0..records).map(|record| scatter.place(record)).collect();
            assert_eq!(places.len() as u64, records, "{records} {share}");
            assert!(places.iter().all(|&place| place < records));
            let count = scatter.count();
            assert!((count as f64 - records as f64 * share).abs() <= 1.0 + records as f64 / 1e4);
            for number in 0..count {
                assert_eq!(scatter.at_rank(scatter.permuted(number)), number);
                let record = scatter.scattered(number);
                assert_eq!(scatter.before(record), number);
                assert_eq!(scatter.before(record + 1), number + 1);
            }
            for number in 0..records - count {
                let record = scatter.ordered(number);
                assert_eq!(record - scatter.before(record), number);
                assert_eq!(scatter.place(record), record);
            }
        }
    }

    #[test]
    fn neighbours_in_the_volume_are_far_from_each_other() {
        let scatter = Scatter::new(100_000, 1.0);
        let near = (1..100_000u64)
            .filter(|&record| scatter.place(record).abs_diff(scatter.place(record - 1)) < 1000);
        // Two random places of 100,000 are closer than 1,000 in 2 % of all cases.
        let near = near.count();
        assert!((1700..2300).contains(&near), "{near}");
    }
}
