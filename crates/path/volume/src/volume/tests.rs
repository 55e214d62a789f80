//! Tests of the volume with members of arbitrary service times.

use super::Volume;
use crate::bytes::{Buffers, ByteArray, ByteDevice, SECTOR, build, range, run_io};
use crate::proofs::{ProofRequest, asks, cases, check_parity};
use crate::{ChunkRows, Detail, Plan};
use fullstroke_contract::{
    Breakdown, Completion, Effect, Effects, Extent, Hints, LayersBelow, MemberState, Node,
    NodeContext, Operation, Port, Request, RequestId, RequestStatus,
};
use fullstroke_units::{Duration, Random, Sectors, Seed, Time};
use proptest::prelude::*;
use serde_json::json;
use std::collections::BTreeMap;

/// A member I/O in flight.
#[derive(Clone, Copy, Debug)]
struct PendingIo {
    /// Time when the completion is reported; may be later than the completion itself.
    reported: Time,
    member: usize,
    request: Request,
    completion: Completion,
}

/// The bytes of a request.
#[derive(Default)]
struct RequestBytes {
    /// Bytes as submitted; empty as soon as the buffers exist.
    bytes: Vec<u8>,
    /// Buffers; known with the first member I/O.
    buffers: Option<Buffers>,
    /// Strands with completed arithmetic.
    stepped: Vec<bool>,
    /// For a read: its start, and the expected bytes if all earlier requests and no later request
    /// had been carried out.
    read: Option<(u64, Vec<u8>)>,
}

/// A volume, its members, and the bytes in transfer.
struct Rig {
    volume: Volume,
    members: Vec<Box<dyn ByteDevice>>,
    pending: Vec<PendingIo>,
    random: Random,
    /// Number of data sectors in a row, if reads with a rebuild of data are to be checked.
    row_sectors: Option<u64>,
    /// Transfers by origin.
    transfers: BTreeMap<u64, RequestBytes>,
    done: Vec<Completion>,
}

impl Rig {
    fn new(array: ByteArray, row_sectors: Option<u64>, seed: u64) -> Rig {
        Rig {
            volume: Volume::with_detail(array.layout, Detail::Bytes),
            members: array.members,
            pending: Vec::new(),
            random: Seed(seed).stream("members"),
            row_sectors,
            transfers: BTreeMap::new(),
            done: Vec::new(),
        }
    }

    /// Submits a request. `bytes` is the data of a write or the expected data of a read.
    fn submit(&mut self, now: Time, request: Request, bytes: Vec<u8>) {
        let mut out = Effects::new();
        let read =
            (request.operation == Operation::Read).then(|| (request.extent.start.0, bytes.clone()));
        self.transfers.insert(
            request.origin,
            RequestBytes {
                bytes,
                read,
                ..RequestBytes::default()
            },
        );
        self.volume
            .submit(now, Port::FIRST, request, &mut NodeContext::alone(&mut out));
        self.take(now, &mut out);
    }

    /// Delivers the next completion in time.
    fn step(&mut self) {
        let next = (0..self.pending.len())
            .min_by_key(|&at| self.pending[at].reported)
            .unwrap();
        let pending = self.pending.swap_remove(next);
        self.move_bytes(&pending);
        let mut out = Effects::new();
        let (now, member) = (pending.reported, pending.member);
        self.volume.completed(
            now,
            Port::of(member),
            pending.completion,
            &mut NodeContext::alone(&mut out),
        );
        let before = self.done.len();
        self.take(now, &mut out);
        if self.done.len() > before {
            self.check_rebuilt_rows(&pending);
        }
    }

    /// Checks a read of lost data. Such a read has exclusive rows. It must find all data written
    /// before its submission, and nothing newer.
    fn check_rebuilt_rows(&mut self, last: &PendingIo) {
        let (plan, _) = self.volume.plan_of(last.request.id).unwrap();
        let Some(transfer) = self.transfers.remove(&last.request.origin) else {
            return;
        };
        let (Some(row_sectors), Some((start, expected)), Some(mut buffers)) =
            (self.row_sectors, transfer.read, transfer.buffers)
        else {
            return;
        };
        buffers.run_steps(plan, 0);
        let rebuilt = |row| plan.bands().iter().any(|band| band.row == row);
        for (at, expected) in expected.chunks(SECTOR).enumerate() {
            if rebuilt((start + at as u64) / row_sectors) {
                assert_eq!(&buffers.request[range(at as u64, 1)], expected);
            }
        }
    }

