//! What equations say of a run's load on a run's array, beside the run itself: numbers of studies that
//! begin with `predicted.`, of the model of `fullstroke predict` (docs/prediction.md).

use fullstroke_lab::{LabError, arrivals};
use fullstroke_measure::{Report, WindowsReport};
use fullstroke_predict::{
    Arrival, Disk, Fingerprint, Gatherer, Gears, Powers, Predicted, Reserve, Shifted, WINDOW_S,
    geared, seek_delays, striped,
};
use fullstroke_stack::{Stack, StackError};
use fullstroke_units::Duration;
use fullstroke_volume::{Layout, ShiftRules};
use serde::Serialize;
use thiserror::Error;

/// The windows of the published validation.
pub(crate) const WINDOW: Duration = Duration::from_millis((1000.0 * WINDOW_S) as u64);

/// Beside the numbers of a run's report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct PredictedReport {
    /// Mean latency of requests.
    latency_ms: f64,
    /// Share of the time in which the array works; above 1 where it cannot keep up.
    utilisation: f64,
    /// Of all drives, where their files say what they draw.
    mean_w: f64,
    /// Of layouts with gears.
    gear_shifts: usize,
    /// The share of the windows in the low gear.
    low_gear_share: f64,
    /// How far the model's shifts lie from the run's, the first from the first and so on, at most; not a number
    /// where there are more of one.
    shifts_apart_s: f64,
    /// By windows of 100 ms, as the report's `windows`.
    windows: WindowsReport,
}

/// There are no equations for an array of this layout.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("equations know one drive, raid0, paraid and e-paraid, and the layout is {layout}")]
pub struct NoEquations {
    layout: String,
}

/// An array as the equations have it.
pub(crate) struct Equations {
    disk: Disk,
    powers: Option<Powers>,
    drives: u32,
    gears: Option<Gears>,
}

impl Equations {
    /// Those of a stack's array.
    ///
    /// # Errors
    /// The stack's. Inside, why there are none for such an array.
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
        let (disk, powers) = (Disk::of(first), Powers::of(first));
        Ok(Ok(Equations {
            disk,
            powers,
            drives: drives.len() as u32,
            gears,
        }))
    }

    /// What they say of the stack's load.
    ///
    /// # Errors
    /// If its arrivals cannot be known.
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
    /// Of a run without requests: the names, and no numbers.
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

/// Its gears, if it is whole: units, thresholds and the time that utilisation is averaged over.
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
    let mut gatherer = Gatherer::new(WINDOW_S).expect("it is a length");
    arrivals(stack, &mut |now, request| {
        gatherer.add(Arrival::of(now, request))
    })?;
    Ok(gatherer.finish())
}

fn farthest(one: &[f64], other: &[f64]) -> f64 {
    let apart = one
        .iter()
        .zip(other)
        .map(|(one, other)| (one - other).abs())
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
