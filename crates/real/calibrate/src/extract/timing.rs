//! Tracks by rotational timing.
//!
//! On a track, angle goes on evenly with the address; where a track ends, it
//! jumps by the skew (Worthington et al. 1995; DIXtrac's interrogative part,
//! Schindler & Ganger 1999; Wong 2019). So a track's end is the first address
//! whose angle is off the line, which a search by halves finds.
//!
//! - The first track is searched whole: the line is drawn out by doubling, and the
//!   end found by halving.
//! - Each further track is predicted (`pattern.rs`) and confirmed by two reads: the
//!   last sector must be on the line, the first of the next track off it. If not,
//!   the search widens around the prediction.
//! - Where tracks repeat, whole periods are skipped, ever more of them: the boundary
//!   at the far end and its angle must be as predicted. If not, half as many.
//!
//! What is compared is skew, a twentieth of a revolution or more; so this stands
//! noise of a few hundredths of that. Holes of a few sectors (slips) shift the
//! line by less, and do not count as an end.
//!
//! A walk that seems to be none is ended, and a sample of what was found is read again:
//! where completions are noticed late, an end may be found where there is none.
//!
//! | file | what |
//! |---|---|
//! | `hand.rs` | the track in hand: its line, and what is on it |
//! | `near.rs` | its end where it is predicted, or near there |
//! | `whole.rs` | its end, searched from its beginning |
//! | `together.rs` | tracks confirmed together, where a buffer holds whole ones |
//! | `leap.rs` | tracks that repeat are skipped |
//! | `runs.rs` | runs of equal tracks that repeat, too |
//! | `doubt.rs` | whether a walk through noise is still one |
//! | `confirm.rs` | a sample, read again at the end |

mod confirm;
mod doubt;
mod hand;
mod leap;
mod near;
mod runs;
mod together;
mod whole;

use self::confirm::confirm;
pub use self::confirm::spot_check;
use self::doubt::Doubt;
use self::hand::Hand;
use self::leap::Leap;
use self::near::NEAR;
use self::runs::Runs;
use crate::extract::ExtractError;
use crate::extract::angles::{Angles, Rotation, nearest};
use crate::extract::machine::Probe;
use crate::extract::pattern::{FoundTrack, History};
use fullstroke_tracks::{Boundaries, Builder};
use fullstroke_units::{Sectors, Seed};

/// By how much an angle is off the line, at least, before skews are known.
pub(crate) const OFF_LINE: f64 = 0.02;

/// Sectors of a track from which nothing is learned.
const SHORT: u64 = 8;

/// How an extraction by timing goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Pace {
    /// Each track is confirmed.
    Every,
    /// Tracks that repeat are skipped, and taken to be as those before.
    #[default]
    Jumping,
}

/// What timing found.
#[derive(Clone, Debug)]
pub struct Timed {
    /// The revolution, and how noisy angles are.
    pub rotation: Rotation,
    /// The tracks.
    pub table: Boundaries,
    /// Stretches of tracks that repeat, in the order of addresses.
    pub stretches: Vec<Stretch>,
    /// Tracks confirmed where they were predicted.
    pub predicted: u64,
    /// Reads that those took.
    pub predicted_reads: u64,
    /// Tracks that had to be searched.
    pub searched: u64,
    /// Tracks that were skipped.
    pub skipped: u64,
    /// Reads that the buffer answered, and that were repeated.
    pub hits: u64,
}

/// Tracks that repeat, or one.
#[derive(Clone, Debug, PartialEq)]
pub struct Stretch {
    /// The first address.
    pub first: u64,
    /// The angle at which it ends.
    pub angle: f64,
    /// The tracks of one period.
    pub period: Vec<FoundTrack>,
    /// How often.
    pub times: u64,
}

/// Finds the tracks of a device.
///
/// # Errors
/// If timing does not tell.
pub async fn timing(probe: Probe, seed: Seed, pace: Pace) -> Result<Timed, ExtractError> {
    let angles = Angles::measure(probe, seed).await?;
    tracks(angles, pace).await.map(|(timed, _)| timed)
}

/// The same, of a device whose revolution is known.
///
/// # Errors
/// If timing does not tell.
pub async fn tracks(angles: Angles, pace: Pace) -> Result<(Timed, Angles), ExtractError> {
    walk(angles, pace, u64::MAX).await
}

