//! Mean and second moment of the time of one access, from the drive's geometry and seek curve. The
//! moments are exact for independent requests, uniform within each part of the volume.

use super::load::PLACES;
use super::moments::Moments;
use fullstroke_contract::TrackTable as _;
use fullstroke_drive::{DriveModel, Geometry, Mechanics};
use fullstroke_units::Lbn;

/// Model of a drive. Its tables are computed once.
#[derive(Clone, Debug)]
pub struct ArmModel {
    /// Cylinders of each part of the addresses, cut at zones.
    boxes: Vec<CylinderPiece>,
    /// Seeks between each pair of `boxes`, row by row: the first with itself, the second with the
    /// first and itself, and so on.
    seeks: Vec<Moments>,
    revolution_s: f64,
    write_settle_s: f64,
    zero_latency: [bool; 2],
}

/// Consecutive cylinders with a piece of a part of the addresses.
#[derive(Clone, Copy, Debug)]
struct CylinderPiece {
    part: usize,
    /// Share of the part's addresses.
    share: f64,
    /// First cylinder, and the cylinder behind the last.
    from: u64,
    to: u64,
    /// Part of a revolution for one sector, skews included.
    sector: f64,
}

/// An access by phases, which are independent of each other.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PhasedAccess {
    /// Movement of the arm.
    pub seek: Moments,
    /// Rotational latency: the wait for the first sector.
    pub rotation: Moments,
    /// Transfer of the sectors.
    pub transfer: Moments,
}

impl PhasedAccess {
    /// Returns seek plus rotation, the part shortened by a choice in the queue.
    pub fn positioning(&self) -> Moments {
        self.seek.plus(self.rotation)
    }
}

impl ArmModel {
    /// Computes the tables of a drive whose first `used` sectors are used. For a drive with several
    /// arms, the tables describe one arm.
    pub fn new(model: &DriveModel, used: u64) -> ArmModel {
        let (mechanics, config) = (model.mechanics(), model.config());
        let geometry = mechanics.geometry();
        let boxes = boxes(geometry, used.clamp(1, geometry.capacity().0));
        let curve = Curve::new(mechanics, config.head_switch_ms / 1000.0);
        let pairs = boxes
            .iter()
            .enumerate()
            .flat_map(|(one, from)| boxes[..=one].iter().map(move |to| (from, to)));
        ArmModel {
            seeks: pairs.map(|(from, to)| curve.between(from, to)).collect(),
            boxes,
            revolution_s: 60.0 / config.rpm,
            write_settle_s: config.write_settle_ms / 1000.0,
            zero_latency: [config.zero_latency.reads(), config.zero_latency.writes()],
        }
    }

    /// Returns the time of one revolution in seconds.
    pub fn revolution_s(&self) -> f64 {
        self.revolution_s
    }

    /// Returns an access of `sectors` sectors to a place of the distribution `places`, from the end
    /// of an independent access. `places` are shares of [`PLACES`] equal parts of the addresses.
    pub fn access(&self, places: &[f64], sectors: Moments, write: bool) -> PhasedAccess {
        self.placed(places).access(sectors, write)
    }

