//! Tests that fio's output can be read: logs of latencies and rates, and JSON reports. The tests
//! that run fio are skipped with a message if fio is not installed.

use fullstroke_trace::{FioReport, TraceError, TraceOptions, TraceReader, TraceSummary};
use std::path::Path;
use std::process::Command;

/// Runs a small job in `folder` with further options. Returns `false` without fio.
fn ran(folder: &Path, options: &[&str]) -> bool {
    let job = [
        "--name=job",
        "--filename=data",
        "--size=1m",
        "--rw=randrw",
        "--bs=4k",
        "--number_ios=100",
        "--write_lat_log=log",
        "--write_bw_log=log",
    ];
    let status = Command::new("fio")
        .args(job)
        .args(options)
        .current_dir(folder)
        .output();
    match status {
        Ok(output) if output.status.success() => true,
        _ => {
            eprintln!("skipped: fio is not installed or does not run here");
            false
        }
    }
}

fn summary(path: &Path, needs_addresses: bool) -> Result<TraceSummary, TraceError> {
    let options = TraceOptions {
        needs_addresses,
        ..TraceOptions::default()
    };
    let mut reader = TraceReader::open(path, &options)?;
    assert_eq!(reader.format().name, "fio-log");
    TraceSummary::of(&mut reader)
}

#[test]
fn logs_with_offsets_are_traces() {
    let folder = tempfile::tempdir().unwrap();
    if !ran(
        folder.path(),
        &[
            "--log_offset=1",
            "--output-format=json",
            "--output=job.json",
        ],
    ) {
        return;
    }
    let report = FioReport::read(&folder.path().join("job.json")).unwrap();
    let requests: u64 = report.jobs[0]
        .directions
        .iter()
        .map(|direction| direction.requests)
        .sum();
    for (name, known) in [("lat", true), ("clat", true), ("bw", false)] {
        let summary = summary(&folder.path().join(format!("log_{name}.1.log")), true).unwrap();
        assert_eq!(summary.requests, requests, "{name}: {summary}");
        assert_eq!(
            summary.completions.known,
            if known { requests } else { 0 },
            "{name}"
        );
        let end = summary.addresses.unwrap().end_sector;
        assert!((9..=2048).contains(&end), "{name}: {summary}");
    }
    // The latencies in the log are those of the report.
    let all = summary(&folder.path().join("log_lat.1.log"), true).unwrap();
    for direction in &report.jobs[0].directions {
        let of = all
            .operations
            .iter()
            .find(|of| of.operation == direction.operation)
            .unwrap();
        let (log, report) = (of.response_ms.unwrap(), direction.response_ms_mean.unwrap());
        assert!(
            (log.mean - report).abs() < 1e-3 + report * 1e-3,
            "{} {report}",
            log.mean
        );
    }
}

#[test]
fn logs_without_offsets_are_described_but_not_simulated() {
    let folder = tempfile::tempdir().unwrap();
    if !ran(folder.path(), &[]) {
        return;
    }
    let path = folder.path().join("log_clat.1.log");
    let described = summary(&path, false).unwrap();
    assert_eq!((described.requests, described.addresses), (100, None));
    assert!(
        described
            .notes
            .iter()
            .any(|note| note.contains("log_offset=1")),
        "{described}"
    );
    let json = serde_json::to_value(&described).unwrap();
    assert!(json.get("first_sector").is_none() && json["response_ms"]["mean"].is_number());
    let error = summary(&path, true).unwrap_err();
    assert!(matches!(error, TraceError::WithoutAddresses { .. }));
    assert!(error.to_string().contains("log_offset=1"), "{error}");
}

#[test]
fn a_report_in_json_is_told_from_a_trace() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("job.json");
    let text = r#"{ "fio version" : "fio-3.33", "jobs" : [ { "jobname" : "a",
        "read" : { "total_ios" : 3, "iops" : 1.5, "bw_bytes" : 6144, "runtime" : 2000 } } ] }"#;
    std::fs::write(&path, text).unwrap();
    let error = TraceReader::open(&path, &TraceOptions::default()).unwrap_err();
    assert!(matches!(error, TraceError::FioReport { .. }), "{error}");
    assert!(error.to_string().contains("write_iolog"), "{error}");
    let report = FioReport::read(&path).unwrap();
    assert_eq!(report.jobs[0].directions[0].requests, 3);
}
