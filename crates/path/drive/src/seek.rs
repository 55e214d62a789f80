//! The seek curve, tabulated once for every distance.

use crate::config::SeekConfig;
use fullstroke_contract::ConfigError;
use fullstroke_units::Duration;

/// Time of the arm's movement for every distance in cylinders.
#[derive(Clone, Debug)]
pub struct SeekTable {
    /// Nanoseconds by distance.
    nanoseconds: Vec<u32>,
    /// Shortest time over each distance or any longer distance. `None` if equal to `nanoseconds`.
    at_least: Option<Vec<u32>>,
    /// The formula of a long and rising table. `None` for all other tables.
    formula: Option<SeekFormula>,
}

/// A curve that a formula gives. Times in ms.
#[derive(Clone, Copy, Debug)]
enum SeekFormula {
    /// `first + root sqrt(d-1) + linear (d-1)`.
    Datasheet { first: f64, root: f64, linear: f64 },
    /// `a + b sqrt(d)` below the crossover, `c + e d` from there on.
    TwoPiece {
        a: f64,
        b: f64,
        c: f64,
        e: f64,
        crossover: u32,
    },
}

/// Number of cylinders from which a time comes from the formula of the curve. The table of a drive
/// of today takes 2 MB, and each look-up at a random distance misses the processor's caches. A
/// square root takes less time than a miss. The table of an old drive stays in the cache, and a
/// look-up there takes less time than a square root.
const FORMULA_FROM: usize = 1 << 15;

impl SeekFormula {
    /// Returns the time in ms over `distance` cylinders, at least 1.
    #[inline]
    fn milliseconds(self, distance: u32) -> f64 {
        match self {
            SeekFormula::Datasheet {
                first,
                root,
                linear,
            } => {
                let d = f64::from(distance) - 1.0;
                first + root * d.sqrt() + linear * d
            }
            SeekFormula::TwoPiece {
                a,
                b,
                c,
                e,
                crossover,
            } => {
                let d = f64::from(distance);
                if distance < crossover {
                    a + b * d.sqrt()
                } else {
                    c + e * d
                }
            }
        }
    }
}

/// Rounds a time in ms to ns.
#[inline]
fn to_nanoseconds(ms: f64) -> u32 {
    (ms * 1e6 + 0.5) as u32
}

/// Divisor of the height by which a curve may fall. Measured points carry noise. The two pieces of
/// a published curve do not quite meet, because the coefficients are rounded.
const NOISE: u32 = 50;

impl SeekTable {
    /// Builds the table for a drive of `cylinders`.
    ///
    /// # Errors
    /// Names the key of a curve that is not monotone, not positive, has no point, or exceeds 4 s.
    pub fn new(config: &SeekConfig, cylinders: u32) -> Result<SeekTable, ConfigError> {
        let longest = cylinders.max(2) - 1;
        let formula = match config {
            SeekConfig::Points {
                points,
                falls_allowed,
            } => {
                let curve = points_curve(points, *falls_allowed)?;
                let nanoseconds = tabulated(longest, *falls_allowed, curve)?;
                return Ok(SeekTable::of(nanoseconds, None));
            }
            &SeekConfig::Datasheet {
                track_to_track_ms,
                average_ms,
                full_stroke_ms,
            } => datasheet_curve(track_to_track_ms, average_ms, full_stroke_ms, longest)?,
            &SeekConfig::TwoPiece {
                a_ms,
                b_ms,
                c_ms,
                e_ms,
                crossover,
            } => SeekFormula::TwoPiece {
                a: a_ms,
                b: b_ms,
                c: c_ms,
                e: e_ms,
                crossover,
            },
        };
        let nanoseconds = match formula {
            // Named in the closure, and moved into the closure, the form and the numbers are known
            // not to change in the loop, and vector units compute the values. Otherwise a start
            // with a drive of today costs 10 million instructions more.
            SeekFormula::Datasheet {
                first,
                root,
                linear,
            } => tabulated(longest, false, move |distance| {
                let formula = SeekFormula::Datasheet {
                    first,
                    root,
                    linear,
                };
                formula.milliseconds(distance)
            })?,
            two => tabulated(longest, false, move |distance| two.milliseconds(distance))?,
        };
        Ok(SeekTable::of(nanoseconds, Some(formula)))
    }

