//! Skips repeating tracks.

use super::{OFF_LINE, Walk};
use crate::extract::ExtractError;
use crate::extract::angles::nearest;
use crate::extract::pattern::FoundTrack;
use fullstroke_units::Sectors;

/// Number of repeating tracks before any is skipped.
const REPEATED_MIN: u32 = 8;

/// Number of periods to skip next.
#[derive(Clone, Copy, Debug)]
pub(super) struct TrackSkip {
    periods: u64,
    /// A track unlike the others lies before this address.
    irregular: Option<u64>,
    /// Number of tracks to walk before the next skip.
    hold: usize,
}

impl Default for TrackSkip {
    fn default() -> TrackSkip {
        TrackSkip {
            periods: 1,
            irregular: None,
            hold: 0,
        }
    }
}

impl TrackSkip {
    pub(super) fn walked(&mut self) {
        self.hold = self.hold.saturating_sub(1);
    }

    fn succeeded(&mut self) {
        if self.irregular.is_some() {
            self.halve(1);
        } else {
            self.periods *= 2;
        }
    }

    fn failed(&mut self, end: u64, period: usize) {
        self.irregular = Some(end);
        self.halve(period);
    }

    fn halve(&mut self, hold: usize) {
        self.periods /= 2;
        if self.periods == 0 {
            *self = TrackSkip {
                hold,
                ..TrackSkip::default()
            };
        }
    }
}

impl Walk {
    /// Skips periods, if tracks repeat. Returns true if any were skipped.
    pub(super) async fn skip(&mut self, skip: &mut TrackSkip) -> Result<bool, ExtractError> {
        let Some((period, matched)) = self.history.period() else {
            return Ok(false);
        };
        if skip.hold > 0 || matched < REPEATED_MIN.max(2 * period as u32) {
            return Ok(false);
        }
        let tracks = self.history.last(period).to_vec();
        let sectors: u64 = tracks.iter().map(|track| track.sectors).sum();
        let mut end = self.hand.first + sectors * skip.periods;
        while end >= self.hand.capacity && skip.periods > 1 {
            skip.halve(period);
            end = self.hand.first + sectors * skip.periods;
        }
        if end >= self.hand.capacity {
            return Ok(false);
        }
        let turn = self.turn_of(sectors, &tracks) * skip.periods as f64;
        let Some(at) = self
            .skip_end_angle(end, self.hand.at + turn, &tracks[period - 1], &tracks[0])
            .await?
        else {
            skip.failed(end, period);
            return Ok(false);
        };
        if !self
            .unlike_between(&tracks, skip.periods / 2 * sectors)
            .await?
        {
            skip.failed(end, period);
            return Ok(false);
        }
        let runs: Vec<(Sectors, u64)> = tracks
            .iter()
            .map(|track| (Sectors(track.sectors), 1))
            .collect();
        self.builder.push_pattern(&runs, skip.periods)?;
        self.counts.skipped += skip.periods * period as u64;
        self.stretch(self.hand.first, &tracks, skip.periods);
        match tracks[..] {
            [track] => self
                .runs
                .push(self.hand.first, self.hand.at, track, skip.periods),
            _ => self.runs.forget(),
        }
        self.history.repeat(&tracks, skip.periods);
        // Over more periods the turn is known more exactly.
        self.turn = (
            sectors,
            (turn + nearest(at - self.hand.at - turn)) / skip.periods as f64,
        );
        (self.hand.first, self.hand.at) = (end, at);
        skip.succeeded();
        Ok(true)
    }

    /// Returns true if the shortest track of the period `ahead` sectors further ends as predicted.
    /// Otherwise a hole and the track that compensates for the hole would be skipped unseen.
    async fn unlike_between(
        &mut self,
        tracks: &[FoundTrack],
        ahead: u64,
    ) -> Result<bool, ExtractError> {
        let shortest = (0..tracks.len())
            .min_by_key(|&index| tracks[index].sectors)
            .unwrap_or(0);
        if tracks
            .iter()
            .all(|track| track.sectors == tracks[shortest].sectors)
        {
            return Ok(true);
        }
        let before: u64 = tracks[..=shortest].iter().map(|track| track.sectors).sum();
        let end = self.hand.first + ahead + before;
        let track = tracks[shortest];
        let last = self.hand.angles.of(end - 1).await?;
        let next = self.hand.angles.of(end).await?;
        let back = (track.sectors - 1) as f64 * track.width - track.step;
        Ok(nearest(last - next - back).abs() < self.hand.off_line() / 2.0)
    }

    /// Returns the turn of the angle over a period.
    fn turn_of(&self, sectors: u64, tracks: &[FoundTrack]) -> f64 {
        let steps: f64 = tracks.iter().map(|track| track.step).sum();
        let (of, turn) = self.turn;
        // Both values are known only modulo whole revolutions.
        if of == sectors && nearest(turn - steps).abs() < OFF_LINE {
            turn
        } else {
            steps
        }
    }

    /// Returns the angle at `end`, if three conditions hold: the angle is about `at`, the track
    /// before `end` is like `last`, and the track behind `end` is like `first`.
    pub(super) async fn skip_end_angle(
        &mut self,
        end: u64,
        at: f64,
        last: &FoundTrack,
        first: &FoundTrack,
    ) -> Result<Option<f64>, ExtractError> {
        let limit = self.hand.off_line() / 2.0;
        let tries = if self.hand.quiet() { 1 } else { 2 };
        let back = (last.sectors - 1) as f64 * last.width - last.step;
        let within = self.hand.within(last.width);
        for _ in 0..tries {
            // The reads descend, because a buffer that reads ahead then holds none of the sectors.
            let behind = (end + first.sectors - 1).min(self.hand.capacity - 1);
            let over = (behind - end) as f64 * first.width;
            let far = self
                .hand
                .angles
                .of_expected(behind, at + over, within)
                .await?;
            let next = self.hand.angles.of_expected(end, at, within).await?;
            // A track of another zone may end here by chance, but has another length.
            if nearest(next - at).abs() >= limit || nearest(far - next - over).abs() >= limit {
                continue;
            }
            let before = self
                .hand
                .angles
                .of_expected(end - 1, at + back, within)
                .await?;
            if nearest(before - next - back).abs() < limit {
                return Ok(Some(next));
            }
        }
        Ok(None)
    }
}
