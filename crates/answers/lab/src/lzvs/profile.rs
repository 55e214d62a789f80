//! Measures within minutes how the transfer rate of a disk falls from the first address to the
//! last.
//!
//! [`survey`](crate::lzvs::survey) needs 15,360 reads of half a second or more. Here one long read
//! gives one rate. The read continues where a short read has just ended. The arm is already in
//! place, so no averaging over trials has to cancel out seek and rotation. Rates are measured in
//! three steps:
//!
//! 1. at a few spots of both edges, outside and inside in turn: their ratio;
//! 2. at [`POINTS`] addresses, once forward and once backward. The faster read of both counts,
//!    because any disturbance makes a read slower. The jumps of the rate (`jumps.rs`) give the
//!    zones;
//! 3. between two addresses with a jump, by bisection: the boundary.

use crate::lzvs::survey::{simplest_fraction, student};
use crate::lzvs::sweep::{mean, std_dev};
use crate::lzvs::{LzvsError, TimedReads, jumps};
use fullstroke_contract::Extent;
use fullstroke_contract::registry::Keys;
use fullstroke_units::{Duration, SECTOR_BYTES, Sectors};
use fullstroke_volume::{MemberZone, Ratio};
use serde::Serialize;
use serde_json::json;

/// Number of addresses at which the rate is measured before the search for zones.
const POINTS: u64 = 128;

/// Least duration of a read at the outer edge. The read lasts about twenty revolutions, so one skew
/// more or less hardly changes the rate.
const LONG_ENOUGH: Duration = Duration::from_millis(200);

/// Number of spots of an edge. The spots lie within the first or last 1/[`EDGE`] of the disk.
const SPOTS: u64 = 16;
const EDGE: u64 = 200;

/// Length in sectors of the short read before each long read. The short read moves the arm into
/// place.
const LEAD: u64 = 128;

/// Bounds of the length of the long reads, in sectors.
const LONG_LEAST: u64 = (512 << 10) / SECTOR_BYTES;
const LONG_MOST: u64 = (128 << 20) / SECTOR_BYTES;

/// Boundaries are located to within 1/4096 of the disk, or to the length of a read if that is
/// larger.
const GRAIN: u64 = 4096;

/// Largest number of reads at one address. A rate far from the rates of both sides of a boundary is
/// measured again.
const LOOKS: u32 = 3;

/// Smallest relative half width of the ratio's interval, because the rates of an edge depend on the
/// tracks that are read.
const RATIO_UNSURE: f64 = 0.002;

/// Least number of logical zones of a layout. Where surfaces differ, several zones look like one,
/// and too few zones lower the guaranteed rate more than too many.
const ZONES_LEAST: usize = 24;

/// Smallest usable ratio of a layout.
const RATIO_MIN: f64 = 1.05;

/// Result of the measurement.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RateProfile {
    /// The simplest fraction within the interval below.
    pub ratio: Ratio,
    /// Outer over inner rate, the mean of all spots.
    pub ratio_mean: f64,
    /// 95 % interval of the mean, by Student's t.
    pub ratio_interval: (f64, f64),
    /// Ranges of constant rate. All ranges together cover all addresses.
    pub zones: Vec<MemberZone>,
    /// Relative scatter of neighbouring rates within one zone.
    pub scatter: f64,
    /// The length of a read.
    pub read_sectors: Sectors,
    /// Number of reads.
    pub reads: u32,
    /// Total duration of all reads, in seconds.
    pub seconds: f64,
}

