//! Errors of a stack description.

use std::fmt;

/// An error in a user's file: `file:line: key: what, and how to mend it`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackError {
    /// File name as given by the user; empty if the message contains the name.
    pub file: String,
    /// Line of the key; `None` if unknown.
    pub line: Option<usize>,
    /// Dotted path of the key; may be empty.
    pub key: String,
    /// Value found and value expected.
    pub message: String,
}

impl StackError {
    /// Creates an error for the whole of `file`.
    pub fn whole(file: impl Into<String>, message: impl Into<String>) -> StackError {
        StackError {
            file: file.into(),
            line: None,
            key: String::new(),
            message: message.into(),
        }
    }

    /// Wraps an error of the trace reader. The message already contains file and place.
    pub(crate) fn trace(error: &dyn fmt::Display) -> StackError {
        StackError::whole("", error.to_string())
    }
}

impl fmt::Display for StackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.file.is_empty() {
            f.write_str(&self.file)?;
            if let Some(line) = self.line {
                write!(f, ":{line}")?;
            }
            f.write_str(": ")?;
        }
        if !self.key.is_empty() {
            write!(f, "`{}`: ", self.key)?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for StackError {}
