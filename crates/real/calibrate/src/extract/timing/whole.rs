//! A track's end, searched from its beginning.

use super::hand::{Between, Hand};
use super::{End, SHORT};
use crate::extract::ExtractError;
use crate::extract::angles::{HOLES, nearest};
use fullstroke_tracks::TRACK_SECTORS_MAX;

/// The angle of a sector at most.
const FIRST_SECTOR_MAX: f64 = 0.13;

/// The part of a revolution behind a sector that a buffer may have read before it is
/// given the next command.
const FIRST_STEP: f64 = 0.07;

/// Times that a track's line is drawn anew at most.
const LINES_MAX: u32 = 16;

/// Sectors from the beginning of a line within which a hole makes it rough.
const NEARBY: u64 = 4;

/// Times that a track is searched anew at most.
const TRIES: u32 = 6;

/// First sectors of a track that may live elsewhere.
const REMAPPED_MAX: u64 = 4;

/// The line of a track, to one of its sectors.
#[derive(Clone, Copy, Debug)]
struct Line {
    /// That sector's offset.
    on: u64,
    /// The angle from the track's first sector to it.
    turned: f64,
    /// Its angle.
    angle: f64,
}

impl Line {
    /// The angle of a sector.
    fn width(&self) -> f64 {
        if self.on == 0 {
            0.0
        } else {
            self.turned / self.on as f64
        }
    }
}

impl Hand {
    /// Searches the track in hand whole. Its first sector may live elsewhere: then
    /// its line begins with the next.
    pub(super) async fn whole(&mut self) -> Result<End, ExtractError> {
        for number in 0..TRIES {
            if number > 0 || !self.quiet() || self.usual == 0.0 {
                // It may itself have been misread.
                self.at = self.angles.of(self.first).await?;
            }
            if number > TRIES / 2 {
                // What is thought to be usual may be what is wrong.
                self.usual = 0.0;
            }
            match self.searched().await {
                Ok(None) => {}
                Ok(Some(end)) if number < TRIES - 1 && self.goes_on(&end) => {}
                // A line that was begun with what is usual elsewhere.
                Err(ExtractError::CannotTell { .. }) if number < TRIES - 1 => {}
                found => return found?.ok_or_else(|| self.no_boundary(0)),
            }
        }
        Err(self.no_boundary(0))
    }

    /// Whether the next track would begin just where this one's next sector would be,
    /// after a few sectors: then the first was misread.
    fn goes_on(&self, end: &End) -> bool {
        let sectors = end.lbn - self.first;
        let turned = nearest(end.next - self.at);
        let usual = sectors as f64 * self.usual;
        sectors < SHORT
            && end.lbn < self.capacity
            && usual > 0.0
            && (turned / usual - 1.0).abs() < 0.25
    }

    /// The same, once; nothing where reads that were noticed late make no line.
    async fn searched(&mut self) -> Result<Option<End>, ExtractError> {
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
                // More than a revolution: what came before the line was a track.
                if shortest.is_some() {
                    break;
                }
                overlong = true;
            } else if overlong {
                self.at = at;
                let lbn = self.first + skipped;
                return Ok(Some(End {
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

    /// The end of the track in hand, whose line is drawn out by doubling from the
    /// sector at `start`.
    async fn drawn(&mut self, start: u64) -> Result<End, ExtractError> {
        let left = self.capacity - self.first;
        let before = start as f64 * self.usual;
        let mut line = Line {
            on: start,
            turned: before,
            angle: self.at + before,
        };
        for _ in 0..LINES_MAX {
            let next = self.draw_out(&mut line).await?;
            let width = line.width();
            if next >= left {
                return Ok(End {
                    lbn: self.capacity,
                    next: (self.at + left as f64 * width).fract(),
                    width,
                });
            }
            let end = match self.between(line.on, line.angle, next, width).await? {
                Between::Jump(end) => return Ok(end),
                Between::NoJump(end) => end,
            };
            // What was taken for holes may have been the end.
            if let Some(end) = self.first_off(line, end.lbn - self.first).await? {
                return Ok(end);
            }
            // The line was too rough. It goes on from what was off it, unless that
            // is on no line at all.
            let on = end.lbn - self.first;
            let expected = width * on as f64;
            let turned = expected + nearest(end.next - self.at - expected);
            line = Line {
                on,
                turned,
                angle: end.next,
            };
            let bent = line.width() < width * 0.8 || line.width() > width * 1.25;
            // By how much it bends, noise may make of a short line.
            if expected >= 1.0 || bent && (turned - expected).abs() > self.rough() {
                return Ok(end);
            }
        }
        Err(self.no_boundary(line.on))
    }

    /// The first sector behind the end of a line that is off it by as much as a
    /// hole, up to the one at `high`, if angles are exact enough to see that.
    async fn first_off(&mut self, line: Line, mut high: u64) -> Result<Option<End>, ExtractError> {
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
        Ok(jumps.then_some(End {
            lbn: self.first + high,
            next,
            width,
        }))
    }

    /// Sectors that a line is first drawn out to: where a buffer has read a little ahead,
    /// and about how wide a sector is is known, behind that.
    fn first_step(&self) -> u64 {
        let buffered = self.angles.rotation().evictions > 0 && self.quiet() && self.usual > 0.0;
        if buffered {
            (FIRST_STEP / self.usual) as u64
        } else {
            1
        }
    }

    /// Draws the line out to where it ends, at most twice as far at a time: says
    /// which sector is no more on it.
    async fn draw_out(&mut self, line: &mut Line) -> Result<u64, ExtractError> {
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
                // Twice, as elsewhere.
                let angle = self.angles.of(self.first + next).await?;
                let off = nearest(angle - self.at - expected);
                if !self.draws_on(next, width, off) {
                    return Ok(next);
                }
                *line = Line {
                    on: next,
                    turned: expected + off,
                    angle,
                };
                continue;
            }
            *line = Line {
                on: next,
                turned: expected + off,
                angle,
            };
        }
    }

    /// Whether a line goes on to the sector at `offset`. Holes near its beginning
    /// make it rough either way.
    fn draws_on(&self, offset: u64, width: f64, off: f64) -> bool {
        // The line reaches half as far, and noise is in its width.
        let noisy = 2.0 * self.rough() / offset as f64;
        if offset > 1 && width + noisy < 1.0 / TRACK_SECTORS_MAX as f64 {
            return false;
        }
        if width == 0.0 {
            // Of the very first sector nothing is known but that it is no track.
            return off.abs() < FIRST_SECTOR_MAX;
        }
        let near =
            offset <= NEARBY && off.abs() < self.off_line().min(HOLES * width + self.rough());
        near || self.is_on(offset, width, off)
    }
}
