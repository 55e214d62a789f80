//! Locks of runs of addresses.

use fullstroke_contract::Extent;
use std::sync::{Condvar, Mutex, PoisonError};

/// Held locks. A list suffices, because only the workers hold locks.
#[derive(Debug, Default)]
pub(crate) struct Locks {
    held: Mutex<Vec<(Extent, bool)>>,
    freed: Condvar,
}

/// A held lock, released when dropped.
#[derive(Debug)]
pub(crate) struct RangeGuard<'a> {
    locks: &'a Locks,
    extent: Extent,
    exclusive: bool,
}

impl Locks {
    /// Waits until no other thread holds any of `extent`. If the lock is not `exclusive`, other
    /// shared locks are allowed.
    pub(crate) fn hold(&self, extent: Extent, exclusive: bool) -> RangeGuard<'_> {
        debug_assert!(
            extent.start < extent.end(),
            "an empty extent keeps nobody out"
        );
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        while held
            .iter()
            .any(|&(other, alone)| (exclusive || alone) && overlap(other, extent))
        {
            held = self
                .freed
                .wait(held)
                .unwrap_or_else(PoisonError::into_inner);
        }
        held.push((extent, exclusive));
        self.guard(extent, exclusive)
    }

    /// As [`hold`](Locks::hold), without waiting. `None` if another thread holds some of `extent`.
    pub(crate) fn try_to_hold(&self, extent: Extent, exclusive: bool) -> Option<RangeGuard<'_>> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let mut others = held.iter();
        if others.any(|&(other, alone)| (exclusive || alone) && overlap(other, extent)) {
            return None;
        }
        held.push((extent, exclusive));
        Some(self.guard(extent, exclusive))
    }

    fn guard(&self, extent: Extent, exclusive: bool) -> RangeGuard<'_> {
        RangeGuard {
            locks: self,
            extent,
            exclusive,
        }
    }
}

fn overlap(a: Extent, b: Extent) -> bool {
    a.start < b.end() && b.start < a.end()
}

impl Drop for RangeGuard<'_> {
    fn drop(&mut self) {
        let mut held = self
            .locks
            .held
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let own = |held: &(Extent, bool)| *held == (self.extent, self.exclusive);
        let index = held.iter().position(own);
        debug_assert!(index.is_some(), "{:?} is freed twice", self.extent);
        if let Some(index) = index {
            held.swap_remove(index);
        }
        drop(held);
        self.locks.freed.notify_all();
    }
}
