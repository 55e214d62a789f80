//! Tests of the program's command line.

use crate::common::{Folder, fullstroke, refused, success};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

const STACK: &str = r#"title = "a test"
seed = 7

[workload]
kind = "synthetic"
requests = 2000
read_share = 0.66
size = "4KiB"
arrivals = { process = "poisson", rate_per_s = 100 }

[volume]
layout = "raid5"
drive = "seagate-cheetah-9lp"
drives = 5
"#;

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&success(arguments)).unwrap()
}

#[test]
fn run_reports_the_promised_keys() {
    let folder = Folder::new();
    let report = json(&["run", &folder.put("stack.toml", STACK), "--json"]);
    assert_eq!(
        (&report["requests"], &report["completed"]),
        (&2000.into(), &2000.into())
    );
    assert_eq!(report["seed"], 7);
    for key in [
        "iops",
        "mb_per_s",
        "simulated_s",
        "wall_s",
        "requests_per_wall_s",
    ] {
        assert!(
            report[key].as_f64().is_some_and(|value| value > 0.0),
            "{key}: {}",
            report[key]
        );
    }
    for time in ["response_ms", "service_ms", "queue_ms"] {
        for key in ["mean", "stddev", "p50", "p90", "p95", "p99", "p999", "max"] {
            assert!(report[time][key].is_number(), "{time}.{key}");
        }
    }
    let members = report["members"].as_array().unwrap();
    assert_eq!(members.len(), 5);
    for key in [
        "requests",
        "utilisation",
        "seek_ms",
        "seek_cylinders",
        "rotation_ms",
        "transfer_ms",
        "queue_depth",
    ] {
        assert!(
            members.iter().all(|member| member[key].is_number()),
            "members.{key}"
        );
    }
    assert!(report["config_digest"].is_string() && report["version"].is_string());
    if cfg!(target_os = "linux") {
        assert!(
            report["peak_rss_mb"]
                .as_f64()
                .is_some_and(|peak| peak > 1.0)
        );
    }
}

