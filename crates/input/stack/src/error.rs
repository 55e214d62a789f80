//! What can be wrong with a described stack.

use std::fmt;

/// An error in a file that a user wrote: `file:line: key: what, and how to mend
/// it`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackError {
    /// The file, as the user named it; empty where the message names it.
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
        StackError {
            file: file.into(),
            line: None,
            key: String::new(),
            message: message.into(),
        }
    }

    /// An error of the trace reader, which names file and place itself.
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
