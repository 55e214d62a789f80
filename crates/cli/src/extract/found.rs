//! Output of an extraction.

use super::checked::CheckedResult;
use fullstroke_calibrate::extract::{
    Depth, Effort, FoundZone, MeasuredBuffer, Mechanics, Offset, Rotation, Seeks, Timed, Verified,
    ZeroLatencyResult, ZoneSkews,
};
use fullstroke_tracks::Boundaries;
use fullstroke_units::Lbn;
use serde::Serialize;
use std::fmt::{self, Write as _};

/// Result of an extraction. Only the members of the chosen kind are present.
#[derive(Debug, Default, Serialize)]
pub(super) struct ExtractionResult {
    pub(super) effort: Effort,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rotation: Option<Rotation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tracks: Option<TracksFound>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) zones: Vec<FoundZone>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) skews: Vec<ZoneSkews>,
    /// Number of arms. Each arm has an equal part of the addresses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) arms: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) seeks: Option<Seeks>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) latency: Option<ZeroLatencyResult>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cache: Option<MeasuredBuffer>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) depth: Option<Depth>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) verified: Option<Verified>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) first_track_ends: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) check: Option<CheckedResult>,
    #[serde(skip)]
    pub(super) table: Option<Boundaries>,
    #[serde(skip)]
    pub(super) skews_of: Option<Timed>,
    #[serde(skip)]
    pub(super) mechanics: Option<Mechanics>,
}

/// Summary of the tracks.
#[derive(Debug, Serialize)]
pub(super) struct TracksFound {
    tracks: u64,
    table_bytes: usize,
    first_tracks: Vec<u64>,
    /// Method that found the tracks.
    how: String,
}

impl ExtractionResult {
    /// Sets the results of the timing method.
    pub(super) fn timed(&mut self, timed: &Timed) {
        let how = format!(
            "{} confirmed where predicted, {:.2} reads each; {} searched; {} skipped; {} reads answered by the \
             buffer and repeated",
            timed.predicted,
            // Without predicted tracks there are no reads of them.
            timed.predicted_reads as f64 / timed.predicted.max(1) as f64,
            timed.searched,
            timed.skipped,
            timed.hits
        );
        self.rotation = Some(timed.rotation);
        self.zones = timed.zones();
        self.tabled(&timed.table, how);
    }

    /// Sets the table of boundaries, with the method that found it.
    pub(super) fn tabled(&mut self, table: &Boundaries, how: String) {
        let first_tracks = table
            .tracks_from(Lbn(0))
            .take(8)
            .map(|track| track.sectors.0)
            .collect();
        self.tracks = Some(TracksFound {
            tracks: table.len(),
            table_bytes: table.bytes(),
            first_tracks,
            how,
        });
        self.table = Some(table.clone());
    }
}

impl fmt::Display for ExtractionResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        self.lines(&mut text)?;
        f.write_str(text.trim_end())
    }
}

fn yes(answer: bool) -> &'static str {
    if answer { "yes" } else { "no" }
}

impl ExtractionResult {
    fn lines(&self, text: &mut String) -> fmt::Result {
        effort_line(self.effort, text)?;
        if let Some(rotation) = &self.rotation {
            rotation_lines(rotation, text)?;
        }
        if let Some(TracksFound {
            tracks,
            first_tracks,
            how,
            ..
        }) = &self.tracks
        {
            writeln!(
                text,
                "tracks: {tracks}, the first of {first_tracks:?} sectors: {how}"
            )?;
        }
        for zone in &self.zones {
            zone_line(zone, text)?;
        }
        for zone in &self.skews {
            skew_line(zone, text)?;
        }
        if let Some(arms) = self.arms.filter(|&arms| arms > 1) {
            writeln!(
                text,
                "arms: {arms}, each for an equal part of the addresses; below is the first"
            )?;
        }
        if let Some(seeks) = &self.seeks {
            writeln!(text, "command overhead: {:.3} ms", seeks.overhead_ms)?;
            // A checked run prints each distance beside the truth, so the curve alone would repeat
            // the same numbers.
            if self
                .check
                .as_ref()
                .is_none_or(|check| check.seeks.is_empty())
            {
                seek_lines(seeks, text)?;
            }
        }
        if let Some(latency) = &self.latency {
            latency_lines(latency, text)?;
        }
        if let Some(cache) = &self.cache {
            cache_lines(cache, text)?;
        }
        if let Some(depth) = &self.depth {
            depth_lines(depth, text)?;
        }
        if let Some(verified) = &self.verified {
            verified_lines(verified, text)?;
        }
        if let Some(end) = self.first_track_ends {
            writeln!(text, "the first track ends before {}", Lbn(end))?;
        }
        match &self.check {
            Some(check) => check.lines(text),
            None => Ok(()),
        }
    }
}

fn effort_line(effort: Effort, text: &mut String) -> fmt::Result {
    let Effort {
        reads,
        writes,
        translations,
        time_ns,
    } = effort;
    let written = if writes > 0 {
        format!("{writes} writes, ")
    } else {
        String::new()
    };
    writeln!(
        text,
        "{reads} reads, {written}{translations} translations, {:.1} s",
        time_ns as f64 / 1e9
    )
}

