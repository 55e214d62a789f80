//! Parity arrays as Linux's md runs them (`drivers/md/raid5.c`, Linux 6.12).
//!
//! The other layouts plan a request as a whole when the request arrives. md works in **stripes**:
//! pages of 4 KiB at one offset of all members. A limited number of stripes is in memory. A request
//! adds its pages to stripes, and a thread handles the stripes afterwards. Three consequences
//! decide the times:
//!
//! 1. A write joins the stripe that a neighbour has begun. Neighbours that arrive before the thread
//!    runs become one write, and a stripe that is overwritten as a whole needs no reads.
//! 2. Pages in memory need not be read again, and writes wait if all stripes have work.
//! 3. Member I/O consists of pages. The plug of the block layer collects the I/O of one pass of the
//!    thread, and joins adjacent pages.
//!
//! | file | duty |
//! |---|---|
//! | `requests.rs` | a request adds its pages to stripes, or bypasses them |
//! | `stripes.rs` | stripes in memory, their flags and lists |
//! | `daemon.rs` | order in which the thread handles stripes |
//! | `handle.rs`, `dirty.rs` | one stripe: answers, reads, parity, writes |
//! | `batch.rs` | full writes of neighbours |
//! | `generation.rs` | what earlier kernels do otherwise |
//! | `plug.rs` | joins member I/O |
//! | `log.rs`, `log/steps.rs` | the log that a stripe passes before its writes |
//! | `ppl.rs`, `ppl/steps.rs` | the partial parity log |
//! | `journal.rs`, `journal/steps.rs` | the journal on a device of its own |
//! | `records.rs` | superblocks and the bitmap on the members, above an array |
//! | `bitmap.rs` | regions of the write-intent bitmap |
//! | `core.rs` | tables of requests and of member I/O in flight |
//!
//! A rebuild is that of [`Volume`], and each of its pages in flight holds a stripe here
//! (`raid5_sync_request`). Requests therefore wait for stripes while a rebuild has all of them.
//!
//! Departures from the kernel: the thread needs no processor time. A cache that has grown stays large,
//! because nothing else needs the memory (`raid5_cache_scan`). A rebuild reads and writes runs of pages, and a
//! request for a page that is being rebuilt does not wait for this page. While no requests come, a
//! rebuild holds no stripes and has more than the cache in flight, because each unit costs events.

mod batch;
mod bitmap;
mod core;
mod daemon;
mod dirty;
mod generation;
mod handle;
mod journal;
mod keys;
mod log;
mod plug;
mod ppl;
mod records;
mod requests;
mod stripes;

#[cfg(test)]
mod tests;

use crate::parity::RowMap;
use crate::volume::Volume;
pub use bitmap::WriteIntent;
use core::{Core, EventContext, is_own};
use fullstroke_contract::{
    Completion, Counters, Effects, Extent, Gauge, LayerOrder, Node, NodeContext, Notice, Operation,
    Port, Refusal, Request, Wake,
};
use fullstroke_units::{Duration, Time};
pub use generation::MdKernel;
pub use journal::JournalDevice;
pub(crate) use keys::{MdKeys, check_chunk, check_whole_pages, no_dummy_reads};
pub use records::MdRecords;
use records::{RecordedArray, Recorder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Time from an event to the run of md's thread: the wake-up of a sleeping thread. Requests that
/// arrive in this time are handled together. An estimate for an idle processor.
const WAKE_UP: Duration = Duration::from_nanos(5_000);

/// Longest time that md's thread waits for a processor while a submitter runs: the base slice of
/// the scheduler (`sysctl_sched_base_slice`, `kernel/sched/fair.c`, 8 processors or more).
const SLICE: Duration = Duration::from_nanos(3_000_000);

/// How md updates the parity of a partly written stripe: `rmw_level`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ParityUpdates {
    /// Always reads the other data of the stripe: level 0.
    Reconstruct,
    /// Reads old data and old parity if this needs fewer reads: level 1.
    #[default]
    Fewer,
    /// The same, and also if both methods need equally many reads: level 2.
    Modify,
}

/// Settings of a parity array that md runs.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    pub(crate) map: RowMap,
    /// Number of stripes in memory.
    pub(crate) stripes: u32,
    pub(crate) updates: ParityUpdates,
    /// Number of full writes that may pass a stripe that reads.
    pub(crate) bypass_threshold: u32,
    /// Sectors of the largest member I/O.
    pub(crate) largest: u64,
    pub(crate) kernel: MdKernel,
}

