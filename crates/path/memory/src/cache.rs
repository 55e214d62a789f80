//! A page cache: replacement, read-ahead and write-back as one state machine.

mod asking;
mod reading;
mod room;
mod syncing;
mod waiting;
mod writing;

#[cfg(test)]
mod tests;

use crate::config::{MemoryKeys, Policies};
use crate::counters::{Counters, Gauges};
use crate::desk::Desk;
use crate::device::{Device, IoId, Queue};
use crate::dirty::DirtyObjects;
use crate::out::Out;
use crate::pages::{Pages, flag};
use crate::read_ahead::{Cuts, Plan, ReadAhead};
use crate::replacement::Replacement;
use crate::run::Run;
use crate::write_back::WriteBack;
pub use asking::Arrival;
use fullstroke_contract::{ConfigError, Object, Slots, Status};
use fullstroke_units::Time;
use std::collections::BTreeMap;
use waiting::{Alarm, Operation};

/// An open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u32);

/// Bytes of a file that are read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The first byte.
    pub offset: u64,
    /// How many.
    pub bytes: u64,
    /// How long the file is, in bytes: what lies behind is not on the device. A
    /// write is told the length before it.
    pub size: u64,
    /// Where windows of read-ahead end early; nothing to a write.
    pub cuts: Cuts,
}

