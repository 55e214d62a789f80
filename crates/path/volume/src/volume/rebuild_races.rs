//! Requests and rebuilds at the same time, on bytes. A new member must end with the correct content
//! for every order of the members' completions.

use super::Volume;
use super::rebuild::Units;
use crate::bytes::{Buffers, ByteArray, ByteDevice, SECTOR, range, run_io};
use crate::proofs::{Case, ProofRequest, asks};
use crate::rebuild_proofs::{check_members, redundant_cases};
use crate::{Detail, Plan};
use fullstroke_contract::{
    Breakdown, Completion, Effect, Effects, Extent, LayerOrder, MemberState, Node, NodeContext,
    Operation, Port, Request, RequestId, RequestStatus, Signal,
};
use fullstroke_units::{Bytes, Duration, Random, Sectors, Seed, Time};
use proptest::prelude::*;
use proptest::sample::Index;
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
enum RaceEvent {
    Ask(ProofRequest),
    Fail(Index),
    /// Restores a failed member at a rate in bytes per second.
    Restore(Index, Option<u64>),
    /// Lets this number of events happen.
    Pass(usize),
}

fn events(most: usize) -> impl Strategy<Value = Vec<RaceEvent>> {
    let ask = asks(2).prop_map(|mut asks| RaceEvent::Ask(asks.remove(0)));
    let rate = prop_oneof![Just(None), (1u64..2_000_000_000_000).prop_map(Some)];
    let event = prop_oneof![
        10 => ask,
        2 => any::<Index>().prop_map(RaceEvent::Fail),
        3 => (any::<Index>(), rate).prop_map(|(member, rate)| RaceEvent::Restore(member, rate)),
        5 => (0usize..12).prop_map(RaceEvent::Pass),
    ];
    prop::collection::vec(event, 1..most)
}

/// A member I/O in flight.
struct PendingIo {
    reported: Time,
    member: usize,
    request: Request,
    completion: Completion,
}

/// The bytes of a plan in flight.
struct PlanBytes {
    plan: Plan,
    buffers: Buffers,
    stepped: Vec<bool>,
    /// Number of I/Os in flight.
    left: usize,
    /// For a read: the expected bytes.
    expected: Option<Vec<u8>>,
}

/// A request in flight.
#[derive(Clone)]
struct RequestInFlight {
    extent: Extent,
    operation: Operation,
    bytes: Vec<u8>,
}

struct Rig {
    volume: Volume,
    members: Vec<Box<dyn ByteDevice>>,
    /// A whole layout of the same kind, to try failures on.
    trial: Box<dyn crate::Layout>,
    case: Case,
    now: Time,
    random: Random,
    pending: Vec<PendingIo>,
    /// Transfers by slot.
    transfers: BTreeMap<u64, PlanBytes>,
    /// Requests in flight, by origin.
    asked: BTreeMap<u64, RequestInFlight>,
    plain: Vec<u8>,
    signals: Vec<Signal>,
    submitted: u64,
    /// True if wake-ups may be late.
    late: bool,
}

impl Rig {
    fn new(case: &Case, seed: u64, sizes: Units, late: bool) -> Rig {
        let array = ByteArray::of_memory(case.layout(&[]).unwrap());
        let plain = vec![0; array.layout.capacity().0 as usize * SECTOR];
        let mut volume = Volume::with_detail(array.layout, Detail::Bytes);
        volume.rebuilds.sizes = sizes;
        Rig {
            volume,
            members: array.members,
            trial: case.layout(&[]).unwrap(),
            case: case.clone(),
            now: Time::ZERO,
            random: Seed(seed).stream("members"),
            pending: Vec::new(),
            transfers: BTreeMap::new(),
            asked: BTreeMap::new(),
            plain,
            signals: Vec::new(),
            submitted: 0,
            late,
        }
    }

    fn run(&mut self, events: Vec<RaceEvent>) {
        for event in events {
            match event {
                RaceEvent::Ask(ask) => self.ask(&ask),
                RaceEvent::Fail(member) => self.fail(member.index(self.members.len())),
                RaceEvent::Restore(member, rate) => {
                    let failed = self.volume.layout().failed();
                    if !failed.is_empty() {
                        self.restore(failed[member.index(failed.len())] as usize, rate);
                    }
                }
                RaceEvent::Pass(steps) => (0..steps).for_each(|_| {
                    self.step();
                }),
            }
        }
    }

