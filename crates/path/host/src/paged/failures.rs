//! Promises to hosts above a device that fails requests at random, in any order of PUSH, PULL,
//! eviction, flush and failure.
//!
//! The device fails a request as a whole: the device keeps no data of a failed write, and the cache
//! no longer holds the data. The data are lost. The loss is not silent if the next flush of the
//! writer fails.

use super::*;
use crate::{PushedBlocks, PushedKeys};
use fullstroke_contract::Effect;
use fullstroke_memory::{CachePolicy, MemoryKeys};
use fullstroke_units::{Bytes, Duration};
use proptest::prelude::*;
use serde_json::json;
use std::collections::VecDeque;

/// Number of pages of each guest.
const PAGES: u64 = 200;
const SECTORS: u64 = PAGES * PAGE_SECTORS;

/// A layer, with the origin of each request passed down: the layer above and the id there.
struct Layer {
    node: Box<dyn Node>,
    issued: Slots<(usize, RequestId)>,
}

/// Guests with page caches, a shared page cache if there are several guests, pushed blocks, and the
/// device. The layers are numbered from the guests down.
struct Stack {
    guests: usize,
    layers: Vec<Layer>,
    now: Time,
    /// Requests in flight at the device, by their end.
    device: BTreeMap<(Time, u64), Request>,
    count: u64,
    service_us: Vec<u64>,
    fails: Vec<bool>,
    /// Newest versions by page of the device: written by a program, acknowledged, on the device,
    /// failed, and reported to the guest as failed.
    written: Vec<u32>,
    acknowledged: Vec<u32>,
    durable: Vec<u32>,
    failed: Vec<u32>,
    told: Vec<u32>,
    writes: BTreeMap<u64, Vec<(usize, u32)>>,
    carries: BTreeMap<u64, Vec<(usize, u32)>>,
    /// Pages and versions that a write of a layer carries to the layer below, by layer and number
    /// of the write.
    passes: BTreeMap<(usize, u32), Vec<(usize, u32)>>,
    /// Promises of the flushes: the guest, and the versions acknowledged when the flush came.
    flushes: BTreeMap<u64, (usize, Vec<u32>)>,
    done: Vec<u64>,
    failures: u64,
}

/// An event at a layer.
enum LayerEvent {
    Submit(usize, Request),
    Completed(usize, Completion),
    Noticed(usize, Notice),
}

impl Stack {
    fn new(guests: usize, memory: (u64, &str, &str)) -> Stack {
        let (pages, replacement, write_back) = memory;
        let keys = json!({ "size": pages * PAGE_BYTES, "replacement": replacement, "write_back": write_back });
        let keys = MemoryKeys::read(keys.as_object().unwrap()).unwrap();
        let paged = |capacity| -> Box<dyn Node> {
            let cache = PageCache::new(&keys, Default::default()).unwrap();
            Box::new(PagedDevice::new(cache, Sectors(capacity)))
        };
        let all = SECTORS * guests as u64;
        let pushed = PushedKeys {
            size: Bytes(80 * PAGE_BYTES),
            replacement: CachePolicy::Name("lru".into()),
        };
        let mut nodes: Vec<Box<dyn Node>> = (0..guests).map(|_| paged(SECTORS)).collect();
        if guests > 1 {
            nodes.push(paged(all));
        }
        nodes.push(Box::new(PushedBlocks::new(&pushed, Sectors(all)).unwrap()));
        let none = || vec![0; (PAGES * guests as u64) as usize];
        Stack {
            guests,
            layers: nodes
                .into_iter()
                .map(|node| Layer {
                    node,
                    issued: Slots::default(),
                })
                .collect(),
            now: Time::ZERO,
            device: BTreeMap::new(),
            count: 0,
            service_us: vec![1000],
            fails: vec![false],
            written: none(),
            acknowledged: none(),
            durable: none(),
            failed: none(),
            told: none(),
            writes: BTreeMap::new(),
            carries: BTreeMap::new(),
            passes: BTreeMap::new(),
            flushes: BTreeMap::new(),
            done: Vec::new(),
            failures: 0,
        }
    }

