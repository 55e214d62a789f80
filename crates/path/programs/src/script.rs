//! A list of file operations in the format of [`fullstroke_files::script`].

use crate::call::{Call, CallKind, Fd, How};
use crate::program::{Kind, Next, Program, ProgramError, Recipe, Turn};
use fullstroke_contract::ConfigError;
use fullstroke_contract::SourceError;
use fullstroke_contract::registry::{Entry, Keys, read, schema_of};
use fullstroke_files::script::{Script, Step};
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

pub(crate) const ENTRY: Entry<Kind> = Entry {
    name: "script",
    summary: "a list of file operations, with loops and pauses",
    schema: schema_of::<Config>,
    build: Kind {
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
    Ok(Box::new(List {
        script: Arc::new(script),
        piece: config.piece.0,
    }))
}

struct List {
    script: Arc<Script>,
    piece: u64,
}

impl Recipe for List {
    fn program(&self, _: Seed) -> Box<dyn Program> {
        Box::new(Player {
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
struct Player {
    script: Arc<Script>,
    piece: u64,
    /// Index of the step after the running step.
    at: usize,
    moves: VecDeque<Move>,
    /// Files opened by `open`, by path.
    open: BTreeMap<String, Fd>,
    next_fd: u32,
    began: Time,
}

/// A part of a step.
#[derive(Clone, Copy, Debug)]
enum Move {
    /// Opens the step's path.
    Open(Fd, How),
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

impl Player {
    /// Queues the moves of the next step.
    fn begin(&mut self) {
        let script = self.script.clone();
        let (_, step) = &script.steps()[self.at];
        self.at += 1;
        match step {
            Step::Create(path, bytes) => {
                self.within(path, How::CREATE, Move::Write(TEMPORARY, Some(0), *bytes));
            }
            Step::Append(path, bytes) => match self.open.get(path) {
                Some(&fd) => self.moves.push_back(Move::Write(fd, None, *bytes)),
                None => {
                    let how = How {
                        append: true,
                        ..How::WRITE
                    };
                    self.within(path, how, Move::Write(TEMPORARY, None, *bytes));
                }
            },
            Step::Write(path, at, bytes) => {
                self.within(path, How::WRITE, Move::Write(TEMPORARY, Some(*at), *bytes));
            }
            Step::Read(path, at, bytes) => {
                self.within(path, How::READ, Move::Read(TEMPORARY, *at, *bytes));
            }
            Step::Fsync(path) => self.within(path, How::READ, Move::Fsync(TEMPORARY)),
            Step::Open(path) => {
                let fd = Fd(self.next_fd);
                self.next_fd += 1;
                self.open.insert(path.clone(), fd);
                self.moves.push_back(Move::Open(fd, How::APPEND));
            }
            Step::Close(path) => {
                let fd = self.open.remove(path);
                self.moves.push_back(Move::Close(fd.unwrap_or(TEMPORARY)));
            }
            Step::Sleep(time) => self.moves.push_back(Move::Sleep(*time)),
            Step::MakeDirectory(_)
            | Step::Truncate(..)
            | Step::Delete(_)
            | Step::Rename(..)
            | Step::Sync => {
                self.moves.push_back(Move::Itself);
            }
        }
    }

    /// Queues a move on a file. A closed file is opened for this move only.
    fn within(&mut self, path: &str, how: How, part: Move) {
        if let Some(&fd) = self.open.get(path).filter(|_| !how.truncate) {
            return self.moves.push_back(match part {
                Move::Write(_, at, bytes) => Move::Write(fd, at, bytes),
                Move::Read(_, at, bytes) => Move::Read(fd, at, bytes),
                _ => Move::Fsync(fd),
            });
        }
        self.moves
            .extend([Move::Open(TEMPORARY, how), part, Move::Close(TEMPORARY)]);
    }

    /// Queues the rest of a move and returns its first piece.
    fn piece(&mut self, part: Move) -> Move {
        let (rest, bytes) = match part {
            Move::Write(fd, at, left) => {
                let bytes = left.min(self.piece);
                let rest = Move::Write(fd, at.map(|at| at + bytes), left - bytes);
                ((left > bytes).then_some(rest), Move::Write(fd, at, bytes))
            }
            Move::Read(fd, at, left) => {
                let bytes = left.min(self.piece);
                (
                    (left > bytes).then_some(Move::Read(fd, at + bytes, left - bytes)),
                    Move::Read(fd, at, bytes),
                )
            }
            other => (None, other),
        };
        rest.into_iter()
            .for_each(|rest| self.moves.push_front(rest));
        bytes
    }

    /// Ends a read at the end of the file: a short read drops the remaining pieces.
    fn heed(&mut self, turn: &Turn<'_>) -> Result<(), SourceError> {
        let Some(answer) = turn.answer else {
            return Ok(());
        };
        match &answer.result {
            Ok(bytes) => {
                if answer.kind == CallKind::Read
                    && let Some(Move::Read(..)) = self.moves.front()
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

impl Program for Player {
    fn next(&mut self, turn: Turn<'_>) -> Next<'_> {
        if let Err(message) = self.heed(&turn) {
            return Next::Fail(message);
        }
        let part = loop {
            match self.moves.pop_front() {
                // The move is complete.
                Some(Move::Write(_, _, 0) | Move::Read(_, _, 0)) => {}
                Some(part) => break part,
                None => {
                    if self.at > 0 {
                        turn.events.transaction("step", self.began);
                    }
                    if self.at == self.script.steps().len() {
                        return Next::End;
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
fn call(part: Move, step: &Step) -> Next<'_> {
    Next::Call(match part {
        Move::Open(fd, how) => Call::Open {
            path: path_of(step),
            fd,
            how,
        },
        Move::Close(fd) => Call::Close { fd },
        Move::Read(fd, at, bytes) => Call::Read {
            fd,
            at: Some(at),
            bytes,
        },
        Move::Write(fd, at, bytes) => Call::Write { fd, at, bytes },
        Move::Fsync(fd) => Call::Fsync { fd },
        Move::Sleep(time) => return Next::Compute(time),
        Move::Itself => match step {
            Step::MakeDirectory(path) => Call::MakeDirectory { path },
            Step::Truncate(path, bytes) => Call::Truncate {
                path,
                bytes: *bytes,
            },
            Step::Rename(from, to) => Call::Rename { from, to },
            Step::Delete(path) => Call::Remove { path },
            _ => Call::Sync,
        },
    })
}

fn path_of(step: &Step) -> &str {
    match step {
        Step::MakeDirectory(path)
        | Step::Create(path, _)
        | Step::Append(path, _)
        | Step::Write(path, ..)
        | Step::Read(path, ..)
        | Step::Truncate(path, _)
        | Step::Open(path)
        | Step::Close(path)
        | Step::Delete(path)
        | Step::Rename(path, _)
        | Step::Fsync(path) => path,
        Step::Sync | Step::Sleep(_) => "",
    }
}

#[cfg(test)]
mod tests {
    use crate::conformance::{Plain, keys};
    use serde_json::json;

    #[test]
    fn a_list_is_carried_out_line_by_line() {
        let text = "mkdir a\ncreate a/b 300KiB\nopen a/c\nrepeat 2\nappend a/c 4KiB\nend\nclose a/c\n\
                    read a/b 4KiB 100KiB\nsleep 5ms\nrename a/c a/d\nfsync a/d\nread a/b\nsync\ndelete a/b\n";
        let mut plain = Plain::default();
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
        let mut plain = Plain::default();
        let error = plain
            .run("script", &keys(json!({ "file": "list" })), Some(text), 1)
            .unwrap_err();
        assert!(error.contains("line 2") && error.contains('b'), "{error}");
    }
}
