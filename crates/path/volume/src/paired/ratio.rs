//! Outer transfer rate of a disk divided by the inner rate, as a fraction.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// `p_max / p_min`: transfer rate, or sectors per track, at the outer edge divided by the same at
/// the inner edge (Lloyd, section 2.7.7). Above 1; exact.
///
/// A configuration file contains the ratio as a fraction, `"800/370"`, or as a decimal number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio {
    outer: u32,
    inner: u32,
}

/// Error for a text without a ratio above 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RatioError {
    found: String,
}

impl fmt::Display for RatioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "found {}; expected outer over inner rate, above 1, such as \"800/370\" or 2.16",
            self.found
        )
    }
}

impl std::error::Error for RatioError {}

impl Ratio {
    /// Returns the ratio `outer / inner`.
    ///
    /// # Errors
    /// If the ratio is not above 1, or `inner` is 0.
    pub fn new(outer: u32, inner: u32) -> Result<Ratio, RatioError> {
        if inner == 0 || outer <= inner {
            let found = format!("{outer}/{inner}");
            return Err(RatioError { found });
        }
        Ok(Ratio { outer, inner })
    }

    /// Returns the numerator.
    pub fn outer(self) -> u32 {
        self.outer
    }

    /// Returns the denominator.
    pub fn inner(self) -> u32 {
        self.inner
    }
}

/// Returns a decimal number as a fraction, without rounding.
fn decimal(text: &str) -> Option<(u32, u32)> {
    let (whole, places) = text.split_once('.').unwrap_or((text, ""));
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(places) {
        return None;
    }
    let scale = 10u32.checked_pow(places.len() as u32)?;
    let fraction = if places.is_empty() {
        0
    } else {
        places.parse().ok()?
    };
    Some((
        whole
            .parse::<u32>()
            .ok()?
            .checked_mul(scale)?
            .checked_add(fraction)?,
        scale,
    ))
}

impl FromStr for Ratio {
    type Err = RatioError;

    fn from_str(text: &str) -> Result<Ratio, RatioError> {
        let fraction = match text.split_once('/') {
            None => decimal(text.trim()),
            Some((outer, inner)) => outer.trim().parse().ok().zip(inner.trim().parse().ok()),
        };
        let (outer, inner) = fraction.ok_or_else(|| RatioError {
            found: format!("`{text}`"),
        })?;
        Ratio::new(outer, inner).map_err(|_| RatioError {
            found: text.to_owned(),
        })
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.outer, self.inner)
    }
}

impl Serialize for Ratio {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Ratio {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Ratio, D::Error> {
        let text = match serde_json::Value::deserialize(deserializer)? {
            serde_json::Value::String(text) => text,
            // The number is taken as its text: 2.16 is 216/100. Numbers that are not finite have
            // become null before.
            serde_json::Value::Null => "no finite number".to_owned(),
            other => other.to_string(),
        };
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Ratio {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Ratio".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "a fraction above 1, such as 800/370, or a decimal number",
            "anyOf": [
                { "type": "number", "exclusiveMinimum": 1 },
                { "type": "string", "pattern": r"^\s*[0-9]+(\.[0-9]+|\s*/\s*[0-9]+)?\s*$" },
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fractions_and_decimal_numbers_are_read_exactly() {
        let read = |value| serde_json::from_value::<Ratio>(value).unwrap();
        assert_eq!(
            read(json!("800/370")),
            Ratio {
                outer: 800,
                inner: 370
            }
        );
        assert_eq!(
            read(json!(" 10 / 6 ")),
            Ratio {
                outer: 10,
                inner: 6
            }
        );
        assert_eq!(
            read(json!(2.16)),
            Ratio {
                outer: 216,
                inner: 100
            }
        );
        assert_eq!(read(json!(2)), Ratio { outer: 2, inner: 1 });
        assert_eq!(read(json!("1.625")).to_string(), "1625/1000");
    }

    #[test]
    fn what_is_no_ratio_above_1_is_refused_as_it_was_written() {
        for value in [
            json!(1),
            json!("1/1"),
            json!(0.5),
            json!("370/800"),
            json!("3/0"),
            json!(-2),
            json!("inf"),
        ] {
            let error = serde_json::from_value::<Ratio>(value.clone())
                .unwrap_err()
                .to_string();
            let written = value.as_str().map_or(value.to_string(), str::to_owned);
            assert!(
                error.contains(&written) && error.contains("above 1"),
                "{error}"
            );
        }
        for value in [
            json!(null),
            json!("a/b"),
            json!("5000000000/3"),
            json!("1.0000000000000001"),
            json!({}),
        ] {
            let error = serde_json::from_value::<Ratio>(value)
                .unwrap_err()
                .to_string();
            assert!(error.contains("expected outer over inner rate"), "{error}");
        }
    }
}
