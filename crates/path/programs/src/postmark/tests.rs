use crate::conformance::{PlainHost, keys};
use crate::{ProgramKind, REGISTRY};
use proptest::prelude::*;
use serde_json::{Value, json};

fn run(value: Value, text: Option<&str>) -> Result<PlainHost, String> {
    let mut plain = PlainHost::default();
    plain.run("postmark", &keys(value), text, 1)?;
    Ok(plain)
}

fn figure(plain: &PlainHost, name: &str) -> f64 {
    let found = plain
        .report
        .figures
        .iter()
        .find(|(known, _)| *known == name);
    found.unwrap_or_else(|| panic!("{name}")).1
}

/// Returns one operation per line, in the format of the files in `strace/`.
fn operations(plain: &PlainHost) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for (_, call) in &plain.calls {
        let path = call.split('"').nth(1).unwrap_or_default();
        let bytes = call
            .split("bytes: ")
            .nth(1)
            .map(|rest| rest.trim_end_matches(" }"));
        match call.split(' ').next() {
            Some("Open") if call.contains("append: true") => lines.push(format!("append {path}")),
            Some("Open") if call.contains("create: true") => lines.push(format!("create {path}")),
            Some("Open") => lines.push(format!("read {path}")),
            Some("MakeDirectory") => lines.push(format!("mkdir {path}")),
            Some("Remove") => lines.push(format!("remove {path}")),
            Some("Close") => {}
            _ => *lines.last_mut().unwrap() += &format!(" {}", bytes.unwrap()),
        }
    }
    lines
}

#[test]
fn its_calls_are_those_of_postmark_itself() {
    for (buffering, strace) in [
        (true, include_str!("strace/buffered.txt")),
        (false, include_str!("strace/unbuffered.txt")),
    ] {
        let text = format!(
            "set number 15\nset transactions 30\nset size 500 20000\nset subdirectories 3\nset read 6000\n\
             set write 5000\nset seed 7\nset buffering {buffering}\nrun\n"
        );
        let plain = run(json!({ "draws": "file" }), Some(&text)).unwrap();
        let expected: Vec<&str> = strace
            .lines()
            .filter(|line| !line.starts_with('#'))
            .collect();
        assert_eq!(operations(&plain), expected, "buffering {buffering}");
    }
}

#[test]
fn its_report_is_that_of_postmark_itself() {
    let text = "set number 15\nset transactions 30\nset size 500 20000\nset subdirectories 3\nset seed 7\nrun\n";
    let plain = run(json!({ "draws": "file" }), Some(text)).unwrap();
    // All times fall within the first second, as on a modern machine.
    assert_eq!(
        plain.report.text,
        "Time:\n\t1 seconds total\n\t1 seconds of transactions (30 per second)\n\nFiles:\n\
         \t30 created (30 per second)\n\t\tCreation alone: 15 files (15 per second)\n\
         \t\tMixed with transactions: 15 files (15 per second)\n\t12 read (12 per second)\n\
         \t18 appended (18 per second)\n\t30 deleted (30 per second)\n\
         \t\tDeletion alone: 15 files (15 per second)\n\t\tMixed with transactions: 15 files (15 per second)\n\n\
         Data:\n\t126.07 kilobytes read (126.07 kilobytes per second)\n\
         \t315.00 kilobytes written (315.00 kilobytes per second)\n"
    );
    let terse = run(json!({ "draws": "file", "report": "terse" }), Some(text)).unwrap();
    let numbers = "1 1 30.00 30.00 15.00 15.00 12.00 18.00 30.00 15.00 15.00 129100.00 322561.00\n";
    assert_eq!(terse.report.text, numbers);
}

#[test]
fn nothing_is_left_and_bytes_and_transactions_are_what_is_said() {
    let plain = run(
        json!({ "number": 100, "transactions": 1000, "subdirectories": 5 }),
        None,
    )
    .unwrap();
    assert!(plain.files.is_empty() && plain.directories.is_empty());
    assert_eq!(plain.transactions, 1000);
    // Each call takes 1 µs.
    let seconds = plain.calls.len() as f64 / 1e6;
    let mb = figure(&plain, "written_mb_per_s") * figure(&plain, "elapsed_s");
    assert!((mb - plain.written as f64 / 1e6).abs() < 1e-6, "{mb}");
    assert!(figure(&plain, "elapsed_s") < seconds && figure(&plain, "transactions_s") < seconds);
    let rate = 1000.0 / figure(&plain, "transactions_s");
    assert!((figure(&plain, "transactions_per_s") / rate - 1.0).abs() < 1e-9);
}

#[test]
fn instances_have_directories_and_draws_of_their_own_unless_the_file_says_all() {
    let value =
        |draws: &str| json!({ "number": 20, "transactions": 40, "instances": 3, "draws": draws });
    let of = |plain: &PlainHost, process| -> Vec<String> {
        let top = format!("postmark{process}/");
        let own = plain.calls.iter().filter(|call| call.0 == process);
        own.map(|call| call.1.replace(&top, "")).collect()
    };
    let own = run(value("run"), None).unwrap();
    assert!(own.calls.iter().all(|(process, call)| {
        !call.contains("path") || call.contains(&format!("\"postmark{process}/"))
    }));
    assert_eq!(own.directories, ["postmark0", "postmark1", "postmark2"]);
    assert_ne!(of(&own, 0), of(&own, 1));
    let same = run(value("file"), None).unwrap();
    assert_eq!(of(&same, 0), of(&same, 2));
    let total = figure(&same, "transactions_per_s_total");
    assert!((total / figure(&same, "transactions_per_s") - 3.0).abs() < 1e-9);
}

