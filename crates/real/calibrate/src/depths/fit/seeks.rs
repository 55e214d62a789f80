//! The seek curve, fitted to mean and spread of random reads at depth 1.

use super::Fit;
use crate::depths::DepthsError;
use fullstroke_drive::{SeekConfig, SeekTable, settled_curve};

/// Standard deviation of a seek over the factor of the root, for random seeks on a drive with
/// zones: sqrt(1/3 - (8/15)^2) without zones is 0.22.
const ROOT_DEVIATION: f64 = 0.217;
/// Mean of the root of the distance of random seeks.
const ROOT_MEAN: f64 = 8.0 / 15.0;
/// Distance of the 10th from the 90th percentile over the standard deviation, of a seek and a
/// rotational latency together.
const MIDDLE_DEVIATIONS: f64 = 2.6;
/// Least share of the average seek that a short seek costs.
const FLOOR_SHARE_MIN: f64 = 0.05;

impl Fit {
    /// Fits the seek curve to mean and spread at depth 1.
    pub(super) fn seeks(&mut self) -> Result<(), DepthsError> {
        let Some(row) = self.first().cloned() else {
            let source = self.config.sources.get("seek").cloned().unwrap_or_default();
            self.note("seek", false, source);
            return Ok(());
        };
        let turn_ms = 60_000.0 / self.config.rpm;
        // A random read at depth 1 takes overhead, seek and half a revolution in the mean.
        let average = row.mean_ms - turn_ms / 2.0 - self.config.command_overhead_ms;
        if average < 0.5 {
            return Err(DepthsError::Grid(format!(
                "randread at depth 1: a mean of {:.2} ms leaves no time to seek beside half a revolution of {:.2} ms; \
                 expected times of a whole disk without its cache ({})",
                row.mean_ms,
                turn_ms / 2.0,
                row.source
            )));
        }
        let deviation = match (row.middle_ms, row.deviation_ms) {
            (Some((low, high)), _) => Some((high - low) / MIDDLE_DEVIATIONS),
            (None, deviation) => deviation,
        };
        let seek_deviation =
            // The rotational latency is uniform over a revolution, so its variance is a twelfth of
            // the square.
            deviation.map(|ms| (ms * ms - turn_ms * turn_ms / 12.0).max(0.25).sqrt());
        let most = (1.0 - FLOOR_SHARE_MIN) * average / ROOT_MEAN;
        // Without a spread, a short seek costs a fifth of the average, as on measured disks.
        let root = seek_deviation
            .map_or(0.8 * average / ROOT_MEAN, |ms| ms / ROOT_DEVIATION)
            .min(most);
        let mut floor = average - root * ROOT_MEAN;
        for _ in 0..3 {
            self.config.seek = self.curve(floor, root)?;
            let found = self.times(&self.config, false, 1)?;
            floor = (floor + row.mean_ms - found.mean_ms).max(0.0);
        }
        let spread = if seek_deviation.is_some() {
            "mean and spread"
        } else {
            "mean alone; the shape as on measured disks (assumed)"
        };
        let source = format!(
            "fitted: {spread} of random reads at depth 1, {}; {floor:.2} ms + {root:.1} ms x sqrt(share of the tracks). \
             assumed: one track in 0.6 of the skew between neighbours",
            row.source
        );
        self.note("seek", true, source);
        Ok(())
    }

    fn curve(&self, floor: f64, root: f64) -> Result<SeekConfig, DepthsError> {
        let cylinders = self
            .config
            .zones
            .last()
            .map_or(2, |zone| zone.last_cylinder + 1);
        let table = SeekTable::new(&self.config.seek, cylinders).map_err(DepthsError::Model)?;
        let neighbour = table.time(1).as_millis_f64();
        Ok(settled_curve(neighbour, floor, root, cylinders))
    }
}
