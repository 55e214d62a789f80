//! Stacks whose workloads are programs, above file systems, memory and block layer.

use fullstroke_contract::{HostReadings, Operation, OperationReadings};
use fullstroke_engine::{Finished, Observer, RunOutcome};
use fullstroke_stack::{Overrides, Stack};
use std::fs;

/// Requests of the host.
#[derive(Default)]
pub(crate) struct HostRequests {
    pub(crate) requests: Vec<Finished>,
}

impl Observer for HostRequests {
    fn finished(&mut self, finished: &Finished) {
        let span = finished.completion.finished.since(finished.arrived);
        assert_eq!(
            finished.completion.breakdown.response(),
            span,
            "{finished:?}"
        );
        self.requests.push(*finished);
    }
}

fn load(text: &str, script: &str) -> Result<Stack, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stack.toml");
    fs::write(&path, text).unwrap();
    fs::write(folder.path().join("list"), script).unwrap();
    Stack::load(&path, &Overrides::default()).map_err(|error| error.to_string())
}

pub(crate) fn try_run(text: &str, script: &str) -> Result<(RunOutcome, HostRequests), String> {
    let stack = load(text, script)?;
    let mut seen = HostRequests::default();
    let run = stack.build().map_err(|error| error.to_string())?;
    let outcome = run
        .engine()
        .run(&mut seen)
        .map_err(|error| error.to_string())?;
    Ok((outcome, seen))
}

pub(crate) fn run(text: &str, script: &str) -> (RunOutcome, HostRequests) {
    try_run(text, script).unwrap_or_else(|error| panic!("{error}"))
}

const DISK: &str = "[volume]\ndrive = \"seagate-cheetah-9lp\"\nlayout = \"jbod\"\ndrives = 1\n";
const RAID5: &str = "[volume]\ndrive = \"seagate-cheetah-9lp\"\nlayout = \"raid5\"\ndrives = 4\n";
pub(crate) const SCRIPT: &str = "[workload]\nkind = \"script\"\nfile = \"list\"\n";

fn host(files: &str) -> String {
    format!(
        "[host]\nelevator = \"mq-deadline\"\n[host.memory]\nsize = \"64MiB\"\n[host.files]\n{files}\n"
    )
}

fn on(kind: &str, volume: &str) -> String {
    format!(
        "seed = 3\n{SCRIPT}{}{volume}",
        host(&format!("kind = \"{kind}\""))
    )
}

pub(crate) fn told(outcome: &RunOutcome) -> &HostReadings {
    let [host] = &outcome.counters.hosts[..] else {
        panic!("{:?}", outcome.counters.hosts)
    };
    host
}

pub(crate) fn operation<'a>(outcome: &'a RunOutcome, kind: &str) -> &'a OperationReadings {
    told(outcome)
        .operations
        .iter()
        .find(|operation| operation.kind == kind)
        .unwrap()
}

fn sectors(seen: &HostRequests, operation: Operation) -> u64 {
    let of = seen
        .requests
        .iter()
        .filter(|request| request.operation == operation);
    of.map(|request| request.extent.sectors.0).sum()
}

pub(crate) const LIFE: &str = "mkdir mail\nrepeat 40\ncreate mail/{n} 40KiB\nend\nsync\nrepeat 40\nread mail/{n}\nend\n\
                    repeat 20\nappend mail/{n} 12KiB\nfsync mail/{n}\nend\nrepeat 40\ndelete mail/{n}\nend\nsync\n";

#[test]
fn a_life_of_files_ends_on_each_file_system_and_repeats_to_the_bit() {
    for kind in ["ext2", "ext4", "xfs"] {
        for volume in [DISK, RAID5] {
            let (outcome, seen) = run(&on(kind, volume), LIFE);
            let (again, seen_again) = run(&on(kind, volume), LIFE);

            assert_eq!(seen.requests, seen_again.requests, "{kind}");
            assert_eq!(outcome.counters.hosts, again.counters.hosts, "{kind}");
            assert_eq!(
                (
                    operation(&outcome, "create").calls,
                    operation(&outcome, "unlink").calls
                ),
                (40, 40)
            );
            assert!(
                sectors(&seen, Operation::Write) >= (40 * 40 + 20 * 12) * 2,
                "{kind}"
            );
            // All data were in memory.
            assert_eq!(operation(&outcome, "read").device_reads, 0.0, "{kind}");
            assert!(
                operation(&outcome, "fsync").times.latency_ms.p50 > 0.5,
                "{kind}"
            );
        }
    }
}

