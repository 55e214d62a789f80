//! The bytes that arrived and were not looked at yet.

/// Room for what arrives. The longest thing that must lie in it whole is an
/// option (`OPTION_BYTES_MAX` in `handshake.rs`); the rest is for many requests
/// to arrive at once.
pub(crate) const INPUT_BYTES: usize = 64 << 10;

/// A window over a buffer of fixed size.
#[derive(Debug)]
pub(crate) struct Input {
    bytes: Box<[u8]>,
    start: usize,
    end: usize,
    /// Bytes taken out so far: the place in the stream, for errors.
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

    /// Where the next bytes go.
    pub(crate) fn space(&mut self) -> &mut [u8] {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.end > self.bytes.len() / 2 {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        &mut self.bytes[self.end..]
    }

    /// So many bytes were put where `space` said.
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

    /// The next bytes, if so many are there; they stay.
    pub(crate) fn peek<const COUNT: usize>(&self) -> Option<&[u8; COUNT]> {
        self.bytes().first_chunk()
    }

    pub(crate) fn take(&mut self, count: usize) {
        debug_assert!(count <= self.end - self.start);
        self.start += count;
        self.taken += count as u64;
    }

    /// Drops up to so many bytes and tells how many it were.
    pub(crate) fn skip(&mut self, count: usize) -> usize {
        let skipped = count.min(self.end - self.start);
        self.take(skipped);
        skipped
    }

    /// Moves into `target` what is there and fits, and tells how much it was.
    pub(crate) fn move_to(&mut self, target: &mut [u8]) -> usize {
        let moved = target.len().min(self.end - self.start);
        target[..moved].copy_from_slice(&self.bytes()[..moved]);
        self.take(moved);
        moved
    }

    /// Where in the stream the next byte stands, from 0.
    pub(crate) fn position(&self) -> u64 {
        self.taken
    }

    /// Counts bytes of the stream that went past this buffer.
    pub(crate) fn passed(&mut self, count: usize) {
        self.taken += count as u64;
    }
}

/// Reads the fields of a message one after the other.
#[derive(Clone, Debug)]
pub(crate) struct Fields<'a> {
    bytes: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Fields<'a> {
        Fields { bytes }
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
