//! The present batch: requests of one kind, for a limited time.

use super::config::Config;
use super::kinds::{ByKind, RequestKind};
use crate::TickClock;
use fullstroke_units::{Duration, Time};

/// Synchronous and asynchronous batches alternate while both kinds wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct BatchClock {
    pub(super) kind: RequestKind,
    expires: Time,
    /// True if the batch must not begin before the device has completed the requests of the other
    /// kind.
    pub(super) draining: bool,
    /// True for a synchronous batch whose time begins with its first completion.
    unstarted: bool,
    /// Number of requests left in an asynchronous batch.
    left: u32,
    /// Size of an asynchronous batch in requests, adapted to its intended time.
    size: u32,
    /// True if no other requests waited at the end of the batch. Then the length of the batch says
    /// nothing about the time of its requests.
    uncontended: bool,
    /// Time of a batch, by kind.
    lengths: ByKind<Duration>,
    /// True if a batch that had to wait for the device still has its full time.
    has_time_after_draining: bool,
}

impl BatchClock {
    pub(super) fn new(config: &Config, clock: TickClock) -> BatchClock {
        // At first one request for each ten ticks, but at least two (`as_init_queue` of
        // `block/as-iosched.c`, Linux 2.6.24).
        let size = config.write_batch_expire.as_nanos() / (clock.tick() * 10).as_nanos();
        BatchClock {
            kind: RequestKind::Synchronous,
            expires: Time::ZERO + config.read_batch_expire,
            draining: false,
            unstarted: false,
            left: 0,
            size: u32::try_from(size).unwrap_or(u32::MAX).max(2),
            uncontended: false,
            lengths: ByKind {
                asynchronous: config.write_batch_expire,
                synchronous: config.read_batch_expire,
            },
            has_time_after_draining: config.batch_switch_fix,
        }
    }

    pub(super) fn is_over(&self, now: Time) -> bool {
        !self.unstarted
            && (self.expires < now || self.kind == RequestKind::Asynchronous && self.left == 0)
    }

    /// Notes the absence of synchronous requests. Then the batch goes on without limit, and its
    /// length says nothing (`write_batch_idled`).
    pub(super) fn alone(&mut self) {
        self.uncontended |= self.kind == RequestKind::Asynchronous && self.left == 0;
    }

    /// Restarts the time of a synchronous batch, because only synchronous requests wait.
    pub(super) fn extend(&mut self, now: Time) {
        self.expires = now + self.lengths.synchronous;
    }

    /// Begins a batch of this kind as soon as the device has no request of the other kind.
    pub(super) fn begin(&mut self, kind: RequestKind) {
        self.draining |= self.kind != kind;
        self.kind = kind;
        if kind == RequestKind::Asynchronous {
            self.unstarted = false;
            self.left = self.size;
            self.uncontended = false;
        }
    }

    /// Notes that the device has no request of the other kind left. `at_once` is true if there was
    /// none from the beginning.
    pub(super) fn drained(&mut self, now: Time, at_once: bool) {
        assert!(
            self.draining,
            "a batch begins at {now:?} that waits for nothing of the other kind"
        );
        self.draining = false;
        if self.kind == RequestKind::Synchronous {
            self.unstarted = true;
        } else if at_once || self.has_time_after_draining {
            self.expires = now + self.lengths.asynchronous;
        }
    }

    /// Counts a dispatched request of this kind.
    pub(super) fn sent(&mut self, kind: RequestKind) {
        if kind == RequestKind::Asynchronous {
            self.left = self.left.saturating_sub(1);
        }
    }

    /// Notes the completion of a synchronous request. The time of a synchronous batch begins with
    /// its first completion (`as_completed_request`), because the drive first finishes the queue or
    /// the write cache of the batch before.
    pub(super) fn served(&mut self, now: Time) {
        // The first completion starts the time of a batch of reads, because writes in flight
        // delayed the batch.
        if self.unstarted {
            self.resize(now);
            self.extend(now);
            self.unstarted = false;
        }
    }

    /// Adapts the size of asynchronous batches to the time of the last one, from its beginning to
    /// the first completion after it (`update_write_batch`). A batch of writes has a size in
    /// requests, because the cache of a drive takes writes faster than the medium.
    fn resize(&mut self, now: Time) {
        let wanted = self.lengths.asynchronous;
        let taken = (now + wanted).saturating_since(self.expires);
        if taken > wanted && !self.uncontended {
            self.size = if taken > wanted * 3 {
                self.size / 2
            } else {
                self.size - 1
            };
        } else if taken < wanted && self.left == 0 {
            let doubles = wanted > taken * 3;
            self.size = self
                .size
                .saturating_add(if doubles { self.size } else { 1 });
        }
        self.size = self.size.max(1);
    }
}
