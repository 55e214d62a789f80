//! The intent log: writes that somebody waits for (`module/zfs/zil.c`, `zvol.c`, OpenZFS 2.1).
//!
//! A flush writes everything that was written since the last one: small writes as log records with
//! their data, and whole large records in their final place (`WR_INDIRECT`), if there is no log
//! drive. One commit is under way at a time; those that come meanwhile share the next one. A commit
//! ends with a flush of the drives that it wrote.

use fullstroke_contract::Completion;
use std::collections::{BTreeMap, VecDeque};

/// Sizes of log blocks: `zil_block_buckets`.
const BUCKETS: [u64; 5] = [4 << 10, 12 << 10, 36 << 10, 68 << 10, 128 << 10];

/// Bytes of a log record without data: `sizeof (lr_write_t)`; and of the chain in each block.
const HEADER: u64 = 192;

/// Largest record whose data goes into the log: `zvol_immediate_write_sz`, `zfs_immediate_write_sz`.
const IMMEDIATE_MAX: u64 = 32 << 10;

/// Number of blocks whose largest size the next block is allocated with: `ZIL_PREV_BLKS`.
const RECENT: usize = 16;

/// Step of the commit under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Commit {
    /// No commit.
    #[default]
    None,
    /// Log blocks and records are written.
    Writing,
    /// The drives flush.
    Flushing,
}

/// The part of a write that goes into the intent log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Logged {
    /// The data.
    Data,
    /// The address of the record, which is written to its place.
    Indirect,
    /// A change of names.
    Names,
    /// Nothing: the change of an inode follows from the other log records.
    Nothing,
}

/// Writes of a file that are not in the log. An fsync of another file leaves them out
/// (`zil_async_to_sync`).
#[derive(Debug, Default)]
struct FileLog {
    /// Bytes of log records, of the open group and of the group that is written.
    bytes: [u64; 2],
    indirect: Vec<u64>,
}

/// The intent log.
#[derive(Debug, Default)]
pub(crate) struct Zil {
    /// Bytes of log records that are not in the log, with their headers: those of the open
    /// transaction group, and those of the group that is written.
    bytes: [u64; 2],
    /// Records whose writes are not in the log, and go to their final place. Only records of the
    /// open group: the others are under way to their place.
    pub(crate) indirect: Vec<u64>,
    /// Writes of each file that are not in the log, above a file system.
    files: BTreeMap<u32, FileLog>,
    /// Requests that wait for the next commit.
    pub(crate) waiting: VecDeque<u32>,
    /// Requests that wait for the commit under way.
    pub(crate) batch: Vec<u32>,
    pub(crate) commit: Commit,
    /// Number of blocks in flight of the commit.
    pub(crate) outstanding: u32,
    /// Drives that the commit has written.
    pub(crate) touched: Vec<bool>,
    /// Number of log blocks written so far: the turn of the next.
    pub(crate) written: u64,
    /// Sizes of the last blocks.
    recent: VecDeque<u64>,
    /// End of the last block on each vdev or log drive, from the start of the place of the log.
    ends: Vec<u64>,
    /// Number of commits.
    pub(crate) commits: u64,
    /// The I/O of the commit that ended last.
    pub(crate) last: Completion,
    /// Sizes of the log blocks of a commit; kept to reuse the memory.
    pub(crate) blocks: Vec<u64>,
    /// Requests that have ended in the present event.
    pub(crate) finished: VecDeque<u32>,
}

impl Zil {
    /// Returns true if a write of `size` bytes goes to its final place at once.
    pub(crate) fn is_indirect(size: u64, record: u64, has_logs: bool) -> bool {
        !has_logs && size >= record && record > IMMEDIATE_MAX
    }

    /// Returns true if a write of `size` bytes to a file goes to its final place at once
    /// (`zfs_log_write`).
    pub(crate) fn is_indirect_of_file(size: u64, has_logs: bool) -> bool {
        !has_logs && size >= IMMEDIATE_MAX
    }

    /// Takes note of a write whose data goes into the log. The object is 0 for a volume, and for
    /// changes of names, which belong to each commit.
    pub(crate) fn note(&mut self, object: u32, size: u64) {
        // Log records are padded to 8 bytes (`zil_itx_create`).
        let size = HEADER + size.next_multiple_of(8);
        match object {
            0 => self.bytes[0] += size,
            _ => self.files.entry(object).or_default().bytes[0] += size,
        }
    }

    /// Takes note of a record that goes to its final place.
    pub(crate) fn note_indirect(&mut self, object: u32, record: u64) {
        self.note(object, 0);
        match object {
            0 => self.indirect.push(record),
            _ => self.files.entry(object).or_default().indirect.push(record),
        }
    }

    /// Adds the writes of a file to the next commit, or the writes of all files for object 0.
    pub(crate) fn take_object(&mut self, object: u32) {
        let taken: Vec<FileLog> = match object {
            0 => std::mem::take(&mut self.files).into_values().collect(),
            _ => self.files.remove(&object).into_iter().collect(),
        };
        for log in taken {
            self.bytes[0] += log.bytes[0];
            self.bytes[1] += log.bytes[1];
            self.indirect.extend(log.indirect);
        }
    }

