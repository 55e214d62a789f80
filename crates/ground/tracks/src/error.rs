//! What can go wrong.

use fullstroke_contract::ConfigError;
use fullstroke_units::{Lbn, Sectors};
use thiserror::Error;

/// Sectors of the longest track: a gigabyte, a few hundred times today's.
pub const TRACK_SECTORS_MAX: u64 = 1 << 21;

/// Tracks of the largest device.
pub const TRACKS_MAX: u64 = u32::MAX as u64;

/// Tracks that a table cannot hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TrackError {
    /// A track without sectors, or longer than any.
    #[error(
        "found a track of {found} sectors; expected 1 to {}",
        TRACK_SECTORS_MAX
    )]
    Length {
        /// Its sectors.
        found: u64,
    },
    /// More tracks than any device has, or more sectors than can be counted.
    #[error("found more than {} tracks, or than 2^64 sectors", TRACKS_MAX)]
    TooMany,
    /// Runs that repeat and are too long for it.
    #[error(
        "found a pattern of more than {} sectors; give its runs one by one",
        u32::MAX
    )]
    Pattern,
    /// A table that ends too soon.
    #[error("the table ends at {found}, before {expected}")]
    Short {
        /// Where it ends.
        found: Lbn,
        /// Where it should.
        expected: u64,
    },
    /// No tracks.
    #[error("found no track; expected at least one")]
    Empty,
}

/// A table that is not of this device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum MisfitError {
    /// The device is larger or smaller.
    #[error(
        "the table is of a device of {table}, this one has {device}: the first address at which they differ is \
         {}; extract the tracks of this device",
        Lbn(table.0.min(device.0))
    )]
    Capacity {
        /// What the table covers.
        table: Sectors,
        /// What the device has.
        device: Sectors,
    },
    /// A track begins here in one table and not in the other.
    #[error("the first address at which a track begins in one table only is {at}")]
    Boundary {
        /// The first such address.
        at: Lbn,
    },
}

impl MisfitError {
    /// The first address at which the two differ.
    pub fn first_difference(&self) -> Lbn {
        match *self {
            MisfitError::Capacity { table, device } => Lbn(table.0.min(device.0)),
            MisfitError::Boundary { at } => at,
        }
    }
}

/// A file of tracks that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: found {found}; expected {expected}")]
pub struct TextError {
    /// Counted from 1.
    pub line: usize,
    /// What stands there.
    pub found: String,
    /// What should.
    pub expected: String,
}

/// Why nobody above a device can know the tracks of its addresses.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UnknownTracks {
    /// A controller hides them.
    #[error(
        "nobody sees the tracks behind a controller; give the drives' table, tracks = \"FILE\" in [volume]"
    )]
    BehindController,
    /// The device is a file of a file system.
    #[error("the host's disk is a file, whose tracks it cannot know")]
    File,
    /// Neighbouring addresses of a volume lie on several drives.
    #[error("the addresses of {volume} change drives, and no track of one is a track of it")]
    ChangeDrives {
        /// The volume, in words.
        volume: String,
    },
    /// The drive has tracks that no table holds.
    #[error("the drive's own tracks: {0}")]
    OfDrive(TrackError),
    /// The tracks of members together make no table.
    #[error(transparent)]
    Table(#[from] TrackError),
    /// Copies of the same bytes have different tracks.
    #[error("the copies on members 0 and {member} have different tracks: {difference}")]
    Copies {
        /// The member whose copy differs from that of member 0.
        member: usize,
        /// Where they differ.
        difference: MisfitError,
    },
    /// The volume has no layout.
    #[error(transparent)]
    Layout(#[from] ConfigError),
}
