//! How the transfer rate of a disk falls from its first address to its last,
//! in minutes.
//!
//! [`survey`](crate::lzvs::survey) reads 15,360 times for half a second and more. Here
//! a rate is that of one read which goes on where a short one has just ended: the
//! arm is there, so that neither seek nor rotation has to cancel out over many
//! trials. Rates are taken in three steps:
//!
//! 1. at a few spots of both edges, outside and inside in turn: their ratio;
//! 2. at [`POINTS`] addresses, once forward and once backward, the faster of both
//!    counting, since whatever comes between makes a read slower: the zones, by
//!    the jumps of the rate (`jumps.rs`);
//! 3. between two addresses with a jump, by halves: where it is.

use crate::lzvs::survey::{simplest_fraction, student};
use crate::lzvs::sweep::{mean, std_dev};
use crate::lzvs::{LzvsError, TimedReads, jumps};
use fullstroke_contract::Extent;
use fullstroke_contract::registry::Keys;
use fullstroke_units::{Duration, SECTOR_BYTES, Sectors};
use fullstroke_volume::{MemberZone, Ratio};
use serde::Serialize;
use serde_json::json;

/// Addresses at which the rate is measured before zones are looked for.
const POINTS: u64 = 128;

/// How long a read takes at the outer edge at least: some twenty revolutions, so
/// that a skew more or less within it hardly counts.
const LONG_ENOUGH: Duration = Duration::from_millis(200);

/// Spots of an edge, within its [`EDGE`]th part of the disk.
const SPOTS: u64 = 16;
const EDGE: u64 = 200;

/// The read that takes the arm there.
const LEAD: u64 = 128;

/// Reads are no shorter, and no longer.
const LONG_LEAST: u64 = (512 << 10) / SECTOR_BYTES;
const LONG_MOST: u64 = (128 << 20) / SECTOR_BYTES;

/// Boundaries are found to within this part of the disk, if reads are not longer.
const GRAIN: u64 = 4096;

/// How often a rate that is of neither side of a boundary is measured again.
const LOOKS: u32 = 3;

/// The ratio is not known any better than this: the rates of an edge depend on
/// which of its tracks are read.
const RATIO_UNSURE: f64 = 0.002;

/// Logical zones of a layout: where surfaces differ, several zones look like one, and
/// too few cost more of the floor than too many.
const ZONES_LEAST: usize = 24;

/// A ratio below this is none that a layout could use.
const RATIO_MIN: f64 = 1.05;

/// What was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Profile {
    /// The simplest fraction within the interval below.
    pub ratio: Ratio,
    /// Outer over inner rate, the mean of all spots.
    pub ratio_mean: f64,
    /// 95 % interval of the mean, by Student's t.
    pub ratio_interval: (f64, f64),
    /// Stretches of one rate, which cover all addresses.
    pub zones: Vec<MemberZone>,
    /// By how much neighbouring rates differ that are not told apart, as a share.
    pub scatter: f64,
    /// The length of a read.
    pub read_sectors: Sectors,
    /// How many there were.
    pub reads: u32,
    /// How long all reads took.
    pub seconds: f64,
}

