//! The buffer of a drive: segments of read and written data, read-ahead, and
//! write-back.
//!
//! What the drive does by itself between requests, read-ahead and destaging, is
//! worked out when it matters: [`Buffer::catch_up`] lets it run up to an
//! instant. The rules are set out in VALIDATION.md, with what each is worth.

mod fifo;
mod oldest;
mod order;
mod pool;
mod segments;

use self::fifo::{Dirty, Fifo};
use self::pool::Pool;
use self::segments::{Fill, Kind, Segment, Segments};
use crate::arm::Arm;
use crate::config::{BufferConfig, ReadAhead};
use crate::geometry::Position;
use crate::mechanics::{Access, Feed, Head, Mechanics};
use crate::queue;
use fullstroke_contract::registry::{Keys, find};
use fullstroke_contract::{ConfigError, Extent, PowerState, TrackTable as _};
use fullstroke_units::{Angle, Duration, Lbn, Sectors, Time};

/// Segments of a buffer at most; more are a mistake.
const SEGMENTS_MAX: u32 = 1 << 16;

/// What the buffer has of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lookup {
    /// All of it, in this segment.
    Hit(usize),
    /// The beginning, and the rest is being read: so many sectors are there,
    /// and the head waits for the next since an instant.
    Filling {
        there: Sectors,
        next: Lbn,
        since: Time,
    },
    /// The beginning, in this segment, which is not being filled: so many
    /// sectors are there, and the next must come from the medium.
    Beginning {
        segment: usize,
        there: Sectors,
        next: Lbn,
    },
    /// Nothing that is of use.
    Miss,
}

/// The buffer.
pub(crate) struct Buffer {
    config: BufferConfig,
    segment_sectors: u64,
    /// Segments that may hold written data, and their sectors.
    write_segments: usize,
    write_sectors: u64,
    segments: Segments,
    /// The segment that the drive is filling.
    filling: Option<usize>,
    /// The one that it filled last.
    filled_last: usize,
    /// What is dirty, in order of age; or in the order of a discipline.
    dirty: Fifo,
    pool: Option<Pool>,
    /// What was written last, and when it is on the medium; until then its
    /// segment is taken.
    destaged: (Extent, Time),
    /// Before then dirty data did not have to go to the medium yet, or requests
    /// waited that went first.
    passed_over: Time,
    /// Where the last read ended.
    last_read_end: u64,
    tick: u64,
    hits: u64,
}

impl Buffer {
    /// # Errors
    /// Names the key that cannot be.
    pub(crate) fn new(config: &BufferConfig) -> Result<Buffer, ConfigError> {
        if !(1..=SEGMENTS_MAX).contains(&config.segments) {
            let message = format!(
                "found {}; expected 1 to {SEGMENTS_MAX}, or leave [buffer] out",
                config.segments
            );
            return Err(ConfigError::new("segments", message));
        }
        if config.segment_sectors == 0 {
            let message = "found 0; expected at least 1, or leave [buffer] out";
            return Err(ConfigError::new("segment_sectors", message));
        }
        if config.write_segments > config.segments {
            let message = format!(
                "found {}; the buffer has {}",
                config.write_segments, config.segments
            );
            return Err(ConfigError::new("write_segments", message));
        }
        if !(0.0..=1.0).contains(&config.destage_watermark) {
            let message = format!("found {}; expected 0 to 1", config.destage_watermark);
            return Err(ConfigError::new("destage_watermark", message));
        }
        let segment_sectors = u64::from(config.segment_sectors);
        if config
            .sectors
            .is_some_and(|sectors| u64::from(sectors) < segment_sectors)
        {
            let message = format!(
                "found {}; expected at least one segment",
                config.sectors.unwrap_or(0)
            );
            return Err(ConfigError::new("sectors", message));
        }
        let sectors = config
            .sectors
            .map_or(u64::from(config.segments) * segment_sectors, u64::from);
        let write_segments = config.write_segments.max(1);
        Ok(Buffer {
            segment_sectors,
            write_segments: write_segments as usize,
            write_sectors: (sectors * u64::from(write_segments) / u64::from(config.segments))
                .max(1),
            segments: Segments::new(config.segments as usize, config.sectors.map(u64::from)),
            filling: None,
            filled_last: 0,
            dirty: Fifo::new(write_segments as usize),
            pool: pool(config)?,
            config: config.clone(),
            destaged: (Extent::default(), Time::ZERO),
            passed_over: Time::ZERO,
            last_read_end: u64::MAX,
            tick: 0,
            hits: 0,
        })
    }

    /// Sectors of a segment.
    pub(crate) fn segment_sectors(&self) -> u64 {
        self.segment_sectors
    }

    /// Whether the segment holds the beginning of `extent` and what is behind, as far as it goes.
    pub(crate) fn holds(&self, index: usize, extent: Extent) -> bool {
        let segment = self.segments.get(index);
        segment.holds_data() && segment.start <= extent.start.0 && extent.end().0 <= segment.end
    }

