//! What can go wrong with a study.

use crate::metrics::PathError;
use fullstroke_lab::LabError;
use fullstroke_stack::StackError;
use fullstroke_table::TableError;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why studies could not be read, run or shown.
#[derive(Debug, Error)]
pub enum StudyError {
    /// A study or stack file cannot be used.
    #[error(transparent)]
    File(#[from] StackError),
    /// A point of a study has a stack that cannot be used.
    #[error("{study}, {point}: {error}")]
    Point {
        /// The study's id.
        study: String,
        /// The point's values.
        point: String,
        /// What is wrong with its stack.
        error: Box<StackError>,
    },
    /// No study is called so.
    #[error("there is no study `{name}` in {}{nearest}; known: {known}", folder.display())]
    Unknown {
        /// What was asked for.
        name: String,
        /// Where studies are looked for.
        folder: PathBuf,
        /// The nearest one.
        nearest: String,
        /// All that there are.
        known: String,
    },
    /// A run broke off.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// A results file cannot be read or written.
    #[error(transparent)]
    Table(#[from] TableError),
    /// A results file is not as it was written.
    #[error("{} is no sound file of results ({problem}); delete it, and `fullstroke study run` does its runs again", file.display())]
    Damaged {
        /// The file.
        file: PathBuf,
        /// What was found.
        problem: String,
    },
    /// Some runs broke off.
    #[error("{failed} of {runs} runs failed, the others are kept; the first: {first}")]
    Runs {
        /// How many broke off.
        failed: usize,
        /// How many there were.
        runs: usize,
        /// Why the first of them did.
        first: Box<StudyError>,
    },
    /// What is to be run here is not what was asked for there.
    #[error(
        "{name}: the stack, its drives or its trace are others here than where it was asked for; expected the same files at the same paths"
    )]
    Another {
        /// The run.
        name: String,
    },
    /// A run on a cluster broke off.
    #[error("{name}: {problem}")]
    Elsewhere {
        /// The run.
        name: String,
        /// What was said there.
        problem: String,
    },
    /// A path among the metrics leads nowhere.
    #[error("{study}: `metrics`: {source}")]
    Metric {
        /// The study's id.
        study: String,
        /// Which part of the path leads nowhere.
        source: PathError,
    },
    /// Another process is writing.
    #[error("another run is writing to {}; wait until it has ended, or give another folder by --results", folder.display())]
    InUse {
        /// The results' folder.
        folder: PathBuf,
    },
    /// The host refused.
    #[error("cannot {what} `{}`: {source}", path.display())]
    Host {
        /// What was tried.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A record of what claims were held against cannot be read.
    #[error("{} is no record of what claims were held against ({problem}); delete it, and `fullstroke study check --seeds 1 --vary-free --record` writes another", file.display())]
    HeldOut {
        /// The file.
        file: PathBuf,
        /// What was found.
        problem: String,
    },
    /// A chart could not be drawn.
    #[error("cannot draw {figure}: {message}")]
    Figure {
        /// Which one.
        figure: String,
        /// What the chart library said.
        message: String,
    },
}

impl StudyError {
    /// What came of so many runs, of which some may have failed.
    ///
    /// # Errors
    /// How many failed, and the first of them.
    pub fn of_runs(
        failures: impl IntoIterator<Item = StudyError>,
        runs: usize,
    ) -> Result<(), StudyError> {
        let mut failures = failures.into_iter();
        let Some(first) = failures.next() else {
            return Ok(());
        };
        Err(StudyError::Runs {
            failed: 1 + failures.count(),
            runs,
            first: Box::new(first),
        })
    }

    pub(crate) fn host(what: &'static str, path: &Path, source: io::Error) -> StudyError {
        StudyError::Host {
            what,
            path: path.to_owned(),
            source,
        }
    }
}
