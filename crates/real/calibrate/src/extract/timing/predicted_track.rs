//! Tracks confirmed together, where a buffer holds whole tracks.
//!
//! With such a buffer, the last sector of a track is in the buffer once the first sector was read.
//! A few reads elsewhere push it out. So the last sectors of as many predicted tracks are read one
//! after the other, and then the first sectors of the tracks behind. Each read pushes other data
//! out, and two reads per track are enough.

use super::{TrackEnd, Walk};
use crate::extract::ExtractError;
use crate::extract::angles::nearest;
use crate::extract::pattern::FoundTrack;

/// Number of tracks read together, as a multiple of the reads that empty the buffer.
const TIMES: usize = 2;

/// A predicted track, and the angles measured on it.
struct PredictedTrack {
    track: FoundTrack,
    /// First address behind the track. `expected` is the angle expected there.
    end: u64,
    expected: f64,
    /// Angle of the last sector of the track. `next` is the angle of the sector behind.
    last: f64,
    next: f64,
}

impl Walk {
    /// Confirms the next tracks, if tracks repeat, up to the first that differs from its
    /// prediction. Returns true if at least one track was confirmed.
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
            // If heads have landed in the sector, the expected angle is better than the measured
            // one.
            let expected = self.hand.at + step;
            let off = ahead.next - expected;
            let landed = !self.hand.is_exact(off, width) && !self.hand.is_elsewhere(off, width);
            let next = if landed {
                expected.rem_euclid(1.0)
            } else {
                ahead.next
            };
            self.take(
                TrackEnd {
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

    /// Reads the ends of the next `count` tracks, if tracks repeat. The reads descend, because a
    /// buffer that reads ahead then holds none of the sectors.
    async fn read_ahead(&mut self, count: usize) -> Result<Vec<PredictedTrack>, ExtractError> {
        let mut tracks = Vec::with_capacity(count);
        let (mut end, mut expected) = (self.hand.first, self.hand.at);
        for track in self.history.following(count) {
            (end, expected) = (end + track.sectors, expected + track.step);
            if end < self.hand.capacity {
                tracks.push(PredictedTrack {
                    track,
                    end,
                    expected,
                    last: 0.0,
                    next: 0.0,
                });
            }
        }
        for PredictedTrack {
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
        for PredictedTrack {
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
