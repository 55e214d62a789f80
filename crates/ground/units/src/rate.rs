//! Bits per second.

use crate::quantity::{from_text, parse_bit_rate};
use crate::{Bytes, Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// A number of bits per second. Configuration files write the rate with a unit: `"200kbit/s"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct BitRate(pub u64);

impl BitRate {
    /// Returns the time of `bytes` at this rate, rounded up to nanoseconds. Returns
    /// [`Duration::MAX`] for a rate of 0 or a result that does not fit.
    pub fn span(self, bytes: Bytes) -> Duration {
        // 2^64 bytes times 8 bits times 10^9 ns fit 97 bits.
        let nanobits = u128::from(bytes.0) * 8_000_000_000;
        match u128::from(self.0) {
            0 => Duration::MAX,
            rate => {
                u64::try_from(nanobits.div_ceil(rate)).map_or(Duration::MAX, Duration::from_nanos)
            }
        }
    }
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (unit, scale) in [
            ("Gbit/s", 1_000_000_000),
            ("Mbit/s", 1_000_000),
            ("kbit/s", 1_000),
        ] {
            if self.0 >= scale && self.0.is_multiple_of(scale) {
                return write!(f, "{}{unit}", self.0 / scale);
            }
        }
        write!(f, "{}bit/s", self.0)
    }
}

impl std::str::FromStr for BitRate {
    type Err = crate::QuantityError;
    fn from_str(text: &str) -> Result<BitRate, crate::QuantityError> {
        parse_bit_rate(text).map(BitRate)
    }
}
impl Serialize for BitRate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
impl<'de> Deserialize<'de> for BitRate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<BitRate, D::Error> {
        from_text(
            deserializer,
            "a rate with its unit in quotes, such as \"25Mbit/s\"",
        )
    }
}
impl JsonSchema for BitRate {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "BitRate".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "description": "bits a second with their unit, such as 200kbit/s, 25Mbit/s",
            "pattern": r"^\s*[0-9]+(\.[0-9]+)?\s*[kMG]?bit/s\s*$",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::QuantityError;
    use proptest::prelude::*;

    #[test]
    fn rates_are_read_with_decimal_units_and_written_in_the_largest() {
        for (text, bits, written) in [
            ("200kbit/s", 200_000, "200kbit/s"),
            ("25 Mbit/s", 25_000_000, "25Mbit/s"),
            ("1.5Gbit/s", 1_500_000_000, "1500Mbit/s"),
            ("7bit/s", 7, "7bit/s"),
        ] {
            assert_eq!(text.parse(), Ok(BitRate(bits)), "{text}");
            assert_eq!(BitRate(bits).to_string(), written);
        }
    }

    #[test]
    fn a_rate_in_bytes_or_without_a_unit_is_refused() {
        let without = "200".parse::<BitRate>().unwrap_err().to_string();
        assert!(without.contains("`200Mbit/s`"), "{without}");
        for text in ["200kB/s", "200kbit", "200kbps"] {
            assert!(
                matches!(
                    text.parse::<BitRate>(),
                    Err(QuantityError::UnknownUnit { .. })
                ),
                "{text}"
            );
        }
        assert!(matches!(
            "0.5bit/s".parse::<BitRate>(),
            Err(QuantityError::OutOfRange(_))
        ));
    }

    #[test]
    fn no_rate_and_no_end_take_for_ever() {
        assert_eq!(BitRate(0).span(Bytes(1)), Duration::MAX);
        assert_eq!(BitRate(1).span(Bytes(u64::MAX)), Duration::MAX);
        assert_eq!(BitRate(200_000).span(Bytes(25_000)), Duration::from_secs(1));
    }

    proptest! {
        #[test]
        fn spans_are_exact_to_the_nanosecond(bytes in 0u64..1 << 30, rate in 1u64..1 << 34) {
            let span = u128::from(BitRate(rate).span(Bytes(bytes)).as_nanos());
            let (nanobits, rate) = (u128::from(bytes) * 8_000_000_000, u128::from(rate));
            prop_assert!(span * rate >= nanobits && (span * rate).saturating_sub(nanobits) < rate);
        }
    }
}
