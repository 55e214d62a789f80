//! Parser for the fields of one line of text, as bytes.

/// Error of an unreadable field.
#[derive(Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// Byte in the line, from 0.
    pub column: usize,
    /// Text found.
    pub found: String,
    /// Text expected.
    pub expected: String,
}

/// Result of parsing fields. The error is boxed because it is rare, and so the result of each field
/// stays small.
pub type Parsed<T> = Result<T, Box<Mismatch>>;

/// A position in a line.
#[derive(Clone, Debug)]
pub struct LineFields<'l> {
    line: &'l [u8],
    at: usize,
}

/// Largest number of digits certain to fit into 64 bits.
const DIGITS_SAFE: usize = 19;

impl<'l> LineFields<'l> {
    /// Starts at the beginning of `line`.
    #[inline]
    pub fn new(line: &'l [u8]) -> LineFields<'l> {
        LineFields { line, at: 0 }
    }

    /// Returns the unread rest of the line.
    #[inline]
    pub fn rest(&self) -> &'l [u8] {
        self.line.get(self.at..).unwrap_or_default()
    }

    /// Returns the next byte without reading it.
    #[inline]
    pub fn peek(&self) -> Option<u8> {
        self.line.get(self.at).copied()
    }

    /// Returns true if everything was read.
    #[inline]
    pub fn is_end(&self) -> bool {
        self.at >= self.line.len()
    }

    /// Makes an error at the current position.
    #[cold]
    pub fn mismatch(&self, expected: &str) -> Box<Mismatch> {
        let rest = self.rest();
        let found = if rest.is_empty() {
            "the end of the line".to_owned()
        } else {
            excerpt(rest)
        };
        Box::new(Mismatch {
            column: self.at,
            found,
            expected: expected.to_owned(),
        })
    }

    /// Skips spaces and tabs.
    #[inline]
    pub fn spaces(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.at += 1;
        }
    }

    /// Skips `byte`, which must be next.
    #[inline]
    pub fn byte(&mut self, byte: u8) -> Parsed<()> {
        if self.peek() == Some(byte) {
            self.at += 1;
            return Ok(());
        }
        Err(self.mismatch(&format!("`{}`", char::from(byte))))
    }

    /// Skips `byte` and the spaces around it.
    #[inline]
    pub fn separator(&mut self, byte: u8) -> Parsed<()> {
        self.spaces();
        self.byte(byte)?;
        self.spaces();
        Ok(())
    }

    /// Skips spaces and tabs; at least one is required.
    #[inline]
    pub fn separator_of_spaces(&mut self) -> Parsed<()> {
        if !matches!(self.peek(), Some(b' ' | b'\t')) {
            return Err(self.mismatch("a space and another field"));
        }
        self.spaces();
        Ok(())
    }

    /// Returns the text up to `byte` or to the end. Does not skip `byte`.
    #[inline]
    pub fn until(&mut self, byte: u8) -> &'l [u8] {
        let rest = self.rest();
        let length = memchr::memchr(byte, rest).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    /// Skips `count` bytes, at most to the end.
    #[inline]
    pub fn skip(&mut self, count: usize) {
        self.at = (self.at + count).min(self.line.len());
    }

    /// Returns the next word: skips spaces, then reads up to the next space.
    #[inline]
    pub fn word(&mut self) -> &'l [u8] {
        self.spaces();
        let rest = self.rest();
        let length = rest
            .iter()
            .position(|byte| matches!(byte, b' ' | b'\t'))
            .unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    /// Parses a whole number from 0 to 2^64 - 1.
    #[inline]
    pub fn integer(&mut self, expected: &str) -> Parsed<u64> {
        let rest = self.rest();
        let (mut value, count) = digits(rest);
        if count == 0 {
            return Err(self.no_number(expected));
        }
        if count > DIGITS_SAFE {
            value = self.long_integer(&rest[..count])?;
        }
        self.at += count;
        Ok(value)
    }

    /// As [`integer`](Self::integer), for a field with nothing else in it: `1.5e9` and `16k` are errors at
    /// the beginning of the field.
    #[inline]
    pub fn whole(&mut self, expected: &str) -> Parsed<u64> {
        let before = self.at;
        let value = self.integer(expected)?;
        match self.peek() {
            Some(b'.' | b'_' | b'a'..=b'z' | b'A'..=b'Z') => {
                self.at = before;
                Err(self.mismatch(&format!("{expected}, as a whole number")))
            }
            _ => Ok(value),
        }
    }

    /// Parses a whole number from 0 to 2^32 - 1.
    #[inline]
    pub fn small(&mut self, expected: &str) -> Parsed<u32> {
        let before = self.at;
        let value = self.integer(expected)?;
        u32::try_from(value).map_err(|_| {
            self.at = before;
            self.mismatch(&format!("{expected} below 2^32"))
        })
    }

    #[cold]
    fn long_integer(&self, digits: &[u8]) -> Parsed<u64> {
        digits
            .iter()
            .try_fold(0u64, |value, byte| {
                // Twenty digits may or may not fit, so each step is checked.
                value.checked_mul(10)?.checked_add(u64::from(byte - b'0'))
            })
            .ok_or_else(|| self.mismatch("a number below 2^64"))
    }

    /// Parses a decimal number and returns it times 10^`places`. Further decimal places are cut
    /// off. Exponents (`1.5e-05`) are accepted.
    #[inline]
    pub fn decimal(&mut self, places: u32, expected: &str) -> Parsed<u64> {
        let begin = self.clone();
        let whole = if self.peek() == Some(b'.') {
            0
        } else {
            self.integer(expected)?
        };
        let mut fraction = 0;
        if self.peek() == Some(b'.') {
            self.at += 1;
            let (value, count) = self.fraction(places);
            fraction = value;
            self.at += count;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            return self.exponential(&begin, places, expected);
        }
        let scaled = whole.checked_mul(10u64.pow(places));
        // The product of the whole part and 10^9 passes 64 bits at 584 years of nanoseconds.
        scaled
            .and_then(|scaled| scaled.checked_add(fraction))
            .ok_or_else(|| begin.mismatch(&format!("{expected} within 584 years")))
    }

    /// Returns the following digits as a fraction times 10^`places`, and the number of digits.
    #[inline]
    fn fraction(&self, places: u32) -> (u64, usize) {
        let rest = self.rest();
        let (value, count) = digits(rest);
        let places = places as usize;
        if count <= places {
            return (value * 10u64.pow((places - count) as u32), count);
        }
        // Digits beyond `places` are cut off.
        (digits(&rest[..places]).0, count)
    }

    #[cold]
    fn exponential(&mut self, begin: &LineFields<'l>, places: u32, expected: &str) -> Parsed<u64> {
        let text = begin.rest();
        let end = text
            .iter()
            .position(|byte| !matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'))
            .unwrap_or(text.len());
        let value = std::str::from_utf8(&text[..end])
            .ok()
            .and_then(|text| text.parse::<f64>().ok());
        let scaled = value.map(|value| value * 10f64.powi(places.cast_signed()));
        match scaled {
            // 1.8e19 lies just below 2^64, where the conversion to an integer would saturate.
            Some(scaled) if (0.0..1.8e19).contains(&scaled) => {
                self.at = begin.at + end;
                Ok(scaled.round() as u64)
            }
            _ => Err(begin.mismatch(expected)),
        }
    }

    /// Makes the error for a missing number. The error mentions a negative number as such.
    #[cold]
    fn no_number(&self, expected: &str) -> Box<Mismatch> {
        match self.rest() {
            [b'-', b'0'..=b'9' | b'.', ..] => {
                self.mismatch(&format!("{expected}, which is never negative"))
            }
            _ => self.mismatch(expected),
        }
    }

    /// Checks that the line ends here, after optional spaces.
    #[inline]
    pub fn end(&mut self) -> Parsed<()> {
        self.spaces();
        if self.is_end() {
            Ok(())
        } else {
            Err(self.mismatch("the end of the line"))
        }
    }
}

