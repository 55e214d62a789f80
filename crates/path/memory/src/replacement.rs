//! Replacement: the choice of the page to evict.
//!
//! A policy is one file: a type that implements [`Replacement`], its keys, a plain model of the
//! policy in the tests, and one line in [`REGISTRY`].
//!
//! | file | content |
//! |---|---|
//! | `lru.rs` | the least recently used page |
//! | `lru2.rs` | Linux's active and inactive lists, by kernel |
//! | `two_q.rs` | 2Q, full version |
//! | `arc.rs` | ARC |
//! | `s3fifo.rs` | S3-FIFO |
//! | `ghosts.rs` | memory of evicted pages |
//! | `conformance.rs` | tests of every policy, and the comparison with models |

mod arc;
mod ghosts;
mod lru;
mod lru2;
mod s3fifo;
mod two_q;

#[cfg(test)]
mod conformance;

use crate::pages::{PageTable, Stretch};
use crate::run::PageRun;
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, PolicyEntry, schema_of};
use fullstroke_units::Time;
use schemars::JsonSchema;
use serde::Deserialize;

/// Place of new pages in the lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ListPlace {
    /// Place of pages at their first read.
    #[default]
    Usual,
    /// Place of pages at their first write.
    Written,
    /// Place of the pages to keep longest.
    Hot,
    /// Place of the next victim.
    Cold,
}

/// A policy of replacement. The pages are in [`PageTable`], in lists whose meaning the policy
/// chooses (numbers below [`crate::pages::ASIDE`]). The implementation holds the other state of the
/// policy.
///
/// - **Events in**: [`at`](Replacement::at), [`wanted`](Replacement::wanted),
///   [`admitted`](Replacement::admitted), [`used`](Replacement::used),
///   [`evicted`](Replacement::evicted), [`forgotten`](Replacement::forgotten).
/// - **Out**: [`victim`](Replacement::victim).
///
/// The cache guarantees:
///
/// - Each new page is first `wanted`. Then the cache takes victims until there is room. Then the
///   page is `admitted`. If there was no room, `wanted` may come again for the same pages.
/// - A victim that cannot leave yet moves to the list [`ASIDE`](crate::pages::ASIDE), with its old
///   list as origin, and leaves first when it can. A use before the eviction calls `used` with the
///   page in this list.
/// - The cache reports the first use after admission. A read uses its own pages at once. A page of
///   read-ahead is used later or never.
pub trait Replacement: Send {
    /// Sets the time, before room is made.
    fn at(&mut self, _now: Time, _pages: &PageTable) {}

    /// Announces pages that are not held and are about to come; `free` more pages have room now.
    /// Returns the number of pages, from the first on, that may come at once with the same result
    /// as one by one; at least 1.
    fn wanted(&mut self, _pages: &PageTable, run: PageRun, _free: u64) -> u64 {
        run.pages
    }

    /// Puts the new pages of `slot` into a list. So far the pages are in no list.
    fn admitted(&mut self, pages: &mut PageTable, slot: u32, place: ListPlace);

    /// Notes that the pages of `slot` are used, one after the other. `first` is true for the first
    /// use since admission.
    fn used(&mut self, pages: &mut PageTable, slot: u32, first: bool);

    /// Notes the use of `pages` more pages, in the same way as in the last call of
    /// [`used`](Replacement::used). The new pages have the same list and note, and already stand
    /// behind the others.
    fn used_more(&mut self, _pages: u64) {}

    /// True if a further use of a stretch changes nothing.
    fn ignores_use(&self, _stretch: &Stretch) -> bool {
        false
    }

    /// Removes the next victim from the lists: a stretch of at most `most` pages, with its list as
    /// origin. `None` if the lists are empty.
    fn victim(&mut self, pages: &mut PageTable, most: u64) -> Option<u32>;

    /// Notes the eviction of a victim.
    fn evicted(&mut self, _pages: &PageTable, _gone: &Stretch) {}

    /// Forgets the history of these pages, because the file system has discarded their contents.
    fn forgotten(&mut self, _run: PageRun) {}
}

/// Size of the cache of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicySite {
    /// Largest number of pages.
    pub limit: u64,
}

/// Function that builds a policy from its keys.
pub type BuildReplacement = fn(&Keys, &PolicySite) -> Result<Box<dyn Replacement>, ConfigError>;

/// All policies. To add one, write its file, and add its `mod` and its line here.
pub const REGISTRY: &[PolicyEntry<BuildReplacement>] = &[
    PolicyEntry {
        name: "lru2",
        summary: lru2::SUMMARY,
        schema: schema_of::<lru2::Config>,
        build: lru2::build,
    },
    PolicyEntry {
        name: "lru",
        summary: lru::SUMMARY,
        schema: schema_of::<NoPolicyKeys>,
        build: lru::build,
    },
    PolicyEntry {
        name: "2q",
        summary: two_q::SUMMARY,
        schema: schema_of::<two_q::Config>,
        build: two_q::build,
    },
    PolicyEntry {
        name: "arc",
        summary: arc::SUMMARY,
        schema: schema_of::<NoPolicyKeys>,
        build: arc::build,
    },
    PolicyEntry {
        name: "s3fifo",
        summary: s3fifo::SUMMARY,
        schema: schema_of::<s3fifo::Config>,
        build: s3fifo::build,
    },
];

/// The keys of a policy without keys.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NoKeys")]
pub struct NoPolicyKeys {}

/// Takes at most `most` of the oldest pages of a list out of the list, as a victim.
fn take_oldest(pages: &mut PageTable, list: u8, most: u64) -> Option<u32> {
    let slot = pages.oldest(list)?;
    let stretch = *pages.get(slot);
    let slot = pages.cut(
        slot,
        stretch.first,
        stretch.first + most.min(u64::from(stretch.pages)),
    );
    pages.unlink(slot);
    pages.set_origin(slot, list);
    Some(slot)
}

/// Moves a stretch to the newest end of a list, from any place.
fn renew(pages: &mut PageTable, slot: u32, list: u8) {
    pages.unlink(slot);
    pages.set_origin(slot, crate::pages::NOWHERE);
    pages.push_newest(list, slot);
    pages.join(slot);
}

/// Puts a new stretch into a list: at the oldest end for `Cold`, otherwise at the newest end.
fn put(pages: &mut PageTable, slot: u32, list: u8, place: ListPlace) {
    match place {
        ListPlace::Cold => pages.push_oldest(list, slot),
        ListPlace::Usual | ListPlace::Written | ListPlace::Hot => pages.push_newest(list, slot),
    }
    pages.join(slot);
}

/// Returns the list of a stretch, or its list before it was set aside.
fn home(stretch: &Stretch) -> u8 {
    if stretch.list == crate::pages::ASIDE {
        stretch.origin
    } else {
        stretch.list
    }
}