    fn of(nanoseconds: Vec<u32>, formula: Option<SeekFormula>) -> SeekTable {
        let at_least = suffix_minimum(&nanoseconds);
        let takes_formula = nanoseconds.len() >= FORMULA_FROM && at_least.is_none();
        SeekTable {
            nanoseconds,
            at_least,
            formula: formula.filter(|_| takes_formula),
        }
    }

    /// Returns the time for `distance`. Beyond the table, returns the time of the longest seek.
    #[inline]
    pub fn time(&self, distance: u32) -> Duration {
        let last = self.nanoseconds.len() - 1;
        let at = (distance as usize).min(last);
        let nanoseconds = match self.formula {
            // Without a movement the time is 0, and the formula does not hold.
            Some(formula) if at > 0 => to_nanoseconds(formula.milliseconds(at as u32)),
            _ => self.nanoseconds[at],
        };
        Duration::from_nanos(u64::from(nanoseconds))
    }

    /// Returns a lower bound of the time over `distance` or more. The bound never falls as the
    /// distance grows.
    #[inline]
    pub fn at_least(&self, distance: u32) -> Duration {
        // A rising table is its own lower bound.
        let Some(table) = &self.at_least else {
            return self.time(distance);
        };
        Duration::from_nanos(u64::from(table[(distance as usize).min(table.len() - 1)]))
    }

    /// Returns true if a seek over a longer distance never takes less time, so that
    /// [`at_least`](SeekTable::at_least) is [`time`](SeekTable::time).
    #[inline]
    pub(crate) fn never_falls(&self) -> bool {
        self.at_least.is_none()
    }

    /// Mean over seeks between two different, independent, uniform cylinders.
    pub fn average(&self) -> Duration {
        let cylinders = self.nanoseconds.len() as f64;
        let (mut sum, mut weights) = (0.0, 0.0);
        for (distance, &time) in self.nanoseconds.iter().enumerate().skip(1) {
            // Of all pairs of cylinders, as many have a distance as there are cylinders beyond the
            // distance.
            let weight = cylinders - distance as f64;
            sum += weight * f64::from(time);
            weights += weight;
        }
        Duration::from_nanos((sum / weights).round() as u64)
    }
}

/// Converts a curve in milliseconds to nanoseconds by distance, from 0.
///
/// A current drive has half a million cylinders, and each start of the program builds the tables of
/// its drives. Therefore a first loop without branches computes the values, because vector units
/// can carry out such a loop. A second loop checks the values.
fn tabulated(
    longest: u32,
    falls_allowed: bool,
    milliseconds: impl Fn(u32) -> f64,
) -> Result<Vec<u32>, ConfigError> {
    let in_range = |ms: f64| ms > 0.0 && ms < 4000.0;
    // A value out of range, or a NaN, becomes 0. A value in range rounds to 0 only below half a
    // nanosecond. The exact check below decides these cases.
    let rounded = |ms: f64| {
        if in_range(ms) { to_nanoseconds(ms) } else { 0 }
    };
    let mut nanoseconds: Vec<u32> = Vec::with_capacity(longest as usize + 1);
    nanoseconds.push(0);
    nanoseconds.extend((1..=longest).map(|distance| rounded(milliseconds(distance))));
    let mut highest = 0;
    for (distance, &value) in (1..=longest).zip(&nanoseconds[1..]) {
        let fails = value == 0 || value < highest - highest / NOISE && !falls_allowed;
        if fails {
            let ms = milliseconds(distance);
            if !in_range(ms) {
                let message = format!("a seek over {distance} cylinders would take {ms} ms");
                return Err(ConfigError::new("", message));
            }
            if value < highest - highest / NOISE && !falls_allowed {
                let message = format!(
                    "the curve is not monotone: it falls at {distance} cylinders, to {ms:.4} ms"
                );
                return Err(ConfigError::new("", message));
            }
        }
        highest = highest.max(value);
    }
    Ok(nanoseconds)
}

