//! Values of fields: numbers with a unit, dates, operations.

use crate::columns::names::{Role, unit_of};
use crate::events::operation_of_flags;
use fullstroke_contract::Operation;

const SECOND_NS: u64 = 1_000_000_000;
const DAY_NS: u64 = 86_400 * SECOND_NS;
/// Largest number of digits behind the decimal point that count.
const PLACES_MAX: u32 = 12;

/// Returns the number in `text`, times `unit`. Digits beyond the unit are cut off. `comma` allows a
/// decimal comma. Hexadecimal numbers begin with `0x`.
pub(super) fn scaled(text: &[u8], unit: u64, comma: bool) -> Option<u64> {
    if let Some(digits) = text
        .strip_prefix(b"0x")
        .or_else(|| text.strip_prefix(b"0X"))
    {
        let digits = std::str::from_utf8(digits).ok()?;
        let plain = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let value = u64::from_str_radix(digits, 16).ok().filter(|_| plain)?;
        return value.checked_mul(unit);
    }
    let (mut mantissa, mut places, mut digits, mut behind) = (0u128, 0u32, 0u32, false);
    for (at, &byte) in text.iter().enumerate() {
        match byte {
            // Further digits lie below a picosecond and could only make the mantissa overflow.
            b'0'..=b'9' if behind && places >= PLACES_MAX => {}
            b'0'..=b'9' => {
                mantissa = mantissa
                    .checked_mul(10)?
                    .checked_add(u128::from(byte - b'0'))?;
                digits += 1;
                places += u32::from(behind);
            }
            b'.' if !behind => behind = true,
            b',' if !behind && comma => behind = true,
            b',' if !comma => return grouped(text, unit),
            b'e' | b'E' if digits > 0 && at > 0 => return exponential(text, unit),
            _ => return None,
        }
    }
    if digits == 0 {
        return None;
    }
    // In whole numbers, because ns since 1970 need 61 bits and a double has 53.
    let value = mantissa.checked_mul(u128::from(unit))? / 10u128.pow(places);
    u64::try_from(value).ok()
}

/// Returns the number in `text` with a comma before each group of three digits: `1,048,576`. Such a
/// number stands in quotes if commas part the columns.
#[cold]
fn grouped(text: &[u8], unit: u64) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    let whole = text.split('.').next()?;
    let mut groups = whole.split(',');
    let is_group = |group: &str, least: usize| {
        (least..=3).contains(&group.len()) && group.bytes().all(|digit| digit.is_ascii_digit())
    };
    let fits = groups.next().is_some_and(|first| is_group(first, 1))
        && groups.all(|group| is_group(group, 3));
    let plain = text.replace(',', "");
    (fits && !text[whole.len()..].contains(','))
        .then(|| scaled(plain.as_bytes(), unit, false))
        .flatten()
}

/// Returns the number in a text with a unit of its own, such as `64k`, `1 MiB` or `1.5ms`.
pub(super) fn suffixed(role: Role, text: &[u8], comma: bool) -> Option<u64> {
    let (digits, unit) = of_suffix(role, text)?;
    scaled(digits, unit, comma)
}

/// Divides a text such as `64k` into digits and unit.
pub(super) fn of_suffix(role: Role, text: &[u8]) -> Option<(&[u8], u64)> {
    let letters = text
        .iter()
        .rev()
        .take_while(|byte| byte.is_ascii_alphabetic())
        .count();
    let (digits, letters) = text.split_at(text.len() - letters);
    let digits = digits.trim_ascii();
    // The digits a to f of a hexadecimal number would pass for a unit.
    let hexadecimal = digits.is_empty() || text.starts_with(b"0x");
    let unit = unit_of(role, std::str::from_utf8(letters).ok()?)?;
    (!hexadecimal && !letters.is_empty()).then_some((digits, unit))
}

#[cold]
fn exponential(text: &[u8], unit: u64) -> Option<u64> {
    let value: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    let scaled = value * unit as f64;
    // 1.8e19 lies just below 2^64.
    (0.0..1.8e19)
        .contains(&scaled)
        .then_some(scaled.round() as u64)
}

/// Reads times as numbers, dates, or times of the day. A time of the day that falls by more than
/// half a day belongs to the next day.
#[derive(Debug, Default)]
pub(super) struct Clock {
    days: u64,
    last_of_day: u64,
}

impl Clock {
    /// Returns the time in ns.
    pub(super) fn time(&mut self, text: &[u8], unit: u64, comma: bool) -> Option<u64> {
        if !text.contains(&b':') {
            return scaled(text, unit, comma);
        }
        let text = std::str::from_utf8(text).ok()?;
        if let Some(time) = date_time(text) {
            return Some(time);
        }
        let of_day = time_of_day(text)?;
        // A smaller step back is a row out of order, and no midnight.
        if of_day + DAY_NS / 2 < self.last_of_day {
            self.days += 1;
        }
        self.last_of_day = of_day;
        Some(self.days * DAY_NS + of_day)
    }
}

