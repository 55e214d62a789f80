//! The interface between the node and the rules.

use fullstroke_units::{Duration, Sectors, Seed, Time};

/// The surroundings of a cache.
#[derive(Clone, Copy, Debug)]
pub struct CacheSite {
    /// Size of the origin.
    pub origin: Sectors,
    /// Size of the cache on the flash device.
    pub cache: Sectors,
    /// Seed of the cache's random numbers.
    pub seed: Seed,
}

/// A part of a request, with the devices that take part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// First sector, as the host addresses it.
    pub start: u64,
    /// Number of sectors.
    pub sectors: u64,
    /// True if the origin reads or writes the part.
    pub origin: bool,
    /// Place on the flash device, if the flash device reads or writes the part.
    pub cache: Option<u64>,
    /// Mark of the rule.
    pub mark: u32,
}

impl Part {
    /// Mark of a part about which the rule notes nothing.
    pub const UNMARKED: u32 = u32::MAX;

    /// Returns a part on the origin alone.
    pub fn of_origin(start: u64, sectors: u64) -> Part {
        Part {
            start,
            sectors,
            origin: true,
            cache: None,
            mark: Part::UNMARKED,
        }
    }

    /// First sector behind the part.
    pub fn end(&self) -> u64 {
        self.start + self.sectors
    }

    /// True if the part and the range share sectors.
    pub fn overlaps(&self, start: u64, end: u64) -> bool {
        self.start < end && start < self.end()
    }
}

/// A copy between the devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyIo {
    /// First sector, as the host addresses it.
    pub start: u64,
    /// Number of sectors.
    pub sectors: u64,
    /// Place on the flash device.
    pub place: u64,
    /// Mark of the rule.
    pub mark: u32,
    /// True for a copy from the origin to the flash device, false for dirty data on their way to the
    /// origin.
    pub promotes: bool,
}

/// A cache's decisions about the place of data.
///
/// - **Events in**: [`read`](CacheRule::read), [`write`](CacheRule::write),
///   [`discard`](CacheRule::discard), [`read_ended`](CacheRule::read_ended),
///   [`write_ended`](CacheRule::write_ended), [`fill_ended`](CacheRule::fill_ended),
///   [`copy`](CacheRule::copy), [`copy_ended`](CacheRule::copy_ended),
///   [`answered`](CacheRule::answered), [`lose`](CacheRule::lose), and
///   [`warm`](CacheRule::warm) before all others.
/// - **Getters**: the other methods.
///
/// Invariants that each rule keeps: two I/Os in flight never write the same place of the flash
/// device. A place in use by an I/O is not given to other data. A copy does not overlap a write of
/// the origin in flight.
pub trait CacheRule: Send {
    /// Puts clean data of the array's first `sectors` sectors on the flash device, without I/O,
    /// before a run. Returns the number of sectors for which there was room. The default is a cache
    /// that keeps no clean data.
    fn warm(&mut self, _sectors: u64) -> u64 {
        0
    }

    /// Adds the parts of a read.
    fn read(&mut self, now: Time, start: u64, sectors: u64, parts: &mut Vec<Part>);

    /// Adds the parts of a write. Returns false, and adds nothing, if the write must wait for room
    /// or for a copy.
    fn write(
        &mut self,
        now: Time,
        start: u64,
        sectors: u64,
        synchronous: bool,
        parts: &mut Vec<Part>,
    ) -> bool;

    /// Forgets discarded data. Returns false if the discard must wait for a
    /// copy.
    fn discard(&mut self, start: u64, sectors: u64) -> bool;

    /// Handles the end of a part of a read. `done` is false if the data could not be read.
    /// Returns the part that goes to the flash device now, with its place, if the data are to be
    /// kept.
    fn read_ended(&mut self, now: Time, part: &Part, done: bool) -> Option<Part>;

    /// Handles the end of a part of a write on all its devices. `done` is false if a device has
    /// refused the data.
    fn write_ended(&mut self, now: Time, part: &Part, done: bool);

    /// Handles the end of the write of read data to the flash device.
    fn fill_ended(&mut self, now: Time, part: &Part);

    /// Returns the next copy, if a copy begins now.
    fn copy(&mut self, now: Time) -> Option<CopyIo>;

    /// Handles the end of a copy.
    fn copy_ended(&mut self, now: Time, copy: &CopyIo);

    /// Handles an answer of the flash device to a transfer, after `took`.
    fn answered(&mut self, _now: Time, _write: bool, _took: Duration) {}

    /// Returns the write that makes the map durable for a flush: place and sectors. `None` if
    /// nothing is to be written.
    fn commit(&mut self, now: Time) -> Option<(u64, u64)>;

    /// True if a flush of the host also goes to the origin.
    fn flushes_origin(&self) -> bool;

    /// Returns the next time at which [`copy`](CacheRule::copy) or [`timer`](CacheRule::timer) may
    /// have work. [`Time::NEVER`] if only an event can bring work.
    fn alarm(&self) -> Time;

    /// Carries out what is due at `now`. Returns a write of the map, if one is due.
    fn timer(&mut self, now: Time) -> Option<(u64, u64)>;

    /// Number of sectors on the flash device without a copy on the origin.
    fn dirty_sectors(&self) -> u64;

    /// Handles the loss of the flash device.
    fn lose(&mut self);

    /// Adds readings for reports.
    fn count(&self, readings: &mut Vec<(&'static str, f64)>);
}
