//! The clock of the host's timers.
//!
//! Kernels still count most times in ticks: `jiffies` grows by one `HZ` times a second, and the
//! kernel compares ticks. An expiry in milliseconds becomes a whole number of ticks, and a timer
//! goes off at a tick. Events between two ticks have the same time.

use fullstroke_contract::ConfigError;
use fullstroke_units::{Duration, Time};

/// The frequencies of kernel builds (`kernel/Kconfig.hz`).
const FREQUENCIES: [u32; 4] = [100, 250, 300, 1000];

/// A clock: exact, or in ticks from the beginning of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TickClock {
    tick: Option<Duration>,
}

impl TickClock {
    /// Exact to the nanosecond.
    pub const EXACT: TickClock = TickClock { tick: None };

    /// Returns a clock with `hz` ticks a second, or an exact clock for `None`.
    ///
    /// # Errors
    /// No kernel is built with the frequency.
    pub fn new(hz: Option<u32>) -> Result<TickClock, ConfigError> {
        let Some(hz) = hz else {
            return Ok(TickClock::EXACT);
        };
        if !FREQUENCIES.contains(&hz) {
            let message = format!(
                "found {hz}; expected 100, 250, 300 or 1000 ticks a second; without the key the clock is exact"
            );
            return Err(ConfigError::new("hz", message));
        }
        Ok(TickClock {
            tick: Some(Duration::from_secs(1) / u64::from(hz)),
        })
    }

    /// Refuses a clock with ticks. Elevators whose kernels read a clock of nanoseconds, and set
    /// their timers in nanoseconds, call this function.
    ///
    /// # Errors
    /// The clock counts in ticks.
    pub fn must_be_exact(self, elevator: &str) -> Result<(), ConfigError> {
        match self.tick {
            None => Ok(()),
            Some(_) => {
                let message =
                    format!("has no effect: `{elevator}` uses an exact clock; remove the key");
                Err(ConfigError::new("hz", message))
            }
        }
    }

    /// Returns the reading of the clock at `now`: the time of the last tick.
    #[inline]
    pub fn read(self, now: Time) -> Time {
        match self.tick {
            None => now,
            Some(tick) => Time::from_nanos(now.as_nanos() - now.as_nanos() % tick.as_nanos()),
        }
    }

    /// Returns the time at which a timer for `at` goes off: the first tick that is not before `at`.
    #[inline]
    pub fn timer(self, at: Time) -> Time {
        match self.tick {
            Some(tick) if at != Time::NEVER => {
                let tick = tick.as_nanos();
                Time::from_nanos(at.as_nanos().div_ceil(tick).saturating_mul(tick))
            }
            _ => at,
        }
    }

    /// Returns the expiry that a kernel makes of `span`: `span * HZ / 1000` ticks, rounded down,
    /// but at least one tick. The rule is that of `default_antic_expire` of `block/as-iosched.c`,
    /// `cfq_init` of `block/cfq-iosched.c`, and `blk_queue_make_request` of `block/ll_rw_blk.c`,
    /// Linux 2.6.24. A span of zero stays zero.
    pub fn whole(self, span: Duration) -> Duration {
        if span == Duration::ZERO {
            span
        } else {
            // A time above 0 is one tick at least, as `msecs_to_jiffies` rounds up.
            self.span(self.count(span).max(1))
        }
    }

    /// Returns [`whole`](TickClock::whole) plus one tick, for kernels that compare with
    /// `time_after`: there an expiry must lie in the past.
    pub fn past(self, span: Duration) -> Duration {
        self.whole(span) + self.tick.unwrap_or(Duration::ZERO)
    }

    /// Returns [`whole`](TickClock::whole) minus one tick: the longest time that is shorter than
    /// the expiry.
    pub fn short_of(self, span: Duration) -> Duration {
        self.whole(span)
            .saturating_sub(self.tick.unwrap_or(Duration::ZERO))
    }

