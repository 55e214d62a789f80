//! Write-back: the time of the write-back of dirty pages, and the throttling of writers.
//!
//! A generation of kernels is one file: a type that implements [`WriteBack`], its keys, its tests,
//! and one line in [`REGISTRY`].
//!
//! | file | content |
//! |---|---|
//! | `today.rs` | Linux 3.2 and later: a flusher, and pauses for writers |
//! | `v2_6_17.rs`, `v2_6_23.rs` | pdflush, and write-back work for writers |
//! | `pdflush.rs` | the common part of these two |
//! | `none.rs` | write-back only on demand or if memory is short |

mod none;
mod pdflush;
mod today;
mod v2_6_17;
mod v2_6_23;

#[cfg(test)]
mod tests;

use crate::cache_parts::CacheParts;
use crate::pages::ResidentPages;
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, PolicyEntry, schema_of};
use fullstroke_units::Time;

/// Next action of a process after it dirtied pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriterVerdict {
    /// Continue.
    Go,
    /// Sleep until the time, then continue.
    Pause(Time),
    /// Sleep until the time, then ask again.
    Again(Time),
    /// Sleep until congestion ends, at most until the time, then ask again.
    Congestion(Time),
    /// Wait for a place in the device's queue, then ask again.
    Room,
}

/// A throttled writer. The operation keeps this state from one question to the next.
#[derive(Clone, Copy, Debug, Default)]
pub struct ThrottledWriter {
    /// Open file, which stands for the process.
    pub file: u32,
    /// Number of pages written back by the writer in this throttling.
    pub written: u64,
}

/// A generation of write-back.
///
/// - **Events in**: [`dirtied`](WriteBack::dirtied), [`run`](WriteBack::run) (after each event, and
///   at the time of [`next_wake`](WriteBack::next_wake)), [`note_shortage`](WriteBack::note_shortage).
/// - **Out**: writes through the [`CacheParts`], and [`WriterVerdict`]s.
pub trait WriteBack: Send {
    /// Returns the number of pages of writes to a file before the next question to
    /// [`balance`](WriteBack::balance); at least 1.
    fn allowance(&self, file: u32) -> u64;

    /// Notes writes to `pages` pages; `newly` of them have become dirty. Returns true if the writer
    /// must ask [`balance`](WriteBack::balance) now.
    fn dirtied(&mut self, file: u32, pages: u64, newly: u64) -> bool;

    /// Returns the next action of the writer.
    fn balance(
        &mut self,
        dirtier: &mut ThrottledWriter,
        parts: &mut CacheParts<'_>,
    ) -> WriterVerdict;

    /// Does the work of the kernel's threads.
    fn run(&mut self, parts: &mut CacheParts<'_>);

    /// Returns the time at which [`run`](WriteBack::run) must be called even if nothing happens.
    /// `full` tells if the device's queue is full.
    fn next_wake(&self, held: ResidentPages, full: bool) -> Time;

    /// True if an fsync takes a cleaned object off the dirty lists. Otherwise the object stays
    /// there until background write-back finds it. An object dirtied before then keeps its age.
    fn fsync_cleans(&self) -> bool {
        true
    }

    /// Notes whether a drive below cleans bands.
    fn note_cleaning(&mut self, _runs: bool) {}

    /// Notes a shortage of memory: the search for clean pages has found dirty ones. Returns true if
    /// the searching process writes the dirty pages itself.
    fn note_shortage(&mut self, parts: &mut CacheParts<'_>) -> bool;
}

/// Function that builds a generation from its keys; `limit` is the memory in pages.
pub type BuildWriteBack = fn(&Keys, u64) -> Result<Box<dyn WriteBack>, ConfigError>;

/// All generations. To add one, write its file, and add its `mod` and its line here.
pub const REGISTRY: &[PolicyEntry<BuildWriteBack>] = &[
    PolicyEntry {
        name: "today",
        summary: today::SUMMARY,
        schema: schema_of::<today::Config>,
        build: today::build,
    },
    PolicyEntry {
        name: "2.6.23",
        summary: v2_6_23::SUMMARY,
        schema: schema_of::<v2_6_23::Config>,
        build: v2_6_23::build,
    },
    PolicyEntry {
        name: "2.6.17",
        summary: v2_6_17::SUMMARY,
        schema: schema_of::<v2_6_17::Config>,
        build: v2_6_17::build,
    },
    PolicyEntry {
        name: "none",
        summary: none::SUMMARY,
        schema: schema_of::<none::Config>,
        build: none::build,
    },
];

/// Checks a ratio of `vm.*`.
fn ratio(key: &'static str, percent: u64) -> Result<u64, ConfigError> {
    if percent > 100 {
        return Err(ConfigError::new(
            key,
            format!("found {percent}; expected a percentage, 0 to 100"),
        ));
    }
    Ok(percent)
}
