//! Tests that a Perfetto trace of a window agrees with the run.

use crate::common::{Folder, fullstroke, refused, success};
use crate::read_back::{DecodedSlice, Trace};
use std::collections::HashMap;
use std::path::PathBuf;

/// Writes a stack with `rate_per_s` random requests per second for a volume.
fn stack(folder: &Folder, rate_per_s: u32, volume: &str) -> String {
    let text = format!(
        "seed = 3\n[workload]\nkind = \"synthetic\"\nrequests = 400\nread_share = 0.6\nsize = \"8KiB\"\n\
         arrivals = {{ process = \"poisson\", rate_per_s = {rate_per_s} }}\n[volume]\n{volume}\n"
    );
    folder.put("stack.toml", &text)
}

/// Reads a log. Returns its rows by request, and each row's columns by name.
fn log(path: &str) -> HashMap<u64, HashMap<String, String>> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = text.lines();
    let names: Vec<String> = lines
        .next()
        .unwrap()
        .split(',')
        .map(str::to_owned)
        .collect();
    let row = |line: &str| -> HashMap<String, String> {
        names
            .iter()
            .cloned()
            .zip(line.split(',').map(str::to_owned))
            .collect()
    };
    lines
        .map(row)
        .map(|row| (row["request"].parse().unwrap(), row))
        .collect()
}

/// True if a track shows service of requests.
fn serves(track: &str) -> bool {
    track.starts_with("arm") || track.starts_with("buffer")
}

/// Returns the sums of overhead, seek, rotation and transfer over slices of an arm.
fn parts<'a>(slices: impl Iterator<Item = &'a DecodedSlice>) -> [u64; 4] {
    let mut sums = [0; 4];
    for slice in slices {
        let part = match slice.name.as_str() {
            "overhead" => 0,
            "seek" | "head switch" => 1,
            "rotation" => 2,
            "transfer" => 3,
            other => panic!("an arm does `{other}`"),
        };
        sums[part] += slice.end - slice.begin;
    }
    sums
}

fn logged(row: &HashMap<String, String>) -> [u64; 4] {
    ["overhead_ns", "seek_ns", "rotation_ns", "transfer_ns"].map(|name| row[name].parse().unwrap())
}

/// Runs a stack with a log and with a trace of a window.
fn traced(
    folder: &Folder,
    stack: &str,
    window: &str,
) -> (Trace, HashMap<u64, HashMap<String, String>>) {
    let (out, rows) = (folder.name("out.pftrace"), folder.name("log.csv"));
    success(&[
        "run",
        stack,
        "--log",
        &rows,
        "--perfetto",
        &out,
        "--perfetto-window",
        window,
    ]);
    (Trace::read(&std::fs::read(out).unwrap()), log(&rows))
}

#[test]
fn what_an_arm_does_for_a_request_adds_up_to_the_logs_parts() {
    let folder = Folder::new();
    // Most requests wait, and the drive reorders its queue.
    let stack = stack(
        &folder,
        90,
        "layout = \"jbod\"\ndrives = 1\ndrive = \"seagate-cheetah-9lp\"",
    );
    let (trace, rows) = traced(&folder, &stack, "..");
    assert_eq!(trace.on(|name| name.starts_with("requests")).count(), 400);
    for slice in trace.on(|name| name.starts_with("requests")) {
        let origin = slice.number("request");
        let row = &rows[&origin];
        assert_eq!(
            (slice.begin, slice.end),
            (
                row["arrived_ns"].parse().unwrap(),
                row["finished_ns"].parse().unwrap()
            )
        );
        for name in [
            "lbn",
            "sectors",
            "operation",
            "queue_ns",
            "seek_ns",
            "rotation_ns",
            "transfer_ns",
        ] {
            assert_eq!(slice.notes[name], row[name], "{name} of request {origin}");
        }
        let of_request = |slice: &&DecodedSlice| slice.number("request") == origin;
        assert_eq!(
            parts(trace.on(serves).filter(of_request)),
            logged(row),
            "{origin}"
        );
    }
    // Each request's flow goes from the request over its slot to the arm.
    assert_eq!(trace.flows.len(), 400);
    assert!(
        trace.flows.values().all(|slices| (2..=3).contains(slices)),
        "{:?}",
        trace.flows
    );
    assert!(trace.counters.iter().any(|(_, _, value)| *value > 2));
}

#[test]
fn a_plan_of_parity_shows_all_its_drive_requests_within_the_window() {
    let folder = Folder::new();
    let stack = stack(
        &folder,
        150,
        "layout = \"raid5\"\ndrives = 5\ndrive = \"seagate-cheetah-9lp\"",
    );
    let (trace, rows) = traced(&folder, &stack, "0.5..1.75");
    let inside = |at: u64| (500_000_000..=1_750_000_000).contains(&at);
    assert!(
        trace
            .slices
            .iter()
            .all(|slice| inside(slice.begin) && inside(slice.end))
    );
    assert!(trace.counters.iter().all(|(_, at, _)| inside(*at)));
    let names: Vec<&str> = trace.processes.values().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "workload", "requests", "drive 0", "drive 1", "drive 2", "drive 3", "drive 4"
        ]
    );
    let mut writes = 0;
    for slice in trace.on(|name| name.starts_with("requests")) {
        let origin = slice.number("request");
        let slots: Vec<&DecodedSlice> = trace
            .on(|name| name.starts_with("slot"))
            .filter(|slot| slot.number("request") == origin)
            .collect();
        assert!(
            slots
                .iter()
                .all(|slot| slice.begin <= slot.begin && slot.end <= slice.end)
        );
        let reads = slots.iter().filter(|slot| slot.name == "read").count();
        if slice.name == "write" && slots.len() == 4 {
            // A read-modify-write reads data and parity, then writes both.
            assert_eq!(reads, 2, "{slots:?}");
            writes += 1;
        }
        // The log has the breakdown of the drive request that ended last, and adds the time until
        // md's thread answers.
        let last = slots.iter().max_by_key(|slot| slot.end).unwrap();
        let mut parts =
            ["overhead_ns", "seek_ns", "rotation_ns", "transfer_ns"].map(|name| last.number(name));
        parts[0] += slice.end - last.end;
        assert_eq!(parts, logged(&rows[&origin]));
    }
    assert!(writes > 20, "{writes}");
}

