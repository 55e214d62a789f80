//! Buffer and electronics compared with references: the answers of a simulator, and eight measured
//! disks.
//!
//! Each case runs twice: on its first 200 requests, in the repository (`samples/oracle`), and on
//! all requests if the reference lies beside the repository.

use crate::oracle::{self, Table};
use crate::whole::check_digest;
use flate2::read::GzDecoder;
use fullstroke_contract::{
    Effect, Effects, Extent, Node as _, NodeContext, Operation, Port, Request, RequestId,
};
use fullstroke_disksim::{ImportOptions, Reading, import};
use fullstroke_drive::{Drive, DriveConfig, DriveModel, QueueConfig};
use fullstroke_units::{Duration, Time};
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

fn unpacked(path: &Path) -> String {
    let mut text = String::new();
    GzDecoder::new(File::open(path).unwrap())
        .read_to_string(&mut text)
        .unwrap();
    text
}

/// Returns a drive of the oracle. If its parameter file lies beside the repository, checks that the
/// import gives the same drive, apart from the queue.
fn drive(name: &str, parameters: &str, reading: Reading) -> DriveConfig {
    let text = std::fs::read_to_string(oracle::path(&format!("drives/{name}.toml"))).unwrap();
    let config: DriveConfig = toml::from_str(&text).unwrap();
    if let Some(path) = oracle::shared(&format!("oracle/{parameters}")) {
        let options = ImportOptions {
            reading,
            ..ImportOptions::default()
        };
        let mut imported = import(&path, &options).unwrap().remove(0).config;
        imported.queue = config.queue.clone();
        assert_eq!(imported, config, "{name}: the oracle has another drive");
    }
    config
}

fn request(id: usize, lbn: u64, sectors: u64, write: bool) -> Request {
    let operation = if write {
        Operation::Write
    } else {
        Operation::Read
    };
    Request {
        id: RequestId(id as u64),
        operation,
        extent: Extent::new(lbn, sectors),
        ..Request::default()
    }
}

/// A drive under the virtual clock, and its answers.
struct ReferenceDrive {
    drive: Drive,
    out: Effects,
    /// Time of completion of each request, and its response time in ms.
    finished: Vec<(Time, f64)>,
}

impl ReferenceDrive {
    fn new(config: DriveConfig, requests: usize) -> ReferenceDrive {
        let drive = DriveModel::new(config).unwrap().drive().unwrap();
        ReferenceDrive {
            drive,
            out: Effects::new(),
            finished: vec![(Time::ZERO, f64::NAN); requests],
        }
    }

    fn collect(&mut self) {
        for effect in self.out.drain() {
            let Effect::Complete { completion, .. } = effect else {
                continue;
            };
            let took = completion
                .finished
                .since(completion.submitted)
                .as_millis_f64();
            self.finished[completion.id.0 as usize] = (completion.finished, took);
        }
    }

    /// Runs the drive until it has nothing to do before `until`.
    fn run_until(&mut self, until: Time) {
        while self.drive.next_wake().at() < until {
            self.drive.wake(
                self.drive.next_wake().at(),
                &mut NodeContext::alone(&mut self.out),
            );
            self.collect();
        }
    }

    /// Runs the drive until it has answered request `id`, and no longer. The next request may
    /// interrupt the drive's own later work.
    fn run_until_answered(&mut self, id: usize) {
        while self.finished[id].1.is_nan() {
            self.drive.wake(
                self.drive.next_wake().at(),
                &mut NodeContext::alone(&mut self.out),
            );
            self.collect();
        }
    }

    fn submit(&mut self, at: Time, request: Request) {
        self.run_until(at);
        self.drive.submit(
            at,
            Port::FIRST,
            request,
            &mut NodeContext::alone(&mut self.out),
        );
        self.collect();
    }

    fn responses(&self) -> Vec<f64> {
        self.finished.iter().map(|&(_, took)| took).collect()
    }
}

/// Returns the mean of a sample.
fn mean(sample: &[f64]) -> f64 {
    sample.iter().sum::<f64>() / sample.len() as f64
}

