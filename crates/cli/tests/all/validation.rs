//! Tests of `fullstroke validate` and `fullstroke drive plot`.

use crate::common::{fullstroke, refused};
use crate::oracle::{self, Table};
use crate::parameters::write_parameters;
use serde_json::Value;
use std::fs;

const TRACE: &str = "\
R Miss 1000 8 9500.500 1000.0
W Hit 900000 16 700.25 5000.0
R Hit 1008 8 600.0 12000.5
R Miss 17000000 2 14095.370 13876.270
W Miss 44 8 9000 0
";
const DRIVE: &str = "seagate-cheetah-9lp";

/// Returns standard output and standard error of a successful call.
fn success(arguments: &[&str]) -> (String, String) {
    let output = fullstroke(arguments);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {error}");
    (String::from_utf8(output.stdout).unwrap(), error)
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }
    /// Writes a file and returns its path as text.
    fn put(&self, name: &str, text: &str) -> String {
        fs::write(self.0.path().join(name), text).unwrap();
        self.name(name)
    }
    fn name(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }
    fn path(&self) -> &str {
        self.0.path().to_str().unwrap()
    }
    fn files(&self) -> usize {
        fs::read_dir(self.0.path()).unwrap().count()
    }
}

#[test]
fn validate_reports_the_promised_keys() {
    let folder = Folder::new();
    let trace = folder.put("cheetah9LP.trace", TRACE);
    let (text, error) = success(&["validate", &trace, "--json"]);
    assert_eq!(error, "");
    let report: Value = serde_json::from_str(&text).unwrap();
    let disk = &report.as_array().unwrap()[0];
    assert_eq!(
        (&disk["drive"], &disk["n"]),
        (&"cheetah9LP".into(), &5.into())
    );
    assert!(
        disk["model"]
            .as_str()
            .is_some_and(|model| model.starts_with(DRIVE)),
        "{disk}"
    );
    let number = |key: &str| {
        disk[key]
            .as_f64()
            .unwrap_or_else(|| panic!("{key}: {disk}"))
    };
    assert!(
        (number("measured_mean_ms") - (9.5005 + 0.70025 + 0.6 + 14.09537 + 9.0) / 5.0).abs() < 1e-9
    );
    assert!((number("rms_share") - number("rms_ms") / number("measured_mean_ms")).abs() < 1e-12);
    assert!(number("simulated_mean_ms") > 0.0 && number("noise_ms") > 0.0);
    assert_eq!(disk["classes"].as_array().unwrap().len(), 4);
}

#[test]
fn validate_repeats_to_the_bit() {
    let folder = Folder::new();
    let trace = folder.put("cheetah9LP.trace", TRACE);
    let run = || success(&["validate", &trace, "--json"]);
    assert_eq!(run(), run());
}

#[test]
fn validate_for_people_shows_both_distributions_and_classes() {
    let folder = Folder::new();
    let trace = folder.put("cheetah9LP.trace", TRACE);
    let (text, _) = success(&["validate", &trace, "--by-class"]);
    for part in [
        "measured",
        "simulated",
        "RMS ms",
        "noise ms",
        "p99",
        "R Miss",
        "W Hit",
        "Cheetah 9LP",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!success(&["validate", &trace]).0.contains("R Miss"));
}

#[test]
fn validate_draws_and_logs() {
    let folder = Folder::new();
    let trace = folder.put("cheetah9LP.trace", TRACE);
    let (plot, log) = (folder.name("plot.svg"), folder.name("log.csv"));
    success(&["validate", &trace, "--plot", &plot, "--log", &log]);
    let svg = fs::read_to_string(plot).unwrap();
    assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
    for text in [
        "service time (ms)",
        "requests served within (%)",
        "measured",
        "simulated",
        "cheetah9LP",
    ] {
        assert!(svg.contains(text), "{text}");
    }
    let log = fs::read_to_string(log).unwrap();
    assert_eq!(log.lines().count(), 6);
    assert!(
        log.lines()
            .nth(1)
            .unwrap()
            .starts_with("cheetah9LP,R,Miss,1000,8,9.5005,"),
        "{log}"
    );
}

#[test]
fn validate_takes_a_folder_and_says_what_it_left_out() {
    let folder = Folder::new();
    folder.put("cheetah9LP.trace", TRACE);
    folder.put("nobody_knows.trace", TRACE);
    let (text, error) = success(&["validate", folder.path(), "--json"]);
    assert_eq!(
        serde_json::from_str::<Value>(&text)
            .unwrap()
            .as_array()
            .unwrap()
            .len(),
        1
    );
    assert!(
        error.contains("left out") && error.contains("nobody_knows.toml"),
        "{error}"
    );
    let (text, error) = success(&["validate", folder.path(), "--json", "--drive", DRIVE]);
    assert_eq!(
        serde_json::from_str::<Value>(&text)
            .unwrap()
            .as_array()
            .unwrap()
            .len(),
        2
    );
    assert_eq!(error, "");
}

