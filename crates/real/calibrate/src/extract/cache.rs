//! The buffer: how many places it has reads in, how long a segment is, how far it
//! reads ahead, whether it takes writes.
//!
//! A read that the buffer answers is hasty, wherever the platter stands; one from
//! the medium is only by luck. So each question is asked several times, at fresh
//! addresses, and the majority answers (Worthington et al. 1995, section 4).

use crate::extract::ExtractError;
use crate::extract::angles::{Angles, HASTE_NS};
use crate::extract::arms::share;
use fullstroke_units::Duration;
use serde::Serialize;

/// Times that a question is asked.
const TRIES: u32 = 9;

/// Of which so many make a majority; and the places at which read-ahead must come
/// so far for its least, its median and its most: one may be hasty by luck.
const MAJORITY: u32 = 5;
const HELD: [u32; 3] = [8, MAJORITY, 2];

/// Segments at most that are looked for.
const SEGMENTS_MAX: u64 = 4096;

/// Sectors of a segment at most that are looked for: 64 MiB.
const SECTORS_MAX: u64 = 1 << 17;

/// Sectors of one read at most: what hosts do not split.
const READ_MAX: u64 = 1024;

/// Revolutions that a device is left to read ahead at first, and at most.
const AHEAD_REVOLUTIONS: (f64, f64) = (4.0, 256.0);

/// Revolutions between two writes.
const WRITE_REVOLUTIONS: f64 = 16.0;

/// Writes, and the part of them that ends too soon for a platter if a device takes
/// them in its buffer; of those that wait, a quarter does by luck.
const WRITES: u64 = 24;
const TAKEN_PART: f64 = 0.8;

/// What was seen of a buffer.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Cache {
    /// Whether it answers reads at all.
    pub answers: bool,
    /// It keeps what it has delivered; else only what it has read ahead.
    pub keeps_delivered: bool,
    /// It holds what lies before a sector that was read, too: whole tracks.
    pub whole_tracks: bool,
    /// Reads elsewhere of one sector each, the last of which pushes a sector out:
    /// as many segments there are.
    pub segments: u64,
    /// Sectors of the longest read in order of which it still has the first; `None`
    /// if it does not keep what it has delivered.
    pub segment_sectors: Option<u64>,
    /// Sectors read ahead, if the device is left alone, at some places: the least, the
    /// median, the most.
    pub read_ahead: Option<[u64; 3]>,
    /// It says that a write has ended before that is on the medium; `None` if
    /// nothing was written.
    pub write_back: Option<bool>,
}

/// Tells, of a device whose revolution is known, and of the first of its `arms`, each
/// of which is taken to have a buffer of its own; unless told, of one. It writes nothing
/// unless `writes`; then what it has read.
///
/// # Errors
/// If a request fails, or the device never forgets.
pub async fn cache(
    angles: &mut Angles,
    arms: Option<u32>,
    writes: bool,
) -> Result<Cache, ExtractError> {
    let share = share(angles.probe().capacity().0, arms);
    let buffer = &mut Buffer { angles, share };
    let mut cache = Cache::default();
    for stride in [0i64, 1, -8] {
        buffer.angles.probe().progress("what is kept", 0, 1);
        let answers = buffer.held(MAJORITY, Ask::Behind(stride)).await?;
        match stride {
            0 => cache.keeps_delivered = answers,
            1 => cache.read_ahead = answers.then_some([0; 3]),
            _ => cache.whole_tracks = answers,
        }
    }
    cache.answers = cache.keeps_delivered || cache.read_ahead.is_some() || cache.whole_tracks;
    if cache.answers {
        // What a device without delivered data still has lies behind the read.
        let stride = u64::from(!cache.keeps_delivered);
        cache.segments = 1 + buffer
            .last(SEGMENTS_MAX, MAJORITY, |others| Ask::After {
                others,
                stride,
            })
            .await?;
    }
    if cache.keeps_delivered && !cache.whole_tracks {
        cache.segment_sectors = Some(
            buffer
                .last(SECTORS_MAX, MAJORITY, |sectors| Ask::Long { sectors })
                .await?,
        );
    }
    if cache.read_ahead.is_some() {
        let mut ahead = [0; 3];
        for (sectors, &least) in ahead.iter_mut().zip(&HELD) {
            *sectors = buffer
                .last(SECTORS_MAX, least, |sectors| Ask::Ahead { sectors })
                .await?;
        }
        cache.read_ahead = Some(ahead);
    }
    if writes {
        cache.write_back = Some(buffer.takes_writes().await?);
    }
    Ok(cache)
}

