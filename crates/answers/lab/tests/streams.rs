//! Tests of media streams, measured and searched for.

use fullstroke_lab::{
    LabError, LoadSearch, LoadSearchResult, Settling, candidates, most_streams, run,
};
use fullstroke_measure::Metric;
use fullstroke_stack::Overrides;
use std::fs;
use std::path::{Path, PathBuf};

const STREAMS: &str = r#"
seed = 11
[workload]
kind = "streams"
streams = 20
bit_rate = "4Mbit/s"
duration = "20s"
start_interval = "100ms"
exponential = true
read_size = "128KiB"
start_up_buffer = "128KiB"
client_buffer = "256KiB"
"#;

fn write(folder: &Path, workload: &str) -> PathBuf {
    let path = folder.join("media.toml");
    fs::write(
        &path,
        format!("{workload}[volume]\ndrive = \"seagate-cheetah-9lp\"\n"),
    )
    .unwrap();
    path
}

fn find(
    file: &Path,
    overrides: &Overrides,
    replications: u32,
    jobs: usize,
) -> Result<LoadSearchResult, LabError> {
    most_streams(
        file,
        overrides,
        LoadSearch {
            confidence: 0.95,
            replications,
            jobs,
            budget: None,
        },
        &|_| {},
    )
}

#[test]
fn what_clients_saw_is_in_the_report_and_can_be_ranked_by() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), STREAMS);
    let ran = |streams: u32| {
        let overrides = Overrides {
            set: vec![format!("workload.streams={streams}")],
            ..Overrides::default()
        };
        run(
            &candidates(std::slice::from_ref(&file), &overrides, &[]).unwrap()[0],
            None,
            &|_, _| {},
        )
        .unwrap()
    };
    let few = ran(10).measured.report;
    let streams = few.streams.as_ref().unwrap();
    assert_eq!(
        (streams.started, streams.playing, streams.underruns),
        (10, 10, 0)
    );
    assert!(streams.all_played(10) && streams.nominal_mbit_per_s == 40.0);
    // The streams together made all requests of the run.
    assert_eq!(
        streams.each.iter().map(|each| each.reads).sum::<u64>(),
        few.arrived.completed
    );
    let many = ran(200).measured.report;
    let streams = many.streams.as_ref().unwrap();
    let value = |name: &str| Metric::parse(name).unwrap().value(&many);
    assert!(streams.underruns > 0 && value("streams.underruns") == streams.underruns as f64);
    assert!(value("streams.start_up_ms") > few.streams.unwrap().start_up_ms.mean);
    assert!(
        value("streams.deadlines_missed_share") > 0.0 && value("streams.within_latency").is_nan()
    );
    assert!(many.to_string().contains("streams with any"), "{many}");
}

#[test]
fn the_most_streams_are_found_and_one_more_fails() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), STREAMS);
    let found = find(&file, &Overrides::default(), 3, 2).unwrap();
    let held = |streams: u32| {
        let tried = found
            .tried
            .iter()
            .find(|tried| tried.streams == streams)
            .unwrap();
        tried.runs_that_held == 3
    };
    assert!(
        found.streams > 5 && held(found.streams) && !held(found.streams + 1),
        "{found}"
    );
    // 1 - 0.05^(1/3).
    assert!((found.underrun_probability_max.unwrap() - 0.6316).abs() < 1e-4);
    // The transfer rate is the bound: 15 MB/s are 30 streams of 0.5 MB/s.
    assert!(found.streams < 40, "{found}");
    assert_eq!(found, find(&file, &Overrides::default(), 3, 1).unwrap());
    // More seeds can only lower the minimum.
    assert!(find(&file, &Overrides::default(), 6, 2).unwrap().streams <= found.streams);
}

