//! A block of the sorted segments: one plain array, changed in place.

/// Largest number of segments in a block.
pub(super) const BLOCK: usize = 32;

/// A segment in a block.
#[derive(Clone, Copy)]
pub(super) struct OrderEntry {
    pub(super) start: u64,
    pub(super) end: u64,
    /// The largest end of this entry and all entries before. A search goes back over the entries
    /// and ends where this value lies before the place: almost always at the first entry.
    pub(super) reach: u64,
    pub(super) segment: u32,
}

/// A few neighbours, sorted by first sector and number.
#[derive(Clone)]
pub(super) struct OrderBlock {
    pub(super) len: usize,
    /// The first `len` entries hold segments.
    slots: [OrderEntry; BLOCK],
}

impl OrderBlock {
    pub(super) const EMPTY: OrderBlock = OrderBlock {
        len: 0,
        slots: [OrderEntry {
            start: 0,
            end: 0,
            reach: 0,
            segment: 0,
        }; BLOCK],
    };

    #[inline]
    pub(super) fn entries(&self) -> &[OrderEntry] {
        &self.slots[..self.len]
    }

    #[inline]
    fn entries_mut(&mut self) -> &mut [OrderEntry] {
        &mut self.slots[..self.len]
    }

    /// Returns the number of entries before a key.
    pub(super) fn position(&self, start: u64, segment: u32) -> usize {
        let entries = self.entries();
        let mut at = entries.partition_point(|own| own.start < start);
        // Almost always no other segment begins at the same sector.
        while let Some(own) = entries.get(at)
            && own.start == start
            && own.segment < segment
        {
            at += 1;
        }
        at
    }

    pub(super) fn insert(&mut self, at: usize, segment: u32, start: u64, end: u64) {
        debug_assert!(
            self.len < BLOCK && at <= self.len,
            "a full block is split first"
        );
        self.slots.copy_within(at..self.len, at + 1);
        self.len += 1;
        let reach = self.reach_before(at).max(end);
        let entries = self.entries_mut();
        entries[at] = OrderEntry {
            start,
            end,
            reach,
            segment,
        };
        // The reach never falls from one entry to the next.
        let later = entries[at + 1..].iter_mut();
        for entry in later.take_while(|entry| entry.reach < end) {
            entry.reach = end;
        }
    }

    pub(super) fn remove(&mut self, at: usize) {
        self.slots.copy_within(at + 1..self.len, at);
        self.len -= 1;
        self.reach_from(at);
    }

    /// Gives an entry another end. Returns the end so far.
    pub(super) fn set_end(&mut self, at: usize, end: u64) -> u64 {
        let old = std::mem::replace(&mut self.slots[at].end, end);
        self.reach_from(at);
        old
    }

    /// True if an entry lies before a key.
    fn precedes(&self, at: usize, key: (u64, u32)) -> bool {
        let entry = &self.slots[at];
        (entry.start, entry.segment) < key
    }

    /// Gives an entry a new key and end, and moves the entry to the new place. Returns the place.
    pub(super) fn shift(&mut self, at: usize, segment: u32, start: u64, end: u64) -> usize {
        let key = (start, segment);
        let mut to = at;
        while to > 0 && !self.precedes(to - 1, key) {
            self.slots[to] = self.slots[to - 1];
            to -= 1;
        }
        while to + 1 < self.len && self.precedes(to + 1, key) {
            self.slots[to] = self.slots[to + 1];
            to += 1;
        }
        self.slots[to] = OrderEntry {
            start,
            end,
            reach: 0,
            segment,
        };
        let (first, last) = (at.min(to), at.max(to));
        self.reach_until(first, last);
        self.reach_from(last + 1);
        to
    }

    /// Appends entries of another block.
    pub(super) fn append(&mut self, other: &OrderBlock, from: usize) {
        let (len, more) = (self.len, &other.entries()[from..]);
        self.slots[len..len + more.len()].copy_from_slice(more);
        self.len += more.len();
        self.reach_until(len, self.len - 1);
    }

    fn reach_before(&self, at: usize) -> u64 {
        at.checked_sub(1)
            .map_or(0, |before| self.slots[before].reach)
    }

    /// Computes the reaches of the entries from `first` to `last`.
    fn reach_until(&mut self, first: usize, last: usize) {
        let mut reach = self.reach_before(first);
        for entry in &mut self.slots[first..=last] {
            reach = reach.max(entry.end);
            entry.reach = reach;
        }
    }

    /// Computes the reaches from entry `at` on, after a change of this entry or of the entry that
    /// stood there. The computation ends at the first unchanged reach behind the entry, because
    /// later reaches do not change either.
    fn reach_from(&mut self, at: usize) {
        let mut reach = self.reach_before(at);
        for entry in self.entries_mut().iter_mut().skip(at) {
            reach = reach.max(entry.end);
            if entry.reach == reach {
                return;
            }
            entry.reach = reach;
        }
    }

    pub(super) fn reach(&self) -> u64 {
        self.reach_before(self.len)
    }
}
