//! Questions and answers over a unix socket, one per line, both in JSON.
//!
//! A user who may open the socket file may give orders, so the file belongs only to its owner.

use crate::socket::lines::{LineError, LineReader};
use crate::socket::peers::{AcceptLoop, PEERS_MAX, Peer, PeerService};
use crate::socket::sockets::{ClientSocket, Listen, Listener, OWNER};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Longest question in bytes. The longest real question contains an export's name.
const QUESTION_BYTES_MAX: usize = 64 << 10;
/// Longest answer in bytes: the status of some hundred thousand drives.
const ANSWER_BYTES_MAX: usize = 64 << 20;
/// Time until a peer without questions is disconnected.
const SILENCE: Duration = Duration::from_secs(300);
/// Time for the other side to take a line.
const WRITING: Duration = Duration::from_secs(10);
/// First bytes of an NBD server (NBD protocol, "Newstyle negotiation").
const NBD_GREETING: &[u8] = b"NBDMAGIC";

/// A server of questions.
pub trait QuestionServer: Send + Sync + 'static {
    /// Type of the questions.
    type Question: DeserializeOwned;
    /// Type of the answers.
    type Answer: Serialize;
    /// Example of a question for error messages.
    const EXPECTED: &'static str;

    /// Answers a question.
    fn answer(&self, question: Self::Question) -> Self::Answer;

    /// Returns a refusal with a reason.
    fn refusal(message: String) -> Self::Answer;

    /// Called after the answer was sent to the peer.
    fn was_told(&self, _: &Self::Answer) {}
}

/// Takes questions at a unix socket until dropped. Then peers are disconnected, and the socket file
/// is removed.
pub struct Questions {
    // Dropping this field ends the threads.
    _accept_loop: AcceptLoop,
}

struct AskResult<A>(A);

/// Reason why a server could not be asked, or its answer is invalid.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The socket does not exist, or no server listens there.
    #[error("{}: {source}; expected the control socket of a server that is running", path.display())]
    Unreachable {
        /// Path of the socket.
        path: PathBuf,
        /// Error of the connection.
        source: io::Error,
    },
    /// The server received the question but did not answer.
    #[error("{}: the server does not answer: {source}", path.display())]
    Silent {
        /// Path of the socket.
        path: PathBuf,
        /// Error of the read.
        source: io::Error,
    },
    /// The answer is no valid answer.
    #[error("{}: found {found}; expected an answer as JSON in one line", path.display())]
    Unintelligible {
        /// Path of the socket.
        path: PathBuf,
        /// The answer.
        found: String,
    },
}

impl Questions {
    /// Listens at `path`, where only this process's user may connect. A stale socket file is
    /// replaced.
    ///
    /// # Errors
    /// An error of the host; `AddrInUse` if another server listens there.
    pub fn open(path: &Path, answers: impl QuestionServer) -> io::Result<Questions> {
        let mut listeners = Listener::open(&Listen::Unix(path.to_owned()), OWNER)?;
        let listener = listeners.pop().ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(Questions {
            _accept_loop: AcceptLoop::open(listener, "control", AskResult(answers))?,
        })
    }
}

impl<A: QuestionServer> PeerService for AskResult<A> {
    fn serve(&self, peer: &Peer) {
        let mut lines = LineReader::new(peer, QUESTION_BYTES_MAX);
        loop {
            peer.awaits_request();
            let line = lines.next_by(Instant::now() + SILENCE);
            peer.has_request();
            let (answer, goes_on) = match line {
                Ok(Some(line)) if line.trim_ascii().is_empty() => continue,
                Ok(Some(line)) => (self.answer(&line), true),
                Err(LineError::TooLong) => (
                    refused::<A>(format!("a line of more than {QUESTION_BYTES_MAX} bytes")),
                    false,
                ),
                Ok(None) | Err(LineError::Host(_)) => return,
            };
            let written = write(peer, &answer);
            self.0.was_told(&answer);
            if written.is_err() || !goes_on {
                return;
            }
        }
    }

    fn refuse(&self, peer: &Peer) {
        let message = format!("{PEERS_MAX} callers are being answered already; ask again later");
        let _ = write(peer, &A::refusal(message));
    }
}

impl<A: QuestionServer> AskResult<A> {
    fn answer(&self, line: &[u8]) -> A::Answer {
        match serde_json::from_slice(line) {
            Ok(question) => self.0.answer(question),
            Err(error) => refused::<A>(error),
        }
    }
}

/// Returns the answer to an invalid question.
fn refused<A: QuestionServer>(found: impl std::fmt::Display) -> A::Answer {
    A::refusal(format!(
        "not a question: {found}; expected one question a line, such as {}",
        A::EXPECTED
    ))
}

fn write(peer: &Peer, value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    peer.write_by(Instant::now() + WRITING, &line)
}

/// Asks the server with the control socket at `path`. Waits at most `patience` for the answer.
///
/// # Errors
/// If no server listens there, or if its answer is invalid.
pub fn ask<A: DeserializeOwned>(
    path: &Path,
    question: &impl Serialize,
    patience: Duration,
) -> Result<A, ControlError> {
    let unreachable = |source| ControlError::Unreachable {
        path: path.to_owned(),
        source,
    };
    let silent = |source| ControlError::Silent {
        path: path.to_owned(),
        source,
    };
    let unintelligible = |found| ControlError::Unintelligible {
        path: path.to_owned(),
        found,
    };
    let stream = UnixStream::connect(path).map_err(unreachable)?;
    stream.set_nonblocking(true).map_err(unreachable)?;
    let server = Peer::new(ClientSocket::Unix(stream));
    // A server that refuses may have closed the connection. Its answer can still be read.
    let written = write(&server, question);
    let mut lines = LineReader::new(&server, ANSWER_BYTES_MAX);
    match lines.next_by(Instant::now() + patience) {
        Ok(Some(line)) => {
            serde_json::from_slice(&line).map_err(|error| unintelligible(found(&line, &error)))
        }
        Err(LineError::TooLong) => Err(unintelligible(format!(
            "more than {ANSWER_BYTES_MAX} bytes"
        ))),
        // An NBD server sends its greeting without an end of line, and closes the connection after
        // a question.
        _ if lines.rest().starts_with(NBD_GREETING) => Err(unintelligible(greeting())),
        Ok(None) => Err(silent(
            written
                .err()
                .unwrap_or_else(|| io::ErrorKind::UnexpectedEof.into()),
        )),
        Err(LineError::Host(source)) => Err(silent(source)),
    }
}

fn found(line: &[u8], error: &serde_json::Error) -> String {
    // The question may be any bytes of any length; the message repeats its beginning.
    let beginning = String::from_utf8_lossy(&line[..line.len().min(60)]);
    format!("`{}` ({error})", beginning.trim_end().escape_debug())
}

fn greeting() -> String {
    "the greeting of an NBD server: this socket is for its clients".to_owned()
}
