//! Writes of the metadata.

use fullstroke_units::{Duration, SECTOR_BYTES, Time};

/// Bytes of a block's entry in the metadata (`struct wc_memory_entry`), and of the header.
pub(super) const ENTRY_BYTES: u64 = 16;
pub(super) const HEADER_BYTES: u64 = 64;
/// Unit in which changed metadata are written (`BITMAP_GRANULARITY`).
const MAP_UNIT: u64 = 65_536;

/// Changed entries, and when these are written.
pub(super) struct Commits {
    /// Sectors of the metadata.
    metadata: u64,
    blocks: u64,
    limit: u64,
    delay: Duration,
    due: Time,
    /// First and last changed entry.
    changed: Option<(u32, u32)>,
    /// Sectors of metadata written.
    written: u64,
}

impl Commits {
    /// Returns the state of unchanged metadata. They are written after `limit` blocks, and `delay`
    /// after a write.
    pub(super) fn new(metadata: u64, limit: u64, delay: Duration) -> Commits {
        Commits {
            metadata,
            blocks: 0,
            limit,
            delay,
            due: Time::NEVER,
            changed: None,
            written: 0,
        }
    }

    /// Notes a changed entry.
    pub(super) fn changed(&mut self, index: u32) {
        self.changed = Some(match self.changed {
            None => (index, index),
            Some((first, last)) => (first.min(index), last.max(index)),
        });
    }

    /// Notes a written block.
    pub(super) fn block_written(&mut self, index: u32) {
        self.changed(index);
        self.blocks += 1;
    }

    /// Sets the time of the next write of the metadata, after blocks were written.
    pub(super) fn schedule(&mut self, now: Time) {
        if self.due == Time::NEVER {
            self.due = now + self.delay;
        }
        if self.blocks >= self.limit {
            self.due = now;
        }
    }

    /// Time of the next write of the metadata.
    pub(super) fn due(&self) -> Time {
        self.due
    }

    /// True if an entry has changed.
    pub(super) fn has_changes(&self) -> bool {
        self.changed.is_some()
    }

    /// Begins to write the changed metadata: first sector, sectors.
    pub(super) fn write(&mut self) -> (u64, u64) {
        let (first, last) = self.changed.take().unwrap_or((0, 0));
        let unit = |entry: u32| (HEADER_BYTES + u64::from(entry) * ENTRY_BYTES) / MAP_UNIT;
        let step = MAP_UNIT / SECTOR_BYTES;
        let from = unit(first) * step;
        let to = ((unit(last) + 1) * step).min(self.metadata);
        assert!(
            from < to,
            "entries {first} to {last} are behind the {} sectors of metadata",
            self.metadata
        );
        self.blocks = 0;
        self.due = Time::NEVER;
        self.written += to - from;
        (from, to - from)
    }

    /// Sectors of metadata written.
    pub(super) fn written(&self) -> u64 {
        self.written
    }
}
