//! Requests of one kind, compared with each other alone.

use super::log::{Logged, OwnLog};
use crate::validate::Sample;
use fullstroke_contract::Operation;
use fullstroke_units::Seed;
use std::ops::Range;

/// Fewer requests of a kind are compared together with all others of which there
/// are few.
const TOGETHER_BELOW: usize = 30;

const OPERATIONS: [&str; 2] = ["read", "write"];
const SIZES: [&str; 4] = ["to 8 KiB", "to 64 KiB", "to 256 KiB", "larger"];
const OUTSTANDING: [&str; 4] = ["1", "2 to 4", "5 to 16", "more"];

/// One way to tell requests apart: its name, its classes, the class of one.
type Way = (&'static str, &'static [&'static str], fn(&Logged) -> usize);

/// The ways that are shown.
pub(super) const SHOWN: [Way; 3] = [
    ("operation", &OPERATIONS, operation),
    ("size", &SIZES, size),
    ("outstanding", &OUTSTANDING, outstanding),
];

fn operation(request: &Logged) -> usize {
    usize::from(request.operation == Operation::Write)
}

fn size(request: &Logged) -> usize {
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

/// What the arm had to do: nothing, as behind the request before; a short way; a
/// long one.
fn way(request: &Logged, near: u64) -> usize {
    usize::from(request.distance > 0) + usize::from(request.distance > near)
}

/// Requests of a log by operation, size, how many were outstanding, and the way of
/// the arm: a model that has the right distribution of all by the wrong ones is
/// told by its classes.
#[derive(Clone, Debug)]
pub struct Classes {
    /// The class of each request, `None` where nothing is compared.
    of: Vec<Option<usize>>,
    measured: Vec<Sample>,
}

impl Classes {
    /// The classes of some requests of `log`.
    pub(crate) fn new(log: &OwnLog, requests: Range<usize>) -> Classes {
        // Short: within a 64th of what the log spans.
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
            measured: times.into_iter().map(Sample::new).collect(),
        }
    }

    /// Root-mean-square distance of simulated times from the measured ones, class by
    /// class, each weighted by its requests, in ms. `times` are those of the requests
    /// of which these are the classes.
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
            (measured.len(), measured.demerit(&Sample::new(simulated)))
        }))
    }

    /// The same distance between the measurement and resamples of it.
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