impl Access {
    /// Bytes of a file that is `size` bytes long, whose windows end where they would.
    pub fn new(offset: u64, bytes: u64, size: u64) -> Access {
        Access {
            offset,
            bytes,
            size,
            cuts: Cuts::NONE,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct OpenFile {
    object: Object,
    /// The page that the last read ended in: going on in it is not a new use
    /// (`do_generic_file_read`).
    last_page: u64,
}

/// A cache of pages.
///
/// - **Operations**, which answer [`Answer::Done`](crate::Answer::Done), or wait and
///   are woken: [`read`](Cache::read), [`read_run`](Cache::read_run),
///   [`write`](Cache::write), [`write_run`](Cache::write_run),
///   [`fsync`](Cache::fsync), [`sync`](Cache::sync), [`direct`](Cache::direct).
/// - **Events in**: [`read_done`](Cache::read_done), [`written`](Cache::written),
///   [`wake`](Cache::wake), [`push`](Cache::push), [`pull`](Cache::pull),
///   [`pull_any`](Cache::pull_any).
/// - **At once**: [`open`](Cache::open), [`close`](Cache::close),
///   [`discard`](Cache::discard), [`invalidate`](Cache::invalidate).
/// - **Out**: what is to be read and written, and who is woken ([`Out`]);
///   [`next_wake`](Cache::next_wake).
/// - **Getters**: [`gauges`](Cache::gauges), [`counters`](Cache::counters),
///   [`holds`](Cache::holds), [`holds_clean`](Cache::holds_clean).
///
/// What it promises:
///
/// - Never more pages are held than memory has, those under I/O included. Who needs
///   one when none can go waits.
/// - A dirty page goes only when it has been written, its object is discarded, or
///   its write-back failed (which is counted).
/// - A page is never being written twice at a time: what is written is never older
///   than what was written before.
///
/// What it asks for: time is monotonic over all calls, and each read and write that
/// it gives out is answered, in pieces or as a whole.
pub struct Cache {
    limit: u64,
    pages: Pages,
    replacement: Box<dyn Replacement>,
    read_ahead: Box<dyn ReadAhead>,
    write_back: Box<dyn WriteBack>,
    dirty: DirtyObjects,
    device: Device,
    files: Slots<OpenFile>,
    operations: Slots<Operation>,
    /// Those that wait, in the order in which they came.
    waiting: Vec<u32>,
    /// What raises one of them.
    alarm: Alarm,
    /// Runs of which the I/O has ended since they were asked.
    ended: Vec<Run>,
    /// Whether something has become free or clean since those who wait for memory
    /// were asked.
    freed: bool,
    plan: Plan,
    /// What reads in order are in the middle of.
    streak: Option<reading::Streak>,
    /// Of each object whose pages could not all be written: how often, and how the last time.
    failures: BTreeMap<Object, (u64, Status)>,
    counters: Counters,
}

impl Cache {
    /// A cache of the keys, above a device with such a queue.
    ///
    /// # Errors
    /// As [`MemoryKeys::read`]; a queue for no request.
    pub fn new(keys: &MemoryKeys, queue: Queue) -> Result<Cache, ConfigError> {
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
        Ok(Cache {
            limit,
            pages: Pages::default(),
            replacement,
            read_ahead,
            write_back,
            dirty: DirtyObjects::default(),
            device: Device::new(queue),
            files: Slots::default(),
            operations: Slots::default(),
            waiting: Vec::new(),
            alarm: Alarm::default(),
            ended: Vec::new(),
            freed: false,
            plan: Plan::default(),
            streak: None,
            failures: BTreeMap::new(),
            counters: Counters::default(),
        })
    }

    /// Opens a file.
    pub fn open(&mut self, object: Object) -> FileId {
        let file = self.files.keep(OpenFile {
            object,
            last_page: u64::MAX,
        });
        self.read_ahead.opened(file);
        FileId(file)
    }

    /// Closes a file; none of its operations waits any more.
    pub fn close(&mut self, file: FileId) {
        debug_assert!(
            self.waiting
                .iter()
                .all(|&slot| self.operations[slot].file != Some(file.0)),
            "a file is closed while an operation on it waits"
        );
        self.files.take(file.0);
    }

    /// Whether all pages of a run are held, and what they hold is there.
    pub fn holds(&self, run: Run) -> bool {
        self.holds_without(run, flag::READING)
    }

    /// The same, and all of them as they are on the device.
    pub fn holds_clean(&self, run: Run) -> bool {
        self.holds_without(run, flag::DIRTY | flag::BUSY)
    }

    /// Whether any page of a run is to be written and not on its way.
    pub fn is_dirty(&self, run: Run) -> bool {
        let slot = self.pages.dirty_from(run.object, run.first);
        slot.is_some_and(|slot| self.pages.get(slot).first < run.end())
    }

    fn holds_without(&self, run: Run, unwanted: u16) -> bool {
        let mut at = run.first;
        while at < run.end() {
            match self.pages.look(run.object, at) {
                Some(slot) if !self.pages.get(slot).is(unwanted) => at = self.pages.get(slot).end(),
                _ => return false,
            }
        }
        true
    }

    /// What has been counted.
    pub fn counters(&self) -> Counters {
        let counters = self.counters;
        // Found is what was neither brought for the read nor on its way when it came.
        let hits = counters
            .read
            .saturating_sub(counters.misses + counters.late);
        Counters { hits, ..counters }
    }

    /// How it is at the moment.
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

    /// The time that was asked for has come.
    pub fn wake(&mut self, now: Time, out: &mut Out) {
        self.settle(now, out);
    }

    /// When [`Cache::wake`] is to be called; earlier is harmless.
    pub fn next_wake(&self) -> Time {
        let background = self
            .write_back
            .next_wake(self.pages.held(), self.device.full());
        background.min(self.alarm.until)
    }

    /// Pages that were read have come, or, unless `Done`, could not be read.
    pub fn read_done(&mut self, now: Time, id: IoId, run: Run, status: Status, out: &mut Out) {
        self.device.end(id, run.pages);
        self.each(run, flag::READING, |cache, slot| {
            if status == Status::Done && !cache.pages.get(slot).is(flag::DOOMED) {
                cache.pages.change(slot, 0, flag::READING);
                cache.pages.join(slot);
            } else {
                cache.drop_stretch(slot);
            }
        });
        if status != Status::Done {
            self.fail(run, status, out);
        }
        self.ended(now, run, out);
    }

    /// Pages that were written back are on the device, or, unless `Done`, could not
    /// be written: what they held is lost, as in Linux, where they are clean then.
    pub fn written(&mut self, now: Time, id: IoId, run: Run, status: Status, out: &mut Out) {
        self.device.end(id, run.pages);
        if status != Status::Done {
            self.counters.lost += run.pages;
            let (failures, _) = self.failures(run.object);
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

    /// How many writes of an object's pages have failed, and how the last one did: whoever has seen
    /// another number has not been told (`errseq_t` of Linux).
    pub fn failures(&self, object: Object) -> (u64, Status) {
        self.failures.get(&object).copied().unwrap_or_default()
    }

    /// The I/O of a run has ended.
    fn ended(&mut self, now: Time, run: Run, out: &mut Out) {
        self.turn_aside(now, run, out);
        self.ended.push(run);
        self.freed = true;
        self.settle(now, out);
    }

    /// Does something to all stretches of a run that have a flag, cut to the run.
    fn each(&mut self, run: Run, wanted: u16, mut act: impl FnMut(&mut Cache, u32)) {
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
            if stretch.is(wanted) {
                let slot = self.pages.cut(slot, from, to);
                act(self, slot);
            }
            at = to;
        }
    }

    /// Takes pages out of memory whose object does not want them any more.
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

    fn desk<'a>(&'a mut self, now: Time, out: &'a mut Out) -> (Desk<'a>, &'a mut dyn WriteBack) {
        let desk = Desk {
            now,
            limit: self.limit,
            pages: &mut self.pages,
            dirty: &mut self.dirty,
            device: &mut self.device,
            counters: &mut self.counters,
            out,
        };
        (desk, self.write_back.as_mut())
    }

    /// After each event: what is done in the background, and who goes on.
    fn settle(&mut self, now: Time, out: &mut Out) {
        loop {
            let (mut desk, write_back) = self.desk(now, out);
            debug_assert!(
                desk.held().pages <= desk.limit,
                "{} pages are held, of {} that memory has",
                desk.held().pages,
                desk.limit
            );
            write_back.run(&mut desk);
            if !self.resume(now, out) {
                return;
            }
        }
    }
}

/// The first page of some bytes, and the one behind their last.
fn pages_of(offset: u64, bytes: u64) -> (u64, u64) {
    let end = offset.saturating_add(bytes);
    (
        offset / crate::run::PAGE_BYTES,
        end.div_ceil(crate::run::PAGE_BYTES),
    )
}
