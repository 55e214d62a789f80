//! `2.4`: Linux 2.4, `do_generic_file_read` and `generic_file_readahead` of `mm/filemap.c`. A file
//! has four fields:
//!
//! - `f_raend`: the page after the last page read ahead
//! - `f_ralen`: the number of pages of the last piece
//! - `f_rawin`: the number of pages of the whole window
//! - `f_ramax`: the largest number of pages of the next piece
//!
//! At a missing page outside the window, the reader waits, and the next pages are read too. At a
//! held page in the last piece, the next piece is read while the reader continues.
//!
//! The end of a file is assumed at the end of a page. Left out: `f_reada`, the unplugging of the
//! device.

use super::{PagePresence, ReadAhead, ReadAheadPlan, ReadAheadQuery, state_of};
use crate::run::PAGE_BYTES;
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) const SUMMARY: &str = "Linux 2.4's: the next pages together with a missing page, then piece by piece while the reader continues";

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Config {
    /// Largest number of pages read ahead at a time, beside the requested page
    /// (`vm.max-readahead`); default 31.
    #[serde(default = "max_readahead")]
    max_readahead: u64,
    /// Smallest number of pages read ahead for reads in sequence (`vm.min-readahead`); default 3.
    #[serde(default = "min_readahead")]
    min_readahead: u64,
}

fn max_readahead() -> u64 {
    31
}

fn min_readahead() -> u64 {
    3
}

/// The read-ahead fields of `struct file`.
#[derive(Clone, Copy, Debug, Default)]
struct ReadAheadState {
    end: u64,
    len: u64,
    window: u64,
    most: u64,
    /// `reada_ok` of the present read.
    in_sequence: bool,
}

struct V24 {
    most: u64,
    least: u64,
    files: Vec<ReadAheadState>,
}

pub(super) fn build(keys: &Keys) -> Result<Box<dyn ReadAhead>, ConfigError> {
    let Config {
        max_readahead,
        min_readahead,
    } = read(keys)?;
    if min_readahead > max_readahead {
        let message =
            format!("found {min_readahead}; expected at most max_readahead ({max_readahead})");
        return Err(ConfigError::new("min_readahead", message));
    }
    Ok(Box::new(V24 {
        most: max_readahead,
        least: min_readahead,
        files: Vec::new(),
    }))
}

impl ReadAheadState {
    /// Handles a missing page, or one being read. Inside the window only this page is read.
    /// Outside, the page is the first of a new window.
    fn must_wait(&mut self, ask: &ReadAheadQuery<'_>, plan: &mut ReadAheadPlan, most: u64) {
        let index = ask.index;
        let absent = ask.found == PagePresence::Absent;
        if self.len != 0 && index < self.end && index + self.window >= self.end {
            if absent {
                plan.read(index, 1, None);
            }
            return;
        }
        self.window = 0;
        self.len = 1;
        let ahead = self.ahead(ask, index, self.most);
        if ahead == 0 {
            // "If we are not going to read ahead, set the read ahead context for this page only".
            // If the file has nothing left to read, nothing is set.
            if index >= ask.size || self.most == 0 {
                self.end = index + self.len;
                self.window += self.len;
            }
        }
        let from = if absent { index } else { index + 1 };
        if index + 1 + ahead > from {
            plan.read(from, index + 1 + ahead - from, None);
        }
        self.done(index, ahead, most);
    }

    /// Handles a held page: reads the next piece if the page lies in the last one.
    fn is_there(&mut self, ask: &ReadAheadQuery<'_>, plan: &mut ReadAheadPlan, most: u64) {
        let index = ask.index;
        if !self.in_sequence
            || self.most == 0
            || self.end == 0
            || index > self.end
            || index + self.len < self.end
        {
            return;
        }
        let last = self.end - 1;
        if last >= ask.size {
            return;
        }
        // One page more than in `must_wait`, so that all pieces have the same length.
        let ahead = self.ahead(ask, last, self.most + 1);
        self.window = self.len;
        self.len = 0;
        if ahead > 0 {
            plan.read(last + 1, ahead, None);
        }
        self.done(last, ahead, most);
    }

