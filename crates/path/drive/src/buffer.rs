//! The buffer of a drive: segments of read and written data, read-ahead, and write-back.
//!
//! Between requests the drive reads ahead and destages. This work is computed late, when a result
//! matters: [`DriveBuffer::catch_up`] lets the work run up to an instant. VALIDATION.md states the
//! rules and the effect of each rule.

mod ages;
mod fifo;
mod free;
mod oldest;
mod order;
mod pool;
mod segments;

use self::fifo::{DirtyData, DirtyFifo};
use self::pool::DirtySegments;
use self::segments::{BufferSegment, FillState, SegmentContent, Segments};
use crate::arm::DriveArm;
use crate::config::{BufferConfig, ReadAhead};
use crate::geometry::Position;
use crate::mechanics::{AccessTimes, BusArrival, HeadPosition, Mechanics};
use crate::queue;
use fullstroke_contract::registry::find;
use fullstroke_contract::{ConfigError, Extent, PowerState, TrackTable as _};
use fullstroke_units::{Angle, Duration, Lbn, Sectors, Time};

/// Largest number of segments. More segments are a mistake in the drive file.
const SEGMENTS_MAX: u32 = 1 << 16;

/// Part of a read in the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lookup {
    /// The segment with this index holds the whole read.
    Hit(usize),
    /// The buffer holds the first `there` sectors, and read-ahead is reading the rest. The head has
    /// waited for sector `next` since `since`.
    Filling {
        there: Sectors,
        next: Lbn,
        since: Time,
    },
    /// A segment that is not being filled holds the first `there` sectors. Sector `next` and the
    /// rest must come from the medium.
    Beginning {
        segment: usize,
        there: Sectors,
        next: Lbn,
    },
    /// The buffer holds no useful part of the read.
    Miss,
}

/// The buffer.
pub(crate) struct DriveBuffer {
    config: BufferConfig,
    segment_sectors: u64,
    /// Largest number of segments with written data, and the number of sectors in these segments.
    write_segments: usize,
    write_sectors: u64,
    /// Largest read for which `read_ahead_misses_at_end` and `whole-track` hold.
    measured: u64,
    /// Watermark in extents and in sectors: with more dirty data, destaging goes before reads.
    mark_extents: usize,
    mark_sectors: u64,
    segments: Segments,
    /// Index of the segment being filled.
    filling: Option<usize>,
    /// Index of the last filled segment.
    filled_last: usize,
    /// Place of a sector that read-ahead may read next. The place is kept because a search for
    /// the place at each event costs more than the rest of read-ahead.
    next_place: Option<(Lbn, Position)>,
    /// Read-ahead completes no sector and reaches no track before this time.
    quiet_until: Time,
    /// Last time up to which the buffer worked, and true if requests were waiting.
    /// [`Time::NEVER`] if the same call at the same time may find more work.
    caught_up: (Time, bool),
    /// Dirty data in order of age. Empty if `pool` holds the dirty data.
    dirty: DirtyFifo,
    /// Dirty data in the order of a discipline. `None` unless `destage_discipline` is set.
    pool: Option<DirtySegments>,
    /// Extent that went to the medium last, and the time when the extent is on the medium. Until
    /// that time the segment of the extent is taken.
    destaged: (Extent, Time),
    /// Destaging cannot begin before this time, because the delay had not passed or waiting
    /// requests went first.
    passed_over: Time,
    /// End of the last read; `u64::MAX` before the first read.
    last_read_end: u64,
    tick: u64,
    hits: u64,
}