/// Returns the least of each value and all later values. `None` if the values are sorted already.
fn suffix_minimum(values: &[u32]) -> Option<Vec<u32>> {
    // A rising table is its own minimum, which is the usual case and saves a second table.
    if values.is_sorted() {
        return None;
    }
    let mut least = values.to_vec();
    for index in (1..least.len()).rev() {
        least[index - 1] = least[index - 1].min(least[index]);
    }
    Some(least)
}

/// Straight lines between measured points; constant behind the last; before
/// the first, straight to 0 at distance 0.
fn points_curve(
    points: &[(u32, f64)],
    falls_allowed: bool,
) -> Result<impl Fn(u32) -> f64, ConfigError> {
    if points.is_empty() {
        return Err(ConfigError::new(
            "points",
            "found none; expected [cylinders, ms] pairs",
        ));
    }
    for pair in points.windows(2) {
        let ((distance, time), (next_distance, next_time)) = (pair[0], pair[1]);
        if next_distance <= distance
            || (next_time < time * (1.0 - 1.0 / f64::from(NOISE)) && !falls_allowed)
        {
            return Err(ConfigError::new(
                "points",
                format!(
                    "[{next_distance}, {next_time}] follows [{distance}, {time}]; expected a monotone curve"
                ),
            ));
        }
    }
    let points: Vec<(f64, f64)> = std::iter::once((0.0, 0.0))
        .chain(points.iter().map(|&(d, ms)| (f64::from(d), ms)))
        .collect();
    Ok(move |distance| {
        let d = f64::from(distance);
        let next = points.partition_point(|point| point.0 < d);
        match points.get(next) {
            // Beyond the last point the curve stays level.
            None => points[points.len() - 1].1,
            Some(&(d1, ms1)) if d1 == d => ms1,
            Some(&(d1, ms1)) => {
                let (d0, ms0) = points[next - 1];
                ms0 + (ms1 - ms0) * (d - d0) / (d1 - d0)
            }
        }
    })
}

