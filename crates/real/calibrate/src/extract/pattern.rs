//! Which tracks are likely next: those that followed last time.

use crate::extract::angles::nearest;

/// Tracks after which a pattern repeats, at most: bands of 32 tracks on two
/// surfaces, there and back, are 128; 28 tracks on each of eight 224.
const PERIOD_MAX: usize = 512;

/// Steps that differ by less count as equal, in revolutions.
const STEP_EQUAL: f64 = 0.01;

/// Tracks that must have been as a period before to count on the next ones.
const REPEATED: usize = 4;

/// A period that has come round is good if it explains this part of the most.
const LESS: u32 = 4;

/// Tracks back to which others are looked for, and how many are.
const LATELY: usize = 300;
const OTHERS_MAX: usize = 2;

/// A track as it was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FoundTrack {
    /// Its sectors.
    pub sectors: u64,
    /// The angle of one, in revolutions.
    pub width: f64,
    /// From where it begins to where the next does, in revolutions modulo 1.
    pub step: f64,
}

impl FoundTrack {
    fn like(&self, other: &FoundTrack) -> bool {
        self.sectors == other.sectors && nearest(self.step - other.step).abs() < STEP_EQUAL
    }
}

/// The tracks before this one, and how far back they repeat.
#[derive(Debug, Default)]
pub struct History {
    tracks: Vec<FoundTrack>,
    /// By period less one: how many of the last tracks are as the ones a period
    /// before.
    matched: Vec<u32>,
}

impl History {
    /// One more track.
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

    /// The last `period` tracks so many times more.
    pub fn repeat(&mut self, period: &[FoundTrack], times: u64) {
        assert!(!period.is_empty(), "a period has a track at least");
        // Beyond what any period reaches it makes no difference.
        let times = times.min((2 * PERIOD_MAX / period.len()) as u64 + 1);
        for _ in 0..times {
            period.iter().for_each(|&track| self.push(track));
        }
    }

    /// The period that explains most of what came last, and how much: the shortest that
    /// has come round and explains not much less than any. A longer one than is true has a
    /// track with a hole in it for longer, and expects it again.
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

    /// The last track.
    pub fn latest(&self) -> Option<FoundTrack> {
        self.tracks.last().copied()
    }

    /// The likely next track.
    pub fn next(&self) -> Option<FoundTrack> {
        let last = self.latest()?;
        match self.period() {
            Some((period, matched)) if matched > 0 => self.before(period),
            _ => Some(last),
        }
    }

    /// The likely next `count` tracks; none, unless they repeat.
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

    /// Tracks of other lengths than `predicted` that came lately, the latest first.
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

    /// The tracks of the last `period`.
    pub fn last(&self, period: usize) -> &[FoundTrack] {
        assert!(
            period <= self.tracks.len(),
            "a period of {period} tracks of {} that are remembered",
            self.tracks.len()
        );
        &self.tracks[self.tracks.len() - period..]
    }

    /// The track `period` before the next one.
    fn before(&self, period: usize) -> Option<FoundTrack> {
        self.tracks
            .len()
            .checked_sub(period)
            .map(|at| self.tracks[at])
    }
}
