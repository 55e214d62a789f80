//! Ghosts: evicted pages that are remembered. A ghost has an address only. Ghosts stand in order of
//! eviction, as runs like the pages themselves.

use crate::pages::{PageTable, Stretch};
use crate::run::PageRun;

/// Ghosts in up to six lists.
#[derive(Clone, Debug, Default)]
pub(super) struct Ghosts(PageTable);

impl Ghosts {
    /// Remembers the pages of a stretch as the newest of a list.
    pub fn remember(&mut self, gone: &Stretch, list: u8) {
        // A page may have come back and left again. Its ghost must stand in one list only.
        self.forget(gone.run());
        let slot = self.0.add(gone.run(), 0);
        self.0.push_newest(list, slot);
        self.0.join(slot);
    }

    /// Forgets these pages.
    pub fn forget(&mut self, run: PageRun) {
        while let Some(slot) = self
            .0
            .from(run.object, run.first)
            .filter(|&slot| self.0.get(slot).first < run.end())
        {
            let stretch = *self.0.get(slot);
            let slot = self.0.cut(
                slot,
                stretch.first.max(run.first),
                stretch.end().min(run.end()),
            );
            self.0.unlink(slot);
            self.0.remove(slot);
        }
    }

    /// Forgets the oldest pages of a list, down to `most`.
    pub fn trim(&mut self, list: u8, most: u64) {
        while self.0.pages_in(list) > most {
            let Some(slot) = self.0.oldest(list) else {
                return;
            };
            let stretch = *self.0.get(slot);
            let surplus = self.0.pages_in(list) - most;
            let to = stretch.end().min(stretch.first + surplus);
            let slot = self.0.cut(slot, stretch.first, to);
            self.0.unlink(slot);
            self.0.remove(slot);
        }
    }

    /// Returns the list that remembers the first page of a run. Also returns the number of pages
    /// from there on in the same state.
    pub fn of(&self, run: PageRun) -> (Option<u8>, u64) {
        match self
            .0
            .from(run.object, run.first)
            .map(|slot| self.0.get(slot))
        {
            Some(ghost) if ghost.first <= run.first => {
                (Some(ghost.list), ghost.end().min(run.end()) - run.first)
            }
            Some(ghost) => (None, ghost.first.min(run.end()) - run.first),
            None => (None, run.pages),
        }
    }

    /// Returns the number of pages in a list.
    pub fn pages_in(&self, list: u8) -> u64 {
        self.0.pages_in(list)
    }
}
