//! The current track: its line, and the sectors on the line.

use super::{OFF_LINE, TrackEnd};
use crate::extract::ExtractError;
use crate::extract::angles::{Angles, is_on_line, nearest};

/// Fraction of the usual jump between tracks from which on a sector counts as off the line.
const OFF_PART: f64 = 0.4;

/// Largest error of an angle where nothing comes late, in sectors, with a margin.
const MISREAD: f64 = 1.5;

/// Divisor of a sector: an angle that was not misread is off by at most one such part.
const EXACT: f64 = 20.0;

/// Number of jumps. Their median is the usual jump.
const JUMPS: usize = 15;

/// The current track.
#[derive(Debug)]
pub(super) struct CurrentTrack {
    pub(super) angles: Angles,
    pub(super) capacity: u64,
    /// First address of the track, and the angle there.
    pub(super) first: u64,
    pub(super) at: f64,
    /// Likely angle of a sector; 0 if unknown.
    pub(super) usual: f64,
    /// Number of first sectors off the line.
    pub(super) skipped: u64,
    /// The last jumps of the angle between tracks.
    jumps: Vec<f64>,
}

/// Change of the angle between a sector on a track and a sector off its line.
#[derive(Clone, Copy, Debug)]
pub(super) enum AngleChange {
    /// The angle jumps: the track ends.
    Jump(TrackEnd),
    /// The angle does not jump. The value is the first sector off the line.
    NoJump(TrackEnd),
}

impl AngleChange {
    pub(super) fn jump(self) -> Option<TrackEnd> {
        match self {
            AngleChange::Jump(end) => Some(end),
            AngleChange::NoJump(_) => None,
        }
    }
}

/// A sector compared with the line of a track.
#[derive(Clone, Copy, Debug)]
pub(super) struct ComparedSector {
    pub(super) angle: f64,
    /// Distance of the angle from the line.
    pub(super) off: f64,
    /// True if the sector is on the track.
    pub(super) on: bool,
}

impl CurrentTrack {
    /// Returns the first track of a device.
    pub(super) async fn first(mut angles: Angles) -> Result<CurrentTrack, ExtractError> {
        let (capacity, at) = (angles.probe().capacity().0, angles.of(0).await?);
        Ok(CurrentTrack {
            angles,
            capacity,
            first: 0,
            at,
            usual: 0.0,
            skipped: 0,
            jumps: Vec::new(),
        })
    }

    /// Reads the sector at `offset` and compares its angle with the line of the current track. An
    /// unexpected angle is read twice, if the sector may have been misread.
    pub(super) async fn look(
        &mut self,
        offset: u64,
        width: f64,
        expected: bool,
    ) -> Result<ComparedSector, ExtractError> {
        let seen = self.look_once(offset, width).await?;
        if seen.on == expected || !self.may_be_misread(seen.off, width) {
            return Ok(seen);
        }
        self.look_once(offset, width).await
    }

    /// Returns true if a second read may give another angle than one `off` the line. One reason is
    /// a read that is noticed late. The other is a drive whose heads land within a sector and need
    /// not wait for the sector's beginning. This error is below one sector. The test avoids
    /// needless second reads, because a second read costs an emptied buffer.
    pub(super) fn may_be_misread(&self, off: f64, width: f64) -> bool {
        !self.quiet() || off.abs() < MISREAD * width
    }

    /// Returns true if a sector with this distance from its expected angle must be another sector,
    /// even if heads have landed in it.
    pub(super) fn is_elsewhere(&self, off: f64, width: f64) -> bool {
        nearest(off).abs() > self.rough().max(MISREAD * width).min(self.off_line() / 2.0)
    }

    /// Returns true if the angle is so near the expected angle that heads cannot have landed in the
    /// sector.
    pub(super) fn is_exact(&self, off: f64, width: f64) -> bool {
        nearest(off).abs() < self.rough().max(width / EXACT)
    }

    pub(super) async fn look_once(
        &mut self,
        offset: u64,
        width: f64,
    ) -> Result<ComparedSector, ExtractError> {
        let expected = self.at + offset as f64 * width;
        let angle = self
            .angles
            .of_expected(self.first + offset, expected, self.within(width))
            .await?;
        let off = nearest(angle - expected);
        Ok(ComparedSector {
            angle,
            off,
            on: self.is_on(offset, width, off),
        })
    }

