//! What an elevator learns about a process: how long it thinks between its
//! requests, and how far apart they are. As Linux 2.6.24 keeps it, for its
//! anticipatory and its CFQ scheduler.

use crate::Clock;
use fullstroke_contract::Extent;
use fullstroke_units::{Duration, Time};

/// One, in the fixed point of the weights (`as_update_thinktime` of
/// `block/as-iosched.c`, `cfq_update_io_thinktime` of `block/cfq-iosched.c`).
const ONE: u64 = 256;

/// A mean of which each new sample makes up an eighth, from the first on
/// weighted as if there had been no others.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RecentMean {
    /// The weight of all samples: approaches [`ONE`].
    weight: u64,
    total: u64,
}

impl RecentMean {
    pub(super) fn add(&mut self, sample: u64) {
        // A sample of 52 days is as long as one of a century, and its total fits.
        let sample = sample.min(1 << 52);
        self.weight = (7 * self.weight + ONE) / 8;
        self.total = (7 * self.total + ONE * sample) / 8;
    }

    /// The mean; 0 before the first sample.
    pub(super) fn mean(&self) -> u64 {
        (self.total + self.weight / 2)
            .checked_div(self.weight)
            .unwrap_or(0)
    }

    /// Whether there was no sample yet.
    pub(super) fn is_empty(&self) -> bool {
        self.weight == 0
    }

    /// Whether there were enough samples to go by: three (`sample_valid` of
    /// `block/cfq-iosched.c`; their weights are 32, 60, 84).
    pub(super) fn is_reliable(&self) -> bool {
        self.weight > 80
    }
}

/// The habits of one process.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Habits {
    think: RecentMean,
    seek: RecentMean,
    /// Where its last request ended.
    position: u64,
    /// When the last of its synchronous requests completed.
    pub(super) completed: Time,
}

impl Habits {
    /// The process, idle since its last completion, sends a request after
    /// having thought for so long. Kernels keep the mean in ticks.
    pub(super) fn thought(&mut self, time: Duration, clock: Clock) {
        self.think.add(clock.count(time));
    }

    /// The mean time between a completion and the next request, to the nearest
    /// tick.
    pub(super) fn think(&self, clock: Clock) -> Duration {
        clock.span(self.think.mean())
    }

    /// How well [`think`](Habits::think) is known.
    pub(super) fn thinking(&self) -> &RecentMean {
        &self.think
    }

    /// Sectors between the end of its last request and the start of `next`.
    pub(super) fn distance(&self, next: Extent) -> u64 {
        self.position.abs_diff(next.start.0)
    }

    /// The process goes so many sectors to its next request. A single far one, as
    /// for a page of its program, counts as a multiple of the mean at most; more is
    /// believed of the second and third, while there is hardly a mean
    /// (`as_update_seekdist`, `cfq_update_io_seektime`).
    pub(super) fn sought(&mut self, sectors: u64) {
        let slack = if self.seek.weight <= 60 {
            2 << 20
        } else {
            2 << 16
        };
        self.seek.add(sectors.min(4 * self.seek.mean() + slack));
    }

    /// The mean distance between its requests, in sectors.
    pub(super) fn seek(&self) -> u64 {
        self.seek.mean()
    }

    /// Whether it goes so far that waiting for it saves nothing: `CIC_SEEKY` of
    /// `block/cfq-iosched.c`, 4 MB.
    pub(super) fn is_seeky(&self) -> bool {
        self.seek() > 8192
    }

    /// Where its last request ended.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// How well [`seek`](Habits::seek) is known.
    pub(super) fn seeking(&self) -> &RecentMean {
        &self.seek
    }

    /// Its last request is this one.
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
        (0..20).for_each(|_| habits.sought(0));
        habits.sought(1 << 40);
        // About an eighth of the slack, 131 072 sectors.
        assert!(
            (16_000..18_000).contains(&habits.seek()),
            "{}",
            habits.seek()
        );
    }
}
