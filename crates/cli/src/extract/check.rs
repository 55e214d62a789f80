//! Comparison of the result with the truth of a simulated drive.

use super::checked::{CacheTruth, CheckedResult, DepthTruth, ZonesChecked};
use super::found::ExtractionResult;
use crate::output::CommandFailure;
use fullstroke_calibrate::extract::{compare, seek_curve, seek_error, skew_error, zone_error};
use fullstroke_drive::DriveModel;
use fullstroke_tracks::Boundaries;

/// Compares `found` with `model`.
pub(super) fn check(
    found: &ExtractionResult,
    model: &DriveModel,
) -> Result<CheckedResult, CommandFailure> {
    let config = model.config();
    let mut checked = CheckedResult {
        arms: found.arms.map(|arms| (arms, config.actuators)),
        rpm: found.rotation.map(|rotation| (rotation.rpm(), config.rpm)),
        zero_latency: found
            .latency
            .map(|latency| (latency.zero_latency, config.zero_latency.reads())),
        skew_rms_revolutions: found
            .skews_of
            .as_ref()
            .map(|timed| skew_error(timed, model).0),
        cache: found
            .cache
            .as_ref()
            .map(|_| CacheTruth(config.buffer.clone())),
        ..CheckedResult::default()
    };
    // A table without `tracks` was given with `--table`, and equals the truth by `check_equal`
    // already.
    if let (Some(table), Some(_)) = (&found.table, &found.tracks) {
        let truth = Boundaries::of(&*model.tracks(), "the drive").map_err(CommandFailure::input)?;
        checked.boundaries = Some(compare(table, &truth));
    }
    if !found.zones.is_empty() {
        let (starts_off_sectors_mean, starts_off_sectors_most, truth) =
            zone_error(&found.zones, model);
        let found = found.zones.len() as u64;
        checked.zones = Some(ZonesChecked {
            found,
            truth,
            starts_off_sectors_mean,
            starts_off_sectors_most,
        });
    }
    if let (Some(seeks), Some(table)) = (&found.seeks, &found.table) {
        checked.seeks = seek_curve(seeks, table, model);
        checked.seek_rms_ms = Some(seek_error(seeks, table, model).0);
    }
    checked.depth = found.depth.map(|depth| {
        let queue = &config.queue;
        (
            depth.commands,
            DepthTruth {
                commands: queue.depth,
                discipline: queue.discipline.clone(),
            },
        )
    });
    Ok(checked)
}
