//! The clock of a drive inside a slow drive.

use fullstroke_units::{Duration, Time};

/// Thousandths of a factor of 1.
pub(super) const ONE: u64 = 1000;

/// Speed of the clock inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// Time inside times this factor, in thousandths, is the time outside.
    Factor(u64),
    /// The clock inside stands.
    Standing,
}

/// A clock that maps the time outside to the time inside. Both are equal at time 0, and the time
/// inside never runs ahead.
#[derive(Clone, Copy, Debug)]
pub(super) struct StretchedClock {
    /// Time outside from which the present pace holds. Before, the clock stands at `inner`.
    outer: Time,
    inner: Time,
    pace: Pace,
}

impl StretchedClock {
    pub(super) fn new() -> StretchedClock {
        StretchedClock {
            outer: Time::ZERO,
            inner: Time::ZERO,
            pace: Pace::Factor(ONE),
        }
    }

    /// Returns the time inside at `outer`, rounded down.
    pub(super) fn inner_at(&self, outer: Time) -> Time {
        let passed = outer.saturating_since(self.outer).as_nanos();
        match self.pace {
            Pace::Standing => self.inner,
            Pace::Factor(ONE) => self.inner + Duration::from_nanos(passed),
            Pace::Factor(factor) => {
                let inside = u128::from(passed) * u128::from(ONE) / u128::from(factor);
                self.inner + Duration::from_nanos(inside as u64)
            }
        }
    }

    /// Returns the first time outside at which the clock inside shows `inner`. [`Time::NEVER`] if
    /// the clock stands.
    pub(super) fn outer_of(&self, inner: Time) -> Time {
        if inner == Time::NEVER {
            return inner;
        }
        let ahead = inner.saturating_since(self.inner).as_nanos();
        match self.pace {
            _ if ahead == 0 => self.outer,
            Pace::Standing => Time::NEVER,
            Pace::Factor(factor) => {
                let outside = (u128::from(ahead) * u128::from(factor)).div_ceil(u128::from(ONE));
                let outside = u64::try_from(outside).unwrap_or(u64::MAX);
                self.outer.saturating_add(Duration::from_nanos(outside))
            }
        }
    }

    /// Changes the pace at `outer`. A clock that is held later than `outer` stays held.
    pub(super) fn set(&mut self, outer: Time, pace: Pace) {
        if outer > self.outer {
            (self.inner, self.outer) = (self.inner_at(outer), outer);
        }
        self.pace = pace;
    }

    /// Lets a held clock go on at `outer`.
    pub(super) fn release(&mut self, outer: Time) {
        self.outer = self.outer.min(outer);
    }

    /// Lets the clock stand at `inner`, the present, until `outer`.
    pub(super) fn hold(&mut self, inner: Time, outer: Time) {
        debug_assert!(
            inner >= self.inner && outer >= self.outer,
            "a clock at {:?} is held at {inner:?}",
            self.inner
        );
        (self.inner, self.outer) = (inner, outer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// An event inside is due outside when the clock shows its time, and not earlier.
        #[test]
        fn the_two_directions_agree(steps in prop::collection::vec((0u64..1000, 1000u64..20_000, any::<bool>()), 1..20), ahead in 0u64..100_000) {
            let mut clock = StretchedClock::new();
            let mut now = 0;
            for (step, factor, stands) in steps {
                now += step;
                clock.set(Time::from_nanos(now), if stands { Pace::Standing } else { Pace::Factor(factor) });
                prop_assert!(clock.inner_at(Time::from_nanos(now)) <= Time::from_nanos(now));
                let event = clock.inner_at(Time::from_nanos(now)) + Duration::from_nanos(ahead);
                let due = clock.outer_of(event);
                if due != Time::NEVER {
                    prop_assert!(clock.inner_at(due) >= event);
                    if due > Time::from_nanos(now) {
                        let before = Time::from_nanos(due.as_nanos() - 1);
                        prop_assert!(clock.inner_at(before) < event);
                    }
                }
            }
        }
    }
}