#[test]
fn what_cannot_be_is_refused_with_its_place() {
    let two = "[[workloads]]\nname = \"a\"\nkind = \"script\"\nfile = \"list\"\n[[workloads]]\nname = \"b\"\n\
               kind = \"synthetic\"\nrequests = 5\nsize = \"4KiB\"\naddresses = { pattern = \"sequential\" }\n\
               arrivals = { process = \"closed\", outstanding = 1 }\n";
    let plain = two
        .split("[[workloads]]")
        .nth(2)
        .unwrap()
        .replace("name = \"b\"\n", "");
    let plain = format!("[workload]{plain}");
    let ext2 = host("kind = \"ext2\"");
    for (text, parts) in [
        (
            format!("{SCRIPT}{DISK}"),
            &["host.files", "`script` is a program", "ext2"][..],
        ),
        (
            format!("{SCRIPT}[host.files]\nkind = \"ext2\"\n{DISK}"),
            &["host.memory", "through memory"],
        ),
        (
            format!("{plain}{ext2}{DISK}"),
            &["host.files", "no workload is a program"],
        ),
        (
            format!("{two}{ext2}{DISK}"),
            &["workloads[1].kind", "a host of its own"],
        ),
        (
            format!("{SCRIPT}{}{DISK}", host("kind = \"ex4\"")),
            &["host.files.kind", "did you mean `ext4`"],
        ),
        (
            format!("{SCRIPT}{}{DISK}", host("")),
            &["host.files.kind", "raw, ext2"],
        ),
        (
            format!("{SCRIPT}{}{DISK}", host("kind = \"xfs\"\nagee = 1")),
            &["host.files.agee", "did you mean `age`"],
        ),
        (
            format!("{SCRIPT}{}{DISK}", host("kind = \"xfs\"\nage = \"old\"")),
            &["host.files.age", "desktop"],
        ),
        (
            format!(
                "{SCRIPT}{}{DISK}",
                host("kind = \"ext4\"\nsize = \"64KiB\"")
            ),
            &["host.files", "too small"],
        ),
        (
            format!(
                "{SCRIPT}{}{DISK}",
                host("kind = \"ext4\"\nsize = \"64TiB\"")
            ),
            &["host.files.size", "the device has"],
        ),
        (
            format!(
                "{SCRIPT}{}{DISK}",
                host("kind = \"ext4\"\ncopy_mb_per_s = 0")
            ),
            &["host.files.copy_mb_per_s", "above 0"],
        ),
        (
            format!("{SCRIPT}[host.members]\nfiles = {{ kind = \"ext2\" }}\n{RAID5}"),
            &["host.members.files", "above the volume"],
        ),
    ] {
        let error = load(&text, "sync")
            .err()
            .unwrap_or_else(|| panic!("accepted: {text}"));
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    }
    let error = load(&on("ext2", DISK), "create a 4KiB\nfrobnicate a\n")
        .err()
        .unwrap();
    assert!(
        error.contains("list:2") && error.contains("frobnicate"),
        "{error}"
    );
    let missing = on("ext2", DISK).replace("\"list\"", "\"lost\"");
    assert!(
        load(&missing, "")
            .err()
            .unwrap()
            .contains("lost: cannot be read")
    );
}

#[test]
fn a_run_that_cannot_go_on_names_the_line_of_the_list() {
    for (script, parts) in [
        (
            "create a 4KiB\nread b\n",
            &["list: line 2", "there is no `b`"][..],
        ),
        (
            "create a 900MiB\ncreate b 200MiB\n",
            &["list: line 2", "no space is left"],
        ),
        (
            "mkdir a\nmkdir a\n",
            &["list: line 2", "`a` exists already"],
        ),
    ] {
        for kind in ["ext2", "ext4", "xfs"] {
            let text =
                on(kind, DISK).replace("[volume]", "[measurement]\nwarm_up = \"0s\"\n[volume]");
            let text = text.replace(
                &format!("kind = \"{kind}\""),
                &format!("kind = \"{kind}\"\nsize = \"1000MiB\""),
            );
            let error = try_run(&text, script)
                .err()
                .unwrap_or_else(|| panic!("{kind}: {script} ran"));
            assert!(
                parts.iter().all(|part| error.contains(part)),
                "{kind}: {error}"
            );
        }
    }
}

