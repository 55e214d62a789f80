use super::super::REGISTRY;
use super::super::extremes::Halves;
use super::super::testing::{
    ElevatorBench, Load, LoopProcess, RunRecord, Sent, Tunable, build, build_at, run, run_entry,
    settings,
};
use crate::TickClock;
use crate::block::{BlockLayer, LayerSettings};
use fullstroke_contract::Operation;
use fullstroke_contract::registry::find;
use fullstroke_units::{Duration, Time};

const FAR: u64 = 90_000_000;

fn load(queue_depth: u32, processes: &[LoopProcess]) -> Load {
    Load {
        queue_depth,
        processes: processes.to_vec(),
    }
}

fn scattered(process: u32) -> LoopProcess {
    LoopProcess {
        process,
        outstanding: 8,
        span: FAR,
        count: 400,
        ..LoopProcess::default()
    }
}

fn writing(process: LoopProcess) -> LoopProcess {
    LoopProcess {
        operation: Operation::Write,
        synchronous: false,
        ..process
    }
}

/// A sequential reader with this think time.
fn sequential(process: u32, start: u64, think_us: u64) -> LoopProcess {
    LoopProcess {
        process,
        start,
        think: Duration::from_micros(think_us),
        ..LoopProcess::default()
    }
}

pub(in super::super) fn tunables() -> Vec<Tunable> {
    let tunable = |key, values, processes: &[LoopProcess]| Tunable {
        key,
        values,
        others: "{}",
        load: load(1, processes),
    };
    let both = [scattered(1), writing(scattered(2))];
    let apart = [sequential(1, 0, 500), sequential(2, FAR, 500)];
    let others = r#"{ "read_batch_expire": "100ms" }"#;
    vec![
        tunable("read_expire", [r#""1ms""#, r#""10s""#], &[scattered(1)]),
        tunable(
            "write_expire",
            [r#""1ms""#, r#""10s""#],
            &[writing(scattered(1))],
        ),
        tunable("read_batch_expire", [r#""20ms""#, r#""1s""#], &both),
        Tunable {
            others,
            ..tunable("write_batch_expire", [r#""20ms""#, r#""1s""#], &both)
        },
        tunable("antic_expire", [r#""0s""#, r#""6.7ms""#], &apart),
        tunable("back_seek_max", ["0", r#""512MiB""#], &[scattered(1)]),
        Tunable {
            others,
            load: load(8, &both),
            ..tunable("batch_switch_fix", ["true", "false"], &both)
        },
    ]
}

/// Returns the number of changes from one process to another.
fn changes(sent: &[Sent]) -> usize {
    sent.windows(2)
        .filter(|pair| pair[0].process != pair[1].process)
        .count()
}

const WITHOUT: &str = r#"{ "antic_expire": "0s" }"#;

fn last(sent: &[Sent]) -> Duration {
    sent.last().unwrap().at.since(Time::ZERO)
}

#[test]
fn it_waits_for_a_sequential_reader_rather_than_seek() {
    let readers = load(1, &[sequential(1, 0, 500), sequential(2, FAR, 500)]);
    let (with, without) = (
        run("anticipatory", "{}", &readers),
        run("anticipatory", WITHOUT, &readers),
    );
    assert!(
        changes(&with) < 30,
        "{} changes with anticipation",
        changes(&with)
    );
    assert!(
        changes(&without) > 190,
        "{} changes without",
        changes(&without)
    );
    assert!(
        last(&with) * 3 < last(&without),
        "{:?} and {:?}",
        last(&with),
        last(&without)
    );
}

#[test]
fn it_does_not_wait_for_who_thinks_for_longer_than_antic_expire() {
    let readers = load(1, &[sequential(1, 0, 12_000), sequential(2, FAR, 12_000)]);
    let (with, without) = (
        run("anticipatory", "{}", &readers),
        run("anticipatory", WITHOUT, &readers),
    );
    let excess = last(&with).saturating_sub(last(&without));
    assert!(
        excess < Duration::from_millis(50),
        "{excess:?} lost in {:?}",
        last(&without)
    );
}

#[test]
fn it_does_not_wait_where_any_request_is_as_near_as_what_is_expected() {
    let think = Duration::from_millis(2);
    let random: Vec<LoopProcess> = (1..=8)
        .map(|id| LoopProcess {
            outstanding: 1,
            think,
            ..scattered(id)
        })
        .collect();
    let readers = load(1, &random);
    let (with, without) = (
        run("anticipatory", "{}", &readers),
        run("anticipatory", WITHOUT, &readers),
    );
    let excess = last(&with).saturating_sub(last(&without));
    assert!(
        excess * 10 < last(&without),
        "{excess:?} lost in {:?}",
        last(&without)
    );
}

#[test]
fn a_close_request_of_another_process_ends_the_pause() {
    // Two processes read the same region in turn, 1000 sectors apart.
    let pair = [
        LoopProcess {
            stride: 2000,
            ..sequential(1, 0, 500)
        },
        LoopProcess {
            stride: 2000,
            ..sequential(2, 1000, 500)
        },
    ];
    let sent = run("anticipatory", "{}", &load(1, &pair));
    let without = run("anticipatory", WITHOUT, &load(1, &pair));
    assert_eq!(sent, without);
}

#[test]
fn it_stops_waiting_for_new_processes_if_they_never_return() {
    // Every 40 ms a new process reads once here. One microsecond later another process reads far
    // away.
    let once = |id: u32, start: u64, begins_us: u64| LoopProcess {
        process: id,
        start,
        count: 1,
        begins: Time::ZERO + Duration::from_micros(begins_us),
        ..LoopProcess::default()
    };
    let pairs = (0..20u32).flat_map(|turn| {
        let begins = 40_000 * u64::from(turn);
        [
            once(2 * turn + 1, 0, begins),
            once(2 * turn + 2, FAR, begins + 1),
        ]
    });
    let entry = find("elevator", REGISTRY, "elevator", "anticipatory").unwrap();
    let ran = run_entry(
        entry,
        "{}",
        &Load {
            queue_depth: 1,
            processes: pairs.collect(),
        },
    );
    let pause = |turn: usize| ran.sent[2 * turn + 1].at.since(ran.done[2 * turn].2);
    let longest = Duration::from_micros(6_700);
    assert!((0..6).all(|turn| pause(turn) == longest), "{:?}", pause(5));
    // The probability passes one half with the sixth process: 1 - (7/8)^6 = 0.55.
    assert!(
        (6..20).all(|turn| pause(turn) == Duration::ZERO),
        "{:?}",
        pause(6)
    );
}

/// Returns the lengths of the batches of one kind, from start to start.
fn batches(sent: &[Sent], operation: Operation) -> Vec<Duration> {
    let mut begins: Vec<(Operation, Time)> = Vec::new();
    for piece in sent {
        if begins
            .last()
            .is_none_or(|&(last, _)| last != piece.operation)
        {
            begins.push((piece.operation, piece.at));
        }
    }
    let lasting = begins.windows(2).filter(|pair| pair[0].0 == operation);
    lasting.map(|pair| pair[1].1.since(pair[0].1)).collect()
}

fn mean_ms(spans: &[Duration]) -> f64 {
    spans.iter().map(|span| span.as_millis_f64()).sum::<f64>() / spans.len() as f64
}

#[test]
fn batches_last_as_long_as_their_expiries_say() {
    let endless = |process| LoopProcess {
        outstanding: 32,
        count: 30_000,
        ..process
    };
    let both = load(1, &[endless(scattered(1)), endless(writing(scattered(2)))]);
    for (reads_ms, writes_ms) in [(500.0, 125.0), (200.0, 300.0)] {
        let keys = format!(
            r#"{{ "read_batch_expire": "{reads_ms}ms", "write_batch_expire": "{writes_ms}ms" }}"#
        );
        let sent = run("anticipatory", &keys, &both);
        let (reads, writes) = (
            batches(&sent, Operation::Read),
            batches(&sent, Operation::Write),
        );
        // The size of write batches grows by one request at a time.
        let middle = |spans: &[Duration]| mean_ms(&spans[spans.len() / 2..spans.len() - 3]);
        assert!(
            (middle(&reads) - reads_ms).abs() < 30.0,
            "reads: {} of {reads_ms}",
            middle(&reads)
        );
        let most = writes_ms + 30.0;
        assert!(
            (writes_ms * 0.8..most).contains(&middle(&writes)),
            "writes: {} ms",
            middle(&writes)
        );
    }
}

#[test]
fn an_expired_request_goes_first() {
    let near = LoopProcess {
        outstanding: 8,
        span: 40_000,
        count: 2000,
        ..LoopProcess::default()
    };
    let far = LoopProcess {
        process: 9,
        start: FAR,
        count: 1,
        begins: Time::from_nanos(1),
        ..LoopProcess::default()
    };
    let when = |keys: &str| {
        let sent = run("anticipatory", keys, &load(1, &[near, far]));
        sent.iter().find(|sent| sent.process == 9).unwrap().at
    };
    let bound = Time::ZERO + Duration::from_millis(2 * 125 + 20);
    // With seeks back of up to 512 MiB the near requests would otherwise go first for ever.
    assert!(when(r#"{ "back_seek_max": "512MiB" }"#) < bound);
    assert!(when(r#"{ "back_seek_max": "512MiB", "read_expire": "10s" }"#) > bound);
}

#[test]
fn a_seek_back_costs_twice_its_length_and_reaches_as_far_as_allowed() {
    let order = |keys: &str, starts: &[u64]| {
        super::super::testing::order("anticipatory", keys, starts, 10_000)
    };
    assert_eq!(order("{}", &[9_900, 10_250]), [9_900, 10_250]);
    assert_eq!(order("{}", &[9_900, 10_150]), [10_150, 9_900]);
    // 2048 sectors are 1 MiB.
    assert_eq!(order("{}", &[7_953, 100, 80_000]), [7_953, 80_000, 100]);
    assert_eq!(order("{}", &[7_951, 100, 80_000]), [80_000, 100, 7_951]);
}

#[test]
fn without_the_fix_writes_starve_behind_a_deep_queue() {
    let readers: Vec<LoopProcess> = (1..=8)
        .map(|id| LoopProcess {
            count: 500,
            ..scattered(id)
        })
        .collect();
    let writer = LoopProcess {
        count: 1,
        outstanding: 1,
        ..writing(scattered(9))
    };
    let processes = [&readers[..], &[writer]].concat();
    let turn = |keys: &str| {
        let sent = run("anticipatory", keys, &load(8, &processes));
        let turn = sent
            .iter()
            .position(|sent| sent.operation == Operation::Write)
            .unwrap();
        turn as f64 / sent.len() as f64
    };
    assert!(turn("{}") < 0.2, "{}", turn("{}"));
    let unfixed = turn(r#"{ "batch_switch_fix": false }"#);
    assert!(unfixed > 0.9, "{unfixed}");
}

#[test]
fn by_member_the_pause_at_one_does_not_hold_the_others_back() {
    let entry = find("elevator", REGISTRY, "elevator", "anticipatory").unwrap();
    let readers = load(8, &[sequential(1, 0, 3_000), sequential(2, FAR, 3_000)]);
    let sent = [false, true].map(|per_member_anticipation| {
        let settings = LayerSettings {
            per_member_anticipation,
            ..settings(8)
        };
        let layer = BlockLayer::new(build(entry, "{}", 8), &settings, Some(Box::new(Halves)));
        ElevatorBench::new(layer, &readers).run(Time::NEVER).sent
    });
    assert!(
        changes(&sent[0]) < 30,
        "{} changes as a whole",
        changes(&sent[0])
    );
    assert!(
        changes(&sent[1]) > 150,
        "{} changes by member",
        changes(&sent[1])
    );
    // Pauses for a process of one member still hold back other processes of that member.
    let neighbours = load(
        8,
        &[sequential(1, 0, 3_000), sequential(2, 40_000_000, 3_000)],
    );
    let settings = LayerSettings {
        per_member_anticipation: true,
        ..settings(8)
    };
    let layer = BlockLayer::new(build(entry, "{}", 8), &settings, Some(Box::new(Halves)));
    let sent = ElevatorBench::new(layer, &neighbours).run(Time::NEVER).sent;
    assert!(
        changes(&sent) < 30,
        "{} changes on one member",
        changes(&sent)
    );
}

#[test]
fn the_longer_the_pause_the_farther_off_counts_as_close() {
    // The reader asks every 5.24 ms. After its fifth request a pause begins at 21.2 ms, because a
    // request far away waits. After 2 ms of the pause, 32 768 sectors count as close, so 20 000 do
    // too.
    let reader = sequential(1, 0, 5_000);
    let far = LoopProcess {
        count: 1,
        begins: Time::from_nanos(21_250_000),
        ..sequential(3, FAR, 0)
    };
    let when = |begins_us: u64| {
        let begins = Time::ZERO + Duration::from_micros(begins_us);
        let other = LoopProcess {
            process: 2,
            start: 20_000,
            count: 1,
            begins,
            ..LoopProcess::default()
        };
        let sent = run("anticipatory", "{}", &load(1, &[reader, far, other]));
        sent.iter()
            .find(|sent| sent.process == 2)
            .unwrap()
            .at
            .since(begins)
    };
    assert!(
        when(21_700) > Duration::from_millis(50),
        "{:?}",
        when(21_700)
    );
    assert_eq!(when(23_700), Duration::ZERO);
}

#[test]
fn expired_ones_are_looked_for_once_in_the_time_in_which_they_expire() {
    let crowd = LoopProcess {
        outstanding: 64,
        count: 1000,
        ..scattered(1)
    };
    let sent = run(
        "anticipatory",
        r#"{ "read_expire": "50ms" }"#,
        &load(1, &[crowd]),
    );
    let falls = sent
        .windows(2)
        .filter(|pair| pair[1].extent.start < pair[0].extent.start)
        .count();
    // Every request waits longer than 50 ms. In order of arrival there would be 500.
    assert!(falls < 100, "{falls} of 1000 go back");
}

/// Runs a load in a host with `hz` ticks a second.
fn run_at(hz: Option<u32>, load: &Load) -> RunRecord {
    let clock = TickClock::new(hz).unwrap();
    let entry = find("elevator", REGISTRY, "elevator", "anticipatory").unwrap();
    let elevator = build_at(clock, entry, "{}", load.queue_depth);
    let settings = LayerSettings {
        clock,
        ..settings(load.queue_depth)
    };
    ElevatorBench::new(BlockLayer::new(elevator, &settings, None), load).run(Time::NEVER)
}

#[test]
fn with_ticks_a_pause_ends_at_one_and_antic_expire_is_what_it_was_in_kernels() {
    // The first reader stops after 30 requests. The last pause for it is in vain. Then the other
    // reader, far away, is served.
    let readers = load(
        1,
        &[
            LoopProcess {
                count: 30,
                ..sequential(1, 0, 500)
            },
            LoopProcess {
                outstanding: 1,
                ..scattered(2)
            },
        ],
    );
    let last_pause = |hz: Option<u32>| {
        let ran = run_at(hz, &readers);
        let stopped = ran
            .done
            .iter()
            .filter(|done| done.0 == 1)
            .map(|done| done.2)
            .next_back()
            .unwrap();
        let next = ran.sent.iter().find(|sent| sent.at > stopped).unwrap();
        assert_eq!(next.process, 2);
        (next.at, next.at.since(stopped))
    };
    assert_eq!(last_pause(None).1, Duration::from_micros(6_700));
    for (hz, tick_ms, ticks) in [(100, 10, 1), (250, 4, 1), (1000, 1, 6)] {
        let (end, length) = last_pause(Some(hz));
        let tick = Duration::from_millis(tick_ms);
        assert_eq!(end.as_nanos() % tick.as_nanos(), 0, "{hz} Hz");
        assert!(
            length <= tick * ticks && length + tick > tick * ticks,
            "{length:?} at {hz} Hz"
        );
    }
}

#[test]
fn with_ticks_longer_than_a_thought_it_waits_for_who_thinks_for_longer_than_the_pause() {
    // At 100 Hz a think time counts as at most one tick, `MAX_THINKTIME - 1`, and a pause is one
    // tick long.
    let readers = load(
        1,
        &[
            sequential(1, 0, 12_000),
            LoopProcess {
                outstanding: 1,
                ..scattered(2)
            },
        ],
    );
    let took = |hz: Option<u32>| last(&run_at(hz, &readers).sent);
    assert!(took(Some(1000)) < took(None) + Duration::from_millis(50));
    assert!(
        took(Some(100)) > took(None) + Duration::from_millis(200),
        "{:?}",
        took(Some(100))
    );
}
