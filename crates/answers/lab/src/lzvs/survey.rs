//! Measures a disk for a volume of constant transfer rate, with timed reads: the ratio of the outer
//! to the inner transfer rate, and the number of zones. Lloyd's `getQosParams` measured the ratio
//! (section 3.6). The zones follow from the discrete jumps of the read time, which Lloyd proposed
//! (chapter 4).
//!
//! The rate at an address is the number of sectors by which a long read exceeds a short read from
//! the same address, divided by the difference of their durations. Command overhead, seek and, on
//! average, rotation cancel out.

use crate::lzvs::sweep::{mean, std_dev};
use crate::lzvs::{LzvsError, TimedReads, jumps};
use fullstroke_contract::Extent;
use fullstroke_units::{Duration, Lbn, SECTOR_BYTES, Sectors};
use fullstroke_volume::Ratio;
use serde::Serialize;
use statrs::distribution::{ContinuousCDF as _, StudentsT};

/// Number of measurements at each address; Lloyd's number.
pub const TRIALS: u32 = 30;

/// Number of addresses at which the rate is measured. A zone is not seen if it is narrower than a
/// few distances between these addresses.
pub const POINTS: u32 = 512;

/// Least time by which the long read exceeds the short read at the outer edge: tens of revolutions.
const LONG_ENOUGH: Duration = Duration::from_millis(400);

/// Number of groups of trials. The zones of each group are counted separately for their range.
const GROUPS: u32 = 5;

/// Result of the measurement.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Survey {
    /// Number of measurements at each address.
    pub trials: u32,
    /// The simplest fraction within the interval below.
    pub ratio: Ratio,
    /// Outer over inner rate, the mean of all trials.
    pub ratio_mean: f64,
    /// 95 % interval of the mean, by Student's t.
    pub ratio_interval: (f64, f64),
    /// Number of zones: one more than the jumps of the rate.
    pub zones: u32,
    /// Smallest and largest number of zones in fifths of the trials.
    pub zones_range: (u32, u32),
    /// First measured address after each jump.
    pub jumps: Vec<Lbn>,
    /// Number of sectors by which the long read exceeds the short read.
    pub read_sectors: Sectors,
}

/// Measures a disk.
///
/// # Errors
/// A read fails, the disk is too small, or the outer rate is not above the inner rate.
pub fn survey(target: &mut dyn TimedReads, trials: u32) -> Result<Survey, LzvsError> {
    // A standard deviation needs two trials.
    let trials = trials.max(2);
    let reads = ReadLengths::fitting(target)?;
    let last = target.capacity().0 - reads.long;
    let mut ratios = Vec::with_capacity(trials as usize);
    for _ in 0..trials {
        let outer = reads.rate_at(target, 0)?;
        ratios.push(outer / reads.rate_at(target, last)?);
    }
    let (ratio_mean, spread) = (mean(&ratios), std_dev(&ratios) / f64::from(trials).sqrt());
    let half_width = spread * student(trials - 1);
    let ratio_interval = (ratio_mean - half_width, ratio_mean + half_width);
    let ratio = simplest_fraction(ratio_interval.0, ratio_interval.1)
        .and_then(|(outer, inner)| Ratio::new(outer, inner).ok())
        // Only an outer edge that is faster for certain makes a layout.
        .filter(|_| ratio_interval.0 > 1.0)
        .ok_or(LzvsError::NotFaster { ratio: ratio_mean })?;

    let address =
        |point: u32| (u128::from(last) * u128::from(point) / u128::from(POINTS - 1)) as u64;
    let mut rates = vec![Vec::with_capacity(POINTS as usize); trials as usize];
    for trial in &mut rates {
        for point in 0..POINTS {
            trial.push(reads.rate_at(target, address(point))?);
        }
    }
    let found = jumps::of(&rates);
    let group = (trials as usize).div_ceil(GROUPS as usize).max(2);
    let counts: Vec<u32> = rates
        .chunks(group)
        .map(|trials| jumps::of(trials).len() as u32 + 1)
        .collect();
    let range = counts
        .iter()
        .fold((u32::MAX, 0), |(low, high), &n| (low.min(n), high.max(n)));
    Ok(Survey {
        trials,
        ratio,
        ratio_mean,
        ratio_interval,
        zones: found.len() as u32 + 1,
        zones_range: range,
        jumps: found
            .iter()
            .map(|&point| Lbn(address(point as u32)))
            .collect(),
        read_sectors: Sectors(reads.long - reads.short),
    })
}

/// Lengths of both reads, in sectors.
struct ReadLengths {
    short: u64,
    long: u64,
}

