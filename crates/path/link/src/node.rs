//! The node: transfers over a link between upper and lower ports.

use crate::link::Link;
use crate::transfer::{DeliveredTransfer, LinkTransfer, Payload, Station};
use fullstroke_contract::{
    Completion, Counters, Effects, Extent, Node, NodeContext, Operation, Port, Request, RequestId,
    RequestStatus, Slots, Wake,
};
use fullstroke_units::Time;

/// A link between a node with member I/O and the members below. Upper port `n` leads over the link
/// to lower port `n`.
///
/// - **Events in, effects out, getters**: those of [`Node`]. Notice passes through.
///
/// A member I/O starts with a command over the link. For a write, the member's readiness and the
/// data follow. Then the member receives the request. When the member has finished, the data of a
/// read and the status return, and the upper node gets the completion. All other operations, such
/// as a flush, are a command and a status. Drives store and forward: a read's data wait in the
/// drive's buffer until all are present, and a write starts when all data have arrived. Buses in
/// drive files (`electronics`) are charged in addition. For the upper node an I/O starts at the
/// issue and ends when the status reaches the host. The link's time, including the wait for the
/// link, is `overhead`, so the parts add up.
pub struct LinkNode {
    link: Box<dyn Link>,
    /// Name of the link in the registry.
    kind: &'static str,
    flights: Slots<PendingIo>,
    /// Deliveries of the link; empty between events.
    delivered: Vec<DeliveredTransfer>,
}

/// A member I/O in flight.
#[derive(Clone, Copy, Debug)]
struct PendingIo {
    request: Request,
    port: Port,
    issued: Time,
    next: LinkStep,
    /// The member's answer; a default before the arrival.
    answer: Completion,
}

/// The next step over the link or at the member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LinkStep {
    Command,
    Readiness,
    WriteData,
    Answer,
    ReadData,
    Status,
}

impl LinkNode {
    /// Creates the node of `link`. `kind` is the name of the link in the registry. The member at
    /// lower port `n` is station `n + 1`.
    pub fn new(link: Box<dyn Link>, kind: &'static str) -> LinkNode {
        LinkNode {
            link,
            kind,
            flights: Slots::default(),
            delivered: Vec::with_capacity(64),
        }
    }

    /// Carries out every event due until `now`, each at the right instant.
    fn catch_up(&mut self, now: Time, out: &mut Effects) {
        loop {
            let due = self.link.next_wake();
            if due > now || due == Time::NEVER {
                return;
            }
            // The list is taken out of the node, because `arrived` needs the whole node. The list
            // goes back with its memory, so that nothing is allocated for each event.
            let mut delivered = std::mem::take(&mut self.delivered);
            self.link.advance(due, &mut delivered);
            for arrival in delivered.drain(..) {
                self.arrived(arrival.token as u32, arrival.finished, out);
            }
            self.delivered = delivered;
        }
    }

    /// Handles the arrival of a transfer of the I/O in `slot`.
    fn arrived(&mut self, slot: u32, now: Time, out: &mut Effects) {
        let PendingIo {
            request,
            port,
            next,
            ..
        } = self.flights[slot];
        match (next, request.operation) {
            // A member has no data until the host has asked. A write therefore has one more way
            // over the link than a read.
            (LinkStep::Command, Operation::Write) => {
                self.send(slot, now, Payload::TransferReady, LinkStep::Readiness);
            }
            (LinkStep::Readiness, _) => {
                let data = Payload::Data(request.extent.sectors.bytes());
                self.send(slot, now, data, LinkStep::WriteData);
            }
            (LinkStep::Command | LinkStep::WriteData, _) => {
                self.flights[slot].next = LinkStep::Answer;
                out.issue(
                    port.index(),
                    Request {
                        id: RequestId(u64::from(slot)),
                        ..request
                    },
                );
            }
            (LinkStep::ReadData, _) => self.flights[slot].next = LinkStep::Status,
            (LinkStep::Status, _) => self.finish(slot, now, out),
            (LinkStep::Answer, _) => unreachable!("a member answers by itself"),
        }
    }

    /// Handles the member's answer: the data of a read return, and the status.
    fn answered(&mut self, slot: u32, now: Time, answer: Completion) {
        let flight = &mut self.flights[slot];
        debug_assert_eq!(
            flight.next,
            LinkStep::Answer,
            "a member answers slot {slot} out of turn"
        );
        flight.answer = answer;
        let request = flight.request;
        // A failed read has no data, and only the status returns.
        if request.operation == Operation::Read && answer.status == RequestStatus::Done {
            let data = Payload::Data(request.extent.sectors.bytes());
            // Data and status are offered together. The link can then send the status in the
            // connection of the data.
            self.send(slot, now, data, LinkStep::ReadData);
            self.send(slot, now, Payload::Status, LinkStep::ReadData);
        } else {
            self.send(slot, now, Payload::Status, LinkStep::Status);
        }
    }

    fn finish(&mut self, slot: u32, now: Time, out: &mut Effects) {
        let PendingIo {
            request,
            port,
            issued,
            answer,
            ..
        } = self.flights.take(slot);
        assert!(
            answer.finished <= now && issued <= answer.submitted,
            "a member answered at {:?} what was issued at {issued:?} and ends at {now:?}",
            answer.finished
        );
        let mut breakdown = answer.breakdown;
        // The parts must add up to the time from issue to status. The time that the member does not
        // explain is the link's.
        breakdown.overhead += now.since(issued).saturating_sub(breakdown.response());
        let completion = Completion {
            id: request.id,
            submitted: issued,
            finished: now,
            status: answer.status,
            breakdown,
        };
        out.complete_to(port, completion);
    }

    /// Offers the next transfer of the I/O in `slot`, and records the following step.
    fn send(&mut self, slot: u32, now: Time, payload: Payload, next: LinkStep) {
        let flight = &mut self.flights[slot];
        flight.next = next;
        let member = Station::of_member(flight.port.index());
        let (from, to) = match next {
            LinkStep::Command | LinkStep::WriteData => (Station::HOST, member),
            _ => (member, Station::HOST),
        };
        self.link.offer(
            now,
            LinkTransfer {
                token: u64::from(slot),
                from,
                to,
                payload,
            },
        );
    }
}

impl Node for LinkNode {
    fn submit(&mut self, now: Time, from: Port, request: Request, cx: &mut NodeContext<'_>) {
        self.catch_up(now, cx.out);
        let answer = Completion::default();
        let flight = PendingIo {
            request,
            port: from,
            issued: now,
            next: LinkStep::Command,
            answer,
        };
        let slot = self.flights.keep(flight);
        self.send(slot, now, Payload::Command, LinkStep::Command);
    }

    fn completed(&mut self, now: Time, _: Port, completion: Completion, cx: &mut NodeContext<'_>) {
        self.catch_up(now, cx.out);
        self.answered(completion.id.0 as u32, now, completion);
    }

    fn wake(&mut self, now: Time, cx: &mut NodeContext<'_>) {
        self.catch_up(now, cx.out);
    }

    fn owners(&self, from: Port, extent: Extent, owner: &mut dyn FnMut(Port, Extent)) {
        owner(from, extent);
    }

    fn next_wake(&self) -> Wake {
        self.link.next_wake().into()
    }

    /// The counters cover the whole run, warm-up included.
    fn count(&self, now: Time, counters: &mut Counters) {
        counters.layers.push(
            self.link
                .statistics()
                .readings(self.kind, now.since(Time::ZERO)),
        );
    }
}

#[cfg(test)]
#[path = "node_tests.rs"]
mod tests;
