//! Bonnie: one large file, character by character, in blocks, and here and there.
//!
//! T. Bray, Bonnie (1988 to 1996; `textuality.com/bonnie`), and R. Coker's bonnie++ 2.00,
//! whose calls were taken from its `strace`.

mod report;
mod seekers;

use crate::call::{Call, Fd, How};
use crate::program::{Kind, Laid, Next, Program, ProgramError, Recipe, Report, Turn};
use fullstroke_contract::ConfigError;
use fullstroke_contract::SourceError;
use fullstroke_contract::registry::{Entry, Keys, read, schema_of};
use fullstroke_units::{Bytes, Duration, Seed, Time};
use schemars::JsonSchema;
use seekers::Seekers;
use serde::{Deserialize, Serialize};

const SIZE_MAX: u64 = 1 << 44;
const CHUNK_MAX: u64 = 1 << 30;
const SEEKERS_MAX: u32 = 1000;
/// The parent's only file, and that of each seeker.
const FD: Fd = Fd(0);

/// Bonnie. What is not said is as its flavour has it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// `bonnie` (Bray, 1996) or `bonnie++` (2.00).
    #[serde(default)]
    pub flavour: Flavour,
    /// The file. `Bonnie` unless said.
    #[serde(default = "path")]
    pub path: String,
    /// Its length, rounded down to whole chunks: 100MiB unless said, as Bray has it.
    #[serde(default = "size")]
    pub size: Bytes,
    /// A block: 16KiB with Bonnie, 8KiB with bonnie++.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chunk: Option<Bytes>,
    /// The phases to be run; all unless said. The flavour gives their order. A file that
    /// no phase before has written is laid out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phases: Option<Vec<Phase>>,
    /// Processes that seek: 3 with Bonnie, 5 with bonnie++.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seekers: Option<u32>,
    /// Seeks of all of them together: 4000 with Bonnie, 8192 with bonnie++. Every tenth
    /// of each process writes its chunk back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seeks: Option<u64>,
    /// The buffer of a stream of the C library, for characters: 4KiB unless said.
    #[serde(default = "buffer")]
    pub stdio: Bytes,
    /// CPU time of `putc` or `getc` for each character: 20ns unless said, which is
    /// assumed (50 MB/s).
    #[serde(default = "character")]
    pub cpu_character: Duration,
    /// CPU time for each chunk that is read or written otherwise: none unless said,
    /// which is assumed.
    #[serde(default)]
    pub cpu_chunk: Duration,
}

/// Whose Bonnie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Flavour {
    /// Tim Bray's, of 1996.
    #[default]
    #[serde(rename = "bonnie")]
    Bonnie,
    /// Russell Coker's, 2.00: `fsync` before each close.
    #[serde(rename = "bonnie++")]
    PlusPlus,
}

/// What Bonnie measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// A new file, character by character.
    Putc,
    /// A new file in chunks.
    Write,
    /// Each chunk read and written back.
    Rewrite,
    /// Character by character.
    Getc,
    /// In chunks.
    Read,
    /// Chunks here and there.
    Seek,
}

impl Phase {
    /// All, in the order of reports.
    const ALL: [Phase; 6] = [
        Phase::Putc,
        Phase::Write,
        Phase::Rewrite,
        Phase::Getc,
        Phase::Read,
        Phase::Seek,
    ];

    /// Whether it begins with a new file.
    fn makes(self) -> bool {
        matches!(self, Phase::Putc | Phase::Write)
    }
}

fn path() -> String {
    "Bonnie".into()
}

fn size() -> Bytes {
    Bytes(100 << 20)
}

fn buffer() -> Bytes {
    Bytes(4096)
}

fn character() -> Duration {
    Duration::from_nanos(20)
}

pub(crate) const ENTRY: Entry<Kind> = Entry {
    name: "bonnie",
    summary: "Bonnie: a large file by characters, in blocks, rewritten, and at random places",
    schema: schema_of::<Config>,
    build: Kind {
        file: None,
        read: read_recipe,
        example: "size = \"1GiB\"\nphases = [\"write\", \"read\"]",
    },
};

fn read_recipe(keys: &Keys, _: Option<&str>) -> Result<Box<dyn Recipe>, ProgramError> {
    Ok(Box::new(Plan::of(read(keys)?)?))
}

