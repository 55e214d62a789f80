//! A machine of a volume above members with a fixed latency, as in the laboratory of the kernel.

use super::super::records::{MdRecords, RecordedArray, Recorder};
use crate::bytes::build;
use crate::{MdVolume, Surroundings, Volume};
use fullstroke_contract::{
    Breakdown, Completion, Effect, Effects, Gauge, Hints, LayerOrder, LayersBelow, Node,
    NodeContext, Operation, Port, Request, RequestId, RequestStatus,
};
use fullstroke_units::{Duration, Sectors, Time};
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Latency of a member: `completion_nsec` of the laboratory's null_blk.
pub(super) const LATENCY: Duration = Duration::from_nanos(4_000_000);

/// Sectors of a member: 1 GiB less the 2 MiB that mdadm keeps before the data.
const MEMBER: u64 = 2 * 1022 * 1024;

/// Bytes of the longest bio: `BIO_MAX_VECS` pages.
pub(super) const BIO: u64 = 256 * 4096;

/// A member I/O: operation, member, first byte, bytes.
pub(super) type MemberIo = (Operation, usize, u64, u64);

/// The completion of a member I/O: its time, its number, the member, the id, the submission.
type Landing = (Time, u64, usize, RequestId, Time);

enum TestedArray {
    Stripes(Box<MdVolume>),
    Copies(Box<Volume>),
    Recorded(Box<Recorder>),
}

impl TestedArray {
    fn node(&self) -> &dyn Node {
        match self {
            TestedArray::Stripes(array) => &**array,
            TestedArray::Copies(array) => &**array,
            TestedArray::Recorded(array) => &**array,
        }
    }
    fn node_mut(&mut self) -> &mut dyn Node {
        match self {
            TestedArray::Stripes(array) => &mut **array,
            TestedArray::Copies(array) => &mut **array,
            TestedArray::Recorded(array) => &mut **array,
        }
    }
}

pub(super) struct Laboratory {
    array: TestedArray,
    gauges: Vec<Gauge>,
    pub(super) now: Time,
    latency: Duration,
    /// Time that each member needs longer than the member before.
    pub(super) step: Duration,
    /// For members that carry out one request at a time, the time at which each member is free.
    free_at: Option<Vec<Time>>,
    /// Latency of a flush of a member; zero for a member without a write cache.
    pub(super) flush_latency: Duration,
    /// Port that refuses each I/O.
    pub(super) refuses: Option<usize>,
    /// Completions by time and order of submission.
    flying: BinaryHeap<Reverse<Landing>>,
    submissions: u64,
    pub(super) issued: Vec<MemberIo>,
    /// Times of all member I/O so far.
    issued_at: Vec<Time>,
    /// Number of flushes that members got.
    pub(super) flushes: u64,
    pub(super) done: Vec<Completion>,
}

impl Laboratory {
    /// Returns an array with md's records on the members.
    pub(super) fn recorded(
        layout: &str,
        keys: &Value,
        members: usize,
        records: MdRecords,
    ) -> Laboratory {
        Laboratory::recorded_over(layout, keys, members, MEMBER, LATENCY, records)
    }

    /// Returns an array with md's records on members of this number of sectors, and of this latency.
    pub(super) fn recorded_over(
        layout: &str,
        keys: &Value,
        members: usize,
        sectors: u64,
        latency: Duration,
        records: MdRecords,
    ) -> Laboratory {
        let mut laboratory = Laboratory::of(layout, keys, members, false, sectors, latency, None);
        let array = match laboratory.array {
            TestedArray::Stripes(mut array) => {
                array.core.add_log_of(&records);
                if records.journal.is_some() {
                    // The journal is the port behind the members.
                    laboratory.gauges.push(laboratory.gauges[0]);
                }
                RecordedArray::Stripes(array)
            }
            TestedArray::Copies(array) => RecordedArray::Copies(array),
            TestedArray::Recorded(_) => unreachable!("a new array has no records yet"),
        };
        laboratory.array = TestedArray::Recorded(Box::new(Recorder::new(array, records, true)));
        laboratory
    }

    /// Returns an array of members without elevators.
    pub(super) fn new(layout: &str, keys: &Value, members: usize) -> Laboratory {
        Laboratory::over(layout, keys, members, false)
    }

