//! Ending runs before their end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Ends the runs that share it, from another thread; once set it stays so.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Ends them at their next event.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether they are to end.
    #[inline]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
