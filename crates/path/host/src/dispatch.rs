//! The dispatch queue: requests above the queue depth wait in the host, in order of arrival.

use fullstroke_contract::{
    Completion, Effects, Gauge, Node, NodeContext, Port, Request, Slots, Wake,
};
use fullstroke_units::Time;
use std::collections::VecDeque;

/// The layer of a host without an elevator.
///
/// - **Events in**: `submit`, `completed`.
/// - **Effects out**: `issue` to the one member, `complete`.
pub struct DispatchQueue {
    depth: u32,
    issued: u32,
    slots: Slots<RequestSlot>,
    waiting: VecDeque<u32>,
    idle_since: Time,
}

#[derive(Clone, Copy)]
struct RequestSlot {
    request: Request,
    submitted: Time,
}

impl DispatchQueue {
    /// Returns an empty queue with the queue depth `depth`.
    pub fn new(depth: u32) -> DispatchQueue {
        DispatchQueue {
            depth,
            issued: 0,
            slots: Slots::default(),
            waiting: VecDeque::new(),
            idle_since: Time::ZERO,
        }
    }

    fn issue(&mut self, slot: u32, out: &mut Effects) {
        self.issued += 1;
        let mut request = self.slots[slot].request;
        request.id.0 = u64::from(slot);
        out.issue(0, request);
    }
}

impl Node for DispatchQueue {
    fn submit(&mut self, now: Time, _: Port, request: Request, cx: &mut NodeContext<'_>) {
        let out = &mut *cx.out;
        let slot = self.slots.keep(RequestSlot {
            request,
            submitted: now,
        });
        if self.issued < self.depth {
            self.issue(slot, out);
        } else {
            self.waiting.push_back(slot);
        }
    }

    fn completed(&mut self, now: Time, _: Port, completion: Completion, cx: &mut NodeContext<'_>) {
        let out = &mut *cx.out;
        let RequestSlot { request, submitted } = self.slots.take(completion.id.0 as u32);
        self.issued -= 1;
        out.complete(completion.held_since(submitted, request.id));
        match self.waiting.pop_front() {
            Some(next) => self.issue(next, out),
            None if self.issued == 0 => self.idle_since = now,
            None => {}
        }
    }

    fn wake(&mut self, _: Time, _: &mut NodeContext<'_>) {}

    fn next_wake(&self) -> Wake {
        Wake::NEVER
    }

    fn gauge(&self) -> Gauge {
        let held = self.slots.len() as u32;
        Gauge {
            queue_length: held,
            idle_since: (held == 0).then_some(self.idle_since),
            ..Gauge::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_contract::{Breakdown, Effect, RequestId, RequestStatus};
    use fullstroke_units::Duration;

    fn request(id: u64) -> Request {
        Request {
            id: RequestId(id),
            ..Request::default()
        }
    }

    #[test]
    fn requests_beyond_the_depth_wait_in_order_and_their_wait_is_queue_time() {
        let mut host = DispatchQueue::new(1);
        let mut out = Effects::new();
        for id in [70, 71, 72] {
            host.submit(
                Time::ZERO,
                Port::FIRST,
                request(id),
                &mut NodeContext::alone(&mut out),
            );
        }
        let mut order = Vec::new();
        for step in 1..=3u64 {
            let issued: Vec<Effect> = out.drain().collect();
            let Some(Effect::Issue { request, .. }) = issued.last().copied() else {
                panic!("{issued:?}")
            };
            let finished = Time::from_nanos(step * 10);
            let completion = Completion {
                id: request.id,
                submitted: Time::from_nanos((step - 1) * 10),
                finished,
                status: RequestStatus::Done,
                breakdown: Breakdown {
                    transfer: Duration::from_nanos(10),
                    ..Breakdown::default()
                },
            };
            host.completed(
                finished,
                Port::FIRST,
                completion,
                &mut NodeContext::alone(&mut out),
            );
            let Some(Effect::Complete {
                completion: done, ..
            }) = out.effects().next().copied()
            else {
                panic!("no completion")
            };
            assert_eq!(
                done.breakdown.response(),
                done.finished.since(done.submitted)
            );
            order.push(done.id.0);
        }
        assert_eq!(order, [70, 71, 72]);
    }
}
