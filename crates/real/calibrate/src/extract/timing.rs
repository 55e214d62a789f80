//! Tracks by rotational timing.
//!
//! On a track, the angle grows evenly with the address. At the end of a track the angle jumps by
//! the skew (Worthington et al. 1995; DIXtrac's interrogative part, Schindler & Ganger 1999; Wong
//! 2019). So a track ends at the first address with an angle off the line. A search by halves finds
//! this address.
//!
//! - The first track is searched whole. The line is drawn out by doubling, and halving finds the
//!   end.
//! - Each further track is predicted (`pattern.rs`) and confirmed by two reads. The last sector
//!   must be on the line, and the first sector of the next track off the line. If not, the search
//!   widens around the prediction.
//! - Where tracks repeat, whole periods are skipped, ever more at a time. The boundary at the far
//!   end and its angle must be as predicted. If not, half as many periods are tried.
//!
//! The method compares skews, which are a twentieth of a revolution or more. So noise of a few
//! hundredths of a skew does no harm. Holes of a few sectors (slips) shift the line by less, and do
//! not count as an end.
//!
//! Where completions are noticed late, an end may be found where there is none. So a walk with too
//! many doubtful tracks is stopped, and a sample of the boundaries is read again at the end.
//!
//! | file | contents |
//! |---|---|
//! | `current_track.rs` | the current track: its line, and the sectors on the line |
//! | `near.rs` | the end of a track at or near the predicted address |
//! | `whole.rs` | the end of a track, searched from its beginning |
//! | `predicted_track.rs` | tracks confirmed together, where a buffer holds whole tracks |
//! | `track_skip.rs` | repeating tracks are skipped |
//! | `runs.rs` | repeating runs of equal tracks are skipped |
//! | `suspect_window.rs` | detection of a walk that is lost in noise |
//! | `confirm.rs` | a sample, read again at the end |

mod confirm;
mod current_track;
mod near;
mod predicted_track;
mod runs;
mod suspect_window;
mod track_skip;
mod whole;

use self::confirm::confirm;
pub use self::confirm::spot_check;
use self::current_track::CurrentTrack;
use self::near::NEAR;
use self::runs::TrackRuns;
use self::suspect_window::SuspectWindow;
use self::track_skip::TrackSkip;
use crate::extract::ExtractError;
use crate::extract::angles::{Angles, Rotation, nearest};
use crate::extract::machine::ExtractionAlgorithm;
use crate::extract::pattern::{FoundTrack, History};
use fullstroke_tracks::{Boundaries, Builder};
use fullstroke_units::{Sectors, Seed};

/// Least distance of an angle from the line at a track end, in revolutions, before skews are known.
pub(crate) const OFF_LINE: f64 = 0.02;

/// Length in sectors below which a track does not enter the history.
const SHORT: u64 = 8;

/// Pace of an extraction by timing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ExtractionPace {
    /// Each track is confirmed.
    Every,
    /// Repeating tracks are skipped, and assumed to equal the tracks before.
    #[default]
    Jumping,
}

/// Result of rotational timing.
#[derive(Clone, Debug)]
pub struct Timed {
    /// The revolution, and the noise of angles.
    pub rotation: Rotation,
    /// The tracks.
    pub table: Boundaries,
    /// Stretches of repeating tracks, in the order of addresses.
    pub stretches: Vec<Stretch>,
    /// Number of tracks confirmed at the predicted address.
    pub predicted: u64,
    /// Number of reads for the predicted tracks.
    pub predicted_reads: u64,
    /// Number of searched tracks.
    pub searched: u64,
    /// Number of skipped tracks.
    pub skipped: u64,
    /// Number of reads answered by the buffer and repeated.
    pub hits: u64,
}

/// Repeating tracks, or one track.
#[derive(Clone, Debug, PartialEq)]
pub struct Stretch {
    /// First address.
    pub first: u64,
    /// Angle at which the first address ends, in revolutions.
    pub angle: f64,
    /// Tracks of one period.
    pub period: Vec<FoundTrack>,
    /// Number of repetitions.
    pub times: u64,
}

/// Finds the tracks of a device.
///
/// # Errors
/// If timing gives no result.
pub async fn timing(
    probe: ExtractionAlgorithm,
    seed: Seed,
    pace: ExtractionPace,
) -> Result<Timed, ExtractError> {
    let angles = Angles::measure(probe, seed).await?;
    tracks(angles, pace).await.map(|(timed, _)| timed)
}

