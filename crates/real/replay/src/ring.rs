//! io_uring over one file.

use crate::ReplayError;
use crate::issued::Action;
use crate::memory::{DISCARD, KernelMemory, PIECE_BYTES};
use crate::piece_answer::PieceAnswer;
use io_uring::types::{Fixed, FsyncFlags, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::time::Duration;

/// Size of the submission queue.
const ENTRIES: u32 = 1024;
/// Largest number of outstanding requests. Further requests are held back.
pub(crate) const OUTSTANDING_MAX: u64 = 32_768;

/// A ring over one file.
pub(crate) struct Ring {
    ring: IoUring,
    read: KernelMemory,
    write: KernelMemory,
    registered: bool,
    /// Number of pieces that the kernel has, or receives with the next submission.
    outstanding: u64,
}

impl Ring {
    /// Creates a ring over `file`. Its buffers are registered if the limit on locked memory allows
    /// this.
    pub(crate) fn new(file: &File) -> Result<Ring, ReplayError> {
        let failed = |source| ReplayError::Ring { source };
        // The completion queue has room for the completions of all outstanding pieces.
        let built = IoUring::builder()
            .setup_clamp()
            .setup_cqsize(2 * OUTSTANDING_MAX as u32)
            .setup_single_issuer()
            .build(ENTRIES)
            // Kernels before 6.0 do not support a single issuer.
            .or_else(|_| {
                IoUring::builder()
                    .setup_clamp()
                    .setup_cqsize(2 * OUTSTANDING_MAX as u32)
                    .build(ENTRIES)
            });
        let ring = built.map_err(failed)?;
        if !ring.params().is_feature_ext_arg() {
            return Err(failed(io::Error::other(
                "the kernel cannot wait for a limited time",
            )));
        }
        ring.submitter()
            .register_files(&[file.as_raw_fd()])
            .map_err(failed)?;
        let mut ring = Ring {
            ring,
            read: KernelMemory::new(),
            write: KernelMemory::scrambled(),
            registered: false,
            outstanding: 0,
        };
        ring.registered = ring.register().is_ok();
        Ok(ring)
    }

    #[expect(unsafe_code, reason = "the kernel keeps the addresses")]
    fn register(&self) -> io::Result<()> {
        let length = PIECE_BYTES as usize;
        let buffer = |memory: &KernelMemory| libc::iovec {
            iov_base: memory.start.cast(),
            iov_len: length,
        };
        // SAFETY: both pieces of memory live until the ring is dropped. If the ring still has
        // requests then, the memory is never freed.
        unsafe {
            self.ring
                .submitter()
                .register_buffers(&[buffer(&self.read), buffer(&self.write)])
        }
    }

    /// Returns true if the kernel keeps the buffers mapped; false if each request maps them anew.
    pub(crate) fn is_registered(&self) -> bool {
        self.registered
    }

    /// Adds a piece of a request for the next submission. Returns `false` if there is no room
    /// before the submission. `bytes` is at most [`PIECE_BYTES`] for reads and writes.
    #[expect(unsafe_code, reason = "the kernel takes addresses")]
    pub(crate) fn push(&mut self, action: Action, start: u64, bytes: u64, user: u64) -> bool {
        let entry = self.entry(action, start, bytes).user_data(user);
        // SAFETY: the entry refers to memory that lives until the ring has answered the entry. The
        // entry is no longer than the memory.
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
                opcode::ReadFixed::new(file, self.read.start, length, 0)
                    .offset(start)
                    .build()
            }
            Action::Read => opcode::Read::new(file, self.read.start, length)
                .offset(start)
                .build(),
            Action::Write if self.registered => {
                opcode::WriteFixed::new(file, self.write.start, length, 1)
                    .offset(start)
                    .build()
            }
            Action::Write => opcode::Write::new(file, self.write.start, length)
                .offset(start)
                .build(),
            Action::Flush => opcode::Fsync::new(file).flags(FsyncFlags::DATASYNC).build(),
            Action::Discard => opcode::Fallocate::new(file, bytes)
                .offset(start)
                .mode(DISCARD)
                .build(),
        }
    }

    /// Submits the added entries to the kernel, as many as the kernel accepts now.
    pub(crate) fn submit(&mut self) -> io::Result<()> {
        tolerate(self.ring.submit())
    }

    /// Returns true if the kernel has all added entries.
    pub(crate) fn is_submitted(&mut self) -> bool {
        self.ring.submission().is_empty()
    }

    /// Sleeps until an entry completes, at most `limit`.
    pub(crate) fn wait(&mut self, limit: Duration) -> io::Result<()> {
        let limit = Timespec::new()
            .sec(limit.as_secs())
            .nsec(limit.subsec_nanos());
        let arguments = SubmitArgs::new().timespec(&limit);
        tolerate(self.ring.submitter().submit_with_args(1, &arguments))
    }

    /// Adds the completed entries to `answers`.
    pub(crate) fn reap(&mut self, answers: &mut Vec<PieceAnswer>) {
        let before = answers.len();
        let done = |entry: cqueue::Entry| PieceAnswer::Done {
            user: entry.user_data(),
            result: entry.result(),
        };
        answers.extend(self.ring.completion().map(done));
        let reaped = (answers.len() - before) as u64;
        assert!(
            reaped <= self.outstanding,
            "the kernel answers {reaped} of {} requests",
            self.outstanding
        );
        self.outstanding -= reaped;
    }
}

/// Ignores a wait that ended early and a full queue, because the caller looks again.
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
        // If requests are outstanding, the kernel may still write into the buffers. Then the
        // buffers are leaked.
        if self.outstanding == 0 {
            let _ = self.ring.submitter().unregister_buffers();
            self.read.free();
            self.write.free();
        }
    }
}