    /// Submits a request without overlap with a request in flight. A mirror promises no order for
    /// overlapping requests.
    fn ask(&mut self, ask: &ProofRequest) {
        let extent = ask.extent(self.volume.layout().capacity().0);
        let overlaps = |other: &RequestInFlight| {
            extent.start < other.extent.end() && other.extent.start < extent.end()
        };
        while self.asked.values().any(overlaps) {
            assert!(self.step(), "requests end");
        }
        let own = range(extent.start.0, extent.sectors.0);
        match ask.operation {
            Operation::Write => self.plain[own.clone()].copy_from_slice(&ask.bytes(extent)),
            Operation::Discard => {
                let gone = self.case.discarded(extent);
                self.plain[range(gone.start.0, gone.sectors.0)].fill(0);
            }
            _ => {}
        }
        let bytes = self.plain[own].to_vec();
        let origin = self.submitted;
        self.submitted += 1;
        self.asked.insert(
            origin,
            RequestInFlight {
                extent,
                operation: ask.operation,
                bytes,
            },
        );
        // Ids that differ from the numbers of requests, so that a mix-up of both shows.
        let id = RequestId(origin * 7);
        let request = Request {
            id,
            origin,
            operation: ask.operation,
            extent,
            ..Request::default()
        };
        self.call(|volume, now, out| {
            volume.submit(now, Port::FIRST, request, &mut NodeContext::alone(out))
        });
    }

    /// Fails `member` if the array survives the failure.
    fn fail(&mut self, member: usize) {
        for other in 0..self.members.len() {
            self.trial
                .set_member_state(other, self.volume.layout().member_state(other));
        }
        self.trial.set_member_state(member, MemberState::Failed);
        if self.volume.layout().member_state(member) == MemberState::Failed || !self.trial.answers()
        {
            return;
        }
        // Earlier plans may rely on the content of the member.
        let order = LayerOrder::Fail { member };
        self.call(|volume, now, out| {
            volume
                .ordered(now, order, &mut NodeContext::alone(out))
                .unwrap()
        });
        // Requests and units planned before the failure still read the member. Its bytes become
        // noise only after they have ended.
        let (before, changes) = (self.submitted, self.volume.changes);
        while self.asked.keys().any(|&origin| origin < before)
            || self
                .volume
                .rebuilds
                .units()
                .any(|unit| unit.slot.is_some() && unit.changes < changes)
        {
            assert!(self.step(), "requests end");
        }
        let sectors = self.trial.member_capacity(member).0;
        let mut noise: Vec<u8> = (0..sectors as usize * SECTOR)
            .map(|at| (at * 89 + 7) as u8)
            .collect();
        self.members[member].perform(Operation::Write, Extent::new(0, sectors), &mut noise);
    }

    fn restore(&mut self, member: usize, rate: Option<u64>) {
        let (rate, done) = (rate.map(Bytes), Sectors::ZERO);
        let order = LayerOrder::Restore {
            member,
            done,
            rate,
            accept_data_loss: false,
        };
        self.call(|volume, now, out| {
            volume
                .ordered(now, order, &mut NodeContext::alone(out))
                .unwrap()
        });
    }

    /// Lets the next event happen. Returns false if there is no event.
    fn step(&mut self) -> bool {
        let next = (0..self.pending.len()).min_by_key(|&at| self.pending[at].reported);
        let reported = next.map_or(Time::NEVER, |at| self.pending[at].reported);
        let mut due = self.volume.next_wake().at();
        if self.late && due != Time::NEVER {
            // A late wake-up must not lose a step of the rebuild.
            due += Duration::from_nanos(self.random.below(40));
        }
        if due == Time::NEVER && reported == Time::NEVER {
            return false;
        }
        self.now = self.now.max(due.min(reported));
        if due <= reported {
            self.call(|volume, now, out| volume.wake(now, &mut NodeContext::alone(out)));
            return true;
        }
        let pending = self.pending.swap_remove(next.unwrap());
        self.move_bytes(&pending);
        self.call(|volume, now, out| {
            volume.completed(
                now,
                Port::of(pending.member),
                pending.completion,
                &mut NodeContext::alone(out),
            );
        });
        true
    }

    fn call(&mut self, event: impl FnOnce(&mut Volume, Time, &mut Effects)) {
        let mut out = Effects::new();
        event(&mut self.volume, self.now, &mut out);
        for effect in out.drain() {
            match effect {
                Effect::Issue { port, request } => self.issue(port.index(), request),
                Effect::Complete { completion, .. } => self.complete(&completion),
                Effect::Notice { notice, .. } => self.signals.push(notice.signal),
            }
        }
    }

    fn issue(&mut self, member: usize, request: Request) {
        self.begin_flight(request);
        let part = Duration::from_nanos(self.random.below(50));
        let finished = self.now + part;
        let breakdown = Breakdown {
            seek: part,
            ..Breakdown::default()
        };
        let (id, submitted) = (request.id, self.now);
        let completion = Completion {
            id,
            submitted,
            finished,
            status: RequestStatus::Done,
            breakdown,
        };
        let reported = finished + Duration::from_nanos(self.random.below(20));
        self.pending.push(PendingIo {
            reported,
            member,
            request,
            completion,
        });
    }

