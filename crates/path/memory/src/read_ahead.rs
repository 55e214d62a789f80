//! Read-ahead: what a read of a file brings beside what it asks for.
//!
//! A generation of kernels is one file: a type that implements [`ReadAhead`] and
//! keeps its state of each open file, its keys, its table of expected windows,
//! and one line in [`REGISTRY`].
//!
//! | file | what |
//! |---|---|
//! | `v2_4.rs` | Linux 2.4: `generic_file_readahead` |
//! | `two_window.rs` | to 2.6.22: a current window and one ahead |
//! | `on_demand.rs` | 2.6.23 to 2.6.30: on a miss, and at a marked page |
//! | `today.rs` | 6.16 and later: the same, with context and aligned ends |
//! | `none.rs` | nothing beside the pages that are missing |
//! | `tables.rs` | a reader to hold the tables of expected windows against |

mod none;
mod on_demand;
mod today;
mod two_window;
mod v2_4;

#[cfg(test)]
mod tables;

use crate::pages::Pages;
use fullstroke_contract::registry::{Entry, Keys, schema_of};
use fullstroke_contract::{ConfigError, Object};

/// Pages of a file at which windows end early, such as those where another track
/// begins: the next few from where a read is, ascending. Who knows how a file lies
/// says them with each read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cuts([u64; Cuts::MOST]);

impl Cuts {
    /// So many are known at most: a window that is open ends at the first, the next at
    /// the second, and a read may begin before the end of what it has asked for.
    pub const MOST: usize = 4;
    /// Windows end where they would.
    pub const NONE: Cuts = Cuts([u64::MAX; Cuts::MOST]);

    /// The first of these.
    pub fn of(pages: impl Iterator<Item = u64>) -> Cuts {
        let mut cuts = Cuts::NONE;
        cuts.0
            .iter_mut()
            .zip(pages)
            .for_each(|(cut, page)| *cut = page);
        cuts
    }

    /// How many of the pages of a window are read, from its first on. The first
    /// `wanted` of them are no read-ahead.
    fn clip(&self, first: u64, pages: u64, wanted: u64) -> u64 {
        let next = self.0.iter().find(|&&cut| cut > first);
        next.map_or(pages, |cut| (cut - first).max(wanted).min(pages))
    }
}

impl Default for Cuts {
    fn default() -> Cuts {
        Cuts::NONE
    }
}

/// What the reader has come upon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The page is not held.
    Absent,
    /// It is being read.
    Reading,
    /// It is held and has the mark, which is taken off it now.
    Marked,
    /// It is held.
    Held,
}

/// Why read-ahead is asked.
pub struct Ask<'a> {
    /// The open file.
    pub file: u32,
    /// Its object.
    pub object: Object,
    /// The page that the reader is at.
    pub index: u64,
    /// Pages that it still wants, this one included.
    pub wanted: u64,
    /// What it has found there.
    pub found: Found,
    /// Whether it is at the page from which on the last answer said it was to be
    /// asked again, or at its first.
    pub due: bool,
    /// Pages that the object has.
    pub size: u64,
    /// What is held.
    pub pages: &'a Pages,
    /// Where windows end early.
    pub cuts: Cuts,
}

impl Ask<'_> {
    /// How long a window is when it has been cut: at the end of the object and
    /// where [`Cuts`] say.
    fn clipped(&self, first: u64, pages: u64) -> u64 {
        let wanted = (self.index + self.wanted).saturating_sub(first).min(pages);
        self.cuts.clip(first, pages, wanted)
    }
}

/// Pages that are to be read, as far as they are not held. What lies behind the
/// end of the object is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Window {
    /// The first page.
    pub first: u64,
    /// How many.
    pub pages: u64,
    /// The page that is marked, if it is not held already.
    pub mark: Option<u64>,
}

/// What a policy answers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plan {
    windows: [Window; 2],
    count: usize,
    /// The page from which on it wants to be asked again though the page is held.
    pub again: u64,
}