/// Returns a stack of two hosts, each with half a disk.
fn two_hosts(second: &str) -> String {
    let one = |name: &str, kind: &str, more: &str| {
        format!(
            "[[hosts]]\nname = \"{name}\"\nelevator = \"mq-deadline\"\nmemory = {{ size = \"32MiB\" }}\n\
             files = {{ kind = \"{kind}\" }}\n{more}[hosts.workload]\nkind = \"script\"\nfile = \"list\"\n"
        )
    };
    format!(
        "seed = 4\n{}{}{DISK}",
        one("vm1", "ext4", ""),
        one("vm2", "xfs", second)
    )
}

#[test]
fn what_a_workload_beside_programs_is_told_is_how_it_runs() {
    let plain = "kind = \"synthetic\"\nrequests = 50\nread_share = 1.0\nsize = \"4KiB\"\n\
                 addresses = { pattern = \"random\" }\narrivals = { process = \"closed\", outstanding = 1 }\n";
    let program = "kind = \"script\"\nfile = \"list\"\n";
    let beside = format!(
        "[[workloads]]\nname = \"files\"\n{program}[[workloads]]\nname = \"raw\"\n{plain}{}{DISK}",
        host("kind = \"ext2\"")
    );
    let error = load(&beside, LIFE)
        .err()
        .expect("one host has programs or none");
    let told = error
        .split_once('\n')
        .unwrap()
        .1
        .replace("# its keys", plain)
        .replace("# the program's", program);
    let told = told.replace(
        "# as [host]",
        "memory = { size = \"64MiB\" }\nfiles = { kind = \"ext2\" }",
    );
    let (outcome, seen) = run(&format!("{told}\n{DISK}"), LIFE);
    assert_eq!(outcome.counters.hosts.len(), 1, "{told}");
    assert_eq!(operation(&outcome, "create").calls, 40);
    let raw = seen
        .requests
        .iter()
        .filter(|request| request.operation == Operation::Read);
    assert!(raw.count() >= 50);
}

#[test]
fn two_hosts_share_a_disk_each_with_files_and_memory_of_its_own() {
    let (outcome, seen) = run(&two_hosts(""), LIFE);
    let names: Vec<&str> = outcome
        .counters
        .hosts
        .iter()
        .map(|host| host.name.as_str())
        .collect();
    assert_eq!(names, ["vm1", "vm2"]);
    let half = seen
        .requests
        .iter()
        .map(|request| request.extent.end().0)
        .max()
        .unwrap()
        / 2;
    let of = |workload: u16| {
        seen.requests
            .iter()
            .filter(move |request| request.workload == workload)
    };
    assert!(of(0).count() > 100 && of(1).count() > 100 && half > 0);
    for host in &outcome.counters.hosts {
        let created = host
            .operations
            .iter()
            .find(|operation| operation.kind == "create")
            .unwrap();
        assert_eq!(created.times.count, 40, "{}", host.name);
    }
    // A program alone ends sooner.
    let (alone, _) = run(&on("ext4", DISK), LIFE);
    let elapsed = |outcome: &RunOutcome| outcome.counters.hosts[0].programs[0].elapsed;
    assert!(elapsed(&outcome) > elapsed(&alone));
}

#[test]
fn the_second_host_begins_later_and_its_time_is_its_own() {
    let (outcome, seen) = run(&two_hosts("start = \"20s\"\n"), LIFE);
    let first = seen
        .requests
        .iter()
        .filter(|request| request.workload == 1)
        .map(|request| request.arrived)
        .min();
    assert!(
        first.unwrap() >= fullstroke_units::Time::ZERO + fullstroke_units::Duration::from_secs(20)
    );
    let [one, two] = &outcome.counters.hosts[..] else {
        panic!()
    };
    let (one, two) = (
        one.programs[0].elapsed.as_secs_f64(),
        two.programs[0].elapsed.as_secs_f64(),
    );
    assert!(two < 2.0 * one && one < 2.0 * two, "{one} {two}");
}

#[test]
fn calls_before_the_end_of_the_warm_up_are_not_counted() {
    let warm =
        |text: String| text.replace("[volume]", "[measurement]\nwarm_up = \"1ms\"\n[volume]");
    let (all, _) = run(&on("ext2", DISK), LIFE);
    let (later, _) = run(&warm(on("ext2", DISK)), LIFE);
    assert_eq!(operation(&all, "mkdir").times.count, 1);
    assert_eq!(
        (
            operation(&later, "mkdir").calls,
            operation(&later, "create").times.count
        ),
        (1, 40)
    );
    assert!(told(&later).elapsed < told(&all).elapsed);
}

