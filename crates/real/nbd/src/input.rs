//! Received bytes that were not parsed yet.

/// Size of the input buffer. An option is the longest message that must fit whole
/// (`OPTION_BYTES_MAX` in `handshake.rs`). The rest lets many requests arrive at once.
pub(crate) const INPUT_BYTES: usize = 64 << 10;

/// A window over a buffer of fixed size.
#[derive(Debug)]
pub(crate) struct Input {
    bytes: Box<[u8]>,
    start: usize,
    end: usize,
    /// Number of bytes taken so far: the position in the stream, for errors.
    taken: u64,
}

impl Input {
    pub(crate) fn new() -> Input {
        Input {
            bytes: vec![0; INPUT_BYTES].into(),
            start: 0,
            end: 0,
            taken: 0,
        }
    }

    /// Returns the place for the next bytes.
    pub(crate) fn space(&mut self) -> &mut [u8] {
        if self.start == self.end {
            // An empty window moves to the front at no cost.
            (self.start, self.end) = (0, 0);
        // Bytes are moved only in the rear half. Moving at each read would copy a long option again
        // and again.
        } else if self.end > self.bytes.len() / 2 {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        &mut self.bytes[self.end..]
    }

    /// Records that `count` bytes were written to the last `space`.
    pub(crate) fn filled(&mut self, count: usize) {
        assert!(
            count <= self.bytes.len() - self.end,
            "more bytes were filled in than there was space"
        );
        self.end += count;
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Returns the next `COUNT` bytes without removing them; `None` if there are fewer.
    pub(crate) fn peek<const COUNT: usize>(&self) -> Option<&[u8; COUNT]> {
        self.bytes().first_chunk()
    }

    pub(crate) fn take(&mut self, count: usize) {
        debug_assert!(count <= self.end - self.start);
        self.start += count;
        self.taken += count as u64;
    }

    /// Drops up to `count` bytes and returns the number of dropped bytes.
    pub(crate) fn skip(&mut self, count: usize) -> usize {
        let skipped = count.min(self.end - self.start);
        self.take(skipped);
        skipped
    }

    /// Moves as many bytes as fit into `target`. Returns the number of moved bytes.
    pub(crate) fn move_to(&mut self, target: &mut [u8]) -> usize {
        let moved = target.len().min(self.end - self.start);
        target[..moved].copy_from_slice(&self.bytes()[..moved]);
        self.take(moved);
        moved
    }

    /// Returns the position of the next byte in the stream, from 0.
    pub(crate) fn position(&self) -> u64 {
        self.taken
    }

    /// Counts bytes of the stream that bypassed this buffer.
    pub(crate) fn passed(&mut self, count: usize) {
        self.taken += count as u64;
    }
}

/// Reads the fields of a message one after the other.
#[derive(Clone, Debug)]
pub(crate) struct MessageFields<'a> {
    bytes: &'a [u8],
}

impl<'a> MessageFields<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> MessageFields<'a> {
        MessageFields { bytes }
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.bytes
    }

    pub(crate) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(count)?;
        self.bytes = rest;
        Some(taken)
    }

    fn array<const COUNT: usize>(&mut self) -> Option<[u8; COUNT]> {
        let (taken, rest) = self.bytes.split_first_chunk()?;
        self.bytes = rest;
        Some(*taken)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }
}
