//! Reasons of a command without an answer.

use fullstroke_advise::{AdviseError, WishError};
use fullstroke_lab::LabError;
use fullstroke_stack::StackError;
use thiserror::Error;

/// Reason of a command without an answer.
#[derive(Debug, Error)]
pub enum CommandError {
    /// The command is no command of this module.
    #[error("the command cannot be read: {0}")]
    Command(serde_json::Error),
    /// A stack or another file cannot be used.
    #[error(transparent)]
    Stack(#[from] StackError),
    /// A run failed.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// There is no advice.
    #[error(transparent)]
    Advise(#[from] AdviseError),
    /// A wish file cannot be used.
    #[error(transparent)]
    Wish(#[from] WishError),
    /// Another reason.
    #[error("{0}")]
    Other(String),
}

impl CommandError {
    pub(crate) fn other(error: impl std::fmt::Display) -> CommandError {
        CommandError::Other(error.to_string())
    }
}
