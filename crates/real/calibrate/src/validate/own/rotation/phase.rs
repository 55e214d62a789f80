//! The revolution from the ends of requests for nearly the same sectors.

use super::{REVOLUTION_MS, Revolution};
use crate::validate::own::span::ServiceSpan;
use fullstroke_contract::Operation;

/// Largest distances in sectors between the ends of two requests. A smaller one is taken if it has
/// enough pairs.
const APART: [u64; 4] = [0, 2, 8, 32];
/// Least number of pairs.
const PAIRS_MIN: usize = 24;
/// Number of pairs that are used.
const PAIRS_MAX: usize = 3000;
/// Longest time in ms between the ends of a pair: a few hundred revolutions.
const BETWEEN_MS_MAX: f64 = 1500.0;
/// Number of requests between those of a pair.
const REQUESTS_BETWEEN: usize = 256;
/// Longest time in ms that a cache alone may take.
const FROM_A_CACHE_MS_MAX: f64 = 1.0;
/// Least length of the mean of all phases. Phases all over the revolution have a length near 0.
const AGREEMENT_MIN: f64 = 0.7;
/// Least length of the mean beside the longest mean. Half of the period of exact pairs agrees as
/// well, and no other period does.
const NEAR_THE_BEST: f64 = 0.97;
/// Least cosine of the phase on which the pairs agree: a sixth of a revolution.
const NEAR_ZERO: f64 = 0.5;
/// Share by which the sought range is wider than the range of the spread.
const BESIDE: f64 = 0.06;
/// Trials within the time in which a phase at the longest distance turns once.
const TRIALS_OF_A_TURN: f64 = 16.0;
/// Standard errors at the ends of the range.
const ERRORS: f64 = 2.0;

/// Returns the period of the ends of requests for nearly the same sectors; `None` if there are too
/// few, or the pairs agree on none. `about` is the range in ms of the spread.
///
/// Reads and writes stand apart: a cache answers the reads of some drives and the writes of others.
pub(super) fn period(spans: &[ServiceSpan], about: Option<(f64, f64)>) -> Option<Revolution> {
    let range_ms = about.map_or(
        (*REVOLUTION_MS.start(), *REVOLUTION_MS.end()),
        |(least, most)| (least * (1.0 - BESIDE), most * (1.0 + BESIDE)),
    );
    let kinds = [Operation::Read, Operation::Write];
    APART
        .into_iter()
        .flat_map(|apart| kinds.map(|operation| (apart, operation)))
        .map(|(apart, operation)| pairs(spans, apart, operation))
        .filter(|pairs| pairs.len() >= PAIRS_MIN)
        .find_map(|pairs| agreed(&pairs, range_ms, spans))
}

/// Returns the period on which `pairs` agree, within a range in ms.
fn agreed(pairs: &[SectorPair], range_ms: (f64, f64), spans: &[ServiceSpan]) -> Option<Revolution> {
    let (least_ms, most_ms) = range_ms;
    let longest = pairs.iter().map(|pair| pair.ms).fold(0.0, f64::max);
    // Revolutions in a ms.
    let step = 1.0 / (TRIALS_OF_A_TURN * longest);
    let trials = ((1.0 / least_ms - 1.0 / most_ms) / step).ceil() as u32;
    let agreed: Vec<(f64, f64)> = (0..=trials)
        .map(|trial| 1.0 / most_ms + step * f64::from(trial))
        .map(|speed| (speed, agreement(pairs, speed)))
        .collect();
    let best = agreed.iter().map(|trial| trial.1).fold(0.0, f64::max);
    if best < AGREEMENT_MIN {
        return None;
    }
    // Half of the revolution fits the pairs as well, so the longest period counts.
    let first = agreed
        .iter()
        .position(|trial| trial.1 >= NEAR_THE_BEST * best)?;
    let peak = agreed[first..]
        .windows(2)
        .find(|pair| pair[1].1 < pair[0].1)
        .map(|pair| pair[0])?;
    let (speed, length) = refined(pairs, peak, step);
    Some(revolution(pairs, speed, length, spans))
}