/// Measures a disk. `watch` is called with the number of finished reads and an estimate of their
/// total.
///
/// # Errors
/// A read fails, the disk is too small, or the rates do not fall from the first address to the last
/// as those of a disk with zones.
pub fn profile(
    target: &mut dyn TimedReads,
    watch: &mut dyn FnMut(u32, u32),
) -> Result<RateProfile, LzvsError> {
    let mut reads = RateReads {
        target,
        watch,
        long: 0,
        overhead_s: 0.0,
        count: 0,
        about: 0,
        seconds: 0.0,
    };
    reads.fit()?;
    let ratios = reads.edges()?;
    let (ratio_mean, spread) = (
        mean(&ratios),
        std_dev(&ratios) / (ratios.len() as f64).sqrt(),
    );
    let half_width = (spread * student(SPOTS as u32 - 1)).max(RATIO_UNSURE * ratio_mean);
    let ratio_interval = (ratio_mean - half_width, ratio_mean + half_width);
    let curve = reads.curve()?;
    let scatter = jumps::scatter(&curve).sqrt();
    let ratio = simplest_fraction(ratio_interval.0, ratio_interval.1)
        .and_then(|(outer, inner)| Ratio::new(outer, inner).ok())
        .filter(|_| ratio_interval.0 > RATIO_MIN && falls(&curve, scatter))
        .ok_or_else(|| LzvsError::NoSlope {
            quarters_mb_per_s: quarters(&curve).map(|rate| rate / 1e6),
            ratio: ratio_mean,
            ratio_interval,
        })?;
    let zones = reads.zones(&curve)?;
    Ok(RateProfile {
        ratio,
        ratio_mean,
        ratio_interval,
        zones,
        scatter: scatter / mean(&curve),
        read_sectors: Sectors(reads.long),
        reads: reads.count,
        seconds: reads.seconds,
    })
}

/// Returns the median of each quarter of a curve.
fn quarters(curve: &[f64]) -> [f64; 4] {
    let quarter = curve.len() / 4;
    [0, 1, 2, 3].map(|index: usize| median(&curve[index * quarter..(index + 1) * quarter]))
}

/// Returns true if the rates fall by more than chance: no quarter is faster than the quarter before
/// it, and the last quarter is slower than the first.
fn falls(curve: &[f64], scatter: f64) -> bool {
    let quarters = quarters(curve);
    // Each quarter may exceed the one before by the scatter, which is chance.
    quarters.is_sorted_by(|before, after| before + scatter >= *after)
        && quarters[0] - quarters[3] > 2.0 * scatter
}

/// Returns the first point and the rate of each piece of constant rate. A point that was disturbed
/// in both reads may look like a jump. The rates on both sides are then equal, and the pieces are
/// joined.
fn pieces(curve: &[f64]) -> Vec<(usize, f64)> {
    let found = jumps::of(&[curve.to_vec()]);
    let mut pieces: Vec<(usize, f64)> = Vec::new();
    for (index, start) in std::iter::once(0).chain(found.iter().copied()).enumerate() {
        let end = found.get(index).copied().unwrap_or(curve.len());
        // The first point of a piece may contain sectors of the piece before.
        let rate = median(&curve[start + usize::from(start > 0)..end]);
        let same = |&(_, before): &(usize, f64)| (rate / before - 1.0).abs() < jumps::SHARE_MIN;
        if !pieces.last().is_some_and(same) {
            pieces.push((start, rate));
        }
    }
    pieces
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

/// Reads for rates.
struct RateReads<'a> {
    target: &'a mut dyn TimedReads,
    watch: &'a mut dyn FnMut(u32, u32),
    /// The length of a read, in sectors.
    long: u64,
    /// Duration of a read without the transfer, in seconds.
    overhead_s: f64,
    count: u32,
    about: u32,
    seconds: f64,
}

