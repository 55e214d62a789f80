//! One flush for all waiting threads.

use std::sync::{Condvar, Mutex, PoisonError};

/// Lets callers share an action. Callers during the action share its next run.
#[derive(Debug, Default)]
pub(crate) struct Group {
    turns: Mutex<Turns>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct Turns {
    begun: u64,
    ended: u64,
    running: bool,
    /// True if the latest run succeeded.
    well: bool,
}

impl Group {
    /// Returns after a run of `act` by any thread, if the run began after this call. A `hasty`
    /// caller accepts an earlier beginning. Returns true if the run succeeded.
    pub(crate) fn join(&self, hasty: bool, act: impl FnOnce() -> bool) -> bool {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        // A run in progress may not cover the caller's writes, so the next run is needed.
        let wanted = turns.begun + u64::from(!(hasty && turns.running));
        while turns.ended < wanted && turns.running {
            turns = self
                .ended
                .wait(turns)
                .unwrap_or_else(PoisonError::into_inner);
        }
        if turns.ended >= wanted {
            return turns.well;
        }
        assert!(
            !turns.running && turns.begun == turns.ended,
            "two runs at a time"
        );
        turns.running = true;
        turns.begun += 1;
        drop(turns);
        let well = act();
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(
            turns.running && turns.begun == turns.ended + 1,
            "a run ends that nobody began"
        );
        turns.running = false;
        turns.ended = turns.begun;
        turns.well = well;
        drop(turns);
        self.ended.notify_all();
        well
    }
}
