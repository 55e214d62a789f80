//! Requests that another layer carries out on the members of a volume.

use super::Volume;
use super::yielding::Yielding;
use crate::members::PAGE;
use fullstroke_contract::{Effects, NodeContext, PriorityClass, Request};
use fullstroke_units::{Sectors, Time};

impl Volume {
    /// Takes note of a request that is carried out beside the volume's plans: rebuilds make way for
    /// the request, and failed members miss its writes.
    pub(crate) fn note_foreign_request(
        &mut self,
        now: Time,
        request: &Request,
        cx: &mut NodeContext<'_>,
    ) {
        self.head = cx.below.gauge(self.first_alive).head;
        self.catch_up(now, cx.out);
        if request.hints.class != PriorityClass::Idle {
            self.pressure.request_came(now);
        }
        self.note_missed(request.operation);
    }

    /// True if a rebuild of an array like md has not ended.
    #[inline]
    pub(crate) fn is_rebuilding(&self) -> bool {
        self.rebuilds.job().is_some()
    }

    /// Returns the pages of each member that a rebuild has in flight, and the number of pages that
    /// have begun since the last call; 0 while the array is idle.
    pub(crate) fn rebuild_pages(&mut self) -> (u32, u32) {
        let yielding = self.rebuilds.yielding.as_mut();
        let new = yielding.map_or(0, Yielding::take_begun);
        (self.rebuilds.pages_in_flight(), new)
    }

    /// True if a rebuild waits until nothing of the rebuild is in flight.
    pub(crate) fn makes_way(&self) -> bool {
        let yielding = self.rebuilds.yielding.as_ref();
        yielding.is_some_and(|yielding| yielding.waits)
    }

    /// Sets the number of pages for which the array has memory.
    pub(crate) fn set_rebuild_room(&mut self, now: Time, pages: u32) {
        if let Some(yielding) = &mut self.rebuilds.yielding {
            yielding.set_room(now, Sectors(u64::from(pages) * PAGE));
        }
    }

    /// Begins the units of a rebuild that may begin. Returns true if a unit has begun.
    pub(crate) fn go_on(&mut self, now: Time, out: &mut Effects) -> bool {
        let before = self.rebuilds.pages_in_flight();
        self.catch_up(now, out);
        self.rebuilds.pages_in_flight() != before
    }

    /// Takes note of the end of a member's I/O beside the volume's plans.
    #[inline]
    pub(crate) fn note_foreign_io(&mut self, member: usize, sectors: Sectors) {
        if let Some(yielding) = &mut self.rebuilds.yielding {
            yielding.ended(member, sectors);
        }
    }

    /// Takes note of the end of a request beside the volume's plans.
    pub(crate) fn note_foreign_end(&mut self, now: Time, request: &Request) {
        if request.hints.class != PriorityClass::Idle {
            self.pressure.request_ended(now);
        }
    }
}
