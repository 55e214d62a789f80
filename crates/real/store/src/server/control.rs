//! The control socket: questions and commands to a served array.

use super::state::ServerState;
use crate::standby::can_stand;
use crate::{
    ArrayError, ArrayStatus, FileDevice, GearDirection, MemberName, OpenPurpose, RedundancyCheck,
    Repair, RequestScratch, Roster, Timed,
};
use fullstroke_transport::socket::QuestionServer;
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
        towards: GearDirection,
    },
    /// Stop the server.
    Stop,
}

/// Answers.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "answer", rename_all = "lowercase")]
pub enum ControlAnswer {
    /// Answer to [`Question::Status`].
    Status(ArrayStatus),
    /// Answer to [`Question::Detail`].
    Detail {
        /// State of the array.
        status: ArrayStatus,
        /// Description on the members.
        roster: Box<Roster>,
    },
    /// Results of a scrub.
    Scrub(RedundancyCheck),
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
pub(crate) struct ControlServer(pub(crate) Arc<ServerState>);

impl QuestionServer for ControlServer {
    type Question = Question;
    type Answer = ControlAnswer;
    const EXPECTED: &'static str = r#"{"ask":"status"} or {"ask":"fail","slot":1}"#;

    fn answer(&self, question: Question) -> ControlAnswer {
        answer(&self.0, &question).unwrap_or_else(|error| ControlAnswer::Refused {
            message: error.to_string(),
        })
    }

    fn refusal(message: String) -> ControlAnswer {
        ControlAnswer::Refused { message }
    }

    fn was_told(&self, answer: &ControlAnswer) {
        if matches!(answer, ControlAnswer::Stopping) {
            self.0.ends.store(true, Ordering::SeqCst);
        }
    }
}

fn answer(server: &ServerState, question: &Question) -> Result<ControlAnswer, ArrayError> {
    let array = &server.array;
    let done = |what: &str| {
        Ok(ControlAnswer::Done {
            what: what.to_owned(),
        })
    };
    match question {
        Question::Status => Ok(ControlAnswer::Status(array.status())),
        Question::Detail => Ok(ControlAnswer::Detail {
            status: array.status(),
            roster: Box::new(array.book().roster.clone()),
        }),
        Question::Fail { slot } => {
            array.fail(*slot)?;
            done("failed")
        }
        Question::Add { device, force } => {
            let limit = server.member_timeout;
            let device = FileDevice::open_within(device, OpenPurpose::Own, limit)?;
            let device = Timed::limited(device.shared()?, limit);
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
        Question::Scrub { repair } => scrub(server, *repair).map(ControlAnswer::Scrub),
        Question::Standby => done(&array.stand_by()?),
        Question::Gear { towards } => {
            array.shift(*towards)?;
            done(match towards {
                GearDirection::Down => "shifting down",
                GearDirection::Up => "shifting up",
            })
        }
        Question::Stop => Ok(ControlAnswer::Stopping),
    }
}

/// Scrubs the array, 1 MiB at a time; requests are served in between.
fn scrub(server: &ServerState, repair: Repair) -> Result<RedundancyCheck, ArrayError> {
    let mut worker = RequestScratch::new();
    let mut found = RedundancyCheck::default();
    let mut next = Some(Lbn(0));
    while let Some(from) = next.filter(|_| !server.ends.load(Ordering::SeqCst)) {
        next = server
            .array
            .scrub_step(&mut worker, from, repair, &mut found)?;
    }
    if let Some(&MemberName::Slot(slot)) = found.first.first().map(|first| &first.member) {
        let device = server.array.devices().get(slot).cloned().flatten();
        let why = format!(
            "a scrub found {} sectors of parity, copies or data that do not agree with the rest; {} were written again, \
             and of {} nothing proves which is wrong",
            found.mismatched_sectors, found.repaired_sectors, found.undecided_sectors
        );
        let device = device.map_or_else(String::new, |device| device.name());
        server.array.happened("mismatch", slot, device, &why);
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
