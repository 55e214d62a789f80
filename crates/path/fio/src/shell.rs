//! Words of a command line, as a shell reads them.

use std::iter::Peekable;
use std::str::Chars;

/// Word of a command, with its line.
pub(crate) type Word = (String, usize);

/// Splits a text into commands and their words, as a shell does. Text behind `>`, `<` and `|`
/// does not belong to a command.
///
/// # Errors
/// The line of a quote without an end, and a message.
pub(crate) fn commands(text: &str) -> Result<Vec<Vec<Word>>, (usize, String)> {
    let mut reader = ShellReader {
        letters: text.chars().peekable(),
        line: 1,
        word: None,
        redirected: false,
        commands: vec![Vec::new()],
    };
    while reader.step()? {}
    reader.commands.retain(|words| !words.is_empty());
    Ok(reader.commands)
}

struct ShellReader<'a> {
    letters: Peekable<Chars<'a>>,
    /// Line of the next letter, from 1.
    line: usize,
    /// Word under construction, with its first line.
    word: Option<Word>,
    /// True if the next word is the file of a redirection.
    redirected: bool,
    commands: Vec<Vec<Word>>,
}

impl ShellReader<'_> {
    fn take(&mut self) -> Option<char> {
        let letter = self.letters.next();
        self.line += usize::from(letter == Some('\n'));
        letter
    }

    fn push(&mut self, letter: char) {
        self.open_word().push(letter);
    }

    fn open_word(&mut self) -> &mut String {
        let line = self.line;
        &mut self.word.get_or_insert_with(|| (String::new(), line)).0
    }

    /// Reads one letter, or a quoted part. Returns false at the end of the text.
    fn step(&mut self) -> Result<bool, (usize, String)> {
        let next = self.letters.peek().copied();
        if next.is_none_or(|letter| letter.is_whitespace() || ";|&<>".contains(letter)) {
            self.end_word(next);
        }
        let Some(letter) = self.take() else {
            return Ok(false);
        };
        let command_begun = self.commands.last().is_some_and(|words| !words.is_empty());
        match letter {
            '\\' => self.escaped(),
            '\'' | '"' => self.quoted(letter)?,
            // A `#` in front of the command is the prompt of a superuser.
            '#' if self.word.is_none() && command_begun => {
                while self.letters.peek().is_some_and(|next| *next != '\n') {
                    self.take();
                }
            }
            // In `2>&1`, the sign belongs to the redirection.
            '&' if self.redirected => {}
            '\n' | ';' | '|' | '&' => self.commands.push(Vec::new()),
            '<' | '>' => self.redirected = true,
            letter if letter.is_whitespace() => {}
            letter => self.push(letter),
        }
        Ok(true)
    }

    /// Adds the finished word to the command, unless the word belongs to a redirection: its file,
    /// or the number in `2>file`.
    fn end_word(&mut self, next: Option<char>) {
        let Some(done) = self.word.take() else { return };
        // A number in front of a redirection is a file descriptor, as in `2>`.
        let number =
            matches!(next, Some('<' | '>')) && done.0.chars().all(|letter| letter.is_ascii_digit());
        if std::mem::take(&mut self.redirected) || number {
            return;
        }
        if let Some(words) = self.commands.last_mut() {
            words.push(done);
        }
    }

    /// Reads the letter behind a backslash. A backslash at the end of a line joins the lines.
    fn escaped(&mut self) {
        match self.take() {
            // A file from Windows ends its lines with two letters.
            Some('\r') if self.letters.peek() == Some(&'\n') => drop(self.take()),
            Some('\n') | None => {}
            Some(letter) => self.push(letter),
        }
    }

    /// Reads a part up to the quote `end`.
    fn quoted(&mut self, end: char) -> Result<(), (usize, String)> {
        let began = self.line;
        // An empty quote is an empty word.
        self.open_word();
        loop {
            match self.take() {
                None => return Err((began, format!("the quote {end} has no end"))),
                Some(letter) if letter == end => return Ok(()),
                Some('\\')
                    if end == '"'
                        && self
                            .letters
                            .peek()
                            .is_some_and(|next| "\"\\\n".contains(*next)) =>
                {
                    self.escaped();
                }
                Some(letter) => self.push(letter),
            }
        }
    }
}