    /// Returns the common part of all accesses to the distribution `places`.
    pub(super) fn placed(&self, places: &[f64]) -> PlacedAccesses<'_> {
        let weighed: Vec<(f64, usize)> = self.weighed(places).collect();
        let mut sector = Moments::default();
        for &(weight, piece) in &weighed {
            let turn = self.boxes[piece].sector;
            sector.mean += weight * turn;
            sector.square += weight * turn * turn;
        }
        PlacedAccesses {
            arm: self,
            seek: self.seek(&weighed),
            sector,
        }
    }

    /// Returns the seek between two independent places.
    fn seek(&self, weighed: &[(f64, usize)]) -> Moments {
        let mut seek = Moments::default();
        for (index, &(weight, from)) in weighed.iter().enumerate() {
            let row = &self.seeks[from * (from + 1) / 2..];
            for &(further, to) in &weighed[..=index] {
                // The reverse seek takes the same time.
                let ways = if from == to { 1.0 } else { 2.0 };
                let share = ways * weight * further;
                seek.mean += share * row[to].mean;
                seek.square += share * row[to].square;
            }
        }
        seek
    }

    /// Yields the boxes with a positive share, ascending.
    fn weighed<'a>(&'a self, places: &'a [f64]) -> impl Iterator<Item = (f64, usize)> + 'a {
        let weigh = |(index, piece): (usize, &CylinderPiece)| {
            (
                places.get(piece.part).copied().unwrap_or(0.0) * piece.share,
                index,
            )
        };
        self.boxes
            .iter()
            .enumerate()
            .map(weigh)
            .filter(|(weight, _)| *weight > 0.0)
    }

    /// Returns rotational latency and transfer of an access that covers a part of a revolution. A
    /// drive with zero latency may begin anywhere in the covered part. If the heads land inside, it
    /// needs one revolution. Else it waits for the beginning.
    fn passing(&self, covered: Moments, zero_latency: bool) -> (Moments, Moments) {
        let turn = self.revolution_s;
        let transfer = Moments {
            mean: turn * covered.mean,
            square: turn * turn * covered.square,
        };
        // A request longer than a track leaves no part of the revolution uncovered.
        let free = 1.0 - covered.mean.min(1.0);
        let rotation = match zero_latency {
            // The heads land inside with probability 1 - free. Then the wait is the uncovered part.
            true => Moments {
                mean: turn * (free * free / 2.0 + (1.0 - free) * free),
                square: turn * turn * (free.powi(3) / 3.0 + (1.0 - free) * free * free),
            },
            false => Moments {
                // The wait for a sector is uniform over a revolution: mean 1/2, square 1/3.
                mean: turn / 2.0,
                square: turn * turn / 3.0,
            },
        };
        (rotation, transfer)
    }
}

/// Accesses of any length to the same distribution of places.
pub(super) struct PlacedAccesses<'a> {
    arm: &'a ArmModel,
    seek: Moments,
    /// Part of a revolution for one sector.
    sector: Moments,
}

impl PlacedAccesses<'_> {
    /// Returns an access of `sectors` sectors. The seek time must not become negative, even if the
    /// write settle time is negative.
    pub(super) fn access(&self, sectors: Moments, write: bool) -> PhasedAccess {
        let PlacedAccesses { arm, seek, sector } = self;
        let settle_s = if write { arm.write_settle_s } else { 0.0 };
        let covered = Moments {
            mean: sectors.mean * sector.mean,
            square: sectors.square * sector.square,
        };
        let (rotation, transfer) = arm.passing(covered, arm.zero_latency[usize::from(write)]);
        // A settle time shifts the mean and leaves the variance as it is.
        let seek = Moments::varied((seek.mean + settle_s).max(0.0), seek.variance());
        PhasedAccess {
            seek,
            rotation,
            transfer,
        }
    }
}

/// Returns the parts of the first `used` sectors, cut at zone boundaries.
fn boxes(geometry: &Geometry, used: u64) -> Vec<CylinderPiece> {
    let mut boxes = Vec::new();
    let edge = |part: usize| (u128::from(used) * part as u128 / PLACES as u128) as u64;
    for zone in geometry.zones() {
        let (first, end) = (
            zone.first_lbn.0,
            (zone.first_lbn.0 + zone.sectors.0).min(used),
        );
        for part in 0..PLACES {
            let (from, to) = (edge(part).max(first), edge(part + 1).min(end));
            if from >= to {
                continue;
            }
            let ends = [from, to - 1].map(|lbn| u64::from(geometry.cylinder_of(Lbn(lbn)).0));
            boxes.push(CylinderPiece {
                part,
                share: (to - from) as f64 / (edge(part + 1) - edge(part)) as f64,
                from: ends[0].min(ends[1]),
                to: ends[0].max(ends[1]) + 1,
                sector: 1.0 / zone.sectors_per_revolution,
            });
        }
    }
    boxes
}

