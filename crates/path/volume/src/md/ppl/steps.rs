//! The steps of a stripe through the partial parity log.

use super::{BEGIN, HEADER, MemberLog, SPACE};
use crate::md::core::{Core, EventContext};
use crate::md::log::WriteLog;
use crate::md::stripes::{PAGE, StripePage, page, state};
use fullstroke_contract::{Effects, Extent, Hints, Operation, Request};

impl Core {
    /// Adds a stripe to the log of the member with its parity (`ppl_write_stripe`).
    pub(in crate::md) fn add_to_partial_parity(&mut self, at: u32, parity: usize) {
        self.stripes.set(at, state::LOGGED);
        let wanted = |page: &StripePage| page.is(page::WANT_WRITE);
        let pages = self.stripes.pages_of(at).iter().map(wanted);
        let written = pages
            .enumerate()
            .map(|(member, wanted)| u64::from(wanted) << member)
            .sum();
        let (number, whole) = (
            self.stripes.stripe(at).number,
            self.stripes.has(at, state::FULL_WRITE),
        );
        if let Some(log) = self.partial_parity() {
            log.add(at, number, parity, whole, written);
        }
    }

    /// Sends the first unit of each log, if no unit is on its way (`ppl_write_stripe_run`).
    pub(in crate::md) fn send_units(&mut self, event: &mut EventContext<'_>) {
        let members = self.partial_parity().map_or(0, |log| log.logs.len());
        for member in 0..members {
            let Some(WriteLog::PartialParity(log)) = &mut self.log else {
                return;
            };
            let size = log.size;
            let several = size >= 2 * (HEADER + SPACE);
            let MemberLog { units, next } = &mut log.logs[member];
            let Some(unit) = units.front_mut().filter(|unit| !unit.sent) else {
                continue;
            };
            unit.sent = true;
            if event.states.has_failed(member) {
                self.unit_logged(member);
                continue;
            }
            let sectors = HEADER + unit.pages * PAGE;
            if *next + sectors > size {
                *next = 0;
            }
            let extent = Extent::new(BEGIN + *next, sectors);
            if several {
                *next += sectors;
            }
            let origin = unit.stripes.first().copied();
            self.write_unit(member, extent, origin, event.out);
        }
    }

    fn write_unit(&mut self, member: usize, extent: Extent, first: Option<u32>, out: &mut Effects) {
        let origin = first.map_or(Request::BACKGROUND, |at| self.stripes.stripe(at).origin);
        self.counts.member_io(Operation::Write);
        let id = self.keep_log_io(member, Operation::Write);
        let hints = Hints {
            synchronous: true,
            force_unit_access: true,
            ..Hints::default()
        };
        out.issue(
            member,
            Request {
                id,
                origin,
                operation: Operation::Write,
                extent,
                hints,
                ..Request::default()
            },
        );
    }

    /// Takes note that the first unit of a log is on its member: its stripes go on
    /// (`ppl_log_endio`).
    pub(in crate::md) fn unit_logged(&mut self, member: usize) {
        let Some(log) = self.partial_parity() else {
            return;
        };
        let mut stripes = std::mem::take(&mut log.ended);
        if let Some(unit) = log.logs[member].units.front_mut() {
            std::mem::swap(&mut stripes, &mut unit.stripes);
        }
        for at in stripes.drain(..) {
            self.stripes.set(at, state::HANDLE);
            self.release(at);
        }
        if let Some(log) = self.partial_parity() {
            log.ended = stripes;
        }
    }

    /// Takes note that the writes of a stripe have ended. After the last stripe of a unit, the
    /// members with its pages are flushed (`ppl_stripe_write_finished`).
    pub(in crate::md) fn partial_parity_ended(&mut self, at: u32, event: &mut EventContext<'_>) {
        let member = self.shape(at).p() as usize;
        let Some(log) = self.partial_parity() else {
            return;
        };
        let Some(unit) = log.logs[member].units.front_mut() else {
            return;
        };
        unit.pending -= 1;
        if unit.pending > 0 {
            return;
        }
        let written = unit.written;
        let flushed = (0..self.stripes.members)
            .filter(|&other| written >> other & 1 == 1 && !event.states.has_failed(other));
        let mut flushes = 0;
        for other in flushed {
            flushes += 1;
            let id = self.keep_log_io(member, Operation::Flush);
            let flush = Request {
                id,
                origin: Request::BACKGROUND,
                operation: Operation::Flush,
                hints: Hints {
                    synchronous: true,
                    ..Hints::default()
                },
                ..Request::default()
            };
            event.out.issue(other, flush);
        }
        match self.partial_parity().map(|log| &mut log.logs[member].units) {
            Some(units) if flushes == 0 => drop(units.pop_front()),
            Some(units) => units
                .iter_mut()
                .take(1)
                .for_each(|unit| unit.flushes = flushes),
            None => {}
        }
    }

    /// Takes note of the end of a flush behind the first unit of a log. After the last flush the
    /// next unit may go (`ppl_flush_endio`).
    pub(in crate::md) fn unit_flushed(&mut self, member: usize) {
        let Some(log) = self.partial_parity() else {
            return;
        };
        let units = &mut log.logs[member].units;
        let Some(unit) = units.front_mut() else {
            return;
        };
        unit.flushes -= 1;
        if unit.flushes == 0 {
            units.pop_front();
        }
    }
}
