//! The revolution from the spread of response times.

use super::{REVOLUTION_MS, Revolution};
use crate::validate::own::span::ServiceSpan;
use fullstroke_contract::Operation;

/// Least number of reads.
const READS_MIN: usize = 100;
/// Number of reads that are used. The width of 1,500 reads repeats to 1 %.
const READS_MAX: usize = 1500;
/// Largest size in sectors: the transfer of a long request is no constant.
const SECTORS_MAX: u64 = 64;
/// Least share of the addresses that the arm crosses. A short seek is less smooth.
const FAR_SHARE: f64 = 0.02;
/// Longest time in ms that a cache alone may take.
const FROM_A_CACHE_MS_MAX: f64 = 1.0;
/// Share of response times that neither spread nor another revolution explains, such as retries.
const STRAY_SHARE: f64 = 0.01;
/// Range in ms over which the stray times lie.
const STRAY_MS: f64 = 60.0;
/// Least difference of the log-likelihoods of a uniform and of a normal spread. Times of flash, of
/// an array or of a queue are not uniform.
const UNIFORM_MIN: f64 = 3.0;
/// Loss of log-likelihood at the ends of the range: two standard errors.
const LOSS: f64 = 2.0;
/// Largest ratio of the ends of the range.
const RANGE_MAX: f64 = 1.15;
/// Revolution over the width of the spread, beyond the degrees of freedom of the smooth function.
/// Mean of eight measured disks (DiskSim 4.0's validation traces) and five simulated ones.
const SHORT: f64 = 1.0095;
/// Step of the revolution between two trials, as a share.
const STEP: f64 = 0.005;
/// Trials below and above the revolution that the standard deviation gives. Response times that
/// the smooth function misses make the deviation larger, so more trials lie below.
const TRIALS: (i32, i32) = (48, 24);
/// Blurs of the edges of the spread in ms.
const BLURS_MS: [f64; 8] = [0.02, 0.05, 0.1, 0.17, 0.27, 0.4, 0.6, 0.9];
/// Shares of reads that take one more revolution.
const MISSES: [f64; 4] = [0.0, 0.02, 0.05, 0.1];
/// Steps in ms of the begin of the spread.
const BEGIN_STEPS_MS: [f64; 2] = [0.3, 0.05];

/// Number of terms of the smooth function.
const TERMS: usize = 8;

/// Returns the width of the spread of reads that were alone in the drive; `None` if there are too
/// few, or the spread is not that of a rotating disk.
pub(super) fn width(spans: &[ServiceSpan]) -> Option<Revolution> {
    let alone = |operation| alone(spans, operation);
    let samples = Some(alone(Operation::Read))
        .filter(|reads| reads.len() >= READS_MIN)
        .unwrap_or_else(|| alone(Operation::Write));
    if samples.len() < READS_MIN {
        return None;
    }
    let rests = rests(&samples)?;
    let trial = Spread::new(&rests);
    let turn = trial.deviation_ms * 12f64.sqrt();
    // Each trial begins with the shape of the one before.
    let mut shape = SpreadTrial {
        blur: 2,
        misses: 0,
        begin_ms: -turn / 2.0,
    };
    let trials: Vec<(f64, f64)> = (-TRIALS.0..=TRIALS.1)
        .map(|steps| turn * (STEP * f64::from(steps)).exp())
        .filter(|ms| REVOLUTION_MS.contains(ms))
        .map(|ms| (ms, trial.likelihood(ms, &mut shape)))
        .collect();
    let &(ms, most) = trials.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    if most < trial.normal_likelihood() + UNIFORM_MIN {
        return None;
    }
    let within = || {
        let near = trials.iter().filter(|(_, other)| *other > most - LOSS);
        near.map(|&(ms, _)| ms)
    };
    let (least_ms, most_ms) = (within().reduce(f64::min)?, within().reduce(f64::max)?);
    // At an end of the trials the range is not known.
    let known = [trials.first()?.0, trials.last()?.0]
        .iter()
        .all(|end| !(least_ms..=most_ms).contains(end));
    // Each term of the smooth function takes up the share of one request.
    let requests = rests.len() as f64;
    let short = SHORT * (requests / (requests - TERMS as f64)).sqrt();
    (known && most_ms <= RANGE_MAX * least_ms).then_some(Revolution {
        ms: short * ms,
        least_ms: short * least_ms,
        most_ms: short * most_ms,
        samples: rests.len(),
    })
}

