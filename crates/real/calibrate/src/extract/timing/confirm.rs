//! A sample of the boundaries, read again at the end.
//!
//! Where completions are noticed late, a walk may take lateness for the end of a track and continue
//! from there. The walk itself cannot detect this error. So random boundaries are compared with
//! angles that the walk has not used. Places within tracks are tested as well, because the walk may
//! have missed a boundary there.
//!
//! Angles are compared only with angles of the same moment, so an error of the revolution does no
//! harm. Of several comparisons the median counts, because lateness does not move the median.
//! Without noise nothing is read again, because every angle of the walk was exact.

use super::OFF_LINE;
use crate::extract::ExtractError;
use crate::extract::angles::{Angles, nearest};
use fullstroke_contract::Extent;
use fullstroke_tracks::Boundaries;
use fullstroke_units::Lbn;

/// Largest number of boundaries to read again. Half as many tracks are tested as well.
const SAMPLE: u64 = 512;

/// Number of boundaries tested in a given table.
const SPOTS: u64 = 64;

/// Number of reads of each place, where angles are noisy.
const ROUNDS: usize = 8;

/// Number of sectors before a boundary over which the angle of one sector is measured.
const BACK: u64 = 8;

/// One of this many boundaries may remain unconfirmed. One of `BENT` tracks may seem to have a
/// boundary within, because a hole bends a track as well.
const UNCONFIRMED: u64 = 128;
const BENT: u64 = 32;

/// Least jump at a confirmed boundary, as a fraction of the smallest jump.
const LEFT: f64 = 0.5;

/// Length of holes that may bend a track, in sectors.
const HOLES: f64 = 2.5;

/// A place to read again. The addresses descend, because a buffer that reads ahead holds none of
/// them then.
struct RereadPlace {
    addresses: [u64; 3],
    /// True for a claimed boundary; false for the middle of a track.
    claimed: bool,
    /// Length of the track in sectors.
    sectors: u64,
    jumps: Vec<f64>,
}

impl RereadPlace {
    /// Returns the end of `track`, if the track is long enough for a test.
    fn end(track: Extent) -> Option<RereadPlace> {
        let end = track.end().0;
        let addresses = [end, end - 1, end.checked_sub(1 + BACK)?];
        (track.sectors.0 > BACK).then_some(RereadPlace {
            addresses,
            claimed: true,
            sectors: track.sectors.0,
            jumps: Vec::new(),
        })
    }

    /// Returns both halves of `track`, if the track is long enough for a test.
    fn halves(track: Extent) -> Option<RereadPlace> {
        let half = (track.sectors.0.checked_sub(1)?) / 2;
        let first = track.start.0;
        (half >= BACK).then_some(RereadPlace {
            addresses: [first + 2 * half, first + half, first],
            claimed: false,
            sectors: track.sectors.0,
            jumps: Vec::new(),
        })
    }

    /// Returns the jump of the angle at the place: the difference from an even continuation.
    fn jump(&self, angles: [f64; 3]) -> f64 {
        let (over, before) = (angles[0] - angles[1], nearest(angles[1] - angles[2]));
        if self.claimed {
            nearest(over - before / BACK as f64)
        } else {
            nearest(over - before)
        }
    }

    /// Returns true if the test confirms the place.
    fn is_confirmed(&mut self) -> bool {
        // The median of the rounds, because a read that a busy host noticed late would spoil a
        // mean.
        self.jumps.sort_by(f64::total_cmp);
        let middle = self.jumps[self.jumps.len() / 2]
            .midpoint(self.jumps[(self.jumps.len() - 1) / 2])
            .abs();
        if self.claimed {
            middle >= LEFT * OFF_LINE
        } else {
            middle < OFF_LINE.max(HOLES / self.sectors as f64)
        }
    }
}

/// Result of a sample.
#[derive(Clone, Copy, Debug, Default)]
struct SampleTally {
    claimed: u64,
    unconfirmed: u64,
    /// Lowest address of an unconfirmed boundary.
    first: Option<u64>,
    tracks: u64,
    bent: u64,
}

impl SampleTally {
    fn unconfirmed(&mut self, lbn: u64) {
        self.unconfirmed += 1;
        self.first = Some(self.first.map_or(lbn, |first| first.min(lbn)));
    }

    fn is_confirmed(&self) -> bool {
        self.unconfirmed <= (self.claimed / UNCONFIRMED).max(1)
            && self.bent <= (self.tracks / BENT).max(1)
    }

    fn saw(&self, noise: f64) -> String {
        let SampleTally {
            claimed,
            unconfirmed,
            tracks,
            bent,
            ..
        } = self;
        let first = self.first.map_or(String::new(), |lbn| {
            format!(", first the one at {}", Lbn(lbn))
        });
        format!(
            "of {claimed} boundaries that were read again {unconfirmed} are none{first}, and of {tracks} tracks {bent} \
             have one within (one of {UNCONFIRMED} and one of {BENT} may); noise is {:.2} % of a revolution",
            noise * 100.0
        )
    }
}

