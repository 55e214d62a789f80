//! A block of the sorted segments: plain arrays, changed in place.

/// Largest number of segments in a block.
pub(super) const BLOCK: usize = 32;

/// A few neighbours, sorted by first sector and number.
#[derive(Clone)]
pub(super) struct OrderBlock {
    pub(super) len: usize,
    pub(super) starts: [u64; BLOCK],
    pub(super) ends: [u64; BLOCK],
    /// The largest end of each entry and all entries before. A search goes back over the entries
    /// and ends where this value lies before the place: almost always at the first entry.
    pub(super) reaches: [u64; BLOCK],
    pub(super) segments: [u32; BLOCK],
}

impl OrderBlock {
    pub(super) const EMPTY: OrderBlock = OrderBlock {
        len: 0,
        starts: [0; BLOCK],
        ends: [0; BLOCK],
        reaches: [0; BLOCK],
        segments: [0; BLOCK],
    };

    /// Returns the number of entries before a key.
    pub(super) fn position(&self, start: u64, segment: u32) -> usize {
        let mut at = self.starts[..self.len].partition_point(|&own| own < start);
        // Almost always no other segment begins at the same sector.
        while at < self.len && self.starts[at] == start && self.segments[at] < segment {
            at += 1;
        }
        at
    }

    pub(super) fn insert(&mut self, at: usize, segment: u32, start: u64, end: u64) {
        debug_assert!(
            self.len < BLOCK && at <= self.len,
            "a full block is split first"
        );
        let len = self.len;
        self.starts.copy_within(at..len, at + 1);
        self.ends.copy_within(at..len, at + 1);
        self.segments.copy_within(at..len, at + 1);
        (self.starts[at], self.ends[at], self.segments[at]) = (start, end, segment);
        self.len += 1;
        self.reach_from(at);
    }

    pub(super) fn remove(&mut self, at: usize) {
        let len = self.len;
        self.starts.copy_within(at + 1..len, at);
        self.ends.copy_within(at + 1..len, at);
        self.segments.copy_within(at + 1..len, at);
        self.len -= 1;
        self.reach_from(at);
    }

    /// True if an entry lies before a key.
    pub(super) fn precedes(&self, at: usize, key: (u64, u32)) -> bool {
        (self.starts[at], self.segments[at]) < key
    }

    /// Gives an entry a new key and end, and moves the entry to the new place. Returns the place.
    pub(super) fn shift(&mut self, at: usize, segment: u32, start: u64, end: u64) -> usize {
        let key = (start, segment);
        let mut to = at;
        while to > 0 && !self.precedes(to - 1, key) {
            self.copy_entry(to - 1, to);
            to -= 1;
        }
        while to + 1 < self.len && self.precedes(to + 1, key) {
            self.copy_entry(to + 1, to);
            to += 1;
        }
        (self.starts[to], self.ends[to], self.segments[to]) = (start, end, segment);
        self.reach_from(at.min(to));
        to
    }

    fn copy_entry(&mut self, from: usize, to: usize) {
        self.starts[to] = self.starts[from];
        self.ends[to] = self.ends[from];
        self.segments[to] = self.segments[from];
    }

    /// Appends entries of another block.
    pub(super) fn append(&mut self, other: &OrderBlock, from: usize) {
        let (len, more) = (self.len, other.len - from);
        self.starts[len..len + more].copy_from_slice(&other.starts[from..other.len]);
        self.ends[len..len + more].copy_from_slice(&other.ends[from..other.len]);
        self.segments[len..len + more].copy_from_slice(&other.segments[from..other.len]);
        self.len += more;
        self.reach_from(len);
    }

    /// Computes the reaches from entry `at` on.
    pub(super) fn reach_from(&mut self, at: usize) {
        let mut reach = if at > 0 { self.reaches[at - 1] } else { 0 };
        let ends = &self.ends[at..self.len];
        for (own, &end) in self.reaches[at..self.len].iter_mut().zip(ends) {
            reach = reach.max(end);
            *own = reach;
        }
    }

    pub(super) fn reach(&self) -> u64 {
        self.len.checked_sub(1).map_or(0, |last| self.reaches[last])
    }
}
