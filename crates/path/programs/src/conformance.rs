//! Tests that every program must pass, and a host for tests in which calls cost nothing.

#![allow(
    clippy::too_many_lines,
    reason = "a test tells one story from its beginning to its end"
)]

use crate::{
    Call, CallAnswer, CallError, CallKind, Events, Fd, ProgramAction, ProgramKind, ProgramReport,
    ProgramTurn, REGISTRY,
};
use fullstroke_contract::registry::Keys;
use fullstroke_files::FileError;
use fullstroke_units::{Duration, Seed, Time};
use serde_json::Value;
use std::collections::BTreeMap;

/// Returns keys from JSON.
pub(crate) fn keys(value: Value) -> Keys {
    value.as_object().cloned().unwrap_or_default()
}

/// A host with files in memory. Each call takes 1 µs.
#[derive(Default)]
pub(crate) struct PlainHost {
    /// Files and their lengths, by path.
    pub files: BTreeMap<String, u64>,
    pub directories: Vec<String>,
    open: BTreeMap<(u32, Fd), (String, u64, bool)>,
    pub written: u64,
    pub read: u64,
    pub transactions: u64,
    pub computed: Duration,
    /// All calls, each with the process of the call.
    pub calls: Vec<(u32, String)>,
    pub report: ProgramReport,
}

/// One process: the time when it goes on, its wait, and the result of its call.
struct TestedProcess {
    at: Time,
    waits: bool,
    woken: bool,
    over: bool,
    answer: Option<CallAnswer>,
}

impl PlainHost {
    /// Runs the program called `name` to its end.
    pub fn run(
        &mut self,
        name: &str,
        keys: &Keys,
        text: Option<&str>,
        seed: u64,
    ) -> Result<(), String> {
        let entry = REGISTRY
            .iter()
            .find(|entry| entry.name == name)
            .expect("it is in the registry");
        let recipe = ProgramKind::recipe(entry, keys, text).map_err(|error| error.to_string())?;
        let mut program = recipe.program(Seed(seed));
        for laid in program.laid_out() {
            match laid.bytes {
                Some(bytes) => _ = self.files.insert(laid.path, bytes.0),
                None => self.directories.push(laid.path),
            }
        }
        let new = || TestedProcess {
            at: Time::ZERO,
            waits: false,
            woken: false,
            over: false,
            answer: None,
        };
        let mut processes: Vec<TestedProcess> = (0..program.processes()).map(|_| new()).collect();
        let mut events = Events::default();
        loop {
            let ready = |process: &&mut TestedProcess| !process.over && !process.waits;
            let next = processes
                .iter_mut()
                .filter(ready)
                // The process that goes on earliest.
                .min_by_key(|process| process.at);
            let Some(now) = next.map(|process| process.at) else {
                break;
            };
            let index = processes
                .iter()
                .position(|one| one.at == now && !one.over && !one.waits)
                .unwrap();
            let answer = processes[index].answer.take();
            let process = index as u32;
            let turn = ProgramTurn {
                now,
                process,
                answer: answer.as_ref(),
                events: &mut events,
            };
            let next = program.next(turn);
            let woken = std::mem::take(&mut processes[index].woken);
            // A process that was woken and waits again has changed nothing, and must not wake the
            // others: they would wake each other for ever.
            let goes_on = !woken || next != ProgramAction::Wait;
            match next {
                ProgramAction::Call(call) => {
                    self.calls.push((process, format!("{call:?}")));
                    let (kind, result) = self.call(process, &call);
                    let ended = now + Duration::from_micros(1);
                    processes[index].answer = Some(CallAnswer {
                        kind,
                        began: now,
                        ended,
                        result,
                    });
                    processes[index].at = ended;
                }
                ProgramAction::Compute(time) => {
                    self.computed += time;
                    processes[index].at = now + time;
                }
                ProgramAction::Wait => processes[index].waits = true,
                ProgramAction::End => processes[index].over = true,
                ProgramAction::Fail(error) => return Err(error.to_string()),
            }
            for (other, waiting) in processes.iter_mut().enumerate() {
                if goes_on && other != index && waiting.waits {
                    (waiting.waits, waiting.woken, waiting.at) = (false, true, now.max(waiting.at));
                }
            }
        }
        assert!(
            processes.iter().all(|process| process.over),
            "nobody waits for ever"
        );
        self.transactions += events.transactions.len() as u64;
        self.report = program.report();
        Ok(())
    }

