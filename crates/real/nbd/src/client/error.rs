//! What can go wrong for a client.

use super::Failure;
use crate::request::Command;
use std::fmt;
use std::io;
use thiserror::Error;

/// Why something could not be had from a server.
#[derive(Debug, Error)]
pub enum ClientError {
    /// The stream failed, or ended in the middle.
    #[error("the connection failed: {0}")]
    Stream(#[from] io::Error),
    /// The server said no to an option.
    #[error("option {option}: refused with {kind:#x}: {message}")]
    Refused {
        /// The number of the option.
        option: u32,
        /// The type of the reply.
        kind: u32,
        /// The server's text, which may be empty.
        message: String,
    },
    /// The server answered a request with an error.
    #[error("{command:?} failed: {failure}")]
    Failed {
        /// What was asked for.
        command: Command,
        /// The error.
        failure: Failure,
    },
    /// What the server sent is not the protocol.
    #[error("{what}: found {found}; expected {expected}")]
    Protocol {
        /// The field.
        what: &'static str,
        /// What it holds.
        found: String,
        /// What it should hold.
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
