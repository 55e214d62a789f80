//! Runs of pages: the unit of the requests to and from a cache.

use fullstroke_contract::Object;
use fullstroke_units::Bytes;

/// Size of a page in bytes.
pub const PAGE_BYTES: u64 = 4096;

/// Consecutive pages of one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct PageRun {
    /// Object of the pages. Metadata blocks are pages of [`Object::DEVICE`].
    pub object: Object,
    /// Index of the first page.
    pub first: u64,
    /// Number of pages.
    pub pages: u64,
}

impl PageRun {
    /// Returns the run of `pages` pages of `object` from `first`.
    pub const fn new(object: Object, first: u64, pages: u64) -> PageRun {
        PageRun {
            object,
            first,
            pages,
        }
    }

    /// Returns the index after the last page; saturates.
    pub const fn end(&self) -> u64 {
        self.first.saturating_add(self.pages)
    }

    /// True if the run contains the page.
    pub const fn holds(&self, object: Object, page: u64) -> bool {
        self.object.0 == object.0 && self.first <= page && page < self.end()
    }
}

/// Returns the number of whole pages in `bytes`.
pub const fn pages_in(bytes: Bytes) -> u64 {
    bytes.0 / PAGE_BYTES
}
