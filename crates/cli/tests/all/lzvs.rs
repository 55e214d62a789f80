//! Tests of volumes of constant transfer rate.

use crate::common::{Folder, refused, success};
use serde_json::Value;
use std::path::Path;

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&success(&[arguments, &["--json"]].concat())).unwrap()
}

fn stack(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies/lloyd-2002/stacks");
    folder
        .join(format!("{name}.toml"))
        .to_str()
        .unwrap()
        .to_owned()
}

#[test]
fn ratio_and_zones_of_a_drive_are_measured_as_its_description_has_them() {
    for (drive, zones, ratio) in [
        ("ibm-deskstar-40gv", 15, 792.0 / 370.0),
        ("ibm-deskstar-34gxp", 12, 452.0 / 272.0),
    ] {
        let found = json(&["lzvs", "measure", drive]);
        assert_eq!(found["zones"], zones, "{drive}");
        let mean = found["ratio_mean"].as_f64().unwrap();
        assert!(
            (mean / ratio - 1.0).abs() < 0.005,
            "{drive}: {mean} and {ratio}"
        );
    }
}

#[test]
fn a_plan_raises_the_floor_over_raid0_and_runs_as_it_was_written() {
    let folder = Folder::new();
    let file = folder.name("planned.toml");
    let plan = json(&["lzvs", "plan", "--drive", "ibm-deskstar-40gv", "-o", &file]);
    let offers = plan["offers"].as_array().unwrap();
    let of = |layout: &str, key: &str| {
        offers
            .iter()
            .find(|offer| offer["layout"] == layout)
            .unwrap()[key]
            .as_f64()
            .unwrap()
    };
    assert!(of("lzvs", "floor_mb_per_s") > 1.3 * of("raid0", "floor_mb_per_s"));
    assert!(of("lzvs-geo", "floor_mb_per_s") > of("lzvs", "floor_mb_per_s"));
    assert!(of("lzvs", "kept") > 0.999 && of("raid0, outer part", "kept") < 0.8);
    let run = json(&["run", &file, "--requests", "50"]);
    assert_eq!(run["completed"], 50, "{run}");
}