/// Returns a log of random reads, one at a time, on a drive about 2 ms slower than the library's.
fn own_log(requests: u64) -> String {
    let mut state = 1u64;
    let mut random = move |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let row = |_| {
        format!(
            "R Miss {} 8 {}.5 {}\n",
            random(8_000_000),
            6000 + random(6000),
            random(9000)
        )
    };
    (0..requests).map(row).collect()
}

#[test]
fn a_log_of_ones_own_disk_is_fitted_and_judged() {
    let folder = Folder::new();
    let log = folder.put("mine.trace", &own_log(240));
    let (drive, plot) = (folder.name("mine.toml"), folder.name("mine.svg"));
    let call = [
        "validate",
        &log,
        "--fit",
        "--drive",
        "ibm-ultrastar-xp-4.51gb",
    ];
    let (text, _) = success(
        &[
            &call[..],
            &["--by-class", "--write-drive", &drive, "--plot", &plot],
        ]
        .concat(),
    );
    for part in [
        "held out",
        "command_overhead_ms",
        "told from lower",
        "operation    read",
        "sampling noise",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let (text, _) = success(&[&call[..], &["--json"]].concat());
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (&report["held_out"]["n"], &report["log"]["requests"]),
        (&120.into(), &240.into())
    );
    assert!(
        report["trust"]["verdict"].is_string()
            && report["parameters"].as_array().unwrap().len() > 2
    );
    let held_out = |key: &str| report[key]["rms_ms"].as_f64().unwrap();
    assert!(
        held_out("held_out") < held_out("held_out_unfitted"),
        "{report}"
    );
    success(&["drive", "check", &drive]);
    assert!(fs::read_to_string(&plot).unwrap().contains("held out: RMS"));
}

#[test]
fn a_log_that_cannot_tell_is_refused() {
    let folder = Folder::new();
    let few = folder.put("few.trace", &own_log(30));
    assert!(refused(&["validate", &few, "--fit"]).contains("found 30 reads and writes"));
    let silent = folder.put(
        "silent.csv",
        &(0..300)
            .map(|i| format!("{i}.5 0 {i} 8 1\n"))
            .collect::<String>(),
    );
    let error = refused(&["validate", &silent, "--fit"]);
    assert!(error.contains("no latency of 300 of 300"), "{error}");
    assert!(refused(&["validate", &few, &few, "--fit"]).contains("expected one log"));
}

#[test]
fn one_bad_disk_is_a_row_and_the_status_says_so() {
    let folder = Folder::new();
    folder.put("cheetah9LP.trace", TRACE);
    folder.put("ibm18es.trace", &TRACE.replace("W Hit", "W Hot"));
    folder.put("bad.trace", TRACE);
    folder.put("bad.parv", "disksim_disk D {");
    let output = fullstroke(&["validate", folder.path(), "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let errors: Vec<(&str, &str)> = report
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|row| Some((row["drive"].as_str()?, row["error"].as_str()?)))
        .collect();
    let [(bad, parameters), (ibm, line)] = errors[..] else {
        panic!("{report}")
    };
    assert_eq!((bad, ibm), ("bad", "ibm18es"));
    assert!(
        parameters.contains("bad.parv") && line.contains("line 2"),
        "{report}"
    );
    assert!(report[0]["rms_ms"].as_f64().is_some() && report.as_array().unwrap().len() == 3);
}

/// Returns folders with measurements and parameter files of some disks. The first folder has the
/// first 200 requests of each disk. The second has all requests, if the files lie beside the
/// repository.
fn measured(disks: &[&str]) -> Vec<Folder> {
    let first = Folder::new();
    for disk in disks {
        write_parameters(disk, first.0.path());
        let table = Table::read(&format!("disks/{disk}"));
        first.put(&format!("{disk}.trace"), &table.validation_trace());
    }
    let mut folders = vec![first];
    if let Some(shared) = oracle::shared("oracle/disks") {
        let folder = Folder::new();
        for entry in fs::read_dir(&shared).unwrap().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if disks.iter().any(|disk| name.starts_with(disk)) || name == "statdefs" {
                fs::copy(entry.path(), folder.name(&name)).unwrap();
            }
        }
        folders.push(folder);
    }
    folders
}