/// Returns the root mean square difference of two sorted samples of equal size: the distance of
/// their distributions.
fn demerit(ours: &[f64], theirs: &[f64]) -> f64 {
    let sorted = |sample: &[f64]| {
        let mut sample = sample.to_vec();
        sample.sort_by(f64::total_cmp);
        sample
    };
    let squares = sorted(ours)
        .iter()
        .zip(sorted(theirs))
        .map(|(a, b)| (a - b) * (a - b))
        .sum::<f64>();
    (squares / ours.len() as f64).sqrt()
}

/// Largest distance from a reference, as shares of the reference's mean.
#[derive(Clone, Copy)]
struct Bounds {
    mean: f64,
    rms: f64,
}

/// The required bounds.
const MARK: Bounds = Bounds {
    mean: 0.01,
    rms: 0.02,
};

/// One request at a time, in order of arrival.
const FCFS: &str = r#"{"depth": 64, "discipline": "fcfs"}"#;

/// A time above any command's overhead: no command is prepared early.
const NOT_PREPARED_MS: f64 = 1e3;

/// Sets the reference's write-back, which is simpler than its parameter file. The reference holds
/// one write in its buffer, regardless of the number of write segments, and writes it to the medium
/// before all other work. Our drive fills three segments, as in the file, and serves reads first;
/// its answers are up to a fifth faster.
fn write_back_of_the_reference(config: &mut DriveConfig) {
    if let Some(buffer) = &mut config.buffer {
        buffer.write_segments = 1;
        buffer.destage_watermark = 0.0;
    }
}

/// A request of a reference file with the reference's answer.
#[derive(Debug, PartialEq)]
struct ReferenceRow {
    at: Time,
    lbn: u64,
    sectors: u64,
    write: bool,
    response_ms: f64,
}

impl ReferenceRow {
    fn new(arrival_ms: f64, lbn: u64, sectors: u64, write: bool, response_ms: f64) -> ReferenceRow {
        let at = Time::from_nanos((arrival_ms * 1e6).round() as u64);
        ReferenceRow {
            at,
            lbn,
            sectors,
            write,
            response_ms,
        }
    }
}

/// Returns the rows of a case: the first 200 rows and, if the reference is present, all rows.
fn reference(name: &str) -> Vec<Vec<ReferenceRow>> {
    let case = format!("cheetah9LP.{name}");
    let (table, column) = oracle::mechanics(&case);
    let table = Table::read(&table);
    let (arrival_ms, lbn, sectors) = (
        table.numbers("arrival_ms"),
        table.numbers("lbn"),
        table.numbers("sectors"),
    );
    let (operation, response_ms) = (table.column("operation"), table.numbers(&column));
    let first = (0..lbn.len()).map(|at| {
        let write = operation[at] == "W";
        ReferenceRow::new(arrival_ms[at], lbn[at], sectors[at], write, response_ms[at])
    });
    let mut parts = vec![first.collect::<Vec<_>>()];
    if let Some(path) = oracle::shared(&format!("oracle/mechanics/{case}.csv.gz")) {
        let text = unpacked(&path);
        check_digest(&table, &column, text.as_bytes());
        let row = |line: &str| {
            let fields: Vec<&str> = line.split(',').collect();
            let number = |field: usize| fields[field].parse::<f64>().unwrap();
            let (lbn, sectors) = (number(1) as u64, number(2) as u64);
            ReferenceRow::new(number(0), lbn, sectors, fields[3] == "W", number(4))
        };
        parts.push(text.lines().skip(1).map(row).collect());
        assert!(
            parts[1].starts_with(&parts[0]),
            "{case}: the oracle has other requests"
        );
    }
    parts
}

/// Returns the drive of the reference's cases of one kind, with a queue in the drive. The
/// reference's host gives its drive one request at a time. Both are equal for all orders that
/// ignore the head position, if no part of a command is prepared before the previous command has
/// ended.
fn drive_of_the_host(set: &str, queue: &str) -> DriveConfig {
    let parameters = format!("mechanics/param/cheetah9LP.{set}.fcfs.parv");
    let mut config = drive(
        &format!("cheetah9LP.{set}"),
        &parameters,
        Reading::AS_WRITTEN,
    );
    config.queue = serde_json::from_str::<QueueConfig>(queue).unwrap();
    config.queued_overhead_ms = NOT_PREPARED_MS;
    write_back_of_the_reference(&mut config);
    config
}