fn zone_line(zone: &FoundZone, text: &mut String) -> fmt::Result {
    let FoundZone {
        first,
        sectors_per_track,
        lengths,
    } = zone;
    let shorter = match lengths.as_slice() {
        [shortest, _, ..] => format!(", {} lengths from {shortest} on", lengths.len()),
        _ => String::new(),
    };
    writeln!(
        text,
        "  zone from {}: {sectors_per_track:.1} sectors a track{shorter}",
        Lbn(*first)
    )
}

fn rotation_lines(rotation: &Rotation, text: &mut String) -> fmt::Result {
    let noise = rotation.noise * 100.0;
    writeln!(
        text,
        "rotation: {:.3} rpm, noise {noise:.4} % of a revolution",
        rotation.rpm()
    )?;
    if rotation.late {
        writeln!(
            text,
            "reads are often noticed late: an angle is the earliest on which two of several agree"
        )?;
    }
    if rotation.evictions > 0 {
        writeln!(
            text,
            "buffer: forgets a sector after {} reads elsewhere",
            rotation.evictions
        )?;
    }
    Ok(())
}

fn skew_line(zone: &ZoneSkews, text: &mut String) -> fmt::Result {
    let skew = |skew: &fullstroke_calibrate::extract::Skew| {
        format!(
            "{:.3} ms ({:.4} revolutions) behind {:.1} %",
            skew.ms,
            skew.revolutions,
            skew.part * 100.0
        )
    };
    let skews: Vec<String> = zone.skews.iter().map(skew).collect();
    writeln!(
        text,
        "  zone from {}: skew {}",
        Lbn(zone.first),
        skews.join(", ")
    )
}

fn seek_lines(seeks: &Seeks, text: &mut String) -> fmt::Result {
    writeln!(text, "seek, by tracks crossed:")?;
    seeks
        .curve
        .iter()
        .try_for_each(|(tracks, ms)| writeln!(text, "  {tracks:>9}: {ms:.3} ms"))
}

fn latency_lines(latency: &ZeroLatencyResult, text: &mut String) -> fmt::Result {
    let ZeroLatencyResult {
        zero_latency,
        agreement,
        whole_tracks,
        soon_part,
        ..
    } = latency;
    writeln!(
        text,
        "zero latency: {}: whole tracks take {:.3} ms, deviation {:.3}, and end at angles that agree by \
         {agreement:.2}; of two neighbours in reverse order the second comes at once in {:.0} %",
        zero_latency.map_or("unknown, because the bus is too slow", yes),
        whole_tracks.mean_ms,
        whole_tracks.deviation_ms,
        soon_part * 100.0
    )
}

fn cache_lines(cache: &MeasuredBuffer, text: &mut String) -> fmt::Result {
    if cache.answers {
        writeln!(
            text,
            "buffer: {} segments by reads elsewhere that push a sector out",
            cache.segments
        )?;
        writeln!(
            text,
            "  keeps delivered data: {}",
            yes(cache.keeps_delivered)
        )?;
        writeln!(
            text,
            "  holds data before a read: {}",
            yes(cache.whole_tracks)
        )?;
        if let Some(sectors) = cache.segment_sectors {
            writeln!(text, "  sectors of a segment: {sectors}")?;
        }
        match cache.read_ahead {
            Some([least, median, most]) => writeln!(
                text,
                "  reads ahead, if left alone: {median} sectors in the middle, {least} nearly always, {most} seldom"
            )?,
            None => writeln!(text, "  reads ahead: no")?,
        }
    } else {
        writeln!(text, "buffer: none that answers reads")?;
    }
    match cache.write_back {
        Some(back) => writeln!(text, "  write-back: {}", yes(back)),
        None => writeln!(
            text,
            "  write-back: not tried, because the test writes; --writes allows it"
        ),
    }
}

fn depth_lines(depth: &Depth, text: &mut String) -> fmt::Result {
    let Depth {
        commands,
        orders,
        alone_per_s,
        together_per_s,
    } = depth;
    if *orders {
        writeln!(text, "queue: chooses among {commands} commands")?;
    } else {
        writeln!(
            text,
            "queue: serves commands in order, however many it holds"
        )?;
    }
    writeln!(
        text,
        "  reads at random: {alone_per_s:.0} a second one by one, {together_per_s:.0} together"
    )
}

fn verified_lines(verified: &Verified, text: &mut String) -> fmt::Result {
    let answer = if verified.confirmed {
        "confirmed"
    } else {
        "not confirmed"
    };
    writeln!(
        text,
        "boundaries: {answer}: 64 sectors across one {:.2} ms, within a track {:.2} ms, difference {:.2} +- {:.2} ms",
        verified.crossing.mean_ms,
        verified.within.mean_ms,
        verified.difference_ms,
        verified.error_ms
    )?;
    writeln!(
        text,
        "mean time by the begin of the read, in sectors from the nearest boundary:"
    )?;
    let longest = verified
        .offsets
        .iter()
        .map(|offset| offset.sample.mean_ms)
        // Above 0, because the bars divide by it.
        .fold(1e-9, f64::max);
    verified
        .offsets
        .iter()
        .try_for_each(|Offset { from, sample }| {
            // 40 signs leave the line below 80 columns.
            let bar = "#".repeat((40.0 * sample.mean_ms / longest).round() as usize);
            let to = from + verified.bin_sectors - 1;
            writeln!(
                text,
                "  {from:>6} to {to:>6}: {:>6.2} ms of {:>5} {bar}",
                sample.mean_ms, sample.count
            )
        })
}
