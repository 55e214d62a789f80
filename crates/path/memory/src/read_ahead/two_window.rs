//! `two-window`: Linux 2.6.12 to 2.6.22, `page_cache_readahead` of `mm/readahead.c`. A file has a
//! current window and one ahead. When the reader enters the window ahead, it becomes the current
//! one, and the next window opens. A read out of sequence turns read-ahead off until two reads are
//! in sequence again.
//!
//! Left out: congestion of the device's queue, which delays windows.

use super::{
    PagePresence, ReadAhead, ReadAheadPlan, ReadAheadQuery, initial_size, next_size, pages_of,
    read_ahead_kb, state_of,
};
use crate::run::PageRun;
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) const SUMMARY: &str = "Linux 2.6's up to 2.6.22: a current window and one ahead";

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Config {
    /// Longest window in KiB; default 128. 0 turns read-ahead off.
    #[serde(default = "read_ahead_kb")]
    read_ahead_kb: u64,
}

/// `VM_MIN_READAHEAD`, 16 KiB: the smallest window after pages were lost before their use.
const LEAST: u64 = 4;
/// `VM_MAX_CACHE_HIT`: limit of held pages in a row; read-ahead is turned off there.
const HITS_MOST: u64 = 256;

/// `struct file_ra_state`.
#[derive(Clone, Copy, Debug, Default)]
struct ReadAheadState {
    start: u64,
    size: u64,
    ahead_start: u64,
    ahead_size: u64,
    /// Last page handled by read-ahead (`prev_page`); none before the first read, as for a page
    /// just before the file.
    previous: Option<u64>,
    /// `RA_FLAG_MISS`: a page was lost before its use.
    miss: bool,
    /// `RA_FLAG_INCACHE`: the file is in the cache anyway.
    in_cache: bool,
    hits: u64,
}

struct TwoWindow {
    most: u64,
    files: Vec<ReadAheadState>,
}

pub(super) fn build(keys: &Keys) -> Result<Box<dyn ReadAhead>, ConfigError> {
    let Config { read_ahead_kb } = read(keys)?;
    Ok(Box::new(TwoWindow {
        most: pages_of(read_ahead_kb)?,
        files: Vec::new(),
    }))
}

impl ReadAheadState {
    fn off(&mut self) {
        *self = ReadAheadState {
            previous: self.previous,
            miss: self.miss,
            ..ReadAheadState::default()
        };
    }

    /// Opens a window: `blockable_page_cache_readahead` and `check_ra_success`. Counts the held
    /// pages in a row. Returns true if read-ahead stays on.
    fn submit(
        &mut self,
        ask: &ReadAheadQuery<'_>,
        plan: &mut ReadAheadPlan,
        first: u64,
        pages: u64,
    ) -> bool {
        plan.read(first, pages, None);
        let within = pages.min(ask.size.saturating_sub(first));
        if ask.pages.absent(PageRun::new(ask.object, first, within)) > 0 {
            self.hits = 0;
            return true;
        }
        self.hits += pages;
        if self.hits < HITS_MOST {
            return true;
        }
        self.off();
        self.in_cache = true;
        false
    }

    /// Returns the next window: `get_next_ra_size`. After lost pages the window shrinks by two
    /// pages.
    fn next(&mut self, most: u64) -> u64 {
        if std::mem::take(&mut self.miss) {
            return self.size.saturating_sub(2).max(LEAST).min(most);
        }
        next_size(self.size, most)
    }

    /// Opens the window ahead: `make_ahead_window`.
    fn look_ahead(
        &mut self,
        ask: &ReadAheadQuery<'_>,
        plan: &mut ReadAheadPlan,
        most: u64,
        force: bool,
    ) -> bool {
        let size = self.next(most);
        self.ahead_start = self.start + self.size;
        self.ahead_size = ask.clipped(self.ahead_start, size);
        let on = self.submit(ask, plan, self.ahead_start, self.ahead_size);
        // With `force` the read is longer than the window, so it needs the pages ahead in any case.
        if !on && !force {
            (self.ahead_start, self.ahead_size) = (0, 0);
        }
        on
    }

    /// Handles a read: `page_cache_readahead`. Returns the next page for a question.
    fn advance(&mut self, ask: &ReadAheadQuery<'_>, plan: &mut ReadAheadPlan, most: u64) -> u64 {
        let (mut index, mut wanted) = (ask.index, ask.wanted);
        // A read that begins in the last page of the previous read counts from the next page.
        if self.previous == Some(index) {
            wanted -= 1;
            index += u64::from(wanted > 0);
        }
        let sequential = self
            .previous
            .map_or(index == 0, |previous| index == previous + 1);
        let size = wanted.min(most);
        self.previous = Some(index);
        if size == 0 || self.in_cache {
            return index + 1;
        }
        let mut last = index + size - 1;
        self.previous = Some(last);
        if sequential && self.size == 0 {
            self.start = index;
            self.size = ask.clipped(index, initial_size(size, most));
            if self.submit(ask, plan, index, self.size) && wanted >= most {
                self.look_ahead(ask, plan, most, true);
            }
        } else if !sequential {
            self.off();
            self.submit(ask, plan, index, size);
        } else {
            last = self.go_on(ask, plan, most, last);
            self.previous = Some(last);
        }
        last + 1
    }

