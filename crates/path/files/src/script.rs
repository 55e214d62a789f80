//! A list of file operations as text, and its execution on a file system.
//!
//! ```text
//! # an operation a line
//! mkdir mail
//! create mail/a 64KiB      # open, write, close
//! append mail/a 8KiB       # open, write at the end, close
//! open mail/b              # creates it; stays open until close
//! repeat 10                # {n} is 0 to 9
//!   append mail/b 4KiB
//!   create mail/c{n} 12KiB
//! end
//! close mail/b
//! write mail/a 4KiB 4KiB   # offset, length
//! read mail/a              # all of it, or: read mail/a 4KiB 8KiB
//! truncate mail/a 10KiB
//! sleep 100ms
//! rename mail/a mail/d
//! fsync mail/d
//! delete mail/c3           # a file or an empty directory
//! sync
//! ```

mod player;

pub use player::{FailedOperation, ScriptPlayer, ScriptTally};

use fullstroke_contract::{Reason, reason};
use fullstroke_units::{Duration, parse_bytes, parse_duration};
use std::fmt;

/// Largest number of operations of a script after its loops are expanded.
const STEPS_MAX: usize = 2_000_000;
/// Largest depth of nested loops.
const DEPTH_MAX: usize = 8;

/// One operation. Paths begin at the root, with or without `/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScriptStep {
    /// Makes a directory.
    MakeDirectory(String),
    /// Makes a file, writes the given number of bytes, and closes the file.
    Create(String, u64),
    /// Appends the given number of bytes to a file. Closes the file unless `Open` opened it.
    Append(String, u64),
    /// Writes bytes: path, offset, length.
    Write(String, u64, u64),
    /// Reads bytes up to the end of the file: path, offset, length.
    Read(String, u64, u64),
    /// Sets the length of a file in bytes.
    Truncate(String, u64),
    /// Opens a file for writing. Creates the file if it does not exist.
    Open(String),
    /// Closes a file that `Open` opened.
    Close(String),
    /// Removes a file or an empty directory.
    Delete(String),
    /// Renames a file or directory: old path, new path.
    Rename(String, String),
    /// Makes one file durable.
    Fsync(String),
    /// Makes everything durable.
    Sync,
    /// Waits for the given time.
    Sleep(Duration),
}

/// A parsed script.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    steps: Vec<(u32, ScriptStep)>,
}

/// Syntax error in a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptError {
    /// Line number, from 1.
    pub line: u32,
    /// Message with the found text and the expected text.
    pub message: String,
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for ScriptError {}

const KNOWN: &[&str] = &[
    "mkdir", "create", "append", "write", "read", "truncate", "open", "close", "delete", "rename",
    "fsync", "sync", "sleep", "repeat", "end",
];

/// Number of a line, and its words without the comment.
type Line<'a> = (u32, Vec<&'a str>);

impl Script {
    /// Parses a script.
    pub fn parse(text: &str) -> Result<Script, ScriptError> {
        let numbered = text.lines().enumerate();
        let words = numbered.map(|(at, line)| {
            let line = line.split('#').next().unwrap_or_default();
            (at as u32 + 1, line.split_whitespace().collect::<Vec<_>>())
        });
        let lines: Vec<Line<'_>> = words.filter(|(_, words)| !words.is_empty()).collect();
        let mut script = Script::default();
        script.read(&lines, &mut Vec::new())?;
        Ok(script)
    }

    /// Returns the operations with expanded loops. Each operation has the number of its line.
    pub fn steps(&self) -> &[(u32, ScriptStep)] {
        &self.steps
    }

