//! Stacks of disks that compute parity themselves: the stacks of `studies/chang-du-2001`,
//! shortened, and refused settings.

use fullstroke_contract::LayerOrder;
use fullstroke_engine::{Finished, Graph, Machine, Observer, RunOutcome};
use fullstroke_stack::{Overrides, Stack};
use fullstroke_units::{Duration, Time};
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../studies/chang-du-2001/stacks")
}

fn load(file: &str, set: &[&str]) -> Result<Stack, String> {
    let set = set.iter().map(|&key| key.to_owned()).collect();
    let overrides = Overrides {
        set,
        requests: Some(3000),
        ..Overrides::default()
    };
    Stack::load(&folder().join(file), &overrides).map_err(|error| error.to_string())
}

struct Books;

impl Observer for Books {
    fn finished(&mut self, finished: &Finished) {
        let span = finished.completion.finished.since(finished.arrived);
        assert_eq!(
            finished.completion.breakdown.response(),
            span,
            "{finished:?}"
        );
    }
}

fn run(file: &str, set: &[&str]) -> RunOutcome {
    let run = load(file, set)
        .unwrap_or_else(|error| panic!("{error}"))
        .build()
        .unwrap();
    run.engine().run(&mut Books).unwrap()
}

#[test]
fn every_stack_runs_and_the_parts_add_up() {
    for file in [
        "base.toml",
        "one-loop.toml",
        "fast-disk.toml",
        "host-based.toml",
    ] {
        let outcome = run(file, &[]);
        assert_eq!(
            (outcome.completed, outcome.requests),
            (3000, 3000),
            "{file}"
        );
    }
}

#[test]
fn smart_disks_are_drives_with_names_and_counters() {
    let run = load("one-loop.toml", &[]).unwrap().build().unwrap();
    let mut engine = run.engine();
    let outcome = engine.run(&mut Books).unwrap();
    assert_eq!(
        engine.graph().drive_names().collect::<Vec<_>>(),
        ["0", "1", "2", "3", "4", "5", "6", "7"]
    );
    let drives = &outcome.counters.drives;
    assert_eq!(drives.len(), 8);
    let layers = &outcome.counters.layers;
    let total = |name: &str| {
        let reading = layers
            .iter()
            .flat_map(|layer| &layer.readings)
            .find(|reading| reading.name == name);
        reading.unwrap().value
    };
    let commands = total("xor_reads") + total("xor_writes") + total("xor_xdws") + total("xor_xpws");
    assert_eq!(
        drives.iter().map(|drive| drive.requests()).sum::<u64>() as f64,
        commands
    );
    for drive in drives {
        let moved = drive.seek + drive.rotation + drive.transfer;
        assert!(
            moved > Duration::ZERO && Time::ZERO + drive.busy <= outcome.end,
            "{drive:?}"
        );
    }
}

#[test]
fn an_order_to_smart_disks_is_refused_by_their_array() {
    let graph = Graph::new(load("one-loop.toml", &[]).unwrap().build().unwrap().layers);
    assert!(graph.hides_drives() && graph.drive_path("2").is_none());
    assert_eq!(
        graph.volume_paths().map(<[usize]>::len).collect::<Vec<_>>(),
        [0]
    );
    let refused =
        Machine::new(graph).order(Time::ZERO, &[], LayerOrder::Fail { member: 2 }, &mut ());
    assert!(
        refused
            .unwrap_err()
            .0
            .contains("support neither failed nor restored")
    );
}

#[test]
fn the_fast_disk_is_twice_as_fast_but_for_its_overhead() {
    let fast = run("fast-disk.toml", &["volume.members[0].delta_ms=1.5"]).end;
    let slow = run("base.toml", &[]).end;
    let ratio = slow.as_secs_f64() / fast.as_secs_f64();
    assert!((1.7..2.0).contains(&ratio), "{ratio}");
}

#[test]
fn every_discipline_runs_and_its_keys_are_its_own() {
    for discipline in fullstroke_smart::discipline::REGISTRY {
        let set = format!("volume.discipline=\"{}\"", discipline.name);
        assert_eq!(
            run("one-loop.toml", &[&set]).completed,
            3000,
            "{}",
            discipline.name
        );
    }
    let error = load(
        "one-loop.toml",
        &["volume.discipline=\"greedy\"", "volume.delta_ms=3"],
    )
    .err()
    .unwrap();
    assert!(error.contains("`volume.delta_ms`"), "{error}");
}

#[test]
fn bytes_lie_as_chunk_and_rotation_say_and_nothing_else_counts() {
    let digest = |set: &[&str]| load("one-loop.toml", set).unwrap().volume_digest();
    let base = digest(&[]);
    assert_eq!(base, digest(&["volume.segments=16", "volume.delta_ms=1"]));
    assert_ne!(base, digest(&["volume.chunk=\"32KiB\""]));
    let stack = load("one-loop.toml", &[]).unwrap();
    let summary = stack.summary().unwrap();
    assert_eq!(
        stack.serve().unwrap().shape.capacity().bytes(),
        summary.usable
    );
    assert_eq!(
        (
            summary.layout.as_str(),
            summary.drives,
            summary.failures_survived
        ),
        ("xor of 8", 8, 1)
    );
}

#[test]
fn what_cannot_be_names_the_key_and_the_line() {
    for (set, key, says) in [
        (
            "volume.discipline=\"gredy\"",
            "volume.discipline",
            "did you mean `greedy`",
        ),
        ("volume.segments=1", "volume.segments", "needs 2"),
        ("volume.failed=[0]", "volume.failed", "raid5"),
        (
            "volume.layout=\"xro\"",
            "volume.layout",
            "did you mean `xor`",
        ),
        (
            "volume.segmnts=4",
            "volume.segmnts",
            "did you mean `segments`",
        ),
        ("volume.drives=2", "volume.members", "at least 3"),
        (
            "host.members={ queue_depth = 4 }",
            "host.members",
            "between the link and the drives",
        ),
    ] {
        let error = load("one-loop.toml", &[set])
            .err()
            .unwrap_or_else(|| panic!("{set} is accepted"));
        assert!(
            error.contains(key) && error.contains(says),
            "{set}: {error}"
        );
    }
}

#[test]
fn volumes_are_no_smart_disks() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nested.toml");
    let nested = "[workload]\nkind = \"synthetic\"\nrequests = 10\narrivals = { process = \"closed\", outstanding = 1 }\n\
                  [volume]\nlayout = \"xor\"\ndrive = \"ibm-ultrastar-xp-4.51gb\"\n\
                  [[volume.members]]\nlayout = \"raid0\"\ndrives = 2\ncount = 3\n";
    std::fs::write(&path, nested).unwrap();
    let error = Stack::load(&path, &Overrides::default())
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.contains("nested.toml") && error.contains("members of an xor array are drives"),
        "{error}"
    );
}
