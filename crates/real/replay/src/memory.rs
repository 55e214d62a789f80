//! The memory that a device is read into and written from.
//!
//! What is read is of no interest, so all reads go to one piece of memory and all writes come from
//! another, whatever is outstanding: two pieces serve any depth. Nothing ever looks at the first one.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};

/// The longest piece of a request; longer ones go in several, as they do below the block layer, whose
/// limits (`max_sectors_kb`) are smaller.
pub(crate) const PIECE_BYTES: u64 = 2 << 20;
/// Whatever a device's blocks are, memory is aligned to this.
const ALIGNMENT: usize = 4096;
/// `FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE`: how a discard is said to files and devices alike.
pub(crate) const DISCARD: i32 = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;

/// Memory that the kernel may use as long as it stands.
pub(crate) struct Memory {
    pub(crate) start: *mut u8,
}

impl Memory {
    const LAYOUT: Layout = match Layout::from_size_align(PIECE_BYTES as usize, ALIGNMENT) {
        Ok(layout) => layout,
        Err(_) => panic!("the alignment is a power of two"),
    };

    /// Zeroes.
    #[expect(
        unsafe_code,
        reason = "the kernel writes to it at any time, so it can be no slice"
    )]
    pub(crate) fn new() -> Memory {
        // SAFETY: the layout's size is not 0.
        let start = unsafe { alloc_zeroed(Memory::LAYOUT) };
        if start.is_null() {
            handle_alloc_error(Memory::LAYOUT);
        }
        Memory { start }
    }

    /// Bytes that do not compress, so that a device gains nothing from what they are.
    #[expect(unsafe_code, reason = "filled before the kernel knows of it")]
    pub(crate) fn scrambled() -> Memory {
        let memory = Memory::new();
        // SAFETY: the memory was just made, of this size, and nobody else knows of it.
        let bytes = unsafe { std::slice::from_raw_parts_mut(memory.start, PIECE_BYTES as usize) };
        // xorshift64 (Marsaglia, 2003).
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        for word in bytes.chunks_exact_mut(8) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            word.copy_from_slice(&state.to_le_bytes());
        }
        memory
    }

    #[expect(unsafe_code, reason = "the counterpart of its allocation")]
    pub(crate) fn free(&mut self) {
        // SAFETY: it was allocated with this layout, and is freed once, by whoever had it.
        unsafe { dealloc(self.start, Memory::LAYOUT) };
    }
}
