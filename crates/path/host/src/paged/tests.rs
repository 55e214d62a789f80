use super::*;
use crate::{PushedBlocks, PushedKeys};
use fullstroke_contract::{Breakdown, Effect};
use fullstroke_memory::{CachePolicy, MemoryKeys};
use fullstroke_units::{Bytes, Duration};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::VecDeque;

/// Number of pages of the device. The last page is shorter.
const PAGES: u64 = 400;
const CAPACITY: Sectors = Sectors(PAGES * PAGE_SECTORS - 3);

/// A layer, above pushed blocks, above a device with given service times.
struct PagedTrial {
    layer: PagedDevice,
    pushed: PushedBlocks,
    out: Effects,
    now: Time,
    /// Requests in flight at the device, by their end.
    device: BTreeMap<(Time, u64), (Time, Request)>,
    service_us: Vec<u64>,
    /// Requests of the layer on their way to the pushed blocks.
    issued_above: VecDeque<Request>,
    /// Oldest possible version of each page in a fetch of pushed blocks, by the number of the
    /// fetch. Then the same for the pages that have arrived.
    fetches: BTreeMap<u64, Vec<(usize, u32)>>,
    kept: Vec<u32>,
    /// Number of reads answered from the pushed blocks.
    answered: u64,
    issued: Vec<Request>,
    /// Notices passed up by the layer.
    noticed: Vec<Signal>,
    done: Vec<Completion>,
    /// Versions by page: written by a program, acknowledged, and on the device.
    written: Vec<u32>,
    acknowledged: Vec<u32>,
    durable: Vec<u32>,
    /// Pages and versions of each write of a program.
    writes: BTreeMap<u64, Vec<(usize, u32)>>,
    /// Pages and versions of each write to the device, by the number of the write.
    carries: BTreeMap<u64, Vec<(usize, u32)>>,
}

impl PagedTrial {
    fn new(keys: Value) -> PagedTrial {
        let keys = MemoryKeys::read(keys.as_object().unwrap()).unwrap();
        let cache = PageCache::new(&keys, Default::default()).unwrap();
        PagedTrial {
            layer: PagedDevice::new(cache, CAPACITY),
            pushed: PushedBlocks::new(
                &PushedKeys {
                    size: Bytes(80 * PAGE_BYTES),
                    replacement: CachePolicy::Name("lru".into()),
                },
                CAPACITY,
            )
            .unwrap(),
            out: Effects::new(),
            now: Time::ZERO,
            device: BTreeMap::new(),
            service_us: vec![1000],
            issued_above: VecDeque::new(),
            fetches: BTreeMap::new(),
            kept: vec![0; PAGES as usize],
            answered: 0,
            issued: Vec::new(),
            noticed: Vec::new(),
            done: Vec::new(),
            written: vec![0; PAGES as usize],
            acknowledged: vec![0; PAGES as usize],
            durable: vec![0; PAGES as usize],
            writes: BTreeMap::new(),
            carries: BTreeMap::new(),
        }
    }

    /// Carries out the effects of the layer, and the effects on the pushed blocks.
    fn collect(&mut self) {
        for effect in self.out.drain() {
            match effect {
                Effect::Issue { request, .. } => self.issued_above.push_back(request),
                Effect::Complete { completion, .. } => {
                    for (page, version) in
                        self.writes.remove(&completion.id.0).into_iter().flatten()
                    {
                        self.acknowledged[page] = self.acknowledged[page].max(version);
                    }
                    self.done.push(completion);
                }
                Effect::Notice { notice, .. } => self.noticed.push(notice.signal),
            }
        }
        while let Some(request) = self.issued_above.pop_front() {
            self.below(
                |pushed, now, cx| pushed.submit(now, Port::FIRST, request, cx),
                Some(request.extent),
            );
        }
    }

