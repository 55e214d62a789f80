//! Exact rotation.
//!
//! An [`Angle`] is a 64-bit fraction of a revolution, so wrapping subtraction *is* arithmetic
//! modulo one revolution. A [`Spindle`] turns an instant into an angle with one wide multiplication
//! by a reciprocal of 96 fractional bits. After 292 years the accumulated error is below 2^-32 of a
//! revolution (2 ps at 7,200 rpm). The error never depends on earlier events.

use crate::{Duration, Time};
use std::ops::{Add, Sub};

/// An angle on the platter in units of 2^-64 revolution, in the direction in which sectors pass the
/// head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Angle(pub u64);

impl Angle {
    /// Angle 0: the index mark, which is under the head at time 0.
    pub const ZERO: Angle = Angle(0);

    /// Returns `numerator / denominator` of a revolution, modulo one revolution, rounded down to
    /// 2^-64.
    ///
    /// # Panics
    /// If `denominator` is zero.
    pub const fn from_ratio(numerator: u64, denominator: u64) -> Angle {
        let part = (numerator % denominator) as u128;
        Angle(((part << 64) / denominator as u128) as u64)
    }

    /// Returns the angle nearest to `revolutions`, modulo one revolution.
    pub fn from_revolutions(revolutions: f64) -> Angle {
        Angle((revolutions.rem_euclid(1.0) * 18_446_744_073_709_551_616.0) as u64)
    }

    /// Returns the angle in revolutions, in `[0, 1)`.
    pub fn as_revolutions(self) -> f64 {
        self.0 as f64 / 18_446_744_073_709_551_616.0
    }
}

impl Add for Angle {
    type Output = Angle;
    fn add(self, other: Angle) -> Angle {
        Angle(self.0.wrapping_add(other.0))
    }
}
impl Sub for Angle {
    type Output = Angle;
    fn sub(self, other: Angle) -> Angle {
        Angle(self.0.wrapping_sub(other.0))
    }
}

/// A motor with constant speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spindle {
    /// Speed in 1/1000 rpm.
    milli_rpm: u64,
    /// Revolutions per nanosecond, times 2^96, modulo 2^128.
    revolutions_per_ns: u128,
    /// Nanoseconds per revolution, times 2^32.
    ns_per_revolution: u128,
    /// Angle passed in [`GRACE_NS`].
    grace: u64,
}

/// Tolerance for an angle that was just missed, in nanoseconds. An angle missed by less counts as
/// met. Instants are rounded to the nanosecond. Without the tolerance, a sector directly behind the
/// previous one could cost a full revolution.
const GRACE_NS: u64 = 2;

/// Nanoseconds per minute, times 1000. This value divided by milli-rpm is the revolution time.
const MILLI_NS_PER_MINUTE: u128 = 60_000_000_000_000;

impl Spindle {
    /// Creates a motor with `rpm` revolutions per minute. Returns `None` if `rpm` is not in `(0,
    /// 1_000_000]` or not a multiple of 0.001.
    pub fn new(rpm: f64) -> Option<Spindle> {
        let milli = (rpm * 1000.0).round();
        // The tolerance of 1e-4 admits decimal fractions that have no exact binary form.
        if !(rpm.is_finite() && (1.0..=1e9).contains(&milli) && (milli - rpm * 1000.0).abs() < 1e-4)
        {
            return None;
        }
        let milli_rpm = milli as u64;
        // A speed of at most 10^9 milli-rpm is below 2^32, so the shift by 96 bits loses no bit.
        let revolutions_per_ns = (u128::from(milli_rpm) << 96) / MILLI_NS_PER_MINUTE;
        let ns_per_revolution = (MILLI_NS_PER_MINUTE << 32) / u128::from(milli_rpm);
        let grace = ((revolutions_per_ns * u128::from(GRACE_NS)) >> 32) as u64;
        Some(Spindle {
            milli_rpm,
            revolutions_per_ns,
            ns_per_revolution,
            grace,
        })
    }