#[test]
fn run_for_people_shows_where_the_time_went() {
    let folder = Folder::new();
    let text = success(&["run", &folder.put("stack.toml", STACK)]);
    for part in [
        "2000 requests, 2000 completed",
        "where the time went",
        "rotation",
        "member",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn options_change_the_stack() {
    let folder = Folder::new();
    let stack = folder.put("stack.toml", STACK);
    let changed = json(&[
        "run",
        &stack,
        "--json",
        "--seed",
        "9",
        "--requests",
        "500",
        "--set",
        "volume.drives=4",
    ]);
    assert_eq!(
        (&changed["seed"], &changed["requests"]),
        (&9.into(), &500.into())
    );
    assert_eq!(changed["members"].as_array().unwrap().len(), 4);
}

#[test]
fn a_run_repeats_to_the_bit() {
    let folder = Folder::new();
    let stack = folder.put("stack.toml", STACK);
    let run = || {
        let mut report = json(&["run", &stack, "--json"]);
        for key in ["wall_s", "requests_per_wall_s", "peak_rss_mb"] {
            report.as_object_mut().unwrap().remove(key);
        }
        report
    };
    assert_eq!(run(), run());
}

#[test]
fn a_log_holds_every_request() {
    let folder = Folder::new();
    let log = folder.name("log.csv");
    success(&["run", &folder.put("stack.toml", STACK), "--log", &log]);
    assert_eq!(fs::read_to_string(&log).unwrap().lines().count(), 2001);
    success(&[
        "run",
        &folder.name("stack.toml"),
        "--log",
        &folder.name("log.parquet"),
    ]);
    assert!(
        fs::read(folder.path("log.parquet"))
            .unwrap()
            .starts_with(b"PAR1")
    );
}

#[cfg(unix)]
#[test]
fn ctrl_c_leaves_nothing_half_written() {
    let folder = Folder::new();
    let stack = folder.put(
        "stack.toml",
        &STACK.replace("requests = 2000", "duration = \"1000h\""),
    );
    let mut child = Command::new(env!("CARGO_BIN_EXE_fullstroke"))
        .args(["run", &stack, "--log", &folder.name("log.csv")])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while folder.files() < 2 {
        assert!(
            child.try_wait().unwrap().is_none(),
            "the run is over before it was interrupted"
        );
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&child),
        rustix::process::Signal::INT,
    )
    .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(folder.files(), 1, "only the stack is left");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_a_clear_error() {
    let folder = Folder::new();
    let error = refused(&[
        "run",
        &folder.put("stack.toml", STACK),
        "--log",
        "/dev/full",
    ]);
    assert!(error.contains("/dev/full"), "{error}");
    assert_eq!(folder.files(), 1);
}

#[test]
fn compare_ranks_and_says_how_sure_it_is() {
    let folder = Folder::new();
    let raid5 = folder.put("raid5.toml", STACK);
    let raid0 = folder.put("raid0.toml", &STACK.replace("raid5", "raid0"));
    let text = success(&["compare", &raid5, &raid0]);
    assert!(text.contains("raid0 is best by response_ms.mean"), "{text}");
    let ranking = json(&[
        "compare",
        &raid5,
        &raid0,
        "--json",
        "--by",
        "response_ms.p90",
        "--jobs",
        "1",
    ]);
    assert_eq!(ranking["by"], "response_ms.p90");
    let candidates = ranking["candidates"].as_array().unwrap();
    assert_eq!(
        (&candidates[0]["rank"], &candidates[0]["name"]),
        (&1.into(), &"raid0".into())
    );
    let second = &candidates[1];
    assert!(
        second["difference_to_best"]["value"]
            .as_f64()
            .is_some_and(|value| value > 0.0)
    );
    assert_eq!(second["volume"]["failures_survived"], 1);
    assert!(
        second["report"]["time_ms"]["parity"]
            .as_f64()
            .is_some_and(|value| value > 0.0)
    );
}

#[test]
fn compare_varies_keys_and_tells_candidates_apart_by_them() {
    let folder = Folder::new();
    let stack = folder.put("stack.toml", STACK);
    let vary = [
        "compare",
        &stack,
        "--vary",
        "volume.chunk=16KiB,64KiB,256KiB",
    ];
    let ranking = json(&[&vary[..], &["--json"]].concat());
    let candidates = ranking["candidates"].as_array().unwrap();
    let mut chunks: Vec<&str> = candidates
        .iter()
        .map(|candidate| candidate["varied"]["volume.chunk"].as_str().unwrap())
        .collect();
    chunks.sort_unstable();
    assert_eq!(chunks, ["16KiB", "256KiB", "64KiB"]);
    assert!(
        candidates
            .iter()
            .all(|candidate| candidate["name"] == "stack")
    );
    let text = success(&vary);
    assert!(
        text.contains("stack volume.chunk=") && text.contains("is best"),
        "{text}"
    );
    assert!(text.lines().next().unwrap().contains("chunk"), "{text}");
}

#[test]
fn reports_and_rankings_fit_into_80_characters() {
    let folder = Folder::new();
    let raid5 = folder.put("raid5.toml", STACK);
    let raid0 = folder.put("raid0.toml", &STACK.replace("raid5", "raid0"));
    let wide = |text: &str| -> Vec<String> {
        // Tables must fit into 80 columns; sentences may be longer. The rule of a table has the
        // table's width.
        let lines = text
            .lines()
            .filter(|line| line.chars().all(|letter| letter == '─'));
        lines
            .filter(|line| line.chars().count() > 80)
            .map(str::to_owned)
            .collect()
    };
    for arguments in [
        vec!["compare", &raid5, &raid0],
        vec![
            "compare",
            &raid5,
            &raid0,
            "--vary",
            "volume.chunk=16KiB,64KiB",
        ],
        vec!["run", &raid5],
        vec!["run", &folder.put("processes.toml", PROCESSES)],
        vec!["drive", "list"],
    ] {
        let text = success(&arguments);
        assert!(wide(&text).is_empty(), "{text}");
    }
}

#[test]
fn a_ranking_is_drawn() {
    let folder = Folder::new();
    let raid5 = folder.put("raid5.toml", STACK);
    let raid0 = folder.put("raid0.toml", &STACK.replace("raid5", "raid0"));
    let plot = folder.name("ranking.svg");
    for (by, words) in [
        ("response_ms.mean", "mean response time"),
        ("response_ms.p99", "99th percentile"),
    ] {
        success(&["compare", &raid5, &raid0, "--by", by, "--plot", &plot]);
        let svg = fs::read_to_string(&plot).unwrap();
        for part in ["<svg", "raid0", "raid5", words] {
            assert!(svg.contains(part), "{part}");
        }
        assert_eq!(svg.contains(">rotation<"), by == "response_ms.mean");
    }
    assert!(
        refused(&["compare", &raid5, "--plot", "no/such/folder/plot.svg"])
            .contains("no/such/folder")
    );
}

/// Returns the error message of a call that answers but cannot write a file.
fn told_then_refused(arguments: &[&str]) -> String {
    let told = fullstroke(arguments);
    let message = String::from_utf8(told.stderr).unwrap();
    assert_eq!(told.status.code(), Some(2), "{message}");
    assert!(!told.stdout.is_empty(), "{message}");
    message
}

#[test]
fn what_cannot_be_drawn_does_not_take_the_answer_away() {
    let folder = Folder::new();
    let (stack, plot) = (folder.put("raid5.toml", STACK), folder.name("a.svg"));
    let page = folder.name("a.html");
    let reads = [
        "--trace",
        &folder.put("trace.csv", TRACE),
        "--operation",
        "read",
        "--json",
    ];
    let compared = [
        "compare",
        &stack,
        "--vary",
        "volume.drives=4,5",
        "--by",
        "writes.response_ms.p99",
    ];
    let call = [&compared[..], &reads, &["--plot", &plot, "--report", &page]].concat();
    let message = told_then_refused(&call);
    assert!(message.contains("a.svg"), "{message}");
    let answer: Value = serde_json::from_slice(&fullstroke(&call).stdout).unwrap();
    assert_eq!(answer["candidates"].as_array().map(Vec::len), Some(2));
    assert!(folder.path("a.html").exists() && !folder.path("a.svg").exists());
}

#[test]
fn no_output_replaces_what_is_read_or_another_output_or_a_file_of_another_kind() {
    let folder = Folder::new();
    let (raid5, raid0) = (
        folder.put("raid5.toml", STACK),
        folder.put("raid0.toml", STACK),
    );
    let trace = folder.put("trace.csv", TRACE);
    let (linked, [page, figure]) = (
        folder.name("linked.toml"),
        ["a.html", "a.svg"].map(|name| folder.name(name)),
    );
    fs::hard_link(&raid5, &linked).unwrap();
    let stacks = || [&raid5, &raid0, &trace].map(|file| fs::read(file).unwrap());
    let before = stacks();
    let read = "found a file that this command line reads";
    for (arguments, found) in [
        (vec!["run", &raid5, "--report", &raid5], read),
        (vec!["run", &raid5, "--log", &linked], read),
        (
            vec!["run", &raid5, "--trace", &trace, "--log", &trace],
            read,
        ),
        (
            vec!["run", &raid5, "--report", &page, "--plot", &page],
            "found what --report writes",
        ),
        // The shell expands `--report *.toml` to this.
        (
            vec!["compare", "--report", &raid0, &raid5],
            "begins with `title = \"a test\"`; expected no file, or an HTML page",
        ),
        (vec!["compare", &raid5, "--plot", &raid0], "an SVG figure"),
        (
            vec![
                "tune",
                &raid5,
                "--vary",
                "volume.drives=4,5",
                "--plot",
                &raid5,
            ],
            read,
        ),
        (vec!["trace", "convert", &trace, &trace], read),
    ] {
        let message = refused(&arguments);
        assert!(message.contains(found), "{arguments:?}: {message}");
    }
    assert!(stacks() == before && folder.files() == 4);
    // The second pass replaces the command's own files.
    for _ in 0..2 {
        success(&[
            "run",
            &raid5,
            "--report",
            &page,
            "--plot",
            &figure,
            "--log",
            &folder.name("log.csv"),
        ]);
    }
}

#[test]
fn the_distance_of_heads_is_drawn_over_time() {
    let folder = Folder::new();
    let (raid5, plot) = (folder.put("raid5.toml", STACK), folder.name("heads.svg"));
    let compared = [
        "compare",
        &raid5,
        "--vary",
        "volume.chunk=16KiB,1MiB",
        "--plot-heads",
        &plot,
    ];
    let with = |requests| [&compared[..], &["--set", requests]].concat();
    let soon = told_then_refused(&with("workload.requests=500"));
    assert!(
        soon.contains("20 simulated seconds"),
        "it is over too soon: {soon}"
    );
    success(&with("workload.requests=3000"));
    let svg = fs::read_to_string(&plot).unwrap();
    for part in ["<svg", "chunk=16KiB", "chunk=1MiB", "time (s)"] {
        assert!(svg.contains(part), "{part}");
    }
}

#[test]
fn what_cannot_be_used_is_refused_with_its_place() {
    let folder = Folder::new();
    let good = folder.put("good.toml", STACK);
    let misspelt = folder.put("bad.toml", &STACK.replace("drives = 5", "drves = 5"));
    for (arguments, parts) in [
        (vec!["run", "no-such.toml"], vec!["no-such.toml"]),
        (
            vec!["run", &misspelt],
            vec!["bad.toml:14", "drves", "did you mean `drives`"],
        ),
        (
            vec!["run", &good, "--set", "volume.chunk=1000"],
            vec!["chunk", "512"],
        ),
        (
            vec!["run", &good, "--set", "volume.drives=1"],
            vec!["raid5"],
        ),
        (
            vec!["run", &good, "--trace", "no-such-trace"],
            vec!["no-such-trace"],
        ),
        (
            vec!["run", &good, "--log", "no/such/folder/log.csv"],
            vec!["no/such/folder/log.csv"],
        ),
        (
            vec!["compare", &good, "--by", "reponse_ms.p99"],
            vec!["reponse_ms.p99", "did you mean `response_ms.p99`"],
        ),
        (
            vec!["compare", &good, "--vary", "volume.chunk"],
            vec!["--vary volume.chunk="],
        ),
        (vec!["compare", &good, &misspelt], vec!["bad.toml:14"]),
        (
            vec!["drive", "show", "seagate-cheetah-9pl"],
            vec!["did you mean `seagate-cheetah-9lp`"],
        ),
        (vec!["stack", "check", &misspelt], vec!["bad.toml:14"]),
        (
            vec!["trace", "info", "no-such-trace"],
            vec!["no-such-trace"],
        ),
        (vec!["no-such-command"], vec!["no-such-command"]),
        (vec![], vec!["Usage"]),
    ] {
        let error = refused(&arguments);
        for part in parts {
            assert!(
                error.contains(part),
                "{arguments:?} should name {part}: {error}"
            );
        }
    }
}

#[test]
fn drives_are_listed_shown_and_checked() {
    let listed = json(&["drive", "list", "--json"]);
    assert!(
        listed
            .as_array()
            .unwrap()
            .iter()
            .any(|drive| drive["name"] == "seagate-cheetah-9lp")
    );
    assert!(success(&["drive", "list"]).contains("seagate-cheetah-9lp"));
    let shown = success(&["drive", "show", "seagate-cheetah-9lp"]);
    assert!(
        shown.contains("10045 rpm") && shown.contains("Sources"),
        "{shown}"
    );
    assert!(
        json(&["drive", "show", "seagate-cheetah-9lp", "--json"])["description"]["zones"]
            .is_array()
    );
    let checked = json(&["drive", "check", "--json"]);
    assert!(
        checked
            .as_array()
            .unwrap()
            .iter()
            .all(|check| check["passed"] == true)
    );
}

#[test]
fn a_drive_that_does_not_hold_is_status_1() {
    let folder = Folder::new();
    let shown = json(&["drive", "show", "seagate-cheetah-9lp", "--json"]);
    let library =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../drives/seagate-cheetah-9lp.toml");
    let text = fs::read_to_string(library).unwrap();
    let without_source: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with("rpm = \""))
        .collect();
    assert!(shown["description"]["sources"]["rpm"].is_string());
    let drive = folder.put("drive.toml", &without_source.join("\n"));
    let output = fullstroke(&["drive", "check", &drive]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains("FAILED"));
}

#[test]
fn a_data_sheet_becomes_a_drive_that_is_checked_and_runs() {
    let folder = Folder::new();
    let drive = folder.name("mine.toml");
    fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
        [
            &[
                "drive",
                "new",
                "--capacity",
                "8T",
                "--rpm",
                "7200",
                "--outer",
                "245",
            ],
            more,
        ]
        .concat()
    }
    let told = success(&with(&["--inner", "120", "--seek", "8.5", "-o", &drive]));
    assert!(told.contains("15628053168 sectors"), "{told}");
    let checked = json(&["drive", "check", &drive, "--json"]);
    assert!(
        checked
            .as_array()
            .unwrap()
            .iter()
            .all(|check| check["passed"] == true),
        "{checked}"
    );
    assert!(checked.as_array().unwrap().len() >= 4, "{checked}");
    let shown = json(&["drive", "show", &drive, "--json"]);
    assert_eq!(shown["capacity_bytes"], 8_001_563_222_016u64);
    assert!(
        shown["description"]["sources"]["zones"]
            .as_str()
            .unwrap()
            .starts_with("fitted")
    );
    let stack = folder.put("stack.toml", STACK);
    success(&["run", &stack, "--drive", &drive, "--requests", "200"]);
    // Standard output has the text of the file. A given title replaces the default title.
    assert_eq!(
        success(&with(&["--inner", "120", "--seek", "8.5"])),
        fs::read_to_string(&drive).unwrap()
    );
    let named = with(&[
        "--surfaces",
        "9",
        "--cache",
        "256MiB",
        "--title",
        "My drive",
        "--json",
    ]);
    assert_eq!(
        (&json(&named)["title"], &json(&named)["surfaces"]),
        (&"My drive".into(), &9.into())
    );
    for (more, parts) in [
        (&["--inner", "300"][..], ["--inner: found 300", "expected"]),
        (
            &["--surfaces", "0"],
            ["--surfaces: found 0", "expected 1 to 32"],
        ),
        (
            &["--seek", "-1"],
            ["--seek: found -1", "expected 0.5 to 100 ms"],
        ),
        (&["--cache", "much"], ["--cache", "much"]),
    ] {
        let error = refused(&with(more));
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    }
    let slow = [
        "drive",
        "new",
        "--capacity",
        "8T",
        "--rpm",
        "7200",
        "--outer",
        "1",
    ];
    assert!(refused(&slow).contains("--outer: found 1 MB/s"));
}