    fn move_bytes(&mut self, pending: &PendingIo) {
        let (plan, io) = self.volume.plan_of(pending.request.id).unwrap();
        let RequestBytes {
            bytes,
            buffers,
            stepped,
            ..
        } = self.transfers.get_mut(&pending.request.origin).unwrap();
        let buffers = buffers.get_or_insert_with(|| Buffers::new(std::mem::take(bytes), plan));
        stepped.resize(plan.strands().len(), false);
        let strand = plan.ios()[io].strand as usize;
        if pending.request.operation == Operation::Write && !stepped[strand] {
            buffers.run_steps(plan, strand);
            stepped[strand] = true;
        }
        run_io(&mut self.members, plan, io, buffers);
    }

    fn take(&mut self, now: Time, out: &mut Effects) {
        for effect in out.drain() {
            match effect {
                Effect::Issue { port, request } => self.issue(now, port.index(), request),
                Effect::Complete { completion, .. } => self.done.push(completion),
                Effect::Notice { .. } => panic!("the volume sends no signals"),
            }
        }
    }

    fn issue(&mut self, now: Time, member: usize, request: Request) {
        let mut part = || Duration::from_nanos(self.random.below(50));
        let breakdown = Breakdown {
            queue: part(),
            parity: part(),
            overhead: part(),
            seek: part(),
            rotation: part(),
            transfer: part(),
            seek_cylinders: 0,
        };
        let finished = now + breakdown.response();
        let id = request.id;
        let completion = Completion {
            id,
            submitted: now,
            finished,
            status: RequestStatus::Done,
            breakdown,
        };
        self.pending.push(PendingIo {
            reported: finished + part(),
            member,
            request,
            completion,
        });
    }

    /// Returns the rows of running writes, each with its request.
    fn rows_in_use(&self) -> Vec<(ChunkRows, u64)> {
        let mut rows: Vec<(ChunkRows, u64)> = Vec::new();
        for pending in &self.pending {
            let (plan, io) = self.volume.plan_of(pending.request.id).unwrap();
            let strand = plan.ios()[io].strand as usize;
            if let Some(own) = plan.strands()[strand].exclusive_rows() {
                rows.push((own, pending.request.origin));
            }
        }
        rows
    }

    fn check_rows_are_exclusive(&self) {
        let rows = self.rows_in_use();
        for (at, (a, owner)) in rows.iter().enumerate() {
            for (b, other) in &rows[at + 1..] {
                assert!(
                    owner == other || a.last < b.first || b.last < a.first,
                    "{a:?} and {b:?}"
                );
            }
        }
    }

    fn check_completions_add_up(&self) {
        for completion in &self.done {
            let response = completion.finished.since(completion.submitted);
            assert_eq!(completion.breakdown.response(), response);
        }
    }
}

fn request(number: u64, operation: Operation, extent: Extent) -> Request {
    Request {
        id: RequestId(number * 3),
        origin: number,
        operation,
        extent,
        hints: Hints::default(),
        ..Request::default()
    }
}

