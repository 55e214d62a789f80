//! Parsers of numbers as in fio: with units, in hexadecimal, in parentheses.
//!
//! The suffixes were found by experiments with fio 3.33. With `kb_base=1024` (the default) `4k`,
//! `4kb` and `4ki` are 4096, and `4kib` is 4000. With `kb_base=1000` the former are 4000, and the
//! latter is 4096. fio silently cuts off invalid endings (`4kx`, `1.5m`, `0x10k`); here they are
//! errors.

use crate::expression::{self, split_number};
use fullstroke_contract::{Reason, reason};
use fullstroke_units::Duration;

/// Unit of a number without a suffix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeUnit {
    Seconds,
    Microseconds,
}

/// A size in bytes, or a percentage of the volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Amount {
    Bytes(u64),
    Percent(u64),
}

/// Returns the power of the base for a prefix letter.
fn power(prefix: &str) -> Option<u32> {
    ["", "k", "m", "g", "t", "p"]
        .iter()
        .position(|name| *name == prefix)
        .map(|power| power as u32)
}

/// Returns the factor of a suffix such as `k`, `KiB` or `b`.
pub(crate) fn size_factor(suffix: &str, kb_base: u64) -> Option<u64> {
    let suffix = suffix.to_ascii_lowercase();
    // With fio's default, `kb_base=1024`, the IEC units are powers of 1000 (fio's HOWTO, kb_base).
    let (prefix, base) = if let Some(prefix) = suffix.strip_suffix("ib") {
        (prefix, if kb_base == 1000 { 1024u64 } else { 1000 })
    } else {
        let short = suffix
            .strip_suffix('b')
            .or_else(|| suffix.strip_suffix('i'))
            .unwrap_or(&suffix);
        (short, kb_base)
    };
    let power = power(prefix)?;
    if power == 0 && suffix.contains('i') {
        return None;
    }
    base.checked_pow(power)
}

/// Returns the factor of a time suffix, in nanoseconds.
pub(crate) fn time_factor(suffix: &str) -> Option<u64> {
    let factor = match suffix.to_ascii_lowercase().as_str() {
        "us" | "usec" => 1_000,
        "ms" | "msec" => 1_000_000,
        "s" | "sec" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "d" => 86_400_000_000_000,
        _ => return None,
    };
    Some(factor)
}

/// Parses a whole number of bytes or other units: `4k`, `0x1000`, `(4*1024)`.
pub(crate) fn integer(text: &str, kb_base: u64) -> Result<u64, Reason> {
    let wrong = || {
        reason!(
            "found `{text}`; expected a whole number such as 8, 4k, 1m or 0x1000, or an expression in parentheses"
        )
    };
    if text.starts_with('(') {
        return expression::evaluate(text, &|suffix| size_factor(suffix, kb_base))
            .map_err(|problem| reason!("found `{text}`: {problem}"));
    }
    let (number, suffix) = split_number(text).ok_or_else(wrong)?;
    let factor = size_factor(suffix, kb_base).ok_or_else(wrong)?;
    number
        .checked_mul(factor)
        .ok_or_else(|| reason!("found `{text}`; it does not fit into 64 bits"))
}

/// Parses a size, or a percentage of the volume: `1g`, `20%`.
pub(crate) fn amount(text: &str, kb_base: u64) -> Result<Amount, Reason> {
    match text.strip_suffix('%') {
        None => integer(text, kb_base).map(Amount::Bytes),
        Some(percent) => match percent.parse() {
            Ok(percent @ 0..=100) => Ok(Amount::Percent(percent)),
            _ => Err(reason!("found `{text}`; expected a size, or 0% to 100%")),
        },
    }
}

/// Parses a duration as [`time`] does. The second value is true if a fraction was cut off: fio 3.33
/// starts a job with `startdelay=1.9` after 1 s (`str_to_decimal` in fio's `parse.c`). A fraction
/// with another suffix than seconds is an error, because fio reads `1.5ms` as one second.
pub(crate) fn whole_time(text: &str, bare: TimeUnit) -> Result<(Duration, bool), Reason> {
    let Some((whole, rest)) = text.split_once('.').filter(|_| !text.starts_with('(')) else {
        return time(text, bare).map(|span| (span, false));
    };
    let suffix = rest.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let seconds = matches!(suffix.to_ascii_lowercase().as_str(), "s" | "sec");
    if !(suffix.is_empty() || seconds && bare == TimeUnit::Seconds) {
        return Err(reason!(
            "found `{text}`; expected a whole number with d, h, m, s, ms or us"
        ));
    }
    let whole = if whole.is_empty() { "0" } else { whole };
    time(whole, bare).map(|span| (span, true))
}

