//! Text from outside: names on foreign disks, names of exports, files and processes, and errors
//! that quote such names.

use std::borrow::Cow;

/// Returns `text` for a terminal. Characters that move the cursor, change colours or reverse the
/// writing direction are escaped (`\u{1b}`). Line breaks and tabs stay.
///
/// All printed text passes through this function, because any text may contain a name from outside.
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, |letter| {
        is_harmful(letter) && !matches!(letter, '\n' | '\t')
    })
}

/// Returns a name for a terminal. Like [`printable`], but line breaks and tabs are escaped as well,
/// so the name stays on one line.
pub fn one_line(name: &str) -> Cow<'_, str> {
    escaped(name, is_harmful)
}

/// Returns JSON text for a terminal. JSON itself escapes characters below the space. This function
/// escapes DEL, the second set of control characters, and the characters of writing direction as
/// `\u009b`. A JSON reader decodes the escapes. All these characters occur only inside strings.
pub fn printable_json(json: &str) -> Cow<'_, str> {
    let harms = |letter: char| is_harmful(letter) && !matches!(letter, '\n' | '\t');
    if !json.chars().any(harms) {
        return Cow::Borrowed(json);
    }
    let mut text = String::with_capacity(json.len() + 16);
    for letter in json.chars() {
        match harms(letter) {
            // Four hexadecimal digits are enough, because no harmful character lies beyond U+FFFF.
            true => text.push_str(&format!("\\u{:04x}", u32::from(letter))),
            false => text.push(letter),
        }
    }
    Cow::Owned(text)
}

fn escaped(text: &str, harms: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(&harms) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        match harms(letter) {
            true => shown.extend(letter.escape_default()),
            false => shown.push(letter),
        }
    }
    Cow::Owned(shown)
}

/// Returns true for control characters of both sets (ECMA-48), separators of lines and paragraphs,
/// and characters of writing direction (Unicode, UAX #9, section 2).
fn is_harmful(letter: char) -> bool {
    letter.is_control()
        || matches!(
            letter,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_stands_as_its_escape() {
        let name = "a\u{1b}[31mred\u{9b}2J\u{7f}\r\u{202e}b\tc\nd";
        assert_eq!(
            printable(name),
            "a\\u{1b}[31mred\\u{9b}2J\\u{7f}\\r\\u{202e}b\tc\nd"
        );
        assert_eq!(one_line("a\nb\tc"), "a\\nb\\tc");
        let plain = "Größe ≈ 3 µs, ─ 字";
        assert!(matches!(printable(plain), Cow::Borrowed(same) if same == plain));
        assert!(matches!(one_line(plain), Cow::Borrowed(_)));
    }

    #[test]
    fn json_is_read_back_as_it_was() {
        let json = "{\n\t\"name\": \"a\u{9b}31m\u{7f}\u{202e}b\"\n}";
        assert_eq!(
            printable_json(json),
            "{\n\t\"name\": \"a\\u009b31m\\u007f\\u202eb\"\n}"
        );
        assert!(matches!(printable_json("{\"name\": 3}"), Cow::Borrowed(_)));
    }
}
