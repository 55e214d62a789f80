//! A comparison of two files.
//!
//! GNU diffutils read in two ways. `cmp` reads a buffer of each file in turn. `diff` does the same
//! for binary files, and if only a difference is asked for (`diff -q`). For text, `diff` reads one
//! file completely and then the other (`strace` of diffutils 3.8; `slurp` in `io.c`).

use crate::call::{Call, Fd, OpenFlags};
use crate::program::{
    InitialFile, Program, ProgramAction, ProgramError, ProgramKind, ProgramReport, ProgramTurn,
    Recipe,
};
use fullstroke_contract::ConfigError;
use fullstroke_contract::SourceError;
use fullstroke_contract::registry::{Keys, PolicyEntry, read, schema_of};
use fullstroke_units::{Bytes, Duration, Seed, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const SIZE_MAX: u64 = 1 << 44;
const BUFFER_MAX: u64 = 1 << 30;

/// A comparison of two equal files. The files exist before the run.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Length of each file. Default 512MiB.
    #[serde(default = "size")]
    pub size: Bytes,
    /// Paths of the two files. Default `a` and `b`.
    #[serde(default = "files")]
    pub files: [String; 2],
    /// Order of the reads. Default `alternately`.
    #[serde(default)]
    pub reads: ReadOrder,
    /// Length of one read call for `alternately`: `st_blksize`. Default 4KiB. With `whole`, one
    /// call reads a whole file.
    #[serde(default = "buffer")]
    pub buffer: Bytes,
    /// CPU time for the comparison of one KiB of both files. Default 0 (assumed).
    #[serde(default)]
    pub cpu_kib: Duration,
}

/// Order of reads of two files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Reads")]
pub enum ReadOrder {
    /// A buffer of each file in turn: `cmp`, `diff -q`.
    #[default]
    Alternately,
    /// One whole file, then the other: `diff` of text.
    Whole,
}

fn size() -> Bytes {
    Bytes(512 << 20)
}

fn files() -> [String; 2] {
    ["a".into(), "b".into()]
}

fn buffer() -> Bytes {
    // GNU diff reads by the block size of the file (`st_blksize`), 4 KiB on ext4.
    Bytes(4096)
}

pub(crate) const ENTRY: PolicyEntry<ProgramKind> = PolicyEntry {
    name: "diff",
    summary: "two files compared, read in turn",
    schema: schema_of::<Config>,
    build: ProgramKind {
        file: None,
        read: read_recipe,
        example: "size = \"512MiB\"",
    },
};

fn read_recipe(keys: &Keys, _: Option<&str>) -> Result<Box<dyn Recipe>, ProgramError> {
    let config: Config = read(keys)?;
    for (key, found, high) in [
        ("size", config.size.0, SIZE_MAX),
        ("buffer", config.buffer.0, BUFFER_MAX),
    ] {
        if !(1..=high).contains(&found) {
            return Err(ConfigError::new(
                key,
                format!("found {found}; expected 1 to {high} bytes"),
            )
            .into());
        }
    }
    if config.files[0] == config.files[1] {
        let message = format!("found `{}` twice; expected two files", config.files[0]);
        return Err(ConfigError::new("files", message).into());
    }
    Ok(Box::new(config))
}

impl Recipe for Config {
    fn program(&self, _: Seed) -> Box<dyn Program> {
        let block = if self.reads == ReadOrder::Whole {
            self.size.0
        } else {
            self.buffer.0
        };
        Box::new(Diff {
            config: self.clone(),
            block,
            step: DiffStep::Open(0),
            compared: 0,
            now: Time::ZERO,
        })
    }
}

/// Next step; the field is the file.
#[derive(Clone, Copy, Debug)]
enum DiffStep {
    Open(usize),
    Read(usize),
    /// Reads again to fill the rest of the buffer, because a short read does not prove the end of
    /// the file.
    Rest(usize),
    Compare,
    Close(usize),
    End,
}

struct Diff {
    config: Config,
    block: u64,
    step: DiffStep,
    compared: u64,
    now: Time,
}

impl Diff {
    /// Compares a number of bytes of both files and returns the necessary time.
    fn compare(&mut self, bytes: u64) -> Duration {
        assert!(
            self.compared + bytes <= self.config.size.0,
            "{bytes} bytes are compared at {} of {}",
            self.compared,
            self.config.size.0
        );
        self.compared += bytes;
        // A buffer that was not filled is the last. A whole file is complete after its only read.
        let over = bytes < self.block || self.config.reads == ReadOrder::Whole;
        self.step = if over {
            DiffStep::Close(0)
        } else {
            DiffStep::Read(0)
        };
        // In 128 bits, because time times bytes of a whole file may exceed 64 bits.
        let nanoseconds = u128::from(self.config.cpu_kib.as_nanos()) * u128::from(bytes) / 1024;
        // A time beyond the range ends the run in any case.
        Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
    }
}