/// Returns the drive with the reference's queue of 32 in the drive itself.
fn drive_with_queue(order: &str) -> DriveConfig {
    let parameters = format!("mechanics/param/cheetah9LP.cachez.q32{order}.parv");
    let mut config = drive("cheetah9LP.cachez", &parameters, Reading::AS_WRITTEN);
    let discipline = match order {
        "clook_lbn" => "c-look",
        "sstf_lbn" => "sstf",
        "sptf" => {
            config.queue = QueueConfig::default();
            return config;
        }
        other => other,
    };
    let queue = format!(r#"{{"depth": 32, "discipline": "{discipline}", "concatenate": false}}"#);
    config.queue = serde_json::from_str(&queue).unwrap();
    config
}

/// Returns the drive's and the reference's answers to the rows, in ms.
fn replay_rows(rows: &[ReferenceRow], config: DriveConfig) -> (Vec<f64>, Vec<f64>) {
    let mut bench = ReferenceDrive::new(config, rows.len());
    for (id, row) in rows.iter().enumerate() {
        bench.submit(row.at, request(id, row.lbn, row.sectors, row.write));
    }
    bench.run_until(Time::NEVER);
    let theirs = rows.iter().map(|row| row.response_ms).collect();
    (bench.responses(), theirs)
}

/// Compares the answers. `first` bounds the first 200 requests, where a single request with another
/// rotational phase is visible.
fn assert_near(name: &str, config: &DriveConfig, bounds: Bounds, first: Bounds) {
    for rows in reference(name) {
        let (ours, theirs) = replay_rows(&rows, config.clone());
        let bounds = if rows.len() == 200 { first } else { bounds };
        let of = mean(&theirs);
        let (difference, rms) = (mean(&ours) / of - 1.0, demerit(&ours, &theirs) / of);
        println!(
            "{name:40} {:5} requests, mean {:8.4} ms, reference {of:8.4} ms: {difference:+.4}, rms {rms:.4}",
            rows.len(),
            mean(&ours)
        );
        assert!(
            difference.abs() < bounds.mean,
            "{name}: mean {difference:+.4}"
        );
        assert!(rms < bounds.rms, "{name}: rms {rms:.4}");
    }
}

fn assert_near_one_at_a_time(set: &str, traces: &[&str], bounds: Bounds, first: Bounds) {
    for trace in traces {
        let config = drive_of_the_host(set, FCFS);
        assert_near(&format!("{set}.{trace}.fcfs"), &config, bounds, first);
    }
}

#[test]
fn without_a_buffer_overheads_and_bus_agree_with_the_reference() {
    let traces = [
        "burst20",
        "mix7030_poisson20",
        "mix7030_spaced",
        "rread4k_poisson15",
        "rread4k_spaced",
        "rread64k_spaced",
        "seqread64k_20ms",
        "seqwrite64k_20ms",
    ];
    assert_near_one_at_a_time(
        "nocache",
        &traces,
        Bounds {
            mean: 0.001,
            rms: 0.002,
        },
        Bounds {
            mean: 0.003,
            rms: 0.009,
        },
    );
}

#[test]
fn with_a_buffer_answers_agree_with_the_reference() {
    let traces = [
        "burst20",
        "mix7030_poisson20",
        "mix7030_spaced",
        "rread4k_poisson15",
        "rread4k_spaced",
        "rread64k_spaced",
        "seqwrite64k_20ms",
    ];
    assert_near_one_at_a_time("cache", &traces, MARK, MARK);
}

/// The file has mode 4: read-ahead ends with the track or, in a stream, with the next track. Some
/// sequential reads then wait a revolution. (The measured disk reads on: rule `fill`.)
#[test]
fn sequential_reads_stall_as_those_of_the_reference_do() {
    let (trace, bounds) = (
        "cache.seqread64k_20ms.fcfs",
        Bounds {
            mean: 0.001,
            rms: 0.003,
        },
    );
    let config = drive_of_the_host("cache", FCFS);
    let first = Bounds {
        mean: 0.001,
        rms: 0.005,
    };
    assert_near(trace, &config, bounds, first);
    let stalled = |sample: &[f64]| sample[1..].iter().filter(|&&took| took > 13.7).count();
    for rows in reference(trace) {
        let (ours, theirs) = replay_rows(&rows, config.clone());
        println!(
            "stalled: {} of ours, {} of the reference's {}",
            stalled(&ours),
            stalled(&theirs),
            theirs.len()
        );
        assert!(stalled(&theirs) > 0);
        assert!(stalled(&ours).abs_diff(stalled(&theirs)) < 10.min(rows.len() / 100));
    }
}

#[test]
fn scheduled_bursts_on_a_buffer_agree_with_the_reference() {
    for (order, queue) in [
        (
            "clook_lbn",
            r#"{"depth": 64, "discipline": "c-look", "by": "lbn"}"#,
        ),
        (
            "look_lbn",
            r#"{"depth": 64, "discipline": "look", "by": "lbn"}"#,
        ),
        (
            "sstf_lbn",
            r#"{"depth": 64, "discipline": "sstf", "by": "lbn"}"#,
        ),
    ] {
        let config = drive_of_the_host("cache", queue);
        assert_near(&format!("cache.burst20.{order}"), &config, MARK, MARK);
    }
}

/// A host that chooses by access time does not know that the drive writes elsewhere, nor for how
/// long. A drive knows, and answers 9 % faster. The reference's own queue in the drive agrees with
/// ours to 1 % (see below).
#[test]
fn satf_in_the_drive_is_better_than_that_of_the_reference_host() {
    let queue = r#"{"depth": 64, "discipline": "satf"}"#;
    let config = drive_of_the_host("cache", queue);
    for rows in reference("cache.burst20.sptf") {
        let (ours, theirs) = replay_rows(&rows, config.clone());
        let ratio = mean(&ours) / mean(&theirs);
        println!("cache.burst20.sptf: {ratio:.4} of the reference's mean");
        assert!((0.89..0.93).contains(&ratio), "{ratio}");
    }
}

/// Two of the means exceed the mark by 0.1 %, because some bursts are served in another order. The
/// reason is unknown.
#[test]
fn bursts_in_the_queue_of_a_drive_with_a_buffer_agree_with_the_reference() {
    for order in ["fcfs", "clook_lbn", "sstf_lbn", "sptf"] {
        let name = format!("cachez.burst20.indisk_q32_{order}");
        let mut config = drive_with_queue(order);
        write_back_of_the_reference(&mut config);
        let bounds = Bounds {
            mean: 0.012,
            rms: 0.02,
        };
        // Ten bursts: one burst in another order is 2 % of the mean.
        let first = Bounds {
            mean: 0.05,
            rms: 0.07,
        };
        assert_near(&name, &config, bounds, first);
    }
}

/// Uses the three write segments of the file, and serves reads first.
#[test]
fn the_write_segments_of_the_file_answer_sooner_than_the_one_of_the_reference() {
    let name = "cachez.burst20.indisk_q32_fcfs";
    let config = drive_with_queue("fcfs");
    assert_eq!(
        config.buffer.as_ref().map(|buffer| buffer.write_segments),
        Some(3)
    );
    for rows in reference(name) {
        let (ours, theirs) = replay_rows(&rows, config.clone());
        let ratio = mean(&ours) / mean(&theirs);
        println!("{name} with three write segments: {ratio:.4} of the reference's mean");
        assert!((0.78..0.84).contains(&ratio), "{ratio}");
    }
}

/// A request of a measured trace: address, length, true for a write, time of the disk, and
/// following think time of the host.
#[derive(Debug, PartialEq)]
struct MeasuredRequest {
    lbn: u64,
    sectors: u64,
    write: bool,
    service_ms: f64,
    think: Duration,
}

/// Parses the requests of a line in the format of validation traces.
fn measured(line: &str) -> MeasuredRequest {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let number = |field: usize| fields[field].parse::<f64>().unwrap();
    MeasuredRequest {
        lbn: number(2) as u64,
        sectors: number(3) as u64,
        write: fields[0] == "W",
        service_ms: number(4) / 1e3,
        think: Duration::from_millis_f64(number(5) / 1e3),
    }
}

/// Replays a measured trace, one request at a time, with its think times. Returns the demerit in ms
/// and the measured mean.
fn replay(config: DriveConfig, rows: &[MeasuredRequest]) -> (f64, f64) {
    let mut bench = ReferenceDrive::new(config, rows.len());
    let mut at = Time::ZERO;
    for (id, row) in rows.iter().enumerate() {
        bench.submit(at, request(id, row.lbn, row.sectors, row.write));
        bench.run_until_answered(id);
        at = bench.finished[id].0 + row.think;
    }
    let measured: Vec<f64> = rows.iter().map(|row| row.service_ms).collect();
    (demerit(&bench.responses(), &measured), mean(&measured))
}

fn drive_of_measured(disk: &str) -> DriveConfig {
    drive(disk, &format!("disks/{disk}.parv"), Reading::default())
}

/// For each disk: the distance of DiskSim 4.0, and the distance of this model when its rules were
/// found; both in ms. If a change moves the second by more than 0.002, up or down, check the
/// reason.
const MEASURED: [(&str, f64, f64); 8] = [
    ("hp_c2247a", 0.094, 0.0861),
    ("cheetah9LP", 0.108, 0.0797),
    ("ibm18es", 0.136, 0.0753),
    ("barracuda", 0.348, 0.2123),
    ("atlas10k", 0.268, 0.0798),
    ("atlas_III", 0.378, 0.2260),
    ("hp_c2490a", 0.255, 0.2483),
    ("hp_c3323a", 0.289, 0.2284),
];

/// Disks where the model is farther than 3 % of the mean; VALIDATION.md has the reasons.
const FARTHER: [&str; 2] = ["barracuda", "atlas_III"];

#[test]
fn measured_disks_are_nearer_than_disksim_and_most_of_them_than_3_percent() {
    for (disk, disksim_ms, reached_ms) in MEASURED {
        let Some(path) = oracle::shared(&format!("oracle/disks/{disk}.trace.gz")) else {
            return;
        };
        let (text, table) = (unpacked(&path), Table::read(&format!("disks/{disk}")));
        check_digest(&table, "service_us", text.as_bytes());
        let rows: Vec<MeasuredRequest> = text.lines().map(measured).collect();
        let (rms_ms, mean_ms) = replay(drive_of_measured(disk), &rows);
        println!(
            "{disk:10} rms {rms_ms:.4} ms = {:.2} % of the mean",
            rms_ms / mean_ms * 100.0
        );
        assert!(
            rms_ms < disksim_ms,
            "{disk}: {rms_ms} ms, DiskSim {disksim_ms} ms"
        );
        assert!(
            FARTHER.contains(&disk) == (rms_ms > 0.03 * mean_ms),
            "{disk}: {rms_ms} ms of {mean_ms} ms"
        );
        assert!(
            (rms_ms - reached_ms).abs() < 0.002,
            "{disk}: {rms_ms} ms, was {reached_ms} ms"
        );
    }
}

/// The first 200 requests of each disk. If a change moves a distance by more than 0.002 ms, up or
/// down, check the reason, as for all requests.
#[test]
fn the_first_requests_of_measured_disks_are_as_near_as_they_were() {
    let reached = Table::read("reached");
    for (disk, reached_ms) in reached
        .column("disk")
        .into_iter()
        .zip(reached.numbers::<f64>("rms_ms"))
    {
        let table = Table::read(&format!("disks/{disk}"));
        let rows: Vec<MeasuredRequest> = table.validation_trace().lines().map(measured).collect();
        let (rms_ms, mean_ms) = replay(drive_of_measured(disk), &rows);
        let disksim_ms = table.has("disksim_ms").then(|| {
            let theirs: Vec<f64> = rows.iter().map(|row| row.service_ms).collect();
            demerit(&table.numbers("disksim_ms"), &theirs)
        });
        println!(
            "{disk:10} rms {rms_ms:.4} ms = {:.2} % of the mean, DiskSim {disksim_ms:?}",
            rms_ms / mean_ms * 100.0
        );
        assert!(
            disksim_ms.is_none_or(|disksim_ms| rms_ms < disksim_ms),
            "{disk}: {rms_ms} ms, DiskSim {disksim_ms:?}"
        );
        assert!(
            (rms_ms - reached_ms).abs() < 0.002,
            "{disk}: {rms_ms} ms, was {reached_ms} ms"
        );
    }
}
