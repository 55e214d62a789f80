//! Tests of replays and recordings on files and on served arrays. No test limits the lateness of a
//! request, because lateness depends on the host.

use crate::common::{fullstroke, refused};
use crate::file_systems::ExportedDisk;
use crate::programs::{installed, output, run};
use crate::server::{PATIENCE, StackFolder, text};
use crate::stacks::{DISK, RAID5};
use fullstroke_trace::{TraceOptions, TraceReader, TraceRecord};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Writes a trace with a pair of 4 KiB reads every 3 ms. Each read takes 2 ms (MSR's columns count
/// 100 ns), so every second request finds one outstanding.
fn trace(folder: &Path, pairs: u64) -> String {
    let row = |i: u64| {
        let (time, start) = (1_000_000 + i / 2 * 30_000, i * 7919 % 4000 * 4096);
        format!("{time},host,0,Read,{start},4096,20000\n")
    };
    let path = folder.join("trace.csv");
    fs::write(&path, (0..2 * pairs).map(row).collect::<String>()).unwrap();
    text(&path)
}

/// Returns the JSON output of `replay`.
fn replayed(arguments: &[&str]) -> Value {
    let output = fullstroke(&[&["replay", "--json"], arguments].concat());
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        (output.status.code(), error.as_str()),
        (Some(0), ""),
        "{arguments:?}"
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Creates a file of 16 MiB to replay on. Direct I/O needs a disk, and the folder for temporary
/// files may be in memory.
fn file() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = folder.path().join("device");
    fs::write(&file, vec![0x5a; 16 << 20]).unwrap();
    (folder, file)
}

#[test]
fn a_replay_says_what_was_issued_and_whether_it_was_faithful() {
    let (folder, file) = file();
    let (trace, file) = (trace(folder.path(), 100), text(&file));
    let log = text(&folder.path().join("log.parquet"));
    let report = replayed(&[&trace, "--on", &file, "--buffered", "--log", &log]);
    assert_eq!(
        (&report["requests"], &report["errors"]),
        (&200.into(), &0.into())
    );
    assert_eq!(report["verdict"]["faithful"], false);
    let says = report["verdict"]["says"].as_str().unwrap();
    assert!(
        says.starts_with("not faithful in time") && says.contains("the page cache stood before"),
        "{says}"
    );
    assert_eq!(report["outstanding"]["trace_mean"], 0.5);
    assert_eq!(
        report["operations"][0]["response_ms"]
            .as_object()
            .unwrap()
            .len(),
        5
    );
    let mut reader = TraceReader::open(Path::new(&log), &TraceOptions::default()).unwrap();
    assert_eq!(std::iter::from_fn(|| reader.next().unwrap()).count(), 200);
    // A single waiting thread has no outstanding request at issue. The report counts the late
    // requests.
    let report = replayed(&[&trace, "--on", &file, "--buffered", "--threads", "1"]);
    assert_eq!(
        (&report["threads"], &report["requests"]),
        (&1.into(), &200.into())
    );
    assert_eq!(
        (&report["outstanding"]["mean"], &report["io"]),
        (&0.0.into(), &"threads".into())
    );
    assert_eq!(report["gaps"].as_array().unwrap().len(), 21);
    // By order alone the replay promises nothing; by load it promises another property.
    let arguments = |pace| [trace.as_str(), "--on", &file, "--buffered", "--pace", pace];
    let report = replayed(&arguments("as-fast"));
    assert_eq!(report["verdict"]["faithful"], Value::Null);
    let report = replayed(&arguments("load"));
    assert!(
        report["verdict"]["says"]
            .as_str()
            .unwrap()
            .contains("in load")
    );
    assert!(report["outstanding"]["bias"].as_f64().unwrap() <= 0.0);
}

#[test]
fn what_cannot_be_replayed_is_refused_with_its_name() {
    let (folder, file) = file();
    let (trace, file) = (trace(folder.path(), 2), text(&file));
    for (arguments, said) in [
        (
            vec![trace.as_str(), "--on", "/nowhere/sdx"],
            "`/nowhere/sdx`: No such file",
        ),
        (vec!["/nowhere/trace", "--on", &file], "/nowhere/trace"),
        (
            vec![&trace, "--on", &file, "--outstanding", "3"],
            "--outstanding has no effect with --pace timing",
        ),
        (
            vec![&trace, "--on", &file, "--pace", "load", "--time-scale", "2"],
            "--time-scale has no effect",
        ),
        (
            vec![&trace, "--on", &file, "--pace", "load", "--fio"],
            "--fio compares times of issue",
        ),
        (
            vec![&trace, "--on", &file, "--time-scale", "0"],
            "expected a factor above 0",
        ),
        (
            vec![&trace, "--on", &file, "--threads", "2", "--pace", "load"],
            "--threads has no effect with --pace load",
        ),
        (
            vec![&trace, "--on", &file, "--threads", "0"],
            "0 is not in 1..=256",
        ),
        (
            vec![&trace, "--on", &file, "--threads", "2", "--io", "threads"],
            "cannot be used with",
        ),
    ] {
        let error = refused(&[&["replay"], arguments.as_slice()].concat());
        assert!(error.contains(said), "{arguments:?}: {error}");
    }
}

#[test]
fn a_served_array_is_replayed_on_and_written_to_with_the_word_alone_and_unmounted() {
    if !installed(&["nbdfuse", "losetup", "fusermount3", "mount", "mkfs.ext4"]) {
        return;
    }
    let place = StackFolder::new(RAID5, 16);
    let server = place.serve(&["--no-delay"]);
    let Some(mut disk) = ExportedDisk::of(&server) else {
        return;
    };
    let device = disk.device().to_owned();
    let trace = trace(&place.path("."), 50);
    let report = replayed(&[&trace, "--on", &device, "--pace", "load"]);
    assert_eq!(report["requests"], 100);
    assert!(report["outstanding"]["bias"].as_f64().unwrap() <= 0.0);
    let writes = place.name("writes.csv");
    fs::write(&writes, "1000000,host,0,Write,8388608,4096,20000\n").unwrap();
    let error = refused(&["replay", &writes, "--on", &device]);
    assert!(
        error.contains("writes.csv") && error.contains("request 1 is a write"),
        "{error}"
    );
    output("mkfs.ext4", &["-q", &device]);
    disk.mount(&place.path("mounted"));
    let error = refused(&["replay", &writes, "--on", &device, "--writes", "overwrite"]);
    assert!(
        error.contains("mounted") && error.contains("it is not written to"),
        "{error}"
    );
    let file = place.name("file");
    let error = refused(&["replay", &writes, "--on", &file, "--writes", "overwrite"]);
    assert!(
        error.contains(&format!("the loop device `{device}` uses it")),
        "{error}"
    );
    disk.unmount();
    let report = replayed(&[&writes, "--on", &device, "--writes", "overwrite"]);
    assert_eq!(
        (&report["requests"], &report["operations"][0]["operation"]),
        (&1.into(), &"write".into())
    );
}

#[test]
fn a_device_whose_server_dies_ends_the_replay_with_the_request_that_failed() {
    if !installed(&["nbdfuse", "losetup", "fusermount3"]) {
        return;
    }
    let place = StackFolder::new(DISK, 16);
    let server = place.serve(&["--no-delay"]);
    let Some(disk) = ExportedDisk::of(&server) else {
        return;
    };
    let device = disk.device().to_owned();
    // The replay would take an hour, and the reads are not yet in the page cache of the underlying
    // file.
    let row = |i: u64| {
        format!(
            "{},host,0,Read,{},4096,20000\n",
            1_000_000 + i * 200_000,
            i % 4000 * 4096
        )
    };
    let trace = place.name("trace.csv");
    fs::write(&trace, (0..180_000).map(row).collect::<String>()).unwrap();
    replayed(&[&trace, "--on", &device, "--requests", "1"]);
    let killer = std::thread::spawn({
        let id = server.id();
        move || {
            std::thread::sleep(std::time::Duration::from_millis(400));
            rustix::process::kill_process(id, rustix::process::Signal::KILL).unwrap();
        }
    });
    let error = refused(&["replay", &trace, "--on", &device]);
    killer.join().unwrap();
    assert!(
        error.contains(&device)
            && error.contains("(read, sector")
            && error.contains("failed after"),
        "{error}"
    );
}

/// A loop device over a file. Dropping the value detaches the device.
struct LoopDevice(String);

impl LoopDevice {
    fn over(file: &str) -> Option<LoopDevice> {
        let set_up = run("losetup", &["--find", "--show", file]);
        if !set_up.status.success() {
            eprintln!(
                "skipped: no loop device: {}",
                String::from_utf8_lossy(&set_up.stderr).trim()
            );
            return None;
        }
        Some(LoopDevice(
            String::from_utf8(set_up.stdout).unwrap().trim().to_owned(),
        ))
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        run("losetup", &["-d", &self.0]);
    }
}

/// Returns the folder of tracefs, if mounted.
fn tracefs() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let line = mounts
        .lines()
        .find(|line| line.split(' ').nth(2) == Some("tracefs"));
    if line.is_none() {
        eprintln!("skipped: tracefs is not mounted");
    }
    Some(PathBuf::from(line?.split(' ').nth(1)?))
}

