//! Comparison of the result with the truth of a simulated drive.

use super::found::ExtractionResult;
use crate::output::CommandFailure;
use fullstroke_calibrate::extract::{
    BoundaryAccuracy, SeekTruth, compare, seek_curve, seek_error, skew_error, zone_error,
};
use fullstroke_drive::{BufferConfig, DriveModel};
use fullstroke_tracks::Boundaries;
use serde::Serialize;
use std::fmt::{self, Write as _};

/// Result beside the truth. Each member is a pair (found, truth) or a difference.
#[derive(Debug, Default, Serialize)]
pub(super) struct CheckedResult {
    #[serde(skip_serializing_if = "Option::is_none")]
    rpm: Option<(f64, f64)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    boundaries: Option<BoundaryAccuracy>,
    #[serde(skip_serializing_if = "Option::is_none")]
    zones: Option<ZonesChecked>,
    #[serde(skip_serializing_if = "Option::is_none")]
    skew_rms_revolutions: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arms: Option<(u32, u32)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seek_rms_ms: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) seeks: Vec<SeekTruth>,
    #[serde(skip_serializing_if = "Option::is_none")]
    zero_latency: Option<(Option<bool>, bool)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache: Option<CacheTruth>,
    #[serde(skip_serializing_if = "Option::is_none")]
    depth: Option<(u64, DepthTruth)>,
}

#[derive(Debug, Serialize)]
struct ZonesChecked {
    found: u64,
    truth: u64,
    starts_off_sectors_mean: f64,
    starts_off_sectors_most: u64,
}

/// Configuration of the drive's buffer. `None` for a drive without one.
#[derive(Debug, Serialize)]
struct CacheTruth(Option<BufferConfig>);

/// Configuration of the drive's queue.
#[derive(Debug, Serialize)]
struct DepthTruth {
    commands: u32,
    discipline: String,
}

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

impl CheckedResult {
    /// Appends one or more lines for each compared property.
    pub(super) fn lines(&self, text: &mut String) -> fmt::Result {
        if let Some((found, truth)) = self.rpm {
            writeln!(text, "check: {found:.3} rpm, truth {truth:.3}")?;
        }
        if let Some(near) = self.boundaries {
            nearness_line(near, text)?;
        }
        if let Some(zones) = &self.zones {
            let ZonesChecked {
                found,
                truth,
                starts_off_sectors_mean: mean,
                starts_off_sectors_most: most,
            } = zones;
            writeln!(
                text,
                "check: {found} zones, truth {truth}; their starts are {mean:.0} sectors off on average, {most} at most"
            )?;
        }
        if let Some(rms) = self.skew_rms_revolutions {
            writeln!(
                text,
                "check: skews are {rms:.5} revolutions off (root mean square)"
            )?;
        }
        if let Some((found, truth)) = self.arms.filter(|&(found, truth)| found > 1 || truth > 1) {
            writeln!(text, "check: {found} arms, truth {truth}")?;
        }
        self.seek_lines(text)?;
        if let Some((found, truth)) = self.zero_latency {
            let found = found.map_or("not told".to_owned(), |found| found.to_string());
            writeln!(text, "check: zero latency of reads: {found}, truth {truth}")?;
        }
        if let Some(CacheTruth(truth)) = &self.cache {
            cache_line(truth.as_ref(), text)?;
        }
        if let Some((
            found,
            DepthTruth {
                commands,
                discipline,
            },
        )) = &self.depth
        {
            writeln!(
                text,
                "check: {found} commands, truth {commands}, {discipline}"
            )?;
        }
        Ok(())
    }

    /// Appends a line for each measured seek distance.
    fn seek_lines(&self, text: &mut String) -> fmt::Result {
        if !self.seeks.is_empty() {
            writeln!(text, "check: seek by tracks crossed, found and in truth:")?;
        }
        for SeekTruth {
            tracks,
            found_ms,
            truth_ms,
        } in &self.seeks
        {
            writeln!(
                text,
                "  {tracks:>9}: {found_ms:.3} ms, truth {truth_ms:.3} ms"
            )?;
        }
        if let Some(rms) = self.seek_rms_ms {
            writeln!(text, "check: seeks are {rms:.3} ms off (root mean square)")?;
        }
        Ok(())
    }
}

fn nearness_line(near: BoundaryAccuracy, text: &mut String) -> fmt::Result {
    let BoundaryAccuracy {
        boundaries,
        wrong,
        missed,
        missed_outside_holes,
        precision,
        recall,
    } = near;
    writeln!(
        text,
        "check: precision {precision:.6}, recall {recall:.6}: {wrong} wrong and {missed} missed of \
         {boundaries}, {missed_outside_holes} of them outside holes"
    )
}

fn cache_line(truth: Option<&BufferConfig>, text: &mut String) -> fmt::Result {
    let Some(buffer) = truth else {
        return writeln!(text, "check: the drive has no buffer");
    };
    let BufferConfig {
        segments,
        segment_sectors,
        read_ahead,
        write_back,
        ..
    } = buffer;
    let most = buffer.read_ahead_sectors.map_or(String::new(), |sectors| {
        format!(", {sectors} sectors at most")
    });
    let shared = buffer
        .sectors
        .map_or(String::new(), |sectors| format!(" that share {sectors}"));
    let over = if buffer.read_ahead_over_delivered {
        ", over what was delivered"
    } else {
        ""
    };
    writeln!(
        text,
        "check: in truth {segments} segments of {segment_sectors} sectors{shared}, read-ahead {read_ahead:?}{most}{over}, \
         write-back {write_back}"
    )
}