/// Finds the tracks of a device whose revolution is known.
///
/// # Errors
/// If timing gives no result.
pub async fn tracks(angles: Angles, pace: ExtractionPace) -> Result<(Timed, Angles), ExtractError> {
    walk(angles, pace, u64::MAX).await
}

/// Finds and confirms only the first tracks of a device; about `count`, if there are as many.
///
/// # Errors
/// If timing gives no result.
pub async fn first_tracks(angles: Angles, count: u64) -> Result<(Timed, Angles), ExtractError> {
    walk(angles, ExtractionPace::Every, count).await
}

/// Goes through at least `count` tracks, or all.
async fn walk(
    angles: Angles,
    pace: ExtractionPace,
    count: u64,
) -> Result<(Timed, Angles), ExtractError> {
    let mut walk = Walk {
        hand: CurrentTrack::first(angles).await?,
        builder: Builder::default(),
        history: History::default(),
        runs: TrackRuns::default(),
        unlike: 0,
        turn: (0, 0.0),
        stretches: Vec::new(),
        counts: TimingCounts::default(),
        doubt: SuspectWindow::default(),
    };
    let mut skip = TrackSkip::default();
    let capacity = walk.hand.capacity;
    while walk.hand.first < capacity && walk.counts.tracks() < count {
        walk.hand
            .angles
            .probe()
            .progress("tracks", walk.hand.first, capacity);
        let leapt =
            pace == ExtractionPace::Jumping && (walk.run().await? || walk.skip(&mut skip).await?);
        if !leapt {
            if pace == ExtractionPace::Jumping || !walk.together().await? {
                walk.one().await?;
            }
            skip.walked();
        }
    }
    let TimingCounts {
        predicted,
        predicted_reads,
        searched,
        skipped,
    } = walk.counts;
    let table = walk.builder.finish("rotational timing")?;
    // Before the table is returned, because a buffer or a busy host can bend angles without an
    // error on the way.
    confirm(&mut walk.hand.angles, &table).await?;
    let timed = Timed {
        table,
        rotation: walk.hand.angles.rotation(),
        stretches: walk.stretches,
        predicted,
        predicted_reads,
        searched,
        skipped,
        hits: walk.hand.angles.hits(),
    };
    Ok((timed, walk.hand.angles))
}

#[derive(Clone, Copy, Debug, Default)]
struct TimingCounts {
    predicted: u64,
    predicted_reads: u64,
    searched: u64,
    skipped: u64,
}

impl TimingCounts {
    fn tracks(&self) -> u64 {
        self.predicted + self.searched + self.skipped
    }
}

/// Goes through the tracks of a device.
struct Walk {
    hand: CurrentTrack,
    builder: Builder,
    history: History,
    runs: TrackRuns,
    /// Length in sectors of the last slightly different track.
    unlike: u64,
    /// Length of a period in sectors, and the turn of the angle over the period in revolutions.
    turn: (u64, f64),
    stretches: Vec<Stretch>,
    counts: TimingCounts,
    doubt: SuspectWindow,
}

impl Walk {
    /// Confirms or finds the current track.
    async fn one(&mut self) -> Result<(), ExtractError> {
        let reads = self.hand.angles.probe().effort().reads;
        let predicted = self.history.next();
        self.hand.usual = predicted.map_or(0.0, |usual| usual.width);
        let near = match predicted {
            Some(predicted) => self.near(predicted).await?,
            None => None,
        };
        let Some((end, predicted)) = near else {
            self.counts.searched += 1;
            let end = self.hand.whole().await?;
            let end = self.not_one_short(end, predicted).await?;
            self.judge(end, reads, false)?;
            return self.take(end, None);
        };
        let end = self.not_one_short(end, Some(predicted)).await?;
        self.counts.predicted += 1;
        self.counts.predicted_reads += self.hand.angles.probe().effort().reads - reads;
        self.judge(end, reads, true)?;
        self.take(end, Some(predicted))
    }

    /// Returns an error if the current track is one of too many that seem to be no tracks. `reads`
    /// is the number of reads before this track.
    fn judge(&mut self, end: TrackEnd, reads: u64, predicted: bool) -> Result<(), ExtractError> {
        let all = self.hand.angles.probe().effort().reads;
        assert!(
            reads <= all && end.lbn > self.hand.first,
            "a track from {} to {} in reads {reads} to {all}",
            self.hand.first,
            end.lbn
        );
        let reads = all - reads;
        self.doubt.track(
            end.lbn - self.hand.first,
            reads,
            predicted,
            self.hand.angles.rotation(),
        )
    }