    /// Reads answered from the buffer, and writes taken by it.
    pub(crate) fn hits(&self) -> u64 {
        self.hits
    }

    /// Segments that a request could take: they are not dirty.
    #[cfg(test)]
    pub(crate) fn free_segments(&self) -> u32 {
        self.segments.may_go() as u32
    }

    /// When what went to the medium last is there.
    pub(crate) fn on_medium(&self) -> Time {
        self.destaged.1
    }

    /// Dirty extents.
    fn dirty_len(&self) -> usize {
        self.pool.as_ref().map_or(self.dirty.len(), Pool::len)
    }

    /// Since when the arm may move for dirty data, if there are any.
    fn dirty_since(&self) -> Option<Time> {
        match &self.pool {
            Some(pool) => pool.since(),
            None => self.dirty.oldest().map(|dirty| dirty.since),
        }
    }

    /// Whether so much waits to be written that it goes before reads.
    pub(crate) fn above_watermark(&self) -> bool {
        let sectors = self.pool.as_ref().map_or(0, Pool::sectors) as f64;
        let mark = self.config.destage_watermark;
        self.dirty_len() as f64 > mark * self.write_segments as f64
            || sectors > mark * self.write_sectors as f64
    }

    /// Whether written data stay in the buffer rather than being waited for.
    pub(crate) fn takes_writes(&self) -> bool {
        self.config.write_back
    }

    /// Whether requests that the buffer answers pass those that wait for the
    /// arm.
    pub(crate) fn hits_pass(&self) -> bool {
        self.config.hits_pass_queue
    }

    /// Lets read-ahead and destaging run until `now`, while no request needs
    /// the arm. Where requests are `waiting`, only dirty data above the
    /// watermark go before them.
    pub(crate) fn catch_up(&mut self, now: Time, waiting: bool, arm: &mut Arm) {
        while let Some(since) = self.dirty_since() {
            let due = self.destages_from(since);
            if due < now {
                arm.start(due);
            }
            let begin = arm.free_from(due);
            if begin >= now {
                break;
            }
            if waiting && !self.above_watermark() {
                // Read-ahead has the arm until now.
                self.passed_over = now;
                break;
            }
            self.read_ahead(begin, arm);
            self.destage_one(begin, arm);
        }
        self.read_ahead(now, arm);
    }

    /// When dirty data that are there `since` then may go to the medium.
    fn destages_from(&self, since: Time) -> Time {
        (since + self.delay()).max(self.passed_over)
    }

    /// How long dirty data stay at least.
    fn delay(&self) -> Duration {
        if self.above_watermark() {
            Duration::ZERO
        } else {
            self.config.destage_delay
        }
    }

    /// Before then [`next_event`](Buffer::next_event) does not lie; this costs
    /// next to nothing.
    pub(crate) fn rests_until(&self, arm: &Arm) -> Time {
        let destages = self
            .dirty_since()
            .map_or(Time::NEVER, |since| self.destages_from(since));
        let filling = self.filling.map(|index| self.segments.get(index));
        let ahead = filling.and_then(|segment| match segment.fill {
            Fill::Ahead { since, limit } => Some(
                since
                    + arm
                        .mechanics()
                        .passes_at_least(Sectors(limit - segment.end)),
            ),
            _ => None,
        });
        destages.min(ahead.unwrap_or(Time::NEVER))
    }

    /// When the buffer next does something that lasts, while no request needs
    /// the arm: read-ahead ends, or dirty data begin to go to the medium.
    pub(crate) fn next_event(&self, arm: &Arm) -> Time {
        // What is due at an instant is done behind it.
        let destage = |since| arm.free_from(self.destages_from(since)) + Duration::from_nanos(1);
        let destages = self.dirty_since().map_or(Time::NEVER, destage);
        destages.min(self.read_ahead_ends(arm))
    }

    /// Writes the dirty extent whose turn it is, from `now` on.
    pub(crate) fn destage_one(&mut self, now: Time, arm: &mut Arm) -> Access {
        let begin = arm.free_from(now);
        let Some(Dirty {
            extent,
            since,
            arrived,
        }) = self.next_dirty(begin, arm)
        else {
            return Access::default();
        };
        let begin = if self.pool.is_some() {
            begin.max(since)
        } else {
            begin
        };
        self.stop_fill(begin);
        let position = arm.mechanics().geometry().locate(extent.start);
        let feed = Feed {
            first: arrived,
            each: Duration::ZERO,
            marked: 0,
        };
        let access = arm.access_fed(begin, extent, &position, true, Some(feed), |_| {});
        let end = begin + access.duration();
        assert!(
            end >= self.destaged.1,
            "an extent is on the medium at {end:?}, before the one that went first, at {:?}",
            self.destaged.1
        );
        arm.keep_until(end);
        self.destaged = (extent, end);
        let (start, end) = (extent.start.0, extent.end().0);
        let stays = self.config.read_hits_on_written;
        let pool = &mut self.pool;
        self.segments
            .update_overlapping(start, end, |index, segment| {
                if segment.kind == Kind::Dirty && start <= segment.start && segment.end <= end {
                    if let Some(pool) = pool {
                        pool.remove(index, segment);
                    }
                    if stays {
                        segment.kind = Kind::Written
                    } else {
                        *segment = Segment::default()
                    }
                }
            });
        access
    }

