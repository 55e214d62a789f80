//! The track in hand: its line, and what is on it.

use super::{End, OFF_LINE};
use crate::extract::ExtractError;
use crate::extract::angles::{Angles, is_on_line, nearest};

/// Of the usual jump between tracks, what counts as off the line.
const OFF_PART: f64 = 0.4;

/// Sectors by which an angle may be off, and a little, where nothing comes late.
const MISREAD: f64 = 1.5;

/// Parts of a sector by one of which an angle may be off that was not misread.
const EXACT: f64 = 20.0;

/// Jumps of which the usual one is taken.
const JUMPS: usize = 15;

/// The track in hand.
#[derive(Debug)]
pub(super) struct Hand {
    pub(super) angles: Angles,
    pub(super) capacity: u64,
    /// Where it begins, and the angle there.
    pub(super) first: u64,
    pub(super) at: f64,
    /// The angle of a sector, as it is likely; 0 if nothing is known.
    pub(super) usual: f64,
    /// First sectors that are not on its line.
    pub(super) skipped: u64,
    /// The last jumps of the angle between tracks.
    jumps: Vec<f64>,
}

/// What lies between a sector on a track and one off its line.
#[derive(Clone, Copy, Debug)]
pub(super) enum Between {
    /// The angle jumps: the track ends.
    Jump(End),
    /// It does not; this is the first sector off the line.
    NoJump(End),
}

impl Between {
    pub(super) fn jump(self) -> Option<End> {
        match self {
            Between::Jump(end) => Some(end),
            Between::NoJump(_) => None,
        }
    }
}

/// A sector held against the line of a track.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) angle: f64,
    /// By how much it is off the line.
    pub(super) off: f64,
    /// Whether it is on the track.
    pub(super) on: bool,
}

impl Hand {
    /// The first track of a device.
    pub(super) async fn first(mut angles: Angles) -> Result<Hand, ExtractError> {
        let (capacity, at) = (angles.probe().capacity().0, angles.of(0).await?);
        Ok(Hand {
            angles,
            capacity,
            first: 0,
            at,
            usual: 0.0,
            skipped: 0,
            jumps: Vec::new(),
        })
    }

    /// Reads the sector at `offset` and holds it against the line of the track in
    /// hand. One that is not where it was expected is read twice, if it may have been
    /// misread.
    pub(super) async fn look(
        &mut self,
        offset: u64,
        width: f64,
        expected: bool,
    ) -> Result<Seen, ExtractError> {
        let seen = self.look_once(offset, width).await?;
        if seen.on == expected || !self.may_be_misread(seen.off, width) {
            return Ok(seen);
        }
        self.look_once(offset, width).await
    }

    /// Whether an angle so far off the line may be another the second time: reads are
    /// noticed late; or heads that need not wait for a sector's beginning have landed
    /// in it, which makes less than a sector. A second read costs an emptied buffer.
    pub(super) fn may_be_misread(&self, off: f64, width: f64) -> bool {
        !self.quiet() || off.abs() < MISREAD * width
    }

    /// Whether a sector so far off where it is expected cannot be that one, even if heads
    /// have landed in it.
    pub(super) fn is_elsewhere(&self, off: f64, width: f64) -> bool {
        nearest(off).abs() > self.rough().max(MISREAD * width).min(self.off_line() / 2.0)
    }

    /// Whether heads cannot have landed in a sector that is no further off than this.
    pub(super) fn is_exact(&self, off: f64, width: f64) -> bool {
        nearest(off).abs() < self.rough().max(width / EXACT)
    }

    pub(super) async fn look_once(
        &mut self,
        offset: u64,
        width: f64,
    ) -> Result<Seen, ExtractError> {
        let expected = self.at + offset as f64 * width;
        let angle = self
            .angles
            .of_expected(self.first + offset, expected, self.within(width))
            .await?;
        let off = nearest(angle - expected);
        Ok(Seen {
            angle,
            off,
            on: self.is_on(offset, width, off),
        })
    }

    /// Whether the sector at `offset` is on the track in hand, being so far off its
    /// line: holes put it ahead by a few whole sectors, noise either way; and a
    /// track is no more than one revolution.
    pub(super) fn is_on(&self, offset: u64, width: f64, off: f64) -> bool {
        let rough = self.rough();
        let limit = self.off_line();
        let within = offset.saturating_sub(self.skipped) as f64 * width < 1.0 - width / 2.0 + rough
            && off.abs() < limit;
        within && is_on_line(off, width, rough)
    }

    /// Whether sectors in front of the one at `offset`, which is on the line but for
    /// holes, are so, too: another zone's track may cross the line by chance.
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

    /// The angle of a sector, corrected by what one at `offset` is off: but not if
    /// that is for holes.
    pub(super) fn corrected(&self, width: f64, offset: u64, off: f64) -> f64 {
        let holes = off.abs() > self.within(width);
        if holes || offset == 0 {
            width
        } else {
            width + off / offset as f64
        }
    }

    /// By how much noise may put an angle off.
    pub(super) fn rough(&self) -> f64 {
        self.angles.rough()
    }

    /// By how much an angle may be off that is where it is expected.
    pub(super) fn within(&self, width: f64) -> f64 {
        self.angles.within(width)
    }

    /// Whether angles are so exact that none need be read twice.
    pub(super) fn quiet(&self) -> bool {
        self.angles.rotation().is_quiet()
    }

    /// By how much an angle is off the line where another track has begun.
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
    ) -> Result<Between, ExtractError> {
        self.between_seen(low, angle, high, None, width).await
    }

    /// The end of the track between a sector on it and one that is not, with their
    /// angles.
    pub(super) async fn between_seen(
        &mut self,
        mut low: u64,
        mut low_angle: f64,
        mut high: u64,
        mut high_angle: Option<f64>,
        width: f64,
    ) -> Result<Between, ExtractError> {
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
        let end = End {
            lbn: self.first + high,
            next,
            width,
        };
        // Where a track is about one whole revolution, the next may begin without a jump,
        // but not where its own next sector would.
        let turned = high as f64 * width;
        let full = (turned - 1.0).abs() < 1.5 * width;
        let own = turned < 1.0 - width / 2.0;
        let off = nearest(next - low_angle - width).abs();
        if !full && off < 1.5 * width || own && off < self.within(width) {
            return Ok(Between::NoJump(end));
        }
        Ok(Between::Jump(end))
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
