//! A domain: the requests of one kind, with their tokens and latencies.

use super::super::fifos::RequestFifo;
use fullstroke_units::{Duration, Time};

/// A percentile needs this number of latencies, or this time: with fewer latencies the result is
/// chance (`calculate_percentile` of `block/kyber-iosched.c`).
const SAMPLES: u32 = 500;
const PATIENCE: Duration = Duration::from_secs(1);
/// Buckets of a quarter of the target each. Half of the buckets meet the target. The last one holds
/// all longer latencies (`KYBER_LATENCY_SHIFT`, `KYBER_LATENCY_BUCKETS`, `KYBER_GOOD_BUCKETS`).
const BUCKETS: usize = 8;
const GOOD_BUCKETS: usize = 4;

/// Histogram of latencies, in quarters of the target.
#[derive(Clone, Copy, Debug, Default)]
struct Histogram {
    buckets: [u32; BUCKETS],
}

impl Histogram {
    fn add(&mut self, latency: Duration, target_ns: u64) {
        let quarters = latency.as_nanos().saturating_sub(1) / (target_ns / 4).max(1);
        self.buckets[quarters.min(BUCKETS as u64 - 1) as usize] += 1;
    }

    fn samples(&self) -> u32 {
        self.buckets.iter().sum()
    }

    /// Returns the bucket of this percentile of the latencies.
    fn percentile(&self, percent: u32) -> usize {
        let mut rank = (self.samples() * percent).div_ceil(100);
        let good = self.buckets[..BUCKETS - 1].iter().take_while(|&&bucket| {
            let beyond = bucket < rank;
            rank = rank.saturating_sub(bucket);
            beyond
        });
        good.count()
    }
}

/// The requests of one kind.
#[derive(Debug)]
pub(super) struct Domain {
    pub(super) waiting: RequestFifo,
    /// New requests, by the processor of their submission (`struct kyber_ctx_queue`).
    pub(super) staged: Vec<RequestFifo>,
    /// Number of requests in flight, their present limit (the tokens), and the largest limit.
    pub(super) issued: u32,
    depth: u32,
    depth_max: u32,
    /// Number of requests in a batch.
    pub(super) batch: u32,
    target_ns: u64,
    /// Latencies from dispatch, and from arrival.
    device: Histogram,
    total: Histogram,
    /// Time at which percentiles are taken even from few latencies. As in the kernel, both
    /// histograms share this time.
    impatient: Option<Time>,
    /// Last percentile of the total latency; none after its use.
    remembered: Option<usize>,
}

impl Domain {
    /// Returns a domain with all of its `depth` tokens.
    pub(super) fn new(depth: u32, batch: u32, target_ns: u64, processors: u32) -> Domain {
        Domain {
            waiting: RequestFifo::default(),
            staged: (0..processors).map(|_| RequestFifo::default()).collect(),
            issued: 0,
            depth,
            depth_max: depth,
            batch,
            target_ns,
            device: Histogram::default(),
            total: Histogram::default(),
            impatient: None,
            remembered: None,
        }
    }

    /// Records the latencies of a completed request.
    pub(super) fn completed(&mut self, from_dispatch: Duration, from_arrival: Duration) {
        assert!(
            self.issued > 0 && from_dispatch <= from_arrival,
            "a request comes back after {from_dispatch}, {from_arrival} after it came; {} are issued",
            self.issued
        );
        self.issued -= 1;
        self.device.add(from_dispatch, self.target_ns);
        self.total.add(from_arrival, self.target_ns);
    }

    /// True if a request waits and a token is free.
    pub(super) fn is_ready(&self) -> bool {
        let waits = !self.waiting.is_empty() || self.staged.iter().any(|list| !list.is_empty());
        waits && self.issued < self.depth
    }

