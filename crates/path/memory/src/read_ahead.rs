//! Read-ahead: the pages read beside the requested pages.
//!
//! A generation of kernels is one file: a type that implements [`ReadAhead`], its keys, its table
//! of expected windows, and one line in [`REGISTRY`]. The type keeps a state for each open file.
//!
//! | file | content |
//! |---|---|
//! | `v2_4.rs` | Linux 2.4: `generic_file_readahead` |
//! | `two_window.rs` | to 2.6.22: a current window and one ahead |
//! | `on_demand.rs` | 2.6.23 to 2.6.30: on a miss, and at a marked page |
//! | `today.rs` | 6.16 and later: the same, with context and aligned ends |
//! | `none.rs` | only the missing pages |
//! | `tables.rs` | a reader for the tables of expected windows |

mod none;
mod on_demand;
mod today;
mod two_window;
mod v2_4;

#[cfg(test)]
mod tables;

use crate::pages::PageTable;
use fullstroke_contract::registry::{Keys, PolicyEntry, schema_of};
use fullstroke_contract::{ConfigError, Object};

/// Early ends of windows in a file, such as the first pages of tracks. The list has the next few
/// pages from the position of a read, in ascending order. The layer with the layout of the file
/// passes the list with each read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowCuts([u64; WindowCuts::MOST]);

impl WindowCuts {
    /// Largest number of cuts. An open window ends at the first cut and the next window at the
    /// second. A read may also begin before the end of its request.
    pub const MOST: usize = 4;
    /// No cuts: windows keep their length.
    pub const NONE: WindowCuts = WindowCuts([u64::MAX; WindowCuts::MOST]);

    /// Returns the first few of the pages as cuts.
    pub fn of(pages: impl Iterator<Item = u64>) -> WindowCuts {
        let mut cuts = WindowCuts::NONE;
        cuts.0
            .iter_mut()
            .zip(pages)
            .for_each(|(cut, page)| *cut = page);
        cuts
    }

    /// Returns the number of pages to read of a window, from its first page on. The first `wanted`
    /// pages were requested, so no cut shortens them.
    fn clip(&self, first: u64, pages: u64, wanted: u64) -> u64 {
        let next = self.0.iter().find(|&&cut| cut > first);
        next.map_or(pages, |cut| (cut - first).max(wanted).min(pages))
    }
}

impl Default for WindowCuts {
    fn default() -> WindowCuts {
        WindowCuts::NONE
    }
}

/// State of the page at the reader's position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PagePresence {
    /// The page is not held.
    Absent,
    /// The page is being read.
    Reading,
    /// The page is held and has the mark. The mark is removed now.
    Marked,
    /// The page is held.
    Held,
}

/// A question to read-ahead.
pub struct ReadAheadQuery<'a> {
    /// The open file.
    pub file: u32,
    /// Object of the file.
    pub object: Object,
    /// Page at the reader's position.
    pub index: u64,
    /// Number of pages still wanted by the reader, this page included.
    pub wanted: u64,
    /// State of this page.
    pub found: PagePresence,
    /// True if the reader is at the page of [`ReadAheadPlan::again`] of the last answer, or at its
    /// first page.
    pub due: bool,
    /// Size of the object in pages.
    pub size: u64,
    /// The pages in memory.
    pub pages: &'a PageTable,
    /// Where windows end early.
    pub cuts: WindowCuts,
}

impl ReadAheadQuery<'_> {
    /// Returns the length of a window after the cuts: at the end of the object and at
    /// [`WindowCuts`].
    fn clipped(&self, first: u64, pages: u64) -> u64 {
        let wanted = (self.index + self.wanted).saturating_sub(first).min(pages);
        self.cuts.clip(first, pages, wanted)
    }
}

/// Pages to read. Pages already held and pages after the end of the object are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct PageWindow {
    /// First page.
    pub first: u64,
    /// Number of pages.
    pub pages: u64,
    /// Page for the mark, unless held already.
    pub mark: Option<u64>,
}

/// Answer of a policy.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadAheadPlan {
    windows: [PageWindow; 2],
    count: usize,
    /// First page for another question, even if the page is held.
    pub again: u64,
}

