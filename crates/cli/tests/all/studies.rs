//! Tests of `fullstroke study`: run, interruption, continuation, check and pages.

use crate::common::{fullstroke, refused, success};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const STACK: &str = r#"title = "a test"

[workload]
kind = "synthetic"
requests = 1000
size = "4KiB"
arrivals = { process = "poisson", rate_per_s = 100 }

[volume]
layout = "raid5"
drive = "seagate-cheetah-9lp"
drives = 5
"#;

const STUDY: &str = r#"title = "disciplines"
question = "Is SATF faster than FCFS?"
source = "A test (2020), table 1"
stack = "stacks/base.toml"
replications = 3
metrics = ["response_ms.mean", "members[0].utilisation"]

[[axes]]
name = "policy"
key = "volume.drive_settings.queue.discipline"
values = ["fcfs", "satf"]

[[axes]]
name = "rate"
key = "workload.arrivals.rate_per_s"
values = [100, 250]

[[claims]]
id = "T-1"
says = "SATF is faster under load"
quote = "SATF wins."
at = "section 1"
published = "yes"
kind = "shape"
obtained = "1 - mean(policy=satf, rate=250) / mean(policy=fcfs, rate=250)"
holds = "low(obtained) > 0"

[[figures]]
id = "means"
title = "Response time"
x = "rate"
series = "policy"
y = "response_ms.mean"
published = [{ series = "fcfs", points = [[100, 17.5]] }]
"#;

/// A folder with one study.
struct Studies(tempfile::TempDir);

