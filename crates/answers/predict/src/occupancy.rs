//! Number of places reached by a random set of requests.

/// Returns the distribution of the number of distinct places reached by `draws` independent,
/// uniform draws among `places`. Item `n` is the probability of `n`.
///
/// Each draw reaches either an old place or a new place. All terms are positive, so no digits
/// cancel, unlike in the alternating sum of inclusion and exclusion. The computing time is `draws x
/// min(draws, places)`.
pub(crate) fn distinct_places(draws: u32, places: u64) -> Vec<f64> {
    let most = u64::from(draws).min(places) as usize;
    let share = 1.0 / places as f64;
    let mut probability = vec![0.0; most + 1];
    probability[0] = 1.0;
    for draw in 1..=draws as usize {
        // Downwards, because each entry needs the old value of the entry before.
        for met in (1..=most.min(draw)).rev() {
            let stay = probability[met] * met as f64 * share;
            let new = probability[met - 1] * (places - met as u64 + 1) as f64 * share;
            probability[met] = stay + new;
        }
        // After the first draw at least one place is taken.
        probability[0] = 0.0;
    }
    probability
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_distribution_is_that_of_counting_every_outcome(draws in 0u32..7, places in 1u64..6) {
            let outcomes = places.pow(draws);
            let mut counts = vec![0u64; distinct_places(draws, places).len()];
            for mut outcome in 0..outcomes {
                let mut met = 0u64;
                for _ in 0..draws {
                    met |= 1 << (outcome % places);
                    outcome /= places;
                }
                counts[met.count_ones() as usize] += 1;
            }
            for (probability, count) in distinct_places(draws, places).into_iter().zip(counts) {
                prop_assert!((probability - count as f64 / outcomes as f64).abs() < 1e-14);
            }
        }

        #[test]
        fn probabilities_add_up_to_one(draws in 0u32..600, places in 1u64..1 << 40) {
            let sum: f64 = distinct_places(draws, places).iter().sum();
            prop_assert!((sum - 1.0).abs() < 1e-12, "{}", sum);
        }
    }
}
