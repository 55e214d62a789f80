//! Tests that answers can be trusted: overloaded drives, selections of nothing, and reasons of a
//! ranking.

use crate::common::{Folder, refused, success};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Writes a stack of small random requests on drives with a capacity of about 110 requests per
/// second each, first come first served.
fn small_requests(
    folder: &Folder,
    name: &str,
    layout: &str,
    drives: u32,
    arrivals: &str,
) -> String {
    let like = like(layout);
    folder.put(
        &format!("{name}.toml"),
        &format!(
            "seed = 1\n[workload]\nkind = \"synthetic\"\nrequests = 4000\nread_share = 0.7\nsize = \"4KiB\"\n\
             arrivals = {{ {arrivals} }}\n[volume]\nlayout = \"{layout}\"\n{like}drives = {drives}\n\
             drive = \"seagate-cheetah-9lp\"\ndrive_settings = {{ queue = {{ discipline = \"fcfs\" }} }}\n"
        ),
    )
}

/// Returns the line for arrays of the ideal planner. These tests are about answers, and count on a
/// known number of member I/Os for each request.
fn like(layout: &str) -> &'static str {
    match layout {
        "raid0" => "",
        _ => "like = \"ideal\"\n",
    }
}

fn poisson(rate_per_s: f64) -> String {
    format!("process = \"poisson\", rate_per_s = {rate_per_s}")
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&success(&[arguments, &["--json"]].concat())).unwrap()
}

