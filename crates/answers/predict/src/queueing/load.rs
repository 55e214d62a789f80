//! Measures of a load for the queueing model: rate, places, lengths, regularity. They are gathered
//! once and serve any volume and drive.

use super::moments::Moments;
use crate::fingerprint::PredictArrival;

/// Number of equal parts of the volume, for counts of the beginnings of requests.
pub const PLACES: usize = 64;

/// Number of requests kept unchanged, to compute their plans.
const KEPT: usize = 256;

/// Measures of the requests of a load.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// Number of reads and writes.
    pub requests: u64,
    /// Time from the beginning to the last arrival, in seconds.
    pub duration_s: f64,
    /// Share of the requests that begin in each of [`PLACES`] equal parts of the volume.
    pub places: Vec<f64>,
    /// Variance over mean of the number of arrivals in a window: 1 for a Poisson process.
    pub dispersion: f64,
    /// Share of requests beginning at the end of the request before.
    pub sequential: f64,
    /// Mean distance between consecutive requests, relative to independent requests in the same
    /// places. 1 means that consecutive requests are not nearer than by chance.
    pub locality: f64,
    /// Mean length in sectors.
    pub sectors: f64,
    /// A sample of the requests, taken at regular intervals.
    pub kept: Vec<PredictArrival>,
}

/// Gathers a [`Load`] from requests in order of arrival.
#[derive(Clone, Debug)]
pub struct LoadGatherer {
    capacity: u64,
    window_s: f64,
    requests: u64,
    sectors: u64,
    duration_s: f64,
    places: Vec<u64>,
    /// Number of the current window, and its number of arrivals.
    window: (u64, u64),
    /// Sums over closed windows with arrivals.
    counts: Squares,
    last_end: Option<u64>,
    sequential: u64,
    jumps: f64,
    kept: Vec<PredictArrival>,
    every: u64,
}

/// A sum and a sum of squares.
#[derive(Clone, Copy, Debug, Default)]
struct Squares {
    sum: f64,
    squares: f64,
}

impl LoadGatherer {
    /// Makes a gatherer for requests to a volume of `capacity` sectors. Arrivals are counted in
    /// windows of `window_s` seconds, which must be positive.
    pub fn new(capacity: u64, window_s: f64) -> LoadGatherer {
        LoadGatherer {
            capacity: capacity.max(1),
            window_s,
            requests: 0,
            sectors: 0,
            duration_s: 0.0,
            places: vec![0; PLACES],
            window: (0, 0),
            counts: Squares::default(),
            last_end: None,
            sequential: 0,
            jumps: 0.0,
            kept: Vec::with_capacity(2 * KEPT),
            every: 1,
        }
    }

    /// Adds a request.
    pub fn add(&mut self, arrival: PredictArrival) {
        // In 128 bits, because the product may exceed 64 bits.
        let place = u128::from(arrival.start) * PLACES as u128 / u128::from(self.capacity);
        // An address beyond the capacity counts in the last part.
        self.places[(place as usize).min(PLACES - 1)] += 1;
        let index = (arrival.at_s.max(0.0) / self.window_s) as u64;
        if index > self.window.0 {
            self.counts.add(self.window.1);
            self.window = (index, 0);
        }
        self.window.1 += 1;
        if let Some(end) = self.last_end {
            self.sequential += u64::from(end == arrival.start);
            self.jumps += end.abs_diff(arrival.start) as f64;
        }
        self.last_end = Some(arrival.start.saturating_add(arrival.sectors));
        self.keep(arrival);
        self.requests += 1;
        self.sectors += arrival.sectors;
        self.duration_s = self.duration_s.max(arrival.at_s);
    }

    /// Keeps every `every`-th request. The interval doubles as needed, so that a long load keeps
    /// from [`KEPT`] to twice as many requests.
    fn keep(&mut self, arrival: PredictArrival) {
        if !self.requests.is_multiple_of(self.every) {
            return;
        }
        if self.kept.len() == 2 * KEPT {
            let mut index = 0;
            self.kept.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            // The current request may not be on the wider grid. Without the second test the sample
            // would have one irregular interval for each doubling.
            self.every *= 2;
            if !self.requests.is_multiple_of(self.every) {
                return;
            }
        }
        self.kept.push(arrival);
    }

