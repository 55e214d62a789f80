//! Distributions with popular and unpopular places.
//!
//! The distributions are those of fio. Zipf and pareto give ranks. Normal gives the mean of twelve
//! uniform places (a deviation of a twelfth of the region), plus a uniform deviation of `percent`.
//! The deviation is halved until the place is inside the region. fio scatters the places over the
//! region with a hash. Here a permutation scatters them, so that no two popular places coincide. A
//! centre moves the most popular place to that point.

use crate::job::{IoDirection, OffsetDistribution};
use crate::permutation::Permutation;
use crate::units::Amount;
use fullstroke_units::Random;
use rand_distr::{Distribution as _, Zipf};

const UNIFORMS: u64 = 12;

/// A random distribution of places.
#[derive(Clone, Debug)]
pub(crate) enum Skew {
    Zipf { ranks: Zipf<f64>, scatter: Scatter },
    Pareto { power: f64, scatter: Scatter },
    Normal { width: f64, scatter: Scatter },
    Zoned { places: u64, zones: Vec<AccessZone> },
}

/// Maps ranks or positions to places.
#[derive(Clone, Debug)]
pub(crate) struct Scatter {
    permutation: Permutation,
    /// Offset added after the permutation, modulo the number of places.
    shift: u64,
}

/// A zone. `percent` is the share of accesses to this zone and all zones before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AccessZone {
    percent: u64,
    first: u64,
    places: u64,
}

impl Skew {
    /// Makes the distribution over `places` places of `alignment` bytes each. Returns `None` for a
    /// uniform distribution.
    pub(crate) fn new(
        distribution: &OffsetDistribution,
        direction: IoDirection,
        places: u64,
        alignment: u64,
        random: &mut Random,
    ) -> Option<Skew> {
        let places = places.max(1);
        let skew = match distribution {
            OffsetDistribution::Uniform => return None,
            OffsetDistribution::Zipf { theta, center } => {
                let ranks = Zipf::new(places as f64, *theta).ok()?;
                Skew::Zipf {
                    ranks,
                    scatter: Scatter::new(places, *center, random),
                }
            }
            OffsetDistribution::Pareto { h, center } => {
                let scatter = Scatter::new(places, *center, random);
                Skew::Pareto {
                    // `pareto_init` in fio's `lib/zipf.c`.
                    power: h.ln() / (1.0 - h).ln(),
                    scatter,
                }
            }
            OffsetDistribution::Normal { percent, center } => {
                let width = (places as f64 * percent / 100.0).min(places as f64 / 2.0);
                Skew::Normal {
                    width,
                    scatter: Scatter::new(places, *center, random),
                }
            }
            OffsetDistribution::Zoned(zones) => Skew::Zoned {
                places,
                zones: lay_out(&zones[direction as usize], places, alignment),
            },
        };
        Some(skew)
    }

    /// Draws a place, from 0.
    pub(crate) fn draw(&self, random: &mut Random) -> u64 {
        match self {
            Skew::Zipf { ranks, scatter } => {
                let rank = ranks.sample(random.generator()) as u64;
                scatter.place(rank.saturating_sub(1))
            }
            Skew::Pareto { power, scatter } => {
                let last = (scatter.permutation.bound() - 1) as f64;
                scatter.place((last * random.unit().powf(*power)) as u64)
            }
            Skew::Normal { width, scatter } => {
                let places = scatter.permutation.bound();
                let mean = (0..UNIFORMS).map(|_| random.unit()).sum::<f64>() / UNIFORMS as f64
                    * places as f64;
                let mut deviation = width * (random.unit() - 0.5);
                while mean + deviation >= places as f64 || (mean + deviation) < 0.0 {
                    deviation /= 2.0;
                }
                scatter.place((mean + deviation) as u64)
            }
            Skew::Zoned { places, zones } => {
                let percent = random.below(100);
                match zones.iter().find(|zone| percent < zone.percent) {
                    Some(zone) => zone.first + random.below(zone.places),
                    None => random.below(*places),
                }
            }
        }
    }
}

impl Scatter {
    fn new(places: u64, center: Option<f64>, random: &mut Random) -> Scatter {
        let permutation = Permutation::new(places, random);
        let shift = center.map_or(0, |center| {
            let wanted = ((places as f64 * center) as u64).min(places - 1);
            // The sum cannot be negative. `place` takes the remainder.
            wanted + places - permutation.place(0)
        });
        Scatter { permutation, shift }
    }

    fn place(&self, number: u64) -> u64 {
        let bound = self.permutation.bound();
        let place = u128::from(self.permutation.place(number.min(bound - 1)));
        ((place + u128::from(self.shift)) % u128::from(bound)) as u64
    }
}

