//! Tests of `fullstroke fit`.

use crate::common::{Folder, refused, success};
use serde_json::{Value, json};
use std::fs;

const SHEET: &str = "title = \"own disk\"\ncapacity = \"2T\"\nrpm = 7200\nouter = 210\n";
/// A report of smartctl, as far as `fit` reads one.
const SMART: &str = "\
Device Model:     ST2000DM006-2DM164
User Capacity:    2,000,398,934,016 bytes [2.00 TB]
Sector Sizes:     512 bytes logical, 4096 bytes physical
Rotation Rate:    7200 rpm
Extended self-test routine
recommended polling time:        ( 218) minutes.
  3 Spin_Up_Time            0x0003   096   095   000    Pre-fail  Always       -       9100
";

/// Returns a report of fio with one job. A depth of 0 leaves `iodepth` out.
fn report(rw: &str, depth: u32, mean_ms: f64) -> String {
    let direction = if rw == "randread" { "read" } else { "write" };
    let other = if rw == "randread" { "write" } else { "read" };
    let mut options = json!({"rw": rw, "bs": "4k"});
    if depth > 0 {
        options["iodepth"] = json!(depth.to_string());
    }
    let iops = f64::from(depth.max(1)) * 1000.0 / mean_ms;
    json!({
        "fio version": "fio-3.36",
        "jobs": [{
            "jobname": format!("{rw}-{depth}"),
            "job options": options,
            direction: {"total_ios": 2000, "iops": iops, "clat_ns": {"mean": mean_ms * 1e6, "max": mean_ms * 8e6}},
            other: {"total_ios": 0},
        }],
    })
    .to_string()
}

/// Writes the measured means of a Barracuda ST2000DM006 (lumir-sliva/ublk-disksim,
/// docs/VALIDATION.md) into `results/`.
fn results(folder: &Folder) -> String {
    fs::create_dir(folder.path("results")).unwrap();
    let reads = [(1, 17.36), (4, 56.2), (16, 185.4), (32, 341.9)];
    for (depth, mean_ms) in reads {
        folder.put(
            &format!("results/read-{depth}.json"),
            &report("randread", depth, mean_ms),
        );
    }
    folder.put("results/write.json", &report("randwrite", 1, 8.06));
    folder.name("results")
}

#[test]
fn fio_and_the_sheet_give_a_drive_file_that_passes_its_check() {
    let folder = Folder::new();
    let (results, sheet) = (results(&folder), folder.put("sheet.toml", SHEET));
    let own = folder.name("own.toml");
    let text = success(&[
        "fit", "--fio", &results, "--sheet", &sheet, "-o", &own, "--json",
    ]);
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(answer["compared"].as_array().unwrap().len(), 5);
    assert!(answer["worst_mean"].as_f64().unwrap() < 0.1, "{answer}");
    let told = |key: &str| {
        let keys = answer["told"].as_array().unwrap();
        let row = keys.iter().find(|row| row["key"] == key).unwrap();
        (
            row["told"].as_bool().unwrap(),
            row["source"].as_str().unwrap().to_owned(),
        )
    };
    assert!(told("seek").0 && told("queue").0 && told("buffer").0);
    // Response times of random requests say nothing about the order of tracks.
    let (order, source) = told("order");
    assert!(!order && !source.starts_with("fitted"), "{source}");
    success(&["drive", "check", &own]);
    let file = fs::read_to_string(&own).unwrap();
    assert!(
        file.starts_with("# own disk\n# Largest error of a mean"),
        "{file}"
    );
}

#[test]
fn a_run_says_when_requests_leave_the_measured_sizes_of_a_fitted_drive() {
    let folder = Folder::new();
    let (results, sheet) = (results(&folder), folder.put("sheet.toml", SHEET));
    let own = folder.name("own.toml");
    success(&["fit", "--fio", &results, "--sheet", &sheet, "-o", &own]);
    let disk = format!("[volume]\nlayout = \"jbod\"\ndrives = 1\ndrive = \"{own}\"\n");
    let stack = folder.put("stack.toml", &disk);
    let text = |size: &str| {
        let job = format!("--name=a --rw=randread --bs={size} --number_ios=50 --direct=1");
        let mut call = vec!["run", &stack, "--fio", "--"];
        call.extend(job.split(' '));
        success(&call)
    };
    assert!(text("1m").contains("measured with requests of 8 sectors at depths 1 to 32"));
    assert!(!text("4k").contains("measured with requests"));
}

