//! Condition of an array: failures of members, lost data, the end of changes, and events for the
//! operator.

use crate::ArrayError;
use crate::error::is_out_of_space;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// An event for the operator of the array.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ArrayEvent {
    /// `failed`, `degraded`, `halted`, `mismatch`, `spare`, `filled`, `slow`, `usual`; `mended`, `filling`;
    /// `sits-out` and `reads` of members that the policy against slow members leaves out of reads;
    /// `stands` and `turns` of members in the low gear and out of it; `standby`, or `refused` if a device
    /// refused standby.
    pub kind: &'static str,
    /// Slot of the member; spares are counted behind the members.
    pub slot: usize,
    /// Name of the device.
    pub device: String,
    /// Description for people.
    pub why: String,
}

/// Condition of an array.
#[derive(Debug, Default)]
pub(crate) struct ArrayCondition {
    /// Number of failures of members.
    failures: AtomicU64,
    /// Number of failures on record on all other members.
    settled: AtomicU64,
    /// Reason of the halt.
    halted: OnceLock<String>,
    /// Reason why the array accepts no changes since its assembly, if so. Writes to members stay in
    /// memory then.
    read_only: OnceLock<&'static str>,
    /// True if a member could not be written because its file system has no room.
    lacks_room: AtomicBool,
    /// True if data could not be computed from the remaining members, and no flush has reported the
    /// loss yet.
    lost: AtomicBool,
    events: Mutex<Vec<ArrayEvent>>,
    /// Slow members, each with the time of a read as a multiple of the median of the others.
    slow: Mutex<BTreeMap<usize, f64>>,
}

impl ArrayCondition {
    /// Notes a failure of a member, which is not on record yet.
    pub(crate) fn note_failure(&self) {
        self.failures.fetch_add(1, Ordering::SeqCst);
    }

    /// Number of failures of members.
    pub(crate) fn failures(&self) -> u64 {
        self.failures.load(Ordering::SeqCst)
    }

    /// Notes that this number of failures is on record.
    pub(crate) fn note_settled(&self, failures: u64) {
        debug_assert!(
            failures <= self.failures(),
            "{failures} failures are on record, more than there were"
        );
        self.settled.fetch_max(failures, Ordering::SeqCst);
    }

    /// True if a failure is not on record.
    pub(crate) fn is_unsettled(&self) -> bool {
        self.settled.load(Ordering::SeqCst) < self.failures()
    }

    /// Notes the error of a member's write.
    pub(crate) fn note_error(&self, error: &io::Error) {
        self.lacks_room
            .fetch_or(is_out_of_space(error), Ordering::SeqCst);
    }

    /// True if a member could not be written because its file system has no room.
    pub(crate) fn lacks_room(&self) -> bool {
        self.lacks_room.load(Ordering::SeqCst)
    }

    /// Notes that data was lost; the next flush reports the loss.
    pub(crate) fn note_loss(&self) {
        self.lost.store(true, Ordering::SeqCst);
    }

    /// Returns true once after data was lost.
    pub(crate) fn take_loss(&self) -> bool {
        self.lost.swap(false, Ordering::SeqCst)
    }

    /// Halts the array: no change is made any more. The first reason stays.
    pub(crate) fn halt(&self, why: &str) -> ArrayError {
        ArrayError::Halted {
            why: self.halted.get_or_init(|| why.to_owned()).clone(),
        }
    }

    /// Reason of the halt; `None` while the array changes data.
    pub(crate) fn halted(&self) -> Option<&str> {
        self.halted.get().map(String::as_str)
    }

    /// Refuses all changes from now on.
    pub(crate) fn be_read_only(&self, why: &'static str) {
        let first = self.read_only.set(why);
        debug_assert!(first.is_ok(), "an array becomes read-only once");
    }

    /// Reason why the array accepts no changes since its assembly, if so.
    pub(crate) fn read_only(&self) -> Option<&'static str> {
        self.read_only.get().copied()
    }

    /// Returns an error if the array has halted.
    pub(crate) fn check_running(&self) -> Result<(), ArrayError> {
        match self.halted.get() {
            None => Ok(()),
            Some(why) => Err(ArrayError::Halted { why: why.clone() }),
        }
    }

    /// Returns an error if the array has halted or is read-only.
    pub(crate) fn check_changes(&self) -> Result<(), ArrayError> {
        match self.read_only() {
            Some(why) => Err(ArrayError::ReadOnly { why }),
            None => self.check_running(),
        }
    }

    /// Adds an event for the operator.
    pub(crate) fn happened(&self, event: ArrayEvent) {
        self.events().push(event);
    }

    /// Returns the events since the last call.
    pub(crate) fn take_events(&self) -> Vec<ArrayEvent> {
        std::mem::take(&mut self.events())
    }

    /// Notes whether the member of a slot is slow, and by which factor.
    pub(crate) fn note_slowness(&self, slot: usize, factor: Option<f64>) {
        let mut slow = self.slow.lock().unwrap_or_else(PoisonError::into_inner);
        match factor {
            Some(factor) => drop(slow.insert(slot, factor)),
            None => drop(slow.remove(&slot)),
        }
    }

    /// Returns the factor of a slow member.
    pub(crate) fn slowness(&self, slot: usize) -> Option<f64> {
        let slow = self.slow.lock().unwrap_or_else(PoisonError::into_inner);
        slow.get(&slot).copied()
    }

    fn events(&self) -> MutexGuard<'_, Vec<ArrayEvent>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
