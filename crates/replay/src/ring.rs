//! io_uring, and the memory that it reads into.
//!
//! What is read is of no interest, so all reads go to one piece of memory and all writes come from
//! another, whatever is outstanding: two registered buffers serve any depth. Nothing ever looks at the
//! first one.

use crate::ReplayError;
use crate::command::Action;
use io_uring::types::{Fixed, FsyncFlags, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode, squeue};
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::time::Duration;

/// Requests that are handed to the kernel at a time.
const ENTRIES: u32 = 1024;
/// Requests that may be outstanding; more are held back.
pub(crate) const OUTSTANDING_MAX: u64 = 32_768;
/// The longest piece of a request; longer ones go in several, as they do below the block layer, whose
/// limits (`max_sectors_kb`) are smaller.
pub(crate) const PIECE_BYTES: u64 = 2 << 20;
/// Whatever a device's blocks are, memory is aligned to this.
const ALIGNMENT: usize = 4096;
/// `FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE`: how a discard is said to files and devices alike.
const DISCARD: i32 = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;

/// A ring over one file.
pub(crate) struct Ring {
    ring: IoUring,
    read: Memory,
    write: Memory,
    registered: bool,
    /// Pieces that the kernel has, or will have with the next submission.
    outstanding: u64,
}

/// Memory that the kernel may use as long as it stands.
struct Memory {
    start: *mut u8,
}

impl Memory {
    const LAYOUT: Layout = match Layout::from_size_align(PIECE_BYTES as usize, ALIGNMENT) {
        Ok(layout) => layout,
        Err(_) => panic!("the alignment is a power of two"),
    };

    /// Zeroes.
    #[expect(unsafe_code, reason = "the kernel writes to it at any time, so it can be no slice")]
    fn new() -> Memory {
        // SAFETY: the layout's size is not 0.
        let start = unsafe { alloc_zeroed(Memory::LAYOUT) };
        if start.is_null() {
            handle_alloc_error(Memory::LAYOUT);
        }
        Memory { start }
    }

    /// Bytes that do not compress, so that a device gains nothing from what they are.
    #[expect(unsafe_code, reason = "filled before the kernel knows of it")]
    fn scrambled() -> Memory {
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
    fn free(&mut self) {
        // SAFETY: it was allocated with this layout, and is freed once, by the ring's drop.
        unsafe { dealloc(self.start, Memory::LAYOUT) };
    }
}

impl Ring {
    /// A ring over `file`, its buffers registered if the limit on locked memory allows it.
    pub(crate) fn new(file: &File) -> Result<Ring, ReplayError> {
        let failed = |source| ReplayError::Ring { source };
        let built = IoUring::builder()
            .setup_clamp()
            .setup_cqsize(2 * OUTSTANDING_MAX as u32)
            .setup_single_issuer()
            .build(ENTRIES)
            // A kernel before 6.0 knows no single issuer.
            .or_else(|_| {
                IoUring::builder().setup_clamp().setup_cqsize(2 * OUTSTANDING_MAX as u32).build(ENTRIES)
            });
        let ring = built.map_err(failed)?;
        if !ring.params().is_feature_ext_arg() {
            return Err(failed(io::Error::other("the kernel cannot wait for a limited time")));
        }
        ring.submitter().register_files(&[file.as_raw_fd()]).map_err(failed)?;
        let mut ring =
            Ring { ring, read: Memory::new(), write: Memory::scrambled(), registered: false, outstanding: 0 };
        ring.registered = ring.register().is_ok();
        Ok(ring)
    }

    #[expect(unsafe_code, reason = "the kernel keeps the addresses")]
    fn register(&self) -> io::Result<()> {
        let length = PIECE_BYTES as usize;
        let buffer = |memory: &Memory| libc::iovec { iov_base: memory.start.cast(), iov_len: length };
        // SAFETY: both pieces of memory stand until the ring is dropped, and longer if it still has
        // requests then.
        unsafe { self.ring.submitter().register_buffers(&[buffer(&self.read), buffer(&self.write)]) }
    }

    /// Whether the kernel keeps the buffers mapped, rather than for each request anew.
    pub(crate) fn is_registered(&self) -> bool {
        self.registered
    }

    /// Adds a piece of a request, to be submitted; `false` if there is no room before the next
    /// submission. `bytes` is at most [`PIECE_BYTES`] for reads and writes.
    #[expect(unsafe_code, reason = "the kernel takes addresses")]
    pub(crate) fn push(&mut self, action: Action, start: u64, bytes: u64, user: u64) -> bool {
        let entry = self.entry(action, start, bytes).user_data(user);
        // SAFETY: an entry refers to memory that stands until the ring has answered it, and is no
        // longer than that.
        let pushed = unsafe { self.ring.submission().push(&entry) }.is_ok();
        self.outstanding += u64::from(pushed);
        pushed
    }

    fn entry(&self, action: Action, start: u64, bytes: u64) -> squeue::Entry {
        let file = Fixed(0);
        assert!(
            bytes <= PIECE_BYTES || matches!(action, Action::Flush | Action::Discard),
            "a piece is too long"
        );
        let length = bytes as u32;
        match action {
            Action::Read if self.registered => {
                opcode::ReadFixed::new(file, self.read.start, length, 0).offset(start).build()
            }
            Action::Read => opcode::Read::new(file, self.read.start, length).offset(start).build(),
            Action::Write if self.registered => {
                opcode::WriteFixed::new(file, self.write.start, length, 1).offset(start).build()
            }
            Action::Write => opcode::Write::new(file, self.write.start, length).offset(start).build(),
            Action::Flush => opcode::Fsync::new(file).flags(FsyncFlags::DATASYNC).build(),
            Action::Discard => opcode::Fallocate::new(file, bytes).offset(start).mode(DISCARD).build(),
        }
    }

    /// Hands what was added to the kernel, as much of it as it takes now.
    pub(crate) fn submit(&mut self) -> io::Result<()> {
        tolerate(self.ring.submit())
    }

    /// Whether everything that was added is the kernel's.
    pub(crate) fn is_submitted(&mut self) -> bool {
        self.ring.submission().is_empty()
    }

    /// Sleeps until something completes, at most so long.
    pub(crate) fn wait(&mut self, limit: Duration) -> io::Result<()> {
        let limit = Timespec::new().sec(limit.as_secs()).nsec(limit.subsec_nanos());
        let arguments = SubmitArgs::new().timespec(&limit);
        tolerate(self.ring.submitter().submit_with_args(1, &arguments))
    }

    /// What has completed: (`user`, result as of the system call).
    pub(crate) fn reap(&mut self, completed: &mut Vec<(u64, i32)>) {
        let before = completed.len();
        completed.extend(self.ring.completion().map(|entry| (entry.user_data(), entry.result())));
        self.outstanding -= (completed.len() - before) as u64;
    }
}

/// A wait that ended early, or a queue that is full, is no failure: the caller looks again.
fn tolerate(result: io::Result<usize>) -> io::Result<()> {
    match result {
        Ok(_) => Ok(()),
        Err(error) => match error.raw_os_error() {
            Some(libc::ETIME | libc::EINTR | libc::EAGAIN | libc::EBUSY) => Ok(()),
            _ => Err(error),
        },
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // The kernel may still write into the buffers: then they stay.
        if self.outstanding == 0 {
            let _ = self.ring.submitter().unregister_buffers();
            self.read.free();
            self.write.free();
        }
    }
}