/// Parses a duration: `10`, `500ms`, `2m`, `(2*500ms)`. An expression counts microseconds.
pub(crate) fn time(text: &str, bare: TimeUnit) -> Result<Duration, Reason> {
    let wrong = || reason!("found `{text}`; expected a whole number with d, h, m, s, ms or us");
    if text.starts_with('(') {
        let microseconds = |suffix: &str| match suffix {
            "" => Some(1),
            suffix => time_factor(suffix).map(|nanoseconds| nanoseconds / 1_000),
        };
        let value = expression::evaluate(text, &microseconds).and_then(|value| {
            value
                .checked_mul(1_000)
                .ok_or_else(|| Reason::new("longer than 584 years"))
        });
        return value
            .map_err(|problem| reason!("found `{text}`: {problem}"))
            .and_then(|nanoseconds| short_enough(text, nanoseconds));
    }
    let (number, suffix) = split_number(text).ok_or_else(wrong)?;
    let factor = match (suffix, bare) {
        ("", TimeUnit::Seconds) => 1_000_000_000,
        ("", TimeUnit::Microseconds) => 1_000,
        _ => time_factor(suffix).ok_or_else(wrong)?,
    };
    short_enough(text, number.saturating_mul(factor))
}

/// Checks that the duration can be added to any time of a run.
fn short_enough(text: &str, nanoseconds: u64) -> Result<Duration, Reason> {
    let span = Duration::from_nanos(nanoseconds);
    if span > Duration::LONGEST {
        return Err(reason!(
            "found `{text}`; expected at most 100 years (36500d)"
        ));
    }
    Ok(span)
}

/// Parses a list by direction, `read,write,trim`. A missing part is `None`, and the last value
/// holds for the directions behind it.
pub(crate) fn each_direction<T: Clone>(
    text: &str,
    read: impl Fn(&str) -> Result<T, Reason>,
) -> Result<[Option<T>; 3], Reason> {
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    if parts.len() > 3 {
        return Err(reason!(
            "found `{text}`; expected at most three values: read,write,trim"
        ));
    }
    let read = |part: &&str| {
        if part.is_empty() {
            Ok(None)
        } else {
            read(part).map(Some)
        }
    };
    let values = parts
        .iter()
        .map(read)
        .collect::<Result<Vec<Option<T>>, Reason>>()?;
    // As in fio, the last value holds for the directions without a value.
    let at = |direction: usize| values.get(direction).or(values.last()).cloned().flatten();
    Ok([at(0), at(1), at(2)])
}