/// Its first tracks only, each confirmed; about `count`, if it has as many.
///
/// # Errors
/// If timing does not tell.
pub async fn first_tracks(angles: Angles, count: u64) -> Result<(Timed, Angles), ExtractError> {
    walk(angles, Pace::Every, count).await
}

/// Goes through `count` tracks at least, or all.
async fn walk(angles: Angles, pace: Pace, count: u64) -> Result<(Timed, Angles), ExtractError> {
    let mut walk = Walk {
        hand: Hand::first(angles).await?,
        builder: Builder::default(),
        history: History::default(),
        runs: Runs::default(),
        unlike: 0,
        turn: (0, 0.0),
        stretches: Vec::new(),
        counts: Counts::default(),
        doubt: Doubt::default(),
    };
    let mut leap = Leap::default();
    let capacity = walk.hand.capacity;
    while walk.hand.first < capacity && walk.counts.tracks() < count {
        walk.hand
            .angles
            .probe()
            .progress("tracks", walk.hand.first, capacity);
        let leapt = pace == Pace::Jumping && (walk.run().await? || walk.leap(&mut leap).await?);
        if !leapt {
            if pace == Pace::Jumping || !walk.together().await? {
                walk.one().await?;
            }
            leap.walked();
        }
    }
    let Counts {
        predicted,
        predicted_reads,
        searched,
        skipped,
    } = walk.counts;
    let table = walk.builder.finish("rotational timing")?;
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
struct Counts {
    predicted: u64,
    predicted_reads: u64,
    searched: u64,
    skipped: u64,
}

impl Counts {
    fn tracks(&self) -> u64 {
        self.predicted + self.searched + self.skipped
    }
}

/// Goes through the tracks of a device.
struct Walk {
    hand: Hand,
    builder: Builder,
    history: History,
    runs: Runs,
    /// Sectors of the last track that was a little unlike the others.
    unlike: u64,
    /// The sectors of a period, and by how much the angle turns over it.
    turn: (u64, f64),
    stretches: Vec<Stretch>,
    counts: Counts,
    doubt: Doubt,
}

impl Walk {
    /// Confirms or finds the track in hand.
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

    /// Whether the track in hand, for which reads were counted from `reads` on, is one
    /// of too many that seem to be none.
    fn judge(&mut self, end: End, reads: u64, predicted: bool) -> Result<(), ExtractError> {
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

    /// The same end, unless the track would be a sector shorter than the one before or
    /// the `predicted` one, and the next of that sector alone: then its last was misread.
    async fn not_one_short(
        &mut self,
        end: End,
        predicted: Option<FoundTrack>,
    ) -> Result<End, ExtractError> {
        let longer = |usual: &FoundTrack| end.lbn + 1 == self.hand.first + usual.sectors;
        let Some(usual) = [predicted, self.history.latest()]
            .into_iter()
            .flatten()
            .find(longer)
        else {
            return Ok(end);
        };
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
            End {
                lbn: end.lbn + 1,
                next,
                ..end
            }
        })
    }

    /// The end of the track in hand, if it is about where it is predicted, or where
    /// another likely track has it; and which that was.
    async fn near(
        &mut self,
        predicted: FoundTrack,
    ) -> Result<Option<(End, FoundTrack)>, ExtractError> {
        if let Some(end) = self.hand.as_predicted(predicted).await? {
            return Ok(Some((end, predicted)));
        }
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

    /// The track in hand is this, and goes into the table.
    fn take(&mut self, end: End, predicted: Option<FoundTrack>) -> Result<(), ExtractError> {
        let sectors = end.lbn - self.hand.first;
        self.builder.push(Sectors(sectors))?;
        let step = nearest(end.next - self.hand.at).rem_euclid(1.0);
        // A few sectors at the end of a zone are no line.
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

    /// A track with a hole is followed by tracks as the others are; but the second
    /// that is unlike the others in the same way is a kind of its own.
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

/// Where a track ends.
#[derive(Clone, Copy, Debug)]
struct End {
    /// The first address of the next.
    lbn: u64,
    /// Its angle.
    next: f64,
    /// The angle of a sector of the track.
    width: f64,
}
