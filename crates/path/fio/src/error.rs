//! What can be wrong with a job file.

use std::fmt;

/// An error in a job file: `file:line: option: what, and how to mend it`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FioError {
    /// The file, as the caller named it.
    pub file: String,
    /// The line, counted from 1, where one is to blame.
    pub line: Option<usize>,
    /// The option's name; empty if none is to blame.
    pub option: String,
    /// What was found, what was expected, and how to mend it.
    pub message: String,
}

impl fmt::Display for FioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if !self.option.is_empty() {
            write!(f, ": `{}`", self.option)?;
        }
        write!(f, ": {}", self.message)
    }
}

impl std::error::Error for FioError {}