/// Carries out the writes and discards in order of submission on plain memory.
fn replay_plainly(plain: &mut [u8], ask: &ProofRequest, extent: Extent, discarded: Extent) {
    match ask.operation {
        Operation::Write => {
            plain[range(extent.start.0, extent.sectors.0)].copy_from_slice(&ask.bytes(extent));
        }
        Operation::Discard => plain[range(discarded.start.0, discarded.sectors.0)].fill(0),
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Overlapping writes give the same result as serial writes in order of submission. The same
    /// holds for the parity.
    #[test]
    fn concurrent_requests_keep_rows_consistent_and_their_parts_add_up(
        case in cases().prop_filter("rows with parity", |case| case.parity_rows().is_some()),
        asks in asks(60),
        failures in 0usize..3,
        seed: u64,
        eagerness in 0u64..100,
    ) {
        let failed = case.failing(failures);
        let mut array = ByteArray::of_memory(case.layout(&failed).unwrap());
        failed.iter().for_each(|&member| array.scramble(member as usize));
        let capacity = array.layout.capacity().0;
        let mut rig = Rig::new(array, case.parity_rows().map(|rows| rows.data.0), seed);
        let mut plain = vec![0; capacity as usize * SECTOR];
        let mut now = Time::ZERO;
        for (number, ask) in asks.iter().enumerate() {
            let extent = ask.extent(capacity);
            replay_plainly(&mut plain, ask, extent, case.discarded(extent));
            let bytes = plain[range(extent.start.0, extent.sectors.0)].to_vec();
            rig.submit(now, request(number as u64, ask.operation, extent), bytes);
            rig.check_rows_are_exclusive();
            while !rig.pending.is_empty() && rig.random.below(100) < eagerness {
                now = rig.pending.iter().map(|pending| pending.reported).min().unwrap();
                rig.step();
                rig.check_rows_are_exclusive();
                rig.check_completions_add_up();
            }
            let in_flight = number + 1 - rig.done.len();
            prop_assert_eq!(rig.volume.gauge().queue_length as usize, in_flight);
            prop_assert_eq!(rig.volume.gauge().idle_since.is_some(), in_flight == 0);
        }
        while !rig.pending.is_empty() {
            rig.step();
            rig.check_rows_are_exclusive();
            rig.check_completions_add_up();
        }
        prop_assert_eq!(rig.done.len(), asks.len(), "nothing is lost in flight");
        prop_assert!(rig.done.iter().all(|completion| completion.status == RequestStatus::Done));
        let mut ids: Vec<u64> = rig.done.iter().map(|completion| completion.id.0).collect();
        ids.sort_unstable();
        prop_assert_eq!(ids, (0..asks.len() as u64).map(|number| number * 3).collect::<Vec<_>>());

        let mut array = ByteArray::new(case.layout(&failed).unwrap(), rig.members);
        prop_assert!(array.read(0, capacity) == plain, "as if one after the other");
        if failed.is_empty() {
            check_parity(&mut array);
        }
    }

    #[test]
    fn every_layout_completes_every_request(
        case in cases(), asks in asks(40), failures in 0usize..3, seed: u64,
    ) {
        let array = ByteArray::of_memory(case.layout(&case.failing(failures)).unwrap());
        let capacity = array.layout.capacity().0;
        let mut rig = Rig::new(array, None, seed);
        for (number, ask) in asks.iter().enumerate() {
            let extent = ask.extent(capacity);
            let operation = if ask.operation == Operation::Discard { Operation::Flush } else { ask.operation };
            rig.submit(Time::ZERO, request(number as u64, operation, extent), ask.bytes(extent));
        }
        while !rig.pending.is_empty() {
            rig.step();
        }
        rig.check_completions_add_up();
        prop_assert_eq!(rig.done.len(), asks.len());
    }
}

/// A raid5 of four members with chunks of 128 sectors, and completions from the test.
struct VolumeBench {
    volume: Volume,
    out: Effects,
}

impl VolumeBench {
    fn new() -> VolumeBench {
        let layout = build("raid5", &json!({}), &[12_800; 4]).unwrap();
        VolumeBench {
            volume: Volume::new(layout),
            out: Effects::new(),
        }
    }

    /// Submits a request. `bytes` is the data of a write or the expected data of a read.
    fn submit(&mut self, now: u64, request: Request) -> Vec<Effect> {
        self.volume.submit(
            Time::from_nanos(now),
            Port::FIRST,
            request,
            &mut NodeContext::alone(&mut self.out),
        );
        self.out.drain().collect()
    }

    /// Completes the issued `effect` at `finished` with `status`. All of its time counts as seek.
    fn finish(
        &mut self,
        effect: &Effect,
        submitted: u64,
        finished: u64,
        status: RequestStatus,
    ) -> Vec<Effect> {
        let Effect::Issue { port, request } = *effect else {
            panic!("{effect:?} was not issued")
        };
        let seek = Duration::from_nanos(finished - submitted);
        let completion = Completion {
            id: request.id,
            submitted: Time::from_nanos(submitted),
            finished: Time::from_nanos(finished),
            status,
            breakdown: Breakdown {
                seek,
                ..Breakdown::default()
            },
        };
        let now = completion.finished;
        self.volume.completed(
            now,
            port,
            completion,
            &mut NodeContext::alone(&mut self.out),
        );
        self.out.drain().collect()
    }
}

fn completion(effects: &[Effect]) -> Completion {
    match effects {
        [Effect::Complete { completion, .. }] => *completion,
        other => panic!("expected one completion, found {other:?}"),
    }
}

fn operations(effects: &[Effect]) -> Vec<(u32, Operation)> {
    let issued = effects.iter().filter_map(|effect| match effect {
        Effect::Issue { port, request } => Some((u32::from(port.0), request.operation)),
        _ => None,
    });
    issued.collect()
}

const SMALL: Extent = Extent::new(0, 8);

#[test]
fn a_small_write_reads_first_and_counts_that_as_parity() {
    let mut bench = VolumeBench::new();
    let reads = bench.submit(100, request(0, Operation::Write, SMALL));
    assert_eq!(
        operations(&reads),
        [(3, Operation::Read), (0, Operation::Read)]
    );
    assert_eq!(bench.finish(&reads[0], 100, 130, RequestStatus::Done), []);
    let writes = bench.finish(&reads[1], 100, 150, RequestStatus::Done);
    assert_eq!(
        operations(&writes),
        [(0, Operation::Write), (3, Operation::Write)]
    );
    assert_eq!(bench.finish(&writes[0], 150, 190, RequestStatus::Done), []);
    let done = completion(&bench.finish(&writes[1], 150, 170, RequestStatus::Done));
    assert_eq!(done.finished, Time::from_nanos(190), "the later of the two");
    assert_eq!(done.breakdown.parity, Duration::from_nanos(50));
    assert_eq!(done.breakdown.seek, Duration::from_nanos(40));
}

#[test]
fn a_second_write_of_the_row_waits_and_a_read_does_not() {
    let mut bench = VolumeBench::new();
    let reads = bench.submit(0, request(0, Operation::Write, SMALL));
    assert_eq!(
        bench.submit(10, request(1, Operation::Write, Extent::new(200, 8))),
        []
    );
    assert_eq!(
        operations(&bench.submit(10, request(2, Operation::Read, SMALL))).len(),
        1
    );
    bench.finish(&reads[0], 0, 20, RequestStatus::Done);
    let writes = bench.finish(&reads[1], 0, 20, RequestStatus::Done);
    bench.finish(&writes[0], 20, 40, RequestStatus::Done);
    let freed = bench.finish(&writes[1], 20, 40, RequestStatus::Done);
    assert_eq!(
        operations(&freed),
        [(3, Operation::Read), (1, Operation::Read)]
    );
    assert!(matches!(freed[2], Effect::Complete { completion: _, .. }));
}

#[test]
fn after_reads_that_were_lost_nothing_is_written() {
    let mut bench = VolumeBench::new();
    let reads = bench.submit(0, request(0, Operation::Write, SMALL));
    bench.finish(&reads[0], 0, 20, RequestStatus::Lost);
    let done = completion(&bench.finish(&reads[1], 0, 30, RequestStatus::Done));
    assert_eq!(done.status, RequestStatus::Lost);
    assert_eq!(done.breakdown.response(), Duration::from_nanos(30));
    assert_eq!(
        bench.submit(40, request(1, Operation::Write, SMALL)).len(),
        2,
        "the row is free again"
    );
}

#[test]
fn member_io_carries_the_hints_and_the_row() {
    let mut bench = VolumeBench::new();
    let hints = Hints {
        stream: 7,
        synchronous: false,
        ..Hints::default()
    };
    let write = Request {
        hints,
        ..request(0, Operation::Write, Extent::new(5 * 384, 8))
    };
    let reads = bench.submit(0, write);
    let hints_of = |effect: &Effect| match effect {
        Effect::Issue { request, .. } => request.hints,
        other => panic!("{other:?} was not issued"),
    };
    assert_eq!(
        hints_of(&reads[0]),
        Hints {
            stripe: Some(5),
            synchronous: true,
            ..hints
        }
    );
    bench.finish(&reads[0], 0, 20, RequestStatus::Done);
    let writes = bench.finish(&reads[1], 0, 20, RequestStatus::Done);
    assert_eq!(
        hints_of(&writes[0]),
        Hints {
            stripe: Some(5),
            ..hints
        }
    );
}

#[test]
fn what_cannot_be_served_is_answered_at_once() {
    let mut bench = VolumeBench::new();
    for (extent, operation) in [
        (Extent::new(0, 0), Operation::Read),
        (Extent::new(u64::MAX, 8), Operation::Write),
        (Extent::new(100 * 384, 1), Operation::Read),
    ] {
        let done = completion(&bench.submit(5, request(4, operation, extent)));
        assert_eq!(
            (done.id, done.status),
            (RequestId(12), RequestStatus::OutOfRange)
        );
        assert_eq!(done.breakdown, Breakdown::default());
    }
    let done = completion(&bench.submit(6, request(4, Operation::Discard, SMALL)));
    assert_eq!(
        done.status,
        RequestStatus::Done,
        "part of a row is not discarded"
    );
    assert_eq!(bench.volume.gauge().queue_length, 0);
}

#[test]
fn a_flush_and_a_discard_of_rows_reach_all_members() {
    let mut bench = VolumeBench::new();
    assert_eq!(
        bench
            .submit(0, request(0, Operation::Flush, Extent::default()))
            .len(),
        4
    );
    let discards = bench.submit(0, request(1, Operation::Discard, Extent::new(100, 1100)));
    assert_eq!(discards.len(), 4);
    for effect in &discards {
        let Effect::Issue { request, .. } = effect else {
            panic!("{effect:?} was not issued")
        };
        assert_eq!(request.extent, Extent::new(128, 256), "rows 1 and 2");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// A scrub through addresses of members reads each used sector of each member exactly once,
    /// copies and parity included. Exceptions are the sectors of a failed member and the unfilled
    /// sectors of a member under rebuild.
    #[test]
    fn reads_of_members_meet_each_used_sector_of_each_member_once(
        case in cases(),
        at_a_time in 1u64..40,
        failed in any::<prop::sample::Index>(),
        filled in prop::option::of(0u64..40),
    ) {
        let mut layout = case.layout(&[]).unwrap();
        let members = layout.members();
        let failed = failed.index(members + 1);
        if failed < members {
            let done = filled.map(|done| MemberState::Rebuilding { done: Sectors(done) });
            layout.set_member_state(failed, done.unwrap_or(MemberState::Failed));
        }
        let used: Vec<u64> = (0..members).map(|member| layout.member_used(member).0).collect();
        let longest = used.iter().copied().max().unwrap();
        let (below, mut plan) = (LayersBelow::NOTHING, Plan::new(Detail::Timing));
        let mut met: Vec<Vec<u32>> = used.iter().map(|&used| vec![0; used as usize]).collect();
        for start in (0..longest).step_by(at_a_time as usize) {
            let hints = Hints { members: true, ..Hints::default() };
            let request = Request { extent: Extent::new(start, at_a_time), hints, ..Request::default() };
            let status = layout.plan(&request, below, &mut plan);
            prop_assert_eq!(status == RequestStatus::Done, !plan.ios().is_empty());
            prop_assert_ne!(status, RequestStatus::OutOfRange);
            for io in plan.ios() {
                let (start, end) = (io.extent.start.0 as usize, io.extent.end().0 as usize);
                met[io.member as usize][start..end].iter_mut().for_each(|times| *times += 1);
            }
        }
        for (member, met) in met.iter().enumerate() {
            let whole = member != failed;
            for (at, &times) in met.iter().enumerate() {
                let there = whole || filled.is_some_and(|done| (at as u64) < done);
                prop_assert!(times <= 1, "member {member}, sector {at}: {times}");
                // A read that reaches beyond the filled part is left out as a whole.
                prop_assert!(if whole { times == 1 } else { there || times == 0 }, "member {member}, sector {at}");
            }
        }
        let hints = Hints { members: true, ..Hints::default() };
        let beyond = Request { extent: Extent::new(longest, 8), hints, ..Request::default() };
        prop_assert_eq!(layout.plan(&beyond, below, &mut plan), RequestStatus::OutOfRange);
    }
}