/// What is done.
#[derive(Clone, Debug)]
struct Plan {
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

/// Whether a number is within bounds.
fn bounded(key: &str, found: u64, low: u64, high: u64) -> Result<u64, ConfigError> {
    if (low..=high).contains(&found) {
        return Ok(found);
    }
    Err(ConfigError::new(
        key,
        format!("found {found}; expected {low} to {high}"),
    ))
}

impl Plan {
    fn of(config: Config) -> Result<Plan, ConfigError> {
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
                (order, 16 << 10, 3, 4000)
            }
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
        Ok(Plan {
            flavour: config.flavour,
            path: config.path,
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

impl Recipe for Plan {
    fn program(&self, seed: Seed) -> Box<dyn Program> {
        Box::new(Bonnie {
            plan: self.clone(),
            phase: 0,
            stage: Stage::Remove,
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

/// Where a phase is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Remove,
    Open,
    Begin,
    Work,
    Fsync,
    Close,
    Closed,
    /// Seekers have opened the file; they get time to.
    Pause,
    Go,
    Seeks,
    /// All phases are over, and the file goes.
    Clear,
}

/// What came of a phase.
#[derive(Clone, Copy, Debug)]
struct Outcome {
    phase: Phase,
    /// Bytes, or seeks.
    done: u64,
    took: Duration,
    computed: Duration,
}

struct Bonnie {
    plan: Plan,
    /// The phase under way, and how far it is.
    phase: usize,
    stage: Stage,
    /// Whether the file is there.
    there: bool,
    /// In bytes.
    done: u64,
    /// Which of a chunk's calls is next.
    step: u8,
    began: Time,
    computed: Duration,
    results: Vec<Outcome>,
    seekers: Seekers,
}

/// What the parent does next, without its path.
enum Move {
    Open,
    Remove,
    Call(Call<'static>),
    Compute(Duration),
    /// Those who wait for tickets are asked again when it goes on.
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

    fn laid_out(&self) -> Vec<Laid> {
        let there = !self.plan.phases[0].makes();
        let laid = Laid {
            path: self.plan.path.clone(),
            bytes: Some(Bytes(self.plan.size)),
        };
        there.then_some(laid).into_iter().collect()
    }

    fn next(&mut self, turn: Turn<'_>) -> Next<'_> {
        if let Some(Err(error)) = turn.answer.map(|answer| &answer.result) {
            return Next::Fail(SourceError(format!(
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
                None | Some(Move::Compute(Duration::ZERO)) => {}
                Some(next) => break next,
            }
        };
        let path = &self.plan.path;
        match next {
            Move::Open => {
                let makes = self.plan.phases[self.phase].makes();
                Next::Call(Call::Open {
                    path,
                    fd: FD,
                    how: How {
                        create: makes,
                        exclusive: makes,
                        ..How::WRITE
                    },
                })
            }
            Move::Remove => Next::Call(Call::Remove { path }),
            Move::Call(call) => Next::Call(call),
            Move::Compute(time) => {
                self.computed = self.computed.saturating_add(time);
                Next::Compute(time)
            }
            Move::Tickets => Next::Compute(Duration::ZERO),
            Move::Wait => Next::Wait,
            Move::End => Next::End,
        }
    }

    fn report(&self) -> Report {
        report::of(&self.plan, &self.results)
    }
}

impl Bonnie {
    /// The parent's next move, or `None` between stages.
    fn go_on(&mut self, now: Time, given: Option<u64>) -> Option<Move> {
        let (stage, next) = match self.stage {
            Stage::Remove => match self.plan.phases.get(self.phase) {
                None => (Stage::Clear, None),
                Some(Phase::Seek) => (Stage::Pause, None),
                Some(phase) if phase.makes() && std::mem::take(&mut self.there) => {
                    (Stage::Open, Some(Move::Remove))
                }
                Some(_) => (Stage::Open, None),
            },
            Stage::Open => (Stage::Begin, Some(Move::Open)),
            Stage::Begin => {
                (self.there, self.began, self.done, self.step) = (true, now, 0, 0);
                self.computed = Duration::ZERO;
                (Stage::Work, None)
            }
            Stage::Work => {
                let next = self.work(given);
                let over = next.is_none();
                (if over { Stage::Fsync } else { Stage::Work }, next)
            }
            Stage::Fsync => {
                let fsync = self.plan.flavour == Flavour::PlusPlus;
                (
                    Stage::Close,
                    fsync.then_some(Move::Call(Call::Fsync { fd: FD })),
                )
            }
            Stage::Close => (Stage::Closed, Some(Move::Call(Call::Close { fd: FD }))),
            Stage::Closed => {
                self.end_phase(now);
                (Stage::Remove, None)
            }
            Stage::Pause => {
                self.seekers.open();
                (Stage::Go, Some(Move::Compute(self.pause())))
            }
            Stage::Go => {
                self.seekers.go();
                (Stage::Seeks, Some(Move::Tickets))
            }
            Stage::Seeks => match self.seekers.result() {
                Some(outcome) => {
                    self.results.push(outcome);
                    self.phase += 1;
                    (Stage::Remove, None)
                }
                None => (Stage::Seeks, Some(Move::Wait)),
            },
            Stage::Clear => {
                let next = if std::mem::take(&mut self.there) {
                    Move::Remove
                } else {
                    Move::End
                };
                (Stage::Clear, Some(next))
            }
        };
        self.stage = stage;
        next
    }

    /// Books the phase that has ended now.
    fn end_phase(&mut self, now: Time) {
        assert!(
            self.began <= now && self.results.len() < self.plan.phases.len(),
            "a phase that began at {:?} ends at {now:?}; {} have ended",
            self.began,
            self.results.len()
        );
        self.results.push(Outcome {
            phase: self.plan.phases[self.phase],
            done: self.done,
            took: now.saturating_since(self.began),
            computed: self.computed,
        });
        self.phase += 1;
    }

    /// Both flavours sleep before they send the tickets, 5 s and 3 s.
    fn pause(&self) -> Duration {
        Duration::from_secs(match self.plan.flavour {
            Flavour::Bonnie => 5,
            Flavour::PlusPlus => 3,
        })
    }

    /// The next move within a phase, or `None` at its end.
    fn work(&mut self, given: Option<u64>) -> Option<Move> {
        let phase = self.plan.phases[self.phase];
        // Bray's loops that read end at the end of the file, Coker's by count.
        let ends = self.plan.flavour == Flavour::PlusPlus
            || matches!(phase, Phase::Putc | Phase::Write | Phase::Getc);
        let block = if matches!(phase, Phase::Putc | Phase::Getc) {
            self.plan.stdio
        } else {
            self.plan.chunk
        };
        let bytes = block.min(self.plan.size - self.done.min(self.plan.size));
        let read = Move::Call(Call::Read {
            fd: FD,
            at: None,
            bytes: block,
        });
        let write = Move::Call(Call::Write {
            fd: FD,
            at: None,
            bytes,
        });
        let characters = Move::Compute(Duration::from_nanos(
            self.plan.cpu_character.as_nanos().saturating_mul(bytes),
        ));
        let chunk = Move::Compute(self.plan.cpu_chunk);
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
                return Some(Move::Call(Call::Seek {
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
