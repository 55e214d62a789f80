//! Bonnie: one large file by characters, in blocks, and at random places.
//!
//! T. Bray, Bonnie (1988 to 1996; `textuality.com/bonnie`), and R. Coker's bonnie++ 2.00. The calls
//! were taken from the `strace` of bonnie++.

mod plan;
mod report;
mod seekers;

use crate::call::{Call, OpenFlags};
use crate::program::{
    InitialFile, Program, ProgramAction, ProgramError, ProgramKind, ProgramReport, ProgramTurn,
    Recipe,
};
use fullstroke_contract::SourceError;
use fullstroke_contract::registry::{Keys, PolicyEntry, read, schema_of};
use fullstroke_units::{Bytes, Duration, Seed, Time};
use plan::{BonniePlan, FD, PhaseResult};
pub use plan::{Config, Flavour, Phase};
use seekers::Seekers;

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
