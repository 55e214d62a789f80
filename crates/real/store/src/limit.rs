//! Time limits of requests.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Time limit of a request, and the state of the device.
#[derive(Debug)]
pub struct Limit {
    each: Duration,
    has_hung: AtomicBool,
}

impl Limit {
    /// Returns a limit for each request.
    pub(crate) fn new(each: Duration) -> Limit {
        Limit {
            each,
            has_hung: AtomicBool::new(false),
        }
    }

    /// Longest time of a request.
    pub fn each(&self) -> Duration {
        self.each
    }

    /// Notes that a request exceeded the limit.
    pub(crate) fn note_timeout(&self) {
        self.has_hung.store(true, Ordering::SeqCst);
    }

    /// Returns an error if the device has hung.
    pub(crate) fn check(&self) -> io::Result<()> {
        match self.has_hung.load(Ordering::SeqCst) {
            true => Err(no_answer(self.each)),
            false => Ok(()),
        }
    }
}

/// Returns the error of a request without an answer.
pub(crate) fn no_answer(each: Duration) -> io::Error {
    let message = format!("no answer within {} s", each.as_secs_f64());
    io::Error::new(io::ErrorKind::TimedOut, message)
}
