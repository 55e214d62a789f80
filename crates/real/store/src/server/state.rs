//! State shared by all threads of a server.

use super::counts::AnsweredCounts;
use super::jobs::Jobs;
use crate::SlowMembers;
use crate::array::Array;
use crate::standby::StandbyWatch;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Shared state of all threads.
pub(crate) struct ServerState {
    pub(crate) array: Array,
    pub(crate) jobs: Jobs,
    pub(crate) counts: AnsweredCounts,
    /// `None` if members are never put to standby.
    pub(crate) watch: Mutex<Option<StandbyWatch>>,
    /// Time limit of requests to a member.
    pub(crate) member_timeout: Duration,
    /// Watch over slow members; `None` for none.
    pub(crate) slow_members: Option<SlowMembers>,
    pub(crate) ends: AtomicBool,
}
