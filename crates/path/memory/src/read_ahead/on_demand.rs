//! `on-demand`: Linux 2.6.23 to 2.6.30, `ondemand_readahead` of `mm/readahead.c` (Wu Fengguang). A
//! file has one window with `start` and `size`. The first of the last `async_size` pages of the
//! window has a mark (`PG_readahead`). A reader at the mark opens the next window. A sequential
//! reader at a missing page opens a new window.
//!
//! Left out: congestion of the device's queue, which delays windows.

use super::{
    PagePresence, ReadAhead, ReadAheadPlan, ReadAheadQuery, initial_size, next_size, pages_of,
    read_ahead_kb, state_of,
};
use crate::run::PAGE_BYTES;
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) const SUMMARY: &str =
    "Linux 2.6.23's: a window on a sequential miss, the next at a marked page";

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Config {
    /// Longest window in KiB; default 128. 0 turns read-ahead off.
    #[serde(default = "read_ahead_kb")]
    read_ahead_kb: u64,
}

/// `struct file_ra_state`.
#[derive(Clone, Copy, Debug, Default)]
struct ReadAheadState {
    start: u64,
    size: u64,
    async_size: u64,
    /// Last page of the last read (`prev_pos`); none before the first read, as if a read had ended
    /// just before the file.
    previous: Option<u64>,
}

struct OnDemand {
    most: u64,
    files: Vec<ReadAheadState>,
}

pub(super) fn build(keys: &Keys) -> Result<Box<dyn ReadAhead>, ConfigError> {
    let Config { read_ahead_kb } = read(keys)?;
    Ok(Box::new(OnDemand {
        most: pages_of(read_ahead_kb)?,
        files: Vec::new(),
    }))
}

impl ReadAheadState {
    /// True if the page is the last page of the last read, or the one after.
    fn follows(&self, index: u64) -> bool {
        match self.previous {
            Some(previous) => index.wrapping_sub(previous) <= 1,
            None => index == 0,
        }
    }

    /// Opens the window of the fields (`ra_submit`).
    fn submit(&mut self, ask: &ReadAheadQuery<'_>, plan: &mut ReadAheadPlan) {
        self.size = ask.clipped(self.start, self.size);
        self.async_size = self.async_size.min(self.size);
        let mark = self.start + self.size - self.async_size;
        plan.read(self.start, self.size, (self.async_size > 0).then_some(mark));
    }
}

impl ReadAhead for OnDemand {
    fn opened(&mut self, file: u32) {
        *state_of(&mut self.files, file) = ReadAheadState::default();
    }

    fn ask(&mut self, ask: &ReadAheadQuery<'_>, plan: &mut ReadAheadPlan) {
        let (most, state) = (self.most, state_of(&mut self.files, ask.file));
        let marked = ask.found == PagePresence::Marked;
        if most == 0 || !(marked || ask.found == PagePresence::Absent) {
            return;
        }
        let index = ask.index;
        let expected = [
            state.start + state.size - state.async_size,
            state.start + state.size,
        ];
        if index != 0 && expected.contains(&index) {
            // The expected call: the window moves forward and grows.
            state.start += state.size;
            state.size = next_size(state.size, most);
            state.async_size = state.size;
        } else if marked {
            // A mark without its window, for example if several readers share a file. The number of
            // held pages after the mark tells the size of its window.
            let hole = ask.pages.next_hole(ask.object, index, most + 1);
            if hole - index > most {
                return;
            }
            state.start = hole;
            state.size = next_size(hole - index, most);
            state.async_size = state.size;
        } else if state.follows(index) || ask.wanted > most {
            state.start = index;
            state.size = initial_size(ask.wanted, most);
            state.async_size = if state.size > ask.wanted {
                state.size - ask.wanted
            } else {
                state.size
            };
        } else {
            // A small read out of sequence: only its pages are read, and the window stays.
            plan.read(index, ask.wanted, None);
            return;
        }
        state.submit(ask, plan);
    }

    fn ended(&mut self, file: u32, offset: u64, bytes: u64) {
        // do_generic_mapping_read stores the last page from which it copied.
        state_of(&mut self.files, file).previous = Some((offset + bytes.max(1) - 1) / PAGE_BYTES);
    }
}

#[cfg(test)]
mod tests {
    use crate::read_ahead::tables::TableReader;

    #[test]
    fn pages_in_sequence() {
        // First window: 1 page <= 32 / 32, times four. Then 4 is not below 32 / 16: times two.
        let mut reader = TableReader::new("on-demand", 1000);
        reader.reads((0..33).map(|page| (page, 1)));
        reader.expect(&[
            (0, 0, 4, 1),
            (1, 4, 8, 4),
            (4, 12, 16, 12),
            (12, 28, 32, 28),
            (28, 60, 32, 60),
        ]);
    }

    #[test]
    fn reads_of_64_kib_in_sequence() {
        // 16 pages > 32 / 4: the longest window at once, with 16 of its pages ahead.
        let mut reader = TableReader::new("on-demand", 1000);
        reader.reads((0..4).map(|piece| (piece * 16, 16)));
        reader.expect(&[(0, 0, 32, 16), (16, 32, 32, 32), (32, 64, 32, 64)]);
    }

    #[test]
    fn reads_longer_than_the_window() {
        // 64 > 32: the whole window is ahead, so the mark is at its first page. The reader meets
        // the mark at once.
        let mut reader = TableReader::new("on-demand", 1000);
        reader.reads([(100, 64)]);
        reader.expect(&[
            (100, 100, 32, 100),
            (100, 132, 32, 132),
            (132, 164, 32, 164),
        ]);
    }

    #[test]
    fn reads_at_random() {
        let mut reader = TableReader::new("on-demand", 1000);
        reader.reads([(500, 1), (300, 4), (700, 2)]);
        reader.expect(&[(500, 500, 1, 0), (300, 300, 4, 0), (700, 700, 2, 0)]);
    }

    #[test]
    fn sequence_resumes_at_the_second_page_of_a_row() {
        let mut reader = TableReader::new("on-demand", 1000);
        reader.reads([(500, 1), (501, 1), (502, 1)]);
        reader.expect(&[(500, 500, 1, 0), (501, 501, 4, 502), (502, 505, 8, 505)]);
    }

    #[test]
    fn two_readers_of_one_open_file_find_their_windows_by_the_marks() {
        let mut reader = TableReader::new("on-demand", 4000);
        reader.reads([(0, 1), (2000, 1), (1, 1), (2001, 1), (2, 1), (2002, 1)]);
        reader.expect(&[
            (0, 0, 4, 1),
            (2000, 2000, 1, 0),
            // The state is still that of the first window.
            (1, 4, 8, 4),
            // Page 2001 is absent, and the last read was of page 1: a small random read.
            (2001, 2001, 1, 0),
            (2002, 2002, 1, 0),
        ]);
    }

    #[test]
    fn a_window_ends_at_the_end_of_the_file() {
        let mut reader = TableReader::new("on-demand", 10);
        reader.reads((0..10).map(|page| (page, 1)));
        // The reader of pages cuts the window of 8 from page 4, not the rule.
        reader.expect(&[(0, 0, 4, 1), (1, 4, 8, 4), (4, 12, 16, 12)]);
    }

    #[test]
    fn a_window_that_is_clipped_goes_on_from_where_it_was_cut() {
        let mut reader = TableReader::new("on-demand", 1000).clipped_at(10);
        reader.reads((0..12).map(|page| (page, 1)));
        reader.expect(&[
            (0, 0, 4, 1),
            (1, 4, 6, 4),
            (4, 10, 10, 10),
            (10, 20, 10, 20),
        ]);
    }
}