#[test]
fn an_extraction_is_held_against_what_the_drive_is() {
    let found = |kind: &str| json(&["extract", "hp-c2247a", "--kind", kind, "--check", "--json"]);
    let rpm = found("rpm")["check"]["rpm"].clone();
    assert!(
        (rpm[0].as_f64().unwrap() - rpm[1].as_f64().unwrap()).abs() < 0.01,
        "{rpm}"
    );
    let zones = found("zones")["check"]["zones"].clone();
    assert_eq!(
        (&zones["found"], &zones["starts_off_sectors_most"]),
        (&json!(8), &json!(0)),
        "{zones}"
    );
    assert!(
        found("skew")["check"]["skew_rms_revolutions"]
            .as_f64()
            .unwrap()
            < 1e-4
    );
    assert!(found("seek")["check"]["seek_rms_ms"].as_f64().unwrap() < 0.5);
}

#[test]
fn a_table_is_of_the_drive_or_refused_and_where_none_is_used_too() {
    let folder = Folder::new();
    let path = folder.name("found.tracks");
    fn extract<'a>(more: &[&'a str]) -> Vec<&'a str> {
        [&["extract", "hp-c2247a"][..], more].concat()
    }
    success(&extract(&["--kind", "translate", "--write-table", &path]));
    for kind in ["timing", "zones", "translate"] {
        assert!(
            refused(&extract(&["--kind", kind, "--table", &path])).contains("--table"),
            "{kind}"
        );
    }
    assert!(success(&extract(&["--kind", "verify", "--table", &path])).contains("-32 to     -1"));
    // The first track loses a sector, and the next gains one.
    let text = std::fs::read_to_string(&path).unwrap();
    let first = text.lines().find(|line| line.ends_with(" of 96")).unwrap();
    let tracks: u64 = first.split(' ').next().unwrap().parse().unwrap();
    let other = text.replacen(first, &format!("1 of 95\n1 of 97\n{} of 96", tracks - 2), 1);
    let other = folder.put("other.tracks", &other);
    for kind in ["verify", "seek", "zero-latency"] {
        assert!(
            refused(&extract(&["--kind", kind, "--table", &other])).contains("LBN 95"),
            "{kind}"
        );
    }
    let noise = refused(&extract(&["--kind", "timing", "--late-us", "300"]));
    assert!(noise.contains("% of a revolution"), "{noise}");
    assert!(refused(&extract(&["--by-sector"])).contains("--by-sector"));
}