    /// Passes an event to the pushed blocks below the layer. If a read completes at once, the
    /// blocks must hold its data.
    fn below(
        &mut self,
        event: impl FnOnce(&mut PushedBlocks, Time, &mut NodeContext<'_>),
        asked: Option<Extent>,
    ) {
        let mut out = Effects::new();
        event(
            &mut self.pushed,
            self.now,
            &mut NodeContext::alone(&mut out),
        );
        for effect in out.drain() {
            match effect {
                Effect::Issue { request, .. } => {
                    assert!(request.extent.within(CAPACITY), "{request:?}");
                    let number = self.issued.len() as u64;
                    let service = self.service_us[self.issued.len() % self.service_us.len()];
                    if request.operation == Operation::Write {
                        let pages = pages(request.extent);
                        self.carries.insert(
                            number,
                            pages.map(|page| (page, self.written[page])).collect(),
                        );
                    }
                    if request.origin == Request::BACKGROUND && request.operation == Operation::Read
                    {
                        let pages = pages(request.extent);
                        self.fetches.insert(
                            number,
                            pages.map(|page| (page, self.durable[page])).collect(),
                        );
                    }
                    let ends = self.now + Duration::from_micros(service);
                    self.device.insert((ends, number), (self.now, request));
                    self.issued.push(request);
                }
                Effect::Complete { completion, .. } => {
                    if let Some(extent) = asked {
                        self.answered += 1;
                        for page in pages(extent) {
                            let (kept, durable) = (self.kept[page], self.durable[page]);
                            assert!(
                                kept >= durable,
                                "page {page} is kept as of {kept}, and written as of {durable}"
                            );
                        }
                    }
                    self.layer.completed(
                        self.now,
                        Port::FIRST,
                        completion,
                        &mut NodeContext::alone(&mut self.out),
                    );
                }
                Effect::Notice { notice, .. } => {
                    self.layer.noticed(
                        self.now,
                        Port::FIRST,
                        notice,
                        &mut NodeContext::alone(&mut self.out),
                    );
                }
            }
        }
        self.collect();
    }

    fn submit(&mut self, id: u64, operation: Operation, start: u64, sectors: u64, direct: bool) {
        let hints = Hints {
            direct,
            process: 1 + (id % 3) as u32,
            ..Hints::default()
        };
        self.submit_with(id, operation, start, sectors, hints);
    }

    fn submit_with(
        &mut self,
        id: u64,
        operation: Operation,
        start: u64,
        sectors: u64,
        hints: Hints,
    ) {
        let extent = Extent::new(start, sectors);
        let request = Request {
            id: RequestId(id),
            origin: id,
            operation,
            extent,
            hints,
            ..Request::default()
        };
        if operation == Operation::Write && extent.within(CAPACITY) {
            pages(extent).for_each(|page| self.written[page] += 1);
            let written = pages(extent)
                .map(|page| (page, self.written[page]))
                .collect();
            self.writes.insert(id, written);
        }
        self.layer.submit(
            self.now,
            Port::FIRST,
            request,
            &mut NodeContext::alone(&mut self.out),
        );
        self.collect();
    }

    /// Handles all events until `until`.
    fn run(&mut self, until: Time) {
        loop {
            let ends = self
                .device
                .first_key_value()
                .map_or(Time::NEVER, |((at, _), _)| *at);
            let wakes = self.layer.next_wake().at();
            if ends.min(wakes) > until {
                self.now = self.now.max(until);
                return;
            }
            self.now = ends.min(wakes).max(self.now);
            if wakes < ends {
                self.layer
                    .wake(self.now, &mut NodeContext::alone(&mut self.out));
            } else if let Some(((at, number), (submitted, request))) = self.device.pop_first() {
                for (page, version) in self.carries.remove(&number).into_iter().flatten() {
                    self.durable[page] = self.durable[page].max(version);
                }
                let breakdown = Breakdown {
                    transfer: at.since(submitted),
                    ..Breakdown::default()
                };
                let status = RequestStatus::Done;
                for (page, version) in self.fetches.remove(&number).into_iter().flatten() {
                    self.kept[page] = version;
                }
                let completion = Completion {
                    id: request.id,
                    submitted,
                    finished: at,
                    status,
                    breakdown,
                };
                self.below(
                    |pushed, now, cx| pushed.completed(now, Port::FIRST, completion, cx),
                    None,
                );
            }
            self.collect();
        }
    }

    fn pass(&mut self, ms: u64) {
        self.run(self.now + Duration::from_millis(ms));
    }

    /// Sends a PULL: storage asks for dirty data of an extent, or for any.
    fn pull(&mut self, extent: Option<Extent>, sectors: u64) {
        let notice = Notice::new(Signal::Pull {
            extent,
            sectors: Sectors(sectors),
        });
        self.below(
            |pushed, now, cx| pushed.noticed(now, Port::FIRST, notice, cx),
            None,
        );
    }

    /// Sends a PUSH: storage offers blocks.
    fn push(&mut self, start: u64, sectors: u64) {
        let notice = Notice::new(Signal::Push(Extent::new(start, sectors)));
        self.below(
            |pushed, now, cx| pushed.noticed(now, Port::FIRST, notice, cx),
            None,
        );
    }

    /// Returns a counter of the pushed blocks.
    fn reading(&self, name: &str) -> f64 {
        let mut counters = Counters::default();
        self.pushed.count(self.now, &mut counters);
        let readings = counters.layers.iter().flat_map(|layer| &layer.readings);
        readings
            .filter(|reading| reading.name == name)
            .map(|reading| reading.value)
            .sum()
    }

    fn took_us(&self, id: u64) -> Option<u64> {
        let done = self.done.iter().find(|done| done.id.0 == id)?;
        Some(done.finished.since(done.submitted).as_nanos() / 1000)
    }
}

fn pages(extent: Extent) -> impl Iterator<Item = usize> {
    let PageRun { first, pages, .. } = pages_of(extent);
    first as usize..(first + pages) as usize
}

fn small() -> Value {
    json!({ "size": "512KiB" })
}

#[test]
fn what_was_read_costs_nothing_again() {
    let mut trial = PagedTrial::new(small());
    trial.submit(0, Operation::Read, 80, 8, false);
    trial.pass(10);
    assert_eq!(trial.took_us(0), Some(1000));
    trial.submit(1, Operation::Read, 80, 8, false);
    assert_eq!(trial.took_us(1), Some(0));
    trial.submit(2, Operation::Read, 80, 8, true);
    trial.pass(10);
    assert_eq!(trial.took_us(2), Some(1000), "O_DIRECT asks the device");
}

#[test]
fn a_stream_is_read_ahead() {
    let mut trial = PagedTrial::new(small());
    for page in 0..64 {
        trial.submit(3 * page, Operation::Read, page * 8, 8, false);
        trial.pass(5);
    }
    let reads: Vec<u64> = trial
        .issued
        .iter()
        .map(|request| request.extent.sectors.0 / 8)
        .collect();
    assert!(
        reads.len() < 12 && reads.iter().max() >= Some(&32),
        "{reads:?}"
    );
    assert!(
        trial
            .issued
            .iter()
            .all(|request| request.operation == Operation::Read)
    );
}

#[test]
fn a_write_is_done_at_once_and_goes_down_when_it_is_old_or_asked_for() {
    let mut trial = PagedTrial::new(small());
    trial.submit(0, Operation::Write, 160, 16, false);
    assert_eq!((trial.took_us(0), trial.issued.len()), (Some(0), 0));
    trial.pass(20_000);
    assert!(trial.issued.is_empty());
    assert!(
        !trial.layer.next_wake().is_work(),
        "rounds of write-back keep no run alive"
    );
    trial.pass(20_000);
    let Request {
        operation, extent, ..
    } = trial.issued[0];
    assert_eq!(
        (operation, extent),
        (Operation::Write, Extent::new(160, 16))
    );
    trial.submit(1, Operation::Write, 8, 8, false);
    trial.submit(2, Operation::Flush, 0, 0, false);
    trial.pass(10);
    let operations: Vec<Operation> = trial.issued[1..]
        .iter()
        .map(|request| request.operation)
        .collect();
    assert_eq!(operations, [Operation::Write, Operation::Flush]);
    assert_eq!(trial.took_us(2), Some(2000));
}

#[test]
fn the_last_page_ends_with_the_device() {
    let mut trial = PagedTrial::new(small());
    let last = CAPACITY.0 - 5;
    trial.submit(0, Operation::Read, last, 5, false);
    trial.pass(10);
    assert_eq!(trial.issued[0].extent.end().0, CAPACITY.0);
    trial.submit(1, Operation::Read, last, 6, false);
    assert_eq!(trial.done.last().unwrap().status, RequestStatus::OutOfRange);
    trial.submit(2, Operation::Write, last, 5, false);
    trial.submit(3, Operation::Flush, 0, 0, false);
    trial.pass(10);
    assert!(trial.took_us(3).is_some());
}

#[test]
fn a_pull_of_addresses_writes_their_dirty_pages_and_a_pull_of_any_as_many_as_there_are() {
    let mut trial = PagedTrial::new(small());
    for (id, start) in [(0, 160), (1, 8), (2, 400), (3, 800)] {
        trial.submit(id, Operation::Write, start, 8, false);
    }
    trial.submit(4, Operation::Read, 240, 8, false);
    trial.pass(10);
    trial.issued.clear();
    trial.pull(Some(Extent::new(100, 200)), 200);
    let written = |trial: &mut PagedTrial| {
        let writes = trial
            .issued
            .drain(..)
            .filter(|request| request.operation == Operation::Write);
        writes
            .map(|request| request.extent.start.0)
            .collect::<Vec<_>>()
    };
    assert_eq!(written(&mut trial), [160], "dirty and wanted, no other");
    trial.pull(Some(Extent::new(100, 200)), 200);
    assert!(written(&mut trial).is_empty(), "it is being written");
    trial.pull(None, 16);
    assert_eq!(written(&mut trial).len(), 2);
    trial.pull(None, 1000);
    assert_eq!(written(&mut trial).len(), 1, "no more are dirty");
    trial.pass(100);
    trial.pull(None, 1000);
    assert!(written(&mut trial).is_empty());
}

#[test]
fn what_is_pulled_and_not_dirty_here_is_asked_of_whoever_is_above() {
    let mut trial = PagedTrial::new(small());
    trial.submit(0, Operation::Write, 160, 16, false);
    let any = |sectors| Signal::Pull {
        extent: None,
        sectors: Sectors(sectors),
    };
    trial.pull(None, 8);
    assert!(trial.noticed.is_empty(), "there was enough");
    trial.pull(None, 100);
    assert_eq!(trial.noticed, [any(92)]);
    trial.pull(None, 100);
    assert_eq!(
        trial.noticed[1..],
        [any(100)],
        "what is being written is not asked for again"
    );
    let extent = Some(Extent::new(160, 8));
    trial.pull(extent, 8);
    assert_eq!(
        trial.noticed[2..],
        [Signal::Pull {
            extent,
            sectors: Sectors(8)
        }],
        "it may be newer there"
    );
}

#[test]
fn what_is_written_for_a_pull_goes_on_down_and_is_behind_what_was_there_before() {
    let mut trial = PagedTrial::new(small());
    let pulled = Hints {
        pulled: true,
        synchronous: false,
        ..Hints::default()
    };
    trial.submit_with(0, Operation::Write, 80, 16, pulled);
    trial.submit(1, Operation::Write, 400, 8, false);
    let writes = |trial: &PagedTrial| -> Vec<Extent> {
        assert!(trial.issued.iter().all(|request| request.hints.pulled));
        trial.issued.iter().map(|request| request.extent).collect()
    };
    assert_eq!(
        (trial.took_us(0), writes(&trial)),
        (Some(0), vec![Extent::new(80, 16)])
    );
    // Writes one of the two pages again while the first write of it is in flight.
    trial.submit_with(2, Operation::Write, 88, 8, pulled);
    assert_eq!((trial.took_us(2), trial.issued.len()), (Some(0), 1));
    trial.pass(100);
    assert_eq!(writes(&trial), [Extent::new(80, 16), Extent::new(88, 8)]);
    assert_eq!(trial.durable[10..12], [1, 2]);
}

#[test]
fn what_was_pushed_is_found_between_page_cache_and_device() {
    let mut trial = PagedTrial::new(json!({ "size": "512KiB", "read_ahead": "none" }));
    trial.push(1, 79);
    assert_eq!(trial.issued[0].extent, Extent::new(8, 72), "whole pages");
    trial.submit(0, Operation::Read, 16, 8, false);
    trial.pass(10);
    assert_eq!(trial.took_us(0), Some(1000), "it was on its way");
    trial.submit(1, Operation::Read, 40, 24, false);
    trial.submit(2, Operation::Read, 72, 8, true);
    trial.submit(3, Operation::Read, 0, 8, false);
    trial.pass(10);
    assert_eq!(
        (trial.took_us(1), trial.took_us(2), trial.took_us(3)),
        (Some(0), Some(1000), Some(1000))
    );
    let page = PAGE_BYTES as f64 / 1e6;
    assert_eq!(
        (
            trial.reading("pushed_hits"),
            trial.reading("pushed_used_mb")
        ),
        (1.0, 3.0 * page)
    );
    assert_eq!(trial.reading("pushed_fetched_mb"), 9.0 * page);
}

#[test]
fn a_write_makes_what_was_pushed_invalid_and_is_not_fetched_over() {
    let mut trial = PagedTrial::new(small());
    trial.push(0, 160);
    trial.pass(10);
    trial.issued.clear();
    trial.submit(0, Operation::Write, 24, 8, true);
    trial.push(0, 160);
    assert_eq!(trial.issued.len(), 1, "the write; all else is there");
    trial.pass(10);
    let page = PAGE_BYTES as f64 / 1e6;
    assert_eq!(trial.reading("pushed_wasted_mb"), page);
    trial.issued.clear();
    trial.submit(1, Operation::Write, 400, 8, true);
    trial.push(320, 160);
    let fetched: Vec<Extent> = trial.issued[1..]
        .iter()
        .map(|request| request.extent)
        .collect();
    assert_eq!(fetched, [Extent::new(320, 80), Extent::new(408, 72)]);
    // A block that is written during its fetch is not kept.
    trial.submit(2, Operation::Write, 328, 8, true);
    trial.pass(10);
    trial.submit(3, Operation::Read, 320, 16, false);
    trial.pass(10);
    assert_eq!(trial.took_us(3), Some(1000));
}

#[test]
fn a_write_drops_pushed_blocks_and_pages_that_were_read_before() {
    // Pages that were read and are clean have no flag. The write must drop these pages too.
    let mut trial = PagedTrial::new(json!({ "size": "512KiB", "read_ahead": "none" }));
    trial.push(80, 80);
    trial.pass(10);
    trial.submit(0, Operation::Read, 80, 80, false);
    trial.pass(10);
    assert_eq!(trial.took_us(0), Some(0));
    trial.submit(1, Operation::Write, 80, 80, true);
    trial.pass(10);
    trial.submit(2, Operation::Read, 80, 80, false);
    trial.pass(10);
    assert_eq!(trial.took_us(2), Some(1000));
}

#[test]
fn a_push_of_more_than_there_is_room_for_is_fetched_in_part() {
    let mut trial = PagedTrial::new(small());
    trial.push(0, 3200);
    let fetched: u64 = trial
        .issued
        .iter()
        .map(|request| request.extent.sectors.0)
        .sum();
    assert_eq!(fetched, 80 * PAGE_SECTORS);
    trial.push(9000, 80);
    trial.push(CAPACITY.0 - 2, 1 << 40);
    assert!(trial.reading("pushed_refused_mb") > 1.0);
    trial.pass(10);
    assert_eq!(trial.issued.len(), 1, "what is beyond the device is not");
}

fn pulled() -> impl Strategy<Value = Option<(Option<u64>, u64)>> {
    prop::option::weighted(0.3, (prop::option::of(0u64..3190), 1u64..60))
}

fn pushed() -> impl Strategy<Value = Option<(u64, u64)>> {
    prop::option::weighted(0.4, (0u64..3200, 1u64..400))
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        8 => Just(Operation::Read), 8 => Just(Operation::Write), 2 => Just(Operation::Flush),
        1 => Just(Operation::Discard), 1 => Just(Operation::Standby), 1 => Just(Operation::Start),
    ]
}

