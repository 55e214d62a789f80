//! Memory at an address that every device takes.

use crate::ALIGNMENT_BYTES;

/// Bytes that can be read into, and written from, past the page cache.
#[derive(Debug, Default)]
pub struct Aligned(Vec<u8>);

impl Aligned {
    /// The first `length` bytes, which hold anything.
    pub fn of(&mut self, length: usize) -> &mut [u8] {
        let alignment = ALIGNMENT_BYTES as usize;
        if self.0.len() < length + alignment {
            self.0.resize(length + alignment, 0);
        }
        let start = self.0.as_ptr().align_offset(alignment);
        &mut self.0[start..start + length]
    }
}
