//! Points, what is set at them, and what tells their results apart.

mod common;

use common::{STUDY, study};
use fullstroke_study::{RunList, Study};
use std::collections::BTreeSet;
use std::fs;

fn digests(study: &Study) -> BTreeSet<String> {
    let run_list = RunList::new(std::slice::from_ref(study), &[], 2).unwrap();
    run_list.keys().into_iter().map(|(digest, _)| digest).collect()
}

/// The study with lines of its own in front of the axes.
fn with(lines: &str) -> Result<Study, String> {
    let text = STUDY.replacen("[[axes]]", &format!("{lines}\n[[axes]]"), 1);
    // What is read is checked; the folder is needed only for that.
    study(&text).1
}

#[test]
fn points_are_all_combinations_or_those_listed_less_those_excluded() {
    for (lines, points) in [
        ("", 9),
        ("points = [{ policy = \"fcfs\" }]", 3),
        ("points = [{ policy = \"sorted\", load = [10, 40] }, { policy = \"fcfs\", load = 20 }]", 5),
        ("exclude = [{ policy = \"sorted\", load = 10 }]", 7),
    ] {
        assert_eq!(with(lines).unwrap().matrix.points().len(), points, "{lines}");
    }
    for (lines, words) in [
        ("points = [{ policy = \"clook\" }]", "points[0].policy"),
        ("exclude = [{ polcy = \"fcfs\" }]", "did you mean `policy`?"),
    ] {
        let error = with(lines).unwrap_err();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn settings_reach_only_their_points_and_variants_only_what_they_change() {
    let lines = r#"
[[settings]]
at = { policy = "sorted", load = 40 }
set = ["volume.chunk=16KiB"]

[[variants]]
title = "larger"
set = ["workload.size=8KiB"]
settings = [{ at = { policy = "fcfs" }, set = ["volume.chunk=256KiB"] }]
claims = []
"#;
    let (_folder, found) = study(&format!("{STUDY}{lines}"));
    let run_list = RunList::new(&[found.unwrap()], &["workload.requests=50".to_owned()], 2).unwrap();
    assert_eq!(run_list.tasks.len(), 2 * 2 * 9);
    let count =
        |setting: &str| run_list.tasks.iter().filter(|task| task.set.contains(&setting.to_owned())).count();
    assert_eq!(count("volume.chunk=16KiB"), 2 * 2 * 2);
    assert_eq!(count("workload.size=8KiB"), 2 * 9);
    assert_eq!(count("volume.chunk=256KiB"), 2 * 3);
    assert!(run_list.tasks.iter().all(|task| task.set.last() == Some(&"workload.requests=50".to_owned())));
}

#[test]
fn no_point_sets_the_seed_that_its_results_are_kept_by() {
    let (_folder, found) = study(STUDY);
    let error = RunList::new(&[found.unwrap()], &["seed = 7".to_owned()], 1).unwrap_err().to_string();
    assert!(error.contains("replications"), "{error}");
}

#[test]
fn a_point_is_known_by_its_stack_and_by_the_bytes_of_its_trace() {
    let (folder, found) = study(STUDY);
    let before = digests(found.as_ref().unwrap());
    assert_eq!(before.len(), 9);
    let stack = folder.path().join("a-2020/stack.toml");
    let text = fs::read_to_string(&stack).unwrap();
    fs::write(&stack, text.replace("a test", "another title")).unwrap();
    assert_eq!(digests(found.as_ref().unwrap()), before, "a title changes no result");
    fs::write(&stack, text.replace("drives = 2", "drives = 3")).unwrap();
    assert!(digests(found.as_ref().unwrap()).is_disjoint(&before));

    let trace = folder.path().join("a-2020/trace.csv");
    let line = "128166372003061629,hm,0,Read,383496192,32768,413\n";
    fs::write(&trace, line).unwrap();
    let volume = &text[text.find("[volume]").unwrap()..];
    fs::write(
        &stack,
        format!("[workload]\nkind = \"trace\"\nformat = \"msr\"\npath = \"trace.csv\"\n\n{volume}"),
    )
    .unwrap();
    let study = STUDY.replace("workload.arrivals.rate_per_s", "workload.time_scale");
    fs::write(folder.path().join("a-2020/study.toml"), study).unwrap();
    let found = fullstroke_study::find(folder.path(), &["a-2020/study".to_owned()]).unwrap();
    let one = digests(&found[0]);
    assert_eq!(one.len(), 9);
    fs::write(&trace, line.replace("Read", "Write")).unwrap();
    assert!(digests(&found[0]).is_disjoint(&one), "the trace says something else");
}
