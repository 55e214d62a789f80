//! Tolerance of a queue for requests of others, and its measurement.

use fullstroke_units::{Duration, Time};

/// Tolerance of a queue for injection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tolerance {
    /// Largest number of requests in flight at which another may be injected.
    pub(super) limit: u32,
    /// Time of a request of this queue without injection.
    pub(super) undisturbed: Option<Duration>,
    /// Time when the limit was lowered or reset.
    pub(super) lowered: Time,
}

impl Tolerance {
    /// Returns the initial tolerance. A queue whose next request will probably come soon starts
    /// with none, because a request of another queue usually takes longer
    /// (`bfq_reset_inject_limit`).
    pub(super) fn new(now: Time, thinks_shortly: bool) -> Tolerance {
        Tolerance {
            limit: u32::from(!thinks_shortly),
            undisturbed: None,
            lowered: now,
        }
    }

    /// Evaluates a measured request. `disturbed` is true if requests of others were injected,
    /// `alone` if the request was the last in flight. `most` is the largest number of requests in
    /// flight seen lately. A queue tolerates one and a half times its undisturbed time
    /// (`bfq_update_inject_limit`).
    pub(super) fn measured(
        &mut self,
        now: Time,
        time: Duration,
        disturbed: bool,
        alone: bool,
        most: u32,
    ) {
        let limit = self.limit;
        if let Some(undisturbed) = self.undisturbed.filter(|_| disturbed) {
            let bearable = time < undisturbed * 3 / 2;
            if !bearable && limit > 0 {
                self.limit -= 1;
                self.lowered = now;
            } else if bearable && limit <= most {
                self.limit += 1;
            }
        }
        match self.undisturbed {
            None if alone => {
                self.limit = limit.max(1);
                self.undisturbed = Some(time);
            }
            Some(undisturbed) if time < undisturbed || (alone && !disturbed) => {
                self.undisturbed = Some(time)
            }
            _ => {}
        }
    }
}

/// The present measurement.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Injection {
    /// True if requests of others were sent since the queue had none.
    pub(super) injected: bool,
    /// Arrival of the first request after a pause, until its dispatch.
    pub(super) arrived: Option<Time>,
    /// The measured request in flight, and its arrival.
    pub(super) measured: Option<(u32, Time)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_nanos(1_000_000_000);

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn the_limit_rises_while_others_do_no_harm_and_falls_when_they_do() {
        let mut tolerance = Tolerance::new(Time::ZERO, true);
        assert_eq!(tolerance.limit, 0);
        tolerance.measured(NOW, ms(10), false, true, 8);
        assert_eq!((tolerance.limit, tolerance.undisturbed), (1, Some(ms(10))));
        tolerance.measured(NOW, ms(14), true, false, 8);
        assert_eq!(tolerance.limit, 2);
        tolerance.measured(NOW, ms(15), true, false, 8);
        assert_eq!((tolerance.limit, tolerance.lowered), (1, NOW));
        // A shorter time holds at once. A longer time holds only if it was undisturbed.
        tolerance.measured(NOW, ms(8), true, false, 8);
        assert_eq!(tolerance.undisturbed, Some(ms(8)));
        tolerance.measured(NOW, ms(12), false, true, 8);
        assert_eq!(tolerance.undisturbed, Some(ms(12)));
    }

    #[test]
    fn those_who_think_long_bear_one_request_from_the_start() {
        assert_eq!(Tolerance::new(NOW, false).limit, 1);
    }
}
