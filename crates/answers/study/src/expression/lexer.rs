//! From text to tokens.

use super::ExpressionError;
use std::ops::Range;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Number(f64),
    Text(String),
    /// `response_ms.p99`, `groups[random reader].mb_per_s`.
    Name(String),
    /// An operator or bracket.
    Sign(&'static str),
    End,
}

/// Longer signs first, because the first match counts.
const SIGNS: [&str; 17] = [
    "<=", ">=", "==", "!=", "+", "-", "*", "/", "<", ">", "=", "(", ")", ",", ":", "{", "}",
];

pub(super) fn tokens(text: &str) -> Result<Vec<(Token, Range<usize>)>, ExpressionError> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(letter) = text[at..].chars().next() {
        if letter.is_whitespace() {
            at += letter.len_utf8();
            continue;
        }
        let rest = &text[at..];
        let (token, length) = if letter.is_ascii_digit() {
            number(text, at)?
        } else if letter.is_ascii_alphabetic() || letter == '_' {
            let length = name_length(rest);
            (Token::Name(rest[..length].to_owned()), length)
        } else if letter == '"' || letter == '\'' {
            let Some(end) = rest[1..].find(letter) else {
                let message = format!("this text does not end; expected a closing {letter}");
                return Err(ExpressionError::new(text, at..text.len(), message));
            };
            (Token::Text(rest[1..=end].to_owned()), end + 2)
        } else if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            (Token::Sign(sign), sign.len())
        } else {
            let message =
                format!("found `{letter}`; expected a name, a number, a text or an operator");
            return Err(ExpressionError::new(
                text,
                at..at + letter.len_utf8(),
                message,
            ));
        };
        tokens.push((token, at..at + length));
        at += length;
    }
    tokens.push((Token::End, text.len()..text.len()));
    Ok(tokens)
}

fn number(text: &str, at: usize) -> Result<(Token, usize), ExpressionError> {
    let bytes = text.as_bytes();
    let digits = |mut end: usize| {
        while bytes.get(end).is_some_and(u8::is_ascii_digit) {
            end += 1;
        }
        end
    };
    let mut end = digits(at);
    if bytes.get(end) == Some(&b'.') {
        end = digits(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        if bytes.get(end + 1 + sign).is_some_and(u8::is_ascii_digit) {
            end = digits(end + 1 + sign);
        }
    }
    match text[at..end].parse() {
        Ok(number) => Ok((Token::Number(number), end - at)),
        Err(_) => Err(ExpressionError::new(
            text,
            at..end,
            "expected a number such as 0.05 or 1e6",
        )),
    }
}

/// Returns the length of a name: letters, digits and `_`, with parts after dots and choices in `[
/// ]`.
fn name_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut end = 0;
    loop {
        let word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        match bytes.get(end) {
            Some(byte) if word(byte) => end += 1,
            Some(b'.')
                if bytes
                    .get(end + 1)
                    .is_some_and(|byte| byte.is_ascii_alphabetic()) =>
            {
                end += 1
            }
            Some(b'[') => match text[end..].find(']') {
                Some(close) => end += close + 1,
                None => return end,
            },
            _ => return end,
        }
    }
}