impl ReadLengths {
    /// Finds reads of sufficient duration, up to an eighth of the target.
    fn fitting(target: &mut dyn TimedReads) -> Result<ReadLengths, LzvsError> {
        let capacity = target.capacity();
        let mut long = 2048;
        while long <= capacity.0 / 8 {
            let short = long / 8;
            let took = target.read(Extent::new(0, long))?;
            if took.as_millis_f64() - target.read(Extent::new(0, short))?.as_millis_f64()
                >= LONG_ENOUGH.as_millis_f64()
            {
                return Ok(ReadLengths { short, long });
            }
            long *= 2;
        }
        Err(LzvsError::TooSmall { capacity })
    }

    /// Returns the rate from `start` on, in bytes per second. Each timed read follows a short read
    /// from the same address, so that arm and buffer are in the same state.
    fn rate_at(&self, target: &mut dyn TimedReads, start: u64) -> Result<f64, LzvsError> {
        let mut timed = |sectors: u64| -> Result<f64, LzvsError> {
            target.read(Extent::new(start, self.short))?;
            Ok(target.read(Extent::new(start, sectors))?.as_secs_f64())
        };
        let (long, short) = (timed(self.long)?, timed(self.short)?);
        Ok(((self.long - self.short) * SECTOR_BYTES) as f64 / (long - short).max(1e-9))
    }
}

/// Returns the two-sided 95 % point of Student's distribution.
pub(crate) fn student(freedom: u32) -> f64 {
    // One degree of freedom at least, because Student's distribution has none below.
    StudentsT::new(0.0, 1.0, f64::from(freedom.max(1)))
        .map_or(f64::INFINITY, |t| t.inverse_cdf(0.975))
}

/// Returns the fraction with the smallest denominator within an interval (the result of a search in
/// the Stern-Brocot tree). `None` if all denominators up to 1000 fail.
pub(crate) fn simplest_fraction(low: f64, high: f64) -> Option<(u32, u32)> {
    (1..=1000u32).find_map(|denominator| {
        let numerator = (low * f64::from(denominator)).ceil();
        let fits = numerator <= high * f64::from(denominator) && numerator <= f64::from(u32::MAX);
        (low.is_finite() && low > 0.0 && fits).then_some((numerator as u32, denominator))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_simplest_fraction_of_an_interval_is_found() {
        assert_eq!(simplest_fraction(1.57, 1.59), Some((11, 7)));
        assert_eq!(simplest_fraction(1.9, 2.1), Some((2, 1)));
        assert_eq!(simplest_fraction(2.1621, 2.1622), Some((80, 37)));
        assert_eq!(simplest_fraction(f64::NAN, 1.0), None);
    }

    /// A disk of equal zones whose reads take a random latency and the transfer time.
    struct Zoned {
        rates: Vec<f64>,
        random: fullstroke_units::Random,
    }

    const CAPACITY: u64 = 40_000_000;

    impl TimedReads for Zoned {
        fn capacity(&self) -> Sectors {
            Sectors(CAPACITY)
        }
        fn read(&mut self, extent: Extent) -> Result<Duration, LzvsError> {
            let zone = CAPACITY / self.rates.len() as u64;
            let (mut at, mut seconds) = (extent.start.0, 0.002 + self.random.unit() * 0.008);
            while at < extent.end().0 {
                let index = (at / zone).min(self.rates.len() as u64 - 1);
                let end = if index + 1 < self.rates.len() as u64 {
                    (index + 1) * zone
                } else {
                    CAPACITY
                };
                let stop = end.min(extent.end().0);
                seconds += (stop - at) as f64 * 512.0 / self.rates[index as usize];
                at = stop;
            }
            Ok(Duration::from_secs_f64(seconds))
        }
    }

    #[test]
    fn ratio_and_zones_of_a_known_disk_are_found() {
        for zones in [1u32, 5, 12] {
            let rates = (0..zones)
                .map(|zone| 40e6 * (1.0 - 0.04 * f64::from(zone)))
                .collect::<Vec<_>>();
            let expected = rates[0] / rates[zones as usize - 1];
            let mut disk = Zoned {
                rates,
                random: fullstroke_units::Seed(7).stream("latency"),
            };
            match survey(&mut disk, TRIALS) {
                Ok(found) => {
                    assert_eq!(found.zones, zones);
                    assert!((found.ratio_mean - expected).abs() < 0.01, "{found:?}");
                    let (low, high) = found.ratio_interval;
                    assert!(low < found.ratio_mean && found.ratio_mean < high && high - low < 0.05);
                }
                Err(error) => {
                    assert_eq!(zones, 1, "{error}");
                    assert!(matches!(error, LzvsError::NotFaster { .. }), "{error}");
                }
            }
        }
    }
}
