//! A quantity over time, in memory of fixed size.

use fullstroke_units::{Duration, Time};

/// Maximum number of samples.
const SAMPLES: usize = 256;
/// Distance of the first samples.
const FIRST_STEP: Duration = Duration::from_millis(10);

/// Samples at equal distances. The distance doubles when there are too many samples.
#[derive(Clone, Debug)]
pub(crate) struct SampleSeries {
    step: Duration,
    next: Time,
    samples: Vec<(Time, f64)>,
}

impl Default for SampleSeries {
    fn default() -> SampleSeries {
        SampleSeries {
            step: FIRST_STEP,
            next: Time::ZERO,
            samples: Vec::new(),
        }
    }
}

impl SampleSeries {
    /// Takes a sample, if one is due.
    pub fn sample(&mut self, now: Time, value: impl FnOnce() -> f64) {
        if now < self.next {
            return;
        }
        if self.samples.len() == SAMPLES {
            self.step = self.step + self.step;
            let mut at = 0;
            // Every other sample stays, so that the samples still have equal distances.
            self.samples.retain(|_| {
                at += 1;
                at % 2 == 1
            });
        }
        self.samples.push((now, value()));
        self.next = now + self.step;
    }

    pub fn samples(&self) -> &[(Time, f64)] {
        &self.samples
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_long_it_goes_on_samples_are_few_and_spread_evenly() {
        let mut series = SampleSeries::default();
        for ms in 0..100_000 {
            series.sample(Time::ZERO + Duration::from_millis(ms), || ms as f64);
        }
        let samples = series.samples();
        assert!(
            (SAMPLES / 2..=SAMPLES).contains(&samples.len()),
            "{}",
            samples.len()
        );
        let steps: Vec<u64> = samples
            .windows(2)
            .map(|pair| pair[1].0.since(pair[0].0).as_nanos())
            .collect();
        assert!(
            steps.iter().max() <= Some(&(2 * steps.iter().min().unwrap())),
            "{steps:?}"
        );
    }
}