/// Parses `low-high`, with `:` or `-` in between. A single value is both bounds.
pub(crate) fn range<T: PartialOrd + Copy>(
    text: &str,
    read: impl Fn(&str) -> Result<T, Reason>,
) -> Result<(T, T), Reason> {
    let (low, high) = text.split_once(['-', ':']).unwrap_or((text, text));
    let (low, high) = (read(low.trim())?, read(high.trim())?);
    Ok(if low <= high {
        (low, high)
    } else {
        (high, low)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Results of fio 3.33 for `bs=` and `offset=`.
    #[test]
    fn sizes_are_those_that_fio_reads() {
        for (text, bytes) in [
            ("4k", 4096),
            ("4kb", 4096),
            ("4KB", 4096),
            ("4ki", 4096),
            ("4kib", 4000),
            ("4KiB", 4000),
            ("4K", 4096),
            ("1m", 1_048_576),
            ("1mi", 1_048_576),
            ("1MiB", 1_000_000),
            ("1g", 1_073_741_824),
            ("1gib", 1_000_000_000),
            ("2t", 2_199_023_255_552),
            ("0x1000", 4096),
            ("4096B", 4096),
            ("4096b", 4096),
            ("512", 512),
        ] {
            assert_eq!(integer(text, 1024), Ok(bytes), "{text}");
        }
        for (text, bytes) in [
            ("4k", 4000),
            ("4kb", 4000),
            ("4ki", 4000),
            ("4kib", 4096),
            ("1m", 1_000_000),
            ("1mib", 1_048_576),
        ] {
            assert_eq!(integer(text, 1000), Ok(bytes), "kb_base=1000 {text}");
        }
    }

    #[test]
    fn expressions_follow_the_usual_order() {
        for (text, value) in [
            ("(4*1024)", 4096),
            ("(4k*2)", 8192),
            ("(2^12)", 4096),
            ("(2+3*1024)", 3074),
            ("( (10k-2k) / 2 )", 4096),
            ("(8192%5000)", 3192),
            ("(2^3^2)", 512),
            ("(-4k+8k)", 4096),
            ("(0x10*16)", 256),
        ] {
            assert_eq!(integer(text, 1024), Ok(value), "{text}");
        }
        assert_eq!(
            time("(2*500ms)", TimeUnit::Seconds),
            Ok(Duration::from_secs(1))
        );
        assert_eq!(time("(7)", TimeUnit::Seconds), Ok(Duration::from_micros(7)));
    }

    #[test]
    fn times_take_the_unit_of_their_option() {
        for (text, milliseconds) in [
            ("1", 1_000),
            ("1s", 1_000),
            ("1000ms", 1_000),
            ("500000us", 500),
            ("2m", 120_000),
            ("1h", 3_600_000),
        ] {
            assert_eq!(
                time(text, TimeUnit::Seconds),
                Ok(Duration::from_millis(milliseconds)),
                "{text}"
            );
        }
        assert_eq!(time("36500d", TimeUnit::Seconds), Ok(Duration::LONGEST));
        for text in ["36501d", "18446744073709551615", "(36501*1d)"] {
            let refused = time(text, TimeUnit::Seconds).unwrap_err();
            assert!(refused.to_string().contains(text), "{refused}");
        }
        assert_eq!(
            time("250", TimeUnit::Microseconds),
            Ok(Duration::from_micros(250))
        );
    }

    #[test]
    fn a_fraction_of_a_time_is_cut_off_as_in_fio() {
        let seconds = |text: &str| whole_time(text, TimeUnit::Seconds);
        assert_eq!(seconds("0.5"), Ok((Duration::ZERO, true)));
        assert_eq!(seconds("1.9"), Ok((Duration::from_secs(1), true)));
        assert_eq!(seconds("1.9s"), Ok((Duration::from_secs(1), true)));
        assert_eq!(seconds("2"), Ok((Duration::from_secs(2), false)));
        assert_eq!(
            whole_time("1.5", TimeUnit::Microseconds),
            Ok((Duration::from_micros(1), true))
        );
        for text in ["1.5ms", "0.5x", "1.2.3", "x.5"] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in [
            "",
            "k",
            "4kx",
            "1.5m",
            "0x10k",
            "0x",
            "0x+1",
            "-4k",
            "(",
            "(4/0)",
            "(1",
            "(1))",
            "4i",
            "99999999999999999999",
            "99999999t",
            "(0-1)",
            "(9^99)",
            "\u{221e}",
        ] {
            assert!(integer(text, 1024).is_err(), "{text}");
        }
        for text in ["", "1x", "0:1", "0.5s", "99999999999d"] {
            assert!(time(text, TimeUnit::Seconds).is_err(), "{text}");
        }
        assert!(amount("101%", 1024).is_err());
    }

    #[test]
    fn lists_by_direction_fill_up_from_the_left() {
        let read = |text: &str| each_direction(text, |part| integer(part, 1024));
        assert_eq!(read("4k"), Ok([Some(4096); 3]));
        assert_eq!(read("8k,32k"), Ok([Some(8192), Some(32768), Some(32768)]));
        assert_eq!(read("8k,32k,"), Ok([Some(8192), Some(32768), None]));
        assert_eq!(read(",8k"), Ok([None, Some(8192), Some(8192)]));
        assert_eq!(read(",8k,"), Ok([None, Some(8192), None]));
        assert!(read("1,2,3,4").is_err());
    }
}
