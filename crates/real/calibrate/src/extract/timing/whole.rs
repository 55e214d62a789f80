//! The end of a track, searched from its beginning.

use super::current_track::{AngleChange, CurrentTrack};
use super::{SHORT, TrackEnd};
use crate::extract::ExtractError;
use crate::extract::angles::{HOLES, nearest};
use fullstroke_tracks::TRACK_SECTORS_MAX;

/// Largest angle of a sector, in revolutions.
const FIRST_SECTOR_MAX: f64 = 0.13;

/// Part of a revolution behind a sector that a buffer may read before the next command arrives.
const FIRST_STEP: f64 = 0.07;

/// Largest number of attempts to draw a track's line.
const LINES_MAX: u32 = 16;

/// Distance in sectors from the beginning of a line within which a hole makes the line rough.
const NEARBY: u64 = 4;

/// Largest number of searches of a track.
const TRIES: u32 = 6;

/// Number of first sectors of a track that may lie elsewhere, because they were remapped.
const REMAPPED_MAX: u64 = 4;

/// The line of a track, from its first sector to one of its sectors.
#[derive(Clone, Copy, Debug)]
struct TrackLine {
    /// Offset of the last sector on the line.
    on: u64,
    /// Angle from the track's first sector to this sector.
    turned: f64,
    /// Angle of this sector.
    angle: f64,
}

impl TrackLine {
    /// Returns the angle of one sector.
    fn width(&self) -> f64 {
        if self.on == 0 {
            0.0
        } else {
            self.turned / self.on as f64
        }
    }
}

impl CurrentTrack {
    /// Searches the current track whole. If the first sector is remapped elsewhere, the line begins
    /// with the next sector.
    pub(super) async fn whole(&mut self) -> Result<TrackEnd, ExtractError> {
        for number in 0..TRIES {
            if number > 0 || !self.quiet() || self.usual == 0.0 {
                // The first sector may itself have been misread.
                self.at = self.angles.of(self.first).await?;
            }
            if number > TRIES / 2 {
                // The usual angle of a sector may be wrong.
                self.usual = 0.0;
            }
            match self.searched().await {
                Ok(None) => {}
                Ok(Some(end)) if number < TRIES - 1 && self.goes_on(&end) => {}
                // The line began with the usual angle of another zone.
                Err(ExtractError::CannotTell { .. }) if number < TRIES - 1 => {}
                found => return found?.ok_or_else(|| self.no_boundary(0)),
            }
        }
        Err(self.no_boundary(0))
    }

    /// Returns true if the next track would begin at the angle of this track's next sector, after
    /// only a few sectors. The first sector was misread then.
    fn goes_on(&self, end: &TrackEnd) -> bool {
        let sectors = end.lbn - self.first;
        let turned = nearest(end.next - self.at);
        let usual = sectors as f64 * self.usual;
        sectors < SHORT
            && end.lbn < self.capacity
            && usual > 0.0
            && (turned / usual - 1.0).abs() < 0.25
    }

    /// Searches the current track once. Returns `None` if reads that were noticed late form no
    /// line.
    async fn searched(&mut self) -> Result<Option<TrackEnd>, ExtractError> {
        let at = self.at;
        let (mut shortest, mut overlong) = (None, false);
        for skipped in 0..REMAPPED_MAX.min(self.capacity - self.first) {
            let mut begins = at;
            if skipped > 0 {
                begins = self.angles.of(self.first + skipped).await?;
                self.at = (begins - skipped as f64 * self.usual).rem_euclid(1.0);
            }
            self.skipped = skipped;
            let end = self.drawn(skipped).await?;
            self.skipped = 0;
            let sectors = end.lbn - self.first;
            if sectors < SHORT + skipped && end.lbn < self.capacity {
                shortest.get_or_insert(end);
                continue;
            }
            let on_line = sectors - if overlong { skipped } else { 0 };
            if on_line as f64 * end.width >= 1.0 + end.width / 2.0 {
                // The line is longer than a revolution, so the sectors before the line were a
                // track.
                if shortest.is_some() {
                    break;
                }
                overlong = true;
            } else if overlong {
                self.at = at;
                let lbn = self.first + skipped;
                return Ok(Some(TrackEnd {
                    lbn,
                    next: begins,
                    width: self.usual,
                }));
            } else {
                return Ok(Some(end));
            }
        }
        self.at = at;
        Ok(shortest)
    }

