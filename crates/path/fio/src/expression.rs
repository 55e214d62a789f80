//! Arithmetic in parentheses: `+ - * / % ^`, whole numbers with suffixes.
//!
//! `^` binds closest and to the right, then `* / %`, then `+ -`.

use fullstroke_contract::{Reason, reason};

/// Largest depth of nested parentheses. A deeper expression is not a job file.
const DEPTH_MAX: usize = 32;

/// Returns the value of `text`. `factor` converts a suffix to a factor.
///
/// # Errors
/// Returns a short description of the missing or unexpected part.
pub(crate) fn evaluate(text: &str, factor: &dyn Fn(&str) -> Option<u64>) -> Result<u64, Reason> {
    let mut reader = ExpressionReader {
        rest: text,
        factor,
        depth: 0,
    };
    let value = reader.sum()?;
    if !reader.rest.trim_start().is_empty() {
        return Err(reason!(
            "found more behind the expression: `{}`",
            reader.rest
        ));
    }
    u64::try_from(value)
        .map_err(|_| reason!("the value {value} is negative or does not fit into 64 bits"))
}

struct ExpressionReader<'a> {
    rest: &'a str,
    factor: &'a dyn Fn(&str) -> Option<u64>,
    depth: usize,
}

type Number = Result<i128, Reason>;

impl ExpressionReader<'_> {
    fn operator(&mut self, known: &str) -> Option<char> {
        self.rest = self.rest.trim_start();
        let sign = self
            .rest
            .chars()
            .next()
            .filter(|sign| known.contains(*sign))?;
        self.rest = &self.rest[sign.len_utf8()..];
        Some(sign)
    }

    fn sum(&mut self) -> Number {
        let mut value = self.product()?;
        while let Some(sign) = self.operator("+-") {
            let other = self.product()?;
            let result = if sign == '+' {
                value.checked_add(other)
            } else {
                value.checked_sub(other)
            };
            value = result.ok_or_else(too_large)?;
        }
        Ok(value)
    }

    fn product(&mut self) -> Number {
        let mut value = self.signed()?;
        while let Some(sign) = self.operator("*/%") {
            let other = self.signed()?;
            let result = match sign {
                '*' => value.checked_mul(other).ok_or_else(too_large),
                '/' => value
                    .checked_div(other)
                    .ok_or_else(|| Reason::new("it divides by 0")),
                _ => value
                    .checked_rem(other)
                    .ok_or_else(|| Reason::new("it divides by 0")),
            };
            value = result?;
        }
        Ok(value)
    }

    fn signed(&mut self) -> Number {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(reason!(
                "more than {DEPTH_MAX} signs and parentheses within each other"
            ));
        }
        let value = match self.operator("-") {
            Some(_) => self.signed()?.checked_neg().ok_or_else(too_large),
            None => self.power(),
        };
        self.depth -= 1;
        value
    }

    fn power(&mut self) -> Number {
        let base = self.atom()?;
        if self.operator("^").is_none() {
            return Ok(base);
        }
        let exponent = u32::try_from(self.signed()?)
            .map_err(|_| Reason::new("an exponent is negative or too large"))?;
        base.checked_pow(exponent).ok_or_else(too_large)
    }

    fn atom(&mut self) -> Number {
        if self.operator("(").is_some() {
            let value = self.sum()?;
            return match self.operator(")") {
                Some(_) => Ok(value),
                None => Err("a `)` is missing".into()),
            };
        }
        let end = self
            .rest
            .find(|letter: char| !letter.is_ascii_alphanumeric())
            .unwrap_or(self.rest.len());
        let word = &self.rest[..end];
        let (number, suffix) = split_number(word)
            .ok_or_else(|| reason!("a number is expected where `{}` stands", self.rest))?;
        let factor = (self.factor)(suffix).ok_or_else(|| reason!("`{suffix}` is no unit here"))?;
        self.rest = &self.rest[end..];
        // The product of two numbers of 64 bits always fits into 128.
        Ok(i128::from(number) * i128::from(factor))
    }
}

fn too_large() -> Reason {
    Reason::new("a value is too large")
}

/// Splits `12k` into the value of its digits and its suffix.
pub(crate) fn split_number(text: &str) -> Option<(u64, &str)> {
    if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        // The parser of Rust accepts a plus sign, and fio does not.
        return u64::from_str_radix(digits, 16)
            .ok()
            .filter(|_| !digits.starts_with('+'))
            .map(|number| (number, ""));
    }
    let end = text
        .find(|letter: char| !letter.is_ascii_digit())
        .unwrap_or(text.len());
    text[..end]
        .parse()
        .ok()
        .map(|number| (number, &text[end..]))
}