    /// Returns an array of members with or without elevators.
    pub(super) fn over(layout: &str, keys: &Value, members: usize, elevators: bool) -> Laboratory {
        Laboratory::of(layout, keys, members, elevators, MEMBER, LATENCY, None)
    }

    /// Returns an array of members of this number of sectors, and of this latency.
    pub(super) fn of(
        layout: &str,
        keys: &Value,
        members: usize,
        elevators: bool,
        sectors: u64,
        latency: Duration,
        sync_io_depth: Option<u32>,
    ) -> Laboratory {
        let layout = build(layout, keys, &vec![sectors; members]).unwrap();
        let gauge = Gauge {
            alive: true,
            ..Gauge::default()
        };
        Laboratory {
            array: match layout.md() {
                Some(setup) => {
                    let around = Surroundings {
                        direct: true,
                        elevators,
                    };
                    TestedArray::Stripes(Box::new(MdVolume::with(
                        Volume::new(layout)
                            .with_long_units(Sectors(2048))
                            .with_sync_io_depth(sync_io_depth),
                        &setup,
                        around,
                    )))
                }
                None => TestedArray::Copies(Box::new(
                    Volume::new(layout)
                        .with_long_units(Sectors(2048))
                        .with_sync_io_depth(sync_io_depth),
                )),
            },
            gauges: vec![gauge; members],
            now: Time::ZERO,
            latency,
            step: Duration::ZERO,
            free_at: None,
            flush_latency: latency,
            refuses: None,
            flying: BinaryHeap::new(),
            submissions: 0,
            issued: Vec::new(),
            issued_at: Vec::new(),
            flushes: 0,
            done: Vec::new(),
        }
    }