    /// Returns the length of a tick; 1 ms if the clock is exact.
    pub fn tick(self) -> Duration {
        // An exact clock still needs a tick for rules that count ticks. 1 ms is the tick of
        // HZ=1000.
        self.tick.unwrap_or(Duration::from_millis(1))
    }

    /// Returns the number of whole ticks in `span`; nanoseconds if the clock is exact.
    pub fn count(self, span: Duration) -> u64 {
        span.as_nanos() / self.unit()
    }

    /// Returns the length of `count` ticks, or of `count` nanoseconds if the clock is exact.
    pub fn span(self, count: u64) -> Duration {
        Duration::from_nanos(count.saturating_mul(self.unit()))
    }

    fn unit(self) -> u64 {
        self.tick.map_or(1, Duration::as_nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hz(frequency: u32) -> TickClock {
        TickClock::new(Some(frequency)).unwrap()
    }

    #[test]
    fn expiries_have_as_many_ticks_as_in_the_kernels() {
        // `default_antic_expire`, `cfq_slice_idle`, `unplug_delay` and `read_expire`.
        let usual = [6_700, 8_000, 3_000, 500_000].map(Duration::from_micros);
        for (frequency, ticks) in [
            (100, [1, 1, 1, 50]),
            (250, [1, 2, 1, 125]),
            (300, [2, 2, 1, 150]),
            (1000, [6, 8, 3, 500]),
        ] {
            let clock = hz(frequency);
            assert_eq!(
                usual.map(|span| clock.count(clock.whole(span))),
                ticks,
                "{frequency} Hz"
            );
        }
        assert_eq!(hz(250).whole(Duration::ZERO), Duration::ZERO);
        assert_eq!(
            hz(250).past(Duration::from_millis(9)),
            Duration::from_millis(12)
        );
        assert_eq!(
            hz(250).short_of(Duration::from_millis(20)),
            Duration::from_millis(16)
        );
    }

    #[test]
    fn a_frequency_that_no_kernel_has_is_refused() {
        assert_eq!(TickClock::new(Some(0)).unwrap_err().key, "hz");
        assert_eq!(TickClock::new(Some(1024)).unwrap_err().key, "hz");
        assert_eq!(hz(100).must_be_exact("kyber").unwrap_err().key, "hz");
        assert!(TickClock::new(None).unwrap().must_be_exact("kyber").is_ok());
    }

    proptest! {
        #[test]
        fn an_exact_clock_changes_nothing(nanoseconds: u64) {
            let (now, span) = (Time::from_nanos(nanoseconds), Duration::from_nanos(nanoseconds));
            prop_assert_eq!(TickClock::EXACT.read(now), now);
            prop_assert_eq!([TickClock::EXACT.whole(span), TickClock::EXACT.past(span), TickClock::EXACT.short_of(span)], [span; 3]);
            prop_assert_eq!(TickClock::EXACT.span(TickClock::EXACT.count(span)), span);
        }

        #[test]
        fn a_timer_goes_off_when_the_clock_shows_its_time(
            at in 0u64..1 << 50, frequency in prop::sample::select(&FREQUENCIES[..]),
        ) {
            let (clock, at) = (hz(frequency), Time::from_nanos(at));
            let off = clock.timer(at);
            prop_assert!(clock.read(off) >= at);
            prop_assert!(off == at || clock.read(Time::from_nanos(off.as_nanos() - 1)) < at);
            prop_assert_eq!(clock.timer(off), off);
            prop_assert_eq!(clock.timer(Time::NEVER), Time::NEVER);
        }

        #[test]
        fn a_timer_goes_off_at_a_tick_and_no_more_than_one_too_early(
            now in 0u64..1 << 50, span in 1u64..1 << 40, frequency in prop::sample::select(&FREQUENCIES[..]),
        ) {
            let (clock, now, span) = (hz(frequency), Time::from_nanos(now), Duration::from_nanos(span));
            let due = clock.read(now) + clock.whole(span);
            prop_assert_eq!(clock.read(due), due);
            prop_assert!(due > now);
            prop_assert!(due + clock.tick() * 2 > now + span);
        }
    }
}