#[test]
fn smartctl_gives_capacity_speed_surface_minutes_and_spin_up() {
    let folder = Folder::new();
    let (results, smart) = (results(&folder), folder.put("smart.txt", SMART));
    let own = folder.name("own.toml");
    success(&["fit", "--fio", &results, "--smart", &smart, "-o", &own]);
    success(&["drive", "check", &own]);
    let file: toml::Table = fs::read_to_string(&own).unwrap().parse().unwrap();
    assert_eq!(file["title"].as_str(), Some("ST2000DM006-2DM164"));
    assert_eq!(file["capacity_sectors"].as_integer(), Some(3_907_029_168));
    assert_eq!(file["power"]["spin_up_ms"].as_float(), Some(9100.0));
    let zones = file["sources"]["zones"].as_str().unwrap();
    assert!(zones.contains("218 minutes"), "{zones}");
}

#[test]
fn a_sheet_alone_gives_a_file_in_which_nothing_is_told() {
    let folder = Folder::new();
    let sheet = folder.put("sheet.toml", SHEET);
    let own = folder.name("own.toml");
    let text = success(&["fit", "--sheet", &sheet, "-o", &own, "--json"]);
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert!(answer["worst_mean"].is_null());
    for row in answer["told"].as_array().unwrap() {
        assert_eq!(row["told"], false, "{row}");
    }
    success(&["drive", "check", &own]);
}

#[test]
fn measurements_that_do_not_suffice_are_refused_and_no_file_is_written() {
    let folder = Folder::new();
    let sheet = folder.put("sheet.toml", SHEET);
    let own = folder.name("own.toml");
    let refused = |fio: &str, sheet: &str| {
        let error = refused(&["fit", "--fio", fio, "--sheet", sheet, "-o", &own]);
        assert!(
            !folder.path("own.toml").exists(),
            "a file in spite of: {error}"
        );
        error
    };
    let silent = folder.put("silent.json", &report("randread", 0, 14.0));
    let error = refused(&silent, &sheet);
    assert!(
        error.contains("silent.json") && error.contains("job 1 `randread-0`"),
        "{error}"
    );
    assert!(error.contains("no `iodepth`"), "{error}");
    let point = folder.put("point.json", &report("randread", 8, 92.4));
    let error = refused(&point, &sheet);
    assert!(
        error.contains("point.json") && error.contains("found depth 8"),
        "{error}"
    );
    assert!(
        error.contains("expected depth 1 and at least one more"),
        "{error}"
    );
    let empty = folder.name("empty");
    fs::create_dir(&empty).unwrap();
    assert!(refused(&empty, &sheet).contains("no file that ends in .json or .csv"));
    let unknown = folder.put("unknown.toml", "capacity = \"2T\"\nspeed = 7200\n");
    let error = refused(&point, &unknown);
    assert!(
        error.contains("unknown.toml") && error.contains("speed"),
        "{error}"
    );
}

/// Returns one report with a job for each depth, all behind one another, with `global` options.
fn several(global: Value, rows: &[(u32, f64)]) -> Value {
    let job = |number: usize, depth: u32, mean_ms: f64| {
        let iops = f64::from(depth) * 1000.0 / mean_ms;
        json!({
            "jobname": format!("d{depth}"),
            "groupid": number,
            "job options": {"iodepth": depth.to_string()},
            "read": {"total_ios": 2000, "iops": iops, "lat_ns": {"mean": mean_ms * 1e6}},
            "write": {"total_ios": 0},
        })
    };
    let jobs: Vec<Value> = rows
        .iter()
        .enumerate()
        .map(|(number, &(depth, mean_ms))| job(number, depth, mean_ms))
        .collect();
    json!({"fio version": "fio-3.36", "global options": global, "jobs": jobs})
}

#[test]
fn one_report_with_all_depths_gives_a_drive_file_and_other_loads_are_refused() {
    let folder = Folder::new();
    let sheet = folder.put("sheet.toml", SHEET);
    let own = folder.name("own.toml");
    let rows = [(1, 17.36), (8, 101.8), (32, 341.9)];
    let random = json!({"rw": "randread", "bs": "4k", "direct": "1"});
    let all = folder.put("all.json", &several(random.clone(), &rows).to_string());
    success(&["fit", "--fio", &all, "--sheet", &sheet, "-o", &own]);
    success(&["drive", "check", &own]);
    fs::remove_file(folder.path("own.toml")).unwrap();

    let mixed = several(json!({"rw": "randrw", "bs": "4k"}), &rows);
    let part = several(json!({"rw": "randread", "bs": "4k", "size": "10G"}), &rows);
    // 17 ms at depth 8: the engine kept one request outstanding.
    let mut synchronous = several(random.clone(), &rows);
    synchronous["jobs"][1]["read"]["lat_ns"]["mean"] = json!(17e6);
    let mut together = several(random, &rows);
    together["jobs"][1]["groupid"] = json!(0);
    for (report, parts) in [
        (mixed, ["job 1 `d1`", "found rw `randrw`"]),
        (part, ["job 1 `d1`", "size 10G"]),
        (synchronous, ["job 2 `d8`", "outstanding"]),
        (together, ["job 2 `d8`", "stonewall"]),
    ] {
        let report = folder.put("other.json", &report.to_string());
        let error = refused(&["fit", "--fio", &report, "--sheet", &sheet, "-o", &own]);
        for part in parts {
            assert!(error.contains(part), "{part}: {error}");
        }
        assert!(!folder.path("own.toml").exists(), "{error}");
    }
}