    /// Returns `end`, moved on by one sector if the last sector was misread.
    ///
    /// The sector was misread if two things hold. The track would be one sector shorter than the
    /// track before or the `predicted` track, and the next track would consist of that sector
    /// alone.
    async fn not_one_short(
        &mut self,
        end: TrackEnd,
        predicted: Option<FoundTrack>,
    ) -> Result<TrackEnd, ExtractError> {
        let longer = |usual: &FoundTrack| end.lbn + 1 == self.hand.first + usual.sectors;
        let Some(usual) = [predicted, self.history.latest()]
            .into_iter()
            .flatten()
            .find(longer)
        else {
            return Ok(end);
        };
        // The last track ends with the disk, and no sector behind it can be read.
        if end.lbn + 1 >= self.hand.capacity {
            return Ok(end);
        }
        let last = self.hand.angles.of(end.lbn).await?;
        let next = self.hand.angles.of(end.lbn + 1).await?;
        let goes_on = !self
            .hand
            .is_elsewhere(next - last - usual.width, usual.width);
        Ok(if goes_on {
            end
        } else {
            TrackEnd {
                lbn: end.lbn + 1,
                next,
                ..end
            }
        })
    }

    /// Returns the end of the current track, if the end is about as `predicted` or exactly as of
    /// another likely track. Also returns the matching track.
    async fn near(
        &mut self,
        predicted: FoundTrack,
    ) -> Result<Option<(TrackEnd, FoundTrack)>, ExtractError> {
        if let Some(end) = self.hand.as_predicted(predicted).await? {
            return Ok(Some((end, predicted)));
        }
        // Other recent tracks are tried before a search, because a search costs many more reads.
        for other in self.history.others(&predicted) {
            if let Some(end) = self.hand.exactly(other).await? {
                return Ok(Some((end, other)));
            }
        }
        Ok(self
            .hand
            .before(predicted)
            .await?
            .map(|end| (end, predicted)))
    }

    /// Adds the current track, which ends at `end`, to the table.
    fn take(&mut self, end: TrackEnd, predicted: Option<FoundTrack>) -> Result<(), ExtractError> {
        let sectors = end.lbn - self.hand.first;
        self.builder.push(Sectors(sectors))?;
        let step = nearest(end.next - self.hand.at).rem_euclid(1.0);
        // A few sectors at the end of a zone make no reliable line.
        let width = match predicted.or_else(|| self.history.next()) {
            Some(usual) if sectors < SHORT => usual.width,
            _ => end.width,
        };
        let found = FoundTrack {
            sectors,
            width,
            step,
        };
        if end.lbn < self.hand.capacity {
            self.hand.jump(nearest(
                end.next - self.hand.at - sectors as f64 * end.width,
            ));
        }
        if sectors >= SHORT {
            self.remember(found, predicted);
        }
        self.stretch(self.hand.first, &[found], 1);
        self.runs.push(self.hand.first, self.hand.at, found, 1);
        (self.hand.first, self.hand.at) = (end.lbn, end.next);
        Ok(())
    }

    /// Adds a track to the history. A track with a hole enters as the usual track, because the next
    /// tracks are like the others. The second track with the same difference is a kind of its own.
    fn remember(&mut self, found: FoundTrack, predicted: Option<FoundTrack>) {
        let kept = match predicted {
            Some(usual)
                if found.sectors != usual.sectors
                    && found.sectors.abs_diff(usual.sectors) <= NEAR =>
            {
                let again = self.unlike == found.sectors;
                self.unlike = found.sectors;
                if again { found } else { usual }
            }
            _ => found,
        };
        self.history.push(kept);
    }

    fn stretch(&mut self, first: u64, period: &[FoundTrack], times: u64) {
        if let Some(last) = self.stretches.last_mut()
            && last.period.len() == period.len()
            && last
                .period
                .iter()
                .zip(period)
                .all(|(a, b)| a.sectors == b.sectors)
        {
            last.times += times;
            return;
        }
        let angle = self.hand.at;
        self.stretches.push(Stretch {
            first,
            angle,
            period: period.to_vec(),
            times,
        });
    }
}

/// The end of a track.
#[derive(Clone, Copy, Debug)]
struct TrackEnd {
    /// First address of the next track.
    lbn: u64,
    /// Angle of the first address of the next track.
    next: f64,
    /// Angle of a sector of the ended track.
    width: f64,
}
