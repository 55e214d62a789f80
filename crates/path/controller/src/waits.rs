//! Commands that wait for memory: writes for room, flushes for the end of destages.

use std::collections::VecDeque;

/// Waiting commands.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    /// Writes whose data wait for room in memory, in order.
    writers: VecDeque<u32>,
    /// Flushes, each with the last epoch to wait for.
    drains: VecDeque<(u32, u64)>,
}

impl Waits {
    /// Adds a write behind all others.
    pub(crate) fn add_writer(&mut self, slot: u32) {
        self.writers.push_back(slot);
    }

    /// The write that is taken into memory next.
    pub(crate) fn writer(&self) -> Option<u32> {
        self.writers.front().copied()
    }

    /// Removes the first write, which is wholly in memory.
    pub(crate) fn writer_ended(&mut self, slot: u32) {
        let first = self.writers.pop_front();
        assert_eq!(first, Some(slot), "writes enter memory in order");
    }

    /// Adds a command that waits for the end of the epoch.
    pub(crate) fn add_drain(&mut self, slot: u32, epoch: u64) {
        debug_assert!(
            self.drains.back().is_none_or(|&(_, last)| last <= epoch),
            "slot {slot} waits for epoch {epoch}, behind a command of a later epoch"
        );
        self.drains.push_back((slot, epoch));
    }

    /// Returns the first command whose epoch is over.
    pub(crate) fn end_drain(&mut self, is_over: impl Fn(u64) -> bool) -> Option<u32> {
        let &(slot, _) = self.drains.front().filter(|&&(_, epoch)| is_over(epoch))?;
        self.drains.pop_front();
        Some(slot)
    }

    /// True if no command waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.writers.is_empty() && self.drains.is_empty()
    }
}
