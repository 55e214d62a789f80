//! The write-intent bitmap of Linux's md, on the members (`drivers/md/md-bitmap.c`, Linux 6.12).
//!
//! Before a write to a region that is clean, the bit of the region is written to every member. All
//! writes of one instant wait for the same write of the bitmap. Five seconds after its last write a
//! region becomes clean again in two steps, and the bitmap is written later, without a request that
//! waits for it.
//!
//! Departure: the bitmap lies at the beginning of the members' data. md writes it before the data,
//! a few tracks away.

use super::{MdVolume, WAKE_UP};
use crate::layout::Layout;
use crate::parity::RowMap;
use crate::volume::Volume;
use fullstroke_contract::{
    Completion, Counters, Effect, Effects, Extent, Gauge, Hints, LayerOrder, Node, NodeContext,
    Notice, Operation, Port, Refusal, Request, RequestId, Wake,
};
use fullstroke_units::{Duration, Time};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Sectors of a region: `mdadm` makes regions of 64 MiB (`add_internal_bitmap1`, `super1.c`).
const REGION: u64 = 131_072;

/// Regions of a page of the bitmap: one bit each.
const REGIONS_OF_PAGE: u64 = 4096 * 8;

/// Time between two runs of the daemon: `daemon_sleep`, 5 s by default (`mdadm`).
const DAEMON: Duration = Duration::from_nanos(5_000_000_000);

/// Runs of the daemon until a region without writers is clean (`md_bitmap_daemon_work`: the counter
/// falls from 2 to 1, then to 0).
const RUNS_UNTIL_CLEAN: u8 = 2;

/// Bit of the ids of the bitmap's own member I/O.
const OWN: u64 = 1 << 62;

/// The write-intent bitmap of an array.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Default,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum WriteIntent {
    /// No bitmap.
    #[default]
    None,
    /// A bitmap on the members.
    Internal,
}

/// A region that is not clean.
#[derive(Clone, Copy, Debug)]
struct DirtyRegion {
    writers: u32,
    /// Runs of the daemon until the region is clean.
    age: u8,
    /// True if the bit is on the members.
    durable: bool,
}

/// A write that waits for the bitmap, or is below.
#[derive(Clone, Copy, Debug)]
struct Write {
    request: Request,
    submitted: Time,
    first: u64,
    last: u64,
}

enum TrackedArray {
    Stripes(Box<MdVolume>),
    Copies(Box<Volume>),
}

/// An array with a write-intent bitmap.
pub(super) struct Bitmap {
    array: TrackedArray,
    /// Map of a parity array, whose regions count on the members; `None` if regions count on the
    /// volume.
    map: Option<RowMap>,
    regions: BTreeMap<u64, DirtyRegion>,
    /// Pages to write before the next writes.
    dirty: BTreeSet<u64>,
    /// Pages with bits that have become clean.
    stale: BTreeSet<u64>,
    held: VecDeque<Write>,
    /// Writes that wait for the write of the bitmap under way.
    waiting: Vec<Write>,
    /// Number of member I/Os of the bitmap that writes wait for.
    flying: u32,
    /// Writes in the array, by id.
    below: BTreeMap<u64, Write>,
    due: Option<Time>,
    daemon: Option<Time>,
    /// Effects of the array; empty between events.
    inner: Effects,
}

impl Bitmap {
    pub(super) fn over_stripes(array: MdVolume) -> Bitmap {
        let map = array.core.map;
        Bitmap::over(TrackedArray::Stripes(Box::new(array)), Some(map))
    }

    pub(super) fn over_copies(array: Volume) -> Bitmap {
        Bitmap::over(TrackedArray::Copies(Box::new(array)), None)
    }

    fn over(array: TrackedArray, map: Option<RowMap>) -> Bitmap {
        Bitmap {
            array,
            map,
            regions: BTreeMap::new(),
            dirty: BTreeSet::new(),
            stale: BTreeSet::new(),
            held: VecDeque::new(),
            waiting: Vec::new(),
            flying: 0,
            below: BTreeMap::new(),
            due: None,
            daemon: None,
            inner: Effects::new(),
        }
    }

    fn node(&mut self) -> &mut dyn Node {
        match &mut self.array {
            TrackedArray::Stripes(array) => &mut **array,
            TrackedArray::Copies(array) => &mut **array,
        }
    }

