//! Errors of track tables.

use fullstroke_contract::ConfigError;
use fullstroke_units::{Lbn, Sectors};
use thiserror::Error;

/// Largest number of sectors in a track: 1 GiB, a few hundred times today's tracks.
pub const TRACK_SECTORS_MAX: u64 = 1 << 21;

/// Largest number of tracks of a device.
pub const TRACKS_MAX: u64 = u32::MAX as u64;

/// Tracks that a table cannot hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TrackError {
    /// A track without sectors, or longer than the limit.
    #[error(
        "found a track of {found} sectors; expected 1 to {}",
        TRACK_SECTORS_MAX
    )]
    Length {
        /// Length of the track in sectors.
        found: u64,
    },
    /// More tracks than the limit, or more than 2^64 sectors.
    #[error("found more than {} tracks, or than 2^64 sectors", TRACKS_MAX)]
    TooMany,
    /// Repeated runs that are too long for a pattern.
    #[error(
        "found a pattern of more than {} sectors; give its runs one by one",
        u32::MAX
    )]
    Pattern,
    /// A table that ends too early.
    #[error("the table ends at {found}, before {expected}")]
    Short {
        /// End of the table.
        found: Lbn,
        /// Required end.
        expected: u64,
    },
    /// A table without tracks.
    #[error("found no track; expected at least one")]
    Empty,
}

/// A table of another device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum MisfitError {
    /// The device is larger or smaller than the table.
    #[error(
        "the table describes a device of {table}, but this device has {device}: the first address at which they differ is \
         {}; extract the tracks of this device",
        Lbn(table.0.min(device.0))
    )]
    Capacity {
        /// Capacity of the table.
        table: Sectors,
        /// Capacity of the device.
        device: Sectors,
    },
    /// A track starts at this address in only one of two tables.
    #[error("the first address at which a track begins in one table only is {at}")]
    Boundary {
        /// First such address.
        at: Lbn,
    },
}

impl MisfitError {
    /// Returns the first address at which the two differ.
    pub fn first_difference(&self) -> Lbn {
        match *self {
            MisfitError::Capacity { table, device } => Lbn(table.0.min(device.0)),
            MisfitError::Boundary { at } => at,
        }
    }
}

/// An unreadable file of tracks.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: found {found}; expected {expected}")]
pub struct TextError {
    /// Line number, counted from 1.
    pub line: usize,
    /// Text in the file.
    pub found: String,
    /// Expected text.
    pub expected: String,
}

/// The reason why layers above a device cannot know the tracks of its addresses.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UnknownTracks {
    /// A controller hides the tracks.
    #[error(
        "a controller hides the tracks; give the table of the drives, tracks = \"FILE\" in [volume]"
    )]
    BehindController,
    /// The device is a file of a file system.
    #[error("the host's disk is a file; the tracks of a file are unknown")]
    File,
    /// Neighbouring addresses of a volume lie on different drives.
    #[error(
        "the addresses of {volume} alternate between drives, so a drive's tracks are no tracks of the volume"
    )]
    ChangeDrives {
        /// The volume, in words.
        volume: String,
    },
    /// The drive has tracks that a table cannot hold.
    #[error("the drive's own tracks: {0}")]
    OfDrive(TrackError),
    /// The combined tracks of the members make no table.
    #[error(transparent)]
    Table(#[from] TrackError),
    /// Copies of the same data have different tracks.
    #[error("the copies on members 0 and {member} have different tracks: {difference}")]
    Copies {
        /// Index of the member whose copy differs from the copy of member 0.
        member: usize,
        /// First difference.
        difference: MisfitError,
    },
    /// The volume has no layout.
    #[error(transparent)]
    Layout(#[from] ConfigError),
}