impl Plan {
    /// To be asked of absent and marked pages only.
    pub const NEVER: u64 = u64::MAX;

    pub(crate) fn clear(&mut self) {
        *self = Plan {
            again: Plan::NEVER,
            ..Plan::default()
        };
    }

    fn read(&mut self, first: u64, pages: u64, mark: Option<u64>) {
        self.windows[self.count] = Window { first, pages, mark };
        self.count += 1;
    }

    /// The windows, in the order in which they are read.
    pub fn windows(&self) -> &[Window] {
        &self.windows[..self.count]
    }
}

/// A generation of read-ahead, with its state of each open file.
pub trait ReadAhead: Send {
    /// A file has been opened; its number may be that of one that was closed.
    fn opened(&mut self, file: u32);

    /// Whether it is asked at the first page of each read, though it is held.
    fn watches(&self) -> bool {
        false
    }

    /// A read of `bytes` bytes at `offset` begins.
    fn begins(&mut self, _file: u32, _offset: u64, _bytes: u64) {}

    /// The reader is at a page that is absent, marked or being read, or at one
    /// where it was to ask again.
    fn ask(&mut self, ask: &Ask<'_>, plan: &mut Plan);

    /// The read that began at `offset` has got all its bytes.
    fn ended(&mut self, _file: u32, _offset: u64, _bytes: u64) {}
}

/// Builds a generation from its keys.
pub type BuildReadAhead = fn(&Keys) -> Result<Box<dyn ReadAhead>, ConfigError>;

/// Every generation. To add one: write its file, and add its `mod` and its line.
pub const REGISTRY: &[Entry<BuildReadAhead>] = &[
    Entry {
        name: "today",
        summary: today::SUMMARY,
        schema: schema_of::<today::Config>,
        build: today::build,
    },
    Entry {
        name: "on-demand",
        summary: on_demand::SUMMARY,
        schema: schema_of::<on_demand::Config>,
        build: on_demand::build,
    },
    Entry {
        name: "two-window",
        summary: two_window::SUMMARY,
        schema: schema_of::<two_window::Config>,
        build: two_window::build,
    },
    Entry {
        name: "2.4",
        summary: v2_4::SUMMARY,
        schema: schema_of::<v2_4::Config>,
        build: v2_4::build,
    },
    Entry {
        name: "none",
        summary: none::SUMMARY,
        schema: schema_of::<none::Config>,
        build: none::build,
    },
];

/// The state of a file, in a list by file number.
fn state_of<S: Clone + Default>(states: &mut Vec<S>, file: u32) -> &mut S {
    let file = file as usize;
    if states.len() <= file {
        states.resize(file + 1, S::default());
    }
    &mut states[file]
}

/// `get_init_ra_size` of `mm/readahead.c`, since 2.6.12: a power of two of at least
/// what is asked for, fourfold where that is small, twofold where it is not large.
fn initial_size(wanted: u64, most: u64) -> u64 {
    match wanted.next_power_of_two() {
        size if size <= most / 32 => size * 4,
        size if size <= most / 4 => size * 2,
        _ => most,
    }
}

/// `get_next_ra_size`: fourfold as long as it is small, then twofold.
fn next_size(size: u64, most: u64) -> u64 {
    let next = if size < most / 16 { 4 * size } else { 2 * size };
    next.min(most)
}

/// `read_ahead_kb` in pages, checked.
fn pages_of(read_ahead_kb: u64) -> Result<u64, ConfigError> {
    if read_ahead_kb > 1 << 20 {
        let message = format!("found {read_ahead_kb}; expected at most 1048576 (1 GiB)");
        return Err(ConfigError::new("read_ahead_kb", message));
    }
    Ok(read_ahead_kb / 4)
}

/// `VM_MAX_READAHEAD`, VM_READAHEAD_PAGES: 128 KiB in every kernel since 2.6.0.
fn read_ahead_kb() -> u64 {
    128
}
