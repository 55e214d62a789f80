//! Writes a drive file from the results.
//!
//! Timing gives the order of tracks, their lengths, their angles and the seek time over a number of
//! tracks. Timing does not give the surface of a track. So the file has one surface, and each track
//! is a cylinder of this surface. Boundaries, rates, skews and seeks are as measured. `[sources]`
//! names the unknown values. With several arms the file describes the first arm.

use crate::extract::angles::Rotation;
use crate::extract::arms::share;
use crate::extract::pattern::FoundTrack;
use crate::extract::seek::{LEAST_PAIRS, Seeks, is_by_least};
use crate::extract::timing::{Stretch, Timed};
use crate::extract::zero_latency::ZeroLatencyResult;
use fullstroke_drive::{
    DriveConfig, RunConfig, SectorsPerTrack, SeekConfig, ZeroLatency, ZoneConfig,
};
use fullstroke_units::Lbn;
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// All results from which a drive file is made.
#[derive(Clone, Debug)]
pub struct Mechanics {
    /// The revolution.
    pub rotation: Rotation,
    /// The tracks.
    pub timed: Timed,
    /// Number of arms with equal parts of the addresses; `None` if not measurable.
    pub arms: Option<u32>,
    /// The seek curve of one arm.
    pub seeks: Seeks,
    /// The result for zero latency.
    pub latency: ZeroLatencyResult,
}

impl Mechanics {
    /// Returns the drive file with title `title`, made from the results for `device`.
    pub fn drive_file(&self, title: &str, device: &str) -> DriveConfig {
        let mut cylinder = 0;
        let first_arm = before(&self.timed.stretches, self.share());
        let zones = first_arm
            .iter()
            .map(|stretch| zone(stretch, &mut cylinder))
            .collect();
        let mut curve = self.seeks.curve.clone();
        // Nanoseconds: the digits beyond are noise of the division.
        curve.iter_mut().for_each(|(_, ms)| *ms = round(*ms, 1e6));
        DriveConfig {
            title: title.to_owned(),
            capacity_sectors: self.timed.table.capacity(),
            physical_sector: 512,
            logical_sector: 512,
            rpm: round(self.rotation.rpm(), 1e3),
            surfaces: 1,
            actuators: self.arms.unwrap_or(1),
            order: Default::default(),
            band_tracks: 32,
            band_start: Default::default(),
            zones,
            seek: SeekConfig::Points {
                points: curve,
                // A curve by tracks crossed includes head switches, which make short distances
                // longer than some farther ones.
                falls_allowed: true,
            },
            // The file has one surface, so no head ever switches. Only reads were timed, so writes
            // settle in no time.
            head_switch_ms: 0.0,
            write_settle_ms: 0.0,
            turn_round_ms: 0.0,
            zero_latency: ZeroLatency::All(self.latency.zero_latency.unwrap_or(false)),
            command_overhead_ms: round(self.seeks.overhead_ms, 1e6),
            queued_overhead_ms: 0.0,
            electronics: Default::default(),
            buffer: None,
            queue: Default::default(),
            power: None,
            spin_down: None,
            faults: None,
            freeblock: None,
            limits: None,
            shingled: None,
            zoned: None,
            flash: None,
            published: Default::default(),
            validated: None,
            sources: self.sources(device),
        }
    }

    /// Returns the number of addresses of one arm.
    fn share(&self) -> u64 {
        share(self.timed.table.capacity().0, self.arms)
    }

    /// Returns the number of boundaries that the first arm has and a further arm lacks, or the
    /// reverse. Addresses count from the beginning of each arm's part.
    fn unlike_the_first_arms(&self) -> u64 {
        let (table, share) = (&self.timed.table, self.share());
        let of = |arm: u64| {
            let begin = arm * share;
            let within = table
                .tracks_from(Lbn(begin))
                .take_while(move |track| track.start.0 < begin + share);
            within.map(move |track| track.start.0 - begin)
        };
        (1..u64::from(self.arms.unwrap_or(1)))
            .map(|arm| unlike(of(0), of(arm)))
            .sum()
    }

