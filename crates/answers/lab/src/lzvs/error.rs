//! Errors of measuring, planning and mapping.

use fullstroke_contract::{ConfigError, Extent, RequestStatus};
use fullstroke_trace::TraceError;
use fullstroke_units::{Lbn, Sectors};
use fullstroke_volume::Role;
use thiserror::Error;

/// Reason why nothing was measured, planned or mapped.
#[derive(Debug, Error)]
pub enum LzvsError {
    /// A timed read did not succeed.
    #[error("the read of {} sectors at {} has failed: {reason}", .extent.sectors.0, .extent.start.0)]
    Read {
        /// Extent of the read.
        extent: Extent,
        /// Error of the target.
        reason: String,
    },
    /// The parameters of a sweep are invalid.
    #[error(
        "reads of {} sectors across {} sectors: expected at least one, no more than the volume has, \
         and at least one address and one trial", .sectors.0, .capacity.0
    )]
    Sweep {
        /// The size of each read.
        sectors: Sectors,
        /// Capacity of the volume.
        capacity: Sectors,
    },
    /// Reads of an eighth of the target are too short.
    #[error("a disk of {} sectors is too small to measure its transfer rate", .capacity.0)]
    TooSmall {
        /// Capacity of the target.
        capacity: Sectors,
    },
    /// The outer rate is not above the inner rate.
    #[error(
        "the measured outer rate is {ratio:.4} times the inner rate; expected more than 1. Either the disk has no zones, or a slower part, such as the bus, hides the zones; give --zones and --ratio if they are known"
    )]
    NotFaster {
        /// Outer over inner rate.
        ratio: f64,
    },
    /// The rates do not show the zones of a disk.
    #[error(
        "the rates are {:.1}, {:.1}, {:.1} and {:.1} MB/s in the quarters from the first address to the last, and \
         at the first {ratio:.3} times as high as at the last ({:.3} to {:.3}): they do not fall as those of a disk \
         with zones. A file in memory, a solid-state disk, a disk of several arms and a bus that is slower than the \
         platters look like that; give the layout's keys if they are known",
        .quarters_mb_per_s[0], .quarters_mb_per_s[1], .quarters_mb_per_s[2], .quarters_mb_per_s[3],
        .ratio_interval.0, .ratio_interval.1
    )]
    NoSlope {
        /// Median rates of the quarters, in MB/s, from the first address to the last.
        quarters_mb_per_s: [f64; 4],
        /// Outer over inner rate.
        ratio: f64,
        /// 95 % interval of `ratio`.
        ratio_interval: (f64, f64),
    },
    /// The keys of a layout are invalid.
    #[error(transparent)]
    Layout(#[from] ConfigError),
    /// The volume cannot carry out a request.
    #[error(
        "the request of {} sectors at {} is {status:?} on a volume of {} sectors; \
         use --beyond wrap or scale for a trace of a larger volume",
        .extent.sectors.0, .extent.start.0, .capacity.0
    )]
    Remap {
        /// Extent of the request.
        extent: Extent,
        /// Capacity of the volume.
        capacity: Sectors,
        /// The layout's answer.
        status: RequestStatus,
    },
    /// The map from volume sectors to member sectors is not one-to-one.
    #[error("sector {} lies at {} of member {member}, which holds {role:?}", .lbn.0, .there.0)]
    NotOneToOne {
        /// Sector of the volume.
        lbn: Lbn,
        /// Index of the member.
        member: usize,
        /// Sector of the member.
        there: Lbn,
        /// Role of the member's sector in the layout.
        role: Role,
    },
    /// A trace cannot be read or written.
    #[error(transparent)]
    Trace(#[from] TraceError),
}