    /// Returns the bucket of a percentile if enough latencies or enough time have passed. The
    /// histogram then starts again.
    fn percentile(
        &mut self,
        now: Time,
        percent: u32,
        which: fn(&mut Domain) -> &mut Histogram,
    ) -> Option<usize> {
        let samples = which(self).samples();
        if samples == 0 {
            return None;
        }
        let impatient = *self.impatient.get_or_insert(now + PATIENCE);
        if samples < SAMPLES && now < impatient {
            return None;
        }
        self.impatient = None;
        Some(std::mem::take(which(self)).percentile(percent))
    }

    /// True if the 90th percentile of the device's latencies misses the target. A few late requests
    /// are no congestion.
    pub(super) fn is_congested(&mut self, now: Time) -> bool {
        self.percentile(now, 90, |domain| &mut domain.device)
            .is_some_and(|bucket| bucket >= GOOD_BUCKETS)
    }

    /// Scales the tokens by the 99th percentile of the total latency over the target
    /// (`kyber_timer_fn`, `kyber_resize_domain`).
    pub(super) fn adjust(&mut self, now: Time, congested: bool) {
        let mut latest = self.percentile(now, 99, |domain| &mut domain.total);
        if congested {
            // A percentile from an earlier check is used once.
            latest = latest.or(self.remembered.take());
            self.remembered = None;
        } else if latest.is_some() {
            self.remembered = latest;
        }
        if let Some(bucket) = latest.filter(|&bucket| congested || bucket >= GOOD_BUCKETS) {
            let depth = self.depth * (bucket as u32 + 1) / GOOD_BUCKETS as u32;
            self.depth = depth.clamp(1, self.depth_max);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_fall_into_quarters_of_the_target() {
        let mut histogram = Histogram::default();
        for (latency_ns, bucket) in [
            (0, 0),
            (250, 0),
            (251, 1),
            (1000, 3),
            (1001, 4),
            (1750, 6),
            (1751, 7),
            (90_000, 7),
        ] {
            let before = histogram.buckets[bucket];
            histogram.add(Duration::from_nanos(latency_ns), 1000);
            assert_eq!(histogram.buckets[bucket], before + 1, "{latency_ns} ns");
        }
    }

    #[test]
    fn a_percentile_is_the_bucket_that_reaches_it() {
        let histogram = Histogram {
            buckets: [90, 0, 5, 4, 0, 0, 0, 1],
        };
        let found = [1, 90, 91, 95, 96, 99, 100].map(|percent| histogram.percentile(percent));
        assert_eq!(found, [0, 0, 2, 2, 3, 3, 7]);
    }

    fn domain_with(latency: Duration, samples: u32) -> Domain {
        let mut domain = Domain::new(128, 8, 10_000_000, 1);
        (0..samples).for_each(|_| domain.total.add(latency, domain.target_ns));
        domain
    }

    #[test]
    fn a_domain_that_meets_its_target_gives_tokens_away_only_when_the_device_is_congested() {
        let (early, half) = (Time::from_nanos(1), Duration::from_millis(5));
        let mut domain = domain_with(half, SAMPLES);
        domain.adjust(early, false);
        assert_eq!(domain.depth, 128);
        // The percentile from the check before counts once.
        domain.adjust(early, true);
        assert_eq!(domain.depth, 64);
        domain.adjust(early, true);
        assert_eq!(domain.depth, 64);
    }

    #[test]
    fn a_domain_that_misses_its_target_gets_tokens_back_in_any_case() {
        for congested in [false, true] {
            let mut domain = domain_with(Duration::from_millis(20), SAMPLES);
            domain.depth = 5;
            domain.adjust(Time::from_nanos(1), congested);
            assert_eq!(domain.depth, 10);
        }
    }

    #[test]
    fn few_latencies_are_looked_at_after_a_second_only() {
        let mut domain = domain_with(Duration::from_millis(20), SAMPLES - 1);
        domain.depth = 5;
        domain.adjust(Time::from_nanos(1), false);
        domain.adjust(Time::from_nanos(999_999_999), false);
        assert_eq!(domain.depth, 5);
        domain.adjust(Time::from_nanos(1_000_000_001), false);
        assert_eq!(domain.depth, 10);
    }
}
