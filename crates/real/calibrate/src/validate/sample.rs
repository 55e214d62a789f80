//! A sample of times, and the distance between two.

use fullstroke_units::Seed;

/// Times in ms, ascending: an empirical distribution.
#[derive(Clone, Debug, PartialEq)]
pub struct EmpiricalTimes {
    ascending: Vec<f64>,
}

impl EmpiricalTimes {
    /// Creates the distribution of `values`, in any order.
    pub fn new(mut values: Vec<f64>) -> EmpiricalTimes {
        values.sort_by(f64::total_cmp);
        EmpiricalTimes { ascending: values }
    }

    /// Returns the values, ascending.
    pub fn values(&self) -> &[f64] {
        &self.ascending
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.ascending.len()
    }

    /// Returns true if there is no value.
    pub fn is_empty(&self) -> bool {
        self.ascending.is_empty()
    }

    /// Returns the arithmetic mean; not a number if the sample is empty.
    pub fn mean(&self) -> f64 {
        self.ascending.iter().sum::<f64>() / self.len() as f64
    }

    /// Returns the smallest value that is not exceeded by at least the share `p` of all values. `p`
    /// is clamped to 0 .. 1. The result is not a number if the sample is empty.
    /// [`demerit`](EmpiricalTimes::demerit) integrates over the graph of this function.
    pub fn quantile(&self, p: f64) -> f64 {
        // Nearest rank: the smallest value that a share of at least `p` does not exceed.
        let rank = (p.clamp(0.0, 1.0) * self.len() as f64).ceil() as usize;
        self.ascending
            .get(rank.saturating_sub(1))
            .copied()
            .unwrap_or(f64::NAN)
    }

    /// Returns the largest value; not a number if the sample is empty.
    pub fn max(&self) -> f64 {
        self.ascending.last().copied().unwrap_or(f64::NAN)
    }

    /// Returns the root-mean-square horizontal distance between two cumulative distributions
    /// (Ruemmler & Wilkes, IEEE Computer 27(3), 1994). With the quantile functions `m` and `s` this
    /// is `sqrt(∫₀¹ (m(p) − s(p))² dp)`, in the unit of the values.
    ///
    /// Both functions are steps, so the integral is a sum, and exact. The samples may differ in
    /// size. The result is not a number if either sample is empty.
    pub fn demerit(&self, other: &EmpiricalTimes) -> f64 {
        let (ours, theirs) = (self.ascending.as_slice(), other.ascending.as_slice());
        let (mut i, mut j) = (0, 0);
        // p in units of 1 / (ours * theirs). In whole numbers, no step is missed or counted twice.
        let (step_i, step_j) = (theirs.len() as u64, ours.len() as u64);
        let (mut p, mut sum) = (0, 0.0);
        while i < ours.len() && j < theirs.len() {
            let (end_i, end_j) = ((i as u64 + 1) * step_i, (j as u64 + 1) * step_j);
            let end = end_i.min(end_j);
            let distance = ours[i] - theirs[j];
            sum += distance * distance * (end - p) as f64;
            p = end;
            i += usize::from(end == end_i);
            j += usize::from(end == end_j);
        }
        assert!(
            ours.is_empty() || theirs.is_empty() || (i, j) == (ours.len(), theirs.len()),
            "both distributions end where the other does"
        );
        (sum / p as f64).sqrt()
    }

    /// Returns the sampling noise of the sample itself: the mean
    /// [`demerit`](EmpiricalTimes::demerit) against `resamples` bootstrap resamples (Efron 1979: as
    /// many values, drawn with replacement). A second measurement of the same disk would be about
    /// this far from the first. A model that comes closer cannot be told from a perfect model.
    ///
    /// Zero for a sample of one value. Not a number if the sample is empty or `resamples` is zero.
    pub fn bootstrap_noise(&self, seed: Seed, resamples: u32) -> f64 {
        if self.is_empty() {
            return f64::NAN;
        }
        let mut random = seed.stream("bootstrap");
        let mut times_drawn = vec![0u32; self.len()];
        let mut sum = 0.0;
        for _ in 0..resamples {
            times_drawn.fill(0);
            (0..self.len())
                .for_each(|_| times_drawn[random.below(self.len() as u64) as usize] += 1);
            sum += self.demerit_to_resample(&times_drawn);
        }
        sum / f64::from(resamples)
    }

    /// Returns the demerit to a resample of the same size that holds value `i` `times_drawn[i]`
    /// times. The resample is already in order, so nothing is sorted.
    fn demerit_to_resample(&self, times_drawn: &[u32]) -> f64 {
        let drawn = self.ascending.iter().zip(times_drawn);
        let resample = drawn.flat_map(|(value, times)| std::iter::repeat_n(value, *times as usize));
        let squares = self
            .ascending
            .iter()
            .zip(resample)
            .map(|(ours, theirs)| (ours - theirs).powi(2));
        (squares.sum::<f64>() / self.len() as f64).sqrt()
    }
}

/// [`EmpiricalTimes::demerit`] of times in ms, in any order.
pub fn demerit(measured_ms: &[f64], simulated_ms: &[f64]) -> f64 {
    EmpiricalTimes::new(measured_ms.to_vec()).demerit(&EmpiricalTimes::new(simulated_ms.to_vec()))
}