#[test]
fn a_load_that_the_drives_cannot_carry_is_told_and_has_no_intervals() {
    let folder = Folder::new();
    let stack = small_requests(&folder, "one", "raid0", 1, &poisson(330.0));
    let report = json(&["run", &stack]);
    let share = report["overload"]["carried_share"].as_f64().unwrap();
    assert!((0.30..0.38).contains(&share), "{share}");
    assert_eq!(report["overload"]["grows"], true);
    for times in ["response_ms", "queue_ms"] {
        assert_eq!(report[times]["ci95_half_width"], Value::Null, "{times}");
    }
    let text = success(&["run", &stack]);
    for part in [
        "do not keep up with the arrivals",
        "grow with the length",
        "the array serves 0.3",
        "--find load",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_high_but_steady_load_and_a_closed_one_are_carried() {
    let folder = Folder::new();
    let stack = small_requests(&folder, "steady", "raid0", 1, &poisson(100.0));
    for seed in ["1", "2", "3", "4"] {
        let report = json(&["run", &stack, "--seed", seed]);
        assert_eq!(report["overload"], Value::Null, "seed {seed}");
        assert!(report["response_ms"]["ci95_half_width"].as_f64().unwrap() > 0.0);
    }
    let closed = small_requests(
        &folder,
        "closed",
        "raid0",
        1,
        "process = \"closed\", outstanding = 500",
    );
    let report = json(&["run", &closed]);
    assert_eq!(
        (&report["overload"], &report["backlog"]),
        (&Value::Null, &Value::Null)
    );
}

#[test]
fn candidates_that_carry_the_load_rank_before_those_that_do_not() {
    let folder = Folder::new();
    let names = [
        ("one", "raid0", 1),
        ("two", "raid0", 2),
        ("five", "raid0", 5),
        ("parity", "raid5", 5),
    ];
    let stacks = names.map(|(name, layout, drives)| {
        small_requests(&folder, name, layout, drives, &poisson(330.0))
    });
    let stacks: Vec<&str> = stacks.iter().map(String::as_str).collect();
    let ranking = json(&[&["compare"][..], &stacks].concat());
    let ranked = |place: usize| &ranking["candidates"][place];
    let order: Vec<&str> = (0..4)
        .map(|place| ranked(place)["name"].as_str().unwrap())
        .collect();
    assert_eq!((order[0], &order[2..]), ("five", &["two", "one"][..]));
    assert_eq!(
        (&ranked(0)["carries"], &ranked(3)["carries"]),
        (&true.into(), &false.into())
    );
    assert_eq!(ranked(3)["difference_to_best"], Value::Null);
    let text = success(&[&["compare"][..], &stacks].concat());
    assert!(
        text.contains("serves 0.3")
            && text.contains("one: The drives do not keep up with the arrivals"),
        "{text}"
    );
    let text = success(&["compare", stacks[0], stacks[1]]);
    assert!(
        text.contains("No candidate keeps up with this load; two serves the largest part"),
        "{text}"
    );
}

#[test]
fn a_job_that_does_not_get_its_rate_is_told() {
    let folder = Folder::new();
    let stack = small_requests(&folder, "one", "raid0", 1, &poisson(1.0));
    let job = |rate: u32| {
        let text = format!(
            "[web]\nrw=randread\nbs=4k\nsize=8M\nrate_iops={rate}\niodepth=4\nioengine=libaio\n"
        );
        folder.put(&format!("{rate}.fio"), &text)
    };
    let report = json(&["run", &stack, "--fio", &job(1000)]);
    assert!(
        report["overload"]["carried_share"].as_f64().unwrap() < 0.3,
        "{}",
        report["overload"]
    );
    assert!(
        success(&["run", &stack, "--fio", &job(1000)])
            .contains("do not keep up with the rate of job web")
    );
    assert_eq!(
        json(&["run", &stack, "--fio", &job(40)])["overload"],
        Value::Null
    );
}

#[test]
fn the_load_that_is_carried_is_found() {
    let folder = Folder::new();
    let one = small_requests(&folder, "one", "raid0", 1, &poisson(330.0));
    let found = json(&["run", &one, "--find", "load"]);
    let (load, too_much) = (
        found["load"].as_f64().unwrap(),
        found["too_much"].as_f64().unwrap(),
    );
    assert!(
        (0.30..0.37).contains(&load) && too_much / load < 1.0201,
        "{load} {too_much}"
    );
    assert!(success(&["run", &one, "--find", "load"]).contains("times this load is carried"));
    let limited = json(&["run", &one, "--find", "load", "--p99-max", "50ms"]);
    assert!(
        limited["load"].as_f64().unwrap() < load && limited["p99_ms"].as_f64().unwrap() <= 50.0
    );
    let four = small_requests(&folder, "four", "raid0", 4, &poisson(330.0));
    let ranking = json(&["compare", &one, &four, "--find", "load"]);
    assert_eq!(ranking["candidates"][0]["name"], "four");
    let text = success(&["compare", &one, &four, "--find", "load"]);
    assert!(
        text.contains("four is best by load") && text.contains("% more"),
        "{text}"
    );
    // Without load a RAID 5 write takes longer than 20 ms, and no drive answers within 5 ms.
    let parity = small_requests(&folder, "parity", "raid5", 5, &poisson(330.0));
    let text = success(&[
        "compare",
        &parity,
        &four,
        "--find",
        "load",
        "--p99-max",
        "20ms",
    ]);
    for part in [
        "four is best by load with a response_ms.p99 of at most 20.0 ms: ",
        "; the next, parity, fails at every tried value.",
        "load, p99 ≤ 20.0 ms",
        "none tried",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let text = success(&[
        "compare",
        &parity,
        &four,
        "--find",
        "load",
        "--p99-max",
        "5ms",
    ]);
    assert!(
        text.contains("No candidate passes at any tried value by load with a"),
        "{text}"
    );
    let closed = small_requests(&folder, "closed", "raid0", 1, "process = \"closed\"");
    assert!(refused(&["run", &closed, "--find", "load"]).contains("needs open arrivals"));
}

#[test]
fn stacks_are_compared_by_the_streams_that_they_play() {
    let folder = Folder::new();
    let stack = |name: &str, drives: u32| {
        folder.put(
            &format!("{name}.toml"),
            &format!(
                "[workload]\nkind = \"streams\"\nstreams = 6\nbit_rate = \"4Mbit/s\"\nduration = \"3s\"\n\
                 read_size = \"128KiB\"\n[volume]\nlayout = \"raid0\"\ndrives = {drives}\ndrive = \"seagate-cheetah-9lp\"\n"
            ),
        )
    };
    let (one, three) = (stack("one", 1), stack("three", 3));
    let find = [
        "compare",
        &one,
        &three,
        "--find",
        "streams",
        "--replications",
        "1",
    ];
    let ranking = json(&find);
    assert_eq!(
        (&ranking["by"], &ranking["candidates"][0]["name"]),
        (&"streams".into(), &"three".into())
    );
    assert!(success(&find).contains("three is best by streams"));
}

#[test]
fn what_selects_nothing_is_refused_with_what_there_is() {
    let folder = Folder::new();
    let stack = small_requests(&folder, "one", "raid0", 1, &poisson(1.0));
    let trace = folder.put(
        "a.trace",
        "0.0 0 1000 8 1\n0.5 1 4000 16 0\n1000.0 0 9000 8 1\n",
    );
    let from = ["--format", "disksim", "--trace", &trace];
    for selection in [
        ["--device", "7"],
        ["--from", "10h"],
        ["--operation", "flush"],
    ] {
        let there = "3 requests from 0s to 1.000s, devices 0, 1, operations read, write";
        for command in ["run", "compare"] {
            let error = refused(&[&[command, &stack][..], &from, &selection].concat());
            assert!(
                error.contains(selection[0]) && error.contains(there),
                "{error}"
            );
        }
        for command in ["info", "head"] {
            let error = refused(
                &[
                    &["trace", command, &trace, "--format", "disksim"][..],
                    &selection,
                ]
                .concat(),
            );
            assert!(error.contains(there), "{error}");
        }
        let converted = folder.name("b.parquet");
        let convert = [
            "trace", "convert", &trace, &converted, "--format", "disksim",
        ];
        assert!(refused(&[&convert[..], &selection].concat()).contains(there));
        assert!(!std::path::Path::new(&converted).exists());
    }
    assert!(refused(&["run", &stack, "--requests", "0"]).contains("issued no request"));
    assert!(
        refused(&["run", &stack, "--set", "measurement.warm_up=10h"])
            .contains("within the warm-up")
    );
}

#[test]
fn metrics_are_listed_with_unit_and_meaning() {
    for command in [&["run"][..], &["compare"], &["study", "list"]] {
        let text = success(&[command, &["--list-metrics"]].concat());
        assert!(
            text.contains("response_ms.p99") && text.contains("99th percentile"),
            "{text}"
        );
    }
    let listed = json(&["compare", "--list-metrics"]);
    let metric = listed
        .as_array()
        .unwrap()
        .iter()
        .find(|metric| metric["name"] == "members.utilisation");
    assert_eq!(metric.unwrap()["unit"], "0 to 1");
}

#[test]
fn the_response_column_of_a_log_agrees_with_the_report() {
    let folder = Folder::new();
    let stack = small_requests(&folder, "one", "raid5", 3, &poisson(1.0));
    let mut trace = String::from("fio version 2 iolog\n/dev/sda add\n/dev/sda open\n");
    for number in 0..600 {
        let (kind, place) = (["read", "write"][number % 2], number * 81_920);
        writeln!(trace, "/dev/sda {kind} {place} 4096\n/dev/sda wait 9000").unwrap();
        if number % 5 == 0 {
            trace.push_str("/dev/sda sync 0 0\n");
        }
    }
    let trace = folder.put("a.fio", &trace);
    let log = folder.name("log.csv");
    let report = json(&[
        "run",
        &stack,
        "--trace",
        &trace,
        "--log",
        &log,
        "--set",
        "measurement.warm_up=1s",
    ]);
    let text = std::fs::read_to_string(&log).unwrap();
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let column = lines
        .next()
        .unwrap()
        .iter()
        .position(|name| *name == "response_ms")
        .unwrap();
    let times: Vec<f64> = lines.filter_map(|row| row[column].parse().ok()).collect();
    let mean = times.iter().sum::<f64>() / times.len() as f64;
    assert!(times.len() < 600 && report["warm_up_requests"].as_u64().unwrap() > 0);
    let reported = report["response_ms"]["mean"].as_f64().unwrap();
    assert!((mean / reported - 1.0).abs() < 1e-9, "{mean} {reported}");
}

#[test]
fn degraded_variants_rank_beside_whole_ones() {
    let folder = Folder::new();
    let five = small_requests(&folder, "five", "raid5", 5, &poisson(60.0));
    let zero = small_requests(&folder, "zero", "raid0", 5, &poisson(60.0));
    let ranking = json(&["compare", &five, &zero, "--degraded"]);
    let names: Vec<&str> = ranking["candidates"]
        .as_array()
        .unwrap()
        .iter()
        .map(|ranked| ranked["name"].as_str().unwrap())
        .collect();
    assert_eq!(names.len(), 3);
    assert!(names.contains(&"five degraded"), "{names:?}");
    assert_eq!(ranking["not_redundant"], serde_json::json!(["zero"]));
    let degraded = &ranking["candidates"]
        .as_array()
        .unwrap()
        .iter()
        .find(|ranked| ranked["name"] == "five degraded");
    assert_eq!(degraded.unwrap()["volume"]["failures_survived"], 0);
}

/// Returns a stack of updates to one row. No drive seeks, and each update waits for the earlier
/// ones.
fn updates(layout: &str) -> String {
    let like = like(layout);
    format!(
        "seed = 1\n[workload]\nkind = \"synthetic\"\nrequests = 2000\nread_share = 0\nsize = \"4KiB\"\n\
         region_size = \"256KiB\"\narrivals = {{ process = \"poisson\", rate_per_s = 80 }}\n[volume]\n\
         layout = \"{layout}\"\n{like}drives = 5\ndrive = \"seagate-cheetah-9lp\"\n"
    )
}

#[test]
fn more_redundancy_that_answers_sooner_comes_with_its_reason() {
    let folder = Folder::new();
    let [five, six, none] = ["raid5", "raid6", "raid0"]
        .map(|layout| folder.put(&format!("{layout}.toml"), &updates(layout)));
    let ranking = json(&["compare", &five, &six]);
    let reason = &ranking["reasons"][0];
    assert_eq!(
        (&reason["better"], &reason["worse"]),
        (&"raid6".into(), &"raid5".into()),
        "{ranking}"
    );
    let sentence = reason["sentence"].as_str().unwrap();
    for part in [
        "raid6 answers",
        "less waiting for parity",
        "(read-modify-write) in 100 % of its updates",
        "on other drives (reconstruct-write)",
        "overwrite sectors that the same head has just read",
        "for other writes of their row",
    ] {
        assert!(sentence.contains(part), "{part}: {sentence}");
    }
    assert!(success(&["compare", &five, &six]).contains(sentence));
    let ranking = json(&["compare", &five, &none]);
    let sentence = ranking["reasons"][0]["sentence"].as_str().unwrap();
    assert!(
        sentence.contains("raid0 writes without reading first, raid5 reads 2.0 blocks"),
        "{sentence}"
    );
    let text = success(&["run", &five]);
    assert!(
        text.contains("parity: ") && text.contains("reads 2.0 blocks on average, and waits"),
        "{text}"
    );
    // Equal candidates need no reason.
    let same = folder.put("same.toml", &updates("raid5"));
    assert_eq!(
        json(&["compare", &five, &same])["reasons"],
        serde_json::json!([])
    );
}

/// Returns the file of one processor of a blktrace: a 4 KiB write every millisecond, queued, issued
/// and, with `completed`, completed.
fn blktrace(processor: u32, completed: bool) -> Vec<u8> {
    const WRITE: u32 = 0x2_0000;
    const ACTIONS: [u32; 3] = [0x11_0001, 0x41_0007, 0x81_0008];
    let mut bytes = Vec::new();
    for number in 0..600u64 {
        for (step, action) in ACTIONS
            .iter()
            .enumerate()
            .take(if completed { 3 } else { 2 })
        {
            bytes.extend_from_slice(&0x6561_7407u32.to_le_bytes());
            bytes.extend_from_slice(&(bytes.len() as u32 / 48 + 1).to_le_bytes());
            bytes.extend_from_slice(&(number * 1_000_000 + step as u64 * 100_000).to_le_bytes());
            bytes.extend_from_slice(&(number * 8_000 + u64::from(processor) * 8).to_le_bytes());
            for word in [4096, action | WRITE, 77, 8 << 20, processor, 0] {
                bytes.extend_from_slice(&u32::to_le_bytes(word));
            }
        }
    }
    bytes
}

#[test]
fn run_and_compare_say_what_a_trace_has_lost() {
    let folder = Folder::new();
    std::fs::write(folder.name("sda.blktrace.0"), blktrace(0, true)).unwrap();
    std::fs::write(folder.name("sda.blktrace.2"), blktrace(2, false)).unwrap();
    let stacks =
        ["one", "two"].map(|name| small_requests(&folder, name, "raid0", 2, &poisson(100.0)));
    let trace = folder.name("sda.blktrace.0");
    let lost = "the file of processor 1 is missing";
    assert!(success(&["trace", "info", &trace]).contains(lost));

    let text = success(&["run", &stacks[0], "--trace", &trace]);
    assert!(text.contains(lost), "{text}");
    let report = json(&["run", &stacks[0], "--trace", &trace]);
    let notes = |report: &Value| report["trace_notes"].as_array().unwrap().clone();
    assert!(
        notes(&report)[0].as_str().unwrap().contains(lost),
        "{report}"
    );
    assert!(
        notes(&report)
            .iter()
            .any(|note| note.as_str().unwrap().contains("no certain completion")),
        "{report}"
    );

    let text = success(&["compare", &stacks[0], &stacks[1], "--trace", &trace]);
    assert_eq!(text.matches(lost).count(), 1, "{text}");
    let comparison = json(&["compare", &stacks[0], &stacks[1], "--trace", &trace]);
    for ranked in comparison["candidates"].as_array().unwrap() {
        assert!(
            notes(&ranked["report"])[0].as_str().unwrap().contains(lost),
            "{ranked}"
        );
    }
    // A workload without a trace has no notes.
    assert!(notes(&json(&["run", &stacks[0]])).is_empty());
}

/// Returns the numbers of an answer as text. Parsing and printing could change the last digit.
fn numbers(answer: &str) -> BTreeSet<&str> {
    answer
        .split(|letter: char| !letter.is_ascii_alphanumeric() && !"+-.".contains(letter))
        .collect()
}

#[test]
fn every_number_of_a_page_is_one_that_json_prints() {
    let folder = Folder::new();
    let one = small_requests(&folder, "one<b>", "raid0", 1, &poisson(60.0));
    let five = small_requests(&folder, "five", "raid5", 5, &poisson(60.0));
    let page = folder.name("out.html");
    let vary = "volume.chunk=16KiB,256KiB";
    for (arguments, parts) in [
        (
            vec!["run", &five],
            &["Measured values", "five: response times by cause"][..],
        ),
        (
            vec!["compare", &one, &five, "--vary", vary],
            &[
                "Why: ",
                "How to reproduce",
                "Effect of volume.chunk on",
                "one&lt;b&gt;",
                "drives = 5",
            ],
        ),
        (
            vec![
                "compare",
                &one,
                &five,
                "--find",
                "load",
                "--requests",
                "600",
            ],
            &[
                "Largest sustained load",
                "on the largest sustained value",
                "five: response times by cause",
                "Inputs of the run",
            ],
        ),
        (
            vec!["run", &five, "--find", "load", "--requests", "600"],
            &["show one run", "five: where the drives"],
        ),
        (
            vec![
                "tune",
                &five,
                "--vary",
                vary,
                "--requests",
                "150",
                "--batches",
                "4",
                "--first",
                "2",
            ],
            &[
                "the race saw parts of the workload",
                "response times by cause",
                "Inputs of the run",
                "Seed <data",
            ],
        ),
    ] {
        let answer = success(&[&arguments[..], &["--report", &page, "--json"]].concat());
        let text = std::fs::read_to_string(&page).unwrap();
        let known = numbers(&answer);
        let shown: Vec<&str> = text
            .split("<data value=\"")
            .skip(1)
            .filter_map(|rest| rest.split('"').next())
            .collect();
        assert!(shown.len() > 10, "{arguments:?}");
        for number in shown {
            assert!(
                known.contains(number),
                "{arguments:?}: --json does not print {number}"
            );
        }
        for part in parts {
            assert!(text.contains(part), "{arguments:?}: {part}");
        }
        assert_eq!(
            answer.contains("whole_load"),
            arguments.contains(&"--find") || arguments[0] == "tune"
        );
        assert!(
            text.len() < 300_000 && !text.contains("<b>"),
            "{arguments:?}: {}",
            text.len()
        );
    }
    assert_eq!(
        json(&["run", &five])["timeline"],
        Value::Null,
        "nobody asked for it"
    );
}

#[test]
fn tune_finds_what_is_better_by_far_and_says_how_sure_it_is() {
    let folder = Folder::new();
    let stack = small_requests(&folder, "five", "raid0", 1, &poisson(60.0));
    let page = folder.name("tuned.html");
    let arguments = [
        "tune",
        &stack,
        "--vary",
        "volume.drives=1..4",
        "--vary",
        "host.queue_depth=1,32",
    ];
    let few = [
        "--requests",
        "150",
        "--batches",
        "8",
        "--first",
        "4",
        "--report",
        &page,
    ];
    let tuned = json(&[&arguments[..], &few].concat());
    assert!(
        tuned["candidates"][0]["chance_better"].is_null(),
        "than itself"
    );
    assert_eq!(
        tuned["varied"]["host.queue_depth"],
        serde_json::json!(["1", "32"])
    );
    let best = &tuned["candidates"][0]["varied"];
    assert!(
        ["3", "4"].contains(&best["volume.drives"].as_str().unwrap()),
        "{best}"
    );
    assert_eq!(
        (&tuned["points"], &tuned["tried"], &tuned["exhaustive_runs"]),
        (&8.into(), &8.into(), &64.into())
    );
    assert!(tuned["runs"].as_u64().unwrap() < 64, "nobody dropped out");
    for worse in tuned["candidates"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["varied"]["volume.drives"] == "1")
    {
        assert!(
            worse["may_be_best"] == false && worse["chance_better"].as_f64().unwrap() < 0.05,
            "{worse}"
        );
    }
    let text = std::fs::read_to_string(&page).unwrap();
    for part in [
        "may be best",
        "Effect of volume.drives on",
        tuned["verdict"].as_str().unwrap(),
    ] {
        assert!(text.contains(part), "{part}");
    }
    for (wrong, word) in [
        (
            &[
                "--vary",
                "volume.layout=raid6",
                "--vary",
                "volume.drives=1,2",
            ][..],
            "volume.layout=raid6 volume.drives=1: ",
        ),
        (
            &["--vary", "volume.drives=2,3", "--by", "streams.underruns"],
            "streams",
        ),
        (
            &["--vary", "volume.drives=2,3", "--batches", "1"],
            "4..=4096",
        ),
    ] {
        let message = refused(&[&["tune", &stack, "--requests", "100"][..], wrong].concat());
        assert!(message.contains(word), "{message}");
    }
}

#[test]
fn tune_says_what_its_number_is_and_what_the_whole_load_comes_to() {
    let folder = Folder::new();
    let stack = small_requests(&folder, "two", "raid0", 2, &poisson(60.0));
    let rows: Vec<String> = (0..400)
        .map(|row| {
            format!(
                "{:.3} 0 {} 8 1\n",
                f64::from(row) * 0.01,
                row * 977 % 90_000
            )
        })
        .collect();
    let trace = folder.put("a.trace", &rows.concat());
    let load = [
        "--format",
        "disksim",
        "--trace",
        &trace,
        "--by",
        "response_ms.p99",
    ];
    let race = [
        "tune",
        &stack,
        "--vary",
        "volume.drives=1,2",
        "--batches",
        "4",
        "--first",
        "2",
    ];
    let tuned = json(&[&race[..], &load].concat());
    assert_eq!(
        (&tuned["batches_are"], &tuned["batch_requests"]),
        (&"trace".into(), &100.into())
    );
    let best = tuned["candidates"][0]["varied"]["volume.drives"]
        .as_str()
        .unwrap();
    let whole = json(
        &[
            &["run", &stack, "--set", &format!("volume.drives={best}")][..],
            &load[..4],
        ]
        .concat(),
    );
    assert_eq!(tuned["whole_load_value"], whole["response_ms"]["p99"]);
    let text = success(&[&race[..], &load].concat());
    for part in [
        "mean of parts, response_ms.p99",
        "parts of the trace, of 100 requests on average and each from rest",
        "One run of the whole load: ",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn tune_leaves_impossible_combinations_out_and_names_them() {
    let folder = Folder::new();
    let stack = small_requests(&folder, "four", "raid0", 4, &poisson(60.0));
    let few = ["--requests", "150", "--batches", "4", "--first", "2"];
    let vary = [
        "--vary",
        "volume.layout=raid6,raid0",
        "--vary",
        "volume.drives=3..5",
    ];
    let tuned = json(&[&["tune", &stack], &vary[..], &few].concat());
    assert_eq!((&tuned["points"], &tuned["tried"]), (&6.into(), &5.into()));
    let [impossible] = tuned["impossible"].as_array().unwrap().as_slice() else {
        panic!("{}", tuned["impossible"])
    };
    assert_eq!(
        impossible["varied"],
        serde_json::json!({ "volume.layout": "raid6", "volume.drives": "3" })
    );
    let verdict = tuned["verdict"].as_str().unwrap();
    assert!(
        verdict.contains("Impossible combination: volume.layout=raid6 volume.drives=3 ("),
        "{verdict}"
    );
}

#[test]
fn advice_names_a_layout_that_can_be_and_says_why() {
    let folder = Folder::new();
    small_requests(&folder, "load", "raid0", 1, &poisson(40.0));
    let page = folder.name("advice.html");
    let wishes = folder.put(
        "wishes.toml",
        "title = \"A <small> office\"\nstack = \"load.toml\"\n[drives]\nmodel = \"quantum-atlas-10k\"\ncount = 4\n\
         price = 200\n[wishes]\nfailures = 1\nusable = \"10GB\"\nprice = 900\n[choices]\nlayouts = [\"raid5\", \"raid6\", \"raid0\"]\nchunks = [\"64KiB\"]\n\
         elevators = [\"mq-deadline\"]\nwrite_caches = [true, false]\n",
    );
    let few = ["--requests", "400", "--report", &page];
    let advice = json(&[&["advise", &wishes][..], &few].concat());
    let finalists = advice["finalists"].as_array().unwrap();
    let first = &finalists[0];
    assert!(
        first["misses"].as_array().unwrap().is_empty() && first["price"] == 800.0,
        "{first}"
    );
    assert!(
        finalists
            .iter()
            .all(|one| one["volume"]["failures_survived"].as_u64() >= Some(1)),
        "{advice}"
    );
    assert!(
        finalists
            .iter()
            .all(|one| one["rebuilding"]["rebuild_hours"].as_f64() > Some(0.05))
    );
    // A slow drive is the fourth state.
    assert_eq!(advice["assumptions"]["slow_factor"], 2.5);
    for one in finalists {
        let p999 = |state: &str| one[state]["p999_ms"].as_f64().unwrap();
        assert!(p999("healthy") < p999("slow"), "{one}");
    }
    let refusal = refused(&["advise", &wishes, "--slow-factor", "1"]);
    assert!(refusal.contains("a factor above 1"), "{refusal}");
    // With two tolerated failures, data loss is rarer.
    let chance = |name: &str| {
        let one = finalists.iter().find(|one| one["name"] == name).unwrap();
        one["loss"]["chance_a_year"].as_f64().unwrap()
    };
    assert!(chance("raid6 of 4") < 0.1 * chance("raid5 of 4"));
    assert_eq!(advice["left_out"][0]["layout"], "raid0");
    let sentences = advice["recommendation"].to_string();
    for part in [
        "Take raid",
        " for a load of ",
        "; chance of data loss within a year: ",
        "With a drive that takes 2.5 times as long, 99 % of requests end within ",
        "Parts of the mean response time: ",
        "Second is",
        "mean time to data loss",
        "during the rebuild",
    ] {
        assert!(sentences.contains(part), "{part}: {sentences}");
    }
    // The advice has the formula with numbers, the answer under more load, and the reason of each
    // loser.
    assert!(
        sentences.contains(finalists[0]["mttdl_hours"].as_str().unwrap()),
        "{sentences}"
    );
    assert!(
        advice["mttdl_formula"].as_str().unwrap().contains("MTTF")
            && advice["recommended"] == first["name"]
    );
    let loads: Vec<f64> = advice["at_loads"]
        .as_array()
        .unwrap()
        .iter()
        .map(|at| at["load"].as_f64().unwrap())
        .collect();
    assert_eq!(loads, [1.5, 2.0]);
    assert!(
        finalists
            .iter()
            .any(|one| one["settings"].to_string().contains("volume.stripe_cache="))
    );
    let text = std::fs::read_to_string(&page).unwrap();
    assert!(
        text.contains("A &lt;small&gt; office")
            && text.contains("Conditions that would change the answer"),
        "{}",
        text.len()
    );
}

#[test]
fn a_slow_member_is_a_condition_of_compare_with_a_factor() {
    let folder = Folder::new();
    let stack = small_requests(&folder, "five", "raid5", 4, &poisson(40.0));
    let few = ["--requests", "400", "--by", "response_ms.p99"];
    let values = |option: &str| -> [f64; 2] {
        let ranking = json(&[&["compare", &stack, option][..], &few].concat());
        let each = ranking["candidates"].as_array().unwrap();
        ["five", "five slow"].map(|name| {
            let one = each.iter().find(|one| one["name"] == name);
            one.unwrap()["value"].as_f64().unwrap()
        })
    };
    let ([healthy, slow], [same, slower]) = (values("--slow"), values("--slow=10"));
    assert_eq!(healthy, same);
    assert!(healthy < slow && slow < slower, "{healthy} {slow} {slower}");
    assert_eq!(values("--slow=2.5"), [healthy, slow]);
    let refusal = refused(&["compare", &stack, "--slow=0.5"]);
    assert!(refusal.contains("a factor above 1"), "{refusal}");
}

#[test]
fn controllers_are_tried_where_they_are_listed_and_bought_only_where_they_are_needed() {
    let folder = Folder::new();
    let load = "seed = 1\n[workload]\nkind = \"synthetic\"\nrequests = 800\nread_share = 0\nsize = \"4KiB\"\n\
                arrivals = { process = \"poisson\", rate_per_s = 40 }\n[volume]\nlayout = \"raid0\"\ndrives = 1\n\
                drive = \"quantum-atlas-10k\"\n";
    folder.put("load.toml", load);
    let ask = |p99: &str, drives: &str, controllers: &str| {
        let wishes = format!(
            "stack = \"load.toml\"\n[drives]\nmodel = \"quantum-atlas-10k\"\ncount = 4\n{drives}\n[wishes]\nfailures = 1\n\
             p99 = \"{p99}\"\nprice = 5000\n[choices]\nlayouts = [\"raid5\"]\nchunks = [\"64KiB\"]\nelevators = [\"mq-deadline\"]\n\
             write_caches = [false]\nstripe_caches = [256]\ncontrollers = [{controllers}]\n"
        );
        folder.put("wishes.toml", &wishes)
    };
    let prices = "price = 200\ncontroller_price = 600";
    let both = "\"none\", \"1GiB\"";
    // Without a controller the array meets a slow wish and is cheaper. It does not meet a fast
    // wish.
    let slow = json(&["advise", &ask("2s", prices, both)]);
    let names = |advice: &Value| {
        let finalists = advice["finalists"].as_array().unwrap().iter();
        finalists
            .map(|one| one["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&slow), ["raid5 of 4", "raid5 of 4 behind 1GiB"]);
    assert_eq!(
        (
            &slow["finalists"][0]["price"],
            &slow["finalists"][1]["price"]
        ),
        (&800.0.into(), &1400.0.into())
    );
    assert!(
        slow["recommendation"]
            .to_string()
            .contains("it needs a controller to meet the wishes"),
        "{slow}"
    );
    let p99 = |place: usize| {
        slow["finalists"][place]["healthy"]["p99_ms"]
            .as_f64()
            .unwrap()
    };
    let (without, with) = (p99(0), p99(1));
    assert!(with < without, "{with} {without}");
    let between = format!("{:.0}us", 500.0 * (with + without));
    let quick = json(&["advise", &ask(&between, prices, both)]);
    assert_eq!(quick["recommended"], "raid5 of 4 behind 1GiB");
    assert!(
        quick["recommendation"][0]
            .as_str()
            .unwrap()
            .contains("a controller of 1GiB that a battery keeps")
    );
    assert!(
        quick["would_change"]
            .to_string()
            .contains("no controller is needed"),
        "{quick}"
    );
    for (drives, controllers, word) in [
        ("price = 200", both, "controller_price"),
        (prices, "\"much\"", "found `much`"),
    ] {
        let message = refused(&["advise", &ask("2s", drives, controllers)]);
        assert!(message.contains(word), "{message}");
    }
}

#[test]
fn a_cache_has_a_price_a_wear_and_a_place_in_the_answer() {
    let folder = Folder::new();
    let load = "seed = 1\n[workload]\nkind = \"synthetic\"\nrequests = 1000\nread_share = 0.5\nsize = \"4KiB\"\n\
                region_size = \"64MiB\"\narrivals = { process = \"poisson\", rate_per_s = 40 }\n[volume]\nlayout = \"raid0\"\ndrives = 1\n\
                drive = \"quantum-atlas-10k\"\n";
    folder.put("load.toml", load);
    let ask = |price: &str, caches: &str| {
        let wishes = format!(
            "stack = \"load.toml\"\n[drives]\nmodel = \"quantum-atlas-10k\"\ncount = 4\nprice = 200\n{price}\n[wishes]\nfailures = 1\n\
             p99 = \"2s\"\n[choices]\nlayouts = [\"raid5\"]\nchunks = [\"64KiB\"]\nelevators = [\"mq-deadline\"]\n\
             write_caches = [false]\nstripe_caches = [256]\nflash = \"samsung-870-evo-1tb\"\ncaches = [{caches}]\n"
        );
        folder.put("wishes.toml", &wishes)
    };
    let both = "\"none\", \"bcache:writeback:512MiB\"";
    let advice = json(&["advise", &ask("flash_price = 90", both)]);
    let [without, with] = [0, 1].map(|place| &advice["finalists"][place]);
    assert_eq!(without["name"], "raid5 of 4");
    assert_eq!(with["name"], "raid5 of 4 under bcache:writeback:512MiB");
    assert_eq!(
        (&without["price"], &with["price"]),
        (&800.0.into(), &890.0.into())
    );
    assert_eq!(
        (&without["flash"], &without["cache"]),
        (&Value::Null, &"none".into())
    );
    let of = |key: &str| with["flash"][key].as_f64().unwrap();
    assert_eq!((of("devices"), of("price")), (1.0, 90.0));
    // The endurance is 600 TB: the wear of a year are the written data of its days.
    let worn = of("written_gb_a_day") * 365.25 / 600e3;
    assert!(
        worn > 0.0 && (of("wear_share_a_year") / worn - 1.0).abs() < 1e-9,
        "{worn} {with}"
    );
    let watts = |one: &Value| one["healthy"]["mean_w"].as_f64();
    if let (Some(more), Some(less)) = (watts(with), watts(without)) {
        assert!(more - less < of("mean_w") + 1.0, "{with}");
    }
    assert!(of("mean_w") > 0.0 && of("dirty_mb") > 0.0, "{with}");
    let p99 = |one: &Value| one["healthy"]["p99_ms"].as_f64().unwrap();
    assert!(p99(with) < p99(without));
    let words = advice["recommendation"].to_string();
    assert!(
        words.contains("The same array with each cache:") && words.contains("for 90.0 EUR more"),
        "{words}"
    );
    // Without a price of the device the sum leaves the device out, and the answer says so.
    let only = ask("", "\"bcache:writeback:512MiB\"");
    let advice = json(&["advise", &only]);
    assert_eq!(advice["finalists"][0]["price"], 800.0);
    assert_eq!(advice["finalists"][0]["flash"]["price"], Value::Null);
    assert!(
        advice["recommendation"]
            .to_string()
            .contains("This price leaves the flash device out"),
        "{advice}"
    );
    let priced = json(&["advise", &only, "--flash-price", "90"]);
    assert_eq!(priced["finalists"][0]["price"], 890.0);
    for (price, caches, word) in [
        (
            "flash_price = -1",
            both,
            "[drives] flash_price, or --flash-price: found -1; expected a number above 0",
        ),
        (
            "controller_price = -2",
            both,
            "[drives] controller_price: found -2; expected a number above 0",
        ),
        ("", "\"much\"", "found `much`"),
        ("", "", "caches: found an empty list"),
        ("", "\"bcache:around:1GiB\"", "around"),
        ("", "\"bcache:2TiB\"", "`cache.size`: found 2TiB"),
    ] {
        let message = refused(&["advise", &ask(price, caches)]);
        assert!(message.contains(word), "{message}");
    }
}

#[test]
fn compare_adds_up_the_prices_of_disks_and_flash_devices() {
    let folder = Folder::new();
    let stack = |name: &str, cache: &str| {
        let text = format!(
            "seed = 1\n[workload]\nkind = \"synthetic\"\nrequests = 400\nread_share = 0.5\nsize = \"4KiB\"\n\
             region_size = \"64MiB\"\narrivals = {{ process = \"poisson\", rate_per_s = 40 }}\n{cache}[volume]\n\
             layout = \"raid5\"\ndrives = 4\ndrive = \"quantum-atlas-10k\"\n"
        );
        folder.put(&format!("{name}.toml"), &text)
    };
    let cache = "[cache]\nkind = \"bcache\"\ndrive = \"samsung-870-evo-1tb\"\nsize = \"512MiB\"\n";
    let (without, with) = (stack("without", ""), stack("with", cache));
    let compared = |prices: &[&str]| json(&[&["compare", &without, &with][..], prices].concat());
    let price = |answer: &Value, name: &str| {
        let devices = answer["devices"].as_array().unwrap();
        let one = devices.iter().find(|one| one["name"] == name).unwrap();
        (one["price"].clone(), one["disks"].clone())
    };
    let both = compared(&["--drive-price", "110.5", "--flash-price", "90"]);
    assert_eq!(price(&both, "without"), (442.0.into(), 4.into()));
    assert_eq!(price(&both, "with"), (532.0.into(), 4.into()));
    // Without the price of a flash device, the price of the stack with one is unknown.
    let disks = compared(&["--drive-price", "0"]);
    assert_eq!(price(&disks, "without").0, 0.0);
    assert_eq!(price(&disks, "with").0, Value::Null);
    for option in ["--drive-price", "--flash-price"] {
        for value in ["-1", "nan", "inf", "dear"] {
            let message = refused(&["compare", &without, &with, &format!("{option}={value}")]);
            let said = format!("found {value}; expected a price, 0 or more");
            assert!(
                message.contains(option) && message.contains(&said),
                "{message}"
            );
        }
    }
}

#[test]
fn a_mix_of_traces_is_a_load_and_what_would_shorten_one_of_them_is_refused() {
    let folder = Folder::new();
    small_requests(&folder, "load", "raid0", 1, &poisson(40.0));
    let sample = |name: &str| {
        std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join(format!("../../samples/{name}.parquet"))
    };
    let wishes = folder.put(
        "mix.toml",
        &format!(
            "stack = \"load.toml\"\n[[load]]\npath = \"{}\"\n[[load]]\npath = \"{}\"\n[drives]\nmodel = \"fujitsu-mas3735nc\"\ncount = 4\n\
             [wishes]\nfailures = 1\np99 = \"1s\"\n[choices]\nlayouts = [\"raid10\", \"raid5\", \"raid6\"]\nchunks = [\"64KiB\"]\n\
             elevators = [\"mq-deadline\"]\nwrite_caches = [false]\nstripe_caches = [256]\n",
            sample("pgbench").display(),
            sample("compile").display()
        ),
    );
    let advice = json(&["advise", &wishes, "--to", "3s"]);
    let workloads = advice["candidates"][0]["report"]["workloads"]
        .as_array()
        .unwrap();
    let names: Vec<&str> = workloads
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["pgbench", "compile"]);
    // Each layout after the first has a reason against it.
    let first = advice["finalists"][0]["layout"].as_str().unwrap();
    let sentences = advice["recommendation"].to_string();
    for other in ["raid10", "raid5", "raid6"]
        .into_iter()
        .filter(|other| *other != first)
    {
        let named = [
            format!("Second is {other} of 4"),
            format!("Why not {other} of 4"),
        ];
        assert!(
            named.iter().any(|words| sentences.contains(words)),
            "{other}: {sentences}"
        );
    }
    let message = refused(&["advise", &wishes, "--requests", "100"]);
    assert!(message.contains("workloads[0].requests=1000"), "{message}");
}

#[test]
fn watts_of_a_data_sheet_are_watts_of_advice() {
    let folder = Folder::new();
    let load = small_requests(&folder, "load", "raid0", 1, &poisson(40.0));
    let drive = folder.name("mine.toml");
    let sheet = [
        "drive",
        "new",
        "--capacity",
        "4T",
        "--rpm",
        "7200",
        "--outer",
        "200",
        "-o",
        &drive,
    ];
    let asked = [
        "advise",
        &load,
        "--drive",
        &drive,
        "--drives",
        "4",
        "--failures",
        "2",
        "--watts",
        "33",
    ];
    let asked = [&asked[..], &["--requests", "300"]].concat();
    json(&sheet);
    assert!(refused(&asked).contains("--idle-w"));
    assert!(refused(&[&sheet[..], &["--idle-w", "5"]].concat()).contains("--active-w"));
    let wrong = refused(&[&sheet[..], &["--idle-w", "5", "--active-w", "4"]].concat());
    assert!(
        wrong.contains("--active-w") && wrong.contains("idle_a_w"),
        "{wrong}"
    );
    json(
        &[
            &sheet[..],
            &["--idle-w", "5", "--active-w", "8", "--standby-w", "0.7"],
        ]
        .concat(),
    );
    let config = std::fs::read_to_string(&drive).unwrap();
    for line in [
        "idle_a_w = 5.0",
        "read_w = 8.0",
        "seek_w = 10.0",
        "standby_w = 0.7",
    ] {
        assert!(config.contains(line), "{line}: {config}");
    }
    let watts = json(&asked)["finalists"][0]["healthy"]["mean_w"]
        .as_f64()
        .unwrap();
    assert!((20.0..33.0).contains(&watts), "{watts}");
}

#[test]
fn wishes_that_cannot_be_are_refused_with_what_could() {
    let folder = Folder::new();
    let load = small_requests(&folder, "load", "raid0", 1, &poisson(40.0));
    let drives = [
        "advise",
        &load,
        "--drive",
        "seagate-cheetah-9lp",
        "--drives",
        "3..4",
    ];
    for (wishes, words) in [
        (
            &["--usable", "100TB", "--failures", "1"][..],
            &["at most 27.3 GB are usable, by raid5 of 4"][..],
        ),
        (
            &["--failures", "3"],
            &[
                "at most 2 failed drives are survived, by raid6 of 4",
                "--failures",
            ],
        ),
        (&["--streams", "5"], &["no streams", "kind = \"streams\""]),
        (&["--watts", "50"], &["[power]"]),
        (&["--price", "50"], &["--drive-price"]),
        (
            &["--price", "50", "--drive-price", "20"],
            &["no layout of 3 to 4 drives"],
        ),
        (
            &["--drive-price=-5"],
            &["[drives] price, or --drive-price: found -5; expected a number above 0"],
        ),
        (
            &["--flash-price=-5"],
            &["--flash-price: found -5; expected"],
        ),
        (&["--price=-5"], &["price: found -5; expected"]),
        (&["--drives", "0"], &["from 1 to 64"]),
        (&["--mttf-hours", "0"], &["above 0"]),
    ] {
        let message = refused(
            &[
                &drives[..if wishes[0] == "--drives" { 4 } else { 6 }],
                wishes,
            ]
            .concat(),
        );
        assert!(
            words.iter().all(|part| message.contains(part)),
            "{wishes:?}: {message}"
        );
    }
    assert!(refused(&["advise", &load]).contains("--drive"));
    assert!(refused(&["advise", &load, "--drive", "x24"]).contains("--drives"));
}
