//! Confidence intervals from batches. The crate's documentation describes the method.

use crate::batches::{BATCHES_MIN, Batches, REQUESTS_MIN};
use crate::metric::{Metric, View};
use crate::student::student_t;

/// Least number of batches for an interval.
pub const BATCHES_FOR_INTERVAL: usize = 20;

/// Largest number of spans of a series.
const SPANS_MAX: usize = 64;

/// One-sided 5 % point of the normal distribution, for the lag-1 coefficient.
const CORRELATED: f64 = 1.645;

/// Returns half the width of the interval of `metric` around `value` at this confidence (0 to 1).
/// `None` if there is no interval.
pub(crate) fn interval(
    metric: Metric,
    batches: &Batches,
    value: f64,
    confidence: f64,
) -> Option<f64> {
    Some(student_half_width(
        &independent_residuals(metric, [(batches, value)])?,
        confidence,
    ))
}

/// Measures of the difference between two runs of one workload, from batches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Paired {
    pub(crate) half_width: f64,
    /// Number of batches in which the first run's value is larger.
    pub(crate) above: usize,
    /// Number of batches in which the second run's value is larger.
    pub(crate) below: usize,
}

/// Returns the interval of the difference between two runs of one workload, and the number of
/// batches in which each run is the larger.
pub(crate) fn paired_interval(
    metric: Metric,
    one: (&Batches, f64),
    other: (&Batches, f64),
    confidence: f64,
) -> Option<Paired> {
    let residuals = independent_residuals(metric, [one, other])?;
    let difference = one.1 - other.1;
    Some(Paired {
        half_width: student_half_width(&residuals, confidence),
        above: residuals
            .iter()
            // The residuals are about the difference of the whole runs, so the difference of a
            // batch is the sum.
            .filter(|residual| *residual + difference > 0.0)
            .count(),
        below: residuals
            .iter()
            .filter(|residual| *residual + difference < 0.0)
            .count(),
    })
}

/// Returns half the width of the interval of the mean of a series over equal spans of time. Few
/// long spans replace many short ones: neighbours are merged to at most 64 spans, and further while
/// neighbours are alike. `None` if fewer than 10 independent spans are left.
pub fn series_half_width(values: &[f64], confidence: f64) -> Option<f64> {
    let size = values.len().div_ceil(SPANS_MAX).max(1);
    let mut spans: Vec<f64> = values
        // A shorter last span would count too much.
        .chunks_exact(size)
        .map(|span| span.iter().sum::<f64>() / size as f64)
        .collect();
    loop {
        if spans.len() < BATCHES_MIN || spans.iter().any(|span| span.is_nan()) {
            return None;
        }
        if !correlated(&spans) {
            break;
        }
        spans = spans
            .chunks_exact(2)
            .map(|pair| (pair[0] + pair[1]) / 2.0)
            .collect();
    }
    let mean = spans.iter().sum::<f64>() / spans.len() as f64;
    let residuals: Vec<f64> = spans.iter().map(|span| span - mean).collect();
    Some(student_half_width(&residuals, confidence))
}

/// Returns the chance that a fair coin falls at least as one-sidedly as `above` to `below`: the
/// two-sided sign test.
pub(crate) fn sign_test(above: usize, below: usize) -> f64 {
    let tosses = above + below;
    let (mut ways, mut tail) = (1.0, 0.0);
    for heads in 0..=above.min(below) {
        tail += ways;
        ways *= (tosses - heads) as f64 / (heads + 1) as f64;
    }
    // Both tails count, and overlap in the middle.
    (2.0 * tail / 2f64.powi(tosses as i32)).min(1.0)
}

/// Returns the residuals of batches that are large enough to be independent. `None` if too few
/// batches are left for an interval.
fn independent_residuals<const RUNS: usize>(
    metric: Metric,
    runs: [(&Batches, f64); RUNS],
) -> Option<Vec<f64>> {
    let view = metric.view()?;
    let size = runs.iter().map(|(batches, _)| batches.size()).max()?;
    let mut runs = runs.map(|(batches, value)| {
        let mut batches = batches.clone();
        batches.grow_to(size);
        (batches, value)
    });
    let first = residuals(metric, view, &runs)?;
    if first.len() < BATCHES_FOR_INTERVAL || (size as f64) < REQUESTS_MIN {
        return None;
    }
    let mut residuals_now = first;
    loop {
        let small = too_small(view, runs[0].0.size());
        if !small && !correlated(&residuals_now) {
            break;
        }
        runs.iter_mut()
            .for_each(|(batches, _)| batches.merge_neighbours());
        match residuals(metric, view, &runs) {
            Some(merged) if merged.len() >= BATCHES_MIN => residuals_now = merged,
            _ if small => return None,
            _ => break,
        }
    }
    Some(residuals_now)
}