/// `t + b sqrt(d-1) + c (d-1)` through the three numbers; the average is over
/// the distances of independent uniform cylinders.
fn datasheet_curve(
    track_to_track_ms: f64,
    average_ms: f64,
    full_stroke_ms: f64,
    longest: u32,
) -> Result<SeekFormula, ConfigError> {
    if !(0.0 < track_to_track_ms && track_to_track_ms <= average_ms && average_ms <= full_stroke_ms)
    {
        return Err(ConfigError::new(
            "",
            format!(
                "found track to track {track_to_track_ms}, average {average_ms}, full stroke {full_stroke_ms}; \
                 expected them positive and rising"
            ),
        ));
    }
    // The mean of sqrt(d-1) and of d-1 over the triangular density of distances.
    let cylinders = f64::from(longest) + 1.0;
    let (mut root_mean, mut linear_mean, mut weights) = (0.0, 0.0, 0.0);
    for distance in 1..=longest {
        let d = f64::from(distance);
        let weight = cylinders - d;
        root_mean += weight * (d - 1.0).sqrt();
        linear_mean += weight * (d - 1.0);
        weights += weight;
    }
    root_mean /= weights;
    linear_mean /= weights;
    let span = f64::from(longest) - 1.0;
    let determinant = span.sqrt() * linear_mean - span * root_mean;
    if determinant.abs() < 1e-12 {
        return Err(ConfigError::new(
            "",
            "too few cylinders for a curve through three numbers; give points",
        ));
    }
    let (full, average) = (
        full_stroke_ms - track_to_track_ms,
        average_ms - track_to_track_ms,
    );
    // Cramer's rule for two equations: full stroke and mean.
    let root = (full * linear_mean - span * average) / determinant;
    let linear = (span.sqrt() * average - root_mean * full) / determinant;
    Ok(SeekFormula::Datasheet {
        first: track_to_track_ms,
        root,
        linear,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measured_points_are_joined_by_straight_lines() {
        let config = SeekConfig::Points {
            points: vec![(1, 1.0), (3, 2.0), (10, 5.5)],
            falls_allowed: false,
        };
        let table = SeekTable::new(&config, 21).unwrap();
        let ms = |distance| table.time(distance).as_millis_f64();
        assert_eq!(
            [ms(0), ms(1), ms(2), ms(3), ms(4)],
            [0.0, 1.0, 1.5, 2.0, 2.5]
        );
        assert_eq!([ms(10), ms(20), ms(99)], [5.5, 5.5, 5.5]);
    }

    #[test]
    fn the_datasheet_curve_meets_its_three_numbers() {
        let config = SeekConfig::Datasheet {
            track_to_track_ms: 0.6,
            average_ms: 5.2,
            full_stroke_ms: 12.2,
        };
        let table = SeekTable::new(&config, 6962).unwrap();
        assert_eq!(table.time(1).as_millis_f64(), 0.6);
        assert!((table.time(6961).as_millis_f64() - 12.2).abs() < 1e-5);
        assert!((table.average().as_millis_f64() - 5.2).abs() < 1e-5);
    }

    #[test]
    fn the_two_piece_form_is_that_of_ruemmler_and_wilkes() {
        // HP C2200A, table 3 of the article.
        let config = SeekConfig::TwoPiece {
            a_ms: 3.45,
            b_ms: 0.597,
            c_ms: 10.8,
            e_ms: 0.012,
            crossover: 616,
        };
        let table = SeekTable::new(&config, 1449).unwrap();
        assert!((table.time(100).as_millis_f64() - 9.42).abs() < 1e-6);
        assert!((table.time(1000).as_millis_f64() - 22.8).abs() < 1e-6);
    }

    #[test]
    fn the_formula_of_a_long_table_gives_the_values_of_the_table() {
        let configs = [
            SeekConfig::Datasheet {
                track_to_track_ms: 0.3,
                average_ms: 8.5,
                full_stroke_ms: 17.0,
            },
            SeekConfig::TwoPiece {
                a_ms: 0.5,
                b_ms: 0.02,
                c_ms: 5.0,
                e_ms: 0.00004,
                crossover: 90_000,
            },
        ];
        for config in configs {
            let table = SeekTable::new(&config, 400_000).unwrap();
            assert!(table.formula.is_some(), "{config:?} is long and rises");
            let plain = SeekTable {
                formula: None,
                ..table.clone()
            };
            for distance in 0..400_100 {
                let times = [table.time(distance), table.at_least(distance)];
                assert_eq!(times, [plain.time(distance); 2], "{config:?} {distance}");
            }
        }
    }

    #[test]
    fn a_curve_that_falls_is_refused() {
        let falling = SeekConfig::Points {
            points: vec![(1, 2.0), (5, 1.0)],
            falls_allowed: false,
        };
        assert_eq!(SeekTable::new(&falling, 10).unwrap_err().key, "points");
        let gap = SeekConfig::TwoPiece {
            a_ms: 3.0,
            b_ms: 1.0,
            c_ms: 1.0,
            e_ms: 0.01,
            crossover: 50,
        };
        assert!(
            SeekTable::new(&gap, 100)
                .unwrap_err()
                .message
                .contains("not monotone")
        );
        let concave = SeekConfig::Datasheet {
            track_to_track_ms: 0.5,
            average_ms: 9.9,
            full_stroke_ms: 10.0,
        };
        assert!(
            SeekTable::new(&concave, 1000)
                .unwrap_err()
                .message
                .contains("not monotone")
        );
    }
}
