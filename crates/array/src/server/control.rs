//! Questions and orders to an array that is served: a line of JSON in, a line of
//! JSON out, over a unix socket that is its owner's alone.

use super::Server;
use super::sockets::{Socket, Stream};
use crate::{Access, ArrayError, Comparison, FileDevice, Roster, Status, Worker};
use fullstroke_units::Lbn;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The longest question and answer.
const LINE_BYTES_MAX: u64 = 4 << 20;

/// What may be asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "lowercase")]
pub enum Question {
    /// How it is.
    Status,
    /// How it is, and what its members have written down.
    Detail,
    /// Let a member fail.
    Fail {
        /// Its place.
        slot: usize,
    },
    /// Take a device in.
    Add {
        /// Its path.
        device: PathBuf,
        /// Whatever it holds.
        force: bool,
    },
    /// Compare all redundancy with the data.
    Scrub {
        /// Make it follow from the data.
        repair: bool,
    },
    /// Stop.
    Stop,
}

/// What is answered.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "answer", rename_all = "lowercase")]
pub enum Answer {
    /// To the first question.
    Status(Status),
    /// To the second.
    Detail {
        /// How it is.
        status: Status,
        /// What its members have written down.
        roster: Box<Roster>,
    },
    /// What was found.
    Scrub(Comparison),
    /// It is done, or has begun.
    Done {
        /// What, for people.
        what: String,
    },
    /// It is not.
    Refused {
        /// Why.
        message: String,
    },
}

/// Answers whoever comes, one after the other for each, until the process ends.
pub(crate) fn accept(server: &Arc<Server>, socket: &Socket) {
    while let Ok(Stream::Unix(stream)) = socket.accept() {
        let server = Arc::clone(server);
        std::thread::spawn(move || {
            // Who hangs up gets no answer.
            let _ = answer_all(&server, &stream);
        });
    }
}

fn answer_all(server: &Server, stream: &UnixStream) -> io::Result<()> {
    let mut lines = BufReader::new(stream);
    let mut line = String::new();
    loop {
        line.clear();
        if lines.by_ref().take(LINE_BYTES_MAX).read_line(&mut line)? == 0 {
            return Ok(());
        }
        let question = serde_json::from_str::<Question>(&line);
        let stops = matches!(question, Ok(Question::Stop));
        let answer = match &question {
            Ok(question) => answer(server, question),
            Err(error) => {
                Err(ArrayError::Refused(format!("not a question: {error}; expected {{\"ask\":\"status\"}}")))
            }
        };
        let answer = answer.unwrap_or_else(|error| Answer::Refused { message: error.to_string() });
        let mut text = serde_json::to_vec(&answer)?;
        text.push(b'\n');
        { stream }.write_all(&text)?;
        if stops {
            server.ends.store(true, Ordering::SeqCst);
        }
    }
}

fn answer(server: &Server, question: &Question) -> Result<Answer, ArrayError> {
    let array = &server.array;
    let done = |what: &str| Ok(Answer::Done { what: what.to_owned() });
    match question {
        Question::Status => Ok(Answer::Status(array.status())),
        Question::Detail => {
            Ok(Answer::Detail { status: array.status(), roster: Box::new(array.book().roster.clone()) })
        }
        Question::Fail { slot } => {
            array.fail(*slot)?;
            done("failed")
        }
        Question::Add { device, force } => {
            let device = FileDevice::open(device, Access::Own)?;
            device.allocate()?;
            done(array.add(Arc::new(device), *force)?)
        }
        Question::Scrub { repair } => scrub(server, *repair).map(Answer::Scrub),
        Question::Stop => done("stopping"),
    }
}

/// Between requests, a MiB at a time.
fn scrub(server: &Server, repair: bool) -> Result<Comparison, ArrayError> {
    let mut worker = Worker::new();
    let mut found = Comparison::default();
    let mut next = Some(Lbn(0));
    while let Some(from) = next.filter(|_| !server.ends.load(Ordering::SeqCst)) {
        next = server.array.scrub_step(&mut worker, from, repair, &mut found)?;
    }
    Ok(found)
}

/// Asks the server behind a control socket.
///
/// # Errors
/// Nobody is there, or what is said is no answer; and what it refuses.
pub fn ask(path: &Path, question: &Question) -> Result<serde_json::Value, ArrayError> {
    let failed = |error: io::Error| ArrayError::device(path.display().to_string(), "ask", error);
    let mut stream = UnixStream::connect(path).map_err(failed)?;
    let mut line = serde_json::to_vec(question).map_err(|error| failed(error.into()))?;
    line.push(b'\n');
    stream.write_all(&line).map_err(failed)?;
    let mut answer = String::new();
    BufReader::new(stream).take(LINE_BYTES_MAX).read_line(&mut answer).map_err(failed)?;
    let answer: serde_json::Value =
        serde_json::from_str(&answer).map_err(|error| failed(io::Error::other(error)))?;
    match answer.get("message").and_then(|message| message.as_str()) {
        Some(message) if answer["answer"] == "refused" => Err(ArrayError::Refused(message.to_owned())),
        _ => Ok(answer),
    }
}
