//! The result beside the truth of a simulated drive.

use fullstroke_calibrate::extract::{BoundaryAccuracy, SeekTruth};
use fullstroke_drive::BufferConfig;
use serde::Serialize;
use std::fmt::{self, Write as _};

/// Result beside the truth. Each member is a pair (found, truth) or a difference.
#[derive(Debug, Default, Serialize)]
pub(super) struct CheckedResult {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rpm: Option<(f64, f64)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) boundaries: Option<BoundaryAccuracy>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) zones: Option<ZonesChecked>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) skew_rms_revolutions: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) arms: Option<(u32, u32)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) seek_rms_ms: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) seeks: Vec<SeekTruth>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) zero_latency: Option<(Option<bool>, bool)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cache: Option<CacheTruth>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) depth: Option<(u64, DepthTruth)>,
}

#[derive(Debug, Serialize)]
pub(super) struct ZonesChecked {
    pub(super) found: u64,
    pub(super) truth: u64,
    pub(super) starts_off_sectors_mean: f64,
    pub(super) starts_off_sectors_most: u64,
}

/// Configuration of the drive's buffer. `None` for a drive without one.
#[derive(Debug, Serialize)]
pub(super) struct CacheTruth(pub(super) Option<BufferConfig>);

/// Configuration of the drive's queue.
#[derive(Debug, Serialize)]
pub(super) struct DepthTruth {
    pub(super) commands: u32,
    pub(super) discipline: String,
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
        // Nearly all drives have one arm, and a line about one arm would say nothing.
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
