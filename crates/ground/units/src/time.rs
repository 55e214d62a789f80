//! Time on a layer's own line: integer nanoseconds, never a host clock.

use crate::quantity::{QuantityError, parse};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

/// An instant: nanoseconds since the run began.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

/// A span of time in nanoseconds. Configuration files write it with its unit:
/// `"3.5ms"`, `"200us"`, `"8s"`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Duration(u64);

impl Time {
    /// The beginning of a run.
    pub const ZERO: Time = Time(0);
    /// Later than every event: "no wake-up is wanted".
    pub const NEVER: Time = Time(u64::MAX);

    /// The instant `nanoseconds` after the beginning.
    pub const fn from_nanos(nanoseconds: u64) -> Time {
        Time(nanoseconds)
    }
    /// Nanoseconds since the beginning.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// Milliseconds since the beginning.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }
    /// Seconds since the beginning.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// The span since `earlier`, which is not later: in a build with checks
    /// that is a fault.
    #[inline]
    #[track_caller]
    pub const fn since(self, earlier: Time) -> Duration {
        debug_assert!(
            self.0 >= earlier.0,
            "an instant lies before the one it is counted from"
        );
        self.saturating_since(earlier)
    }
    /// The span since `earlier`, or zero if `earlier` is later.
    #[inline]
    pub const fn saturating_since(self, earlier: Time) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Duration {
    /// No time at all.
    pub const ZERO: Duration = Duration(0);
    /// The longest span.
    pub const MAX: Duration = Duration(u64::MAX);

    /// A span of `nanoseconds`.
    pub const fn from_nanos(nanoseconds: u64) -> Duration {
        Duration(nanoseconds)
    }
    /// A span of `microseconds`.
    pub const fn from_micros(microseconds: u64) -> Duration {
        Duration(microseconds * 1_000)
    }
    /// A span of `milliseconds`.
    pub const fn from_millis(milliseconds: u64) -> Duration {
        Duration(milliseconds * 1_000_000)
    }
    /// A span of `seconds`.
    pub const fn from_secs(seconds: u64) -> Duration {
        Duration(seconds * 1_000_000_000)
    }
    /// The nearest whole nanosecond to `milliseconds`; negative and non-finite
    /// values become zero.
    pub fn from_millis_f64(milliseconds: f64) -> Duration {
        Duration((milliseconds * 1e6).round().max(0.0) as u64)
    }
    /// The nearest whole nanosecond to `seconds`; negative and non-finite
    /// values become zero.
    pub fn from_secs_f64(seconds: f64) -> Duration {
        Duration((seconds * 1e9).round().max(0.0) as u64)
    }
    /// Nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// Milliseconds.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }
    /// Seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// This span less `other`, or zero.
    pub const fn saturating_sub(self, other: Duration) -> Duration {
        Duration(self.0.saturating_sub(other.0))
    }
}

impl Add<Duration> for Time {
    type Output = Time;
    fn add(self, span: Duration) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}
impl AddAssign<Duration> for Time {
    fn add_assign(&mut self, span: Duration) {
        *self = *self + span;
    }
}
impl Add for Duration {
    type Output = Duration;
    fn add(self, other: Duration) -> Duration {
        Duration(self.0.saturating_add(other.0))
    }
}
impl AddAssign for Duration {
    fn add_assign(&mut self, other: Duration) {
        *self = *self + other;
    }
}
impl Sub for Duration {
    type Output = Duration;
    fn sub(self, other: Duration) -> Duration {
        debug_assert!(self >= other, "a duration cannot be negative");
        Duration(self.0.wrapping_sub(other.0))
    }
}
impl SubAssign for Duration {
    fn sub_assign(&mut self, other: Duration) {
        *self = *self - other;
    }
}
impl Mul<u64> for Duration {
    type Output = Duration;
    fn mul(self, factor: u64) -> Duration {
        Duration(self.0.saturating_mul(factor))
    }
}
impl Div<u64> for Duration {
    type Output = Duration;
    fn div(self, divisor: u64) -> Duration {
        Duration(self.0 / divisor)
    }
}
impl Sum for Duration {
    fn sum<I: Iterator<Item = Duration>>(spans: I) -> Duration {
        spans.fold(Duration::ZERO, Add::add)
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
    ("ΜS", 1_000),
    ("MS", 1_000_000),
    ("S", 1_000_000_000),
    ("MIN", 60_000_000_000),
    ("H", 3_600_000_000_000),
];

/// Reads a span of time: `3.5ms`, `200us`, `8s`, `5min`, `1h`. The unit is
/// required: a bare number of what?
pub fn parse_duration(text: &str) -> Result<Duration, QuantityError> {
    parse(text, TIME_UNITS, "ns, us, ms, s, min, h").map(Duration::from_nanos)
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
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
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
