//! Early end of runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Signal from another thread that ends all runs sharing it. A set signal stays set.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Ends the runs at their next event.
    pub fn set(&self) {
        // Relaxed: the flag carries no data, and a run that looks at it an event later stops an
        // event later.
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns true if the runs must end.
    #[inline]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
