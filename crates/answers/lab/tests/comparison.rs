//! Candidates run on all cores and ranked.

use fullstroke_lab::{
    ComparedStack, Condition, LabError, Ranked, Ranking, Vary, candidates, recipes, run, run_all,
};
use fullstroke_measure::{Metric, Significance};
use fullstroke_stack::Overrides;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

const WORKLOAD: &str = r#"
seed = 1
[workload]
kind = "synthetic"
requests = 3000
read_share = 0.66
size = "4KiB"
arrivals = { process = "poisson", rate_per_s = 120 }
"#;

fn write(folder: &Path, name: &str, layout: &str, drives: usize) -> PathBuf {
    let path = folder.join(format!("{name}.toml"));
    // The tests are about comparisons, and count on the plans of the ideal planner.
    let like = if layout == "raid0" {
        ""
    } else {
        "like = \"ideal\"\n"
    };
    let volume = format!(
        "[volume]\nlayout = \"{layout}\"\n{like}drive = \"seagate-cheetah-9lp\"\ndrives = {drives}\n"
    );
    fs::write(&path, format!("{WORKLOAD}{volume}")).unwrap();
    path
}

fn stacks(folder: &Path) -> Vec<PathBuf> {
    vec![
        write(folder, "raid5", "raid5", 5),
        write(folder, "raid0", "raid0", 5),
        write(folder, "raid10", "raid10", 5),
    ]
}

fn load(files: &[PathBuf], varied: &[&str]) -> Vec<ComparedStack> {
    let varied: Vec<Vary> = varied
        .iter()
        .map(|argument| argument.parse().unwrap())
        .collect();
    candidates(files, &Overrides::default(), &varied).unwrap()
}

fn ranking(candidates: &[ComparedStack], jobs: usize, by: &str) -> Ranking {
    Ranking::new(
        &run_all(candidates, jobs, &|_| {}).unwrap(),
        Metric::parse(by).unwrap(),
    )
}

/// Returns the ranking without the fields that differ from run to run.
fn without_wall_clock(ranking: &Ranking) -> serde_json::Value {
    let mut ranking = ranking.clone();
    for ranked in &mut ranking.candidates {
        ranked.report.cost.wall_s = None;
        ranked.report.cost.requests_per_wall_s = None;
    }
    serde_json::to_value(ranking).unwrap()
}

#[test]
fn a_layout_without_parity_wins_where_small_writes_are_many() {
    let folder = tempfile::tempdir().unwrap();
    let ranking = ranking(&load(&stacks(folder.path()), &[]), 2, "response_ms.mean");
    let order: Vec<&str> = ranking
        .candidates
        .iter()
        .map(|ranked| ranked.name.as_str())
        .collect();
    assert_eq!(order.last(), Some(&"raid5"), "{order:?}");
    let last = &ranking.candidates[2];
    assert_eq!(
        last.difference_to_best.unwrap().significance,
        Significance::Significant
    );
    assert!(last.report.times.time_ms.parity > 0.0);
    let text = ranking.to_string();
    assert!(
        text.contains(&format!("{} is best by response_ms.mean", order[0])),
        "{text}"
    );
}

#[test]
fn results_depend_neither_on_the_number_of_jobs_nor_on_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let candidates = load(&stacks(folder.path()), &[]);
    let one = without_wall_clock(&ranking(&candidates, 1, "response_ms.p90"));
    let other = without_wall_clock(&ranking(&candidates, 3, "response_ms.p90"));
    assert_eq!(one, other);
}

#[test]
fn equal_candidates_are_not_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let files = [
        write(folder.path(), "one", "raid0", 4),
        write(folder.path(), "two", "raid0", 4),
    ];
    let ranking = ranking(&load(&files, &[]), 2, "iops");
    assert_eq!(ranking.candidates[0].name, "one");
    let difference = ranking.candidates[1].difference_to_best.unwrap();
    assert_eq!(
        (difference.value, difference.significance),
        (0.0, Significance::NotSignificant)
    );
    assert!(ranking.candidates[1].equal_to_best);
    let verdict = ranking.verdict.as_deref().unwrap();
    assert!(
        verdict.starts_with("one and two are equal by iops: ") && verdict.ends_with(" 1/s."),
        "{verdict}"
    );
    assert!(
        !ranking.to_string().contains("not significant"),
        "{ranking}"
    );
}

