//! Statistics of one worker, updated with each request, in memory of fixed size.

use crate::job::IoDirection;
use crate::pace::RateLag;
use fullstroke_contract::RequestStatus;
use fullstroke_units::{Duration, Time};
use hdrhistogram::Histogram;

/// Significant digits of percentiles, for latencies up to `LONGEST_NS` (19 hours). fio's own bins
/// are 1.6 % wide.
const DIGITS: u8 = 3;
const LONGEST_NS: u64 = 1 << 46;
/// Length of the windows for rate samples, as in fio by default.
const WINDOW: Duration = Duration::from_millis(500);

/// Upper bounds of fio's latency bins, in ns, us and ms. A value belongs to the first bin whose
/// bound is greater.
pub(crate) const BINS_NS: [u64; 10] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000];
pub(crate) const BINS_MS: [u64; 11] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000, 2000];

/// Exact moments of whole numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IntegerMoments {
    pub(crate) count: u64,
    sum: u128,
    squares: u128,
    min: u64,
    max: u64,
}

impl Default for IntegerMoments {
    fn default() -> IntegerMoments {
        IntegerMoments {
            count: 0,
            sum: 0,
            squares: 0,
            min: u64::MAX,
            max: 0,
        }
    }
}

impl IntegerMoments {
    pub(crate) fn record(&mut self, value: u64) {
        let wide = u128::from(value);
        self.count += 1;
        self.sum += wide;
        // Squares of 2^46 ns (20 hours) fit 2^36 times.
        self.squares = self.squares.saturating_add(wide * wide);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    fn add(&mut self, other: &IntegerMoments) {
        self.count += other.count;
        self.sum += other.sum;
        self.squares = self.squares.saturating_add(other.squares);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Returns the smallest value; 0 without values, as fio prints it. The other functions do the
    /// same.
    pub(crate) fn min(&self) -> u64 {
        if self.count == 0 { 0 } else { self.min }
    }

    pub(crate) fn max(&self) -> u64 {
        self.max
    }

    pub(crate) fn mean(&self) -> f64 {
        if self.count == 0 {
            0.0
        } else {
            self.sum as f64 / self.count as f64
        }
    }

    /// Returns the standard deviation of a sample, with divisor `n - 1`.
    pub(crate) fn deviation(&self) -> f64 {
        if self.count < 2 {
            return 0.0;
        }
        // First about the rounded mean, in integers: a difference of sums of squares would be lost
        // to rounding.
        let count = u128::from(self.count);
        let (mean, rest) = (self.sum / count, self.sum % count);
        let about_mean = self
            .squares
            .saturating_sub(mean.saturating_mul(self.sum + rest));
        let correction = rest as f64 * (rest as f64 / self.count as f64);
        ((about_mean as f64 - correction).max(0.0) / (self.count - 1) as f64).sqrt()
    }
}

/// Rates of windows of half a second.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RateWindows {
    end: Time,
    bytes: u64,
    ios: u64,
    pub(crate) kib_per_s: IntegerMoments,
    pub(crate) iops: IntegerMoments,
}

impl RateWindows {
    fn begin(&mut self, began: Time) {
        *self = RateWindows {
            end: began + WINDOW,
            ..RateWindows::default()
        };
    }

    fn record(&mut self, now: Time, bytes: u64) {
        // A pause of many windows counts as one window without I/O. fio does the same, because it
        // takes samples when I/O completes.
        if now >= self.end {
            let per_s = 1_000 / WINDOW.as_millis_f64() as u64;
            self.kib_per_s.record(self.bytes * per_s / 1024);
            self.iops.record(self.ios * per_s);
            (self.bytes, self.ios, self.end) = (0, 0, now.max(self.end) + WINDOW);
        }
        self.bytes += bytes;
        self.ios += 1;
    }

    fn add(&mut self, other: &RateWindows) {
        self.kib_per_s.add(&other.kib_per_s);
        self.iops.add(&other.iops);
    }
}

/// Statistics of one direction.
#[derive(Clone, Debug, Default)]
pub(crate) struct DirectionTally {
    pub(crate) bytes: u64,
    pub(crate) latency_ns: IntegerMoments,
    pub(crate) windows: RateWindows,
    /// Made at the first I/O, because most jobs use only one direction.
    histogram: Option<Box<Histogram<u64>>>,
}

impl DirectionTally {
    pub(crate) fn ios(&self) -> u64 {
        self.latency_ns.count
    }

    /// Returns the smallest latency in ns that `percent` of the I/Os do not exceed.
    pub(crate) fn percentile_ns(&self, percent: f64) -> u64 {
        let found = self
            .histogram
            .as_ref()
            .map_or(0, |histogram| histogram.value_at_percentile(percent));
        // A bucket of the histogram reaches beyond the longest latency in it.
        found.min(self.latency_ns.max())
    }

    fn record(&mut self, now: Time, bytes: u64, latency: Duration) {
        self.bytes += bytes;
        self.latency_ns.record(latency.as_nanos());
        self.windows.record(now, bytes);
        let make = || {
            Histogram::new_with_bounds(1, LONGEST_NS, DIGITS)
                .ok()
                .map(Box::new)
        };
        if self.histogram.is_none() {
            self.histogram = make();
        }
        if let Some(histogram) = &mut self.histogram {
            histogram.saturating_record(latency.as_nanos());
        }
    }