/// Returns true if a batch of `size` requests is too small for a percentile.
fn too_small(view: View, size: u64) -> bool {
    match view {
        // Rounded, because 1 - 0.99 in floating point is slightly above 0.01.
        View::Quantile(quantile) => (size as f64 * (1.0 - quantile)).round() < REQUESTS_MIN,
        View::Mean | View::Rate => false,
    }
}

/// Returns one residual for each batch that is usable in all runs. For two runs, the residual of
/// the second is subtracted from that of the first. `None` if there are none.
fn residuals(metric: Metric, view: View, runs: &[(Batches, f64)]) -> Option<Vec<f64>> {
    let usable: Vec<usize> = match runs {
        [] => return None,
        [(first, _), others @ ..] => first
            .indices()
            .filter(|&index| {
                others
                    .iter()
                    .all(|(batches, _)| batches.indices().any(|other| other == index))
            })
            .collect(),
    };
    let mut sum = vec![0.0; usable.len()];
    for (run, (batches, value)) in runs.iter().enumerate() {
        let sign = if run == 0 { 1.0 } else { -1.0 };
        let own = run_residuals(metric, view, batches, *value, &usable)?;
        sum.iter_mut()
            .zip(own)
            .for_each(|(sum, own)| *sum += sign * own);
    }
    Some(sum)
}

fn run_residuals(
    metric: Metric,
    view: View,
    batches: &Batches,
    value: f64,
    usable: &[usize],
) -> Option<Vec<f64>> {
    if let View::Quantile(quantile) = view {
        let residual = |&index: &usize| {
            let batch = batches.get(index);
            (!batch.response.is_empty()).then(|| batch.response_quantile(quantile) / 1e6 - value)
        };
        return usable.iter().map(residual).collect();
    }
    let spans = batches.spans_s();
    let sums: Vec<(f64, f64)> = usable
        .iter()
        .map(|&index| match (view, metric.sums(batches.get(index))) {
            (View::Rate, (amount, _)) => (amount, spans[index]),
            (_, sums) => sums,
        })
        .collect();
    let scale = sums.iter().map(|(_, denominator)| denominator).sum::<f64>() / sums.len() as f64;
    // Only zeroes have no mean to be relative to.
    (scale > 0.0).then(|| {
        sums.iter()
            .map(|(numerator, denominator)| (numerator - value * denominator) / scale)
            .collect()
    })
}

/// Returns true if neighbouring residuals are more alike than chance explains.
fn correlated(residuals: &[f64]) -> bool {
    let count = residuals.len() as f64;
    let mean = residuals.iter().sum::<f64>() / count;
    let squares: f64 = residuals
        .iter()
        .map(|residual| (residual - mean).powi(2))
        .sum();
    let products: f64 = residuals
        .windows(2)
        .map(|pair| (pair[0] - mean) * (pair[1] - mean))
        .sum();
    // A lag-1 coefficient of independent batches is normal with the deviation 1/sqrt(n).
    squares > 0.0 && products / squares > CORRELATED / count.sqrt()
}

fn student_half_width(residuals: &[f64], confidence: f64) -> f64 {
    let count = residuals.len() as f64;
    let squares: f64 = residuals.iter().map(|residual| residual * residual).sum();
    student_t(confidence, count - 1.0) * (squares / (count * (count - 1.0))).sqrt()
}

