//! When blocks are written back, and which blocks are on their way.

use std::collections::BTreeSet;

/// Watermarks of free blocks, and copies in flight.
pub(super) struct WriteBack {
    /// Free blocks at which writing back begins, and at which writing back ends.
    begins_at: usize,
    ends_at: usize,
    is_active: bool,
    /// Largest number of blocks on their way.
    jobs: usize,
    leaving: usize,
    /// Blocks of the array that copies in flight write.
    copying: BTreeSet<u64>,
}

impl WriteBack {
    /// Returns the state without copies. Blocks are written back from `begins_at` free blocks on
    /// until there are `ends_at`, and up to `jobs` at once; 0 = no limit.
    pub(super) fn new(begins_at: usize, ends_at: usize, jobs: u32) -> WriteBack {
        assert!(
            begins_at <= ends_at,
            "writing back begins with {begins_at} free blocks, and ends with {ends_at}"
        );
        WriteBack {
            begins_at,
            ends_at,
            is_active: false,
            jobs: match jobs {
                0 => usize::MAX,
                jobs => jobs as usize,
            },
            leaving: 0,
            copying: BTreeSet::new(),
        }
    }

    /// Returns how many blocks may be copied now; 0 if nothing is to be written back.
    pub(super) fn most(&mut self, free: usize, nothing_to_copy: bool) -> usize {
        // Blocks on their way to the array count as free (`freelist_size + writeback_size` of
        // dm-writecache.c).
        let free = free + self.leaving;
        if free <= self.begins_at {
            self.is_active = true;
        }
        if free > self.ends_at || nothing_to_copy {
            self.is_active = false;
        }
        match self.is_active {
            true => self.jobs.saturating_sub(self.leaving),
            false => 0,
        }
    }

    /// True if a copy of the array's block is in flight.
    pub(super) fn is_copying(&self, block: u64) -> bool {
        self.copying.contains(&block)
    }

    /// Begins to copy a block.
    pub(super) fn begin(&mut self, block: u64) {
        let is_first = self.copying.insert(block);
        assert!(is_first, "block {block} is copied twice at a time");
        self.leaving += 1;
    }

    /// Ends the copy of a block.
    pub(super) fn end(&mut self, block: u64) {
        let was_copied = self.copying.remove(&block);
        assert!(was_copied, "the copy of block {block} ends, and none began");
        self.leaving -= 1;
    }
}