    /// Takes out the dirty extent that an arm which is free at `begin` writes.
    fn next_dirty(&mut self, begin: Time, arm: &Arm) -> Option<Dirty> {
        let Some(pool) = &mut self.pool else {
            return self.dirty.pop();
        };
        let waiting = pool.take(begin, self.destaged.0.end(), arm)?;
        let segment = self.segments.get(waiting.slot as usize);
        pool.taken(segment);
        assert!(
            segment.kind == Kind::Dirty && segment.start < segment.end,
            "segment {} is to be written, and is not dirty: {segment:?}",
            waiting.slot
        );
        let extent = Extent::new(segment.start, segment.end - segment.start);
        Some(Dirty {
            extent,
            since: waiting.arrived,
            arrived: segment.ready,
        })
    }

    /// Whether anything is dirty that was taken until `asked`. Under a
    /// discipline nobody keeps account of each: all goes.
    pub(crate) fn is_dirty_since(&self, asked: Time) -> bool {
        match &self.pool {
            Some(pool) => pool.since().is_some_and(|since| since <= asked),
            None => self.dirty.any_since(asked),
        }
    }

    /// Writes, from `now` on, everything that was taken until `asked`; when that
    /// is done. The arm's work for it is added to `work`.
    pub(crate) fn flush(
        &mut self,
        now: Time,
        asked: Time,
        arm: &mut Arm,
        work: &mut Access,
    ) -> Time {
        while self.is_dirty_since(asked) {
            let access = self.destage_one(now, arm);
            add(work, &access);
        }
        self.destaged.1.max(now)
    }

    /// Makes a read of `extent` one that the medium has to answer: what of it is dirty is
    /// written, and nothing of it is kept.
    pub(crate) fn leave_to_medium(
        &mut self,
        now: Time,
        extent: Extent,
        waiting: bool,
        arm: &mut Arm,
    ) {
        self.catch_up(now, waiting, arm);
        let (start, end) = (extent.start.0, extent.end().0);
        let mut dirty = false;
        self.segments.update_overlapping(start, end, |_, segment| {
            dirty |= segment.kind == Kind::Dirty
        });
        if dirty {
            self.flush(now, now, arm, &mut Access::default());
        }
        self.stop_fill(now);
        self.segments
            .update_overlapping(start, end, |_, segment| segment.cut(start, end));
    }

    /// What the buffer has of a read at `now`.
    pub(crate) fn look_up(&self, now: Time, extent: Extent, arm: &Arm) -> Lookup {
        let (start, end) = (extent.start.0, extent.end().0);
        let is_there = |segment: &Segment| match segment.fill {
            _ if now < segment.ready => false,
            Fill::Track { landed, left } => passed_since(landed, extent, arm) <= now.min(left),
            _ => true,
        };
        if let Some(index) = self.segments.holding(start, end, is_there) {
            return Lookup::Hit(index);
        }
        let at_end = u64::from(!self.config.read_ahead_misses_at_end);
        if let Some(segment) = self.filling.map(|index| self.segments.get(index))
            && let Fill::Ahead { since, .. } = segment.fill
            && (segment.start..segment.end + at_end).contains(&start)
        {
            let there = Sectors(segment.end - start);
            return Lookup::Filling {
                there,
                next: Lbn(segment.end),
                since,
            };
        }
        // A segment that stands: its sectors go over the bus, and the arm must
        // move for the rest. A track buffer is read anew.
        let stands = |segment: &Segment| {
            segment.kind == Kind::Read && segment.fill == Fill::Idle && segment.ready <= now
        };
        let Some(index) = self.segments.holding(start, start + 1, stands) else {
            return Lookup::Miss;
        };
        let end = self.segments.get(index).end;
        Lookup::Beginning {
            segment: index,
            there: Sectors(end - start),
            next: Lbn(end),
        }
    }

    /// Where the data of the segment that is being read begin and end.
    pub(crate) fn being_read(&self) -> Option<(u64, u64)> {
        let segment = self.segments.get(self.filling?);
        matches!(segment.fill, Fill::Ahead { .. }).then_some((segment.start, segment.end))
    }

    /// Behind which address the heads, which are reading up to `end`, do not read
    /// on for a request rather than come back for it: within a track or so that
    /// takes no longer.
    pub(crate) fn reaches(&self, end: u64) -> u64 {
        if self.config.read_ahead_misses_at_end {
            return end.saturating_sub(1);
        }
        end + u64::from(self.config.stream_sectors)
    }

