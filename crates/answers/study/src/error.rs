//! Errors of studies.

use crate::metrics::PathError;
use fullstroke_lab::LabError;
use fullstroke_stack::StackError;
use fullstroke_table::TableError;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Reason why studies could not be read, run or shown.
#[derive(Debug, Error)]
pub enum StudyError {
    /// A study or stack file cannot be used.
    #[error(transparent)]
    File(#[from] StackError),
    /// The stack of a point cannot be used.
    #[error("{study}, {point}: {error}")]
    Point {
        /// Id of the study.
        study: String,
        /// Values of the point.
        point: String,
        /// Error of the stack.
        error: Box<StackError>,
    },
    /// There is no study of this name.
    #[error("there is no study `{name}` in {}{nearest}; {known}", folder.display())]
    Unknown {
        /// Requested name.
        name: String,
        /// Folder of the studies.
        folder: PathBuf,
        /// Nearest name.
        nearest: String,
        /// All names, or the command that lists the names.
        known: String,
    },
    /// A run broke off.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// A results file cannot be read or written.
    #[error(transparent)]
    Table(#[from] TableError),
    /// A results file is damaged.
    #[error("{} is not a valid file of results ({problem}); delete the file, and `fullstroke study run` repeats its runs", file.display())]
    Damaged {
        /// The file.
        file: PathBuf,
        /// Description of the damage.
        problem: String,
    },
    /// Some runs broke off.
    #[error("{failed} of {runs} runs failed, the others are kept; the first: {first}")]
    Runs {
        /// Number of failed runs.
        failed: usize,
        /// Number of runs.
        runs: usize,
        /// First error.
        first: Box<StudyError>,
    },
    /// The stack differs between the machine of the request and the machine of the run.
    #[error(
        "{name}: the stack, its drives or its trace differ on this machine; expected the same files at the same paths"
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
        /// Message of the remote machine.
        problem: String,
    },
    /// A path among the metrics has no value.
    #[error("{study}: `metrics`: {source}")]
    Metric {
        /// Id of the study.
        study: String,
        /// Missing part of the path.
        source: PathError,
    },
    /// Another process is writing.
    #[error("another run is writing to {}; wait until it has ended, or give another folder by --results", folder.display())]
    InUse {
        /// Folder of the results.
        folder: PathBuf,
    },
    /// The operating system reported an error.
    #[error("cannot {what} `{}`: {source}", path.display())]
    Host {
        /// Attempted operation.
        what: &'static str,
        /// Path of the operation.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The record of tested settings cannot be read.
    #[error("{} is not a valid record of tested settings ({problem}); delete the file, and run `fullstroke study check --seeds 1 --vary-free --record` to write a new one", file.display())]
    HeldOut {
        /// The file.
        file: PathBuf,
        /// Description of the damage.
        problem: String,
    },
    /// A chart could not be drawn.
    #[error("cannot draw {figure}: {message}")]
    Figure {
        /// Name of the chart.
        figure: String,
        /// Message of the chart library.
        message: String,
    },
}

impl StudyError {
    /// Returns an error if some of `runs` runs failed.
    ///
    /// # Errors
    /// The number of failed runs, and the first error.
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
