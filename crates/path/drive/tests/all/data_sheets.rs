//! Drives from data sheets. The description has the numbers of the sheet, can be read back from its
//! file, and runs.

use fullstroke_contract::{
    Effect, Effects, Extent, Node, NodeContext, Operation, Port, Request, RequestId,
};
use fullstroke_drive::{DataSheet, DriveConfig, DriveModel, checks, sectors_of};
use fullstroke_units::{Bytes, Lbn, Sectors, Time};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;

/// A drive of 8 TB, as sold.
fn eight_terabytes() -> DataSheet {
    DataSheet {
        title: "8 TB".into(),
        capacity: sectors_of(Bytes(8_000_000_000_000)),
        rpm: 7200.0,
        outer_mb_per_s: 245.0,
        inner_mb_per_s: Some(120.0),
        average_seek_ms: Some(8.5),
        surfaces: None,
        buffer: None,
        class: None,
    }
}

fn sheets() -> impl Strategy<Value = DataSheet> {
    (
        // 4 GB to 40 TB, evenly by the exponent.
        (9.6f64..13.6, 3600.0f64..15_100.0, 0.0f64..1.0, 0.3f64..1.0),
        (
            2.5f64..25.0,
            prop::option::of(1u32..25),
            prop::option::of(20u32..30),
            any::<bool>(),
        ),
    )
        .prop_map(
            |((exponent, rpm, rate, inner), (seek, surfaces, buffer, bare))| {
                // The capacity of a drive grows roughly with the square of the rate: 10 MB/s at 4
                // GB, 250 at 20 TB. The test takes half to twice that rate.
                let usual = 10.0 * 10f64.powf((exponent - 9.6) * 0.38);
                let outer_mb_per_s = (usual * 2f64.powf(2.0 * rate - 1.0) * 100.0).round() / 100.0;
                DataSheet {
                    title: "any".into(),
                    capacity: Sectors(10f64.powf(exponent) as u64 / 512),
                    rpm: rpm.round(),
                    outer_mb_per_s,
                    inner_mb_per_s: (!bare).then_some(outer_mb_per_s * inner),
                    average_seek_ms: (!bare).then_some((seek * 10.0).round() / 10.0),
                    surfaces,
                    buffer: buffer.map(|exponent| Bytes(1 << exponent)),
                    class: None,
                }
            },
        )
}

/// Reads and writes all over the drive; all are answered.
fn run(model: &DriveModel) {
    let mut drive = model.drive().unwrap();
    let mut out = Effects::new();
    let (mut now, mut done) = (Time::ZERO, 0);
    let stride = model.config().capacity_sectors.0 / 40;
    for number in 0..40 {
        let operation = if number % 2 == 0 {
            Operation::Read
        } else {
            Operation::Write
        };
        let request = Request {
            id: RequestId(number),
            operation,
            extent: Extent::new(number * 17 % 40 * stride, 8),
            ..Request::default()
        };
        drive.submit(now, Port::FIRST, request, &mut NodeContext::alone(&mut out));
        while drive.next_wake().at() != Time::NEVER {
            now = drive.next_wake().at();
            drive.wake(now, &mut NodeContext::alone(&mut out));
        }
        done += out
            .drain()
            .filter(|effect| matches!(effect, Effect::Complete { .. }))
            .count();
    }
    assert_eq!(done, 40);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn a_drive_has_the_numbers_of_its_sheet_or_the_sheet_is_refused(sheet in sheets()) {
        let config = match sheet.drive() {
            Ok(config) => config,
            Err(error) => {
                let keys = ["capacity", "outer", "inner", "surfaces"];
                prop_assert!(keys.contains(&error.key.as_str()), "{error:?}");
                prop_assert!(error.message.contains("found") && error.message.contains("expected"), "{error:?}");
                return Ok(());
            }
        };
        prop_assert_eq!(config.capacity_sectors, sheet.capacity);
        let written = toml::to_string(&config).unwrap();
        prop_assert_eq!(&toml::from_str::<DriveConfig>(&written).unwrap(), &config);
        let model = DriveModel::new(config).unwrap();
        let near = |found: f64, given: f64| (found / given - 1.0).abs() <= 0.01;
        let geometry = model.mechanics().geometry();
        let rates: Vec<f64> = geometry.zones().map(|zone| zone.rate_mb_per_s(sheet.rpm)).collect();
        prop_assert!(near(rates[0], sheet.outer_mb_per_s), "{} of {}", rates[0], sheet.outer_mb_per_s);
        let inner = sheet.inner_mb_per_s.unwrap_or(0.458 * sheet.outer_mb_per_s);
        prop_assert!(near(rates[rates.len() - 1], inner), "{} of {inner}", rates[rates.len() - 1]);
        prop_assert!(rates.is_sorted_by(|outer, inner| outer >= inner), "{rates:?}");
        let average = model.mechanics().seek_table().average().as_millis_f64();
        let given = sheet.average_seek_ms.unwrap_or(8.5);
        prop_assert!(near(average, given), "{average} of {given}");
        prop_assert!(checks(&model).iter().all(|check| check.passed), "{:?}", checks(&model));
        run(&model);
    }
}

