//! Questions and answers over a unix socket: one of each a line, both JSON.
//!
//! Whoever may open the socket file may give orders, so it is its owner's alone.

use crate::socket::lines::{LineError, Lines};
use crate::socket::peers::{AcceptLoop, PEERS_MAX, Peer, Service};
use crate::socket::sockets::{Listen, Listener, OWNER, Stream};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The longest question. The longest there is has an export's name in it.
const QUESTION_BYTES_MAX: usize = 64 << 10;
/// The longest answer: the status of some hundred thousand drives.
const ANSWER_BYTES_MAX: usize = 64 << 20;
/// A peer that has asked nothing for so long is cut off.
const SILENCE: Duration = Duration::from_secs(300);
/// For the other side to take a line.
const WRITING: Duration = Duration::from_secs(10);
/// What an NBD socket says first (NBD protocol, "Newstyle negotiation").
const NBD_GREETING: &[u8] = b"NBDMAGIC";

/// Who answers.
pub trait Answers: Send + Sync + 'static {
    /// What may be asked.
    type Question: DeserializeOwned;
    /// What is answered.
    type Answer: Serialize;
    /// Questions as an error shows them.
    const EXPECTED: &'static str;

    /// Answers.
    fn answer(&self, question: Self::Question) -> Self::Answer;

    /// Says no, and why.
    fn refusal(message: String) -> Self::Answer;

    /// The peer has this answer.
    fn was_told(&self, _: &Self::Answer) {}
}

/// Takes questions at a unix socket until it is dropped; then peers are cut off
/// and the socket file is gone.
pub struct Questions {
    // Dropping it ends its threads.
    _accept_loop: AcceptLoop,
}

struct Asked<A>(A);

/// Why a server was not asked, or its answer is none.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// There is no such socket, or no server behind it.
    #[error("{}: {source}; expected the control socket of a server that is running", path.display())]
    Unreachable {
        /// The socket.
        path: PathBuf,
        /// Why it cannot be connected to.
        source: io::Error,
    },
    /// The server was asked, and fell silent.
    #[error("{}: the server does not answer: {source}", path.display())]
    Silent {
        /// The socket.
        path: PathBuf,
        /// What happened instead.
        source: io::Error,
    },
    /// It answered something else.
    #[error("{}: found {found}; expected an answer as JSON in one line", path.display())]
    Unintelligible {
        /// The socket.
        path: PathBuf,
        /// What it said.
        found: String,
    },
}

impl Questions {
    /// Listens at `path`, where only this process's user may connect. A socket
    /// file that nobody listens on any more is taken over.
    ///
    /// # Errors
    /// The host's, if nobody can listen there, and `AddrInUse` if somebody does.
    pub fn open(path: &Path, answers: impl Answers) -> io::Result<Questions> {
        let mut listeners = Listener::open(&Listen::Unix(path.to_owned()), OWNER)?;
        let listener = listeners.pop().ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(Questions {
            _accept_loop: AcceptLoop::open(listener, "control", Asked(answers))?,
        })
    }
}

impl<A: Answers> Service for Asked<A> {
    fn serve(&self, peer: &Peer) {
        let mut lines = Lines::new(peer, QUESTION_BYTES_MAX);
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

impl<A: Answers> Asked<A> {
    fn answer(&self, line: &[u8]) -> A::Answer {
        match serde_json::from_slice(line) {
            Ok(question) => self.0.answer(question),
            Err(error) => refused::<A>(error),
        }
    }
}

/// The answer to what is no question.
fn refused<A: Answers>(found: impl std::fmt::Display) -> A::Answer {
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

/// Asks the server whose control socket is at `path`, and waits for its answer
/// so long.
///
/// # Errors
/// If no server is there, or what it says is no answer.
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
    let server = Peer::new(Stream::Unix(stream));
    // A server that sends others away may have hung up; its answer is there.
    let written = write(&server, question);
    let mut lines = Lines::new(&server, ANSWER_BYTES_MAX);
    match lines.next_by(Instant::now() + patience) {
        Ok(Some(line)) => {
            serde_json::from_slice(&line).map_err(|error| unintelligible(found(&line, &error)))
        }
        Err(LineError::TooLong) => Err(unintelligible(format!(
            "more than {ANSWER_BYTES_MAX} bytes"
        ))),
        // It greets without an end of line, and hangs up on questions.
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
    let beginning = String::from_utf8_lossy(&line[..line.len().min(60)]);
    format!("`{}` ({error})", beginning.trim_end().escape_debug())
}

fn greeting() -> String {
    "the greeting of an NBD server: this socket is for its clients".to_owned()
}
