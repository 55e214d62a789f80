//! Replacement: which page goes when another needs its place.
//!
//! A policy is one file: a type that implements [`Replacement`], its keys, its
//! plain model in the tests, and one line in [`REGISTRY`].
//!
//! | file | what |
//! |---|---|
//! | `lru.rs` | the least recently used page |
//! | `lru2.rs` | Linux's active and inactive lists, by kernel |
//! | `two_q.rs` | 2Q, full version |
//! | `arc.rs` | ARC |
//! | `s3fifo.rs` | S3-FIFO |
//! | `ghosts.rs` | pages that are remembered after they have gone |
//! | `conformance.rs` | what every policy is held to, and how models are compared |

mod arc;
mod ghosts;
mod lru;
mod lru2;
mod s3fifo;
mod two_q;

#[cfg(test)]
mod conformance;

use crate::pages::{Pages, Stretch};
use crate::run::Run;
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Entry, Keys, schema_of};
use fullstroke_units::Time;
use schemars::JsonSchema;
use serde::Deserialize;

/// Where pages that come are put.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Place {
    /// Where the policy puts pages that are read for the first time.
    #[default]
    Usual,
    /// The same of pages that are written for the first time.
    Written,
    /// Where it has those that it would keep longest.
    Hot,
    /// Where the next to go stands.
    Cold,
}

/// A rule of replacement. The pages are in [`Pages`], in lists whose meaning the
/// policy chooses (numbers below [`crate::pages::ASIDE`]); here is what the rule
/// notes beside.
///
/// - **Events in**: [`at`](Replacement::at), [`wanted`](Replacement::wanted),
///   [`admitted`](Replacement::admitted), [`used`](Replacement::used),
///   [`evicted`](Replacement::evicted), [`forgotten`](Replacement::forgotten).
/// - **Out**: [`victim`](Replacement::victim).
///
/// What the cache guarantees:
///
/// - Each page that comes is `wanted`, then, after as many victims as it takes
///   to make room for it, `admitted`. `wanted` may be said again of the same
///   pages if there was no room.
/// - A victim that cannot go yet is put into the list
///   [`ASIDE`](crate::pages::ASIDE), with the list that it came from as its
///   origin, and goes first when it can. If it is used before, `used` is called
///   with it there.
/// - The first use of a page since it was admitted is told: a page that a read
///   brings is used once by that read, one that read-ahead brings later or never.
pub trait Replacement: Send {
    /// It is so late, said before room is made.
    fn at(&mut self, _now: Time, _pages: &Pages) {}

    /// These pages, which are not held, are about to come, and `free` more can be
    /// held now. Answers how many of them, from the first on, may come at once so
    /// that all is as if they came one by one; at least 1.
    fn wanted(&mut self, _pages: &Pages, run: Run, _free: u64) -> u64 {
        run.pages
    }

    /// The pages of `slot`, in no list, have come: puts them into one.
    fn admitted(&mut self, pages: &mut Pages, slot: u32, place: Place);

    /// The pages of `slot` are used, one after the other; for the first time
    /// since they came, if `first`.
    fn used(&mut self, pages: &mut Pages, slot: u32, first: bool);

    /// As many more pages, of the same list and with the same note, are used in the
    /// same way as those of the last call of [`used`](Replacement::used), and have
    /// been put behind them already.
    fn used_more(&mut self, _pages: u64) {}

    /// Whether a further use of a stretch changes nothing.
    fn indifferent(&self, _stretch: &Stretch) -> bool {
        false
    }

    /// Takes out of the lists what is to go next: a stretch of at most `most`
    /// pages, with its list as its origin. `None` if the lists are empty.
    fn victim(&mut self, pages: &mut Pages, most: u64) -> Option<u32>;

    /// A victim has gone.
    fn evicted(&mut self, _pages: &Pages, _gone: &Stretch) {}

    /// Whatever is remembered of these pages means nothing any more: their object
    /// is no longer what it was.
    fn forgotten(&mut self, _run: Run) {}
}

/// What a policy is built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site {
    /// Pages that may be held.
    pub limit: u64,
}

/// Builds a policy from its keys.
pub type BuildReplacement = fn(&Keys, &Site) -> Result<Box<dyn Replacement>, ConfigError>;

/// Every policy. To add one: write its file, and add its `mod` and its line.
pub const REGISTRY: &[Entry<BuildReplacement>] = &[
    Entry {
        name: "lru2",
        summary: lru2::SUMMARY,
        schema: schema_of::<lru2::Config>,
        build: lru2::build,
    },
    Entry {
        name: "lru",
        summary: lru::SUMMARY,
        schema: schema_of::<NoKeys>,
        build: lru::build,
    },
    Entry {
        name: "2q",
        summary: two_q::SUMMARY,
        schema: schema_of::<two_q::Config>,
        build: two_q::build,
    },
    Entry {
        name: "arc",
        summary: arc::SUMMARY,
        schema: schema_of::<NoKeys>,
        build: arc::build,
    },
    Entry {
        name: "s3fifo",
        summary: s3fifo::SUMMARY,
        schema: schema_of::<s3fifo::Config>,
        build: s3fifo::build,
    },
];

/// The keys of a policy that has none.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoKeys {}

/// Takes at most `most` of the oldest pages of a list out of it, as a victim.
fn take_oldest(pages: &mut Pages, list: u8, most: u64) -> Option<u32> {
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

/// Puts a stretch, wherever it is, into a list as its newest pages.
fn renew(pages: &mut Pages, slot: u32, list: u8) {
    pages.unlink(slot);
    pages.set_origin(slot, crate::pages::NOWHERE);
    pages.push_newest(list, slot);
    pages.join(slot);
}

/// Puts a new stretch at the end of a list that `place` means, the newest unless
/// it is `Cold`.
fn put(pages: &mut Pages, slot: u32, list: u8, place: Place) {
    match place {
        Place::Cold => pages.push_oldest(list, slot),
        Place::Usual | Place::Written | Place::Hot => pages.push_newest(list, slot),
    }
    pages.join(slot);
}

/// The list that a stretch is in, or was in before it was set aside.
fn home(stretch: &Stretch) -> u8 {
    if stretch.list == crate::pages::ASIDE {
        stretch.origin
    } else {
        stretch.list
    }
}
