//! The control socket: questions and commands to a served array.

use super::Server;
use crate::standby::can_stand;
use crate::{
    Access, ArrayError, Comparison, FileDevice, Repair, Roster, Status, Timed, Towards, Worker,
};
use fullstroke_transport::socket::Answers;
use fullstroke_units::Lbn;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// Longest wait for an answer; a scrub reads all members.
const PATIENCE: Duration = Duration::from_secs(7 * 86_400);

/// Questions and commands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "lowercase")]
pub enum Question {
    /// Return the state.
    Status,
    /// Return the state, and the description on the members.
    Detail,
    /// Fail a member.
    Fail {
        /// Slot of the member.
        slot: usize,
    },
    /// Add a device.
    Add {
        /// Path of the device.
        device: PathBuf,
        /// True to accept a device with data.
        force: bool,
    },
    /// Compare all redundancy with the data.
    Scrub {
        /// Sectors to write again.
        #[serde(default)]
        repair: Repair,
    },
    /// Put the members to standby.
    Standby,
    /// Shift an array with gears.
    Gear {
        /// Direction: down, where some members stand, or up.
        towards: Towards,
    },
    /// Stop the server.
    Stop,
}

/// Answers.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "answer", rename_all = "lowercase")]
pub enum Answer {
    /// Answer to [`Question::Status`].
    Status(Status),
    /// Answer to [`Question::Detail`].
    Detail {
        /// State of the array.
        status: Status,
        /// Description on the members.
        roster: Box<Roster>,
    },
    /// Results of a scrub.
    Scrub(Comparison),
    /// The command was carried out, or has begun.
    Done {
        /// Description of the result, for people.
        what: String,
    },
    /// The server stops from now on.
    Stopping,
    /// The command was refused.
    Refused {
        /// The reason.
        message: String,
    },
}

/// Answers the clients of the control socket.
pub(crate) struct Control(pub(crate) Arc<Server>);

impl Answers for Control {
    type Question = Question;
    type Answer = Answer;
    const EXPECTED: &'static str = r#"{"ask":"status"} or {"ask":"fail","slot":1}"#;

    fn answer(&self, question: Question) -> Answer {
        answer(&self.0, &question).unwrap_or_else(|error| Answer::Refused {
            message: error.to_string(),
        })
    }

    fn refusal(message: String) -> Answer {
        Answer::Refused { message }
    }

    fn was_told(&self, answer: &Answer) {
        if matches!(answer, Answer::Stopping) {
            self.0.ends.store(true, Ordering::SeqCst);
        }
    }
}

fn answer(server: &Server, question: &Question) -> Result<Answer, ArrayError> {
    let array = &server.array;
    let done = |what: &str| {
        Ok(Answer::Done {
            what: what.to_owned(),
        })
    };
    match question {
        Question::Status => Ok(Answer::Status(array.status())),
        Question::Detail => Ok(Answer::Detail {
            status: array.status(),
            roster: Box::new(array.book().roster.clone()),
        }),
        Question::Fail { slot } => {
            array.fail(*slot)?;
            done("failed")
        }
        Question::Add { device, force } => {
            let device = FileDevice::open(device, Access::Own)?;
            let device = Timed::limited(device.shared()?, server.member_timeout);
            let added = array.add(Arc::clone(&device), *force)?;
            let is_watched = server
                .watch
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .is_some();
            // Without `--standby-after` the device gets no commands for standby.
            match is_watched.then(|| can_stand(&*device)) {
                Some(Err(error)) => done(&format!("{added}; {error}")),
                _ => done(added),
            }
        }
        Question::Scrub { repair } => scrub(server, *repair).map(Answer::Scrub),
        Question::Standby => done(&array.stand_by()?),
        Question::Gear { towards } => {
            array.shift(*towards)?;
            done(match towards {
                Towards::Down => "shifting down",
                Towards::Up => "shifting up",
            })
        }
        Question::Stop => Ok(Answer::Stopping),
    }
}

/// Scrubs the array, 1 MiB at a time; requests are served in between.
fn scrub(server: &Server, repair: Repair) -> Result<Comparison, ArrayError> {
    let mut worker = Worker::new();
    let mut found = Comparison::default();
    let mut next = Some(Lbn(0));
    while let Some(from) = next.filter(|_| !server.ends.load(Ordering::SeqCst)) {
        next = server
            .array
            .scrub_step(&mut worker, from, repair, &mut found)?;
    }
    if let Some(first) = found.first.first() {
        let device = server.array.devices().get(first.slot).cloned().flatten();
        let why = format!(
            "a scrub found {} sectors of parity, copies or data that do not agree with the rest; {} were written again, \
             and of {} nothing proves which is wrong",
            found.mismatched_sectors, found.repaired_sectors, found.undecided_sectors
        );
        let device = device.map_or_else(String::new, |device| device.name());
        server.array.happened("mismatch", first.slot, device, &why);
    }
    Ok(found)
}

/// Asks the server behind a control socket.
///
/// # Errors
/// No server is there, its answer is not understood, or the server refuses.
pub fn ask(path: &Path, question: &Question) -> Result<serde_json::Value, ArrayError> {
    let failed =
        |error| ArrayError::device(path.display().to_string(), "ask", io::Error::other(error));
    let answer: serde_json::Value =
        fullstroke_transport::socket::ask(path, question, PATIENCE).map_err(failed)?;
    match answer.get("message").and_then(|message| message.as_str()) {
        Some(message) if answer["answer"] == "refused" => {
            Err(ArrayError::Refused(message.to_owned()))
        }
        _ => Ok(answer),
    }
}