    fn read(&mut self, lines: &[Line<'_>], counters: &mut Vec<u64>) -> Result<(), ScriptError> {
        let mut at = 0;
        while let Some((line, words)) = lines.get(at) {
            let error = |reason: Reason| ScriptError {
                line: *line,
                message: reason.into(),
            };
            at += 1;
            match words[0] {
                "repeat" => {
                    let times = count(words).map_err(error)?;
                    let end = matching_end(&lines[at..])
                        .ok_or_else(|| error("`repeat` has no `end`".into()))?;
                    if counters.len() == DEPTH_MAX {
                        return Err(error(reason!(
                            "loops are nested more than {DEPTH_MAX} deep"
                        )));
                    }
                    let body = &lines[at..at + end];
                    // An empty loop does nothing, so a huge number of iterations must not cost
                    // time.
                    for n in 0..if body.is_empty() { 0 } else { times } {
                        counters.push(n);
                        let before = self.steps.len();
                        self.read(body, counters)?;
                        counters.pop();
                        if self.steps.len() == before {
                            break;
                        }
                    }
                    at += end + 1;
                }
                "end" => return Err(error("`end` without a `repeat`".into())),
                _ => {
                    if self.steps.len() == STEPS_MAX {
                        return Err(error(reason!(
                            "the script has more than {STEPS_MAX} operations after its loops are expanded"
                        )));
                    }
                    self.steps
                        .push((*line, operation(words, counters).map_err(error)?));
                }
            }
        }
        Ok(())
    }
}

/// Returns the number of iterations of a loop.
fn count(words: &[&str]) -> Result<u64, Reason> {
    let [_, times] = words else {
        return Err(reason!(
            "expected `repeat TIMES`, found `{}`",
            words.join(" ")
        ));
    };
    times
        .parse()
        .map_err(|_| reason!("found `{times}`; expected a whole number of iterations"))
}

/// Returns the index of the `end` of the loop whose body begins at the first line.
fn matching_end(lines: &[Line<'_>]) -> Option<usize> {
    let mut depth = 0;
    lines.iter().position(|(_, words)| {
        match words[0] {
            "repeat" => depth += 1,
            "end" if depth == 0 => return true,
            "end" => depth -= 1,
            _ => {}
        }
        false
    })
}

fn operation(words: &[&str], counters: &[u64]) -> Result<ScriptStep, Reason> {
    let path = |text: &str| match counters.last() {
        Some(n) => text.replace("{n}", &n.to_string()),
        None => text.to_owned(),
    };
    let bytes = |text: &str| parse_bytes(text).map_err(|error| Reason::new(error.to_string()));
    Ok(match *words {
        ["mkdir", at] => ScriptStep::MakeDirectory(path(at)),
        ["create", at] => ScriptStep::Create(path(at), 0),
        ["create", at, length] => ScriptStep::Create(path(at), bytes(length)?),
        ["append", at, length] => ScriptStep::Append(path(at), bytes(length)?),
        ["write", at, offset, length] => {
            ScriptStep::Write(path(at), bytes(offset)?, bytes(length)?)
        }
        ["read", at] => ScriptStep::Read(path(at), 0, u64::MAX),
        ["read", at, offset, length] => ScriptStep::Read(path(at), bytes(offset)?, bytes(length)?),
        ["truncate", at, length] => ScriptStep::Truncate(path(at), bytes(length)?),
        ["open", at] => ScriptStep::Open(path(at)),
        ["close", at] => ScriptStep::Close(path(at)),
        ["delete", at] => ScriptStep::Delete(path(at)),
        ["rename", from, to] => ScriptStep::Rename(path(from), path(to)),
        ["fsync", at] => ScriptStep::Fsync(path(at)),
        ["sync"] => ScriptStep::Sync,
        ["sleep", time] => {
            ScriptStep::Sleep(parse_duration(time).map_err(|error| Reason::new(error.to_string()))?)
        }
        _ => return Err(unknown(words)),
    })
}

fn unknown(words: &[&str]) -> Reason {
    let usage = match words[0] {
        "mkdir" => "mkdir PATH",
        "create" => "create PATH [SIZE]",
        "append" => "append PATH SIZE",
        "write" => "write PATH OFFSET SIZE",
        "read" => "read PATH [OFFSET SIZE]",
        "truncate" => "truncate PATH SIZE",
        "open" => "open PATH",
        "close" => "close PATH",
        "delete" => "delete PATH",
        "rename" => "rename FROM TO",
        "fsync" => "fsync PATH",
        "sync" => "sync",
        "sleep" => "sleep TIME",
        other => {
            let near = fullstroke_contract::registry::nearest(other, KNOWN);
            return reason!(
                "there is no operation `{other}`{near}; known: {}",
                KNOWN.join(", ")
            );
        }
    };
    reason!("found `{}`; expected `{usage}`", words.join(" "))
}

#[cfg(test)]
mod tests;
