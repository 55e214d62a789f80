//! Information of the layers above that goes down with a request.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The class of a request's I/O priority, with the kernel's names.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum PriorityClass {
    /// Served before everything else.
    RealTime,
    /// The default class.
    #[default]
    BestEffort,
    /// Served only if nothing else waits.
    Idle,
}

impl PriorityClass {
    /// All classes, the most urgent first.
    pub const ALL: [PriorityClass; 3] = [
        PriorityClass::RealTime,
        PriorityClass::BestEffort,
        PriorityClass::Idle,
    ];
}

/// Information about a request from the layers above. The default of every field means "nothing
/// known". A layer may use or ignore each field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hints {
    /// Sequential stream or file of the request; 0 = unknown (default).
    pub stream: u32,
    /// Process that waits for the request; 0 = unknown (default).
    pub process: u32,
    /// Index of the workload in the stack that issued the request; 0 if there is one workload.
    pub workload: u16,
    /// Class of the I/O priority.
    pub class: PriorityClass,
    /// The level within the class, 0 (first) to 7.
    pub level: u8,
    /// True if a process waits for the completion: for reads and synchronous writes. Default true.
    pub synchronous: bool,
    /// True if the request bypasses page caches (O_DIRECT).
    pub direct: bool,
    /// Force unit access: the write must be on the medium when it completes.
    pub force_unit_access: bool,
    /// True for a flush that makes way for a forced write of the same process, as the flush before
    /// the commit record of a log (`REQ_PREFLUSH` with `REQ_FUA` in Linux).
    pub before_forced_write: bool,
    /// True for a read from the medium that ignores buffers and compares the data with the last
    /// write. If the data differ, the read ends as `RequestStatus::Differs`.
    pub verify: bool,
    /// True if the extent is in the addresses of each member. Every member that answers reads the
    /// extent, through all levels: data, copies and parity alike, as a scrub does.
    pub members: bool,
    /// True for a write that storage asked for by PULL. Page caches on the way do not hold this
    /// write back.
    pub pulled: bool,
    /// Stripe of the array above to which the request belongs.
    pub stripe: Option<u64>,
    /// Queue length of the array member that bounds all parts of a request: the most or the least
    /// busy member (Qian & Wang, section 6). 0 if the array does not tell.
    pub stripe_queue: u32,
}

impl Default for Hints {
    fn default() -> Hints {
        Hints {
            stream: 0,
            process: 0,
            workload: 0,
            class: PriorityClass::BestEffort,
            // The level is that of a Linux task with nice value 0 (`IOPRIO_BE_NORM`,
            // `include/uapi/linux/ioprio.h`).
            level: 4,
            synchronous: true,
            direct: false,
            force_unit_access: false,
            before_forced_write: false,
            verify: false,
            members: false,
            pulled: false,
            stripe: None,
            stripe_queue: 0,
        }
    }
}
