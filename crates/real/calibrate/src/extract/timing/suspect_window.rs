//! Detects a walk that no longer follows tracks.
//!
//! Where completions are noticed too late, predictions fail by chance. Tracks are then searched
//! again and again. Each sector is read many times until two reads agree, and the results are
//! pieces of tracks. Such a walk is stopped, because it would continue for hours. The limits are
//! several times the needs of the library's drives at the largest noise at which their tracks are
//! found.

use crate::extract::ExtractError;
use crate::extract::angles::Rotation;

/// Number of tracks judged together.
const WINDOW: u64 = 128;

/// At most one of this many tracks may need a search.
const SEARCHED: u64 = 3;

/// Largest mean number of reads of a predicted track. Each read may cost as many more as empty the
/// buffer.
const PREDICTED_READS: u64 = 32;

/// A track counts as a piece if it is shorter than a third of the longest track of the window. The
/// lengths of zones and of tracks with holes differ by less. One of `PIECES` tracks may be a piece.
const PIECE: u64 = 3;
const PIECES: u64 = 8;

/// The tracks of the current window.
#[derive(Debug, Default)]
pub(super) struct SuspectWindow {
    searched: u64,
    predicted: u64,
    predicted_reads: u64,
    lengths: Vec<u64>,
}

impl SuspectWindow {
    /// Adds a track of `sectors` sectors, found by `reads` reads, at the predicted address or by
    /// search.
    ///
    /// # Errors
    /// If the last tracks seem to be no tracks.
    pub(super) fn track(
        &mut self,
        sectors: u64,
        reads: u64,
        predicted: bool,
        rotation: Rotation,
    ) -> Result<(), ExtractError> {
        if rotation.is_quiet() {
            return Ok(());
        }
        if predicted {
            self.predicted += 1;
            self.predicted_reads += reads;
        } else {
            self.searched += 1;
        }
        self.lengths.push(sectors);
        if self.lengths.len() as u64 == WINDOW {
            std::mem::take(self).judge(rotation)
        } else {
            Ok(())
        }
    }

    fn judge(&self, rotation: Rotation) -> Result<(), ExtractError> {
        let longest = self.lengths.iter().copied().max().unwrap_or(0);
        let pieces = self
            .lengths
            .iter()
            .filter(|&&sectors| sectors * PIECE < longest)
            .count() as u64;
        let reads = self.predicted_reads / self.predicted.max(1);
        let reads_max =
            PREDICTED_READS * (1 + rotation.long_evictions.unwrap_or(rotation.evictions));
        if self.searched <= WINDOW / SEARCHED && reads <= reads_max && pieces <= WINDOW / PIECES {
            return Ok(());
        }
        let saw = format!(
            "of {WINDOW} tracks {} do not begin where they are predicted (limit {}), the others take {reads} reads each \
             (limit {reads_max}), and {pieces} are at most a third as long as others (limit {}); noise is \
             {:.2} % of a revolution: a busy host, or a buffer in between",
            self.searched,
            WINDOW / SEARCHED,
            WINDOW / PIECES,
            rotation.noise * 100.0
        );
        Err(ExtractError::cannot_tell("where tracks end", saw))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rotation(noise: f64) -> Rotation {
        Rotation {
            revolution_ns: 6e6,
            noise,
            ..Rotation::default()
        }
    }

    #[test]
    fn searches_reads_and_pieces_each_end_a_noisy_walk() {
        let walk = |noise, track: &dyn Fn(u64) -> (u64, u64, bool)| {
            let mut doubt = SuspectWindow::default();
            (0..WINDOW).try_for_each(|number| {
                let (sectors, reads, predicted) = track(number);
                doubt.track(sectors, reads, predicted, rotation(noise))
            })
        };
        assert_eq!(walk(0.002, &|_| (400, 9, true)), Ok(()));
        assert_eq!(walk(0.002, &|number| (400, 9, number % 4 > 0)), Ok(()));
        assert!(walk(0.002, &|number| (400, 9, number % 2 > 0)).is_err());
        assert!(walk(0.002, &|_| (400, 40, true)).is_err());
        assert!(
            walk(0.002, &|number| (
                if number % 4 == 0 { 9 } else { 400 },
                9,
                true
            ))
            .is_err()
        );
        assert_eq!(walk(0.0, &|number| (400, 90, number % 2 > 0)), Ok(()));
    }
}
