//! Writes of buffered data: to the cache, or in place: of a whole band, or at the write pointer of a
//! zone.

use super::buffer::WrittenRun;
use super::node::ShingledDrive;
use super::under_way::{InnerIo, MediumWrite, RECORD};
use fullstroke_contract::{Extent, Operation};
use fullstroke_units::Time;

impl ShingledDrive {
    /// Begins the next write of the medium, if one can begin at `now`.
    pub(super) fn write_on(&mut self, now: Time) {
        self.pass_barriers(now);
        if self.writing.is_some() {
            return;
        }
        let flushed =
            (self.barriers.front()).is_some_and(|barrier| barrier.sectors <= self.pending.went);
        // The data before the barrier are on the medium, and only the record of the map is missing.
        if flushed && self.unrecorded {
            return self.write_record(now);
        }
        let Some((run, alone)) = self.pending.oldest() else {
            return;
        };
        let band = self.shingles.band;
        if run.in_order {
            let end = run.end.min((run.start / band + 1) * band);
            return self.write_in_place(now, run.start, end - run.start);
        }
        let (start, sectors) = self.map.extent_of(run.start / band);
        let whole = run.start == start && run.end >= start + sectors;
        if whole && self.is_stream(&run, start + sectors) {
            return self.write_in_place(now, start, sectors);
        }
        if alone && !whole && self.may_become_whole(run.start == start, now) {
            return;
        }
        // A long run goes to the cache up to its first whole band only.
        let next = start + 2 * sectors;
        let to_band = if run.end >= next && self.is_stream(&run, next) {
            start + sectors - run.start
        } else {
            run.end - run.start
        };
        let wanted = to_band.min(run.end - run.start).min(self.shingles.piece);
        self.write_to_cache(now, run.start, wanted);
    }

    /// Writes the beginning of the oldest run to its place in one band.
    fn write_in_place(&mut self, now: Time, start: u64, sectors: u64) {
        // A band under cleaning would get its old data after the new ones.
        if !self.cleans(start / self.shingles.band) {
            self.writing = Some(MediumWrite::Band { start, sectors });
            let extent = Extent::new(start, sectors);
            self.issue(now, Operation::Write, extent, InnerIo::Write);
        }
    }

    fn write_to_cache(&mut self, now: Time, start: u64, wanted: u64) {
        self.map.release();
        // Room for the record stays free, or a barrier could never pass.
        let needed = wanted + self.shingles.record.max(RECORD) + self.shingles.reserve;
        let full = self.map.free() < needed || self.map.extents() + 2 > self.shingles.extents;
        // A full cache cleans several bands, so that the host is not stopped for every write.
        let waits = self.starved.is_some() && self.room_made() < self.writes_go_on;
        if full || (waits && self.map.extents() > 0) {
            if self.starved.is_none() {
                self.starved = Some(now);
                self.writes_go_on = self.room_made() + self.shingles.forced_bands;
            }
            return;
        }
        if let Some(since) = self.starved.take() {
            self.counts.starved += now.since(since);
        }
        // The log goes on at the beginning of the cache, and one write is one piece of the medium.
        let (place, room) = self.map.at_head();
        let sectors = wanted.min(room);
        self.map.append(start, sectors);
        self.unrecorded = true;
        self.counts.cache_sectors += sectors;
        self.writing = Some(MediumWrite::Cache { sectors });
        let extent = Extent::new(place, sectors);
        self.issue(now, Operation::Write, extent, InnerIo::Write);
    }

    /// Number of cleaned bands and moves so far.
    fn room_made(&self) -> u64 {
        self.counts.bands + self.counts.moves
    }

    fn write_record(&mut self, now: Time) {
        let (place, room) = self.map.at_head();
        let sectors = RECORD.min(room);
        self.counts.cache_sectors += self.shingles.record;
        self.writing = Some(MediumWrite::Record);
        let extent = Extent::new(place, sectors);
        self.issue(now, Operation::Write, extent, InnerIo::Write);
    }

    /// Takes note that the write of the medium ended at `now`.
    pub(super) fn medium_written(&mut self, now: Time) {
        match self.writing.take() {
            Some(MediumWrite::Cache { sectors }) => self.pending.remove(sectors),
            Some(MediumWrite::Band { start, sectors }) => {
                // Cached data of this band are older than the data in place from here on.
                self.map.unmap(start, sectors);
                self.map.release();
                self.counts.band_sectors += sectors;
                self.pending.remove(sectors);
            }
            Some(MediumWrite::Record) => {
                self.map.pad(self.shingles.record);
                self.unrecorded = false;
            }
            None => unreachable!("a write of the medium ends that did not begin"),
        }
        self.pass_barriers(now);
    }

    /// True if the stream of a run is long enough at `end` for writes in place.
    fn is_stream(&self, run: &WrittenRun, end: u64) -> bool {
        let behind = run.end.saturating_sub(end);
        run.stream.saturating_sub(behind) >= self.shingles.stream
    }

    /// True if the only run in the buffer may still grow to a whole band: the run begins at a band,
    /// nobody waits for the run, and the buffer has room.
    fn may_become_whole(&self, at_band: bool, now: Time) -> bool {
        let half = self.shingles.buffer / 2;
        at_band
            && self.barriers.is_empty()
            && self.shingles.buffer >= 2 * self.shingles.band
            && self.pending.sectors() <= half.max(self.shingles.band)
            && now < self.stream_ends()
    }

    /// Time at which the present stream counts as ended. [`Time::NEVER`] without a stream that
    /// waits.
    pub(super) fn stream_ends(&self) -> Time {
        let waits = self.writing.is_none() && self.barriers.is_empty() && self.starved.is_none();
        match self.pending.oldest() {
            Some((run, true))
                if waits && !run.in_order && run.start.is_multiple_of(self.shingles.band) =>
            {
                let (start, sectors) = self.map.extent_of(run.start / self.shingles.band);
                let grows =
                    run.end < start + sectors && run.stream + sectors >= self.shingles.stream;
                match grows && self.shingles.buffer >= 2 * self.shingles.band {
                    true => run.latest + self.shingles.pause,
                    false => Time::NEVER,
                }
            }
            _ => Time::NEVER,
        }
    }
}