    fn node_ref(&self) -> &dyn Node {
        match &self.array {
            TrackedArray::Stripes(array) => &**array,
            TrackedArray::Copies(array) => &**array,
        }
    }

    fn layout(&self) -> &dyn Layout {
        match &self.array {
            TrackedArray::Stripes(array) => array.volume.layout(),
            TrackedArray::Copies(array) => array.layout(),
        }
    }

    /// Calls the array, and passes its effects on.
    fn call(
        &mut self,
        cx: &mut NodeContext<'_>,
        event: impl FnOnce(&mut dyn Node, &mut NodeContext<'_>),
    ) {
        let mut out = std::mem::take(&mut self.inner);
        let node = self.node();
        event(
            node,
            &mut NodeContext {
                below: cx.below,
                out: &mut out,
            },
        );
        if let Some(error) = out.take_stop() {
            cx.out.stop(error);
        }
        for effect in out.drain() {
            match effect {
                Effect::Issue { port, request } => cx.out.issue(port.index(), request),
                Effect::Notice { port, notice } => cx.out.notice(port, notice),
                Effect::Complete { port, completion } => {
                    let completion = self.completed_write(completion);
                    cx.out.complete_to(port, completion);
                }
            }
        }
        self.inner = out;
    }

    /// Returns the regions of an extent, both ends included.
    fn regions_of(&self, extent: Extent) -> (u64, u64) {
        let (first, last) = (extent.start.0, extent.end().0 - 1);
        let region = |lbn: u64| match self.map {
            Some(map) => map.place_of(lbn).sector / REGION,
            None => lbn / REGION,
        };
        // The last chunk of a row may begin at a lower offset than the first.
        let (one, other) = (region(first), region(last));
        (one.min(other), one.max(other))
    }

    /// Takes note of the end of a write in the array.
    fn completed_write(&mut self, mut completion: Completion) -> Completion {
        let Some(write) = self.below.remove(&completion.id.0) else {
            return completion;
        };
        for number in write.first..=write.last {
            if let Some(region) = self.regions.get_mut(&number) {
                region.writers -= 1;
                region.age = RUNS_UNTIL_CLEAN;
            }
        }
        if self.daemon.is_none() {
            self.daemon = Some(completion.finished + DAEMON);
        }
        completion.breakdown.parity += completion.submitted.since(write.submitted);
        completion.submitted = write.submitted;
        completion
    }

    /// Sends a write into the array.
    fn pass(&mut self, now: Time, write: Write, cx: &mut NodeContext<'_>) {
        self.below.insert(write.request.id.0, write);
        self.call(cx, |node, cx| {
            node.submit(now, Port::FIRST, write.request, cx)
        });
    }

    /// Writes the pages with new bits to all members that have not failed.
    fn write_bits(&mut self, now: Time, cx: &mut NodeContext<'_>) {
        self.waiting.extend(self.held.drain(..));
        let dirty = std::mem::take(&mut self.dirty);
        for &page in &dirty {
            self.flying += self.write_page(page, true, cx);
        }
        if self.flying == 0 {
            self.bits_written(now, cx);
        }
    }

    /// Writes a page of the bitmap. Returns the number of member I/Os.
    fn write_page(&mut self, page: u64, waited_for: bool, cx: &mut NodeContext<'_>) -> u32 {
        let mut ios = 0;
        for member in 0..self.layout().members() {
            if self.layout().member_states().has_failed(member) {
                continue;
            }
            ios += 1;
            let request = Request {
                id: RequestId(OWN | u64::from(waited_for)),
                origin: Request::BACKGROUND,
                operation: Operation::Write,
                extent: Extent::new(page * 8, 8),
                hints: Hints {
                    synchronous: waited_for,
                    ..Hints::default()
                },
                ..Request::default()
            };
            cx.out.issue(member, request);
        }
        ios
    }

    /// Sends the waiting writes into the array, because their bits are on the members.
    fn bits_written(&mut self, now: Time, cx: &mut NodeContext<'_>) {
        let mut waiting = std::mem::take(&mut self.waiting);
        for write in waiting.drain(..) {
            for number in write.first..=write.last {
                if let Some(region) = self.regions.get_mut(&number) {
                    region.durable = true;
                }
            }
            self.pass(now, write, cx);
        }
        self.waiting = waiting;
        if !self.held.is_empty() {
            self.due = Some(now + WAKE_UP);
        }
    }

    /// Cleans regions without writers.
    fn run_daemon(&mut self, now: Time, cx: &mut NodeContext<'_>) {
        for page in std::mem::take(&mut self.stale) {
            self.write_page(page, false, cx);
        }
        let stale = &mut self.stale;
        self.regions.retain(|number, region| {
            if region.writers > 0 {
                return true;
            }
            region.age -= 1;
            if region.age == 0 {
                stale.insert(number / REGIONS_OF_PAGE);
            }
            region.age > 0
        });
        let rests = self.regions.is_empty() && self.stale.is_empty();
        self.daemon = (!rests).then_some(now + DAEMON);
    }

    fn hold_or_pass(&mut self, now: Time, request: Request, cx: &mut NodeContext<'_>) {
        let (first, last) = self.regions_of(request.extent);
        let write = Write {
            request,
            submitted: now,
            first,
            last,
        };
        let mut durable = true;
        for number in first..=last {
            let region = self.regions.entry(number).or_insert_with(|| {
                self.dirty.insert(number / REGIONS_OF_PAGE);
                DirtyRegion {
                    writers: 0,
                    age: RUNS_UNTIL_CLEAN,
                    durable: false,
                }
            });
            region.writers += 1;
            durable &= region.durable;
        }
        if durable {
            return self.pass(now, write, cx);
        }
        self.held.push_back(write);
        if self.flying == 0 && self.due.is_none() {
            self.due = Some(now + WAKE_UP);
        }
    }
}

impl Node for Bitmap {
    fn submit(&mut self, now: Time, from: Port, request: Request, cx: &mut NodeContext<'_>) {
        let writes = request.operation == Operation::Write
            && request.extent.sectors.0 > 0
            && request.extent.within(self.layout().capacity());
        match writes {
            true => self.hold_or_pass(now, request, cx),
            false => self.call(cx, |node, cx| node.submit(now, from, request, cx)),
        }
    }

