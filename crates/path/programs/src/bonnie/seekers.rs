//! Processes for reads of chunks at random places; every tenth chunk is written back.

use super::plan::{BonniePlan, FD, Flavour, Phase, PhaseResult};
use crate::call::{Call, OpenFlags};
use crate::program::{ProgramAction, ProgramTurn};
use fullstroke_units::{Duration, Random, Seed, Time};

/// Each process writes back its first chunk, and then every tenth (`UpdateSeek`).
const UPDATE: u64 = 10;

/// All seekers.
pub(super) struct Seekers {
    all: Vec<Seeker>,
    /// Number of seeks not yet begun.
    tickets: u64,
    seeks: u64,
    opened: bool,
    going: bool,
    computed: Duration,
}

struct Seeker {
    draws: Random,
    seeks: u64,
    to: u64,
    step: SeekerStep,
    began: Option<Time>,
    ended: Option<Time>,
}

/// Next step of a seeker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SeekerStep {
    Open,
    Ticket,
    Read,
    Compute,
    Back,
    Write,
    Close,
    End,
}

impl Seekers {
    pub fn new(plan: &BonniePlan, seed: Seed) -> Seekers {
        let all = (0..plan.seekers).map(|number| Seeker {
            draws: seed.stream(&format!("bonnie seeker {number}")),
            seeks: 0,
            to: 0,
            step: SeekerStep::Open,
            began: None,
            ended: None,
        });
        Seekers {
            all: all.collect(),
            tickets: plan.seeks,
            seeks: plan.seeks,
            opened: false,
            going: false,
            computed: Duration::ZERO,
        }
    }

    /// Allows the seekers to open the file.
    pub fn open(&mut self) {
        self.opened = true;
    }

    /// Allows the seekers to seek.
    pub fn go(&mut self) {
        self.going = true;
    }

    /// Returns the result from the first start to the last end, if all seekers have ended.
    pub fn result(&self) -> Option<PhaseResult> {
        let began = self.all.iter().map(|seeker| seeker.began).min()??;
        let ended: Option<Vec<Time>> = self.all.iter().map(|seeker| seeker.ended).collect();
        let took = ended?.into_iter().max()?.saturating_since(began);
        Some(PhaseResult {
            phase: Phase::Seek,
            done: self.seeks,
            took,
            computed: self.computed,
        })
    }

    /// Takes the next ticket and seeks to a random chunk.
    fn take_ticket<'a>(
        &'a mut self,
        plan: &'a BonniePlan,
        turn: ProgramTurn<'_>,
    ) -> ProgramAction<'a> {
        let seeker = &mut self.all[turn.process as usize - 1];
        seeker.began.get_or_insert(turn.now);
        if self.tickets == 0 {
            return seeker.last(plan);
        }
        debug_assert!(
            self.tickets <= self.seeks,
            "{} tickets are left, of {}",
            self.tickets,
            self.seeks
        );
        self.tickets -= 1;
        seeker.to = seeker.draws.below(plan.size / plan.chunk) * plan.chunk;
        assert!(
            seeker.to + plan.chunk <= plan.size,
            "a seek to {} of {} bytes",
            seeker.to,
            plan.size
        );
        seeker.step = SeekerStep::Read;
        ProgramAction::Call(Call::Seek {
            fd: FD,
            to: seeker.to,
        })
    }

    pub fn next<'a>(
        &'a mut self,
        plan: &'a BonniePlan,
        turn: ProgramTurn<'_>,
    ) -> ProgramAction<'a> {
        let seeker = &mut self.all[turn.process as usize - 1];
        match seeker.step {
            SeekerStep::Open if !self.opened => ProgramAction::Wait,
            SeekerStep::Open => {
                seeker.step = SeekerStep::Ticket;
                ProgramAction::Call(Call::Open {
                    path: &plan.path,
                    fd: FD,
                    how: OpenFlags::WRITE,
                })
            }
            SeekerStep::Ticket if !self.going => ProgramAction::Wait,
            SeekerStep::Ticket => self.take_ticket(plan, turn),
            SeekerStep::Read => {
                seeker.step = SeekerStep::Compute;
                ProgramAction::Call(Call::Read {
                    fd: FD,
                    at: None,
                    bytes: plan.chunk,
                })
            }
            SeekerStep::Compute => {
                seeker.seeks += 1;
                seeker.step = if seeker.seeks % UPDATE == 1 {
                    SeekerStep::Back
                } else {
                    SeekerStep::Ticket
                };
                // Seekers compute in parallel, so that the sum may overflow.
                self.computed = self.computed.saturating_add(plan.cpu_chunk);
                match plan.cpu_chunk {
                    Duration::ZERO => self.next(plan, turn),
                    time => ProgramAction::Compute(time),
                }
            }
            SeekerStep::Back => {
                seeker.step = SeekerStep::Write;
                ProgramAction::Call(Call::Seek {
                    fd: FD,
                    to: seeker.to,
                })
            }
            SeekerStep::Write => {
                seeker.step = SeekerStep::Ticket;
                ProgramAction::Call(Call::Write {
                    fd: FD,
                    at: None,
                    bytes: plan.chunk,
                })
            }
            SeekerStep::Close => seeker.close(),
            SeekerStep::End => {
                seeker.ended.get_or_insert(turn.now);
                ProgramAction::End
            }
        }
    }
}

impl Seeker {
    /// Ends a seeker when no ticket is left. bonnie++ calls `fsync` before the close.
    fn last(&mut self, plan: &BonniePlan) -> ProgramAction<'static> {
        self.step = SeekerStep::Close;
        match plan.flavour {
            Flavour::PlusPlus => ProgramAction::Call(Call::Fsync { fd: FD }),
            Flavour::Bonnie => self.close(),
        }
    }

    fn close(&mut self) -> ProgramAction<'static> {
        self.step = SeekerStep::End;
        ProgramAction::Call(Call::Close { fd: FD })
    }
}
