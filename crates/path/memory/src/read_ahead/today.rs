//! `today`: Linux 6.16 and later, `page_cache_sync_ra` and `page_cache_async_ra` of
//! `mm/readahead.c`. As `on-demand`, with four differences:
//!
//! - A read from the first page always opens a window.
//! - A miss out of sequence looks at the held pages before it (context read-ahead, since 2.6.31).
//! - A read longer than the window may open a window as long as a request to the device.
//! - Windows ahead end where a large folio would end.
//!
//! Left out: mapped files, `MADV_HUGEPAGE`, congested cgroups, and the extra pages of folios that
//! exceed the end of a window.

use super::{
    PagePresence, ReadAhead, ReadAheadPlan, ReadAheadQuery, initial_size, next_size, pages_of,
    read_ahead_kb, state_of,
};
use crate::run::PAGE_BYTES;
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) const SUMMARY: &str = "Linux 6.16's: a window on a miss, as long as the run of cached pages before the miss suggests; the next window at a marked page";

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Config {
    /// Longest window in KiB; default 128. 0 turns read-ahead off.
    #[serde(default = "read_ahead_kb")]
    read_ahead_kb: u64,
    /// Longest request of the device in KiB; default 1280. A window grows up to this length for a
    /// read longer than `read_ahead_kb`.
    #[serde(default = "max_sectors_kb")]
    max_sectors_kb: u64,
    /// True if the file system has large folios, as ext4 and xfs do; default true. Windows ahead
    /// then end at multiples of a growing power of two.
    #[serde(default = "yes")]
    large_folios: bool,
}

// BLK_DEF_MAX_SECTORS_CAP: 2560 sectors.
fn max_sectors_kb() -> u64 {
    1280
}

fn yes() -> bool {
    true
}

/// The largest folio, in powers of two of a page: 2 MiB.
const ORDER_MOST: u32 = 9;

/// `struct file_ra_state`.
#[derive(Clone, Copy, Debug, Default)]
struct ReadAheadState {
    start: u64,
    size: u64,
    async_size: u64,
    /// Size of folios, as a power of two.
    order: u32,
    /// Byte after the last read (`prev_pos`).
    previous: Option<u64>,
}

struct CurrentReadAhead {
    most: u64,
    request: u64,
    large_folios: bool,
    files: Vec<ReadAheadState>,
}

pub(super) fn build(keys: &Keys) -> Result<Box<dyn ReadAhead>, ConfigError> {
    let Config {
        read_ahead_kb,
        max_sectors_kb,
        large_folios,
    } = read(keys)?;
    if max_sectors_kb < 4 {
        let message = format!("found {max_sectors_kb}; expected at least 4, a page");
        return Err(ConfigError::new("max_sectors_kb", message));
    }
    let most = pages_of(read_ahead_kb)?;
    Ok(Box::new(CurrentReadAhead {
        most,
        request: max_sectors_kb / 4,
        large_folios,
        files: Vec::new(),
    }))
}

impl CurrentReadAhead {
    /// `ractl_max_pages`.
    fn most_for(&self, wanted: u64) -> u64 {
        if wanted > self.most && self.request > self.most {
            wanted.min(self.request)
        } else {
            self.most
        }
    }

    /// Handles a missing page: `page_cache_sync_ra`.
    fn missed(&mut self, ask: &ReadAheadQuery<'_>, plan: &mut ReadAheadPlan) {
        let (index, wanted, most) = (ask.index, ask.wanted, self.most_for(ask.wanted));
        let state = state_of(&mut self.files, ask.file);
        // prev_pos is the byte after the last one: a page after a gap of one page is in sequence
        // too.
        let follows = state
            .previous
            .is_some_and(|byte| index.wrapping_sub(byte / PAGE_BYTES) <= 1);
        if index == 0 || wanted > most || follows {
            state.start = index;
            state.size = initial_size(wanted, most);
            state.async_size = if state.size > wanted {
                state.size - wanted
            } else {
                state.size / 2
            };
        } else {
            let held = ask.pages.held_before(ask.object, index, most);
            if held <= wanted {
                plan.read(index, wanted, None);
                return;
            }
            // Pages held from the first page of the file on are the sign of a long stream.
            let twice = if held == index { 2 } else { 1 };
            state.start = index;
            state.size = (held * twice + wanted).min(most);
            state.async_size = 1;
        }
        state.order = 0;
        self.submit(ask, plan);
    }

    /// Handles the mark: `page_cache_async_ra`.
    fn marked(&mut self, ask: &ReadAheadQuery<'_>, plan: &mut ReadAheadPlan) {
        let (index, most) = (ask.index, self.most_for(ask.wanted));
        let state = state_of(&mut self.files, ask.file);
        if index == state.start + state.size - state.async_size {
            state.start += state.size;
            state.size = next_size(state.size, most).max(state.size);
        } else {
            let hole = ask.pages.next_hole(ask.object, index + 1, most);
            if hole - index > most {
                return;
            }
            state.start = hole;
            state.size = next_size(hole - index + ask.wanted, most);
        }
        // Folios grow by a factor of four from window to window.
        state.order += 2;
        let align = 1 << state.order.min(most.trailing_zeros());
        // A window up to the boundary of a folio ends without a short folio.
        let aligned_end = (state.start + state.size) / align * align;
        if aligned_end > state.start {
            state.size = aligned_end - state.start;
        }
        state.async_size = state.size;
        self.submit(ask, plan);
    }

