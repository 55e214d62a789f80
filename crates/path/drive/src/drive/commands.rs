//! Commands of a drive that move no data to or from the host: flushes, discards, and commands that
//! stop and start the platters.

use super::{Drive, RequestInService, RequestSlot, parts};
use crate::config::FlushCommand;
use crate::mechanics::AccessTimes;
use fullstroke_contract::{Breakdown, Effects, Notice, Operation, Port, Request, Signal};
use fullstroke_units::{Duration, Time};

impl Drive {
    /// True if the drive takes `request` as a command. A flush has nothing to do if no writes are
    /// cached: Linux does not even send a flush to such a drive (`blk_flush_policy`,
    /// `blk_insert_flush`).
    pub(super) fn is_command(&self, request: &Request) -> bool {
        match request.operation {
            Operation::Read | Operation::Write => true,
            Operation::Flush => self
                .buffer
                .as_ref()
                .is_some_and(|buffer| buffer.takes_writes()),
            Operation::Discard => self.command_overhead > Duration::ZERO,
            Operation::Standby | Operation::Start => self.spin_down.is_some(),
            Operation::Answer => false,
        }
    }

    /// True if a command needs the drive alone, without other commands inside.
    fn is_alone(&self, slot: u32) -> bool {
        match self.slots[slot].request.operation {
            Operation::Flush => self.flush_command == FlushCommand::Alone,
            operation => operation.is_of_all(),
        }
    }

    /// True if the first request outside may not come in. A command that cannot be queued waits
    /// until no command is inside.
    pub(super) fn waits_alone(&self, slot: u32) -> bool {
        self.is_alone(slot) && self.inside() > 0
    }

    /// True if the drive is serving such a command. New requests then wait outside, because inside
    /// they would be answered beside the arm.
    pub(super) fn serves_alone(&self) -> bool {
        self.beside.is_some()
            && self
                .service
                .is_some_and(|service| self.is_alone(service.slot))
    }

    /// Takes in a command for the whole drive. Returns true if no request may come in after the
    /// command.
    pub(super) fn take_in(&mut self, slot: u32, now: Time) -> bool {
        self.of_all.push_back((slot, now));
        self.is_alone(slot)
    }

    /// Begins a command for the whole drive. Such a command goes before the requests waiting for
    /// the arm.
    #[inline]
    pub(super) fn begin_of_all(&mut self, now: Time) -> bool {
        !self.of_all.is_empty() && self.begin_first_of_all(now)
    }

    fn begin_first_of_all(&mut self, now: Time) -> bool {
        let Some((slot, entered)) = self.of_all.pop_front() else {
            return false;
        };
        self.service = Some(match self.slots[slot].request.operation {
            Operation::Standby => self.stand_by(slot, entered, now),
            Operation::Start => self.start(slot, now),
            _ => self.flush(slot, entered, now),
        });
        true
    }

    /// Writes dirty data to the medium, then stops the platters.
    fn stand_by(&mut self, slot: u32, entered: Time, now: Time) -> RequestInService {
        let mut service = self.flush(slot, entered, now);
        let Some(spin_down) = self.spin_down.filter(|_| !self.arm.is_stopped()) else {
            return service;
        };
        let last = service.finish;
        if let Some(buffer) = &mut self.buffer {
            // Read-ahead ends, because the platters leave full speed.
            buffer.stop_fill(last);
        }
        debug_assert!(
            self.buffer
                .as_ref()
                .is_none_or(|buffer| !buffer.is_dirty_since(entered)),
            "the platters stop, and data that came before {entered:?} are not on them"
        );
        service.finish += spin_down;
        service.breakdown.overhead += spin_down;
        self.arm.stop(last, service.finish);
        self.stand_from(service.finish);
        service
    }

    /// Starts the platters. The command ends when the platters turn.
    fn start(&mut self, slot: u32, now: Time) -> RequestInService {
        let submitted = self.slots[slot].submitted;
        if let Some(buffer) = &mut self.buffer {
            // Destaging may have started the platters already.
            buffer.catch_up(now, false, &mut self.arm);
        }
        let ready = if self.arm.is_stopped() {
            self.arm.free_from(now)
        } else {
            now
        };
        self.arm.turn(ready);
        assert!(!self.arm.is_stopped(), "platters that were started turn");
        let finish = ready + self.command_overhead;
        RequestInService {
            slot,
            finish,
            breakdown: parts(submitted, now, finish, &AccessTimes::default()),
        }
    }

    /// Sends notices of the stops and starts up to `now`, in order of time.
    #[inline]
    pub(super) fn send_notices(&mut self, now: Time, out: &mut Effects) {
        // This check runs at every event, and most drives never stop.
        if self.spin_down.is_some() {
            let stops = self.stopped.or(self.stopped_before);
            if stops.is_some() || self.arm.has_turned() {
                self.report_platters(now, out);
            }
        }
    }

    #[cold]
    fn report_platters(&mut self, now: Time, out: &mut Effects) {
        let stopped = self
            .stopped
            .take_if(|at| *at <= now)
            .map(|at| (at, Signal::SpunDown));
        let before = self
            .stopped_before
            .take_if(|at| *at <= now)
            .map(|at| (at, Signal::SpunDown));
        let turned = self.arm.take_turned(now).map(|at| (at, Signal::SpunUp));
        let mut news = [before, stopped, turned];
        news.sort_by_key(|news| news.map(|(at, _)| at));
        for (at, signal) in news.into_iter().flatten() {
            out.notice(Port::FIRST, Notice::of_instant(signal, at));
        }
    }

    /// Writes the data to the medium that were in the buffer when the flush came.
    fn flush(&mut self, slot: u32, entered: Time, now: Time) -> RequestInService {
        let submitted = self.slots[slot].submitted;
        let mut access = AccessTimes::default();
        let finish = self
            .buffer
            .as_mut()
            .map_or(now + self.command_overhead, |buffer| {
                buffer.catch_up(now, !self.queue.is_empty(), &mut self.arm);
                let dirty = buffer.is_dirty_since(entered);
                // Only dirty data need platters and heads.
                let from = if dirty && self.arm.is_away() {
                    self.arm.needed(now)
                } else {
                    now
                };
                let begin = from + self.command_overhead;
                if dirty {
                    self.arm.take(from, begin);
                }
                buffer.flush(begin, entered, &mut self.arm, &mut access)
            });
        RequestInService {
            slot,
            finish,
            breakdown: parts(submitted, now, finish, &access),
        }
    }

    /// Serves a discard. A discard costs the electronics one command and the arm nothing, because
    /// addresses are forgotten, not written. A drive that ignores discards takes as long.
    pub(super) fn discard(&mut self, slot: u32, now: Time) {
        let RequestSlot { submitted, .. } = self.slots[slot];
        let begun = self.bus_free.max(now);
        let finish = begun + self.command_overhead;
        self.bus_free = finish;
        let breakdown = Breakdown {
            queue: begun.since(submitted),
            overhead: self.command_overhead,
            ..Breakdown::default()
        };
        self.passing.push_back(RequestInService {
            slot,
            finish,
            breakdown,
        });
    }
}