#[test]
fn what_is_read_again_is_in_memory_unless_that_is_too_small() {
    let twice = "create a 40MiB\nsync\nread a\nread a\n";
    let (held, _) = run(&on("ext4", DISK), twice);
    let (short, _) = run(&on("ext4", DISK).replace("64MiB", "8MiB"), twice);
    assert_eq!(operation(&held, "read").device_reads, 0.0);
    assert!(operation(&short, "read").device_reads > 100.0);
}

/// Returns every kind of program with keys of a small version.
pub(crate) fn small_programs() -> Vec<(&'static str, String)> {
    let programs = [
        ("script", "file = \"list\""),
        (
            "postmark",
            "number = 30\ntransactions = 40\nsize_high = \"64KiB\"",
        ),
        ("bonnie", "size = \"1MiB\"\nseeks = 40"),
        ("diff", "size = \"2MiB\""),
        ("iozone", "size = \"1MiB\""),
        ("compile", "sources = 6\njobs = 2"),
        ("strace", "file = \"sqlite\""),
        (
            "playback",
            "streams = 3\nbit_rate = \"4Mbit/s\"\nduration = \"2s\"\nfile_size = \"4MiB\"",
        ),
    ];
    let recorded = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../samples/programs/sqlite.strace");
    let known: Vec<&str> = fullstroke_programs::REGISTRY
        .iter()
        .map(|entry| entry.name)
        .collect();
    assert!(
        known
            .iter()
            .all(|name| programs.iter().any(|(kind, _)| kind == name)),
        "{known:?}"
    );
    let recorded = format!("{:?}", recorded.display().to_string());
    programs
        .map(|(kind, keys)| (kind, keys.replace("\"sqlite\"", &recorded)))
        .into()
}

#[test]
fn every_program_runs_on_every_file_system_on_a_disk_and_on_an_array() {
    for (kind, keys) in small_programs() {
        for files in ["ext2", "ext4", "xfs"] {
            for volume in [DISK, RAID5] {
                let files = host(&format!("kind = \"{files}\"\nsize = \"400MiB\""));
                let text =
                    format!("seed = 5\n[workload]\nkind = \"{kind}\"\n{keys}\n{files}{volume}");
                let (outcome, _) = run(&text, LIFE);
                let told = told(&outcome);
                let [program] = &told.programs[..] else {
                    panic!("{kind}: {told:?}")
                };
                assert_eq!(program.name, kind);
                assert!(program.elapsed > fullstroke_units::Duration::ZERO, "{kind}");
                assert!(
                    told.operations
                        .iter()
                        .map(|operation| operation.calls)
                        .sum::<u64>()
                        > 10,
                    "{kind}"
                );
            }
        }
    }
}

/// Streams of 500 KB/s; one more stream starts each second.
const PLAYBACK: &str =
    "[workload]\nkind = \"playback\"\nstreams = 200\nbit_rate = \"4Mbit/s\"\nduration = \"2s\"\n";

fn figure(outcome: &RunOutcome, name: &str) -> f64 {
    told(outcome).programs[0]
        .figures
        .iter()
        .find(|(known, _)| *known == name)
        .unwrap()
        .1
}

#[test]
fn streams_are_added_from_random_places_of_a_large_file_until_one_starts_late() {
    let keys = "files = 1\nfile_size = \"4GiB\"\nstart_position = \"random\"\nuntil_start_up_latency = \"1s\"\n";
    for kind in ["raw", "ext2", "xfs"] {
        let stack = format!(
            "seed = 3\n{PLAYBACK}{keys}{}{DISK}",
            host(&format!("kind = \"{kind}\"\natime = \"noatime\""))
        );
        let (outcome, seen) = run(&stack, "");
        let within = figure(&outcome, "within_latency");
        // The disk sustains some 5 to 40 streams of 500 KB/s, with reads of 64 KiB or of a
        // read-ahead window.
        assert!((5.0..100.0).contains(&within), "{kind}: {within}");
        assert!(
            figure(&outcome, "start_up_ms_max") > 1000.0
                || figure(&outcome, "started") > figure(&outcome, "playing")
        );
        assert_eq!(sectors(&seen, Operation::Write), 0, "{kind}");
        let transactions = &told(&outcome).programs[0].transactions;
        let start_ups = transactions
            .iter()
            .find(|(name, _)| *name == "start-up")
            .unwrap();
        assert_eq!(
            start_ups.1.count as f64,
            figure(&outcome, "playing"),
            "{kind}"
        );
    }
}