impl RateReads<'_> {
    fn capacity(&self) -> u64 {
        self.target.capacity().0
    }

    /// Returns the duration, in seconds, of a read of `sectors` right after a short read.
    fn timed(&mut self, start: u64, sectors: u64) -> Result<f64, LzvsError> {
        let lead = self.target.read(Extent::new(start, LEAD))?.as_secs_f64();
        let took = self
            .target
            .read(Extent::new(start + LEAD, sectors))?
            .as_secs_f64();
        self.count += 1;
        self.seconds += lead + took;
        (self.watch)(self.count, self.about.max(self.count));
        Ok(took)
    }

    /// Returns the rate from `start` on, in bytes per second.
    fn rate_at(&mut self, start: u64) -> Result<f64, LzvsError> {
        let took = self.timed(start, self.long)?;
        Ok((self.long * SECTOR_BYTES) as f64 / (took - self.overhead_s).max(1e-9))
    }

    /// Finds the length of the long reads.
    fn fit(&mut self) -> Result<(), LzvsError> {
        // A read covers at most half of the distance between two points.
        let most = (self.capacity() / (2 * POINTS)).min(LONG_MOST);
        if most < LONG_LEAST {
            return Err(LzvsError::TooSmall {
                capacity: self.target.capacity(),
            });
        }
        self.about = 2 * POINTS as u32 + 4 * SPOTS as u32;
        self.long = LONG_LEAST;
        let mut start = 0;
        while self.timed(start, self.long)? < LONG_ENOUGH.as_secs_f64() && 2 * self.long <= most {
            start += LEAD + self.long;
            self.long *= 2;
        }
        Ok(())
    }

    /// Returns the ratio of outer to inner rate at each spot. A short read after each outer read
    /// also gives the duration of a read without the transfer.
    fn edges(&mut self) -> Result<Vec<f64>, LzvsError> {
        let (long, short) = (self.long, self.long / 8);
        let apart = (self.capacity() / EDGE / SPOTS).max(2 * LEAD + long + short);
        let mut took = Vec::new();
        let mut overheads = Vec::new();
        for spot in 0..SPOTS {
            let outer = self.timed(spot * apart, long)?;
            let brief = self.timed(spot * apart + LEAD + long, short)?;
            let inner = self.timed(self.capacity() - spot * apart - LEAD - long, long)?;
            overheads.push(brief - (outer - brief) * short as f64 / (long - short) as f64);
            took.push((outer, inner));
        }
        // A median, because a disturbed read gives a wild overhead. A negative overhead is noise.
        self.overhead_s = median(&overheads).max(0.0);
        let transfer = |took: f64| (took - self.overhead_s).max(1e-9);
        Ok(took
            .into_iter()
            .map(|(outer, inner)| transfer(inner) / transfer(outer))
            .collect())
    }

    fn point(&self, point: u64) -> u64 {
        let last = self.capacity() - LEAD - self.long;
        (u128::from(last) * u128::from(point) / u128::from(POINTS - 1)) as u64
    }

    /// Returns the rate at each point.
    fn curve(&mut self) -> Result<Vec<f64>, LzvsError> {
        let mut curve = Vec::with_capacity(POINTS as usize);
        for point in 0..POINTS {
            curve.push(self.rate_at(self.point(point))?);
        }
        // The backward pass skips the last point, because the drive's buffer still holds its data.
        for point in (0..POINTS - 1).rev() {
            let rate = self.rate_at(self.point(point))?;
            curve[point as usize] = rate.max(curve[point as usize]);
        }
        Ok(curve)
    }

    /// Returns the pieces of constant rate of a curve.
    fn zones(&mut self, curve: &[f64]) -> Result<Vec<MemberZone>, LzvsError> {
        let pieces = pieces(curve);
        let (found, rates): (Vec<usize>, Vec<f64>) = pieces.into_iter().unzip();
        let found = &found[1..];
        let steps = (self.capacity() / POINTS * GRAIN / self.capacity().max(1))
            .max(2)
            .ilog2();
        self.about = self.count + found.len() as u32 * steps;
        let mut firsts = vec![0];
        for (&jump, rates) in found.iter().zip(rates.windows(2)) {
            // The first point of a piece may lie across the boundary, so the search interval
            // includes the next point.
            let behind = (jump + 1).min(curve.len() - 1);
            let between = (
                self.point(jump as u64 - 1),
                self.point(behind as u64) + self.long,
            );
            firsts.push(self.boundary(between, (rates[0], rates[1]))?);
        }
        let ends = firsts.iter().copied().skip(1).chain([self.capacity()]);
        let zone = |((&first, end), &rate): ((&u64, u64), &f64)| MemberZone {
            sectors: Sectors(end - first),
            bytes_per_s: rate as u64,
        };
        Ok(firsts.iter().zip(ends).zip(&rates).map(zone).collect())
    }

    /// Returns the address between two addresses where the rate changes from the first rate to the
    /// second.
    fn boundary(&mut self, between: (u64, u64), rates: (f64, f64)) -> Result<u64, LzvsError> {
        let (mut low, mut high) = between;
        // A boundary cannot be located better than the read that measures the rate is long.
        let grain = (self.capacity() / GRAIN).max(self.long);
        let (middle, apart) = ((rates.0 + rates.1) / 2.0, (rates.0 - rates.1).abs());
        while high - low > grain {
            let at = low + (high - low) / 2;
            let start = at.saturating_sub(LEAD + self.long / 2);
            let mut rate = 0.0_f64;
            for _ in 0..LOOKS {
                // The largest of several rates: disturbances only make a read slower.
                rate = rate.max(self.rate_at(start)?);
                if (rate - middle).abs() < apart {
                    break;
                }
            }
            if (rate > middle) == (rates.0 > middle) {
                low = at
            } else {
                high = at
            }
        }
        Ok(low + (high - low) / 2)
    }
}

