//! Turns of requests and a rebuild (`raise_barrier` and `wait_barrier`, `drivers/md/raid10.c`, Linux
//! 6.12).
//!
//! RAID 10 of md never serves requests and a rebuild at once. A request waits until nothing of the
//! rebuild is in flight. The rebuild begins no further block while a request waits, and waits itself
//! until the requests in flight have ended. Requests that arrive meanwhile wait for this block.

use fullstroke_contract::Request;
use fullstroke_units::Time;
use std::collections::VecDeque;

/// The turns of an array.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// True if the rebuild waits for the requests in flight, and new requests for the rebuild.
    pub(super) raised: bool,
    /// Waiting requests, each with its time of arrival.
    pub(super) waiting: VecDeque<(Time, Request)>,
}
