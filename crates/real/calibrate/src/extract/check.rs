//! Compares the result of an extraction with the known truth.

use crate::extract::angles::nearest;
use crate::extract::seek::{Seek, Seeks};
use crate::extract::skew::of_track;
use crate::extract::timing::Timed;
use crate::extract::zones::FoundZone;
use fullstroke_contract::TrackTable;
use fullstroke_drive::{DriveModel, HeadPosition};
use fullstroke_tracks::Boundaries;
use fullstroke_units::Lbn;
use serde::Serialize;
use std::collections::BTreeMap;

/// Accuracy of extracted track boundaries.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BoundaryAccuracy {
    /// Number of true boundaries.
    pub boundaries: u64,
    /// Number of wrong claimed boundaries.
    pub wrong: u64,
    /// Number of unclaimed true boundaries.
    pub missed: u64,
    /// Number of missed boundaries outside tracks with holes. A track with a hole is unlike both of
    /// its neighbours.
    pub missed_outside_holes: u64,
    /// Fraction of true ones among the claimed boundaries.
    pub precision: f64,
    /// Fraction of claimed ones among the true boundaries.
    pub recall: f64,
}

/// Compares a table of tracks with the truth.
pub fn compare(found: &Boundaries, truth: &Boundaries) -> BoundaryAccuracy {
    let wrong = found
        .tracks_from(Lbn(0))
        .filter(|track| !truth.is_boundary(track.start))
        .count() as u64;
    let (mut missed, mut missed_outside_holes) = (0, 0);
    let mut before: [u64; 2] = [0; 2];
    for track in truth.tracks_from(Lbn(0)) {
        if !found.is_boundary(track.start) {
            missed += 1;
            // A track with a hole is shorter than the tracks around it.
            missed_outside_holes +=
                u64::from(track.sectors.0 == before[0] && before[0] == before[1]);
        }
        before = [track.sectors.0, before[0]];
    }
    let right = (found.len() - wrong) as f64;
    BoundaryAccuracy {
        boundaries: truth.len(),
        wrong,
        missed,
        missed_outside_holes,
        precision: right / found.len() as f64,
        recall: (truth.len() - missed) as f64 / truth.len() as f64,
    }
}

/// Returns the error of the first addresses of zones in sectors, mean and maximum, and the number
/// of true zones. Neighbouring zones with tracks of one length count as one zone.
pub fn zone_error(found: &[FoundZone], model: &DriveModel) -> (f64, u64, u64) {
    let geometry = model.mechanics().geometry();
    // Each arm has all zones.
    let share = TrackTable::capacity(&**geometry).0;
    let arms = model.config().capacity_sectors.0 / share.max(1);
    let mut truth: Vec<(u64, f64)> = Vec::new();
    for (arm, zone) in (0..arms).flat_map(|arm| geometry.zones().map(move |zone| (arm, zone))) {
        if truth
            .last()
            .is_none_or(|last| last.1 != zone.sectors_per_track)
        {
            truth.push((arm * share + zone.first_lbn.0, zone.sectors_per_track));
        }
    }
    let nearest = |first: u64| {
        found
            .iter()
            .map(|zone| zone.first.abs_diff(first))
            .min()
            .unwrap_or(u64::MAX)
    };
    let off: Vec<u64> = truth.iter().map(|&(first, _)| nearest(first)).collect();
    let mean = off.iter().map(|&off| off as f64).sum::<f64>() / off.len().max(1) as f64;
    (
        mean,
        off.iter().copied().max().unwrap_or(0),
        truth.len() as u64,
    )
}

/// One distance of the seek curve, measured and true.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SeekTruth {
    /// Number of tracks crossed.
    pub tracks: u64,
    /// Mean of the measured times, in ms.
    pub found_ms: f64,
    /// Mean of the model's times over the same pairs, in ms.
    pub truth_ms: f64,
}

/// Returns the measured seeks and the model's seeks, by tracks crossed.
pub fn seek_curve(seeks: &Seeks, table: &Boundaries, model: &DriveModel) -> Vec<SeekTruth> {
    let mut of_distance: BTreeMap<u64, Vec<(f64, f64)>> = BTreeMap::new();
    for (seek, truth) in with_truth(seeks, table, model) {
        of_distance
            .entry(seek.from.abs_diff(seek.to))
            .or_default()
            .push((seek.ms, truth));
    }
    let mean = |times: &[(f64, f64)], of: fn(&(f64, f64)) -> f64| {
        times.iter().map(of).sum::<f64>() / times.len() as f64
    };
    let row = |(tracks, times): (u64, Vec<(f64, f64)>)| SeekTruth {
        tracks,
        found_ms: mean(&times, |times| times.0),
        truth_ms: mean(&times, |times| times.1),
    };
    of_distance.into_iter().map(row).collect()
}

/// Returns each measured seek with the model's time in ms. Seeks between two arms are left out.
fn with_truth(seeks: &Seeks, table: &Boundaries, model: &DriveModel) -> Vec<(Seek, f64)> {
    let geometry = model.mechanics().geometry();
    let share = TrackTable::capacity(&**geometry).0;
    let truth = |seek: &Seek| {
        let (from, to) = (table.nth(seek.from)?.start.0, table.nth(seek.to)?.start.0);
        if from / share != to / share {
            return None;
        }
        let (from, to) = (
            geometry.locate(Lbn(from % share)),
            geometry.locate(Lbn(to % share)),
        );
        let head = HeadPosition::default().reading(&from);
        Some((
            *seek,
            model
                .mechanics()
                .seek(head, to.cylinder, to.surface, false)
                .as_millis_f64(),
        ))
    };
    seeks.seeks.iter().filter_map(truth).collect()
}

/// Returns the root mean square of the differences between measured seeks and the model's seeks, in
/// ms, and the model's mean.
pub fn seek_error(seeks: &Seeks, table: &Boundaries, model: &DriveModel) -> (f64, f64) {
    let pairs = with_truth(seeks, table, model);
    let count = pairs.len().max(1) as f64;
    let squares: f64 = pairs
        .iter()
        .map(|(seek, truth)| (seek.ms - truth).powi(2))
        .sum();
    let sum: f64 = pairs.iter().map(|(_, truth)| truth).sum();
    ((squares / count).sqrt(), sum / count)
}

/// Returns the root mean square of the differences between measured skews and the model's skews, in
/// revolutions, and the number of compared skews. The compared tracks are those at the beginning of
/// each stretch.
pub fn skew_error(timed: &Timed, model: &DriveModel) -> (f64, u64) {
    let geometry = model.mechanics().geometry();
    let share = TrackTable::capacity(&**geometry).0;
    let capacity = timed.table.capacity().0;
    let (mut squares, mut count) = (0.0, 0);
    for stretch in &timed.stretches {
        let mut end = stretch.first;
        for track in &stretch.period {
            end += track.sectors;
            if end >= capacity || end % share == 0 {
                continue;
            }
            let (last, next) = (
                geometry.locate(Lbn(end % share - 1)),
                geometry.locate(Lbn(end % share)),
            );
            let truth = (next.angle - last.angle - last.sector_angle).as_revolutions();
            squares += nearest(of_track(track) - truth).powi(2);
            count += 1;
        }
    }
    ((squares / (count.max(1) as f64)).sqrt(), count)
}
