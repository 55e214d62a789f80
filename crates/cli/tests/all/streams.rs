//! Tests of media streams.

use crate::common::{fullstroke, refused, success};
use serde_json::Value;

const STACK: &str = "seed = 3\n[workload]\nkind = \"streams\"\nstreams = 6\nbit_rate = \"4Mbit/s\"\n\
    duration = \"5s\"\nread_size = \"128KiB\"\n[volume]\ndrive = \"seagate-cheetah-9lp\"\n";

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }
    fn put(&self, text: &str) -> String {
        let path = self.0.path().join("stack.toml");
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

#[test]
fn streams_are_reported_for_people_and_for_programs() {
    let folder = Folder::new();
    let stack = folder.put(STACK);
    let text = success(&["run", &stack]);
    for part in ["6 started", "underruns", "longest stall ms", "start-up ms"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let report: Value = serde_json::from_str(&success(&["run", &stack, "--json"])).unwrap();
    let streams = &report["streams"];
    assert_eq!(
        (&streams["playing"], &streams["underruns"]),
        (&6.into(), &0.into())
    );
    assert_eq!(streams["each"].as_array().unwrap().len(), 6);
    assert!(streams["start_up_ms"]["max"].as_f64().unwrap() > 1.0);
    let by = [
        "compare",
        &stack,
        "--vary",
        "workload.streams=6,60",
        "--by",
        "streams.start_up_ms.max",
    ];
    assert!(success(&by).contains("is best by streams.start_up_ms.max"));
}

#[test]
fn the_most_streams_are_found() {
    let folder = Folder::new();
    let stack = folder.put(STACK);
    let find = [
        "run",
        &stack,
        "--find",
        "streams",
        "--replications",
        "2",
        "--confidence",
        "0.9",
    ];
    let found: Value = serde_json::from_str(&success(&[&find[..], &["--json"]].concat())).unwrap();
    assert!(
        found["streams"].as_u64().unwrap() >= 6 && found["tried"].as_array().unwrap().len() > 3
    );
    assert!(
        (found["underrun_probability_max"].as_f64().unwrap() - (1.0 - 0.1f64.sqrt())).abs() < 1e-9
    );
    let text = success(&find);
    assert!(
        text.contains("With 90 % confidence at most 68.4 %"),
        "{text}"
    );
}

#[test]
fn what_cannot_be_names_its_line_and_key() {
    let folder = Folder::new();
    for (found, instead, parts) in [
        (
            "streams = 6",
            "streams = 0",
            ["stack.toml:4", "`workload.streams`: found 0; expected 1 to"],
        ),
        (
            "4Mbit/s",
            "0bit/s",
            ["stack.toml:5", "`workload.bit_rate`: found 0bit/s"],
        ),
        (
            "4Mbit/s",
            "4MB/s",
            [
                "stack.toml:5",
                "`MB/s` is not a unit here; expected one of bit/s",
            ],
        ),
        (
            "4Mbit/s",
            "9999Gbit/s",
            ["stack.toml:5", "lower the rate, or raise read_size"],
        ),
        (
            "read_size",
            "read_sise",
            ["stack.toml:7", "did you mean `read_size`?"],
        ),
        (
            "read_size",
            "file_size = \"100GiB\"\nread_size",
            ["stack.toml:7", "6 files of 100GiB are larger"],
        ),
        (
            "read_size",
            "variation = { distribution = \"uniform\", shore = 1 }\nread_size",
            [
                "stack.toml:7",
                "`workload.variation.shore`: unknown key (did you mean `share`?)",
            ],
        ),
        (
            "read_size",
            "start_up_buffer = \"2MiB\"\nclient_buffer = \"1MiB\"\nread_size",
            [
                "stack.toml:7",
                "`workload.start_up_buffer`: found 2MiB, more than the client's buffer of 1MiB",
            ],
        ),
    ] {
        let error = refused(&["run", &folder.put(&STACK.replace(found, instead))]);
        assert!(
            parts.iter().all(|part| error.contains(part)),
            "{parts:?}: {error}"
        );
    }
    let stack = folder.put(STACK);
    assert!(refused(&["run", &stack, "--find", "stream"]).contains("streams"));
    assert!(
        refused(&["run", &stack, "--find", "streams", "--confidence", "1"]).contains("below 1")
    );
    assert!(refused(&["run", &stack, "--confidence", "0.9"]).contains("--find"));
}

#[test]
fn real_streams_are_told_in_the_words_of_simulated_ones() {
    let folder = Folder::new();
    let (stack, disk) = (folder.put(STACK), folder.0.path().join("disk"));
    std::fs::File::create(&disk)
        .unwrap()
        .set_len(64 << 20)
        .unwrap();
    let disk = disk.to_str().unwrap();
    let call = |more: &[&str]| {
        let rest = [
            "--rate",
            "1Mbit/s",
            "--start-interval",
            "20ms",
            "--duration",
            "100ms",
            "--cached",
        ];
        let all = [&["stream-test", "--on"], more, &rest].concat();
        all.into_iter().map(str::to_owned).collect::<Vec<String>>()
    };
    let json = call(&[disk, "--streams", "3", "--stack", &stack, "--json"]);
    let output = fullstroke(&json.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let keys = |part: &str| {
        report[part]
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect::<Vec<_>>()
    };
    assert_eq!(keys("measured"), keys("simulated"));
    assert_eq!(
        (&report["measured"]["started"], &report["all_started"]),
        (&3.into(), &true.into())
    );
    let path = folder.0.path().to_str().unwrap();
    let text = call(&[path, "--streams", "2", "--file-size", "256KiB"]);
    let text = success(&text.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(
        text.contains("played at a time without a pause") && text.contains("sustained"),
        "{text}"
    );
    assert_eq!(
        std::fs::read_dir(path).unwrap().count(),
        2,
        "files made for the test are removed"
    );
}

#[test]
fn what_cannot_be_streamed_is_refused() {
    let folder = Folder::new();
    let path = folder.0.path().to_str().unwrap();
    let refused =
        |more: &[&str]| refused(&[&["stream-test", "--rate", "1Mbit/s", "--on"], more].concat());
    assert!(refused(&["/nowhere/at/all"]).contains("No such file"));
    assert!(
        refused(&[path, "--file-size", "1000000GiB", "--files", "1"]).contains("of free space")
    );
    assert!(refused(&[path, "--read-size", "1000B"]).contains("--read-size: found 1000B"));
    assert!(
        refused(&[
            path,
            "--streams",
            "2000",
            "--files",
            "1",
            "--file-size",
            "64KiB"
        ])
        .contains("up to 1000")
    );
}
