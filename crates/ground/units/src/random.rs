//! Repeatable random numbers. Every component draws from its own named stream, so a new component
//! does not change the draws of another.

use crate::Duration;
use rand::{Rng, RngExt as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The seed of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Seed(pub u64);

/// One named stream of pseudo-random numbers (xoshiro256++).
#[derive(Clone, Debug)]
pub struct Random(Xoshiro256PlusPlus);

impl Seed {
    /// Returns the stream of the component `name`. The same seed and name give the same stream,
    /// regardless of other streams.
    pub fn stream(self, name: &str) -> Random {
        // FNV-1a over the name. The generator's own seeding mixes the result.
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        // The factor is 2^64 divided by the golden ratio, the increment of SplitMix64 (Steele, Lea
        // and Flood 2014). The factor spreads neighbouring seeds over all bits.
        let mixed = hash ^ self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Random(Xoshiro256PlusPlus::seed_from_u64(mixed))
    }
}

impl Seed {
    /// Returns the seed for a component `name` with components of its own.
    pub fn of(self, name: &str) -> Seed {
        Seed(self.stream(name).below(u64::MAX))
    }
}

impl Random {
    /// Returns an integer in `[0, bound)`, uniformly distributed.
    ///
    /// # Panics
    /// If `bound` is zero.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0.random_range(0..bound)
    }

    /// Returns a number in `[0, 1)`, uniformly distributed.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        self.0.random()
    }

    /// Returns `true` with `probability`.
    #[inline]
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// Returns an exponentially distributed span with the given mean, at most
    /// [`Duration::LONGEST`].
    #[inline]
    pub fn exponential(&mut self, mean: Duration) -> Duration {
        // `1 - unit()` lies in `(0, 1]`, so the logarithm is finite.
        Duration::from_nanos_f64(-(1.0 - self.unit()).ln() * mean.as_nanos() as f64)
    }

    /// Returns a number of the standard normal distribution, by Box and Muller (1958).
    #[inline]
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        // Box and Muller make two numbers. The second is dropped, because a kept number would be
        // state between two calls of the stream.
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// Returns the generator itself, for distributions of other libraries.
    pub fn generator(&mut self) -> &mut impl Rng {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_named_by_seed_and_component() {
        let draws = |seed: u64, name: &str| {
            let mut stream = Seed(seed).stream(name);
            [stream.below(1 << 60), stream.below(1 << 60)]
        };
        assert_eq!(draws(1, "workload"), draws(1, "workload"));
        assert_ne!(draws(1, "workload"), draws(1, "drive 0"));
        assert_ne!(draws(1, "workload"), draws(2, "workload"));
    }

    #[test]
    fn exponential_spans_have_the_mean_that_was_asked_for() {
        let mut stream = Seed(7).stream("arrivals");
        let mean = Duration::from_millis(10);
        let sum: Duration = (0..100_000).map(|_| stream.exponential(mean)).sum();
        let obtained = sum.as_millis_f64() / 100_000.0;
        assert!((obtained - 10.0).abs() < 0.15, "{obtained}");
    }
}