    /// Lets the heads read on to `start`, whatever lies between: a member of a
    /// RAID-5 that is read in order skips its parity.
    pub(crate) fn read_up_to(&mut self, start: u64, arm: &mut Arm) {
        let Some(index) = self.filling else { return };
        let Segment { end, fill, .. } = *self.segments.get(index);
        let Fill::Ahead { since, limit } = fill else {
            return;
        };
        if start <= end {
            return;
        }
        assert!(
            start <= arm.mechanics().geometry().capacity().0,
            "the heads read on to sector {start}, behind the end of the drive"
        );
        let position = arm.mechanics().geometry().locate(Lbn(end));
        let access = arm.access(since, Extent::new(end, start - end), &position, false);
        let size = self.segment_sectors;
        self.segments.update(index, |segment| {
            segment.end = start;
            segment.trim(size);
        });
        let since = since + access.duration();
        self.segments.set_fill(
            index,
            Fill::Ahead {
                since,
                limit: limit.max(start),
            },
        );
    }

    /// Where the data of the segment that was read last begin and end.
    pub(crate) fn read_last(&self) -> (u64, u64) {
        let segment = self.segments.get(self.filled_last);
        (segment.start, segment.end)
    }

    /// Whether a read at `lbn` goes on where an earlier one ended.
    pub(crate) fn goes_on(&self, lbn: Lbn) -> bool {
        self.segments
            .touching(lbn.0, |segment| segment.kind == Kind::Read)
            .is_some()
    }

    /// Until when the arm stays with the stream that it is reading.
    pub(crate) fn stream_until(&self, arm: &Arm) -> Time {
        let Some(segment) = self.filling.map(|index| self.segments.get(index)) else {
            return Time::ZERO;
        };
        let Fill::Ahead { since, limit } = segment.fill else {
            return Time::ZERO;
        };
        let sectors = Sectors(u64::from(self.config.stream_sectors).min(limit - segment.end));
        if sectors == Sectors::ZERO {
            return Time::ZERO;
        }
        let start = Lbn(segment.end);
        let position = arm.mechanics().geometry().locate(start);
        let access =
            arm.mechanics()
                .access(&mut arm.head(), since, start, sectors, &position, false);
        since + access.duration()
    }

    /// A read was answered from a segment; read-ahead may go on from `now`, if
    /// the arm is `idle` and not writing then.
    pub(crate) fn hit(&mut self, index: usize, now: Time, extent: Extent, arm: &Arm, idle: bool) {
        self.hits += 1;
        self.tick += 1;
        let (
            tick,
            Segment {
                kind,
                fill,
                end: reached,
                ..
            },
        ) = (self.tick, *self.segments.get(index));
        let reads_on = kind == Kind::Read && !matches!(fill, Fill::Track { .. });
        // What lies before the end of the hit may be overwritten.
        let gives_up = reads_on && self.config.read_ahead_over_delivered;
        self.segments.update(index, |segment| {
            segment.used = tick;
            segment.start = if gives_up {
                extent.end().0
            } else {
                segment.start
            };
        });
        if !reads_on {
            return;
        }
        let goes_on = self.config.read_ahead_over_delivered || self.config.read_ahead_on_hit;
        let start = self.segments.get(index).start;
        let limit = self.limit(extent, start, arm.mechanics());
        match fill {
            Fill::Ahead { since, limit: old } => {
                self.segments.set_fill(
                    index,
                    Fill::Ahead {
                        since,
                        limit: limit.max(old),
                    },
                );
            }
            Fill::Idle if idle && goes_on && limit > reached && arm.free_from(now) == now => {
                self.stop_fill(now);
                self.start_fill(index, Fill::Ahead { since: now, limit });
            }
            _ => {}
        }
    }

    /// A read took sectors from the medium that it had to wait for; the arm is
    /// at its end since `now`.
    pub(crate) fn filled(&mut self, now: Time, extent: Extent, arm: &mut Arm) {
        arm.keep_until(now);
        self.tick += 1;
        let Some(index) = self.filling.take() else {
            return;
        };
        assert!(
            self.segments.get(index).end <= extent.end().0,
            "a read up to sector {} was waited for, and segment {index} has more",
            extent.end().0
        );
        let limit = self.limit(extent, self.segments.get(index).start, arm.mechanics());
        let (tick, size) = (self.tick, self.segment_sectors);
        self.segments.update(index, |segment| {
            segment.end = extent.end().0;
            segment.ready = now;
            segment.used = tick;
            segment.trim(size);
        });
        self.start_ahead(index, now, limit);
        self.share();
    }

    /// The rest of a read came from the medium, for which the arm left its place
    /// at `left`, and joins its beginning in a segment.
    pub(crate) fn resumed(
        &mut self,
        index: usize,
        left: Time,
        now: Time,
        extent: Extent,
        arm: &mut Arm,
    ) {
        self.stop_fill(left);
        self.filling = Some(index);
        assert_eq!(
            self.segments.get(index).kind,
            Kind::Read,
            "a read goes on in a segment of another kind"
        );
        self.filled(now, extent, arm);
    }

