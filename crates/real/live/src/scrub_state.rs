//! A running comparison of redundancy with the data.

use crate::control_queue::ControlResponse;
use fullstroke_store::bytes;
use fullstroke_units::Sectors;
use std::sync::mpsc::Sender;
use std::time::Instant;

/// A running comparison.
#[derive(Debug)]
pub(crate) struct Scrub {
    pub(crate) on_bytes: bytes::Scrub,
    /// Time when the comparison continues, or earlier if no client waits.
    pub(crate) rests_until: Instant,
    pub(crate) askers: Vec<Sender<ControlResponse>>,
}

impl Scrub {
    /// Returns the compared share of a volume of this capacity.
    pub(crate) fn share(&self, capacity: Sectors) -> f64 {
        self.on_bytes.next.0 as f64 / capacity.0.max(1) as f64
    }
}
