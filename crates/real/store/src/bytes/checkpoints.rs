//! Durable epochs, and checkpoints.

use std::time::Duration;

/// The progress of durability. Marks of an epoch are cleared when the epoch is durable and a time
/// without writes has passed.
pub(crate) struct Checkpoints {
    /// Latest durable epoch.
    synced: u64,
    /// Epoch and time of the latest checkpoint.
    latest: Option<(u64, Duration)>,
    quiet: Duration,
}

impl Checkpoints {
    /// Returns the progress of a new store. Marks stay for the time `quiet` after a checkpoint.
    pub(crate) fn new(quiet: Duration) -> Checkpoints {
        Checkpoints {
            synced: 0,
            latest: None,
            quiet,
        }
    }

    /// Returns the latest durable epoch.
    pub(crate) fn synced(&self) -> u64 {
        self.synced
    }

    /// Notes that all changes up to `epoch` are durable.
    pub(crate) fn note_synced(&mut self, epoch: u64) {
        self.synced = self.synced.max(epoch);
    }

    /// Returns true if all changes before `epoch` are durable.
    pub(crate) fn covers(&self, epoch: u64) -> bool {
        self.synced + 1 >= epoch
    }

    /// Begins a checkpoint: later changes belong to `epoch`. Returns the time when marks of older
    /// epochs may be cleared.
    pub(crate) fn begin(&mut self, epoch: u64, now: Duration) -> Duration {
        self.latest = Some((epoch, now));
        now + self.quiet
    }

    /// Gives the checkpoint up.
    pub(crate) fn give_up(&mut self) {
        self.latest = None;
    }

    /// Returns the epoch of the latest checkpoint, and the time when marks of older epochs may be
    /// cleared.
    pub(crate) fn due(&self) -> Option<(u64, Duration)> {
        self.latest
            .map(|(epoch, since)| (epoch, since + self.quiet))
    }
}
