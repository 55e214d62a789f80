//! Time on a layer's own timeline: integer nanoseconds, never a host clock.

use crate::overflow;
use crate::quantity::{QuantityError, from_text, parse};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

/// An instant: nanoseconds since the start of the run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

/// A span of time in nanoseconds. Configuration files write the span with a unit: `"3.5ms"`,
/// `"200us"`, `"8s"`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Duration(u64);

impl Time {
    /// The start of a run.
    pub const ZERO: Time = Time(0);
    /// Later than every event. As a wake-up time: no wake-up.
    pub const NEVER: Time = Time(u64::MAX);
    /// The end of simulated time: 2^63 ns, 292 years. A driver stops a run here with an error.
    /// Behind the horizon there is room for two spans of [`Duration::LONGEST`]. Therefore a layer
    /// may add a span from a stack file to `now` without a check.
    pub const HORIZON: Time = Time(1 << 63);
    const BEHIND_HORIZON: Time = Time((1 << 63) + 1);

    /// Returns the instant `nanoseconds` after the start.
    pub const fn from_nanos(nanoseconds: u64) -> Time {
        Time(nanoseconds)
    }
    /// Returns the nanoseconds since the start.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// Returns the milliseconds since the start.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }
    /// Returns the seconds since the start.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// Returns the span since `earlier`.
    ///
    /// # Panics
    /// If `earlier` is later than this instant.
    #[inline]
    #[track_caller]
    pub fn since(self, earlier: Time) -> Duration {
        match self.0.checked_sub(earlier.0) {
            Some(span) => Duration(span),
            None => overflow::stop("an instant", self.0, "ns since", earlier.0, "ns"),
        }
    }
    /// Returns the span since `earlier`, or zero if `earlier` is later.
    #[inline]
    pub const fn saturating_since(self, earlier: Time) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
    /// Returns the instant `span` later, at most [`Time::NEVER`]. For a span that may mean "no
    /// limit".
    #[inline]
    pub const fn saturating_add(self, span: Duration) -> Time {
        Time(self.0.saturating_add(span.0))
    }
    /// Returns the instant `span` later, but at most just behind [`Time::HORIZON`], where a driver
    /// stops with an error. For a span from a file, a trace or a program whose end something waits
    /// for. [`Time::NEVER`] would wrongly mean that nothing waits.
    #[inline]
    pub fn capped_add(self, span: Duration) -> Time {
        self.saturating_add(span).min(Time::BEHIND_HORIZON)
    }
    /// Returns this instant, but at most just behind [`Time::HORIZON`].
    #[inline]
    pub fn capped(self) -> Time {
        self.min(Time::BEHIND_HORIZON)
    }
}

impl Duration {
    /// The empty span.
    pub const ZERO: Duration = Duration(0);
    /// Longer than every span: "no limit". To add this value to an instant or a span is an error in
    /// the program. Compare with the value, or use `saturating_add`.
    pub const MAX: Duration = Duration(u64::MAX);
    /// The longest span in files or from fractions: 100 years of 365 days.
    pub const LONGEST: Duration = Duration(100 * 365 * 86_400 * 1_000_000_000);

