//! Bonnie: one large file by characters, in blocks, and at random places.
//!
//! T. Bray, Bonnie (1988 to 1996; `textuality.com/bonnie`), and R. Coker's bonnie++ 2.00. The calls
//! were taken from the `strace` of bonnie++.

mod report;
mod seekers;

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
use seekers::Seekers;
use serde::{Deserialize, Serialize};

const SIZE_MAX: u64 = 1 << 44;
const CHUNK_MAX: u64 = 1 << 30;
const SEEKERS_MAX: u32 = 1000;
/// The only descriptor of the parent and of each seeker.
const FD: Fd = Fd(0);

/// Keys of Bonnie. Defaults depend on the flavour.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// `bonnie` (Bray, 1996) or `bonnie++` (2.00). Default `bonnie`.
    #[serde(default)]
    pub flavour: Flavour,
    /// Path of the file. Default `Bonnie`.
    #[serde(default = "path")]
    pub path: String,
    /// Length of the file, rounded down to whole chunks. Default 100MiB, as in Bray's program.
    #[serde(default = "size")]
    pub size: Bytes,
    /// Length of a block. Default 16KiB with Bonnie, 8KiB with bonnie++.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chunk: Option<Bytes>,
    /// Phases to run, in the order of the flavour. Default: all phases. If the first phase does not
    /// write the file, the file exists before the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phases: Option<Vec<Phase>>,
    /// Number of seeking processes. Default 3 with Bonnie, 5 with bonnie++.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seekers: Option<u32>,
    /// Number of seeks of all processes together. Default 4000 with Bonnie, 8192 with bonnie++.
    /// Each process writes back every tenth chunk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seeks: Option<u64>,
    /// Buffer of a stream of the C library, for characters. Default 4KiB.
    #[serde(default = "buffer")]
    pub stdio: Bytes,
    /// CPU time of `putc` or `getc` for each character. Default 20ns (assumed; 50 MB/s).
    #[serde(default = "character")]
    pub cpu_character: Duration,
    /// CPU time for each chunk outside the character phases. Default 0 (assumed).
    #[serde(default)]
    pub cpu_chunk: Duration,
}

/// Version of Bonnie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Flavour {
    /// Tim Bray's version of 1996.
    #[default]
    #[serde(rename = "bonnie")]
    Bonnie,
    /// Russell Coker's version 2.00, with `fsync` before each close.
    #[serde(rename = "bonnie++")]
    PlusPlus,
}

/// A phase of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Writes a new file by characters.
    Putc,
    /// Writes a new file in chunks.
    Write,
    /// Reads each chunk and writes it back.
    Rewrite,
    /// Reads by characters.
    Getc,
    /// Reads in chunks.
    Read,
    /// Reads chunks at random places.
    Seek,
}

impl Phase {
    /// All phases, in the order of reports.
    const ALL: [Phase; 6] = [
        Phase::Putc,
        Phase::Write,
        Phase::Rewrite,
        Phase::Getc,
        Phase::Read,
        Phase::Seek,
    ];

    /// True if the phase begins with a new file.
    fn makes(self) -> bool {
        matches!(self, Phase::Putc | Phase::Write)
    }
}

fn path() -> String {
    "Bonnie".into()
}

fn size() -> Bytes {
    // The default of Bray's `-s`.
    Bytes(100 << 20)
}

fn buffer() -> Bytes {
    Bytes(4096)
}

fn character() -> Duration {
    Duration::from_nanos(20)
}

pub(crate) const ENTRY: PolicyEntry<ProgramKind> = PolicyEntry {
    name: "bonnie",
    summary: "Bonnie: a large file by characters, in blocks, rewritten, and at random places",
    schema: schema_of::<Config>,
    build: ProgramKind {
        file: None,
        read: read_recipe,
        example: "size = \"1GiB\"\nphases = [\"write\", \"read\"]",
    },
};

fn read_recipe(keys: &Keys, _: Option<&str>) -> Result<Box<dyn Recipe>, ProgramError> {
    Ok(Box::new(BonniePlan::of(read(keys)?)?))
}