#[test]
fn a_plan_with_floors_is_met_or_refused_with_the_best() {
    let folder = Folder::new();
    let file = folder.name("floors.toml");
    let base = [
        "lzvs",
        "plan",
        "--drive",
        "ibm-deskstar-40gv",
        "--zones",
        "14",
        "--ratio",
        "792/370",
    ];
    let plan = json(
        &[
            &base[..],
            &["--floor", "10GB@55", "--floor", "40GB@40", "-o", &file],
        ]
        .concat(),
    );
    let floors: Vec<u64> = plan["parts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|part| part["floor_bytes_per_s"].as_u64().unwrap())
        .collect();
    assert!(
        floors[0] >= 55_000_000 && floors[1] >= 40_000_000,
        "{floors:?}"
    );
    success(&["stack", "check", &file]);
    let error = refused(&[&base[..], &["--floor", "60GB@55"]].concat());
    assert!(
        error.contains("zones[0].floor_mb_per_s") && error.contains("the highest possible floor"),
        "{error}"
    );
    let error = refused(&[&base[..], &["--floor", "60GB"]].concat());
    assert!(error.contains("200GB@60"), "{error}");
}

/// Lloyd's figure 4.5: order and size of the effects.
#[test]
fn large_reads_take_about_equally_long_everywhere_on_logical_zones() {
    let all = json(&["lzvs", "sweep", &stack("sweep-raid0"), &stack("sweep-lzvs")]);
    let of = |index: usize, key: &str| all[index][key].as_f64().unwrap();
    let change = |key: &str| of(1, key) / of(0, key) - 1.0;
    assert!(
        (-0.20..-0.10).contains(&change("max_ms")),
        "{}",
        change("max_ms")
    );
    assert!(
        (0.0..0.067).contains(&change("mean_ms")),
        "{}",
        change("mean_ms")
    );
    let spread = of(0, "std_dev_ms") / of(1, "std_dev_ms");
    assert!((4.7..9.4).contains(&spread), "{spread}");
}

#[test]
fn volumes_are_drawn_beside_each_other() {
    let svg = success(&[
        "lzvs",
        "plot",
        &stack("sweep-raid0"),
        &stack("sweep-lzvs"),
        "--points",
        "5",
    ]);
    for part in [
        "<svg",
        "Completion time of 8MiB reads",
        "sweep-lzvs, drive 1",
        "Transfer rate",
    ] {
        assert!(svg.contains(part), "{part}");
    }
}

#[test]
fn a_trace_is_mapped_onto_the_drives_of_any_volume_one_to_one() {
    let folder = Folder::new();
    let mut rows = String::new();
    for index in 0u64..300 {
        let (kind, offset) = (
            if index % 3 == 0 { "Write" } else { "Read" },
            index * 7_919_861_760 % 9_000_000_000,
        );
        rows += &format!(
            "{},web,0,{kind},{},{},100\n",
            128_166_372_003_061_629 + index * 10_000,
            offset / 512 * 512,
            4096 + index % 50 * 4096
        );
    }
    let trace = folder.put("web.csv", &rows);
    let nested = "[volume]\nlayout = \"raid0\"\n[[volume.members]]\ncount = 2\nlayout = \"lzvs\"\n\
        ratio = 1.58\ndrive = \"ibm-ultrastar-18es\"\ndrives = 2\n";
    let geo = "[volume]\nlayout = \"lzvs-geo\"\n[[volume.members]]\ndrive = \"ibm-deskstar-40gv\"\n\
        [[volume.members]]\ndrive = \"ibm-deskstar-34gxp\"\n[[volume.zones]]\nsize = \"5GB\"\nfloor_mb_per_s = 50\n";
    let raid5 = "[volume]\nlayout = \"raid5\"\ndrive = \"ibm-ultrastar-18es\"\ndrives = 3\n";
    for (name, text, drives) in [("nested", nested, 4), ("geo", geo, 2), ("raid5", raid5, 3)] {
        let (stack, out) = (folder.put(&format!("{name}.toml"), text), folder.name(name));
        let found = json(&["trace", "remap", &stack, &trace, "-o", &out, "--verify"]);
        assert_eq!(found["requests"], 300);
        assert!(found["sectors_verified"].as_u64().unwrap() > 0);
        let written = found["drives"].as_array().unwrap();
        assert_eq!(written.len(), drives);
        for drive in written {
            let info = json(&["trace", "info", drive["file"].as_str().unwrap()]);
            assert_eq!(info["requests"], drive["requests"], "{name}: {info}");
        }
    }
    let xor = "[volume]\nlayout = \"xor\"\ndrive = \"ibm-ultrastar-18es\"\ndrives = 3\n";
    let xor = folder.put("xor.toml", xor);
    assert!(
        refused(&["trace", "remap", &xor, &trace, "-o", &folder.name("xor")]).contains("xor array")
    );
    assert!(refused(&["lzvs", "plot", &xor, "-o", &folder.name("xor.svg")]).contains("xor array"));
    let small = folder.put(
        "small.toml",
        "[volume]\nlayout = \"lzvs-naive\"\ndrive = \"hp-c2247a\"\ndrives = 2\n",
    );
    let arguments = [
        "trace",
        "remap",
        &small,
        &trace,
        "-o",
        &folder.name("small"),
    ];
    assert!(refused(&arguments).contains("--beyond"));
    success(&[&arguments[..], &["--beyond", "wrap", "--verify"]].concat());
}

#[test]
fn stacks_that_cannot_be_are_refused_at_their_key() {
    let folder = Folder::new();
    let drives = "drive = \"ibm-ultrastar-18es\"\n";
    for (keys, key, says) in [
        (
            "layout = \"lzvs\"\ndrives = 2\nzones = 7\n",
            "volume.zones",
            "found 7; expected an even number",
        ),
        (
            "layout = \"lzvs\"\ndrives = 2\nzones = 0\n",
            "volume.zones",
            "found 0",
        ),
        (
            "layout = \"lzvs\"\ndrives = 2\nratio = inf\n",
            "volume.ratio",
            "above 1",
        ),
        (
            "layout = \"lzvs\"\ndrives = 2\nratio = 0.9\n",
            "volume.ratio",
            "found 0.9",
        ),
        (
            "layout = \"lzvs\"\ndrives = 2\nblocking = \"8GiB\"\n",
            "volume.blocking",
            "choose a smaller chunk",
        ),
        ("layout = \"lzvs\"\ndrives = 3\n", "volume.members", "has 3"),
        (
            "layout = \"lzvs\"\ndrives = 2\nrati = 2\n",
            "volume.rati",
            "did you mean `ratio`",
        ),
        (
            "layout = \"lzvs-goe\"\ndrives = 2\n",
            "volume.layout",
            "did you mean `lzvs-geo`",
        ),
        (
            "layout = \"lzvs-geo\"\ndrives = 2\n[[volume.zones]]\nsize = \"1GB\"\nfloor_mb_per_s = 99\n",
            "zones[0].floor_mb_per_s",
            "highest possible floor",
        ),
        (
            "layout = \"lzvs-geo\"\n[[volume.members]]\ncount = 2\nlayout = \"raid0\"\n",
            "member_zones",
            "raid0 or raid1 above",
        ),
    ] {
        let text = format!("[volume]\n{drives}{keys}");
        let file = folder.put("stack.toml", &text);
        let error = refused(&["lzvs", "sweep", &file]);
        assert!(
            error.contains(key) && error.contains(says) && error.contains("stack.toml"),
            "{error}"
        );
    }
    for (arguments, says) in [
        (
            &["lzvs", "measure", "ibm-deskstar-04gv"][..],
            "did you mean",
        ),
        (
            &[
                "lzvs",
                "plan",
                "--drive",
                "ibm-deskstar-40gv",
                "--zones",
                "many",
            ],
            "--zones many",
        ),
        (
            &[
                "lzvs",
                "plan",
                "--drive",
                "ibm-deskstar-40gv",
                "--ratio",
                "1/1",
            ],
            "--ratio: found 1/1",
        ),
        (
            &["lzvs", "sweep", &stack("sweep-lzvs"), "--read-size", "100"],
            "--read-size",
        ),
        (
            &[
                "lzvs",
                "sweep",
                &stack("sweep-lzvs"),
                "--read-size",
                "100GB",
            ],
            "than the volume has",
        ),
    ] {
        let error = refused(arguments);
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn a_quick_measurement_gives_floors_close_to_those_of_the_truth() {
    for drive in [
        "ibm-deskstar-34gxp",
        "hp-dg072a4951",
        "seagate-exos-x20-20tb",
    ] {
        let found = json(&["lzvs", "measure", drive, "--quick", "--check"]);
        let ratio =
            found["ratio_mean"].as_f64().unwrap() / found["check"]["true_ratio"].as_f64().unwrap();
        assert!((ratio - 1.0).abs() < 0.05, "{drive}: {ratio}");
        assert!(found["seconds"].as_f64().unwrap() < 300.0, "{drive}");
        for floor in found["check"]["floors"].as_array().unwrap() {
            let rate = |key: &str| floor[key].as_f64().unwrap();
            assert!(
                rate("measured_mb_per_s") > 0.9 * rate("true_mb_per_s"),
                "{drive}: {floor}"
            );
        }
    }
}

#[test]
fn members_without_zones_are_measured_and_refused_with_what_was_seen() {
    let folder = Folder::new();
    let disks = [folder.name("a"), folder.name("b")];
    for disk in &disks {
        std::fs::File::create(disk)
            .unwrap()
            .set_len(300 << 20)
            .unwrap();
    }
    let create = |more: &[&str]| {
        let made = [
            "array",
            "create",
            "vol",
            &disks[0],
            &disks[1],
            "--sparse",
            "--measure",
        ];
        refused(&[&made[..], more].concat())
    };
    let error = create(&["--layout", "lzvs"]);
    // The file system of the test machine may not support direct I/O.
    assert!(
        error.contains("MB/s in the quarters") || error.contains("Invalid argument"),
        "{error}"
    );
    assert!(error.contains(&disks[0]), "{error}");
    assert!(create(&["--layout", "raid0"]).contains("expected lzvs or lzvs-geo"));
    assert!(create(&["--layout", "lzvs", "--set", "ratio=2"]).contains("--set ratio as well"));
}
