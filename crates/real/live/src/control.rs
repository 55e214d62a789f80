//! Questions and orders to a running server over a unix socket: one [`ControlRequest`] per line in,
//! one [`ControlResponse`] per line out, both in JSON.
//!
//! ```text
//! {"ask":"status"}
//! {"ask":"fail","drive":"3"}
//! {"ask":"restore","drive":"3","rate":"100MiB"}
//! ```
//!
//! A user who may open the socket file may fail drives, so the file belongs only to its owner.

use crate::control_queue::{ControlRequest, ControlResponse, ServerHandle};
use fullstroke_transport::socket::{ControlError, QuestionServer, Questions};
use std::io;
use std::path::Path;
use std::time::Duration;

/// Time for a server to answer; longer than the server waits for its own event loop.
const ANSWERING: Duration = Duration::from_secs(40);

/// Takes questions and orders at a unix socket until dropped. Then peers are disconnected, and the
/// socket file is removed.
pub struct ControlSocket {
    // Dropping this field ends the threads.
    _questions: Questions,
}

struct ControlHandler(ServerHandle);

impl ControlSocket {
    /// Listens at `path`, where only this process's user may connect. A stale socket file is
    /// replaced.
    ///
    /// # Errors
    /// An error of the host; `AddrInUse` if another server listens there.
    pub fn open(path: &Path, server: ServerHandle) -> io::Result<ControlSocket> {
        Ok(ControlSocket {
            _questions: Questions::open(path, ControlHandler(server))?,
        })
    }
}

impl QuestionServer for ControlHandler {
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

/// Asks the server with the control socket at `path`. Waits less than a minute for the answer.
///
/// # Errors
/// If no server listens there, or if its answer is invalid.
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
