//! Parts of the response time of the slowest requests. A mean does not explain a percentile,
//! because the slowest requests may wait for something else than most requests.

use crate::distribution::TimeParts;
use serde::Serialize;

/// Buckets of each doubling of the response time. With 8, the limits of a bucket are 9 % apart.
const STEPS: u32 = 8;
const STEP_BITS: u32 = STEPS.trailing_zeros();

/// Shares of the slowest requests in a report: those beyond p90, p95, p99 and p99.9.
pub const SLOWEST_SHARES: [f64; 4] = [0.1, 0.05, 0.01, 0.001];

/// The slowest requests of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SlowestReport {
    /// Share of all reads and writes, such as 0.01 for the requests beyond the 99th percentile.
    pub share: f64,
    /// Number of these requests, rounded.
    pub requests: u64,
    /// Their mean response time, in ms.
    pub mean_ms: f64,
    /// Parts of this mean, in ms.
    pub time_ms: TimeParts,
}

/// Sums over the requests of one bucket, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    requests: u64,
    parts: [u64; 6],
}

/// Collects requests by response time, in memory that does not grow with the run.
#[derive(Clone, Debug)]
pub(crate) struct Slowest {
    buckets: Vec<Bucket>,
}

impl Slowest {
    pub(crate) fn new() -> Slowest {
        Slowest {
            buckets: vec![Bucket::default(); (64 * STEPS) as usize],
        }
    }

    #[inline]
    pub(crate) fn record(&mut self, response: u64, parts: &[u64; 6]) {
        let bucket = &mut self.buckets[place(response)];
        bucket.requests += 1;
        for (sum, part) in bucket.parts.iter_mut().zip(parts) {
            // The sum of all waits of a bucket fits: 2^64 ns are 584 years of waiting.
            *sum = sum.saturating_add(*part);
        }
    }

    /// Returns the reports of [`SLOWEST_SHARES`]; empty without requests.
    pub(crate) fn reports(&self) -> Vec<SlowestReport> {
        let all: u64 = self.buckets.iter().map(|bucket| bucket.requests).sum();
        if all == 0 {
            return Vec::new();
        }
        SLOWEST_SHARES.map(|share| self.report(share, all)).to_vec()
    }

    /// Returns the report of the slowest `share` of `all` requests, at least one request. The last
    /// bucket counts in proportion, because its requests are alike.
    fn report(&self, share: f64, all: u64) -> SlowestReport {
        let wanted = (share * all as f64).max(1.0);
        let (mut left, mut sums) = (wanted, [0.0; 6]);
        for bucket in self.buckets.iter().rev().filter(|one| one.requests > 0) {
            let taken = left.min(bucket.requests as f64) / bucket.requests as f64;
            for (sum, part) in sums.iter_mut().zip(bucket.parts) {
                *sum += taken * part as f64;
            }
            left -= bucket.requests as f64;
            if left <= 0.0 {
                break;
            }
        }
        let parts = sums.map(|sum| sum / wanted / 1e6);
        SlowestReport {
            share,
            requests: wanted.round() as u64,
            mean_ms: parts.iter().sum(),
            time_ms: TimeParts::new(parts),
        }
    }
}

/// Returns the bucket of a response time in nanoseconds.
#[inline]
fn place(response: u64) -> usize {
    if response < u64::from(STEPS) {
        return response as usize;
    }
    let doubling = response.ilog2();
    let step = (response >> (doubling - STEP_BITS)) & u64::from(STEPS - 1);
    // Values below `STEPS` have the first buckets, so the first doubling begins behind them.
    ((doubling - STEP_BITS + 1) * STEPS) as usize + step as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_rise_with_the_response_time_and_stay_in_the_list() {
        let mut before = 0;
        for shift in 0..64 {
            for response in [1u64 << shift, (1 << shift) + (1 << shift) / 2] {
                let at = place(response);
                assert!(at >= before && at < 512, "{response}: {at} behind {before}");
                before = at;
            }
        }
        assert!(place(u64::MAX) < 512);
    }

    #[test]
    fn the_slowest_requests_have_parts_of_their_own() {
        let mut slowest = Slowest::new();
        for _ in 0..990 {
            slowest.record(1_000_000, &[0, 0, 0, 0, 1_000_000, 0]);
        }
        for _ in 0..10 {
            slowest.record(50_000_000, &[49_000_000, 0, 0, 0, 1_000_000, 0]);
        }
        let reports = slowest.reports();
        let tail = reports.iter().find(|one| one.share == 0.01).unwrap();
        assert_eq!(tail.requests, 10);
        assert!((tail.time_ms.queue - 49.0).abs() < 1e-9, "{tail:?}");
        assert!((tail.mean_ms - 50.0).abs() < 1e-9, "{tail:?}");
        let wide = reports.iter().find(|one| one.share == 0.1).unwrap();
        assert!((wide.time_ms.queue - 4.9).abs() < 1e-9, "{wide:?}");
        assert!(Slowest::new().reports().is_empty());
    }
}
