//! Every real trace is read with its documented count. The files are no part of
//! the project: where they are not there, the test says so and passes.

use fullstroke_trace::{Options, Summary, TraceReader};
use std::path::PathBuf;

fn shared(file: &str) -> Option<PathBuf> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../../../shared/traces")
        .join(file);
    if path.exists() {
        return Some(path);
    }
    eprintln!("skipped: {} is not there", path.display());
    None
}

/// Reads `file`, recognised unless `said`, and returns what it is like.
fn summary(file: &str, format: &str, said: bool) -> Option<Summary> {
    let path = shared(file)?;
    let options = if said {
        Options::for_format(format)
    } else {
        Options::default()
    };
    let mut reader = TraceReader::open(&path, &options).unwrap();
    assert_eq!(reader.format().name, format, "{file}");
    Some(Summary::of(&mut reader).unwrap())
}

fn share(summary: &Summary, operation: &str) -> f64 {
    summary
        .operations
        .iter()
        .find(|of| of.operation == operation)
        .map_or(0.0, |of| of.share)
}

#[test]
fn every_trace_is_recognised_and_has_its_documented_count() {
    for (file, format, requests) in [
        ("blkreplay/linux-webserver-2.load.gz", "blkreplay", 269_007),
        ("blkreplay/linux-mysql.load.gz", "blkreplay", 80_794),
        (
            "blkreplay/windows-shared-server.load.gz",
            "blkreplay",
            1_371,
        ),
        ("msr/rsrch_1.csv.gz", "msr", 13_780),
        ("msr/wdev_1.csv.gz", "msr", 1_055),
        ("msr/wdev_3.csv.gz", "msr", 682),
        ("vscsi/cloudPhysicsIO.vscsi.gz", "vscsi", 113_872),
        ("blktrace/sample.blktrace.0.gz", "blktrace", 963),
        ("hpl/ajw.1week.srt.gz", "hp-srt", 44_519),
        ("hfplayer/small-tpch.csv.gz", "hfplayer", 780),
    ] {
        let Some(summary) = summary(file, format, false) else {
            continue;
        };
        assert_eq!(
            (summary.requests, summary.skipped_rows),
            (requests, 0),
            "{file}"
        );
    }
}

#[test]
fn an_mqsim_trace_is_read_when_its_format_is_said_and_asked_for_otherwise() {
    let file = "mqsim/tpcc-small.head2000.trace";
    let Some(summary) = summary(file, "mqsim", true) else {
        return;
    };
    assert_eq!(summary.requests, 2_000);
    let error = TraceReader::open(&shared(file).unwrap(), &Options::default())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("--format disksim or --format mqsim"),
        "{error}"
    );
}

#[test]
fn the_blkparse_sample_has_a_request_for_each_insert_event() {
    // It has no queue events: 9,888 inserts, of which one has neither issue nor completion.
    let Some(summary) = summary("blktrace/ext4.blkparse.txt.gz", "blkparse", false) else {
        return;
    };
    assert_eq!(summary.requests, 9_888);
    assert_eq!(
        summary.response_ms.map(|response| response.count),
        Some(9_887)
    );
}

#[test]
fn mixes_sizes_and_spans_are_the_documented_ones() {
    if let Some(summary) = summary("blkreplay/linux-webserver-2.load.gz", "blkreplay", false) {
        assert!((share(&summary, "read") - 0.55).abs() < 0.01, "{summary}");
        assert!(
            (720.5..721.5).contains(
                &(summary.addresses.unwrap().end_sector as f64 * 512.0 / (1u64 << 30) as f64)
            ),
            "{summary}"
        );
        assert!(
            (3_590.0..3_610.0).contains(&summary.duration_s),
            "{summary}"
        );
    }
    if let Some(summary) = summary("blkreplay/linux-mysql.load.gz", "blkreplay", false) {
        assert!((share(&summary, "read") - 0.089).abs() < 0.001, "{summary}");
    }
    if let Some(summary) = summary("msr/rsrch_1.csv.gz", "msr", false) {
        assert!((share(&summary, "read") - 0.003).abs() < 0.001, "{summary}");
        assert!(summary.duration_s > 6.5 * 86_400.0, "{summary}");
    }
    if let Some(summary) = summary("vscsi/cloudPhysicsIO.vscsi.gz", "vscsi", false) {
        assert!((share(&summary, "read") - 0.41).abs() < 0.01, "{summary}");
    }
}
