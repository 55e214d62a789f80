//! `anticipatory`, as in Linux 2.6.24: synchronous and asynchronous requests alternate in batches
//! of time. Within a synchronous batch the device pauses if the process served last will probably
//! ask for data near by (Iyer & Druschel, "Anticipatory scheduling", SOSP 2001; Carroll's thesis,
//! section 2.4.4, with the defaults of his table 2.3).
//!
//! | file | content |
//! |---|---|
//! | `anticipatory.rs` | the choice of the next request |
//! | `anticipatory/config.rs`, `anticipatory/kinds.rs` | the keys, and the kinds of request |
//! | `anticipatory/batch.rs` | the present batch |
//! | `anticipatory/arm.rs` | the expected request, at each arm |
//! | `anticipatory/processes.rs` | habits of the processes |
//! | `anticipatory/waiting.rs` | the waiting requests of one kind |
//! | `anticipatory/tests.rs` | |

mod arm;
mod batch;
mod config;
mod kinds;
mod processes;
#[cfg(test)]
mod tests;
mod waiting;

use super::back_seek::BackSeek;
use super::fifos::Fifos;
use super::forest::Forest;
use super::{Context, Elevator, ElevatorSite};
use crate::block::{JoinKind, Queued, Requests};
use arm::{AnticipatingArm, Wait};
use batch::BatchClock;
pub(super) use config::Config;
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use fullstroke_units::{Duration, Time};
use kinds::{ByKind, RequestKind};
use processes::HabitTable;
#[cfg(test)]
pub(super) use tests::tunables;
use waiting::WaitingRequests;

pub(super) const SUMMARY: &str = "Linux 2.6.24's anticipatory: batches of time, with pauses for the process that was served last";

/// Record of a request, by slot.
#[derive(Clone, Copy, Debug, Default)]
struct RequestRecord {
    process: u32,
    /// Arm of the dispatch.
    arm: u32,
}

struct Anticipatory {
    config: Config,
    back_seek: BackSeek,
    waiting: ByKind<WaitingRequests>,
    forest: Forest,
    links: Fifos,
    places: Vec<RequestRecord>,
    processes: HabitTable,
    arms: Vec<AnticipatingArm>,
    batch: BatchClock,
    /// Number of requests in flight.
    in_flight: u32,
}

/// The next action.
enum NextAction {
    Send(u32),
    /// Wait for a better request.
    Hold,
    /// There is no request of the kind.
    Nothing,
}

pub(super) fn build(keys: &Keys, site: &ElevatorSite) -> Result<Box<dyn Elevator>, ConfigError> {
    let config = read::<Config>(keys)?.at(site.clock);
    Ok(Box::new(Anticipatory {
        config,
        // `MAXBACK` and `BACK_PENALTY`.
        back_seek: BackSeek {
            sectors_max: config.back_seek_max.0 / 512,
            penalty: 2,
        },
        waiting: ByKind {
            asynchronous: WaitingRequests::new(config.write_expire),
            synchronous: WaitingRequests::new(config.read_expire),
        },
        forest: Forest::default(),
        links: Fifos::default(),
        places: Vec::new(),
        processes: HabitTable::new(site.clock),
        arms: vec![AnticipatingArm::default()],
        batch: BatchClock::new(&config, site.clock),
        in_flight: 0,
    }))
}

impl Anticipatory {
    /// Ends the pauses whose time is over.
    fn end_pauses(&mut self, now: Time) {
        let antic_expire = self.config.antic_expire;
        for arm in &mut self.arms {
            if arm.wait == Wait::Next && arm.since + antic_expire <= now {
                arm.wait = Wait::Over;
                self.processes.waited_in_vain(arm.process);
            }
        }
    }

    /// Returns the arm of a request. Without `per_member_anticipation` there is one arm.
    fn arm_of(&mut self, slot: u32, context: &Context<'_>) -> u32 {
        let arm = context
            .member_of(context.requests[slot].extent.start)
            .unwrap_or(0);
        if self.arms.len() <= arm as usize {
            self.arms
                .resize(arm as usize + 1, AnticipatingArm::default());
        }
        arm
    }