/// Replays the first 200 requests of each measured disk on the oracle's drive.
#[test]
fn measured_disks_are_as_near_as_they_were() {
    let (folder, reached) = (Folder::new(), Table::read("reached"));
    for disk in reached.column("disk") {
        let table = Table::read(&format!("disks/{disk}"));
        folder.put(&format!("{disk}.trace"), &table.validation_trace());
        let drive = fs::read_to_string(oracle::path(&format!("drives/{disk}.toml"))).unwrap();
        folder.put(&format!("{disk}.toml"), &drive);
    }
    let (text, error) = success(&["validate", folder.path(), "--json"]);
    assert_eq!(error, "");
    let report: Value = serde_json::from_str(&text).unwrap();
    let disks = report.as_array().unwrap();
    assert_eq!(disks.len(), 8);
    for (disk, reached_ms) in reached
        .column("disk")
        .into_iter()
        .zip(reached.numbers::<f64>("rms_ms"))
    {
        let row = disks.iter().find(|row| row["drive"] == disk).unwrap();
        let rms_ms = row["rms_ms"].as_f64().unwrap();
        assert!((rms_ms - reached_ms).abs() < 0.002, "{disk}: {row}");
        assert_eq!(row["n"], 200, "{disk}");
    }
}

#[test]
fn rules_are_chosen_on_other_disks_than_the_one_they_are_held_against() {
    for folder in measured(&["hp_c2247a", "hp_c3323a"]) {
        are_chosen_on_the_other_disk(&folder);
    }
}

fn are_chosen_on_the_other_disk(folder: &Folder) {
    let (text, _) = success(&["validate", folder.path(), "--leave-one-out", "--json"]);
    let report: Value = serde_json::from_str(&text).unwrap();
    let [first, second] = report["disks"].as_array().unwrap().as_slice() else {
        panic!("{report}")
    };
    assert_eq!(
        (&first["drive"], &second["drive"]),
        (&"hp_c2247a".into(), &"hp_c3323a".into())
    );
    let rms = |disk: &Value, key: &str| disk[key]["rms_ms"].as_f64().unwrap();
    // The second disk has a low water mark, so that rule reduces its error. The first disk has
    // none, so it cannot choose the rule. The first 200 requests have few such writes.
    let requests = Table::read("disks/hp_c3323a").validation_trace();
    let trace = fs::read_to_string(folder.name("hp_c3323a.trace")).unwrap_or_default();
    let nearer = if trace == requests { 1.0 } else { 0.9 };
    assert!(
        rms(second, "all_fitted") < nearer * rms(second, "left_out"),
        "{report}"
    );
    assert_eq!(rms(second, "left_out"), rms(second, "as_written"));
    assert!(
        success(&["validate", folder.path(), "--leave-one-out"])
            .0
            .contains("all fitted")
    );
}

#[test]
fn rules_of_an_import_can_be_switched_off_by_name() {
    let error = refused(&["drive", "import", "gone.parv", "--rule", "setling=on"]);
    assert!(
        error.contains("`setling`") && error.contains("settling, turn_round"),
        "{error}"
    );
    for folder in measured(&["barracuda"]) {
        let parameters = folder.name("barracuda.parv");
        let (with, _) = success(&["drive", "import", &parameters]);
        let (without, _) = success(&["drive", "import", &parameters, "--rule", "settling=off"]);
        assert!(
            with.contains("head_switch_ms = 0.9") && with.contains("fitted: rule settling"),
            "{with}"
        );
        assert!(
            without.contains("head_switch_ms = 0.1") && !without.contains("rule settling"),
            "{without}"
        );
    }
}

#[test]
fn validate_takes_a_drive_file_beside_the_trace() {
    let folder = Folder::new();
    let library = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../drives/seagate-cheetah-9lp.toml"
    );
    folder.put("mine.toml", &fs::read_to_string(library).unwrap());
    let trace = folder.put("mine.trace", TRACE);
    let (text, _) = success(&["validate", &trace, "--json"]);
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report[0]["model"], folder.name("mine.toml").as_str());
}

