//! Made-up noisy functions of 200 points with a known minimum, for tests and for the bench.

use fullstroke_units::Seed;
use std::ops::Range;

/// Number of batches of each function for a search.
pub const BATCHES: usize = 128;
/// Number of values of each key of the valley.
pub const VALLEY: [usize; 3] = [5, 5, 8];

/// Points with these true means. All points share the bursts of a batch; each point adds noise of
/// its own.
pub struct Noisy {
    means: Vec<f64>,
    bursts: Vec<f64>,
    own: f64,
    seed: u64,
}

impl Noisy {
    pub fn new(means: Vec<f64>, batches: usize, own: f64, seed: u64) -> Noisy {
        let mut random = Seed(seed).stream("bursts");
        let bursts = (0..batches).map(|_| 3.0 * random.normal()).collect();
        Noisy {
            means,
            bursts,
            own,
            seed,
        }
    }

    pub fn values(&self, point: usize, batches: Range<usize>) -> Vec<f64> {
        let own = |batch: usize| Seed(self.seed).stream(&format!("{point} {batch}")).normal();
        batches
            .map(|batch| self.means[point] + self.bursts[batch] + self.own * own(batch))
            .collect()
    }

    pub fn best(&self) -> usize {
        (0..self.means.len())
            .min_by(|&one, &other| self.means[one].total_cmp(&self.means[other]))
            .unwrap_or_default()
    }
}

/// Returns 200 points in no order: the best has the mean 10, the others have means from 10.5 to 20.
pub fn unordered(seed: u64) -> Noisy {
    let mut random = Seed(seed).stream("means");
    let mut means: Vec<f64> = (0..200).map(|_| 10.5 + 9.5 * random.unit()).collect();
    means[random.below(200) as usize] = 10.0;
    Noisy::new(means, BATCHES, 1.0, seed)
}

/// Returns a valley over 5 x 5 x 8 points. The lowest point is at (3, 1, 5); the next one is 0.4
/// higher. The last key varies fastest.
pub fn valley(seed: u64) -> Noisy {
    let height = |point: usize| {
        let away = |place: usize, lowest: usize| place.abs_diff(lowest) as f64;
        10.0 + 0.9 * away(point / 40, 3) + 0.7 * away(point / 8 % 5, 1) + 0.4 * away(point % 8, 5)
    };
    Noisy::new((0..200).map(height).collect(), BATCHES, 1.0, seed)
}
