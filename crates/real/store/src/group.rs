//! One flush for all who wait for one.

use std::sync::{Condvar, Mutex, PoisonError};

/// Callers that arrive while something is done share the next time that it is
/// done.
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
    /// Whether the turn that ended last ended well.
    well: bool,
}

impl Group {
    /// Returns after `act` has been done by somebody who began after this call, or, if the
    /// caller is `hasty`, before; whether it ended well.
    pub(crate) fn join(&self, hasty: bool, act: impl FnOnce() -> bool) -> bool {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
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
        turns.running = true;
        turns.begun += 1;
        drop(turns);
        let well = act();
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        turns.running = false;
        turns.ended = turns.begun;
        turns.well = well;
        drop(turns);
        self.ended.notify_all();
        well
    }
}
