//! The text between the parentheses of a call.

use std::borrow::Cow;

/// Returns the next `,` or closing bracket on the level of `from`, with its position. Skips
/// strings, comments, structures and the paths of `-y`.
pub(super) fn next_mark(text: &str, from: usize) -> Option<(usize, u8)> {
    let bytes = text.as_bytes();
    let (mut at, mut depth) = (from, 0u32);
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => at = end_of_string(bytes, at)?,
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                at += 2 + text.get(at + 2..)?.find("*/")? + 1
            }
            b'<' if names_descriptor(bytes, at) => at = end_of_path(bytes, at)?,
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' if depth > 0 => depth -= 1,
            b')' => return Some((at, byte)),
            b',' if depth == 0 => return Some((at, byte)),
            _ => {}
        }
        at += 1;
    }
    None
}

/// Returns the position of the closing quote of the string at `at`.
fn end_of_string(bytes: &[u8], at: usize) -> Option<usize> {
    let mut at = at + 1;
    loop {
        match bytes.get(at)? {
            b'"' => return Some(at),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// True if the `<` at `at` begins a path: `3<` and `AT_FDCWD<` do, `1<<12` does not.
fn names_descriptor(bytes: &[u8], at: usize) -> bool {
    // A `<` at the beginning has no descriptor before it.
    let before = at.checked_sub(1).map(|before| bytes[before]);
    matches!(before, Some(b'0'..=b'9' | b'D')) && bytes.get(at + 1) != Some(&b'<')
}

/// Returns the position of the `>` at the end of a path. The `>` in `TCP:[a->b]` does not end it.
fn end_of_path(bytes: &[u8], at: usize) -> Option<usize> {
    let ends = |index: &usize| {
        bytes[*index] == b'>'
            && matches!(
                bytes.get(index + 1),
                None | Some(b',' | b')' | b' ' | b']' | b'}' | b'(')
            )
    };
    (at + 1..bytes.len()).find(ends)
}

/// The arguments of a call, by position.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arguments<'t>(pub &'t str);

impl<'t> Arguments<'t> {
    /// Returns the argument at `place`, from 0; an empty text if there are fewer arguments.
    pub fn get(self, place: usize) -> &'t str {
        let mut from = 0;
        for _ in 0..place {
            match next_mark(self.0, from) {
                Some((index, _)) => from = index + 1,
                None => return "",
            }
        }
        let end = next_mark(self.0, from).map_or(self.0.len(), |(index, _)| index);
        self.0[from..end].trim()
    }

    /// Returns a number: decimal, `0x` or octal, also in brackets (`[4096]`).
    pub fn number(self, place: usize) -> Option<i64> {
        number(self.get(place))
    }

    /// Returns a string without its escapes.
    pub fn string(self, place: usize) -> Option<Cow<'t, str>> {
        string(self.get(place))
    }

    /// Returns a descriptor: its number, and its path with `-y`.
    pub fn descriptor(self, place: usize) -> Option<(i32, Option<&'t str>)> {
        let text = self.get(place);
        let (number, path) = match text.split_once('<') {
            Some((number, rest)) => (number, rest.rsplit_once('>').map(|(path, _)| path)),
            None => (text, None),
        };
        match number {
            "AT_FDCWD" => Some((AT_FDCWD, path)),
            _ => Some((
                number.parse().ok().filter(|&number: &i32| number >= 0)?,
                path,
            )),
        }
    }
}

/// Stands for the process's working directory in place of a descriptor.
pub(super) const AT_FDCWD: i32 = -100;

pub(super) fn number(text: &str) -> Option<i64> {
    let text = text
        .strip_prefix('[')
        .and_then(|text| text.split([']', ' ']).next())
        .unwrap_or(text);
    if let Some(digits) = text.strip_prefix("0x") {
        return u64::from_str_radix(digits, 16)
            .ok()
            .map(|value| value as i64);
    }
    match text.strip_prefix('0').filter(|digits| !digits.is_empty()) {
        Some(digits) => i64::from_str_radix(digits, 8).ok(),
        None => text.parse().ok(),
    }
}

/// Returns a quoted string without its escapes. Bytes outside UTF-8 become `U+FFFD`.
pub(super) fn string(text: &str) -> Option<Cow<'_, str>> {
    let end = text
        .starts_with('"')
        .then(|| end_of_string(text.as_bytes(), 0))??;
    let inner = &text[1..end];
    Some(if inner.contains('\\') {
        Cow::Owned(unescaped(inner))
    } else {
        Cow::Borrowed(inner)
    })
}

fn unescaped(text: &str) -> String {
    let mut bytes = text.bytes().peekable();
    let mut plain = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            plain.push(byte);
            continue;
        }
        plain.push(match bytes.next() {
            Some(b'n') => b'\n',
            Some(b't') => b'\t',
            Some(b'r') => b'\r',
            Some(b'v') => 0x0b,
            Some(b'f') => 0x0c,
            Some(b'x') => digits(&mut bytes, 0, 16, 2),
            Some(digit @ b'0'..=b'7') => digits(&mut bytes, digit - b'0', 8, 2),
            Some(other) => other,
            None => b'\\',
        });
    }
    String::from_utf8_lossy(&plain).into_owned()
}

/// Reads up to `most` digits after `first`.
fn digits(
    bytes: &mut std::iter::Peekable<std::str::Bytes<'_>>,
    first: u8,
    radix: u32,
    most: usize,
) -> u8 {
    let mut value = u32::from(first);
    for _ in 0..most {
        let Some(digit) = bytes
            .peek()
            .and_then(|byte| char::from(*byte).to_digit(radix))
        else {
            break;
        };
        bytes.next();
        value = value * radix + digit;
    }
    value as u8
}

/// True if `flags`, joined by `|`, contains `flag`.
pub(super) fn has(flags: &str, flag: &str) -> bool {
    flags
        .split(['|', '{', '}', ',', '=', ' '])
        .any(|one| one == flag)
}

/// Returns the number after `name=` in a structure.
pub(super) fn field(text: &str, name: &str) -> Option<i64> {
    let at = text.find(name)? + name.len();
    let digits = text[at..].strip_prefix('=')?;
    let end = digits.bytes().take_while(u8::is_ascii_alphanumeric).count();
    number(&digits[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_stand_at_their_places() {
        let text = "AT_FDCWD</tmp/x, y>, \"a, \\\"b\\\"\\n\\101\"..., {st_mode=S_IFREG|0644, st_size=42, ...}, 0x10";
        let arguments = Arguments(text);
        assert_eq!(arguments.descriptor(0), Some((AT_FDCWD, Some("/tmp/x, y"))));
        assert_eq!(arguments.string(1).unwrap(), "a, \"b\"\nA");
        assert_eq!(field(arguments.get(2), "st_size"), Some(42));
        assert_eq!((arguments.number(3), arguments.get(4)), (Some(16), ""));
        assert_eq!(Arguments("3, NULL, [7] => [9], 4").number(2), Some(7));
        assert!(has("O_RDWR|O_CREAT", "O_CREAT") && !has("O_CREATE", "O_CREAT"));
    }
}