    /// A read came from the medium: the arm left its place at `left`, landed at
    /// `landed`, and finished at `now`.
    pub(crate) fn missed(
        &mut self,
        left: Time,
        landed: Time,
        now: Time,
        extent: Extent,
        arm: &mut Arm,
    ) {
        arm.keep_until(now);
        let mechanics = arm.mechanics();
        self.tick += 1;
        self.stop_fill(left);
        assert!(
            left <= landed && landed <= now,
            "the arm leaves at {left:?}, lands at {landed:?} and ends at {now:?}"
        );
        let mut segment = Segment::new(extent, Kind::Read, now, self.tick);
        let end = segment.end;
        if self.config.read_ahead == ReadAhead::WholeTrack {
            let track = mechanics.geometry().track_at(Lbn(end - 1));
            let landed = if track.first <= extent.start {
                landed
            } else {
                now
            };
            (segment.start, segment.end) = (track.first.0, (track.first + track.sectors).0);
            let Some(index) = self.insert(segment) else {
                return;
            };
            self.start_fill(
                index,
                Fill::Track {
                    landed,
                    left: Time::NEVER,
                },
            );
        } else {
            if self.config.read_ahead_over_delivered {
                segment.start = end;
            }
            segment.trim(self.segment_sectors);
            let limit = self.limit(extent, extent.start.0, mechanics);
            let Some(index) = self.insert(segment) else {
                return;
            };
            self.start_ahead(index, now, limit);
        }
    }

    /// Whether a write can be taken at `now` without waiting for the medium.
    pub(crate) fn has_room(&self, now: Time, extent: Extent) -> bool {
        let (destaged, on_medium) = self.destaged;
        let under_way = now < on_medium;
        if let Some(pool) = &self.pool {
            let taken = pool.sectors() + if under_way { destaged.sectors.0 } else { 0 };
            let has_segment = pool.len() + usize::from(under_way) < self.write_segments
                && self.segments.may_go() > 0
                || self.dirty_to_join(extent).is_some();
            return has_segment && taken + extent.sectors.0 <= self.write_sectors;
        }
        let joins = self.joins(destaged, extent);
        let taken = self.dirty.len() + usize::from(under_way && !joins);
        taken < self.write_segments && self.segments.may_go() > 0
    }

    /// Whether a write that cannot be taken at `now` can be when dirty data have
    /// gone to the medium.
    pub(crate) fn will_have_room(&self, now: Time, extent: Extent) -> bool {
        let fits = self.pool.is_none() || extent.sectors.0 <= self.write_sectors;
        fits && (self.dirty_len() > 0 || now < self.destaged.1)
    }

    /// When a write can be taken, from `now` on: where the buffer is full, the
    /// oldest data must be on the medium first. `None` if no segment can be had.
    pub(crate) fn make_room(&mut self, now: Time, extent: Extent, arm: &mut Arm) -> Option<Time> {
        if self.has_room(now, extent) {
            return Some(now);
        }
        if self.dirty_len() >= self.write_segments || self.segments.may_go() == 0 {
            self.destage_one(now, arm);
        }
        let free = self.destaged.1.max(now);
        debug_assert!(
            self.dirty_len() <= self.write_segments,
            "{} extents are dirty in {} segments for writes",
            self.dirty_len(),
            self.write_segments
        );
        self.has_room(free, extent).then_some(free)
    }

    /// Whether `extent` goes on where `before` ended, and fits into its segment.
    fn joins(&self, before: Extent, extent: Extent) -> bool {
        let together = before.sectors + extent.sectors;
        self.config.combine_writes
            && before.end() == extent.start
            && together.0 <= self.segment_sectors
    }

    /// A write was taken: its data come over the bus from `since` to `arrived`,
    /// and meanwhile the arm may move for it.
    pub(crate) fn take_write(
        &mut self,
        since: Time,
        arrived: Time,
        extent: Extent,
        mechanics: &Mechanics,
    ) {
        self.hits += 1;
        self.tick += 1;
        assert!(
            since <= arrived,
            "a write arrives at {arrived:?}, before its first sector at {since:?}"
        );
        let pressed = self.above_watermark();
        self.overwrite(since, extent);
        if !self.combine(arrived, extent) {
            self.add_dirty(since, arrived, extent, mechanics);
        }
        if !pressed && self.above_watermark() {
            // What could have waited cannot from now on.
            self.passed_over = self.passed_over.max(since);
        }
    }

    fn add_dirty(&mut self, since: Time, arrived: Time, extent: Extent, mechanics: &Mechanics) {
        let index = self.insert(Segment::new(extent, Kind::Dirty, arrived, self.tick));
        match (&mut self.pool, index) {
            (Some(pool), Some(index)) => pool.insert(index, extent, since, mechanics),
            (Some(_), None) => unreachable!("a write is taken where there is a segment for it"),
            (None, _) => self.dirty.push(Dirty {
                extent,
                since,
                arrived,
            }),
        }
    }

