//! A page cache with bytes, as a state machine: requests of clients in, jobs for the
//! server below out.

use crate::cache::pages::Pages;
use fullstroke_contract::{ConfigError, Object, Status};
use fullstroke_memory::replacement::Place;
use fullstroke_memory::{
    Access, Answer, Arrival, Cache, Counters, FileId, Gauges, Io, IoId, MemoryKeys, Out,
};
use fullstroke_memory::{PAGE_BYTES, Queue, Run, Ticket};
use fullstroke_units::Time;
use std::collections::BTreeMap;

/// What a client wants, in whole sectors within the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// So many bytes.
    Read {
        /// The first.
        offset: u64,
        /// How many.
        bytes: u32,
    },
    /// These bytes are to be there.
    Write {
        /// The first.
        offset: u64,
        /// All of them.
        data: Vec<u8>,
        /// It is answered when they are durable (FUA).
        durable: bool,
    },
    /// Whatever was answered is to be durable.
    Flush,
}

/// What the server below is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    /// Read so many bytes.
    Read {
        /// The first.
        offset: u64,
        /// How many.
        bytes: u32,
    },
    /// Write these bytes.
    Write {
        /// The first.
        offset: u64,
        /// All of them.
        data: Vec<u8>,
    },
    /// Make durable what was written.
    Flush,
}

/// Work with the number by which its end is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The number.
    pub id: u64,
    /// What to do.
    pub work: Work,
}

/// How a request of a client has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// As it should.
    Done,
    /// The bytes of a read.
    Data(Vec<u8>),
    /// What it needs could not be read or written below; of a flush, something that
    /// was answered before could not be.
    Failed,
}

/// A request that waits in memory for pages.
struct Waiting {
    tag: u64,
    offset: u64,
    bytes: u64,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Read,
    Write,
    /// With FUA.
    DurableWrite,
    Flush,
}

/// What a job below is for.
enum Flight {
    Read(Io),
    /// A piece of a write of pages.
    Piece(IoId),
    /// The client's request that waits for it, and whether that is a flush itself, behind which
    /// what was lost has been told.
    Flush {
        tag: u64,
        tells_lost: bool,
    },
}

/// Pages on their way down, maybe in pieces.
struct Writing {
    run: Run,
    left: usize,
    status: Status,
}

/// The page cache of a simulation, with the bytes of its pages.
///
/// - **Requests in**: [`ask`](Cached::ask), with a tag by which they are answered.
/// - **Events in**: [`ended`](Cached::ended), [`wake`](Cached::wake),
///   [`pull`](Cached::pull), [`pull_any`](Cached::pull_any), [`push`](Cached::push).
/// - **Out**: [`jobs`](Cached::jobs), [`answers`](Cached::answers),
///   [`next_wake`](Cached::next_wake).
///
/// A write is answered when its bytes are in memory; a flush, and a write with FUA,
/// when what was answered before is durable below. What could not be written makes the
/// next flush fail, and writes with FUA until then. Nobody else may write to the device meanwhile.
pub struct Cached {
    memory: Cache,
    device: FileId,
    size: u64,
    pages: Pages,
    /// Pages above which those are dropped that memory does not hold, while some are
    /// waited for.
    sweep_at: usize,
    limit: usize,
    waiting: BTreeMap<Ticket, Waiting>,
    flights: BTreeMap<u64, Flight>,
    writing: BTreeMap<IoId, Writing>,
    next_job: u64,
    next_ticket: u64,
    out: Out,
    jobs: Vec<Job>,
    answers: Vec<(u64, Outcome)>,
    /// Something that was answered was lost since the last flush.
    lost: bool,
}

impl Cached {
    /// The memory of `keys` above a device of `size` bytes.
    ///
    /// # Errors
    /// As [`Cache::new`].
    pub fn new(keys: &MemoryKeys, size: u64) -> Result<Cached, ConfigError> {
        let mut memory = Cache::new(keys, Queue::default())?;
        let limit = keys.pages() as usize;
        Ok(Cached {
            device: memory.open(Object::DEVICE),
            memory,
            size,
            pages: Pages::default(),
            sweep_at: slack(limit),
            limit,
            waiting: BTreeMap::new(),
            flights: BTreeMap::new(),
            writing: BTreeMap::new(),
            next_job: 0,
            next_ticket: 0,
            out: Out::default(),
            jobs: Vec::new(),
            answers: Vec::new(),
            lost: false,
        })
    }

