//! The buffer: number and length of segments, read-ahead, and write-back.
//!
//! A read that the buffer answers is short at any angle of the platter. A read from the medium is
//! short only by luck. So each question is asked several times at fresh addresses, and the majority
//! decides (Worthington et al. 1995, section 4).

use crate::extract::ExtractError;
use crate::extract::angles::{Angles, HASTE_NS};
use crate::extract::arms::share;
use fullstroke_units::Duration;
use serde::Serialize;

/// Number of places at which a question is asked.
const TRIES: u32 = 9;

/// Number of places that make a majority. `HELD` is the number of places that the read-ahead must
/// reach for its least, its median and its longest distance. One place may be short by luck.
const MAJORITY: u32 = 5;
const HELD: [u32; 3] = [8, MAJORITY, 2];

/// Largest number of segments tried by the search.
const SEGMENTS_MAX: u64 = 4096;

/// Largest length of a segment tried by the search, in sectors: 64 MiB.
const SECTORS_MAX: u64 = 1 << 17;

/// Longest read in sectors. Hosts do not split reads of this length.
const READ_MAX: u64 = 1024;

/// Time that the device gets for read-ahead, in revolutions: at first, and at most.
const AHEAD_REVOLUTIONS: (f64, f64) = (4.0, 256.0);

/// Pause between two writes, in revolutions.
const WRITE_REVOLUTIONS: f64 = 16.0;

/// Number of writes. `TAKEN_PART` is the fraction of writes that must end before the platter could
/// have come by. Of writes that wait for the platter, a quarter ends so soon by luck.
const WRITES: u64 = 24;
const TAKEN_PART: f64 = 0.8;

/// Measured properties of a buffer.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MeasuredBuffer {
    /// True if the buffer answers any read.
    pub answers: bool,
    /// True if the buffer keeps delivered data; false if the buffer keeps only data read ahead.
    pub keeps_delivered: bool,
    /// True if the buffer also holds the sectors before a sector that was read: whole tracks.
    pub whole_tracks: bool,
    /// Number of segments: single-sector reads elsewhere, of which the last pushes a sector out.
    pub segments: u64,
    /// Length in sectors of the longest sequential read of which the buffer still holds the first
    /// sector. `None` if the buffer keeps no delivered data or holds whole tracks.
    pub segment_sectors: Option<u64>,
    /// Sectors read ahead while the device is idle: the least, the median and the most of several
    /// places.
    pub read_ahead: Option<[u64; 3]>,
    /// True if the device completes a write before the data are on the medium; `None` without
    /// writes.
    pub write_back: Option<bool>,
}

/// Measures the buffer of a device whose revolution is known. The requests go to the first of
/// `arms` arms, because each arm is assumed to have its own buffer; `None` counts as one arm.
/// Writes occur only with `writes`, and repeat the data that were read.
///
/// # Errors
/// If a request fails, or the device never forgets.
pub async fn cache(
    angles: &mut Angles,
    arms: Option<u32>,
    writes: bool,
) -> Result<MeasuredBuffer, ExtractError> {
    let share = share(angles.probe().capacity().0, arms);
    let buffer = &mut ArmBuffer { angles, share };
    let mut cache = MeasuredBuffer::default();
    for stride in [0i64, 1, -8] {
        buffer.angles.probe().progress("what is kept", 0, 1);
        let answers = buffer.held(MAJORITY, BufferQuery::Behind(stride)).await?;
        match stride {
            0 => cache.keeps_delivered = answers,
            1 => cache.read_ahead = answers.then_some([0; 3]),
            _ => cache.whole_tracks = answers,
        }
    }
    cache.answers = cache.keeps_delivered || cache.read_ahead.is_some() || cache.whole_tracks;
    if cache.answers {
        // A device that keeps no delivered data still holds the sector behind the read.
        let stride = u64::from(!cache.keeps_delivered);
        cache.segments = 1 + buffer
            .last(SEGMENTS_MAX, MAJORITY, |others| BufferQuery::After {
                others,
                stride,
            })
            .await?;
    }
    if cache.keeps_delivered && !cache.whole_tracks {
        cache.segment_sectors = Some(
            buffer
                .last(SECTORS_MAX, MAJORITY, |sectors| BufferQuery::Long {
                    sectors,
                })
                .await?,
        );
    }
    if cache.read_ahead.is_some() {
        let mut ahead = [0; 3];
        for (sectors, &least) in ahead.iter_mut().zip(&HELD) {
            *sectors = buffer
                .last(SECTORS_MAX, least, |sectors| BufferQuery::Ahead { sectors })
                .await?;
        }
        cache.read_ahead = Some(ahead);
    }
    if writes {
        cache.write_back = Some(buffer.takes_writes().await?);
    }
    Ok(cache)
}