    /// Moves the windows of reads in sequence: this part of `page_cache_readahead`. Returns the
    /// last handled page.
    fn go_on(
        &mut self,
        ask: &ReadAheadQuery<'_>,
        plan: &mut ReadAheadPlan,
        most: u64,
        last: u64,
    ) -> u64 {
        // Pages after the window ahead are not handled yet.
        let within = |state: &ReadAheadState| {
            last.min((state.ahead_start + state.ahead_size).saturating_sub(1))
        };
        if self.ahead_start == 0 && !self.look_ahead(ask, plan, most, false) {
            return within(self);
        }
        if last >= self.ahead_start {
            (self.start, self.size) = (self.ahead_start, self.ahead_size);
            self.look_ahead(ask, plan, most, false);
            return within(self);
        }
        last
    }
}

impl ReadAhead for TwoWindow {
    fn opened(&mut self, file: u32) {
        *state_of(&mut self.files, file) = ReadAheadState::default();
    }

    fn watches(&self) -> bool {
        true
    }

    fn ask(&mut self, ask: &ReadAheadQuery<'_>, plan: &mut ReadAheadPlan) {
        let (most, state) = (self.most, state_of(&mut self.files, ask.file));
        if ask.due {
            plan.again = state.advance(ask, plan, most).max(ask.index + 1);
        }
        let read = |window: &super::PageWindow| {
            window.first <= ask.index && ask.index < window.first + window.pages
        };
        if ask.found == PagePresence::Absent && !plan.windows().iter().any(read) {
            // handle_ra_miss: the page was read ahead and lost.
            (state.miss, state.in_cache, state.hits) = (true, false, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::read_ahead::tables::TableReader;

    #[test]
    fn pages_in_sequence() {
        // 4 pages at once. The next read opens 8 pages ahead. Then each window opens when its
        // predecessor is entered.
        let mut reader = TableReader::new("two-window", 1000);
        reader.reads((0..30).map(|page| (page, 1)));
        reader.expect(&[
            (0, 0, 4, 0),
            (1, 4, 8, 0),
            (4, 12, 16, 0),
            (12, 28, 32, 0),
            (28, 60, 32, 0),
        ]);
    }

    #[test]
    fn reads_of_16_kib_in_sequence() {
        // 4 pages <= 32 / 4: times two.
        let mut reader = TableReader::new("two-window", 1000);
        reader.reads((0..6).map(|piece| (piece * 4, 4)));
        reader.expect(&[(0, 0, 8, 0), (4, 8, 16, 0), (8, 24, 32, 0)]);
    }

    #[test]
    fn a_read_as_long_as_the_window_opens_the_one_ahead_at_once() {
        let mut reader = TableReader::new("two-window", 1000);
        reader.reads([(0, 64)]);
        // At page 32 the reader enters the window ahead, and the next one opens.
        reader.expect(&[(0, 0, 32, 0), (0, 32, 32, 0), (32, 64, 32, 0)]);
    }

    #[test]
    fn reads_at_random() {
        let mut reader = TableReader::new("two-window", 1000);
        reader.reads([(500, 1), (300, 4), (700, 2)]);
        reader.expect(&[(500, 500, 1, 0), (300, 300, 4, 0), (700, 700, 2, 0)]);
    }

    #[test]
    fn sequence_resumes_at_the_second_read_of_a_row() {
        let mut reader = TableReader::new("two-window", 1000);
        reader.reads([(500, 1), (501, 1), (502, 1)]);
        reader.expect(&[(500, 500, 1, 0), (501, 501, 4, 0), (502, 505, 8, 0)]);
    }

    #[test]
    fn a_file_that_is_held_is_read_ahead_no_more_after_256_pages() {
        let mut reader = TableReader::new("two-window", 1000).holding(0, 400);
        reader.reads((0..401).map(|page| (page, 1)));
        // 4 + 8 + 16 + 32 * 8 held pages turn read-ahead off. The miss at page 400 turns it on
        // again and reads one page.
        let windows: Vec<u64> = reader.seen().iter().map(|window| window.2).collect();
        assert_eq!(windows[..4], [4, 8, 16, 32]);
        assert_eq!(windows.iter().sum::<u64>(), 4 + 8 + 16 + 32 * 8);
    }
}
