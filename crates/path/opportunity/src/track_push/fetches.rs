//! Recognition of reads that fetch offered tracks. A request does not tell why the host sent the
//! request.

use fullstroke_contract::Extent;
use std::collections::VecDeque;

/// Sectors of a page. A host fetches whole pages, so up to one page less one sector may be missing
/// at either end.
const PAGE_SECTORS: u64 = 8;

/// Offered tracks, with the fetched part of each.
pub(super) struct Fetches {
    most: usize,
    offered: VecDeque<Offered>,
}

struct Offered {
    track: Extent,
    /// End of the last fetch.
    next: u64,
}

impl Offered {
    /// True if a read is the next piece of the fetch. A track is fetched in order from the
    /// beginning, in any number of pieces.
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
    /// Creates a store of at most `most` offers. The oldest offers are forgotten.
    pub fn new(most: usize) -> Fetches {
        Fetches {
            most,
            offered: VecDeque::new(),
        }
    }

    pub fn offered(&mut self, track: Extent) {
        // An offer of the same track again begins a new fetch.
        self.forget(track);
        if self.offered.len() >= self.most {
            self.offered.pop_front();
        }
        self.offered.push_back(Offered {
            track,
            next: track.start.0,
        });
    }

    /// True if a read fetches the next piece of an offered track.
    pub fn takes(&mut self, read: Extent) -> bool {
        let Some(offered) = self.offered.iter_mut().find(|offered| offered.takes(read)) else {
            return false;
        };
        offered.next = read.end().0;
        true
    }

    /// Removes and returns a completely fetched track.
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
