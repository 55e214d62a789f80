//! One question to the server, and its answer.

use fullstroke_live::{ControlError, ControlRequest, ControlResponse, ServerStatus, ask};
use std::path::Path;
use thiserror::Error;

/// Reason of a missing status.
#[derive(Debug, Error)]
pub(super) enum NoStatus {
    /// The server refused the question.
    #[error("{0}")]
    Said(String),
    #[error("the server answered another question")]
    OtherAnswer,
    #[error(transparent)]
    Unanswered(#[from] ControlError),
}

/// Asks the server for its status once.
pub(super) fn look_at(path: &Path) -> Result<ServerStatus, NoStatus> {
    match ask(path, &ControlRequest::Status) {
        Ok(ControlResponse::Status(status)) => Ok(*status),
        Ok(
            ControlResponse::Done { message }
            | ControlResponse::Wrong { message }
            | ControlResponse::Refused { message },
        ) => Err(NoStatus::Said(message)),
        Ok(ControlResponse::Signals { .. }) => Err(NoStatus::OtherAnswer),
        Err(error) => Err(error.into()),
    }
}