/// A request alone in the drive, after a far seek.
struct FarRequest {
    /// Root of the distance, as a share of the addresses.
    root: f64,
    /// Middle of the way, from -0.5 to 0.5 of the addresses.
    place: f64,
    sectors: f64,
    ms: f64,
}

fn alone(spans: &[ServiceSpan], operation: Operation) -> Vec<FarRequest> {
    let end = spans.iter().map(|span| span.extent.end().0).max();
    let all = end.unwrap_or(1).max(1) as f64;
    let mut far = Vec::new();
    for pair in spans.windows(2) {
        let [last, span] = pair else { continue };
        let (from, to) = (last.extent.end().0 as f64, span.extent.start.0 as f64);
        let ms = span.end.saturating_since(span.start).as_millis_f64();
        let sectors = span.extent.sectors.0;
        let share = (to - from).abs() / all;
        if span.operation == operation
            && last.end <= span.start
            && share > FAR_SHARE
            && (1..=SECTORS_MAX).contains(&sectors)
            && ms > FROM_A_CACHE_MS_MAX
        {
            far.push(FarRequest {
                root: share.sqrt(),
                place: (from + to) / 2.0 / all - 0.5,
                sectors: sectors as f64 / SECTORS_MAX as f64,
                ms,
            });
        }
    }
    far.truncate(READS_MAX);
    far
}

impl FarRequest {
    /// Terms of the smooth function: seeks grow with the root of the distance and then with the
    /// distance, and a distance in addresses crosses more tracks near the inner edge.
    fn terms(&self) -> [f64; TERMS] {
        let (root, place) = (self.root, self.place);
        [
            1.0,
            root,
            root * root,
            root * root * root,
            place * root,
            place * root * root,
            place * place * root,
            self.sectors,
        ]
    }
}

/// Returns the response times without the smooth function of distance and place, in ms. Requests
/// far off do not shape the function.
fn rests(samples: &[FarRequest]) -> Option<Vec<f64>> {
    let mut rests = vec![0.0; samples.len()];
    let mut limit = f64::INFINITY;
    for _ in 0..3 {
        let kept = samples
            .iter()
            .zip(&rests)
            .filter(|(_, rest): &(_, &f64)| rest.abs() <= limit)
            .map(|(sample, _)| sample);
        let factors = least_squares(kept)?;
        for (rest, sample) in rests.iter_mut().zip(samples) {
            let smooth: f64 = sample.terms().iter().zip(factors).map(|(t, f)| t * f).sum();
            *rest = sample.ms - smooth;
        }
        let square = rests.iter().map(|rest| rest * rest).sum::<f64>() / rests.len() as f64;
        limit = 2.5 * square.sqrt();
    }
    rests.retain(|rest| rest.is_finite());
    Some(rests)
}

/// Returns the factors of the terms that leave the least squares; `None` if the samples do not
/// determine them.
fn least_squares<'a>(samples: impl Iterator<Item = &'a FarRequest>) -> Option<[f64; TERMS]> {
    let mut rows = [[0.0; TERMS + 1]; TERMS];
    for sample in samples {
        let terms = sample.terms();
        for (row, own) in rows.iter_mut().zip(terms) {
            for (sum, other) in row.iter_mut().zip(terms) {
                *sum += own * other;
            }
            row[TERMS] += own * sample.ms;
        }
    }
    for (term, row) in rows.iter_mut().enumerate() {
        // Requests of one size do not tell the factor of the size; this keeps it near 0.
        row[term] += 1e-9 * (1.0 + row[term]);
    }
    for column in 0..TERMS {
        let pivot = (column..TERMS)
            .max_by(|&a, &b| rows[a][column].abs().total_cmp(&rows[b][column].abs()))?;
        rows.swap(column, pivot);
        let top = rows[column];
        if top[column] == 0.0 {
            return None;
        }
        for row in rows.iter_mut().skip(column + 1) {
            let factor = row[column] / top[column];
            for (value, above) in row.iter_mut().zip(top) {
                *value -= factor * above;
            }
        }
    }
    let mut factors = [0.0; TERMS];
    for column in (0..TERMS).rev() {
        let known: f64 = (column + 1..TERMS)
            .map(|later| rows[column][later] * factors[later])
            .sum();
        factors[column] = (rows[column][TERMS] - known) / rows[column][column];
    }
    factors
        .iter()
        .all(|factor| factor.is_finite())
        .then_some(factors)
}

