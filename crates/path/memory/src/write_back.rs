//! Write-back: when dirty pages are written, and who is made to wait.
//!
//! A generation of kernels is one file: a type that implements [`WriteBack`], its
//! keys, its tests, and one line in [`REGISTRY`].
//!
//! | file | what |
//! |---|---|
//! | `today.rs` | Linux 3.2 and later: a flusher, and pauses for those who dirty pages |
//! | `v2_6_17.rs`, `v2_6_23.rs` | pdflush, and work for those who dirty pages |
//! | `pdflush.rs` | what these two have in common |
//! | `none.rs` | nothing, unless it is asked for or memory is short |

mod none;
mod pdflush;
mod today;
mod v2_6_17;
mod v2_6_23;

#[cfg(test)]
mod tests;

use crate::desk::Desk;
use crate::pages::Held;
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Entry, Keys, schema_of};
use fullstroke_units::Time;

/// What whoever has dirtied pages does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on.
    Go,
    /// It sleeps until then, and goes on.
    Pause(Time),
    /// It sleeps until then, and asks again.
    Again(Time),
    /// It sleeps until congestion ends, until then at most, and asks again.
    Congestion(Time),
    /// It waits for a place in the device's queue, and asks again.
    Room,
}

/// Who is made to wait: kept by the operation while it is asked again and again.
#[derive(Clone, Copy, Debug, Default)]
pub struct Dirtier {
    /// The open file, which stands for its process.
    pub file: u32,
    /// Pages that it has written back while it was throttled this time.
    pub written: u64,
}

/// A generation of write-back.
///
/// - **Events in**: [`dirtied`](WriteBack::dirtied), [`run`](WriteBack::run) (after
///   each event, and when [`next_wake`](WriteBack::next_wake) has come),
///   [`pressed`](WriteBack::pressed).
/// - **Out**: what it has the [`Desk`] write, and [`Verdict`]s.
pub trait WriteBack: Send {
    /// How many pages may be written to by one file before it asks
    /// [`balance`](WriteBack::balance); at least 1.
    fn allowance(&self, file: u32) -> u64;

    /// So many pages were written to, of which `newly` have become dirty. Answers
    /// whether [`balance`](WriteBack::balance) is to be asked now.
    fn dirtied(&mut self, file: u32, pages: u64, newly: u64) -> bool;

    /// What the writer does next.
    fn balance(&mut self, dirtier: &mut Dirtier, desk: &mut Desk<'_>) -> Verdict;

    /// What is done without being asked: the kernel's threads.
    fn run(&mut self, desk: &mut Desk<'_>);

    /// When [`run`](WriteBack::run) wants to be called even if nothing happens, with
    /// so many pages held, and the device's queue `full` or not.
    fn next_wake(&self, held: Held, full: bool) -> Time;

    /// Whether an object that an fsync has cleaned is no longer dirty; else it is until it
    /// is come upon in the background, and as old as it was if it becomes dirty before.
    fn fsync_cleans(&self) -> bool {
        true
    }

    /// Memory is short and dirty pages were found where clean ones were looked for.
    /// Answers whether those who look write them themselves.
    fn pressed(&mut self, desk: &mut Desk<'_>) -> bool;
}

/// Builds a generation from its keys; `limit` is the memory in pages.
pub type BuildWriteBack = fn(&Keys, u64) -> Result<Box<dyn WriteBack>, ConfigError>;

/// Every generation. To add one: write its file, and add its `mod` and its line.
pub const REGISTRY: &[Entry<BuildWriteBack>] = &[
    Entry {
        name: "today",
        summary: today::SUMMARY,
        schema: schema_of::<today::Config>,
        build: today::build,
    },
    Entry {
        name: "2.6.23",
        summary: v2_6_23::SUMMARY,
        schema: schema_of::<v2_6_23::Config>,
        build: v2_6_23::build,
    },
    Entry {
        name: "2.6.17",
        summary: v2_6_17::SUMMARY,
        schema: schema_of::<v2_6_17::Config>,
        build: v2_6_17::build,
    },
    Entry {
        name: "none",
        summary: none::SUMMARY,
        schema: schema_of::<none::Config>,
        build: none::build,
    },
];

/// A ratio of `vm.*`, checked.
fn ratio(key: &'static str, percent: u64) -> Result<u64, ConfigError> {
    if percent > 100 {
        return Err(ConfigError::new(
            key,
            format!("found {percent}; expected a percentage, 0 to 100"),
        ));
    }
    Ok(percent)
}
