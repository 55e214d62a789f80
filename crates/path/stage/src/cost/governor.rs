//! Frequency of a processor: Linux's governors.

use fullstroke_units::{Duration, Time};
use schemars::JsonSchema;
use serde::Deserialize;

/// The governor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GovernorKind {
    /// Always the highest frequency.
    Performance,
    /// By the utilisation in the last sampling period.
    #[default]
    Ondemand,
    /// Always the lowest frequency.
    Powersave,
}

/// The processor's frequency, and its utilisation in this sampling period.
///
/// The end of a period follows `dbs_check_cpu` of `drivers/cpufreq/cpufreq_ondemand.c` in Linux
/// 2.6.18, without `powersave_bias`.
pub(super) struct Governor {
    policy: GovernorKind,
    /// Possible frequencies in MHz, ascending.
    frequencies_mhz: Vec<u32>,
    current: usize,
    sampling: Duration,
    up_threshold: u32,
    /// True if another core with the same frequency is always busy.
    neighbour_busy: bool,
    /// Start of the current period.
    began: Time,
    /// Busy time in the period, without the last interval.
    busy: Duration,
    /// The last busy interval, or the present one, without the part in an earlier period.
    last: (Time, Time),
}

impl Governor {
    /// Creates a governor for an idle processor.
    pub(super) fn new(
        policy: GovernorKind,
        frequencies_mhz: Vec<u32>,
        (sampling, up_threshold): (Duration, u32),
        neighbour_busy: bool,
    ) -> Governor {
        let current = if policy == GovernorKind::Performance {
            frequencies_mhz.len() - 1
        } else {
            0
        };
        let (began, busy, last) = (Time::ZERO, Duration::ZERO, (Time::ZERO, Time::ZERO));
        Governor {
            policy,
            frequencies_mhz,
            current,
            sampling,
            up_threshold,
            neighbour_busy,
            began,
            busy,
            last,
        }
    }

    /// The frequency at `at`.
    pub(super) fn mhz(&mut self, at: Time) -> u32 {
        if self.policy == GovernorKind::Ondemand {
            self.sample(at);
        }
        self.frequencies_mhz[self.current]
    }

    /// Records that the processor is busy from `from` until `to`. The frequency at `from` must be
    /// known, and intervals must come in order.
    pub(super) fn busy(&mut self, from: Time, to: Time) {
        self.busy += self.last.1.since(self.last.0);
        self.last = (from, to);
    }

    /// Ends all periods before `at`.
    fn sample(&mut self, at: Time) {
        while self.began + self.sampling <= at {
            let end = self.began + self.sampling;
            let (from, to) = self.last;
            let until = to.min(end).max(from);
            self.current = self.target(self.busy + until.since(from));
            (self.began, self.busy, self.last) = (end, Duration::ZERO, (until, to));
            // Empty periods are equal, so one computation stands for all.
            let empty = at.since(end).as_nanos() / self.sampling.as_nanos();
            if to <= end && empty > 0 {
                self.current = self.target(Duration::ZERO);
                self.began += self.sampling * empty;
            }
        }
    }

    /// Returns the target after a period with the busy time `busy`. Above the threshold, the target
    /// is the highest frequency. More than ten points below the threshold, the target is the lowest
    /// frequency at which the same load lies ten points below.
    fn target(&self, busy: Duration) -> usize {
        // The frequency follows the least idle core.
        let load = match self.neighbour_busy {
            true => 100,
            false => busy.as_nanos() * 100 / self.sampling.as_nanos(),
        };
        let highest = self.frequencies_mhz.len() - 1;
        let (threshold, safe) = (
            u64::from(self.up_threshold),
            // DEF_FREQUENCY_DOWN_DIFFERENTIAL of cpufreq_ondemand.c.
            u64::from(self.up_threshold) - 10,
        );
        if load > threshold {
            return highest;
        }
        // Between the two thresholds the frequency stays, so that the governor does not swing at
        // each sample.
        if self.current == 0 || load >= safe {
            return self.current;
        }
        let wanted = u64::from(self.frequencies_mhz[self.current]) * load / safe;
        self.frequencies_mhz
            .iter()
            .position(|&mhz| u64::from(mhz) >= wanted)
            .unwrap_or(highest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    fn governor(policy: GovernorKind, neighbour_busy: bool) -> Governor {
        Governor::new(
            policy,
            vec![1000, 1500, 2000],
            (Duration::from_millis(80), 80),
            neighbour_busy,
        )
    }

    /// Frequency in each period; the processor is busy for the given shares, in per cent.
    fn followed(policy: GovernorKind, neighbour_busy: bool, shares: &[u64]) -> Vec<u32> {
        let mut governor = governor(policy, neighbour_busy);
        let mut followed = Vec::new();
        for (period, share) in shares.iter().enumerate() {
            let began = at(80 * period as u64);
            followed.push(governor.mhz(began));
            governor.busy(began, began + Duration::from_micros(800 * share));
        }
        followed
    }

    #[test]
    fn ondemand_goes_to_the_top_above_its_threshold_and_down_as_far_as_the_load_fits() {
        // 60 % at 2000 MHz fit 1715, the next is 2000; 50 % fit 1429; 30 % of 1500 fit 643.
        let shares = [80, 81, 75, 60, 50, 30, 10, 100];
        assert_eq!(
            followed(GovernorKind::Ondemand, false, &shares),
            [1000, 1000, 2000, 2000, 2000, 1500, 1000, 1000]
        );
        assert_eq!(
            followed(GovernorKind::Performance, false, &[0, 100, 0]),
            [2000; 3]
        );
        assert_eq!(
            followed(GovernorKind::Powersave, false, &[0, 100, 0]),
            [1000; 3]
        );
    }

    #[test]
    fn a_neighbour_that_computes_keeps_the_frequency_up() {
        assert_eq!(
            followed(GovernorKind::Ondemand, true, &[0, 0, 50, 0]),
            [1000, 2000, 2000, 2000]
        );
    }

    #[test]
    fn a_long_pause_ends_at_the_lowest_frequency_and_a_long_burst_counts_in_each_period() {
        let mut governor = governor(GovernorKind::Ondemand, false);
        governor.busy(at(0), at(230));
        assert_eq!(governor.mhz(at(230)), 2000);
        // 70 of 80 ms of the third period are busy.
        assert_eq!(governor.mhz(at(240)), 2000);
        assert_eq!(governor.mhz(at(319)), 2000);
        assert_eq!(governor.mhz(at(320)), 1000);
        assert_eq!(governor.mhz(at(10_000)), 1000);
        governor.busy(at(10_000), at(10_040));
        assert_eq!(
            (governor.mhz(at(10_079)), governor.mhz(at(3_600_000))),
            (1000, 1000)
        );
        assert_eq!(governor.began, at(3_600_000));
    }
}