    /// Returns the end of the current track. The line is drawn out by doubling from the sector at
    /// `start`.
    async fn drawn(&mut self, start: u64) -> Result<TrackEnd, ExtractError> {
        let left = self.capacity - self.first;
        let before = start as f64 * self.usual;
        let mut line = TrackLine {
            on: start,
            turned: before,
            angle: self.at + before,
        };
        for _ in 0..LINES_MAX {
            let next = self.draw_out(&mut line).await?;
            let width = line.width();
            if next >= left {
                return Ok(TrackEnd {
                    lbn: self.capacity,
                    next: (self.at + left as f64 * width).fract(),
                    width,
                });
            }
            let end = match self.between(line.on, line.angle, next, width).await? {
                AngleChange::Jump(end) => return Ok(end),
                AngleChange::NoJump(end) => end,
            };
            // The end of the track may have been taken for a hole.
            if let Some(end) = self.first_off(line, end.lbn - self.first).await? {
                return Ok(end);
            }
            // The line was too rough. It continues from the sector off the line, unless that sector
            // is on no line at all.
            let on = end.lbn - self.first;
            let expected = width * on as f64;
            let turned = expected + nearest(end.next - self.at - expected);
            line = TrackLine {
                on,
                turned,
                angle: end.next,
            };
            let bent = line.width() < width * 0.8 || line.width() > width * 1.25;
            // Noise may bend a short line by as much.
            if expected >= 1.0 || bent && (turned - expected).abs() > self.rough() {
                return Ok(end);
            }
        }
        Err(self.no_boundary(line.on))
    }

    /// Returns the first sector behind the end of a line that is off the line by a hole or more.
    /// The search goes up to `high`, and only if angles are exact enough to show a hole.
    async fn first_off(
        &mut self,
        line: TrackLine,
        mut high: u64,
    ) -> Result<Option<TrackEnd>, ExtractError> {
        let (width, mut low, mut low_angle) = (line.width(), line.on, line.angle);
        if self.rough() > width / 3.0 {
            return Ok(None);
        }
        while high - low > 1 {
            let middle = low.midpoint(high);
            let seen = self.look(middle, width, true).await?;
            if seen.off.abs() < width / 3.0 {
                (low, low_angle) = (middle, seen.angle)
            } else {
                high = middle
            }
        }
        let next = self.angles.of(self.first + high).await?;
        let jumps = nearest(next - low_angle - width).abs() > 1.5 * width;
        Ok(jumps.then_some(TrackEnd {
            lbn: self.first + high,
            next,
            width,
        }))
    }

    /// Returns the number of sectors to which a line is first drawn out. If a buffer reads a little
    /// ahead and the angle of a sector is known, the first step goes beyond the buffered sectors.
    fn first_step(&self) -> u64 {
        let buffered = self.angles.rotation().evictions > 0 && self.quiet() && self.usual > 0.0;
        if buffered {
            (FIRST_STEP / self.usual) as u64
        } else {
            1
        }
    }

    /// Draws the line out to its end, by at most a factor of two at a time. Returns the offset of
    /// the first sector read that is not on the line.
    async fn draw_out(&mut self, line: &mut TrackLine) -> Result<u64, ExtractError> {
        let left = self.capacity - self.first;
        loop {
            let next = (2 * line.on)
                .max(self.first_step())
                .min(left - 1)
                .max(line.on + 1);
            if next >= left {
                return Ok(next);
            }
            if line.on > TRACK_SECTORS_MAX {
                return Err(self.no_boundary(line.on));
            }
            let angle = self.angles.of(self.first + next).await?;
            let width = if line.on == 0 {
                self.usual
            } else {
                line.width()
            };
            let expected = width * next as f64;
            let off = nearest(angle - self.at - expected);
            if !self.draws_on(next, width, off) {
                if width > 0.0 && !self.may_be_misread(off, width) {
                    return Ok(next);
                }
                // Read twice, as in `look`.
                let angle = self.angles.of(self.first + next).await?;
                let off = nearest(angle - self.at - expected);
                if !self.draws_on(next, width, off) {
                    return Ok(next);
                }
                *line = TrackLine {
                    on: next,
                    turned: expected + off,
                    angle,
                };
                continue;
            }
            *line = TrackLine {
                on: next,
                turned: expected + off,
                angle,
            };
        }
    }

    /// Returns true if a line continues to the sector at `offset`. Holes near the beginning make
    /// the line rough either way.
    fn draws_on(&self, offset: u64, width: f64, off: f64) -> bool {
        // The width comes from a line half as long, and contains its noise.
        let noisy = 2.0 * self.rough() / offset as f64;
        if offset > 1 && width + noisy < 1.0 / TRACK_SECTORS_MAX as f64 {
            return false;
        }
        if width == 0.0 {
            // Nothing is known of the very first sector except that its angle is less than a track.
            return off.abs() < FIRST_SECTOR_MAX;
        }
        let near =
            offset <= NEARBY && off.abs() < self.off_line().min(HOLES * width + self.rough());
        near || self.is_on(offset, width, off)
    }
}
