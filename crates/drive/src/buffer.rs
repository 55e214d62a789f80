//! The buffer of a drive: segments of read and written data, read-ahead, and
//! write-back.
//!
//! What the drive does by itself between requests, read-ahead and destaging, is
//! worked out when it matters: [`Buffer::catch_up`] lets it run up to an
//! instant. The rules are set out in VALIDATION.md, with what each is worth.

mod oldest;
mod order;
mod segments;

use self::segments::{Fill, Kind, Segment, Segments};
use crate::config::{BufferConfig, ReadAhead};
use crate::mechanics::{Access, Feed, Head, Mechanics};
use fullstroke_contract::{ConfigError, Extent, TrackTable as _};
use fullstroke_units::{Duration, Lbn, Sectors, Time};
use std::collections::VecDeque;

/// Segments of a buffer at most; more are a mistake.
const SEGMENTS_MAX: u32 = 1 << 16;

/// Data that are acknowledged but not on the medium.
#[derive(Clone, Copy, Debug)]
struct Dirty {
    extent: Extent,
    /// Since when the arm may move for them.
    since: Time,
    /// When all of them are in the buffer.
    arrived: Time,
}

/// What the buffer has of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lookup {
    /// All of it, in this segment.
    Hit(usize),
    /// The beginning, and the rest is being read: so many sectors are there,
    /// and the head waits for the next since an instant.
    Filling { there: Sectors, next: Lbn, since: Time },
    /// Nothing that is of use.
    Miss,
}

/// The buffer.
pub(crate) struct Buffer {
    config: BufferConfig,
    segment_sectors: u64,
    /// Segments that may hold written data.
    write_segments: usize,
    segments: Segments,
    /// The segment that the drive is filling.
    filling: Option<usize>,
    dirty: VecDeque<Dirty>,
    /// What was written last, and when it is on the medium; until then its
    /// segment is taken.
    destaged: (Extent, Time),
    /// The arm works for the buffer until then.
    arm_free: Time,
    tick: u64,
    hits: u64,
}

impl Buffer {
    /// # Errors
    /// Names the key that cannot be.
    pub(crate) fn new(config: &BufferConfig) -> Result<Buffer, ConfigError> {
        if !(1..=SEGMENTS_MAX).contains(&config.segments) {
            let message =
                format!("found {}; expected 1 to {SEGMENTS_MAX}, or leave [buffer] out", config.segments);
            return Err(ConfigError::new("segments", message));
        }
        if config.segment_sectors == 0 {
            let message = "found 0; expected at least 1, or leave [buffer] out";
            return Err(ConfigError::new("segment_sectors", message));
        }
        if config.write_segments > config.segments {
            let message = format!("found {}; the buffer has {}", config.write_segments, config.segments);
            return Err(ConfigError::new("write_segments", message));
        }
        if !(0.0..=1.0).contains(&config.destage_watermark) {
            let message = format!("found {}; expected 0 to 1", config.destage_watermark);
            return Err(ConfigError::new("destage_watermark", message));
        }
        Ok(Buffer {
            segment_sectors: u64::from(config.segment_sectors),
            write_segments: config.write_segments.max(1) as usize,
            segments: Segments::new(config.segments as usize),
            config: config.clone(),
            filling: None,
            dirty: VecDeque::new(),
            destaged: (Extent::default(), Time::ZERO),
            arm_free: Time::ZERO,
            tick: 0,
            hits: 0,
        })
    }

    /// Sectors of a segment.
    pub(crate) fn segment_sectors(&self) -> u64 {
        self.segment_sectors
    }

    /// Reads answered from the buffer, and writes taken by it.
    pub(crate) fn hits(&self) -> u64 {
        self.hits
    }

    /// Segments that a request could take: neither protected nor dirty.
    pub(crate) fn free_segments(&self) -> u32 {
        self.segments.may_go() as u32
    }

    /// Takes a segment out of the common use, until it is released. `None` if
    /// all are protected or dirty.
    pub(crate) fn protect(&mut self) -> Option<usize> {
        self.insert(Segment { kind: Kind::Protected, ..Segment::default() })
    }

    /// Gives a protected segment back. `false` if it is none.
    pub(crate) fn release(&mut self, index: usize) -> bool {
        let is_protected =
            index < self.config.segments as usize && self.segments.get(index).kind == Kind::Protected;
        if is_protected {
            self.segments.drop(index);
        }
        is_protected
    }

    /// When the arm is free of what the buffer does by itself.
    pub(crate) fn arm_free(&self) -> Time {
        self.arm_free
    }

