//! What a program is.

use crate::call::{Answer, Call};
use fullstroke_contract::ConfigError;
use fullstroke_contract::SourceError;
use fullstroke_contract::registry::{Entry, Keys, check_known, known_keys};
use fullstroke_units::{Bytes, Duration, Seed, Time};
use std::any::Any;
use std::fmt;

/// What a process does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next<'a> {
    /// It makes a call, and is asked again with the answer.
    Call(Call<'a>),
    /// It computes, or sleeps, for so long.
    Compute(Duration),
    /// It waits for the other processes of its program: it is asked again when one of
    /// them has gone on (has been asked, but not to see whether it still waits).
    Wait,
    /// It is over.
    End,
    /// The program cannot go on, and with it the run: a sentence that names the file
    /// and the line of what it was told, what was found and what was expected.
    Fail(SourceError),
}

/// What a process is told when it is asked what it does next.
pub struct Turn<'a> {
    /// The present, on the program's own timeline, which begins at 0.
    pub now: Time,
    /// Which of the program's processes, from 0.
    pub process: u32,
    /// How its call ended, if that is why it is asked.
    pub answer: Option<&'a Answer>,
    /// Takes what the program wants to be counted.
    pub events: &'a mut Events,
}

/// What a program wants to be counted beside its calls.
#[derive(Clone, Debug, Default)]
pub struct Events {
    /// Transactions that have just ended.
    pub transactions: Vec<Transaction>,
}

impl Events {
    /// What has just ended is one transaction, begun then.
    pub fn transaction(&mut self, kind: &'static str, began: Time) {
        self.transactions.push(Transaction { kind, began });
    }
}

/// Several calls that are one to whoever runs the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// What the program calls it.
    pub kind: &'static str,
    /// When it began.
    pub began: Time,
}

/// A file that is there before the program begins, and not in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Laid {
    /// Where; directories on the way are made.
    pub path: String,
    /// Its length. A directory has none.
    pub bytes: Option<Bytes>,
}

/// A program, a state machine: asked what each of its processes does next, it
/// answers with a call or with the time that it needs for itself.
///
/// - **Event in**: [`next`](Program::next).
/// - **Getters**: [`processes`](Program::processes), [`laid_out`](Program::laid_out),
///   [`report`](Program::report).
///
/// What it is promised: each process is asked for the first time at the program's
/// beginning, and again when what it answered is over; time is monotonic. What it
/// promises: a seed repeats it; every process comes to an end, if calls do. `Any`: one
/// that has more to tell than a report is asked for by its type.
pub trait Program: Any + Send {
    /// How many processes it has. They run side by side, each on a processor of its
    /// own.
    fn processes(&self) -> u32 {
        1
    }

    /// Files that must be there before, in the order in which they are laid out. Paths
    /// of several programs may be the same: the longer file counts.
    fn laid_out(&self) -> Vec<Laid> {
        Vec::new()
    }

    /// What process [`Turn::process`] does next.
    fn next(&mut self, turn: Turn<'_>) -> Next<'_>;

    /// What the program itself says of its run, as far as it has come.
    fn report(&self) -> Report {
        Report::default()
    }
}

/// What a program says of its run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Figures by name, with the unit in it: `transactions_per_s`, `create_per_s`.
    pub figures: Vec<(&'static str, f64)>,
    /// Its own words, as the real program prints them.
    pub text: String,
    /// What was left out or is not as it was told: a sentence each.
    pub notes: Vec<String>,
}

/// A program as its keys describe it.
pub trait Recipe: Send + Sync {
    /// The program, at its beginning.
    fn program(&self, seed: Seed) -> Box<dyn Program>;
}

/// How a recipe comes about.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// The key that names a file whose text the recipe is read from, if it has one.
    pub file: Option<&'static str>,
    /// Reads it from its keys, and the text of the file if they name one.
    pub read: ReadProgram,
    /// Keys of a small one, as a stack file has them, for the reference page; files
    /// are named from the root of the sources.
    pub example: &'static str,
}

/// Reads a program's recipe from its keys, and the text of the file if they name one.
pub type ReadProgram = fn(&Keys, Option<&str>) -> Result<Box<dyn Recipe>, ProgramError>;

/// Why there is no program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProgramError {
    /// One of its keys.
    Key(ConfigError),
    /// A line, from 1, of the file that it is read from: what was found, what was
    /// expected.
    Line(u64, String),
}

impl fmt::Display for ProgramError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProgramError::Key(error) => error.fmt(f),
            ProgramError::Line(line, message) => write!(f, "line {line}: {message}"),
        }
    }
}

impl std::error::Error for ProgramError {}

impl From<ConfigError> for ProgramError {
    fn from(error: ConfigError) -> ProgramError {
        ProgramError::Key(error)
    }
}

impl Kind {
    /// Reads a recipe of the kind that `entry` describes; `text` is that of the file
    /// that its keys name.
    ///
    /// # Errors
    /// An unknown key, one that cannot be, or a line of the file.
    pub fn recipe(
        entry: &Entry<Kind>,
        keys: &Keys,
        text: Option<&str>,
    ) -> Result<Box<dyn Recipe>, ProgramError> {
        check_known(keys, &known_keys(&(entry.schema)()))?;
        (entry.build.read)(keys, text)
    }
}