#[test]
fn more_streams_are_sustained_from_files_with_more_read_ahead() {
    let sustained = |kib: u32| {
        // While read-ahead windows grow, a client plays from its start-up buffer.
        let keys = "file_size = \"16MiB\"\nuntil_underrun = true\nstart_up_buffer = \"1MiB\"\n";
        let read_ahead = format!("read_ahead = {{ policy = \"today\", read_ahead_kb = {kib} }}");
        let memory = format!("[host.memory]\nsize = \"512MiB\"\n{read_ahead}\n");
        let stack = format!(
            "seed = 3\n{PLAYBACK}{keys}[host]\n{memory}[host.files]\nkind = \"ext4\"\n{DISK}"
        );
        let (outcome, _) = run(&stack, "");
        assert!(figure(&outcome, "underruns") > 0.0 && figure(&outcome, "started") < 200.0);
        figure(&outcome, "sustained")
    };
    let (short, long) = (sustained(64), sustained(512));
    assert!(long > 1.2 * short, "{short} and {long}");
}

fn run_job(job: &str) -> (RunOutcome, HostRequests) {
    let text = on("ext4", DISK).replace(SCRIPT, "[workload]\nkind = \"fio\"\npath = \"list\"\n");
    run(&text, &format!("[global]\ndirectory=d\nbs=4k\n{job}"))
}

#[test]
fn a_job_file_of_files_goes_through_memory() {
    let (twice, seen) = run_job("[a]\nrw=read\nsize=8m\nnrfiles=4\nloops=2\n");
    assert_eq!(operation(&twice, "read").calls, 4096);
    assert_eq!(operation(&twice, "open").calls, 4);
    // In the second loop all data are in memory.
    let read = sectors(&seen, Operation::Read);
    assert!((16384..18000).contains(&read), "{read}");
    let (direct, seen) = run_job("[a]\nrw=read\nsize=8m\nnrfiles=4\nloops=2\ndirect=1\n");
    assert_eq!(operation(&direct, "read").calls, 4096);
    assert!(sectors(&seen, Operation::Read) >= 32768);
}

#[test]
fn an_fsync_for_each_write_of_a_job_is_paid_for() {
    let elapsed = |outcome: &RunOutcome| told(outcome).programs[0].elapsed.as_secs_f64();
    let (lazy, _) = run_job("[a]\nrw=write\nsize=400k\n");
    let (eager, seen) = run_job("[a]\nrw=write\nsize=400k\nfsync=1\n");
    assert_eq!(
        (
            operation(&lazy, "write").calls,
            operation(&eager, "write").calls
        ),
        (100, 100)
    );
    assert_eq!(operation(&eager, "fsync").calls, 99);
    let flushes = seen
        .requests
        .iter()
        .filter(|request| request.operation == Operation::Flush)
        .count();
    assert!(flushes >= 99, "{flushes}");
    assert!(
        elapsed(&eager) > 10.0 * elapsed(&lazy),
        "{} {}",
        elapsed(&eager),
        elapsed(&lazy)
    );
}

#[test]
fn a_job_that_files_cannot_have_is_refused_when_it_is_read() {
    let text = on("ext4", DISK).replace(SCRIPT, "[workload]\nkind = \"fio\"\npath = \"list\"\n");
    let error = load(&text, "[a]\ndirectory=d\nsize=1m\nioengine=mmap\n");
    let error = error
        .and_then(|stack| stack.build().map(drop).map_err(|error| error.to_string()))
        .err()
        .unwrap();
    assert!(
        error.contains("list:4") && error.contains("ioengine"),
        "{error}"
    );
    // Without files, the job works on the volume, as before.
    let volume = format!("[workload]\nkind = \"fio\"\npath = \"list\"\n{DISK}");
    assert!(
        load(
            &volume,
            "[a]\ndirectory=d\nsize=1m\nioengine=libaio\niodepth=8\n"
        )
        .is_ok()
    );
}

#[test]
fn the_sample_job_on_files_runs() {
    let job = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../samples/jobs/files/store.fio"
    );
    let text = on("xfs", DISK).replace(SCRIPT, "[workload]\nkind = \"fio\"\npath = \"list\"\n");
    let (outcome, _) = run(&text, &fs::read_to_string(job).unwrap());
    let (read, fsync) = (operation(&outcome, "read"), operation(&outcome, "fsync"));
    assert_eq!((read.calls, fsync.calls), (1024, 511));
    let report = &told(&outcome).programs[0];
    let figure = |name| {
        report
            .figures
            .iter()
            .find(|(one, _)| *one == name)
            .unwrap()
            .1
    };
    assert!(
        figure("read_clat_ms_mean") > 1.0 && figure("write_clat_ms_mean") < 1.0,
        "{report:?}"
    );
    assert!(report.text.contains("KiB/s"), "{report:?}");
}
