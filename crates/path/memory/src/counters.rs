//! What a cache counts and shows.

use fullstroke_units::Duration;

/// Counted since the beginning; in pages unless said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// That reads have asked for.
    pub read: u64,
    /// Of these: found.
    pub hits: u64,
    /// Of these: not held, and read for that read.
    pub misses: u64,
    /// Of these: already being read, and waited for.
    pub late: u64,
    /// Read beside what was asked for.
    pub ahead: u64,
    /// Of these: used.
    pub ahead_used: u64,
    /// Of these: gone without being used.
    pub ahead_wasted: u64,
    /// That writes have written to the cache.
    pub written: u64,
    /// Of these: made dirty that were clean, or came so.
    pub dirtied: u64,
    /// Read as they were written in part.
    pub filled: u64,
    /// Written back in the background.
    pub back_background: u64,
    /// Because they had been dirty for long.
    pub back_periodic: u64,
    /// By those who dirtied pages.
    pub back_throttled: u64,
    /// By fsync, sync, O_SYNC and O_DIRECT.
    pub back_sync: u64,
    /// As memory was short.
    pub back_reclaim: u64,
    /// As storage asked for them.
    pub back_pull: u64,
    /// That storage has asked for, of any.
    pub pull_asked: u64,
    /// Of these: not there, for no more were dirty, or not on their way already.
    pub pull_refused: u64,
    /// Evicted that could go at once.
    pub evicted_clean: u64,
    /// Evicted that had to be written, or waited for, first.
    pub evicted_dirty: u64,
    /// Dropped because their object no longer wanted them; dirty ones too.
    pub dropped: u64,
    /// Dirty pages whose write-back failed: what they held is lost.
    pub lost: u64,
    /// That PUSH has brought.
    pub pushed: u64,
    /// Of these: used.
    pub pushed_used: u64,
    /// Of these: gone without being used.
    pub pushed_wasted: u64,
    /// Pauses of those who dirty pages (not pages).
    pub throttles: u64,
    /// How long these were together.
    pub throttled: Duration,
    /// Waits for memory (not pages).
    pub shortages: u64,
}

/// How a cache is at the moment; in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gauges {
    /// Held, I/O under way included.
    pub cached: u64,
    /// Dirty.
    pub dirty: u64,
    /// Being written back.
    pub writing: u64,
    /// Being read.
    pub reading: u64,
    /// Pages that operations wait for memory for.
    pub wanted: u64,
    /// Runs that these are kept as: what simulating them costs.
    pub stretches: u64,
    /// Reads under way, and writes.
    pub reads_in_flight: u32,
    /// Writes under way.
    pub writes_in_flight: u32,
    /// Operations that wait.
    pub waiting: u32,
}