proptest! {
    /// Holds for any behaviour of cache and device, with PULL and PUSH from storage. A pushed block
    /// is never older than the data on the device. Each request completes once, and its parts add
    /// up. A flush completes when all data acknowledged before it are on the device.
    #[test]
    fn each_request_is_answered_once_and_a_flush_keeps_its_word(
        steps in prop::collection::vec((operation(), 0u64..3190, 1u64..60, prop::bool::weighted(0.2), 0u64..4000, pulled(), pushed()), 1..80),
        service_us in prop::collection::vec(0u64..3000, 1..6),
        pages in 64u64..200,
        replacement in prop::sample::select(vec!["lru2", "lru", "2q", "arc", "s3fifo"]),
        write_back in prop::sample::select(vec!["today", "2.6.17", "2.6.23", "none"]),
    ) {
        let keys = json!({ "size": pages * PAGE_BYTES, "replacement": replacement, "write_back": write_back });
        let mut trial = PagedTrial::new(keys);
        trial.service_us = service_us;
        let mut flushed = BTreeMap::new();
        for (id, &(operation, start, sectors, direct, gap_us, pulled, pushed)) in (0u64..).zip(&steps) {
            let (start, sectors) = if operation.is_of_all() { (0, 0) } else { (start, sectors) };
            if matches!(operation, Operation::Flush | Operation::Standby) {
                flushed.insert(id, trial.acknowledged.clone());
            }
            trial.submit(id, operation, start, sectors, direct);
            if let Some((start, sectors)) = pulled {
                trial.pull(start.map(|start| Extent::new(start, sectors)), sectors);
            }
            if let Some((start, sectors)) = pushed {
                trial.push(start, sectors);
            }
            // A flush that has completed by then must have kept its promise.
            check(&trial, &mut flushed)?;
            let until = trial.now + Duration::from_micros(gap_us);
            trial.run(until);
            check(&trial, &mut flushed)?;
        }
        for _ in 0..20 {
            trial.pass(10_000);
            check(&trial, &mut flushed)?;
        }
        let mut ids: Vec<u64> = trial.done.iter().map(|done| done.id.0).collect();
        ids.sort_unstable();
        prop_assert_eq!(ids, (0..steps.len() as u64).collect::<Vec<_>>());
        for done in &trial.done {
            prop_assert_eq!(done.breakdown.response(), done.finished.since(done.submitted));
        }
        prop_assert_eq!(trial.layer.gauge().queue_length, 0);
    }
}

/// Checks each completed flush: all data acknowledged when the flush came must be on the device.
fn check(trial: &PagedTrial, flushed: &mut BTreeMap<u64, Vec<u32>>) -> Result<(), TestCaseError> {
    let ended: Vec<u64> = trial
        .done
        .iter()
        .map(|done| done.id.0)
        .filter(|id| flushed.contains_key(id))
        .collect();
    for id in ended {
        let wanted = flushed.remove(&id).unwrap_or_default();
        for (page, (durable, wanted)) in trial.durable.iter().zip(&wanted).enumerate() {
            prop_assert!(
                durable >= wanted,
                "flush {}: page {} is at {} of {}",
                id,
                page,
                durable,
                wanted
            );
        }
    }
    Ok(())
}
