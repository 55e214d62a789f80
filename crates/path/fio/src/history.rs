//! Written blocks that a job with `verify` reads back.
//!
//! fio keeps a list of its writes (`log_io_piece` in fio's `iolog.c`): in the order of the writes if
//! a random map makes each block unique, else sorted by address, where a second write of a place
//! replaces the first. So the memory of a job with `verify` grows with its writes, as in fio.

use crate::job::{FioJob, OffsetDistribution, VerifyOfJob};
use crate::offsets::OffsetBlock;
use std::collections::{BTreeMap, VecDeque};

/// Writes that are not read back yet.
#[derive(Clone, Debug)]
enum UnverifiedBlocks {
    InOrder(VecDeque<OffsetBlock>),
    /// Length in bytes by start.
    ByPlace(BTreeMap<u64, u64>),
}

/// Written blocks of a worker.
#[derive(Clone, Debug)]
pub(crate) struct WriteHistory {
    verify: VerifyOfJob,
    written: UnverifiedBlocks,
    /// Number of reads that the current part of `verify_backlog` still has.
    batch: u64,
    /// True if the last completed I/O was a read.
    read_last: bool,
}

impl WriteHistory {
    pub(crate) fn new(job: &FioJob) -> WriteHistory {
        let unique = job.random
            && job.random_map
            && job.alignment.is_none()
            && job.distribution == OffsetDistribution::Uniform;
        // A job that goes on to the end of its run time ends without verification (`thread_main` in
        // fio's `backend.c`), so the list would never be read.
        let at_end = job.verify.at_end && !job.time_based;
        WriteHistory {
            verify: VerifyOfJob {
                on: job.verify.on && (at_end || job.verify.backlog > 0),
                at_end,
                ..job.verify
            },
            written: if unique {
                UnverifiedBlocks::InOrder(VecDeque::new())
            } else {
                UnverifiedBlocks::ByPlace(BTreeMap::new())
            },
            batch: 0,
            read_last: false,
        }
    }

    /// Adds a write.
    pub(crate) fn add(&mut self, block: OffsetBlock) {
        if !self.verify.on {
            return;
        }
        // A block that is written twice stands once, with its newest length.
        match &mut self.written {
            UnverifiedBlocks::InOrder(blocks) => blocks.push_back(block),
            UnverifiedBlocks::ByPlace(blocks) => drop(blocks.insert(block.start, block.bytes)),
        }
    }

    /// Notes that an I/O has completed.
    pub(crate) fn note_completed(&mut self, read: bool) {
        self.read_last = read;
    }

    /// Returns true if the writes of an iteration are read back at its end, and if there are any.
    pub(crate) fn is_due_at_end(&self) -> bool {
        self.verify.on && self.verify.at_end && self.len() > 0
    }

    /// Forgets all writes.
    pub(crate) fn clear(&mut self) {
        self.batch = 0;
        match &mut self.written {
            UnverifiedBlocks::InOrder(blocks) => blocks.clear(),
            UnverifiedBlocks::ByPlace(blocks) => blocks.clear(),
        }
    }

    /// Returns the next block to read back, and forgets it.
    pub(crate) fn take(&mut self) -> Option<OffsetBlock> {
        match &mut self.written {
            UnverifiedBlocks::InOrder(blocks) => blocks.pop_front(),
            UnverifiedBlocks::ByPlace(blocks) => blocks
                .pop_first()
                .map(|(start, bytes)| OffsetBlock { start, bytes }),
        }
    }

    /// Returns the next block of a part of `verify_backlog` (`check_get_verify` in fio's
    /// `io_u.c`).
    pub(crate) fn take_of_backlog(&mut self) -> Option<OffsetBlock> {
        let (length, backlog) = (self.len() as u64, self.verify.backlog);
        if !self.verify.on || backlog == 0 || length == 0 {
            return None;
        }
        // A part that was read back may leave a multiple of the backlog again. Without a write in
        // between, the whole list would be read at once.
        if self.batch == 0 && length.is_multiple_of(backlog) && !self.read_last {
            self.batch = if self.verify.batch > 0 {
                self.verify.batch
            } else {
                backlog
            };
        }
        self.batch = self.batch.checked_sub(1)?;
        self.take()
    }

    fn len(&self) -> usize {
        match &self.written {
            UnverifiedBlocks::InOrder(blocks) => blocks.len(),
            UnverifiedBlocks::ByPlace(blocks) => blocks.len(),
        }
    }
}
