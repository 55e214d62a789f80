//! Injection: the device is kept for a queue without requests, and meanwhile serves requests of
//! other queues. Their number is limited, because the requests of the serving queue must not become
//! slower. To find the limit, the first request after a pause is timed from arrival to completion,
//! with and without injection.

use super::Bfq;
use super::Context;
use super::owner::Owner;
use super::tolerance::Tolerance;
use crate::block::Requests;
use fullstroke_units::{Duration, Lbn, Time};

/// Number of queues searched for a request for another member.
const REACH: usize = 16;
/// Time after which the limit is measured anew, because the load may have changed
/// (`bfq_add_request`, as for the next constant).
const FORGET: Duration = Duration::from_secs(1);
/// Time without measurements after the limit was lowered.
const SETTLE: Duration = Duration::from_millis(10);
/// Time for which a change to short think times is not believed (`bfq_update_has_short_ttime`).
const DOUBT: Duration = Duration::from_millis(100);

impl Bfq {
    /// Begins a measurement if one is due. Called for a request of a process without other
    /// requests, waiting or in flight.
    pub(super) fn measure_if_due(&mut self, now: Time, queue: u32) {
        let held = &mut self.queues[queue as usize];
        if held.tolerance.lowered + FORGET <= now {
            held.tolerance = Tolerance::new(now, held.habits.thinks_shortly);
            self.injection.measured = None;
        }
        let disturbed = held.tolerance.undisturbed.is_some() && self.injection.injected;
        let telling = self.in_driver == 0 || disturbed;
        if self.service.serving() == Some(queue)
            && telling
            && held.tolerance.lowered + SETTLE <= now
        {
            self.injection.arrived = Some(now);
            self.injection.injected &= self.in_driver > 0;
        }
    }

    /// Notes a change between short and long think times.
    pub(super) fn thinking_changed(&mut self, now: Time, queue: u32) {
        let held = &mut self.queues[queue as usize];
        let shortly = held.habits.thinks_shortly;
        if held.tolerance.undisturbed.is_none()
            && (!shortly || held.tolerance.lowered + DOUBT <= now)
        {
            held.tolerance = Tolerance::new(now, shortly);
            self.injection.measured = None;
        }
    }

    /// Follows `slot` of the serving queue to the device.
    pub(super) fn follow(&mut self, slot: u32) {
        if let Some(arrived) = self.injection.arrived.take() {
            self.injection.measured = Some((slot, arrived));
        }
    }

    /// Ends the measurement at the completion of `slot`. The slot still counts as in flight.
    pub(super) fn conclude(&mut self, now: Time, queue: u32, slot: u32) {
        let Some((_, arrived)) = self
            .injection
            .measured
            .filter(|&(measured, _)| measured == slot)
        else {
            return;
        };
        let (disturbed, alone) = (self.injection.injected, self.in_driver == 1);
        let most = self.queueing.most_in_flight();
        self.queue_mut(queue)
            .tolerance
            .measured(now, now.since(arrived), disturbed, alone, most);
        self.injection.measured = None;
        self.injection.injected = false;
    }

    /// Returns a queue for injection while the device is kept for the serving queue.
    pub(super) fn inject(&mut self, context: &Context<'_>) -> Option<u32> {
        let serving = self.service.serving()?;
        // The order of `bfq_select_queue`: own asynchronous requests, wakers and woken queues, then
        // any queue.
        self.own_async(serving, context.requests)
            .or_else(|| self.linked(serving, context.requests))
            .or_else(|| self.elsewhere(serving, context))
            .or_else(|| self.tolerated(serving, context.requests))
    }

    /// Returns the asynchronous queue of the same priority if its next request comes from the same
    /// process.
    fn own_async(&self, serving: u32, requests: &Requests) -> Option<u32> {
        let held = self.queue(serving);
        let owner = self.processes[held.sole? as usize].owner;
        let process = *self.owners.get(&Owner::Everybody(held.class, held.level))?;
        let queue = self.processes[process as usize].queue;
        let next = self.queue(queue).next?;
        let own = owner == Owner::Process(requests[next].process, held.class, held.level);
        (own && self.can_be_sent(queue, requests)).then_some(queue)
    }

    /// Returns the waker of the serving queue, or a queue that the serving queue wakes: one of the
    /// two blocks the other, so both gain.
    fn linked(&self, serving: u32, requests: &Requests) -> Option<u32> {
        let held = self.queue(serving);
        let able = |&queue: &u32| self.queue(queue).busy && self.can_be_sent(queue, requests);
        let waker = held.waker.known.filter(able);
        waker.or_else(|| held.woken.last().copied().filter(able))
    }

    /// Returns a queue whose next request lies on another member than the last request of the
    /// serving queue.
    fn elsewhere(&self, serving: u32, context: &Context<'_>) -> Option<u32> {
        let end = self.queue(serving).habits.position;
        let awaited = context.member_of(Lbn(end))?;
        self.service.candidates().take(REACH).find(|&queue| {
            let member = self
                .queue(queue)
                .next
                .map(|slot| context.requests[slot].extent.start);
            member
                .and_then(|start| context.member_of(start))
                .is_some_and(|member| member != awaited)
                && self.can_be_sent(queue, context.requests)
        })
    }

    /// Returns a queue whose request the serving queue tolerates (`bfq_choose_bfqq_for_injection`).
    fn tolerated(&mut self, serving: u32, requests: &Requests) -> Option<u32> {
        let held = self.queue(serving);
        let (raised, shortly) = (held.raising.is_raised(), held.habits.thinks_shortly);
        let alone = raised && shortly && self.population.raised() < 2;
        if self.idling_raises_throughput(serving) || alone {
            return None;
        }
        // The kernel means to allow one request after a long wait, but adds nanoseconds to ticks
        // (`bfq_choose_bfqq_for_injection`), and so would wait for hours.
        if self.in_driver >= held.tolerance.limit {
            return None;
        }
        let only_raised = raised && shortly;
        let found = self.service.candidates().find(|&queue| {
            (!only_raised || self.queue(queue).raising.is_raised())
                && self.can_be_sent(queue, requests)
        });
        self.injection.injected |= found.is_some();
        found
    }

    fn can_be_sent(&self, queue: u32, requests: &Requests) -> bool {
        let next = self.queue(queue).next;
        next.is_some_and(|slot| {
            self.charge(queue, slot, requests) <= self.service.entity(queue).left()
        })
    }
}
