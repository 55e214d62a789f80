//! Compares the figures with published figures of real disks: DiskSim's distance from each disk,
//! and the noise of each measurement. The measurements lie beside the repository. Their first 200
//! requests are part of the repository. The expected figures for these were computed by another
//! program (Python, 4,000 resamples).

#[path = "../../../../samples/oracle/table.rs"]
mod oracle;
#[path = "../../../../samples/oracle/whole.rs"]
mod whole;

use flate2::read::GzDecoder;
use fullstroke_calibrate::validate::{RESAMPLES, bootstrap_noise, demerit};
use fullstroke_trace::ValidateReader;
use fullstroke_units::Seed;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::PathBuf;

/// Disk, DiskSim's demerit in ms, and the noise of the measurement in ms.
const DISKS: [(&str, f64, f64); 5] = [
    ("hp_c2247a", 0.0939, 0.16),
    ("cheetah9LP", 0.1078, 0.065),
    ("ibm18es", 0.1362, 0.12),
    ("barracuda", 0.3484, 0.13),
    ("atlas10k", 0.2681, 0.063),
];

/// Disk, DiskSim's demerit in ms over the first 200 requests, and the noise of these requests in
/// ms.
const FIRST_200: [(&str, f64, f64); 5] = [
    ("hp_c2247a", 0.60959, 0.9296),
    ("cheetah9LP", 0.36908, 0.5345),
    ("ibm18es", 0.67911, 0.6918),
    ("barracuda", 0.65673, 0.8268),
    ("atlas10k", 0.53621, 0.5273),
];

fn reference(name: &str) -> Option<PathBuf> {
    oracle::shared(&format!("oracle/{name}"))
}

fn service_ms(disk: &str) -> Vec<f64> {
    let table = oracle::Table::read(&format!("disks/{disk}"));
    let service_us: Vec<f64> = table.numbers("service_us");
    service_us.iter().map(|us| us / 1e3).collect()
}

#[test]
fn the_demerit_of_the_first_requests_is_what_another_program_found() {
    for (disk, expected, _) in FIRST_200 {
        let table = oracle::Table::read(&format!("disks/{disk}"));
        let found = demerit(&service_ms(disk), &table.numbers::<f64>("disksim_ms"));
        assert!((found - expected).abs() < 1e-5, "{disk}: {found}");
    }
}

#[test]
fn the_noise_of_the_first_requests_is_what_another_program_found() {
    for (disk, _, expected) in FIRST_200 {
        let found = bootstrap_noise(&service_ms(disk), Seed(1), RESAMPLES);
        println!("{disk}: noise {found:.4} ms, elsewhere {expected}");
        assert!((found / expected - 1.0).abs() < 0.05, "{disk}: {found}");
    }
}

#[test]
fn the_demerit_of_disksim_is_the_published_one() {
    for (disk, expected, _) in DISKS {
        let Some(path) = reference(&format!("validate/{disk}.csv.gz")) else {
            continue;
        };
        let mut text = String::new();
        GzDecoder::new(File::open(path).unwrap())
            .read_to_string(&mut text)
            .unwrap();
        let table = oracle::Table::read(&format!("disks/{disk}"));
        whole::check_digest(&table, "disksim_ms", text.as_bytes());
        let mut lines = BufReader::new(text.as_bytes()).lines();
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

/// The published noise comes from few resamples and repeats to about a fifth.
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
