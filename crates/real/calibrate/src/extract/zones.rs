//! Zones, from samples of track lengths.
//!
//! A zone is a stretch of addresses whose tracks have the same few lengths: one length, or one for
//! each surface. The surfaces take turns in the order of the drive. So a zone ends where its
//! lengths stop to come back:
//!
//! - Lengths are examined in some thousand places. A length that never comes back nearby belongs to
//!   a track with holes, and tells nothing.
//! - Neighbouring zones may share some lengths. A zone ends where two conditions hold: not all of
//!   its lengths come back, and not all of the following lengths are known from before. The exact
//!   place is the most likely one, given the frequency of each length on either side.
//! - The first address of the next zone lies between two places. The first place is the last with a
//!   length of only the one zone. The second place is the first with a length of only the next
//!   zone. Halving finds the address.
//!
//! The length of a track comes from a table ([`Timed::zones`]) or from the disk (`density.rs`).

use crate::extract::timing::Timed;
use fullstroke_tracks::Boundaries;
use fullstroke_units::Lbn;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Number of examined places.
pub(crate) const PLACES: u64 = 8192;

/// Number of places within which a length must come back.
const NEARBY: usize = 512;

/// Least number of places of a zone. Fewer places are a rest at the end of a zone.
const ZONE_PLACES_MIN: usize = 3;

/// Fraction of lengths that counts as all, as numerator and denominator.
const ALL: (usize, usize) = (7, 8);

/// Number of places from which the frequency of lengths is known. `HALF` is the largest common part
/// of the frequencies of two zones.
const ENOUGH: usize = 32;
const HALF: f64 = 0.5;

/// Assumed frequency of an unseen length.
const RARE: f64 = 1e-3;

/// Step from one look into a bracket to the next, as a fraction of the gap. The multiples of the
/// golden ratio fall into ever different gaps. `LOOKS` is the largest number of looks without a
/// result.
const GOLDEN: f64 = 0.618_033_988_749_895;
const LOOKS: u32 = 12;

/// A zone found by the extraction.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct FoundZone {
    /// First address.
    pub first: u64,
    /// Length of the zone's longest tracks, in sectors.
    pub sectors_per_track: f64,
    /// Lengths of the zone's tracks in sectors, ascending: one for each surface, where surfaces
    /// differ. A few lengths of tracks with holes may be among them.
    pub lengths: Vec<u64>,
}

/// Length of a track at one place, and the range of addresses known to be on the track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExaminedTrack {
    /// First address known to be on the track.
    pub first: u64,
    /// First address behind the known range.
    pub end: u64,
    /// Length of the track in sectors.
    pub sectors: u64,
}

/// Range in which a zone begins: behind `low`, at `high` at the latest.
#[derive(Clone, Debug)]
pub(crate) struct Bracket {
    /// Last known place of the zone before.
    pub low: ExaminedTrack,
    /// First known place of this zone.
    pub high: ExaminedTrack,
    /// Lengths that only the zone before has. `behind` are the lengths that only this zone has. If
    /// looks find only lengths of both zones, `behind` becomes `None`. Then every length outside
    /// `before` counts as this zone's.
    before: HashSet<u64>,
    behind: Option<HashSet<u64>>,
    looks: u32,
}

impl Bracket {
    /// Returns the next address to examine. Returns `None` if less than `gap` is left, or if looks
    /// give no result.
    pub(crate) fn look(&mut self, gap: u64) -> Option<u64> {
        // Where all looks find lengths of both zones, any other length counts as new, because the
        // search would otherwise end without a result.
        if self.looks == LOOKS && self.behind.take().is_some() {
            self.looks = 0;
        }
        let part = (0.5 + f64::from(self.looks) * GOLDEN).fract();
        let at = self.low.end + (self.gap() as f64 * part) as u64;
        (self.gap() >= gap.max(1) && self.looks < LOOKS).then_some(at)
    }

    /// Returns the number of addresses whose zone is unknown.
    pub(crate) fn gap(&self) -> u64 {
        self.high.first.saturating_sub(self.low.end)
    }

    /// Adds the result of a look; `None` if the track length could not be measured.
    pub(crate) fn add_look(&mut self, seen: Option<ExaminedTrack>) {
        self.looks += 1;
        let Some(place) = seen else { return };
        if self.before.contains(&place.sectors) && place.end > self.low.end {
            (self.low, self.looks) = (place, 0);
        } else if self.is_behind(place.sectors) && place.first < self.high.first {
            (self.high, self.looks) = (
                ExaminedTrack {
                    first: place.first.max(self.low.end),
                    ..place
                },
                0,
            );
        }
    }

    fn is_behind(&self, sectors: u64) -> bool {
        match &self.behind {
            Some(behind) => behind.contains(&sectors),
            None => !self.before.contains(&sectors),
        }
    }
}

/// A zone, as sampled places show it.
pub(crate) struct Sketch {
    /// Range in which the zone begins.
    pub begins: Bracket,
    lengths: Vec<u64>,
}