#[test]
fn most_sheets_are_taken() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let taken = (0..200)
        .filter(|_| {
            sheets()
                .new_tree(&mut runner)
                .unwrap()
                .current()
                .drive()
                .is_ok()
        })
        .count();
    println!("{taken} of 200");
    assert!(taken > 140, "{taken}");
}

#[test]
fn a_drive_is_one_whose_heads_keep_to_their_surfaces() {
    let model = DriveModel::new(eight_terabytes().drive().unwrap()).unwrap();
    let tracks = model.tracks();
    let (mut track, mut changes, mut lengths) = (tracks.track_at(Lbn(0)), 0, Vec::new());
    for _ in 0..5000 {
        let next = tracks.track_at(track.first + track.sectors);
        changes += u32::from(next.surface != track.surface);
        lengths.push(track.sectors);
        track = next;
    }
    assert_eq!(changes, 5000 / 256);
    lengths.sort_unstable();
    lengths.dedup();
    assert!(lengths.len() > 4, "{lengths:?}");
}

#[test]
fn capacities_are_what_drives_of_these_sizes_report() {
    let reported = |gigabytes: u64| sectors_of(Bytes(gigabytes * 1_000_000_000)).0;
    // Numbers of sectors that Linux prints for drives of 80 GB, 1, 4, 8, 10, 16, 18 and 24 TB.
    assert_eq!(reported(80), 156_301_488);
    assert_eq!(reported(1000), 1_953_525_168);
    assert_eq!(reported(4000), 7_814_037_168);
    assert_eq!(reported(8000), 15_628_053_168);
    assert_eq!(reported(10_000), 19_532_873_728);
    assert_eq!(reported(16_000), 31_251_759_104);
    assert_eq!(reported(18_000), 35_156_656_128);
    assert_eq!(reported(24_000), 46_875_541_504);
    assert_eq!(sectors_of(Bytes(8_001_563_222_016)).0, 15_628_053_168);
}

#[test]
fn nonsense_names_the_number_what_was_found_and_what_was_expected() {
    type Change = fn(&mut DataSheet);
    let nonsense: [(&str, Change); 12] = [
        ("capacity", |sheet| sheet.capacity = Sectors(1000)),
        ("capacity", |sheet| sheet.capacity = Sectors(2_000_000)),
        ("rpm", |sheet| sheet.rpm = f64::NAN),
        ("rpm", |sheet| sheet.rpm = 72_000.0),
        ("outer", |sheet| sheet.outer_mb_per_s = 2.0),
        ("outer", |sheet| sheet.outer_mb_per_s = f64::INFINITY),
        ("inner", |sheet| sheet.inner_mb_per_s = Some(246.0)),
        ("inner", |sheet| sheet.inner_mb_per_s = Some(10.0)),
        ("seek", |sheet| sheet.average_seek_ms = Some(0.0)),
        ("surfaces", |sheet| sheet.surfaces = Some(0)),
        ("surfaces", |sheet| sheet.surfaces = Some(1)),
        ("cache", |sheet| sheet.buffer = Some(Bytes(4096))),
    ];
    for (key, change) in nonsense {
        let mut sheet = eight_terabytes();
        change(&mut sheet);
        let error = sheet.drive().unwrap_err();
        assert_eq!(error.key, key, "{error:?}");
        assert!(
            error.message.contains("found") && error.message.contains("expected"),
            "{error:?}"
        );
    }
}
