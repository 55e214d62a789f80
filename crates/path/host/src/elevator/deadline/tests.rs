use super::super::REGISTRY;
use super::super::testing::{Load, LoopProcess, SITE, Sent, Tunable, run, run_entry};
use fullstroke_contract::Operation;
use fullstroke_contract::registry::{Keys, find};
use fullstroke_units::{Duration, Time};

pub(in super::super) fn tunables() -> Vec<Tunable> {
    let load = |processes| Load {
        queue_depth: 1,
        processes,
    };
    let scattered = |outstanding| LoopProcess {
        outstanding,
        span: 90_000_000,
        ..LoopProcess::default()
    };
    let writing = |process| LoopProcess {
        operation: Operation::Write,
        synchronous: false,
        process: 2,
        ..process
    };
    let joining = LoopProcess {
        start: 50_000,
        stride: -8,
        outstanding: 8,
        ..LoopProcess::default()
    };
    let tunable = |key, values, others, processes| Tunable {
        key,
        values,
        others,
        load: load(processes),
    };
    let long = long_runs();
    vec![
        tunable(
            "read_expire",
            [r#""1ms""#, r#""10s""#],
            "{}",
            vec![scattered(8)],
        ),
        tunable(
            "write_expire",
            [r#""1ms""#, r#""10s""#],
            "{}",
            vec![writing(scattered(8))],
        ),
        tunable("fifo_batch", ["2", "16"], "{}", long.clone()),
        tunable("writes_starved", ["1", "4"], "{}", long.clone()),
        tunable("front_merges", ["true", "false"], "{}", vec![joining]),
        tunable("batch_count_fix", ["true", "false"], "{}", long),
        tunable(
            "start_sector_fix",
            ["true", "false"],
            "{}",
            vec![scattered(8), writing(scattered(8))],
        ),
        tunable(
            "scale_expiries",
            ["true", "false"],
            r#"{ "read_expire": "100ms" }"#,
            vec![scattered(32)],
        ),
        tunable(
            "scale_reference",
            [r#""1ms""#, r#""10s""#],
            r#"{ "scale_expiries": true }"#,
            vec![scattered(32)],
        ),
    ]
}

/// A reader and a writer of long consecutive requests, which are too long for merges, many at a
/// time.
fn long_runs() -> Vec<LoopProcess> {
    let reader = LoopProcess {
        sectors: 1024,
        stride: 1024,
        outstanding: 48,
        count: 600,
        ..LoopProcess::default()
    };
    let writer = LoopProcess {
        process: 2,
        operation: Operation::Write,
        synchronous: false,
        start: 50_000_000,
        ..reader
    };
    vec![reader, writer]
}

/// Returns the numbers of successive requests of one operation.
fn runs(sent: &[Sent]) -> Vec<(Operation, usize)> {
    sent.chunk_by(|one, other| one.operation == other.operation)
        .map(|run| (run[0].operation, run.len()))
        .collect()
}

/// Returns the number of reads for each write while both wait.
fn ratio(keys: &str) -> f64 {
    let load = Load {
        queue_depth: 1,
        processes: long_runs(),
    };
    let sent = run("deadline", keys, &load);
    let both_wait = &sent[..450];
    let reads = both_wait
        .iter()
        .filter(|sent| sent.operation == Operation::Read)
        .count();
    reads as f64 / (both_wait.len() - reads) as f64
}

#[test]
fn reads_go_before_writes_as_often_as_writes_starved_says() {
    let load = Load {
        queue_depth: 1,
        processes: long_runs(),
    };
    let runs = runs(&run("deadline", r#"{ "writes_starved": 3 }"#, &load));
    let (read, write) = ((Operation::Read, 48), (Operation::Write, 16));
    // The first batches are left out, because the first request met no other.
    assert_eq!(runs[2..8], [read, write, read, write, read, write]);
}

#[test]
fn the_batch_count_of_2_6_23_takes_from_reads_what_writes_starved_gives() {
    let fixed = ratio("{}");
    let unfixed = ratio(r#"{ "batch_count_fix": false }"#);
    // Table 3.2 has 2.000 and 0.806. In its measurements reads were also out of step with their
    // batches. Without that effect, 16 + 2 - 1 reads go before 16 writes.
    assert!((1.8..2.2).contains(&fixed), "{fixed}");
    assert!((0.8..1.15).contains(&unfixed), "{unfixed}");
}

/// Returns the order of two writes after a read at `here`. Both arrive during the read, the higher
/// address first.
fn writes_after_a_read(keys: &str) -> Vec<u64> {
    let read = LoopProcess {
        start: 40_000,
        count: 1,
        ..LoopProcess::default()
    };
    let write = |start, begins| LoopProcess {
        operation: Operation::Write,
        start,
        begins: Time::from_nanos(begins),
        ..read
    };
    let load = Load {
        queue_depth: 1,
        processes: vec![read, write(90_000, 1), write(10_000, 2)],
    };
    run("deadline", keys, &load)
        .iter()
        .skip(1)
        .map(|sent| sent.extent.start.0)
        .collect()
}

#[test]
fn a_direction_that_takes_over_begins_with_its_oldest() {
    assert_eq!(writes_after_a_read("{}"), [90_000, 10_000]);
    assert_eq!(
        writes_after_a_read(r#"{ "start_sector_fix": false }"#),
        [10_000, 90_000]
    );
}

fn readers() -> Load {
    let reader = LoopProcess {
        outstanding: 64,
        span: 90_000_000,
        count: 600,
        ..LoopProcess::default()
    };
    Load {
        queue_depth: 1,
        processes: vec![reader],
    }
}

/// Returns the number of steps to a lower address.
fn turns(sent: &[Sent]) -> usize {
    sent.windows(2)
        .filter(|pair| pair[1].extent.start < pair[0].extent.start)
        .count()
}

#[test]
fn the_expired_begin_batches_and_under_load_that_is_everyone() {
    let lenient = turns(&run("deadline", r#"{ "read_expire": "100s" }"#, &readers()));
    let strict = turns(&run("deadline", r#"{ "read_expire": "50ms" }"#, &readers()));
    assert!(lenient < 30, "{lenient} sweeps of 64 at a time");
    assert!(
        strict > 200,
        "{strict} turns of 600: as good as first come, first served"
    );
}

#[test]
fn scaled_expiries_grow_with_the_latency_and_avert_the_avalanche() {
    let keys = r#"{ "read_expire": "500ms", "scale_expiries": true, "scale_reference": "50ms" }"#;
    let fixed = run("deadline", r#"{ "read_expire": "50ms" }"#, &readers());
    let scaled = run("deadline", keys, &readers());
    assert!(turns(&scaled[200..]) < 30, "{}", turns(&scaled[200..]));
    assert!(scaled.last().unwrap().at < fixed.last().unwrap().at);
}

#[test]
fn the_scale_is_the_mean_latency_over_the_reference() {
    let reference = Duration::from_millis(50);
    let mut scale = super::Scale {
        reference,
        mean_ns: reference.as_nanos(),
    };
    let second = Duration::from_secs(1);
    assert_eq!(scale.of(second), second);
    (0..1000).for_each(|_| scale.add(Duration::from_millis(5)));
    let tight = scale.of(second).as_millis_f64();
    assert!((99.0..101.0).contains(&tight), "{tight}");
    (0..64).for_each(|_| scale.add(Duration::from_millis(500)));
    let loose = scale.of(second).as_millis_f64();
    // After 64 latencies, 1 - 1/e of the step is done.
    assert!((6300.0..6500.0).contains(&loose), "{loose}");
}

#[test]
fn values_that_mean_nothing_are_refused() {
    let build = find("elevator", REGISTRY, "elevator", "deadline")
        .unwrap()
        .build
        .build;
    let site = SITE;
    for (keys, key) in [
        (r#"{ "fifo_batch": 0 }"#, "fifo_batch"),
        (r#"{ "scale_reference": "1ms" }"#, "scale_reference"),
        (
            r#"{ "scale_reference": "0s", "scale_expiries": true }"#,
            "scale_reference",
        ),
        (r#"{ "front_merges": 3 }"#, "front_merges"),
    ] {
        let keys: Keys = serde_json::from_str(keys).unwrap();
        assert_eq!(build(&keys, &site).err().unwrap().key, key);
    }
}

#[test]
fn what_coalesces_keeps_the_older_place() {
    // During a long first request, 116 arrives, then 2000, then 100, then 108, which closes the
    // gap. The three become one request in the place of 116, before 2000.
    let one = |start: u64, begins: u64| LoopProcess {
        start,
        count: 1,
        begins: Time::from_nanos(begins),
        ..LoopProcess::default()
    };
    let first = LoopProcess {
        start: 50_000,
        sectors: 1024,
        ..one(50_000, 0)
    };
    let processes = vec![first, one(116, 1), one(2000, 2), one(100, 3), one(108, 4)];
    let entry = find("elevator", REGISTRY, "elevator", "deadline").unwrap();
    let ran = run_entry(
        entry,
        r#"{ "read_expire": "1ns" }"#,
        &Load {
            queue_depth: 1,
            processes,
        },
    );
    let sent: Vec<_> = ran
        .sent
        .iter()
        .map(|sent| (sent.extent.start.0, sent.extent.sectors.0))
        .collect();
    assert_eq!(sent, [(50_000, 1024), (100, 24), (2000, 8)]);
}
