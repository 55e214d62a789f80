//! Several workloads on one array.

use crate::common::{fullstroke, refused, success};
use serde_json::Value;
use std::fs;

const STACK: &str = r#"seed = 5

[[workloads]]
name = "front"
kind = "synthetic"
requests = 400
arrivals = { process = "poisson", rate_per_s = 40 }

[[workloads]]
name = "backup"
background = true
kind = "synthetic"
duration = "1h"
size = "256KiB"
arrivals = { process = "closed", outstanding = 1 }
addresses = { pattern = "sequential" }

[volume]
layout = "raid5"
drive = "seagate-cheetah-9lp"
drives = 5
"#;

struct Folder(tempfile::TempDir);

impl Folder {
    fn stack(&self, text: &str) -> String {
        let path = self.0.path().join("stack.toml");
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

fn folder() -> Folder {
    Folder(tempfile::tempdir().unwrap())
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&success(arguments)).unwrap()
}

#[test]
fn each_of_several_workloads_is_reported_by_name() {
    let folder = folder();
    let stack = folder.stack(STACK);
    let report = json(&["run", &stack, "--json"]);
    let [front, backup] = report["workloads"].as_array().unwrap().as_slice() else {
        panic!("{report}")
    };
    assert_eq!(
        (&front["name"], &front["requests"]),
        (&"front".into(), &400.into())
    );
    assert_eq!(backup["name"], "backup");
    // The backup runs as long as the foreground load, and no longer.
    assert!(
        (5.0..30.0).contains(&report["simulated_s"].as_f64().unwrap()),
        "{}",
        report["simulated_s"]
    );
    assert!(backup["mb_per_s"].as_f64().unwrap() > 1.0);
    let all = front["requests"].as_u64().unwrap() + backup["requests"].as_u64().unwrap();
    assert_eq!(report["completed"], all);
    let text = success(&["run", &stack]);
    assert!(
        text.contains("workload") && text.contains("backup"),
        "{text}"
    );
}

#[test]
fn candidates_are_ranked_by_one_of_their_workloads() {
    let folder = folder();
    let stack = folder.stack(STACK);
    let vary = "workloads[1].size=64KiB,4MiB";
    let by = |metric: &str| json(&["compare", &stack, "--vary", vary, "--by", metric, "--json"]);
    let latency = by("workloads.front.response_ms.p99");
    assert_eq!(latency["by"], "workloads.front.response_ms.p99");
    let value =
        |ranking: &Value, place: usize| ranking["candidates"][place]["value"].as_f64().unwrap();
    assert!(value(&latency, 0) < value(&latency, 1));
    // Larger backup requests delay the foreground load and raise the backup's rate.
    let rate = by("workloads.backup.mb_per_s");
    assert_eq!(rate["candidates"][0]["varied"]["workloads[1].size"], "4MiB");
}

#[test]
fn a_workload_beside_it_does_not_change_what_another_asks() {
    let folder = folder();
    let with = folder.stack(STACK);
    let both = json(&["run", &with, "--json"]);
    let more = STACK.replace(
        "[volume]",
        "[[workloads]]\nname = \"third\"\nkind = \"synthetic\"\nrequests = 3\n\
        arrivals = { process = \"poisson\", rate_per_s = 1 }\n\n[volume]",
    );
    let three = json(&["run", &folder.stack(&more), "--json"]);
    assert_eq!(
        both["workloads"][0]["requests"],
        three["workloads"][0]["requests"]
    );
    assert_eq!(three["workloads"][2]["requests"], 3);
}

#[test]
fn what_several_workloads_cannot_be_is_refused_with_its_place() {
    let folder = folder();
    for (from, to, says) in [
        ("name = \"backup\"", "name = \"front\"", "workloads[1].name"),
        ("name = \"backup\"", "name = \"a.b\"", "letters, digits"),
        ("name = \"backup\"\n", "", "workloads[1]"),
        (
            "kind = \"synthetic\"\nrequests",
            "kind = \"sinthetic\"\nrequests",
            "did you mean `synthetic`",
        ),
        (
            "kind = \"synthetic\"\nrequests = 400",
            "kind = \"fio\"\npath = \"a.fio\"",
            "run alone",
        ),
        ("requests = 400", "reqests = 400", "did you mean `requests`"),
        (
            "name = \"front\"",
            "name = \"front\"\nbackground = true",
            "the run never ends",
        ),
        (
            "seed = 5",
            "seed = 5\n[workload]\nkind = \"synthetic\"",
            "one of the two",
        ),
    ] {
        let stack = folder.stack(&STACK.replacen(from, to, 1));
        let error = refused(&["run", &stack]);
        assert!(
            error.contains("stack.toml") && error.contains(says),
            "{to}: {error}"
        );
    }
    let stack = folder.stack(STACK);
    let error = refused(&["run", &stack, "--requests", "5"]);
    assert!(error.contains("--set workloads[0].requests"), "{error}");
}

#[test]
fn a_number_that_no_candidate_has_is_refused_and_one_that_some_have_is_a_dash() {
    let folder = folder();
    let bonnie = |name: &str, phases: &str| {
        let text = format!(
            "[workload]\nkind = \"bonnie\"\nsize = \"1MiB\"\nphases = [{phases}]\n[host.memory]\nsize = \"64MiB\"\n\
             [host.files]\nkind = \"ext2\"\nsize = \"1GiB\"\n[volume]\nlayout = \"jbod\"\ndrive = \"seagate-cheetah-9lp\"\n\
             drives = 1\n"
        );
        let path = folder.0.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (one, other) = (
        bonnie("one.toml", "\"write\", \"read\""),
        bonnie("other.toml", "\"write\""),
    );
    let text = success(&[
        "compare",
        &one,
        &other,
        "--by",
        "programs.bonnie.read_mb_per_s",
    ]);
    let row = text.lines().find(|line| line.contains("other")).unwrap();
    assert!(row.contains(" - "), "{text}");
    for (by, parts) in [
        (
            "hosts.host.programs.nosuch.transactions_per_s",
            ["no metric", "program `nosuch`", "there are: bonnie"],
        ),
        (
            "hosts.h.programs.bonnie.elapsed_s",
            ["no metric", "host with programs `h`", "there are: host"],
        ),
        (
            "programs.bonnie.reed_mb_per_s",
            [
                "figure of bonnie",
                "did you mean `read_mb_per_s`",
                "write_mb_per_s",
            ],
        ),
        (
            "operations.rename.per_s",
            ["kind of call `rename`", "there are:", "unlink"],
        ),
    ] {
        let error = refused(&["compare", &one, &other, "--by", by]);
        assert!(
            parts.iter().all(|part| error.contains(part)),
            "{by}: {error}"
        );
    }
    let error = refused(&[
        "compare",
        &folder.stack(STACK),
        "--by",
        "workloads.back.iops",
    ]);
    assert!(
        error.contains("workload among several `back`") && error.contains("backup"),
        "{error}"
    );
}

const TWO: &str = "seed = 1\n\
    [[workloads]]\nname = \"a\"\nkind = \"synthetic\"\nrequests = 20\narrivals = { process = \"closed\" }\n\
    [[workloads]]\nname = \"b\"\nkind = \"synthetic\"\nrequests = 30\narrivals = { process = \"closed\" }\n\
    [volume]\nlayout = \"raid5\"\ndrive = \"wd-red-plus-4tb\"\ndrives = 4\n";

#[test]
fn a_key_of_a_workload_is_set_by_the_workloads_name() {
    let folder = folder();
    let stack = folder.stack(TWO);
    let report = |set: &str| -> Value {
        let text = success(&["run", &stack, "--json", "--set", set]);
        serde_json::from_str(&text).unwrap()
    };
    assert_eq!(report("workloads.b.requests=50")["requests"], 70);
    assert_eq!(
        report("workloads.b.requests=50")["config_digest"],
        report("workloads[1].requests=50")["config_digest"]
    );
    let error = refused(&["run", &stack, "--set", "workloads.c.requests=50"]);
    assert!(
        error.contains("no table has the name `c`; expected one of: a, b"),
        "{error}"
    );
    // A mistake in the value names the command line.
    let error = refused(&["run", &stack, "--set", "workloads.b.requests=many"]);
    assert!(
        error.contains("--set") && error.contains("requests"),
        "{error}"
    );
}

#[test]
fn combinations_that_do_not_exist_are_left_out_of_a_comparison() {
    let folder = folder();
    let one = TWO.split("[[workloads]]").next().unwrap().to_owned()
        + "[workload]\nkind = \"synthetic\"\nrequests = 20\narrivals = { process = \"closed\" }\n"
        + &TWO[TWO.find("[volume]").unwrap()..];
    let stack = folder.stack(&one);
    let compare = |layouts: &str, drives: &str| {
        let (layouts, drives) = (
            format!("volume.layout={layouts}"),
            format!("volume.drives={drives}"),
        );
        fullstroke(&[
            "compare", &stack, "--vary", &layouts, "--vary", &drives, "--json",
        ])
    };
    let output = compare("raid5,raid6", "3,4");
    let notes = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{notes}");
    assert!(
        notes.contains("left out") && notes.contains("volume.layout=raid6 volume.drives=3"),
        "{notes}"
    );
    let ranking: Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = ranking.to_string();
    assert!(text.contains("raid5") && text.contains("raid6"), "{text}");
    // A value that no combination takes is a mistake.
    let output = compare("raid5,raid6", "1,4");
    assert_eq!(output.status.code(), Some(2));
    assert!(
        String::from_utf8(output.stderr)
            .unwrap()
            .contains("volume.drives=1")
    );
}