#[test]
fn streams_that_do_not_fit_or_never_play_do_not_hold() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), STREAMS);
    let set = |key: &str| Overrides {
        set: vec![key.to_owned()],
        ..Overrides::default()
    };
    // The volume holds eight files of this size.
    let found = find(&file, &set("workload.file_size=1GiB"), 1, 1).map(|found| found.streams);
    assert!(matches!(found, Err(LabError::Stack(error)) if error.key == "workload.file_size"));
    let overrides = Overrides {
        set: vec![
            "workload.file_size=1GiB".into(),
            "workload.streams=3".into(),
        ],
        ..Overrides::default()
    };
    let found = find(&file, &overrides, 1, 1).unwrap();
    assert_eq!(found.streams, 8, "{found}");
    assert!(
        found
            .to_string()
            .contains("`workload.file_size`: 9 files of 1GiB are larger"),
        "{found}"
    );
    // The start-up buffer never fills: there is no underrun, but no stream plays.
    let start_up = Overrides {
        set: vec![
            "workload.client_buffer=2GiB".into(),
            "workload.start_up_buffer=1GiB".into(),
        ],
        ..Overrides::default()
    };
    let found = find(&file, &start_up, 1, 1).unwrap();
    assert!(
        found.streams == 0 && found.tried.iter().all(|tried| tried.underruns == 0),
        "{found}"
    );
}

#[test]
fn a_stack_without_streams_cannot_be_searched() {
    let folder = tempfile::tempdir().unwrap();
    let workload =
        "[workload]\nkind = \"synthetic\"\nrequests = 1\narrivals = { process = \"closed\" }\n";
    let error = find(&write(folder.path(), workload), &Overrides::default(), 1, 1).unwrap_err();
    assert!(
        error.to_string().contains("media: --find streams needs"),
        "{error}"
    );
}

#[test]
fn a_budget_extends_the_runs_until_two_lengths_agree() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), &STREAMS.replace("\"20s\"", "\"2s\""));
    let with = |budget: Option<u64>| {
        let search = LoadSearch {
            confidence: 0.95,
            replications: 2,
            jobs: 2,
            budget,
        };
        most_streams(&file, &Overrides::default(), search, &|_| {}).unwrap()
    };
    let short = with(None);
    assert_eq!(
        (short.settled.settling, short.streams_at_half_length),
        (Settling::LengthChosen, None)
    );
    let spent = with(Some(1));
    assert_eq!(spent.settled.settling, Settling::BudgetSpent);
    assert_eq!(spent.streams, short.streams);
    let long = with(Some(100_000_000));
    assert!(long.settled.is_settled(), "{long}");
    let half = long.streams_at_half_length.unwrap();
    let apart = f64::from(half.abs_diff(long.streams));
    assert!(apart <= 0.02 * f64::from(long.streams), "{long}");
    // Runs of two seconds miss underruns that longer runs find.
    assert!(long.streams <= short.streams, "{short}\n{long}");
    let lengths = |one: &LoadSearchResult| {
        let each = one.tried.iter().map(|tried| tried.length);
        each.fold(0.0, f64::max)
    };
    assert_eq!(lengths(&short), 1.0);
    assert!(lengths(&long) >= 2.0 && long.settled.requests > short.settled.requests);
    assert!(
        long.to_string()
            .contains("Settled: runs of half the length give")
    );
    assert!(
        spent
            .to_string()
            .contains("the budget of 1 requests is spent")
    );
}

#[test]
fn recordings_that_lose_data_do_not_hold() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), STREAMS);
    let set = |keys: &[&str]| Overrides {
        set: keys.iter().map(|key| (*key).to_owned()).collect(),
        ..Overrides::default()
    };
    let alone = find(&file, &Overrides::default(), 2, 2).unwrap().streams;
    let beside = find(&file, &set(&["workload.recordings=10"]), 2, 2).unwrap();
    assert!(
        beside.streams > 0 && beside.streams + 5 <= alone,
        "{alone}: {beside}"
    );
    // More than the drive can write.
    let much = set(&["workload.recordings=60", "workload.streams=1"]);
    let ran = run(
        &candidates(std::slice::from_ref(&file), &much, &[]).unwrap()[0],
        None,
        &|_, _| {},
    )
    .unwrap();
    let report = ran.measured.report;
    let streams = report.streams.as_ref().unwrap();
    assert!(
        streams.overruns > 0 && streams.with_overruns > 10 && streams.lost_ms > 0.0,
        "{streams:?}"
    );
    assert!(!streams.all_played(1));
    assert!(
        report.to_string().contains("recordings with any"),
        "{report}"
    );
}
