//! Which reads fetch what was offered. Nothing in a request says why it was sent.

use fullstroke_contract::Extent;
use std::collections::VecDeque;

/// A host fetches whole pages: so many sectors may be missing at either end, less one.
const PAGE_SECTORS: u64 = 8;

/// Tracks that were offered, and how much of each was fetched.
pub(super) struct Fetches {
    most: usize,
    offered: VecDeque<Offered>,
}

struct Offered {
    track: Extent,
    /// Behind what was fetched last.
    next: u64,
}

impl Offered {
    /// It is fetched in order, from where it begins, in as many pieces as the host likes.
    fn takes(&self, read: Extent) -> bool {
        let begins = if self.next == self.track.start.0 {
            (self.next..self.next + PAGE_SECTORS).contains(&read.start.0)
        } else {
            read.start.0 == self.next
        };
        begins && read.end() <= self.track.end()
    }

    fn is_fetched(&self) -> bool {
        self.next + PAGE_SECTORS > self.track.end().0
    }
}

impl Fetches {
    /// Of so many offers at most; the oldest are forgotten.
    pub fn new(most: usize) -> Fetches {
        Fetches {
            most,
            offered: VecDeque::new(),
        }
    }

    pub fn offered(&mut self, track: Extent) {
        self.forget(track);
        if self.offered.len() >= self.most {
            self.offered.pop_front();
        }
        self.offered.push_back(Offered {
            track,
            next: track.start.0,
        });
    }

    /// Whether a read fetches (the next piece of) something that was offered.
    pub fn takes(&mut self, read: Extent) -> bool {
        let Some(offered) = self.offered.iter_mut().find(|offered| offered.takes(read)) else {
            return false;
        };
        offered.next = read.end().0;
        true
    }

    /// A track that was fetched as a whole; it is forgotten.
    pub fn fetched(&mut self) -> Option<Extent> {
        let place = self.offered.iter().position(Offered::is_fetched)?;
        self.offered.remove(place).map(|offered| offered.track)
    }

    pub fn forget(&mut self, track: Extent) {
        self.offered.retain(|offered| offered.track != track);
    }

    pub fn is_empty(&self) -> bool {
        self.offered.is_empty()
    }

    pub fn clear(&mut self) {
        self.offered.clear();
    }
}
