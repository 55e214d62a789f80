//! Habits of a process: the think time and the distance between requests. The means are computed as
//! in the anticipatory and the CFQ scheduler of Linux 2.6.24.

use crate::TickClock;
use fullstroke_contract::Extent;
use fullstroke_units::{Duration, Time};

/// The value 1 in the fixed-point arithmetic of the weights (`as_update_thinktime` of
/// `block/as-iosched.c`, `cfq_update_io_thinktime` of `block/cfq-iosched.c`).
const ONE: u64 = 256;

/// A running mean in which each new sample has a weight of one eighth. The mean is correct from the
/// first sample on, because the weights are summed too.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RecentMean {
    /// Sum of the weights of all samples; approaches [`ONE`].
    weight: u64,
    total: u64,
}

impl RecentMean {
    pub(super) fn add(&mut self, sample: u64) {
        // Limits a sample to 52 days (2^52 ns), so that the total cannot overflow.
        let sample = sample.min(1 << 52);
        self.weight = (7 * self.weight + ONE) / 8;
        self.total = (7 * self.total + ONE * sample) / 8;
    }

    /// Returns the mean; 0 before the first sample.
    pub(super) fn mean(&self) -> u64 {
        (self.total + self.weight / 2)
            .checked_div(self.weight)
            .unwrap_or(0)
    }

    /// True if there is no sample yet.
    pub(super) fn is_empty(&self) -> bool {
        self.weight == 0
    }

    /// True after three samples (`sample_valid` of `block/cfq-iosched.c`). The sums of the weights
    /// are 32, 60 and 84.
    pub(super) fn is_reliable(&self) -> bool {
        self.weight > 80
    }
}

/// The habits of one process.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Habits {
    think: RecentMean,
    seek: RecentMean,
    /// End of the last request.
    position: u64,
    /// Completion time of the last synchronous request.
    pub(super) completed: Time,
}

impl Habits {
    /// Adds a think time: the process was idle since its last completion and now sends a request.
    /// Kernels keep the mean in ticks.
    pub(super) fn note_think_time(&mut self, time: Duration, clock: TickClock) {
        self.think.add(clock.count(time));
    }

    /// Returns the mean think time, to the nearest tick.
    pub(super) fn think(&self, clock: TickClock) -> Duration {
        clock.span(self.think.mean())
    }

    /// Returns the mean behind [`think`](Habits::think), for its reliability.
    pub(super) fn thinking(&self) -> &RecentMean {
        &self.think
    }

    /// Returns the distance in sectors from the end of the last request to the start of `next`.
    pub(super) fn distance(&self, next: Extent) -> u64 {
        self.position.abs_diff(next.start.0)
    }

    /// Adds a seek distance, limited to four times the mean plus a slack. So a single far request,
    /// such as the page-in of a program, changes the mean little. The slack is larger for the
    /// second and third sample, because there is hardly a mean yet (`as_update_seekdist`,
    /// `cfq_update_io_seektime`).
    pub(super) fn note_seek(&mut self, sectors: u64) {
        let slack = if self.seek.weight <= 60 {
            2 << 20
        } else {
            2 << 16
        };
        self.seek.add(sectors.min(4 * self.seek.mean() + slack));
    }

    /// Returns the mean distance between requests, in sectors.
    pub(super) fn seek(&self) -> u64 {
        self.seek.mean()
    }

    /// True if the requests are so far apart that waiting for the next one saves nothing:
    /// `CIC_SEEKY` of `block/cfq-iosched.c`, 4 MB.
    pub(super) fn is_seeky(&self) -> bool {
        self.seek() > 8192
    }

    /// Returns the end of the last request.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// Returns the mean behind [`seek`](Habits::seek), for its reliability.
    pub(super) fn seeking(&self) -> &RecentMean {
        &self.seek
    }

    /// Records the last request of the process.
    pub(super) fn moved(&mut self, to: Extent) {
        self.position = to.end().0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_starts_at_the_first_sample_and_follows_the_latest() {
        let mut mean = RecentMean::default();
        assert!(mean.is_empty());
        assert_eq!(mean.mean(), 0);
        mean.add(1000);
        assert_eq!(mean.mean(), 1000);
        assert!(!mean.is_reliable());
        (0..2).for_each(|_| mean.add(1000));
        assert!(mean.is_reliable());
        (0..40).for_each(|_| mean.add(50));
        assert!((50..60).contains(&mean.mean()), "{}", mean.mean());
    }

    #[test]
    fn one_far_seek_counts_as_a_near_one() {
        let mut habits = Habits::default();
        (0..20).for_each(|_| habits.note_seek(0));
        habits.note_seek(1 << 40);
        // About an eighth of the slack of 131 072 sectors.
        assert!(
            (16_000..18_000).contains(&habits.seek()),
            "{}",
            habits.seek()
        );
    }
}
