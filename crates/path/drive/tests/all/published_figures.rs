//! Published figures to which the descriptions were not fitted, compared with the results of the
//! model (VALIDATION.md, "Drives that people own").

use fullstroke_contract::{
    Effect, Effects, Extent, Node, NodeContext, Operation, Port, Request, RequestId,
};
use fullstroke_drive::{DriveConfig, DriveModel, SectorsPerTrack};
use fullstroke_units::Time;

macro_rules! drive {
    ($name:literal) => {
        (
            $name,
            include_str!(concat!("../../../../../drives/", $name, ".toml")),
        )
    };
}

fn model((name, text): (&str, &str)) -> DriveModel {
    let config: DriveConfig =
        toml::from_str(text).unwrap_or_else(|error| panic!("{name}: {error}"));
    DriveModel::new(config).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Returns random reads or writes of 4 KiB a second with `depth` in flight, over all addresses of
/// one arm, with the write cache off.
fn random_a_second(model: &DriveModel, operation: Operation, depth: u64) -> f64 {
    const REQUESTS: u64 = 4000;
    let mut config = model.config().clone();
    config
        .buffer
        .as_mut()
        .expect("a current drive has a buffer")
        .write_back = false;
    let pages = config.capacity_sectors.0 / u64::from(config.actuators) / 8;
    let mut drive = DriveModel::new(config)
        .and_then(|model| model.drive())
        .expect("only its cache is off");
    let mut out = Effects::new();
    let (mut state, mut now, mut submitted, mut done) = (7u64, Time::ZERO, 0, 0);
    while done < REQUESTS {
        while submitted < REQUESTS && submitted - done < depth {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            let page = (u128::from(state) * u128::from(pages)) >> 64;
            let extent = Extent::new(page as u64 * 8, 8);
            let request = Request {
                id: RequestId(submitted),
                operation,
                extent,
                ..Request::default()
            };
            submitted += 1;
            drive.submit(now, Port::FIRST, request, &mut NodeContext::alone(&mut out));
        }
        now = drive.next_wake().at();
        drive.wake(now, &mut NodeContext::alone(&mut out));
        done += out
            .drain()
            .filter(|effect| matches!(effect, Effect::Complete { .. }))
            .count() as u64;
    }
    done as f64 / (now.since(Time::ZERO).as_nanos() as f64 / 1e9)
}

#[test]
fn random_reads_come_out_near_what_is_published() {
    // The X24 and the 2X18 were fitted to their figures. The other drives have the curve of the
    // X24.
    let published = [
        (drive!("seagate-exos-x24-24tb"), 16, 168.0),
        (drive!("seagate-exos-2x18-18tb"), 8, 304.0 / 2.0),
        (drive!("seagate-exos-x16-16tb"), 16, 170.0),
        (drive!("seagate-exos-m-30tb"), 16, 170.0),
    ];
    for (file, depth, expected) in published {
        let found = random_a_second(&model(file), Operation::Read, depth);
        println!(
            "{}: {found:.1} random reads a second at depth {depth}, published {expected}",
            file.0
        );
        assert!((found / expected - 1.0).abs() < 0.1, "{}: {found}", file.0);
    }
}

/// Seeks of a Samsung F3 from Wong's text. In one revolution the arm reaches 19 % of the tracks.
/// From the middle of the addresses, the farthest sectors are 2.42 and 2.47 revolutions away,
/// including one revolution of rotation.
#[test]
fn the_seeks_of_the_samsung_f3_are_near_those_measured() {
    let model = model(drive!("samsung-f3-1tb"));
    let (config, mechanics) = (model.config(), model.mechanics());
    let cylinders = f64::from(mechanics.geometry().cylinders());
    let middle = mechanics
        .geometry()
        .locate(fullstroke_units::Lbn(config.capacity_sectors.0 / 2))
        .cylinder;
    let middle = f64::from(middle.0) / cylinders;
    for (part, revolutions) in [
        (0.19, 1.0),
        (middle, 1.42),
        (1.0 - middle, 1.47),
        (1.0, 2.09),
    ] {
        let measured = revolutions * 60_000.0 / config.rpm;
        let seek = mechanics
            .seek_table()
            .time((part * cylinders) as u32 - 1)
            .as_millis_f64();
        let found = seek + config.command_overhead_ms;
        println!(
            "{:.0} % of the tracks: {found:.2} ms, measured {measured:.2}",
            part * 100.0
        );
        assert!(
            (found / measured - 1.0).abs() < 0.1,
            "{part}: {found} of {measured}"
        );
    }
}

#[test]
fn the_layouts_that_wong_measured_are_the_ones_described() {
    let measured = [
        // Tracks; sectors of 512 bytes on the longest and on the shortest.
        (drive!("toshiba-x300-5tb"), 3_279_583, 4000, 1832),
        (drive!("toshiba-p300-3tb"), 2_070_465, 3880, 1656),
        (drive!("samsung-f3-1tb"), 854_135, 2937, 1546),
        (drive!("hitachi-7k1000c-1tb"), 914_873, 2673, 1350),
        (drive!("seagate-cheetah-15k7-450gb"), 595_848, 1800, 1028),
        (drive!("toshiba-mk8034gsx-80gb"), 219_635, 891, 429),
    ];
    for (file, tracks, longest, shortest) in measured {
        let model = model(file);
        let geometry = model.mechanics().geometry();
        let described = geometry.cylinders() * geometry.surfaces();
        assert!(
            tracks - described < 60,
            "{}: {described} of {tracks} tracks",
            file.0
        );
        let lengths = model
            .config()
            .zones
            .iter()
            .flat_map(|zone| match &zone.sectors_per_track {
                SectorsPerTrack::Same(sectors) => vec![*sectors],
                SectorsPerTrack::PerSurface(sectors) => sectors.clone(),
            });
        let (least, most) = lengths.fold((u32::MAX, 0), |(least, most), sectors| {
            (least.min(sectors), most.max(sectors))
        });
        assert_eq!((most, least), (longest, shortest), "{}", file.0);
    }
}
