//! The share of time that copies may take (`dm_kcopyd_throttle`, drivers/md/dm-kcopyd.c).

use fullstroke_units::{Duration, Time};

/// Time after which older times count half: 256 jiffies at 250 Hz (`ACCOUNT_INTERVAL_SHIFT`).
const INTERVAL: Duration = Duration::from_millis(1024);
/// Pause of a copy that is ahead of its share (`SLEEP_USEC`).
const PAUSE: Duration = Duration::from_millis(100);
/// Largest number of pauses before one I/O (`MAX_SLEEPS`).
const PAUSES_MAX: u32 = 10;

/// Share of time that copies may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct CopyThrottle {
    /// Largest percentage of the time with copies under way; 100 for no limit.
    pub(super) percent: u32,
    /// I/Os of copies in flight.
    in_flight: u32,
    /// Time with I/Os in flight, and all time, in nanoseconds.
    busy: u64,
    all: u64,
    last: Time,
    /// Pauses before the next I/O so far.
    pauses: u32,
}

impl CopyThrottle {
    pub(super) fn new() -> CopyThrottle {
        CopyThrottle {
            percent: 100,
            in_flight: 0,
            busy: 0,
            all: 0,
            last: Time::ZERO,
            pauses: 0,
        }
    }

    /// Begins an I/O at `now`. Returns the end of a pause if the I/O must wait (`io_job_start`).
    pub(super) fn begin(&mut self, now: Time) -> Option<Time> {
        if self.percent < 100 {
            self.account(now, self.in_flight > 0);
            while self.all >= INTERVAL.as_nanos() {
                self.all /= 2;
                self.busy /= 2;
            }
            let ahead = self.busy > self.all / 100 * u64::from(self.percent);
            if ahead && self.pauses < PAUSES_MAX {
                self.pauses += 1;
                return Some(now + PAUSE);
            }
        }
        self.pauses = 0;
        self.in_flight += 1;
        None
    }

    /// Ends an I/O at `now` (`io_job_finish`).
    pub(super) fn end(&mut self, now: Time) {
        self.in_flight -= 1;
        if self.percent < 100 && self.in_flight == 0 {
            self.account(now, true);
        }
    }

    fn account(&mut self, now: Time, busy: bool) {
        let passed = now.saturating_since(self.last).as_nanos();
        self.last = now;
        self.all += passed;
        if busy {
            self.busy += passed;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_take_their_share_of_the_time() {
        let mut throttle = CopyThrottle::new();
        throttle.percent = 50;
        let (mut now, mut busy) = (Time::ZERO, Duration::ZERO);
        let step = Duration::from_millis(20);
        while now < Time::ZERO + Duration::from_secs(60) {
            match throttle.begin(now) {
                Some(until) => now = until,
                None => {
                    now += step;
                    busy += step;
                    throttle.end(now);
                }
            }
        }
        let share = busy.as_secs_f64() / now.since(Time::ZERO).as_secs_f64();
        assert!((0.42..0.58).contains(&share), "{share}");
    }
}
