//! A block of the sorted segments: plain arrays, changed in place.

/// Largest number of segments in a block.
pub(super) const BLOCK: usize = 32;

/// Number of first sectors in a line of the processor's cache.
const LINE: usize = 8;

/// A first sector behind all places, in the slots without an entry.
const UNUSED: u64 = u64::MAX;

/// A segment in a block, without the first sector.
#[derive(Clone, Copy)]
pub(super) struct OrderEntry {
    pub(super) end: u64,
    /// The largest end of this entry and all entries before. A search goes back over the entries
    /// and ends where this value lies before the place: almost always at the first entry.
    pub(super) reach: u64,
    pub(super) segment: u32,
}

/// A few neighbours, sorted by first sector and number.
///
/// The first sectors stand apart, at the start of a cache line. A bisection over whole entries
/// waits for a cache miss at almost each step, because the buffers of an array's drives are larger
/// than the processor's second cache.
#[derive(Clone)]
#[repr(C, align(64))]
pub(super) struct OrderBlock {
    /// The first sectors; [`UNUSED`] behind the first `len`.
    starts: [u64; BLOCK],
    /// The first `len` entries hold segments.
    slots: [OrderEntry; BLOCK],
    pub(super) len: usize,
}

impl OrderBlock {
    pub(super) const EMPTY: OrderBlock = OrderBlock {
        starts: [UNUSED; BLOCK],
        slots: [OrderEntry {
            end: 0,
            reach: 0,
            segment: 0,
        }; BLOCK],
        len: 0,
    };

    #[inline]
    pub(super) fn entries(&self) -> &[OrderEntry] {
        &self.slots[..self.len]
    }

    #[inline]
    fn entries_mut(&mut self) -> &mut [OrderEntry] {
        &mut self.slots[..self.len]
    }

    /// Returns the first sector of an entry; `None` behind the last entry.
    #[inline]
    pub(super) fn start(&self, at: usize) -> Option<u64> {
        let start = *self.starts.get(at)?;
        (start != UNUSED).then_some(start)
    }

    /// Returns first sector and number of an entry.
    #[inline]
    pub(super) fn key(&self, at: usize) -> (u64, u32) {
        (self.starts[at], self.slots[at].segment)
    }

    /// Returns the number of entries that begin before `place`.
    #[inline]
    pub(super) fn before(&self, place: u64) -> usize {
        // The last value of each line tells the line. The loads do not depend on each other, so
        // their cache misses overlap.
        let is_before = |start: u64| usize::from(start < place);
        let lines = (1..BLOCK / LINE).map(|line| is_before(self.starts[LINE * line - 1]));
        let first = LINE * lines.sum::<usize>();
        let line = &self.starts[first..first + LINE];
        first + line.iter().map(|&start| is_before(start)).sum::<usize>()
    }

    /// Returns the number of entries before a key.
    #[inline]
    pub(super) fn position(&self, start: u64, segment: u32) -> usize {
        let mut at = self.before(start);
        // Almost always no other segment begins at the same sector.
        while self.start(at) == Some(start) && self.slots[at].segment < segment {
            at += 1;
        }
        at
    }

    pub(super) fn insert(&mut self, at: usize, segment: u32, start: u64, end: u64) {
        debug_assert!(
            self.len < BLOCK && at <= self.len,
            "a full block is split first"
        );
        self.starts.copy_within(at..self.len, at + 1);
        self.slots.copy_within(at..self.len, at + 1);
        self.len += 1;
        self.starts[at] = start;
        let reach = self.reach_before(at).max(end);
        let entries = self.entries_mut();
        entries[at] = OrderEntry {
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
        self.starts.copy_within(at + 1..self.len, at);
        self.slots.copy_within(at + 1..self.len, at);
        self.len -= 1;
        self.starts[self.len] = UNUSED;
        self.reach_from(at);
    }

    /// Gives an entry another end. Returns the end so far.
    pub(super) fn set_end(&mut self, at: usize, end: u64) -> u64 {
        let old = std::mem::replace(&mut self.slots[at].end, end);
        self.reach_from(at);
        old
    }

    /// Moves an entry to the place of a neighbour.
    fn take_place(&mut self, to: usize, from: usize) {
        self.starts[to] = self.starts[from];
        self.slots[to] = self.slots[from];
    }

    /// Gives an entry a new key and end, and moves the entry to the new place. Returns the place.
    pub(super) fn shift(&mut self, at: usize, segment: u32, start: u64, end: u64) -> usize {
        let key = (start, segment);
        let mut to = at;
        while to > 0 && self.key(to - 1) >= key {
            self.take_place(to, to - 1);
            to -= 1;
        }
        while to + 1 < self.len && self.key(to + 1) < key {
            self.take_place(to, to + 1);
            to += 1;
        }
        self.starts[to] = start;
        self.slots[to] = OrderEntry {
            end,
            reach: 0,
            segment,
        };
        let (first, last) = (at.min(to), at.max(to));
        self.reach_until(first, last);
        self.reach_from(last + 1);
        to
    }

    /// Moves the entries from `from` on to the end of another block.
    pub(super) fn move_to(&mut self, from: usize, other: &mut OrderBlock) {
        let (len, more) = (other.len, self.len - from);
        other.starts[len..len + more].copy_from_slice(&self.starts[from..self.len]);
        other.slots[len..len + more].copy_from_slice(&self.slots[from..self.len]);
        other.len += more;
        self.starts[from..].fill(UNUSED);
        self.len = from;
        other.reach_until(len, other.len - 1);
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
