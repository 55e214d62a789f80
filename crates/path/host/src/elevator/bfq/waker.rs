//! Detection of the queue that wakes another: its completions let the process of the other queue
//! send the next request, as the journal does for a process that waits in fsync.

use fullstroke_units::{Duration, Time};

/// Number of detections in a row after which the waker is known.
const DETECTIONS: u32 = 3;
/// Time for the detections, in idle slices.
const SLICES: u64 = 128;

/// The waker of a queue, known or suspected.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Waker {
    pub(super) known: Option<u32>,
    suspected: Option<u32>,
    detections: u32,
    since: Time,
}

impl Waker {
    /// Notes that a request came shortly after a completion of `queue`. Returns true if `queue` is
    /// the waker from now on.
    pub(super) fn suspect(&mut self, now: Time, queue: u32, slice_idle: Duration) -> bool {
        if self.suspected == Some(queue) && now <= self.since + slice_idle.saturating_mul(SLICES) {
            self.detections += 1;
        } else {
            self.suspected = Some(queue);
            self.detections = 1;
            self.since = now;
        }
        let known = self.detections == DETECTIONS;
        if known {
            self.known = Some(queue);
            self.suspected = None;
        }
        known
    }

    /// Takes the waker of a queue that was merged or split.
    pub(super) fn inherited(known: Option<u32>) -> Waker {
        Waker {
            known,
            ..Waker::default()
        }
    }

    /// Forgets `queue`, which is no queue any more.
    pub(super) fn forget(&mut self, queue: u32) {
        self.known = self.known.filter(|&known| known != queue);
        self.suspected = self.suspected.filter(|&suspected| suspected != queue);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn three_detections_within_a_second_make_a_waker() {
        let slice_idle = Duration::from_millis(8);
        let mut waker = Waker::default();
        assert!(!waker.suspect(at(0), 1, slice_idle));
        assert!(!waker.suspect(at(10), 1, slice_idle));
        // Another suspect begins anew.
        assert!(!waker.suspect(at(20), 2, slice_idle));
        assert!(!waker.suspect(at(30), 2, slice_idle));
        assert!(waker.suspect(at(40), 2, slice_idle));
        assert_eq!(waker.known, Some(2));
        // 1,024 ms after the first detection the count begins anew.
        let mut slow = Waker::default();
        for ms in [0, 1000, 1025] {
            assert!(!slow.suspect(at(ms), 1, slice_idle), "{ms}");
        }
    }
}
