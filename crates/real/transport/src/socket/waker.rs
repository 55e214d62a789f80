//! Wakes a thread that waits for descriptors.

use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Wakes a waiting thread from another thread, by an eventfd.
#[derive(Debug)]
pub struct Waker(OwnedFd);

impl Waker {
    /// Creates an unsignalled waker.
    ///
    /// # Errors
    /// An error of the host.
    pub fn new() -> io::Result<Waker> {
        Ok(Waker(eventfd(
            0,
            EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK,
        )?))
    }

    /// Makes the descriptor readable until cleared.
    pub fn wake(&self) {
        // The write fails only after 2^64 calls without a clear.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    /// Clears the signal.
    pub fn clear(&self) {
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