#[test]
fn stacks_are_checked_and_have_a_schema() {
    let folder = Folder::new();
    let stack = folder.put("stack.toml", STACK);
    let checked = json(&["stack", "check", &stack, "--json"]);
    assert_eq!(
        (&checked[0]["drives"], &checked[0]["failures_survived"]),
        (&5.into(), &1.into())
    );
    assert!(success(&["stack", "check", &stack]).contains("raid5 of 5"));
    assert_eq!(json(&["stack", "schema"])["type"], "object");
}

const TRACE: &str = "\
128166372003061629,hm,0,Read,4096,8192,100
128166372003071629,hm,0,Write,12288,4096,200
128166372003091629,hm,0,Read,65536,4096,300
";

#[test]
fn traces_are_described_shown_and_converted() {
    let folder = Folder::new();
    let trace = folder.put("trace.csv", TRACE);
    assert!(success(&["trace", "info", &trace]).contains('3'));
    assert!(json(&["trace", "info", &trace, "--json"]).is_object());
    let head = success(&["trace", "head", &trace, "--number", "2", "--json"]);
    let rows: Vec<Value> = head
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!((rows.len(), &rows[1]["operation"]), (2, &"write".into()));
    assert!(success(&["trace", "head", &trace]).contains("write"));
    let native = folder.name("trace.parquet");
    success(&["trace", "convert", &trace, &native]);
    let again = success(&["trace", "head", &native, "--json"]);
    assert_eq!(again.lines().count(), 3);
    assert!(success(&["trace", "formats"]).contains("msr"));
}

