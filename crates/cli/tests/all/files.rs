//! `fullstroke fs`: file systems, shown.

use crate::common::{refused, success};
use serde_json::Value;
use std::fs;
use std::path::Path;

fn sample(name: &str) -> String {
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    project
        .join("samples/files")
        .join(name)
        .to_str()
        .unwrap()
        .to_owned()
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&success(&[arguments, &["--json"]].concat())).unwrap()
}

#[test]
fn a_script_shows_where_each_file_lies() {
    let script = sample("growing.fs");
    for kind in ["ext2", "ext4", "xfs"] {
        let shown = json(&[
            "fs", "show", kind, "--size", "1GiB", "--script", &script, "--file", "logs/c",
        ]);
        let extents = shown["file"]["fragments"].as_array().unwrap();
        let pages: u64 = extents
            .iter()
            .map(|extent| extent["pages"].as_u64().unwrap())
            .sum();
        // 200 files of 100 KiB are 5,000 pages.
        assert_eq!(pages, 5000, "{kind}");
        assert_eq!(shown["fragmentation"]["files"], 8, "{kind}");
        assert!(
            shown["script"]["metadata_changes"].as_u64().unwrap() > 0,
            "{kind}"
        );
    }
}

#[test]
fn ext2_of_2_6_22_parts_files_that_grow_together_and_ext4_does_not() {
    let script = sample("growing.fs");
    let of = |kind, set: &[&str]| {
        let arguments = [
            &["fs", "show", kind, "--size", "1GiB", "--script", &script],
            set,
        ]
        .concat();
        json(&arguments)["fragmentation"]["fragments"]
            .as_u64()
            .unwrap()
    };
    let preallocated = of("ext2", &[]);
    let reserved = of("ext2", &["--set", "allocation=reservation"]);
    assert!(preallocated > 2 * reserved, "{preallocated} and {reserved}");
    assert!(reserved > 2 * of("ext4", &[]), "{reserved}");
}

#[test]
fn an_aged_file_system_is_drawn() {
    let text = success(&["fs", "show", "ext4", "--size", "256MiB", "--age", "desktop"]);
    for part in [
        "ext4 on 256MiB",
        "block groups",
        "extents per file",
        "device page",
        "Each line a block group",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert_eq!(
        text.lines().filter(|line| line.ends_with('|')).count(),
        2,
        "a line for each group: {text}"
    );
    // A raw device has no properties except its size.
    assert!(success(&["fs", "show", "raw"]).contains("raw on 10GiB"));
}

#[test]
fn what_cannot_be_made_or_played_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("a.fs");
    let path = script.to_str().unwrap();
    let played = |text: &str| {
        fs::write(&script, text).unwrap();
        refused(&["fs", "show", "ext2", "--size", "128MiB", "--script", path])
    };
    for (message, parts) in [
        (
            refused(&["fs", "show", "ext5"]),
            &["no file system `ext5`", "ext4"][..],
        ),
        (
            refused(&["fs", "show", "ext4", "--set", "comit=5s"]),
            &["`comit`", "did you mean `commit`?"],
        ),
        (
            refused(&["fs", "show", "xfs", "--set", "kernel=2.4"]),
            &["`kernel`", "2.6.24", "today"],
        ),
        (
            refused(&["fs", "show", "xfs", "--size", "1MiB"]),
            &["1MiB is too small"],
        ),
        (
            refused(&["fs", "show", "ext2", "--age", "male"]),
            &["no profile `male`", "did you mean `mail`?"],
        ),
        (
            refused(&["fs", "show", "ext2", "--file", "x"]),
            &["no file `x`"],
        ),
        (
            refused(&["fs", "show", "xfs", "--stripe", "64KiB"]),
            &["UNITxMEMBERS"],
        ),
        (
            played("sync\nmkdri a"),
            &["a.fs: line 2", "`mkdri`", "did you mean `mkdir`?"],
        ),
        (
            played("append nothing 4KiB"),
            &["a.fs: line 1", "there is no `nothing`"],
        ),
        (
            played("create a 1TiB"),
            &["a.fs: line 1", "no space is left"],
        ),
    ] {
        for part in parts {
            assert!(message.contains(part), "`{part}` in {message}");
        }
    }
}

/// A stack with programs on an aged file system.
const AGED: &str = "[workload]\nkind = \"script\"\nfile = \"list\"\n[host]\nelevator = \"noop\"\n[host.memory]\n\
    size = \"16MiB\"\n[host.files]\nkind = \"ext4\"\nsize = \"512MiB\"\nage = \"desktop\"\n[volume]\n\
    drive = \"quantum-atlas-10k-9.1gb\"\n";

#[test]
fn the_aligner_says_what_moves_cost_and_bring_and_writes_them_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(path("stack.toml"), AGED).unwrap();
    fs::write(path("list"), "create a 4KiB\n").unwrap();
    let (stack, moves) = (path("stack.toml"), path("moves"));
    let call = [
        "fs",
        "align",
        &stack,
        "--rounds",
        "3",
        "--files",
        "30",
        "--write-moves",
        &moves,
    ];
    let found = json(&call);
    let lines = fs::read_to_string(&moves).unwrap();
    let pages: u64 = lines
        .lines()
        .map(|line| {
            serde_json::from_str::<Value>(line).unwrap()["pages"]
                .as_u64()
                .unwrap()
        })
        .sum();
    assert_eq!(
        found["cost"]["bytes"].as_str().unwrap(),
        format!("{}KiB", pages * 4)
    );
    assert!(
        found["is"]["aligned"].as_u64() > found["was"]["aligned"].as_u64(),
        "{found}"
    );
    assert!(found["gain"]["before_half_width_ms"].as_f64().unwrap() > 0.0);
    let text = success(&call);
    for part in [
        "plan: ",
        "cost: ",
        "gain: 30 files, 4 at once, 3 times",
        "the moves ",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let striped = ["--set", "volume.layout=raid0", "--set", "volume.drives=2"];
    assert!(refused(&[&["fs", "align", &stack][..], &striped].concat()).contains("raid0 of 2"));
}
