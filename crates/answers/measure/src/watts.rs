//! Power of the drives over time.
//!
//! The energy is exact at every sample, so the mean power between two samples is exact too. Memory
//! is fixed: if a run has too many samples, every other sample is dropped and the period doubles.

use fullstroke_contract::MemberStatistics;
use fullstroke_units::{Duration, Time};
use serde::Serialize;

/// Largest number of samples.
const SAMPLES: usize = 512;
/// First period between two samples.
const FIRST_PERIOD: Duration = Duration::from_millis(100);
const FEMTO: f64 = 1e-15;

/// Observer of a run.
#[derive(Clone, Debug)]
pub struct WattsOverTime {
    period: Duration,
    next: Time,
    /// Energy of each drive since the begin, in joules, at each multiple of the period. NaN for
    /// drives without power figures.
    samples: Vec<Vec<f64>>,
}

/// Mean power over spans of equal length. The last span may be shorter.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WattsReport {
    /// Length of a span in seconds.
    pub span_s: f64,
    /// End of the last span in seconds.
    pub end_s: f64,
    /// Power of all drives with power figures together, span by span.
    pub all_w: Vec<f64>,
    /// Power of each of these drives.
    pub drives: Vec<DriveWatts>,
}

/// One drive over time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DriveWatts {
    /// Name of the member.
    pub name: String,
    /// Mean power, span by span.
    pub mean_w: Vec<f64>,
}

impl Default for WattsOverTime {
    fn default() -> WattsOverTime {
        WattsOverTime {
            period: FIRST_PERIOD,
            next: Time::ZERO + FIRST_PERIOD,
            samples: Vec::new(),
        }
    }
}

impl WattsOverTime {
    /// Returns the time of the next sample.
    #[inline]
    pub fn next(&self) -> Time {
        self.next
    }

    /// Adds the counters of the drives at `at`, the time of the due sample.
    pub fn sample(&mut self, at: Time, drives: &[MemberStatistics]) {
        self.samples.push(joules(drives));
        if self.samples.len() == SAMPLES {
            // Drops the samples at odd multiples of the period.
            let mut odd = true;
            self.samples.retain(|_| {
                odd = !odd;
                odd
            });
            self.period = self.period + self.period;
        }
        self.next = at + self.period;
    }

    /// Returns the report at the `end` of the run, with the final counters `drives`.
    pub fn report(
        mut self,
        end: Time,
        drives: &[MemberStatistics],
        names: &[String],
    ) -> WattsReport {
        let span_s = self.period.as_secs_f64();
        let end_s = end.since(Time::ZERO).as_secs_f64();
        self.samples.truncate((end_s / span_s) as usize);
        let full = self.samples.len();
        let rest_s = end_s - full as f64 * span_s;
        // The last span is shorter than the period, unless the run ends with a sample.
        let last = (rest_s > 0.0).then(|| joules(drives));
        self.samples.extend(last);
        let of = |drive: usize| -> Vec<f64> {
            let before = |at: usize| {
                if at == 0 {
                    0.0
                } else {
                    self.samples[at - 1][drive]
                }
            };
            let seconds = |at: usize| if at < full { span_s } else { rest_s };
            (0..self.samples.len())
                .map(|at| (self.samples[at][drive] - before(at)) / seconds(at))
                .collect()
        };
        let known = names
            .iter()
            .enumerate()
            .filter(|(drive, _)| drives[*drive].power.is_some());
        let drives: Vec<DriveWatts> = known
            .map(|(drive, name)| DriveWatts {
                name: name.clone(),
                mean_w: of(drive),
            })
            .collect();
        let sum = |at: usize| drives.iter().map(|drive| drive.mean_w[at]).sum();
        WattsReport {
            span_s,
            end_s,
            all_w: (0..self.samples.len()).map(sum).collect(),
            drives,
        }
    }
}

fn joules(drives: &[MemberStatistics]) -> Vec<f64> {
    let of = |drive: &MemberStatistics| {
        drive
            .power
            .map_or(f64::NAN, |power| power.energy_fj() as f64 * FEMTO)
    };
    drives.iter().map(of).collect()
}
