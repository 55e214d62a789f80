//! Jumps of a measured curve.
//!
//! The curve is cut into pieces of constant value. The cost of a cut is the sum of squared,
//! standardised distances plus a penalty for each jump. The cut with the least cost is found
//! exactly, in time quadratic in the number of points.

use crate::lzvs::sweep::{mean, std_dev};

/// Penalty of a jump, in units of the logarithm of the number of points: a jump by chance rarely
/// lowers the cost by as much.
const PENALTY: f64 = 5.0;

/// Least number of points of a piece.
const POINTS_MIN: usize = 3;

/// A jump by less than this share of the value does not count: rotational latencies do not cancel
/// out exactly, and skews differ a little within a zone.
pub(crate) const SHARE_MIN: f64 = 0.004;

/// Returns the index of the first point after each jump. Each element of `trials` measures all
/// points once.
pub(crate) fn of(trials: &[Vec<f64>]) -> Vec<usize> {
    let points = trials.first().map_or(0, Vec::len);
    let column = |point: usize| -> Vec<f64> { trials.iter().map(|trial| trial[point]).collect() };
    let curve: Vec<f64> = (0..points).map(|point| mean(&column(point))).collect();
    let variances: Vec<f64> = (0..points)
        .map(|point| std_dev(&column(point)).powi(2))
        .collect();
    let noise = mean(&variances) / trials.len().max(1) as f64;
    // A noiseless curve would make every difference a jump, so the noise is at least half of the
    // smallest jump.
    let least = (SHARE_MIN * mean(&curve) / 2.0).powi(2);
    // The largest estimate counts, because a variance that is too small turns chance into jumps.
    cut(&curve, noise.max(scatter(&curve)).max(least))
}

/// Returns the variance of the points about the curve, from the median distance of neighbours. Few
/// neighbours have a jump between them, so jumps hardly change the median. Differences between
/// trials would miss errors that are equal in all trials, such as the position of skews below an
/// address.
pub(crate) fn scatter(curve: &[f64]) -> f64 {
    let mut distances: Vec<f64> = curve
        .windows(2)
        .map(|pair| (pair[1] - pair[0]).abs())
        .collect();
    distances.sort_unstable_by(f64::total_cmp);
    let median = distances.get(distances.len() / 2).copied().unwrap_or(0.0);
    // The median distance of a normal distribution is 0.6745 standard deviations, and a difference
    // has twice the variance.
    (median / 0.6745).powi(2) / 2.0
}

/// Returns the jumps of the best cut of a curve with this variance.
fn cut(curve: &[f64], variance: f64) -> Vec<usize> {
    let points = curve.len();
    let sums = running(curve.iter().copied());
    let squares = running(curve.iter().map(|value| value * value));
    let distance = |from: usize, to: usize| {
        assert!(from < to, "a piece from {from} to {to}");
        let sum = sums[to] - sums[from];
        // Rounding may leave a constant piece slightly below 0.
        (squares[to] - squares[from] - sum * sum / (to - from) as f64).max(0.0) / variance
    };
    let penalty = PENALTY * (points.max(2) as f64).ln();
    // A read across a jump gives a value between both sides. If the cost is lower, the first point
    // of a piece therefore belongs to neither side.
    let piece = |begin: usize, end: usize| distance(begin, end).min(distance(begin + 1, end));
    // Element n holds the least cost of the first n points, and the begin of their last piece.
    let mut best: Vec<(f64, usize)> = vec![(0.0, 0)];
    for end in 1..=points {
        let pieces = (0..(end + 1).saturating_sub(POINTS_MIN)).map(|begin| match begin {
            0 => (distance(0, end), 0),
            _ => (best[begin].0 + piece(begin, end) + penalty, begin),
        });
        best.push(
            pieces
                // Of equal costs, the piece that begins first, so that fewer jumps are found.
                .min_by(|a, b| a.0.total_cmp(&b.0))
                .unwrap_or((f64::INFINITY, 0)),
        );
    }
    let mut jumps = Vec::new();
    let mut at = points;
    while at > 0 && best[at].1 > 0 {
        at = best[at].1;
        jumps.push(at);
    }
    jumps.reverse();
    jumps
}

fn running(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let sums = values.scan(0.0, |sum, value| {
        *sum += value;
        Some(*sum)
    });
    std::iter::once(0.0).chain(sums).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_are_found_and_points_between_are_not_taken_for_pieces() {
        let curve: Vec<f64> = (0..60)
            .map(|point| {
                if point < 20 {
                    100.0
                } else if point == 20 {
                    95.0
                } else {
                    90.0
                }
            })
            .collect();
        let found = of(&[curve.clone(), curve]);
        assert_eq!(found, [20]);
        assert!(of(&[vec![5.0; 40], vec![5.0; 40]]).is_empty());
        assert!(of(&[]).is_empty() && of(&[vec![1.0]]).is_empty());
    }
}
