//! Colours on a terminal. They emphasise table headings and verdicts such as best or failed, and
//! dim rules.
//!
//! Text is coloured line by line while it is printed. So the text itself has no colours, and a pipe
//! receives plain text.

use std::io::{self, IsTerminal as _};

const BOLD: &str = "\x1b[1m";
const DIM: &str = "\x1b[2m";
const GREEN: &str = "\x1b[32m";
const YELLOW: &str = "\x1b[33m";
const RED: &str = "\x1b[31m";
const PLAIN: &str = "\x1b[0m";

/// Coloured words. A word is coloured only if it stands alone.
const WORDS: &[(&str, &str)] = &[
    ("best", GREEN),
    ("holds", GREEN),
    ("passed", GREEN),
    ("FAILED", RED),
    ("failed", RED),
    ("≈", YELLOW),
    ("fragile", YELLOW),
];

/// True if standard output shows colours: a capable terminal without `NO_COLOR`
/// (<https://no-color.org>).
pub(crate) fn wanted() -> bool {
    let forbidden = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    !forbidden && !dumb && io::stdout().is_terminal()
}

/// Returns `text` with colours.
pub(crate) fn painted(text: &str) -> String {
    let lines: Vec<&str> = text.split('\n').collect();
    let mut out = String::with_capacity(text.len() * 5 / 4);
    for (index, line) in lines.iter().enumerate() {
        if index > 0 {
            out.push('\n');
        }
        let heading = lines.get(index + 1).is_some_and(|next| is_rule(next));
        match (is_rule(line), heading) {
            (true, _) => wrap(&mut out, DIM, line),
            (_, true) => wrap(&mut out, BOLD, line),
            _ => paint_words(&mut out, line),
        }
    }
    out
}

/// True for the rule below a table's headings.
fn is_rule(line: &str) -> bool {
    !line.is_empty() && line.chars().all(|letter| letter == '─')
}

fn wrap(out: &mut String, colour: &str, text: &str) {
    // Escape sequences around blanks would break the search for the end of a line by other
    // programs.
    if text.trim().is_empty() {
        out.push_str(text);
    } else {
        out.extend([colour, text, PLAIN]);
    }
}

fn paint_words(out: &mut String, line: &str) {
    for piece in line.split_inclusive(' ') {
        // A verdict may end a sentence or a clause.
        let word = piece.trim_end_matches([' ', '.', ',', ';', ':']);
        match WORDS.iter().find(|(known, _)| *known == word) {
            Some((_, colour)) => {
                wrap(out, colour, word);
                out.push_str(&piece[word.len()..]);
            }
            None => out.push_str(piece),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "name   value\n────────────\nraid0   best\nraid5 ≈ +3.0";

    fn bare(text: &str) -> String {
        let mut text = text.to_owned();
        for code in [BOLD, DIM, GREEN, YELLOW, RED, PLAIN] {
            text = text.replace(code, "");
        }
        text
    }

    #[test]
    fn headings_rules_and_telling_words_are_painted() {
        let text = painted(TABLE);
        assert!(
            text.starts_with("\x1b[1mname   value\x1b[0m\n\x1b[2m───"),
            "{text:?}"
        );
        assert!(
            text.contains("\x1b[32mbest\x1b[0m") && text.contains("\x1b[33m≈\x1b[0m"),
            "{text:?}"
        );
    }

    #[test]
    fn paint_changes_no_letter() {
        for text in [
            TABLE,
            "",
            "\n\n",
            "the best-known drive is best.",
            "─",
            " ─ ",
        ] {
            assert_eq!(bare(&painted(text)), text);
        }
        assert!(
            !painted("the best-known drive").contains(GREEN),
            "a part of a word is not the word"
        );
    }
}
