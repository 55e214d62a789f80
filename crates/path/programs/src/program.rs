//! The interface of a program.

use crate::call::{Call, CallAnswer};
use fullstroke_contract::ConfigError;
use fullstroke_contract::SourceError;
use fullstroke_contract::registry::{Keys, PolicyEntry, check_known, known_keys};
use fullstroke_units::{Bytes, Duration, Seed, Time};
use std::any::Any;
use std::fmt;

/// The next action of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProgramAction<'a> {
    /// The process makes a call. The program is asked again with the result.
    Call(Call<'a>),
    /// The process computes or sleeps for this time.
    Compute(Duration),
    /// The process waits for other processes of its program. The program is asked again when
    /// another process has gone on. A further wait of the other process does not count.
    Wait,
    /// The process has ended.
    End,
    /// The program and the run cannot go on. The message names the file and line of the input, the
    /// value found and the value expected.
    Fail(SourceError),
}

/// Input of a program when it is asked for the next action of a process.
pub struct ProgramTurn<'a> {
    /// Present time on the program's own timeline; the timeline begins at 0.
    pub now: Time,
    /// Index of the process, from 0.
    pub process: u32,
    /// Result of the process's call, if a call has just ended.
    pub answer: Option<&'a CallAnswer>,
    /// Collects the events for the program's own counts.
    pub events: &'a mut Events,
}

/// Events that a program counts in addition to its calls.
#[derive(Clone, Debug, Default)]
pub struct Events {
    /// Transactions that have just ended.
    pub transactions: Vec<Transaction>,
}

impl Events {
    /// Adds a transaction from `began` until now.
    pub fn transaction(&mut self, kind: &'static str, began: Time) {
        self.transactions.push(Transaction { kind, began });
    }
}

/// A group of calls: one operation for the user of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// Name of the transaction in the program.
    pub kind: &'static str,
    /// Time when the transaction began.
    pub began: Time,
}

/// A file that exists before the program begins, but not in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InitialFile {
    /// Path of the file; missing directories on the path are created.
    pub path: String,
    /// Length of the file; `None` for a directory.
    pub bytes: Option<Bytes>,
    /// True if the pages of the file have places and no data, as `fallocate` leaves them.
    pub unwritten: bool,
}

/// A program, a state machine. When asked for the next action of a process, the program returns a
/// call or a time for computation.
///
/// - **Event in**: [`next`](Program::next).
/// - **Getters**: [`processes`](Program::processes), [`laid_out`](Program::laid_out),
///   [`report`](Program::report).
///
/// The caller guarantees: each process is asked for the first time at the beginning of the program,
/// and again when its previous action has ended; time is monotonic. The program guarantees: the
/// same seed repeats the program; every process ends if all calls end. The bound `Any` lets a
/// caller ask for a program by its type, if the program has more results than a report.
pub trait Program: Any + Send {
    /// Returns the number of processes. The processes run in parallel, each on its own processor.
    fn processes(&self) -> u32 {
        1
    }

    /// Returns the files before the run, in the order of their creation. Several programs may name
    /// the same path: the longer file counts.
    fn laid_out(&self) -> Vec<InitialFile> {
        Vec::new()
    }

    /// Returns the next action of process [`ProgramTurn::process`].
    fn next(&mut self, turn: ProgramTurn<'_>) -> ProgramAction<'_>;

    /// Returns the program's own report of the run so far.
    fn report(&self) -> ProgramReport {
        ProgramReport::default()
    }
}

/// A program's own report of its run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProgramReport {
    /// Figures by name; the name includes the unit: `transactions_per_s`, `create_per_s`.
    pub figures: Vec<(&'static str, f64)>,
    /// Text as the real program prints it.
    pub text: String,
    /// Sentences about missing or changed parts of the input.
    pub notes: Vec<String>,
}

/// A program as described by its keys.
pub trait Recipe: Send + Sync {
    /// Returns the program at its beginning.
    fn program(&self, seed: Seed) -> Box<dyn Program>;
}

/// Description of how a recipe is read.
#[derive(Clone, Copy, Debug)]
pub struct ProgramKind {
    /// Key that names a file with the text of the recipe, if there is one.
    pub file: Option<&'static str>,
    /// Reads the recipe from its keys and from the text of the file that the keys name.
    pub read: ReadProgram,
    /// Keys of a small example in the form of a stack file, for the reference page. Paths of files
    /// begin at the root of the source tree.
    pub example: &'static str,
}

/// Reads a program's recipe from its keys and from the text of the file that the keys name.
pub type ReadProgram = fn(&Keys, Option<&str>) -> Result<Box<dyn Recipe>, ProgramError>;

/// Reason why a program cannot be built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProgramError {
    /// An error in a key.
    Key(ConfigError),
    /// An error in a line of the program's file: the line from 1, and a message with the value
    /// found and the value expected.
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

impl ProgramKind {
    /// Reads a recipe of the kind `entry`. `text` is the text of the file that the keys name.
    ///
    /// # Errors
    /// If a key is unknown, if its value is impossible, or if a line of the file is wrong.
    pub fn recipe(
        entry: &PolicyEntry<ProgramKind>,
        keys: &Keys,
        text: Option<&str>,
    ) -> Result<Box<dyn Recipe>, ProgramError> {
        check_known(keys, &known_keys(&(entry.schema)()))?;
        (entry.build.read)(keys, text)
    }
}