/// Returns the number formed by the digits at the beginning of `text`, modulo 2^64, and the number
/// of digits. Reads eight digits at once (after D. Lemire, Software: Practice and Experience 51,
/// 2021, section 3.1).
#[inline]
fn digits(text: &[u8]) -> (u64, usize) {
    let (mut value, mut count) = (0u64, 0);
    loop {
        let plain = word_at(text, count) ^ 0x3030_3030_3030_3030;
        // Digits are 0 to 9 now. Adding 0x76 to any other byte sets its highest bit. The carry
        // affects only later bytes.
        let others = (plain.wrapping_add(0x7676_7676_7676_7676) | plain) & 0x8080_8080_8080_8080;
        if others == 0 {
            value = value
                // Wraps for a number of more than 19 digits, whose length the caller checks.
                .wrapping_mul(EIGHT_DIGITS)
                .wrapping_add(number_of_eight(plain));
            count += 8;
            continue;
        }
        let found = (others.trailing_zeros() / 8) as usize % 8;
        if found == 0 {
            return (value, count);
        }
        // Leading zeros extend fewer digits to eight.
        let part = number_of_eight(plain << (64 - 8 * found));
        value = value.wrapping_mul(POWERS_OF_TEN[found]).wrapping_add(part);
        return (value, count + found);
    }
}

/// As [`digits`], for a number of at most 19 digits. Returns 0 digits for a longer number.
#[inline(never)]
pub(crate) fn digits_at(text: &[u8; 24]) -> (u64, usize) {
    let [first, second, third] = [0, 8, 16].map(|at| word_at(text, at));
    let (value, count) = digits_of_word(first);
    if count < 8 {
        return (value, count);
    }
    let (part, more) = digits_of_word(second);
    if more < 8 {
        return (value * POWERS_OF_TEN[more] + part, count + more);
    }
    let value = value * EIGHT_DIGITS + part;
    let (part, more) = digits_of_word(third);
    // A number of 20 digits is left to the slow way, which checks the range.
    if 16 + more > DIGITS_SAFE {
        return (0, 0);
    }
    (value * POWERS_OF_TEN[more % 8] + part, 16 + more)
}

