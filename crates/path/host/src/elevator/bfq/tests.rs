//! Tests of the whole elevator, in virtual time.

#![allow(
    clippy::too_many_lines,
    reason = "a test tells one story from its beginning to its end"
)]

use super::super::REGISTRY;
use super::super::testing::{
    ElevatorBench, Load, LoopProcess, RunRecord, SITE, Sent, Tunable, build, run_entry, settings,
};
use crate::block::BlockLayer;
use fullstroke_contract::registry::{Keys, find};
use fullstroke_contract::{Operation, PriorityClass, Stripes};
use fullstroke_units::{Duration, Lbn, Sectors, Time};

const SECOND: Time = Time::from_nanos(1_000_000_000);

/// Reads or writes without end, in long requests with small gaps, several at a time.
fn stream(process: u32) -> LoopProcess {
    LoopProcess {
        process,
        start: u64::from(process) * 10_000_000,
        sectors: 256,
        stride: 264,
        outstanding: 4,
        count: 100_000,
        ..LoopProcess::default()
    }
}

fn scattered(process: u32, outstanding: u32) -> LoopProcess {
    LoopProcess {
        process,
        span: 90_000_000,
        outstanding,
        count: 100_000,
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

/// Delays a process by four seconds. By then the other processes have lost their initial favour.
fn latecomer(process: LoopProcess) -> LoopProcess {
    LoopProcess {
        process: 9,
        begins: Time::from_nanos(4_000_000_000),
        ..process
    }
}

/// A media player: a little data, and then a pause.
fn player() -> LoopProcess {
    let think = Duration::from_millis(100);
    latecomer(LoopProcess {
        start: 95_000_000,
        sectors: 64,
        stride: 72,
        think,
        count: 100,
        ..stream(9)
    })
}

fn run_until(end: Time, keys: &str, queue_depth: u32, processes: &[LoopProcess]) -> RunRecord {
    let entry = find("elevator", REGISTRY, "elevator", "bfq").unwrap();
    let layer = BlockLayer::new(
        build(entry, keys, queue_depth),
        &settings(queue_depth),
        None,
    );
    ElevatorBench::new(
        layer,
        &Load {
            queue_depth,
            processes: processes.to_vec(),
        },
    )
    .run(end)
}

/// Returns the dispatches of ten seconds, one at a time.
fn sent(keys: &str, processes: &[LoopProcess]) -> Vec<Sent> {
    run_until(Time::from_nanos(10_000_000_000), keys, 1, processes).sent
}

/// Returns the number of sectors dispatched for a process.
fn sectors(sent: &[Sent], process: u32) -> f64 {
    sent.iter()
        .filter(|sent| sent.process == process)
        .map(|sent| sent.extent.sectors.0 as f64)
        .sum()
}

/// Returns the mean number of successive requests of one process.
fn run_length(sent: &[Sent]) -> f64 {
    sent.len() as f64
        / sent
            .chunk_by(|one, other| one.process == other.process)
            .count() as f64
}

/// Returns the completion time of the last request of a process with a limited number of requests.
fn done_at(keys: &str, process: u32, processes: &[LoopProcess]) -> Duration {
    let ran = run_until(Time::from_nanos(60_000_000_000), keys, 1, processes);
    ran.done
        .iter()
        .rev()
        .find(|done| done.0 == process)
        .unwrap()
        .2
        .since(Time::ZERO)
}

pub(in crate::elevator) fn tunables() -> Vec<Tunable> {
    let few = |count| move |process: LoopProcess| LoopProcess { count, ..process };
    let streams: Vec<LoopProcess> = [stream(1), stream(2), stream(3)].map(few(2000)).to_vec();
    let pausing = |process: LoopProcess| LoopProcess {
        outstanding: 1,
        think: Duration::from_millis(1),
        ..process
    };
    let with = |last: LoopProcess| [&streams[..], &[last]].concat();
    let start = few(200)(latecomer(scattered(9, 2)));
    let again = LoopProcess {
        think: Duration::from_secs(1),
        count: 40,
        ..latecomer(scattered(9, 4))
    };
    let tunable = |key, values, others, processes| Tunable {
        key,
        values,
        others,
        load: Load {
            queue_depth: 1,
            processes,
        },
    };
    let near = LoopProcess {
        span: 60_000,
        count: 400,
        ..scattered(1, 16)
    };
    let short = r#"{ "low_latency": false, "timeout_sync": "20ms" }"#;
    let paced = r#"{ "wr_max_time": "1ns" }"#;
    vec![
        tunable(
            "slice_idle",
            [r#""0s""#, r#""8ms""#],
            "{}",
            streams.iter().copied().map(pausing).collect(),
        ),
        Tunable {
            key: "strict_guarantees",
            values: ["true", "false"],
            others: "{}",
            load: Load {
                queue_depth: 4,
                processes: streams.clone(),
            },
        },
        tunable("max_budget", ["1024", "16384"], "{}", streams.clone()),
        tunable(
            "timeout_sync",
            [r#""20ms""#, r#""125ms""#],
            "{}",
            streams.clone(),
        ),
        tunable(
            "fifo_expire_sync",
            [r#""1ms""#, r#""10s""#],
            short,
            vec![few(120)(scattered(1, 120))],
        ),
        tunable(
            "fifo_expire_async",
            [r#""1ms""#, r#""10s""#],
            short,
            vec![few(120)(writing(scattered(1, 120)))],
        ),
        tunable(
            "back_seek_max",
            [r#""0 B""#, r#""16 MiB""#],
            "{}",
            vec![near],
        ),
        tunable("back_seek_penalty", ["1", "100"], "{}", vec![near]),
        tunable("low_latency", ["true", "false"], "{}", with(start)),
        tunable("wr_coeff", ["2", "30"], "{}", with(start)),
        tunable("wr_max_time", [r#""1ms""#, r#""10s""#], "{}", with(start)),
        tunable(
            "wr_min_idle_time",
            [r#""500ms""#, r#""10s""#],
            paced,
            with(again),
        ),
        tunable(
            "wr_rt_max_time",
            [r#""1ns""#, r#""10s""#],
            paced,
            with(player()),
        ),
        tunable("wr_max_softrt_rate", ["0", "7000"], paced, with(player())),
    ]
}

#[test]
fn streams_get_sectors_in_proportion_to_their_weights() {
    // Levels 0 and 6 are weights of 80 and 20.
    let processes = [
        LoopProcess {
            level: 0,
            ..stream(1)
        },
        LoopProcess {
            level: 6,
            ..stream(2)
        },
    ];
    let sent = sent("{}", &processes);
    let ratio = sectors(&sent, 1) / sectors(&sent, 2);
    assert!((3.6..4.4).contains(&ratio), "{ratio}");
}

#[test]
fn slow_processes_get_as_much_time_and_not_as_many_sectors() {
    let keys = r#"{ "low_latency": false }"#;
    let sent = sent(keys, &[stream(1), scattered(2, 4)]);
    let ratio = sectors(&sent, 1) / sectors(&sent, 2);
    assert!(ratio > 30.0, "{ratio} times the sectors");
    let of_scattered = sent.windows(2).filter(|pair| pair[0].process == 2);
    let time: Duration = of_scattered.map(|pair| pair[1].at.since(pair[0].at)).sum();
    let share = time.as_secs_f64() / 10.0;
    assert!((0.4..0.65).contains(&share), "{share} of the time");
}

#[test]
fn asynchronous_sectors_count_threefold() {
    let keys = r#"{ "low_latency": false }"#;
    let sent = sent(
        keys,
        &[
            stream(1),
            LoopProcess {
                outstanding: 16,
                ..writing(stream(2))
            },
        ],
    );
    let ratio = sectors(&sent, 1) / sectors(&sent, 2);
    assert!((2.5..3.5).contains(&ratio), "{ratio}");
}

#[test]
fn the_device_is_left_idle_for_streams_that_pause_shortly() {
    let pausing = |process| LoopProcess {
        outstanding: 1,
        think: Duration::from_micros(200),
        ..process
    };
    let processes = [pausing(stream(1)), pausing(stream(2))];
    let waited = run_length(&sent(r#"{ "low_latency": false }"#, &processes));
    let not_waited = run_length(&sent(
        r#"{ "low_latency": false, "slice_idle": "0s" }"#,
        &processes,
    ));
    assert!(waited > 20.0, "{waited}");
    assert!(not_waited < 2.5, "{not_waited}");
}

#[test]
fn nobody_waits_for_processes_that_think_long() {
    let thinking = |process| LoopProcess {
        outstanding: 1,
        think: Duration::from_millis(30),
        ..process
    };
    let processes = [thinking(stream(1)), thinking(stream(2))];
    let sent = sent(r#"{ "low_latency": false }"#, &processes);
    // The requests of a process come every 33 ms. In between, requests of the other process are
    // served.
    let requests = sent.iter().filter(|sent| sent.at > SECOND).count() as f64;
    assert!(requests / 9.0 > 55.0, "{} a second", requests / 9.0);
}

#[test]
fn strict_guarantees_send_one_request_at_a_time() {
    let most_at_once = |keys: &str| {
        let ran = run_until(SECOND, keys, 8, &[stream(1), stream(2)]);
        let done: Vec<Time> = ran.done.iter().map(|done| done.2).collect();
        let in_flight =
            |at: Time, sent: usize| sent + 1 - done.iter().filter(|&&done| done <= at).count();
        assert_eq!(
            ran.sent
                .iter()
                .filter(|sent| sent.extent.sectors.0 > 256)
                .count(),
            0,
            "none is merged"
        );
        ran.sent
            .iter()
            .enumerate()
            .map(|(sent, request)| in_flight(request.at, sent))
            .max()
            .unwrap()
    };
    assert_eq!(most_at_once(r#"{ "strict_guarantees": true }"#), 1);
    assert!(most_at_once("{}") >= 4);
}

#[test]
fn who_starts_something_is_favoured() {
    let start = LoopProcess {
        count: 200,
        ..latecomer(scattered(9, 1))
    };
    let processes = [stream(1), stream(2), stream(3), start];
    let favoured = done_at("{}", 9, &processes);
    let equal = done_at(r#"{ "low_latency": false }"#, 9, &processes);
    // Two hundred requests of 5 ms. With equal shares of four processes, four times as long.
    assert!(favoured < Duration::from_millis(5500), "{favoured}");
    assert!(equal > Duration::from_millis(7300), "{equal}");
}

#[test]
fn the_favour_of_those_who_go_on_ends() {
    let greedy = latecomer(stream(9));
    let sent = sent("{}", &[stream(1), greedy]);
    let between = |from: u64, to: u64| {
        let part: Vec<Sent> = sent
            .iter()
            .filter(|sent| (from..to).contains(&(sent.at.as_nanos() / 100_000_000)))
            .copied()
            .collect();
        sectors(&part, 9) / (sectors(&part, 1) + sectors(&part, 9))
    };
    // 120 000 sectors take 0.7 s for a process alone.
    let (first, later) = (between(41, 46), between(60, 100));
    assert!(first > 0.8, "{first}");
    assert!((0.4..0.6).contains(&later), "{later}");
}

#[test]
fn who_paces_itself_is_favoured() {
    let processes = [stream(1), stream(2), stream(3), player()];
    let favoured = done_at(r#"{ "wr_max_time": "1ns" }"#, 9, &processes);
    let equal = done_at(
        r#"{ "wr_max_time": "1ns", "wr_max_softrt_rate": 0 }"#,
        9,
        &processes,
    );
    // Twenty-five rounds, with 2.5 s of pauses.
    let pauses = Duration::from_millis(6500);
    assert!(
        (favoured - pauses) * 4 < equal - pauses,
        "{favoured}, otherwise {equal}"
    );
}

#[test]
fn those_who_were_given_a_level_are_not_favoured() {
    let start = |level| LoopProcess {
        count: 200,
        level,
        ..latecomer(scattered(9, 1))
    };
    // The streams begin apart. Otherwise the favoured ones would merge into one queue.
    let second = LoopProcess {
        begins: SECOND,
        ..stream(2)
    };
    let at = |keys: &str, level| done_at(keys, 9, &[stream(1), second, start(level)]);
    let (favoured, equal) = (at("{}", 4), at(r#"{ "low_latency": false }"#, 4));
    assert!(
        favoured.as_secs_f64() / equal.as_secs_f64() < 0.8,
        "{favoured}, otherwise {equal}"
    );
    let (favoured, equal) = (at("{}", 5), at(r#"{ "low_latency": false }"#, 5));
    assert!(
        favoured.as_secs_f64() / equal.as_secs_f64() > 0.9,
        "{favoured}, otherwise {equal}"
    );
}

#[test]
fn the_real_time_class_goes_first() {
    let urgent = LoopProcess {
        class: PriorityClass::RealTime,
        count: 200,
        ..latecomer(scattered(9, 1))
    };
    let at = done_at(
        r#"{ "low_latency": false }"#,
        9,
        &[stream(1), stream(2), urgent],
    );
    assert!(at < Duration::from_millis(5500), "{at}");
}

#[test]
fn the_idle_class_is_not_shut_out() {
    let idle = LoopProcess {
        class: PriorityClass::Idle,
        ..scattered(2, 1)
    };
    let requests = sent("{}", &[stream(1), idle])
        .iter()
        .filter(|sent| sent.process == 2)
        .count();
    // One request in each 200 ms plus a turn.
    assert!((20..60).contains(&requests), "{requests}");
}

#[test]
fn budgets_bound_turns() {
    let processes = [stream(1), stream(2)];
    let of = |keys: &str| run_length(&sent(keys, &processes)) * 256.0;
    let small = of(r#"{ "max_budget": 1024, "low_latency": false }"#);
    let large = of(r#"{ "max_budget": 8192, "low_latency": false }"#);
    assert!((900.0..1200.0).contains(&small), "{small} sectors");
    assert!((6000.0..8300.0).contains(&large), "{large} sectors");
}

#[test]
fn an_old_request_goes_before_the_nearest_once_a_turn() {
    // First one request. During its service one request arrives behind it, and then many ahead of
    // it.
    let at_once = |begins| LoopProcess {
        begins: Time::from_nanos(begins),
        count: 1,
        ..stream(1)
    };
    let onwards = LoopProcess {
        start: 20_000_000,
        outstanding: 100,
        count: 100,
        ..at_once(2)
    };
    let behind = LoopProcess {
        start: 8,
        sectors: 8,
        ..at_once(1)
    };
    let at = |keys: &str| {
        let sent = sent(keys, &[at_once(0), behind, onwards]);
        sent.iter()
            .find(|sent| sent.extent.start == Lbn(8))
            .unwrap()
            .at
            .since(Time::ZERO)
    };
    let early =
        at(r#"{ "low_latency": false, "fifo_expire_sync": "1ms", "timeout_sync": "40ms" }"#);
    let late = at(r#"{ "low_latency": false, "fifo_expire_sync": "10s", "timeout_sync": "40ms" }"#);
    assert!(early < Duration::from_millis(100), "{early}");
    assert!(late > Duration::from_millis(140), "{late}");
}

/// Two members, with a hundred sectors of each in turn.
struct TwoMembers;

impl Stripes for TwoMembers {
    fn unit(&self) -> Sectors {
        Sectors(100)
    }
    fn member_of(&self, lbn: Lbn) -> u32 {
        (lbn.0 / 100 % 2) as u32
    }
}

#[test]
fn waiting_for_one_member_does_not_hold_the_others_up() {
    // One process with weight stays on member 0 and makes short pauses. Another process uses member
    // 1.
    let pausing = LoopProcess {
        level: 0,
        sectors: 8,
        stride: 200,
        think: Duration::from_millis(3),
        count: 1000,
        ..LoopProcess::default()
    };
    let other = LoopProcess {
        process: 2,
        level: 4,
        // Far from the first process. Near it, the two would share a queue.
        start: 400_100,
        think: Duration::ZERO,
        ..pausing
    };
    let entry = find("elevator", REGISTRY, "elevator", "bfq").unwrap();
    let last = |per_member: bool| {
        let keys = r#"{ "low_latency": false }"#;
        let set = crate::block::LayerSettings {
            per_member_anticipation: per_member,
            ..settings(4)
        };
        let layer = BlockLayer::new(build(entry, keys, 4), &set, Some(Box::new(TwoMembers)));
        let ran = ElevatorBench::new(
            layer,
            &Load {
                queue_depth: 4,
                processes: vec![pausing, other],
            },
        )
        .run(Time::NEVER);
        ran.done
            .iter()
            .rev()
            .find(|done| done.0 == 2)
            .unwrap()
            .2
            .since(Time::ZERO)
    };
    let (together, apart) = (last(false), last(true));
    assert!(apart * 4 < together * 3, "{apart}, otherwise {together}");
}

#[test]
fn pauses_of_those_who_think_long_are_filled_by_others() {
    let thinking = LoopProcess {
        level: 0,
        think: Duration::from_millis(6),
        ..scattered(1, 1)
    };
    let requests = |queue_depth| {
        let processes = [thinking, scattered(2, 8)];
        let ten_seconds = Time::from_nanos(10_000_000_000);
        let sent = run_until(
            ten_seconds,
            r#"{ "low_latency": false }"#,
            queue_depth,
            &processes,
        )
        .sent;
        [1, 2].map(|process| sent.iter().filter(|sent| sent.process == process).count())
    };
    // A drive without a queue is left idle. A drive with a queue is not. There the kernel takes the
    // other process for the one that wakes the first, because completions of the other come before
    // each of its requests (`bfq_check_waker`). So the first process gets less.
    let (without, with) = (requests(1), requests(8));
    assert!(
        with[0] * 10 > without[0] * 3,
        "{with:?} with a queue, {without:?} without"
    );
    assert!(
        with[1] * 10 > without[1] * 13,
        "{with:?} with a queue, {without:?} without"
    );
}

#[test]
fn contradictory_values_are_refused() {
    let build = find("elevator", REGISTRY, "elevator", "bfq")
        .unwrap()
        .build
        .build;
    let site = SITE;
    for (keys, key) in [
        (r#"{ "timeout_sync": "0s" }"#, "timeout_sync"),
        (r#"{ "back_seek_penalty": 0 }"#, "back_seek_penalty"),
        (r#"{ "wr_coeff": 1 }"#, "wr_coeff"),
        (
            r#"{ "strict_guarantees": true, "slice_idle": "0s" }"#,
            "strict_guarantees",
        ),
        (
            r#"{ "low_latency": false, "wr_max_time": "1s" }"#,
            "wr_max_time",
        ),
    ] {
        let keys: Keys = serde_json::from_str(keys).unwrap();
        assert_eq!(build(&keys, &site).err().unwrap().key, key);
    }
}

#[test]
fn what_is_waited_for_in_vain_is_not_waited_for_long() {
    // The only request of the first process. The request of the second is served at most 8 ms
    // later.
    let first = LoopProcess {
        count: 1,
        ..stream(1)
    };
    let second = LoopProcess {
        begins: Time::from_nanos(100_000),
        count: 1,
        ..stream(2)
    };
    let entry = find("elevator", REGISTRY, "elevator", "bfq").unwrap();
    let load = Load {
        queue_depth: 1,
        processes: vec![first, second],
    };
    let ran = run_entry(entry, r#"{ "low_latency": false }"#, &load);
    let gap = ran.sent[1].at.since(ran.done[0].2);
    assert!(gap <= Duration::from_millis(8), "{gap}");
}

/// Random readers and a stream that start at once: after 600 ms all have one queue, and the device
/// is not left idle between them.
#[test]
fn processes_that_start_together_share_a_queue() {
    let processes: Vec<LoopProcess> = (1..=3)
        .map(|process| scattered(process, 4))
        .chain([LoopProcess {
            outstanding: 2,
            ..stream(4)
        }])
        .collect();
    let share = |begins_apart: bool| {
        let processes: Vec<LoopProcess> = processes
            .iter()
            .map(|&process| LoopProcess {
                begins: if begins_apart {
                    Time::from_nanos(700_000_000 * u64::from(process.process))
                } else {
                    Time::ZERO
                },
                ..process
            })
            .collect();
        let sent = run_until(Time::from_nanos(30_000_000_000), "{}", 8, &processes).sent;
        let late = sent
            .iter()
            .filter(|sent| sent.at > Time::from_nanos(15_000_000_000));
        let (stream, all) = late.fold((0, 0), |(stream, all), sent| {
            (stream + u32::from(sent.process == 4), all + 1)
        });
        f64::from(stream) / f64::from(all)
    };
    let (together, apart) = (share(false), share(true));
    assert!(
        (together - apart).abs() > 0.1,
        "{together}, otherwise {apart}"
    );
}

/// Two processes read one file in turns, each every second piece.
#[test]
fn processes_that_read_in_turns_share_a_queue() {
    let turn = |process: u32| LoopProcess {
        process,
        start: 256 * u64::from(process),
        // With 256 sectors each request would join the one before.
        sectors: 248,
        stride: 512,
        outstanding: 1,
        count: 400,
        ..LoopProcess::default()
    };
    // Without merging the device would be left idle for each of the two in turn.
    let ran = run_until(
        Time::NEVER,
        r#"{ "low_latency": false }"#,
        1,
        &[turn(0), turn(1)],
    );
    let run = run_length(&ran.sent);
    assert!(run < 1.5, "runs of {run} requests of one process");
}
