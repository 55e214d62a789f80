use super::*;
use crate::config::tests::small_drive;
use crate::config::{BufferConfig, DriveConfig, SlipConfig, TrackOrder, ZeroLatency};
use crate::drive::DriveModel;
use crate::drive::tests::{request, serve};
use fullstroke_contract::{Completion, Operation};
use proptest::prelude::*;

fn of_margin(margin_ms: f64, on_the_way: u32) -> FreeblockConfig {
    FreeblockConfig {
        margin_ms,
        on_the_way,
    }
}

/// Returns the small drive with uneven tracks. The skews keep each seek off the raster of the
/// sectors.
fn uneven(order: TrackOrder, slips: &[u64]) -> DriveConfig {
    let mut config = DriveConfig {
        order,
        write_settle_ms: 0.1,
        turn_round_ms: 0.2,
        ..small_drive()
    };
    for zone in &mut config.zones {
        (zone.track_skew, zone.cylinder_skew) = (3.37, 5.71);
    }
    config.zones[0].slips = slips.iter().map(|&slip| SlipConfig::One(slip)).collect();
    config.zones[0].spares = slips.len() as u64;
    config.capacity_sectors = Sectors(config.capacity_sectors.0 - slips.len() as u64);
    config
}

fn orders() -> impl Strategy<Value = TrackOrder> {
    prop::sample::select(vec![
        TrackOrder::Cylinder,
        TrackOrder::CylinderSerpentine,
        TrackOrder::SurfaceSerpentine,
    ])
}

/// A request: address, sectors, true for a write, and the pause before the request in ns.
type Asked = (u64, u64, bool, u64);

fn asked() -> impl Strategy<Value = Vec<Asked>> {
    prop::collection::vec(
        (0u64..1380, 1u64..12, any::<bool>(), 0u64..9_000_000),
        1..60,
    )
}

/// Delay in ns that rounding may add to a request that was replayed step by step. Each step rounds
/// to nanoseconds, and the medium is met within two nanoseconds.
const ROUNDING_NS: u64 = 3;

proptest! {
    /// Replays each route with plain accesses of the mechanics, which know nothing of plans. The
    /// arm must read every extent, and the request must end as early as without the scan.
    #[test]
    fn what_is_read_on_the_way_costs_the_request_nothing(
        asked in asked(), order in orders(), on_the_way in 0u32..9, slips in prop::collection::btree_set(0u64..400, 0..6),
    ) {
        let slips: Vec<u64> = slips.into_iter().collect();
        let mechanics = Mechanics::new(&uneven(order, &slips)).unwrap();
        let mut scan = Freeblock::new(&of_margin(0.0, on_the_way), &mechanics).unwrap();
        let (mut head, mut now) = (HeadPosition::default(), Time::ZERO);
        let mut times = vec![0u8; mechanics.geometry().capacity().0 as usize];
        for (lbn, sectors, write, pause) in asked {
            let extent = Extent::new(lbn, sectors.min(times.len() as u64 - lbn));
            let position = mechanics.geometry().locate(extent.start);
            now += Duration::from_nanos(pause);
            let mut direct = head;
            let alone = mechanics.access(&mut direct, now, extent.start, extent.sectors, &position, write);
            let span = mechanics.span(&position, extent.sectors.min(position.sectors_left));
            scan.best.clear();
            scan.serve(&mechanics, head, now, &position, span, write);
            let mut clock = now;
            for read in &scan.best {
                let place = mechanics.geometry().locate(read.start);
                prop_assert!(read.sectors <= place.sectors_left, "{:?} is on one track", read);
                clock += mechanics.access(&mut head, clock, read.start, read.sectors, &place, false).duration();
                (read.start.0..read.end().0).for_each(|lbn| times[lbn as usize] += 1);
            }
            let after = mechanics.access(&mut head, clock, extent.start, extent.sectors, &position, write);
            let (ends, ended) = (now + alone.duration(), clock + after.duration());
            prop_assert!(ended <= ends + Duration::from_nanos(ROUNDING_NS), "{:?} after {:?}", ended, ends);
            prop_assert_eq!(head, direct);
            now = ends;
        }
        prop_assert!(times.iter().all(|&times| times <= 1), "no sector is read twice");
        prop_assert_eq!(times.iter().map(|&times| u64::from(times)).sum::<u64>(), scan.covered.sectors().0);
    }

    /// A sector passes completely in a window if a read of that sector alone ends in the window.
    #[test]
    fn a_sector_passes_if_a_read_of_it_ends_in_time(
        order in orders(), cylinder in 0u32..20, surface in 0u32..2, from in 0u64..20_000_000, lasts in 0u64..6_000_000,
        slips in prop::collection::btree_set(0u64..400, 0..6),
    ) {
        let slips: Vec<u64> = slips.into_iter().collect();
        let mechanics = Mechanics::new(&uneven(order, &slips)).unwrap();
        let track = mechanics.geometry().track_on(Cylinder(cylinder), surface).unwrap();
        let head = HeadPosition { cylinder: Cylinder(cylinder), surface, ..HeadPosition::default() };
        let (from, until) = (Time::from_nanos(from), Time::from_nanos(from + lasts));
        let mut read = Vec::new();
        passing(&SectorSet::default(), &mechanics, head, track, from, until, &mut read);
        for lbn in track.first.0..(track.first + track.sectors).0 {
            let place = mechanics.geometry().locate(Lbn(lbn));
            let ends = from + mechanics.access(&mut head.clone(), from, Lbn(lbn), Sectors(1), &place, false).duration();
            let passes = read.iter().any(|extent| extent.start.0 <= lbn && lbn < extent.end().0);
            let near = ends.as_nanos().abs_diff(until.as_nanos()) <= ROUNDING_NS;
            prop_assert!(near || passes == (ends <= until), "sector {} ends at {:?} of {:?}", lbn, ends, until);
        }
    }

    #[test]
    fn completions_are_those_of_a_drive_without_a_scan(asked in asked(), kind in 0usize..3) {
        let config = match kind {
            0 => small_drive(),
            1 => DriveConfig { zero_latency: ZeroLatency::All(true), command_overhead_ms: 0.3, ..small_drive() },
            _ => DriveConfig { buffer: Some(buffer()), ..small_drive() },
        };
        let with = DriveConfig { freeblock: Some(FreeblockConfig::default()), ..config.clone() };
        prop_assert_eq!(run(config, &asked), run(with, &asked));
    }
}

