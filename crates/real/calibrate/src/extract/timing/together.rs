//! Tracks confirmed together, where a buffer holds whole ones.
//!
//! There the last sector of a track is in the buffer once its first was read, until a
//! few reads elsewhere have driven it out. So the last sectors of as many predicted
//! tracks are read one after the other, and then the first ones of those behind: each
//! drives out others, and two reads a track are enough.

use super::{End, Walk};
use crate::extract::ExtractError;
use crate::extract::angles::nearest;
use crate::extract::pattern::FoundTrack;

/// So many times as many as empty the buffer.
const TIMES: usize = 2;

/// A track that is predicted, and what is read of it.
struct Ahead {
    track: FoundTrack,
    /// The first address behind it, and the angle that is expected there.
    end: u64,
    expected: f64,
    /// The angles of its last sector and of the one behind it.
    last: f64,
    next: f64,
}

impl Walk {
    /// Confirms the next tracks, if they repeat, up to the first that is not as
    /// predicted; says whether there was one before it.
    pub(super) async fn together(&mut self) -> Result<bool, ExtractError> {
        let rotation = self.hand.angles.rotation();
        if !rotation.whole_tracks || !self.hand.quiet() {
            return Ok(false);
        }
        let reads = self.hand.angles.probe().effort().reads;
        let mut confirmed = 0;
        for ahead in self.read_ahead(TIMES * rotation.evictions as usize).await? {
            let FoundTrack {
                sectors,
                width,
                step,
            } = ahead.track;
            let off = ahead.last - self.hand.at - (sectors - 1) as f64 * width;
            let jump = nearest(ahead.next - self.hand.at - sectors as f64 * width);
            if self.hand.is_elsewhere(off, width) || jump.abs() < self.hand.off_line() {
                break;
            }
            // Of a sector in which heads have landed, what was expected is the better.
            let expected = self.hand.at + step;
            let off = ahead.next - expected;
            let landed = !self.hand.is_exact(off, width) && !self.hand.is_elsewhere(off, width);
            let next = if landed {
                expected.rem_euclid(1.0)
            } else {
                ahead.next
            };
            self.take(
                End {
                    lbn: ahead.end,
                    next,
                    width,
                },
                Some(ahead.track),
            )?;
            confirmed += 1;
        }
        self.counts.predicted += confirmed;
        self.counts.predicted_reads += self.hand.angles.probe().effort().reads - reads;
        Ok(confirmed > 0)
    }

    /// Reads the ends of the next `count` tracks, if they repeat. From above: a buffer
    /// that has read ahead has none of them.
    async fn read_ahead(&mut self, count: usize) -> Result<Vec<Ahead>, ExtractError> {
        let mut tracks = Vec::with_capacity(count);
        let (mut end, mut expected) = (self.hand.first, self.hand.at);
        for track in self.history.following(count) {
            (end, expected) = (end + track.sectors, expected + track.step);
            if end < self.hand.capacity {
                tracks.push(Ahead {
                    track,
                    end,
                    expected,
                    last: 0.0,
                    next: 0.0,
                });
            }
        }
        for Ahead {
            track,
            end,
            expected,
            last,
            ..
        } in tracks.iter_mut().rev()
        {
            let at = *expected - track.step + (track.sectors - 1) as f64 * track.width;
            let within = self.hand.within(track.width);
            *last = self.hand.angles.of_expected(*end - 1, at, within).await?;
        }
        for Ahead {
            track,
            end,
            expected,
            next,
            ..
        } in tracks.iter_mut().rev()
        {
            let within = self.hand.within(track.width);
            *next = self
                .hand
                .angles
                .of_expected(*end, *expected, within)
                .await?;
        }
        Ok(tracks)
    }
}
