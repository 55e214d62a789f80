//! Order among concurrent requests of an array, its upkeep, and changes of its members.

use crate::gather::Gatherings;
use crate::locks::{Locks, RangeGuard};
use fullstroke_contract::Extent;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Locks among the threads that use an array.
#[derive(Debug, Default)]
pub(crate) struct RequestOrder {
    /// Requests share this lock. Changes of members and rebuild steps need exclusive access.
    gate: RwLock<()>,
    rows: Locks,
    /// Locks of blocks during partial changes.
    edges: Locks,
    gatherings: Gatherings,
    /// Number of writes in progress.
    writers: AtomicUsize,
}

/// A write in progress, ended when dropped.
pub(crate) struct WriterGuard<'a> {
    order: &'a RequestOrder,
    has_company: bool,
}

impl RequestOrder {
    /// Shares the gate with other requests.
    pub(crate) fn pass(&self) -> RwLockReadGuard<'_, ()> {
        self.gate.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no request is in progress, and holds up all others.
    pub(crate) fn alone(&self) -> RwLockWriteGuard<'_, ()> {
        self.gate.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks whole rows.
    pub(crate) fn hold_rows(&self, extent: Extent, exclusive: bool) -> RangeGuard<'_> {
        self.rows.hold(extent, exclusive)
    }

    /// As [`hold_rows`](RequestOrder::hold_rows) for a reader, without waiting for a writer.
    pub(crate) fn try_to_hold_rows(&self, extent: Extent) -> Option<RangeGuard<'_>> {
        self.rows.try_to_hold(extent, false)
    }

    /// Locks blocks of which a part is changed.
    pub(crate) fn hold_blocks(&self, extent: Extent, exclusive: bool) -> RangeGuard<'_> {
        self.edges.hold(extent, exclusive)
    }

    /// Rows whose first writer waits for others.
    pub(crate) fn gatherings(&self) -> &Gatherings {
        &self.gatherings
    }

    /// Begins a write.
    pub(crate) fn begin_write(&self) -> WriterGuard<'_> {
        WriterGuard {
            order: self,
            has_company: self.writers.fetch_add(1, Ordering::SeqCst) > 0,
        }
    }
}

impl WriterGuard<'_> {
    /// True if other writes were in progress when this write began.
    pub(crate) fn has_company(&self) -> bool {
        self.has_company
    }
}

impl Drop for WriterGuard<'_> {
    fn drop(&mut self) {
        let writers = self.order.writers.fetch_sub(1, Ordering::SeqCst);
        assert!(writers > 0, "a write ends that has not begun");
    }
}
