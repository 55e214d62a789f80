//! The real clock, and its relation to the world's clock.

use fullstroke_units::Time;
use std::time::{Duration, Instant};

/// Pace of the world's time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WorldPace {
    /// Speed of the world's time: 1 is real time.
    Times(f64),
    /// From event to event, without waiting. Data and decisions are those of the stack, response
    /// times are not.
    Immediate,
}

/// The world's clock, which begins at 0 and never goes back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorldClock {
    began: Instant,
    speed: f64,
}

impl WorldClock {
    /// Returns a clock that begins now.
    pub(crate) fn start(speed: f64) -> WorldClock {
        WorldClock {
            began: Instant::now(),
            speed,
        }
    }

    /// Returns the present time of the world.
    pub(crate) fn now(&self) -> Time {
        let elapsed = self.began.elapsed().as_nanos() as u64;
        // Real time is exact in integers. A floating-point product loses nanoseconds after 2^53 ns
        // (104 days).
        if self.speed == 1.0 {
            return Time::from_nanos(elapsed);
        }
        Time::from_nanos((elapsed as f64 * self.speed) as u64)
    }

    /// Returns the real time to wait from `now` until `due`, both in the world's time, rounded up.
    pub(crate) fn wait(&self, now: Time, due: Time) -> Duration {
        let world = due.since(now.min(due)).as_nanos();
        if self.speed == 1.0 {
            return Duration::from_nanos(world);
        }
        // Rounded up: a wait that ends before the event is due would be followed by another wait.
        Duration::from_nanos((world as f64 / self.speed).ceil() as u64)
    }

    /// Converts a span of the world's time to nanoseconds of real time.
    pub(crate) fn outside_ns(&self, world: fullstroke_units::Duration) -> u64 {
        (world.as_nanos() as f64 / self.speed) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_never_shorter_than_what_is_left() {
        for speed in [1.0, 3.0, 0.1, 1000.0] {
            let clock = WorldClock::start(speed);
            for left in [0u64, 1, 2, 7, 999, 1_000_003, 86_400_000_000_001] {
                let wait = clock.wait(Time::from_nanos(5), Time::from_nanos(5 + left));
                assert!(
                    wait.as_nanos() as f64 * speed >= left as f64,
                    "{left} ns at {speed}"
                );
            }
            assert_eq!(
                clock.wait(Time::from_nanos(9), Time::from_nanos(5)),
                Duration::ZERO
            );
        }
    }
}
