//! The share of hits in a window that moves each second (`track_buffer_hit_ratio`).

use fullstroke_units::Time;
use std::collections::VecDeque;

/// Reads of the last whole seconds.
pub(super) struct RecentReads {
    seconds: u64,
    /// Number of the current second.
    second: u64,
    running: SecondReads,
    /// Past seconds with their reads, the oldest first.
    over: VecDeque<(u64, SecondReads)>,
    sum: SecondReads,
}

#[derive(Clone, Copy, Debug, Default)]
struct SecondReads {
    all: u64,
    found: u64,
}

impl RecentReads {
    pub fn new(seconds: u64) -> RecentReads {
        RecentReads {
            seconds,
            second: 0,
            running: SecondReads::default(),
            over: VecDeque::new(),
            sum: SecondReads::default(),
        }
    }

    /// Advances the window to `now`.
    pub fn at(&mut self, now: Time) {
        let second = now.as_nanos() / 1_000_000_000;
        if second == self.second {
            return;
        }
        let ended = std::mem::take(&mut self.running);
        self.sum.all += ended.all;
        self.sum.found += ended.found;
        self.over.push_back((self.second, ended));
        self.second = second;
        while let Some(&(_, gone)) = self
            .over
            .front()
            .filter(|(then, _)| then + self.seconds < second)
        {
            self.over.pop_front();
            self.sum.all -= gone.all;
            self.sum.found -= gone.found;
        }
    }

    /// Counts a read.
    pub fn read(&mut self, found: bool) {
        self.running.all += 1;
        self.running.found += u64::from(found);
    }

    /// Returns the share of hits in the past seconds; 0 if there were no reads.
    pub fn hit_ratio(&self) -> f64 {
        if self.sum.all == 0 {
            0.0
        } else {
            self.sum.found as f64 / self.sum.all as f64
        }
    }
}
// Seconds without requests have no entry. Their absence counts as no reads.