/// Returns the ns since 1970 of `2024-05-01T12:00:00.5Z`, or of `2024/05/01 12:00:00,5`.
fn date_time(text: &str) -> Option<u64> {
    let (date, time) = text.split_once(['T', ' '])?;
    let mut parts = date.split(['-', '/', '.']);
    let mut next = || parts.next()?.parse::<u64>().ok();
    let (first, second, third) = (next()?, next()?, next()?);
    // `2024-05-01`, `01.05.2024`, `05/01/2024` (the United States, as Windows' tools write it), or
    // `13/05/2024`, which can only be the day before the month.
    let (year, month, day) = match first {
        32.. => (first, second, third),
        _ if date.contains('.') || first > 12 => (third, second, first),
        _ => (third, first, second),
    };
    let sane = (1970..2500).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !sane {
        return None;
    }
    let (time, east_s) = zone(time.trim())?;
    let ns = days_since_1970(year, month, day) * DAY_NS + time_of_day(time)?;
    let shift = east_s.unsigned_abs() * SECOND_NS;
    match east_s < 0 {
        true => ns.checked_add(shift),
        false => ns.checked_sub(shift),
    }
}

/// Divides a time of the day from its zone. Returns the time and the seconds east of Greenwich.
fn zone(time: &str) -> Option<(&str, i64)> {
    let time = time.trim_end_matches(['Z', 'z']);
    let Some(at) = time.rfind(['+', '-']) else {
        return Some((time, 0));
    };
    let digits: String = time[at + 1..]
        .chars()
        .filter(char::is_ascii_digit)
        .collect();
    let number: i64 = digits.parse().ok()?;
    let (hours, minutes) = if digits.len() > 2 {
        (number / 100, number % 100)
    } else {
        (number, 0)
    };
    let seconds = (hours * 60 + minutes) * 60;
    // The easternmost zone is UTC+14 (Line Islands).
    if hours > 14 {
        return None;
    }
    let east = if time.as_bytes()[at] == b'-' {
        -seconds
    } else {
        seconds
    };
    Some((time[..at].trim(), east))
}

/// Returns the ns since midnight of `12:00:00.5`.
fn time_of_day(text: &str) -> Option<u64> {
    let (text, half) = half_of_day(text.trim());
    let mut parts = text.splitn(3, ':');
    let hours: u64 = parts.next()?.trim().parse().ok()?;
    let hours = match half {
        // 12 AM is midnight, and 12 PM is noon.
        Some(after_noon) if (1..=12).contains(&hours) => hours % 12 + 12 * u64::from(after_noon),
        Some(_) => return None,
        None => hours,
    };
    let minutes: u64 = parts.next()?.parse().ok()?;
    let seconds = match parts.next() {
        Some(seconds) => scaled(seconds.as_bytes(), SECOND_NS, true)?,
        None => 0,
    };
    // Second 60 is a leap second.
    (hours < 24 && minutes < 60 && seconds < 61 * SECOND_NS)
        .then_some((hours * 60 + minutes) * 60 * SECOND_NS + seconds)
}

/// Divides `12:00:01 PM` into the time, and true for the half of the day after noon.
fn half_of_day(text: &str) -> (&str, Option<bool>) {
    let Some((time, word)) = text.split_at_checked(text.len().saturating_sub(2)) else {
        return (text, None);
    };
    match word {
        "AM" | "am" => (time.trim_end(), Some(false)),
        "PM" | "pm" => (time.trim_end(), Some(true)),
        _ => (text, None),
    }
}

/// Returns the number of days from 1970-01-01 in the Gregorian calendar.
fn days_since_1970(year: u64, month: u64, day: u64) -> u64 {
    // Years begin in March, so that the leap day is the last day of a year.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let days = year * 365 + year / 4 - year / 100 + year / 400;
    // Month lengths from March: 31, 30, 31, 30, 31 in turn.
    let before = (153 * month + 2) / 5;
    // Day 719468 of this count is 1970-01-01.
    days + before + (day - 1) - 719_468
}

/// Returns the operation of a field. `Ok(None)` is a command that moves no data. A 0 means a read
/// and a 1 a write; the other way round if `one_reads`.
pub(super) fn operation(text: &[u8], one_reads: bool) -> Result<Option<Operation>, ()> {
    let lower = text.to_ascii_lowercase();
    let word = std::str::from_utf8(&lower).map_err(|_| ())?;
    let known = match word {
        "r" | "rd" | "read" | "reads" | "get" | "load" | "rread" => Some(Operation::Read),
        "w" | "wr" | "write" | "writes" | "put" | "store" | "update" => Some(Operation::Write),
        "f" | "ff" | "flush" | "sync" | "fsync" | "fdatasync" | "barrier" => Some(Operation::Flush),
        "d" | "discard" | "trim" | "unmap" => Some(Operation::Discard),
        "0" | "false" | "no" => Some(if one_reads {
            Operation::Write
        } else {
            Operation::Read
        }),
        "1" | "true" | "yes" => Some(if one_reads {
            Operation::Read
        } else {
            Operation::Write
        }),
        _ => None,
    };
    if known.is_some() {
        return Ok(known);
    }
    if let Some(command) = scsi_command(word) {
        return Ok(crate::formats::vscsi::operation_of(command));
    }
    if word.starts_with("read") || word.starts_with("rd") || word.contains("_read") {
        return Ok(Some(Operation::Read));
    }
    if word.starts_with("write") || word.starts_with("wr") || word.contains("_write") {
        return Ok(Some(Operation::Write));
    }
    // Letters of the block layer, such as WS or RAM.
    let letters = text.len() <= 6 && text.iter().all(|byte| b"RWDFSAMPHNE".contains(byte));
    match operation_of_flags(text, 1) {
        Some(operation) if letters => Ok(Some(operation)),
        _ => Err(()),
    }
}

