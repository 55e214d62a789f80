//! Wakes who waits for descriptors.

use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Wakes who waits for it from another thread: an eventfd.
#[derive(Debug)]
pub struct Waker(OwnedFd);

impl Waker {
    /// One that wakes nobody yet.
    ///
    /// # Errors
    /// The host's.
    pub fn new() -> io::Result<Waker> {
        Ok(Waker(eventfd(
            0,
            EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK,
        )?))
    }

    /// Readable from now on, until it is cleared.
    pub fn wake(&self) {
        // It cannot fail but for 2^64 calls without a clear.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    /// Wakes nobody any more.
    pub fn clear(&self) {
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