/// Two requests for nearly the same sectors.
#[derive(Clone, Copy)]
struct SectorPair {
    /// Time between the ends in ms.
    ms: f64,
    /// Sectors between the ends.
    apart: u64,
}

fn pairs(spans: &[ServiceSpan], apart: u64, operation: Operation) -> Vec<SectorPair> {
    let served: Vec<&ServiceSpan> = spans
        .iter()
        .filter(|span| span.end.saturating_since(span.start).as_millis_f64() > FROM_A_CACHE_MS_MAX)
        .filter(|span| span.operation == operation && span.extent.sectors.0 > 0)
        .collect();
    let mut pairs = Vec::new();
    for (number, span) in served.iter().enumerate() {
        // The nearest earlier request for the sectors: further ones repeat its evidence.
        let earlier = served[number.saturating_sub(REQUESTS_BETWEEN)..number]
            .iter()
            .rev()
            .find(|other| other.extent.end().0.abs_diff(span.extent.end().0) <= apart);
        let Some(other) = earlier else { continue };
        let ms = span.end.saturating_since(other.end).as_millis_f64();
        if ms > 0.0 && ms < BETWEEN_MS_MAX && pairs.len() < PAIRS_MAX {
            pairs.push(SectorPair {
                ms,
                apart: other.extent.end().0.abs_diff(span.extent.end().0),
            });
        }
    }
    pairs
}

/// Returns the length of the mean of all phases, from 0 to 1, at `speed` revolutions in a ms.
fn agreement(pairs: &[SectorPair], speed: f64) -> f64 {
    let (sine, cosine) = pairs.iter().fold((0.0, 0.0), |(sine, cosine), pair| {
        let (own_sine, own_cosine) = (std::f64::consts::TAU * (pair.ms * speed).fract()).sin_cos();
        (sine + own_sine, cosine + own_cosine)
    });
    let length = f64::hypot(sine, cosine);
    // The pairs of a period agree on a phase near 0.
    match cosine > NEAR_ZERO * length {
        true => length / pairs.len() as f64,
        false => 0.0,
    }
}

fn refined(pairs: &[SectorPair], mut best: (f64, f64), mut step: f64) -> (f64, f64) {
    for _ in 0..12 {
        step /= 2.0;
        for speed in [best.0 - step, best.0 + step] {
            let length = agreement(pairs, speed);
            if length > best.1 {
                best = (speed, length);
            }
        }
    }
    best
}

fn revolution(pairs: &[SectorPair], speed: f64, length: f64, spans: &[ServiceSpan]) -> Revolution {
    let n = pairs.len() as f64;
    let mean_square = pairs.iter().map(|pair| pair.ms * pair.ms).sum::<f64>() / n;
    // Deviation of a phase, in revolutions, of which the mean has this length.
    let deviation = (-2.0 * length.ln()).max(0.0).sqrt() / std::f64::consts::TAU;
    let chance = ERRORS * deviation / (mean_square.sqrt() * n.sqrt());
    // Sectors apart turn the phase, and the length of the tracks is not known.
    let apart = pairs.iter().map(|pair| pair.apart as f64).sum::<f64>() / n;
    let between = pairs.iter().map(|pair| pair.ms).sum::<f64>() / n;
    let turned = apart / sectors_of_a_track_min(spans) / between;
    let off = chance + turned;
    Revolution {
        ms: 1.0 / speed,
        least_ms: 1.0 / (speed + off),
        most_ms: 1.0 / (speed - off).max(f64::MIN_POSITIVE),
        samples: pairs.len(),
    }
}

/// Returns the least number of sectors on a track of a disk with these addresses: 56 on an HP
/// C2247A of 1 GB (1992), 300 on a disk of 80 GB (2003), 900 on one of 1 TB.
fn sectors_of_a_track_min(spans: &[ServiceSpan]) -> f64 {
    match spans.iter().map(|span| span.extent.end().0).max() {
        Some(end) if end > 500_000_000 => 700.0,
        Some(end) if end > 50_000_000 => 250.0,
        _ => 50.0,
    }
}