    /// Whether so much waits to be written that it goes before reads.
    pub(crate) fn above_watermark(&self) -> bool {
        self.dirty.len() as f64 > self.config.destage_watermark * self.write_segments as f64
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
    pub(crate) fn catch_up(&mut self, now: Time, waiting: bool, mechanics: &Mechanics, head: &mut Head) {
        while let Some(&Dirty { since, .. }) = self.dirty.front() {
            let urgent = self.above_watermark();
            let delay = if urgent { Duration::ZERO } else { self.config.destage_delay };
            let begin = self.arm_free.max(since + delay);
            if begin >= now || (waiting && !urgent) {
                break;
            }
            self.read_ahead(begin, mechanics, head);
            self.destage_one(begin, mechanics, head);
        }
        self.read_ahead(now, mechanics, head);
    }

    /// Writes the oldest dirty extent, from `now` on.
    pub(crate) fn destage_one(&mut self, now: Time, mechanics: &Mechanics, head: &mut Head) -> Access {
        let Some(Dirty { extent, arrived, .. }) = self.dirty.pop_front() else { return Access::default() };
        let begin = self.arm_free.max(now);
        self.stop_fill(begin);
        let position = mechanics.geometry().locate(extent.start);
        let feed = Feed { first: arrived, each: Duration::ZERO };
        let access = mechanics.access_fed(head, begin, extent, &position, true, Some(feed), |_| {});
        self.arm_free = begin + access.duration();
        self.destaged = (extent, self.arm_free);
        let (start, end) = (extent.start.0, extent.end().0);
        let stays = self.config.read_hits_on_written;
        self.segments.update_overlapping(start, end, |segment| {
            if segment.kind == Kind::Dirty && start <= segment.start && segment.end <= end {
                if stays { segment.kind = Kind::Written } else { *segment = Segment::default() }
            }
        });
        access
    }

    /// Writes, from `now` on, everything that was taken until `asked`; when that
    /// is done. The arm's work for it is added to `work`.
    pub(crate) fn flush(
        &mut self,
        now: Time,
        asked: Time,
        mechanics: &Mechanics,
        head: &mut Head,
        work: &mut Access,
    ) -> Time {
        while self.dirty.iter().any(|dirty| dirty.since <= asked) {
            let access = self.destage_one(now, mechanics, head);
            work.seek += access.seek;
            work.rotation += access.rotation;
            work.transfer += access.transfer;
            work.seek_cylinders += access.seek_cylinders;
        }
        self.destaged.1.max(now)
    }

    /// What the buffer has of a read at `now`.
    pub(crate) fn look_up(&self, now: Time, extent: Extent, mechanics: &Mechanics) -> Lookup {
        let (start, end) = (extent.start.0, extent.end().0);
        let is_there = |segment: &Segment| match segment.fill {
            _ if now < segment.ready => false,
            Fill::Track { landed, left } => passed_since(landed, extent, mechanics) <= now.min(left),
            _ => true,
        };
        if let Some(index) = self.segments.holding(start, end, is_there) {
            return Lookup::Hit(index);
        }
        let Some(segment) = self.filling.map(|index| self.segments.get(index)) else { return Lookup::Miss };
        match segment.fill {
            Fill::Ahead { since, .. } if segment.start <= start && start <= segment.end => {
                let there = Sectors(segment.end - start);
                Lookup::Filling { there, next: Lbn(segment.end), since }
            }
            _ => Lookup::Miss,
        }
    }

    /// A read was answered from a segment; read-ahead may go on from `now`, if
    /// the arm is not writing then.
    pub(crate) fn hit(&mut self, index: usize, now: Time, extent: Extent, mechanics: &Mechanics) {
        self.hits += 1;
        self.tick += 1;
        let (tick, Segment { kind, fill, end: reached, .. }) = (self.tick, *self.segments.get(index));
        let reads_on = kind == Kind::Read && !matches!(fill, Fill::Track { .. });
        // What lies before the end of the hit may be overwritten.
        let gives_up = reads_on && self.config.read_ahead_over_delivered;
        self.segments.update(index, |segment| {
            segment.used = tick;
            segment.start = if gives_up { extent.end().0 } else { segment.start };
        });
        if !reads_on {
            return;
        }
        let goes_on = self.config.read_ahead_over_delivered || self.config.read_ahead_on_hit;
        let limit = self.limit(extent, mechanics);
        match fill {
            Fill::Ahead { since, limit: old } => {
                self.segments.set_fill(index, Fill::Ahead { since, limit: limit.max(old) });
            }
            Fill::Idle if goes_on && limit > reached && self.arm_free <= now => {
                self.stop_fill(now);
                self.start_fill(index, Fill::Ahead { since: now, limit });
            }
            _ => {}
        }
    }

    /// A read took sectors from the medium that it had to wait for; the arm is
    /// at its end since `now`.
    pub(crate) fn filled(&mut self, now: Time, extent: Extent, mechanics: &Mechanics) {
        self.arm_free = self.arm_free.max(now);
        self.tick += 1;
        let limit = self.limit(extent, mechanics);
        let Some(index) = self.filling.take() else { return };
        let (tick, size) = (self.tick, self.segment_sectors);
        self.segments.update(index, |segment| {
            segment.end = extent.end().0;
            segment.ready = now;
            segment.used = tick;
            segment.trim(size);
        });
        self.start_ahead(index, now, limit);
    }

    /// A read came from the medium: the arm left its place at `left`, landed at
    /// `landed`, and finished at `now`.
    pub(crate) fn missed(
        &mut self,
        left: Time,
        landed: Time,
        now: Time,
        extent: Extent,
        mechanics: &Mechanics,
    ) {
        self.arm_free = self.arm_free.max(now);
        self.tick += 1;
        self.stop_fill(left);
        let mut segment = Segment::new(extent, Kind::Read, now, self.tick);
        let end = segment.end;
        if self.config.read_ahead == ReadAhead::WholeTrack {
            let track = mechanics.geometry().track_at(Lbn(end - 1));
            let landed = if track.first <= extent.start { landed } else { now };
            (segment.start, segment.end) = (track.first.0, (track.first + track.sectors).0);
            let Some(index) = self.insert(segment) else { return };
            self.start_fill(index, Fill::Track { landed, left: Time::NEVER });
        } else {
            if self.config.read_ahead_over_delivered {
                segment.start = end;
            }
            segment.trim(self.segment_sectors);
            let limit = self.limit(extent, mechanics);
            let Some(index) = self.insert(segment) else { return };
            self.start_ahead(index, now, limit);
        }
    }

    /// Whether a write can be taken at `now` without waiting for the medium.
    pub(crate) fn has_room(&self, now: Time, extent: Extent) -> bool {
        let (destaged, on_medium) = self.destaged;
        let joins = self.joins(destaged, extent);
        let taken = self.dirty.len() + usize::from(now < on_medium && !joins);
        taken < self.write_segments && self.segments.may_go() > 0
    }

    /// When a write can be taken, from `now` on: where the buffer is full, the
    /// oldest data must be on the medium first. `None` if no segment can be had.
    pub(crate) fn make_room(
        &mut self,
        now: Time,
        extent: Extent,
        mechanics: &Mechanics,
        head: &mut Head,
    ) -> Option<Time> {
        if self.has_room(now, extent) {
            return Some(now);
        }
        if self.dirty.len() >= self.write_segments || self.segments.may_go() == 0 {
            self.destage_one(now, mechanics, head);
        }
        let free = self.destaged.1.max(now);
        self.has_room(free, extent).then_some(free)
    }

    /// Whether `extent` goes on where `before` ended, and fits into its segment.
    fn joins(&self, before: Extent, extent: Extent) -> bool {
        let together = before.sectors + extent.sectors;
        self.config.combine_writes && before.end() == extent.start && together.0 <= self.segment_sectors
    }

    /// A write was taken: its data come over the bus from `since` to `arrived`,
    /// and meanwhile the arm may move for it.
    pub(crate) fn take_write(&mut self, since: Time, arrived: Time, extent: Extent) {
        self.hits += 1;
        self.tick += 1;
        self.overwrite(since, extent);
        if self.combine(arrived, extent) {
            return;
        }
        self.insert(Segment::new(extent, Kind::Dirty, arrived, self.tick));
        self.dirty.push_back(Dirty { extent, since, arrived });
    }

    /// Adds a write to the one before, if it goes on where that ended.
    fn combine(&mut self, arrived: Time, extent: Extent) -> bool {
        let joins = self.dirty.back().is_some_and(|last| self.joins(last.extent, extent));
        let Some(last) = self.dirty.back_mut().filter(|_| joins) else { return false };
        let end = extent.start.0;
        last.extent.sectors += extent.sectors;
        last.arrived = arrived;
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
    pub(crate) fn wrote_through(&mut self, left: Time, now: Time, extent: Extent) {
        self.arm_free = self.arm_free.max(now);
        self.tick += 1;
        self.overwrite(left, extent);
        self.insert(Segment::new(extent, Kind::Written, now, self.tick));
    }

    /// What the buffer holds of `extent` is stale from `now` on. Dirty data that
    /// are overwritten as a whole need not be written to the medium.
    fn overwrite(&mut self, now: Time, extent: Extent) {
        self.stop_fill(now);
        let (start, end) = (extent.start.0, extent.end().0);
        if self.config.writes_drop_reads {
            self.segments.drop_all(Kind::Read);
        }
        self.segments.update_overlapping(start, end, |segment| match segment.kind {
            Kind::Read => segment.cut(start, end),
            Kind::Dirty if start <= segment.start && segment.end <= end => *segment = Segment::default(),
            _ => {}
        });
        self.dirty.retain(|dirty| dirty.extent.start < extent.start || extent.end() < dirty.extent.end());
    }

    /// Adds a segment, for which those that it overlaps and then the least
    /// recently used of its kind (where that has all of its share) or of all
    /// give way. `None` if all are protected or dirty.
    fn insert(&mut self, segment: Segment) -> Option<usize> {
        self.segments.update_overlapping(segment.start, segment.end, |other| {
            if other.kind != Kind::Dirty {
                *other = Segment::default();
            }
        });
        let index = self.segments.to_replace(segment.is_written(), self.write_segments)?;
        self.segments.put(index, segment);
        self.filling = self.filling.filter(|&filling| filling != index);
        Some(index)
    }

    /// How far read-ahead goes behind a read.
    fn limit(&self, extent: Extent, mechanics: &Mechanics) -> u64 {
        let (start, end) = (extent.start.0, extent.end().0);
        if self.config.read_ahead == ReadAhead::None {
            return end;
        }
        let geometry = mechanics.geometry();
        let from = if self.config.read_ahead_over_delivered { end } else { start };
        let most = self.config.read_ahead_sectors.map_or(u64::MAX, |sectors| end + u64::from(sectors));
        let full = (from + self.segment_sectors).min(most).min(geometry.capacity().0).max(end);
        let track_end = |lbn: u64| {
            let track = geometry.track_at(Lbn(lbn));
            (track.first + track.sectors).0
        };
        match self.config.read_ahead {
            ReadAhead::None => end,
            ReadAhead::Track | ReadAhead::WholeTrack => track_end(end - 1).min(full),
            ReadAhead::Cylinder => {
                let cylinder = geometry.cylinder_of(Lbn(end - 1));
                let mut reached = track_end(end - 1);
                while reached < full && geometry.cylinder_of(Lbn(reached)) == cylinder {
                    reached = track_end(reached);
                }
                reached.min(full)
            }
            ReadAhead::Segment => full,
        }
    }

    /// Lets read-ahead run until `now`; sectors count when they have passed.
    fn read_ahead(&mut self, now: Time, mechanics: &Mechanics, head: &mut Head) {
        let Some(index) = self.filling else { return };
        let Segment { mut end, fill, .. } = *self.segments.get(index);
        let Fill::Ahead { mut since, limit } = fill else { return };
        while end < limit {
            let position = mechanics.geometry().locate(Lbn(end));
            let landed = since + mechanics.seek(*head, position.cylinder, position.surface, false);
            if landed > now {
                break;
            }
            *head = Head { cylinder: position.cylinder, surface: position.surface, wrote: false };
            let here = position.sectors_left.min(Sectors(limit - end));
            let spindle = mechanics.spindle();
            let start = landed + spindle.wait_for(position.angle, landed);
            // Up to the angle, not for a time: rounding must not add up.
            let passed = |sectors| {
                let behind = position.angle + mechanics.span(&position, sectors);
                start + spindle.time_to_turn(behind - spindle.angle_at(start))
            };
            if passed(here) <= now {
                end += here.0;
                since = passed(here);
                continue;
            }
            let sector = spindle.time_to_turn(position.sector_angle).as_nanos().max(1);
            let done = (now.since(start).as_nanos() / sector).min(here.0);
            if done > 0 {
                end += done;
                since = passed(Sectors(done));
            }
            break;
        }
        let size = self.segment_sectors;
        self.segments.update(index, |segment| {
            segment.end = end;
            segment.trim(size);
        });
        self.start_ahead(index, since, limit);
    }

    /// The head waits for the end of a segment since `since`, to read on to
    /// `limit`.
    fn start_ahead(&mut self, index: usize, since: Time, limit: u64) {
        let goes_on = self.segments.get(index).end < limit;
        self.start_fill(index, if goes_on { Fill::Ahead { since, limit } } else { Fill::Idle });
    }

    fn start_fill(&mut self, index: usize, fill: Fill) {
        self.segments.set_fill(index, fill);
        self.filling = (fill != Fill::Idle).then_some(index);
    }

    /// The head leaves its track at `now`.
    fn stop_fill(&mut self, now: Time) {
        let Some(index) = self.filling.take() else { return };
        let fill = match self.segments.get(index).fill {
            Fill::Track { landed, .. } => Fill::Track { landed, left: now },
            _ => Fill::Idle,
        };
        self.segments.set_fill(index, fill);
    }
}

/// When all of `extent`, on one track, has passed under heads that landed at
/// `landed`.
fn passed_since(landed: Time, extent: Extent, mechanics: &Mechanics) -> Time {
    let position = mechanics.geometry().locate(extent.start);
    let span = mechanics.span(&position, extent.sectors.min(position.sectors_left));
    let spindle = mechanics.spindle();
    landed + spindle.wait_for(position.angle, landed) + spindle.time_to_turn(span)
}

#[cfg(test)]
#[path = "buffer_tests.rs"]
mod tests;