#[test]
fn a_trace_replaces_the_workload() {
    let folder = Folder::new();
    let (stack, trace) = (
        folder.put("stack.toml", STACK),
        folder.put("trace.csv", TRACE),
    );
    let report = json(&["run", &stack, "--trace", &trace, "--json"]);
    assert_eq!(report["completed"], 3);
    let reads = json(&[
        "run",
        &stack,
        "--trace",
        &trace,
        "--operation",
        "read",
        "--time-scale",
        "0.5",
        "--json",
    ]);
    assert_eq!(
        (&reads["completed"], &reads["writes"]),
        (&2.into(), &Value::Null)
    );
}

#[test]
fn completions_and_manual_pages_are_generated() {
    for shell in ["bash", "zsh", "fish"] {
        assert!(
            success(&["completions", shell]).contains("fullstroke"),
            "{shell}"
        );
    }
    assert!(success(&["man"]).contains(".TH fullstroke"));
    let folder = Folder::new();
    success(&["man", &folder.name("man")]);
    assert!(folder.path("man/fullstroke-run.1").exists());
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_fullstroke"))
        .args(["stack", "schema"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stderr).as_ref()
        ),
        (Some(0), "")
    );
}

const PROCESSES: &str = r#"seed = 3

[workload]
kind = "processes"
requests = 3000

