//! Work under way inside a drive with shingled tracks.

use super::map::CachedExtent;
use fullstroke_contract::{Extent, Operation};

/// Purpose of a request of the drive inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InnerIo {
    /// A part of a read of the host.
    Read(u32),
    /// A write of the medium: [`MediumWrite`].
    Write,
    /// A step of cleaning.
    Clean,
    /// A step of a move of the log.
    Move,
    /// A command of the host for the whole drive.
    Command(u32),
}

/// Sectors of the record that makes the map durable: one physical sector.
pub(super) const RECORD: u64 = 8;

/// A write of the medium under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MediumWrite {
    /// Data of the oldest run go to the cache.
    Cache { sectors: u64 },
    /// Data of the oldest run go to their place in a band: the whole band, or the part at the write
    /// pointer of a zone.
    Band { start: u64, sectors: u64 },
    /// The map becomes durable.
    Record,
}

/// A band under cleaning.
#[derive(Clone, Debug)]
pub(super) struct BandCleaning {
    pub(super) band: u64,
    /// Cached data that go home.
    pub(super) cached: Vec<CachedExtent>,
    /// Reads that are still to be begun, the next one last.
    pub(super) reads: Vec<Extent>,
    pub(super) writes: bool,
}

/// A move under way.
#[derive(Clone, Debug)]
pub(super) struct LogMove {
    /// Valid data, as the map had them at the beginning.
    pub(super) valid: Vec<CachedExtent>,
    /// First new place in the log.
    pub(super) place: u64,
    /// Reads and writes that are still to be begun, the next one last.
    pub(super) ios: Vec<(Operation, Extent)>,
}