pub(crate) fn buffer() -> BufferConfig {
    serde_json::from_str(r#"{"segments": 4, "segment_sectors": 32}"#).unwrap()
}

/// Returns the completions of a drive.
fn run(config: DriveConfig, asked: &[Asked]) -> Vec<Completion> {
    let mut now = Time::ZERO;
    let requests = (0..).zip(asked).map(|(id, &(lbn, sectors, write, pause))| {
        now += Duration::from_nanos(pause);
        let operation = if write {
            Operation::Write
        } else {
            Operation::Read
        };
        (now, request(id, lbn, sectors, operation))
    });
    serve(
        &mut DriveModel::new(config).unwrap().drive().unwrap(),
        requests,
        0,
    )
}

#[test]
fn a_scan_comes_to_its_end() {
    let mechanics = Mechanics::new(&small_drive()).unwrap();
    let mut scan = Freeblock::new(&FreeblockConfig::default(), &mechanics).unwrap();
    let (mut head, mut now, mut requests) = (HeadPosition::default(), Time::ZERO, 0u64);
    while scan.ended.is_none() {
        requests += 1;
        assert!(
            requests < 5_000,
            "{} sectors after {requests} requests",
            scan.covered.sectors().0
        );
        let lbn = Lbn(requests * 977 % 1400);
        let position = mechanics.geometry().locate(lbn);
        scan.serve(
            &mechanics,
            head,
            now,
            &position,
            mechanics.span(&position, Sectors(1)),
            false,
        );
        now += mechanics
            .access(&mut head, now, lbn, Sectors(1), &position, false)
            .duration();
    }
    let readings = scan.readings(now, Sectors(1400));
    let of = |name: &str| {
        readings
            .readings
            .iter()
            .find(|reading| reading.name == name)
            .unwrap()
            .value
    };
    assert_eq!(of("freeblock_scanned_share"), 1.0);
    assert_eq!(of("freeblock_read_mb"), 1400.0 * 512.0 / 1e6);
    assert!(of("freeblock_scan_s") <= now.since(Time::ZERO).as_secs_f64());
}

#[test]
fn a_longer_margin_reads_less() {
    let mechanics = Mechanics::new(&small_drive()).unwrap();
    let read = |margin_ms| {
        let mut scan = Freeblock::new(&of_margin(margin_ms, 0), &mechanics).unwrap();
        let (mut head, mut now) = (HeadPosition::default(), Time::ZERO);
        for request in 0..10u64 {
            let lbn = Lbn(request * 977 % 1400);
            let position = mechanics.geometry().locate(lbn);
            scan.serve(
                &mechanics,
                head,
                now,
                &position,
                mechanics.span(&position, Sectors(1)),
                false,
            );
            now += mechanics
                .access(&mut head, now, lbn, Sectors(1), &position, false)
                .duration();
        }
        scan.covered.sectors().0
    };
    assert!(
        read(0.0) >= read(5.9) && read(5.9) > 0,
        "the margin is the arm's, not that of who is there"
    );
}

#[test]
fn what_cannot_be_is_refused_at_its_key() {
    for (config, key) in [
        (of_margin(-1.0, 8), "freeblock.margin_ms"),
        (of_margin(f64::NAN, 8), "freeblock.margin_ms"),
        (of_margin(6.0, 8), "freeblock.margin_ms"),
        (of_margin(0.0, 1025), "freeblock.on_the_way"),
    ] {
        let error = DriveModel::new(DriveConfig {
            freeblock: Some(config),
            ..small_drive()
        })
        .err()
        .unwrap();
        assert_eq!(error.key, key, "{error}");
    }
}