[[workload.processes]]
name = "reader"
count = 4
size = "16KiB"

[[workload.processes]]
name = "writer"
size = "16KiB"
read_share = 0.0
depth = 4

[host]
queue_depth = 8

[controller]
memory = "4MiB"

[volume]
layout = "raid5"
drive = "seagate-cheetah-9lp"
drives = 4
"#;

#[test]
fn processes_are_reported_one_by_one_and_by_name() {
    let folder = Folder::new();
    let stack = folder.put("stack.toml", PROCESSES);
    let report = json(&["run", &stack, "--json"]);
    let counts = |of: &str| -> u64 {
        let each = report[of].as_array().unwrap().iter();
        each.map(|one| one["reads"].as_u64().unwrap() + one["writes"].as_u64().unwrap())
            .sum()
    };
    assert_eq!((counts("processes"), counts("groups")), (3000, 3000));
    assert_eq!(report["groups"][0]["name"], "reader");
    assert_eq!(
        (
            &report["processes"][4]["name"],
            &report["processes"][4]["process"]
        ),
        (&"writer".into(), &5.into())
    );
    let fairness = report["groups"][0]["fairness"].as_f64().unwrap();
    assert!((0.9..=1.0).contains(&fairness), "{fairness}");
    // Destaging after the last completion is no part of the run.
    for member in report["members"].as_array().unwrap() {
        assert!(member["utilisation"].as_f64().unwrap() < 1.01, "{member}");
    }
    let text = success(&["run", &stack]);
    assert!(
        text.contains("fairness") && text.contains("writer"),
        "{text}"
    );
}