#[test]
fn of_nothing_there_is_no_share_and_all_that_are_equal_are_best() {
    let folder = tempfile::tempdir().unwrap();
    let by = "time_ms.parity";
    let ranking = ranking(&load(&stacks(folder.path()), &[]), 2, by);
    let verdict = ranking.verdict.as_deref().unwrap();
    let head = format!("raid0 and raid10 are equal, and best by {by}: 0 ms");
    assert!(
        verdict.starts_with(&head) && verdict.contains("the next"),
        "{verdict}"
    );
    assert!(!ranking.to_string().contains("NaN"), "{ranking}");
    // The mean response times still differ, and there is a reason.
    let reason = &ranking.reasons[0].sentence;
    assert!(reason.contains(&format!("are equal by {by}; ")), "{reason}");
}

#[test]
fn a_seed_that_changes_nothing_makes_nothing_sure() {
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let files = ["raid10", "raid0"].map(|name| project.join(format!("stacks/demo/{name}.toml")));
    // Platters with chosen angles leave nothing to the seed of a trace.
    let overrides = Overrides {
        requests: Some(4000),
        set: vec!["volume.spindles=\"together\"".to_owned()],
        ..Overrides::default()
    };
    let recipes = recipes(&files, &overrides, &[]);
    let ranked = |seeds: usize| {
        let seeded = recipes
            .iter()
            .flat_map(|recipe| recipe.with_seeds(seeds).unwrap());
        let candidates: Vec<ComparedStack> =
            seeded.map(|recipe| recipe.candidate().unwrap()).collect();
        Ranking::of_seeds(
            &run_all(&candidates, 2, &|_| {}).unwrap(),
            seeds,
            Metric::RESPONSE_MEAN,
        )
    };
    let (one, three) = (ranked(1), ranked(3));
    for (one, three) in one.candidates.iter().zip(&three.candidates) {
        assert_eq!(
            (one.varies_with_seed, three.varies_with_seed),
            (None, Some(false))
        );
        assert!(one.ci95_half_width.is_some() && one.ci95_half_width == three.ci95_half_width);
        assert_eq!(one.difference_to_best, three.difference_to_best);
    }
    assert!(
        three
            .to_string()
            .contains("The seed does not change response_ms.mean: "),
        "{three}"
    );
}

#[test]
fn a_varied_key_makes_a_candidate_of_each_value() {
    let folder = tempfile::tempdir().unwrap();
    let files = [write(folder.path(), "raid5", "raid5", 5)];
    let candidates = load(&files, &["volume.chunk=16KiB,64KiB", "seed=1,2"]);
    let first = &candidates[0];
    assert_eq!((first.name.as_str(), candidates.len()), ("raid5", 4));
    assert_eq!(
        (first.varied.get("volume.chunk"), first.varied.get("seed")),
        (Some("16KiB"), Some("1"))
    );
    let digests: Vec<&str> = candidates
        .iter()
        .map(|candidate| candidate.stack.digest())
        .collect();
    assert_ne!(digests[0], digests[2]);
}

#[test]
fn files_of_one_name_are_told_apart_by_their_paths() {
    let folder = tempfile::tempdir().unwrap();
    let below = folder.path().join("below");
    fs::create_dir(&below).unwrap();
    let files = [
        write(folder.path(), "stack", "raid0", 2),
        write(&below, "stack", "raid0", 3),
    ];
    let names: Vec<String> = load(&files, &[])
        .into_iter()
        .map(|candidate| candidate.name)
        .collect();
    assert_ne!(names[0], names[1]);
}

#[test]
fn progress_ends_at_the_number_of_requests() {
    let folder = tempfile::tempdir().unwrap();
    let candidates = load(&stacks(folder.path()), &[]);
    let total = AtomicU64::new(0);
    run_all(&candidates, 2, &|event| {
        if event.over {
            total.fetch_add(event.finished, Ordering::Relaxed);
        }
    })
    .unwrap();
    assert_eq!(total.into_inner(), 9_000);
}

#[test]
fn a_log_has_a_row_for_every_request_and_parts_that_add_up() {
    let folder = tempfile::tempdir().unwrap();
    let files = [write(folder.path(), "raid5", "raid5", 5)];
    let log = folder.path().join("log.csv");
    run(&load(&files, &[])[0], Some(&log), &|_, _| {}).unwrap();
    let text = fs::read_to_string(&log).unwrap();
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    let column = |name: &str| header.iter().position(|column| *column == name).unwrap();
    let (response, first_part, last_part) = (
        column("response_ns"),
        column("queue_ns"),
        column("transfer_ns"),
    );
    let mut rows = 0;
    for line in lines {
        let cells: Vec<&str> = line.split(',').collect();
        let number = |at: usize| cells[at].parse::<u64>().unwrap();
        assert_eq!(
            (first_part..=last_part).map(number).sum::<u64>(),
            number(response),
            "{line}"
        );
        let members = cells[column("members")].split(' ').count();
        match cells[column("operation")] {
            "write" => assert!(
                members >= 2,
                "a small write of RAID 5 touches data and parity: {line}"
            ),
            _ => assert!(members >= 1, "{line}"),
        }
        rows += 1;
    }
    assert_eq!(rows, 3_000);
}

