//! Times and sizes that all ways of issuing share.

use fullstroke_units::Duration;
use std::time;

/// Largest number of requests in one submission. The first of them is late by the time of preparing
/// the rest.
pub(crate) const BATCH_MAX: usize = 256;
/// Time from the end of the preparation to time 0 of the clock.
pub(crate) const LEAD: time::Duration = time::Duration::from_millis(20);
/// Longest sleep. The stop flag is checked after each sleep.
pub(crate) const LOOK: time::Duration = time::Duration::from_millis(100);
/// Time for outstanding requests to complete after a request has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// Returns the tag of a piece: the slot of its request, and the number of bytes to move.
pub(crate) fn user(slot: u32, bytes: u64) -> u64 {
    // A piece has at most 2 MiB, so its bytes fit the upper half.
    bytes << 32 | u64::from(slot)
}