    fn call(&mut self, process: u32, call: &Call<'_>) -> (CallKind, Result<u64, CallError>) {
        let mut kind = call.kind();
        let result = self.carry_out(process, call, &mut kind);
        (kind, result)
    }

    fn carry_out(
        &mut self,
        process: u32,
        call: &Call<'_>,
        kind: &mut CallKind,
    ) -> Result<u64, CallError> {
        let plain = |path: &str| path.trim_matches('/').to_owned();
        match *call {
            Call::Open { path, fd, how } => {
                let path = plain(path);
                if !self.files.contains_key(&path) && !self.directories.contains(&path) {
                    if !how.create {
                        return Err(FileError::NotFound(path).into());
                    }
                    *kind = CallKind::Create;
                    self.files.insert(path.clone(), 0);
                } else if how.exclusive {
                    return Err(FileError::Exists(path).into());
                } else if how.truncate {
                    self.files.insert(path.clone(), 0);
                }
                self.open.insert((process, fd), (path, 0, how.append));
                Ok(0)
            }
            Call::Close { fd } => self
                .open
                .remove(&(process, fd))
                .map(|_| 0)
                .ok_or(CallError::BadFd(fd)),
            Call::Read { fd, at, bytes } => {
                let (path, position, _) = self
                    .open
                    .get_mut(&(process, fd))
                    .ok_or(CallError::BadFd(fd))?;
                let from = at.unwrap_or(*position);
                let bytes = bytes.min(
                    self.files
                        .get(path)
                        .copied()
                        .unwrap_or(0)
                        .saturating_sub(from),
                );
                if at.is_none() {
                    *position = from + bytes;
                }
                self.read += bytes;
                Ok(bytes)
            }
            Call::Write { fd, at, bytes } => {
                let (path, position, append) = self
                    .open
                    .get_mut(&(process, fd))
                    .ok_or(CallError::BadFd(fd))?;
                let length = self.files.get_mut(path).ok_or(CallError::BadFd(fd))?;
                let from = if *append {
                    *length
                } else {
                    at.unwrap_or(*position)
                };
                if at.is_none() {
                    *position = from + bytes;
                }
                *length = (*length).max(from + bytes);
                self.written += bytes;
                Ok(bytes)
            }
            Call::Seek { fd, to } => {
                self.open
                    .get_mut(&(process, fd))
                    .ok_or(CallError::BadFd(fd))?
                    .1 = to;
                Ok(to)
            }
            Call::Fsync { fd } | Call::Fdatasync { fd } => self
                .open
                .get(&(process, fd))
                .map(|_| 0)
                .ok_or(CallError::BadFd(fd)),
            Call::Sync => Ok(0),
            Call::Truncate { path, bytes } => self.resize(&plain(path), bytes),
            Call::Resize { fd, bytes } => {
                let (path, ..) = self
                    .open
                    .get(&(process, fd))
                    .ok_or(CallError::BadFd(fd))?
                    .clone();
                self.resize(&path, bytes)
            }
            Call::MakeDirectory { path } => {
                self.directories.push(plain(path));
                Ok(0)
            }
            Call::Remove { path } => {
                let path = plain(path);
                let known = self.files.remove(&path).is_some() || self.directories.contains(&path);
                self.directories.retain(|directory| *directory != path);
                if known {
                    Ok(0)
                } else {
                    Err(FileError::NotFound(path).into())
                }
            }
            Call::Rename { from, to } => {
                let bytes = self
                    .files
                    .remove(&plain(from))
                    .ok_or(FileError::NotFound(plain(from)))?;
                self.files.insert(plain(to), bytes);
                self.open
                    .values_mut()
                    .filter(|file| file.0 == plain(from))
                    .for_each(|file| file.0 = plain(to));
                Ok(0)
            }
            Call::Stat { path }
                if plain(path).is_empty() || self.directories.contains(&plain(path)) =>
            {
                Ok(4096)
            }
            Call::Stat { path } => Ok(self
                .files
                .get(&plain(path))
                .copied()
                .ok_or(FileError::NotFound(plain(path)))?),
            Call::List { path } => {
                let within = plain(path);
                Ok(self
                    .files
                    .keys()
                    .filter(|name| name.starts_with(&within))
                    .count() as u64)
            }
        }
    }

