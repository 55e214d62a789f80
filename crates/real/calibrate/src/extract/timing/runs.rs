//! Runs of equal tracks, which repeat where surfaces take turns by bands.

use super::Walk;
use crate::extract::ExtractError;
use crate::extract::pattern::FoundTrack;
use fullstroke_units::Sectors;

/// Runs after which they repeat, at most: 32 surfaces, there and back.
const PERIOD_MAX: usize = 64;

/// Runs that are remembered.
const KEPT: usize = 4 * PERIOD_MAX;

/// Equal tracks, one behind the other.
#[derive(Clone, Copy, Debug)]
struct Run {
    first: u64,
    /// The angle at which it begins.
    at: f64,
    track: FoundTrack,
    tracks: u64,
    /// The last of them: the heads are switched behind it.
    last: FoundTrack,
}

impl Run {
    fn like(&self, other: &Run) -> bool {
        self.track.sectors == other.track.sectors && self.tracks == other.tracks
    }
}

/// The last runs; the last of them is in hand.
#[derive(Debug, Default)]
pub(super) struct Runs {
    runs: Vec<Run>,
    /// Where the run begins of which it is known that it is not as predicted.
    unlike: Option<u64>,
}

/// How the run in hand goes on, if runs repeat.
#[derive(Clone, Copy, Debug)]
struct Predicted {
    run: Run,
    /// Its tracks.
    tracks: u64,
    /// By how much the angle turns over it.
    turn: f64,
    /// The last of them.
    last: FoundTrack,
    /// The first track of the next.
    next: FoundTrack,
}

impl Runs {
    /// So many more tracks, the first of which begins at `first` and `at`.
    pub(super) fn push(&mut self, first: u64, at: f64, track: FoundTrack, tracks: u64) {
        if let Some(last) = self.runs.last_mut()
            && last.track.sectors == track.sectors
        {
            last.tracks += tracks;
            last.last = track;
            return;
        }
        if self.runs.len() == KEPT {
            self.runs.drain(..KEPT / 2);
        }
        self.runs.push(Run {
            first,
            at,
            track,
            tracks,
            last: track,
        });
    }

    /// Tracks that are no runs.
    pub(super) fn forget(&mut self) {
        self.runs.clear();
    }

    fn predicted(&self) -> Option<Predicted> {
        let (&run, before) = self.runs.split_last()?;
        let period = (2..=PERIOD_MAX.min(before.len() / 2)).find(|&period| {
            let (earlier, last) = before[before.len() - 2 * period..].split_at(period);
            earlier[0].track.sectors == run.track.sectors
                && earlier.iter().zip(last).all(|(a, b)| a.like(b))
        })?;
        let model = before[before.len() - period];
        let next = before[before.len() - period + 1];
        let turn = next.at - model.at;
        (run.tracks < model.tracks).then_some(Predicted {
            run,
            tracks: model.tracks,
            turn,
            last: model.last,
            next: next.track,
        })
    }
}

impl Walk {
    /// Skips what is left of the run in hand, if runs repeat; says whether.
    pub(super) async fn run(&mut self) -> Result<bool, ExtractError> {
        let Some(predicted) = self.runs.predicted() else {
            return Ok(false);
        };
        let Predicted {
            run,
            tracks,
            turn,
            last,
            next,
        } = predicted;
        let sectors = run.track.sectors;
        let end = run.first + tracks * sectors;
        if self.runs.unlike == Some(run.first) || end >= self.hand.capacity {
            return Ok(false);
        }
        let Some(at) = self.lands(end, run.at + turn, &last, &next).await? else {
            self.runs.unlike = Some(run.first);
            return Ok(false);
        };
        let left = (end - self.hand.first) / sectors;
        self.builder.push_pattern(&[(Sectors(sectors), 1)], left)?;
        self.counts.skipped += left;
        self.stretch(self.hand.first, &[run.track], left);
        self.history.repeat(&[run.track], left);
        (self.hand.first, self.hand.at) = (end, at.rem_euclid(1.0));
        self.runs.push(run.first, run.at, last, left);
        self.runs.push(end, self.hand.at, next, 0);
        Ok(true)
    }
}