/// Arranges the zones one behind the other. Parts beyond the region are cut off, and an empty zone
/// gets one place.
fn lay_out(zones: &[(u8, Amount)], places: u64, alignment: u64) -> Vec<AccessZone> {
    let (mut percent, mut first) = (0, 0u64);
    let zone = |(access, size): &(u8, Amount)| {
        let wanted = match size {
            Amount::Percent(share) => (u128::from(places) * u128::from(*share) / 100) as u64,
            Amount::Bytes(bytes) => bytes / alignment,
        };
        percent += u64::from(*access);
        let begin = first.min(places - 1);
        let zone = AccessZone {
            percent,
            first: begin,
            places: wanted.clamp(1, places - begin),
        };
        first = first.saturating_add(wanted);
        zone
    };
    zones.iter().map(zone).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar;
    use fullstroke_units::Seed;

    const PLACES: u64 = 1000;
    const DRAWS: u64 = 100_000;

    /// Returns the share of draws of each place.
    fn shares(text: &str) -> Vec<f64> {
        let distribution = grammar::distribution(text, 1024).unwrap();
        let mut random = Seed(5).stream("test");
        let skew = Skew::new(&distribution, IoDirection::Read, PLACES, 4096, &mut random).unwrap();
        let mut counts = vec![0u64; PLACES as usize];
        (0..DRAWS).for_each(|_| counts[skew.draw(&mut random) as usize] += 1);
        counts
            .into_iter()
            .map(|count| count as f64 / DRAWS as f64)
            .collect()
    }

    fn by_popularity(text: &str) -> Vec<f64> {
        let mut shares = shares(text);
        shares.sort_by(|a, b| b.total_cmp(a));
        shares
    }

    #[test]
    fn zipf_ranks_fall_with_the_power_theta() {
        // The most popular place has 1 / zeta(1.2, 1000) of the draws. fio 3.33 drew the first two
        // with 0.236 and 0.104.
        let zeta: f64 = (1..=PLACES).map(|rank| (rank as f64).powf(-1.2)).sum();
        let ranked = by_popularity("zipf:1.2");
        assert!((ranked[0] - 1.0 / zeta).abs() < 0.005, "{}", ranked[0]);
        assert!(
            (ranked[1] - 2f64.powf(-1.2) / zeta).abs() < 0.005,
            "{}",
            ranked[1]
        );
    }

    #[test]
    fn pareto_has_the_share_of_its_definition() {
        // P(place 0) is the u with 999 u^power < 1; fio 3.33 drew place 0 with 0.388.
        let power = 0.2f64.ln() / 0.8f64.ln();
        let ranked = by_popularity("pareto:0.2");
        assert!(
            (ranked[0] - (1.0f64 / 999.0).powf(1.0 / power)).abs() < 0.01,
            "{}",
            ranked[0]
        );
        assert!((ranked[0] - 0.388).abs() < 0.015);
    }

    #[test]
    fn normal_deviates_as_fio_does() {
        // Sum of squares of a normal density: 1 / (2 sigma sqrt(pi)).
        for (percent, sigma) in [("0", 83.3), ("10", 88.2), ("50", 166.7)] {
            let squares: f64 = shares(&format!("normal:{percent}"))
                .iter()
                .map(|share| share * share)
                .sum();
            let obtained = 1.0 / (2.0 * squares * std::f64::consts::PI.sqrt());
            assert!(
                (obtained / sigma - 1.0).abs() < 0.1,
                "{percent} %: {obtained}"
            );
        }
    }

    #[test]
    fn a_centre_holds_the_most_popular_place() {
        for text in ["zipf:1.2:0.25", "pareto:0.2:0.25"] {
            let shares = shares(text);
            let most = shares.iter().copied().fold(0.0, f64::max);
            assert_eq!(shares[250], most, "{text}");
        }
    }

    #[test]
    fn zones_get_their_accesses() {
        let shares = shares("zoned:60/10:30/20:8/30:2/40");
        let sum = |from: usize, to: usize| shares[from..to].iter().sum::<f64>();
        for (from, to, expected) in [
            (0, 100, 0.6),
            (100, 300, 0.3),
            (300, 600, 0.08),
            (600, 1000, 0.02),
        ] {
            assert!((sum(from, to) - expected).abs() < 0.01, "{from}");
        }
        let absolute = self::shares("zoned_abs:50/400k:50/2000k");
        assert!((absolute[..100].iter().sum::<f64>() - 0.5).abs() < 0.01);
        assert_eq!(absolute[600..].iter().sum::<f64>(), 0.0);
    }
}