impl Sketch {
    /// Returns the zone.
    pub(crate) fn zone(self) -> FoundZone {
        let sectors_per_track = self.lengths.last().map_or(0.0, |&longest| longest as f64);
        FoundZone {
            first: self.begins.high.first,
            sectors_per_track,
            lengths: self.lengths,
        }
    }

    /// Returns the shortest length.
    pub(crate) fn shortest(&self) -> u64 {
        self.lengths.first().copied().unwrap_or(0)
    }
}

/// Returns the zones of `places`, which are in the order of addresses.
pub(crate) fn sketch(places: &[ExaminedTrack]) -> Vec<Sketch> {
    let places = coming_back(places);
    let mut sketches: Vec<Sketch> = Vec::new();
    let mut first = 0;
    let mut before: HashSet<u64> = HashSet::new();
    while first < places.len() {
        let end = end_of_zone(&places, first);
        assert!(
            end > first && end <= places.len(),
            "a zone has the place with which it begins: {first} to {end}"
        );
        // A few odd tracks (holes, spares) are no zone.
        if end - first < ZONE_PLACES_MIN && !sketches.is_empty() {
            first = end;
            continue;
        }
        let own: HashSet<u64> = places[first..end]
            .iter()
            .map(|place| place.sectors)
            .collect();
        let only: HashSet<u64> = own.difference(&before).copied().collect();
        let only_before: HashSet<u64> = before.difference(&own).copied().collect();
        let old = places[..first]
            .iter()
            .rev()
            .find(|place| only_before.contains(&place.sectors));
        let new = places[first..end]
            .iter()
            .find(|place| only.contains(&place.sectors));
        let mut high = *new.unwrap_or(&places[first]);
        // The first zone begins with the first address.
        if first == 0 {
            high.first = 0;
        }
        let low = old.copied().unwrap_or(ExaminedTrack {
            first: high.first,
            end: high.first,
            sectors: 0,
        });
        let begins = Bracket {
            low,
            high,
            before: only_before,
            behind: Some(only),
            looks: 0,
        };
        let mut lengths: Vec<u64> = own.iter().copied().collect();
        lengths.sort_unstable();
        assert!(!lengths.is_empty(), "a zone has a length of tracks");
        sketches.push(Sketch { begins, lengths });
        (first, before) = (end, own);
    }
    sketches
}

/// Returns the places whose length comes back nearby; all places if none does.
fn coming_back(places: &[ExaminedTrack]) -> Vec<ExaminedTrack> {
    let mut last: HashMap<u64, usize> = HashMap::new();
    let mut back = vec![false; places.len()];
    for (index, place) in places.iter().enumerate() {
        if let Some(before) = last.insert(place.sectors, index)
            && index - before <= NEARBY
        {
            (back[before], back[index]) = (true, true);
        }
    }
    let kept: Vec<ExaminedTrack> = places
        .iter()
        .zip(back)
        .filter(|(_, back)| *back)
        .map(|(place, _)| *place)
        .collect();
    if kept.is_empty() {
        places.to_vec()
    } else {
        kept
    }
}

/// Returns the index behind the last place of the zone that begins at index `first`.
fn end_of_zone(places: &[ExaminedTrack], first: usize) -> usize {
    let mut own: HashSet<u64> = HashSet::new();
    for at in first + 1..places.len() {
        own.insert(places[at - 1].sectors);
        let ahead = &places[at..places.len().min(at + NEARBY)];
        // A quick test that holds nearly everywhere.
        if own.contains(&ahead[0].sectors) && own.contains(&ahead[ahead.len() / 2].sectors) {
            continue;
        }
        let lately = &places[first.max(at.saturating_sub(NEARBY))..at];
        if is_other(lately, ahead, &own) {
            return at + most_likely(lately, ahead);
        }
    }
    places.len()
}

/// Returns true if the places `ahead` are not of the zone of `lately`, which has the lengths `own`.
fn is_other(lately: &[ExaminedTrack], ahead: &[ExaminedTrack], own: &HashSet<u64>) -> bool {
    let follow: HashSet<u64> = ahead.iter().map(|place| place.sectors).collect();
    let back = lately
        .iter()
        .filter(|place| follow.contains(&place.sectors))
        .count();
    if back * ALL.1 >= lately.len() * ALL.0 {
        return false;
    }
    let known = ahead
        .iter()
        .filter(|place| own.contains(&place.sectors))
        .count();
    let enough = lately.len().min(ahead.len()) >= ENOUGH;
    known * ALL.1 < ahead.len() * ALL.0 || enough && in_common(lately, ahead) < HALF
}

/// Returns the frequency of each length in both lists. The order of a `BTreeMap` repeats from run
/// to run.
fn frequencies(lately: &[ExaminedTrack], ahead: &[ExaminedTrack]) -> BTreeMap<u64, [f64; 2]> {
    let mut parts: BTreeMap<u64, [f64; 2]> = BTreeMap::new();
    for (side, places) in [lately, ahead].into_iter().enumerate() {
        for place in places {
            parts.entry(place.sectors).or_default()[side] += 1.0 / places.len() as f64;
        }
    }
    parts
}

