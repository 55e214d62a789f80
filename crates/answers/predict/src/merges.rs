//! Merges in a random set of requests.

use crate::occupancy::distinct_places;

/// Probability of neighbours in a random set of requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MergeChance {
    /// Probability that at least two requests are to neighbouring blocks.
    pub any_adjacent: f64,
    /// Mean number of pairs of requests to neighbouring blocks.
    pub mean_pairs: f64,
    /// Formula of Carroll, "I/O scheduling on RAID", footnote 1 of section 5.1.1: one minus the
    /// product `(k - 2) (k - 3) ... (k - n) / k^(n - 1)` for `n` requests to `k` blocks. The result
    /// is close to the probability that two requests are to the *same* block (the birthday
    /// problem). It is about half of [`any_adjacent`](MergeChance::any_adjacent), because a block
    /// has two neighbours.
    pub as_published: f64,
}

/// Computes the probabilities for `requests` independent requests. Each request goes to one of
/// `blocks` consecutive blocks with equal probability. Returns `None` without blocks.
///
/// No two of `d` distinct blocks are neighbours with probability `C(blocks - d + 1, d) / C(blocks,
/// d)`. `d` is distributed as the number of distinct draws with repetition.
pub fn merge_chance(requests: u32, blocks: u64) -> Option<MergeChance> {
    if blocks == 0 {
        return None;
    }
    let distinct = distinct_places(requests, blocks);
    let any_adjacent = distinct
        .iter()
        .enumerate()
        .map(|(count, probability)| probability * adjacent_among(count as u64, blocks))
        .sum();
    let pairs = f64::from(requests) * (f64::from(requests) - 1.0) / 2.0;
    let blocks_as_number = blocks as f64;
    let neighbours = 2.0 * (blocks_as_number - 1.0) / (blocks_as_number * blocks_as_number);
    Some(MergeChance {
        any_adjacent,
        mean_pairs: pairs.max(0.0) * neighbours,
        as_published: one_less_product((2..=u64::from(requests)).map(|index| (index, blocks))),
    })
}

/// Returns the probability that a random set of `distinct` blocks of `blocks` contains two
/// neighbours.
fn adjacent_among(distinct: u64, blocks: u64) -> f64 {
    if distinct < 2 {
        return 0.0;
    }
    // C(k - d + 1, d) / C(k, d) is the product of 1 - (d - 1) / (k - j).
    one_less_product((0..distinct).map(|index| (distinct - 1, blocks - index)))
}

/// Returns one minus the product of `1 - part / whole`. Logarithms keep the digits of a result near
/// 0. A factor below 0 counts as 0.
fn one_less_product(parts: impl Iterator<Item = (u64, u64)>) -> f64 {
    let logarithm: f64 = parts
        .map(|(part, whole)| (-(part.min(whole) as f64 / whole as f64)).ln_1p())
        .sum();
    -logarithm.exp_m1()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_units::Seed;
    use proptest::prelude::*;

    /// 100 GiB in blocks of 16 KiB.
    const BLOCKS: u64 = 100 * 1024 * 1024 / 16;

    #[test]
    fn the_published_figures_follow_from_the_published_formula() {
        // "less than 0.01 % for 32 requests", "less than 0.6 % for 256"
        let small = merge_chance(32, BLOCKS).unwrap().as_published;
        let large = merge_chance(256, BLOCKS).unwrap().as_published;
        assert_eq!(format!("{:.4} %", 100.0 * small), "0.0080 %");
        assert_eq!(format!("{:.3} %", 100.0 * large), "0.501 %");
    }

    #[test]
    fn neighbours_are_twice_as_likely_as_the_published_formula_has_it() {
        for requests in [32, 256] {
            let chance = merge_chance(requests, BLOCKS).unwrap();
            let factor = chance.any_adjacent / chance.as_published;
            assert!((1.85..2.05).contains(&factor), "{requests}: {factor}");
        }
    }

    #[test]
    fn a_simulation_agrees_within_its_error() {
        let mut random = Seed(8).stream("merges");
        let trials = 50_000;
        let (requests, blocks) = (20u32, 2_000u64);
        let mut drawn = Vec::new();
        let adjacent = (0..trials)
            .filter(|_| {
                drawn.clear();
                drawn.extend((0..requests).map(|_| random.below(blocks)));
                drawn.sort_unstable();
                drawn.windows(2).any(|pair| pair[1] - pair[0] == 1)
            })
            .count();
        let expected = merge_chance(requests, blocks).unwrap().any_adjacent;
        let error = (expected * (1.0 - expected) / f64::from(trials)).sqrt();
        let found = adjacent as f64 / f64::from(trials);
        assert!((found - expected).abs() < 4.0 * error, "{found} {expected}");
    }

    #[test]
    fn what_cannot_be_avoided_is_certain() {
        // Three distinct blocks of four always hold neighbours.
        assert_eq!(adjacent_among(3, 4), 1.0);
        assert_eq!(merge_chance(1, 10).unwrap().any_adjacent, 0.0);
        assert_eq!(merge_chance(0, 10).unwrap().mean_pairs, 0.0);
        assert_eq!(merge_chance(9, 1).unwrap().any_adjacent, 0.0);
        assert_eq!(merge_chance(3, 0), None);
    }

    proptest! {
        #[test]
        fn the_chance_is_that_of_counting_every_outcome(requests in 0u32..6, blocks in 1u64..7) {
            let outcomes = blocks.pow(requests);
            let holds_neighbours = |mut outcome: u64| {
                let mut met = 0u64;
                for _ in 0..requests {
                    met |= 1 << (outcome % blocks);
                    outcome /= blocks;
                }
                met & met >> 1 != 0
            };
            let count = (0..outcomes).filter(|&outcome| holds_neighbours(outcome)).count();
            let found = merge_chance(requests, blocks).unwrap().any_adjacent;
            prop_assert!((found - count as f64 / outcomes as f64).abs() < 1e-12);
        }
    }
}