    /// The dirty segment of which a write is a part, or on which it goes on.
    fn dirty_to_join(&self, extent: Extent) -> Option<usize> {
        let (start, end) = (extent.start.0, extent.end().0);
        let most = self.segment_sectors.saturating_sub(extent.sectors.0);
        let fits = |segment: &Segment| {
            segment.kind == Kind::Dirty
                && (end <= segment.end
                    || segment.end == start && segment.end - segment.start <= most)
        };
        self.segments
            .touching(start, fits)
            .filter(|_| self.config.combine_writes)
    }

    /// Adds a write to a dirty segment.
    fn join(&mut self, index: usize, arrived: Time, extent: Extent) {
        let (tick, end) = (self.tick, extent.end().0);
        let old = self.segments.get(index).end;
        self.segments.update(index, |segment| {
            segment.end = segment.end.max(end);
            segment.ready = segment.ready.max(arrived);
            segment.used = tick;
        });
        if let Some(pool) = &mut self.pool {
            pool.grown(end.saturating_sub(old));
        }
        self.share();
    }

    /// Adds a write to the one before, if it goes on where that ended.
    fn combine(&mut self, arrived: Time, extent: Extent) -> bool {
        if self.pool.is_some() {
            let index = self.dirty_to_join(extent);
            index
                .into_iter()
                .for_each(|index| self.join(index, arrived, extent));
            return index.is_some();
        }
        if !self
            .dirty
            .newest()
            .is_some_and(|last| self.joins(last.extent, extent))
        {
            return false;
        }
        let end = extent.start.0;
        self.dirty.grow_newest(extent.sectors.0, arrived);
        let ends_there = |segment: &Segment| segment.kind == Kind::Dirty && segment.end == end;
        if let Some(index) = self.segments.holding(end - 1, end, ends_there) {
            let tick = self.tick;
            self.segments.update(index, |segment| {
                segment.end = extent.end().0;
                segment.ready = arrived;
                segment.used = tick;
            });
        }
        true
    }

    /// A write went to the medium, for which the arm left its place at `left`,
    /// and was there at `now`.
    pub(crate) fn wrote_through(&mut self, left: Time, now: Time, extent: Extent, arm: &mut Arm) {
        arm.keep_until(now);
        self.tick += 1;
        self.stop_fill(left);
        self.overwrite(left, extent);
        self.insert(Segment::new(extent, Kind::Written, now, self.tick));
    }

    /// What the buffer holds of `extent` is stale from `now` on. Dirty data that
    /// are overwritten as a whole need not be written to the medium.
    fn overwrite(&mut self, now: Time, extent: Extent) {
        let (start, end) = (extent.start.0, extent.end().0);
        if self.pool.is_none()
            || self
                .being_read()
                .is_none_or(|(from, to)| start <= to && from < end)
        {
            self.stop_fill(now);
        }
        if self.config.writes_drop_reads {
            self.segments.drop_read();
        }
        let pool = &mut self.pool;
        self.segments
            .update_overlapping(start, end, |index, segment| match segment.kind {
                Kind::Read => segment.cut(start, end),
                Kind::Written if pool.is_some() => segment.cut(start, end),
                Kind::Dirty if start <= segment.start && segment.end <= end => {
                    if let Some(pool) = pool {
                        pool.remove(index, segment);
                    }
                    *segment = Segment::default();
                }
                _ => {}
            });
        self.dirty.remove_within(extent);
    }

    /// Adds a segment, for which those that it overlaps and then the least
    /// recently used of its kind (where that has all of its share) or of all
    /// give way. `None` if all are dirty, or leave too little.
    fn insert(&mut self, segment: Segment) -> Option<usize> {
        self.segments
            .update_overlapping(segment.start, segment.end, |_, other| {
                if other.kind != Kind::Dirty {
                    *other = Segment::default();
                }
            });
        let index = self
            .segments
            .to_replace(segment.is_written(), self.write_segments)?;
        assert!(
            self.segments.get(index).kind != Kind::Dirty,
            "segment {index} is dirty and would be replaced"
        );
        self.segments.put(index, segment);
        self.filling = self.filling.filter(|&filling| filling != index);
        self.share();
        Some(index).filter(|&index| self.segments.get(index).holds_data())
    }

    /// Where segments share the buffer, the least recently used give way to what
    /// others have grown by.
    fn share(&mut self) {
        while let Some(index) = self
            .segments
            .beyond_share()
            .filter(|&index| Some(index) != self.filling)
        {
            self.segments.drop(index);
        }
    }