/// A question about what the buffer holds.
#[derive(Clone, Copy)]
enum Ask {
    /// Is what lies so far behind a sector there, when that was read?
    Behind(i64),
    /// Is a sector, or what lies `stride` behind it, there after so many reads
    /// elsewhere?
    After { others: u64, stride: u64 },
    /// Is the first of so many sectors there that were read in order?
    Long { sectors: u64 },
    /// Is what lies so far behind a sector there, some time after that was read?
    Ahead { sectors: u64 },
}

/// The buffer of one arm, which has the first `share` addresses.
struct Buffer<'a> {
    angles: &'a mut Angles,
    share: u64,
}

impl Buffer<'_> {
    /// The largest number for which the buffer still has what is asked for, at so many
    /// of [`TRIES`] places at least, by doubling and halving; 0 if there is none.
    async fn last(
        &mut self,
        most: u64,
        least: u32,
        ask: impl Fn(u64) -> Ask,
    ) -> Result<u64, ExtractError> {
        let (mut low, mut high) = (0, 1);
        while self.held(least, ask(high)).await? {
            self.angles.probe().progress("segments", high, most);
            (low, high) = (high, high * 2);
            if low >= most {
                return Ok(low);
            }
        }
        while high - low > 1 {
            let middle = low.midpoint(high);
            if self.held(least, ask(middle)).await? {
                low = middle
            } else {
                high = middle
            }
        }
        Ok(low)
    }

    /// Whether it holds at `least` of [`TRIES`] places.
    async fn held(&mut self, least: u32, question: Ask) -> Result<bool, ExtractError> {
        let (mut yes, mut no) = (0, 0);
        while yes < least && no <= TRIES - least {
            if self.holds(question).await? {
                yes += 1
            } else {
                no += 1
            }
        }
        Ok(yes >= least)
    }

    async fn holds(&mut self, question: Ask) -> Result<bool, ExtractError> {
        let room = match question {
            Ask::Long { sectors } | Ask::Ahead { sectors } => sectors,
            Ask::Behind(_) | Ask::After { .. } => 16,
        };
        let lbn = 8 + self
            .angles
            .random()
            .below(self.share.saturating_sub(room + 16).max(1));
        match question {
            Ask::Behind(stride) => {
                self.angles.probe().read(lbn, 1).await?;
                self.rest(2.0).await?;
                self.hasty(lbn.saturating_add_signed(stride)).await
            }
            Ask::After { others, stride } => {
                self.angles.probe().read(lbn, 1).await?;
                if stride > 0 {
                    self.rest(0.5).await?;
                }
                for _ in 0..others {
                    let other = self.angles.random().below(self.share);
                    self.angles.probe().read(other, 1).await?;
                }
                self.hasty(lbn + stride).await
            }
            Ask::Long { sectors } => {
                let mut at = 0;
                while at < sectors {
                    let piece = READ_MAX.min(sectors - at);
                    self.angles.probe().read(lbn + at, piece).await?;
                    at += piece;
                }
                self.hasty(lbn).await
            }
            Ask::Ahead { sectors } => {
                self.angles.probe().read(lbn, 1).await?;
                // About as long as so many sectors take on a track of 256, and some.
                let revolutions = AHEAD_REVOLUTIONS.0 + sectors as f64 / 256.0;
                self.rest(revolutions.min(AHEAD_REVOLUTIONS.1)).await?;
                self.hasty(lbn + sectors).await
            }
        }
    }

    async fn rest(&mut self, revolutions: f64) -> Result<(), ExtractError> {
        let ns = self.angles.rotation().revolution_ns * revolutions;
        self.angles
            .probe()
            .idle(Duration::from_nanos(ns as u64))
            .await
    }

    async fn hasty(&mut self, lbn: u64) -> Result<bool, ExtractError> {
        let hit_ns = self.angles.rotation().hit_ns;
        Ok(self.angles.probe().read(lbn, 1).await?.response_ns() <= hit_ns)
    }

    /// Whether writes at random addresses, a while apart, end before the platter could
    /// have come by.
    async fn takes_writes(&mut self) -> Result<bool, ExtractError> {
        let mut hasty = 0;
        for number in 0..WRITES {
            self.angles.probe().progress("writes", number, WRITES);
            // What was written before is on the medium then.
            self.rest(WRITE_REVOLUTIONS).await?;
            let lbn = self.angles.random().below(self.share);
            hasty +=
                u64::from(self.angles.probe().rewrite(lbn, 1).await?.response_ns() <= HASTE_NS);
        }
        Ok(hasty as f64 >= TAKEN_PART * WRITES as f64)
    }
}