/// Returns the keys of a layout over members with these profiles; `None` if no key of the layout
/// can be measured.
///
/// `lzvs` has one ratio for both members. At the first address of the volume the outside of one
/// member meets the inside of the other; at the last address the reverse. The product of the best
/// ratios of both ends is the product of the members' ratios, so the layout gets their geometric
/// mean. The number of zones is that of the member with the most zones, and at least 24.
pub fn measured_keys(layout: &str, profiles: &[RateProfile]) -> Option<Keys> {
    let keys = match layout {
        "lzvs" => {
            let count = profiles.len().max(1) as f64;
            let log_mean = |of: fn(&RateProfile) -> f64| {
                (profiles.iter().map(|one| of(one).ln()).sum::<f64>() / count).exp()
            };
            let (low, high) = (
                log_mean(|one| one.ratio_interval.0),
                log_mean(|one| one.ratio_interval.1),
            );
            let (outer, inner) = simplest_fraction(low, high)?;
            let zones = profiles.iter().map(|one| one.zones.len()).max()?;
            json!({ "ratio": format!("{outer}/{inner}"), "zones": zones.next_multiple_of(2).max(ZONES_LEAST) })
        }
        "lzvs-geo" => {
            json!({ "member_zones": profiles.iter().map(|one| &one.zones).collect::<Vec<_>>() })
        }
        _ => return None,
    };
    keys.as_object().cloned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_units::{Random, Seed};

    const CAPACITY: u64 = 400_000_000;
    const OVERHEAD_S: f64 = 0.003;

    /// A disk whose zones have these shares of the capacity and these rates. Each read takes a
    /// little longer by chance. Some reads take much longer because a disturbance intervenes.
    struct ZonedDisk {
        zones: Vec<(f64, f64)>,
        random: Random,
    }

    impl ZonedDisk {
        fn new(zones: &[(f64, f64)], seed: u64) -> ZonedDisk {
            ZonedDisk {
                zones: zones.to_vec(),
                random: Seed(seed).stream("disturbances"),
            }
        }
    }

    impl TimedReads for ZonedDisk {
        fn capacity(&self) -> Sectors {
            Sectors(CAPACITY)
        }
        fn read(&mut self, extent: Extent) -> Result<Duration, LzvsError> {
            assert!(extent.end().0 <= CAPACITY, "{extent:?}");
            let mut seconds = OVERHEAD_S + self.random.unit() * 0.0005;
            let mut end = 0.0;
            for &(part, rate) in &self.zones {
                let begin = end;
                end += part * CAPACITY as f64;
                let within = (extent.end().0 as f64).min(end) - (extent.start.0 as f64).max(begin);
                seconds += within.max(0.0) * 512.0 / rate;
            }
            let disturbed = self.random.below(40) == 0;
            Ok(Duration::from_secs_f64(if disturbed {
                1.5 * seconds
            } else {
                seconds
            }))
        }
    }

    #[test]
    fn zones_are_found_where_they_are_although_reads_are_disturbed() {
        let zones = [
            (0.13, 120e6),
            (0.3, 112e6),
            (0.07, 101e6),
            (0.25, 90e6),
            (0.25, 70e6),
        ];
        for seed in 0..4 {
            let (mut seen, mut of) = (0, 0);
            let found = profile(&mut ZonedDisk::new(&zones, seed), &mut |done, about| {
                (seen, of) = (done, about)
            });
            let found = found.unwrap();
            assert!(
                (found.ratio_mean / (120.0 / 70.0) - 1.0).abs() < 0.03,
                "{found:?}"
            );
            assert_eq!(
                found.zones.iter().map(|zone| zone.sectors.0).sum::<u64>(),
                CAPACITY
            );
            assert_eq!(found.zones.len(), zones.len(), "{found:?}");
            for (zone, (part, rate)) in found.zones.iter().zip(zones) {
                assert!(
                    (zone.sectors.0 as f64 / CAPACITY as f64 - part).abs() < 0.004,
                    "{found:?}"
                );
                assert!(
                    (zone.bytes_per_s as f64 / rate - 1.0).abs() < 0.005,
                    "{found:?}"
                );
            }
            assert!(seen == found.reads && of >= seen, "{seen} of {of}");
            assert!(found.seconds < 300.0, "{found:?}");
        }
    }

    #[test]
    fn rates_that_do_not_fall_are_refused_with_what_was_seen() {
        // A solid-state disk; two arms, each over its own zones; and a disk whose rates rise.
        let arms = [(0.25, 120e6), (0.25, 80e6), (0.25, 120e6), (0.25, 80e6)];
        for zones in [&[(1.0, 500e6)][..], &arms, &[(0.5, 80e6), (0.5, 120e6)]] {
            for seed in 0..4 {
                let error = profile(&mut ZonedDisk::new(zones, seed), &mut |_, _| {}).unwrap_err();
                assert!(matches!(error, LzvsError::NoSlope { .. }), "{error}");
                assert!(
                    error.to_string().contains("MB/s in the quarters"),
                    "{error}"
                );
            }
        }
    }

    #[test]
    fn members_that_differ_have_the_geometric_mean_of_their_ratios_and_zones_of_their_own() {
        let of = |outer: f64| {
            let zones = [(0.4, outer), (0.6, 50e6)];
            profile(&mut ZonedDisk::new(&zones, 1), &mut |_, _| {}).unwrap()
        };
        let (one, other) = (of(100e6), of(72e6));
        let keys = measured_keys("lzvs", &[one.clone(), other.clone()]).unwrap();
        let ratio: Ratio = keys["ratio"].as_str().unwrap().parse().unwrap();
        let ratio = f64::from(ratio.outer()) / f64::from(ratio.inner());
        assert!((ratio / 2.88_f64.sqrt() - 1.0).abs() < 0.03, "{keys:?}");
        assert_eq!(keys["zones"], ZONES_LEAST);
        let keys = measured_keys("lzvs-geo", &[one, other]).unwrap();
        assert_eq!(keys["member_zones"].as_array().unwrap().len(), 2);
        assert_eq!(measured_keys("raid0", &[]), None);
    }
}
