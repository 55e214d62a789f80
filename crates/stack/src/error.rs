//! What can be wrong with a described stack.

use fullstroke_contract::ConfigError;
use std::fmt;

/// An error in a file that a user wrote: `file:line: key: what, and how to mend
/// it`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackError {
    /// The file, as the user named it.
    pub file: String,
    /// The line of the key, where it is known.
    pub line: Option<usize>,
    /// The key's dotted path; may be empty.
    pub key: String,
    /// What was found, what was expected.
    pub message: String,
}

impl StackError {
    /// An error that concerns the whole of `file`.
    pub fn whole(file: impl Into<String>, message: impl Into<String>) -> StackError {
        StackError { file: file.into(), line: None, key: String::new(), message: message.into() }
    }

    /// `error` of a file without lines.
    pub fn in_file(file: impl Into<String>, error: ConfigError) -> StackError {
        StackError { file: file.into(), line: None, key: error.key, message: error.message }
    }
}

impl fmt::Display for StackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        f.write_str(": ")?;
        if !self.key.is_empty() {
            write!(f, "`{}`: ", self.key)?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for StackError {}
