//! Requests of a volume that wait for their turn beside a rebuild.

use super::Volume;
use fullstroke_contract::{Effects, LayersBelow, PriorityClass, Request};
use fullstroke_units::Time;

impl Volume {
    /// True if a request must wait for a rebuild.
    #[inline]
    pub(super) fn must_wait(&self, request: &Request) -> bool {
        self.turns.as_ref().is_some_and(|turns| {
            let is_up = turns.raised || self.rebuilds.is_busy() || !turns.waiting.is_empty();
            is_up && request.operation.transfers()
        })
    }

    /// Keeps a request until nothing of the rebuild is in flight.
    pub(super) fn keep_waiting(&mut self, now: Time, request: Request) {
        if let Some(turns) = &mut self.turns {
            turns.waiting.push_back((now, request));
        }
        if request.hints.class != PriorityClass::Idle {
            self.pressure.request_came(now);
        }
        self.idle_since = None;
    }

    /// Returns the time of the next unit of a rebuild by the turns.
    pub(super) fn next_turn(&self) -> Time {
        match &self.turns {
            Some(turns) if turns.raised && self.in_flight > 0 => Time::NEVER,
            // A rebuild that has raised the barrier begins one block before the requests that came
            // since.
            Some(turns) if !turns.raised && !turns.waiting.is_empty() => Time::NEVER,
            _ => self.rebuilds.next_unit(&self.pressure),
        }
    }

    /// Lets the rebuild begin a unit, or keeps new requests back until the requests in flight have
    /// ended. Returns true if the unit may begin.
    pub(super) fn takes_turn(&mut self) -> bool {
        let Some(turns) = &mut self.turns else {
            return true;
        };
        turns.raised = self.in_flight > 0;
        !turns.raised
    }

    /// Begins the requests that wait, if nothing of a rebuild is in flight.
    pub(super) fn let_in(&mut self, now: Time, below: LayersBelow<'_>, out: &mut Effects) {
        if self.rebuilds.is_busy() {
            return;
        }
        let has_unit = self.rebuilds.next_unit(&self.pressure) != Time::NEVER;
        let Some(turns) = &mut self.turns else { return };
        if turns.raised && has_unit {
            return;
        }
        turns.raised = false;
        while let Some((arrived, request)) = self
            .turns
            .as_mut()
            .and_then(|turns| turns.waiting.pop_front())
        {
            if request.hints.class != PriorityClass::Idle {
                self.pressure.request_ended(now);
            }
            self.admit(arrived, now, request, below, out);
        }
    }
}