/// The layers above and below an array that md runs.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings {
    /// True if no page cache is above: every write then counts as waited for (`REQ_SYNC`), as
    /// direct I/O does.
    pub direct: bool,
    /// True if members have an elevator that joins adjacent requests, as every elevator but `none`
    /// does.
    pub elevators: bool,
}

/// A parity array that md runs: stripes for reads and writes, and a [`Volume`] for everything else.
///
/// - **Events in**: the events of [`Node`].
/// - Invariant: reads and writes from above are requests of the stripes. Orders, rebuilds, flushes,
///   discards and reads of single members are the business of the volume.
pub struct MdVolume {
    volume: Volume,
    core: Core,
    /// True if no page cache is above, so that every write is waited for.
    direct: bool,
    /// Time of the next run of the thread.
    due: Option<Time>,
    /// Time of the event that woke the thread.
    woken: Time,
    /// Start of the time without requests of the stripes.
    idle_since: Time,
}

impl MdVolume {
    /// Returns the layer for a layout that md runs, or the volume itself for other layouts.
    /// `records` are the records that md keeps on the members; `None` for an array without them.
    pub fn over(volume: Volume, around: Surroundings, records: Option<MdRecords>) -> Box<dyn Node> {
        let array = match volume.layout().md() {
            Some(setup) => {
                let mut array = Box::new(MdVolume::with(volume, &setup, around));
                if let Some(records) = records {
                    array.core.add_log_of(&records);
                }
                RecordedArray::Stripes(array)
            }
            None => RecordedArray::Copies(Box::new(volume)),
        };
        Recorder::over(array, records, around.direct)
    }

    fn with(volume: Volume, setup: &Setup, around: Surroundings) -> MdVolume {
        let capacity = volume.layout().capacity();
        MdVolume {
            core: Core::new(setup, capacity, around.elevators),
            volume,
            direct: around.direct,
            due: None,
            woken: Time::ZERO,
            idle_since: Time::ZERO,
        }
    }

    /// True for a request that the stripes serve.
    fn is_for_stripes(&self, request: &Request) -> bool {
        let plain = !request.hints.members && !request.hints.verify;
        plain
            && request.operation.transfers()
            && request.extent.sectors.0 > 0
            && request.extent.within(self.core.capacity)
    }

    /// True for the port of the journal device, which holds no data of the volume's addresses.
    fn is_journal(&self, port: Port) -> bool {
        port.index() == self.core.stripes.members
    }

    /// Shares the stripes between a rebuild and the requests: each page of a rebuild in flight
    /// holds a stripe.
    fn share(&mut self, now: Time, cx: &mut NodeContext<'_>) {
        if !self.volume.is_rebuilding() && !self.core.stripes.has_lent() {
            return;
        }
        loop {
            let (pages, new) = self.volume.rebuild_pages();
            self.core.lend(pages, new);
            let room = self.core.room_of_rebuild(self.volume.makes_way());
            self.volume.set_rebuild_room(now, room);
            if !self.volume.go_on(now, cx.out) {
                return;
            }
        }
    }

    /// Lets the thread sleep while records are written: the thread has taken the stripes whose I/O has
    /// ended, and its plug empties itself (`blk_flush_plug` in `io_schedule`).
    fn sleep(&mut self, out: &mut Effects) {
        self.core.take_released();
        if self.core.paused {
            self.core.unplug(out);
        }
    }

    /// Completes the requests that have ended, and notes when the thread runs next.
    fn settle(&mut self, now: Time, cx: &mut NodeContext<'_>) {
        self.share(now, cx);
        while let Some(asked) = self.core.ended.pop_front() {
            let asked = self.core.asked.take(asked);
            self.volume.note_foreign_end(now, &asked.request);
            self.idle_since = now;
            cx.out.complete(completion(&asked, now));
        }
        if self.core.due && self.due.is_none() {
            self.due = Some(now + WAKE_UP);
            self.woken = now;
        }
    }
}

/// Returns the completion of a request without work.
fn ended_at_once(request: &Request, now: Time) -> Completion {
    Completion {
        id: request.id,
        submitted: now,
        finished: now,
        ..Completion::default()
    }
}

