//! The real clock, and how it runs against the world's.

use fullstroke_units::Time;
use std::time::{Duration, Instant};

/// How the world's time passes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// So many times as fast as outside: 1 is real time.
    Times(f64),
    /// From event to event, without waiting: bytes and decisions are those of
    /// the stack, response times are not.
    Immediate,
}

/// Tells the world's time. It begins at 0 and never goes back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    began: Instant,
    speed: f64,
}

impl Clock {
    /// A clock that begins now.
    pub(crate) fn start(speed: f64) -> Clock {
        Clock {
            began: Instant::now(),
            speed,
        }
    }

    /// What time it is in the world.
    pub(crate) fn now(&self) -> Time {
        let elapsed = self.began.elapsed().as_nanos() as u64;
        if self.speed == 1.0 {
            return Time::from_nanos(elapsed);
        }
        Time::from_nanos((elapsed as f64 * self.speed) as u64)
    }

    /// How long to wait outside until it is `due` in the world, given that it
    /// is `now`; at least as long.
    pub(crate) fn wait(&self, now: Time, due: Time) -> Duration {
        let world = due.since(now.min(due)).as_nanos();
        if self.speed == 1.0 {
            return Duration::from_nanos(world);
        }
        Duration::from_nanos((world as f64 / self.speed).ceil() as u64)
    }

    /// A span of the world's time, in nanoseconds outside.
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
            let clock = Clock::start(speed);
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