impl Program for Diff {
    fn laid_out(&self) -> Vec<InitialFile> {
        let laid = |path: &String| InitialFile {
            path: path.clone(),
            bytes: Some(self.config.size),
            unwritten: false,
        };
        self.config.files.iter().map(laid).collect()
    }

    fn next(&mut self, turn: ProgramTurn<'_>) -> ProgramAction<'_> {
        if let Some(Err(error)) = turn.answer.map(|answer| &answer.result) {
            return ProgramAction::Fail(SourceError(format!(
                "comparing `{}` with `{}`: {error}",
                self.config.files[0], self.config.files[1]
            )));
        }
        self.now = turn.now;
        let fd = |file: usize| Fd(file as u32);
        loop {
            let bytes = self.block.min(self.config.size.0 - self.compared);
            let (step, next) = match self.step {
                DiffStep::Open(file) => {
                    let open = Call::Open {
                        path: &self.config.files[file],
                        fd: fd(file),
                        how: OpenFlags::READ,
                    };
                    (
                        if file == 0 {
                            DiffStep::Open(1)
                        } else {
                            DiffStep::Read(0)
                        },
                        ProgramAction::Call(open),
                    )
                }
                DiffStep::Read(file) => {
                    let read = Call::Read {
                        fd: fd(file),
                        at: None,
                        bytes: self.block,
                    };
                    (
                        if bytes < self.block {
                            DiffStep::Rest(file)
                        } else {
                            behind(file)
                        },
                        ProgramAction::Call(read),
                    )
                }
                DiffStep::Rest(file) => {
                    let read = Call::Read {
                        fd: fd(file),
                        at: None,
                        bytes: self.block - bytes,
                    };
                    (behind(file), ProgramAction::Call(read))
                }
                DiffStep::Compare => match self.compare(bytes) {
                    Duration::ZERO => continue,
                    time => (self.step, ProgramAction::Compute(time)),
                },
                DiffStep::Close(file) => {
                    let close = Call::Close { fd: fd(file) };
                    (
                        if file == 0 {
                            DiffStep::Close(1)
                        } else {
                            DiffStep::End
                        },
                        ProgramAction::Call(close),
                    )
                }
                DiffStep::End => (DiffStep::End, ProgramAction::End),
            };
            self.step = step;
            return next;
        }
    }

    fn report(&self) -> ProgramReport {
        let seconds = self.now.as_secs_f64();
        let mut figures = vec![("elapsed_s", seconds)];
        if seconds > 0.0 {
            figures.push(("mb_per_s", 2.0 * self.compared as f64 / 1e6 / seconds));
        }
        let [one, other] = &self.config.files;
        let text = format!(
            "{one} and {other}: {} bytes compared in {seconds:.3} s\n",
            self.compared
        );
        ProgramReport {
            figures,
            text,
            notes: Vec::new(),
        }
    }
}

/// Returns the step after the read of a file.
fn behind(file: usize) -> DiffStep {
    if file == 0 {
        DiffStep::Read(1)
    } else {
        DiffStep::Compare
    }
}

#[cfg(test)]
mod tests {
    use crate::conformance::{PlainHost, keys};
    use serde_json::{Value, json};

    fn run(value: Value) -> Result<PlainHost, String> {
        let mut plain = PlainHost::default();
        plain.run("diff", &keys(value), None, 1)?;
        Ok(plain)
    }

    fn reads(plain: &PlainHost) -> Vec<&str> {
        let calls = plain.calls.iter().map(|call| call.1.as_str());
        calls
            .filter(|call| call.starts_with("Read"))
            .map(|call| &call[11..16])
            .collect()
    }

    #[test]
    fn files_are_read_in_turn_to_their_ends() {
        let plain = run(json!({ "size": 10_000 })).unwrap();
        assert_eq!(plain.read, 20_000);
        // Same as `cmp` under strace: the last buffer is read once more.
        let expected = [
            "Fd(0)", "Fd(1)", "Fd(0)", "Fd(1)", "Fd(0)", "Fd(0)", "Fd(1)", "Fd(1)",
        ];
        assert_eq!(reads(&plain), expected);
        assert!(
            plain
                .report
                .figures
                .iter()
                .any(|figure| figure.0 == "mb_per_s" && figure.1 > 0.0)
        );
    }

    #[test]
    fn text_is_read_whole_one_file_after_the_other() {
        let plain = run(json!({ "size": "1MiB", "reads": "whole", "cpu_kib": "1us" })).unwrap();
        assert_eq!(reads(&plain), ["Fd(0)", "Fd(1)"]);
        assert_eq!(
            (plain.read, plain.computed.as_nanos()),
            (2 << 20, 1_024_000)
        );
    }

    #[test]
    fn keys_that_cannot_be_are_named() {
        for (value, key) in [
            (json!({ "size": 0 }), "size"),
            (json!({ "buffer": "2GiB" }), "buffer"),
            (json!({ "files": ["x", "x"] }), "files"),
        ] {
            let error = run(value).err().expect(key);
            assert!(error.contains(&format!("`{key}`")), "{key}: {error}");
        }
    }
}
