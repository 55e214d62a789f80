//! A page cache with data, as a state machine: requests of clients in, jobs for the server below
//! out.

use crate::cache::pages::CachePages;
use fullstroke_contract::{ConfigError, Object, RequestStatus};
use fullstroke_memory::replacement::ListPlace;
use fullstroke_memory::{
    CacheOut, Counters, DataSource, FileAccess, FileId, Gauges, IoId, MemoryKeys, OperationAnswer,
    PageCache, PageIo,
};
use fullstroke_memory::{PAGE_BYTES, PageRun, QueueLimits, Ticket};
use fullstroke_units::Time;
use std::collections::BTreeMap;

/// A request of a client, in whole sectors within the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientRequest {
    /// Read a range.
    Read {
        /// First byte.
        offset: u64,
        /// Length in bytes.
        bytes: u32,
    },
    /// Write a range.
    Write {
        /// First byte.
        offset: u64,
        /// Data to write.
        data: Vec<u8>,
        /// True if the answer must wait until the data are durable (FUA).
        durable: bool,
    },
    /// Make all answered writes durable.
    Flush,
}

/// Work for the server below.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerWork {
    /// Read a range.
    Read {
        /// First byte.
        offset: u64,
        /// Length in bytes.
        bytes: u32,
    },
    /// Write a range.
    Write {
        /// First byte.
        offset: u64,
        /// Data to write.
        data: Vec<u8>,
    },
    /// Make the written data durable.
    Flush,
}

/// Work with a number. The end of the work is reported under this number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumberedWork {
    /// Number of the job.
    pub id: u64,
    /// Work to do.
    pub work: ServerWork,
}

/// Outcome of a client's request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientOutcome {
    /// Success without data.
    Done,
    /// Data of a read.
    Data(Vec<u8>),
    /// Data could not be read or written below. For a flush: a write answered before could not be
    /// carried out.
    Failed,
}

/// A request waiting for pages.
struct WaitingRequest {
    tag: u64,
    offset: u64,
    bytes: u64,
    kind: RequestKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum RequestKind {
    Read,
    Write,
    /// A write with FUA.
    DurableWrite,
    Flush,
}

/// Purpose of a job below.
enum PendingPurpose {
    Read(PageIo),
    /// One part of a write of pages.
    Piece(IoId),
    /// The client's request, which waits for the flush. `tells_lost` is true if the request itself
    /// is a flush. Only a flush reports lost writes.
    Flush {
        tag: u64,
        tells_lost: bool,
    },
}

/// Pages being written, perhaps in several parts.
struct Writing {
    run: PageRun,
    left: usize,
    status: RequestStatus,
}

/// The page cache of a simulation, with the data of its pages.
///
/// - **Requests in**: [`ask`](Cached::ask), with a tag for the answer.
/// - **Events in**: [`ended`](Cached::ended), [`wake`](Cached::wake), [`pull`](Cached::pull),
///   [`pull_any`](Cached::pull_any), [`push`](Cached::push).
/// - **Out**: [`jobs`](Cached::jobs), [`answers`](Cached::answers),
///   [`next_wake`](Cached::next_wake).
///
/// A write is answered when its data are in memory. A flush, and a write with FUA, are answered
/// when all writes answered before are durable below. If a write below fails, the next flush fails,
/// and so do writes with FUA until then. No other writer may use the device meanwhile.
pub struct Cached {
    memory: PageCache,
    device: FileId,
    size: u64,
    pages: CachePages,
    /// While requests wait, more pages than this number cause a sweep: pages that memory no longer
    /// holds are dropped.
    sweep_at: usize,
    limit: usize,
    waiting: BTreeMap<Ticket, WaitingRequest>,
    flights: BTreeMap<u64, PendingPurpose>,
    writing: BTreeMap<IoId, Writing>,
    next_job: u64,
    next_ticket: u64,
    out: CacheOut,
    jobs: Vec<NumberedWork>,
    answers: Vec<(u64, ClientOutcome)>,
    /// True if an answered write was lost since the last flush.
    lost: bool,
}

impl Cached {
    /// Creates a cache with the settings `keys` above a device of `size` bytes.
    ///
    /// # Errors
    /// As [`PageCache::new`].
    pub fn new(keys: &MemoryKeys, size: u64) -> Result<Cached, ConfigError> {
        let mut memory = PageCache::new(keys, QueueLimits::default())?;
        let limit = keys.pages() as usize;
        Ok(Cached {
            device: memory.open(Object::DEVICE),
            memory,
            size,
            pages: CachePages::default(),
            sweep_at: slack(limit),
            limit,
            waiting: BTreeMap::new(),
            flights: BTreeMap::new(),
            writing: BTreeMap::new(),
            next_job: 0,
            next_ticket: 0,
            out: CacheOut::default(),
            jobs: Vec::new(),
            answers: Vec::new(),
            lost: false,
        })
    }

