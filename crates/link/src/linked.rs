//! The layer: a volume whose members stand behind a link.

use crate::transfer::{Delivered, Link, Payload, Port, Transfer};
use fullstroke_contract::{
    Below, Completion, Effect, Gauge, Layer, LayerReadings, MemberStatistics, Operation, Order, Out, Refusal,
    Request, RequestId, Signal, Slots, Status,
};
use fullstroke_units::Time;

/// A volume's layer, and the link between it and its members.
///
/// - **Events in**: those of [`Layer`]; the volume's layer is told all of them.
/// - **Effects out**: those of the volume's layer, but for what it issues: that
///   goes over the link first.
///
/// A member I/O is a command over the link; for a write, the member's readiness
/// and the data; then the member is given the request; when it has finished, the
/// data of a read and the status go back, and the volume's layer is told. Drives
/// store and forward: a read's data wait in the drive's buffer until all of them
/// are there, and a write reaches the medium when all of its data have come.
/// Buses that drives describe themselves (`electronics`, in drive files) are
/// charged besides.
///
/// What the volume's layer is told began when it issued the I/O and ended when
/// the status was with the host; what the link took, waiting for it included, is
/// `overhead`, so that the parts add up.
pub struct Linked {
    volume: Box<dyn Layer>,
    link: Box<dyn Link>,
    /// The link's name in the registry.
    kind: &'static str,
    flights: Slots<Flight>,
    /// The effects of the volume's layer; empty between events.
    effects: Out,
    /// What has come over the link; empty between events.
    delivered: Vec<Delivered>,
}

/// A member I/O on its way.
#[derive(Clone, Copy, Debug)]
struct Flight {
    request: Request,
    member: u32,
    issued: Time,
    next: Step,
    /// The member's answer, once it is there.
    answer: Completion,
}

/// What comes next over the link, or from the member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Command,
    Readiness,
    WriteData,
    Answer,
    ReadData,
    Status,
}

impl Linked {
    /// `volume`, whose member `n` is port `n + 1` of `link`, which is of `kind`.
    pub fn new(volume: Box<dyn Layer>, link: Box<dyn Link>, kind: &'static str) -> Linked {
        Linked {
            volume,
            link,
            kind,
            flights: Slots::default(),
            effects: Out::new(),
            delivered: Vec::with_capacity(64),
        }
    }

    /// Lets everything happen that was due until `now`, each at its instant.
    fn catch_up(&mut self, now: Time, below: Below<'_>, out: &mut Out) {
        loop {
            let due = self.next_wake();
            if due > now || due == Time::NEVER {
                return;
            }
            if self.link.next_wake() == due {
                self.deliver(due, below, out);
            } else {
                self.volume.wake(due, below, &mut self.effects);
                self.follow(due, out);
            }
        }
    }

    fn deliver(&mut self, now: Time, below: Below<'_>, out: &mut Out) {
        let mut delivered = std::mem::take(&mut self.delivered);
        self.link.advance(now, &mut delivered);
        for arrival in delivered.drain(..) {
            self.arrived(arrival.token as u32, arrival.finished, below, out);
        }
        self.delivered = delivered;
    }

    /// What the I/O in `slot` waited for has come over the link.
    fn arrived(&mut self, slot: u32, now: Time, below: Below<'_>, out: &mut Out) {
        let Flight { request, member, next, .. } = self.flights[slot];
        match (next, request.operation) {
            (Step::Command, Operation::Write) => {
                self.send(slot, now, Payload::TransferReady, Step::Readiness);
            }
            (Step::Readiness, _) => {
                let data = Payload::Data(request.extent.sectors.bytes());
                self.send(slot, now, data, Step::WriteData);
            }
            (Step::Command | Step::WriteData, _) => {
                self.flights[slot].next = Step::Answer;
                out.issue(member as usize, Request { id: RequestId(u64::from(slot)), ..request });
            }
            (Step::ReadData, _) => self.flights[slot].next = Step::Status,
            (Step::Status, _) => self.finish(slot, now, below, out),
            (Step::Answer, _) => unreachable!("a member answers by itself"),
        }
    }

