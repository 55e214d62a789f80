//! Zones, from the lengths of tracks here and there.
//!
//! A zone is a stretch of addresses whose tracks have the same few lengths: one, or
//! one for each surface, which take turns however the drive orders its surfaces. So
//! where a zone ends is where lengths stop to come back:
//!
//! - Lengths are looked at in some thousand places. One that never comes again
//!   nearby is of a track with holes, and says nothing.
//! - A zone ends where not all of its lengths come back, and not all that follow
//!   have been there before: zones next to each other may share some. It ends just
//!   where that is most likely, given how frequent each length is on either side.
//! - Between the last place that is of the one zone only and the first that is of
//!   the next only, the beginning is found by halves.
//!
//! Who says how long a track is, is a table ([`Timed::zones`]) or the disk
//! (`density.rs`).

use crate::extract::timing::Timed;
use fullstroke_tracks::Boundaries;
use fullstroke_units::Lbn;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Places that are looked at.
pub(crate) const PLACES: u64 = 8192;

/// Places within which a length comes back.
const NEARBY: usize = 512;

/// Places of a zone at least: less are of what is left over at its end.
const ZONE_PLACES_MIN: usize = 3;

/// What counts as all, of lengths that come back.
const ALL: (usize, usize) = (7, 8);

/// Places from which it is told how frequent lengths are, and how much zones have in
/// common at most.
const ENOUGH: usize = 32;
const HALF: f64 = 0.5;

/// How frequent a length is that was not seen.
const RARE: f64 = 1e-3;

/// Of a bracket, where it is looked at, until one tells: the multiples of the golden
/// ratio, which lie in ever other gaps.
const GOLDEN: f64 = 0.618_033_988_749_895;
const LOOKS: u32 = 12;

/// A zone as it was found.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct FoundZone {
    /// Its first address.
    pub first: u64,
    /// Sectors of its longest tracks.
    pub sectors_per_track: f64,
    /// The lengths of its tracks in sectors, ascending: of each surface, where these
    /// differ. Those of a few tracks with holes may be among them.
    pub lengths: Vec<u64>,
}

/// How long a track is somewhere, and what of it was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The first address that is known to be of this track.
    pub first: u64,
    /// That behind the last.
    pub end: u64,
    /// Its sectors.
    pub sectors: u64,
}

/// Where a zone begins: behind `low`, at `high` at the latest.
#[derive(Clone, Debug)]
pub(crate) struct Bracket {
    /// The last that is known of the zone before.
    pub low: Place,
    /// The first that is known of this one.
    pub high: Place,
    /// Lengths of the one only, and of the other only; of the other is all else, if there
    /// are only tracks left whose length both have.
    before: HashSet<u64>,
    behind: Option<HashSet<u64>>,
    looks: u32,
}

impl Bracket {
    /// Where to look next; nothing where less than `gap` is left, or where looks do
    /// not tell.
    pub(crate) fn look(&mut self, gap: u64) -> Option<u64> {
        if self.looks == LOOKS && self.behind.take().is_some() {
            self.looks = 0;
        }
        let part = (0.5 + f64::from(self.looks) * GOLDEN).fract();
        let at = self.low.end + (self.gap() as f64 * part) as u64;
        (self.gap() >= gap.max(1) && self.looks < LOOKS).then_some(at)
    }

    /// Addresses of which it is not known which zone they are of.
    pub(crate) fn gap(&self) -> u64 {
        self.high.first.saturating_sub(self.low.end)
    }