    /// Handles an event and its immediate consequences.
    fn happen(&mut self, event: LayerEvent) {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            let mut out = Effects::new();
            let cx = &mut NodeContext::alone(&mut out);
            let layer = match event {
                LayerEvent::Submit(layer, request) => {
                    self.layers[layer]
                        .node
                        .submit(self.now, Port::FIRST, request, cx);
                    layer
                }
                LayerEvent::Completed(layer, completion) => {
                    self.layers[layer]
                        .node
                        .completed(self.now, Port::FIRST, completion, cx);
                    layer
                }
                LayerEvent::Noticed(layer, notice) => {
                    self.layers[layer]
                        .node
                        .noticed(self.now, Port::FIRST, notice, cx);
                    layer
                }
            };
            self.follow(layer, out, &mut events);
        }
    }

    fn follow(&mut self, layer: usize, mut out: Effects, events: &mut VecDeque<LayerEvent>) {
        for effect in out.drain() {
            match effect {
                Effect::Issue { request, .. } if layer + 1 == self.layers.len() => {
                    self.begin(request)
                }
                Effect::Issue { request, .. } => {
                    let below = if layer < self.guests {
                        self.guests
                    } else {
                        layer + 1
                    };
                    let slot = self.layers[below].issued.keep((layer, request.id));
                    let start = request.extent.start.0 + self.region(layer);
                    let extent = Extent::new(start, request.extent.sectors.0);
                    if request.operation == Operation::Write {
                        // The version at the issue: a page may be written again while it is on its
                        // way.
                        let carried = pages(extent)
                            .map(|page| (page, self.written[page]))
                            .collect();
                        self.passes.insert((below, slot), carried);
                    }
                    let id = RequestId(u64::from(slot));
                    events.push_back(LayerEvent::Submit(
                        below,
                        Request {
                            id,
                            extent,
                            ..request
                        },
                    ));
                }
                Effect::Complete { completion, .. } if layer < self.guests => {
                    self.ended(layer, completion)
                }
                Effect::Complete { completion, .. } => {
                    // A write may fail above the device, because it waits for a read of the same
                    // page.
                    let carried = self.passes.remove(&(layer, completion.id.0 as u32));
                    for (page, version) in carried.into_iter().flatten() {
                        if completion.status != RequestStatus::Done {
                            self.failed[page] = self.failed[page].max(version);
                        }
                    }
                    let (above, id) = self.layers[layer].issued.take(completion.id.0 as u32);
                    events.push_back(LayerEvent::Completed(
                        above,
                        Completion { id, ..completion },
                    ));
                }
                Effect::Notice { .. } if layer < self.guests => {}
                Effect::Notice { notice, .. } => self.rise(layer, notice, events),
            }
        }
    }

    /// Returns the first address of a layer in the address space of the layer below.
    fn region(&self, layer: usize) -> u64 {
        if layer < self.guests {
            layer as u64 * SECTORS
        } else {
            0
        }
    }

    /// Passes a PULL to the layer above. A PULL of addresses goes to each guest for its own part, a
    /// PULL of any data to one of the guests.
    fn rise(&mut self, layer: usize, notice: Notice, events: &mut VecDeque<LayerEvent>) {
        if layer > self.guests {
            events.push_back(LayerEvent::Noticed(layer - 1, notice));
            return;
        }
        match notice.signal.extent() {
            None => events.push_back(LayerEvent::Noticed(
                (self.count % self.guests as u64) as usize,
                notice,
            )),
            Some(extent) => {
                for guest in 0..self.guests {
                    let first = self.region(guest);
                    let (from, to) = (
                        extent.start.0.max(first),
                        extent.end().0.min(first + SECTORS),
                    );
                    if from < to {
                        let signal = notice
                            .signal
                            .at_extent(Extent::new(from - first, to - from));
                        events.push_back(LayerEvent::Noticed(guest, Notice { signal, ..notice }));
                    }
                }
            }
        }
    }

    /// Begins a request at the device.
    fn begin(&mut self, request: Request) {
        let number = self.count;
        self.count += 1;
        if request.operation == Operation::Write {
            for (_, other) in self
                .device
                .iter()
                .filter(|(_, other)| other.operation == Operation::Write)
            {
                let apart = other.extent.end() <= request.extent.start
                    || request.extent.end() <= other.extent.start;
                assert!(
                    apart,
                    "two writes of a page at once, which may end in any order: {other:?}, {request:?}"
                );
            }
            let carried = pages(request.extent)
                .map(|page| (page, self.written[page]))
                .collect();
            self.carries.insert(number, carried);
        }
        let service = self.service_us[number as usize % self.service_us.len()];
        self.device
            .insert((self.now + Duration::from_micros(service), number), request);
    }

    /// Ends a request at the device, with success or failure.
    fn end(&mut self, number: u64, request: Request) {
        let fails = self.fails[number as usize % self.fails.len()];
        self.failures += u64::from(fails);
        for (page, version) in self.carries.remove(&number).into_iter().flatten() {
            let reached = if fails {
                &mut self.failed
            } else {
                &mut self.durable
            };
            assert!(
                reached[page] <= version,
                "page {page}: {version} over {}",
                reached[page]
            );
            reached[page] = version;
        }
        let status = if fails {
            RequestStatus::Lost
        } else {
            RequestStatus::Done
        };
        let completion = Completion::at_once(request.id, self.now, status);
        self.happen(LayerEvent::Completed(self.layers.len() - 1, completion));
    }

    /// Completes a request of a guest's program.
    fn ended(&mut self, guest: usize, completion: Completion) {
        let id = completion.id.0;
        self.done.push(id);
        let done = completion.status == RequestStatus::Done;
        for (page, version) in self
            .writes
            .remove(&id)
            .into_iter()
            .flatten()
            .filter(|_| done)
        {
            self.acknowledged[page] = self.acknowledged[page].max(version);
        }
        let Some((_, promised)) = self.flushes.remove(&id) else {
            return;
        };
        let own = guest * PAGES as usize..(guest + 1) * PAGES as usize;
        for page in own {
            if !done {
                // A failed flush tells its guest of every loss so far.
                self.told[page] = self.told[page].max(self.failed[page]);
            }
            let known = self.durable[page].max(self.told[page]);
            assert!(
                !done || known >= promised[page],
                "flush {id} of guest {guest}: page {page} was acknowledged as of {}, is there as of {}, and nobody was \
                 told of more than {}",
                promised[page],
                self.durable[page],
                self.told[page]
            );
        }
    }

    fn submit(&mut self, id: u64, guest: usize, operation: Operation, page: u64, count: u64) {
        let extent = match operation.transfers() {
            true => Extent::new(page * PAGE_SECTORS, count.min(PAGES - page) * PAGE_SECTORS),
            false => Extent::default(),
        };
        let hints = Hints {
            process: 1 + guest as u32,
            ..Hints::default()
        };
        let request = Request {
            id: RequestId(id),
            origin: id,
            operation,
            extent,
            hints,
            ..Request::default()
        };
        if operation == Operation::Write {
            let below = Extent::new(extent.start.0 + self.region(guest), extent.sectors.0);
            pages(below).for_each(|page| self.written[page] += 1);
            self.writes.insert(
                id,
                pages(below)
                    .map(|page| (page, self.written[page]))
                    .collect(),
            );
        }
        if operation == Operation::Flush {
            self.flushes.insert(id, (guest, self.acknowledged.clone()));
        }
        self.happen(LayerEvent::Submit(guest, request));
    }

    /// Handles all events until `until`.
    fn run(&mut self, until: Time) {
        loop {
            let ends = self
                .device
                .first_key_value()
                .map_or(Time::NEVER, |((at, _), _)| *at);
            let wakes = self
                .layers
                .iter()
                .map(|layer| layer.node.next_wake().at())
                .min()
                .unwrap_or(Time::NEVER);
            if ends.min(wakes) > until {
                self.now = self.now.max(until);
                return;
            }
            self.now = ends.min(wakes).max(self.now);
            // At equal times the completion comes first, because it may make the wake-up needless.
            if wakes < ends {
                for layer in 0..self.layers.len() {
                    if self.layers[layer].node.next_wake().at() <= self.now {
                        let (mut out, mut events) = (Effects::new(), VecDeque::new());
                        self.layers[layer]
                            .node
                            .wake(self.now, &mut NodeContext::alone(&mut out));
                        self.follow(layer, out, &mut events);
                        events.into_iter().for_each(|event| self.happen(event));
                    }
                }
            } else if let Some(((_, number), request)) = self.device.pop_first() {
                self.end(number, request);
            }
        }
    }

    fn say(&mut self, signal: Signal) {
        self.happen(LayerEvent::Noticed(
            self.layers.len() - 1,
            Notice::new(signal),
        ));
    }
}

