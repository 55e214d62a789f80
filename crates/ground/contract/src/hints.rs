//! What goes down with a request.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The class of a request's I/O priority, as the kernel names them.
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
    /// Before everything else.
    RealTime,
    /// The default.
    #[default]
    BestEffort,
    /// Only when nothing else waits.
    Idle,
}

impl PriorityClass {
    /// All classes, the more urgent first.
    pub const ALL: [PriorityClass; 3] = [
        PriorityClass::RealTime,
        PriorityClass::BestEffort,
        PriorityClass::Idle,
    ];
}

/// What the layers above know about a request. Every field has a default that
/// says "nothing known"; a layer may use or ignore each of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hints {
    /// The sequential stream or file that the request belongs to; 0 = unknown.
    pub stream: u32,
    /// The process that waits for it; 0 = unknown.
    pub process: u32,
    /// Which of the stack's workloads issued it, by index; 0 where there is one.
    pub workload: u16,
    /// The class of its I/O priority.
    pub class: PriorityClass,
    /// The level within the class, 0 (first) to 7.
    pub level: u8,
    /// Whether somebody waits for the completion (reads, and writes that are
    /// synchronous).
    pub synchronous: bool,
    /// Whether it passes page caches by (O_DIRECT).
    pub direct: bool,
    /// Force unit access: the write must be on the medium when it completes.
    pub force_unit_access: bool,
    /// Whether a read is to be answered by the medium, whatever buffers hold, and compared
    /// with what was written last: if it is not that, it ends as `Status::Differs`.
    pub verify: bool,
    /// Whether the extent is of each member's addresses, and to be read from every one that
    /// answers, however many levels down: data, copies and parity alike, as a scrub does.
    pub members: bool,
    /// Whether a write is what storage has asked for by PULL. A page cache on its way
    /// does not keep it back.
    pub pulled: bool,
    /// The stripe of the array above that the request belongs to.
    pub stripe: Option<u64>,
    /// How many requests wait at the member of that array which bounds all parts of
    /// a request: the most or the least busy one, if the array says it at all
    /// (Qian & Wang, section 6); 0 otherwise.
    pub stripe_queue: u32,
}

impl Default for Hints {
    fn default() -> Hints {
        Hints {
            stream: 0,
            process: 0,
            workload: 0,
            class: PriorityClass::BestEffort,
            level: 4,
            synchronous: true,
            direct: false,
            force_unit_access: false,
            verify: false,
            members: false,
            pulled: false,
            stripe: None,
            stripe_queue: 0,
        }
    }
}