    fn add(&mut self, other: &DirectionTally) {
        self.bytes += other.bytes;
        self.latency_ns.add(&other.latency_ns);
        self.windows.add(&other.windows);
        match (&mut self.histogram, &other.histogram) {
            (_, None) => {}
            (none @ None, some) => none.clone_from(some),
            // Both histograms have the same bounds, so the addition cannot fail.
            (Some(own), Some(other)) => drop(own.add(&**other)),
        }
    }
}

/// Statistics of one worker, or of several.
#[derive(Clone, Debug, Default)]
pub(crate) struct WorkerTally {
    /// Time when counting began: the end of the ramp.
    began: Option<Time>,
    /// Run time; for several workers, the longest.
    pub(crate) elapsed: Duration,
    pub(crate) lanes: [DirectionTally; 3],
    pub(crate) flush_ns: IntegerMoments,
    /// Number of I/Os by the depth at their issue: 1, 2 to 3, 4 to 7, and so on, up to 64 and more.
    pub(crate) depths: [u64; 7],
    pub(crate) bins_ns: [u64; 10],
    pub(crate) bins_us: [u64; 10],
    pub(crate) bins_ms: [u64; 12],
    /// Number of failed I/Os: lost data, or addresses beyond the volume.
    pub(crate) failed: u64,
    /// Delay against the rate at the end of the job.
    pub(crate) lag: Option<RateLag>,
}

impl WorkerTally {
    /// Begins counting: only I/Os issued from `began` on are counted.
    pub(crate) fn begin(&mut self, began: Time) {
        *self = WorkerTally {
            began: Some(began),
            ..WorkerTally::default()
        };
        self.lanes
            .iter_mut()
            .for_each(|lane| lane.windows.begin(began));
    }

    /// Records the end of the worker.
    pub(crate) fn end(&mut self, now: Time) {
        self.elapsed = self
            .began
            .map_or(Duration::ZERO, |began| now.saturating_since(began));
    }

    /// Records the issue of an I/O. `depth` is the number in flight, including this I/O.
    pub(crate) fn issued(&mut self, now: Time, depth: u32) {
        // I/O of the ramp does not count.
        if self.began.is_none_or(|began| now < began) {
            return;
        }
        self.depths[(depth.max(1).ilog2() as usize).min(6)] += 1;
    }

    /// Records the end of an I/O. I/Os issued during the ramp do not count.
    pub(crate) fn finished(
        &mut self,
        direction: IoDirection,
        bytes: u64,
        submitted: Time,
        now: Time,
        status: RequestStatus,
    ) {
        if self.began.is_none_or(|began| submitted < began) {
            return;
        }
        if status != RequestStatus::Done {
            self.failed += 1;
            return;
        }
        let latency = now.since(submitted);
        self.lanes[direction as usize].record(now, bytes, latency);
        self.bin(latency.as_nanos());
    }

    /// Records the end of a flush.
    pub(crate) fn flushed(&mut self, submitted: Time, now: Time) {
        if self.began.is_some_and(|began| submitted >= began) {
            self.flush_ns.record(now.since(submitted).as_nanos());
        }
    }

    fn bin(&mut self, nanoseconds: u64) {
        let place = |value: u64, bounds: &[u64]| bounds.iter().position(|bound| value < *bound);
        if let Some(bin) = place(nanoseconds, &BINS_NS) {
            self.bins_ns[bin] += 1;
        } else if let Some(bin) = place(nanoseconds / 1_000, &BINS_NS) {
            self.bins_us[bin] += 1;
        } else {
            self.bins_ms[place(nanoseconds / 1_000_000, &BINS_MS).unwrap_or(BINS_MS.len())] += 1;
        }
    }

    /// Adds the statistics of another worker of the group.
    pub(crate) fn add(&mut self, other: &WorkerTally) {
        self.elapsed = self.elapsed.max(other.elapsed);
        self.lanes
            .iter_mut()
            .zip(&other.lanes)
            .for_each(|(own, other)| own.add(other));
        self.flush_ns.add(&other.flush_ns);
        self.failed += other.failed;
        let sum = |own: &mut [u64], other: &[u64]| {
            own.iter_mut()
                .zip(other)
                .for_each(|(own, other)| *own += other)
        };
        sum(&mut self.depths, &other.depths);
        sum(&mut self.bins_ns, &other.bins_ns);
        sum(&mut self.bins_us, &other.bins_us);
        sum(&mut self.bins_ms, &other.bins_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_those_of_the_values() {
        let mut moments = IntegerMoments::default();
        [2, 4, 4, 4, 5, 5, 7, 9]
            .iter()
            .for_each(|value| moments.record(*value));
        assert_eq!((moments.min(), moments.max(), moments.mean()), (2, 9, 5.0));
        assert!((moments.deviation() - (32.0f64 / 7.0).sqrt()).abs() < 1e-12);
        assert_eq!(
            (
                IntegerMoments::default().min(),
                IntegerMoments::default().mean()
            ),
            (0, 0.0)
        );
    }

    #[test]
    fn latencies_fall_into_the_bin_below_whose_bound_they_lie() {
        let mut tally = WorkerTally::default();
        [
            1,
            2,
            999,
            1_000,
            9_999,
            10_000,
            999_999,
            1_000_000,
            1_999_999_999,
            2_000_000_000,
        ]
        .iter()
        .for_each(|value| tally.bin(*value));
        assert_eq!(
            (tally.bins_ns[0], tally.bins_ns[1], tally.bins_ns[9]),
            (1, 1, 1)
        );
        assert_eq!(
            (
                tally.bins_us[0],
                tally.bins_us[2],
                tally.bins_us[3],
                tally.bins_us[9]
            ),
            (1, 1, 1, 1)
        );
        assert_eq!(
            (tally.bins_ms[0], tally.bins_ms[10], tally.bins_ms[11]),
            (1, 1, 1)
        );
    }
}