/// Sums over all pairs of cylinders of two runs, from second sums of the seek curve.
///
/// Let `g` be a function whose second difference is the curve at `|distance|`. The sum over `x` in
/// `a..b` and `y` in `c..d` is then `g(b - c) + g(a - d) - g(a - c) - g(b - d)`. The sums may wrap
/// around, but their differences are correct.
#[derive(Clone, Debug)]
struct Curve {
    /// Second sums of the seek time in nanoseconds.
    first: Vec<u64>,
    /// Second sums of the squared seek time, in [`SQUARE`] square nanoseconds.
    second: Vec<u64>,
}

/// Unit of the squares, chosen so that the sums fit into 64 bits.
const SQUARE: u64 = 1_000_000;

impl Curve {
    /// Computes the sums. A seek to another cylinder comes with a change of the head, except in one
    /// case of as many as there are heads. With a head change, the seek takes the longer of both
    /// times.
    fn new(mechanics: &Mechanics, head_switch_s: f64) -> Curve {
        let geometry = mechanics.geometry();
        let surfaces = f64::from(geometry.surfaces());
        let switch = (head_switch_s * 1e9) as u64;
        let (mut first, mut second) = (vec![0u64], vec![0u64]);
        let (mut last, mut last_square) = ([0u64; 2], [0u64; 2]);
        for distance in 0..=geometry.cylinders() {
            let alone = mechanics.seek_table().time(distance).as_nanos();
            let switched = alone.max(switch);
            let mean = |one: u64, other: u64| {
                (one as f64 / surfaces + other as f64 * (1.0 - 1.0 / surfaces)) as u64
            };
            let value = mean(alone, switched);
            let square = mean(alone * alone / SQUARE, switched * switched / SQUARE);
            push(&mut first, &mut last, value, distance == 0);
            push(&mut second, &mut last_square, square, distance == 0);
        }
        Curve { first, second }
    }

    /// Returns the seek from one run of cylinders to another.
    fn between(&self, from: &CylinderPiece, to: &CylinderPiece) -> Moments {
        let pairs = ((from.to - from.from) * (to.to - to.from)) as f64;
        Moments {
            mean: sum(&self.first, from, to) * 1e-9 / pairs,
            square: sum(&self.second, from, to) * SQUARE as f64 * 1e-18 / pairs,
        }
    }
}

/// Appends the next second sum. Each distance counts in both directions, but 0 counts once.
fn push(sums: &mut Vec<u64>, last: &mut [u64; 2], value: u64, middle: bool) {
    // g(1) = g(-1) = value / 2 for distance 0, so all sums are stored at twice their value.
    let [before, here] = *last;
    let next = if middle {
        value
    } else {
        // Sums wrap, and so do their differences. Only the differences are used, and these fit 64
        // bits.
        here.wrapping_mul(2)
            .wrapping_sub(before)
            .wrapping_add(value.wrapping_mul(2))
    };
    *last = [here, next];
    sums.push(next);
}

