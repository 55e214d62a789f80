//! The requests of a run in batches by arrival number.

use crate::sample::{CompletedSample, OperationClass};
use crate::tallies::Tallies;
use fullstroke_units::Time;

/// Largest number of batches. If a request lies beyond the last batch, neighbours are merged.
const BATCHES_MAX: usize = 64;

/// Least number of batches after merging.
pub(crate) const BATCHES_MIN: usize = 10;

/// Least number of requests of a batch, and least number of requests expected beyond a percentile
/// in a batch.
pub(crate) const REQUESTS_MIN: f64 = 10.0;

/// Least number of requests beyond a percentile in a run with an interval: 10 in each of 10
/// batches.
pub(crate) const REQUESTS_FOR_INTERVAL: f64 = REQUESTS_MIN * BATCHES_MIN as f64;

/// The first batches hold `2^FIRST_SHIFT` requests each.
const FIRST_SHIFT: u32 = 4;

/// Significant digits of a batch's percentiles. Both runs of a pair have the same rounding error,
/// and the error is small compared with the differences between batches.
const DIGITS: u32 = 2;

/// Requests in at most 64 batches of equal size, by arrival number. Memory does not grow with the
/// number of requests: if there are too many batches, neighbouring pairs are merged, which doubles
/// the batch size.
#[derive(Clone, Debug)]
pub struct Batches {
    shift: u32,
    batches: Vec<BatchSums>,
    /// Time when counting began.
    began: Time,
}

/// Sums of one batch, in nanoseconds.
#[derive(Clone, Debug)]
pub(crate) struct BatchSums {
    /// Number of requests of the batch, with any status.
    pub(crate) seen: u64,
    /// Sums over successful reads, and over successful writes.
    pub(crate) classes: [ClassSums; 2],
    /// Queue, parity, overhead, seek, rotation and transfer, in this order.
    pub(crate) parts: [u128; 6],
    /// Response times.
    pub(crate) response: Tallies<u32>,
    /// Time of the last completion.
    pub(crate) last_finish: Time,
}

/// Sums over the reads or the writes of a batch.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ClassSums {
    pub(crate) requests: u64,
    pub(crate) response: u128,
    pub(crate) sectors: u64,
}

impl Default for Batches {
    fn default() -> Batches {
        Batches {
            shift: FIRST_SHIFT,
            batches: vec![BatchSums::default(); BATCHES_MAX],
            // Later than any request, so that the first one sets it.
            began: Time::NEVER,
        }
    }
}

impl Default for BatchSums {
    fn default() -> BatchSums {
        BatchSums {
            seen: 0,
            classes: Default::default(),
            parts: [0; 6],
            response: Tallies::new(DIGITS),
            last_finish: Time::ZERO,
        }
    }
}

impl Batches {
    /// Returns the batch of arrival number `origin`. `entered` is the time from which the request
    /// counts.
    #[inline]
    pub(crate) fn of(&mut self, origin: u64, entered: Time) -> &mut BatchSums {
        self.began = self.began.min(entered);
        while origin >> self.shift >= BATCHES_MAX as u64 {
            self.merge_pairs();
            // `merge_neighbours` may have shortened the list.
            self.batches.resize_with(BATCHES_MAX, BatchSums::default);
        }
        &mut self.batches[(origin >> self.shift) as usize]
    }

    /// Returns the number of requests of a full batch.
    pub fn size(&self) -> u64 {
        1 << self.shift
    }

    /// Returns the number of batches that are at least half full.
    pub fn count(&self) -> usize {
        self.indices().count()
    }

    /// Merges batches 2i and 2i + 1 into batch i, which halves the number of batches.
    pub(crate) fn merge_neighbours(&mut self) {
        self.merge_pairs();
        self.batches.truncate(self.batches.len().div_ceil(2));
    }

    /// Merges batches 2i and 2i + 1 into batch i. The batches behind them are empty then, and keep
    /// their memory.
    fn merge_pairs(&mut self) {
        for index in 0..self.batches.len().div_ceil(2) {
            self.batches.swap(index, 2 * index);
            let (before, behind) = self.batches.split_at_mut(2 * index + 1);
            if let Some(second) = behind.first_mut() {
                before[index].add(second);
                second.clear();
            }
        }
        // A shift of 64 bits would be an overflow. 2^63 requests are out of reach.
        assert!(self.shift < 63, "a batch of 2^64 requests");
        self.shift += 1;
    }

    /// Merges neighbours until a batch holds `size` requests.
    pub(crate) fn grow_to(&mut self, size: u64) {
        while self.size() < size {
            self.merge_neighbours();
        }
    }

    /// Returns the indices of batches that are at least half full.
    pub(crate) fn indices(&self) -> impl Iterator<Item = usize> {
        let half = self.size() / 2;
        (0..self.batches.len()).filter(move |&index| self.batches[index].seen >= half.max(1))
    }

