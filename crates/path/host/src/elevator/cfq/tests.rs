use super::super::REGISTRY;
use super::super::extremes::Halves;
use super::super::testing::{
    ElevatorBench, Load, LoopProcess, RunRecord, SITE, Sent, Tunable, build, run, run_entry,
    settings,
};
use super::queues::CfqQueues;
use super::slices::Slices;
use crate::block::{BlockLayer, LayerSettings, Queued};
use fullstroke_contract::registry::{Keys, find};
use fullstroke_contract::{Operation, PriorityClass};
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

/// An asynchronous writer at this level.
fn writer(process: u32, level: u8) -> LoopProcess {
    LoopProcess {
        operation: Operation::Write,
        synchronous: false,
        level,
        ..scattered(process)
    }
}

/// A sequential reader with this think time.
fn sequential(process: u32, start: u64, think_us: u64) -> LoopProcess {
    LoopProcess {
        process,
        start,
        think: Duration::from_micros(think_us),
        count: 400,
        ..LoopProcess::default()
    }
}

/// Random readers with one outstanding request each.
fn random_readers(count: u32) -> Vec<LoopProcess> {
    (1..=count)
        .map(|id| LoopProcess {
            outstanding: 1,
            ..scattered(id)
        })
        .collect()
}

fn ran(keys: &str, load: &Load) -> RunRecord {
    run_entry(
        find("elevator", REGISTRY, "elevator", "cfq").unwrap(),
        keys,
        load,
    )
}

fn at_ms(ms: u64) -> Time {
    Time::ZERO + Duration::from_millis(ms)
}

