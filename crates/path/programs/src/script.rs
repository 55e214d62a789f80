//! A list of file operations in the format of [`fullstroke_files::script`].

use crate::call::{Call, CallKind, Fd, OpenFlags};
use crate::program::{Program, ProgramAction, ProgramError, ProgramKind, ProgramTurn, Recipe};
use fullstroke_contract::ConfigError;
use fullstroke_contract::SourceError;
use fullstroke_contract::registry::{Keys, PolicyEntry, read, schema_of};
use fullstroke_files::script::{Script, ScriptStep};
use fullstroke_units::{Bytes, Duration, Seed, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// A list of file operations.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// File with the list, one operation per line (`docs/files.md`).
    pub file: String,
    /// Maximum length of one read or write call. Default 128KiB, as in `cp`.
    #[serde(default = "piece")]
    pub piece: Bytes,
}

fn piece() -> Bytes {
    Bytes(128 << 10)
}

pub(crate) const ENTRY: PolicyEntry<ProgramKind> = PolicyEntry {
    name: "script",
    summary: "a list of file operations, with loops and pauses",
    schema: schema_of::<Config>,
    build: ProgramKind {
        file: Some("file"),
        read: read_recipe,
        example: "file = \"samples/files/small.fs\"",
    },
};

fn read_recipe(keys: &Keys, text: Option<&str>) -> Result<Box<dyn Recipe>, ProgramError> {
    let config: Config = read(keys)?;
    if config.piece == Bytes(0) {
        return Err(ConfigError::new("piece", "found 0; expected at least a byte").into());
    }
    let script = Script::parse(text.unwrap_or_default());
    let script =
        script.map_err(|error| ProgramError::Line(u64::from(error.line), error.message))?;
    Ok(Box::new(ScriptList {
        script: Arc::new(script),
        piece: config.piece.0,
    }))
}

struct ScriptList {
    script: Arc<Script>,
    piece: u64,
}

impl Recipe for ScriptList {
    fn program(&self, _: Seed) -> Box<dyn Program> {
        Box::new(ListPlayer {
            script: self.script.clone(),
            piece: self.piece,
            at: 0,
            moves: VecDeque::new(),
            open: BTreeMap::new(),
            next_fd: TEMPORARY.0 + 1,
            began: Time::ZERO,
        })
    }
}

/// Number of a file opened by a step for itself.
const TEMPORARY: Fd = Fd(0);

/// Carries out the list. Each step consists of a few moves.
struct ListPlayer {
    script: Arc<Script>,
    piece: u64,
    /// Index of the step after the running step.
    at: usize,
    moves: VecDeque<StepPart>,
    /// Files opened by `open`, by path.
    open: BTreeMap<String, Fd>,
    next_fd: u32,
    began: Time,
}

/// A part of a step.
#[derive(Clone, Copy, Debug)]
enum StepPart {
    /// Opens the step's path.
    Open(Fd, OpenFlags),
    Close(Fd),
    /// Reads up to a number of bytes, piece by piece, until the end of the file. The fields are
    /// file, first byte and number of bytes.
    Read(Fd, u64, u64),
    Write(Fd, Option<u64>, u64),
    Fsync(Fd),
    Sleep(Duration),
    /// The step is a single call.
    Itself,
}

