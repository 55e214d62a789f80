//! `pread` and `pwrite` on one file, from any thread.

use crate::issued::Action;
use crate::memory::{DISCARD, KernelMemory};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;

/// A file, and the memory for its calls. Both live as long as a thread is in a call.
pub(crate) struct Calls {
    file: File,
    read: KernelMemory,
    write: KernelMemory,
}

// SAFETY: nothing is read through the pointers of `KernelMemory`. Only the kernel uses the memory.
// The memory lives until the last thread has dropped its reference to `Calls`.
#[expect(unsafe_code, reason = "memory that the kernel alone uses")]
unsafe impl Send for Calls {}
// SAFETY: as above; the other fields are `Sync`.
#[expect(unsafe_code, reason = "memory that the kernel alone uses")]
unsafe impl Sync for Calls {}

impl Calls {
    pub(crate) fn new(file: &File) -> io::Result<Calls> {
        Ok(Calls {
            file: file.try_clone()?,
            read: KernelMemory::new(),
            write: KernelMemory::scrambled(),
        })
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Carries out an action and waits in the kernel. Returns the result in the form of a ring:
    /// bytes, or a negative error. `bytes` is at most [`PIECE_BYTES`](crate::memory::PIECE_BYTES)
    /// for reads and writes.
    #[expect(
        unsafe_code,
        reason = "many threads read into the same memory, so it can be no slice"
    )]
    pub(crate) fn carry_out(&self, action: Action, start: u64, bytes: u64) -> i32 {
        let file = self.file.as_raw_fd();
        let (length, offset) = (bytes as usize, start as libc::off_t);
        loop {
            // SAFETY: both pieces of memory are as long as the longest piece of a request. Memory
            // and open file live as long as `self`.
            let result = unsafe {
                match action {
                    Action::Read => libc::pread(file, self.read.start.cast(), length, offset),
                    Action::Write => libc::pwrite(file, self.write.start.cast(), length, offset),
                    Action::Flush => libc::fdatasync(file) as isize,
                    Action::Discard => {
                        libc::fallocate(file, DISCARD, offset, bytes as libc::off_t) as isize
                    }
                }
            };
            match io::Error::last_os_error().raw_os_error() {
                _ if result >= 0 => return result as i32,
                Some(libc::EINTR) => {}
                error => return -error.unwrap_or(libc::EIO),
            }
        }
    }
}

impl Drop for Calls {
    fn drop(&mut self) {
        self.read.free();
        self.write.free();
    }
}