/// The checked configuration.
#[derive(Clone, Debug)]
struct BonniePlan {
    flavour: Flavour,
    path: String,
    size: u64,
    chunk: u64,
    phases: Vec<Phase>,
    seekers: u32,
    seeks: u64,
    stdio: u64,
    cpu_character: Duration,
    cpu_chunk: Duration,
}

/// Returns `found` if it is from `low` to `high`, otherwise an error.
fn bounded(key: &str, found: u64, low: u64, high: u64) -> Result<u64, ConfigError> {
    if (low..=high).contains(&found) {
        return Ok(found);
    }
    Err(ConfigError::new(
        key,
        format!("found {found}; expected {low} to {high}"),
    ))
}

impl BonniePlan {
    fn of(config: Config) -> Result<BonniePlan, ConfigError> {
        let (order, chunk, seekers, seeks) = match config.flavour {
            Flavour::Bonnie => {
                let order = [
                    Phase::Putc,
                    Phase::Rewrite,
                    Phase::Write,
                    Phase::Getc,
                    Phase::Read,
                    Phase::Seek,
                ];
                // Bray's constants: `Chunk` 16384, `SeekProcCount` 3, `Seeks` 4000 (Bonnie.c,
                // 1996).
                (order, 16 << 10, 3, 4000)
            }
            // Constants of bonnie++ 2.00: chunks of 8 KiB, 5 seekers, 8192 seeks.
            Flavour::PlusPlus => (Phase::ALL, 8 << 10, 5, 8192),
        };
        let chunk = bounded(
            "chunk",
            config.chunk.map_or(chunk, |chunk| chunk.0),
            1,
            CHUNK_MAX,
        )?;
        let size = bounded("size", config.size.0, chunk, SIZE_MAX)?;
        let wanted = config.phases.unwrap_or_else(|| order.to_vec());
        let phases: Vec<Phase> = order
            .into_iter()
            .filter(|phase| wanted.contains(phase))
            .collect();
        if phases.is_empty() {
            return Err(ConfigError::new(
                "phases",
                "found none; expected at least one",
            ));
        }
        let seekers = config.seekers.unwrap_or(seekers);
        Ok(BonniePlan {
            flavour: config.flavour,
            path: config.path,
            // A part of a chunk at the end would be a write of another size. Bonnie writes whole
            // chunks only.
            size: size - size % chunk,
            chunk,
            phases,
            seekers: bounded("seekers", seekers.into(), 1, SEEKERS_MAX.into())? as u32,
            seeks: bounded("seeks", config.seeks.unwrap_or(seeks), 1, 1_000_000_000)?,
            stdio: bounded("stdio", config.stdio.0, 1, 1 << 20)?,
            cpu_character: config.cpu_character,
            cpu_chunk: config.cpu_chunk,
        })
    }
}

impl Recipe for BonniePlan {
    fn program(&self, seed: Seed) -> Box<dyn Program> {
        Box::new(Bonnie {
            plan: self.clone(),
            phase: 0,
            stage: PhaseStage::Remove,
            there: !self.phases[0].makes(),
            done: 0,
            step: 0,
            began: Time::ZERO,
            results: Vec::new(),
            computed: Duration::ZERO,
            seekers: Seekers::new(self, seed),
        })
    }
}

/// Stage of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PhaseStage {
    Remove,
    Open,
    Begin,
    Work,
    Fsync,
    Close,
    Closed,
    /// The seekers have opened the file; the parent sleeps before it starts them.
    Pause,
    Go,
    Seeks,
    /// All phases are over, and the file is removed.
    Clear,
}

/// Result of a phase.
#[derive(Clone, Copy, Debug)]
struct PhaseResult {
    phase: Phase,
    /// Number of bytes, or of seeks.
    done: u64,
    took: Duration,
    computed: Duration,
}

struct Bonnie {
    plan: BonniePlan,
    /// Index of the present phase, and its stage.
    phase: usize,
    stage: PhaseStage,
    /// True if the file exists.
    there: bool,
    /// Number of bytes done in the phase.
    done: u64,
    /// Index of the next call for a chunk.
    step: u8,
    began: Time,
    computed: Duration,
    results: Vec<PhaseResult>,
    seekers: Seekers,
}

