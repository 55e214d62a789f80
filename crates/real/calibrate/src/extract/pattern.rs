//! Predicts the next tracks from earlier, repeating tracks.

use crate::extract::angles::nearest;

/// Largest number of tracks after which a pattern repeats. Bands of 32 tracks on two surfaces,
/// there and back, repeat after 128 tracks. Bands of 28 tracks on each of eight surfaces repeat
/// after 224.
const PERIOD_MAX: usize = 512;

/// Difference in revolutions below which two steps count as equal.
const STEP_EQUAL: f64 = 0.01;

/// Number of tracks that must equal the tracks a period before, until the period is trusted.
const REPEATED: usize = 4;

/// Divisor of the best match: a period that has come round is accepted if it explains this part.
const LESS: u32 = 4;

/// Number of tracks to look back for other lengths. `OTHERS_MAX` is the largest number of such
/// lengths.
const LATELY: usize = 300;
const OTHERS_MAX: usize = 2;

/// A measured track.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FoundTrack {
    /// Length in sectors.
    pub sectors: u64,
    /// Angle of one sector, in revolutions.
    pub width: f64,
    /// Angle from the beginning of this track to the beginning of the next, in revolutions modulo
    /// 1.
    pub step: f64,
}

impl FoundTrack {
    fn like(&self, other: &FoundTrack) -> bool {
        self.sectors == other.sectors && nearest(self.step - other.step).abs() < STEP_EQUAL
    }
}

/// The tracks before the current one, and their period.
#[derive(Debug, Default)]
pub struct History {
    tracks: Vec<FoundTrack>,
    /// For each period (index plus one): number of last tracks that equal the tracks one period
    /// before.
    matched: Vec<u32>,
}

impl History {
    /// Adds one more track.
    pub fn push(&mut self, track: FoundTrack) {
        if self.tracks.len() >= 4 * PERIOD_MAX {
            self.tracks.drain(..2 * PERIOD_MAX);
        }
        let known = self.tracks.len();
        self.matched.resize(PERIOD_MAX, 0);
        for (index, matched) in self.matched.iter_mut().enumerate() {
            let before = known.checked_sub(index + 1).map(|at| self.tracks[at]);
            *matched = match before {
                Some(before) if before.like(&track) => *matched + 1,
                _ => 0,
            };
        }
        self.tracks.push(track);
    }

    /// Adds the tracks of `period` another `times` times.
    pub fn repeat(&mut self, period: &[FoundTrack], times: u64) {
        assert!(!period.is_empty(), "a period has a track at least");
        // More tracks than the longest period reaches make no difference.
        let times = times.min((2 * PERIOD_MAX / period.len()) as u64 + 1);
        for _ in 0..times {
            period.iter().for_each(|&track| self.push(track));
        }
    }

    /// Returns the period that explains most of the last tracks, and the number of tracks
    /// explained.
    ///
    /// The result is the shortest period that has come round and explains not much less than any
    /// other. A period longer than the true period keeps a track with a hole for longer, and
    /// expects the hole again.
    pub fn period(&self) -> Option<(usize, u32)> {
        let most = *self.matched.iter().max()?;
        let round =
            |&(index, &matched): &(usize, &u32)| matched as usize > index && matched * LESS >= most;
        let longest = || {
            self.matched
                .iter()
                .enumerate()
                .find(|(_, matched)| **matched == most)
        };
        let (index, &matched) = self
            .matched
            .iter()
            .enumerate()
            .find(round)
            .or_else(longest)?;
        Some((index + 1, matched))
    }

    /// Returns the last track.
    pub fn latest(&self) -> Option<FoundTrack> {
        self.tracks.last().copied()
    }

    /// Returns the likely next track.
    pub fn next(&self) -> Option<FoundTrack> {
        let last = self.latest()?;
        match self.period() {
            Some((period, matched)) if matched > 0 => self.before(period),
            _ => Some(last),
        }
    }

    /// Returns the likely next `count` tracks; none unless tracks repeat.
    pub fn following(&self, count: usize) -> Vec<FoundTrack> {
        match self.period() {
            Some((period, matched)) if matched as usize >= period.min(REPEATED) => self
                .last(period)
                .iter()
                .copied()
                .cycle()
                .take(count)
                .collect(),
            _ => Vec::new(),
        }
    }

    /// Returns recent tracks of other lengths than `predicted`, the latest first.
    pub fn others(&self, predicted: &FoundTrack) -> Vec<FoundTrack> {
        let mut others: Vec<FoundTrack> = Vec::new();
        for track in self.tracks.iter().rev().take(LATELY) {
            let known = others
                .iter()
                .chain([predicted])
                .any(|other| other.sectors == track.sectors);
            if !known {
                others.push(*track);
            }
            if others.len() == OTHERS_MAX {
                break;
            }
        }
        others
    }

    /// Returns the tracks of the last `period`.
    pub fn last(&self, period: usize) -> &[FoundTrack] {
        assert!(
            period <= self.tracks.len(),
            "a period of {period} tracks of {} that are remembered",
            self.tracks.len()
        );
        &self.tracks[self.tracks.len() - period..]
    }

    /// Returns the track `period` before the next track.
    fn before(&self, period: usize) -> Option<FoundTrack> {
        self.tracks
            .len()
            .checked_sub(period)
            .map(|at| self.tracks[at])
    }
}
