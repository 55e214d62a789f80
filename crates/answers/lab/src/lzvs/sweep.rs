//! Duration of reads at each address (Lloyd, section 4.3 and figure 4.5).

use crate::lzvs::{LzvsError, TimedReads};
use fullstroke_contract::Extent;
use fullstroke_units::{Lbn, Sectors};
use serde::Serialize;

/// One address of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SweepPoint {
    /// Position of the read, in percent of the addresses.
    pub percent: f64,
    /// Address of the read.
    pub start: Lbn,
    /// Mean duration of all trials at this address, in ms.
    pub mean_ms: f64,
    /// Shortest duration, in ms.
    pub min_ms: f64,
    /// Longest duration, in ms.
    pub max_ms: f64,
}

/// Completion times across a target.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sweep {
    /// Length of each read, in sectors.
    pub read_sectors: Sectors,
    /// Number of reads at each address.
    pub trials: u32,
    /// Points, by address.
    pub points: Vec<SweepPoint>,
    /// Mean of the points' means, in ms.
    pub mean_ms: f64,
    /// Sample standard deviation of the points' means, in ms.
    pub std_dev_ms: f64,
    /// Largest of the points' means, in ms.
    pub max_ms: f64,
}

/// Reads `sectors` at each of `points` addresses, `trials` times. The addresses are equally far
/// apart and begin at 0. Each address is read once before the first is read again, so that no
/// buffer still holds its data.
///
/// # Errors
/// A read fails, or the reads are larger than the target.
pub fn sweep(
    target: &mut dyn TimedReads,
    sectors: Sectors,
    points: u32,
    trials: u32,
) -> Result<Sweep, LzvsError> {
    let capacity = target.capacity();
    if sectors > capacity || sectors == Sectors::ZERO || points == 0 || trials == 0 {
        return Err(LzvsError::Sweep { sectors, capacity });
    }
    let start_of = |point: u32| {
        let share = u128::from(capacity.0) * u128::from(point) / u128::from(points);
        (share as u64).min(capacity.0 - sectors.0)
    };
    let mut times_ms = vec![Vec::with_capacity(trials as usize); points as usize];
    for _ in 0..trials {
        for (point, times_ms) in (0..points).zip(&mut times_ms) {
            times_ms.push(
                target
                    .read(Extent::new(start_of(point), sectors.0))?
                    .as_millis_f64(),
            );
        }
    }
    let point = |(point, times_ms): (u32, &Vec<f64>)| SweepPoint {
        percent: 100.0 * f64::from(point) / f64::from(points),
        start: Lbn(start_of(point)),
        mean_ms: mean(times_ms),
        min_ms: times_ms.iter().copied().fold(f64::INFINITY, f64::min),
        max_ms: times_ms.iter().copied().fold(0.0, f64::max),
    };
    let points: Vec<SweepPoint> = (0..points).zip(&times_ms).map(point).collect();
    let means: Vec<f64> = points.iter().map(|point| point.mean_ms).collect();
    let max_ms = means.iter().copied().fold(0.0, f64::max);
    let (mean_ms, std_dev_ms) = (mean(&means), std_dev(&means));
    Ok(Sweep {
        read_sectors: sectors,
        trials,
        points,
        mean_ms,
        std_dev_ms,
        max_ms,
    })
}

/// Returns the arithmetic mean; 0 for no values.
pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Returns the standard deviation of a sample; 0 for fewer than two values.
pub(crate) fn std_dev(values: &[f64]) -> f64 {
    let mean = mean(values);
    let squares: f64 = values
        .iter()
        .map(|value| (value - mean) * (value - mean))
        .sum();
    // The sample deviation; one value has a deviation of 0.
    (squares / values.len().saturating_sub(1).max(1) as f64).sqrt()
}