    /// A client's request, to be answered by its tag.
    pub fn ask(&mut self, now: Time, tag: u64, asked: Asked) {
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        let (answer, waiting) = match asked {
            Asked::Read { offset, bytes } => {
                let bytes = u64::from(bytes);
                let access = Access::new(offset, bytes, self.size);
                let answer = self
                    .memory
                    .read(now, self.device, access, ticket, &mut self.out);
                (
                    answer,
                    Waiting {
                        tag,
                        offset,
                        bytes,
                        kind: Kind::Read,
                    },
                )
            }
            Asked::Write {
                offset,
                data,
                durable,
            } => {
                // At once: whatever is read below from now on is older.
                self.pages.put(offset, &data);
                let bytes = data.len() as u64;
                let access = Access::new(offset, bytes, self.size);
                let answer =
                    self.memory
                        .write(now, self.device, access, durable, ticket, &mut self.out);
                let kind = if durable {
                    Kind::DurableWrite
                } else {
                    Kind::Write
                };
                (
                    answer,
                    Waiting {
                        tag,
                        offset,
                        bytes,
                        kind,
                    },
                )
            }
            Asked::Flush => {
                let answer = self
                    .memory
                    .fsync(now, Object::DEVICE, ticket, &mut self.out);
                (
                    answer,
                    Waiting {
                        tag,
                        offset: 0,
                        bytes: 0,
                        kind: Kind::Flush,
                    },
                )
            }
        };
        match answer {
            Answer::Done => self.finish(&waiting, Status::Done),
            Answer::Waits => drop(self.waiting.insert(ticket, waiting)),
        }
        self.go_on(now);
    }

    /// A job has ended: with the bytes of a read, or without what it was to do.
    pub fn ended(&mut self, now: Time, id: u64, result: Result<Vec<u8>, ()>) {
        let status = if result.is_ok() {
            Status::Done
        } else {
            Status::Lost
        };
        match self.flights.remove(&id) {
            None => {}
            Some(Flight::Read(Io { id, run, .. })) => {
                if let Ok(data) = result {
                    self.pages.fill(run.first * PAGE_BYTES, &data);
                }
                self.memory.read_done(now, id, run, status, &mut self.out);
            }
            Some(Flight::Piece(io)) => self.piece_written(now, io, status),
            Some(Flight::Flush { tag, tells_lost }) => self.flushed(tag, tells_lost, status),
        }
        self.go_on(now);
    }

    /// The time that was asked for has come.
    pub fn wake(&mut self, now: Time) {
        self.memory.wake(now, &mut self.out);
        self.go_on(now);
    }

    /// When [`wake`](Cached::wake) is to be called.
    pub fn next_wake(&self) -> Time {
        self.memory.next_wake()
    }

    /// PULL of addresses: dirty pages of these bytes are written back.
    pub fn pull(&mut self, now: Time, offset: u64, bytes: u64) -> u64 {
        let pages = self
            .memory
            .pull(now, self.run(offset, bytes), &mut self.out);
        self.go_on(now);
        pages
    }

    /// PULL of any: so many bytes, those that have been dirty longest.
    pub fn pull_any(&mut self, now: Time, bytes: u64) -> u64 {
        let pages = self
            .memory
            .pull_any(now, bytes.div_ceil(PAGE_BYTES), &mut self.out);
        self.go_on(now);
        pages
    }

    /// PUSH: these bytes are fetched, as far as there is room.
    pub fn push(&mut self, now: Time, offset: u64, bytes: u64) -> u64 {
        let run = self.run(offset, bytes);
        let pages = self
            .memory
            .push(now, run, Place::Usual, Arrival::ToRead, &mut self.out);
        self.go_on(now);
        pages
    }