    /// Returns the load; `None` if fewer than two requests were added, or if all arrived at time 0.
    pub fn finish(mut self) -> Option<Load> {
        // A rate needs two requests and a time between them.
        if self.requests < 2 || self.duration_s <= 0.0 {
            return None;
        }
        self.counts.add(self.window.1);
        let requests = self.requests as f64;
        let places: Vec<f64> = self
            .places
            .iter()
            .map(|&count| count as f64 / requests)
            .collect();
        let independent = mean_distance(&places) * self.capacity as f64;
        Some(Load {
            requests: self.requests,
            duration_s: self.duration_s,
            dispersion: self.counts.dispersion((self.window.0 + 1) as f64),
            sequential: self.sequential as f64 / (requests - 1.0),
            locality: self.jumps / (requests - 1.0) / independent,
            sectors: self.sectors as f64 / requests,
            places,
            kept: self.kept,
        })
    }
}

impl Load {
    /// Returns the number of requests per second.
    pub fn rate_per_s(&self) -> f64 {
        self.requests as f64 / self.duration_s
    }
}

impl Squares {
    fn add(&mut self, count: u64) {
        let count = count as f64;
        self.sum += count;
        self.squares += count * count;
    }

    fn dispersion(&self, windows: f64) -> f64 {
        let moments = Moments {
            mean: self.sum / windows,
            square: self.squares / windows,
        };
        moments.variance() / moments.mean
    }
}

/// Returns the mean distance of two independent places, as a share of the volume. Requests are
/// uniform within each place.
fn mean_distance(places: &[f64]) -> f64 {
    let width = 1.0 / places.len() as f64;
    let mut sum = 0.0;
    for (index, one) in places.iter().enumerate() {
        sum += one * one * width / 3.0;
        for (further, other) in places[..index].iter().rev().enumerate() {
            sum += 2.0 * one * other * width * (further + 1) as f64;
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_units::{Duration, Seed};

    const CAPACITY: u64 = 1 << 30;

    /// Poisson arrivals at random places.
    fn random(requests: u64) -> Load {
        let mut random = Seed(3).stream("load");
        let mut gatherer = LoadGatherer::new(CAPACITY, 0.1);
        let mut at_s = 0.0;
        for _ in 0..requests {
            at_s += random.exponential(Duration::from_millis(10)).as_secs_f64();
            let start = random.below(CAPACITY / 8) * 8;
            gatherer.add(PredictArrival {
                at_s,
                start,
                sectors: 8,
                write: random.chance(0.25),
            });
        }
        gatherer.finish().unwrap()
    }

    #[test]
    fn independent_requests_of_a_poisson_process_are_known_as_such() {
        let load = random(50_000);
        assert!(
            (load.rate_per_s() / 100.0 - 1.0).abs() < 0.02,
            "{}",
            load.rate_per_s()
        );
        assert!((load.dispersion - 1.0).abs() < 0.05, "{}", load.dispersion);
        assert!((load.locality - 1.0).abs() < 0.02, "{}", load.locality);
        assert!(load.sequential < 1e-3);
        let writes =
            load.kept.iter().filter(|kept| kept.write).count() as f64 / load.kept.len() as f64;
        assert!((KEPT..=2 * KEPT).contains(&load.kept.len()) && (writes - 0.25).abs() < 0.1);
        assert!((load.places.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn streams_and_bursts_are_told_from_them() {
        let mut gatherer = LoadGatherer::new(CAPACITY, 0.1);
        for index in 0..10_000u64 {
            // Every ten seconds a hundred requests arrive at once, one behind the other.
            let at_s = 10.0 * (index / 100) as f64 + 1.0;
            gatherer.add(PredictArrival {
                at_s,
                start: index * 64,
                sectors: 64,
                write: false,
            });
        }
        let load = gatherer.finish().unwrap();
        assert_eq!(load.sequential, 1.0);
        assert!(load.locality < 0.01 && load.dispersion > 50.0, "{load:?}");
    }

    #[test]
    fn the_mean_distance_of_uniform_places_is_a_third() {
        assert!((mean_distance(&[1.0 / 64.0; PLACES]) - 1.0 / 3.0).abs() < 1e-12);
        let mut one = vec![0.0; PLACES];
        one[5] = 1.0;
        assert!((mean_distance(&one) - 1.0 / 192.0).abs() < 1e-12);
    }

    #[test]
    fn nothing_can_be_said_of_nothing_and_of_what_comes_at_once() {
        assert_eq!(LoadGatherer::new(CAPACITY, 0.1).finish(), None);
        let mut gatherer = LoadGatherer::new(CAPACITY, 0.1);
        (0..3).for_each(|start| {
            gatherer.add(PredictArrival {
                at_s: 0.0,
                start,
                sectors: 1,
                write: false,
            })
        });
        assert_eq!(gatherer.finish(), None);
    }
}