    /// Takes a client's request. The answer carries its tag.
    pub fn ask(&mut self, now: Time, tag: u64, asked: ClientRequest) {
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        let (answer, waiting) = match asked {
            ClientRequest::Read { offset, bytes } => {
                let bytes = u64::from(bytes);
                let access = FileAccess::new(offset, bytes, self.size);
                let answer = self
                    .memory
                    .read(now, self.device, access, ticket, &mut self.out);
                (
                    answer,
                    WaitingRequest {
                        tag,
                        offset,
                        bytes,
                        kind: RequestKind::Read,
                    },
                )
            }
            ClientRequest::Write {
                offset,
                data,
                durable,
            } => {
                // Stored at once, because any data read below from now on are older.
                self.pages.put(offset, &data);
                let bytes = data.len() as u64;
                let access = FileAccess::new(offset, bytes, self.size);
                let answer =
                    self.memory
                        .write(now, self.device, access, durable, ticket, &mut self.out);
                let kind = if durable {
                    RequestKind::DurableWrite
                } else {
                    RequestKind::Write
                };
                (
                    answer,
                    WaitingRequest {
                        tag,
                        offset,
                        bytes,
                        kind,
                    },
                )
            }
            ClientRequest::Flush => {
                let answer = self
                    .memory
                    .fsync(now, Object::DEVICE, ticket, &mut self.out);
                (
                    answer,
                    WaitingRequest {
                        tag,
                        offset: 0,
                        bytes: 0,
                        kind: RequestKind::Flush,
                    },
                )
            }
        };
        match answer {
            OperationAnswer::Done => self.finish(&waiting, RequestStatus::Done),
            OperationAnswer::Waits => drop(self.waiting.insert(ticket, waiting)),
        }
        self.go_on(now);
    }

    /// Reports the end of a job. The result holds the data of a read, or an error.
    pub fn ended(&mut self, now: Time, id: u64, result: Result<Vec<u8>, ()>) {
        let status = if result.is_ok() {
            RequestStatus::Done
        } else {
            RequestStatus::Lost
        };
        match self.flights.remove(&id) {
            None => {}
            Some(PendingPurpose::Read(PageIo { id, run, .. })) => {
                if let Ok(data) = result {
                    // Stored before the page cache hears of the end, because the page cache wakes
                    // the readers of these pages.
                    self.pages.fill(run.first * PAGE_BYTES, &data);
                }
                self.memory.read_done(now, id, run, status, &mut self.out);
            }
            Some(PendingPurpose::Piece(io)) => self.piece_written(now, io, status),
            Some(PendingPurpose::Flush { tag, tells_lost }) => {
                self.flushed(tag, tells_lost, status)
            }
        }
        self.go_on(now);
    }

    /// Reports that the time of [`next_wake`](Cached::next_wake) has come.
    pub fn wake(&mut self, now: Time) {
        self.memory.wake(now, &mut self.out);
        self.go_on(now);
    }