pub(in super::super) fn tunables() -> Vec<Tunable> {
    let tunable = |key, values, queue_depth, processes: &[LoopProcess]| Tunable {
        key,
        values,
        others: "{}",
        load: load(queue_depth, processes),
    };
    let near = [1, 2].map(|id| LoopProcess {
        span: 400_000,
        outstanding: 16,
        ..scattered(id)
    });
    let readers = [scattered(1), scattered(2)];
    let writers = [writer(1, 6), writer(2, 7)];
    let thinkers = [sequential(1, 0, 500), sequential(2, FAR, 500)];
    vec![
        tunable("back_seek_max", ["0", r#""16MiB""#], 1, &near),
        tunable("back_seek_penalty", ["1", "4"], 1, &near),
        tunable("fifo_expire_async", [r#""1ms""#, r#""10s""#], 1, &writers),
        tunable("fifo_expire_sync", [r#""1ms""#, r#""10s""#], 1, &readers),
        tunable("quantum", ["2", "4"], 8, &readers),
        tunable("slice_async", [r#""10ms""#, r#""200ms""#], 1, &writers),
        tunable("slice_sync", [r#""20ms""#, r#""200ms""#], 1, &readers),
        tunable("slice_async_rq", ["1", "8"], 1, &writers),
        tunable("slice_idle", [r#""0s""#, r#""8ms""#], 1, &thinkers),
        crate::elevator::coordinated::tunable(),
        tunable(
            "queueing_detection_bug",
            ["true", "false"],
            8,
            &random_readers(8),
        ),
    ]
}

/// Returns the successive requests of one process as turns, with the length of each turn.
fn turns(sent: &[Sent]) -> Vec<(u32, Duration)> {
    let runs: Vec<&[Sent]> = sent
        .chunk_by(|one, other| one.process == other.process)
        .collect();
    runs.windows(2)
        .map(|pair| (pair[0][0].process, pair[1][0].at.since(pair[0][0].at)))
        .collect()
}

/// Returns the mean length of the turns of a process while others wait, in milliseconds.
fn mean_turn_ms(sent: &[Sent], process: u32) -> f64 {
    let turns = turns(sent);
    let own: Vec<f64> = turns[1..turns.len() - 2]
        .iter()
        .filter(|&&(of, _)| of == process)
        .map(|(_, span)| span.as_millis_f64())
        .collect();
    own.iter().sum::<f64>() / own.len() as f64
}

fn assert_near(found: f64, expected: f64, within: f64) {
    assert!(
        (found - expected).abs() <= within,
        "{found}, expected {expected}"
    );
}

#[test]
fn a_slice_is_time_however_much_is_read_in_it() {
    let endless = |process| LoopProcess {
        count: 4000,
        ..process
    };
    let readers = [
        endless(sequential(1, 0, 0)),
        endless(LoopProcess {
            outstanding: 1,
            ..scattered(2)
        }),
    ];
    let sent = run("cfq", "{}", &load(1, &readers));
    let while_both = sent.iter().position(|sent| sent.at > at_ms(500)).unwrap();
    let both = &sent[..while_both];
    let of = |process| both.iter().filter(|sent| sent.process == process).count();
    assert!(
        of(1) > 8 * of(2),
        "{} sequential, {} random requests",
        of(1),
        of(2)
    );
    assert_near(mean_turn_ms(&sent[..2000], 1), 100.0, 12.0);
    assert_near(mean_turn_ms(&sent[..2000], 2), 100.0, 12.0);
}

#[test]
fn a_slice_is_a_fifth_longer_for_each_level_above_4() {
    let reader = |process, start, level| LoopProcess {
        level,
        count: 8000,
        ..sequential(process, start, 0)
    };
    let sent = run("cfq", "{}", &load(1, &[reader(1, 0, 0), reader(2, FAR, 7)]));
    let both = &sent[..6000];
    assert_near(mean_turn_ms(both, 1), 180.0, 12.0);
    assert_near(mean_turn_ms(both, 2), 40.0, 12.0);
}

#[test]
fn real_time_goes_before_everything_else_at_the_next_slice() {
    // With two outstanding requests the queue never runs empty.
    let urgent = LoopProcess {
        class: PriorityClass::RealTime,
        begins: at_ms(30),
        count: 1000,
        outstanding: 2,
        stride: 2000,
        ..sequential(3, 50_000_000, 0)
    };
    let others =
        [sequential(1, 0, 0), sequential(2, FAR, 0)].map(|one| LoopProcess { count: 4000, ..one });
    let sent = run("cfq", "{}", &load(1, &[others[0], others[1], urgent]));
    let first = sent.iter().position(|sent| sent.process == 3).unwrap();
    assert!(sent[first].at < at_ms(110), "{:?}", sent[first].at);
    assert!(
        sent[first..first + 1000]
            .iter()
            .all(|sent| sent.process == 3)
    );
}

#[test]
fn the_idle_class_waits_for_a_grace_period() {
    let idle = LoopProcess {
        class: PriorityClass::Idle,
        ..sequential(1, 0, 0)
    };
    let other = LoopProcess {
        count: 50,
        ..sequential(2, FAR, 20_000)
    };
    let ran = ran("{}", &load(1, &[idle, other]));
    let last = ran
        .done
        .iter()
        .filter(|&&(process, ..)| process == 2)
        .map(|&(.., at)| at)
        .max()
        .unwrap();
    let first = ran.sent.iter().find(|sent| sent.process == 1).unwrap().at;
    // A think time of 20 ms does not make the device idle.
    assert_eq!(first, last + Duration::from_millis(100));
}

#[test]
fn the_turn_after_a_slice_that_was_taken_counts_from_when_it_should_have_ended() {
    let config: super::Config = serde_json::from_str("{}").unwrap();
    // Three queues. The slice of the first ends after `used_ms`. Then a fourth queue arrives.
    let order = |used_ms: u64, taken: bool| {
        let (mut slices, mut queues) = (
            Slices::new(&config, crate::TickClock::EXACT),
            CfqQueues::default(),
        );
        let join = |now: Time, id: u32, slices: &mut Slices, queues: &mut CfqQueues| {
            let request = Queued {
                process: id,
                ..Queued::default()
            };
            let process = queues.process(now, id);
            let queue = queues.queue(process, &request);
            queues.insert(id, queue, &request);
            slices.enqueue(now, queue, queues);
        };
        (0..3).for_each(|id| join(Time::ZERO, id, &mut slices, &mut queues));
        assert_eq!(slices.select(Time::ZERO, &mut queues), Some(0));
        slices.completed(Time::ZERO, 0, &mut queues);
        slices.end(at_ms(used_ms), taken, &mut queues);
        join(at_ms(used_ms), 3, &mut slices, &mut queues);
        queues.in_order().collect::<Vec<u32>>()
    };
    // Each other queue delays the next turn by 180 - 100 ms. The fourth queue has its turn at 10 +
    // 3 * 80 ms. The first has its turn at 10 + 2 * 80 ms or, if its slice was taken away, at 100 +
    // 2 * 80 ms.
    assert_eq!(order(10, false), [1, 2, 0, 3]);
    assert_eq!(order(10, true), [1, 2, 3, 0]);
    assert_eq!(order(120, true), [1, 2, 0, 3]);
}

#[test]
fn a_queue_of_shorter_slices_comes_later_the_more_queues_there_are() {
    let config: super::Config = serde_json::from_str("{}").unwrap();
    let (mut slices, mut queues) = (
        Slices::new(&config, crate::TickClock::EXACT),
        CfqQueues::default(),
    );
    for (id, level, at) in [(0, 4, at_ms(0)), (1, 7, at_ms(1)), (2, 0, at_ms(50))] {
        let request = Queued {
            process: id,
            level,
            ..Queued::default()
        };
        let process = queues.process(at, id);
        let queue = queues.queue(process, &request);
        queues.insert(id, queue, &request);
        slices.enqueue(at, queue, &mut queues);
    }
    // The second queue has its turn 180 - 40 ms after its request, the third at once.
    assert_eq!(queues.in_order().collect::<Vec<u32>>(), [0, 2, 1]);
}

#[test]
fn only_the_beginning_of_a_slice_is_for_the_expired() {
    let crowd = [1, 2].map(|id| LoopProcess {
        outstanding: 48,
        count: 1000,
        ..scattered(id)
    });
    let sent = run("cfq", r#"{ "fifo_expire_sync": "1ms" }"#, &load(1, &crowd));
    let own: Vec<&Sent> = sent.iter().filter(|sent| sent.process == 1).collect();
    let falls = own
        .windows(2)
        .filter(|pair| pair[1].extent.start < pair[0].extent.start)
        .count();
    // In order of arrival, sorted by fours, there would be 250.
    assert!(falls < 120, "{falls} of 1000 go back");
}

#[test]
fn it_waits_for_who_thinks_less_than_slice_idle_and_not_for_others() {
    let keys = r#"{ "slice_idle": "0s" }"#;
    let run_both = |think_us| {
        let readers = load(
            1,
            &[sequential(1, 0, think_us), sequential(2, FAR, think_us)],
        );
        (run("cfq", "{}", &readers), run("cfq", keys, &readers))
    };
    let (waiting, not) = run_both(1_000);
    assert!(
        turns(&waiting).len() < 30,
        "{} turns",
        turns(&waiting).len()
    );
    assert!(turns(&not).len() > 700, "{} turns", turns(&not).len());
    let (waiting, not) = run_both(12_000);
    let excess = waiting.last().unwrap().at.since(not.last().unwrap().at);
    assert!(excess < Duration::from_millis(60), "{excess:?} lost");
}

#[test]
fn it_waits_briefly_for_who_reads_at_random_on_a_device_that_does_not_queue() {
    // Both processes think for 3 ms. The wait for a seeky process lasts 2 ms, so it is in vain.
    let readers = [1, 2].map(|id| LoopProcess {
        outstanding: 1,
        think: Duration::from_millis(3),
        ..scattered(id)
    });
    let shallow = run("cfq", "{}", &load(1, &readers));
    let deep = run("cfq", "{}", &load(8, &readers));
    let brief = run("cfq", r#"{ "slice_idle": "8ms" }"#, &load(1, &[readers[0]]));
    assert!(
        turns(&shallow).len() > 600,
        "{} turns",
        turns(&shallow).len()
    );
    assert!(deep.last().unwrap().at < shallow.last().unwrap().at);
    // A process alone keeps no other process waiting.
    assert_eq!(
        brief.last().unwrap().at,
        run("noop", "{}", &load(1, &[readers[0]]))
            .last()
            .unwrap()
            .at
    );
}

#[test]
fn the_detection_bug_keeps_a_queueing_device_at_one_request() {
    let readers = load(8, &random_readers(32));
    let fixed = run("cfq", "{}", &readers);
    let bug = run("cfq", r#"{ "queueing_detection_bug": true }"#, &readers);
    let no_idle = run(
        "cfq",
        r#"{ "queueing_detection_bug": true, "slice_idle": "0s" }"#,
        &readers,
    );
    let end = |sent: &[Sent]| sent.last().unwrap().at.as_secs_f64();
    assert!(
        end(&bug) > 1.8 * end(&fixed),
        "{} and {}",
        end(&bug),
        end(&fixed)
    );
    // Carroll's work-around has the same effect as a correct detection.
    assert_near(end(&no_idle) / end(&fixed), 1.0, 0.02);
    // With the fault, a device is still detected if more than four requests are in flight at once.
    let crowd = load(8, &[scattered(1), scattered(2)]);
    let found = end(&run("cfq", r#"{ "queueing_detection_bug": true }"#, &crowd));
    assert_near(found / end(&run("cfq", "{}", &crowd)), 1.0, 0.1);
}

#[test]
fn a_queue_sends_a_quantum_at_a_time_while_others_wait() {
    for quantum in [2, 4] {
        let keys = format!(r#"{{ "quantum": {quantum} }}"#);
        let sent = run("cfq", &keys, &load(32, &[scattered(1), scattered(2)]));
        let at_once = sent.iter().take_while(|sent| sent.at == Time::ZERO).count();
        assert_eq!(at_once, quantum);
        let sent = run(
            "cfq",
            &keys,
            &load(
                32,
                &[LoopProcess {
                    outstanding: 32,
                    ..scattered(1)
                }],
            ),
        );
        let at_once = sent.iter().take_while(|sent| sent.at == Time::ZERO).count();
        assert_eq!(at_once, 4 * quantum);
    }
}

#[test]
fn requests_are_merged_within_a_queue_only() {
    // While a first request is served, two processes ask for adjacent sectors.
    let first = LoopProcess {
        process: 9,
        start: FAR,
        count: 1,
        ..LoopProcess::default()
    };
    let neighbours = |synchronous| {
        [(1, 0), (2, 8)].map(|(process, start)| LoopProcess {
            process,
            start,
            count: 1,
            operation: Operation::Write,
            synchronous,
            begins: Time::from_nanos(1),
            ..LoopProcess::default()
        })
    };
    let sent = |synchronous| {
        let [one, other] = neighbours(synchronous);
        run("cfq", "{}", &load(1, &[first, one, other])).len()
    };
    assert_eq!((sent(true), sent(false)), (3, 2));
}

#[test]
fn a_synchronous_request_takes_the_slice_of_asynchronous_ones() {
    let writes = LoopProcess {
        outstanding: 64,
        ..writer(1, 4)
    };
    let read = LoopProcess {
        count: 1,
        begins: at_ms(20),
        ..sequential(2, FAR, 0)
    };
    let sent = run(
        "cfq",
        r#"{ "slice_async": "10s" }"#,
        &load(1, &[writes, read]),
    );
    let when = sent.iter().find(|sent| sent.process == 2).unwrap().at;
    // Requests that were chosen already go first: at most sixteen if the queue is alone.
    assert!(when < at_ms(20 + 16 * 9), "{when:?}");
}

#[test]
fn a_slice_begins_with_what_has_expired() {
    let near = LoopProcess {
        start: 50_000_000,
        outstanding: 32,
        span: 20_000,
        count: 4000,
        ..LoopProcess::default()
    };
    let far = LoopProcess {
        start: FAR,
        count: 1,
        begins: Time::from_nanos(1),
        ..LoopProcess::default()
    };
    let other = LoopProcess {
        count: 4000,
        outstanding: 2,
        stride: 2000,
        ..sequential(2, 0, 0)
    };
    let when = |expire: &str| {
        let keys = format!(r#"{{ "fifo_expire_sync": "{expire}", "back_seek_penalty": 1 }}"#);
        let sent = run("cfq", &keys, &load(1, &[near, far, other]));
        sent.iter()
            .find(|sent| sent.extent.start.0 == FAR)
            .unwrap()
            .at
    };
    assert!(when("125ms") < at_ms(450), "{:?}", when("125ms"));
    assert!(when("10s") > at_ms(450), "{:?}", when("10s"));
}

/// True if `victim` is served within a minute beside a number of random readers.
fn is_served(
    victim: LoopProcess,
    keys: &str,
    queue_depth: u32,
    readers: u32,
    outstanding: u32,
) -> bool {
    let reader = |id| LoopProcess {
        outstanding,
        count: u32::MAX,
        ..scattered(id)
    };
    let processes: Vec<LoopProcess> = (1..=readers).map(reader).chain([victim]).collect();
    let entry = find("elevator", REGISTRY, "elevator", "cfq").unwrap();
    let layer = BlockLayer::new(
        build(entry, keys, queue_depth),
        &settings(queue_depth),
        None,
    );
    ElevatorBench::new(
        layer,
        &Load {
            queue_depth,
            processes,
        },
    )
    .serves(victim.process, at_ms(60_000))
}

#[test]
fn a_synchronous_request_has_its_turn_beside_any_readers() {
    let victim = LoopProcess {
        count: 1,
        begins: at_ms(50),
        ..sequential(99, FAR, 0)
    };
    for (queue_depth, outstanding) in [(1, 1), (1, 8), (8, 1), (8, 8), (32, 8)] {
        for keys in ["{}", r#"{ "slice_idle": "0s" }"#] {
            assert!(
                is_served(victim, keys, queue_depth, 16, outstanding),
                "{keys} at a depth of {queue_depth}"
            );
        }
    }
}

#[test]
fn an_asynchronous_one_has_its_turn_only_where_slices_leave_the_device_empty() {
    let victim = LoopProcess {
        outstanding: 1,
        count: 1,
        begins: at_ms(50),
        ..writer(99, 4)
    };
    assert!(is_served(victim, "{}", 1, 16, 1));
    assert!(is_served(victim, "{}", 1, 16, 8));
    assert!(!is_served(victim, "{}", 8, 16, 1));
    assert!(!is_served(victim, r#"{ "slice_idle": "0s" }"#, 1, 16, 1));
}

#[test]
fn by_member_the_wait_at_one_does_not_hold_the_others_back() {
    let entry = find("elevator", REGISTRY, "elevator", "cfq").unwrap();
    let sent = |per_member_anticipation, start| {
        let readers = load(8, &[sequential(1, 0, 3_000), sequential(2, start, 3_000)]);
        let settings = LayerSettings {
            per_member_anticipation,
            ..settings(8)
        };
        let layer = BlockLayer::new(build(entry, "{}", 8), &settings, Some(Box::new(Halves)));
        ElevatorBench::new(layer, &readers).run(Time::NEVER).sent
    };
    assert!(turns(&sent(false, FAR)).len() < 60);
    assert!(
        turns(&sent(true, FAR)).len() > 600,
        "{}",
        turns(&sent(true, FAR)).len()
    );
    assert!(turns(&sent(true, 40_000_000)).len() < 60);
}

#[test]
fn values_that_mean_nothing_are_refused() {
    let build = find("elevator", REGISTRY, "elevator", "cfq")
        .unwrap()
        .build
        .build;
    let site = SITE;
    for (keys, key) in [
        (r#"{ "quantum": 0 }"#, "quantum"),
        (r#"{ "back_seek_penalty": 0 }"#, "back_seek_penalty"),
        (r#"{ "slice_async_rq": 0 }"#, "slice_async_rq"),
        (r#"{ "slice_sync": "0s" }"#, "slice_sync"),
        (r#"{ "slice_async": "0s" }"#, "slice_async"),
    ] {
        let keys: Keys = serde_json::from_str(keys).unwrap();
        assert_eq!(build(&keys, &site).err().unwrap().key, key);
    }
}

#[test]
fn a_request_as_near_as_what_is_waited_for_takes_the_slice() {
    // A reader in steps of 2000 sectors, with one request each 2.28 ms. After the eleventh request
    // the slice waits from 23.0 ms on, at sector 20 008.
    let reader = LoopProcess {
        stride: 2000,
        ..sequential(1, 0, 2_000)
    };
    let wait = |start: u64| {
        let other = LoopProcess {
            start,
            count: 1,
            begins: at_ms(24),
            ..sequential(2, start, 0)
        };
        let sent = run("cfq", "{}", &load(1, &[reader, other]));
        sent.iter()
            .find(|sent| sent.process == 2)
            .unwrap()
            .at
            .since(at_ms(24))
    };
    assert_eq!(wait(21_000), Duration::ZERO);
    assert!(
        wait(30_000) > Duration::from_millis(70),
        "{:?}",
        wait(30_000)
    );
}

#[test]
fn what_has_been_chosen_is_not_merged_any_more() {
    // The first request completes after 0.24 ms. Then the next two are chosen.
    let one = |start, begins_us| LoopProcess {
        start,
        count: 1,
        begins: Time::ZERO + Duration::from_micros(begins_us),
        ..LoopProcess::default()
    };
    let sent = |begins_us| {
        run(
            "cfq",
            "{}",
            &load(
                1,
                &[one(0, 0), one(1000, 1), one(5000, 1), one(5008, begins_us)],
            ),
        )
        .len()
    };
    assert_eq!((sent(100), sent(300)), (3, 4));
}

#[test]
fn queues_of_the_idle_class_send_one_request_at_a_time() {
    let reader = |process, start| LoopProcess {
        outstanding: 4,
        stride: 2000,
        ..sequential(process, start, 0)
    };
    let idle = |process: LoopProcess| LoopProcess {
        class: PriorityClass::Idle,
        ..process
    };
    let count = |readers: [LoopProcess; 2]| turns(&run("cfq", "{}", &load(1, &readers))).len();
    assert!(count([idle(reader(1, 0)), idle(reader(2, FAR))]) > 350);
    assert!(count([reader(1, 0), reader(2, FAR)]) < 60);
}
