//! A cache of pushed blocks in a host, below the page cache (*Pro-active storage systems*, 2012,
//! sections 2.3 and 5.3).
//!
//! Pushed blocks cannot enter the page cache, because the host does not know the file of a block.
//! This layer keeps the blocks by address. A read miss of the page cache looks here before the
//! device. Blocks in the cache cost no time. The fetch of a block is an ordinary read, through the
//! block layer, the link and the drive.

use fullstroke_contract::{
    Completion, ConfigError, Counters, Effects, Extent, Gauge, Hints, LayerReadings, Node,
    NodeContext, Notice, Object, Operation, Port, Request, RequestId, RequestStatus, Signal, Slots,
    Wake,
};
use fullstroke_memory::replacement::ListPlace;
use fullstroke_memory::{
    CacheOut, CachePolicy, DataSource, IoId, MemoryKeys, OperationAnswer, PAGE_BYTES, PageCache,
    PageRun, QueueLimits, Ticket,
};
use fullstroke_units::{Bytes, SECTOR_BYTES, Sectors, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Sectors of a page.
const PAGE_SECTORS: u64 = PAGE_BYTES / SECTOR_BYTES;

/// Bit in the id of a request that this layer fetches for itself. The lower bits are the number of
/// the I/O.
const OWN: u64 = 1 << 63;

/// The keys of `[host.pushed]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PushedKeys {
    /// Memory for blocks, such as "16MiB"; at least 256 KiB.
    pub size: Bytes,
    /// Replacement policy, one of those of `[host.memory]`. Default "lru".
    #[serde(default = "lru")]
    pub replacement: CachePolicy,
}

fn lru() -> CachePolicy {
    CachePolicy::Name("lru".into())
}

/// The layer.
///
/// - **Events in**: `submit`, `completed`, `noticed`.
/// - **Effects out**: `issue` to the one member, `complete`.
///
/// The layer never answers a read with data older than a write seen by the layer. Three rules keep
/// this promise. A write drops the cached copies of its blocks when the write arrives. The same
/// write invalidates fetches in flight. While the write is in flight, the layer fetches none of its
/// blocks.
pub struct PushedBlocks {
    cache: PageCache,
    capacity: Sectors,
    /// Blocks of each fetch in flight, by the number of the I/O.
    fetches: Vec<PageRun>,
    /// Requests from above in flight at the device.
    slots: Slots<Request>,
    /// Blocks under a write or discard in flight.
    changing: Vec<PageRun>,
    /// Work from the cache for this layer. Kept between calls to reuse the memory.
    todo: CacheOut,
    counts: PushedCounts,
    idle_since: Time,
    /// Name of the layer in reports.
    name: String,
}

#[derive(Clone, Copy, Debug, Default)]
struct PushedCounts {
    reads: u64,
    hits: u64,
    offered: Sectors,
    fetched_pages: u64,
}

impl PushedBlocks {
    /// Names the layer after the host called `name`.
    #[must_use]
    pub fn of_host(mut self, name: &str) -> PushedBlocks {
        self.name = format!("pushed blocks of {name}");
        self
    }

    /// Returns an empty cache above a device of `capacity`.
    ///
    /// # Errors
    /// The size is too small, or the policy is unknown.
    pub fn new(keys: &PushedKeys, capacity: Sectors) -> Result<PushedBlocks, ConfigError> {
        let none = || Some(CachePolicy::Name("none".into()));
        let replacement = Some(keys.replacement.clone());
        let memory = MemoryKeys {
            size: keys.size,
            replacement,
            read_ahead: none(),
            write_back: none(),
        };
        Ok(PushedBlocks {
            cache: PageCache::new(&memory, QueueLimits::default())?,
            capacity,
            fetches: Vec::new(),
            slots: Slots::default(),
            changing: Vec::new(),
            todo: CacheOut::default(),
            counts: PushedCounts::default(),
            idle_since: Time::ZERO,
            name: "pushed blocks".into(),
        })
    }

    /// Handles a PUSH. Fetches each whole block of `offered` that is not cached and not under a
    /// write, as far as there is room.
    fn fetch(&mut self, now: Time, offered: Extent, out: &mut Effects) {
        self.counts.offered += offered.sectors;
        let wanted = blocks_within(offered, self.capacity);
        let mut at = wanted.first;
        while at < wanted.end() {
            // Blocks under a write are skipped, because the fetch could read the data from before
            // the write.
            let changing = self
                .changing
                .iter()
                .filter(|run| at < run.end() && run.first < wanted.end());
            let Some(next) = changing.min_by_key(|run| run.first).copied() else {
                self.push(
                    now,
                    PageRun {
                        first: at,
                        pages: wanted.end() - at,
                        ..wanted
                    },
                );
                break;
            };
            if next.first > at {
                self.push(
                    now,
                    PageRun {
                        first: at,
                        pages: next.first - at,
                        ..wanted
                    },
                );
            }
            at = next.end();
        }
        self.issue_fetches(out);
    }

    fn push(&mut self, now: Time, run: PageRun) {
        let came = self.cache.push(
            now,
            run,
            ListPlace::Usual,
            DataSource::ToRead,
            &mut self.todo,
        );
        self.counts.fetched_pages += came;
    }

    fn issue_fetches(&mut self, out: &mut Effects) {
        for io in self.todo.reads.drain(..) {
            let place = io.id.0 as usize;
            if self.fetches.len() <= place {
                self.fetches.resize(place + 1, PageRun::default());
            }
            self.fetches[place] = io.run;
            out.issue(
                0,
                Request {
                    id: RequestId(OWN | u64::from(io.id.0)),
                    origin: Request::BACKGROUND,
                    operation: Operation::Read,
                    extent: extent_of(io.run),
                    hints: Hints {
                        synchronous: false,
                        ..Hints::default()
                    },
                    ..Request::default()
                },
            );
        }
        debug_assert!(self.todo.writes.is_empty() && self.todo.woken.is_empty());
        self.todo.clear();
    }