impl ReadAheadPlan {
    /// The policy is asked at absent and marked pages only.
    pub const NEVER: u64 = u64::MAX;

    pub(crate) fn clear(&mut self) {
        *self = ReadAheadPlan {
            again: ReadAheadPlan::NEVER,
            ..ReadAheadPlan::default()
        };
    }

    fn read(&mut self, first: u64, pages: u64, mark: Option<u64>) {
        self.windows[self.count] = PageWindow { first, pages, mark };
        self.count += 1;
    }

    /// Returns the windows, in the order of their reads.
    pub fn windows(&self) -> &[PageWindow] {
        &self.windows[..self.count]
    }
}

/// A generation of read-ahead, with a state for each open file.
pub trait ReadAhead: Send {
    /// Resets the state of a newly opened file. The number may be that of a closed file.
    fn opened(&mut self, file: u32);

    /// True if the policy is asked at the first page of each read, even if the page is held.
    fn watches(&self) -> bool {
        false
    }

    /// Notes the start of a read of `bytes` bytes at `offset`.
    fn begins(&mut self, _file: u32, _offset: u64, _bytes: u64) {}

    /// Answers a question. The reader is at a page that is absent, marked or being read, or at the
    /// page of [`ReadAheadPlan::again`].
    fn ask(&mut self, ask: &ReadAheadQuery<'_>, plan: &mut ReadAheadPlan);

    /// Notes the end of the read at `offset`.
    fn ended(&mut self, _file: u32, _offset: u64, _bytes: u64) {}
}

/// Function that builds a generation from its keys.
pub type BuildReadAhead = fn(&Keys) -> Result<Box<dyn ReadAhead>, ConfigError>;

/// All generations. To add one, write its file, and add its `mod` and its line here.
pub const REGISTRY: &[PolicyEntry<BuildReadAhead>] = &[
    PolicyEntry {
        name: "today",
        summary: today::SUMMARY,
        schema: schema_of::<today::Config>,
        build: today::build,
    },
    PolicyEntry {
        name: "on-demand",
        summary: on_demand::SUMMARY,
        schema: schema_of::<on_demand::Config>,
        build: on_demand::build,
    },
    PolicyEntry {
        name: "two-window",
        summary: two_window::SUMMARY,
        schema: schema_of::<two_window::Config>,
        build: two_window::build,
    },
    PolicyEntry {
        name: "2.4",
        summary: v2_4::SUMMARY,
        schema: schema_of::<v2_4::Config>,
        build: v2_4::build,
    },
    PolicyEntry {
        name: "none",
        summary: none::SUMMARY,
        schema: schema_of::<none::Config>,
        build: none::build,
    },
];

/// Returns the state of a file, in a list by file number.
fn state_of<S: Clone + Default>(states: &mut Vec<S>, file: u32) -> &mut S {
    let file = file as usize;
    if states.len() <= file {
        states.resize(file + 1, S::default());
    }
    &mut states[file]
}

/// Returns the first window: `get_init_ra_size` of `mm/readahead.c`, since 2.6.12. The request is
/// rounded up to a power of two. A small request is multiplied by four, a medium one by two.
fn initial_size(wanted: u64, most: u64) -> u64 {
    match wanted.next_power_of_two() {
        size if size <= most / 32 => size * 4,
        size if size <= most / 4 => size * 2,
        _ => most,
    }
}

/// Returns the next window: `get_next_ra_size`. A small window is multiplied by four, a larger one
/// by two.
fn next_size(size: u64, most: u64) -> u64 {
    let next = if size < most / 16 { 4 * size } else { 2 * size };
    next.min(most)
}

/// Checks `read_ahead_kb` and returns it in pages.
fn pages_of(read_ahead_kb: u64) -> Result<u64, ConfigError> {
    if read_ahead_kb > 1 << 20 {
        let message = format!("found {read_ahead_kb}; expected at most 1048576 (1 GiB)");
        return Err(ConfigError::new("read_ahead_kb", message));
    }
    Ok(read_ahead_kb / 4)
}

/// `VM_MAX_READAHEAD`, `VM_READAHEAD_PAGES`: 128 KiB in every kernel since 2.6.0.
fn read_ahead_kb() -> u64 {
    128
}