    /// Forgets the writes of a removed file (`zil_remove_async`).
    pub(crate) fn forget_file(&mut self, object: u32) {
        self.files.remove(&object);
    }

    /// True if writes are not in the log.
    pub(crate) fn has_news(&self) -> bool {
        self.bytes != [0, 0]
    }

    /// The open transaction group begins to be written.
    pub(crate) fn close(&mut self) {
        self.bytes = [0, self.bytes[0]];
        self.indirect.clear();
        for log in self.files.values_mut() {
            log.bytes = [0, log.bytes[0]];
            log.indirect.clear();
        }
    }

    /// Forgets the writes of the group that has been written.
    pub(crate) fn forget(&mut self) {
        self.bytes[1] = 0;
        for log in self.files.values_mut() {
            log.bytes[1] = 0;
        }
        self.files.retain(|_, log| log.bytes != [0, 0]);
    }

    /// Returns the room of a block of `size` bytes. The chain of the log allocates a block before its
    /// size is known, and takes the largest of the last sizes (`zil_lwb_write_issue`). A block uses
    /// only a part of its room (`lwb_nused`).
    pub(crate) fn room(&mut self, size: u64) -> u64 {
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(size);
        self.recent.iter().copied().max().unwrap_or(size)
    }

    /// Takes a place for `room` bytes on a vdev or a log drive, behind the last one. The log uses its
    /// `space` in turn.
    pub(crate) fn take(&mut self, target: usize, room: u64, space: u64) -> u64 {
        if self.ends.len() <= target {
            self.ends.resize(target + 1, 0);
        }
        let end = &mut self.ends[target];
        let at = if *end + room > space { 0 } else { *end };
        *end = at + room;
        at
    }

    /// Takes the sizes of the log blocks of the next commit, in `blocks`.
    pub(crate) fn take_blocks(&mut self, blocks: &mut Vec<u64>) {
        blocks.clear();
        let mut left = std::mem::take(&mut self.bytes).into_iter().sum::<u64>();
        while left > 0 {
            let wanted = left + HEADER;
            let size = BUCKETS.into_iter().find(|&size| size >= wanted);
            // More than the largest block goes into several blocks.
            let size = size.unwrap_or(BUCKETS[BUCKETS.len() - 1]);
            blocks.push(size);
            left = left.saturating_sub(size - HEADER);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_blocks_have_the_sizes_of_zfs() {
        let mut zil = Zil::default();
        let mut blocks = Vec::new();
        for (writes, size, expected) in [
            (1, 512, vec![4096]),
            (1, 4096, vec![12 << 10]),
            (3, 8192, vec![36 << 10]),
            (2, 128 << 10, vec![128 << 10, 128 << 10, 4 << 10]),
        ] {
            (0..writes).for_each(|_| zil.note(0, size));
            zil.take_blocks(&mut blocks);
            assert_eq!(blocks, expected, "{writes} writes of {size}");
            assert!(!zil.has_news());
        }
    }

    #[test]
    fn blocks_follow_each_other_with_the_room_of_the_largest_of_sixteen() {
        let mut zil = Zil::default();
        let sizes = [12 << 10, 4096, 36 << 10].into_iter().chain([4096; 17]);
        let places: Vec<u64> = sizes
            .map(|size| {
                let room = zil.room(size);
                zil.take(3, room, 1 << 20)
            })
            .collect();
        let kib: Vec<u64> = places.iter().map(|place| place >> 10).collect();
        assert_eq!(kib[..5], [0, 12, 24, 60, 96]);
        assert_eq!(kib[17..], [24 + 15 * 36, 24 + 16 * 36, 24 + 16 * 36 + 4]);
        assert_eq!(zil.take(3, 1 << 20, 1 << 20), 0, "the log begins anew");
        assert_eq!(zil.take(0, 4096, 1 << 20), 0, "each drive has its own end");
    }

    #[test]
    fn a_written_group_needs_no_log() {
        let mut zil = Zil::default();
        zil.note(0, 4096);
        zil.close();
        assert!(zil.has_news(), "the group is not on the drives");
        zil.forget();
        assert!(!zil.has_news());
        zil.note(0, 4096);
        zil.close();
        zil.note(0, 512);
        zil.forget();
        assert!(zil.has_news(), "a write of the next group");
    }

    #[test]
    fn whole_large_records_go_to_their_place_unless_there_is_a_log_drive() {
        assert!(Zil::is_indirect(128 << 10, 128 << 10, false));
        assert!(!Zil::is_indirect(128 << 10, 128 << 10, true));
        assert!(!Zil::is_indirect(4 << 10, 128 << 10, false));
        assert!(!Zil::is_indirect(16 << 10, 16 << 10, false));
    }
}
