//! What the drives drew over time.
//!
//! Energy is exact at every instant, so that the mean between two of them is, too. Memory is fixed:
//! where a run outlasts the samples, every other one is left out from then on.

use fullstroke_contract::MemberStatistics;
use fullstroke_units::{Duration, Time};
use serde::Serialize;

/// Samples that are kept at most.
const SAMPLES: usize = 512;
/// The time between two at first.
const FIRST_PERIOD: Duration = Duration::from_millis(100);
const FEMTO: f64 = 1e-15;

/// Follows a run.
#[derive(Clone, Debug)]
pub struct WattsOverTime {
    period: Duration,
    next: Time,
    /// At each multiple of the period, what each drive had drawn since the beginning, in joules; NaN
    /// of those whose files do not say.
    samples: Vec<Vec<f64>>,
}

/// Mean watts over spans of equal length, the last of which may be shorter.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WattsReport {
    /// The length of a span.
    pub span_s: f64,
    /// The end of the last one.
    pub end_s: f64,
    /// All drives together that say what they draw, span by span.
    pub all_w: Vec<f64>,
    /// Each of these drives.
    pub drives: Vec<DriveWatts>,
}

/// One drive over time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DriveWatts {
    /// As members are named.
    pub name: String,
    /// Span by span.
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
    /// When the next sample is due.
    #[inline]
    pub fn next(&self) -> Time {
        self.next
    }

    /// What the drives have counted until `at`, the instant that was due.
    pub fn sample(&mut self, at: Time, drives: &[MemberStatistics]) {
        self.samples.push(joules(drives));
        if self.samples.len() == SAMPLES {
            // Those at odd multiples of the period go.
            let mut odd = true;
            self.samples.retain(|_| {
                odd = !odd;
                odd
            });
            self.period = self.period + self.period;
        }
        self.next = at + self.period;
    }

    /// What it came to at the `end` of the run, when `drives` had counted this.
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