/// Returns the number formed by the digits at the beginning of a word, and the number of digits.
#[inline]
fn digits_of_word(word: u64) -> (u64, usize) {
    let plain = word ^ 0x3030_3030_3030_3030;
    let others = (plain.wrapping_add(0x7676_7676_7676_7676) | plain) & 0x8080_8080_8080_8080;
    if others == 0 {
        return (number_of_eight(plain), 8);
    }
    // The lowest byte that is no digit; 56 rounds its bit number down to a byte.
    let bits = others.trailing_zeros() & 56;
    (
        // Two shifts, because one shift by 64 bits (no digits) would be an overflow.
        number_of_eight(plain << 8 << (56 - bits)),
        (bits / 8) as usize,
    )
}

/// Number of different numbers with eight digits.
const EIGHT_DIGITS: u64 = 100_000_000;

const POWERS_OF_TEN: [u64; 8] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000];

/// Returns the eight bytes of `text` from `at` on, the first byte lowest. Bytes behind the end of
/// `text` are 0.
#[inline]
fn word_at(text: &[u8], at: usize) -> u64 {
    let rest = text.get(at..).unwrap_or_default();
    if let Some(chunk) = rest.first_chunk::<8>() {
        return u64::from_le_bytes(*chunk);
    }
    match text.last_chunk::<8>() {
        // The wanted bytes are the highest bytes of the last word.
        Some(chunk) if !rest.is_empty() => u64::from_le_bytes(*chunk) >> (64 - 8 * rest.len()),
        Some(_) => 0,
        None => {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            u64::from_le_bytes(word)
        }
    }
}

/// Returns the number of eight digits, with the first digit in the lowest byte.
#[inline]
fn number_of_eight(digits: u64) -> u64 {
    // Pairs of digits first, then pairs of pairs: three multiplications instead of eight.
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8);
    let low = (pairs & 0x0000_00ff_0000_00ff).wrapping_mul(0x000f_4240_0000_0064);
    let high = (pairs >> 16 & 0x0000_00ff_0000_00ff).wrapping_mul(0x0000_2710_0000_0001);
    low.wrapping_add(high) >> 32
}

/// Returns the first bytes of `bytes` in printable form, in backquotes.
pub(crate) fn excerpt(bytes: &[u8]) -> String {
    const SHOWN: usize = 40;
    let shown = &bytes[..bytes.len().min(SHOWN)];
    format!(
        "`{}{}`",
        shown.escape_ascii(),
        if bytes.len() > SHOWN { "..." } else { "" }
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn decimals_are_scaled_exactly() {
        for (text, places, value) in [
            ("0.449518165", 9, 449_518_165),
            ("3600.714306389", 9, 3_600_714_306_389),
            ("12", 3, 12_000),
            ("1.5e-05", 9, 15_000),
            (".25", 3, 250),
            ("0.1234567899", 9, 123_456_789),
            ("0.56", 0, 0),
        ] {
            assert_eq!(
                LineFields::new(text.as_bytes()).decimal(places, "seconds"),
                Ok(value),
                "{text}"
            );
        }
    }

    proptest! {
        #[test]
        fn digits_are_read_as_one_by_one(text in "[0-9]{0,24}[ -~]{0,12}", bytes in any::<[u8; 20]>()) {
            for text in [text.as_bytes(), &bytes, &[text.as_bytes(), &bytes].concat()] {
                let ahead: Vec<u8> = text.iter().copied().take_while(u8::is_ascii_digit).collect();
                let value = ahead
                    .iter()
                    .fold(0u64, |value, digit| value.wrapping_mul(10).wrapping_add(u64::from(digit - b'0')));
                prop_assert_eq!(digits(text), (value, ahead.len()));
                let mut padded = text.to_vec();
                padded.resize(24.max(text.len()), b',');
                let expected = if ahead.len() > DIGITS_SAFE { (0, 0) } else { (value, ahead.len()) };
                prop_assert_eq!(digits_at(padded.first_chunk().unwrap()), expected);
            }
        }
    }

    #[test]
    fn numbers_that_do_not_fit_are_errors_at_their_column() {
        let largest = u64::MAX.to_string();
        assert_eq!(
            LineFields::new(largest.as_bytes()).integer("x"),
            Ok(u64::MAX)
        );
        for text in [
            "18446744073709551616",
            "99999999999999999999999",
            "-1",
            "x",
            "",
        ] {
            let error = LineFields::new(text.as_bytes())
                .integer("an offset")
                .unwrap_err();
            assert_eq!(error.column, 0, "{text}");
        }
        let negative = LineFields::new(b"-1").integer("an offset").unwrap_err();
        assert!(negative.expected.contains("negative"), "{negative:?}");
        assert!(
            LineFields::new(b"18446744074.0")
                .decimal(9, "seconds")
                .is_err()
        );
        assert!(LineFields::new(b"1e300").decimal(9, "seconds").is_err());
    }
}
