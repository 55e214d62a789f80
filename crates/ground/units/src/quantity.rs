//! Reads and writes quantities with units.

use serde::Deserializer;
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;
use thiserror::Error;

/// The reason why a quantity could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum QuantityError {
    /// The text has no leading number.
    #[error("found `{found}`; expected a number and a unit of {expected}")]
    NoNumber {
        /// Text as written.
        found: String,
        /// Known units.
        expected: &'static str,
    },
    /// The unit does not fit this kind of quantity.
    #[error("`{found}` is not a unit here; expected one of {expected}")]
    UnknownUnit {
        /// Text behind the number.
        found: String,
        /// Known units.
        expected: &'static str,
    },
    /// The number has no unit, where a unit is required.
    #[error("`{number}` has no unit; write `{number}{}`, or another of {expected}", examples.join(&format!("`, `{number}")))]
    NoUnit {
        /// Text as written.
        number: String,
        /// Usual units.
        examples: &'static [&'static str],
        /// Known units.
        expected: &'static str,
    },
    /// The unit has a small b, so that its base is uncertain.
    #[error(
        "`{number}{unit}` is ambiguous; write `{number}{binary}` for a power of 1024, or `{number}{decimal}` for a power of 1000"
    )]
    Ambiguous {
        /// Text before the unit.
        number: String,
        /// Unit as written.
        unit: String,
        /// Unit that is a power of 1024.
        binary: String,
        /// Unit that is a power of 1000.
        decimal: String,
    },
    /// The value does not fit, or is not a multiple of the smallest unit.
    #[error("`{0}` is out of range, or not a whole number of the smallest unit")]
    OutOfRange(String),
    /// The span is longer than [`crate::Duration::LONGEST`].
    #[error("`{0}` exceeds the longest span, 100 years (876000h)")]
    TooLong(String),
}

/// The byte units that error messages list.
const BYTE_UNITS_EXPECTED: &str = "B, KiB, MiB, GiB, TiB (1024), KB, MB, GB, TB (1000)";

const BYTE_UNITS: &[(&str, u64)] = &[
    ("", 1),
    ("B", 1),
    ("K", 1 << 10),
    ("M", 1 << 20),
    ("G", 1 << 30),
    ("T", 1 << 40),
    ("KIB", 1 << 10),
    ("MIB", 1 << 20),
    ("GIB", 1 << 30),
    ("TIB", 1 << 40),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
];

const RATE_UNITS: &[(&str, u64)] = &[
    ("BIT/S", 1),
    ("KBIT/S", 1_000),
    ("MBIT/S", 1_000_000),
    ("GBIT/S", 1_000_000_000),
];

/// Reads a size: `64KiB`, `1.5GiB`, `20TB`, `512`. A bare letter is binary (`4k` = 4096), as in fio
/// and the kernel. A unit with a small b, such as `64kb`, is refused, because fio reads 65,536
/// bytes there and the SI prefix means 64,000. `kB` is SI, and is read as 1000.
pub fn parse_bytes(text: &str) -> Result<u64, QuantityError> {
    let (number, unit) = split(text, BYTE_UNITS_EXPECTED)?;
    // Only one letter before the b is uncertain. `kib` passes, because the i says 1024.
    let prefix = unit.strip_suffix('b').filter(|prefix| prefix.len() == 1);
    if let Some(prefix) = prefix.filter(|prefix| "kmgtKMGT".contains(prefix)) {
        let prefix = prefix.to_uppercase();
        return Err(QuantityError::Ambiguous {
            number: number.to_owned(),
            unit: unit.to_owned(),
            binary: format!("{prefix}iB"),
            decimal: format!("{prefix}B"),
        });
    }
    scaled(text, number, unit, BYTE_UNITS, BYTE_UNITS_EXPECTED)
}

/// Reads a size that a person types, as [`parse_bytes`], but refuses a number without a unit: in
/// `--usable 20` the person means 20 TB rather than 20 bytes. `0` needs no unit.
pub(crate) fn parse_bytes_with_unit(text: &str) -> Result<u64, QuantityError> {
    let (number, unit) = split(text, BYTE_UNITS_EXPECTED)?;
    let zero = number.bytes().all(|digit| b"0.".contains(&digit));
    if unit.is_empty() && !zero {
        return Err(QuantityError::NoUnit {
            number: number.to_owned(),
            examples: &["KiB", "TB"],
            expected: BYTE_UNITS_EXPECTED,
        });
    }
    parse_bytes(text)
}