/// Reads `sampled` boundaries of `table` again, and the halves of half as many tracks.
async fn again(
    angles: &mut Angles,
    table: &Boundaries,
    sampled: u64,
) -> Result<SampleTally, ExtractError> {
    let mut tally = SampleTally::default();
    let mut places = Vec::new();
    for number in 0..sampled + sampled / 2 {
        let Some(track) = table.nth(angles.random().below(table.len() - 1)) else {
            continue;
        };
        let claimed = number < sampled;
        tally.claimed += u64::from(claimed);
        match if claimed {
            RereadPlace::end(track)
        } else {
            RereadPlace::halves(track)
        } {
            Some(place) => places.push(place),
            // A track that is too short for a test counts as unconfirmed, because a wrong table has
            // many short tracks.
            None if claimed => tally.unconfirmed(track.end().0),
            None => {}
        }
    }
    // Descending over the whole disk, because a buffer that reads ahead then holds none of the
    // places that follow.
    places.sort_by_key(|place| std::cmp::Reverse(place.addresses[0]));
    let rounds = if angles.rotation().is_quiet() {
        1
    } else {
        ROUNDS
    };
    let reads = (rounds * places.len()) as u64;
    for round in 0..rounds {
        let before = (round * places.len()) as u64;
        for (number, place) in places.iter_mut().enumerate() {
            angles
                .probe()
                .progress("boundaries, again", before + number as u64, reads);
            let mut seen = [0.0; 3];
            for (angle, &lbn) in seen.iter_mut().zip(&place.addresses) {
                *angle = angles.single(lbn).await?;
            }
            place.jumps.push(place.jump(seen));
        }
    }
    for mut place in places {
        tally.tracks += u64::from(!place.claimed);
        match (place.is_confirmed(), place.claimed) {
            (true, _) => {}
            (false, true) => tally.unconfirmed(place.addresses[0]),
            (false, false) => tally.bent += 1,
        }
    }
    Ok(tally)
}

/// Reads a sample of `table` again, if angles are noisy.
///
/// # Errors
/// If too much of the sample is not confirmed.
pub(super) async fn confirm(angles: &mut Angles, table: &Boundaries) -> Result<(), ExtractError> {
    let noise = angles.rotation().noise;
    if angles.rotation().is_quiet() || table.len() < 2 {
        return Ok(());
    }
    let tally = again(angles, table, SAMPLE.min(table.len() - 1)).await?;
    let saw = || format!("{}: a busy host, or a buffer in between", tally.saw(noise));
    if tally.is_confirmed() {
        Ok(())
    } else {
        Err(ExtractError::cannot_tell("where tracks end", saw()))
    }
}

/// Reads some boundaries of a table from an earlier extraction or from another device.
///
/// # Errors
/// With the first wrong boundary, if the table does not belong to this device.
pub async fn spot_check(angles: &mut Angles, table: &Boundaries) -> Result<(), ExtractError> {
    let noise = angles.rotation().noise;
    if table.len() < 2 {
        return Ok(());
    }
    let tally = again(angles, table, SPOTS.min(table.len() - 1)).await?;
    let saw = || format!("{}: extract the tracks of this device", tally.saw(noise));
    if tally.is_confirmed() {
        Ok(())
    } else {
        Err(ExtractError::cannot_tell(
            "whether the table is of this device",
            saw(),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_confirmed(place: Option<RereadPlace>, angle: impl Fn(u64) -> f64) -> bool {
        let mut place = place.unwrap();
        let seen = place.addresses.map(angle);
        let jump = place.jump(seen);
        place.jumps.push(jump);
        place.is_confirmed()
    }

    #[test]
    fn an_end_is_one_where_the_angle_jumps_and_halves_are_one_track_where_it_does_not() {
        // Tracks of 100 sectors with a skew of 5.
        let angle = |lbn: u64| ((lbn + lbn / 100 * 5) as f64 / 100.0).fract();
        for (start, sectors, is_end, is_one) in [
            (100, 100, true, true),
            (100, 60, false, true),
            (130, 140, false, false),
            (150, 50, true, true),
        ] {
            let track = Extent::new(start, sectors);
            assert_eq!(
                is_confirmed(RereadPlace::end(track), angle),
                is_end,
                "{track:?}"
            );
            assert_eq!(
                is_confirmed(RereadPlace::halves(track), angle),
                is_one,
                "{track:?}"
            );
        }
        assert!(RereadPlace::end(Extent::new(100, BACK)).is_none());
    }
}