/// Returns the SCSI command of two hexadecimal digits, such as `2a` or `0x28`.
fn scsi_command(word: &str) -> Option<u16> {
    let digits = word.strip_prefix("0x").unwrap_or(word);
    let plain = digits.len() == 2
        && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
        // Two letters, such as `ad`, may be a word.
        && digits.bytes().any(|digit| digit.is_ascii_digit());
    u16::from_str_radix(digits, 16).ok().filter(|_| plain)
}

/// Returns true if the field is a SCSI command that moves data.
pub(super) fn is_scsi(text: &[u8]) -> bool {
    let command = std::str::from_utf8(text)
        .ok()
        .and_then(|text| scsi_command(&text.to_ascii_lowercase()));
    command.is_some_and(|command| crate::formats::vscsi::operation_of(command).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_scaled_exactly() {
        for (text, unit, value) in [
            ("1.5", 1_000_000_000, Some(1_500_000_000)),
            ("1,5", 1000, Some(1500)),
            (
                "1538323200.123456789",
                1_000_000_000,
                Some(1_538_323_200_123_456_789),
            ),
            ("1.5e3", 1000, Some(1_500_000)),
            ("0x10", 512, Some(8192)),
            ("18446744073709551615", 1, Some(u64::MAX)),
            ("18446744073709551615", 512, None),
            ("-1", 1, None),
            ("", 1, None),
            (".", 1, None),
            ("1.2.3", 1, None),
            ("nan", 1, None),
            ("1,048,576", 1, None),
            ("e5", 1, None),
        ] {
            assert_eq!(scaled(text.as_bytes(), unit, true), value, "{text}");
        }
        assert_eq!(scaled(b"1,5", 1, false), None);
        for (text, value) in [
            ("1,048,576", Some(1_048_576)),
            ("12,000.5", Some(12_000)),
            ("1,04", None),
            ("1.5,000", None),
            ("1,,000", None),
        ] {
            assert_eq!(scaled(text.as_bytes(), 1, false), value, "{text}");
        }
        for (text, role, value) in [
            ("64k", Role::Size, Some(65_536)),
            ("1 MiB", Role::Start, Some(1 << 20)),
            ("1.5ms", Role::Latency, Some(1_500_000)),
            ("0x1b", Role::Size, None),
            ("k", Role::Size, None),
            ("12q", Role::Size, None),
        ] {
            assert_eq!(suffixed(role, text.as_bytes(), false), value, "{text}");
        }
    }

    #[test]
    fn dates_and_times_of_the_day_are_read() {
        let mut clock = Clock::default();
        let mut time = |text: &str| clock.time(text.as_bytes(), 1, false);
        assert_eq!(time("1970-01-02T00:00:01.5Z"), Some(DAY_NS + 1_500_000_000));
        assert_eq!(time("2024-02-29 12:00:00"), Some(1_709_208_000_000_000_000));
        assert_eq!(
            time("2024-02-29 13:00:00+01:00"),
            Some(1_709_208_000_000_000_000)
        );
        assert_eq!(time("2024-13-01 00:00:00"), None);
        let noon = Some(1_709_208_000_000_000_000);
        for text in [
            "29.02.2024 12:00:00",
            "02/29/2024 12:00:00 PM",
            "29/02/2024 12:00",
        ] {
            assert_eq!(time(text), noon, "{text}");
        }
        assert_eq!(time("02/29/2024 13:00:00 PM"), None);
        assert_eq!(time("23:59:59.5"), Some(DAY_NS - 500_000_000));
        assert_eq!(time("00:00:01"), Some(DAY_NS + SECOND_NS));
        assert_eq!(time("12:61:00"), None);
    }

    #[test]
    fn operations_have_many_names() {
        for (text, expected) in [
            ("R", Ok(Some(Operation::Read))),
            ("Write", Ok(Some(Operation::Write))),
            ("WS", Ok(Some(Operation::Write))),
            ("FF", Ok(Some(Operation::Flush))),
            ("2a", Ok(Some(Operation::Write))),
            ("28", Ok(Some(Operation::Read))),
            ("0x88", Ok(Some(Operation::Read))),
            ("00", Ok(None)),
            ("1", Ok(Some(Operation::Write))),
            ("TRIM", Ok(Some(Operation::Discard))),
            ("flush", Ok(Some(Operation::Flush))),
            ("erase", Err(())),
            ("", Err(())),
        ] {
            assert_eq!(operation(text.as_bytes(), false), expected, "{text}");
        }
        assert_eq!(operation(b"1", true), Ok(Some(Operation::Read)));
    }
}
