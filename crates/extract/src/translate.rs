//! Tracks by address translation (Qian & Wang, section 4.1).
//!
//! From address 0 sector by sector to the first change of cylinder or surface:
//! the size S of the first track. Then, with T the last boundary, T+S and T+S-1
//! are translated: if the two lie on different tracks, T+S is a boundary; if not,
//! the size has changed, and the track is gone through sector by sector.
//!
//! That two neighbours lie on different tracks does not say that T+S-1 is still
//! on the track of T: where a track is shorter by as much as the next is long,
//! the text's test is fooled. T+S-1 is held against the track of T, which needs
//! no further translation.

use crate::ExtractError;
use crate::machine::{Place, Probe};
use fullstroke_tracks::{Boundaries, Builder};
use fullstroke_units::Sectors;

/// What translation found.
#[derive(Clone, Debug)]
pub struct Translated {
    /// The tracks.
    pub table: Boundaries,
    /// Tracks that were gone through sector by sector.
    pub irregular: u64,
    /// Their sectors.
    pub irregular_sectors: u64,
    /// Cylinder and surface of the first tracks, in the order of addresses.
    pub first_places: Vec<(u32, u32)>,
}

/// Tracks of which the place is kept.
const PLACES: usize = 256;

/// Finds all tracks by translation.
///
/// # Errors
/// If the device does not translate.
pub async fn translate(probe: Probe) -> Result<Translated, ExtractError> {
    let capacity = probe.capacity().0;
    let mut found = Found { builder: Builder::default(), first_places: Vec::new() };
    let (mut irregular, mut irregular_sectors) = (0, 0);
    let mut start = 0;
    let mut size = 0;
    let mut here = probe.translate(0).await?;
    while start < capacity {
        probe.progress("tracks", start, capacity);
        let predicted = start + size;
        if size > 0 && predicted == capacity && same_track(probe.translate(predicted - 1).await?, here) {
            found.track(size, here)?;
            break;
        }
        if size > 0 && predicted < capacity {
            // A boundary where the table says; the last sector is on this track.
            let next = probe.translate(predicted).await?;
            if !same_track(next, here) && same_track(probe.translate(predicted - 1).await?, here) {
                found.track(size, here)?;
                (start, here) = (predicted, next);
                continue;
            }
        }
        let (end, next) = by_sector(&probe, start, here).await?;
        irregular += 1;
        irregular_sectors += end - start;
        size = end - start;
        found.track(size, here)?;
        (start, here) = (end, next);
    }
    Ok(Translated {
        table: found.builder.finish("address translation")?,
        irregular,
        irregular_sectors,
        first_places: found.first_places,
    })
}

struct Found {
    builder: Builder,
    first_places: Vec<(u32, u32)>,
}

impl Found {
    fn track(&mut self, sectors: u64, place: Place) -> Result<(), ExtractError> {
        self.builder.push(Sectors(sectors))?;
        if self.first_places.len() < PLACES {
            self.first_places.push((place.cylinder.0, place.surface));
        }
        Ok(())
    }
}

/// Where the track of `start` ends, and where the address behind it lies.
async fn by_sector(probe: &Probe, start: u64, here: Place) -> Result<(u64, Place), ExtractError> {
    for lbn in start + 1..probe.capacity().0 {
        let place = probe.translate(lbn).await?;
        if !same_track(place, here) {
            return Ok((lbn, place));
        }
    }
    Ok((probe.capacity().0, here))
}

fn same_track(one: Place, other: Place) -> bool {
    (one.cylinder, one.surface) == (other.cylinder, other.surface)
}
