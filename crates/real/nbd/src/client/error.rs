//! Errors of a client.

use crate::request::{ErrorCode, RequestCommand};
use std::fmt;
use std::io;
use thiserror::Error;

/// An error reported by a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerFailure {
    /// Error code.
    pub code: ErrorCode,
    /// Place of the error, from the beginning of the export.
    pub offset_bytes: Option<u64>,
    /// Text of the server; may be empty.
    pub message: String,
}

impl fmt::Display for ServerFailure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:?}", self.code)?;
        if let Some(offset) = self.offset_bytes {
            write!(out, " at byte {offset}")?;
        }
        if self.message.is_empty() {
            Ok(())
        } else {
            write!(out, ": {}", self.message)
        }
    }
}

/// Reason why a call to a server failed.
#[derive(Debug, Error)]
pub enum ClientError {
    /// The stream failed or ended in the middle of a message.
    #[error("the connection failed: {0}")]
    Stream(#[from] io::Error),
    /// The server refused an option.
    #[error("option {option}: refused with {kind:#x}: {message}")]
    Refused {
        /// Number of the option.
        option: u32,
        /// Type of the reply.
        kind: u32,
        /// Text of the server; may be empty.
        message: String,
    },
    /// The server answered a request with an error.
    #[error("{command:?} failed: {failure}")]
    Failed {
        /// Requested command.
        command: RequestCommand,
        /// Error of the server.
        failure: ServerFailure,
    },
    /// The server's message breaks the protocol.
    #[error("{what}: found {found}; expected {expected}")]
    Protocol {
        /// Name of the field.
        what: &'static str,
        /// Value of the field.
        found: String,
        /// Expected value.
        expected: &'static str,
    },
}

impl ClientError {
    pub(super) fn protocol(
        what: &'static str,
        found: impl fmt::Display,
        expected: &'static str,
    ) -> ClientError {
        ClientError::Protocol {
            what,
            found: found.to_string(),
            expected,
        }
    }
}