    /// Returns the number of pages to read ahead after `last`.
    fn ahead(&self, ask: &ReadAheadQuery<'_>, last: u64, most: u64) -> u64 {
        if most == 0 {
            return 0;
        }
        let ahead = most.min(ask.size.saturating_sub(last + 1));
        if ahead == 0 {
            0
        } else {
            ask.clipped(last + 1, ahead)
        }
    }

    fn done(&mut self, last: u64, ahead: u64, most: u64) {
        if ahead > 0 {
            self.len += ahead;
            self.window += self.len;
            self.end = last + ahead + 1;
            self.most = (2 * self.most).min(most);
        }
    }
}

impl ReadAhead for V24 {
    fn opened(&mut self, file: u32) {
        *state_of(&mut self.files, file) = ReadAheadState::default();
    }

    fn watches(&self) -> bool {
        true
    }

    fn begins(&mut self, file: u32, offset: u64, bytes: u64) {
        let (most, least) = (self.most, self.least);
        let state = state_of(&mut self.files, file);
        let index = offset / PAGE_BYTES;
        let within = offset % PAGE_BYTES + bytes;
        state.in_sequence = index <= state.end && index + state.window >= state.end;
        if !state.in_sequence {
            *state = ReadAheadState::default();
        }
        if index == 0 && within <= PAGE_BYTES / 2 {
            state.most = 0;
            return;
        }
        let needed = within / PAGE_BYTES + 1;
        state.most = state
            .most
            .max(needed)
            .max(if state.in_sequence { least } else { 0 })
            .min(most);
    }

    fn ask(&mut self, ask: &ReadAheadQuery<'_>, plan: &mut ReadAheadPlan) {
        let (most, state) = (self.most, state_of(&mut self.files, ask.file));
        match ask.found {
            PagePresence::Absent | PagePresence::Reading => state.must_wait(ask, plan, most),
            PagePresence::Held | PagePresence::Marked => state.is_there(ask, plan, most),
        }
        // The next page that lies in the last piece.
        plan.again = (ask.index + 1).max(state.end.saturating_sub(state.len));
    }
}

#[cfg(test)]
mod tests {
    use crate::read_ahead::tables::TableReader;

    #[test]
    fn pages_in_sequence() {
        // needed = 1 + 1, but at least 3 in sequence (as a new file is): page 0 with 3 more. The
        // last piece then acts as the mark: at page 1, f_ramax + 1 = 7 pages from page 4. f_ramax
        // doubles to 12, 24, 31.
        let mut reader = TableReader::new("2.4", 1000);
        reader.reads((0..60).map(|page| (page, 1)));
        reader.expect(&[
            (0, 0, 4, 0),
            (1, 4, 7, 0),
            (4, 11, 13, 0),
            (11, 24, 25, 0),
            (24, 49, 32, 0),
            (49, 81, 32, 0),
        ]);
    }

    #[test]
    fn reads_of_16_kib_in_sequence() {
        // needed = 4 + 1: page 0 with 5 more; at page 1 ten more and one.
        let mut reader = TableReader::new("2.4", 1000);
        reader.reads((0..8).map(|piece| (piece * 4, 4)));
        reader.expect(&[(0, 0, 6, 0), (1, 6, 11, 0), (6, 17, 21, 0), (17, 38, 32, 0)]);
    }

    #[test]
    fn a_page_at_random_brings_two_more() {
        // needed = 4096 / 4096 + 1 = 2. The minimum does not apply out of sequence.
        let mut reader = TableReader::new("2.4", 1000);
        reader.reads([(500, 1), (300, 1)]);
        reader.expect(&[(500, 500, 3, 0), (300, 300, 3, 0)]);
    }

    #[test]
    fn the_end_of_the_file_ends_a_piece() {
        let mut reader = TableReader::new("2.4", 8);
        reader.reads((0..8).map(|page| (page, 1)));
        reader.expect(&[(0, 0, 4, 0), (1, 4, 4, 0)]);
    }
}
