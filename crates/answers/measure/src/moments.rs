//! Exact mean, deviation and maximum of one quantity.

/// Sums over values in nanoseconds; exact for any order of the values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TimeMoments {
    count: u64,
    sum: u128,
    /// Sum of squares; saturates only beyond 10^20 values of ten seconds.
    squares: u128,
    max: u64,
}

impl TimeMoments {
    #[inline]
    pub(crate) fn record(&mut self, value: u64) {
        let wide = u128::from(value);
        self.count += 1;
        self.sum += wide;
        // The squares of two responses of centuries exceed 128 bits.
        self.squares = self.squares.saturating_add(wide * wide);
        self.max = self.max.max(value);
    }

    pub(crate) fn add(&mut self, other: &TimeMoments) {
        self.count += other.count;
        self.sum += other.sum;
        self.squares = self.squares.saturating_add(other.squares);
        self.max = self.max.max(other.max);
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Returns the mean in nanoseconds; NaN without a value.
    pub(crate) fn mean(&self) -> f64 {
        self.sum as f64 / self.count as f64
    }

    /// Returns the maximum in nanoseconds; NaN without a value.
    pub(crate) fn max(&self) -> f64 {
        if self.count == 0 {
            f64::NAN
        } else {
            self.max as f64
        }
    }

    /// Returns the standard deviation (of a sample: over `n - 1`) in nanoseconds; zero for a single
    /// value.
    pub(crate) fn deviation(&self) -> f64 {
        let count = u128::from(self.count);
        if count == 0 {
            return f64::NAN;
        }
        // First about the whole-numbered mean, in integers: a difference of the squares alone would
        // be lost to rounding.
        let (mean, rest) = (self.sum / count, self.sum % count);
        let about_mean = self
            .squares
            // The sum of the squares is the larger one, except after saturation.
            .saturating_sub(mean.saturating_mul(self.sum + rest));
        let correction = rest as f64 * (rest as f64 / count as f64);
        // Rounding may leave the variance of equal values slightly below 0.
        let variance = (about_mean as f64 - correction).max(0.0) / (count - 1).max(1) as f64;
        variance.sqrt()
    }
}