fn pages(extent: Extent) -> impl Iterator<Item = usize> {
    let PageRun { first, pages, .. } = pages_of(extent);
    first as usize..(first + pages) as usize
}

#[derive(Clone, Debug)]
enum FailureStep {
    Ask(usize, Operation, u64, u64),
    Pull(Option<u64>, u64),
    Push(u64, u64),
}

fn step() -> impl Strategy<Value = (FailureStep, u64)> {
    let operation = prop_oneof![3 => Just(Operation::Read), 5 => Just(Operation::Write), 1 => Just(Operation::Flush)];
    let ask = (0usize..2, operation, 0..PAGES, 1u64..24);
    let step = prop_oneof![
        8 => ask.prop_map(|(guest, operation, page, count)| FailureStep::Ask(guest, operation, page, count)),
        2 => (prop::option::of(0..SECTORS), 1u64..600).prop_map(|(start, sectors)| FailureStep::Pull(start, sectors)),
        1 => (0..SECTORS - 200, 1u64..200).prop_map(|(start, sectors)| FailureStep::Push(start, sectors)),
    ];
    (step, 0u64..4000)
}

proptest! {
    /// One host, or two guests above shared memory.
    ///
    /// - Each request completes once.
    /// - Two writes of a page are never in flight at the device together. So an older write cannot
    ///   end after a newer one.
    /// - After a successful flush the device has all earlier acknowledged data. The exceptions are
    ///   data whose loss an earlier failed flush has reported to the guest.
    #[test]
    fn nothing_is_lost_silently_and_nothing_older_is_written_over_newer_whatever_fails(
        guests in 1usize..3,
        steps in prop::collection::vec(step(), 1..120),
        service_us in prop::collection::vec(0u64..3000, 1..6),
        fails in prop::collection::vec(prop::bool::weighted(0.3), 1..12),
        pages in 64u64..160,
        replacement in prop::sample::select(vec!["lru2", "lru", "2q", "arc", "s3fifo"]),
        write_back in prop::sample::select(vec!["today", "2.6.17", "2.6.23", "none"]),
    ) {
        let mut stack = Stack::new(guests, (pages, replacement, write_back));
        (stack.service_us, stack.fails) = (service_us, fails);
        let mut asked = 0;
        for (step, gap_us) in &steps {
            match *step {
                FailureStep::Ask(guest, operation, page, count) => {
                    stack.submit(asked, guest % guests, operation, page, count);
                    asked += 1;
                }
                FailureStep::Pull(start, sectors) => {
                    let extent = start.map(|start| Extent::new(start, sectors));
                    stack.say(Signal::Pull { extent, sectors: Sectors(sectors) });
                }
                FailureStep::Push(start, sectors) => stack.say(Signal::Push(Extent::new(start, sectors))),
            }
            stack.run(stack.now + Duration::from_micros(*gap_us));
        }
        stack.run(stack.now + Duration::from_secs(100));
        // Two flushes for each guest: the second can only report failures during the first.
        for round in 0..2 {
            for guest in 0..guests {
                stack.submit(asked, guest, Operation::Flush, 0, 0);
                asked += 1;
            }
            stack.run(stack.now + Duration::from_secs(100 + round));
        }
        stack.done.sort_unstable();
        prop_assert_eq!(&stack.done, &(0..asked).collect::<Vec<_>>());
        prop_assert!(stack.flushes.is_empty() && stack.device.is_empty());
        // Every page is on the device, or its guest was told of the failure.
        if stack.failures == 0 {
            prop_assert_eq!(&stack.durable, &stack.acknowledged);
        }
    }
}

#[test]
fn everybody_who_flushes_is_told_once_of_what_could_not_be_written() {
    let mut stack = Stack::new(2, (64, "lru2", "today"));
    stack.fails = vec![
        true, false, false, false, false, false, false, false, false, false, false, false,
    ];
    stack.submit(0, 0, Operation::Write, 3, 1);
    stack.say(Signal::Pull {
        extent: None,
        sectors: Sectors(8),
    });
    stack.run(stack.now + Duration::from_secs(1));
    assert_eq!((stack.failed[3], stack.durable[3]), (1, 0));
    for (id, guest) in [(1, 1), (2, 0), (3, 0), (4, 1)] {
        stack.submit(id, guest, Operation::Flush, 0, 0);
        stack.run(stack.now + Duration::from_secs(1));
    }
    assert_eq!(
        stack.told[3], 1,
        "also the one that has flushed behind another"
    );
    assert_eq!((stack.done, stack.failures), (vec![0, 1, 2, 3, 4], 1));
}