    /// Takes what the server below is to do.
    pub fn jobs(&mut self) -> std::vec::Drain<'_, Job> {
        self.jobs.drain(..)
    }

    /// Takes how requests have ended, by their tags.
    pub fn answers(&mut self) -> std::vec::Drain<'_, (u64, Outcome)> {
        self.answers.drain(..)
    }

    /// What the page cache has counted.
    pub fn counters(&self) -> Counters {
        self.memory.counters()
    }

    /// How the page cache is at the moment.
    pub fn gauges(&self) -> Gauges {
        self.memory.gauges()
    }

    /// The pages of some bytes, within the device.
    fn run(&self, offset: u64, bytes: u64) -> Run {
        let end = offset
            .saturating_add(bytes)
            .min(self.size)
            .div_ceil(PAGE_BYTES);
        let first = (offset / PAGE_BYTES).min(end);
        Run::new(Object::DEVICE, first, end - first)
    }

    /// Passes on what memory wants, and answers whom it has woken.
    fn go_on(&mut self, now: Time) {
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
                    Work::Read {
                        offset,
                        bytes: bytes as u32,
                    },
                    Flight::Read(io),
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

    /// Where the bytes of a run lie, within the device.
    fn bytes_of(&self, run: Run) -> (u64, u64) {
        let offset = run.first * PAGE_BYTES;
        (offset, (run.pages * PAGE_BYTES).min(self.size - offset))
    }

    /// Writes what is known of a run. Sectors that are not known were never written.
    fn write_back(&mut self, now: Time, io: Io) {
        let (offset, bytes) = self.bytes_of(io.run);
        let stretches = self.pages.known(offset, bytes);
        if stretches.is_empty() {
            return self
                .memory
                .written(now, io.id, io.run, Status::Done, &mut self.out);
        }
        self.writing.insert(
            io.id,
            Writing {
                run: io.run,
                left: stretches.len(),
                status: Status::Done,
            },
        );
        for (offset, data) in stretches {
            self.begin(Work::Write { offset, data }, Flight::Piece(io.id));
        }
    }

    fn piece_written(&mut self, now: Time, io: IoId, status: Status) {
        let Some(writing) = self.writing.get_mut(&io) else {
            return;
        };
        writing.left -= 1;
        if status != Status::Done {
            (writing.status, self.lost) = (status, true);
        }
        if writing.left == 0
            && let Some(Writing { run, status, .. }) = self.writing.remove(&io)
        {
            self.memory.written(now, io, run, status, &mut self.out);
        }
    }

    fn begin(&mut self, work: Work, flight: Flight) {
        let id = self.next_job;
        self.next_job += 1;
        self.flights.insert(id, flight);
        self.jobs.push(Job { id, work });
    }

    /// A request of a client has all pages that it needs, or cannot have them.
    fn finish(&mut self, waiting: &Waiting, status: Status) {
        let outcome = match waiting.kind {
            _ if status != Status::Done => Outcome::Failed,
            Kind::Write => Outcome::Done,
            Kind::DurableWrite | Kind::Flush => {
                let tells_lost = waiting.kind == Kind::Flush;
                return self.begin(
                    Work::Flush,
                    Flight::Flush {
                        tag: waiting.tag,
                        tells_lost,
                    },
                );
            }
            Kind::Read => {
                let mut data = vec![0; waiting.bytes as usize];
                if self.pages.copy(waiting.offset, &mut data) {
                    Outcome::Data(data)
                } else {
                    Outcome::Failed
                }
            }
        };
        if waiting.kind == Kind::Flush {
            self.lost = false;
        }
        self.answers.push((waiting.tag, outcome));
    }

    fn flushed(&mut self, tag: u64, tells_lost: bool, status: Status) {
        // Whoever forces one write does not learn from it what became of the others.
        let lost = if tells_lost {
            std::mem::take(&mut self.lost)
        } else {
            self.lost
        };
        let outcome = if status == Status::Done && !lost {
            Outcome::Done
        } else {
            Outcome::Failed
        };
        self.answers.push((tag, outcome));
    }

    /// Drops the bytes of pages that memory does not hold and nobody waits for.
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
            .retain(|page| memory.holds(Run::new(Object::DEVICE, page, 1)) || waits(page));
        self.sweep_at = slack(self.limit.max(self.pages.len()));
    }
}

/// A quarter more, so that sweeping costs each page that comes a fixed time.
fn slack(pages: usize) -> usize {
    pages + pages / 4
}

#[cfg(test)]
mod bench;
#[cfg(test)]
mod tests;