/// Returns half the width of the interval of a mean with this variance, estimated with `freedom`
/// degrees of freedom.
pub fn half_width_of_mean(variance: f64, freedom: f64, confidence: f64) -> f64 {
    student_t(confidence, freedom) * variance.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_has_an_interval_if_its_spans_are_independent() {
        let mut random = Seed(5).stream("noise");
        let noise: Vec<f64> = (0..512).map(|_| random.below(1000) as f64).collect();
        let half_width = series_half_width(&noise, 0.95).unwrap();
        // Uniform values have a deviation of 289, and 512 of them a standard error of 12.8.
        assert!((15.0..40.0).contains(&half_width), "{half_width}");
        // A series that only rises has no independent spans.
        let rising: Vec<f64> = (0..512).map(f64::from).collect();
        assert_eq!(series_half_width(&rising, 0.95), None);
        assert_eq!(series_half_width(&noise[..9], 0.95), None);
        assert_eq!(series_half_width(&[3.0; 100], 0.95), Some(0.0));
    }
    use crate::sample::{CompletedSample, OperationClass};
    use fullstroke_units::{Random, Seed, Time};

    /// Returns response times in which each time carries over the share `memory` of the time
    /// before.
    fn run(random: &mut Random, requests: u64, memory: f64) -> (Batches, f64) {
        let mut batches = Batches::default();
        let (mut level, mut sum) = (0.0, 0.0);
        for origin in 0..requests {
            level = memory * level + (1.0 - memory * memory).sqrt() * normal(random);
            let response = (5e6 + 1e6 * level).max(0.0) as u64;
            sum += response as f64;
            let finished = Time::from_nanos(origin * 10_000_000 + response);
            let batch = batches.of(origin, Time::from_nanos(origin * 10_000_000));
            batch.seen += 1;
            batch.record(
                OperationClass::Read,
                &CompletedSample {
                    response,
                    parts: [response, 0, 0, 0, 0, 0],
                    sectors: 8,
                    finished,
                },
            );
        }
        (batches, sum / requests as f64 / 1e6)
    }

    /// Returns the sum of twelve uniform numbers (Irwin and Hall), which is close enough to a
    /// normal deviate here.
    fn normal(random: &mut Random) -> f64 {
        (0..12).map(|_| random.unit()).sum::<f64>() - 6.0
    }

    fn coverage(requests: u64, memory: f64) -> f64 {
        let mut random = Seed(11).stream("coverage");
        let runs = 300;
        let covered = (0..runs)
            .filter(|_| {
                let (batches, mean) = run(&mut random, requests, memory);
                let half_width = interval(Metric::RESPONSE_MEAN, &batches, mean, 0.95).unwrap();
                (mean - 5.0).abs() <= half_width
            })
            .count();
        covered as f64 / f64::from(runs)
    }

    #[test]
    fn the_interval_of_independent_responses_covers_the_truth_nineteen_times_in_twenty() {
        let share = coverage(2_000, 0.0);
        assert!((0.91..=0.98).contains(&share), "{share}");
    }

    #[test]
    fn the_interval_of_correlated_responses_still_covers_the_truth() {
        let share = coverage(5_000, 0.97);
        assert!((0.88..=0.99).contains(&share), "{share}");
    }

    #[test]
    fn the_sign_test_is_that_of_the_binomial_distribution() {
        assert_eq!(sign_test(0, 0), 1.0);
        assert_eq!(sign_test(5, 5), 1.0);
        assert_eq!(sign_test(10, 0), 2.0 / 1024.0);
        assert_eq!(sign_test(1, 9), 2.0 * 11.0 / 1024.0);
    }

    #[test]
    fn with_too_few_requests_no_interval_is_claimed() {
        let mut random = Seed(5).stream("few");
        for (requests, claimed) in [(100, false), (303, false), (320, true), (1_000, true)] {
            let (batches, mean) = run(&mut random, requests, 0.0);
            let half_width = interval(Metric::RESPONSE_MEAN, &batches, mean, 0.95);
            assert_eq!(half_width.is_some(), claimed, "{requests}");
        }
    }

    #[test]
    fn a_percentile_needs_batches_that_can_show_it() {
        let mut random = Seed(5).stream("percentile");
        let p99 = Metric::parse("response_ms.p99").unwrap();
        // The 99th percentile of a normal deviate lies 2.326 deviations above the mean.
        let (batches, _) = run(&mut random, 8_000, 0.0);
        assert_eq!(interval(p99, &batches, 7.326, 0.95), None);
        let (batches, _) = run(&mut random, 20_000, 0.0);
        let half_width = interval(p99, &batches, 7.326, 0.95).unwrap();
        assert!((0.01..0.2).contains(&half_width), "{half_width}");
    }

    #[test]
    fn the_rate_of_an_open_workload_is_sure() {
        let mut random = Seed(5).stream("rate");
        let (batches, _) = run(&mut random, 10_000, 0.0);
        let half_width = interval(Metric::parse("iops").unwrap(), &batches, 100.0, 0.95).unwrap();
        assert!(half_width < 0.5, "{half_width}");
    }
}