    /// The member has answered: the data of a read go back, and the status.
    fn answered(&mut self, slot: u32, now: Time, answer: Completion) {
        let flight = &mut self.flights[slot];
        flight.answer = answer;
        let request = flight.request;
        if request.operation == Operation::Read && answer.status == Status::Done {
            let data = Payload::Data(request.extent.sectors.bytes());
            self.send(slot, now, data, Step::ReadData);
            self.send(slot, now, Payload::Status, Step::ReadData);
        } else {
            self.send(slot, now, Payload::Status, Step::Status);
        }
    }

    fn finish(&mut self, slot: u32, now: Time, below: Below<'_>, out: &mut Out) {
        let Flight { request, member, issued, answer, .. } = self.flights.take(slot);
        let mut breakdown = answer.breakdown;
        breakdown.overhead += now.since(issued).saturating_sub(breakdown.response());
        let completion =
            Completion { id: request.id, submitted: issued, finished: now, status: answer.status, breakdown };
        self.volume.completed(now, member as usize, completion, below, &mut self.effects);
        self.follow(now, out);
    }

    /// Carries out what the volume's layer does in answer to an event.
    fn follow(&mut self, now: Time, out: &mut Out) {
        let mut effects = std::mem::take(&mut self.effects);
        for effect in effects.drain() {
            match effect {
                Effect::Issue { member, request } => {
                    let answer = Completion::default();
                    let flight = Flight { request, member, issued: now, next: Step::Command, answer };
                    let slot = self.flights.keep(flight);
                    self.send(slot, now, Payload::Command, Step::Command);
                }
                Effect::Complete(completion) => out.complete(completion),
                Effect::Signal(signal) => out.signal(signal),
            }
        }
        self.effects = effects;
    }

    /// Offers what the I/O in `slot` needs, and notes what it then waits for.
    fn send(&mut self, slot: u32, now: Time, payload: Payload, next: Step) {
        let flight = &mut self.flights[slot];
        flight.next = next;
        let member = Port::of_member(flight.member as usize);
        let (from, to) = match next {
            Step::Command | Step::WriteData => (Port::HOST, member),
            _ => (member, Port::HOST),
        };
        self.link.offer(now, Transfer { token: u64::from(slot), from, to, payload });
    }
}

impl Layer for Linked {
    fn submit(&mut self, now: Time, request: Request, below: Below<'_>, out: &mut Out) {
        self.catch_up(now, below, out);
        self.volume.submit(now, request, below, &mut self.effects);
        self.follow(now, out);
    }

    fn completed(&mut self, now: Time, _: usize, completion: Completion, below: Below<'_>, out: &mut Out) {
        self.catch_up(now, below, out);
        self.answered(completion.id.0 as u32, now, completion);
    }

    fn wake(&mut self, now: Time, below: Below<'_>, out: &mut Out) {
        self.catch_up(now, below, out);
    }

    fn signalled(&mut self, now: Time, member: usize, signal: Signal, below: Below<'_>, out: &mut Out) {
        self.catch_up(now, below, out);
        self.volume.signalled(now, member, signal, below, &mut self.effects);
        self.follow(now, out);
    }

    fn ordered(&mut self, now: Time, order: Order, below: Below<'_>, out: &mut Out) -> Result<(), Refusal> {
        self.catch_up(now, below, out);
        let answer = self.volume.ordered(now, order, below, &mut self.effects);
        self.follow(now, out);
        answer
    }

    fn next_wake(&self) -> Time {
        self.link.next_wake().min(self.volume.next_wake())
    }

    fn gauge(&self) -> Gauge {
        self.volume.gauge()
    }

    fn statistics(&self) -> Option<MemberStatistics> {
        self.volume.statistics()
    }

    /// Over the whole run, the warm-up included.
    fn readings(&self, now: Time, out: &mut Vec<LayerReadings>) {
        self.volume.readings(now, out);
        out.push(self.link.statistics().readings(self.kind, now.since(Time::ZERO)));
    }
}

#[cfg(test)]
#[path = "linked_tests.rs"]
mod tests;