/// Returns the common part of both lists. Each length counts with the lower of its two frequencies.
fn in_common(lately: &[ExaminedTrack], ahead: &[ExaminedTrack]) -> f64 {
    frequencies(lately, ahead)
        .values()
        .map(|[here, there]| here.min(*there))
        .sum()
}

/// Returns the most likely number of places of `ahead` that still belong to the zone of `lately`.
fn most_likely(lately: &[ExaminedTrack], ahead: &[ExaminedTrack]) -> usize {
    let parts = frequencies(lately, ahead);
    let (mut best, mut most, mut sum) = (0, 0.0, 0.0);
    assert!(
        !lately.is_empty() && !ahead.is_empty(),
        "zones are told apart by places of both"
    );
    for (index, place) in ahead.iter().enumerate() {
        let [here, there] = parts[&place.sectors];
        sum += ((here + RARE) / (there + RARE)).ln();
        if sum > most {
            (best, most) = (index + 1, sum);
        }
    }
    best
}

impl Timed {
    /// Returns the zones of the tracks.
    pub fn zones(&self) -> Vec<FoundZone> {
        zones_of(&self.table)
    }
}

/// Returns the zones of a table.
fn zones_of(table: &Boundaries) -> Vec<FoundZone> {
    let at = |lbn: u64| {
        let track = table.track_at(Lbn(lbn))?;
        Some(ExaminedTrack {
            first: track.start.0,
            end: track.end().0,
            sectors: track.sectors.0,
        })
    };
    assert!(table.len() > 0, "a table has a track at least");
    let count = table.len().min(PLACES);
    // The places are not evenly spaced, because tracks may differ in step with the spacing.
    let spread = |index: u64| {
        let part = (index as f64 * GOLDEN).fract();
        (((index as f64 + part) * table.len() as f64 / count as f64) as u64).min(table.len() - 1)
    };
    let places: Vec<ExaminedTrack> = (0..count)
        .filter_map(|index| at(table.nth(spread(index))?.start.0))
        .collect();
    let mut sketches = sketch(&places);
    for sketch in &mut sketches {
        while let Some(lbn) = sketch.begins.look(1) {
            sketch.begins.add_look(at(lbn));
        }
    }
    sketches.into_iter().map(Sketch::zone).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_units::{Random, Seed};

    /// Returns places of zones with `surfaces` lengths each, which take turns by bands. Lengths
    /// differ in steps of 8 sectors, as on real drives, so most lengths occur in the next zone as
    /// well.
    fn banded(random: &mut Random, surfaces: u64, zones: u64) -> (Vec<ExaminedTrack>, Vec<u64>) {
        let (mut places, mut begins, mut at) = (Vec::new(), Vec::new(), 0);
        for zone in 0..zones {
            let own: Vec<u64> = (0..surfaces)
                .map(|surface| 4000 - 56 * zone - 8 * (surface * 7 % 20))
                .collect();
            begins.push(at);
            for index in 0..40 * surfaces + random.below(100) {
                // One place in a hundred is on a track with a hole.
                let hole = if random.below(100) == 0 {
                    1 + random.below(6)
                } else {
                    0
                };
                let sectors = own[(index / 2 % surfaces) as usize] - hole;
                places.push(ExaminedTrack {
                    first: at,
                    end: at + 4000,
                    sectors,
                });
                at += 4000;
            }
        }
        (places, begins)
    }

    #[test]
    fn zones_that_share_lengths_are_told_apart() {
        let mut random = Seed(11).stream("zones");
        for surfaces in [1, 2, 3, 8, 10] {
            let (places, begins) = banded(&mut random, surfaces, 12);
            let found: Vec<u64> = sketch(&places)
                .iter()
                .map(|sketch| sketch.begins.high.first)
                .collect();
            assert_eq!(
                found.len(),
                begins.len(),
                "{surfaces}: {found:?} {begins:?}"
            );
            // The error may be a few bands long, because both zones have the length of these bands.
            let near = |(found, begin): (&u64, &u64)| found.abs_diff(*begin) <= 4000 * 2 * surfaces;
            assert!(
                found.iter().zip(&begins).all(near),
                "{surfaces}: {found:?} {begins:?}"
            );
        }
    }

    #[test]
    fn a_bracket_ends_between_two_places_or_behind_the_last_that_tells() {
        let place = |first: u64, sectors: u64| ExaminedTrack {
            first,
            end: first + 100,
            sectors,
        };
        let zones: Vec<ExaminedTrack> = (0..200)
            .map(|index| place(index * 1000, 100 - index / 100))
            .collect();
        let mut bracket = sketch(&zones).pop().unwrap().begins;
        assert_eq!((bracket.low.end, bracket.high.first), (99_100, 100_000));
        while let Some(at) = bracket.look(1) {
            bracket.add_look(Some(place(
                at / 100 * 100,
                if at < 99_700 { 100 } else { 99 },
            )));
        }
        assert_eq!((bracket.low.end, bracket.high.first), (99_700, 99_700));
        let mut bracket = sketch(&zones).pop().unwrap().begins;
        while bracket.look(1).is_some() {
            bracket.add_look(None);
        }
        assert_eq!(bracket.gap(), 900);
    }
}
