//! Requests of one kind, compared only with each other.

use super::log::{Logged, OwnLog};
use crate::validate::EmpiricalTimes;
use fullstroke_contract::Operation;
use fullstroke_units::Seed;
use std::ops::Range;

/// Least number of requests of a class. Smaller classes are compared together as one class.
const TOGETHER_BELOW: usize = 30;

const OPERATIONS: [&str; 2] = ["read", "write"];
const SIZES: [&str; 4] = ["to 8 KiB", "to 64 KiB", "to 256 KiB", "larger"];
const OUTSTANDING: [&str; 4] = ["1", "2 to 4", "5 to 16", "more"];

/// One way to classify requests: the name, the names of the classes, and the class of a request.
type Classification = (&'static str, &'static [&'static str], fn(&Logged) -> usize);

/// Ways in the report.
pub(super) const SHOWN: [Classification; 3] = [
    ("operation", &OPERATIONS, operation),
    ("size", &SIZES, size),
    ("outstanding", &OUTSTANDING, outstanding),
];

fn operation(request: &Logged) -> usize {
    usize::from(request.operation == Operation::Write)
}

fn size(request: &Logged) -> usize {
    // In sectors: 8, 64 and 256 KiB.
    [16, 128, 512]
        .iter()
        .filter(|most| request.sectors > **most)
        .count()
}

fn outstanding(request: &Logged) -> usize {
    [1, 4, 16]
        .iter()
        .filter(|most| request.outstanding > **most)
        .count()
}

/// Returns the class of the arm's movement: 0 for none (the request follows the one before), 1 for
/// a short way, 2 for a long way.
fn way(request: &Logged, near: u64) -> usize {
    usize::from(request.distance > 0) + usize::from(request.distance > near)
}

/// Requests of a log by operation, size, number of outstanding requests, and way of the arm. The
/// classes expose a model that has the right distribution of all requests but the wrong times for
/// each kind.
#[derive(Clone, Debug)]
pub struct Classes {
    /// Class of each request; `None` if the request is not compared.
    of: Vec<Option<usize>>,
    measured: Vec<EmpiricalTimes>,
}

impl Classes {
    /// Classifies some requests of `log`.
    pub(crate) fn new(log: &OwnLog, requests: Range<usize>) -> Classes {
        // A short way is within 1/64 of the span of the log.
        let near = log.span_sectors / 64;
        let fine = |request: &Logged| {
            let ways = ((operation(request) * SIZES.len() + size(request)) * OUTSTANDING.len()
                + outstanding(request))
                * 3
                + way(request, near);
            request.measured_ms.map(|_| ways)
        };
        let logged = &log.logged[requests];
        let count = OPERATIONS.len() * SIZES.len() * OUTSTANDING.len() * 3;
        let mut times: Vec<Vec<f64>> = vec![Vec::new(); count + 1];
        for request in logged {
            if let (Some(class), Some(ms)) = (fine(request), request.measured_ms) {
                times[class].push(ms);
            }
        }
        let few: Vec<bool> = times
            .iter()
            .map(|times| times.len() < TOGETHER_BELOW)
            .collect();
        for class in (0..count).filter(|class| few[*class]) {
            let those = std::mem::take(&mut times[class]);
            times[count].extend(those);
        }
        let class = |request| fine(request).map(|class| if few[class] { count } else { class });
        Classes {
            of: logged.iter().map(class).collect(),
            measured: times.into_iter().map(EmpiricalTimes::new).collect(),
        }
    }

    /// Returns the root-mean-square distance of simulated times from the measured times, in ms. The
    /// distance is computed class by class and weighted by the number of requests. `times` belong
    /// to the classified requests.
    pub fn distance_ms(&self, times: &[f64]) -> f64 {
        let mut simulated: Vec<Vec<f64>> = vec![Vec::new(); self.measured.len()];
        for (class, time) in self.of.iter().zip(times) {
            if let Some(class) = class {
                simulated[*class].push(*time);
            }
        }
        let both = self
            .measured
            .iter()
            .zip(simulated)
            .filter(|(measured, _)| !measured.is_empty());
        self.mean_square(both.map(|(measured, simulated)| {
            (
                measured.len(),
                measured.demerit(&EmpiricalTimes::new(simulated)),
            )
        }))
    }

    /// Returns the same distance between the measurement and its resamples.
    pub(crate) fn noise_ms(&self, seed: Seed, resamples: u32) -> f64 {
        let classes = self.measured.iter().filter(|measured| !measured.is_empty());
        self.mean_square(
            classes.map(|measured| (measured.len(), measured.bootstrap_noise(seed, resamples))),
        )
    }

    fn mean_square(&self, distances: impl Iterator<Item = (usize, f64)>) -> f64 {
        let (sum, n) = distances.fold((0.0, 0), |(sum, all), (n, ms)| {
            (sum + n as f64 * ms * ms, all + n)
        });
        (sum / n as f64).sqrt()
    }
}
