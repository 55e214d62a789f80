//! A running comparison of redundancy with the data.

use crate::control_queue::ControlResponse;
use crate::status::ComparingStatus;
use fullstroke_store::bytes;
use fullstroke_units::{Bytes, Sectors};
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

/// The comparisons of redundancy with the data: after a kill, and by order.
#[derive(Debug)]
pub(crate) struct Comparisons {
    /// Bytes to compare when the store was opened.
    since_opening: Bytes,
    running: Option<Scrub>,
}

impl Comparisons {
    /// Returns the state after an opening that left so much to compare.
    pub(crate) fn since_opening(left: Bytes) -> Comparisons {
        Comparisons {
            since_opening: left,
            running: None,
        }
    }

    /// Returns the progress of the comparison after a kill; `None` if nothing is left.
    pub(crate) fn after_kill(&self, left: Bytes) -> Option<ComparingStatus> {
        (left > Bytes(0)).then_some(ComparingStatus {
            left_bytes: left.0,
            of_bytes: self.since_opening.0,
        })
    }

    /// The comparison by order, if one is running.
    pub(crate) fn running(&self) -> Option<&Scrub> {
        self.running.as_ref()
    }

    /// Begins the comparison `begin`, unless one is running. Returns the running one.
    pub(crate) fn begin(&mut self, begin: impl FnOnce() -> Scrub) -> &mut Scrub {
        self.running.get_or_insert_with(begin)
    }

    /// Takes the running comparison, to continue or to end it.
    pub(crate) fn take(&mut self) -> Option<Scrub> {
        self.running.take()
    }

    /// Puts the comparison back, which is not at its end.
    pub(crate) fn put_back(&mut self, scrub: Scrub) {
        let other = self.running.replace(scrub);
        assert!(other.is_none(), "two comparisons by order run at a time");
    }
}

impl Scrub {
    /// Returns the compared share of a volume of this capacity.
    pub(crate) fn share(&self, capacity: Sectors) -> f64 {
        self.on_bytes.next.0 as f64 / capacity.0.max(1) as f64
    }
}
