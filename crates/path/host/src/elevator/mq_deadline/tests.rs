//! Differences from `deadline`, in virtual time.

use super::super::REGISTRY;
use super::super::testing::{Load, LoopProcess, SITE, Sent, run};
use fullstroke_contract::registry::{Keys, find};
use fullstroke_contract::{Operation, PriorityClass};
use fullstroke_units::{Duration, Time};

pub(super) fn scattered(outstanding: u32) -> LoopProcess {
    LoopProcess {
        outstanding,
        span: 90_000_000,
        count: 600,
        ..LoopProcess::default()
    }
}

pub(super) fn writing(process: LoopProcess) -> LoopProcess {
    LoopProcess {
        process: 2,
        operation: Operation::Write,
        synchronous: false,
        ..process
    }
}

fn sent(keys: &str, processes: Vec<LoopProcess>) -> Vec<Sent> {
    run(
        "mq-deadline",
        keys,
        &Load {
            queue_depth: 1,
            processes,
        },
    )
}

/// Returns the requests of `process`.
fn of(sent: &[Sent], process: u32) -> Vec<Sent> {
    sent.iter()
        .filter(|sent| sent.process == process)
        .copied()
        .collect()
}

/// Returns the number of steps to a lower address.
fn turns(sent: &[Sent]) -> usize {
    sent.windows(2)
        .filter(|pair| pair[1].extent.start < pair[0].extent.start)
        .count()
}

#[test]
fn a_class_is_served_before_those_below_it() {
    let one = |process, class, start| LoopProcess {
        process,
        class,
        start,
        count: 1,
        begins: Time::from_nanos(u64::from(process)),
        ..LoopProcess::default()
    };
    let first = one(0, PriorityClass::BestEffort, 5000);
    let idle = one(1, PriorityClass::Idle, 10_000);
    let best_effort = one(2, PriorityClass::BestEffort, 20_000);
    let real_time = one(3, PriorityClass::RealTime, 90_000_000);
    let order: Vec<u32> = sent("{}", vec![first, idle, best_effort, real_time])
        .iter()
        .map(|sent| sent.process)
        .collect();
    assert_eq!(order, [0, 3, 2, 1]);
}

#[test]
fn a_lower_class_waits_even_while_a_higher_one_is_with_the_device() {
    let urgent = LoopProcess {
        process: 3,
        class: PriorityClass::RealTime,
        ..scattered(2)
    };
    let other = LoopProcess {
        count: 1,
        begins: Time::from_nanos(1),
        ..scattered(1)
    };
    let load = Load {
        queue_depth: 8,
        processes: vec![urgent, other],
    };
    let last = *run("mq-deadline", "{}", &load).last().unwrap();
    assert_eq!(
        last.process, 1,
        "600 requests of the class above went before, with room for six more"
    );
}

#[test]
fn age_goes_before_class() {
    let urgent = LoopProcess {
        process: 3,
        class: PriorityClass::RealTime,
        ..scattered(4)
    };
    let idle = LoopProcess {
        class: PriorityClass::Idle,
        count: 1,
        ..scattered(1)
    };
    let processes = vec![urgent, idle];
    let at = |keys: &str| of(&sent(keys, processes.clone()), 1)[0].at.as_millis_f64();
    let early = at(r#"{ "prio_aging_expire": "300ms" }"#);
    assert!((300.0..315.0).contains(&early), "{early} ms");
    let late = at("{}");
    assert!(
        late > 1000.0,
        "only after the last of the class above, at {late} ms"
    );
}

#[test]
fn reads_go_before_writes_as_often_as_writes_starved_says() {
    let reader = LoopProcess {
        sectors: 1024,
        stride: 1024,
        outstanding: 64,
        count: 600,
        ..LoopProcess::default()
    };
    let processes = vec![
        reader,
        writing(LoopProcess {
            start: 50_000_000,
            ..reader
        }),
    ];
    let keys = r#"{ "writes_starved": 3, "read_expire": "100s", "write_expire": "100s" }"#;
    let runs: Vec<usize> = sent(keys, processes)
        .chunk_by(|one, other| one.operation == other.operation)
        .map(|run| run.len())
        .collect();
    // The first batches are left out, because the first request met no other.
    assert_eq!(runs[2..8], [48, 16, 48, 16, 48, 16]);
}

#[test]
fn each_direction_goes_on_from_where_it_was_left() {
    let lenient = r#"{ "read_expire": "100s", "write_expire": "100s" }"#;
    let processes = vec![scattered(64), writing(scattered(64))];
    let today = sent(lenient, processes.clone());
    let load = Load {
        queue_depth: 1,
        processes,
    };
    let then = run("deadline", lenient, &load);
    for process in [1, 2] {
        let (today, then) = (turns(&of(&today, process)), turns(&of(&then, process)));
        assert!(
            today < 25 && then > 30,
            "sweeps of process {process}: {today}, of deadline {then}"
        );
    }
}

#[test]
fn writes_beyond_async_depth_are_not_sorted() {
    let order = |depth: u32| {
        let keys = format!(r#"{{ "async_depth": {depth}, "write_expire": "100s" }}"#);
        turns(&sent(&keys, vec![writing(scattered(32))]))
    };
    assert!(
        order(1) > 250,
        "{} turns of 600: in order of arrival",
        order(1)
    );
    assert!(order(32) < 50, "{} sweeps", order(32));
    assert!((60..240).contains(&order(4)), "{}", order(4));
}

#[test]
fn reads_are_not_held_back_by_async_depth() {
    let reads = |keys: &str| sent(keys, vec![scattered(32)]);
    assert_eq!(reads(r#"{ "async_depth": 1 }"#), reads("{}"));
}

#[test]
fn values_that_mean_nothing_are_refused() {
    let build = find("elevator", REGISTRY, "elevator", "mq-deadline")
        .unwrap()
        .build
        .build;
    let site = SITE;
    for (keys, key) in [
        (r#"{ "fifo_batch": 0 }"#, "fifo_batch"),
        (r#"{ "async_depth": 0 }"#, "async_depth"),
        (r#"{ "async_depth": 129 }"#, "async_depth"),
    ] {
        let keys: Keys = serde_json::from_str(keys).unwrap();
        assert_eq!(build(&keys, &site).err().unwrap().key, key);
    }
}

#[test]
fn an_expired_request_begins_a_batch() {
    // A stream without end, and one request behind it.
    let onwards = LoopProcess {
        process: 2,
        start: 10_000_000,
        stride: 16,
        outstanding: 8,
        ..scattered(8)
    };
    let stream = LoopProcess { span: 0, ..onwards };
    let behind = LoopProcess {
        start: 1000,
        span: 0,
        count: 1,
        begins: Time::from_nanos(1),
        ..scattered(1)
    };
    let at = |keys: &str| {
        of(&sent(keys, vec![stream, behind]), 1)[0]
            .at
            .since(Time::ZERO)
    };
    let strict = at(r#"{ "read_expire": "50ms", "fifo_batch": 4 }"#);
    assert!(
        strict >= Duration::from_millis(50) && strict < Duration::from_millis(53),
        "{strict}"
    );
    let lenient = at(r#"{ "read_expire": "100s" }"#);
    assert!(
        lenient > Duration::from_millis(100),
        "only after the stream has ended, at {lenient}"
    );
}