#[test]
fn a_log_that_cannot_be_created_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let files = [write(folder.path(), "raid0", "raid0", 2)];
    let log = folder.path().join("missing/log.csv");
    let error = run(&load(&files, &[])[0], Some(&log), &|_, _| {}).unwrap_err();
    assert!(
        matches!(error, LabError::Log(_)) && error.to_string().contains("missing/log.csv"),
        "{error}"
    );
}

#[test]
fn a_stack_that_cannot_be_used_names_its_file() {
    let error = candidates(&[PathBuf::from("no-such.toml")], &Overrides::default(), &[])
        .err()
        .unwrap();
    assert!(error.to_string().starts_with("no-such.toml"), "{error}");
}

#[test]
fn a_candidate_that_lost_requests_ranks_behind_those_that_did_not() {
    let folder = tempfile::tempdir().unwrap();
    let mut ran = run_all(&load(&stacks(folder.path()), &[]), 2, &|_| {}).unwrap();
    let fastest = &mut ran[1].measured.report;
    assert_eq!(fastest.name, "raid0");
    fastest.arrived.completed -= 5;
    fastest.arrived.lost = 5;
    let ranking = Ranking::new(&ran, Metric::RESPONSE_MEAN);
    let last = ranking.candidates.last().unwrap();
    assert_eq!((last.name.as_str(), last.complete), ("raid0", false));
    assert!(
        ranking
            .to_string()
            .contains("raid0: 5 requests touched lost data")
    );
}

#[test]
fn a_candidate_that_measured_nothing_ranks_last() {
    let folder = tempfile::tempdir().unwrap();
    let mut files = stacks(folder.path());
    let idle = folder.path().join("idle.toml");
    let text = fs::read_to_string(&files[1]).unwrap();
    fs::write(&idle, format!("{text}[measurement]\nwarm_up = \"1h\"\n")).unwrap();
    files.insert(0, idle);
    let ranking = ranking(&load(&files, &[]), 2, "response_ms.mean");
    assert_eq!(ranking.candidates.last().unwrap().name, "idle");
    assert!(ranking.to_string().contains("idle: no value of"));
}

#[test]
fn where_nothing_was_measured_nobody_is_best_and_no_reason_is_given() {
    let folder = tempfile::tempdir().unwrap();
    let mut candidates = load(&stacks(folder.path()), &[]);
    candidates.retain(|candidate| candidate.name != "raid10");
    // The faster candidate stands first, so by another metric there would be a reason.
    candidates.reverse();
    let by_mean = ranking(&candidates, 2, "response_ms.mean");
    let ranking = ranking(&candidates, 2, "operations.discard.response_ms.p99");
    assert!(!by_mean.reasons.is_empty() && ranking.reasons.is_empty() && ranking.verdict.is_none());
    let text = ranking.to_string();
    assert!(text.contains("raid0: no value of"), "{text}");
    assert_eq!(text.matches("best").count(), 1, "but for a heading: {text}");
}

#[test]
fn candidates_are_ranked_by_what_their_links_counted() {
    let folder = tempfile::tempdir().unwrap();
    let files = [
        write(folder.path(), "raid5", "raid5", 5),
        write(folder.path(), "raid0", "raid0", 5),
    ];
    for file in &files {
        let text = fs::read_to_string(file).unwrap();
        fs::write(file, format!("{text}[link]\nkind = \"fc-al\"\n")).unwrap();
    }
    let ranking = ranking(&load(&files, &[]), 2, "link_utilisation");
    let [best, other] = &ranking.candidates[..] else {
        panic!("{ranking}")
    };
    assert_eq!(
        (ranking.by.as_str(), best.name.as_str()),
        ("layers.link_utilisation", "raid0")
    );
    // A third of the requests are writes. Each write needs two reads and two writes instead of one
    // write.
    assert!(
        other.value > 1.8 * best.value && best.value > 0.0,
        "{ranking}"
    );
    assert!(best.report.to_string().contains("link fc-al"));
}