    fn arms_source(&self) -> String {
        match self.arms {
            None => "not told: a far read delays the next one elsewhere too little".to_owned(),
            Some(1) => {
                "measured: a read among the last addresses delays the next one among the first"
                    .to_owned()
            }
            Some(arms) => format!(
                "measured: a read in one of {arms} equal parts of the addresses does not delay one in another; \
                 described is the arm of the first, and {} boundaries are not where the others have them",
                self.unlike_the_first_arms()
            ),
        }
    }

    fn sources(&self, device: &str) -> BTreeMap<String, String> {
        let Rotation {
            noise, evictions, ..
        } = self.rotation;
        let Timed {
            predicted,
            searched,
            skipped,
            ..
        } = self.timed;
        let buffer = if evictions == 0 {
            "not seen: no read was answered without the platter".to_owned()
        } else {
            format!(
                "there is one, which {evictions} reads elsewhere empty of a sector; not described here"
            )
        };
        let entries = [
            ("capacity_sectors", format!("the size of {device}")),
            (
                "rpm",
                format!(
                    "measured on {device} by rotational timing; noise {:.4} % of a revolution",
                    noise * 100.0
                ),
            ),
            (
                "zones",
                format!(
                    "measured by rotational timing: {predicted} tracks confirmed where predicted, {searched} \
                     searched, {skipped} skipped as repeating; holes among those skipped are not seen"
                ),
            ),
            (
                "surfaces",
                "not known: timing tells the order of tracks and not their surfaces; described as one, each \
                 track a cylinder"
                    .to_owned(),
            ),
            ("actuators", self.arms_source()),
            ("seek", self.seek_source()),
            (
                "command_overhead_ms",
                "measured: from the end of one command to when the next is met on the same track".to_owned(),
            ),
            ("zero_latency", self.zero_latency_source()),
            ("head_switch_ms", "in the seek curve".to_owned()),
            ("write_settle_ms", "not known: nothing was written".to_owned()),
            ("buffer", buffer),
            ("queue", "not measured; default of drive files".to_owned()),
        ];
        entries
            .into_iter()
            .map(|(key, source)| (key.to_owned(), source))
            .collect()
    }

    fn seek_source(&self) -> String {
        let pairs = if is_by_least(&self.rotation) {
            format!(
                "the shortest of {LEAST_PAIRS} pairs each, for the buffer answers what was read before"
            )
        } else {
            "medians of three pairs each".to_owned()
        };
        format!("measured by tracks crossed, head switches included; {pairs}")
    }

    fn zero_latency_source(&self) -> String {
        let ZeroLatencyResult {
            zero_latency,
            agreement,
            whole_tracks,
            ..
        } = self.latency;
        let seen = format!(
            "whole tracks take {:.3} ms, standard deviation {:.3}, and end at angles that agree by {agreement:.2}",
            whole_tracks.mean_ms, whole_tracks.deviation_ms
        );
        match zero_latency {
            Some(_) => format!("measured: {seen}"),
            None => format!(
                "not known, assumed: {seen}; the bus is slower than the platter, which hides it"
            ),
        }
    }
}

/// Returns the number of values in only one of two ascending sequences.
fn unlike(one: impl Iterator<Item = u64>, other: impl Iterator<Item = u64>) -> u64 {
    let (mut one, mut other) = (one.peekable(), other.peekable());
    let mut count = 0;
    loop {
        let order = match (one.peek(), other.peek()) {
            (Some(one), Some(other)) => one.cmp(other),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => return count,
        };
        count += u64::from(order != Ordering::Equal);
        if order != Ordering::Greater {
            one.next();
        }
        if order != Ordering::Less {
            other.next();
        }
    }
}