impl ListPlayer {
    /// Queues the moves of the next step.
    fn begin(&mut self) {
        let script = self.script.clone();
        let (_, step) = &script.steps()[self.at];
        self.at += 1;
        match step {
            ScriptStep::Create(path, bytes) => {
                self.within(
                    path,
                    OpenFlags::CREATE,
                    StepPart::Write(TEMPORARY, Some(0), *bytes),
                );
            }
            ScriptStep::Append(path, bytes) => match self.open.get(path) {
                Some(&fd) => self.moves.push_back(StepPart::Write(fd, None, *bytes)),
                None => {
                    let how = OpenFlags {
                        append: true,
                        ..OpenFlags::WRITE
                    };
                    self.within(path, how, StepPart::Write(TEMPORARY, None, *bytes));
                }
            },
            ScriptStep::Write(path, at, bytes) => {
                self.within(
                    path,
                    OpenFlags::WRITE,
                    StepPart::Write(TEMPORARY, Some(*at), *bytes),
                );
            }
            ScriptStep::Read(path, at, bytes) => {
                self.within(
                    path,
                    OpenFlags::READ,
                    StepPart::Read(TEMPORARY, *at, *bytes),
                );
            }
            ScriptStep::Fsync(path) => {
                // fsync(2) needs no permission to write.
                self.within(path, OpenFlags::READ, StepPart::Fsync(TEMPORARY))
            }
            ScriptStep::Open(path) => {
                let fd = Fd(self.next_fd);
                self.next_fd += 1;
                self.open.insert(path.clone(), fd);
                self.moves.push_back(StepPart::Open(fd, OpenFlags::APPEND));
            }
            ScriptStep::Close(path) => {
                let fd = self.open.remove(path);
                self.moves
                    .push_back(StepPart::Close(fd.unwrap_or(TEMPORARY)));
            }
            ScriptStep::Sleep(time) => self.moves.push_back(StepPart::Sleep(*time)),
            ScriptStep::MakeDirectory(_)
            | ScriptStep::Truncate(..)
            | ScriptStep::Delete(_)
            | ScriptStep::Rename(..)
            | ScriptStep::Sync => {
                self.moves.push_back(StepPart::Itself);
            }
        }
    }

    /// Queues a move on a file. A closed file is opened for this move only.
    fn within(&mut self, path: &str, how: OpenFlags, part: StepPart) {
        // Only an open truncates, so a file that is made anew is opened although it is open.
        if let Some(&fd) = self.open.get(path).filter(|_| !how.truncate) {
            return self.moves.push_back(match part {
                StepPart::Write(_, at, bytes) => StepPart::Write(fd, at, bytes),
                StepPart::Read(_, at, bytes) => StepPart::Read(fd, at, bytes),
                _ => StepPart::Fsync(fd),
            });
        }
        self.moves.extend([
            StepPart::Open(TEMPORARY, how),
            part,
            StepPart::Close(TEMPORARY),
        ]);
    }

    /// Queues the rest of a move and returns its first piece.
    fn piece(&mut self, part: StepPart) -> StepPart {
        let (rest, bytes) = match part {
            StepPart::Write(fd, at, left) => {
                let bytes = left.min(self.piece);
                let rest = StepPart::Write(fd, at.map(|at| at + bytes), left - bytes);
                (
                    (left > bytes).then_some(rest),
                    StepPart::Write(fd, at, bytes),
                )
            }
            StepPart::Read(fd, at, left) => {
                let bytes = left.min(self.piece);
                (
                    (left > bytes).then_some(StepPart::Read(fd, at + bytes, left - bytes)),
                    StepPart::Read(fd, at, bytes),
                )
            }
            other => (None, other),
        };
        // In front of the close that the step has queued.
        rest.into_iter()
            .for_each(|rest| self.moves.push_front(rest));
        bytes
    }

    /// Ends a read at the end of the file: a short read drops the remaining pieces.
    fn take_answer(&mut self, turn: &ProgramTurn<'_>) -> Result<(), SourceError> {
        let Some(answer) = turn.answer else {
            return Ok(());
        };
        match &answer.result {
            Ok(bytes) => {
                if answer.kind == CallKind::Read
                    && let Some(StepPart::Read(..)) = self.moves.front()
                    && *bytes < self.piece
                {
                    self.moves.pop_front();
                }
                Ok(())
            }
            Err(error) => {
                let (line, step) = &self.script.steps()[self.at - 1];
                Err(SourceError(format!("line {line}: {step:?}: {error}")))
            }
        }
    }
}