#[test]
fn locations_are_drawn_by_weight() {
    let text = "set location a 1\nset location +b/c 3\nset number 4000\nset size 1\nset bias create -1\nrun\n";
    let plain = run(json!({}), Some(text)).unwrap();
    let created = |path: &str| {
        let path = format!("\"{path}/");
        plain
            .calls
            .iter()
            .filter(|call| call.1.contains("create: true") && call.1.contains(&path))
            .count()
    };
    assert_eq!(created("a") + created("b/c"), 4000);
    assert!((900..1100).contains(&created("a")), "{}", created("a"));
    assert!(
        plain
            .report
            .notes
            .iter()
            .any(|note| note.contains("appends chose")),
        "{:?}",
        plain.report.notes
    );
}

#[test]
fn a_pool_that_is_used_up_ends_the_run_and_one_that_is_full_takes_no_more() {
    let value = json!({ "number": 10, "transactions": 1000, "bias_create": 0 });
    let plain = run(value, None).unwrap();
    assert_eq!(
        (plain.transactions, plain.report.text.as_str()),
        (10, "out of files!\n")
    );
    assert!(
        plain.report.notes[0].contains("no files left"),
        "{:?}",
        plain.report.notes
    );
    let value = json!({ "number": 10, "transactions": 1000, "bias_create": 10, "bias_read": 10 });
    let plain = run(value, None).unwrap();
    assert_eq!(plain.transactions, 1000);
    assert!(
        plain.report.notes[0].starts_with("990 creations"),
        "{:?}",
        plain.report.notes
    );
}

#[test]
fn several_runs_go_one_after_another_and_keys_rule_each() {
    let text = "set number 50\nrun\nset number 70\nset transactions 20\nrun\n";
    let plain = run(json!({ "transactions": 30 }), Some(text)).unwrap();
    assert_eq!(plain.transactions, 60);
    assert_eq!(plain.report.text.matches("seconds total").count(), 2);
    assert!(plain.report.text.contains("Creation alone: 70 files"));
}

#[test]
fn keys_that_cannot_be_are_named() {
    for (value, key, found) in [
        (json!({ "number": 0 }), "number", "found 0"),
        (
            json!({ "size_low": "1MiB" }),
            "size_low",
            "found sizes from 1048576 to 10000",
        ),
        (
            json!({ "size_high": 100 }),
            "size_high",
            "found sizes from 500 to 100",
        ),
        (
            json!({ "size_high": "2GiB" }),
            "size_high",
            "found 2147483648",
        ),
        (json!({ "bias_read": 11 }), "bias_read", "found 11"),
        (json!({ "instances": 0 }), "instances", "found 0"),
        (
            json!({ "instances": 30, "number": 1_000_000 }),
            "instances",
            "at most 10000000 files",
        ),
        (
            json!({ "location": ["a/../b"] }),
            "location",
            "without `..`",
        ),
        (json!({ "stdio": 0 }), "stdio", "found 0"),
        (json!({ "transactions": 0 }), "transactions", "found 0"),
    ] {
        let error = run(value, None).err().expect(key);
        assert!(
            error.contains(&format!("`{key}`")) && error.contains(found),
            "{key}: {error}"
        );
    }
}

#[test]
fn a_call_that_fails_ends_it_and_names_the_file() {
    let entry = REGISTRY
        .iter()
        .find(|entry| entry.name == "postmark")
        .unwrap();
    let mut program = ProgramKind::recipe(entry, &keys(json!({})), None)
        .unwrap()
        .program(fullstroke_units::Seed(1));
    let mut events = crate::Events::default();
    let mut turn = |answer: Option<&crate::CallAnswer>| {
        let turn = crate::ProgramTurn {
            now: fullstroke_units::Time::ZERO,
            process: 0,
            answer,
            events: &mut events,
        };
        format!("{:?}", program.next(turn))
    };
    assert!(turn(None).contains("Open"));
    let answer = crate::CallAnswer {
        kind: crate::CallKind::Create,
        began: fullstroke_units::Time::ZERO,
        ended: fullstroke_units::Time::ZERO,
        result: Err(crate::CallError::Device),
    };
    let failed = turn(Some(&answer));
    assert!(
        failed.contains("instance 0") && failed.contains("`1`"),
        "{failed}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_configuration_ends_with_nothing_left(
        number in 1u64..40,
        transactions in 1u64..100,
        low in 1u64..5000,
        more in 0u64..20_000,
        (read, write) in (1u64..9000, 1u64..9000),
        (bias_read, bias_create) in (-1i64..=10, -1i64..=10),
        (subdirectories, buffering) in (0u64..4, any::<bool>()),
    ) {
        let value = json!({
            "number": number, "transactions": transactions, "size_low": low, "size_high": low + more,
            "read": read, "write": write, "bias_read": bias_read, "bias_create": bias_create,
            "subdirectories": subdirectories, "buffering": buffering,
        });
        let plain = run(value, None).unwrap();
        prop_assert!(plain.files.is_empty() && plain.directories.is_empty());
        prop_assert!(plain.transactions <= transactions);
        prop_assert!(plain.report.figures.iter().all(|(_, value)| value.is_finite()));
    }
}