    /// True if waiting at this arm is better than dispatching `candidate`. The wait then begins.
    fn holds(&mut self, now: Time, arm: u32, candidate: Option<&Queued>) -> bool {
        let arm = &mut self.arms[arm as usize];
        if !arm.waits() && arm.should_wait(now, candidate, &self.config, &mut self.processes) {
            arm.wait = if arm.completed {
                Wait::Next
            } else {
                Wait::Completion
            };
        }
        arm.waits()
    }

    /// Chooses the next synchronous request, or a wait if a wait is better: `as_can_anticipate`. An
    /// expired request ends the wait. Otherwise a process that asks again and again would block all
    /// others.
    fn anticipate(&mut self, now: Time, context: &Context<'_>) -> NextAction {
        // With one arm a pause holds everything. With several arms the other arms go on.
        if context.stripes.is_none() && self.arms[0].waits() {
            return NextAction::Hold;
        }
        if let Some(expired) = self.waiting.synchronous.expired(now) {
            let arm = self.arm_of(expired, context);
            if !self.arms[arm as usize].waits() {
                return NextAction::Send(expired);
            }
        }
        let Some(cheapest) = self.cheapest(RequestKind::Synchronous) else {
            let held = (0..self.arms.len() as u32)
                .filter(|&arm| self.holds(now, arm, None))
                .count();
            return if held > 0 {
                NextAction::Hold
            } else {
                NextAction::Nothing
            };
        };
        // With one arm the first answer decides. With several arms the others need not be idle
        // while one waits.
        let mut candidate = cheapest;
        loop {
            let arm = self.arm_of(candidate, context);
            if !self.holds(now, arm, Some(&context.requests[candidate])) {
                return NextAction::Send(candidate);
            }
            candidate = match self.forest.next(candidate) {
                Some(next) => next,
                None => self
                    .forest
                    .first(&self.waiting.synchronous.sorted)
                    .unwrap_or(cheapest),
            };
            if context.stripes.is_none() || candidate == cheapest {
                return NextAction::Hold;
            }
        }
    }

    fn cheapest(&self, kind: RequestKind) -> Option<u32> {
        let WaitingRequests { sorted, here, .. } = &self.waiting[kind];
        self.back_seek.cheapest(&self.forest, sorted, *here)
    }

    /// Chooses the next request of the present batch.
    fn continued(&mut self, now: Time, context: &Context<'_>) -> NextAction {
        if self.batch.kind == RequestKind::Synchronous && self.config.antic_expire > Duration::ZERO
        {
            return self.anticipate(now, context);
        }
        self.cheapest(self.batch.kind)
            .map_or(NextAction::Nothing, NextAction::Send)
    }

    /// Begins a batch, of the other kind if both kinds wait. Returns its oldest request, with the
    /// earliest deadline (end of `as_dispatch_request`).
    fn begin(&mut self, now: Time) -> Option<u32> {
        let ByKind {
            asynchronous,
            synchronous,
        } = &self.waiting;
        let kind = match (asynchronous.is_empty(), synchronous.is_empty()) {
            (false, false) => self.batch.kind.other(),
            (_, true) => RequestKind::Asynchronous,
            (true, false) => RequestKind::Synchronous,
        };
        self.batch.begin(kind);
        self.waiting[kind].looked_at = now;
        self.waiting[kind].arrived.front()
    }

    /// Dispatches a request.
    fn send(&mut self, slot: u32, context: &Context<'_>) -> u32 {
        let request = &context.requests[slot];
        let kind = RequestKind::of(request);
        let (arm, end) = (self.arm_of(slot, context), request.extent.end().0);
        let place = &mut self.places[slot as usize];
        place.arm = arm;
        let process = (kind == RequestKind::Synchronous).then_some(place.process);
        assert!(
            self.processes[place.process].waiting > 0,
            "slot {slot} is sent, and no request of its process waits"
        );
        self.processes[place.process].waiting -= 1;
        self.arms[arm as usize] = AnticipatingArm {
            process,
            here: end,
            ..AnticipatingArm::default()
        };
        self.batch.sent(kind);
        self.waiting[kind].remove(slot, &mut self.forest, &mut self.links);
        self.waiting[kind].here = end;
        self.in_flight += 1;
        slot
    }