/// Measures a disk, and tells `watch` how far it is: reads done, and how many there
/// will be about.
///
/// # Errors
/// A read fails, the disk is too small, or its rates do not fall from the first
/// address to the last as a disk's do.
pub fn profile(
    target: &mut dyn TimedReads,
    watch: &mut dyn FnMut(u32, u32),
) -> Result<Profile, LzvsError> {
    let mut reads = Reads {
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
    Ok(Profile {
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

/// The medians of the quarters of a curve.
fn quarters(curve: &[f64]) -> [f64; 4] {
    let quarter = curve.len() / 4;
    [0, 1, 2, 3].map(|index: usize| median(&curve[index * quarter..(index + 1) * quarter]))
}

/// Whether no quarter is faster than the one before it, and the last slower than the
/// first, by more than chance gives.
fn falls(curve: &[f64], scatter: f64) -> bool {
    let quarters = quarters(curve);
    quarters.is_sorted_by(|before, after| before + scatter >= *after)
        && quarters[0] - quarters[3] > 2.0 * scatter
}

/// The first point of each piece of one rate, and that rate. A point that was disturbed
/// both times may look like a jump; then the rates on both sides are the same.
fn pieces(curve: &[f64]) -> Vec<(usize, f64)> {
    let found = jumps::of(&[curve.to_vec()]);
    let mut pieces: Vec<(usize, f64)> = Vec::new();
    for (index, start) in std::iter::once(0).chain(found.iter().copied()).enumerate() {
        let end = found.get(index).copied().unwrap_or(curve.len());
        // The first point of a piece may have something of the one before.
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

/// Reads that tell rates.
struct Reads<'a> {
    target: &'a mut dyn TimedReads,
    watch: &'a mut dyn FnMut(u32, u32),
    /// The length of a read, in sectors.
    long: u64,
    /// What a read takes that is no transfer.
    overhead_s: f64,
    count: u32,
    about: u32,
    seconds: f64,
}

impl Reads<'_> {
    fn capacity(&self) -> u64 {
        self.target.capacity().0
    }

    /// How long a read of `sectors` takes that goes on behind a short one.
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

    /// Bytes a second from `start` on.
    fn rate_at(&mut self, start: u64) -> Result<f64, LzvsError> {
        let took = self.timed(start, self.long)?;
        Ok((self.long * SECTOR_BYTES) as f64 / (took - self.overhead_s).max(1e-9))
    }

    /// Finds how long reads have to be.
    fn fit(&mut self) -> Result<(), LzvsError> {
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

    /// Outer over inner rate at each spot, and what a read takes that is no
    /// transfer, from a short read behind each outer one.
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

    /// The rate at each point.
    fn curve(&mut self) -> Result<Vec<f64>, LzvsError> {
        let mut curve = Vec::with_capacity(POINTS as usize);
        for point in 0..POINTS {
            curve.push(self.rate_at(self.point(point))?);
        }
        // The last is still in the buffer.
        for point in (0..POINTS - 1).rev() {
            let rate = self.rate_at(self.point(point))?;
            curve[point as usize] = rate.max(curve[point as usize]);
        }
        Ok(curve)
    }

    /// The pieces of one rate that a curve has.
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
            // The first point of a piece may count for neither, and be the last of the one before.
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

    /// Where between two addresses the one rate becomes the other.
    fn boundary(&mut self, between: (u64, u64), rates: (f64, f64)) -> Result<u64, LzvsError> {
        let (mut low, mut high) = between;
        let grain = (self.capacity() / GRAIN).max(self.long);
        let (middle, apart) = ((rates.0 + rates.1) / 2.0, (rates.0 - rates.1).abs());
        while high - low > grain {
            let at = low + (high - low) / 2;
            let start = at.saturating_sub(LEAD + self.long / 2);
            let mut rate = 0.0_f64;
            for _ in 0..LOOKS {
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

/// The keys of a layout over members with these profiles; `None` if it has none
/// that can be measured.
///
/// `lzvs` has one ratio. At its first address the outside of one member and the
/// inside of the other meet, at its last the reverse, and the product of what would
/// be best there is the product of the members' ratios: it gets their geometric
/// mean. It has as many zones as the member that has the most, and no fewer than 24.
pub fn measured_keys(layout: &str, profiles: &[Profile]) -> Option<Keys> {
    let keys = match layout {
        "lzvs" => {
            let count = profiles.len().max(1) as f64;
            let log_mean = |of: fn(&Profile) -> f64| {
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

    /// A disk of zones of these parts and rates. Reads take a little longer by chance,
    /// and some much longer, since something came between.
    struct Disk {
        zones: Vec<(f64, f64)>,
        random: Random,
    }

    impl Disk {
        fn new(zones: &[(f64, f64)], seed: u64) -> Disk {
            Disk {
                zones: zones.to_vec(),
                random: Seed(seed).stream("disturbances"),
            }
        }
    }

    impl TimedReads for Disk {
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
            let found = profile(&mut Disk::new(&zones, seed), &mut |done, about| {
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
        // Solid state; two arms, each of which goes through its zones; the wrong way round.
        let arms = [(0.25, 120e6), (0.25, 80e6), (0.25, 120e6), (0.25, 80e6)];
        for zones in [&[(1.0, 500e6)][..], &arms, &[(0.5, 80e6), (0.5, 120e6)]] {
            for seed in 0..4 {
                let error = profile(&mut Disk::new(zones, seed), &mut |_, _| {}).unwrap_err();
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
            profile(&mut Disk::new(&zones, 1), &mut |_, _| {}).unwrap()
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
