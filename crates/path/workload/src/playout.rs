//! Playing times of a stream's bytes.

use crate::streams_config::{Variability, VariationConfig};
use fullstroke_units::{BitRate, Bytes, Duration, Random};
use rand_distr::{Distribution as _, StandardNormal};

/// Playing times of a stream's bytes, asked for in ascending order. Two copies answer independently
/// and equally.
#[derive(Clone, Debug)]
pub(crate) struct PlayingTimes {
    rate: BitRate,
    segment: Option<Box<RateSegment>>,
}

/// The segment of a variable-rate stream with the latest byte.
#[derive(Clone, Debug)]
struct RateSegment {
    variation: VariationConfig,
    random: Random,
    number: u64,
    first: u64,
    bytes: u64,
}

impl PlayingTimes {
    /// A stream with the mean rate `rate`; `random` draws its segments.
    pub(crate) fn new(
        rate: BitRate,
        variation: Option<VariationConfig>,
        random: Random,
    ) -> PlayingTimes {
        let segment = variation.map(|variation| {
            let mut segment = RateSegment {
                variation,
                random,
                number: 0,
                first: 0,
                bytes: 0,
            };
            segment.bytes = segment.draw(rate);
            Box::new(segment)
        });
        PlayingTimes { rate, segment }
    }

    /// Time from the first byte of the stream to byte number `byte` without a pause, rounded up to
    /// a nanosecond. The time is counted from the start of the stream or of the byte's segment, so
    /// rounding errors do not accumulate.
    #[inline]
    pub(crate) fn at(&mut self, byte: u64) -> Duration {
        match &mut self.segment {
            None => self.rate.span(Bytes(byte)),
            Some(segment) => segment.at(byte, self.rate),
        }
    }
}

impl RateSegment {
    fn at(&mut self, byte: u64, rate: BitRate) -> Duration {
        while byte - self.first >= self.bytes {
            self.number += 1;
            self.first += self.bytes;
            self.bytes = self.draw(rate);
        }
        debug_assert!(
            byte >= self.first && self.bytes > 0,
            "byte {byte} lies before the segment from {} on",
            self.first
        );
        let plays = u128::from(self.variation.segment.as_nanos());
        // Bytes times nanoseconds exceed 64 bits after 18 GB in a segment of a second. Rounding up
        // never plays a byte early.
        let within = (u128::from(byte - self.first) * plays).div_ceil(u128::from(self.bytes));
        // Segments may be centuries long: then the byte is played after every run.
        self.variation
            .segment
            .saturating_mul(self.number)
            .saturating_add(Duration::from_nanos(within as u64))
    }

    /// Size of the next segment in bytes; at least one, so that every segment ends.
    fn draw(&mut self, rate: BitRate) -> u64 {
        let VariationConfig {
            distribution,
            share,
            segment,
        } = self.variation;
        let mean = rate.0 as f64 / 8.0 * segment.as_secs_f64();
        let factor = match distribution {
            Variability::Uniform => 1.0 + share * (2.0 * self.random.unit() - 1.0),
            Variability::LogNormal => {
                // With this variance and mean of the logarithm, the mean is 1 and the standard
                // deviation is `share`.
                let variance = (share * share).ln_1p();
                let normal: f64 = StandardNormal.sample(self.random.generator());
                (variance.sqrt() * normal - variance / 2.0).exp()
            }
        };
        ((mean * factor).round() as u64).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_units::Seed;
    use proptest::prelude::*;

    fn variation(distribution: Variability, share: f64) -> Option<VariationConfig> {
        Some(VariationConfig {
            distribution,
            share,
            segment: Duration::from_millis(500),
        })
    }

    fn playout(variation: Option<VariationConfig>) -> PlayingTimes {
        PlayingTimes::new(BitRate(700_000), variation, Seed(3).stream("rate"))
    }

    #[test]
    fn a_constant_rate_does_not_drift_in_a_year() {
        let year = Duration::from_secs(365 * 86_400);
        let bytes = 87_500 * 365 * 86_400;
        assert_eq!(playout(None).at(bytes), year);
        assert_eq!(
            playout(None).at(bytes + 1),
            year + Duration::from_nanos(11_429)
        );
    }

    #[test]
    fn a_variable_rate_keeps_its_mean() {
        for (distribution, share) in [
            (Variability::Uniform, 0.8),
            (Variability::LogNormal, 0.3),
            (Variability::LogNormal, 1.0),
        ] {
            let mut playout = playout(variation(distribution, share));
            let seconds = 20_000;
            let ratio = playout.at(87_500 * seconds).as_secs_f64() / seconds as f64;
            assert!(
                (ratio - 1.0).abs() < 0.02,
                "{distribution:?} {share}: {ratio}"
            );
        }
    }

    #[test]
    fn a_variable_rate_deviates_as_said() {
        for (distribution, share, expected) in [
            (Variability::Uniform, 0.6, 0.6 / 3f64.sqrt()),
            (Variability::LogNormal, 0.5, 0.5),
        ] {
            let playout = playout(variation(distribution, share));
            let mut segment = playout.segment.unwrap();
            let draws: Vec<f64> = (0..50_000)
                .map(|_| segment.draw(playout.rate) as f64 / 43_750.0)
                .collect();
            let squares: f64 = draws.iter().map(|draw| (draw - 1.0).powi(2)).sum();
            let deviation = (squares / draws.len() as f64).sqrt();
            assert!(
                (deviation / expected - 1.0).abs() < 0.05,
                "{distribution:?}: {deviation}"
            );
        }
    }

    proptest! {
        #[test]
        fn bytes_are_played_in_order_and_whoever_asks(
            mut bytes in prop::collection::vec(0u64..2_000_000, 1..40), share in 0.1f64..1.0,
        ) {
            bytes.sort_unstable();
            let mut one = playout(variation(Variability::Uniform, share));
            let answers: Vec<Duration> = bytes.iter().map(|&byte| one.at(byte)).collect();
            prop_assert!(answers.is_sorted());
            for (&byte, &answer) in bytes.iter().zip(&answers) {
                prop_assert_eq!(playout(variation(Variability::Uniform, share)).at(byte), answer);
            }
        }
    }
}