/// Next action of the parent, without the path.
enum ParentAction {
    Open,
    Remove,
    Call(Call<'static>),
    Compute(Duration),
    /// Goes on, to have waiting seekers asked again.
    Tickets,
    Wait,
    End,
}

impl Program for Bonnie {
    fn processes(&self) -> u32 {
        1 + if self.plan.phases.contains(&Phase::Seek) {
            self.plan.seekers
        } else {
            0
        }
    }

    fn laid_out(&self) -> Vec<InitialFile> {
        let there = !self.plan.phases[0].makes();
        let laid = InitialFile {
            path: self.plan.path.clone(),
            bytes: Some(Bytes(self.plan.size)),
            unwritten: false,
        };
        there.then_some(laid).into_iter().collect()
    }

    fn next(&mut self, turn: ProgramTurn<'_>) -> ProgramAction<'_> {
        if let Some(Err(error)) = turn.answer.map(|answer| &answer.result) {
            return ProgramAction::Fail(SourceError(format!(
                "process {}, at `{}`: {error}",
                turn.process, self.plan.path
            )));
        }
        if turn.process > 0 {
            return self.seekers.next(&self.plan, turn);
        }
        let given = turn
            .answer
            .and_then(|answer| answer.result.as_ref().ok().copied());
        let next = loop {
            match self.go_on(turn.now, given) {
                None | Some(ParentAction::Compute(Duration::ZERO)) => {}
                Some(next) => break next,
            }
        };
        let path = &self.plan.path;
        match next {
            ParentAction::Open => {
                let makes = self.plan.phases[self.phase].makes();
                ProgramAction::Call(Call::Open {
                    path,
                    fd: FD,
                    how: OpenFlags {
                        create: makes,
                        exclusive: makes,
                        ..OpenFlags::WRITE
                    },
                })
            }
            ParentAction::Remove => ProgramAction::Call(Call::Remove { path }),
            ParentAction::Call(call) => ProgramAction::Call(call),
            ParentAction::Compute(time) => {
                self.computed = self.computed.saturating_add(time);
                ProgramAction::Compute(time)
            }
            ParentAction::Tickets => ProgramAction::Compute(Duration::ZERO),
            ParentAction::Wait => ProgramAction::Wait,
            ParentAction::End => ProgramAction::End,
        }
    }

    fn report(&self) -> ProgramReport {
        report::of(&self.plan, &self.results)
    }
}

impl Bonnie {
    /// Returns the parent's next move, or `None` between stages.
    fn go_on(&mut self, now: Time, given: Option<u64>) -> Option<ParentAction> {
        let (stage, next) = match self.stage {
            PhaseStage::Remove => match self.plan.phases.get(self.phase) {
                None => (PhaseStage::Clear, None),
                Some(Phase::Seek) => (PhaseStage::Pause, None),
                // A phase that makes the file removes the file of an earlier phase, so that its
                // writes allocate.
                Some(phase) if phase.makes() && std::mem::take(&mut self.there) => {
                    (PhaseStage::Open, Some(ParentAction::Remove))
                }
                Some(_) => (PhaseStage::Open, None),
            },
            PhaseStage::Open => (PhaseStage::Begin, Some(ParentAction::Open)),
            PhaseStage::Begin => {
                (self.there, self.began, self.done, self.step) = (true, now, 0, 0);
                self.computed = Duration::ZERO;
                (PhaseStage::Work, None)
            }
            PhaseStage::Work => {
                let next = self.work(given);
                let over = next.is_none();
                (
                    if over {
                        PhaseStage::Fsync
                    } else {
                        PhaseStage::Work
                    },
                    next,
                )
            }
            PhaseStage::Fsync => {
                let fsync = self.plan.flavour == Flavour::PlusPlus;
                (
                    PhaseStage::Close,
                    fsync.then_some(ParentAction::Call(Call::Fsync { fd: FD })),
                )
            }
            PhaseStage::Close => (
                PhaseStage::Closed,
                Some(ParentAction::Call(Call::Close { fd: FD })),
            ),
            PhaseStage::Closed => {
                self.end_phase(now);
                (PhaseStage::Remove, None)
            }
            PhaseStage::Pause => {
                self.seekers.open();
                (PhaseStage::Go, Some(ParentAction::Compute(self.pause())))
            }
            PhaseStage::Go => {
                self.seekers.go();
                (PhaseStage::Seeks, Some(ParentAction::Tickets))
            }
            PhaseStage::Seeks => match self.seekers.result() {
                Some(outcome) => {
                    self.results.push(outcome);
                    self.phase += 1;
                    (PhaseStage::Remove, None)
                }
                None => (PhaseStage::Seeks, Some(ParentAction::Wait)),
            },
            PhaseStage::Clear => {
                let next = if std::mem::take(&mut self.there) {
                    ParentAction::Remove
                } else {
                    ParentAction::End
                };
                (PhaseStage::Clear, Some(next))
            }
        };
        self.stage = stage;
        next
    }

