//! The counters and gauges of a cache.

use fullstroke_units::Duration;

/// Counts since the beginning, in pages unless noted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Pages requested by reads.
    pub read: u64,
    /// Requested pages found in the cache.
    pub hits: u64,
    /// Requested pages not held, and read for the request.
    pub misses: u64,
    /// Requested pages already in flight; the read waited.
    pub late: u64,
    /// Pages read ahead.
    pub ahead: u64,
    /// Used pages of read-ahead.
    pub ahead_used: u64,
    /// Evicted pages of read-ahead without a use.
    pub ahead_wasted: u64,
    /// Pages written to the cache.
    pub written: u64,
    /// Written pages, clean or new before the write.
    pub dirtied: u64,
    /// Pages read because a write covered a part of the page only.
    pub filled: u64,
    /// Pages written back in the background.
    pub back_background: u64,
    /// Pages written back periodically, because they had been dirty for long.
    pub back_periodic: u64,
    /// Pages written back by throttled writers.
    pub back_throttled: u64,
    /// Pages written back by fsync, sync, O_SYNC and O_DIRECT.
    pub back_sync: u64,
    /// Pages written back because memory was short.
    pub back_reclaim: u64,
    /// Pages written back for a PULL.
    pub back_pull: u64,
    /// Pages requested by a PULL of any data.
    pub pull_asked: u64,
    /// Pages of such a PULL not supplied: too few pages were dirty, or the dirty pages were being
    /// written already.
    pub pull_refused: u64,
    /// Pages evicted at once.
    pub evicted_clean: u64,
    /// Pages evicted after a write-back or a wait.
    pub evicted_dirty: u64,
    /// Pages dropped by discards, dirty pages included.
    pub dropped: u64,
    /// Dirty pages whose write-back failed. Their data are lost.
    pub lost: u64,
    /// Pages brought by PUSH.
    pub pushed: u64,
    /// Used pages of PUSH.
    pub pushed_used: u64,
    /// Evicted pages of PUSH without a use.
    pub pushed_wasted: u64,
    /// Number of pauses of writers (not pages).
    pub throttles: u64,
    /// Sum of the pauses of writers.
    pub throttled: Duration,
    /// Number of waits for memory (not pages).
    pub shortages: u64,
}

/// Present state of a cache, in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gauges {
    /// Pages held, I/O in flight included.
    pub cached: u64,
    /// Dirty pages.
    pub dirty: u64,
    /// Pages under write-back.
    pub writing: u64,
    /// Pages being read.
    pub reading: u64,
    /// Pages wanted by operations waiting for memory.
    pub wanted: u64,
    /// Number of stretches of the pages held: the cost of the simulation.
    pub stretches: u64,
    /// Number of reads in flight.
    pub reads_in_flight: u32,
    /// Number of writes in flight.
    pub writes_in_flight: u32,
    /// Number of waiting operations.
    pub waiting: u32,
}