    /// Ends waits fulfilled or made useless by `request`: `as_update_rq`.
    fn interrupt(&mut self, now: Time, request: &Queued) {
        for arm in &mut self.arms {
            if arm.waits()
                && !arm.should_wait(now, Some(request), &self.config, &mut self.processes)
            {
                arm.wait = Wait::Over;
            }
        }
    }
}

impl Elevator for Anticipatory {
    fn add(&mut self, now: Time, slot: u32, requests: &Requests) {
        self.end_pauses(now);
        let request = &requests[slot];
        let process = self.processes.find(request.process);
        if request.synchronous {
            self.processes.asks(now, process, request.extent);
        }
        self.processes[process].waiting += 1;
        if self.places.len() <= slot as usize {
            self.places
                .resize(slot as usize + 1, RequestRecord::default());
        }
        self.places[slot as usize].process = process;
        let waiting = &mut self.waiting[RequestKind::of(request)];
        waiting.add(now, slot, request, &mut self.forest, &mut self.links);
        self.interrupt(now, request);
    }

    fn grown(
        &mut self,
        _: Time,
        slot: u32,
        join: JoinKind,
        _: &Queued,
        _: &Queued,
        requests: &Requests,
    ) {
        if join == JoinKind::Front {
            let request = &requests[slot];
            self.waiting[RequestKind::of(request)].moved(slot, request, &mut self.forest);
        }
    }

    fn coalesced(&mut self, now: Time, kept: u32, gone: u32, requests: &Requests) {
        self.end_pauses(now);
        let kinds = [kept, gone].map(|slot| RequestKind::of(&requests[slot]));
        self.processes[self.places[gone as usize].process].waiting -= 1;
        let waiting = &mut self.waiting[kinds[1]];
        if kinds[0] == kinds[1] {
            waiting.inherit(kept, gone, &mut self.forest, &mut self.links);
        } else {
            waiting.remove(gone, &mut self.forest, &mut self.links);
        }
    }

    fn dispatch(&mut self, now: Time, context: &Context<'_>) -> Option<u32> {
        self.end_pauses(now);
        let writes = !self.waiting.asynchronous.is_empty();
        let reads = !self.waiting.synchronous.is_empty();
        if !reads {
            // A batch of writes that no read waits for says nothing of the time that writes take
            // beside reads.
            self.batch.alone();
        }
        if self.batch.draining {
            return None;
        }
        let mut chosen = None;
        if !(reads && writes && self.batch.is_over(now)) {
            match self.continued(now, context) {
                NextAction::Send(slot) => chosen = Some(slot),
                NextAction::Hold => return None,
                NextAction::Nothing => {}
            }
            // Without writes the batch of reads has no reason to end.
            if reads && !writes && chosen.is_some() {
                self.batch.extend(now);
            }
        } else if self.arms.iter().any(AnticipatingArm::waits) {
            return None;
        }
        let slot = match chosen {
            Some(slot) => slot,
            None => self.begin(now)?,
        };
        let slot = self.waiting[self.batch.kind].expired(now).unwrap_or(slot);
        if self.batch.draining {
            if self.in_flight > 0 {
                return None;
            }
            self.batch.drained(now, true);
        }
        Some(self.send(slot, context))
    }

    fn completed(&mut self, now: Time, slot: u32, requests: &Requests) {
        self.end_pauses(now);
        let synchronous = requests[slot].synchronous;
        assert!(
            self.in_flight > 0,
            "slot {slot} comes back, and the device has none"
        );
        self.in_flight -= 1;
        if self.batch.draining && self.in_flight == 0 {
            self.batch.drained(now, false);
        }
        if synchronous {
            self.batch.served(now);
        }
        let RequestRecord { process, arm } = self.places[slot as usize];
        self.arms[arm as usize].completes(now, process);
        if synchronous {
            self.processes.served(now, process);
        }
    }

    fn next_wake(&self) -> Time {
        let pauses = self.arms.iter().filter(|arm| arm.wait == Wait::Next);
        pauses
            .map(|arm| arm.since + self.config.antic_expire)
            .min()
            .unwrap_or(Time::NEVER)
    }

    fn anticipates(&self) -> bool {
        self.config.antic_expire > Duration::ZERO
    }

    fn may_starve(&self) -> bool {
        !self.config.batch_switch_fix
    }
}
