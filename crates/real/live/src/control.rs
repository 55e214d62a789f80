//! Questions and orders to a running server over a unix socket: one
//! [`ControlRequest`] a line in, one [`ControlResponse`] a line out, both JSON.
//!
//! ```text
//! {"ask":"status"}
//! {"ask":"fail","drive":"3"}
//! {"ask":"restore","drive":"3","rate":"100MiB"}
//! ```
//!
//! Whoever may open the socket file may fail drives, so it is its owner's alone.

use crate::control_queue::{ControlRequest, ControlResponse, ServerHandle};
use fullstroke_transport::socket::{Answers, ControlError, Questions};
use std::io;
use std::path::Path;
use std::time::Duration;

/// For a server to answer; longer than it waits for its own event loop.
const ANSWERING: Duration = Duration::from_secs(40);

/// Takes questions and orders at a unix socket until it is dropped; then
/// peers are cut off and the socket file is gone.
pub struct ControlSocket {
    // Dropping it ends its threads.
    _questions: Questions,
}

struct Control(ServerHandle);

impl ControlSocket {
    /// Listens at `path`, where only this process's user may connect. A socket
    /// file that nobody listens on any more is taken over.
    ///
    /// # Errors
    /// The host's, if nobody can listen there, and `AddrInUse` if somebody does.
    pub fn open(path: &Path, server: ServerHandle) -> io::Result<ControlSocket> {
        Ok(ControlSocket {
            _questions: Questions::open(path, Control(server))?,
        })
    }
}

impl Answers for Control {
    type Question = ControlRequest;
    type Answer = ControlResponse;
    const EXPECTED: &'static str = r#"{"ask":"status"} or {"ask":"fail","drive":"3"}"#;

    fn answer(&self, question: ControlRequest) -> ControlResponse {
        self.0.ask(question)
    }

    fn refusal(message: String) -> ControlResponse {
        ControlResponse::Refused { message }
    }
}

/// Asks the server whose control socket is at `path`, and waits for its answer
/// for less than a minute.
///
/// # Errors
/// If no server is there, or what it says is no answer.
pub fn ask(path: &Path, question: &ControlRequest) -> Result<ControlResponse, ControlError> {
    ask_within(path, question, ANSWERING)
}

fn ask_within(
    path: &Path,
    question: &ControlRequest,
    patience: Duration,
) -> Result<ControlResponse, ControlError> {
    fullstroke_transport::socket::ask(path, question, question.timeout(patience))
}

#[cfg(test)]
mod tests;
