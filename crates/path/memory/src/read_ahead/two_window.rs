//! `two-window`: Linux 2.6.12 to 2.6.22, `page_cache_readahead` of
//! `mm/readahead.c`. A file has a current window and one ahead of it; when the
//! reader enters the one ahead, that becomes the current one and the next is
//! opened. A read out of sequence turns it off until two reads follow each other.
//!
//! Left out: congestion of the device's queue, which puts windows off.

use super::{
    Ask, Found, Plan, ReadAhead, initial_size, next_size, pages_of, read_ahead_kb, state_of,
};
use crate::run::Run;
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) const SUMMARY: &str = "Linux 2.6's up to 2.6.22: a current window and one ahead";

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Config {
    /// The longest window in KiB; default 128. 0 turns read-ahead off.
    #[serde(default = "read_ahead_kb")]
    read_ahead_kb: u64,
}

/// `VM_MIN_READAHEAD`, 16 KiB: windows that are lost before they are used shrink no
/// further.
const LEAST: u64 = 4;
/// `VM_MAX_CACHE_HIT`: so many pages in a row that need not be read turn it off.
const HITS_MOST: u64 = 256;

/// `struct file_ra_state`.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    start: u64,
    size: u64,
    ahead_start: u64,
    ahead_size: u64,
    /// The last page that was taken care of (`prev_page`); none: as if it were the
    /// one before the file.
    previous: Option<u64>,
    /// `RA_FLAG_MISS`: a page was lost before it was used.
    miss: bool,
    /// `RA_FLAG_INCACHE`: the file is held anyway.
    in_cache: bool,
    hits: u64,
}

struct TwoWindow {
    most: u64,
    files: Vec<State>,
}

pub(super) fn build(keys: &Keys) -> Result<Box<dyn ReadAhead>, ConfigError> {
    let Config { read_ahead_kb } = read(keys)?;
    Ok(Box::new(TwoWindow {
        most: pages_of(read_ahead_kb)?,
        files: Vec::new(),
    }))
}

impl State {
    fn off(&mut self) {
        *self = State {
            previous: self.previous,
            miss: self.miss,
            ..State::default()
        };
    }

    /// `blockable_page_cache_readahead` and `check_ra_success`: whether read-ahead
    /// stays on. It counts pages in a row that were held already.
    fn submit(&mut self, ask: &Ask<'_>, plan: &mut Plan, first: u64, pages: u64) -> bool {
        plan.read(first, pages, None);
        let within = pages.min(ask.size.saturating_sub(first));
        if ask.pages.absent(Run::new(ask.object, first, within)) > 0 {
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

    /// `get_next_ra_size`: shorter by two pages where pages were lost.
    fn next(&mut self, most: u64) -> u64 {
        if std::mem::take(&mut self.miss) {
            return self.size.saturating_sub(2).max(LEAST).min(most);
        }
        next_size(self.size, most)
    }

    /// `make_ahead_window`.
    fn look_ahead(&mut self, ask: &Ask<'_>, plan: &mut Plan, most: u64, force: bool) -> bool {
        let size = self.next(most);
        self.ahead_start = self.start + self.size;
        self.ahead_size = ask.clipped(self.ahead_start, size);
        let on = self.submit(ask, plan, self.ahead_start, self.ahead_size);
        if !on && !force {
            (self.ahead_start, self.ahead_size) = (0, 0);
        }
        on
    }

    /// `page_cache_readahead`; answers the page from which on it is to be asked
    /// again.
    fn advance(&mut self, ask: &Ask<'_>, plan: &mut Plan, most: u64) -> u64 {
        let (mut index, mut wanted) = (ask.index, ask.wanted);
        // A read that begins in the page that the last one ended in goes on behind it.
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

    /// The reads have been in sequence for a while: the part of
    /// `page_cache_readahead` that moves the windows. Answers the last page that is
    /// taken care of.
    fn go_on(&mut self, ask: &Ask<'_>, plan: &mut Plan, most: u64, last: u64) -> u64 {
        // What lies behind the window ahead is not taken care of.
        let within =
            |state: &State| last.min((state.ahead_start + state.ahead_size).saturating_sub(1));
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
        *state_of(&mut self.files, file) = State::default();
    }

    fn watches(&self) -> bool {
        true
    }

    fn ask(&mut self, ask: &Ask<'_>, plan: &mut Plan) {
        let (most, state) = (self.most, state_of(&mut self.files, ask.file));
        if ask.due {
            plan.again = state.advance(ask, plan, most).max(ask.index + 1);
        }
        let read = |window: &super::Window| {
            window.first <= ask.index && ask.index < window.first + window.pages
        };
        if ask.found == Found::Absent && !plan.windows().iter().any(read) {
            // handle_ra_miss: it was read ahead, and lost.
            (state.miss, state.in_cache, state.hits) = (true, false, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::read_ahead::tables::Reader;

    #[test]
    fn pages_in_sequence() {
        // 4 at once; the next read opens 8 ahead of them; then a window is opened as
        // its predecessor is entered.
        let mut reader = Reader::new("two-window", 1000);
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
        // 4 pages <= 32 / 4: twofold.
        let mut reader = Reader::new("two-window", 1000);
        reader.reads((0..6).map(|piece| (piece * 4, 4)));
        reader.expect(&[(0, 0, 8, 0), (4, 8, 16, 0), (8, 24, 32, 0)]);
    }

    #[test]
    fn a_read_as_long_as_the_window_opens_the_one_ahead_at_once() {
        let mut reader = Reader::new("two-window", 1000);
        reader.reads([(0, 64)]);
        // At page 32 the window ahead is entered, and its successor opened.
        reader.expect(&[(0, 0, 32, 0), (0, 32, 32, 0), (32, 64, 32, 0)]);
    }

    #[test]
    fn reads_at_random() {
        let mut reader = Reader::new("two-window", 1000);
        reader.reads([(500, 1), (300, 4), (700, 2)]);
        reader.expect(&[(500, 500, 1, 0), (300, 300, 4, 0), (700, 700, 2, 0)]);
    }

    #[test]
    fn sequence_resumes_at_the_second_read_of_a_row() {
        let mut reader = Reader::new("two-window", 1000);
        reader.reads([(500, 1), (501, 1), (502, 1)]);
        reader.expect(&[(500, 500, 1, 0), (501, 501, 4, 0), (502, 505, 8, 0)]);
    }

    #[test]
    fn a_file_that_is_held_is_read_ahead_no_more_after_256_pages() {
        let mut reader = Reader::new("two-window", 1000).holding(0, 400);
        reader.reads((0..401).map(|page| (page, 1)));
        // 4 + 8 + 16 + 32 * 8 pages that were held turn it off; the miss at page 400
        // turns it on again, and is read alone.
        let windows: Vec<u64> = reader.seen().iter().map(|window| window.2).collect();
        assert_eq!(windows[..4], [4, 8, 16, 32]);
        assert_eq!(windows.iter().sum::<u64>(), 4 + 8 + 16 + 32 * 8);
    }
}
