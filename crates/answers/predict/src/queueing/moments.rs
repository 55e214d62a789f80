//! Mean and second moment of a time, which sums and mixtures are made of.

/// Of a random time in seconds, or of another quantity.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    /// The mean.
    pub mean: f64,
    /// The mean of the square.
    pub square: f64,
}

impl Moments {
    /// Of what never varies.
    pub fn of(value: f64) -> Moments {
        Moments {
            mean: value,
            square: value * value,
        }
    }

    /// By mean and variance.
    pub fn varied(mean: f64, variance: f64) -> Moments {
        Moments {
            mean,
            square: mean * mean + variance,
        }
    }

    /// Never below 0, whatever was rounded.
    pub fn variance(&self) -> f64 {
        (self.square - self.mean * self.mean).max(0.0)
    }

    /// Variance over the square of the mean; 0 of nothing.
    pub fn scv(&self) -> f64 {
        if self.mean > 0.0 {
            self.variance() / (self.mean * self.mean)
        } else {
            0.0
        }
    }

    /// The sum with what is independent of it.
    #[must_use]
    pub fn plus(self, other: Moments) -> Moments {
        Moments::varied(self.mean + other.mean, self.variance() + other.variance())
    }

    /// This with probability `share`, else the other.
    #[must_use]
    pub fn or(self, share: f64, other: Moments) -> Moments {
        Moments {
            mean: share * self.mean + (1.0 - share) * other.mean,
            square: share * self.square + (1.0 - share) * other.square,
        }
    }

    /// The mean over several, by weights that need not add up to 1; of none, 0.
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