/// Response times without the seek.
struct Spread<'a> {
    rests: &'a [f64],
    deviation_ms: f64,
}

/// A spread that is tried.
#[derive(Clone, Copy)]
struct SpreadTrial {
    /// Index into `BLURS_MS`.
    blur: usize,
    /// Index into `MISSES`.
    misses: usize,
    begin_ms: f64,
}

impl Spread<'_> {
    fn new(rests: &[f64]) -> Spread<'_> {
        let n = rests.len() as f64;
        let square = rests.iter().map(|rest| rest * rest).sum::<f64>() / n;
        let limit = 2.5 * square.sqrt();
        let near = || rests.iter().filter(|rest| rest.abs() <= limit);
        let deviation_ms =
            near().map(|rest| rest * rest).sum::<f64>() / near().count().max(1) as f64;
        Spread {
            rests,
            deviation_ms: deviation_ms.sqrt(),
        }
    }

    /// Returns the log-likelihood of a normal spread.
    fn normal_likelihood(&self) -> f64 {
        let deviation = self.deviation_ms;
        let height = 1.0 / (deviation * std::f64::consts::TAU.sqrt());
        let density = |rest: &f64| {
            let normal = height * (-0.5 * (rest / deviation).powi(2)).exp();
            ((1.0 - STRAY_SHARE) * normal + STRAY_SHARE / STRAY_MS).ln()
        };
        self.rests.iter().map(density).sum()
    }

    /// Returns the log-likelihood of the best spread over a revolution of `turn_ms`. The search
    /// begins with the shape `best`.
    fn likelihood(&self, turn_ms: f64, best: &mut SpreadTrial) -> f64 {
        let mut most = self.of(turn_ms, *best);
        for step_ms in BEGIN_STEPS_MS {
            loop {
                let before = most;
                for other in best.neighbours(step_ms) {
                    let likelihood = self.of(turn_ms, other);
                    if likelihood > most {
                        (*best, most) = (other, likelihood);
                    }
                }
                if most <= before {
                    break;
                }
            }
        }
        most
    }

    fn of(&self, turn_ms: f64, trial: SpreadTrial) -> f64 {
        let (blur, misses) = (BLURS_MS[trial.blur], MISSES[trial.misses]);
        // Share of a logistic blur below a time.
        let below = |ms: f64| 1.0 / (1.0 + (-ms / blur).exp());
        let density = |rest: &f64| {
            let ms = rest - trial.begin_ms;
            let (first, second) = (below(ms - turn_ms), below(ms - 2.0 * turn_ms));
            let uniform = (1.0 - misses) * (below(ms) - first) + misses * (first - second);
            ((1.0 - STRAY_SHARE) * uniform / turn_ms + STRAY_SHARE / STRAY_MS).ln()
        };
        self.rests.iter().map(density).sum()
    }
}

impl SpreadTrial {
    fn neighbours(self, step_ms: f64) -> impl Iterator<Item = SpreadTrial> {
        let begins = [-step_ms, step_ms].map(|step| SpreadTrial {
            begin_ms: self.begin_ms + step,
            ..self
        });
        let blurs = [self.blur.wrapping_sub(1), self.blur + 1]
            .into_iter()
            .filter(|blur| *blur < BLURS_MS.len());
        let misses = [self.misses.wrapping_sub(1), self.misses + 1]
            .into_iter()
            .filter(|misses| *misses < MISSES.len());
        let blurs = blurs.map(move |blur| SpreadTrial { blur, ..self });
        let misses = misses.map(move |misses| SpreadTrial { misses, ..self });
        begins.into_iter().chain(blurs).chain(misses)
    }
}
