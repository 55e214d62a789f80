//! Time limits of requests.

use fullstroke_volume::IoTotals;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Time limit of a request, the state of the device, and the times of its reads.
#[derive(Debug)]
pub struct Limit {
    each: Duration,
    has_hung: AtomicBool,
    /// Number of reads that have ended, and the sum of their times in ns.
    reads: AtomicU64,
    read_ns: AtomicU64,
}

impl Limit {
    /// Returns a limit for each request.
    pub(crate) fn new(each: Duration) -> Limit {
        Limit {
            each,
            has_hung: AtomicBool::new(false),
            reads: AtomicU64::new(0),
            read_ns: AtomicU64::new(0),
        }
    }

    /// Longest time of a request.
    pub fn each(&self) -> Duration {
        self.each
    }

    /// Notes the time of a read that has ended.
    pub(crate) fn note_read(&self, took: Duration) {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.read_ns.fetch_add(nanos, Ordering::Relaxed);
        self.reads.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the reads that have ended, and their times.
    pub(crate) fn reads(&self) -> IoTotals {
        IoTotals {
            ios: self.reads.load(Ordering::Relaxed),
            time: fullstroke_units::Duration::from_nanos(self.read_ns.load(Ordering::Relaxed)),
        }
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
