//! Requests that fork to several members and end with the last part.

use super::moments::Moments;

/// Mean of a part of a request, and the variance between the parts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PartMoments {
    /// Mean of a part: its wait and its service.
    pub mean: f64,
    /// Variance of the differences between the parts.
    pub variance: f64,
}

impl PartMoments {
    /// Makes the value from a wait and a service. The share `alike` of the service's variance is
    /// common to all parts.
    ///
    /// The waits of the parts are not independent, because the parts arrive together. Under heavy
    /// traffic, the common share of the variance of two queues is the share caused by the arrivals.
    /// It is `1 / (1 + c²)` if both queues see all arrivals (the Brownian limit, Varma and Makowski
    /// 1994). It is larger if the services are alike, and smaller if only a part of the arrivals is
    /// `shared`.
    pub fn new(service: Moments, alike: f64, wait: Moments, shared: f64) -> PartMoments {
        let scv = service.scv();
        let common = shared * (1.0 + alike * scv) / (1.0 + scv);
        let variance = (1.0 - alike) * service.variance() + (1.0 - common) * wait.variance();
        PartMoments {
            mean: service.mean + wait.mean,
            // Rounding, or shares above 1, may leave the variance slightly below 0.
            variance: variance.max(0.0),
        }
    }

    /// Returns the mean of the last of `of` parts.
    ///
    /// For independent parts, this mean is above the mean of a part by a multiple of the standard
    /// deviation. The multiple is a normal distribution's if the parts vary little. It is an
    /// exponential distribution's if the standard deviation equals the mean. In between it is
    /// interpolated by the coefficient of variation. With exponential service the result is within
    /// 6 % of Flatto and Hahn (1984) and of Nelson and Tantawi (1988), whose formulas hold only for
    /// exponential service.
    pub fn last_s(&self, of: usize) -> f64 {
        // One member has nothing to wait for.
        if of < 2 || self.mean <= 0.0 {
            return self.mean;
        }
        let deviation = self.variance.sqrt();
        // Beyond a variation of 1 the exponential form is the last one known.
        let variation = (deviation / self.mean).min(1.0);
        self.mean + deviation * ((1.0 - variation) * normal(of) + variation * (harmonic(of) - 1.0))
    }
}

fn harmonic(number: usize) -> f64 {
    (1..=number).map(|each| 1.0 / each as f64).sum()
}

/// Returns the mean of the largest of `of` standard normal numbers: exact values up to 8, then the
/// approximation of Blom (1958) with α = 0.375, within 0.7 % from 9 to 32.
fn normal(of: usize) -> f64 {
    const EXACT: [f64; 9] = [
        0.0, 0.0, 0.56419, 0.84628, 1.02938, 1.16296, 1.26721, 1.35218, 1.42360,
    ];
    EXACT
        .get(of)
        .copied()
        .unwrap_or_else(|| quantile((of as f64 - 0.375) / (of as f64 + 0.25)))
}

/// Returns the quantile of the standard normal distribution, for probabilities above one half
/// (Abramowitz and Stegun 26.2.23: within 4.5e-4).
fn quantile(probability: f64) -> f64 {
    let t = (-2.0 * (1.0 - probability).ln()).sqrt();
    let above = 2.515517 + t * (0.802853 + t * 0.010328);
    t - above / (1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_units::{Duration, Seed};

    /// Formula for exponential service with mean 1.
    fn nelson_tantawi(of: usize, busy: f64) -> f64 {
        let (all, two) = (harmonic(of), 1.5);
        let of_two = (12.0 - busy) / 8.0 / (1.0 - busy);
        (all / two + 4.0 * busy / 11.0 * (1.0 - all / two)) * of_two
    }

    #[test]
    fn exponential_service_joins_as_nelson_and_tantawi_say() {
        for busy in [0.0, 0.1, 0.3, 0.5, 0.7, 0.9] {
            // M/M/1: a wait is 0, or exponential with the mean of a response.
            let response = 1.0 / (1.0 - busy);
            let wait = Moments {
                mean: busy * response,
                square: 2.0 * busy * response * response,
            };
            for of in [2, 4, 8, 16] {
                let found = PartMoments::new(Moments::varied(1.0, 1.0), 0.0, wait, 1.0).last_s(of);
                let expected = nelson_tantawi(of, busy);
                assert!(
                    (found / expected - 1.0).abs() < 0.06,
                    "{of} {busy}: {found} {expected}"
                );
            }
        }
        assert_eq!(
            PartMoments::new(Moments::varied(2.0, 4.0), 0.0, Moments::of(1.0), 1.0).last_s(1),
            3.0
        );
        // Parts that do the same at the same time end at the same time.
        assert_eq!(
            PartMoments::new(
                Moments::varied(2.0, 4.0),
                1.0,
                Moments::varied(1.0, 1.0),
                1.0
            )
            .last_s(2),
            3.0
        );
    }

    #[test]
    fn the_largest_of_normal_numbers_is_where_a_simulation_has_it() {
        let mut random = Seed(2).stream("join");
        for of in [2, 5, 8, 12, 24] {
            let trials = 40_000;
            let largest = |_| {
                (0..of)
                    .map(|_| random.normal())
                    .fold(f64::NEG_INFINITY, f64::max)
            };
            let mean = (0..trials).map(largest).sum::<f64>() / f64::from(trials);
            assert!(
                (normal(of) - mean).abs() < 0.02,
                "{of}: {} {mean}",
                normal(of)
            );
        }
    }

    #[test]
    fn a_simulated_fork_join_with_service_that_varies_little_agrees() {
        let (servers, rate, service) = (4usize, 60.0, 0.01);
        let mut random = Seed(9).stream("fork");
        let mut free = vec![0.0; servers];
        let (mut now, mut sum, mut wait) = (0.0, 0.0, Moments::default());
        let requests = 100_000;
        for _ in 0..requests {
            now += random.exponential(Duration::from_secs(1)).as_secs_f64() / rate;
            let mut last: f64 = 0.0;
            for server in &mut free {
                let waits: f64 = (*server - now).max(0.0);
                *server = now + waits + service * (0.5 + random.unit());
                (wait.mean, wait.square) = (wait.mean + waits, wait.square + waits * waits);
                last = last.max(*server - now);
            }
            sum += last;
        }
        let all = f64::from(requests) * servers as f64;
        let wait = Moments {
            mean: wait.mean / all,
            square: wait.square / all,
        };
        let found = PartMoments::new(
            Moments::varied(service, service * service / 12.0),
            0.0,
            wait,
            1.0,
        )
        .last_s(servers);
        let simulated = sum / f64::from(requests);
        assert!(
            (found / simulated - 1.0).abs() < 0.05,
            "{found} {simulated}"
        );
    }
}
