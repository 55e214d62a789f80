//! The end of a track at or near the predicted address.

use super::TrackEnd;
use super::current_track::{ComparedSector, CurrentTrack};
use crate::extract::ExtractError;
use crate::extract::angles::nearest;
use crate::extract::pattern::FoundTrack;

/// Distance in sectors from a predicted end. This range is searched before the whole track.
pub(super) const NEAR: u64 = 64;

impl CurrentTrack {
    /// Returns the end of the current track, if the end is as of `track`.
    pub(super) async fn exactly(
        &mut self,
        track: FoundTrack,
    ) -> Result<Option<TrackEnd>, ExtractError> {
        let FoundTrack { sectors, width, .. } = track;
        if sectors >= self.capacity - self.first {
            return Ok(None);
        }
        let last = self.look_once(sectors - 1, width).await?;
        if last.off.abs() > self.rough().max(width / 5.0) {
            return Ok(None);
        }
        let next = self.look_once(sectors, width).await?;
        let end = TrackEnd {
            lbn: self.first + sectors,
            next: next.angle,
            width,
        };
        Ok((next.off.abs() > self.off_line()).then_some(end))
    }

    /// Returns the end of the current track, if the end is as predicted or a little behind.
    pub(super) async fn as_predicted(
        &mut self,
        predicted: FoundTrack,
    ) -> Result<Option<TrackEnd>, ExtractError> {
        let FoundTrack { sectors, width, .. } = predicted;
        let left = self.capacity - self.first;
        if sectors > left {
            return Ok(None);
        }
        let last = self.look(sectors - 1, width, true).await?;
        if last.on && self.line_holds(sectors - 1, width, last.off).await? {
            let width = self.corrected(width, sectors - 1, last.off);
            return self
                .end_behind(sectors - 1, last.angle, width, &predicted)
                .await;
        }
        Ok(None)
    }

    /// Returns the end of the current track, if the end is a little before the prediction.
    pub(super) async fn before(
        &mut self,
        predicted: FoundTrack,
    ) -> Result<Option<TrackEnd>, ExtractError> {
        let FoundTrack { sectors, width, .. } = predicted;
        if sectors > self.capacity - self.first {
            return Ok(None);
        }
        let mut step = 1;
        let mut off = sectors - 1;
        while step <= NEAR && step < off {
            let offset = sectors - 1 - step;
            let seen = self.look(offset, width, true).await?;
            if seen.on && self.line_holds(offset, width, seen.off).await? {
                let width = self.corrected(width, offset, seen.off);
                return Ok(self.between(offset, seen.angle, off, width).await?.jump());
            }
            off = offset;
            step *= 2;
        }
        Ok(None)
    }

    /// Returns the end of the current track behind the sector `on`, which is on the track at
    /// `angle`.
    async fn end_behind(
        &mut self,
        on: u64,
        angle: f64,
        width: f64,
        predicted: &FoundTrack,
    ) -> Result<Option<TrackEnd>, ExtractError> {
        let left = self.capacity - self.first;
        let (mut low, mut low_angle) = (on, angle);
        let mut step = 1;
        while step <= NEAR {
            let offset = on + step;
            if offset >= left {
                return self.last_track(low, low_angle, width).await;
            }
            let seen = match step {
                1 => self.look_behind(offset, width, predicted).await?,
                _ => self.look(offset, width, false).await?,
            };
            if !seen.on {
                let angle = self.settled(offset, seen.angle, predicted).await?;
                let between = self
                    .between_seen(low, low_angle, offset, Some(angle), width)
                    .await?;
                return Ok(between.jump());
            }
            (low, low_angle) = (offset, seen.angle);
            step *= 2;
        }
        Ok(None)
    }

    /// Reads the sector at `offset`, which should be the first of the next track.
    async fn look_behind(
        &mut self,
        offset: u64,
        width: f64,
        predicted: &FoundTrack,
    ) -> Result<ComparedSector, ExtractError> {
        let (expected, within) = (self.at + predicted.step, self.within(width));
        let angle = self
            .angles
            .of_expected(self.first + offset, expected, within)
            .await?;
        let off = nearest(angle - self.at - offset as f64 * width);
        if self.is_on(offset, width, off) {
            return self.look_once(offset, width).await;
        }
        Ok(ComparedSector {
            angle,
            off,
            on: false,
        })
    }

    /// Returns the angle of the next track's first sector, which is at `offset`. The sector is read
    /// again if its angle is near the prediction but not exact.
    async fn settled(
        &mut self,
        offset: u64,
        angle: f64,
        predicted: &FoundTrack,
    ) -> Result<f64, ExtractError> {
        let off = nearest(angle - self.at - predicted.step);
        let width = predicted.width;
        if self.is_exact(off, width) || off.abs() > self.rough().max(1.5 * width) {
            return Ok(angle);
        }
        self.angles.of(self.first + offset).await
    }

    /// Returns the end of the last track, on which the sector `on` lies. The track reaches to the
    /// capacity if the last address is on the track.
    async fn last_track(
        &mut self,
        on: u64,
        angle: f64,
        width: f64,
    ) -> Result<Option<TrackEnd>, ExtractError> {
        let last = self.capacity - self.first - 1;
        if on == last || self.look(last, width, true).await?.on {
            let next = self.at + (last + 1) as f64 * width;
            return Ok(Some(TrackEnd {
                lbn: self.capacity,
                next: next.fract(),
                width,
            }));
        }
        Ok(self.between(on, angle, last, width).await?.jump())
    }
}