impl Studies {
    fn new(study: &str) -> Studies {
        let studies = Studies(tempfile::tempdir().unwrap());
        fs::create_dir_all(studies.path("test-2020/stacks")).unwrap();
        fs::write(studies.path("test-2020/stacks/base.toml"), STACK).unwrap();
        fs::write(studies.path("test-2020/disciplines.toml"), study).unwrap();
        studies
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn arguments<'a>(&'a self, words: &[&'a str]) -> Vec<&'a str> {
        [
            &["study"],
            words,
            &["--studies", self.0.path().to_str().unwrap()],
        ]
        .concat()
    }

    fn json(&self, words: &[&str]) -> Value {
        serde_json::from_str(&success(
            &[&self.arguments(words)[..], &["--json"]].concat(),
        ))
        .unwrap()
    }

    /// Returns the files of the results.
    fn files(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        for build in fs::read_dir(self.path("results")).into_iter().flatten() {
            let entries = fs::read_dir(build.unwrap().path()).unwrap();
            files.extend(entries.map(|entry| entry.unwrap().path()));
        }
        files.retain(|file| {
            file.extension()
                .is_some_and(|extension| extension == "parquet")
        });
        files
    }
}

#[test]
fn a_study_is_asked_again_with_a_trace_of_ones_own_whose_results_are_kept_apart() {
    let axis = "[[axes]]\nname = \"trace\"\nvalues = [\n{ name = \"theirs\", set = [\"workload={ kind = \\\"trace\\\", \
                path = \\\"theirs.txt\\\", format = \\\"disksim\\\" }\"] },\n]\n\n[[axes]]\nname = \"rate\"\nkey = \"measurement.warm_up\"\nvalues = [\"0s\"]\n";
    let (head, rest) = STUDY.split_once("[[axes]]\nname = \"rate\"").unwrap();
    let claims = rest
        .split_once("[[claims]]")
        .unwrap()
        .1
        .split_once("[[figures]]")
        .unwrap()
        .0;
    let claims = claims.replace(", rate=250", "");
    let study =
        format!("{head}{axis}\n[[claims]]{claims}").replace("replications = 3", "replications = 1");
    let studies = Studies::new(&study);
    let rows = |step: u64| -> String {
        let row = |index: u64| {
            format!(
                "{} 0 {} 8 1\n",
                index as f64 * 2.0,
                index * step % 1_000_000 * 8
            )
        };
        (0..400).map(row).collect()
    };
    fs::write(studies.path("test-2020/stacks/theirs.txt"), rows(7919)).unwrap();
    let own = studies.path("own.txt");
    fs::write(&own, rows(7907)).unwrap();
    let trace = format!("theirs={}", own.display());
    assert_eq!(studies.json(&["run"])["runs"], 2);
    let before = studies.json(&["check"]);
    let done = studies.json(&["run", "--trace", &trace]);
    assert_eq!(
        (&done["runs"], &done["runs_done_before"]),
        (&2.into(), &0.into()),
        "kept apart"
    );
    assert_eq!(
        studies.json(&["run", "--trace", &trace])["runs_done_before"],
        2
    );
    // The claim may fail on this trace, so the exit status is not tested.
    let with = fullstroke(
        &[
            &studies.arguments(&["check", "--trace", &trace])[..],
            &["--json"],
        ]
        .concat(),
    );
    let with: Value = serde_json::from_slice(&with.stdout).unwrap();
    let obtained = |checked: &Value| checked[0]["claims"][0]["obtained"].as_f64().unwrap();
    assert_ne!(obtained(&with), obtained(&before));
    assert_eq!(
        studies.json(&["check"]),
        before,
        "the study's own results stay what they were"
    );
    let unknown =
        refused(&studies.arguments(&["run", "--trace", &format!("others={}", own.display())]));
    assert!(unknown.contains("found theirs"), "{unknown}");
    let absent = refused(&studies.arguments(&["run", "--trace", "theirs=absent.csv"]));
    assert!(absent.contains("no file absent.csv"), "{absent}");
    let record = ["check", "--vary-free", "--record", "--trace", &trace];
    assert!(refused(&studies.arguments(&record)).contains("--trace"));
}

#[test]
fn points_are_run_once_and_claims_are_judged_on_them() {
    let studies = Studies::new(STUDY);
    let status = fullstroke(&studies.arguments(&["check"])).status;
    assert_eq!(status.code(), Some(1), "what was not run does not hold");
    let done = studies.json(&["run"]);
    assert_eq!(
        (&done["runs"], &done["runs_done_before"]),
        (&12.into(), &0.into())
    );
    let again = studies.json(&["run"]);
    assert_eq!(
        (&again["runs"], &again["runs_done_before"]),
        (&0.into(), &12.into())
    );
    let checked = studies.json(&["check", "test"]);
    let claim = &checked[0]["claims"][0];
    assert_eq!(
        (&claim["id"], &claim["verdict"]),
        (&"T-1".into(), &"holds".into())
    );
    assert!(claim["obtained"].as_f64().unwrap() > claim["ci_half_width"].as_f64().unwrap());
    assert_eq!(
        studies.files().len(),
        1,
        "results are merged at the end of a run"
    );
}

#[test]
fn a_page_of_a_study_has_the_numbers_of_json() {
    let studies = Studies::new(STUDY);
    let page = studies.path("out.html");
    let done = studies.json(&["run", "--report", page.to_str().unwrap()]);
    let html = fs::read_to_string(&page).unwrap();
    let claim = &done["checked"][0]["claims"][0];
    assert_eq!(claim["verdict"], "holds");
    for number in [&claim["obtained"], &claim["ci_half_width"]] {
        assert!(
            html.contains(&format!("<data value=\"{number}\">")),
            "{number}"
        );
    }
    for words in [
        "1 of 1 claims hold",
        "SATF is faster under load",
        "SATF wins.",
        "test-2020/disciplines.toml",
    ] {
        assert!(html.contains(words), "{words}");
    }
    // `check` shows the same page from the stored results.
    let again = studies.path("again.html");
    let checked = studies.json(&["check", "--report", again.to_str().unwrap()]);
    assert_eq!(checked, done["checked"]);
    let sections = |html: &str| {
        html.split("<section id=\"reproduce\"")
            .next()
            .unwrap()
            .to_owned()
    };
    assert_eq!(
        sections(&fs::read_to_string(&again).unwrap()),
        sections(&html)
    );
    let figure = &checked[0]["figures"][0];
    assert_eq!(
        (
            &figure["title"],
            &figure["lines"][0]["points"][0]["published"]
        ),
        (&"Response time".into(), &17.5.into())
    );
    let value = &figure["lines"][1]["points"][1]["value"];
    assert!(
        value.is_f64() && html.contains(&format!("<data value=\"{value}\">")),
        "{value}"
    );
    assert!(html.contains("<section id=\"figures\""));
    // The page also shows the verdicts of the test with other seeds.
    let held = studies.json(&["check", "--seeds", "1", "--report", again.to_str().unwrap()]);
    assert_eq!(held["checked"][0]["claims"], held["studies"][0]["claims"]);
    assert_eq!(held["checked"][0]["figures"], checked[0]["figures"]);
    assert!(
        fs::read_to_string(&again)
            .unwrap()
            .contains("verdicts were held against seeds")
    );
    assert!(studies.json(&["run"])["checked"].is_null());
}

/// Writes a script that replaces Python with Dask. It sends each task to `study work` and ends
/// after `runs` runs.
fn pretend_cluster(studies: &Studies, runs: usize) -> PathBuf {
    let script = format!(
        "#!/bin/sh\n\
         read -r order\n\
         build=$(printf '%s' \"$order\" | sed 's/.*\"build\":\"\\([^\"]*\\)\".*/\\1/')\n\
         \"{}\" study work --build \"$build\" | nl -v0 -w1 -s' ' | head -n {runs}\n\
         echo 'the last worker went home' >&2\n",
        env!("CARGO_BIN_EXE_fullstroke")
    );
    let path = studies.path("python");
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn on_cluster(studies: &Studies, python: &Path) -> std::process::Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fullstroke"));
    command
        .args(studies.arguments(&["run", "--dask", "tcp://127.0.0.1:1", "--json"]))
        .env("PYTHON", python);
    command.output().unwrap()
}

#[test]
fn a_cluster_gives_what_threads_give_and_what_it_gave_is_kept() {
    let (here, there) = (Studies::new(STUDY), Studies::new(STUDY));
    here.json(&["run"]);
    let ran = on_cluster(&there, &pretend_cluster(&there, 5));
    let said = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(2));
    assert!(
        said.contains("5 of 12 runs returned and are kept: the last worker went home"),
        "{said}"
    );
    let ran = on_cluster(&there, &pretend_cluster(&there, 100));
    assert!(
        ran.status.success(),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    let done: Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(
        (&done["runs"], &done["runs_done_before"]),
        (&7.into(), &5.into())
    );
    assert_eq!(
        here.json(&["check"])[0]["claims"],
        there.json(&["check"])[0]["claims"]
    );
    let absent = on_cluster(&Studies::new(STUDY), Path::new("/nowhere/python"));
    assert!(String::from_utf8_lossy(&absent.stderr).contains("cannot run `/nowhere/python`"));
}

#[test]
fn a_worker_refuses_another_build_and_other_files() {
    let other = refused(&["study", "work", "--build", "0.0.1-of-old"]);
    assert!(
        other.contains("expected 0.0.1-of-old, the build of the caller"),
        "{other}"
    );
    let studies = Studies::new(STUDY);
    let python = pretend_cluster(&studies, 100);
    let script = fs::read_to_string(&python).unwrap().replace(
        "read -r order",
        &format!(
            "sed -i 's/size = \"4KiB\"/size = \"8KiB\"/' {}; read -r order",
            studies.path("test-2020/stacks/base.toml").display()
        ),
    );
    fs::write(&python, script).unwrap();
    let said = String::from_utf8(on_cluster(&studies, &python).stderr).unwrap();
    assert!(
        said.contains("12 of 12 runs failed") && said.contains("differ on this machine"),
        "{said}"
    );
}

#[test]
fn studies_with_a_point_in_common_share_it() {
    let studies = Studies::new(STUDY);
    studies.json(&["run"]);
    let other = STUDY
        .replace("values = [100, 250]", "values = [250, 300]")
        .replace("100, 17.5", "250, 17.5");
    fs::write(studies.path("test-2020/rates.toml"), other).unwrap();
    let done = studies.json(&["run", "test-2020/rates"]);
    assert_eq!(
        (&done["runs"], &done["runs_done_before"]),
        (&6.into(), &6.into())
    );
}

#[test]
fn a_run_that_is_killed_loses_nothing_and_goes_on() {
    let slow = STUDY.replace("[100, 250]", "[100, 120, 140, 160, 180, 250]");
    let studies = Studies::new(&slow);
    let mut child = Command::new(env!("CARGO_BIN_EXE_fullstroke"))
        .args(studies.arguments(&["run", "--jobs", "1", "--set", "workload.requests=4000"]))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let began = Instant::now();
    while studies.files().len() < 3 && child.try_wait().unwrap().is_none() {
        assert!(
            began.elapsed() < Duration::from_secs(300),
            "no results appear"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    // `kill` sends SIGKILL.
    child.kill().unwrap();
    child.wait().unwrap();
    let kept = studies.files().len();
    assert!(
        (3..36).contains(&kept),
        "{kept} of 36 were done when it was killed"
    );
    // A kill during a write leaves such a file.
    let partial = studies.files()[0].with_extension("parquet.partial");
    fs::write(&partial, "half").unwrap();
    let rest = studies.json(&["run", "--set", "workload.requests=4000"]);
    assert_eq!(rest["runs_done_before"], kept);
    assert_eq!(rest["runs"], 36 - kept);
    assert!(!partial.exists());
}

#[test]
fn a_second_run_on_the_same_results_is_refused_while_the_first_goes_on() {
    let studies = Studies::new(STUDY);
    studies.json(&["run"]);
    let lock = studies.files()[0].with_file_name("lock");
    let held = fs::OpenOptions::new().write(true).open(lock).unwrap();
    held.lock().unwrap();
    let error = refused(&studies.arguments(&["run", "--set", "workload.requests=50"]));
    assert!(error.contains("another run is writing"), "{error}");
    // Reading takes no lock.
    success(&studies.arguments(&["check"]));
    drop(held);
    success(&studies.arguments(&["run", "--set", "workload.requests=50"]));
}

#[test]
fn results_of_another_build_are_kept_and_not_used() {
    let studies = Studies::new(STUDY);
    studies.json(&["run"]);
    let ours = studies.files()[0].parent().unwrap().to_owned();
    let other = ours.with_file_name("0.0.9-0123456789ab");
    fs::rename(&ours, &other).unwrap();
    let done = studies.json(&["run"]);
    assert_eq!(
        (&done["runs"], &done["results_of_other_builds"]),
        (&12.into(), &1.into())
    );
    assert!(fs::read_dir(&other).unwrap().count() >= 2 && ours.exists());
}

#[test]
fn a_damaged_results_file_is_named() {
    let studies = Studies::new(STUDY);
    studies.json(&["run"]);
    let sound = success(&studies.arguments(&["check", "--json"]));
    let file = studies.files()[0].clone();
    let whole = fs::read(&file).unwrap();
    let mut told = 0;
    for place in (4..whole.len() - 8).step_by(211) {
        let mut damaged = whole.clone();
        damaged[place] ^= 0x10;
        fs::write(&file, &damaged).unwrap();
        let output = fullstroke(&studies.arguments(&["check", "--json"]));
        let text = String::from_utf8(output.stdout).unwrap();
        // A damaged file gives an error, unchanged numbers, or missing runs.
        let same = text == sound || text.contains("not run");
        assert!(
            output.status.code() == Some(2) || same,
            "byte {place}: {text}"
        );
        told += u32::from(output.status.code() == Some(2));
    }
    assert!(told > 0);
    fs::write(&file, "no Parquet").unwrap();
    let error = refused(&studies.arguments(&["check"]));
    assert!(
        error.contains(file.to_str().unwrap()) && error.contains("delete the file"),
        "{error}"
    );
    fs::remove_file(&file).unwrap();
    studies.json(&["run"]);
    assert_eq!(success(&studies.arguments(&["check", "--json"])), sound);
}

#[test]
fn the_page_is_written_and_its_drift_is_found() {
    let studies = Studies::new(STUDY);
    let page = studies.path("test-2020/RESULTS.md");
    assert!(refused(&studies.arguments(&["results", "--write"])).contains("no run has results"));
    assert!(!page.exists());
    studies.json(&["run"]);
    success(&studies.arguments(&["results", "--write"]));
    success(&studies.arguments(&["results", "--check"]));
    let written = fs::read_to_string(&page).unwrap();
    assert!(
        written.contains(
            "| SATF is faster under load<br>“SATF wins.” (section 1) | yes | `low(obtained) > 0` |"
        ),
        "{written}"
    );
    let figure =
        fs::read_to_string(studies.path("test-2020/figures/disciplines-means.svg")).unwrap();
    assert!(figure.starts_with("<svg") && figure.contains("published"));

    let fails = || {
        fullstroke(&studies.arguments(&["results", "--check"]))
            .status
            .code()
            == Some(1)
    };
    fs::write(&page, written.replace("holds", "fails")).unwrap();
    assert!(fails(), "the text was changed");
    fs::write(&page, &written).unwrap();
    fs::write(
        studies.path("test-2020/disciplines.toml"),
        STUDY.replace("> 0", "> 0.5"),
    )
    .unwrap();
    assert!(fails(), "the study was changed");
    fs::write(
        studies.path("test-2020/disciplines.toml"),
        STUDY.replace("[100, 250]", "[100, 250, 300]"),
    )
    .unwrap();
    assert!(
        refused(&studies.arguments(&["results", "--write"]))
            .contains("6 of 18 runs have no results")
    );
    assert_eq!(fs::read_to_string(&page).unwrap(), written);
    let quick = ["results", "--write", "--set", "workload.requests=10"];
    assert_eq!(
        fullstroke(&studies.arguments(&quick)).status.code(),
        Some(2)
    );
}

#[test]
fn points_that_cannot_be_run_do_not_hold_up_the_others() {
    let beyond = |file: &str| {
        format!(
            "[workload]\nkind = \"trace\"\npath = \"{file}\"\n[volume]\ndrive = \"seagate-cheetah-9lp\"\n"
        )
    };
    let study = STUDY.replace(
        "response_ms.mean\", \"members[0].utilisation",
        "response_ms.mean",
    );
    let study = study.replace("volume.drive_settings.queue.discipline", "workload.beyond");
    let study = study.replace("\"fcfs\", \"satf\"", "\"reject\", \"wrap\"");
    let study = study
        .replace("arrivals.rate_per_s", "time_scale")
        .replace("[100, 250]", "[1, 2]");
    let study = study.split("[[claims]]").next().unwrap();
    let studies = Studies::new(study);
    let trace = studies.path("test-2020/stacks/a.csv");
    fs::write(
        &trace,
        "128166372003061629,web,0,Read,9000000000000,4096,100\n",
    )
    .unwrap();
    fs::write(studies.path("test-2020/stacks/base.toml"), beyond("a.csv")).unwrap();
    let error = refused(&studies.arguments(&["run"]));
    assert!(
        error.contains("6 of 12 runs failed, the others are kept"),
        "{error}"
    );
    let error = refused(&studies.arguments(&["run"]));
    assert!(error.contains("6 of 6 runs failed"), "{error}");
}

/// A variant with the same discipline at all points, so there is no gain.
const ONE_DISCIPLINE: &str = r#"
[[variants]]
title = "one discipline"
set = ["volume.drive_settings.queue.discipline=fcfs"]
"#;

#[test]
fn an_explanation_stands_only_on_a_variant_that_restores_the_statement() {
    let explained = r#"explained = { variant = "one discipline", why = "Of {obtained:percent} {restored:percent} is left." }"#;
    for (holds, verdict, words) in [
        ("obtained == 0", "differs-explained", "+0.0 % is left."),
        ("obtained > 9", "does-not-hold", "does not restore it"),
        ("obtained > 0", "holds-though-explained", ""),
    ] {
        let study = STUDY.replace("low(obtained) > 0", holds);
        let study = study.replace("id = \"T-1\"", &format!("id = \"T-1\"\n{explained}"));
        let studies = Studies::new(&(study + ONE_DISCIPLINE));
        studies.json(&["run"]);
        let output = fullstroke(&[&studies.arguments(&["check"])[..], &["--json"]].concat());
        let checked: Value = serde_json::from_slice(&output.stdout).unwrap();
        let claim = &checked[0]["claims"][0];
        assert_eq!(claim["verdict"], verdict);
        assert!(
            claim["why"].as_str().unwrap_or_default().contains(words),
            "{claim}"
        );
        assert_eq!(
            output.status.code(),
            Some(i32::from(verdict != "differs-explained"))
        );
        assert_eq!(
            checked[0]["variants"][0]["claims"][0]["id"], "T-1",
            "it touches the claim"
        );
    }
}

/// Returns the checked claim of a study with another rule.
fn judged(rule: &str, more: &str) -> Value {
    let study = STUDY
        .replace("holds = \"low(obtained) > 0\"", rule)
        .replace("id = \"T-1\"", &format!("id = \"T-1\"\n{more}"));
    let studies = Studies::new(&study);
    studies.json(&["run"]);
    let output = fullstroke(&[&studies.arguments(&["check"])[..], &["--json"]].concat());
    let checked: Value = serde_json::from_slice(&output.stdout).unwrap();
    checked[0]["claims"][0].clone()
}

#[test]
fn an_interval_that_reaches_to_both_sides_of_the_bound_decides_nothing() {
    let plain = judged("holds = \"obtained > 0\"", "");
    let (mean, width) = (
        plain["obtained"].as_f64().unwrap(),
        plain["ci_half_width"].as_f64().unwrap(),
    );
    assert!(width > 0.0);
    for (bound, verdict) in [
        (mean - 1.1 * width, "holds"),
        (mean - 0.5 * width, "undecided"),
        (mean + 0.5 * width, "undecided"),
        (mean + 1.1 * width, "does-not-hold"),
    ] {
        assert_eq!(
            judged(&format!("holds = \"obtained > {bound}\""), "")["verdict"],
            verdict
        );
        let within = judged(&format!("within = [{bound}, 9]"), "");
        assert_eq!(within["verdict"], verdict);
    }
}

#[test]
fn a_fitted_claim_that_holds_is_not_counted_as_reproduced() {
    let fitted = judged("holds = \"obtained > 0\"", "fitted = true");
    assert_eq!(fitted["verdict"], "fitted");
    let missed = judged("holds = \"obtained > 9\"", "fitted = true");
    assert_eq!(missed["verdict"], "does-not-hold");
}

#[test]
fn a_headline_stands_on_the_first_screen_with_its_cause() {
    let headline = r#"headline = { cause = "hardware", why = "At most {max():whole} ms." }"#;
    let study = STUDY.replace("id = \"T-1\"", &format!("id = \"T-1\"\n{headline}"));
    let studies = Studies::new(&study);
    studies.json(&["run"]);
    success(&studies.arguments(&["results", "--write"]));
    let page = fs::read_to_string(studies.path("test-2020/RESULTS.md")).unwrap();
    let row = page
        .lines()
        .find(|line| {
            line.starts_with("| SATF is faster under load (T-1)<br>“SATF wins.” (section 1)")
        })
        .unwrap_or_else(|| panic!("{page}"));
    assert!(row.contains("| holds | **arithmetic**: At most "), "{row}");
    assert!(page.find("## Headlines").unwrap() < page.find("## Verdicts by study").unwrap());
    let file = studies.path("test-2020/disciplines.toml");
    fs::write(&file, study.replace("\"hardware\"", "\"weather\"")).unwrap();
    let error = refused(&studies.arguments(&["check"]));
    assert!(
        error.contains("weather") && error.contains("hardware"),
        "{error}"
    );
}

#[test]
fn numbers_of_one_of_several_workloads_are_kept_by_their_names() {
    let studies = Studies::new(&STUDY.replace(
        "\"members[0].utilisation\"",
        "\"workloads.user.response_ms.p99\"",
    ));
    let missing = refused(&studies.arguments(&["run"]));
    assert!(
        missing.contains("workloads.user.response_ms.p99"),
        "{missing}"
    );
    let two = STACK.replace("[workload]", "[[workloads]]\nname = \"usr\"");
    let other = two
        .split("[volume]")
        .next()
        .unwrap()
        .replace("title = \"a test\"", "")
        .replace("usr", "scrub");
    let two = two
        .replace("[volume]", &format!("{other}\n[volume]"))
        .replace("requests = 1000", "requests = 100");
    let two = two.replace("workload.arrivals", "workloads[0].arrivals");
    fs::write(studies.path("test-2020/stacks/base.toml"), &two).unwrap();
    let study = fs::read_to_string(studies.path("test-2020/disciplines.toml")).unwrap();
    let study = study.replace("workload.arrivals", "workloads[0].arrivals");
    fs::write(studies.path("test-2020/disciplines.toml"), &study).unwrap();
    let misspelt = refused(&studies.arguments(&["run"]));
    assert!(
        misspelt.contains("usr") && misspelt.contains("scrub"),
        "{misspelt}"
    );
    fs::write(
        studies.path("test-2020/disciplines.toml"),
        study.replace("workloads.user", "workloads.usr"),
    )
    .unwrap();
    assert_eq!(studies.json(&["run"])["runs"], 12);
}

#[test]
fn what_is_supposed_decides_nothing() {
    let study = STUDY.replace("low(obtained) > 0", "obtained > 9");
    let studies =
        Studies::new(&study.replace("id = \"T-1\"", "id = \"T-1\"\nsupposed = \"the drive\""));
    studies.json(&["run"]);
    let output = fullstroke(&studies.arguments(&["check"]));
    assert_eq!(output.status.code(), Some(1));
    assert!(
        String::from_utf8(output.stdout)
            .unwrap()
            .contains("supposed, not shown: the drive")
    );
}

#[test]
fn a_verdict_that_other_seeds_or_choices_flip_is_fragile_and_the_page_says_by_what() {
    let free = r#"
[[free]]
name = "order in the drive"
taken = "as the axis says"
why = "a test"
chosen = "before any result"
values = [{ name = "always fcfs", set = ["volume.drive_settings.queue.discipline=fcfs"] }]
"#;
    let study = STUDY.replace("low(obtained) > 0", "obtained > 0");
    let studies = Studies::new(&format!("{study}{free}"));
    studies.json(&["run"]);
    let held = ["check", "--seeds", "1", "--vary-free"];
    let count = studies.json(&[&held[..], &["--count"]].concat());
    // Three other seeds of two points are 6 runs. With the choice both points are the same, and one
    // of them already has results.
    assert_eq!(
        (&count["runs"], &count["runs_missing"]),
        (&18.into(), &6.into())
    );
    let learnt = studies.json(&[&held[..], &["--record"]].concat());
    assert_eq!(learnt["runs"], 6);
    let claim = &learnt["studies"][0]["claims"][0];
    assert_eq!(claim["verdict"], "fragile");
    assert_eq!(claim["flips"].as_array().unwrap().len(), 1, "{claim}");
    assert_eq!(
        studies.json(&["check"])[0]["claims"][0]["verdict"],
        "fragile"
    );
    success(&studies.arguments(&["results", "--write"]));
    let page = fs::read_to_string(studies.path("test-2020/RESULTS.md")).unwrap();
    for words in [
        "Of 1 statement of the source 0 hold. 1 holds only with our settings (fragile), and not with other seeds or another open choice.",
        "1. order in the drive: always fcfs\n",
        "| claim | 1 |\n|---|---|\n| T-1 | − |\n",
        "| order in the drive | as the axis says | a test | before any result | always fcfs | T-1 (always fcfs) |",
        "Also run with: seeds 4 to 6; order in the drive: always fcfs. 0 of 1 verdicts stay the same",
        "**fragile**; does not hold with order in the drive: always fcfs",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    success(&studies.arguments(&["results", "--check"]));
    // A changed claim invalidates the stored verdict.
    let file = studies.path("test-2020/disciplines.toml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("obtained > 0", "obtained > 0.01")).unwrap();
    assert_eq!(studies.json(&["check"])[0]["claims"][0]["verdict"], "holds");
}

#[test]
fn the_page_begins_with_what_holds_and_quotes_its_source_in_the_order_given() {
    let quoted = |order: u32, id: &str| {
        STUDY
            .replace(
                "replications = 3",
                &format!("replications = 1\norder = {order}"),
            )
            .replace("id = \"T-1\"", &format!("id = \"{id}\""))
            .replace("published = \"yes\"", "published = 0.5")
            .replace(
                "low(obtained) > 0\"",
                "obtained > 0\"\nbound = \"quoted\"\nshown = \"{obtained:percent}\"",
            )
            .replace(
                "y = \"response_ms.mean\"",
                "y = \"response_ms.mean\"\ncaption = \"At most {max():value} ms.\"",
            )
            + "\n[[untestable]]\nquote = \"It is quiet.\"\nat = \"section 3\"\nwhy = \"nothing here is heard\"\n"
    };
    let studies = Studies::new(&quoted(2, "T-1"));
    fs::write(studies.path("test-2020/first.toml"), quoted(1, "S-1")).unwrap();
    let unquoted = quoted(3, "R-1").replace(
        "quote = \"SATF wins.\"\nat = \"section 1\"\n",
        "ours = true\n",
    );
    fs::write(
        studies.path("test-2020/third.toml"),
        unquoted.replace("bound = \"quoted\"\n", ""),
    )
    .unwrap();
    studies.json(&["run"]);
    success(&studies.arguments(&["results", "--write"]));
    let page = fs::read_to_string(studies.path("test-2020/RESULTS.md")).unwrap();
    let top: String = page.lines().take(10).collect::<Vec<_>>().join("\n");
    assert!(
        top.contains("Of 2 statements of the source 2 hold."),
        "{top}"
    );
    assert!(
        top.contains("3 sentences cannot be tested. Of 1 claim of ours 1 holds."),
        "{top}"
    );
    assert!(
        page.contains("- **holds** (2): S-1 SATF is faster under load; T-1 SATF"),
        "{page}"
    );
    assert!(
        page.contains("| study | holds |\n|---|---|\n| [disciplines](#disciplines) | 1 |\n"),
        "{page}"
    );
    let row = "| SATF is faster under load<br>“SATF wins.” (section 1) | +50 % | `obtained > 0` (as quoted) |";
    assert!(page.contains(row), "{page}");
    assert!(page.contains("- “It is quiet.” (section 3): nothing here is heard"));
    assert!(
        page.contains("*At most ") && page.contains("fcfs, published"),
        "{page}"
    );
    let place = |words: &str| page.find(words).unwrap();
    assert!(place("study: test-2020/first") < place("study: test-2020/disciplines"));
    assert!(place("study: test-2020/disciplines") < place("study: test-2020/third"));
}

#[test]
fn the_best_value_of_an_axis_is_found_for_each_combination_of_the_others() {
    let studies = Studies::new(STUDY);
    studies.json(&["run"]);
    let found = studies.json(&["results", "--best", "response_ms.mean", "--over", "policy"]);
    let best = found[0]["best"].as_array().unwrap();
    assert_eq!(best.len(), 2);
    assert_eq!(
        (&best[1]["others"], &best[1]["best"]),
        (&"rate=250".into(), &"satf".into())
    );
    let next = &best[1]["runner_up"];
    assert_eq!(
        (&next["name"], &next["significant"]),
        (&"fcfs".into(), &true.into())
    );
    let error = refused(&studies.arguments(&["results", "--best", "response_ms.mean"]));
    assert!(error.contains("policy, rate"), "{error}");
}

#[test]
fn what_is_wrong_in_a_study_is_named_before_anything_is_run() {
    for (from, to, words) in [
        (
            "policy=satf, rate=250",
            "policy=sstf, rate=250",
            &[
                "disciplines.toml:25:",
                "claims[0].obtained",
                "no value `sstf`",
            ][..],
        ),
        (
            "policy=satf, rate=250",
            "polcy=satf, rate=250",
            &["no axis `polcy` (did you mean `policy`?)", "    ^"][..],
        ),
        (
            "mean(policy=satf",
            "respons_ms.p99(policy=satf",
            &["did you mean `response_ms.p99`"][..],
        ),
        (
            "rate_per_s\"",
            "rate_pers\"",
            &[
                "test-2020/disciplines, policy=fcfs",
                "did you mean `rate_per_s`?",
            ][..],
        ),
        (
            "key = \"volume",
            "key = \"volum",
            &["did you mean `volume`?"][..],
        ),
        (
            "members[0]",
            "members[9]",
            &["metrics", "there is no `9`"][..],
        ),
        ("holds =", "hold =", &["hold", "holds"][..]),
        (
            "x = \"rate\"",
            "x = \"rat\"",
            &["figures[0].x", "did you mean `rate`?"][..],
        ),
        (
            "replications = 3",
            "replications = 0",
            &["replications", "at least 1"][..],
        ),
        (
            "[[claims]]",
            "exclude = [{ policy = \"satf\", rate = 250 }]\n[[claims]]",
            &["axes[1]", "exclude"][..],
        ),
        (
            "title = \"disciplines\"",
            "exclude = [{ policy = \"satf\" }]\ntitle = \"disciplines\"",
            &["no point with these values"][..],
        ),
        (
            "question =",
            "questions =",
            &["did you mean `question`?"][..],
        ),
        (
            "quote = \"SATF wins.\"",
            "ours = true",
            &["claims[0].at", "no quote"][..],
        ),
        (
            "at = \"section 1\"",
            "",
            &["claims[0].at", "where the quote stands"][..],
        ),
        (
            "quote = \"SATF wins.\"\nat = \"section 1\"",
            "",
            &["claims[0].quote", "expected the sentence that is tested"][..],
        ),
        (
            "quote = \"SATF wins.\"\nat = \"section 1\"",
            "ours = true\nbound = \"quoted\"",
            &["claims[0].bound", "without a `quote`"][..],
        ),
        (
            "kind =",
            "explained = \"so\"\nkind =",
            &["claims[0].explained", "`supposed`"][..],
        ),
        (
            "kind =",
            "explained = { variant = \"none\", why = \"?\" }\nkind =",
            &["claims[0].explained.variant", "there is no variant `none`"][..],
        ),
        (
            "question =",
            "notes = \"{men()}\"\nquestion =",
            &["notes", "men"][..],
        ),
    ] {
        let studies = Studies::new(&STUDY.replacen(from, to, 1));
        let error = refused(&studies.arguments(&["run"]));
        for word in words {
            assert!(error.contains(word), "{to}: {error}");
        }
        assert!(!studies.path("results").exists(), "{to}");
    }
    let studies = Studies::new(STUDY);
    let error = refused(&studies.arguments(&["check", "test-202O"]));
    assert!(
        error.contains("there is no study") && error.contains("test-2020/disciplines"),
        "{error}"
    );
}

/// Returns the folder of the repository's studies.
fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies")
}

#[test]
fn every_page_of_results_belongs_to_its_studies() {
    let nothing = tempfile::tempdir().unwrap();
    let (studies, results) = (repository(), nothing.path().to_str().unwrap().to_owned());
    success(&[
        "study",
        "results",
        "--check",
        "--studies",
        studies.to_str().unwrap(),
        "--results",
        &results,
    ]);
}

#[test]
fn short_studies_give_what_their_pages_say() {
    let folder = tempfile::tempdir().unwrap();
    let (studies, results) = (repository(), folder.path().to_str().unwrap().to_owned());
    for what in [&["run"][..], &["check"], &["results", "--check"]] {
        let place = [
            "--short",
            "--studies",
            studies.to_str().unwrap(),
            "--results",
            &results,
        ];
        success(&[&["study"], what, &place].concat());
    }
}
