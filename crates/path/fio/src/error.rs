//! Errors in job files.

use std::fmt;

/// An error in a job file, printed as `file:line: option: message`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FioError {
    /// Name of the file, as given by the caller.
    pub file: String,
    /// Line of the error, counted from 1; `None` if no single line is at fault.
    pub line: Option<usize>,
    /// Name of the option; empty if no option is at fault.
    pub option: String,
    /// Message: the text found, the text expected, and the remedy.
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