#[test]
fn stacks_are_ranked_by_fairness_and_by_the_ratio_of_reads_to_writes() {
    let folder = Folder::new();
    let stack = folder.put("stack.toml", PROCESSES);
    for metric in ["fairness", "process_mb_per_s.stddev", "read_write_ratio"] {
        let vary = "workload.processes[1].depth=1,16";
        let ranking = json(&["compare", &stack, "--vary", vary, "--by", metric, "--json"]);
        assert_eq!(ranking["by"], metric);
        assert_ne!(
            ranking["candidates"][0]["value"], ranking["candidates"][1]["value"],
            "{metric}"
        );
    }
}

#[test]
fn what_processes_and_controllers_cannot_be_is_refused_with_its_place() {
    let folder = Folder::new();
    for (from, to, place, says) in [
        ("count = 4", "cuont = 4", ":9:", "did you mean `count`"),
        (
            "depth = 4",
            "depth = 0",
            ":16:",
            "workload.processes[1].depth",
        ),
        (
            "read_share = 0.0",
            "level = 9",
            ":15:",
            "workload.processes[1].level",
        ),
        (
            "memory = \"4MiB\"",
            "memory = \"1KiB\"",
            ":22:",
            "controller.memory",
        ),
        (
            "memory = \"4MiB\"",
            "write_share = 0.7",
            ":22:",
            "more than the memory",
        ),
        (
            "memory = \"4MiB\"",
            "queue_depht = 2",
            ":22:",
            "did you mean `queue_depth`",
        ),
        (
            "memory = \"4MiB\"",
            "destage = { unti = 2 }",
            ":22:",
            "did you mean `unit`",
        ),
        (
            "memory = \"4MiB\"",
            "discipline = \"sttf\"",
            ":22:",
            "did you mean `sstf`",
        ),
    ] {
        let stack = folder.put("stack.toml", &PROCESSES.replace(from, to));
        let error = refused(&["run", &stack]);
        assert!(
            error.contains(place) && error.contains(says),
            "{to}: {error}"
        );
    }
}

#[test]
fn closed_formulas_are_explained() {
    let idle = json(&[
        "explain",
        "idle-members",
        "--requests",
        "32",
        "--disks",
        "8",
        "--json",
    ]);
    assert_eq!(
        format!("{:.2}", idle["any_idle_probability"].as_f64().unwrap()),
        "0.11"
    );
    assert!(
        success(&["explain", "idle-members", "--requests", "8", "--disks", "2"])
            .contains("0.7812 %")
    );
    let merge = success(&[
        "explain",
        "merge-chance",
        "--requests",
        "32",
        "--capacity",
        "100GiB",
    ]);
    assert!(merge.contains("0.008041 %"), "{merge}");
    refused(&["explain", "idle-members", "--requests", "8", "--disks", "0"]);
    let error = refused(&[
        "explain",
        "merge-chance",
        "--requests",
        "8",
        "--capacity",
        "1KiB",
    ]);
    assert!(error.contains("--size 16KiB"), "{error}");
}

#[test]
fn run_reports_how_long_a_rebuild_takes_and_compare_ranks_by_it() {
    let folder = Folder::new();
    let stack = folder.put("stack.toml", STACK);
    let report = json(&["run", &stack, "--set", "volume.rebuild=2", "--json"]);
    let rebuild = &report["rebuild"];
    assert_eq!(rebuild["members"], serde_json::json!(["2"]));
    assert_eq!(rebuild["estimated"], true, "{rebuild}");
    let number = |key: &str| rebuild[key].as_f64().unwrap();
    assert!(
        number("mb_per_s") > 0.5 && number("hours") > 0.1 && number("share") > 0.0,
        "{rebuild}"
    );
    assert!(json(&["run", &stack, "--json"]).get("rebuild").is_none());
    let text = success(&["run", &stack, "--set", "volume.rebuild=2"]);
    assert!(
        text.contains("rebuilding member 2: ") && text.contains("hours until whole, estimated"),
        "{text}"
    );
    let options = [
        "--set",
        "volume.rebuild=2",
        "--vary",
        "volume.chunk=64KiB,256KiB",
        "--by",
        "rebuild.hours",
    ];
    let ranked = json(&[&["compare", &stack, "--json"][..], &options[..]].concat());
    assert!(ranked.to_string().contains("rebuild.hours"), "{ranked}");
}