/// Returns the completion of a request that ends at `now`.
fn completion(asked: &core::UpperRequest, now: Time) -> Completion {
    let (submitted, last) = (asked.submitted, asked.last);
    let own = last.submitted >= submitted && last.finished > submitted && last.finished <= now;
    let mut breakdown = if own {
        last.breakdown
    } else {
        Default::default()
    };
    if own {
        breakdown.parity += last.submitted.since(submitted);
        breakdown.overhead += now.since(last.finished);
    } else {
        // The request joined a stripe that was on its way, or was answered from memory.
        breakdown.parity += now.since(submitted);
    }
    Completion {
        id: asked.request.id,
        submitted,
        finished: now,
        status: asked.status,
        breakdown,
    }
}

impl Node for MdVolume {
    fn submit(&mut self, now: Time, from: Port, request: Request, cx: &mut NodeContext<'_>) {
        if !self.is_for_stripes(&request) {
            // Each write that has ended is in the journal (`r5l_handle_flush_request`).
            if request.operation == Operation::Flush && self.core.has_journal() {
                return cx.out.complete(ended_at_once(&request, now));
            }
            if request.operation == Operation::Discard {
                self.core.forget(request.extent);
            }
            return self.volume.submit(now, from, request, cx);
        }
        self.volume.note_foreign_request(now, &request, cx);
        let mut request = request;
        request.hints.synchronous |= self.direct;
        let event = &mut EventContext {
            states: self.volume.layout().member_states(),
            out: cx.out,
        };
        self.core.submit(request, now, event);
        self.settle(now, cx);
        // The thread is woken on the submitter's processor and does not displace the submitter
        // (`md_wakeup_thread`; measured with `tools/kernel-lab.py`: 32 writes that follow each
        // other closely become one I/O). The thread begins when the submitter pauses.
        if self.due.is_some() {
            self.due = Some((now + WAKE_UP).min(self.woken + SLICE));
        }
    }

    fn completed(
        &mut self,
        now: Time,
        from: Port,
        completion: Completion,
        cx: &mut NodeContext<'_>,
    ) {
        if !is_own(completion.id) {
            self.volume.completed(now, from, completion, cx);
            return self.settle(now, cx);
        }
        let sectors = self.core.landed(from.index(), &completion);
        if !self.is_journal(from) {
            self.volume.note_foreign_io(from.index(), sectors);
        }
        self.settle(now, cx);
    }

    fn wake(&mut self, now: Time, cx: &mut NodeContext<'_>) {
        if self.volume.next_wake().at() <= now {
            self.volume.wake(now, cx);
            self.settle(now, cx);
        }
        if self.due.is_some_and(|due| due <= now) {
            self.due = None;
            if self.core.rests() {
                self.core.due = false;
            } else {
                let event = &mut EventContext {
                    states: self.volume.layout().member_states(),
                    out: cx.out,
                };
                self.core.run(event);
                self.core.add_waiting();
            }
            self.settle(now, cx);
        }
    }

    fn noticed(&mut self, now: Time, from: Port, notice: Notice, cx: &mut NodeContext<'_>) {
        if self.is_journal(from) {
            return;
        }
        self.volume.noticed(now, from, notice, cx);
    }

    fn owners(&self, from: Port, extent: Extent, owner: &mut dyn FnMut(Port, Extent)) {
        if self.is_journal(from) {
            return;
        }
        self.volume.owners(from, extent, owner);
    }

    fn ordered(
        &mut self,
        now: Time,
        order: LayerOrder,
        cx: &mut NodeContext<'_>,
    ) -> Result<(), Refusal> {
        let answer = self.volume.ordered(now, order, cx);
        self.settle(now, cx);
        answer
    }

    fn next_wake(&self) -> Wake {
        match (self.due, self.volume.next_wake()) {
            (Some(due), other) => Wake::Work(due.min(other.at())),
            (None, other) => other,
        }
    }

    fn count(&self, _: Time, counters: &mut Counters) {
        let name = self.volume.layout().name();
        counters.layers.push(self.core.counts.readings(name, &[]));
    }

    fn gauge(&self) -> Gauge {
        let gauge = self.volume.gauge();
        let idle = self.core.in_flight() == 0;
        Gauge {
            queue_length: gauge.queue_length + self.core.in_flight(),
            idle_since: gauge
                .idle_since
                .filter(|_| idle)
                .map(|since| since.max(self.idle_since)),
            ..gauge
        }
    }
}
