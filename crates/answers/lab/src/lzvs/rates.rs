//! The highest transfer rate of a layout at each address, computed from the zones of its members
//! alone, without seeks and rotational latency.

use fullstroke_contract::{Extent, LayersBelow, Operation, Request, RequestStatus, ZoneRate};
use fullstroke_units::{Lbn, SECTOR_BYTES, Sectors};
use fullstroke_volume::{Detail, Plan, Shape};
use serde::Serialize;

/// Rate of a transfer from an address on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RateAt {
    /// First address of the transfer.
    pub start: Lbn,
    /// Megabytes (10^6 bytes) a second.
    pub mb_per_s: f64,
}

/// Rates across a volume.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VolumeRates {
    /// Rates, by address.
    pub points: Vec<RateAt>,
    /// Lowest rate, in MB/s.
    pub floor_mb_per_s: f64,
    /// Mean rate of a transfer of the whole volume, in MB/s: the harmonic mean of the points.
    pub mean_mb_per_s: f64,
    /// Highest rate, in MB/s.
    pub top_mb_per_s: f64,
}

/// Returns the rates of transfers of `sectors` at `points` addresses of a volume. `drives` holds
/// the zones of the volume's drives, in order.
pub fn rates(
    volume: &mut Shape,
    drives: &[Vec<ZoneRate>],
    sectors: Sectors,
    points: u32,
) -> VolumeRates {
    let capacity = volume.capacity().0;
    let sectors = sectors.0.clamp(1, capacity.max(1));
    let at = |point: u32| {
        let start =
            // In 128 bits, because the product of capacity and point may exceed 64 bits.
            u128::from(capacity - sectors) * u128::from(point) / u128::from(points.max(2) - 1);
        let extent = Extent::new(start as u64, sectors);
        let mut busy_s = vec![0.0; drives.len()];
        occupy(volume, extent, drives, &mut busy_s);
        // Members work in parallel, so the slowest one determines the duration.
        let longest_s = busy_s.into_iter().fold(f64::MIN_POSITIVE, f64::max);
        RateAt {
            start: extent.start,
            mb_per_s: (sectors * SECTOR_BYTES) as f64 / longest_s / 1e6,
        }
    };
    let points: Vec<RateAt> = (0..points.max(2)).map(at).collect();
    let each = || points.iter().map(|point| point.mb_per_s);
    VolumeRates {
        floor_mb_per_s: each().fold(f64::INFINITY, f64::min),
        // The harmonic mean: each address moves the same number of bytes.
        mean_mb_per_s: points.len() as f64 / each().map(f64::recip).sum::<f64>(),
        top_mb_per_s: each().fold(0.0, f64::max),
        points,
    }
}

/// Adds the transfer time of a read of `extent` to the busy time of each drive.
fn occupy(volume: &mut Shape, extent: Extent, drives: &[Vec<ZoneRate>], busy_s: &mut [f64]) {
    let (layout, members) = match volume {
        Shape::Drive(_) => {
            busy_s[0] += seconds(&drives[0], extent);
            return;
        }
        Shape::Volume { layout, members } => (layout, members),
    };
    let mut plan = Plan::new(Detail::Timing);
    let request = Request {
        operation: Operation::Read,
        extent,
        ..Request::default()
    };
    if layout.plan(&request, LayersBelow::NOTHING, &mut plan) != RequestStatus::Done {
        return;
    }
    let firsts: Vec<usize> = members
        .iter()
        .scan(0, |next, member| {
            let first = *next;
            *next += drives_of(member);
            Some(first)
        })
        .collect();
    for io in plan.ios() {
        let (member, first) = (io.member as usize, firsts[io.member as usize]);
        occupy(
            &mut members[member],
            io.extent,
            &drives[first..],
            &mut busy_s[first..],
        );
    }
}

/// Returns the number of drives.
fn drives_of(volume: &Shape) -> usize {
    match volume {
        Shape::Drive(_) => 1,
        Shape::Volume { members, .. } => members.iter().map(drives_of).sum(),
    }
}

/// Returns the time of a drive for `extent` without arm movement, in seconds.
fn seconds(zones: &[ZoneRate], extent: Extent) -> f64 {
    let first = zones.partition_point(|zone| zone.first + zone.sectors <= extent.start);
    let mut seconds = 0.0;
    for zone in &zones[first..] {
        let (begin, end) = (
            extent.start.max(zone.first),
            extent.end().min(zone.first + zone.sectors),
        );
        if begin >= end {
            break;
        }
        seconds += (end.since(begin).0 * SECTOR_BYTES) as f64 / zone.bytes_per_s as f64;
    }
    seconds
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_contract::registry::find;
    use fullstroke_volume::REGISTRY;
    use serde_json::{Value, json};

    /// Returns the rates of two disks with two zones of 100 and 50 MB/s.
    fn of(layout: &str, keys: Value) -> VolumeRates {
        let zone = |first: u64, bytes_per_s: u64| ZoneRate {
            first: Lbn(first),
            sectors: Sectors(1_000_000),
            bytes_per_s,
        };
        let zones = vec![vec![zone(0, 100_000_000), zone(1_000_000, 50_000_000)]; 2];
        let drive = Sectors(2_000_000);
        let build = find("layout", REGISTRY, "", layout).unwrap().build;
        let built = build(keys.as_object().unwrap(), &[drive; 2]).unwrap();
        let mut volume = Shape::Volume {
            layout: built,
            members: vec![Shape::Drive(drive), Shape::Drive(drive)],
        };
        rates(&mut volume, &zones, Sectors(8192), 200)
    }

    #[test]
    fn rates_are_those_of_the_slower_member() {
        let raid0 = of("raid0", json!({}));
        assert!(
            (raid0.top_mb_per_s - 200.0).abs() < 1.0 && (raid0.floor_mb_per_s - 100.0).abs() < 1.0,
            "{raid0:?}"
        );
        // A chunk in a fast zone and an equal chunk in a slow zone: the slow chunk determines the
        // rate.
        let naive = of("lzvs-naive", json!({}));
        assert!(
            (naive.top_mb_per_s - 100.0).abs() < 2.0 && (naive.floor_mb_per_s - 100.0).abs() < 2.0,
            "{naive:?}"
        );
        let zone = |rate: u64| json!({ "sectors": 1_000_000, "bytes_per_s": rate });
        let zones = json!([zone(100_000_000), zone(50_000_000)]);
        let geo = of("lzvs-geo", json!({ "member_zones": [zones, zones] }));
        // A transfer of the inner zone takes twice as long, so both directions meet in the middle
        // of that zone.
        assert!(
            (geo.top_mb_per_s - 150.0).abs() < 2.0 && (geo.floor_mb_per_s - 100.0).abs() < 2.0,
            "{geo:?}"
        );
        assert!((geo.mean_mb_per_s - 133.3).abs() < 3.0, "{geo:?}");
    }
}