    /// Gives a plan its memory at the first of its I/Os.
    fn begin_flight(&mut self, request: Request) {
        // The upper half of an id is the slot of the plan, the lower half the I/O within the plan.
        let slot = request.id.0 >> 32;
        if self.transfers.contains_key(&slot) {
            return;
        }
        let (plan, _) = self.volume.plan_of(request.id).unwrap();
        let plan = plan.clone();
        let asked = self.asked.get(&request.origin);
        assert_eq!(asked.is_none(), request.origin == Request::BACKGROUND);
        let is_read = asked.is_some_and(|asked| asked.operation == Operation::Read);
        let bytes = asked.map_or(Vec::new(), |asked| asked.bytes.clone());
        let expected = is_read.then(|| bytes.clone());
        let buffers = Buffers::new(
            if is_read {
                // Unlike the expected bytes, so that a sector which no I/O fills shows.
                vec![0xEE; bytes.len()]
            } else {
                bytes
            },
            &plan,
        );
        let stepped = vec![false; plan.strands().len()];
        let left = plan.ios().len();
        self.transfers.insert(
            slot,
            PlanBytes {
                plan,
                buffers,
                stepped,
                left,
                expected,
            },
        );
    }

    fn move_bytes(&mut self, pending: &PendingIo) {
        let slot = pending.request.id.0 >> 32;
        let io = (pending.request.id.0 & u64::from(u32::MAX)) as usize;
        let transfer = self.transfers.get_mut(&slot).unwrap();
        let strand = transfer.plan.ios()[io].strand as usize;
        // The arithmetic of a strand runs between its reads and its first write.
        if pending.request.operation == Operation::Write && !transfer.stepped[strand] {
            transfer.buffers.run_steps(&transfer.plan, strand);
            transfer.stepped[strand] = true;
        }
        run_io(&mut self.members, &transfer.plan, io, &mut transfer.buffers);
        transfer.left -= 1;
        if transfer.left == 0 {
            let mut transfer = self.transfers.remove(&slot).unwrap();
            if let Some(expected) = transfer.expected {
                (0..transfer.stepped.len())
                    .for_each(|strand| transfer.buffers.run_steps(&transfer.plan, strand));
                assert_eq!(
                    transfer.buffers.request, expected,
                    "a read finds what was written"
                );
            }
        }
    }

    fn complete(&mut self, completion: &Completion) {
        assert_eq!(completion.status, RequestStatus::Done);
        assert_eq!(
            completion.breakdown.response(),
            completion.finished.since(completion.submitted)
        );
        let origin = completion.id.0 / 7;
        assert!(
            self.asked.remove(&origin).is_some(),
            "request {origin} ends once"
        );
    }

    /// Restores all members, waits for all events, and returns the array.
    fn mend(mut self) -> ByteArray {
        for &member in &self.volume.layout().failed().to_vec() {
            self.restore(member as usize, None);
        }
        while self.step() {}
        assert!(self.asked.is_empty(), "nothing is lost in flight");
        assert!(self.transfers.is_empty());
        assert!(self.volume.layout().member_states().impaired().is_empty());
        assert!(self.volume.gauge().idle_since.is_some());
        check_progress(&self.signals);
        let mut array = ByteArray::new(self.case.layout(&[]).unwrap(), self.members);
        let capacity = array.layout.capacity().0;
        assert!(
            array.read(0, capacity) == self.plain,
            "as if nothing had failed"
        );
        array
    }
}

/// Checks that signals report only progress, because no data was lost.
fn check_progress(signals: &[Signal]) {
    let mut latest = None;
    for signal in signals {
        let Signal::Rebuilt {
            member,
            done,
            whole,
            ..
        } = *signal
        else {
            panic!("{signal:?}")
        };
        if let Some((before, reached)) = latest
            && before == member
        {
            assert!(
                done > reached || done <= Sectors(24),
                "one unit behind the other, or from the beginning"
            );
        }
        latest = (!whole).then_some((member, done));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn members_fail_and_are_rebuilt_while_requests_go_on(
        case in redundant_cases(), events in events(80), seed: u64, unit in 1u64..16, window in 1usize..5,
        late: bool,
    ) {
        let sizes = Units { short: Sectors(unit), long: Sectors(unit), window };
        let mut rig = Rig::new(&case, seed, sizes, late);
        rig.run(events);
        let mut array = rig.mend();
        check_members(&mut array);
    }
}