    /// Returns the time at which to call [`wake`](Cached::wake).
    pub fn next_wake(&self) -> Time {
        self.memory.next_wake()
    }

    /// PULL of addresses: writes back the dirty pages of a range. Returns the number of pages.
    pub fn pull(&mut self, now: Time, offset: u64, bytes: u64) -> u64 {
        let pages = self
            .memory
            .pull(now, self.run(offset, bytes), &mut self.out);
        self.go_on(now);
        pages
    }

    /// PULL without an address: writes back `bytes`, the longest dirty pages first. Returns the
    /// number of pages.
    pub fn pull_any(&mut self, now: Time, bytes: u64) -> u64 {
        let pages = self
            .memory
            .pull_any(now, bytes.div_ceil(PAGE_BYTES), &mut self.out);
        self.go_on(now);
        pages
    }

    /// PUSH: fetches a range, as far as there is room. Returns the number of pages.
    pub fn push(&mut self, now: Time, offset: u64, bytes: u64) -> u64 {
        let run = self.run(offset, bytes);
        let pages = self.memory.push(
            now,
            run,
            ListPlace::Usual,
            DataSource::ToRead,
            &mut self.out,
        );
        self.go_on(now);
        pages
    }

    /// Takes the jobs for the server below.
    pub fn jobs(&mut self) -> std::vec::Drain<'_, NumberedWork> {
        self.jobs.drain(..)
    }

