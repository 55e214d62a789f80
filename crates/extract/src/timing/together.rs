//! Tracks confirmed together, where a buffer holds whole ones.
//!
//! There the last sector of a track is in the buffer once its first was read, until a
//! few reads elsewhere have driven it out. So the last sectors of as many predicted
//! tracks are read one after the other, and then the first ones of those behind: each
//! drives out others, and two reads a track are enough.

use super::{End, Walk};
use crate::ExtractError;
use crate::angles::nearest;
use crate::pattern::FoundTrack;

/// So many times as many as empty the buffer.
const TIMES: usize = 2;

/// Parts of a sector by one of which an angle may be off that was not misread.
const SETTLED: f64 = 20.0;

impl Walk {
    /// Confirms the next tracks, if they repeat, up to the first that is not as
    /// predicted; says whether there was one before it.
    pub(super) async fn together(&mut self) -> Result<bool, ExtractError> {
        let rotation = self.hand.angles.rotation();
        if !rotation.whole_tracks || !self.hand.quiet() {
            return Ok(false);
        }
        let mut tracks = self.history.following(TIMES * rotation.evictions as usize);
        let (mut begins, mut expected) = (Vec::with_capacity(tracks.len()), Vec::with_capacity(tracks.len()));
        let (mut begin, mut at) = (self.hand.first, self.hand.at);
        for track in &tracks {
            (begin, at) = (begin + track.sectors, at + track.step);
            begins.push(begin);
            expected.push(at);
        }
        tracks.truncate(begins.partition_point(|&begin| begin < self.hand.capacity));
        let reads = self.hand.angles.probe().effort().reads;
        // From above: a buffer that has read ahead has none of them.
        let mut lasts = vec![0.0; tracks.len()];
        let mut nexts = vec![0.0; tracks.len()];
        for index in (0..tracks.len()).rev() {
            let track = tracks[index];
            let at = expected[index] - track.step + (track.sectors - 1) as f64 * track.width;
            let within = self.hand.rough().max(track.width / 3.0);
            lasts[index] = self.hand.angles.of_expected(begins[index] - 1, at, within).await?;
        }
        for index in (0..tracks.len()).rev() {
            let within = self.hand.rough().max(tracks[index].width / 3.0);
            nexts[index] = self.hand.angles.of_expected(begins[index], expected[index], within).await?;
        }
        let mut confirmed = 0;
        for (index, track) in tracks.iter().enumerate() {
            let FoundTrack { sectors, width, step } = *track;
            let off = nearest(lasts[index] - self.hand.at - (sectors - 1) as f64 * width);
            let jump = nearest(nexts[index] - self.hand.at - sectors as f64 * width);
            if self.hand.is_misread(off, width) || jump.abs() < self.hand.off_line() {
                break;
            }
            // Of a sector in which heads have landed, what was expected is the better.
            let (expected, seen) = (self.hand.at + step, nexts[index]);
            let exact = nearest(seen - expected).abs() < self.hand.rough().max(width / SETTLED);
            let near = !self.hand.is_misread(seen - expected, width);
            let next = if near && !exact { expected.rem_euclid(1.0) } else { seen };
            self.take(End { lbn: begins[index], next, width }, Some(*track))?;
            confirmed += 1;
        }
        self.counts.predicted += confirmed;
        self.counts.predicted_reads += self.hand.angles.probe().effort().reads - reads;
        Ok(confirmed > 0)
    }
}
