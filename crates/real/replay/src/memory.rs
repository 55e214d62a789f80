//! The memory for reads and writes of a device.
//!
//! The data of reads are never used. So all reads share one piece of memory, and all writes share
//! another, at any queue depth. Nothing ever looks at the first piece.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};

/// Longest piece of a request. A longer request is issued in several pieces. Below the block layer
/// requests are split in any case, because the limits there (`max_sectors_kb`) are smaller.
pub(crate) const PIECE_BYTES: u64 = 2 << 20;
/// Alignment of the memory, whatever the block size of the device.
const ALIGNMENT: usize = 4096;
/// `FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE`: the form of a discard for files and devices alike.
pub(crate) const DISCARD: i32 = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;

/// Memory that the kernel may use until it is freed.
pub(crate) struct KernelMemory {
    pub(crate) start: *mut u8,
}

impl KernelMemory {
    const LAYOUT: Layout = match Layout::from_size_align(PIECE_BYTES as usize, ALIGNMENT) {
        Ok(layout) => layout,
        Err(_) => panic!("the alignment is a power of two"),
    };

    /// Allocates zeroed memory.
    #[expect(
        unsafe_code,
        reason = "the kernel writes to it at any time, so it can be no slice"
    )]
    pub(crate) fn new() -> KernelMemory {
        // SAFETY: the layout's size is not 0.
        let start = unsafe { alloc_zeroed(KernelMemory::LAYOUT) };
        if start.is_null() {
            handle_alloc_error(KernelMemory::LAYOUT);
        }
        KernelMemory { start }
    }

    /// Allocates memory with bytes that do not compress, so that a device gains nothing from their
    /// content.
    #[expect(unsafe_code, reason = "filled before the kernel knows of it")]
    pub(crate) fn scrambled() -> KernelMemory {
        let memory = KernelMemory::new();
        // SAFETY: the memory was just allocated with this size, and nothing else refers to it.
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
        // SAFETY: the memory was allocated with this layout, and its owner frees it once.
        unsafe { dealloc(self.start, KernelMemory::LAYOUT) };
    }
}
