//! The figures against published ones of real disks: DiskSim's distance from
//! each, and the noise of each measurement.

use flate2::read::GzDecoder;
use fullstroke_calibrate::validate::{RESAMPLES, bootstrap_noise, demerit};
use fullstroke_trace::ValidateReader;
use fullstroke_units::Seed;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;

/// Disk, DiskSim's demerit in ms, and the noise of the measurement in ms.
const DISKS: [(&str, f64, f64); 5] = [
    ("hp_c2247a", 0.0939, 0.16),
    ("cheetah9LP", 0.1078, 0.065),
    ("ibm18es", 0.1362, 0.12),
    ("barracuda", 0.3484, 0.13),
    ("atlas10k", 0.2681, 0.063),
];

/// A file of the reference, or `None`, said aloud, where it is not there.
fn reference(name: &str) -> Option<PathBuf> {
    let path = PathBuf::from(format!(
        "{}/../../../../shared/oracle/{name}",
        env!("CARGO_MANIFEST_DIR")
    ));
    if !path.is_file() {
        eprintln!("skipped: {} is not there", path.display());
        return None;
    }
    Some(path)
}

#[test]
fn the_demerit_of_disksim_is_the_published_one() {
    for (disk, expected, _) in DISKS {
        let Some(path) = reference(&format!("validate/{disk}.csv.gz")) else {
            continue;
        };
        let mut lines = BufReader::new(GzDecoder::new(File::open(path).unwrap())).lines();
        let header = lines.next().unwrap().unwrap();
        let column = |name: &str| header.split(',').position(|column| column == name).unwrap();
        let (measured, simulated) = (column("measured_ms"), column("disksim_ms"));
        let times: (Vec<f64>, Vec<f64>) = lines
            .map(|line| {
                let line = line.unwrap();
                let field = |index| line.split(',').nth(index).unwrap().parse::<f64>().unwrap();
                (field(measured), field(simulated))
            })
            .unzip();
        let found = demerit(&times.0, &times.1);
        assert!(
            (found - expected).abs() < 0.0001,
            "{disk}: {found}, published {expected}"
        );
    }
}

/// The published noise comes from few resamples: it repeats to about a fifth.
#[test]
fn the_noise_of_each_measurement_is_the_published_one() {
    for (disk, _, expected) in DISKS {
        let Some(path) = reference(&format!("disks/{disk}.trace.gz")) else {
            continue;
        };
        let mut reader = ValidateReader::open(&path).unwrap();
        let mut measured = Vec::new();
        while let Some(row) = reader.next_row().unwrap() {
            measured.push(row.service.as_millis_f64());
        }
        let found = bootstrap_noise(&measured, Seed(1), RESAMPLES);
        println!("{disk}: noise {found:.4} ms, published {expected}");
        assert!(
            (found / expected - 1.0).abs() < 0.2,
            "{disk}: {found}, published {expected}"
        );
    }
}