impl Program for ListPlayer {
    fn next(&mut self, turn: ProgramTurn<'_>) -> ProgramAction<'_> {
        if let Err(message) = self.take_answer(&turn) {
            return ProgramAction::Fail(message);
        }
        let part = loop {
            match self.moves.pop_front() {
                // The move is complete.
                Some(StepPart::Write(_, _, 0) | StepPart::Read(_, _, 0)) => {}
                Some(part) => break part,
                None => {
                    // Before the first step no step has ended.
                    if self.at > 0 {
                        turn.events.transaction("step", self.began);
                    }
                    if self.at == self.script.steps().len() {
                        return ProgramAction::End;
                    }
                    self.began = turn.now;
                    self.begin();
                }
            }
        };
        let part = self.piece(part);
        let (_, step) = &self.script.steps()[self.at - 1];
        call(part, step)
    }
}

/// Returns the call for a part of a step.
fn call(part: StepPart, step: &ScriptStep) -> ProgramAction<'_> {
    ProgramAction::Call(match part {
        StepPart::Open(fd, how) => Call::Open {
            path: path_of(step),
            fd,
            how,
        },
        StepPart::Close(fd) => Call::Close { fd },
        StepPart::Read(fd, at, bytes) => Call::Read {
            fd,
            at: Some(at),
            bytes,
        },
        StepPart::Write(fd, at, bytes) => Call::Write { fd, at, bytes },
        StepPart::Fsync(fd) => Call::Fsync { fd },
        StepPart::Sleep(time) => return ProgramAction::Compute(time),
        StepPart::Itself => match step {
            ScriptStep::MakeDirectory(path) => Call::MakeDirectory { path },
            ScriptStep::Truncate(path, bytes) => Call::Truncate {
                path,
                bytes: *bytes,
            },
            ScriptStep::Rename(from, to) => Call::Rename { from, to },
            ScriptStep::Delete(path) => Call::Remove { path },
            _ => Call::Sync,
        },
    })
}

fn path_of(step: &ScriptStep) -> &str {
    match step {
        ScriptStep::MakeDirectory(path)
        | ScriptStep::Create(path, _)
        | ScriptStep::Append(path, _)
        | ScriptStep::Write(path, ..)
        | ScriptStep::Read(path, ..)
        | ScriptStep::Truncate(path, _)
        | ScriptStep::Open(path)
        | ScriptStep::Close(path)
        | ScriptStep::Delete(path)
        | ScriptStep::Rename(path, _)
        | ScriptStep::Fsync(path) => path,
        ScriptStep::Sync | ScriptStep::Sleep(_) => "",
    }
}

#[cfg(test)]
mod tests {
    use crate::conformance::{PlainHost, keys};
    use serde_json::json;

    #[test]
    fn a_list_is_carried_out_line_by_line() {
        let text = "mkdir a\ncreate a/b 300KiB\nopen a/c\nrepeat 2\nappend a/c 4KiB\nend\nclose a/c\n\
                    read a/b 4KiB 100KiB\nsleep 5ms\nrename a/c a/d\nfsync a/d\nread a/b\nsync\ndelete a/b\n";
        let mut plain = PlainHost::default();
        plain
            .run("script", &keys(json!({ "file": "list" })), Some(text), 1)
            .unwrap();
        assert_eq!(plain.files.get("a/d"), Some(&8192));
        assert!(!plain.files.contains_key("a/b"));
        assert_eq!((plain.written, plain.read), (308 << 10, 400 << 10));
        assert_eq!(plain.transactions, 13);
        assert_eq!(plain.computed.as_millis_f64(), 5.0);
    }

    #[test]
    fn what_cannot_be_names_its_line() {
        let text = "create a 4KiB\nread b\n";
        let mut plain = PlainHost::default();
        let error = plain
            .run("script", &keys(json!({ "file": "list" })), Some(text), 1)
            .unwrap_err();
        assert!(error.contains("line 2") && error.contains('b'), "{error}");
    }
}