    /// What was there; nothing if that could not be told.
    pub(crate) fn tell(&mut self, seen: Option<Place>) {
        self.looks += 1;
        let Some(place) = seen else { return };
        if self.before.contains(&place.sectors) && place.end > self.low.end {
            (self.low, self.looks) = (place, 0);
        } else if self.is_behind(place.sectors) && place.first < self.high.first {
            (self.high, self.looks) = (
                Place {
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

/// A zone, as places show it.
pub(crate) struct Sketch {
    /// Where it begins.
    pub begins: Bracket,
    lengths: Vec<u64>,
}

impl Sketch {
    /// The zone.
    pub(crate) fn zone(self) -> FoundZone {
        let sectors_per_track = self.lengths.last().map_or(0.0, |&longest| longest as f64);
        FoundZone {
            first: self.begins.high.first,
            sectors_per_track,
            lengths: self.lengths,
        }
    }

    /// The shortest length.
    pub(crate) fn shortest(&self) -> u64 {
        self.lengths.first().copied().unwrap_or(0)
    }
}

/// The zones that `places`, in the order of addresses, are of.
pub(crate) fn sketch(places: &[Place]) -> Vec<Sketch> {
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
        if first == 0 {
            high.first = 0;
        }
        let low = old.copied().unwrap_or(Place {
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

/// Those whose length comes again nearby; all, if none does.
fn coming_back(places: &[Place]) -> Vec<Place> {
    let mut last: HashMap<u64, usize> = HashMap::new();
    let mut back = vec![false; places.len()];
    for (index, place) in places.iter().enumerate() {
        if let Some(before) = last.insert(place.sectors, index)
            && index - before <= NEARBY
        {
            (back[before], back[index]) = (true, true);
        }
    }
    let kept: Vec<Place> = places
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

/// Behind the last place of the zone that begins with the one at `first`.
fn end_of_zone(places: &[Place], first: usize) -> usize {
    let mut own: HashSet<u64> = HashSet::new();
    for at in first + 1..places.len() {
        own.insert(places[at - 1].sectors);
        let ahead = &places[at..places.len().min(at + NEARBY)];
        // As it is nearly everywhere.
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

/// Whether what is `ahead` is not of the zone of `lately`, which has its `own` lengths.
fn is_other(lately: &[Place], ahead: &[Place], own: &HashSet<u64>) -> bool {
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

/// How frequent each length is in the one and in the other, in an order that repeats.
fn frequencies(lately: &[Place], ahead: &[Place]) -> BTreeMap<u64, [f64; 2]> {
    let mut parts: BTreeMap<u64, [f64; 2]> = BTreeMap::new();
    for (side, places) in [lately, ahead].into_iter().enumerate() {
        for place in places {
            parts.entry(place.sectors).or_default()[side] += 1.0 / places.len() as f64;
        }
    }
    parts
}

/// Which part the two have in common, each length as often as where it is rarer.
fn in_common(lately: &[Place], ahead: &[Place]) -> f64 {
    frequencies(lately, ahead)
        .values()
        .map(|[here, there]| here.min(*there))
        .sum()
}

/// How many of `ahead` are still of the zone of `lately`, most likely.
fn most_likely(lately: &[Place], ahead: &[Place]) -> usize {
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
    /// The zones that its tracks are of.
    pub fn zones(&self) -> Vec<FoundZone> {
        zones_of(&self.table)
    }
}

/// The zones of a table.
fn zones_of(table: &Boundaries) -> Vec<FoundZone> {
    let at = |lbn: u64| {
        let track = table.track_at(Lbn(lbn))?;
        Some(Place {
            first: track.start.0,
            end: track.end().0,
            sectors: track.sectors.0,
        })
    };
    assert!(table.len() > 0, "a table has a track at least");
    let count = table.len().min(PLACES);
    // Not evenly: tracks may differ in step.
    let spread = |index: u64| {
        let part = (index as f64 * GOLDEN).fract();
        (((index as f64 + part) * table.len() as f64 / count as f64) as u64).min(table.len() - 1)
    };
    let places: Vec<Place> = (0..count)
        .filter_map(|index| at(table.nth(spread(index))?.start.0))
        .collect();
    let mut sketches = sketch(&places);
    for sketch in &mut sketches {
        while let Some(lbn) = sketch.begins.look(1) {
            sketch.begins.tell(at(lbn));
        }
    }
    sketches.into_iter().map(Sketch::zone).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_units::{Random, Seed};

    /// Places of zones, of which each has `surfaces` lengths that take turns by bands, in
    /// steps of 8 sectors as drives have them: most are of the next zone, too.
    fn banded(random: &mut Random, surfaces: u64, zones: u64) -> (Vec<Place>, Vec<u64>) {
        let (mut places, mut begins, mut at) = (Vec::new(), Vec::new(), 0);
        for zone in 0..zones {
            let own: Vec<u64> = (0..surfaces)
                .map(|surface| 4000 - 56 * zone - 8 * (surface * 7 % 20))
                .collect();
            begins.push(at);
            for index in 0..40 * surfaces + random.below(100) {
                // A place in a hundred is of a track with a hole.
                let hole = if random.below(100) == 0 {
                    1 + random.below(6)
                } else {
                    0
                };
                let sectors = own[(index / 2 % surfaces) as usize] - hole;
                places.push(Place {
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
            // As far off as a few bands whose length both zones have.
            let near = |(found, begin): (&u64, &u64)| found.abs_diff(*begin) <= 4000 * 2 * surfaces;
            assert!(
                found.iter().zip(&begins).all(near),
                "{surfaces}: {found:?} {begins:?}"
            );
        }
    }

    #[test]
    fn a_bracket_ends_between_two_places_or_behind_the_last_that_tells() {
        let place = |first: u64, sectors: u64| Place {
            first,
            end: first + 100,
            sectors,
        };
        let zones: Vec<Place> = (0..200)
            .map(|index| place(index * 1000, 100 - index / 100))
            .collect();
        let mut bracket = sketch(&zones).pop().unwrap().begins;
        assert_eq!((bracket.low.end, bracket.high.first), (99_100, 100_000));
        while let Some(at) = bracket.look(1) {
            bracket.tell(Some(place(
                at / 100 * 100,
                if at < 99_700 { 100 } else { 99 },
            )));
        }
        assert_eq!((bracket.low.end, bracket.high.first), (99_700, 99_700));
        let mut bracket = sketch(&zones).pop().unwrap().begins;
        while bracket.look(1).is_some() {
            bracket.tell(None);
        }
        assert_eq!(bracket.gap(), 900);
    }
}