    /// Creates a span of `nanoseconds`.
    pub const fn from_nanos(nanoseconds: u64) -> Duration {
        Duration(nanoseconds)
    }
    /// Creates a span of `microseconds`.
    ///
    /// # Panics
    /// If the span exceeds 584 years.
    #[track_caller]
    pub const fn from_micros(microseconds: u64) -> Duration {
        match microseconds.checked_mul(1_000) {
            Some(nanoseconds) => Duration(nanoseconds),
            None => panic!("from_micros: the span exceeds 2^64 ns"),
        }
    }
    /// Creates a span of `milliseconds`.
    ///
    /// # Panics
    /// If the span exceeds 584 years.
    #[track_caller]
    pub const fn from_millis(milliseconds: u64) -> Duration {
        match milliseconds.checked_mul(1_000_000) {
            Some(nanoseconds) => Duration(nanoseconds),
            None => panic!("from_millis: the span exceeds 2^64 ns"),
        }
    }
    /// Creates a span of `seconds`.
    ///
    /// # Panics
    /// If the span exceeds 584 years.
    #[track_caller]
    pub const fn from_secs(seconds: u64) -> Duration {
        match seconds.checked_mul(1_000_000_000) {
            Some(nanoseconds) => Duration(nanoseconds),
            None => panic!("from_secs: the span exceeds 2^64 ns"),
        }
    }
    /// Creates a span of `milliseconds`, rounded to nanoseconds. Negative values and NaN become
    /// zero; values above [`Duration::LONGEST`] become `LONGEST`.
    pub fn from_millis_f64(milliseconds: f64) -> Duration {
        Duration::from_nanos_f64(milliseconds * 1e6)
    }
    /// Creates a span of `seconds`, rounded to nanoseconds. Negative values and NaN become zero;
    /// values above [`Duration::LONGEST`] become `LONGEST`.
    pub fn from_secs_f64(seconds: f64) -> Duration {
        Duration::from_nanos_f64(seconds * 1e9)
    }
    /// Creates a span, rounded to nanoseconds, between zero and [`Duration::LONGEST`].
    #[inline]
    pub(crate) fn from_nanos_f64(nanoseconds: f64) -> Duration {
        // The cast turns a negative number or NaN into 0, and infinity into `u64::MAX`.
        Duration((nanoseconds.round() as u64).min(Duration::LONGEST.0))
    }
    /// Returns the span in nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// Returns the span in milliseconds.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }
    /// Returns the span in seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// Returns this span minus `other`, at least zero.
    pub const fn saturating_sub(self, other: Duration) -> Duration {
        Duration(self.0.saturating_sub(other.0))
    }
    /// Returns this span plus `other`, at most [`Duration::MAX`].
    pub const fn saturating_add(self, other: Duration) -> Duration {
        Duration(self.0.saturating_add(other.0))
    }
    /// Returns `factor` times this span, at most [`Duration::MAX`].
    pub const fn saturating_mul(self, factor: u64) -> Duration {
        Duration(self.0.saturating_mul(factor))
    }
}

impl Add<Duration> for Time {
    type Output = Time;
    #[inline]
    #[track_caller]
    fn add(self, span: Duration) -> Time {
        match self.0.checked_add(span.0) {
            Some(sum) => Time(sum),
            None => overflow::stop("an instant", self.0, "ns +", span.0, "ns"),
        }
    }
}
impl AddAssign<Duration> for Time {
    #[inline]
    #[track_caller]
    fn add_assign(&mut self, span: Duration) {
        *self = *self + span;
    }
}
impl Add for Duration {
    type Output = Duration;
    #[inline]
    #[track_caller]
    fn add(self, other: Duration) -> Duration {
        match self.0.checked_add(other.0) {
            Some(sum) => Duration(sum),
            None => overflow::stop("a span", self.0, "ns +", other.0, "ns"),
        }
    }
}
impl AddAssign for Duration {
    #[inline]
    #[track_caller]
    fn add_assign(&mut self, other: Duration) {
        *self = *self + other;
    }
}
impl Sub for Duration {
    type Output = Duration;
    #[inline]
    #[track_caller]
    fn sub(self, other: Duration) -> Duration {
        match self.0.checked_sub(other.0) {
            Some(rest) => Duration(rest),
            None => overflow::stop("a span", self.0, "ns -", other.0, "ns"),
        }
    }
}
impl SubAssign for Duration {
    #[inline]
    #[track_caller]
    fn sub_assign(&mut self, other: Duration) {
        *self = *self - other;
    }
}
impl Mul<u64> for Duration {
    type Output = Duration;
    #[inline]
    #[track_caller]
    fn mul(self, factor: u64) -> Duration {
        match self.0.checked_mul(factor) {
            Some(product) => Duration(product),
            None => overflow::stop("a span", self.0, "ns *", factor, ""),
        }
    }
}
impl Div<u64> for Duration {
    type Output = Duration;
    #[inline]
    #[track_caller]
    fn div(self, divisor: u64) -> Duration {
        match self.0.checked_div(divisor) {
            Some(quotient) => Duration(quotient),
            None => overflow::stop("a span", self.0, "ns /", divisor, ""),
        }
    }
}
impl Sum for Duration {
    #[track_caller]
    fn sum<I: Iterator<Item = Duration>>(spans: I) -> Duration {
        let mut sum = Duration::ZERO;
        for span in spans {
            // A checked sum of spans, so that an overflow names both operands as every other sum
            // does.
            sum += span;
        }
        sum
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Time::NEVER => f.write_str("never"),
            Time(t) => write!(f, "{}.{:06}ms", t / 1_000_000, t % 1_000_000),
        }
    }
}
impl fmt::Debug for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}ms", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}
impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (unit, nanoseconds) in [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)] {
            if self.0 >= nanoseconds {
                return write!(f, "{}{unit}", self.0 as f64 / nanoseconds as f64);
            }
        }
        write!(f, "{}ns", self.0)
    }
}