/// Reads bits per second: `200kbit/s`, `25Mbit/s`. The unit is required, because bits and bytes are
/// easily confused.
pub fn parse_bit_rate(text: &str) -> Result<u64, QuantityError> {
    parse(
        text,
        RATE_UNITS,
        &["Mbit/s"],
        "bit/s, kbit/s, Mbit/s, Gbit/s",
    )
}

/// Reads a quantity from a text. `expected` says in the error of another type what was expected.
pub(crate) fn from_text<'de, T, D>(deserializer: D, expected: &'static str) -> Result<T, D::Error>
where
    T: FromStr<Err: fmt::Display>,
    D: Deserializer<'de>,
{
    struct Visitor<T>(&'static str, PhantomData<T>);
    impl<T: FromStr<Err: fmt::Display>> serde::de::Visitor<'_> for Visitor<T> {
        type Value = T;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<T, E> {
            text.parse().map_err(E::custom)
        }
    }
    deserializer.deserialize_str(Visitor(expected, PhantomData))
}

/// Reads a number with one of `units`. `examples` are the units that the message of a number
/// without a unit suggests, and `expected` lists all units.
pub(crate) fn parse(
    text: &str,
    units: &[(&str, u64)],
    examples: &'static [&'static str],
    expected: &'static str,
) -> Result<u64, QuantityError> {
    let (number, unit) = split(text, expected)?;
    if unit.is_empty() {
        return Err(QuantityError::NoUnit {
            number: number.to_owned(),
            examples,
            expected,
        });
    }
    scaled(text, number, unit, units, expected)
}

/// Splits a quantity into its number and its unit, both without spaces around. `expected` are the
/// units that the message of a text without a number lists.
fn split<'t>(text: &'t str, expected: &'static str) -> Result<(&'t str, &'t str), QuantityError> {
    let text = text.trim();
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    if !number.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(QuantityError::NoNumber {
            found: text.to_owned(),
            expected,
        });
    }
    Ok((number, unit.trim()))
}

/// Returns `number` in `unit`, in the smallest unit.
fn scaled(
    text: &str,
    number: &str,
    unit: &str,
    units: &[(&str, u64)],
    expected: &'static str,
) -> Result<u64, QuantityError> {
    // Case is ignored. The units whose case may matter (`kb`) were refused before.
    let unit_name = unit.to_uppercase();
    let Some(&(_, scale)) = units.iter().find(|(name, _)| *name == unit_name) else {
        return Err(QuantityError::UnknownUnit {
            found: unit.to_owned(),
            expected,
        });
    };
    scale_decimal(number, scale).ok_or_else(|| QuantityError::OutOfRange(text.trim().to_owned()))
}

/// Returns `number` (a decimal) times `scale`, exactly. `None` if the product is not an integer or
/// does not fit.
fn scale_decimal(number: &str, scale: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    // Zeroes at the end do not change the value, and must not count against the limit of digits.
    let fraction = fraction.trim_end_matches('0');
    let whole = whole.parse::<u128>().ok()?.checked_mul(u128::from(scale))?;
    let fraction = if fraction.is_empty() {
        0
    } else {
        let digits = u32::try_from(fraction.len())
            .ok()
            // With 18 digits, the product with a 64-bit scale still fits 128 bits.
            .filter(|&digits| digits <= 18)?;
        let numerator = fraction.parse::<u128>().ok()? * u128::from(scale);
        let denominator = 10u128.pow(digits);
        // Half a byte does not exist. Rounding would hide a wrong unit.
        if !numerator.is_multiple_of(denominator) {
            return None;
        }
        numerator / denominator
    };
    u64::try_from(whole.checked_add(fraction)?).ok()
}

