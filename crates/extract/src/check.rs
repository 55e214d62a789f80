//! How near an extraction came to the truth, where that is known.

use crate::seek::Seeks;
use crate::timing::FoundZone;
use fullstroke_contract::TrackTable;
use fullstroke_drive::{Head, Model};
use fullstroke_tracks::Boundaries;
use fullstroke_units::Lbn;
use serde::Serialize;

/// How near boundaries came.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Nearness {
    /// Boundaries of the truth.
    pub boundaries: u64,
    /// Claimed ones that are none.
    pub wrong: u64,
    /// Those that were not claimed.
    pub missed: u64,
    /// Of the missed, those that neither begin nor end a track unlike both of its
    /// neighbours: such tracks have holes.
    pub missed_outside_holes: u64,
    /// Part of the claimed that are boundaries.
    pub precision: f64,
    /// Part of the boundaries that were claimed.
    pub recall: f64,
}

/// Holds a table against the truth.
pub fn compare(found: &Boundaries, truth: &Boundaries) -> Nearness {
    let wrong = found.tracks_from(Lbn(0)).filter(|track| !truth.is_boundary(track.start)).count() as u64;
    let (mut missed, mut missed_outside_holes) = (0, 0);
    let mut before: [u64; 2] = [0; 2];
    for track in truth.tracks_from(Lbn(0)) {
        if !found.is_boundary(track.start) {
            missed += 1;
            // A track with a hole is shorter than those around it.
            missed_outside_holes += u64::from(track.sectors.0 == before[0] && before[0] == before[1]);
        }
        before = [track.sectors.0, before[0]];
    }
    let right = (found.len() - wrong) as f64;
    Nearness {
        boundaries: truth.len(),
        wrong,
        missed,
        missed_outside_holes,
        precision: right / found.len() as f64,
        recall: (truth.len() - missed) as f64 / truth.len() as f64,
    }
}

/// By how many sectors the beginnings of zones are off, on average and at most, and
/// how many zones there are in truth. Zones next to each other with tracks of one
/// length are one.
pub fn zone_error(found: &[FoundZone], model: &Model) -> (f64, u64, u64) {
    let mut truth: Vec<(u64, f64)> = Vec::new();
    for zone in model.mechanics().geometry().zones() {
        if truth.last().is_none_or(|last| last.1 != zone.sectors_per_track) {
            truth.push((zone.first_lbn.0, zone.sectors_per_track));
        }
    }
    let nearest = |first: u64| found.iter().map(|zone| zone.first.abs_diff(first)).min().unwrap_or(u64::MAX);
    let off: Vec<u64> = truth.iter().map(|&(first, _)| nearest(first)).collect();
    let mean = off.iter().map(|&off| off as f64).sum::<f64>() / off.len().max(1) as f64;
    (mean, off.iter().copied().max().unwrap_or(0), truth.len() as u64)
}

/// The root mean square of the differences between measured seeks and those of the
/// model, in ms, and the model's mean.
pub fn seek_error(seeks: &Seeks, table: &Boundaries, model: &Model) -> (f64, f64) {
    let geometry = model.mechanics().geometry();
    let share = TrackTable::capacity(&**geometry).0;
    let (mut squares, mut sum) = (0.0, 0.0);
    let mut count = 0.0_f64;
    for seek in &seeks.seeks {
        let (Some(from), Some(to)) = (table.nth(seek.from), table.nth(seek.to)) else { continue };
        if from.start.0 / share != to.start.0 / share {
            // Another arm's.
            continue;
        }
        let place = |lbn: Lbn| geometry.locate(Lbn(lbn.0 % share));
        let (from, to) = (place(from.start), place(to.start));
        let head = Head::default().reading(&from);
        let truth = model.mechanics().seek(head, to.cylinder, to.surface, false).as_millis_f64();
        squares += (seek.ms - truth).powi(2);
        sum += truth;
        count += 1.0;
    }
    if count == 0.0 { (0.0, 0.0) } else { ((squares / count).sqrt(), sum / count) }
}
