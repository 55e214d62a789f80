//! The map from the array's addresses to places on the flash device.

use std::collections::{BTreeMap, BTreeSet};

/// Cached data: consecutive sectors within one bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CachedExtent {
    pub(super) start: u64,
    pub(super) sectors: u64,
    pub(super) place: u64,
    /// Generation of the bucket when the data were written. With another generation, the bucket
    /// has other data now (`ptr_stale`, bcache.h).
    pub(super) generation: u32,
    /// True if the array does not have the data.
    pub(super) dirty: bool,
}

impl CachedExtent {
    pub(super) fn end(&self) -> u64 {
        self.start + self.sectors
    }

    /// Returns the part between `from` and `to`.
    pub(super) fn part(&self, from: u64, to: u64) -> CachedExtent {
        let start = self.start.max(from);
        CachedExtent {
            start,
            sectors: self.end().min(to) - start,
            place: self.place + (start - self.start),
            ..*self
        }
    }
}

/// The map.
///
/// Invariants: extents do not overlap. `dirty` has the start of each dirty extent.
#[derive(Clone, Debug, Default)]
pub(super) struct ExtentMap {
    extents: BTreeMap<u64, CachedExtent>,
    dirty: BTreeSet<u64>,
}

impl ExtentMap {
    pub(super) fn len(&self) -> usize {
        self.extents.len()
    }

    /// Calls `each` with the parts of the extents between `start` and `end`, in order.
    pub(super) fn between(&self, start: u64, end: u64, mut each: impl FnMut(CachedExtent)) {
        let before = self.extents.range(..start).next_back();
        let before = before.filter(|(_, extent)| extent.end() > start);
        for (_, extent) in before.into_iter().chain(self.extents.range(start..end)) {
            each(extent.part(start, end));
        }
    }

    fn put(&mut self, extent: CachedExtent) {
        if extent.dirty {
            self.dirty.insert(extent.start);
        }
        self.extents.insert(extent.start, extent);
    }

    /// Removes everything between `start` and `end`, and calls `removed` with each removed part.
    pub(super) fn cut(&mut self, start: u64, end: u64, mut removed: impl FnMut(CachedExtent)) {
        loop {
            let before = self.extents.range(..start).next_back();
            let before = before.filter(|(_, extent)| extent.end() > start);
            let first = before.or_else(|| self.extents.range(start..end).next());
            let Some((&at, &extent)) = first else { return };
            self.extents.remove(&at);
            self.dirty.remove(&at);
            if extent.start < start {
                self.put(extent.part(extent.start, start));
            }
            if extent.end() > end {
                self.put(extent.part(end, extent.end()));
            }
            removed(extent.part(start, end));
        }
    }

    /// Puts `extent` into the map, in place of everything at its addresses.
    pub(super) fn insert(&mut self, extent: CachedExtent, removed: impl FnMut(CachedExtent)) {
        self.cut(extent.start, extent.end(), removed);
        self.put(extent);
    }

    /// Returns the first dirty extent that begins at `from` or later.
    pub(super) fn dirty_from(&self, from: u64) -> Option<CachedExtent> {
        let start = self.dirty.range(from..).next()?;
        self.extents.get(start).copied()
    }

    /// Drops all extents for which `keep` is false. Dirty extents stay.
    pub(super) fn sweep(&mut self, keep: impl Fn(&CachedExtent) -> bool) {
        self.extents
            .retain(|_, extent| extent.dirty || keep(extent));
    }

    pub(super) fn clear(&mut self) {
        self.extents.clear();
        self.dirty.clear();
    }
}
