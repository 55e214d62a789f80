//! Errors of a client.

use super::ServerFailure;
use crate::request::RequestCommand;
use std::fmt;
use std::io;
use thiserror::Error;

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