/// Returns the part of `stretches` before the address `end`, at which a track begins.
fn before(stretches: &[Stretch], end: u64) -> Vec<Stretch> {
    let mut before = Vec::new();
    for stretch in stretches.iter().take_while(|stretch| stretch.first < end) {
        let period = stretch
            .period
            .iter()
            .map(|track| track.sectors)
            .sum::<u64>()
            .max(1);
        // Whole periods first; the end of the arm's part may lie within one.
        let times = stretch.times.min((end - stretch.first) / period);
        if times > 0 {
            before.push(Stretch {
                times,
                ..stretch.clone()
            });
        }
        if times == stretch.times {
            continue;
        }
        let mut first = stretch.first + times * period;
        let turn: f64 = stretch.period.iter().map(|track| track.step).sum();
        let mut angle = stretch.angle + turn * times as f64;
        for track in &stretch.period {
            if first >= end {
                break;
            }
            before.push(Stretch {
                first,
                angle,
                period: vec![*track],
                times: 1,
            });
            first += track.sectors;
            angle += track.step;
        }
    }
    before
}

/// Returns repeating tracks as a zone of one surface, from `cylinder` on.
fn zone(stretch: &Stretch, cylinder: &mut u32) -> ZoneConfig {
    let tracks = &stretch.period;
    let cylinders = (tracks.len() as u64 * stretch.times) as u32;
    let first = *cylinder;
    *cylinder += cylinders;
    let reference = tracks[0];
    let mut zone = ZoneConfig::plain(first, first + cylinders - 1, reference.sectors as u32);
    let uniform = tracks
        .iter()
        .all(|track| track.sectors == reference.sectors && near(track.step, reference.step));
    let spares = spares(&reference);
    if uniform && spares > 0 {
        zone.sectors_per_track = SectorsPerTrack::Same((reference.sectors + spares) as u32);
        zone.spares_per_track = spares as u32;
    }
    let sectors = (reference.sectors + if uniform { spares } else { 0 }) as f64;
    // The angle is that at which the first sector ends, where a read was noticed. The zone's offset
    // is that of its beginning.
    let begins = (stretch.angle - reference.width).rem_euclid(1.0);
    zone.offset = round(begins * sectors, 1e6);
    zone.track_skew = round(skew(&reference) * sectors, 1e6);
    zone.cylinder_skew = zone.track_skew;
    // Zones with one length and one skew keep the short form, which people can read.
    if !uniform {
        zone.runs = runs(tracks);
    }
    zone
}

fn runs(tracks: &[FoundTrack]) -> Vec<RunConfig> {
    let mut turned = 0.0;
    let run = |(index, track): (usize, &FoundTrack)| {
        let run = RunConfig {
            surface: 0,
            first_cylinder: index as u32,
            tracks: 1,
            direction: Default::default(),
            sectors_per_track: Some(track.sectors as u32),
            offset_revolutions: Some(round(turned, 1e9)),
            step_revolutions: None,
        };
        turned = (turned + track.step) % 1.0;
        run
    };
    tracks.iter().enumerate().map(run).collect()
}

/// Returns the angle from the beginning of `track` to the beginning of the next track.
fn skew(track: &FoundTrack) -> f64 {
    track.step.rem_euclid(1.0)
}

/// Returns the number of sectors of a track without an address.
fn spares(track: &FoundTrack) -> u64 {
    let all = (1.0 / track.width.max(1e-9)).round() as u64;
    let spares = all.saturating_sub(track.sectors);
    // More than a quarter of the track is no spare space: the width of a sector was measured badly
    // then.
    if spares * 4 <= track.sectors {
        spares
    } else {
        0
    }
}

fn near(one: f64, other: f64) -> bool {
    // A hundredth of a revolution is above the noise of an angle, and below the skew of a head
    // switch.
    crate::extract::angles::nearest(one - other).abs() < 0.01
}

fn round(value: f64, parts: f64) -> f64 {
    (value * parts).round() / parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_one_of_two_sequences_only_is_counted() {
        let count = |one: &[u64], other: &[u64]| unlike(one.iter().copied(), other.iter().copied());
        assert_eq!(count(&[0, 5, 9], &[0, 5, 9]), 0);
        assert_eq!(count(&[0, 5, 7, 9], &[0, 5, 9]), 1);
        assert_eq!(count(&[0, 5], &[0, 6, 9]), 3);
        assert_eq!(count(&[], &[1]), 1);
    }
}
