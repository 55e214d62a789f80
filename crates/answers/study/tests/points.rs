//! Tests of points, their settings, and the keys of their results.

mod common;

use common::{STUDY, study};
use fullstroke_study::{Digests, Extent, RunList, Study, Variation};
use std::collections::BTreeSet;
use std::fs;

fn digests(study: &Study) -> BTreeSet<String> {
    let run_list = RunList::new(std::slice::from_ref(study), &[], 2).unwrap();
    run_list
        .keys()
        .into_iter()
        .map(|(digest, _)| digest)
        .collect()
}

/// Returns the study with `lines` inserted in front of the axes.
fn with(lines: &str) -> Result<Study, String> {
    let text = STUDY.replacen("[[axes]]", &format!("{lines}\n[[axes]]"), 1);
    // The study is checked completely while it is read, so the folder is not needed any more.
    study(&text).1
}

#[test]
fn points_are_all_combinations_or_those_listed_less_those_excluded() {
    for (lines, points) in [
        ("", 9),
        ("points = [{ policy = \"fcfs\" }]", 3),
        (
            "points = [{ policy = \"sorted\", load = [10, 40] }, { policy = \"fcfs\", load = 20 }]",
            5,
        ),
        ("exclude = [{ policy = \"sorted\", load = 10 }]", 7),
    ] {
        assert_eq!(
            with(lines).unwrap().matrix.points().len(),
            points,
            "{lines}"
        );
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
"#;
    let (_folder, found) = study(&format!("{STUDY}{lines}{}", claim("T-1", "mean()")));
    let run_list =
        RunList::new(&[found.unwrap()], &["workload.requests=50".to_owned()], 2).unwrap();
    assert_eq!(run_list.tasks.len(), 2 * 2 * 9);
    let count = |setting: &str| {
        run_list
            .tasks
            .iter()
            .filter(|task| task.set.contains(&setting.to_owned()))
            .count()
    };
    assert_eq!(count("volume.chunk=16KiB"), 2 * 2 * 2);
    assert_eq!(count("workload.size=8KiB"), 2 * 9);
    assert_eq!(count("volume.chunk=256KiB"), 2 * 3);
    assert!(
        run_list
            .tasks
            .iter()
            .all(|task| task.set.last() == Some(&"workload.requests=50".to_owned()))
    );
}

#[test]
fn no_point_sets_the_seed_that_its_results_are_kept_by() {
    let (_folder, found) = study(STUDY);
    let error = RunList::new(&[found.unwrap()], &["seed = 7".to_owned()], 1)
        .unwrap_err()
        .to_string();
    assert!(error.contains("replications"), "{error}");
}

#[test]
fn intervals_have_a_confidence_that_can_be() {
    for (keys, found) in [
        ("replications = 2\nconfidence = 0.3", "found 0.3"),
        ("replications = 1\nconfidence = 0.9", "one seed"),
    ] {
        let text = STUDY.replace("replications = 2", keys);
        let error = study(&text).1.unwrap_err();
        assert!(
            text != STUDY && error.contains("confidence") && error.contains(found),
            "{error}"
        );
    }
}

#[test]
fn a_point_is_known_by_its_stack_and_by_the_bytes_of_its_trace() {
    let (folder, found) = study(STUDY);
    let before = digests(found.as_ref().unwrap());
    assert_eq!(before.len(), 9);
    let stack = folder.path().join("a-2020/stack.toml");
    let text = fs::read_to_string(&stack).unwrap();
    fs::write(&stack, text.replace("a test", "another title")).unwrap();
    assert_eq!(
        digests(found.as_ref().unwrap()),
        before,
        "a title changes no result"
    );
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
    assert!(
        digests(&found[0]).is_disjoint(&one),
        "the trace says something else"
    );
}

/// Returns a claim that holds as soon as it has numbers.
fn claim(id: &str, obtained: &str) -> String {
    format!(
        "\n[[claims]]\nid = \"{id}\"\nsays = \"?\"\nours = true\npublished = \"?\"\nkind = \"shape\"\nobtained = \"{obtained}\"\nholds = \"obtained > 0\"\n"
    )
}

#[test]
fn a_variant_is_run_for_what_claims_look_at_and_touches_those_that_it_changes() {
    let lines = r#"
[[variants]]
title = "larger chunks for one policy"
settings = [{ at = { policy = "look" }, set = ["volume.chunk=256KiB"] }]
"#;
    let claims = claim("T-1", "mean(policy=fcfs, load=10)")
        + &claim(
            "T-2",
            "sum(l in load where l > 10 and mean(policy=satf, load=l) > 99: mean(policy=look, load=l))",
        );
    let (_folder, found) = study(&format!("{STUDY}{lines}{claims}"));
    let study = found.unwrap();
    let run_list = RunList::new(std::slice::from_ref(&study), &[], 2).unwrap();
    let variant = Variation::Variant(0);
    assert!(!run_list.touches(0, variant, &study.claims[0]));
    assert!(
        run_list.touches(0, variant, &study.claims[1]),
        "also where a condition left it out so far"
    );
    // Nine points with two seeds; the variant changes the points with the policy `look`.
    assert_eq!(run_list.tasks.len(), 2 * (9 + 3));
}

#[test]
fn what_is_free_is_varied_one_choice_at_a_time_and_seeds_are_other_ones() {
    let lines = r#"
[[free]]
name = "chunk"
taken = "64 KiB"
why = "not said"
chosen = "before any result"
key = "volume.chunk"
unit = "KiB"
values = [16, 256]

[[free]]
name = "drives"
taken = "2"
why = "not said"
chosen = "before any result"
values = [{ name = "four", set = ["volume.drives=4"] }]
"#;
    let (_folder, found) = study(&format!(
        "{STUDY}{lines}{}",
        claim("T-1", "mean(policy=fcfs)")
    ));
    let study = found.unwrap();
    let extent = Extent {
        seeds: 2,
        vary_free: true,
        replications: None,
    };
    let names: Vec<String> = study
        .held_out(&extent)
        .into_iter()
        .map(|way| study.describe(way, None))
        .collect();
    let expected = [
        "seeds 3 to 4",
        "seeds 5 to 6",
        "chunk: 16 KiB",
        "chunk: 256 KiB",
        "drives: four",
    ];
    assert_eq!(names, expected);
    let runs = |extent: &Extent| {
        RunList::held_out(std::slice::from_ref(&study), extent, &[], 2)
            .unwrap()
            .tasks
            .len()
    };
    // The claim reads three of nine points.
    assert_eq!(runs(&Extent::default()), 2 * 9);
    assert_eq!(runs(&extent), 2 * (9 + 5 * 3));
    assert_eq!(
        runs(&Extent {
            replications: Some(1),
            ..extent
        }),
        2 * 9 + 5 * 3
    );
}

#[test]
fn prose_and_choices_of_words_leave_what_was_learnt_in_force() {
    let text = format!("{STUDY}{}", claim("T-1", "mean(policy=fcfs)"));
    let of = |text: &str| study(text).1.unwrap();
    let before = of(&text);
    let prose = of(&text.replace(
        "title = \"a test\"",
        "title = \"another\"\nnotes = \"Of {mean(policy=fcfs)}.\"",
    ));
    assert_ne!(prose.digest, before.digest);
    assert_eq!(prose.substance, before.substance);
    assert_ne!(
        of(&text.replace("obtained > 0", "obtained > 1")).substance,
        before.substance
    );
}

#[test]
fn equations_stand_beside_the_run_that_they_are_about_window_by_window() {
    let metrics = "metrics = [\"windows.latency_ms.p50\", \"predicted.windows.latency_ms.p50\", \
                   \"windows.empty_share\", \"predicted.windows.empty_share\", \"predicted.shifts_apart_s\"]";
    let text = STUDY.replace("metrics = [\"response_ms.mean\", \"mb_per_s\"]", metrics);
    let (_folder, found) = study(&text);
    let study = found.unwrap();
    let run_list = RunList::new(std::slice::from_ref(&study), &[], 1).unwrap();
    let kept = run_list.tasks[0]
        .run_elsewhere(&Digests::default())
        .unwrap();
    let value = |name: &str| kept.iter().find(|kept| kept.metric == name).unwrap().value;
    // At ten requests per second no two requests share a window, so a latency is a seek and half a
    // revolution.
    let ratio = value("predicted.windows.latency_ms.p50") / value("windows.latency_ms.p50");
    assert!((0.5..1.5).contains(&ratio), "{ratio}");
    assert_eq!(
        value("windows.empty_share"),
        value("predicted.windows.empty_share")
    );
    assert!(value("windows.empty_share") > 0.2);
    assert_eq!(value("predicted.shifts_apart_s"), 0.0);

    let refused = |set: &str| {
        let list = RunList::new(std::slice::from_ref(&study), &[set.to_owned()], 1);
        list.err()
            .map_or_else(String::new, |error| error.to_string())
    };
    let error = refused("volume.layout=raid1");
    assert!(
        error.contains("equations know") && error.contains("raid1"),
        "{error}"
    );
}