#[test]
fn what_is_replayed_on_a_device_is_what_its_recorder_sees() {
    if !installed(&["losetup"]) {
        return;
    }
    let Some(tracefs) = tracefs() else { return };
    let (folder, file) = file();
    let Some(device) = LoopDevice::over(&text(&file)) else {
        return;
    };
    let trace = trace(folder.path(), 200);
    replayed(&[&trace, "--on", &device.0, "--requests", "1"]);
    let [seen, done] = ["seen.parquet", "done.parquet"].map(|name| text(&folder.path().join(name)));
    let recorder = Command::new(env!("CARGO_BIN_EXE_fullstroke"))
        .args(["record", "--json", &device.0, &seen])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The recorder enables this event last.
    let instance = tracefs.join(format!("instances/fullstroke-{}", recorder.id()));
    let begun = Instant::now();
    while !fs::read(instance.join("events/block/block_bio_complete/enable"))
        .is_ok_and(|value| value[0] == b'1')
    {
        if begun.elapsed() > PATIENCE {
            let _ = kill_process(Pid::from_child(&recorder), Signal::KILL);
            let output = recorder.wait_with_output().unwrap();
            panic!(
                "it does not begin: {}",
                String::from_utf8_lossy(&output.stderr)
            );
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    replayed(&[&trace, "--on", &device.0, "--log", &done]);
    kill_process(Pid::from_child(&recorder), Signal::TERM).unwrap();
    let output = recorder.wait_with_output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let recording: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(recording["lost_events"], 0);
    assert!(!instance.exists(), "its instance stays");
    let read = |path: &str| {
        let mut reader = TraceReader::open(Path::new(path), &TraceOptions::default()).unwrap();
        std::iter::from_fn(move || reader.next().unwrap()).collect::<Vec<_>>()
    };
    let (seen, done) = (read(&seen), read(&done));
    // The replay reads the first block several times before its start, so the recording has more
    // requests.
    let seen = &seen[seen.len() - done.len()..];
    let extents = |records: &[TraceRecord]| {
        records
            .iter()
            .map(|record| record.extent)
            .collect::<Vec<_>>()
    };
    assert_eq!(extents(seen), extents(&done));
    assert!(
        seen.iter()
            .all(|record| record.issued.is_some() && record.completed.is_some())
    );
    for (seen, done) in seen.iter().zip(&done) {
        // A response seen inside the kernel is not longer than one seen outside. The recorder's
        // times are in microseconds.
        assert!(seen.response().unwrap().as_nanos() <= done.response().unwrap().as_nanos() + 2_000);
    }
}

#[test]
fn what_is_no_device_is_not_recorded() {
    let (_folder, file) = file();
    let error = refused(&["record", &text(&file), "out.parquet"]);
    assert!(error.contains("expected a block device"), "{error}");
    let error = refused(&["record", "/nowhere/sdx", "out.parquet"]);
    assert!(error.contains("`/nowhere/sdx`: No such file"), "{error}");
}
