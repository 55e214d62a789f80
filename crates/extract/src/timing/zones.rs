//! Zones, from the lengths of tracks.

use super::Timed;
use fullstroke_units::Lbn;
use std::collections::VecDeque;

/// Lengths that differ by less are of one zone.
const SAME_ZONE: f64 = 0.0025;

/// Tracks of a zone at least.
const ZONE_TRACKS_MIN: usize = 192;

/// A zone as it was found.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct FoundZone {
    /// Its first address.
    pub first: u64,
    /// Sectors of its longest tracks.
    pub sectors_per_track: f64,
}

impl Timed {
    /// The zones: where the longest tracks become shorter or longer. Where surfaces
    /// differ and take turns by bands, a beginning may be some bands off.
    pub fn zones(&self) -> Vec<FoundZone> {
        let mut zones: Vec<FoundZone> = Vec::new();
        // Of the zone in hand: behind its last longest track.
        let mut behind = 0;
        let mut window: VecDeque<(u64, u64)> = VecDeque::new();
        for track in self.table.tracks_from(Lbn(0)) {
            window.push_back((track.start.0, track.sectors.0));
            if window.len() > ZONE_TRACKS_MIN {
                window.pop_front();
            }
            let longest = zones.last().map_or(0.0, |zone| zone.sectors_per_track);
            let length = track.sectors.0 as f64;
            let like = (length - longest).abs() <= SAME_ZONE * longest;
            if like {
                behind = track.end().0;
                continue;
            }
            let longer = length > longest;
            let over = window.len() == ZONE_TRACKS_MIN && window[0].0 >= behind;
            if !zones.is_empty() && !over && !longer {
                continue;
            }
            let first = if longer { track.start.0 } else { behind };
            let sectors =
                window.iter().filter(|(start, _)| *start >= first).map(|(_, sectors)| *sectors).max();
            let sectors_per_track = sectors.unwrap_or(track.sectors.0) as f64;
            zones.push(FoundZone { first, sectors_per_track });
            behind = track.end().0;
        }
        zones
    }
}