/// [`EmpiricalTimes::bootstrap_noise`] of times in ms, in any order.
pub fn bootstrap_noise(measured_ms: &[f64], seed: Seed, resamples: u32) -> f64 {
    EmpiricalTimes::new(measured_ms.to_vec()).bootstrap_noise(seed, resamples)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn equal_sizes_compare_value_by_value_in_order() {
        // Ordered: 1, 2, 4 and 2, 2, 7. Squares: 1, 0, 9; mean 10/3.
        assert_eq!(
            demerit(&[4.0, 1.0, 2.0], &[2.0, 7.0, 2.0]),
            (10.0f64 / 3.0).sqrt()
        );
    }

    #[test]
    fn sizes_may_differ() {
        // m = 1 up to p = 1/2, then 3; s = 1, 2, 5 in thirds.
        // [0, 1/3]: 0; [1/3, 1/2]: 1; [1/2, 2/3]: 1; [2/3, 1]: 4.
        let expected = (1.0f64 / 6.0 + 1.0 / 6.0 + 4.0 / 3.0).sqrt();
        assert!((demerit(&[3.0, 1.0], &[1.0, 2.0, 5.0]) - expected).abs() < 1e-12);
    }

    #[test]
    fn samples_are_not_weighted_by_their_size() {
        assert_eq!(demerit(&[1.0], &[3.0, 3.0, 3.0, 3.0]), 2.0);
        assert_eq!(demerit(&[1.0, 2.0], &[1.0, 1.0, 1.0, 2.0, 2.0, 2.0]), 0.0);
    }

    #[test]
    fn an_empty_sample_has_no_figures() {
        let empty = EmpiricalTimes::new(Vec::new());
        assert!(demerit(&[], &[1.0]).is_nan() && demerit(&[1.0], &[]).is_nan());
        assert!(empty.mean().is_nan() && empty.quantile(0.5).is_nan() && empty.max().is_nan());
        assert!(empty.bootstrap_noise(Seed(1), 10).is_nan());
    }

    #[test]
    fn quantiles_are_values_of_the_sample() {
        let sample = EmpiricalTimes::new(vec![4.0, 1.0, 3.0, 2.0]);
        let quantiles = [0.0, 0.25, 0.26, 0.5, 0.75, 0.9, 1.0].map(|p| sample.quantile(p));
        assert_eq!(quantiles, [1.0, 1.0, 2.0, 2.0, 3.0, 4.0, 4.0]);
        assert_eq!((sample.mean(), sample.max()), (2.5, 4.0));
    }

    #[test]
    fn the_noise_of_two_values_is_that_of_their_four_resamples() {
        // Of 0 and 2: both (no distance) in half of the resamples, one of them
        // twice (squares 0 and 4, mean 2) in the other half.
        let noise = bootstrap_noise(&[0.0, 2.0], Seed(3), 40_000);
        assert!((noise - 0.5 * 2.0f64.sqrt()).abs() < 0.01, "{noise}");
    }

    #[test]
    fn the_noise_falls_with_the_root_of_the_sample_size() {
        let uniform =
            |count: usize| -> Vec<f64> { (0..count).map(|i| i as f64 / count as f64).collect() };
        let noise = |count| bootstrap_noise(&uniform(count), Seed(5), 400);
        let ratio = noise(100) / noise(1600);
        assert!((ratio - 4.0).abs() < 0.4, "{ratio}");
    }

    #[test]
    fn the_noise_repeats_with_its_seed() {
        let values: Vec<f64> = (0..50).map(f64::from).collect();
        assert_eq!(
            bootstrap_noise(&values, Seed(1), 20),
            bootstrap_noise(&values, Seed(1), 20)
        );
        assert_ne!(
            bootstrap_noise(&values, Seed(1), 20),
            bootstrap_noise(&values, Seed(2), 20)
        );
    }

    fn times() -> impl Strategy<Value = Vec<f64>> {
        prop::collection::vec(0.0f64..50.0, 1..60)
    }

    proptest! {
        #[test]
        fn the_demerit_is_a_distance(a in times(), b in times(), c in times()) {
            prop_assert_eq!(demerit(&a, &a), 0.0);
            prop_assert!((demerit(&a, &b) - demerit(&b, &a)).abs() < 1e-9);
            prop_assert!(demerit(&a, &c) <= demerit(&a, &b) + demerit(&b, &c) + 1e-9);
        }

        #[test]
        fn a_shift_of_all_times_is_the_demerit(a in times(), shift in 0.0f64..9.0) {
            let shifted: Vec<f64> = a.iter().map(|time| time + shift).collect();
            prop_assert!((demerit(&a, &shifted) - shift).abs() < 1e-9);
        }

        #[test]
        fn the_demerit_equals_the_integral_over_a_fine_grid(a in times(), b in times()) {
            let (first, second) = (EmpiricalTimes::new(a), EmpiricalTimes::new(b));
            // A grid with every step of both functions between two points.
            let points = first.len() * second.len();
            let at = |i: usize| (i as f64 + 0.5) / points as f64;
            let square = |i| (first.quantile(at(i)) - second.quantile(at(i))).powi(2);
            let integral = (0..points).map(square).sum::<f64>() / points as f64;
            prop_assert!((first.demerit(&second) - integral.sqrt()).abs() < 1e-9);
        }
    }
}
