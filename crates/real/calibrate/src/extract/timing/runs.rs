//! Runs of equal tracks. Such runs repeat where surfaces take turns by bands.

use super::Walk;
use crate::extract::ExtractError;
use crate::extract::pattern::FoundTrack;
use fullstroke_units::Sectors;

/// Largest number of runs after which runs repeat: 32 surfaces, there and back.
const PERIOD_MAX: usize = 64;

/// Number of remembered runs.
const KEPT: usize = 4 * PERIOD_MAX;

/// Equal tracks, one behind the other.
#[derive(Clone, Copy, Debug)]
struct TrackRun {
    first: u64,
    /// Angle at the beginning of the run.
    at: f64,
    track: FoundTrack,
    tracks: u64,
    /// Last track of the run. The heads are switched behind this track.
    last: FoundTrack,
}

impl TrackRun {
    fn like(&self, other: &TrackRun) -> bool {
        self.track.sectors == other.track.sectors && self.tracks == other.tracks
    }
}

/// The last runs. The newest run is the current run.
#[derive(Debug, Default)]
pub(super) struct TrackRuns {
    runs: Vec<TrackRun>,
    /// First address of the run that is known not to be as predicted.
    unlike: Option<u64>,
}

/// Predicted continuation of the current run, if runs repeat.
#[derive(Clone, Copy, Debug)]
struct Predicted {
    run: TrackRun,
    /// Number of tracks of the run.
    tracks: u64,
    /// Turn of the angle over the run.
    turn: f64,
    /// Last track of the run.
    last: FoundTrack,
    /// First track of the next run.
    next: FoundTrack,
}

impl TrackRuns {
    /// Adds `tracks` more tracks, of which the first begins at address `first` and angle `at`.
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
        self.runs.push(TrackRun {
            first,
            at,
            track,
            tracks,
            last: track,
        });
    }

    /// Forgets all runs, because the next tracks form no runs.
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
    /// Skips the rest of the current run, if runs repeat. Returns true if tracks were skipped.
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
        let Some(at) = self
            .skip_end_angle(end, run.at + turn, &last, &next)
            .await?
        else {
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
