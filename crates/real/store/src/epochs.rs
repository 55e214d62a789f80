//! Flushes of an array, and the changes that a flush covers.

use crate::group::Group;
use std::sync::atomic::{AtomicU64, Ordering};

/// Epochs of changes. Each flush ends an epoch.
#[derive(Debug)]
pub(crate) struct FlushEpochs {
    flushing: Group,
    /// Number of begun flushes, plus one.
    present: AtomicU64,
    /// Latest epoch whose changes are all durable.
    flushed: AtomicU64,
}

impl Default for FlushEpochs {
    fn default() -> FlushEpochs {
        FlushEpochs {
            flushing: Group::default(),
            present: AtomicU64::new(1),
            flushed: AtomicU64::new(0),
        }
    }
}

impl FlushEpochs {
    /// Shares a flush with other threads; see [`Group::join`].
    pub(crate) fn join(&self, hasty: bool, flush: impl FnOnce() -> bool) -> bool {
        self.flushing.join(hasty, flush)
    }

    /// Epoch of present changes.
    pub(crate) fn present(&self) -> u64 {
        self.present.load(Ordering::SeqCst)
    }

    /// Begins a flush. Returns the ended epoch; later changes belong to the next.
    pub(crate) fn begin_flush(&self) -> u64 {
        self.present.fetch_add(1, Ordering::SeqCst)
    }

    /// Notes that all changes up to `epoch` are durable.
    pub(crate) fn end_flush(&self, epoch: u64) {
        let earlier = self.flushed.fetch_max(epoch, Ordering::SeqCst);
        debug_assert!(
            earlier < epoch,
            "two flushes at a time: epoch {epoch} ends behind epoch {earlier}"
        );
    }

    /// Latest epoch whose changes are all durable.
    pub(crate) fn flushed(&self) -> u64 {
        self.flushed.load(Ordering::SeqCst)
    }
}