    fn completed(
        &mut self,
        now: Time,
        from: Port,
        completion: Completion,
        cx: &mut NodeContext<'_>,
    ) {
        let id = completion.id.0;
        if id & !1 != OWN {
            return self.call(cx, |node, cx| node.completed(now, from, completion, cx));
        }
        if id & 1 == 1 {
            self.flying -= 1;
            if self.flying == 0 {
                self.bits_written(now, cx);
            }
        }
    }

    fn wake(&mut self, now: Time, cx: &mut NodeContext<'_>) {
        if self.due.is_some_and(|due| due <= now) {
            self.due = None;
            self.write_bits(now, cx);
        }
        if self.daemon.is_some_and(|daemon| daemon <= now) {
            self.run_daemon(now, cx);
        }
        if self.node_ref().next_wake().at() <= now {
            self.call(cx, |node, cx| node.wake(now, cx));
        }
    }

    fn noticed(&mut self, now: Time, from: Port, notice: Notice, cx: &mut NodeContext<'_>) {
        self.call(cx, |node, cx| node.noticed(now, from, notice, cx));
    }

    fn owners(&self, from: Port, extent: Extent, owner: &mut dyn FnMut(Port, Extent)) {
        self.node_ref().owners(from, extent, owner);
    }

    fn ordered(
        &mut self,
        now: Time,
        order: LayerOrder,
        cx: &mut NodeContext<'_>,
    ) -> Result<(), Refusal> {
        let mut result = Ok(());
        self.call(cx, |node, cx| result = node.ordered(now, order, cx));
        result
    }

    fn next_wake(&self) -> Wake {
        let (inner, never) = (self.node_ref().next_wake(), Time::NEVER);
        let (due, daemon) = (self.due.unwrap_or(never), self.daemon.unwrap_or(never));
        let first = inner.at().min(due).min(daemon);
        match inner.is_work() || self.due.is_some() {
            true => Wake::Work(first),
            // The daemon runs for ever. A run does not wait for it.
            false if first == never => inner,
            false => Wake::Chore(first),
        }
    }

    fn count(&self, now: Time, counters: &mut Counters) {
        self.node_ref().count(now, counters);
    }

    fn gauge(&self) -> Gauge {
        let gauge = self.node_ref().gauge();
        let held = (self.held.len() + self.waiting.len()) as u32;
        Gauge {
            queue_length: gauge.queue_length + held,
            idle_since: gauge.idle_since.filter(|_| held == 0),
            ..gauge
        }
    }
}