    /// Answers a read from the cache. Returns false if the device must serve the request.
    fn answers(&mut self, now: Time, request: &Request) -> bool {
        if request.operation != Operation::Read
            || request.hints.direct
            || !self.is_of_device(request)
        {
            return false;
        }
        self.counts.reads += 1;
        let run = blocks_touched(request.extent);
        if !self.cache.holds(run) {
            return false;
        }
        let answer = self
            .cache
            .read_run(now, run, Ticket::default(), &mut self.todo);
        assert_eq!(
            answer,
            OperationAnswer::Done,
            "a read of cached blocks must not wait"
        );
        self.counts.hits += 1;
        true
    }

    fn is_of_device(&self, request: &Request) -> bool {
        request.extent.sectors > Sectors::ZERO && request.extent.within(self.capacity)
    }

    fn changes(&self, request: &Request) -> bool {
        matches!(request.operation, Operation::Write | Operation::Discard)
            && self.is_of_device(request)
    }
}

/// Returns the blocks completely within the extent and on the device.
fn blocks_within(extent: Extent, capacity: Sectors) -> PageRun {
    let end = extent.end().0.min(capacity.0) / PAGE_SECTORS;
    let first = extent.start.0.div_ceil(PAGE_SECTORS).min(end);
    PageRun::new(Object::DEVICE, first, end - first)
}

/// Returns the blocks with at least one sector of the extent.
fn blocks_touched(extent: Extent) -> PageRun {
    let first = extent.start.0 / PAGE_SECTORS;
    PageRun::new(
        Object::DEVICE,
        first,
        extent.end().0.div_ceil(PAGE_SECTORS) - first,
    )
}

fn extent_of(run: PageRun) -> Extent {
    Extent::new(run.first * PAGE_SECTORS, run.pages * PAGE_SECTORS)
}

impl Node for PushedBlocks {
    fn submit(&mut self, now: Time, _: Port, request: Request, cx: &mut NodeContext<'_>) {
        if self.answers(now, &request) {
            return cx
                .out
                .complete(Completion::at_once(request.id, now, RequestStatus::Done));
        }
        if self.changes(&request) {
            let run = blocks_touched(request.extent);
            // The copies go before the write is issued: a read that arrives meanwhile must not hit
            // old data.
            self.cache.discard_run(now, run, &mut self.todo);
            self.changing.push(run);
        }
        let slot = self.slots.keep(request);
        cx.out.issue(
            0,
            Request {
                id: RequestId(u64::from(slot)),
                ..request
            },
        );
    }

    fn completed(&mut self, now: Time, _: Port, completion: Completion, cx: &mut NodeContext<'_>) {
        let id = completion.id.0;
        if id & OWN != 0 {
            let io = IoId(id as u32);
            self.cache.read_done(
                now,
                io,
                self.fetches[io.0 as usize],
                completion.status,
                &mut self.todo,
            );
            return self.issue_fetches(cx.out);
        }
        let request = self.slots.take(id as u32);
        if self.changes(&request) {
            let run = blocks_touched(request.extent);
            // Several writes of the same blocks may be in flight. Each completion removes one entry
            // only.
            let place = self.changing.iter().position(|other| *other == run);
            assert!(
                place.is_some(),
                "a write of {run:?} ends that did not begin"
            );
            place.map(|place| self.changing.swap_remove(place));
        }
        if self.slots.is_empty() {
            self.idle_since = now;
        }
        cx.out.complete(Completion {
            id: request.id,
            ..completion
        });
    }

    fn wake(&mut self, _: Time, _: &mut NodeContext<'_>) {}

    fn next_wake(&self) -> Wake {
        Wake::NEVER
    }

    /// Handles PUSH here, and passes all other notices on to the layer above.
    fn noticed(&mut self, now: Time, from: Port, notice: Notice, cx: &mut NodeContext<'_>) {
        match notice.signal {
            Signal::Push(extent) => self.fetch(now, extent, cx.out),
            _ => self.pass_on(from, notice, cx.out),
        }
    }

    fn gauge(&self) -> Gauge {
        let held = self.slots.len() as u32;
        Gauge {
            queue_length: held,
            idle_since: (held == 0).then_some(self.idle_since),
            ..Gauge::default()
        }
    }

    fn count(&self, _: Time, counters: &mut Counters) {
        let counted = self.cache.counters();
        let megabytes = |pages: u64| (pages * PAGE_BYTES) as f64 / 1e6;
        let PushedCounts {
            reads,
            hits,
            offered,
            fetched_pages,
        } = self.counts;
        let fetched = megabytes(fetched_pages);
        let [used, wasted] = [counted.pushed_used, counted.pushed_wasted].map(megabytes);
        let hit_share = if reads == 0 {
            0.0
        } else {
            hits as f64 / reads as f64
        };
        counters.layers.push(LayerReadings::new(
            self.name.clone(),
            &[
                ("pushed_hits", hits as f64),
                ("pushed_hit_share", hit_share),
                ("pushed_fetched_mb", fetched),
                (
                    "pushed_refused_mb",
                    offered.bytes().0 as f64 / 1e6 - fetched,
                ),
                ("pushed_used_mb", used),
                ("pushed_wasted_mb", wasted),
                (
                    "pushed_left_mb",
                    megabytes(
                        fetched_pages.saturating_sub(counted.pushed_used + counted.pushed_wasted),
                    ),
                ),
            ],
        ));
    }
}