#[test]
fn validate_refuses_what_it_cannot_use_and_says_where() {
    let folder = Folder::new();
    let put = |text: &str| folder.put("cheetah9LP.trace", text);
    let refuses = |text: &str, parts: &[&str]| {
        let error = refused(&["validate", &put(text)]);
        parts
            .iter()
            .for_each(|part| assert!(error.contains(part), "{part}: {error}"));
        assert!(
            !error.contains("--skip-bad") && !error.contains("--beyond"),
            "{error}"
        );
    };
    refuses("", &["empty"]);
    refuses("\n\n", &["empty"]);
    refuses("0.5 0 100 8 1\n", &["line 1", "cheetah9LP.trace"]);
    refuses(
        &TRACE.replace("W Hit", "W Hot"),
        &["line 2, column 3", "Hot", "Hit, Miss, Doub or Trip"],
    );
    refuses(
        &TRACE.replace("17000000", "99000000"),
        &["line 4", DRIVE, "--drive", "99000000"],
    );
    refuses(
        &TRACE.replace("17000000 2", "18446744073709551615 2"),
        &["line 4"],
    );
    refuses(&TRACE.replace("1008 8", "1008 0"), &["line 3"]);
    refuses(
        &TRACE.replace("1000.0", "-1000.0"),
        &["line 1", "think time"],
    );
    refuses(
        "R Miss 0 8 900.0 18446744073709551.0\nR Miss 0 8 900.0 0\n",
        &["584 years"],
    );
}

#[test]
fn validate_refuses_paths_and_drives_that_are_not_there() {
    let folder = Folder::new();
    assert!(refused(&["validate", &folder.name("gone.trace")]).contains("gone.trace"));
    assert!(refused(&["validate", folder.path()]).contains("no validation trace"));
    assert!(refused(&["validate"]).contains("PATHS"));
    let trace = folder.put("cheetah9LP.trace", TRACE);
    let error = refused(&["validate", &trace, "--drive", "seagate-cheetah-9pl"]);
    assert!(
        error.contains("did you mean `seagate-cheetah-9lp`"),
        "{error}"
    );
    let error = refused(&["validate", &folder.put("nobody_knows.trace", TRACE)]);
    assert!(error.contains("--drive"), "{error}");
}

#[test]
fn a_plot_or_log_that_cannot_be_written_leaves_nothing_behind() {
    let folder = Folder::new();
    let trace = folder.put("cheetah9LP.trace", TRACE);
    let gone = folder.name("gone/file");
    for option in ["--plot", "--log"] {
        assert!(refused(&["validate", &trace, option, &gone]).contains("gone/file"));
    }
    assert!(refused(&["drive", "plot", DRIVE, "-o", &gone]).contains("gone/file"));
    if cfg!(target_os = "linux") {
        assert!(refused(&["validate", &trace, "--plot", "/dev/full"]).contains("/dev/full"));
    }
    assert_eq!(folder.files(), 1);
}

#[test]
fn drive_plot_draws_rates_seeks_and_tracks() {
    let folder = Folder::new();
    let (svg, error) = success(&["drive", "plot", DRIVE]);
    assert!(svg.starts_with("<svg") && error.is_empty());
    for text in [
        "rate (MB/s)",
        "seek time (ms)",
        "surface",
        "Cheetah 9LP",
        "points of the description",
    ] {
        assert!(svg.contains(text), "{text}");
    }
    let file = folder.name("drive.svg");
    assert_eq!(success(&["drive", "plot", DRIVE, "-o", &file]).0, "");
    assert_eq!(fs::read_to_string(file).unwrap(), svg);
    assert!(refused(&["drive", "plot", "seagate-cheetah-9pl"]).contains("did you mean"));
    assert!(refused(&["drive", "plot", DRIVE, "--tracks", "0"]).contains("--tracks"));
}

#[test]
fn every_drive_of_the_library_can_be_drawn() {
    let (list, _) = success(&["drive", "list", "--json"]);
    for drive in serde_json::from_str::<Value>(&list)
        .unwrap()
        .as_array()
        .unwrap()
    {
        let (svg, _) = success(&["drive", "plot", drive["name"].as_str().unwrap()]);
        assert!(svg.starts_with("<svg"), "{drive}");
    }
}

#[test]
fn the_track_map_follows_the_order_of_lbns() {
    let folder = Folder::new();
    let library = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../drives/seagate-cheetah-9lp.toml"
    );
    let text = fs::read_to_string(library).unwrap();
    let serpentine = folder.put(
        "snake.toml",
        &format!("order = \"banded-serpentine\"\n{text}"),
    );
    let places = |drive: &str| -> Vec<(u64, u64)> {
        let (json, _) = success(&["drive", "plot", drive, "--tracks", "34", "--json"]);
        let picture: Value = serde_json::from_str(&json).unwrap();
        let tracks = picture["tracks"].as_array().unwrap().iter();
        tracks
            .map(|track| {
                (
                    track["cylinder"].as_u64().unwrap(),
                    track["surface"].as_u64().unwrap(),
                )
            })
            .collect()
    };
    assert_eq!(places(DRIVE)[11..14], [(0, 11), (1, 0), (1, 1)]);
    assert_eq!(
        places(&serpentine)[30..34],
        [(30, 0), (31, 0), (31, 1), (30, 1)]
    );
}
