//! The numbers of a data sheet.

use crate::presets::DriveClass;
use fullstroke_units::{Bytes, Sectors};

/// Skew between neighbouring tracks, in revolutions: 1/16 on a Toshiba X300 (Wong), 0.05 to 0.2 on
/// other drives of 2009 and later.
pub(super) const NEIGHBOUR_SKEW: f64 = 1.0 / 16.0;
/// Skew at a change of head, in revolutions. The skew is wider because heads stand tens of tracks
/// apart (Wong, "Track alignment across surfaces").
pub(super) const HEAD_SKEW: f64 = 3.0 / 16.0;

/// The numbers of a data sheet.
#[derive(Clone, Debug, PartialEq)]
pub struct DataSheet {
    /// The drive's name for people.
    pub title: String,
    /// Number of sectors that the drive reports; [`sectors_of`](super::sectors_of) returns the number for the usual
    /// sizes.
    pub capacity: Sectors,
    /// Revolutions a minute.
    pub rpm: f64,
    /// Sustained transfer rate at the outer edge, MB/s (10^6 bytes).
    pub outer_mb_per_s: f64,
    /// Sustained transfer rate at the inner edge, MB/s. Default: 0.458 of the outer rate.
    pub inner_mb_per_s: Option<f64>,
    /// Mean seek of random reads in ms. Default 8.5.
    pub average_seek_ms: Option<f64>,
    /// Recording surfaces. Default: from the track length.
    pub surfaces: Option<u32>,
    /// Size of the buffer. Default 64 MiB.
    pub buffer: Option<Bytes>,
    /// Class of the drive. Default: by speed and capacity, see [`DriveClass::of`].
    pub class: Option<DriveClass>,
}
