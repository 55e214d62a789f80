//! Memory with an alignment that suits every device.

use crate::ALIGNMENT_BYTES;

/// A buffer for reads and writes past the page cache.
#[derive(Debug, Default)]
pub struct Aligned(Vec<u8>);

impl Aligned {
    /// Returns the first `length` bytes, with undefined content.
    pub fn of(&mut self, length: usize) -> &mut [u8] {
        let alignment = ALIGNMENT_BYTES as usize;
        // The storage of a `Vec<u8>` may begin anywhere. One alignment more makes room for an
        // aligned beginning. A longer buffer is a new one: the allocator has zeroed memory, and
        // the old content need not be copied.
        if self.0.len() < length + alignment {
            self.0 = vec![0; length + alignment];
        }
        let start = self.0.as_ptr().align_offset(alignment);
        &mut self.0[start..start + length]
    }
}