    pub(crate) fn get(&self, index: usize) -> &BatchSums {
        &self.batches[index]
    }

    /// Returns the sum over all batches.
    pub(crate) fn total(&self) -> BatchSums {
        let mut total = BatchSums::default();
        self.batches.iter().for_each(|batch| total.add(batch));
        total
    }

    /// Returns the seconds by which each batch moved the last completion forward. The sum is the
    /// counted time.
    pub(crate) fn spans_s(&self) -> Vec<f64> {
        // Without requests this is `Time::NEVER`, and all spans are 0.
        let mut reached = self.began;
        let span = |batch: &BatchSums| {
            let before = reached;
            reached = reached.max(batch.last_finish);
            reached.since(before).as_secs_f64()
        };
        self.batches.iter().map(span).collect()
    }
}

impl BatchSums {
    #[inline]
    pub(crate) fn record(&mut self, class: OperationClass, sample: &CompletedSample) {
        let sums = &mut self.classes[class as usize];
        sums.requests += 1;
        sums.response += u128::from(sample.response);
        sums.sectors += sample.sectors;
        for (sum, part) in self.parts.iter_mut().zip(sample.parts) {
            *sum += u128::from(part);
        }
        self.response.record(sample.response);
        self.last_finish = self.last_finish.max(sample.finished);
    }

    fn add(&mut self, other: &BatchSums) {
        self.seen += other.seen;
        for (sums, more) in self.classes.iter_mut().zip(&other.classes) {
            sums.requests += more.requests;
            sums.response += more.response;
            sums.sectors += more.sectors;
        }
        for (sum, more) in self.parts.iter_mut().zip(&other.parts) {
            *sum += more;
        }
        self.response.add(&other.response);
        self.last_finish = self.last_finish.max(other.last_finish);
    }

    /// Removes all requests.
    fn clear(&mut self) {
        self.response.clear();
        self.seen = 0;
        (self.classes, self.parts) = Default::default();
        self.last_finish = Time::ZERO;
    }

    /// Returns the sums over reads and writes together.
    pub(crate) fn both(&self) -> ClassSums {
        let [reads, writes] = self.classes;
        ClassSums {
            requests: reads.requests + writes.requests,
            response: reads.response + writes.response,
            sectors: reads.sectors + writes.sectors,
        }
    }

    /// Returns a percentile of the response time, in nanoseconds.
    pub(crate) fn response_quantile(&self, quantile: f64) -> f64 {
        self.response.middle_at_quantile(quantile)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sample(response: u64) -> CompletedSample {
        CompletedSample {
            response,
            parts: [response, 0, 0, 0, 0, 0],
            sectors: 8,
            finished: Time::from_nanos(response),
        }
    }

    proptest! {
        #[test]
        fn merging_loses_no_request_whatever_the_order(
            mut origins in prop::collection::vec(0u64..20_000, 1..400),
            swaps in prop::collection::vec((0usize..400, 0usize..400), 0..20),
        ) {
            for (one, other) in swaps {
                let length = origins.len();
                origins.swap(one % length, other % length);
            }
            let mut batches = Batches::default();
            for &origin in &origins {
                let batch = batches.of(origin, Time::ZERO);
                batch.seen += 1;
                batch.record(OperationClass::Read, &sample(origin + 1));
            }
            let total = batches.total();
            prop_assert_eq!(total.seen, origins.len() as u64);
            prop_assert_eq!(total.response.len(), origins.len() as u64);
            let sum: u128 = origins.iter().map(|&origin| u128::from(origin + 1)).sum();
            prop_assert_eq!(total.both().response, sum);
            prop_assert_eq!(total.parts[0], sum);
            // Each request must be in the batch of its arrival number.
            for index in 0..batches.batches.len() {
                let inside = origins.iter().filter(|&&origin| (origin >> batches.shift) as usize == index);
                prop_assert_eq!(batches.get(index).seen, inside.count() as u64);
            }
        }
    }

    #[test]
    fn a_full_run_keeps_between_32_and_64_batches() {
        for requests in [1_024u64, 1_025, 10_000, 100_000] {
            let mut batches = Batches::default();
            for origin in 0..requests {
                batches.of(origin, Time::ZERO).seen += 1;
            }
            assert!(
                (32..=64).contains(&batches.count()),
                "{requests}: {}",
                batches.count()
            );
        }
    }

    #[test]
    fn spans_add_up_to_the_whole_run() {
        let mut batches = Batches::default();
        for origin in 0..1_000u64 {
            let at = Time::from_nanos(1_000_000 * (origin + 5));
            let batch = batches.of(origin, at);
            batch.record(
                OperationClass::Read,
                &CompletedSample {
                    finished: at + fullstroke_units::Duration::from_millis(3),
                    ..sample(1)
                },
            );
        }
        let whole: f64 = batches.spans_s().iter().sum();
        assert!((whole - (0.999 + 0.003)).abs() < 1e-9, "{whole}");
    }
}
