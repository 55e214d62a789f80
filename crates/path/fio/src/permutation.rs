//! A random permutation of many numbers that needs no memory for the numbers.
//!
//! A Feistel network of four rounds permutes the numbers below a power of four. For a smaller
//! bound, the network is applied again until the result is below the bound (cycle walking). This
//! gives a permutation of any number of places (Black and Rogaway, "Ciphers with arbitrary finite
//! domains", CT-RSA 2002, section 3).

use fullstroke_units::Random;

const ROUNDS: usize = 4;

/// A permutation of the numbers below `bound`.
#[derive(Clone, Debug)]
pub(crate) struct Permutation {
    bound: u64,
    half_bits: u32,
    keys: [u64; ROUNDS],
}

impl Permutation {
    /// Draws a random permutation.
    pub(crate) fn new(bound: u64, random: &mut Random) -> Permutation {
        let bits = 64 - bound.saturating_sub(1).leading_zeros();
        let keys = std::array::from_fn(|_| random.below(u64::MAX));
        Permutation {
            bound,
            half_bits: bits.div_ceil(2).max(1),
            keys,
        }
    }

    /// Returns the number of permuted numbers.
    pub(crate) fn bound(&self) -> u64 {
        self.bound
    }

    /// Returns the image of `number`, which must be below the bound. Takes fewer than four
    /// applications on average.
    #[inline]
    pub(crate) fn place(&self, number: u64) -> u64 {
        debug_assert!(
            number < self.bound,
            "the place of {number} is asked for, of {}",
            self.bound
        );
        let mut place = self.round_trip(number);
        // Cycle walking: the network permutes a power of four, and results beyond the bound go
        // through again.
        while place >= self.bound {
            place = self.round_trip(place);
        }
        place
    }

    #[inline]
    fn round_trip(&self, number: u64) -> u64 {
        let mask = (1u64 << self.half_bits) - 1;
        let (mut left, mut right) = (number >> self.half_bits, number & mask);
        for key in self.keys {
            (left, right) = (right, left ^ (mix(right ^ key) & mask));
        }
        left << self.half_bits | right
    }
}

/// The finaliser of splitmix64 (Steele, Lea and Flood, OOPSLA 2014).
#[inline]
fn mix(number: u64) -> u64 {
    // The finalizer of SplitMix64.
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_units::Seed;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_place_comes_once(bound in 1u64..3000, seed: u64) {
            let permutation = Permutation::new(bound, &mut Seed(seed).stream("test"));
            let mut places: Vec<u64> = (0..bound).map(|number| permutation.place(number)).collect();
            places.sort_unstable();
            prop_assert!(places.into_iter().eq(0..bound));
        }
    }

    #[test]
    fn neighbours_are_scattered_evenly() {
        let bound = 1_000_000;
        let permutation = Permutation::new(bound, &mut Seed(3).stream("test"));
        let mut tenths = [0u32; 10];
        for number in 0..10_000 {
            tenths[(permutation.place(number) * 10 / bound) as usize] += 1;
        }
        // Binomial distribution: 1000 +- 30.
        assert!(
            tenths.iter().all(|count| (850..1150).contains(count)),
            "{tenths:?}"
        );
    }

    #[test]
    fn the_largest_bound_works() {
        let permutation = Permutation::new(u64::MAX, &mut Seed(3).stream("test"));
        assert_ne!(permutation.place(0), permutation.place(u64::MAX - 1));
    }
}