/// Returns the sum over all pairs of cylinders of two runs.
fn sum(sums: &[u64], one: &CylinderPiece, other: &CylinderPiece) -> f64 {
    // Beyond the table no pair of cylinders exists.
    let at = |a: u64, b: u64| sums[(a.abs_diff(b) as usize).min(sums.len() - 1)];
    let twice = at(one.to, other.from)
        .wrapping_add(at(one.from, other.to))
        .wrapping_sub(at(one.from, other.from))
        .wrapping_sub(at(one.to, other.to));
    twice as f64 / 2.0
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use fullstroke_drive::presets::DriveClass;
    use fullstroke_drive::{DataSheet, DriveModel, HeadPosition, sectors_of};
    use fullstroke_units::{Bytes, Duration, Sectors, Seed, Time};

    pub(crate) fn model(title: &str, surfaces: Option<u32>) -> DriveModel {
        let sheet = DataSheet {
            title: title.to_owned(),
            capacity: sectors_of(Bytes(1_000_000_000_000)),
            rpm: 7200.0,
            outer_mb_per_s: 175.0,
            inner_mb_per_s: None,
            average_seek_ms: Some(8.5),
            surfaces,
            buffer: None,
            class: Some(DriveClass::Nearline),
        };
        DriveModel::new(sheet.drive().unwrap()).unwrap()
    }

    /// Returns the means of consecutive accesses on the simulated mechanics.
    fn carried_out(
        model: &DriveModel,
        used: u64,
        sectors: u64,
        write: bool,
        kept: impl Fn(u64) -> bool,
    ) -> [f64; 4] {
        let mechanics = model.mechanics();
        let mut random = Seed(4).stream("access");
        let (mut head, mut now) = (HeadPosition::default(), Time::ZERO);
        let (mut sums, mut count) = ([0.0; 4], 0.0);
        while count < 40_000.0 {
            let lbn = random.below(used / sectors) * sectors;
            if !kept(lbn) {
                continue;
            }
            let position = mechanics.geometry().locate(Lbn(lbn));
            // The random time between two accesses makes the rotation independent of the access
            // before.
            now += Duration::from_nanos(random.below(8_333_333));
            let access =
                mechanics.access(&mut head, now, Lbn(lbn), Sectors(sectors), &position, write);
            now += access.duration();
            let seek = access.seek.as_secs_f64();
            let each = [
                seek,
                seek * seek,
                access.rotation.as_secs_f64(),
                access.transfer.as_secs_f64(),
            ];
            sums.iter_mut()
                .zip(each)
                .for_each(|(sum, each)| *sum += each);
            count += 1.0;
        }
        sums.map(|sum| sum / count)
    }

    fn close(found: f64, expected: f64, within: f64, what: &str) {
        assert!(
            (found / expected - 1.0).abs() < within,
            "{what}: {found}, carried out {expected}"
        );
    }

    #[test]
    fn moments_of_seek_rotation_and_transfer_are_those_of_accesses_that_are_carried_out() {
        let model = model("moments", None);
        let used = model.config().capacity_sectors.0;
        for (part, write) in [(used, false), (used / 3, true)] {
            let found =
                ArmModel::new(&model, part).access(&[1.0 / 64.0; PLACES], Moments::of(8.0), write);
            let [seek, square, rotation, transfer] = carried_out(&model, part, 8, write, |_| true);
            close(found.seek.mean, seek, 0.01, "seek");
            close(found.seek.square, square, 0.02, "its square");
            // Skews count as transfer here. In the mechanics they count as seek and rotation of a
            // second track.
            let passing = found.rotation.mean + found.transfer.mean;
            close(passing, rotation + transfer, 0.015, "rotation and transfer");
        }
    }

    #[test]
    fn places_that_are_not_uniform_have_their_own_seeks() {
        let model = model("places", Some(4));
        let used = model.config().capacity_sectors.0;
        let mut places = vec![0.0; PLACES];
        (places[3], places[60]) = (0.5, 0.5);
        let part = |lbn: u64| (lbn * PLACES as u64 / used) as usize;
        let found = ArmModel::new(&model, used).access(&places, Moments::of(64.0), false);
        let [seek, square, ..] =
            carried_out(&model, used, 64, false, |lbn| [3, 60].contains(&part(lbn)));
        // A request across a track boundary needs one more seek.
        close(found.seek.mean, seek, 0.02, "seek");
        close(found.seek.square, square, 0.03, "its square");
    }

    #[test]
    fn heads_that_begin_anywhere_read_a_whole_revolution_in_one() {
        let arm = ArmModel::new(&model("zero latency", None), 1 << 20);
        let turn = arm.revolution_s();
        let (rotation, transfer) = arm.passing(Moments::of(1.0), true);
        assert!((rotation.mean + transfer.mean - turn).abs() < 1e-12);
        let (rotation, _) = arm.passing(Moments::of(0.0), true);
        assert!(
            (rotation.mean - turn / 2.0).abs() < 1e-12
                && (rotation.square - turn * turn / 3.0).abs() < 1e-12
        );
    }
}
