//! Predictions of equations for the load and the array of a run, for comparison with the run. Their
//! names in studies begin with `predicted.`. The model is that of `fullstroke predict`
//! (docs/prediction.md).

use fullstroke_lab::{LabError, arrivals};
use fullstroke_measure::{Report, WindowsReport};
use fullstroke_predict::{
    DiskParameters, Fingerprint, FingerprintBuilder, Gears, Powers, PredictArrival, Predicted,
    Reserve, Shifted, WINDOW_S, geared, seek_delays, striped,
};
use fullstroke_stack::{Stack, StackError};
use fullstroke_units::Duration;
use fullstroke_volume::{Layout, ShiftRules};
use serde::Serialize;
use thiserror::Error;

/// Length of the windows in the published validation.
pub(crate) const WINDOW: Duration = Duration::from_millis((1000.0 * WINDOW_S) as u64);

/// Predictions beside the numbers of a run's report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct PredictedReport {
    /// Mean latency of requests, in ms.
    latency_ms: f64,
    /// Share of the time in which the array works; above 1 if the array cannot keep up.
    utilisation: f64,
    /// Mean power of all drives, in watts; NaN without power figures.
    mean_w: f64,
    /// Number of gear shifts; 0 for layouts without gears.
    gear_shifts: usize,
    /// Share of the windows in the low gear.
    low_gear_share: f64,
    /// Largest distance in seconds between a shift of the model and the same-numbered shift of the
    /// run. NaN if the numbers of shifts differ.
    shifts_apart_s: f64,
    /// Values by windows of 100 ms, as the report's `windows`.
    windows: WindowsReport,
}

/// There are no equations for an array of this layout.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("equations know one drive, raid0, paraid and e-paraid, and the layout is {layout}")]
pub struct NoEquations {
    layout: String,
}

/// An array in the terms of the equations.
pub(crate) struct Equations {
    disk: DiskParameters,
    powers: Option<Powers>,
    drives: u32,
    gears: Option<Gears>,
}

impl Equations {
    /// Returns the equations of a stack's array.
    ///
    /// # Errors
    /// Errors of the stack. The inner error says why there are no equations for the array.
    pub(crate) fn of(stack: &Stack) -> Result<Result<Equations, NoEquations>, StackError> {
        let mut shape = stack.shape()?;
        let drives = stack.drives();
        let gears = match shape.layout_mut() {
            None => None,
            Some(layout) => match layout.name() {
                "raid0" => None,
                "paraid" => gears(layout, Reserve::Far),
                "e-paraid" => gears(layout, Reserve::Beside),
                other => {
                    return Ok(Err(NoEquations {
                        layout: other.to_owned(),
                    }));
                }
            },
        };
        let first = drives[0];
        let (disk, powers) = (DiskParameters::of(first), Powers::of(first));
        Ok(Ok(Equations {
            disk,
            powers,
            drives: drives.len() as u32,
            gears,
        }))
    }

    /// Returns the predictions for the stack's load.
    ///
    /// # Errors
    /// If the arrivals cannot be known.
    pub(crate) fn answer(&self, stack: &Stack, ran: &Report) -> Result<PredictedReport, LabError> {
        let fingerprint = fingerprint(stack)?;
        let (predicted, shifted) = self.predict(&fingerprint);
        let elapsed_s = fingerprint.windows as f64 * fingerprint.window_s;
        let latencies = predicted
            .window_latencies_s
            .iter()
            .map(|latency| 1000.0 * latency)
            .collect();
        Ok(PredictedReport {
            latency_ms: 1000.0 * predicted.latency_s,
            utilisation: predicted.utilisation,
            mean_w: predicted
                .energy_j
                .map_or(f64::NAN, |joules| joules / elapsed_s),
            gear_shifts: shifted.shifts_s.len(),
            low_gear_share: shifted.low_share,
            shifts_apart_s: farthest(&shifted.shifts_s, &ran.array.gear_shifts_s),
            windows: WindowsReport::new(WINDOW, fingerprint.windows, latencies),
        })
    }

    fn predict(&self, fingerprint: &Fingerprint) -> (Predicted, Shifted) {
        let (disk, powers) = (&self.disk, self.powers.as_ref());
        let seeks = seek_delays(fingerprint, self.drives, disk);
        let with_gears = self
            .gears
            .and_then(|gears| geared(fingerprint, &seeks, &gears, disk, powers));
        match with_gears {
            Some(mut shifted) => (std::mem::take(&mut shifted.predicted), shifted),
            None => {
                let plain = striped(
                    fingerprint,
                    &seeks,
                    self.drives,
                    disk,
                    powers,
                    f64::INFINITY,
                );
                (plain, Shifted::default())
            }
        }
    }
}

impl PredictedReport {
    /// Returns the predictions without requests: all names, with NaN as numbers.
    pub(crate) fn none() -> PredictedReport {
        PredictedReport {
            latency_ms: f64::NAN,
            utilisation: f64::NAN,
            mean_w: f64::NAN,
            gear_shifts: 0,
            low_gear_share: f64::NAN,
            shifts_apart_s: f64::NAN,
            windows: WindowsReport::default(),
        }
    }
}

/// Returns the gears of an intact array: units, thresholds and the averaging time of the
/// utilisation.
fn gears(layout: &mut dyn Layout, reserve: Reserve) -> Option<Gears> {
    let unit = layout.geometry().stripe()?.unit.0;
    let disks = layout.members() as u32;
    let gears = layout.gears()?;
    let ShiftRules {
        down, up, window, ..
    } = gears.rules();
    let sleeping = gears.transient().len() as u32;
    let averaged = (window.as_nanos() / WINDOW.as_nanos()).max(1) as u32;
    Some(Gears {
        disks,
        sleeping,
        unit,
        reserve,
        averaged,
        down,
        up,
    })
}

fn fingerprint(stack: &Stack) -> Result<Fingerprint, LabError> {
    let mut gatherer = FingerprintBuilder::new(WINDOW_S).expect("it is a length");
    arrivals(stack, &mut |now, request| {
        gatherer.add(PredictArrival::of(now, request))
    })?;
    Ok(gatherer.finish())
}

fn farthest(one: &[f64], other: &[f64]) -> f64 {
    let apart = one
        .iter()
        .zip(other)
        .map(|(one, other)| (one - other).abs())
        // The largest distance decides: one bad window is a bad prediction.
        .fold(0.0, f64::max);
    if one.len() == other.len() {
        apart
    } else {
        f64::NAN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shifts_are_held_against_those_of_their_own_number() {
        assert_eq!(farthest(&[60.0, 130.0], &[61.0, 90.0]), 40.0);
        assert_eq!(farthest(&[], &[]), 0.0);
        assert!(farthest(&[60.0], &[]).is_nan());
    }
}
