//! Time limits of requests, and the reads that are under way.

use fullstroke_volume::IoTotals;
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Time limit of a request, the state of the device, and the times of its reads.
#[derive(Debug)]
pub struct Limit {
    each: Duration,
    has_hung: AtomicBool,
    /// Number of reads that have ended, and the sum of their times in ns.
    reads: AtomicU64,
    read_ns: AtomicU64,
    /// Reads under way. A request may end before its read does.
    begun: Mutex<BegunReads>,
}

/// Reads under way. A request may end before its read does.
#[derive(Debug, Default)]
struct BegunReads {
    /// Number of the next read.
    next: u64,
    /// Reads by their numbers, so the first is the oldest.
    reads: BTreeMap<u64, BegunRead>,
    /// Number of reads that are left behind.
    left_behind: usize,
}

#[derive(Clone, Copy, Debug)]
struct BegunRead {
    began: Instant,
    /// True once no request waits for the read.
    is_left: bool,
}

impl Limit {
    /// Returns a limit for each request.
    pub(crate) fn new(each: Duration) -> Limit {
        Limit {
            each,
            has_hung: AtomicBool::new(false),
            reads: AtomicU64::new(0),
            read_ns: AtomicU64::new(0),
            begun: Mutex::default(),
        }
    }

    /// Longest time of a request.
    pub fn each(&self) -> Duration {
        self.each
    }

    /// Notes the time of a read that has ended.
    pub(crate) fn note_read(&self, took: Duration) {
        self.read_ns.fetch_add(nanos(took), Ordering::Relaxed);
        self.reads.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the reads that have ended, and their times.
    pub(crate) fn reads(&self) -> IoTotals {
        IoTotals {
            ios: self.reads.load(Ordering::Relaxed),
            time: fullstroke_units::Duration::from_nanos(self.read_ns.load(Ordering::Relaxed)),
        }
    }

    /// Notes a read that begins at `now`. The request may end before the read does. Returns the
    /// number of the read.
    pub(crate) fn begin_read(&self, now: Instant) -> u64 {
        let mut begun = self.begun();
        let number = begun.next;
        begun.next += 1;
        let read = BegunRead {
            began: now,
            is_left: false,
        };
        begun.reads.insert(number, read);
        number
    }

    /// Notes that no request waits for a read any more, unless the read has ended.
    pub(crate) fn leave_read(&self, number: u64) {
        let mut begun = self.begun();
        let left = begun.reads.get_mut(&number);
        if left.is_some_and(|read| !std::mem::replace(&mut read.is_left, true)) {
            begun.left_behind += 1;
        }
    }

    /// Notes the end of a read. Returns true if the read was left behind.
    pub(crate) fn end_read(&self, number: u64) -> bool {
        let mut begun = self.begun();
        let ended = begun.reads.remove(&number);
        debug_assert!(ended.is_some(), "read {number} ends twice");
        let was_left = ended.is_some_and(|read| read.is_left);
        begun.left_behind -= usize::from(was_left);
        was_left
    }

    /// Returns the number of reads that are under way and left behind.
    pub(crate) fn left_behind(&self) -> usize {
        self.begun().left_behind
    }

    /// Notes that the device has hung if a read under way has exceeded the limit at `now`. Without
    /// this check nobody would notice, because no request waits for a read that is left behind.
    pub(crate) fn check_begun(&self, now: Instant) {
        let oldest = self
            .begun()
            .reads
            .first_key_value()
            .map(|read| read.1.began);
        if oldest.is_some_and(|began| now.saturating_duration_since(began) >= self.each) {
            self.note_timeout();
        }
    }

    fn begun(&self) -> MutexGuard<'_, BegunReads> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
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

/// Returns a time in nanoseconds, at most the largest number.
pub(crate) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_that_are_left_behind_are_counted_until_they_end() {
        let (limit, now) = (Limit::new(Duration::from_secs(9)), Instant::now());
        let [first, second] = [(); 2].map(|()| limit.begin_read(now));
        limit.leave_read(first);
        limit.leave_read(first);
        assert_eq!(limit.left_behind(), 1);
        assert!(!limit.end_read(second));
        // A request may leave a read that has ended meanwhile.
        limit.leave_read(second);
        assert_eq!(limit.left_behind(), 1);
        assert!(limit.end_read(first));
        assert_eq!(limit.left_behind(), 0);
    }

    #[test]
    fn a_read_that_is_left_behind_keeps_the_time_limit() {
        let (limit, now) = (Limit::new(Duration::from_secs(9)), Instant::now());
        let number = limit.begin_read(now);
        limit.leave_read(number);
        limit.check_begun(now + Duration::from_secs(8));
        assert!(limit.check().is_ok());
        limit.check_begun(now + Duration::from_secs(9));
        assert!(limit.check().is_err());
    }
}