#[test]
fn sources_that_contradict_each_other_are_refused_with_both_figures() {
    let folder = Folder::new();
    let smart = folder.put("smart.txt", SMART);
    let own = folder.name("own.toml");
    for (sheet, parts) in [
        (
            "capacity = \"4T\"\nouter = 210\n",
            ["capacity", "smart.txt"],
        ),
        (
            "rpm = 5400\nouter = 210\n",
            ["rpm: the sheet says 5400", "7200"],
        ),
        // 2 TB in 218 minutes are 153 MB/s in the mean.
        (
            "outer = 100\n",
            ["100 MB/s outside", "152.9 MB/s in the mean"],
        ),
        (
            "outer = 210\ntracks = 100000\nsurfaces = 4\n",
            ["100000 tracks on 4 surfaces", "2000 GB"],
        ),
    ] {
        let sheet = folder.put("sheet.toml", sheet);
        let error = refused(&["fit", "--smart", &smart, "--sheet", &sheet, "-o", &own]);
        for part in parts {
            assert!(error.contains(part), "{part}: {error}");
        }
        assert!(!folder.path("own.toml").exists(), "{error}");
    }
    assert!(refused(&["fit"]).contains("found nothing to fit to"));
}

/// Returns the log of 1,000 reads, one at a time, of a disk whose revolution takes `turn_us`.
fn own_log(turn_us: f64) -> String {
    let mut state = 1u64;
    let mut random = || {
        // Constants of Knuth's MMIX.
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / f64::from(1u32 << 31)
    };
    let (mut log, mut last) = (String::new(), 0.0);
    for _ in 0..1000 {
        let (place, turn) = (random(), random());
        let seek = 1500.0 + 9000.0 * f64::sqrt((place - last).abs());
        let lbn = (place * 8e6) as u64 / 8 * 8;
        log.push_str(&format!(
            "R Miss {lbn} 8 {:.1} 1000.0\n",
            seek + turn_us * turn
        ));
        last = place;
    }
    log
}

#[test]
fn a_log_gives_a_drive_file_with_the_speed_of_its_disk() {
    let folder = Folder::new();
    let log = folder.put("own.trace", &own_log(11_111.0));
    let own = folder.name("own.toml");
    for start in ["seagate-cheetah-9lp", "ibm-ultrastar-xp-4.51gb"] {
        let call = ["fit", "--log", &log, "--drive", start, "-o", &own, "--json"];
        let answer: Value = serde_json::from_str(&success(&call)).unwrap();
        assert!(answer["trust"]["verdict"].is_string(), "{answer}");
        assert_eq!(answer["log"]["rotation"]["by"], "spread");
        success(&["drive", "check", &own]);
        let file: toml::Table = fs::read_to_string(&own).unwrap().parse().unwrap();
        assert_eq!(file["rpm"].as_float(), Some(5400.0), "{start}");
        let source = file["sources"]["rpm"].as_str().unwrap();
        assert!(source.starts_with("found in"), "{source}");
    }
}

#[test]
fn a_log_beside_figures_is_fitted_from_the_drive_of_the_figures() {
    let folder = Folder::new();
    let log = folder.put("own.trace", &own_log(11_111.0));
    let own = folder.name("own.toml");
    let sheet = |rpm| format!("capacity = \"5G\"\nrpm = {rpm}\nouter = 12\n");
    let right = folder.put("right.toml", &sheet(5400));
    let call = ["fit", "--log", &log, "--sheet", &right, "-o", &own];
    assert!(success(&call).contains("5400"));
    success(&["drive", "check", &own]);
    let file: toml::Table = fs::read_to_string(&own).unwrap().parse().unwrap();
    assert_eq!(file["rpm"].as_float(), Some(5400.0));
    let wrong = folder.put("wrong.toml", &sheet(7200));
    let error = refused(&["fit", "--log", &log, "--sheet", &wrong]);
    for part in ["wrong.toml", "7200", "spread over one revolution"] {
        assert!(error.contains(part), "{part}: {error}");
    }
    let call = ["fit", "--log", &log, "--sheet", &right, "--drive", "x300"];
    assert!(refused(&call).contains("cannot be used with"));
}
