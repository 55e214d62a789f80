//! Mean and second moment of a time, with sums and mixtures.

/// Moments of a random time in seconds, or of another quantity.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    /// Mean.
    pub mean: f64,
    /// Mean of the square.
    pub square: f64,
}

impl Moments {
    /// Returns the moments of a constant.
    pub fn of(value: f64) -> Moments {
        Moments {
            mean: value,
            square: value * value,
        }
    }

    /// Makes moments from mean and variance.
    pub fn varied(mean: f64, variance: f64) -> Moments {
        Moments {
            mean,
            square: mean * mean + variance,
        }
    }

    /// Returns the variance, at least 0 despite rounding.
    pub fn variance(&self) -> f64 {
        (self.square - self.mean * self.mean).max(0.0)
    }

    /// Returns the variance over the square of the mean; 0 if the mean is 0.
    pub fn scv(&self) -> f64 {
        if self.mean > 0.0 {
            self.variance() / (self.mean * self.mean)
        } else {
            0.0
        }
    }

    /// Returns the moments of the sum with an independent quantity.
    #[must_use]
    pub fn plus(self, other: Moments) -> Moments {
        Moments::varied(self.mean + other.mean, self.variance() + other.variance())
    }

    /// Returns the mixture: `self` with probability `share`, else `other`.
    #[must_use]
    pub fn or(self, share: f64, other: Moments) -> Moments {
        Moments {
            mean: share * self.mean + (1.0 - share) * other.mean,
            square: share * self.square + (1.0 - share) * other.square,
        }
    }

    /// Returns the mixture of several parts. The weights need not add up to 1. Returns 0 without
    /// parts.
    pub fn mixed(parts: impl Iterator<Item = (f64, Moments)>) -> Moments {
        let (mut weight, mut sum) = (0.0, Moments::default());
        for (part, Moments { mean, square }) in parts {
            weight += part;
            sum.mean += part * mean;
            sum.square += part * square;
        }
        if weight > 0.0 {
            Moments {
                mean: sum.mean / weight,
                square: sum.square / weight,
            }
        } else {
            Moments::default()
        }
    }
}
