//! Bitmaps in memory, and writes of changed metadata.

use super::config::ZonedFormat;
use std::collections::{BTreeMap, BTreeSet};

/// Bitmap blocks in memory beyond those of sixteen zones (`max_nr_mblks`, `dmz_ctr_metadata`).
const CACHED: u32 = 512;
/// Zones whose bitmap blocks are in memory in any case (`min_nr_mblks`).
const CACHED_ZONES: u32 = 16;

/// Steps of a write of changed metadata (`dmz_flush_metadata`): the changed blocks and the
/// superblock go to the second copy of the metadata, and then to the first. The drive's cache is
/// flushed after each step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FlushStep {
    /// The changed blocks, to copy 0 or 1.
    Blocks(u32),
    /// The superblock of copy 0 or 1.
    Superblock(u32),
}

/// The steps in order.
pub(super) const STEPS: [FlushStep; 4] = [
    FlushStep::Blocks(1),
    FlushStep::Superblock(1),
    FlushStep::Blocks(0),
    FlushStep::Superblock(0),
];

/// A write of changed metadata under way.
#[derive(Debug)]
pub(super) struct MetadataFlush {
    /// Index in [`STEPS`]. The number of steps if only the drive's cache is flushed.
    pub(super) step: usize,
    /// True while the drive's cache is flushed after the step.
    pub(super) flushing: bool,
    /// I/Os in flight.
    pub(super) left: u32,
    /// Changed blocks.
    pub(super) blocks: Vec<u32>,
    /// Requests that end with this flush.
    pub(super) requests: Vec<u32>,
}

/// The metadata in memory.
#[derive(Debug)]
pub(super) struct Metadata {
    /// Clean bitmap blocks in memory, with their ages.
    cached: BTreeMap<u32, u64>,
    by_age: BTreeMap<u64, u32>,
    stamp: u64,
    most: usize,
    /// Bitmap blocks that are being read.
    reading: BTreeSet<u32>,
    pub(super) flush: Option<MetadataFlush>,
    /// Flushes of the host that wait for the next write of metadata.
    pub(super) requests: Vec<u32>,
    /// True if something was written since the last flush.
    pub(super) unflushed: bool,
    /// Blocks read and written.
    pub(super) moved: u64,
}

impl Metadata {
    pub(super) fn new(format: &ZonedFormat) -> Metadata {
        Metadata {
            cached: BTreeMap::new(),
            by_age: BTreeMap::new(),
            stamp: 0,
            most: (CACHED + CACHED_ZONES * format.bitmap_blocks) as usize,
            reading: BTreeSet::new(),
            flush: None,
            requests: Vec::new(),
            unflushed: false,
            moved: 0,
        }
    }

    /// Returns true if a clean block is in memory, and makes the block the newest.
    pub(super) fn has(&mut self, block: u32) -> bool {
        let here = self.cached.contains_key(&block);
        if here {
            self.keep(block);
        }
        here
    }

    /// Keeps a block in memory. The oldest block makes way.
    pub(super) fn keep(&mut self, block: u32) {
        self.stamp += 1;
        if let Some(old) = self.cached.insert(block, self.stamp) {
            self.by_age.remove(&old);
        }
        self.by_age.insert(self.stamp, block);
        if self.cached.len() > self.most
            && let Some((_, oldest)) = self.by_age.pop_first()
        {
            self.cached.remove(&oldest);
        }
    }

    /// Begins the read of a block. Returns false if the read is under way.
    pub(super) fn begin_read(&mut self, block: u32) -> bool {
        self.reading.insert(block)
    }

    /// Ends the read of a block.
    pub(super) fn end_read(&mut self, block: u32) {
        self.reading.remove(&block);
        self.moved += 1;
        self.keep(block);
    }
}
