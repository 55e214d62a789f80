//! The batch that is under way: requests of one kind, for a time.

use super::{ByKind, Config, Kind};
use crate::Clock;
use fullstroke_units::{Duration, Time};

/// Synchronous and asynchronous batches alternate while both kinds wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Batch {
    pub(super) kind: Kind,
    expires: Time,
    /// It must not begin before what the device has of the other kind is done.
    pub(super) draining: bool,
    /// It is synchronous, and counts from its first completion on.
    unstarted: bool,
    /// Requests that an asynchronous batch may still send.
    left: u32,
    /// How many it may send: adapted so that they take their time.
    size: u32,
    /// Nothing else waited at its end, which so says nothing about the time
    /// that its requests take.
    uncontended: bool,
    /// How long each kind may go.
    lengths: ByKind<Duration>,
    /// Whether a batch that had to wait for the device has its time.
    has_time_after_draining: bool,
}

impl Batch {
    pub(super) fn new(config: &Config, clock: Clock) -> Batch {
        // Ten ticks each, to begin with, but two (`as_init_queue` of
        // `block/as-iosched.c`, Linux 2.6.24).
        let size = config.write_batch_expire.as_nanos() / (clock.tick() * 10).as_nanos();
        Batch {
            kind: Kind::Synchronous,
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
        !self.unstarted && (self.expires < now || self.kind == Kind::Asynchronous && self.left == 0)
    }

    /// Only asynchronous requests wait: nothing stops the batch, and so its length
    /// says nothing (`write_batch_idled`).
    pub(super) fn alone(&mut self) {
        self.uncontended |= self.kind == Kind::Asynchronous && self.left == 0;
    }

    /// Only synchronous requests wait: the time for others does not run.
    pub(super) fn extend(&mut self, now: Time) {
        self.expires = now + self.lengths.synchronous;
    }

    /// A batch of this kind begins, when the device has nothing left of the
    /// other.
    pub(super) fn begin(&mut self, kind: Kind) {
        self.draining |= self.kind != kind;
        self.kind = kind;
        if kind == Kind::Asynchronous {
            self.unstarted = false;
            self.left = self.size;
            self.uncontended = false;
        }
    }

    /// The device has nothing left of the other kind; `at_once` if it never had.
    pub(super) fn drained(&mut self, now: Time, at_once: bool) {
        assert!(
            self.draining,
            "a batch begins at {now:?} that waits for nothing of the other kind"
        );
        self.draining = false;
        if self.kind == Kind::Synchronous {
            self.unstarted = true;
        } else if at_once || self.has_time_after_draining {
            self.expires = now + self.lengths.asynchronous;
        }
    }

    /// A request of this kind has been sent.
    pub(super) fn sent(&mut self, kind: Kind) {
        if kind == Kind::Asynchronous {
            self.left = self.left.saturating_sub(1);
        }
    }

    /// A synchronous request has completed. Its batch counts from here on, not from
    /// its beginning (`as_completed_request`): what a drive had in its queue, or its
    /// write cache, of the batch before takes time first.
    pub(super) fn served(&mut self, now: Time) {
        if self.unstarted {
            self.resize(now);
            self.extend(now);
            self.unstarted = false;
        }
    }

    /// Adapts the size of asynchronous batches to the time that the last one
    /// took: from its beginning to the first completion behind it
    /// (`update_write_batch`). Writes are given out by number, for a drive takes
    /// them into its cache faster than it writes them.
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
