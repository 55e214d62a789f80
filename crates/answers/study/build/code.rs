//! Extracts the compiled parts of Rust sources: the tokens without comments, spaces and modules of
//! tests.
//!
//! Text that the code does not understand counts as code. Results are therefore discarded too often
//! rather than too rarely.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Returns the code of a file: its tokens, each followed by a line feed. Comments, spaces, commas
/// before a closing bracket, and modules under `#[cfg(test)]` are left out.
pub fn code(text: &str) -> String {
    let tokens = without_modules_of_tests(&tokens(text)).0;
    let closes = |token: Option<&&str>| token.is_some_and(|token| [")", "]", "}"].contains(token));
    let mut code = String::with_capacity(text.len());
    for (index, token) in tokens.iter().enumerate() {
        if *token != "," || !closes(tokens.get(index + 1)) {
            code.push_str(token);
            code.push('\n');
        }
    }
    code
}

/// Returns the files and folders of the modules that the file at `path` declares under
/// `#[cfg(test)]`.
pub fn files_of_tests(path: &Path, text: &str) -> BTreeSet<PathBuf> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let stem = path.file_stem().unwrap_or_default();
    let owns_folder = ["lib", "main", "mod"].iter().any(|name| stem == *name);
    let below = if owns_folder {
        folder.to_owned()
    } else {
        folder.join(stem)
    };
    let declared = without_modules_of_tests(&tokens(text)).1;
    let files = declared.iter().flat_map(|module| match module.path {
        Some(named) => vec![folder.join(named)],
        None => vec![
            below.join(format!("{}.rs", module.name)),
            below.join(module.name),
        ],
    });
    files.collect()
}

/// A module of tests in a file of its own.
struct Declared<'a> {
    name: &'a str,
    /// Value of the attribute `path`.
    path: Option<&'a str>,
}

/// Returns the tokens outside modules of tests, and the modules of tests that are declared without
/// a body.
fn without_modules_of_tests<'a>(tokens: &[&'a str]) -> (Vec<&'a str>, Vec<Declared<'a>>) {
    const CFG_TEST: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let (mut kept, mut declared) = (Vec::with_capacity(tokens.len()), Vec::new());
    let mut rest = tokens;
    while let Some((token, behind)) = rest.split_first() {
        match rest.strip_prefix(&CFG_TEST).and_then(module) {
            Some((module, after)) => {
                declared.extend(module);
                rest = after;
            }
            None => {
                kept.push(*token);
                rest = behind;
            }
        }
    }
    (kept, declared)
}

/// Parses a module at the beginning of the tokens. Returns its declaration, unless the body
/// follows, and the tokens after the module. `None` if there is no module.
fn module<'a, 't>(mut tokens: &'t [&'a str]) -> Option<(Option<Declared<'a>>, &'t [&'a str])> {
    let mut path = None;
    while let ["#", rest @ ..] = tokens {
        if let ["[", "path", "=", named, "]", ..] = rest {
            path = Some(named.trim_matches('"'));
        }
        tokens = &rest[bracketed(rest)?..];
    }
    if let ["pub", rest @ ..] = tokens {
        tokens = if rest.first() == Some(&"(") {
            &rest[bracketed(rest)?..]
        } else {
            rest
        };
    }
    match tokens {
        ["mod", name, ";", rest @ ..] => Some((Some(Declared { name, path }), rest)),
        ["mod", _, rest @ ..] if rest.first() == Some(&"{") => {
            Some((None, &rest[bracketed(rest)?..]))
        }
        _ => None,
    }
}

/// Returns the number of tokens from an opening bracket to its closing bracket.
fn bracketed(tokens: &[&str]) -> Option<usize> {
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate() {
        match *token {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            return Some(index + 1);
        }
    }
    None
}

/// Returns words, literals, lifetimes and single signs, without comments and spaces.
fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (length, counts) = match first {
            _ if first.is_whitespace() => (first.len_utf8(), false),
            '/' if rest.starts_with("//") => (rest.find('\n').unwrap_or(rest.len()), false),
            '/' if rest.starts_with("/*") => (block_comment(rest), false),
            '"' => (quoted(rest, '"'), true),
            '\'' => (character_or_lifetime(rest), true),
            _ if is_of_word(first) => (word_or_literal(rest), true),
            _ => (first.len_utf8(), true),
        };
        let (token, behind) = rest.split_at(length);
        if counts {
            tokens.push(token);
        }
        rest = behind;
    }
    tokens
}

fn is_of_word(letter: char) -> bool {
    letter == '_' || letter.is_alphanumeric()
}

/// Returns the length of a comment at the beginning, including nested comments.
fn block_comment(text: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < text.len() {
        let here = &text.as_bytes()[at..];
        if here.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if here.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    text.len()
}

/// Returns the length of a literal that begins and ends with `quote`.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, letter) in text.char_indices().skip(1) {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if letter == quote => return at + letter.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

fn character_or_lifetime(text: &str) -> usize {
    let mut behind = text.chars().skip(1);
    match (behind.next(), behind.next()) {
        (Some('\\'), _) | (_, Some('\'')) => quoted(text, '\''),
        _ => 1 + word(&text[1..]),
    }
}

fn word(text: &str) -> usize {
    text.find(|letter| !is_of_word(letter))
        .unwrap_or(text.len())
}

/// Returns the length of a word, a number, or a literal with a prefix (`b"`, `r#"`, `b'`).
fn word_or_literal(text: &str) -> usize {
    let length = word(text);
    let (prefix, behind) = text.split_at(length);
    let raw = matches!(prefix, "r" | "br" | "cr");
    match behind.chars().next() {
        Some('"' | '#') if raw => length + raw_string(behind).unwrap_or(0),
        Some('"') if matches!(prefix, "b" | "c") => length + quoted(behind, '"'),
        Some('\'') if prefix == "b" => length + quoted(behind, '\''),
        _ => length,
    }
}

/// Returns the length of a raw string without its leading `r`. `None` for a raw identifier.
fn raw_string(text: &str) -> Option<usize> {
    let signs = text.find(|letter| letter != '#')?;
    let body = text[signs..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(signs));
    Some(
        body.find(&end)
            .map_or(text.len(), |at| signs + 1 + at + end.len()),
    )
}
