//! Splits a file into tokens.

/// The smallest units of the grammar.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// One of `{ } [ ] , = ; : ?`.
    Sign(char),
    /// `..` by itself.
    Range,
    /// Any other text between blanks and signs.
    Word(String),
    /// The end of the file.
    End,
}

impl Token {
    /// Returns the token in words, for messages.
    pub(super) fn describe(&self) -> String {
        match self {
            Token::Sign(sign) => format!("`{sign}`"),
            Token::Range => "`..`".into(),
            Token::Word(word) => format!("`{}`", super::shortened(word)),
            Token::End => "the end of the file".into(),
        }
    }
}

/// Splits a file into tokens.
#[derive(Clone, Debug)]
pub(super) struct Lexer {
    text: Vec<u8>,
    offset: usize,
    line: u32,
}

impl Lexer {
    pub(super) fn new(text: Vec<u8>) -> Lexer {
        Lexer {
            text,
            offset: 0,
            line: 1,
        }
    }

    /// Returns the next token and its line.
    pub(super) fn next(&mut self) -> (Token, u32) {
        self.skip_blanks();
        let line = self.line;
        let Some(&first) = self.text.get(self.offset) else {
            return (Token::End, line);
        };
        if is_sign(first) {
            self.offset += 1;
            return (Token::Sign(char::from(first)), line);
        }
        let rest = &self.text[self.offset..];
        let length = rest
            .iter()
            .position(|&byte| is_sign(byte) || is_blank(byte))
            .unwrap_or(rest.len());
        self.offset += length;
        let word = String::from_utf8_lossy(&rest[..length]).into_owned();
        (
            if word == ".." {
                Token::Range
            } else {
                Token::Word(word)
            },
            line,
        )
    }

    /// Skips blanks, line ends and comments. A `#` inside a word is part of the word.
    fn skip_blanks(&mut self) {
        let mut in_comment = false;
        while let Some(&byte) = self.text.get(self.offset) {
            match byte {
                b'\n' => {
                    self.line = self.line.saturating_add(1);
                    in_comment = false;
                }
                b'#' => in_comment = true,
                _ if in_comment || is_blank(byte) => {}
                _ => return,
            }
            self.offset += 1;
        }
    }
}

fn is_sign(byte: u8) -> bool {
    matches!(
        byte,
        b'{' | b'}' | b'[' | b']' | b',' | b'=' | b';' | b':' | b'?'
    )
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}