    fn with(&mut self, event: impl FnOnce(&mut dyn Node, &mut NodeContext<'_>)) {
        let tables = vec![None; self.gauges.len()];
        let mut out = Effects::new();
        let below = LayersBelow::new(&self.gauges, &tables);
        event(
            self.array.node_mut(),
            &mut NodeContext {
                below,
                out: &mut out,
            },
        );
        for effect in out.drain() {
            match effect {
                Effect::Issue { port, request } => {
                    self.submissions += 1;
                    let member = port.index();
                    let bytes = |sectors: u64| sectors * 512;
                    if request.operation.transfers() {
                        self.issued_at.push(self.now);
                        self.issued.push((
                            request.operation,
                            member,
                            bytes(request.extent.start.0),
                            bytes(request.extent.sectors.0),
                        ));
                    }
                    self.flushes += u64::from(request.operation == Operation::Flush);
                    self.gauges[member].queue_length += 1;
                    let latency = match request.operation {
                        Operation::Flush => self.flush_latency,
                        _ => self.latency + self.step * member as u64,
                    };
                    let mut due = self.now + latency;
                    if let Some(free_at) = &mut self.free_at {
                        due = self.now.max(free_at[member]) + latency;
                        free_at[member] = due;
                    }
                    self.flying.push(Reverse((
                        due,
                        self.submissions,
                        member,
                        request.id,
                        self.now,
                    )));
                }
                Effect::Complete { completion, .. } => self.done.push(completion),
                Effect::Notice { .. } => {}
            }
        }
    }

    /// Makes the members carry out one request at a time.
    pub(super) fn one_at_a_time(&mut self) {
        self.free_at = Some(vec![Time::ZERO; self.gauges.len()]);
    }

    /// Returns the I/O of `issued` after a time.
    pub(super) fn issued_after(&self, time: Time) -> impl Iterator<Item = &MemberIo> {
        let times = &self.issued_at[self.issued_at.len() - self.issued.len()..];
        let after = move |(_, at): &(&MemberIo, &Time)| **at > time;
        self.issued
            .iter()
            .zip(times)
            .filter(after)
            .map(|(io, _)| io)
    }

    /// Returns the number of requests that have ended.
    pub(super) fn ended(&self) -> u64 {
        self.done.len() as u64
    }

    pub(super) fn submit(&mut self, id: u64, operation: Operation, offset: u64, bytes: u64) {
        let request = Request {
            id: RequestId(id),
            operation,
            hints: Hints {
                process: 1,
                ..Hints::default()
            },
            extent: fullstroke_contract::Extent {
                start: fullstroke_units::Lbn(offset / 512),
                sectors: Sectors(bytes / 512),
            },
            ..Request::default()
        };
        let now = self.now;
        self.with(|node, cx| node.submit(now, Port::FIRST, request, cx));
    }

    /// Empties the stripe cache but for 17 stripes, as a smaller `stripe_cache_size` does.
    pub(super) fn cool(&mut self) {
        let array = match &mut self.array {
            TestedArray::Stripes(array) => Some(&mut **array),
            TestedArray::Copies(_) => None,
            TestedArray::Recorded(array) => array.stripes_mut(),
        };
        if let Some(array) = array {
            array.core.stripes.shrink(17);
        }
    }

    pub(super) fn order(&mut self, order: LayerOrder) {
        let now = self.now;
        self.with(|node, cx| node.ordered(now, order, cx).unwrap());
    }

    /// Returns the time of the next event.
    pub(super) fn next(&self) -> Time {
        let landing = self
            .flying
            .peek()
            .map_or(Time::NEVER, |Reverse(next)| next.0);
        landing.min(self.array.node().next_wake().at())
    }

    /// True if a request is under way. A run does not wait for anything else.
    pub(super) fn has_work(&self) -> bool {
        !self.flying.is_empty() || self.array.node().next_wake().is_work()
    }

    /// Carries out the next event.
    pub(super) fn step(&mut self) {
        let next = self.next();
        assert_ne!(next, Time::NEVER, "nothing happens any more");
        self.now = next;
        if let Some(&Reverse((due, _, member, id, submitted))) = self.flying.peek()
            && due == next
        {
            self.flying.pop();
            self.gauges[member].queue_length -= 1;
            let status = match self.refuses == Some(member) {
                true => RequestStatus::Lost,
                false => RequestStatus::Done,
            };
            let completion = Completion {
                id,
                submitted,
                finished: next,
                status,
                breakdown: Breakdown {
                    transfer: next.since(submitted),
                    ..Breakdown::default()
                },
            };
            return self.with(|node, cx| node.completed(next, Port::of(member), completion, cx));
        }
        self.with(|node, cx| node.wake(next, cx));
    }

    /// Lets time pass.
    pub(super) fn rest(&mut self, span: Duration) {
        let end = self.now + span;
        while self.next() <= end {
            self.step();
        }
        self.now = end;
    }

    /// Carries out one request with all its member I/O. Returns the member I/O.
    pub(super) fn single(
        &mut self,
        operation: Operation,
        offset: u64,
        bytes: u64,
    ) -> Vec<MemberIo> {
        self.pieces(operation, offset, bytes, (u64::MAX, u64::MAX))
    }

    /// Carries out one request in pieces, as the block layer divides it, and everything that it
    /// causes. A piece has at most the bytes of the first limit and does not cross a multiple of
    /// the second. Returns the member I/O.
    pub(super) fn pieces(
        &mut self,
        operation: Operation,
        offset: u64,
        bytes: u64,
        (largest, chunk): (u64, u64),
    ) -> Vec<MemberIo> {
        self.issued.clear();
        self.done.clear();
        let submitted = self.now;
        let (mut at, mut pieces) = (offset, 0);
        while at < offset + bytes {
            let to_chunk = chunk - at % chunk;
            // A bio of direct I/O has at most 256 pages.
            let to_bio = BIO - (at - offset) % BIO;
            let length = match largest {
                u64::MAX => bytes,
                _ => largest.min(to_chunk).min(to_bio).min(offset + bytes - at),
            };
            pieces += 1;
            self.submit(pieces, operation, at, length);
            at += length;
        }
        // The thread may have to put a stripe aside. The daemon of a bitmap comes seconds later.
        let soon = Duration::from_nanos(1_000_000);
        let ended = |done: &[Completion]| done.len() as u64 >= pieces;
        while !ended(&self.done) || !self.flying.is_empty() || self.next() <= self.now + soon {
            self.step();
        }
        assert_eq!(self.done.len() as u64, pieces, "completions of one request");
        for done in &self.done {
            assert_eq!(done.finished.since(submitted), done.breakdown.response());
        }
        std::mem::take(&mut self.issued)
    }
}