    /// Takes the outcomes of requests, by their tags.
    pub fn answers(&mut self) -> std::vec::Drain<'_, (u64, ClientOutcome)> {
        self.answers.drain(..)
    }

    /// Returns the counters of the page cache.
    pub fn counters(&self) -> Counters {
        self.memory.counters()
    }

    /// Returns the present state of the page cache.
    pub fn gauges(&self) -> Gauges {
        self.memory.gauges()
    }

    /// Returns the pages of a range, within the device.
    fn run(&self, offset: u64, bytes: u64) -> PageRun {
        let end = offset
            .saturating_add(bytes)
            .min(self.size)
            .div_ceil(PAGE_BYTES);
        let first = (offset / PAGE_BYTES).min(end);
        PageRun::new(Object::DEVICE, first, end - first)
    }

    /// Passes on the I/O of the page cache, and finishes the woken requests.
    fn go_on(&mut self, now: Time) {
        // Finished requests and written pages may cause further I/O and wake further requests, so
        // the lists are looked at until all are empty.
        while !(self.out.reads.is_empty()
            && self.out.writes.is_empty()
            && self.out.woken.is_empty())
        {
            let mut out = std::mem::take(&mut self.out);
            for woken in out.woken.drain(..) {
                if let Some(waiting) = self.waiting.remove(&woken.ticket) {
                    self.finish(&waiting, woken.status);
                }
            }
            for io in out.reads.drain(..) {
                let (offset, bytes) = self.bytes_of(io.run);
                self.begin(
                    ServerWork::Read {
                        offset,
                        bytes: bytes as u32,
                    },
                    PendingPurpose::Read(io),
                );
            }
            for io in out.writes.drain(..) {
                self.write_back(now, io);
            }
        }
        let most = if self.waiting.is_empty() {
            slack(self.limit)
        } else {
            self.sweep_at
        };
        if self.pages.len() > most {
            self.sweep();
        }
    }

    /// Returns the byte range of a run of pages, within the device.
    fn bytes_of(&self, run: PageRun) -> (u64, u64) {
        let offset = run.first * PAGE_BYTES;
        (offset, (run.pages * PAGE_BYTES).min(self.size - offset))
    }

    /// Writes the known sectors of a run. Unknown sectors were never written by a client.
    fn write_back(&mut self, now: Time, io: PageIo) {
        let (offset, bytes) = self.bytes_of(io.run);
        // A page may be dirty of which only some sectors were written by a client. Unknown sectors
        // hold no data to write.
        let stretches = self.pages.known(offset, bytes);
        if stretches.is_empty() {
            return self
                .memory
                .written(now, io.id, io.run, RequestStatus::Done, &mut self.out);
        }
        self.writing.insert(
            io.id,
            Writing {
                run: io.run,
                left: stretches.len(),
                status: RequestStatus::Done,
            },
        );
        for (offset, data) in stretches {
            self.begin(
                ServerWork::Write { offset, data },
                PendingPurpose::Piece(io.id),
            );
        }
    }

    fn piece_written(&mut self, now: Time, io: IoId, status: RequestStatus) {
        let Some(writing) = self.writing.get_mut(&io) else {
            return;
        };
        writing.left -= 1;
        // The flag stays until a flush reports it, even if the last part succeeds.
        if status != RequestStatus::Done {
            (writing.status, self.lost) = (status, true);
        }
        if writing.left == 0
            && let Some(Writing { run, status, .. }) = self.writing.remove(&io)
        {
            self.memory.written(now, io, run, status, &mut self.out);
        }
    }

    fn begin(&mut self, work: ServerWork, flight: PendingPurpose) {
        let id = self.next_job;
        self.next_job += 1;
        self.flights.insert(id, flight);
        self.jobs.push(NumberedWork { id, work });
    }

    /// Ends a client's request, which has all pages or cannot get them.
    fn finish(&mut self, waiting: &WaitingRequest, status: RequestStatus) {
        let outcome = match waiting.kind {
            _ if status != RequestStatus::Done => ClientOutcome::Failed,
            RequestKind::Write => ClientOutcome::Done,
            // The written data are on the server below, but perhaps in its volatile buffers.
            RequestKind::DurableWrite | RequestKind::Flush => {
                let tells_lost = waiting.kind == RequestKind::Flush;
                return self.begin(
                    ServerWork::Flush,
                    PendingPurpose::Flush {
                        tag: waiting.tag,
                        tells_lost,
                    },
                );
            }
            RequestKind::Read => {
                let mut data = vec![0; waiting.bytes as usize];
                if self.pages.copy(waiting.offset, &mut data) {
                    ClientOutcome::Data(data)
                } else {
                    ClientOutcome::Failed
                }
            }
        };
        // A failed flush has told of the lost writes. The next flush must not report them again.
        if waiting.kind == RequestKind::Flush {
            self.lost = false;
        }
        self.answers.push((waiting.tag, outcome));
    }

    fn flushed(&mut self, tag: u64, tells_lost: bool, status: RequestStatus) {
        // A write with FUA must not clear the flag, because its client does not learn of other lost
        // writes.
        let lost = if tells_lost {
            std::mem::take(&mut self.lost)
        } else {
            self.lost
        };
        let outcome = if status == RequestStatus::Done && !lost {
            ClientOutcome::Done
        } else {
            ClientOutcome::Failed
        };
        self.answers.push((tag, outcome));
    }

    /// Drops the data of pages no longer held by memory or needed by a request.
    fn sweep(&mut self) {
        let wanted: Vec<(u64, u64)> = self
            .waiting
            .values()
            .map(|one| (one.offset, one.bytes))
            .collect();
        let waits = |page: u64| {
            let (from, to) = (page * PAGE_BYTES, (page + 1) * PAGE_BYTES);
            wanted
                .iter()
                .any(|&(offset, bytes)| offset < to && from < offset + bytes)
        };
        let memory = &self.memory;
        self.pages
            // Pages of waiting requests stay even if memory has evicted them, because the answer
            // needs the data.
            .retain(|page| memory.holds(PageRun::new(Object::DEVICE, page, 1)) || waits(page));
        self.sweep_at = slack(self.limit.max(self.pages.len()));
    }
}

/// Returns the number of pages plus a quarter. With this slack, sweeping costs a fixed time per new
/// page.
fn slack(pages: usize) -> usize {
    pages + pages / 4
}

#[cfg(test)]
mod bench;
#[cfg(test)]
mod tests;