/// A question about the contents of the buffer.
#[derive(Clone, Copy)]
enum BufferQuery {
    /// Does the buffer hold the sector this far behind a sector that was just read?
    Behind(i64),
    /// Does the buffer hold a sector, or the one `stride` behind, after `others` reads elsewhere?
    After { others: u64, stride: u64 },
    /// Does the buffer hold the first of `sectors` sectors after a sequential read of them?
    Long { sectors: u64 },
    /// Does the buffer hold the sector this far behind, some time after a read?
    Ahead { sectors: u64 },
}

/// The buffer of one arm, which serves the first `share` addresses.
struct ArmBuffer<'a> {
    angles: &'a mut Angles,
    share: u64,
}

impl ArmBuffer<'_> {
    /// Returns the largest number for which the buffer still holds the sector of `ask` at `least`
    /// or more of [`TRIES`] places; 0 if there is none. The search doubles, then halves.
    async fn last(
        &mut self,
        most: u64,
        least: u32,
        ask: impl Fn(u64) -> BufferQuery,
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

    /// Returns true if the buffer answers yes at `least` of [`TRIES`] places.
    async fn held(&mut self, least: u32, question: BufferQuery) -> Result<bool, ExtractError> {
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

    async fn holds(&mut self, question: BufferQuery) -> Result<bool, ExtractError> {
        let room = match question {
            BufferQuery::Long { sectors } | BufferQuery::Ahead { sectors } => sectors,
            BufferQuery::Behind(_) | BufferQuery::After { .. } => 16,
        };
        let lbn = 8 + self
            .angles
            .random()
            .below(self.share.saturating_sub(room + 16).max(1));
        match question {
            BufferQuery::Behind(stride) => {
                self.angles.probe().read(lbn, 1).await?;
                self.rest(2.0).await?;
                self.hasty(lbn.saturating_add_signed(stride)).await
            }
            BufferQuery::After { others, stride } => {
                self.angles.probe().read(lbn, 1).await?;
                // The device needs time to read ahead.
                if stride > 0 {
                    self.rest(0.5).await?;
                }
                for _ in 0..others {
                    let other = self.angles.random().below(self.share);
                    self.angles.probe().read(other, 1).await?;
                }
                self.hasty(lbn + stride).await
            }
            BufferQuery::Long { sectors } => {
                let mut at = 0;
                while at < sectors {
                    let piece = READ_MAX.min(sectors - at);
                    self.angles.probe().read(lbn + at, piece).await?;
                    at += piece;
                }
                self.hasty(lbn).await
            }
            BufferQuery::Ahead { sectors } => {
                self.angles.probe().read(lbn, 1).await?;
                // About the time in which a track of 256 sectors passes this many sectors, and a
                // margin.
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

    /// Returns true if most writes at random addresses end before the platter could have come by.
    async fn takes_writes(&mut self) -> Result<bool, ExtractError> {
        let mut hasty = 0;
        for number in 0..WRITES {
            self.angles.probe().progress("writes", number, WRITES);
            // After this pause the data of the earlier write are on the medium.
            self.rest(WRITE_REVOLUTIONS).await?;
            let lbn = self.angles.random().below(self.share);
            hasty +=
                u64::from(self.angles.probe().rewrite(lbn, 1).await?.response_ns() <= HASTE_NS);
        }
        Ok(hasty as f64 >= TAKEN_PART * WRITES as f64)
    }
}
