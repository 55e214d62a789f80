//! Runs of pages: what a cache is asked for and what it asks for.

use fullstroke_contract::Object;
use fullstroke_units::Bytes;

/// Bytes of a page.
pub const PAGE_BYTES: u64 = 4096;

/// Consecutive pages of one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Run {
    /// Of what; blocks of metadata are pages of [`Object::DEVICE`].
    pub object: Object,
    /// The index of the first page.
    pub first: u64,
    /// How many.
    pub pages: u64,
}

impl Run {
    /// The `pages` pages of `object` from `first`.
    pub const fn new(object: Object, first: u64, pages: u64) -> Run {
        Run {
            object,
            first,
            pages,
        }
    }

    /// The index behind the last page, saturating.
    pub const fn end(&self) -> u64 {
        self.first.saturating_add(self.pages)
    }

    /// Whether the page is one of them.
    pub const fn holds(&self, object: Object, page: u64) -> bool {
        self.object.0 == object.0 && self.first <= page && page < self.end()
    }
}

/// Whole pages in so many bytes.
pub const fn pages_in(bytes: Bytes) -> u64 {
    bytes.0 / PAGE_BYTES
}