    fn resize(&mut self, path: &str, bytes: u64) -> Result<u64, CallError> {
        *self
            .files
            .get_mut(path)
            .ok_or(FileError::NotFound(path.to_owned()))? = bytes;
        Ok(bytes)
    }
}

const STRACE: &str = "7 1795363600.1 openat(AT_FDCWD, \"/a\", O_RDONLY) = 3 <0.1>\n\
                      7 1795363600.3 read(3, \"\", 10) = 10 <0.1>\n7 1795363600.5 close(3) = 0 <0.1>\n";

/// Returns the keys of a small example of each program, and the text of their file.
pub(crate) fn small(name: &str) -> (Keys, Option<&'static str>) {
    use serde_json::json;
    let (value, text) = match name {
        "script" => (
            json!({ "file": "list" }),
            Some("create a 12KiB\nfsync a\nread a\n"),
        ),
        "postmark" => (
            json!({ "number": 20, "transactions": 50, "instances": 2, "subdirectories": 3 }),
            Some("set size 500 9000\nrun\n"),
        ),
        "bonnie" => (
            json!({ "size": "256KiB", "seeks": 20, "chunk": "8KiB" }),
            None,
        ),
        "diff" => (json!({ "size": "64KiB" }), None),
        "iozone" => (json!({ "size": "64KiB", "processes": 2 }), None),
        "compile" => (json!({ "sources": 5, "headers": 20, "includes": 4 }), None),
        "playback" => (
            json!({ "streams": 3, "bit_rate": "4Mbit/s", "file_size": "256KiB", "duration": "2s" }),
            None,
        ),
        "strace" => (json!({ "file": "recording" }), Some(STRACE)),
        other => panic!("say what a small `{other}` is"),
    };
    (keys(value), text)
}

#[test]
fn every_program_ends_and_a_seed_repeats_it() {
    for entry in REGISTRY {
        let (keys, text) = small(entry.name);
        let run = |seed| {
            let mut plain = PlainHost::default();
            plain
                .run(entry.name, &keys, text, seed)
                .unwrap_or_else(|error| panic!("{}: {error}", entry.name));
            plain
        };
        let (one, again) = (run(1), run(1));
        assert!(!one.calls.is_empty(), "{}", entry.name);
        assert_eq!(one.calls, again.calls, "{}", entry.name);
        assert_eq!(one.report, again.report, "{}", entry.name);
        assert!(
            one.report
                .figures
                .iter()
                .all(|(_, value)| value.is_finite()),
            "{}",
            entry.name
        );
    }
}

#[test]
fn every_program_refuses_an_unknown_key() {
    for entry in REGISTRY {
        let (mut keys, text) = small(entry.name);
        keys.insert("no_such_key".into(), Value::Bool(true));
        let Err(error) = ProgramKind::recipe(entry, &keys, text) else {
            panic!("{}", entry.name)
        };
        assert!(
            error.to_string().contains("no_such_key"),
            "{}: {error}",
            entry.name
        );
    }
}