    /// Returns the revolutions per minute.
    pub fn rpm(&self) -> f64 {
        self.milli_rpm as f64 / 1000.0
    }

    /// Returns the time of one revolution, to the nearest nanosecond.
    pub fn revolution(&self) -> Duration {
        let half = 1u128 << 31;
        Duration::from_nanos(((self.ns_per_revolution + half) >> 32) as u64)
    }

    /// Returns the angle under the head at `now`.
    #[inline]
    pub fn angle_at(&self, now: Time) -> Angle {
        // Whole revolutions overflow out of the 128 bits. The fraction of a revolution stays.
        let turned = u128::from(now.as_nanos()).wrapping_mul(self.revolutions_per_ns);
        Angle((turned >> 32) as u64)
    }

    /// Returns the time in which the platter turns by `angle`, rounded up. After this time the
    /// angle has been reached.
    #[inline]
    pub fn time_to_turn(&self, angle: Angle) -> Duration {
        let nanoseconds = (self.ns_per_revolution * u128::from(angle.0)) >> 96;
        Duration::from_nanos(nanoseconds as u64 + 1)
    }

    /// Returns true if an angle that passed the head `past` ago still counts as met.
    #[inline]
    pub fn counts_as_met(&self, past: Angle) -> bool {
        past.0 <= self.grace
    }

    /// Returns the time from `now` until `target` is under the head. Zero if `target` is there now
    /// or passed within the last 2 ns.
    #[inline]
    pub fn wait_for(&self, target: Angle, now: Time) -> Duration {
        let angle = self.angle_at(now);
        if self.counts_as_met(angle - target) {
            return Duration::ZERO;
        }
        self.time_to_turn(target - angle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the phase at `now` as a fraction of a revolution, from exact integer arithmetic.
    fn exact_phase(milli_rpm: u64, now: u64) -> f64 {
        let turned = u128::from(now) * u128::from(milli_rpm) % MILLI_NS_PER_MINUTE;
        turned as f64 / MILLI_NS_PER_MINUTE as f64
    }

    proptest! {
        #[test]
        fn rotation_does_not_drift_in_a_century(
            milli_rpm in 1_000_000u64..20_000_000,
            now in 0u64..3_155_760_000_000_000_000,
        ) {
            let spindle = Spindle::new(milli_rpm as f64 / 1000.0).unwrap();
            let angle = spindle.angle_at(Time::from_nanos(now)).as_revolutions();
            let difference = (angle - exact_phase(milli_rpm, now)).abs();
            prop_assert!(difference.min(1.0 - difference) < 1e-9);
        }

        #[test]
        fn waiting_for_an_angle_arrives_there_within_two_nanoseconds(
            milli_rpm in 1_000_000u64..20_000_000,
            now in 0u64..1_000_000_000_000_000,
            target: u64,
        ) {
            let spindle = Spindle::new(milli_rpm as f64 / 1000.0).unwrap();
            let now = Time::from_nanos(now);
            let wait = spindle.wait_for(Angle(target), now);
            prop_assert!(wait <= spindle.revolution() + Duration::from_nanos(1));
            let past = spindle.angle_at(now + wait) - Angle(target);
            prop_assert!(past.0 <= 2 * spindle.grace, "{} past", past.as_revolutions());
        }
    }

    #[test]
    fn a_revolution_at_7200_rpm_lasts_a_hundred_and_twentieth_of_a_second() {
        let spindle = Spindle::new(7200.0).unwrap();
        assert_eq!(spindle.revolution().as_nanos(), 8_333_333);
        assert_eq!(
            Spindle::new(10_000.0).unwrap().revolution().as_nanos(),
            6_000_000
        );
    }

    #[test]
    fn impossible_speeds_are_refused() {
        for rpm in [0.0, -7200.0, f64::NAN, f64::INFINITY, 2e6] {
            assert_eq!(Spindle::new(rpm), None, "{rpm}");
        }
    }
}