    /// How far read-ahead goes behind a read, in a segment that holds its
    /// stream from `begun` on.
    fn limit(&mut self, extent: Extent, begun: u64, mechanics: &Mechanics) -> u64 {
        let (start, end) = (extent.start.0, extent.end().0);
        let goes_on = start == std::mem::replace(&mut self.last_read_end, end);
        let waits = self.config.read_ahead_waits_for_stream;
        if self.config.read_ahead == ReadAhead::None || (waits && !goes_on) {
            return end;
        }
        let geometry = mechanics.geometry();
        let capacity = geometry.capacity().0;
        let from = if self.config.read_ahead_over_delivered {
            end
        } else {
            start
        };
        let most = self
            .config
            .read_ahead_sectors
            .map_or(u64::MAX, |sectors| end + u64::from(sectors));
        let full = (from + self.segment_sectors)
            .min(most)
            .min(capacity)
            .max(end);
        let track_at = |lbn: u64| {
            let track = geometry.track_at(Lbn(lbn));
            (track.first.0, (track.first + track.sectors).0)
        };
        match self.config.read_ahead {
            ReadAhead::None => end,
            ReadAhead::Track | ReadAhead::WholeTrack => track_at(end - 1).1.min(full),
            ReadAhead::Cylinder => {
                let cylinder = geometry.cylinder_of(Lbn(end - 1));
                let mut reached = track_at(end - 1).1;
                while reached < full && geometry.cylinder_of(Lbn(reached)) == cylinder {
                    reached = track_at(reached).1;
                }
                reached.min(full)
            }
            ReadAhead::Segment => full,
            ReadAhead::NextTrack if end == capacity => end,
            ReadAhead::NextTrack => {
                let (first, behind) = track_at(end);
                let came_over = begun < first && behind < capacity;
                let reached = if came_over {
                    track_at(behind).1
                } else {
                    behind
                };
                if waits { reached.min(full) } else { reached }
            }
        }
    }

    /// Lets read-ahead run until `now`; sectors count when they have passed.
    fn read_ahead(&mut self, now: Time, arm: &mut Arm) {
        let Some(index) = self.filling else { return };
        let Segment { mut end, fill, .. } = *self.segments.get(index);
        let Fill::Ahead { mut since, limit } = fill else {
            return;
        };
        let before = (end, since);
        while end < limit {
            let track = Passing::of(
                Lbn(end),
                Sectors(limit - end),
                since,
                arm.head(),
                arm.mechanics(),
            );
            if track.landed > now {
                arm.meter_ahead(PowerState::Seek, since, now);
                break;
            }
            arm.lands(since, track.landed, &track.position);
            since = track.landed;
            let (done, passed) = track.passed_by(now, arm.mechanics());
            debug_assert!(
                done <= track.sectors && (done == Sectors::ZERO || passed > since),
                "{done} of {} have passed since {since:?}, the last at {passed:?}",
                track.sectors
            );
            if done > Sectors::ZERO {
                arm.passes(since, track.start, passed);
                (end, since) = (end + done.0, passed);
            }
            if done < track.sectors {
                arm.meter_ahead(PowerState::Rotate, since, track.start.min(now));
                arm.meter_ahead(PowerState::Read, track.start.max(since), now);
                break;
            }
        }
        if (end, since) == before {
            return;
        }
        let size = self.segment_sectors;
        self.segments.update(index, |segment| {
            segment.end = end;
            segment.trim(size);
        });
        self.start_ahead(index, since, limit);
        self.share();
    }

    /// When read-ahead has read all that it is to read.
    fn read_ahead_ends(&self, arm: &Arm) -> Time {
        let Some(segment) = self.filling.map(|index| self.segments.get(index)) else {
            return Time::NEVER;
        };
        let Fill::Ahead { since, limit } = segment.fill else {
            return Time::NEVER;
        };
        let (mut end, mut since, mut head, mechanics) =
            (segment.end, since, arm.head(), arm.mechanics());
        while end < limit {
            let track = Passing::of(Lbn(end), Sectors(limit - end), since, head, mechanics);
            head = head.reading(&track.position);
            (end, since) = (
                end + track.sectors.0,
                track.end_of(track.sectors, mechanics),
            );
        }
        since
    }

    /// Tells `does` what the arm does until `now` of the read-ahead that is going on, in parts with
    /// their begin and end: its work knows of whole tracks and sectors.
    pub(crate) fn reads_ahead(
        &self,
        now: Time,
        arm: &Arm,
        mut does: impl FnMut(PowerState, Time, Time),
    ) {
        let Some(segment) = self.filling.map(|index| self.segments.get(index)) else {
            return;
        };
        let Fill::Ahead { since, limit } = segment.fill else {
            return;
        };
        let (mut end, mut at, mut head, mechanics) =
            (segment.end, since, arm.head(), arm.mechanics());
        while end < limit && at < now {
            let track = Passing::of(Lbn(end), Sectors(limit - end), at, head, mechanics);
            let passed = track.end_of(track.sectors, mechanics);
            does(PowerState::Seek, at, track.landed.min(now));
            does(PowerState::Rotate, track.landed, track.start.min(now));
            does(PowerState::Read, track.start, passed.min(now));
            head = head.reading(&track.position);
            (end, at) = (end + track.sectors.0, passed);
        }
    }