const TIME_UNITS: &[(&str, u64)] = &[
    ("NS", 1),
    ("US", 1_000),
    // Greek capital mu: `to_uppercase` of the micro sign in "µs".
    ("ΜS", 1_000),
    ("MS", 1_000_000),
    ("S", 1_000_000_000),
    ("MIN", 60_000_000_000),
    ("H", 3_600_000_000_000),
];

/// Reads a span of time: `3.5ms`, `200us`, `8s`, `5min`, `1h`. The unit is required, because a bare
/// number could mean any unit. At most [`Duration::LONGEST`], 100 years.
pub fn parse_duration(text: &str) -> Result<Duration, QuantityError> {
    let span =
        parse(text, TIME_UNITS, &["ms"], "ns, us, ms, s, min, h").map(Duration::from_nanos)?;
    if span > Duration::LONGEST {
        return Err(QuantityError::TooLong(text.trim().to_owned()));
    }
    Ok(span)
}

impl std::str::FromStr for Duration {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Duration, QuantityError> {
        parse_duration(text)
    }
}
impl Serialize for Duration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
impl<'de> Deserialize<'de> for Duration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        from_text(
            deserializer,
            "a time with its unit in quotes, such as \"10s\"",
        )
    }
}
impl JsonSchema for Duration {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Duration".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "description": "a span of time with its unit, such as 3.5ms, 200us, 8s, 1h",
            "pattern": r"^\s*[0-9]+(\.[0-9]+)?\s*(ns|us|µs|ms|s|min|h)\s*$",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::overflow::tests::message;

    const SHORT: Duration = Duration::from_nanos(5);
    const LONG: Duration = Duration::from_nanos(7);

    #[test]
    fn a_result_that_does_not_fit_stops_with_both_operands() {
        for (stops, expected) in [
            (
                message(|| SHORT - LONG),
                "a span is out of range: 5 ns - 7 ns",
            ),
            (
                message(|| Duration::MAX + SHORT),
                "a span is out of range: 18446744073709551615 ns + 5 ns",
            ),
            (
                message(|| Duration::MAX * 2),
                "a span is out of range: 18446744073709551615 ns * 2",
            ),
            (message(|| SHORT / 0), "a span is out of range: 5 ns / 0"),
            (
                message(|| Time::NEVER + SHORT),
                "an instant is out of range: 18446744073709551615 ns + 5 ns",
            ),
            (
                message(|| Time::ZERO.since(Time::from_nanos(3))),
                "an instant is out of range: 0 ns since 3 ns",
            ),
            (
                message(|| [Duration::MAX, SHORT].into_iter().sum::<Duration>()),
                "a span is out of range: 18446744073709551615 ns + 5 ns",
            ),
        ] {
            assert_eq!(stops, expected);
        }
    }

    #[test]
    fn sums_that_fit_are_exact() {
        let mut at = Time::HORIZON;
        at += Duration::LONGEST;
        at += Duration::LONGEST;
        assert_eq!(at.since(Time::HORIZON), Duration::LONGEST * 2);
        let mut span = LONG;
        span -= SHORT;
        span += SHORT;
        assert_eq!(span, LONG);
        assert_eq!(Time::HORIZON.saturating_add(Duration::MAX), Time::NEVER);
        let behind = Time::HORIZON + Duration::from_nanos(1);
        assert_eq!(Time::ZERO.capped_add(Duration::MAX), behind);
        assert_eq!(Time::ZERO.capped_add(LONG), Time::from_nanos(7));
        assert_eq!(Time::NEVER.capped(), behind);
        assert_eq!(LONG.saturating_mul(u64::MAX), Duration::MAX);
        assert_eq!(LONG.saturating_add(Duration::MAX), Duration::MAX);
    }

    #[test]
    fn fractions_become_spans_between_nothing_and_a_century() {
        for (seconds, span) in [
            (-1.0, Duration::ZERO),
            (f64::NAN, Duration::ZERO),
            (1.5e-9, Duration::from_nanos(2)),
            (1e12, Duration::LONGEST),
            (f64::INFINITY, Duration::LONGEST),
        ] {
            assert_eq!(Duration::from_secs_f64(seconds), span, "{seconds}");
        }
    }
}