#[test]
fn each_arm_of_a_drive_of_two_has_its_track() {
    let folder = Folder::new();
    let stack = stack(
        &folder,
        120,
        "layout = \"jbod\"\ndrives = 1\ndrive = \"seagate-exos-2x18-18tb\"",
    );
    let (trace, rows) = traced(&folder, &stack, "..");
    for arm in ["arm 0", "arm 1"] {
        assert!(trace.on(|name| name == arm).count() > 100, "{arm}");
    }
    for (origin, row) in &rows {
        let of_request = |slice: &&DecodedSlice| slice.number("request") == *origin;
        assert_eq!(
            parts(trace.on(serves).filter(of_request)),
            logged(row),
            "{origin}"
        );
    }
}

#[test]
fn a_run_is_the_same_whether_it_is_traced_or_not() {
    let folder = Folder::new();
    let stack = stack(
        &folder,
        90,
        "layout = \"raid1\"\ndrives = 2\ndrive = \"seagate-cheetah-9lp\"",
    );
    let numbers = |more: &[&str]| -> serde_json::Value {
        let mut report: serde_json::Value =
            serde_json::from_str(&success(&[&["run", &stack, "--json"], more].concat())).unwrap();
        ["wall_s", "requests_per_wall_s", "peak_rss_mb"]
            .iter()
            .for_each(|name| report[*name] = 0.into());
        report
    };
    assert_eq!(
        numbers(&["--perfetto", &folder.name("out.pftrace")]),
        numbers(&[])
    );
}

#[test]
fn what_cannot_be_written_or_shown_is_said() {
    let folder = Folder::new();
    let stack = stack(
        &folder,
        90,
        "layout = \"jbod\"\ndrives = 1\ndrive = \"seagate-cheetah-9lp\"",
    );
    let nowhere: PathBuf = folder.0.path().join("no/such/out.pftrace");
    let error = refused(&["run", &stack, "--perfetto", nowhere.to_str().unwrap()]);
    assert!(error.contains("no/such/out.pftrace"), "{error}");
    let out = folder.name("out.pftrace");
    for window in ["3..1", "x..2", "-1..2", "5", "inf.."] {
        let error = refused(&[
            "run",
            &stack,
            "--perfetto",
            &out,
            &format!("--perfetto-window={window}"),
        ]);
        assert!(
            error.contains(window) && error.contains("FROM..TO"),
            "{error}"
        );
    }
    let output = fullstroke(&[
        "run",
        &stack,
        "--perfetto",
        &out,
        "--perfetto-window",
        "90000..",
    ]);
    let note = String::from_utf8(output.stderr).unwrap();
    assert!(
        output.status.success() && note.contains("no request begins and ends in that window"),
        "{note}"
    );
    assert!(Trace::read(&std::fs::read(&out).unwrap()).slices.is_empty());
}

/// Returns the slices with their tracks, for processes whose name begins with `prefix`.
fn by_track(trace: &Trace, prefix: &str) -> Vec<(String, String, u64, u64)> {
    let named = |slice: &DecodedSlice| {
        let (process, track) = &trace.tracks[&slice.track];
        let process = trace.processes[process].strip_prefix(prefix)?;
        Some((
            format!("{process} {track}"),
            slice.name.clone(),
            slice.begin,
            slice.end,
        ))
    };
    let mut slices: Vec<_> = trace.slices.iter().filter_map(named).collect();
    slices.sort();
    slices
}

#[test]
fn compared_stacks_are_processes_of_their_own_on_one_timeline() {
    let folder = Folder::new();
    let stack = stack(
        &folder,
        90,
        "layout = \"raid0\"\ndrives = 2\nchunk = \"64KiB\"\ndrive = \"seagate-cheetah-9lp\"",
    );
    let (both, one) = (folder.name("both.pftrace"), folder.name("one.pftrace"));
    let read = |path: &str| Trace::read(&std::fs::read(path).unwrap());
    let window = ["--perfetto-window", "0.5..2"];
    let vary = ["--vary", "volume.chunk=16KiB,64KiB", "--seeds", "2"];
    success(
        &[
            &["compare", &stack, "--perfetto", &both][..],
            &window,
            &vary,
        ]
        .concat(),
    );
    for chunk in ["16KiB", "64KiB"] {
        let key = format!("volume.chunk={chunk}");
        success(
            &[
                &["run", &stack, "--set", &key, "--perfetto", &one][..],
                &window,
            ]
            .concat(),
        );
        let alone = by_track(&read(&one), "");
        assert!(alone.len() > 200, "{}", alone.len());
        assert_eq!(by_track(&read(&both), &format!("stack {key}: ")), alone);
    }
    assert_eq!(
        read(&both).processes.len(),
        8,
        "one seed of each: {:?}",
        read(&both).processes
    );
    let error = refused(&["compare", &stack, "--find", "streams", "--perfetto", &both]);
    assert!(error.contains("--perfetto"), "{error}");
}
