//! Records a drive with changed parameters, and fits it again.

use super::{ModelVerdict, OwnLog, fit_own_disk};
use crate::validate::paced::{Paced, simulate};
use fullstroke_contract::{Extent, Operation};
use fullstroke_drive::{DriveConfig, DriveModel, SeekConfig};
use fullstroke_stack::drives;
use fullstroke_trace::TraceRecord;
use fullstroke_units::{Angle, Duration, Seed, Time};

const DRIVE: &str = "ibm-ultrastar-xp-4.51gb";

/// The library's drive with 0.47 ms more overhead and seeks longer by a sixth.
fn other() -> (DriveConfig, f64) {
    let mut config = drives::load(DRIVE).unwrap().config().clone();
    config.command_overhead_ms += 0.47;
    config.seek = match config.seek {
        SeekConfig::Points {
            points,
            falls_allowed,
        } => SeekConfig::Points {
            points: points.iter().map(|&(d, ms)| (d, ms * 1.17)).collect(),
            falls_allowed,
        },
        SeekConfig::TwoPiece {
            a_ms,
            b_ms,
            c_ms,
            e_ms,
            crossover,
        } => SeekConfig::TwoPiece {
            a_ms: a_ms * 1.17,
            b_ms: b_ms * 1.17,
            c_ms: c_ms * 1.17,
            e_ms: e_ms * 1.17,
            crossover,
        },
        SeekConfig::Datasheet {
            track_to_track_ms,
            average_ms,
            full_stroke_ms,
        } => SeekConfig::Datasheet {
            track_to_track_ms: track_to_track_ms * 1.17,
            average_ms: average_ms * 1.17,
            full_stroke_ms: full_stroke_ms * 1.17,
        },
    };
    let overhead = config.command_overhead_ms;
    (config, overhead)
}

/// Returns the records of random reads on `model`, one at a time, as a recorder would write them. A
/// third of the reads lie a short way from the read before.
fn recorded(model: &DriveModel, count: u64) -> Vec<TraceRecord> {
    let mut random = Seed(7).stream("reads");
    let capacity = model.config().capacity_sectors.0 - 64;
    let mut start = 0;
    let mut requests = Vec::new();
    for number in 0..count as usize {
        start = match number % 3 {
            0 => (start + random.below(20_000)).min(capacity),
            _ => random.below(capacity),
        };
        let gap = Duration::from_micros(random.below(9000));
        let extent = Extent::new(start, 8);
        requests.push(Paced {
            operation: Operation::Read,
            extent,
            awaited: number,
            gap,
        });
    }
    let (_, times) = simulate(model, &requests.clone().into()).unwrap();
    let mut now = Time::ZERO;
    let record = |(request, ms): (&Paced, f64)| {
        let arrival = now + request.gap;
        now = arrival + Duration::from_millis_f64(ms);
        TraceRecord {
            arrival,
            operation: Operation::Read,
            extent: request.extent,
            device: 0,
            process: 0,
            issued: Some(arrival),
            completed: Some(now),
        }
    };
    requests.iter().zip(times).map(record).collect()
}

#[test]
fn a_recorded_drive_is_found_again_from_a_wrong_beginning() {
    let (config, overhead) = other();
    // The angle of the platters at the start of the recording is unknown in practice.
    let disk = DriveModel::new(config)
        .unwrap()
        .turned(Angle::from_revolutions(0.37));
    let records = recorded(&disk, 2000);
    let log = OwnLog::new("sda.parquet".to_owned(), "native", &records).unwrap();
    let found = fit_own_disk(log, Some(DRIVE), Seed(1)).unwrap();
    let value = |key: &str| {
        let parameter = found
            .parameters
            .iter()
            .find(|parameter| parameter.key == key)
            .unwrap();
        parameter.fitted.parse::<f64>().unwrap()
    };
    eprintln!(
        "{:#?} {:#?} {:?}",
        found.parameters, found.trust, found.held_out
    );
    assert!((value("command_overhead_ms") - overhead).abs() < 0.15);
    assert!((value("seek (factor)") - 1.17).abs() < 0.04);
    assert_eq!(found.trust.verdict, ModelVerdict::Close);
    assert!(found.held_out.rms_ms < found.held_out_unfitted.rms_ms / 3.0);
    assert!(
        found
            .trust
            .sentences
            .iter()
            .any(|sentence| sentence.contains("writes"))
    );
    let written = found.drive_file();
    assert!(written.sources["seek"].starts_with("fitted: "));
    assert_eq!(
        DriveModel::new(written).unwrap().config().seek,
        found.config.seek
    );
}

#[test]
fn the_speed_of_a_disk_is_found_from_foreign_drives() {
    let (mut config, _) = other();
    config.rpm = 5360.0;
    let disk = DriveModel::new(config).unwrap();
    let records = recorded(&disk, 1000);
    // 10,045, 7,200 and 5,400 revolutions a minute.
    for start in [
        "seagate-cheetah-9lp",
        "hitachi-7k100-100gb",
        "toshiba-mk8034gsx-80gb",
    ] {
        let log = OwnLog::new("sda.parquet".to_owned(), "native", &records).unwrap();
        let found = fit_own_disk(log, Some(start), Seed(1)).unwrap();
        let file = found.drive_file();
        // 5,400 is sold, and a spread does not tell it from 5,360.
        assert!((file.rpm / 5360.0 - 1.0).abs() < 0.01, "{}", file.rpm);
        assert_eq!(found.parameters[0].key, "rpm");
        assert!(
            !file.sources["rpm"].contains("fitted"),
            "{}",
            file.sources["rpm"]
        );
        assert!(found.held_out.rms_ms < found.held_out_unfitted.rms_ms);
    }
}

#[test]
fn a_disk_that_no_drive_is_like_is_not_to_be_trusted() {
    let model = drives::load(DRIVE).unwrap();
    let mut records = recorded(&model, 600);
    // An array behind a controller: some requests are cache hits, others wait in the queue of other
    // hosts.
    let mut random = Seed(3).stream("others");
    for record in &mut records {
        let ms = if random.below(2) == 0 {
            0.2
        } else {
            60.0 + 40.0 * random.below(4) as f64
        };
        record.completed = Some(record.arrival + Duration::from_millis_f64(ms));
    }
    let log = OwnLog::new("array.parquet".to_owned(), "native", &records).unwrap();
    let found = fit_own_disk(log, Some(DRIVE), Seed(1)).unwrap();
    assert_eq!(
        found.trust.verdict,
        ModelVerdict::None,
        "{:?}",
        found.held_out
    );
    let file = found.drive_file();
    assert_eq!(file.rpm, model.config().rpm);
    assert_eq!(
        file.sources["rpm"],
        format!("as in {DRIVE}; array.parquet does not tell the speed")
    );
}

#[test]
fn a_log_that_reaches_beyond_the_drive_is_refused() {
    let model = drives::load(DRIVE).unwrap();
    let mut records = recorded(&model, 300);
    records[9].extent = Extent::new(1 << 40, 8);
    let log = || OwnLog::new("sda.parquet".to_owned(), "native", &records).unwrap();
    let refused = |drive| fit_own_disk(log(), drive, Seed(1)).unwrap_err().to_string();
    assert!(
        refused(Some(DRIVE)).contains("name a larger one"),
        "{}",
        refused(Some(DRIVE))
    );
    assert!(
        refused(None).contains("fullstroke drive new"),
        "{}",
        refused(None)
    );
}
