//! Time of the processor: the pipeline of a record, and the thread of the caller.
//!
//! | work | thread | source |
//! |---|---|---|
//! | checksum and decryption of a record from the drives | one of `threads` | `zio_checksum_verify`, `zio_decrypt` in `module/zfs/zio.c`: the threads `z_rd_int` |
//! | compression, encryption, checksum and parity of a record for the drives | one of `threads` | `zio_write_compress`, `zio_encrypt`, `vdev_raidz_generate_parity`: the threads `z_wr_iss` |
//! | decompression at an access | the caller | `arc_buf_fill` in `module/zfs/arc.c`: the ARC holds compressed records |
//! | decryption of a record that was written, at its first access | the caller | `arc_fill_hdr_crypt`: the ARC holds the encrypted form (OpenZFS issue 10259) |
//! | copy to or from the program | the caller | `zfs_read`, `zfs_write` |
//!
//! A caller is a request: two requests at a time are two callers. Decompressed records stay in a
//! small cache, the dbuf cache. Blocks of the log, metadata and scans need no time.

use crate::arc::RecordCache;
use crate::config::PoolSettings;
use crate::io::Block;
use crate::keys::ProcessorKeys;
use fullstroke_contract::{Completion, Slots};
use fullstroke_units::{Duration, Time};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};

/// Share of the ARC for decompressed records, as a shift: `dbuf_cache_shift`.
const DECOMPRESSED_SHIFT: u32 = 5;

/// Work that ends at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Job {
    /// A record from the drives is checked.
    Read {
        /// The record.
        record: u64,
        /// The block that was read.
        block: Block,
        /// Beginning of the work.
        began: Time,
    },
    /// A record for the drives is ready to be written.
    Write {
        /// The record.
        record: u64,
    },
    /// The caller has copied the data of a request.
    Call {
        /// The request.
        asked: u32,
        /// Beginning of the work.
        began: Time,
    },
}

/// Times of the work, by the sizes of a pool.
#[derive(Clone, Copy, Debug, Default)]
struct Costs {
    /// A record from the drives, and a record for the drives.
    read: Duration,
    write: Duration,
    decompress: Duration,
    decrypt: Duration,
    /// Nanoseconds of the caller for each byte.
    copy: f64,
}

/// The processor.
#[derive(Debug)]
pub(crate) struct Processor {
    costs: Costs,
    /// The time at which each thread is free.
    threads: Vec<Time>,
    due: BinaryHeap<Reverse<(Time, u64, u32)>>,
    jobs: Slots<Job>,
    begun: u64,
    /// Records in memory of which only the encrypted form exists.
    sealed: HashSet<u64>,
    decompressed: RecordCache,
    /// Time of all threads, the callers included.
    pub(crate) worked: Duration,
}

/// Returns the time for `bytes` at a rate in 10^6 bytes a second; no time without a rate.
fn time(bytes: u64, rate: Option<f64>) -> Duration {
    rate.map_or(Duration::ZERO, |rate| {
        Duration::from_nanos((bytes as f64 * 1000.0 / rate) as u64)
    })
}

impl Costs {
    fn new(settings: &PoolSettings, keys: &ProcessorKeys) -> Costs {
        let (record, psize) = (settings.record, settings.psize);
        let has_parity = settings.vdevs.iter().any(|(vdev, _)| !vdev.is_mirror());
        let common = time(psize, keys.checksum_mb_per_s) + time(psize, keys.encryption_mb_per_s);
        let parity = keys.parity_mb_per_s.filter(|_| has_parity);
        let is_compressed = psize < record;
        Costs {
            read: common,
            write: common + time(record, keys.compress_mb_per_s) + time(psize, parity),
            decompress: time(record, keys.decompress_mb_per_s.filter(|_| is_compressed)),
            decrypt: time(psize, keys.encryption_mb_per_s),
            copy: keys.copy_mb_per_s.map_or(0.0, |rate| 1000.0 / rate),
        }
    }
}

