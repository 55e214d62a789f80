//! Requests that another layer carries out on the members of a volume.

use super::Volume;
use fullstroke_contract::{NodeContext, PriorityClass, Request};
use fullstroke_units::Time;

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

    /// Takes note of the end of a request beside the volume's plans.
    pub(crate) fn note_foreign_end(&mut self, now: Time, request: &Request) {
        if request.hints.class != PriorityClass::Idle {
            self.pressure.request_ended(now);
        }
    }
}
