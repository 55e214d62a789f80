//! A page cache: replacement, read-ahead and write-back as one state machine.

mod asking;
mod pending;
mod reading;
mod room;
mod syncing;
mod waiting;
mod writing;

#[cfg(test)]
mod tests;

use crate::cache_parts::CacheParts;
use crate::config::{MemoryKeys, Policies};
use crate::counters::{Counters, Gauges};
use crate::device::{DeviceQueue, IoId, QueueLimits};
use crate::dirty::DirtyObjects;
use crate::out::CacheOut;
use crate::pages::{PageTable, Stretch, flag};
use crate::read_ahead::{ReadAhead, ReadAheadPlan, WindowCuts};
use crate::replacement::Replacement;
use crate::run::PageRun;
use crate::write_back::WriteBack;
pub use asking::DataSource;
use fullstroke_contract::{ConfigError, Object, RequestStatus, Slots};
use fullstroke_units::Time;
use pending::{Alarm, PendingOperation};
use std::collections::BTreeMap;

/// An open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u32);

/// Bytes of a file for a read or write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileAccess {
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub bytes: u64,
    /// Length of the file in bytes. Data beyond the end are not on the device. A write passes the
    /// length before the write.
    pub size: u64,
    /// Early ends of read-ahead windows; unused by writes.
    pub cuts: WindowCuts,
}

