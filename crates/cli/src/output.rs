//! Printing, and the exit status of an error.

use crate::{fold, paint};
use fullstroke_table::AtomicFile;
use fullstroke_units::{printable, printable_json};
use serde::Serialize;
use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;
use std::process::ExitCode;

/// Width of a table in a pipe or a file: the width of a printed page, a mail, and a terminal that
/// nobody has widened.
const COLUMNS_OF_PIPE: usize = 80;

/// Reason of a failed command.
#[derive(Debug)]
pub(crate) enum CommandFailure {
    /// Unusable input or an unwritable output. Status 2.
    Input(String),
    /// A check failed, and its result is already printed. Status 1.
    Checks,
    /// The run is too short to tell whether a condition holds. Status 3.
    Undecided,
    /// The reader of standard output has gone, as in `fullstroke ... | head`. Status 0.
    NoReader,
}

impl CommandFailure {
    /// Creates a failure from an error message for people.
    pub(crate) fn input(error: impl Display) -> CommandFailure {
        CommandFailure::Input(error.to_string())
    }

    /// Prints the message, if any, and returns the exit status.
    pub(crate) fn report(&self) -> ExitCode {
        match self {
            CommandFailure::Input(message) => {
                print_error(message);
                ExitCode::from(2)
            }
            CommandFailure::Checks => ExitCode::from(1),
            CommandFailure::Undecided => ExitCode::from(3),
            CommandFailure::NoReader => ExitCode::SUCCESS,
        }
    }
}

/// Prints a message on standard error. A failed write is ignored, because the exit status carries
/// the result.
pub(crate) fn print_error(message: &str) {
    let _ = writeln!(io::stderr(), "fullstroke: {}", printable(message));
}

/// Standard output, for people or as JSON.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommandOutput {
    json: bool,
}

impl CommandOutput {
    pub(crate) fn new(json: bool) -> CommandOutput {
        CommandOutput { json }
    }

    /// True if the user asked for JSON.
    pub(crate) fn json(&self) -> bool {
        self.json
    }

    /// Prints `value` as JSON if the user asked for JSON, else prints `text`.
    pub(crate) fn show<T: Serialize>(
        &self,
        value: &T,
        text: impl Display,
    ) -> Result<(), CommandFailure> {
        if self.json {
            self.show_json(value)
        } else {
            self.tell(&format!("{text}\n"))
        }
    }

    /// Prints the announcement of `serve` as soon as the server is ready, and the summary at the
    /// end.
    #[cfg(feature = "real")]
    pub(crate) fn show_both<R: Serialize, S: Serialize, E: Display>(
        &self,
        announcement: impl Fn(&R) -> String,
        final_summary: impl Fn(&S) -> String,
        serve: impl FnOnce(&mut dyn FnMut(&R)) -> Result<S, E>,
    ) -> Result<(), CommandFailure> {
        let mut broken = None;
        // A reader who has gone does not end the server. The failure is returned at its end.
        let mut ready = |ready: &R| broken = self.show(ready, announcement(ready)).err();
        let summary = serve(&mut ready).map_err(CommandFailure::input)?;
        match broken {
            Some(failure) => Err(failure),
            None => self.show(&summary, final_summary(&summary)),
        }
    }

    /// Prints `value` as JSON, with or without `--json`.
    pub(crate) fn show_json<T: Serialize>(&self, value: &T) -> Result<(), CommandFailure> {
        let text = serde_json::to_string_pretty(value).map_err(CommandFailure::input)?;
        self.write(&printable_json(&format!("{text}\n")))
    }

    /// Prints `text` for people, with colours on a terminal.
    fn tell(&self, text: &str) -> Result<(), CommandFailure> {
        let text = printable(text);
        // Folded before the colours, because escape sequences have a length and no width.
        let text = fold::folded(&text, columns());
        if paint::wanted() {
            self.write(&paint::painted(&text))
        } else {
            self.write(&text)
        }
    }

    /// Prints `text` and a line break for people.
    pub(crate) fn print_text(&self, text: &str) -> Result<(), CommandFailure> {
        self.tell(&format!("{text}\n"))
    }

    /// Prints the content of a file. On a terminal, harmful control characters are escaped.
    pub(crate) fn print(&self, text: &str) -> Result<(), CommandFailure> {
        // A file or a program gets the text unchanged. Only a terminal must be protected from
        // control characters.
        if io::stdout().is_terminal() {
            self.write(&printable(text))
        } else {
            self.write(text)
        }
    }

    fn write(&self, text: &str) -> Result<(), CommandFailure> {
        let mut stdout = io::stdout().lock();
        stdout
            .write_all(text.as_bytes())
            // Without the flush, standard output would write the last part at exit, where errors
            // are lost.
            .and_then(|()| stdout.flush())
            .map_err(|error| match error.kind() {
                io::ErrorKind::BrokenPipe => CommandFailure::NoReader,
                _ => CommandFailure::Input(format!("cannot write to standard output: {error}")),
            })
    }
}

/// Returns the width of a table: the width of the terminal, else the number in the variable
/// `COLUMNS` of the environment, else [`COLUMNS_OF_PIPE`].
fn columns() -> usize {
    let size = rustix::termios::tcgetwinsize(io::stdout()).map(|size| usize::from(size.ws_col));
    let said = || std::env::var("COLUMNS").ok()?.trim().parse().ok();
    // A terminal of unknown size reports 0 columns.
    let known = size.ok().or_else(said).filter(|columns| *columns > 0);
    known.unwrap_or(COLUMNS_OF_PIPE)
}

/// Writes a file atomically: a reader sees the whole file or none.
pub(crate) fn write_whole(path: &Path, content: impl AsRef<[u8]>) -> Result<(), CommandFailure> {
    let mut file = AtomicFile::create(path).map_err(CommandFailure::input)?;
    file.write_all(content.as_ref()).map_err(|error| {
        CommandFailure::Input(format!("cannot write `{}`: {error}", path.display()))
    })?;
    file.commit().map_err(CommandFailure::input)
}