    /// From when to when the arm has read ahead by `now` beyond what its work knows: whole tracks that it
    /// has landed on, and whole sectors.
    pub(crate) fn has_read_ahead(&self, now: Time, arm: &Arm) -> Option<(Time, Time)> {
        let segment = self.segments.get(self.filling?);
        let Fill::Ahead { since, limit } = segment.fill else {
            return None;
        };
        let (mut end, mut at, mut head, mechanics) =
            (segment.end, since, arm.head(), arm.mechanics());
        while end < limit {
            let track = Passing::of(Lbn(end), Sectors(limit - end), at, head, mechanics);
            if track.landed > now {
                break;
            }
            (at, head) = (track.landed, head.reading(&track.position));
            let (done, passed) = track.passed_by(now, mechanics);
            if done > Sectors::ZERO {
                (end, at) = (end + done.0, passed);
            }
            if done < track.sectors {
                break;
            }
        }
        Some((since, at))
    }

    /// The head waits for the end of a segment since `since`, to read on to
    /// `limit`.
    fn start_ahead(&mut self, index: usize, since: Time, limit: u64) {
        let goes_on = self.segments.get(index).end < limit;
        self.start_fill(
            index,
            if goes_on {
                Fill::Ahead { since, limit }
            } else {
                Fill::Idle
            },
        );
    }

    fn start_fill(&mut self, index: usize, fill: Fill) {
        assert!(
            self.filling.is_none_or(|filling| filling == index),
            "segment {index} begins to fill while segment {:?} is filled",
            self.filling
        );
        if let Fill::Ahead { limit, .. } = fill {
            assert!(
                self.segments.get(index).end < limit,
                "read-ahead to sector {limit} begins behind it"
            );
        }
        self.segments.set_fill(index, fill);
        self.filling = (fill != Fill::Idle).then_some(index);
        self.filled_last = index;
    }

    /// The head leaves its track at `now`.
    pub(crate) fn stop_fill(&mut self, now: Time) {
        let Some(index) = self.filling.take() else {
            return;
        };
        let fill = match self.segments.get(index).fill {
            Fill::Track { landed, .. } => Fill::Track { landed, left: now },
            _ => Fill::Idle,
        };
        self.segments.set_fill(index, fill);
    }
}

/// What read-ahead reads of one track.
struct Passing {
    position: Position,
    sectors: Sectors,
    /// When the heads are on the track.
    landed: Time,
    /// When the first sector begins to pass.
    start: Time,
    phase: Angle,
}

impl Passing {
    /// `left` sectors from `lbn` on, as far as they lie on one track, for heads
    /// that leave their place at `since`.
    #[inline]
    fn of(lbn: Lbn, left: Sectors, since: Time, head: Head, mechanics: &Mechanics) -> Passing {
        let position = mechanics.geometry().locate(lbn);
        let landed = since + mechanics.seek(head, position.cylinder, position.surface, false);
        let start = landed
            + mechanics
                .spindle()
                .wait_for(position.angle - head.phase, landed);
        Passing {
            sectors: position.sectors_left.min(left),
            position,
            landed,
            start,
            phase: head.phase,
        }
    }

    /// When so many of them have passed. Up to the angle, not for a time:
    /// rounding must not add up.
    fn end_of(&self, sectors: Sectors, mechanics: &Mechanics) -> Time {
        let spindle = mechanics.spindle();
        let behind = self.position.angle - self.phase + mechanics.span(&self.position, sectors);
        self.start + spindle.time_to_turn(behind - spindle.angle_at(self.start))
    }

    /// How many have passed by `now`, and when the last of these had.
    fn passed_by(&self, now: Time, mechanics: &Mechanics) -> (Sectors, Time) {
        let end = self.end_of(self.sectors, mechanics);
        if end <= now {
            return (self.sectors, end);
        }
        let sector = mechanics
            .spindle()
            .time_to_turn(self.position.sector_angle)
            .as_nanos()
            .max(1);
        let passed =
            Sectors((now.saturating_since(self.start).as_nanos() / sector).min(self.sectors.0));
        let last = if passed == Sectors::ZERO {
            self.start
        } else {
            self.end_of(passed, mechanics)
        };
        (passed, last)
    }
}

/// Adds an access to the work of several.
fn add(work: &mut Access, access: &Access) {
    work.seek += access.seek;
    work.rotation += access.rotation;
    work.transfer += access.transfer;
    work.seek_cylinders += access.seek_cylinders;
}

/// The dirty data of a buffer whose file names the discipline of their writing.
fn pool(config: &BufferConfig) -> Result<Option<Pool>, ConfigError> {
    let build = |name: &String| {
        let entry = find(
            "queue discipline",
            queue::REGISTRY,
            "destage_discipline",
            name,
        )?;
        (entry.build)(&Keys::new()).map(Pool::new)
    };
    config.destage_discipline.as_ref().map(build).transpose()
}

/// When all of `extent`, on one track, has passed under heads that landed at
/// `landed`.
fn passed_since(landed: Time, extent: Extent, arm: &Arm) -> Time {
    let mechanics = arm.mechanics();
    let position = mechanics.geometry().locate(extent.start);
    let span = mechanics.span(&position, extent.sectors.min(position.sectors_left));
    let spindle = mechanics.spindle();
    landed
        + spindle.wait_for(position.angle - arm.head().phase, landed)
        + spindle.time_to_turn(span)
}

#[cfg(test)]
#[path = "buffer_tests.rs"]
mod tests;
