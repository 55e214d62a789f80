use super::Stride;
use crate::conformance::{PlainHost, keys};
use proptest::prelude::*;
use serde_json::{Value, json};

fn run(value: Value) -> Result<PlainHost, String> {
    let mut plain = PlainHost::default();
    plain.run("iozone", &keys(value), None, 1)?;
    Ok(plain)
}

/// Returns the records of 4 KiB in the order of the seeks.
fn sought(plain: &PlainHost) -> Vec<u64> {
    let seeks = plain
        .calls
        .iter()
        .filter_map(|call| call.1.split("to: ").nth(1));
    seeks
        .map(|to| to.trim_end_matches(" }").parse::<u64>().unwrap() / 4096)
        .collect()
}

fn count(plain: &PlainHost, what: &str) -> usize {
    plain
        .calls
        .iter()
        .filter(|(_, call)| call.starts_with(what))
        .count()
}

#[test]
fn every_kind_moves_the_file_once_and_has_its_figure() {
    let plain = run(json!({})).unwrap();
    assert_eq!(
        (plain.written, plain.read),
        (4 * (512 << 10), 5 * (512 << 10))
    );
    assert_eq!(plain.report.figures.len(), 9);
    assert!(plain.files.is_empty());
    let row: Vec<&str> = plain
        .report
        .text
        .lines()
        .last()
        .unwrap()
        .split_whitespace()
        .collect();
    assert_eq!((row.len(), row[0], row[1]), (11, "512", "4"));
    // 4 KiB per microsecond, and one more microsecond for each seek.
    assert_eq!(row[2], "4000000");
    assert_eq!(row[6], "2000000");
}

#[test]
fn records_are_sought_in_the_order_of_their_kind() {
    let of = |kind: &str| {
        sought(&run(json!({ "size": "80KiB", "kinds": [kind], "stride": 7 })).unwrap())
    };
    assert_eq!(of("backward-read"), (0..20).rev().collect::<Vec<u64>>());
    assert_eq!(of("record-rewrite"), [0; 20]);
    assert_eq!(
        of("strided-read"),
        [
            0, 7, 14, 1, 8, 15, 2, 9, 16, 3, 10, 17, 4, 11, 18, 5, 12, 19, 6, 13
        ]
    );
    let mut random = of("random-read");
    assert_ne!(random, (0..20).collect::<Vec<u64>>());
    random.sort_unstable();
    assert_eq!(random, (0..20).collect::<Vec<u64>>());
}

#[test]
fn what_counts_is_said_by_its_keys() {
    let rate = |value: Value| run(value).unwrap().report.figures[0].1;
    let base = rate(json!({ "size": "40KiB", "kinds": ["write"] }));
    // Ten records take 10 µs. An fsync and a close take 1 µs each.
    assert!((base - 4096.0).abs() < 1e-6, "{base}");
    let fsync = rate(json!({ "size": "40KiB", "kinds": ["write"], "fsync": true }));
    assert!((fsync * 11.0 - 40_960.0).abs() < 1e-6, "{fsync}");
    let close = rate(json!({ "size": "40KiB", "kinds": ["write"], "close": true }));
    assert!((close * 12.0 - 40_960.0).abs() < 1e-6, "{close}");
    let flags = run(json!({ "kinds": ["write", "read"], "direct": true, "sync": true })).unwrap();
    assert_eq!(
        flags
            .calls
            .iter()
            .filter(|call| call.1.contains("direct: true"))
            .count(),
        2
    );
    assert_eq!(
        flags
            .calls
            .iter()
            .filter(|call| call.1.contains("durable: true"))
            .count(),
        1
    );
}

#[test]
fn processes_begin_each_kind_together_on_files_of_their_own() {
    let plain = run(json!({ "processes": 3, "kinds": ["write", "read"] })).unwrap();
    let last_write = plain
        .calls
        .iter()
        .rposition(|call| call.1.starts_with("Write"))
        .unwrap();
    let first_read = plain
        .calls
        .iter()
        .position(|call| call.1.starts_with("Read"))
        .unwrap();
    assert!(last_write < first_read);
    assert_eq!(count(&plain, "Open"), 6);
    assert!(
        plain
            .calls
            .iter()
            .any(|call| call.0 == 2 && call.1.contains("iozone.tmp.DUMMY.2"))
    );
    assert!(
        plain
            .report
            .text
            .contains("Children see throughput for  3 initial writers")
    );
}

#[test]
fn keys_that_cannot_be_are_named() {
    for (value, key) in [
        (json!({ "size": "1KiB" }), "size"),
        (json!({ "size": "1TiB" }), "size"),
        (json!({ "record": 0 }), "record"),
        (json!({ "kinds": [] }), "kinds"),
        (json!({ "kinds": ["fwrite"] }), "kinds[0]"),
        (json!({ "stride": 0 }), "stride"),
        (json!({ "processes": 0 }), "processes"),
    ] {
        let error = run(value).err().expect(key);
        assert!(error.contains(&format!("`{key}`")), "{key}: {error}");
    }
}

proptest! {
    #[test]
    fn a_stride_comes_to_every_record_once(stride in 1u64..50, records in 1u64..500) {
        let mut at = Stride::default();
        let mut seen: Vec<u64> = (0..records).map(|_| at.next(stride, records)).collect();
        seen.sort_unstable();
        prop_assert_eq!(seen, (0..records).collect::<Vec<u64>>());
    }
}
