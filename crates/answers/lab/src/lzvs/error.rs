//! What can go wrong.

use fullstroke_contract::{ConfigError, Extent, Status};
use fullstroke_trace::TraceError;
use fullstroke_units::{Lbn, Sectors};
use fullstroke_volume::Role;
use thiserror::Error;

/// Why nothing was measured, planned or mapped.
#[derive(Debug, Error)]
pub enum LzvsError {
    /// A timed read did not succeed.
    #[error("the read of {} sectors at {} has failed: {reason}", .extent.sectors.0, .extent.start.0)]
    Read {
        /// What was read.
        extent: Extent,
        /// What the target said.
        reason: String,
    },
    /// A sweep that cannot be.
    #[error(
        "reads of {} sectors across {} sectors: expected at least one, no more than the volume has, \
         and at least one address and one trial", .sectors.0, .capacity.0
    )]
    Sweep {
        /// The size of each read.
        sectors: Sectors,
        /// The volume's.
        capacity: Sectors,
    },
    /// Reads of an eighth of the target are too short.
    #[error("a disk of {} sectors is too small to measure its transfer rate", .capacity.0)]
    TooSmall {
        /// The target's.
        capacity: Sectors,
    },
    /// There is nothing to even out.
    #[error(
        "to who reads it, the outside is {ratio:.4} times as fast as the inside, which is not above 1: either \
         there are no zones, or something slower hides them, such as the bus; give --zones and --ratio if \
         they are known"
    )]
    NotFaster {
        /// Outer over inner rate.
        ratio: f64,
    },
    /// No zones that could be told.
    #[error(
        "the rates are {:.1}, {:.1}, {:.1} and {:.1} MB/s in the quarters from the first address to the last, and \
         at the first {ratio:.3} times as high as at the last ({:.3} to {:.3}): they do not fall as those of a disk \
         with zones. A file in memory, a solid-state disk, a disk of several arms and a bus that is slower than the \
         platters look like that; give the layout's keys if they are known",
        .quarters_mb_per_s[0], .quarters_mb_per_s[1], .quarters_mb_per_s[2], .quarters_mb_per_s[3],
        .ratio_interval.0, .ratio_interval.1
    )]
    NoSlope {
        /// The medians of the quarters.
        quarters_mb_per_s: [f64; 4],
        /// Outer over inner rate.
        ratio: f64,
        /// Its 95 % interval.
        ratio_interval: (f64, f64),
    },
    /// A layout that cannot be.
    #[error(transparent)]
    Layout(#[from] ConfigError),
    /// A request that the volume does not carry out.
    #[error(
        "the request of {} sectors at {} is {status:?} on a volume of {} sectors; \
         use --beyond wrap or scale for a trace of a larger volume",
        .extent.sectors.0, .extent.start.0, .capacity.0
    )]
    Remap {
        /// What was asked.
        extent: Extent,
        /// The volume's.
        capacity: Sectors,
        /// The layout's answer.
        status: Status,
    },
    /// A map that is not one-to-one.
    #[error("sector {} lies at {} of member {member}, which holds {role:?}", .lbn.0, .there.0)]
    NotOneToOne {
        /// The volume's sector.
        lbn: Lbn,
        /// The member.
        member: usize,
        /// The member's sector.
        there: Lbn,
        /// What that is for.
        role: Role,
    },
    /// A trace that cannot be read or written.
    #[error(transparent)]
    Trace(#[from] TraceError),
}
