//! A cache on a flash device in front of a volume.

use crate::stack_files::{load, reading};
use fullstroke_contract::{Counters, RequestStatus};
use fullstroke_engine::{Finished, Observer};
use fullstroke_stack::{Overrides, Stack};
use std::fs;

#[derive(Default)]
struct Responses {
    sum_ms: f64,
    count: usize,
    lost: usize,
}

impl Observer for Responses {
    fn finished(&mut self, finished: &Finished) {
        let response = finished.completion.finished.since(finished.arrived);
        self.sum_ms += response.as_millis_f64();
        self.count += 1;
        self.lost += usize::from(finished.completion.status == RequestStatus::Lost);
    }
}

/// Returns the mean response time in ms, the lost requests and the counters.
fn run(set: &[&str]) -> (f64, usize, Counters) {
    let mut responses = Responses::default();
    let stack = load(STACK, set).unwrap_or_else(|error| panic!("{error}"));
    let end = stack.build().unwrap().engine().run(&mut responses).unwrap();
    let mean = responses.sum_ms / responses.count as f64;
    (mean, responses.lost, end.counters)
}

const STACK: &str = r#"
seed = 1

[workload]
kind = "synthetic"
requests = 6000
read_share = 0.7
size = "4KiB"
region_size = "32MiB"
arrivals = { process = "poisson", rate_per_s = 60 }

[cache]
kind = "bcache"
drive = "samsung-870-evo-1tb"
size = "288MiB"

[volume]
layout = "raid5"
drive = "quantum-atlas-10k"
drives = 4
"#;

#[test]
fn writing_back_is_faster_than_writing_through_and_a_cache_faster_than_none() {
    let without = [
        "volume.layout=raid5",
        "cache.sequential_cutoff=0",
        "cache.mode=writearound",
    ];
    let (around, _, _) = run(&without);
    let (through, _, counters) = run(&["cache.mode=writethrough"]);
    let (back, _, written) = run(&["cache.mode=writeback"]);
    assert!(
        back < through && through < around,
        "{back} {through} {around}"
    );
    assert!(reading(&counters, "ssd_hit_share") > 0.25, "{counters:?}");
    assert_eq!(reading(&counters, "ssd_dirty_mb"), 0.0);
    assert!(reading(&written, "ssd_dirty_mb") > 0.0);
    // Four disks and the flash device.
    assert_eq!(counters.drives.len(), 5);
}

#[test]
fn the_flash_device_wears_by_the_writes_the_fills_and_the_map() {
    for kind in ["cache.kind=bcache", "cache.kind=dm-writecache"] {
        let (_, _, counters) = run(&[kind]);
        let of = |name| reading(&counters, name);
        let sum = of("ssd_written_mb") + of("ssd_filled_mb") + of("ssd_map_mb");
        let worn = of("flash_written_mb");
        assert!(
            worn > 0.0 && (sum - worn).abs() < 0.05 * worn,
            "{kind}: {sum} {worn}"
        );
        let share = of("flash_wear_share");
        assert!((share - worn / 600e6).abs() < 1e-9, "{kind}: {share}");
    }
}

#[test]
fn a_lost_device_costs_the_dirty_data_of_write_back_only() {
    let (_, lost, counters) = run(&["cache.mode=writeback", "cache.lost_at=20s"]);
    assert!(
        lost > 1000 && reading(&counters, "ssd_lost_mb") > 0.0,
        "{lost}"
    );
    let (_, lost, counters) = run(&["cache.mode=writethrough", "cache.lost_at=20s"]);
    assert_eq!((lost, reading(&counters, "ssd_lost_mb")), (0, 0.0));
}

#[test]
fn a_flash_device_is_a_member_like_any_other() {
    let mut stack = load(STACK, &["volume.drive=nvme-tlc-1tb"]).unwrap();
    let end = stack
        .build()
        .unwrap()
        .engine()
        .run(&mut Responses::default())
        .unwrap();
    assert_eq!(end.counters.drives.len(), 5);
    stack = load(STACK, &["volume.drive=870 QVO", "volume.layout=raid1"]).unwrap();
    assert_eq!(stack.summary().unwrap().drives, 4);
}

#[test]
fn errors_name_the_key_and_what_was_expected() {
    for (set, key, expected) in [
        ("cache.kind=lvmcache", "cache.kind", "known: bcache"),
        ("cache.size=4TB", "cache.size", "the drive has"),
        ("cache.size=1MiB", "cache.size", "513 buckets"),
        (
            "cache.writeback_percent=70",
            "cache.writeback_percent",
            "0 to 40",
        ),
        (
            "cache.modes=writeback",
            "cache.modes",
            "did you mean `mode`?",
        ),
        ("cache.lost_at=soon", "cache.lost_at", "soon"),
        ("cache.drive=870-evo-9tb", "870-evo-9tb", "no such drive"),
    ] {
        let error = load(STACK, &[set]).err().unwrap_or_default();
        assert!(
            error.contains(key) && error.contains(expected),
            "{set}: {error}"
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stack.toml");
    fs::write(&path, STACK).unwrap();
    let stack = Stack::load_for_clients(&path, &Overrides::default()).unwrap();
    let error = stack.serve().err().unwrap().to_string();
    assert!(
        error.contains("cache") && error.contains("served"),
        "{error}"
    );
}