impl DriveBuffer {
    /// Builds the buffer.
    ///
    /// # Errors
    /// Names the invalid key.
    pub(crate) fn new(config: &BufferConfig) -> Result<DriveBuffer, ConfigError> {
        if !(1..=SEGMENTS_MAX).contains(&config.segments) {
            let message = format!(
                "found {}; expected 1 to {SEGMENTS_MAX}, or no [buffer]",
                config.segments
            );
            return Err(ConfigError::new("segments", message));
        }
        if config.segment_sectors == 0 {
            let message = "found 0; expected at least 1, or no [buffer]";
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
        // The share of the writes in a shared buffer is as large as their share of the segments.
        let write_sectors =
            (sectors * u64::from(write_segments) / u64::from(config.segments)).max(1);
        Ok(DriveBuffer {
            segment_sectors,
            write_segments: write_segments as usize,
            write_sectors,
            measured: u64::MAX,
            mark_extents: (config.destage_watermark * f64::from(write_segments)) as usize,
            mark_sectors: (config.destage_watermark * write_sectors as f64) as u64,
            segments: Segments::new(config.segments as usize, config.sectors.map(u64::from)),
            filling: None,
            filled_last: 0,
            next_place: None,
            quiet_until: Time::ZERO,
            caught_up: (Time::NEVER, false),
            dirty: DirtyFifo::new(write_segments as usize),
            pool: pool(config)?,
            config: config.clone(),
            destaged: (Extent::default(), Time::ZERO),
            passed_over: Time::ZERO,
            last_read_end: u64::MAX,
            tick: 0,
            hits: 0,
        })
    }

    /// Returns the buffer with the rules `read_ahead_misses_at_end` and `whole-track` for reads of
    /// up to `sectors` sectors only. The rules were found on requests of 3 KB in the mean. In a
    /// stream of 64 KiB, each request or each track would lose a revolution: a Cheetah 9LP would
    /// stream at 6 MB/s where its medium gives 15, an Atlas 10K at 9 where its medium gives 24.
    pub(crate) fn measured_up_to(self, sectors: Option<u32>) -> DriveBuffer {
        DriveBuffer {
            measured: sectors.map_or(u64::MAX, u64::from),
            ..self
        }
    }

    /// True if the rules that were found on small requests hold for a read of `extent`.
    fn is_measured(&self, extent: Extent) -> bool {
        extent.sectors.0 <= self.measured
    }

    /// Size of a segment in sectors.
    pub(crate) fn segment_sectors(&self) -> u64 {
        self.segment_sectors
    }

    /// True if the segment holds all sectors of `extent`.
    pub(crate) fn holds(&self, index: usize, extent: Extent) -> bool {
        let segment = self.segments.get(index);
        segment.holds_data() && segment.start <= extent.start.0 && extent.end().0 <= segment.end
    }

    /// Number of reads answered from the buffer and of writes taken into the buffer.
    pub(crate) fn hits(&self) -> u64 {
        self.hits
    }

    /// Number of clean segments, free for a request.
    #[cfg(test)]
    pub(crate) fn free_segments(&self) -> u32 {
        self.segments.may_go() as u32
    }

    /// Time when the last destaged extent is on the medium.
    pub(crate) fn on_medium(&self) -> Time {
        self.destaged.1
    }

    /// Number of dirty extents.
    fn dirty_len(&self) -> usize {
        self.pool
            .as_ref()
            .map_or(self.dirty.len(), DirtySegments::len)
    }

    /// Earliest time of an arm movement for dirty data. `None` if nothing is dirty.
    fn dirty_since(&self) -> Option<Time> {
        match &self.pool {
            Some(pool) => pool.since(),
            None => self.dirty.oldest().map(|dirty| dirty.since),
        }
    }

    /// True if so much data is dirty that destaging goes before reads.
    pub(crate) fn above_watermark(&self) -> bool {
        match &self.pool {
            Some(pool) => pool.len() > self.mark_extents || pool.sectors() > self.mark_sectors,
            None => self.dirty.len() > self.mark_extents,
        }
    }

    /// True if a write completes when the data are in the buffer.
    pub(crate) fn takes_writes(&self) -> bool {
        self.config.write_back
    }

    /// True if buffer hits overtake requests waiting for the arm.
    pub(crate) fn hits_pass(&self) -> bool {
        self.config.hits_pass_queue
    }

    /// Runs read-ahead and destaging until `now`, while no request needs the arm. If requests are
    /// `waiting`, only dirty data above the watermark go before the requests.
    #[inline]
    pub(crate) fn catch_up(&mut self, now: Time, waiting: bool, arm: &mut DriveArm) {
        // Work without waiting requests leaves nothing to do for work with waiting requests.
        if self.caught_up == (now, waiting) || self.caught_up == (now, false) {
            return;
        }
        self.work_until(now, waiting, arm);
        // A sector is long by a rounded time. The sector that ends at `now` may therefore be
        // complete for a second call only, which begins with the sectors of the first.
        let is_quiet = self.being_read().is_none() || now < self.quiet_until;
        self.caught_up = (if is_quiet { now } else { Time::NEVER }, waiting);
    }

    fn work_until(&mut self, now: Time, waiting: bool, arm: &mut DriveArm) {
        while let Some(since) = self.dirty_since() {
            let due = self.destages_from(since);
            // Standing platters start for the write. A write that is due at `now` itself begins
            // after `now`.
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
            // Read-ahead has the arm until the write begins.
            self.read_ahead(begin, arm);
            self.destage_one(begin, arm);
        }
        self.read_ahead(now, arm);
    }

    /// Records that the next [`catch_up`](DriveBuffer::catch_up) may find work at any instant.
    #[inline]
    fn changes(&mut self) {
        self.caught_up.0 = Time::NEVER;
        self.quiet_until = Time::ZERO;
    }

    /// Returns the time since which a write of dirty data has the arm, if that time lies before
    /// `now`. [`catch_up`](DriveBuffer::catch_up) may not have carried out the write yet.
    fn destages_before(&self, now: Time, waiting: bool, arm: &DriveArm) -> Option<Time> {
        let since = self.dirty_since()?;
        let begin = arm.free_from(self.destages_from(since));
        let goes = begin < now && (!waiting || self.above_watermark());
        goes.then_some(begin)
    }

    /// Returns the time from which dirty data may go to the medium. The arm may move for the data
    /// since `since`.
    fn destages_from(&self, since: Time) -> Time {
        (since + self.delay()).max(self.passed_over)
    }

    /// Shortest stay of dirty data in the buffer.
    fn delay(&self) -> Duration {
        if self.above_watermark() {
            Duration::ZERO
        } else {
            self.config.destage_delay
        }
    }

    /// Returns a cheap lower bound of [`next_event`](DriveBuffer::next_event).
    pub(crate) fn rests_until(&self, arm: &DriveArm) -> Time {
        let destages = self
            .dirty_since()
            .map_or(Time::NEVER, |since| self.destages_from(since));
        let filling = self.filling.map(|index| self.segments.get(index));
        let ahead = filling.and_then(|segment| match segment.fill {
            FillState::Ahead { since, limit } => Some(
                since
                    + arm
                        .mechanics()
                        .passes_at_least(Sectors(limit - segment.end)),
            ),
            _ => None,
        });
        destages.min(ahead.unwrap_or(Time::NEVER))
    }

    /// Returns the time of the next buffer event with a lasting effect, while no request needs the
    /// arm: read-ahead ends, or dirty data begin to go to the medium.
    pub(crate) fn next_event(&self, arm: &DriveArm) -> Time {
        // Work that is due at an instant begins after the instant.
        let destage = |since| arm.free_from(self.destages_from(since)) + Duration::from_nanos(1);
        let destages = self.dirty_since().map_or(Time::NEVER, destage);
        destages.min(self.read_ahead_ends(arm))
    }

    /// Writes the next dirty extent to the medium, from `now` on.
    pub(crate) fn destage_one(&mut self, now: Time, arm: &mut DriveArm) -> AccessTimes {
        self.changes();
        let begin = arm.free_from(now);
        let Some((dirty, place)) = self.next_dirty(begin, arm) else {
            return AccessTimes::default();
        };
        let DirtyData {
            extent,
            since,
            arrived,
        } = dirty;
        // A pool may choose data that came later than the oldest data, and a write cannot begin
        // before its data came.
        let begin = if self.pool.is_some() {
            begin.max(since)
        } else {
            begin
        };
        // The arm leaves for the write, so read-ahead ends here.
        self.stop_fill(begin);
        let position = place.unwrap_or_else(|| arm.mechanics().geometry().locate(extent.start));
        let feed = BusArrival {
            first: arrived,
            each: Duration::ZERO,
            marked: 0,
        };
        let mut work = AccessTimes::default();
        let begin = arm.read_edges(begin, extent, &mut work);
        let mut access = arm.access_fed(begin, extent, &position, true, Some(feed), |_| {});
        let end = begin + access.duration();
        add(&mut access, &work);
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
                if segment.kind == SegmentContent::Dirty
                    && start <= segment.start
                    && segment.end <= end
                {
                    if let Some(pool) = pool {
                        pool.remove(index, segment);
                    }
                    if stays {
                        segment.kind = SegmentContent::Written
                    } else {
                        *segment = BufferSegment::default()
                    }
                }
            });
        access
    }

    /// Takes out the next dirty extent for an arm free at `begin`, with the place of the extent if
    /// known.
    fn next_dirty(&mut self, begin: Time, arm: &DriveArm) -> Option<(DirtyData, Option<Position>)> {
        let Some(pool) = &mut self.pool else {
            return self.dirty.pop().map(|dirty| (dirty, None));
        };
        let waiting = pool.take(begin, self.destaged.0.end(), arm)?;
        let segment = self.segments.get(waiting.slot as usize);
        pool.taken(segment);
        assert!(
            segment.kind == SegmentContent::Dirty && segment.start < segment.end,
            "segment {} is to be written, and is not dirty: {segment:?}",
            waiting.slot
        );
        let extent = Extent::new(segment.start, segment.end - segment.start);
        let dirty = DirtyData {
            extent,
            since: waiting.arrived,
            arrived: segment.ready,
        };
        // The start of the segment may have been cut after its place was found.
        let place = (waiting.lbn == extent.start).then_some(waiting.position);
        Some((dirty, place))
    }

    /// True if any data taken until `asked` are dirty. Under a discipline the buffer keeps no age
    /// for each extent, so the answer covers all dirty data.
    pub(crate) fn is_dirty_since(&self, asked: Time) -> bool {
        match &self.pool {
            Some(pool) => pool.since().is_some_and(|since| since <= asked),
            None => self.dirty.any_since(asked),
        }
    }

    /// Writes all data taken until `asked` to the medium, from `now` on. Returns the end of the
    /// writes. Adds the arm's work to `work`.
    pub(crate) fn flush(
        &mut self,
        now: Time,
        asked: Time,
        arm: &mut DriveArm,
        work: &mut AccessTimes,
    ) -> Time {
        // Data that arrived after the flush command may stay dirty (ATA FLUSH CACHE covers
        // completed writes).
        while self.is_dirty_since(asked) {
            let access = self.destage_one(now, arm);
            add(work, &access);
        }
        self.destaged.1.max(now)
    }

    /// Makes a later read of `extent` go to the medium. Writes dirty data of the extent and keeps
    /// no data of the extent.
    pub(crate) fn leave_to_medium(
        &mut self,
        now: Time,
        extent: Extent,
        waiting: bool,
        arm: &mut DriveArm,
    ) {
        self.catch_up(now, waiting, arm);
        self.changes();
        let (start, end) = (extent.start.0, extent.end().0);
        let mut dirty = false;
        self.segments.update_overlapping(start, end, |_, segment| {
            dirty |= segment.kind == SegmentContent::Dirty
        });
        // The medium must hold the newest data before the read, or the read would verify old data.
        if dirty {
            self.flush(now, now, arm, &mut AccessTimes::default());
        }
        self.stop_fill(now);
        self.segments
            .update_overlapping(start, end, |_, segment| segment.cut(start, end));
    }

    /// Looks up the buffered part of a read at `now`.
    pub(crate) fn look_up(&self, now: Time, extent: Extent, arm: &DriveArm) -> Lookup {
        let (start, end) = (extent.start.0, extent.end().0);
        let is_there = |segment: &BufferSegment| match segment.fill {
            _ if now < segment.ready => false,
            FillState::Track { landed, left } => passed_since(landed, extent, arm) <= now.min(left),
            _ => true,
        };
        // A segment that is not being filled. The sectors of the segment go over the bus, and the
        // arm must move for the rest. A track buffer is read anew.
        let stands = |segment: &BufferSegment| {
            segment.kind == SegmentContent::Read
                && segment.fill == FillState::Idle
                && segment.ready <= now
        };
        let (whole, beginning) = self
            .segments
            .holding_or_beginning(start, end, is_there, stands);
        if let Some(index) = whole {
            return Lookup::Hit(index);
        }
        // Only transfers of the measured sizes follow the measured rule for the end of read-ahead.
        let misses = self.config.read_ahead_misses_at_end && self.is_measured(extent);
        let at_end = u64::from(!misses);
        if let Some(segment) = self.filling.map(|index| self.segments.get(index))
            && let FillState::Ahead { since, .. } = segment.fill
            && (segment.start..segment.end + at_end).contains(&start)
        {
            let there = Sectors(segment.end - start);
            return Lookup::Filling {
                there,
                next: Lbn(segment.end),
                since,
            };
        }
        let Some(index) = beginning else {
            return Lookup::Miss;
        };
        let end = self.segments.get(index).end;
        Lookup::Beginning {
            segment: index,
            there: Sectors(end - start),
            next: Lbn(end),
        }
    }

    /// Begin and end of the data in the segment under read-ahead.
    pub(crate) fn being_read(&self) -> Option<(u64, u64)> {
        let segment = self.segments.get(self.filling?);
        matches!(segment.fill, FillState::Ahead { .. }).then_some((segment.start, segment.end))
    }

    /// Returns the last address that heads reading up to `end` can reach by reading on. Within
    /// about a track, reading on takes no longer than a seek.
    pub(crate) fn reaches(&self, end: u64) -> u64 {
        if self.config.read_ahead_misses_at_end {
            return end.saturating_sub(1);
        }
        end + u64::from(self.config.stream_sectors)
    }

    /// Lets the heads read on to `start` over the sectors in between. A member of a RAID-5 under a
    /// sequential read needs this, because the reads skip the parity.
    pub(crate) fn read_up_to(&mut self, start: u64, arm: &mut DriveArm) {
        let Some(index) = self.filling else { return };
        let BufferSegment { end, fill, .. } = *self.segments.get(index);
        let FillState::Ahead { since, limit } = fill else {
            return;
        };
        if start <= end {
            return;
        }
        self.changes();
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
            FillState::Ahead {
                since,
                limit: limit.max(start),
            },
        );
    }

    /// Begin and end of the data in the last filled segment.
    pub(crate) fn read_last(&self) -> (u64, u64) {
        let segment = self.segments.get(self.filled_last);
        (segment.start, segment.end)
    }

    /// True if a read at `lbn` continues an earlier read.
    pub(crate) fn goes_on(&self, lbn: Lbn) -> bool {
        self.segments
            .touching(lbn.0, |segment| segment.kind == SegmentContent::Read)
            .is_some()
    }

    /// Time when the arm may leave the current stream.
    pub(crate) fn stream_until(&self, arm: &DriveArm) -> Time {
        let Some(segment) = self.filling.map(|index| self.segments.get(index)) else {
            return Time::ZERO;
        };
        let FillState::Ahead { since, limit } = segment.fill else {
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

    /// Records a hit on a segment. Read-ahead may go on from `now` if the arm is `idle` and not
    /// writing at that time.
    pub(crate) fn hit(
        &mut self,
        index: usize,
        now: Time,
        extent: Extent,
        arm: &DriveArm,
        idle: bool,
    ) {
        self.changes();
        self.hits += 1;
        self.tick += 1;
        let (
            tick,
            BufferSegment {
                kind,
                fill,
                end: reached,
                ..
            },
        ) = (self.tick, *self.segments.get(index));
        let reads_on = kind == SegmentContent::Read && !matches!(fill, FillState::Track { .. });
        // Read-ahead may overwrite data before the end of the hit.
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
            FillState::Ahead { since, limit: old } => {
                self.segments.set_fill(
                    index,
                    FillState::Ahead {
                        since,
                        limit: limit.max(old),
                    },
                );
            }
            FillState::Idle if idle && goes_on && limit > reached && arm.free_from(now) == now => {
                self.stop_fill(now);
                self.start_fill(index, FillState::Ahead { since: now, limit });
            }
            _ => {}
        }
    }

    /// Records the end of a read with sectors from the running read-ahead. The arm is at the end of
    /// the read since `now`.
    pub(crate) fn filled(&mut self, now: Time, extent: Extent, arm: &mut DriveArm) {
        self.changes();
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

    /// Records that the rest of a read came from the medium and joins the beginning in a segment.
    /// The arm left its place at `left`.
    pub(crate) fn resumed(
        &mut self,
        index: usize,
        left: Time,
        now: Time,
        extent: Extent,
        arm: &mut DriveArm,
    ) {
        self.changes();
        self.stop_fill(left);
        self.filling = Some(index);
        assert_eq!(
            self.segments.get(index).kind,
            SegmentContent::Read,
            "a read goes on in a segment of another kind"
        );
        self.filled(now, extent, arm);
    }

    /// Records a read from the medium. The arm left its place at `left`, landed at `landed`, and
    /// finished at `now`. `position` is the place of the first sector.
    pub(crate) fn missed(
        &mut self,
        left: Time,
        landed: Time,
        now: Time,
        extent: Extent,
        position: &Position,
        arm: &mut DriveArm,
    ) {
        self.changes();
        arm.keep_until(now);
        let mechanics = arm.mechanics();
        self.tick += 1;
        self.stop_fill(left);
        assert!(
            left <= landed && landed <= now,
            "the arm leaves at {left:?}, lands at {landed:?} and ends at {now:?}"
        );
        let mut segment = BufferSegment::new(extent, SegmentContent::Read, now, self.tick);
        let end = segment.end;
        if self.config.read_ahead == ReadAhead::WholeTrack && self.is_measured(extent) {
            // A track buffer keeps the sectors from the landing on, in front of the request also.
            let track = mechanics.geometry().track_at(Lbn(end - 1));
            // The request may have begun on an earlier track. Then the last track passes from its
            // start only after the request.
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
                FillState::Track {
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
            self.keep_place_behind(extent, position, mechanics);
            let Some(index) = self.insert(segment) else {
                return;
            };
            self.start_ahead(index, now, limit);
        }
    }

    /// True if the buffer can take a write at `now` without waiting for the medium.
    pub(crate) fn has_room(&self, now: Time, extent: Extent) -> bool {
        let (destaged, on_medium) = self.destaged;
        // Data on the way to the medium keep their segment until the write ends.
        let under_way = now < on_medium;
        if let Some(pool) = &self.pool {
            let taken = pool.sectors() + if under_way { destaged.sectors.0 } else { 0 };
            let has_segment = pool.len() + usize::from(under_way) < self.write_segments
                && self.segments.may_go() > 0
                || self.dirty_to_join(extent).is_some();
            return has_segment && taken + extent.sectors.0 <= self.write_sectors;
        }
        // A write that continues the one on its way to the medium needs no further segment.
        let joins = self.joins(destaged, extent);
        let taken = self.dirty.len() + usize::from(under_way && !joins);
        taken < self.write_segments && self.segments.may_go() > 0
    }

    /// True if a write without room at `now` will have room after more dirty data have gone to the
    /// medium.
    pub(crate) fn will_have_room(&self, now: Time, extent: Extent) -> bool {
        let fits = self.pool.is_none() || extent.sectors.0 <= self.write_sectors;
        fits && (self.dirty_len() > 0 || now < self.destaged.1)
    }

    /// Returns when the buffer can take a write, from `now` on. A full buffer first writes the
    /// oldest data to the medium. `None` if no segment becomes free.
    pub(crate) fn make_room(
        &mut self,
        now: Time,
        extent: Extent,
        arm: &mut DriveArm,
    ) -> Option<Time> {
        if self.has_room(now, extent) {
            return Some(now);
        }
        // One write to the medium frees one place. More would delay the reads for nothing.
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

    /// True if `extent` continues `before` and both fit into one segment.
    fn joins(&self, before: Extent, extent: Extent) -> bool {
        let together = before.sectors + extent.sectors;
        self.config.combine_writes
            && before.end() == extent.start
            && together.0 <= self.segment_sectors
    }

    /// Takes a write into the buffer. The data come over the bus from `since` to `arrived`. The arm
    /// may move for the write meanwhile.
    pub(crate) fn take_write(
        &mut self,
        since: Time,
        arrived: Time,
        extent: Extent,
        mechanics: &Mechanics,
    ) {
        self.changes();
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
            // Dirty data that could have waited must go to the medium from now on.
            self.passed_over = self.passed_over.max(since);
        }
    }

    fn add_dirty(&mut self, since: Time, arrived: Time, extent: Extent, mechanics: &Mechanics) {
        let index = self.insert(BufferSegment::new(
            extent,
            SegmentContent::Dirty,
            arrived,
            self.tick,
        ));
        match (&mut self.pool, index) {
            (Some(pool), Some(index)) => pool.insert(index, extent, since, mechanics),
            (Some(_), None) => unreachable!("a write is taken where there is a segment for it"),
            (None, _) => self.dirty.push(DirtyData {
                extent,
                since,
                arrived,
            }),
        }
    }

    /// Returns the dirty segment that contains or can be extended by a write.
    fn dirty_to_join(&self, extent: Extent) -> Option<usize> {
        let (start, end) = (extent.start.0, extent.end().0);
        let most = self.segment_sectors.saturating_sub(extent.sectors.0);
        let fits = |segment: &BufferSegment| {
            segment.kind == SegmentContent::Dirty
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

    /// Adds a write to the previous write, if the write continues the previous one.
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
        // The segment that grows ends where the new data begin.
        let end = extent.start.0;
        self.dirty.grow_newest(extent.sectors.0, arrived);
        let ends_there =
            |segment: &BufferSegment| segment.kind == SegmentContent::Dirty && segment.end == end;
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

    /// Records a write to the medium. The arm left its place at `left`, and the data were on the
    /// medium at `now`.
    pub(crate) fn wrote_through(
        &mut self,
        left: Time,
        now: Time,
        extent: Extent,
        arm: &mut DriveArm,
    ) {
        self.changes();
        arm.keep_until(now);
        self.tick += 1;
        self.stop_fill(left);
        self.overwrite(left, extent);
        self.insert(BufferSegment::new(
            extent,
            SegmentContent::Written,
            now,
            self.tick,
        ));
    }

    /// Marks the buffer's copy of `extent` as stale from `now` on. Completely overwritten dirty
    /// data need not go to the medium.
    fn overwrite(&mut self, now: Time, extent: Extent) {
        let (start, end) = (extent.start.0, extent.end().0);
        // Firmware with a pool goes on reading ahead unless the write touches the sectors.
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
                SegmentContent::Read => segment.cut(start, end),
                SegmentContent::Written if pool.is_some() => segment.cut(start, end),
                // Overwritten data need not go to the medium.
                SegmentContent::Dirty if start <= segment.start && segment.end <= end => {
                    if let Some(pool) = pool {
                        pool.remove(index, segment);
                    }
                    *segment = BufferSegment::default();
                }
                _ => {}
            });
        self.dirty.remove_within(extent);
    }

    /// Inserts a segment. Overlapping clean segments give way first. Then the least recently used
    /// segment of the same kind gives way if the kind has its full share, otherwise the least
    /// recently used of all segments. `None` if all segments are dirty or too little room is left.
    fn insert(&mut self, segment: BufferSegment) -> Option<usize> {
        // Each sector stands in one segment only. Otherwise a search could find the older data.
        self.segments
            .update_overlapping(segment.start, segment.end, |_, other| {
                if other.kind != SegmentContent::Dirty {
                    *other = BufferSegment::default();
                }
            });
        let index = self
            .segments
            .replaceable(segment.is_written(), self.write_segments)?;
        assert!(
            self.segments.get(index).kind != SegmentContent::Dirty,
            "segment {index} is dirty and would be replaced"
        );
        self.segments.put(index, segment);
        // The replaced segment was perhaps the one that read-ahead filled.
        self.filling = self.filling.filter(|&filling| filling != index);
        self.share();
        Some(index).filter(|&index| self.segments.get(index).holds_data())
    }

    /// Frees the least recently used segments if all segments together exceed the shared buffer
    /// size.
    fn share(&mut self) {
        while let Some(index) = self
            .segments
            .beyond_share()
            .filter(|&index| Some(index) != self.filling)
        {
            self.segments.drop(index);
        }
    }

    /// Returns the end of read-ahead after a read. The segment of the read holds the stream from
    /// `begun` on.
    fn limit(&mut self, extent: Extent, begun: u64, mechanics: &Mechanics) -> u64 {
        let (start, end) = (extent.start.0, extent.end().0);
        let goes_on = start == std::mem::replace(&mut self.last_read_end, end);
        let waits = self.config.read_ahead_waits_for_stream;
        if self.config.read_ahead == ReadAhead::None || (waits && !goes_on) {
            return end;
        }
        let geometry = mechanics.geometry();
        let capacity = geometry.capacity().0;
        // A large read that is longer than a segment passes through the segment like a ring, so
        // that the segment has room behind the read.
        let passes = !self.is_measured(extent) && extent.sectors.0 >= self.segment_sectors;
        let from = if self.config.read_ahead_over_delivered || passes {
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
            ReadAhead::WholeTrack if !self.is_measured(extent) => full,
            ReadAhead::Track | ReadAhead::WholeTrack => track_at(end - 1).1.min(full),
            ReadAhead::Cylinder => {
                let cylinder = geometry.cylinder_of(Lbn(end - 1));
                let mut reached = track_at(end - 1).1;
                // A cylinder may consist of many tracks of different lengths, so the end is found
                // track by track.
                while reached < full && geometry.cylinder_of(Lbn(reached)) == cylinder {
                    reached = track_at(reached).1;
                }
                reached.min(full)
            }
            ReadAhead::Segment => full,
            ReadAhead::NextTrack if end == capacity => end,
            ReadAhead::NextTrack => {
                let (first, behind) = track_at(end);
                // A stream that began on an earlier track reads one track further.
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

    /// Runs read-ahead until `now`. A sector counts when the whole sector has passed.
    fn read_ahead(&mut self, now: Time, arm: &mut DriveArm) {
        let Some(index) = self.filling else { return };
        // Only energy depends on parts of a sector.
        if now < self.quiet_until && !arm.has_idle_states() {
            return;
        }
        let BufferSegment { mut end, fill, .. } = *self.segments.get(index);
        let FillState::Ahead { mut since, limit } = fill else {
            return;
        };
        // The heads are still busy with the access before: nothing moves for read-ahead.
        if now < since {
            self.quiet_until = self.quiet_until.max(since);
            return;
        }
        let before = (end, since);
        while end < limit {
            let position = self.place_of(Lbn(end), arm.mechanics());
            let left = Sectors(limit - end);
            let track = Passing::at(position, left, since, arm.head(), arm.mechanics());
            if track.landed > now {
                arm.meter_ahead(PowerState::Seek, since, now);
                self.quiet_until = track.landed;
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
                let geometry = arm.mechanics().geometry();
                let place = geometry.after(&track.position, done);
                self.next_place = place.map(|place| (Lbn(end), place));
            }
            if done < track.sectors {
                self.quiet_until = since + track.sector_at_least(arm.mechanics());
                arm.meter_ahead(PowerState::Rotate, since, track.start.min(now));
                arm.meter_ahead(PowerState::Read, track.start.max(since), now);
                break;
            }
        }
        // Nothing passed under the heads, so no table of places changes.
        if (end, since) == before {
            return;
        }
        let size = self.segment_sectors;
        self.segments.reshape(index, |segment| {
            segment.end = end;
            segment.trim(size);
        });
        self.start_ahead(index, since, limit);
        self.share();
    }

    /// Returns the place of `lbn`, the next sector of read-ahead.
    #[inline]
    fn place_of(&mut self, lbn: Lbn, mechanics: &Mechanics) -> Position {
        if let Some((of, place)) = &self.next_place
            && *of == lbn
        {
            return *place;
        }
        let place = mechanics.geometry().locate(lbn);
        self.next_place = Some((lbn, place));
        place
    }

    /// Records the place behind a read of `extent` from `position` on, if that place lies on the
    /// same track. Read-ahead goes on from there.
    fn keep_place_behind(&mut self, extent: Extent, position: &Position, mechanics: &Mechanics) {
        let place = mechanics.geometry().after(position, extent.sectors);
        self.next_place = place.map(|place| (extent.end(), place));
    }

    /// Time when read-ahead reaches the limit.
    fn read_ahead_ends(&self, arm: &DriveArm) -> Time {
        let Some(segment) = self.filling.map(|index| self.segments.get(index)) else {
            return Time::NEVER;
        };
        let FillState::Ahead { since, limit } = segment.fill else {
            return Time::NEVER;
        };
        let (mut end, mut since, mut head, mechanics) =
            (segment.end, since, arm.head(), arm.mechanics());
        while end < limit {
            let position = match &self.next_place {
                Some((of, place)) if of.0 == end => *place,
                _ => mechanics.geometry().locate(Lbn(end)),
            };
            let track = Passing::at(position, Sectors(limit - end), since, head, mechanics);
            head = head.reading(&track.position);
            (end, since) = (
                end + track.sectors.0,
                track.end_of(track.sectors, mechanics),
            );
        }
        since
    }

    /// Reports the arm's states during the current read-ahead until `now` to `does`, each with
    /// begin and end. The counters of the arm include whole tracks and sectors only.
    pub(crate) fn reads_ahead(
        &self,
        now: Time,
        arm: &DriveArm,
        mut does: impl FnMut(PowerState, Time, Time),
    ) {
        let Some(segment) = self.filling.map(|index| self.segments.get(index)) else {
            return;
        };
        let FillState::Ahead { since, limit } = segment.fill else {
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

    /// Returns begin and end of read-ahead until `now` that the counters of the arm do not include
    /// yet. The interval covers landings and whole sectors. Read-ahead ends where a write of dirty
    /// data takes the arm, unless requests are `waiting`.
    pub(crate) fn has_read_ahead(
        &self,
        now: Time,
        waiting: bool,
        arm: &DriveArm,
    ) -> Option<(Time, Time)> {
        let now = self.destages_before(now, waiting, arm).unwrap_or(now);
        let segment = self.segments.get(self.filling?);
        let FillState::Ahead { since, limit } = segment.fill else {
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

    /// Begins read-ahead to `limit`. The head has waited for the end of the segment since `since`.
    fn start_ahead(&mut self, index: usize, since: Time, limit: u64) {
        let goes_on = self.segments.get(index).end < limit;
        self.start_fill(
            index,
            if goes_on {
                FillState::Ahead { since, limit }
            } else {
                FillState::Idle
            },
        );
    }

    fn start_fill(&mut self, index: usize, fill: FillState) {
        assert!(
            self.filling.is_none_or(|filling| filling == index),
            "segment {index} begins to fill while segment {:?} is filled",
            self.filling
        );
        if let FillState::Ahead { limit, .. } = fill {
            assert!(
                self.segments.get(index).end < limit,
                "read-ahead to sector {limit} begins behind it"
            );
        }
        self.segments.set_fill(index, fill);
        self.filling = (fill != FillState::Idle).then_some(index);
        self.filled_last = index;
    }

    /// Stops read-ahead, because the head leaves the track at `now`.
    pub(crate) fn stop_fill(&mut self, now: Time) {
        let Some(index) = self.filling.take() else {
            return;
        };
        self.changes();
        let fill = match self.segments.get(index).fill {
            FillState::Track { landed, .. } => FillState::Track { landed, left: now },
            _ => FillState::Idle,
        };
        self.segments.set_fill(index, fill);
    }
}

/// The sectors of one track for read-ahead.
struct Passing {
    position: Position,
    sectors: Sectors,
    /// Time when the heads are on the track.
    landed: Time,
    /// Time when the first sector begins to pass.
    start: Time,
    phase: Angle,
}

impl Passing {
    /// Plans the pass of up to `left` sectors from `lbn` on one track. The heads leave their place
    /// at `since`.
    #[inline]
    fn of(
        lbn: Lbn,
        left: Sectors,
        since: Time,
        head: HeadPosition,
        mechanics: &Mechanics,
    ) -> Passing {
        let position = mechanics.geometry().locate(lbn);
        Passing::at(position, left, since, head, mechanics)
    }

    /// Does the same as [`of`](Passing::of) for sectors from `position` on.
    #[inline]
    fn at(
        position: Position,
        left: Sectors,
        since: Time,
        head: HeadPosition,
        mechanics: &Mechanics,
    ) -> Passing {
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

    /// Returns when `sectors` sectors have passed. The computation uses angles, because rounded
    /// times would add up.
    fn end_of(&self, sectors: Sectors, mechanics: &Mechanics) -> Time {
        let spindle = mechanics.spindle();
        let behind = self.position.angle - self.phase + mechanics.span(&self.position, sectors);
        self.start + spindle.time_to_turn(behind - spindle.angle_at(self.start))
    }

    /// Returns a lower bound of the time between two completed sectors. An end may be early by
    /// the rounding of two times and by the tolerance of [`Spindle::wait_for`], 4 ns together.
    ///
    /// [`Spindle::wait_for`]: fullstroke_units::Spindle::wait_for
    fn sector_at_least(&self, mechanics: &Mechanics) -> Duration {
        let sector = mechanics.spindle().time_to_turn(self.position.sector_angle);
        // Four rounded times, each by less than 1 ns, make up a sector.
        sector.saturating_sub(Duration::from_nanos(4))
    }

    /// Returns the number of sectors passed by `now`, and the time when the last of these sectors
    /// had passed.
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

/// Adds an access to the sum of several accesses.
pub(crate) fn add(work: &mut AccessTimes, access: &AccessTimes) {
    work.seek += access.seek;
    work.rotation += access.rotation;
    work.transfer += access.transfer;
    work.seek_cylinders += access.seek_cylinders;
}

/// Returns the store of dirty data under a discipline. `None` if the drive file names no
/// discipline.
fn pool(config: &BufferConfig) -> Result<Option<DirtySegments>, ConfigError> {
    let build = |name: &String| {
        let entry = find(
            "queue discipline",
            queue::REGISTRY,
            "destage_discipline",
            name,
        )?;
        (entry.build)(&config.destage).map(DirtySegments::new)
    };
    config.destage_discipline.as_ref().map(build).transpose()
}

/// Returns when all sectors of `extent`, which lies on one track, have passed under heads that
/// landed at `landed`.
fn passed_since(landed: Time, extent: Extent, arm: &DriveArm) -> Time {
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
