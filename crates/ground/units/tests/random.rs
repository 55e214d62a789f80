//! Draws follow the distributions after which they are named.

use fullstroke_units::{Duration, Seed};

const DRAWS: usize = 40_000;

/// Returns the mean and the standard deviation.
fn moments(draws: &[f64]) -> (f64, f64) {
    let mean = draws.iter().sum::<f64>() / draws.len() as f64;
    let squares = draws.iter().map(|draw| (draw - mean).powi(2)).sum::<f64>();
    (mean, (squares / (draws.len() - 1) as f64).sqrt())
}

#[test]
fn normal_numbers_have_mean_0_deviation_1_and_the_tails_of_the_tables() {
    let mut random = Seed(1).stream("normal");
    let draws: Vec<f64> = (0..DRAWS).map(|_| random.normal()).collect();
    let (mean, deviation) = moments(&draws);
    assert!(mean.abs() < 0.02, "{mean}");
    assert!((deviation - 1.0).abs() < 0.02, "{deviation}");
    let beyond = |deviations: f64| {
        draws.iter().filter(|draw| draw.abs() > deviations).count() as f64 / DRAWS as f64
    };
    assert!((beyond(1.0) - 0.3173).abs() < 0.01, "{}", beyond(1.0));
    assert!((beyond(1.96) - 0.05).abs() < 0.005, "{}", beyond(1.96));
}

#[test]
fn exponential_spans_have_the_mean_asked_for_and_as_large_a_deviation() {
    let mut random = Seed(1).stream("exponential");
    let mean_asked = Duration::from_millis(8);
    let draws: Vec<f64> = (0..DRAWS)
        .map(|_| random.exponential(mean_asked).as_millis_f64())
        .collect();
    let (mean, deviation) = moments(&draws);
    assert!((mean / 8.0 - 1.0).abs() < 0.02, "{mean}");
    assert!((deviation / 8.0 - 1.0).abs() < 0.03, "{deviation}");
}

#[test]
fn chances_and_numbers_below_a_bound_come_as_often_as_they_should() {
    let mut random = Seed(1).stream("chance");
    let taken = (0..DRAWS).filter(|_| random.chance(0.3)).count() as f64 / DRAWS as f64;
    assert!((taken - 0.3).abs() < 0.01, "{taken}");
    let mut seen = [0; 6];
    (0..DRAWS).for_each(|_| seen[random.below(6) as usize] += 1);
    for count in seen {
        assert!(
            (count as f64 * 6.0 / DRAWS as f64 - 1.0).abs() < 0.05,
            "{seen:?}"
        );
    }
}