/// Returns a size in the largest binary unit without remainder: `64KiB`, `1536B`.
pub fn format_bytes(bytes: u64) -> String {
    for (unit, scale) in [
        ("TiB", 1u64 << 40),
        ("GiB", 1 << 30),
        ("MiB", 1 << 20),
        ("KiB", 1 << 10),
    ] {
        if bytes >= scale && bytes.is_multiple_of(scale) {
            return format!("{}{unit}", bytes / scale);
        }
    }
    format!("{bytes}B")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Duration, parse_duration};

    #[test]
    fn sizes_are_read_with_binary_and_decimal_units() {
        for (text, bytes) in [
            ("512", 512),
            ("64KiB", 65_536),
            ("64 KiB", 65_536),
            ("4k", 4_096),
            ("64kib", 65_536),
            ("64kB", 64_000),
            ("64KB", 64_000),
            ("1.5MiB", 1_572_864),
            ("20TB", 20_000_000_000_000),
            ("4.51GB", 4_510_000_000),
        ] {
            assert_eq!(parse_bytes(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn a_unit_with_a_small_b_is_refused_with_both_readings() {
        for text in ["64kb", "64 Kb"] {
            let message = parse_bytes(text).unwrap_err().to_string();
            assert!(
                message.contains("`64KiB`") && message.contains("`64KB`"),
                "{message}"
            );
        }
    }

    #[test]
    fn a_person_has_to_give_a_unit() {
        for text in ["20", " 1.5 "] {
            let message = parse_bytes_with_unit(text).unwrap_err().to_string();
            let spelling = format!("`{}TB`", text.trim());
            assert!(message.contains(&spelling), "{message}");
        }
        assert_eq!(parse_bytes_with_unit("0"), Ok(0));
        assert_eq!(parse_bytes_with_unit("512B"), Ok(512));
    }

    #[test]
    fn spans_are_read_exactly() {
        assert_eq!(parse_duration("3.5ms"), Ok(Duration::from_micros(3_500)));
        assert_eq!(parse_duration("0.000001ms"), Ok(Duration::from_nanos(1)));
        assert_eq!(parse_duration("2min"), Ok(Duration::from_secs(120)));
        assert_eq!(parse_duration("5µs"), Ok(Duration::from_micros(5)));
    }

    #[test]
    fn what_is_no_quantity_is_refused_with_its_reason() {
        assert!(matches!(
            parse_bytes("many"),
            Err(QuantityError::NoNumber { .. })
        ));
        assert!(matches!(
            parse_bytes(""),
            Err(QuantityError::NoNumber { .. })
        ));
        assert!(matches!(
            parse_bytes("-4K"),
            Err(QuantityError::NoNumber { .. })
        ));
        assert!(matches!(
            parse_bytes("4X"),
            Err(QuantityError::UnknownUnit { .. })
        ));
        assert!(matches!(
            parse_bytes("20000000000TB"),
            Err(QuantityError::OutOfRange(_))
        ));
        assert!(matches!(
            parse_bytes("0.3B"),
            Err(QuantityError::OutOfRange(_))
        ));
        assert!(matches!(
            parse_bytes("1.2.3K"),
            Err(QuantityError::OutOfRange(_))
        ));
        assert!(matches!(
            parse_duration("5 fortnights"),
            Err(QuantityError::UnknownUnit { .. })
        ));
        assert_eq!(
            parse_duration("5").unwrap_err().to_string(),
            "`5` has no unit; write `5ms`, or another of ns, us, ms, s, min, h"
        );
        assert_eq!(parse_duration("876000h"), Ok(Duration::LONGEST));
        assert!(matches!(
            parse_duration("876000.1h"),
            Err(QuantityError::TooLong(_))
        ));
    }

    #[test]
    fn a_text_without_a_number_is_refused_with_the_units_of_its_kind() {
        for (message, units) in [
            (parse_bytes("x").unwrap_err().to_string(), "KiB"),
            (parse_duration("x").unwrap_err().to_string(), "ms"),
            (parse_bit_rate("x").unwrap_err().to_string(), "Mbit/s"),
        ] {
            assert!(message.starts_with("found `x`; expected"), "{message}");
            assert!(message.contains(units), "{message}");
        }
    }

    #[test]
    fn formatted_sizes_read_back() {
        for bytes in [0, 1, 511, 512, 1536, 65_536, 1 << 20, 3 << 40] {
            assert_eq!(parse_bytes(&format_bytes(bytes)), Ok(bytes));
        }
    }
}