#[test]
fn a_small_difference_of_alike_candidates_is_called_not_significant() {
    let folder = tempfile::tempdir().unwrap();
    let files = [write(folder.path(), "raid5", "raid5", 5)];
    // 4 KiB requests rarely straddle chunks of either size.
    let ranking = ranking(
        &load(&files, &["volume.chunk=512KiB,1MiB"]),
        2,
        "response_ms.mean",
    );
    let difference = ranking.candidates[1].difference_to_best.unwrap();
    assert_eq!(
        difference.significance,
        Significance::NotSignificant,
        "{difference:?}"
    );
    assert!(ranking.to_string().contains('≈'));
}

/// A stack and its degraded form, ranked, with reads of this share.
fn with_degraded(folder: &Path, read_share: &str) -> Ranking {
    let file = write(folder, "raid5", "raid5", 5);
    let share = format!("workload.read_share={read_share}");
    let overrides = Overrides {
        set: vec![share],
        ..Overrides::default()
    };
    let whole = &recipes(&[file], &overrides, &[])[0];
    let degraded = whole.in_condition(Condition::Degraded).unwrap().unwrap();
    ranking(
        &[whole.candidate().unwrap(), degraded.candidate().unwrap()],
        2,
        "response_ms.mean",
    )
}

#[test]
fn a_whole_volume_that_beats_its_own_degraded_form_needs_no_reason_and_the_opposite_does() {
    let folder = tempfile::tempdir().unwrap();
    let expected = with_degraded(folder.path(), "1");
    let names = |ranking: &Ranking| {
        ranking
            .candidates
            .iter()
            .map(Ranked::label)
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&expected), ["raid5", "raid5 degraded"]);
    assert_eq!(expected.reasons, []);
    let surprising = with_degraded(folder.path(), "0");
    assert_eq!(names(&surprising), ["raid5 degraded", "raid5"]);
    let [reason] = &surprising.reasons[..] else {
        panic!("{:?}", surprising.reasons)
    };
    assert!(
        reason.sentence.starts_with("raid5 degraded answers"),
        "{}",
        reason.sentence
    );
}

#[test]
fn with_several_seeds_means_are_ranked_and_intervals_are_over_seeds() {
    let dir = tempfile::tempdir().unwrap();
    let stack = |name: &str, kind: &str| {
        let path = dir.path().join(format!("{name}.toml"));
        let text = format!(
            "seed = 4\n[workload]\nkind = \"postmark\"\nnumber = 30\ntransactions = 60\n[host]\nelevator = \"noop\"\n\
             memory = {{ size = \"1MiB\" }}\nfiles = {{ kind = \"{kind}\" }}\n\
             [volume]\nlayout = \"jbod\"\ndrive = \"seagate-cheetah-9lp\"\ndrives = 1\n"
        );
        std::fs::write(&path, text).unwrap();
        path
    };
    let files = [
        stack("one", "ext2"),
        stack("same", "ext2"),
        stack("other", "xfs"),
    ];
    let recipes = recipes(&files, &Overrides::default(), &[]);
    let seeded: Vec<_> = recipes
        .iter()
        .flat_map(|recipe| recipe.with_seeds(3).unwrap())
        .collect();
    let candidates: Vec<_> = seeded
        .iter()
        .map(|recipe| recipe.candidate().unwrap())
        .collect();
    let seeds: Vec<u64> = candidates
        .iter()
        .map(|candidate| candidate.stack.seed().0)
        .collect();
    assert_eq!(seeds[..6], [4, 5, 6, 4, 5, 6]);
    let ran = run_all(&candidates, 2, &|_| {}).unwrap();
    let ranking = Ranking::of_seeds(&ran, 3, Metric::PROGRAMS_ELAPSED);
    assert_eq!((ranking.candidates.len(), ranking.seeds), (3, 3));
    let of = |name: &str| {
        ranking
            .candidates
            .iter()
            .find(|ranked| ranked.name == name)
            .unwrap()
    };
    assert_eq!(of("one").value, of("same").value);
    assert!(
        of("one")
            .ci95_half_width
            .is_some_and(|half_width| half_width > 0.0)
    );
    let mean = ran[..3]
        .iter()
        .map(|ran| Metric::PROGRAMS_ELAPSED.value(&ran.measured.report))
        .sum::<f64>()
        / 3.0;
    assert!((of("one").value - mean).abs() < 1e-12);
    let second = &ranking.candidates[1];
    assert!(second.difference_to_best.unwrap().half_width.is_some());
}