impl Processor {
    /// Returns the processor of a pool.
    pub(crate) fn new(settings: &PoolSettings) -> Processor {
        let keys = settings.memory.processor.clone().unwrap_or_default();
        let records = settings.memory.arc.0 / settings.psize;
        Processor {
            costs: Costs::new(settings, &keys),
            threads: vec![Time::ZERO; keys.threads as usize],
            due: BinaryHeap::new(),
            jobs: Slots::default(),
            begun: 0,
            sealed: HashSet::new(),
            decompressed: RecordCache::new(records >> DECOMPRESSED_SHIFT),
            worked: Duration::ZERO,
        }
    }

    /// Returns the end of the first job under way.
    pub(crate) fn next(&self) -> Time {
        self.due.peek().map_or(Time::NEVER, |Reverse((at, ..))| *at)
    }

    /// Takes a job that has ended.
    pub(crate) fn ended(&mut self, now: Time) -> Option<Job> {
        if self.next() > now {
            return None;
        }
        let Reverse((_, _, job)) = self.due.pop()?;
        Some(self.jobs.take(job))
    }

    fn begin(&mut self, end: Time, job: Job) {
        let job = self.jobs.keep(job);
        self.begun += 1;
        self.due.push(Reverse((end, self.begun, job)));
    }

    /// Gives a job to the thread that is free first.
    fn give(&mut self, now: Time, work: Duration, job: Job) {
        let free = self
            .threads
            .iter_mut()
            .min()
            .expect("a processor has threads");
        let end = (*free).max(now) + work;
        *free = end;
        self.worked += work;
        self.begin(end, job);
    }

    /// Begins to check a record from the drives. Returns false if this needs no time.
    pub(crate) fn check(&mut self, now: Time, record: u64, block: &Block) -> bool {
        let work = self.costs.read;
        if work > Duration::ZERO {
            let job = Job::Read {
                record,
                block: *block,
                began: now,
            };
            self.give(now, work, job);
        }
        work > Duration::ZERO
    }

    /// Returns true if records for the drives need time.
    pub(crate) fn prepares(&self) -> bool {
        self.costs.write > Duration::ZERO
    }

    /// Begins to prepare a record for the drives. Returns false if all threads are at work.
    pub(crate) fn prepare(&mut self, now: Time, record: u64) -> bool {
        let is_free = self.threads.iter().any(|free| *free <= now);
        if is_free {
            self.give(now, self.costs.write, Job::Write { record });
        }
        is_free
    }

    /// A record of a transaction group is in memory.
    pub(crate) fn written(&mut self, record: u64) {
        if self.costs.decrypt > Duration::ZERO {
            self.sealed.insert(record);
        }
    }

    /// Returns the caller's time for an access to a record in memory.
    pub(crate) fn access(&mut self, record: u64) -> Duration {
        let mut work = Duration::ZERO;
        if self.costs.decompress > Duration::ZERO && !self.decompressed.access(record) {
            self.decompressed.insert(record);
            work += self.costs.decompress;
        }
        if self.costs.decrypt > Duration::ZERO && self.sealed.remove(&record) {
            work += self.costs.decrypt;
        }
        work
    }

    /// Lets the caller of a request work, for `work` and for the copy of `bytes`. Returns false if
    /// this needs no time.
    pub(crate) fn call(&mut self, now: Time, asked: u32, bytes: u64, work: Duration) -> bool {
        let copy = Duration::from_nanos((bytes as f64 * self.costs.copy) as u64);
        let work = work + copy;
        if work > Duration::ZERO {
            self.worked += work;
            self.begin(now + work, Job::Call { asked, began: now });
        }
        work > Duration::ZERO
    }
}

/// Adds the processor's time since `began` to the I/O that ended last.
pub(crate) fn add_work(last: &mut Completion, began: Time, now: Time) {
    if last.finished != began {
        *last = Completion {
            submitted: began,
            ..Completion::default()
        };
    }
    last.breakdown.overhead += now.since(began);
    last.finished = now;
}