    /// Returns true if the sector at `offset`, which is `off` the line, is on the current track.
    /// Holes put a sector ahead by a few whole sectors, noise either way. A track is no longer than
    /// one revolution.
    pub(super) fn is_on(&self, offset: u64, width: f64, off: f64) -> bool {
        let rough = self.rough();
        let limit = self.off_line();
        let within = offset.saturating_sub(self.skipped) as f64 * width < 1.0 - width / 2.0 + rough
            && off.abs() < limit;
        within && is_on_line(off, width, rough)
    }

    /// Returns true if sectors before `offset` are on the line as well. The sector at `offset` is
    /// on the line except for holes, but a track of another zone may cross the line by chance.
    pub(super) async fn line_holds(
        &mut self,
        offset: u64,
        width: f64,
        off: f64,
    ) -> Result<bool, ExtractError> {
        if off.abs() < self.within(width) {
            return Ok(true);
        }
        for part in [offset / 3, offset * 2 / 3] {
            if !self.look(part, width, true).await?.on {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the angle of one sector, corrected by the error at `offset`. An error from holes
    /// corrects nothing.
    pub(super) fn corrected(&self, width: f64, offset: u64, off: f64) -> f64 {
        let holes = off.abs() > self.within(width);
        if holes || offset == 0 {
            width
        } else {
            width + off / offset as f64
        }
    }

    /// Returns the largest error of an angle from noise.
    pub(super) fn rough(&self) -> f64 {
        self.angles.rough()
    }

    /// Returns the tolerance for the angle of a sector at its expected place.
    pub(super) fn within(&self, width: f64) -> f64 {
        self.angles.within(width)
    }

    /// Returns true if angles are so exact that no read need be repeated.
    pub(super) fn quiet(&self) -> bool {
        self.angles.rotation().is_quiet()
    }

    /// Returns the distance of an angle from the line from which on another track has begun.
    pub(super) fn off_line(&self) -> f64 {
        if self.jumps.len() < 3 {
            return OFF_LINE;
        }
        let mut jumps = self.jumps.clone();
        jumps.sort_by(f64::total_cmp);
        (jumps[jumps.len() / 2] * OFF_PART).max(OFF_LINE)
    }

    pub(super) fn jump(&mut self, jump: f64) {
        if self.jumps.len() == JUMPS {
            self.jumps.remove(0);
        }
        self.jumps.push(jump.abs());
    }

    pub(super) async fn between(
        &mut self,
        low: u64,
        angle: f64,
        high: u64,
        width: f64,
    ) -> Result<AngleChange, ExtractError> {
        self.between_seen(low, angle, high, None, width).await
    }

    /// Returns the end of the track between a sector on the track and a sector off the track. The
    /// angles of both sectors are given.
    pub(super) async fn between_seen(
        &mut self,
        mut low: u64,
        mut low_angle: f64,
        mut high: u64,
        mut high_angle: Option<f64>,
        width: f64,
    ) -> Result<AngleChange, ExtractError> {
        while high - low > 1 {
            let middle = low.midpoint(high);
            let seen = self.look(middle, width, true).await?;
            if seen.on {
                (low, low_angle) = (middle, seen.angle);
            } else {
                (high, high_angle) = (middle, Some(seen.angle));
            }
        }
        let next = match high_angle {
            Some(angle) => angle,
            None => self.angles.of(self.first + high).await?,
        };
        let end = TrackEnd {
            lbn: self.first + high,
            next,
            width,
        };
        // Where a track covers about one whole revolution, the next track may begin without a jump.
        // But the next track cannot begin at the angle of the track's own next sector.
        let turned = high as f64 * width;
        let full = (turned - 1.0).abs() < 1.5 * width;
        let own = turned < 1.0 - width / 2.0;
        let off = nearest(next - low_angle - width).abs();
        if !full && off < 1.5 * width || own && off < self.within(width) {
            return Ok(AngleChange::NoJump(end));
        }
        Ok(AngleChange::Jump(end))
    }

    pub(super) fn no_boundary(&self, sectors: u64) -> ExtractError {
        let saw = format!(
            "the angle goes on evenly over {sectors} sectors from {} on: tracks are not skewed, or the device is \
             no disk",
            self.first
        );
        ExtractError::cannot_tell("where tracks end", saw)
    }
}
