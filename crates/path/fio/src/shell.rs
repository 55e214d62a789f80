//! Words of a command line, as a shell reads them.

use std::iter::Peekable;
use std::str::Chars;

/// Word of a command, with its line.
pub(crate) type Word = (String, usize);

/// Splits a text into commands and their words, as a shell does. Text behind `>`, `<` and `|`
/// does not belong to a command. A command that begins with a dash goes on with the command before,
/// because people lose the backslashes at the ends of lines.
///
/// # Errors
/// The line of a quote without an end, and a message.
pub(crate) fn commands(text: &str) -> Result<Vec<Vec<Word>>, (usize, String)> {
    let mut reader = ShellReader {
        letters: text.chars().peekable(),
        line: 1,
        word: None,
        redirected: false,
        is_windows: text.contains("fio.exe"),
        commands: vec![Vec::new()],
    };
    while reader.step()? {}
    let mut commands: Vec<Vec<Word>> = Vec::new();
    for mut words in reader.commands {
        let goes_on = words.first().is_some_and(|(word, _)| is_option(word));
        match commands.last_mut() {
            Some(before) if goes_on => before.append(&mut words),
            _ if words.is_empty() => {}
            _ => commands.push(words),
        }
    }
    Ok(commands)
}

/// Dashes in front of an option. Pages of the web replace two dashes by a long one.
pub(crate) const DASHES: [char; 5] = ['-', '\u{2010}', '\u{2011}', '\u{2013}', '\u{2014}'];

/// Returns true if the word begins with a dash, and is not the dash alone.
pub(crate) fn is_option(word: &str) -> bool {
    word.starts_with(DASHES) && !word.trim_start_matches(DASHES).is_empty()
}

struct ShellReader<'a> {
    letters: Peekable<Chars<'a>>,
    /// Line of the next letter, from 1.
    line: usize,
    /// Word under construction, with its first line.
    word: Option<Word>,
    /// True if the next word is the file of a redirection.
    redirected: bool,
    /// True for a command of Windows, where a backslash stands in paths, and `^` and a backtick join
    /// lines.
    is_windows: bool,
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
            '^' | '`' if self.is_windows && self.ends_line() => self.joined(),
            '\\' if self.is_windows => self.push(letter),
            '\\' => self.escaped(),
            '\'' | '"' => self.quoted(letter)?,
            // Quotes of a text processor.
            '\u{201c}' | '\u{201d}' | '\u{201e}' => self.quoted('"')?,
            '\u{2018}' | '\u{2019}' => self.quoted('\'')?,
            '$' if self.letters.peek() == Some(&'(') => self.substituted(),
            // A `#` in front of `fio` is the prompt of a superuser.
            '#' if self.word.is_none() && (command_begun || !self.calls_fio()) => {
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

    /// Returns true if the rest of the line calls fio: the first word, or the word behind `sudo`.
    fn calls_fio(&self) -> bool {
        let rest: String = self
            .letters
            .clone()
            .take_while(|next| *next != '\n')
            .collect();
        is_call(&rest)
    }

    /// Returns true if only blanks follow in the line. Blanks behind a backslash are invisible on a
    /// page, and a file from Windows ends its lines with two letters.
    fn ends_line(&self) -> bool {
        let mut rest = self.letters.clone();
        rest.find(|letter| !matches!(letter, ' ' | '\t' | '\r'))
            .is_none_or(|letter| letter == '\n')
    }

    /// Skips the rest of the line and its end.
    fn joined(&mut self) {
        while self.take().is_some_and(|letter| letter != '\n') {}
    }

    /// Reads the letter behind a backslash. A backslash at the end of a line joins the lines.
    fn escaped(&mut self) {
        if self.ends_line() {
            self.joined();
        } else if let Some(letter) = self.take() {
            self.push(letter);
        }
    }

    /// Reads `$(command)` as a part of the word.
    fn substituted(&mut self) {
        self.push('$');
        let mut depth = 0;
        while let Some(letter) = self.take() {
            self.push(letter);
            depth += i32::from(letter == '(') - i32::from(letter == ')');
            if depth == 0 {
                break;
            }
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
                Some(letter) if letter == end || is_curved(letter, end) => return Ok(()),
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

/// Returns true if a line without its prompt calls fio with an option.
pub(crate) fn is_call(line: &str) -> bool {
    let mut words = line.split_whitespace().skip_while(|word| *word == "sudo");
    words.next().is_some_and(is_fio) && words.next().is_some_and(is_option)
}

/// Returns true for the name of the program, also with its folder.
pub(crate) fn is_fio(word: &str) -> bool {
    let name = word.rsplit(['/', '\\']).next().unwrap_or(word);
    name == "fio" || name == "fio.exe"
}

/// Returns true for the form of the quote `end` in a text processor.
fn is_curved(letter: char, end: char) -> bool {
    match end {
        '"' => matches!(letter, '\u{201c}' | '\u{201d}'),
        _ => matches!(letter, '\u{2018}' | '\u{2019}'),
    }
}
