//! Programs on files in a pool like ZFS.

use super::programs::{LIFE, SCRIPT, operation, run, small_programs, told, try_run};
use fullstroke_contract::Operation;
use fullstroke_engine::RunOutcome;

const FILES: &str = "[host.files]\nkind = \"zfs\"\n";
const MIRROR: &str = "[volume]\ndrive = \"seagate-cheetah-9lp\"\nlayout = \"mirror\"\ndrives = 4\ndirty_data_max = \"64MiB\"\narc = \"64MiB\"\n";
const RAIDZ1: &str = "[volume]\ndrive = \"seagate-cheetah-9lp\"\nlayout = \"raidz1\"\ndrives = 4\ndirty_data_max = \"64MiB\"\narc = \"64MiB\"\n";

/// Returns a reading of the pool.
fn pool(outcome: &RunOutcome, name: &str) -> f64 {
    let layers = outcome.counters.layers.iter();
    let layer = layers.rev().find(|layer| layer.layer.starts_with("pool"));
    let readings = &layer.unwrap().readings;
    let found = readings.iter().find(|reading| reading.name == name);
    found
        .unwrap_or_else(|| panic!("{name} of {readings:?}"))
        .value
}

#[test]
fn a_life_of_files_in_a_pool_repeats_to_the_bit() {
    for volume in [MIRROR, RAIDZ1] {
        let text = format!("seed = 3\n{SCRIPT}{FILES}{volume}");
        let (outcome, seen) = run(&text, LIFE);
        let (again, seen_again) = run(&text, LIFE);
        assert_eq!(seen.requests, seen_again.requests);
        assert_eq!(outcome.counters.hosts, again.counters.hosts);
        assert_eq!(operation(&outcome, "create").calls, 40);
        assert_eq!(operation(&outcome, "unlink").calls, 40);
        // The data is in memory, and an fsync waits for the intent log.
        let reads = operation(&outcome, "read").times.latency_ms;
        assert!(reads.max < 0.1, "{reads:?}");
        let fsyncs = operation(&outcome, "fsync").times.latency_ms;
        assert!(fsyncs.p50 > 1.0, "{fsyncs:?}");
        assert!(pool(&outcome, "pool_log_commits") >= 20.0);
        assert_eq!(pool(&outcome, "pool_reads_for_writes"), 0.0);
    }
}

#[test]
fn every_program_runs_on_files_in_a_pool() {
    for (kind, keys) in small_programs() {
        for volume in [MIRROR, RAIDZ1] {
            let text = format!("seed = 5\n[workload]\nkind = \"{kind}\"\n{keys}\n{FILES}{volume}");
            let (outcome, _) = run(&text, LIFE);
            let programs = &told(&outcome).programs;
            assert!(programs[0].elapsed.as_secs_f64() > 0.0, "{kind}");
        }
    }
}

/// A file that exists, four times as large as the memory: a write of 8 KiB at a random place reads
/// its record of 128 KiB. With records of 8 KiB nothing is read.
#[test]
fn a_small_write_reads_its_record_unless_the_record_is_as_small() {
    let job = "[workload]\nkind = \"fio\"\ntext = \"\"\"\n[a]\nrw=randwrite\nbs=8k\nsize=256m\nfilename=data\nnumber_ios=200\n\"\"\"\n";
    let reads = |record: &str| {
        let volume = MIRROR.replace("layout", &format!("recordsize = \"{record}\"\nlayout"));
        let (outcome, _) = run(&format!("seed = 5\n{job}{FILES}{volume}"), "");
        pool(&outcome, "pool_reads_for_writes")
    };
    let (large, small) = (reads("128KiB"), reads("8KiB"));
    assert!(large > 150.0 && small == 0.0, "{large} and {small}");
}

#[test]
fn writes_without_fsync_are_free_and_sync_always_waits() {
    let script = "repeat 20\ncreate f/{n} 16KiB\nend\n";
    let script = format!("mkdir f\n{script}");
    let create = |sync: &str| {
        let volume = format!("{MIRROR}sync = \"{sync}\"\n");
        let (outcome, seen) = run(&format!("seed = 5\n{SCRIPT}{FILES}{volume}"), &script);
        let flushes = seen.requests.iter();
        let flushes = flushes.filter(|request| request.operation == Operation::Flush);
        assert_eq!(flushes.count(), 0, "nobody calls fsync");
        operation(&outcome, "create").times.latency_ms.p50
    };
    let (standard, always) = (create("standard"), create("always"));
    assert!(standard < 0.1 && always > 1.0, "{standard} and {always} ms");
}

#[test]
fn what_has_no_meaning_above_a_pool_is_refused_with_its_key() {
    let with = |host: &str, files: &str, volume: &str| {
        let text = format!("seed = 5\n{SCRIPT}{host}[host.files]\nkind = \"zfs\"\n{files}{volume}");
        try_run(&text, LIFE).err().unwrap()
    };
    let disk = "[volume]\ndrive = \"seagate-cheetah-9lp\"\nlayout = \"jbod\"\ndrives = 1\n";
    let caches = format!("{MIRROR}caches = 1\n").replace("drives = 4", "drives = 5");
    let small = format!("{MIRROR}special_small_blocks = \"32KiB\"\n");
    for (error, parts) in [
        (with("", "", disk), ["host.files.kind", "no pool", "raidz1"]),
        (
            with("[host]\nelevator = \"mq-deadline\"\n", "", MIRROR),
            ["host.elevator", "queue for each drive", "Remove"],
        ),
        (
            with("[host.memory]\nsize = \"1GiB\"\n", "", MIRROR),
            ["host.memory", "memory of the pool", "arc"],
        ),
        (
            with("", "age = \"mail\"\n", MIRROR),
            ["host.files.age", "places the data", "scattered"],
        ),
        (
            with("", "barrier = false\n", MIRROR),
            ["host.files.barrier", "false", "sync"],
        ),
        (
            with("", "", &caches),
            ["volume.caches", "one size", "Remove"],
        ),
        (
            with("", "", &small),
            [
                "volume.special_small_blocks",
                "no special vdev",
                "give special",
            ],
        ),
    ] {
        for part in parts {
            assert!(error.contains(part), "`{part}` in {error}");
        }
    }
}