impl FileAccess {
    /// Returns an access to a file of `size` bytes, without cuts.
    pub fn new(offset: u64, bytes: u64, size: u64) -> FileAccess {
        FileAccess {
            offset,
            bytes,
            size,
            cuts: WindowCuts::NONE,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct OpenFile {
    object: Object,
    /// Last page of the last read. A read that continues in this page is not a new use of the page
    /// (`do_generic_file_read`).
    last_page: u64,
}

/// A cache of pages.
///
/// - **Operations**, which return [`OperationAnswer::Done`](crate::OperationAnswer::Done), or wait and are woken:
///   [`read`](PageCache::read), [`read_run`](PageCache::read_run), [`write`](PageCache::write),
///   [`write_run`](PageCache::write_run), [`fsync`](PageCache::fsync), [`sync`](PageCache::sync),
///   [`direct`](PageCache::direct).
/// - **Events in**: [`read_done`](PageCache::read_done), [`written`](PageCache::written),
///   [`wake`](PageCache::wake), [`push`](PageCache::push), [`pull`](PageCache::pull),
///   [`pull_any`](PageCache::pull_any).
/// - **At once**: [`open`](PageCache::open), [`close`](PageCache::close), [`discard`](PageCache::discard),
///   [`invalidate`](PageCache::invalidate).
/// - **Out**: reads, writes and woken operations ([`CacheOut`]); [`next_wake`](PageCache::next_wake).
/// - **Getters**: [`gauges`](PageCache::gauges), [`counters`](PageCache::counters),
///   [`holds`](PageCache::holds), [`holds_clean`](PageCache::holds_clean).
///
/// The cache guarantees:
///
/// - The pages held never exceed the memory, pages under I/O included. An operation that needs a
///   page waits if no page can leave.
/// - A dirty page leaves in three cases only: it has been written, its object is discarded, or its
///   write-back failed (a counter shows such losses).
/// - A page never has two writes in flight at once. So a newer version never reaches the device
///   before an older one.
///
/// The cache requires: time never decreases from call to call, and the caller completes each read
/// and write of the cache, in pieces or as a whole.
pub struct PageCache {
    limit: u64,
    pages: PageTable,
    replacement: Box<dyn Replacement>,
    read_ahead: Box<dyn ReadAhead>,
    write_back: Box<dyn WriteBack>,
    dirty: DirtyObjects,
    device: DeviceQueue,
    files: Slots<OpenFile>,
    operations: Slots<PendingOperation>,
    /// Waiting operations, in order of arrival.
    waiting: Vec<u32>,
    /// Conditions for the waiting operations to continue.
    alarm: Alarm,
    /// Runs whose I/O has ended since the waiting operations were checked.
    ended: Vec<PageRun>,
    /// True if memory has become free or clean since the waiting operations were checked.
    freed: bool,
    plan: ReadAheadPlan,
    /// Last step of a sequential read, for the next step.
    streak: Option<reading::LastUse>,
    /// By object: number of failed write-backs, and the status of the last one.
    failures: BTreeMap<Object, (u64, RequestStatus)>,
    /// Number of drives below that clean bands.
    cleaning: u32,
    counters: Counters,
}

impl PageCache {
    /// Returns an empty cache with these keys, above a device with this queue.
    ///
    /// # Errors
    /// As [`MemoryKeys::read`]; the queue has no place for a request.
    pub fn new(keys: &MemoryKeys, queue: QueueLimits) -> Result<PageCache, ConfigError> {
        if queue.nr_requests == 0 || queue.request_pages == 0 {
            return Err(ConfigError::new(
                "nr_requests",
                "found 0; expected at least one request of a page",
            ));
        }
        let Policies {
            limit,
            replacement,
            read_ahead,
            write_back,
        } = keys.policies()?;
        Ok(PageCache {
            limit,
            pages: PageTable::default(),
            replacement,
            read_ahead,
            write_back,
            dirty: DirtyObjects::default(),
            device: DeviceQueue::new(queue),
            files: Slots::default(),
            operations: Slots::default(),
            waiting: Vec::new(),
            alarm: Alarm::default(),
            ended: Vec::new(),
            freed: false,
            plan: ReadAheadPlan::default(),
            streak: None,
            failures: BTreeMap::new(),
            cleaning: 0,
            counters: Counters::default(),
        })
    }

    /// Opens a file.
    pub fn open(&mut self, object: Object) -> FileId {
        let file = self.files.keep(OpenFile {
            object,
            // No read yet: `prev_pos` of Linux is -1 for a file that was just opened
            // (`file_ra_state_init`).
            last_page: u64::MAX,
        });
        self.read_ahead.opened(file);
        FileId(file)
    }

    /// Closes a file. None of its operations may wait.
    pub fn close(&mut self, file: FileId) {
        debug_assert!(
            self.waiting
                .iter()
                .all(|&slot| self.operations[slot].file != Some(file.0)),
            "a file is closed while an operation on it waits"
        );
        self.files.take(file.0);
    }

    /// True if all pages of a run are held and none is still being read.
    pub fn holds(&self, run: PageRun) -> bool {
        self.holds_without(run, flag::READING)
    }

    /// True if all pages of a run are held and equal the data on the device.
    pub fn holds_clean(&self, run: PageRun) -> bool {
        self.holds_without(run, flag::DIRTY | flag::BUSY)
    }

    /// True if the run has a dirty page, apart from pages being written.
    pub fn is_dirty(&self, run: PageRun) -> bool {
        let slot = self.pages.dirty_from(run.object, run.first);
        slot.is_some_and(|slot| self.pages.get(slot).first < run.end())
    }

    fn holds_without(&self, run: PageRun, unwanted: u16) -> bool {
        let mut at = run.first;
        while at < run.end() {
            match self.pages.look(run.object, at) {
                Some(slot) if !self.pages.get(slot).is(unwanted) => at = self.pages.get(slot).end(),
                _ => return false,
            }
        }
        true
    }

    /// Returns the counters.
    pub fn counters(&self) -> Counters {
        let counters = self.counters;
        // A hit is a page held at the time of the read: neither read for the request nor in flight.
        let hits = counters
            .read
            .saturating_sub(counters.misses + counters.late);
        Counters { hits, ..counters }
    }

    /// Returns the present state.
    pub fn gauges(&self) -> Gauges {
        let held = self.pages.held();
        let (reads_in_flight, writes_in_flight) = self.device.in_flight();
        Gauges {
            cached: held.pages,
            dirty: held.dirty,
            writing: held.writing,
            reading: held.reading,
            wanted: self.wanted(),
            stretches: self.pages.stretches() as u64,
            reads_in_flight,
            writes_in_flight,
            waiting: self.waiting.len() as u32,
        }
    }

    /// Does the work that is due at `now`.
    pub fn wake(&mut self, now: Time, out: &mut CacheOut) {
        self.settle(now, out);
    }

    /// Returns the time of the next call of [`PageCache::wake`]. An earlier call is harmless.
    pub fn next_wake(&self) -> Time {
        let background = self
            .write_back
            .next_wake(self.pages.held(), self.device.full());
        background.min(self.alarm.until)
    }

    /// Completes a read of pages. If `status` is not `Done`, the pages are dropped.
    pub fn read_done(
        &mut self,
        now: Time,
        id: IoId,
        run: PageRun,
        status: RequestStatus,
        out: &mut CacheOut,
    ) {
        self.device.end(id, run.pages);
        self.each(run, flag::READING, |cache, slot| {
            // A file may be truncated while a page is being read. Nobody may find the page
            // afterwards.
            if status == RequestStatus::Done && !cache.pages.get(slot).is(flag::DOOMED) {
                cache.pages.change(slot, 0, flag::READING);
                cache.pages.join(slot);
            } else {
                cache.drop_stretch(slot);
            }
        });
        if status != RequestStatus::Done {
            self.fail(run, status, out);
        }
        self.ended(now, run, out);
    }

    /// Completes a write-back of pages. If `status` is not `Done`, their data are lost. As in
    /// Linux, the pages are clean then.
    pub fn written(
        &mut self,
        now: Time,
        id: IoId,
        run: PageRun,
        status: RequestStatus,
        out: &mut CacheOut,
    ) {
        self.device.end(id, run.pages);
        if status != RequestStatus::Done {
            self.counters.lost += run.pages;
            let (failures, _) = self.failures(run.object);
            // Kept by object, because an fsync that finds no dirty page must still report the
            // failure.
            self.failures.insert(run.object, (failures + 1, status));
            self.fail(run, status, out);
        }
        self.each(run, flag::WRITING, |cache, slot| {
            cache.pages.change(slot, 0, flag::WRITING);
            if cache.pages.get(slot).is(flag::DOOMED) {
                cache.drop_stretch(slot);
            } else {
                cache.pages.join(slot);
            }
        });
        self.ended(now, run, out);
    }

    /// Returns the number of failed write-backs of an object, and the status of the last one. A
    /// process that has seen another number does not know of the failure yet (`errseq_t` of Linux).
    pub fn failures(&self, object: Object) -> (u64, RequestStatus) {
        self.failures.get(&object).copied().unwrap_or_default()
    }

    /// Continues after the end of the I/O of a run.
    fn ended(&mut self, now: Time, run: PageRun, out: &mut CacheOut) {
        // Clean pages set aside move to the old end of their list before `settle` continues the
        // operations that wait for memory.
        self.turn_aside(now, run, out);
        self.ended.push(run);
        self.freed = true;
        self.settle(now, out);
    }

    /// Calls `act` for each stretch of a run with one of these flags. Stretches are cut at the ends
    /// of the run.
    fn each(&mut self, run: PageRun, wanted: u16, act: impl FnMut(&mut PageCache, u32)) {
        self.each_that(run, |stretch| stretch.is(wanted), act);
    }

    /// Calls `act` for each stretch of a run, also for clean pages that have been used: these pages
    /// have no flag.
    fn each_held(&mut self, run: PageRun, act: impl FnMut(&mut PageCache, u32)) {
        self.each_that(run, |_| true, act);
    }

    fn each_that(
        &mut self,
        run: PageRun,
        wanted: impl Fn(&Stretch) -> bool,
        mut act: impl FnMut(&mut PageCache, u32),
    ) {
        let mut at = run.first;
        while at < run.end()
            && let Some(slot) = self.pages.from(run.object, at)
        {
            let stretch = *self.pages.get(slot);
            let (from, to) = (stretch.first.max(at), stretch.end().min(run.end()));
            if from >= run.end() {
                return;
            }
            debug_assert!(
                from < to,
                "no page of {stretch:?} lies behind {at} in {run:?}"
            );
            if wanted(&stretch) {
                let slot = self.pages.cut(slot, from, to);
                act(self, slot);
            }
            at = to;
        }
    }

    /// Removes pages no longer wanted by their object.
    fn drop_stretch(&mut self, slot: u32) {
        debug_assert!(
            !self.pages.get(slot).is(flag::WRITING),
            "pages are dropped that are being written: {:?}",
            self.pages.get(slot)
        );
        self.pages.unlink(slot);
        let gone = self.pages.remove(slot);
        self.count_wasted(&gone);
        self.counters.dropped += u64::from(gone.pages);
        self.freed = true;
    }

    fn parts<'a>(
        &'a mut self,
        now: Time,
        out: &'a mut CacheOut,
    ) -> (CacheParts<'a>, &'a mut dyn WriteBack) {
        let parts = CacheParts {
            now,
            limit: self.limit,
            pages: &mut self.pages,
            dirty: &mut self.dirty,
            device: &mut self.device,
            counters: &mut self.counters,
            out,
        };
        (parts, self.write_back.as_mut())
    }

    /// Does the background work after an event, and continues waiting operations.
    fn settle(&mut self, now: Time, out: &mut CacheOut) {
        loop {
            let (mut parts, write_back) = self.parts(now, out);
            debug_assert!(
                parts.held().pages <= parts.limit,
                "{} pages are held, of {} that memory has",
                parts.held().pages,
                parts.limit
            );
            write_back.run(&mut parts);
            // A continued operation may make pages dirty, so the write-back looks again.
            if !self.resume(now, out) {
                return;
            }
        }
    }
}

/// Returns the first page of a byte range, and the page after its last.
fn pages_of(offset: u64, bytes: u64) -> (u64, u64) {
    let end = offset.saturating_add(bytes);
    (
        offset / crate::run::PAGE_BYTES,
        end.div_ceil(crate::run::PAGE_BYTES),
    )
}
