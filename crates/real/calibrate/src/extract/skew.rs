//! Skews: the angle between the last sector of a track and the first sector of the next.

use crate::extract::pattern::FoundTrack;
use crate::extract::timing::Timed;
use serde::Serialize;

/// Difference in revolutions below which two skews count as one.
const SAME: f64 = 0.004;

/// Least fraction of a zone's tracks with a skew. Slips and the ends of zones make rarer skews.
const PART_MIN: f64 = 0.002;

/// One skew of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Skew {
    /// Skew beyond the end of the last sector, in revolutions.
    pub revolutions: f64,
    /// Skew as a time in ms.
    pub ms: f64,
    /// Fraction of the zone's tracks with this skew.
    pub part: f64,
}

/// The skews of a zone: at head switches, at movements of the arm, and between bands.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ZoneSkews {
    /// First address of the zone.
    pub first: u64,
    /// Skews, the most frequent first.
    pub skews: Vec<Skew>,
}

/// Returns the angle in revolutions between the end of a track's last sector and the beginning of
/// the next track.
pub(crate) fn of_track(track: &FoundTrack) -> f64 {
    (track.step - track.sectors as f64 * track.width).rem_euclid(1.0)
}

/// Returns the skews of each zone.
pub fn skews(timed: &Timed, revolution_ns: f64) -> Vec<ZoneSkews> {
    let zones = timed.zones();
    let mut of_zones: Vec<Vec<(f64, u64)>> = vec![Vec::new(); zones.len().max(1)];
    for stretch in &timed.stretches {
        let zone = zones
            .partition_point(|zone| zone.first <= stretch.first)
            .max(1)
            - 1;
        of_zones[zone].extend(
            stretch
                .period
                .iter()
                .map(|track| (of_track(track), stretch.times)),
        );
    }
    let begins = |index: usize| zones.get(index).map_or(0, |zone| zone.first);
    of_zones
        .into_iter()
        .enumerate()
        .map(|(index, tracks)| ZoneSkews {
            first: begins(index),
            skews: alike(tracks, revolution_ns),
        })
        .collect()
}

/// Merges about equal skews into their mean.
fn alike(mut tracks: Vec<(f64, u64)>, revolution_ns: f64) -> Vec<Skew> {
    tracks.sort_by(|a, b| a.0.total_cmp(&b.0));
    let all: u64 = tracks.iter().map(|(_, times)| times).sum();
    let groups = tracks.chunk_by(|a, b| b.0 - a.0 < SAME).map(|group| {
        let times: u64 = group.iter().map(|(_, times)| times).sum();
        let sum: f64 = group.iter().map(|(skew, times)| skew * *times as f64).sum();
        let revolutions = sum / times.max(1) as f64;
        assert!(times <= all, "a group of {times} tracks of {all}");
        let part = times as f64 / all.max(1) as f64;
        Skew {
            revolutions,
            ms: revolutions * revolution_ns / 1e6,
            part,
        }
    });
    let mut skews: Vec<Skew> = groups.filter(|skew| skew.part >= PART_MIN).collect();
    skews.sort_by(|a, b| b.part.total_cmp(&a.part));
    skews
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skews_that_are_about_equal_are_one() {
        let tracks = vec![(0.201, 10), (0.1, 80), (0.199, 10), (0.7, 0)];
        let skews = alike(tracks, 1e7);
        assert_eq!(skews.len(), 2);
        assert_eq!((skews[0].part, skews[1].part), (0.8, 0.2));
        assert!((skews[1].revolutions - 0.2).abs() < 1e-12 && (skews[1].ms - 2.0).abs() < 1e-9);
    }
}