    /// Opens the window: `page_cache_ra_order`.
    fn submit(&mut self, ask: &ReadAheadQuery<'_>, plan: &mut ReadAheadPlan) {
        let large_folios = self.large_folios;
        let state = state_of(&mut self.files, ask.file);
        state.size = ask.clipped(state.start, state.size);
        state.async_size = state.async_size.min(state.size);
        state.order = if large_folios {
            state.order.min(ORDER_MOST).min(state.size.ilog2())
        } else {
            0
        };
        let mark = state.start + state.size - state.async_size;
        plan.read(
            state.start,
            state.size,
            (state.async_size > 0).then_some(mark),
        );
    }
}

impl ReadAhead for CurrentReadAhead {
    fn opened(&mut self, file: u32) {
        *state_of(&mut self.files, file) = ReadAheadState::default();
    }

    fn ask(&mut self, ask: &ReadAheadQuery<'_>, plan: &mut ReadAheadPlan) {
        match ask.found {
            _ if self.most == 0 => {}
            PagePresence::Absent => self.missed(ask, plan),
            PagePresence::Marked => self.marked(ask, plan),
            PagePresence::Reading | PagePresence::Held => {}
        }
    }

    fn ended(&mut self, file: u32, offset: u64, bytes: u64) {
        state_of(&mut self.files, file).previous = Some(offset + bytes);
    }
}

#[cfg(test)]
mod tests {
    use crate::read_ahead::tables::TableReader;

    #[test]
    fn pages_in_sequence() {
        let mut reader = TableReader::new("today", 1000);
        reader.reads((0..97).map(|page| (page, 1)));
        reader.expect(&[
            (0, 0, 4, 1),
            // Order 2: the window ends at a multiple of 4.
            (1, 4, 8, 4),
            // 16 pages would end at 28. Order 4: the window ends at 16.
            (4, 12, 4, 12),
            // 24 is no multiple of 16. But 16 is not after the start, so the end stays.
            (12, 16, 8, 16),
            // Order 5: the end at 40 becomes 32.
            (16, 24, 8, 24),
            (24, 32, 16, 32),
            // The end at 80 becomes 64.
            (32, 48, 16, 48),
            (48, 64, 32, 64),
            (64, 96, 32, 96),
            (96, 128, 32, 128),
        ]);
    }

    #[test]
    fn pages_in_sequence_without_large_folios() {
        let keys = [("large_folios", serde_json::json!(false))];
        let mut reader = TableReader::with("today", &keys, 1000);
        reader.reads((0..29).map(|page| (page, 1)));
        reader.expect(&[
            (0, 0, 4, 1),
            (1, 4, 8, 4),
            (4, 12, 16, 12),
            (12, 28, 32, 28),
            (28, 60, 32, 60),
        ]);
    }

    #[test]
    fn a_read_as_long_as_the_window_marks_its_middle() {
        let mut reader = TableReader::new("today", 1000);
        reader.reads([(0, 32), (32, 32)]);
        reader.expect(&[(0, 0, 32, 16), (16, 32, 32, 32), (32, 64, 32, 64)]);
    }

    #[test]
    fn a_longer_read_may_open_a_window_as_long_as_a_request() {
        // 64 pages <= 1280 KiB: the window has 64 pages. 400 pages exceed the 320 of a request, so
        // the window has 320 pages, and its second half is ahead. The next windows are not shorter.
        // They end at multiples of 4, and then of 16, the largest power of two that 80 pages allow.
        let mut reader = TableReader::new("today", 2000);
        reader.reads([(100, 64), (800, 400)]);
        reader.expect(&[
            (100, 100, 64, 0),
            (800, 800, 320, 960),
            (960, 1120, 320, 1120),
            (1120, 1440, 320, 1440),
        ]);
    }

    #[test]
    fn reads_at_random() {
        let mut reader = TableReader::new("today", 1000);
        reader.reads([(500, 1), (300, 4), (700, 2)]);
        reader.expect(&[(500, 500, 1, 0), (300, 300, 4, 0), (700, 700, 2, 0)]);
    }

    #[test]
    fn a_page_that_is_left_out_is_in_sequence() {
        // The last read ended after page 500: 502 - 501 <= 1.
        let mut reader = TableReader::new("today", 1000);
        reader.reads([(500, 1), (502, 1), (505, 1)]);
        reader.expect(&[(500, 500, 1, 0), (502, 502, 4, 503)]);
    }

    #[test]
    fn a_miss_behind_pages_that_are_held_looks_back() {
        // Three pages before 103 are held, from reads out of sequence. The window has these three
        // and the requested page.
        let mut reader = TableReader::new("today", 1000);
        reader.reads([(100, 3), (600, 1), (103, 1)]);
        reader.expect(&[(100, 100, 3, 0), (600, 600, 1, 0), (103, 103, 4, 106)]);
    }

    #[test]
    fn what_is_held_from_the_first_page_counts_twice() {
        let mut reader = TableReader::new("today", 1000).holding(0, 5);
        reader.reads([(900, 1), (5, 1)]);
        reader.expect(&[(900, 900, 1, 0), (5, 5, 11, 15)]);
    }

    #[test]
    fn two_readers_of_one_open_file_find_their_windows_by_the_marks() {
        let mut reader = TableReader::new("today", 4000).holding(2000, 6);
        // One window opens from 2006 by looking back, and one from 0. Then the reader meets the
        // mark of the first window, whose state is gone.
        reader.reads([(2006, 1), (0, 1), (2012, 1)]);
        reader.expect(&[
            (2006, 2006, 7, 2012),
            (0, 0, 4, 1),
            // The hole is 2013. The size is 1 page plus the 1 requested, times two, because 2 < 32
            // / 16 is false. The window ends at a multiple of 4.
            (2012, 2013, 3, 2013),
        ]);
    }
}