    /// Records the result of the phase at its end.
    fn end_phase(&mut self, now: Time) {
        assert!(
            self.began <= now && self.results.len() < self.plan.phases.len(),
            "a phase that began at {:?} ends at {now:?}; {} have ended",
            self.began,
            self.results.len()
        );
        self.results.push(PhaseResult {
            phase: self.plan.phases[self.phase],
            done: self.done,
            took: now.saturating_since(self.began),
            computed: self.computed,
        });
        self.phase += 1;
    }

    /// Returns the sleep before the parent sends the tickets: 5 s with Bonnie, 3 s with bonnie++.
    fn pause(&self) -> Duration {
        Duration::from_secs(match self.plan.flavour {
            Flavour::Bonnie => 5,
            Flavour::PlusPlus => 3,
        })
    }

    /// Returns the next move within a phase, or `None` at its end.
    fn work(&mut self, given: Option<u64>) -> Option<ParentAction> {
        let phase = self.plan.phases[self.phase];
        // Bray's read loops end at the end of the file, Coker's by count.
        let ends = self.plan.flavour == Flavour::PlusPlus
            || matches!(phase, Phase::Putc | Phase::Write | Phase::Getc);
        let block = if matches!(phase, Phase::Putc | Phase::Getc) {
            self.plan.stdio
        } else {
            self.plan.chunk
        };
        let bytes = block.min(self.plan.size - self.done.min(self.plan.size));
        let read = ParentAction::Call(Call::Read {
            fd: FD,
            at: None,
            bytes: block,
        });
        let write = ParentAction::Call(Call::Write {
            fd: FD,
            at: None,
            bytes,
        });
        let characters = ParentAction::Compute(Duration::from_nanos(
            // The product of two user values may exceed the range.
            self.plan.cpu_character.as_nanos().saturating_mul(bytes),
        ));
        let chunk = ParentAction::Compute(self.plan.cpu_chunk);
        let step = self.step;
        self.step += 1;
        let last = match (phase, step) {
            (_, 0) if ends && bytes == 0 => return None,
            (Phase::Putc, 0) => return Some(characters),
            (Phase::Write, 0) => return Some(chunk),
            (Phase::Putc | Phase::Write, _) => write,
            (Phase::Getc | Phase::Read | Phase::Rewrite, 0) => return Some(read),
            (Phase::Read | Phase::Rewrite, 1) if given == Some(0) => return None,
            (Phase::Getc, _) => characters,
            (Phase::Read, _) => chunk,
            (Phase::Rewrite, 1) => return Some(chunk),
            (Phase::Rewrite, 2) => {
                return Some(ParentAction::Call(Call::Seek {
                    fd: FD,
                    to: self.done,
                }));
            }
            (Phase::Rewrite, _) => write,
            (Phase::Seek, _) => return None,
        };
        self.step = 0;
        self.done += bytes;
        Some(last)
    }
}

#[cfg(test)]
mod tests;
