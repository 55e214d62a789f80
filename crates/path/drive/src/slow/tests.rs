use super::SlowConfig;
use crate::config::tests::small_drive;
use crate::config::{BufferConfig, DriveConfig};
use crate::drive::DriveModel;
use crate::drive::tests::{request, serve_work};
use fullstroke_contract::{
    Completion, Counters, Effect, Effects, LayerOrder, Node, NodeContext, Operation, Port, Refusal,
    RequestStatus,
};
use fullstroke_units::{Duration, Time};
use proptest::prelude::*;
use serde_json::json;

type Arrival = (u64, u64, u64, bool);

fn node(drive: DriveConfig, slow: Option<SlowConfig>) -> Box<dyn Node> {
    let model = DriveModel::new(drive).unwrap();
    let model = match slow {
        Some(slow) => model.slow(&slow).unwrap(),
        None => model,
    };
    model.branch().unwrap().node
}

/// Returns the completions of arrivals. Each wake-up comes `late` ns after the due time.
fn run(node: &mut dyn Node, arrivals: &[Arrival], late: u64) -> Vec<Completion> {
    let requests = (0..).zip(arrivals).map(|(id, &(at, lbn, sectors, write))| {
        let operation = if write {
            Operation::Write
        } else {
            Operation::Read
        };
        (Time::from_nanos(at), request(id, lbn, sectors, operation))
    });
    serve_work(node, requests, late)
}

fn buffered() -> DriveConfig {
    let keys =
        json!({ "segments": 4, "segment_sectors": 64, "write_back": true, "write_segments": 2 });
    let buffer: BufferConfig = serde_json::from_value(keys).unwrap();
    DriveConfig {
        buffer: Some(buffer),
        ..small_drive()
    }
}

fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    let one = (0u64..20_000_000, 0u64..1360, 1u64..40, any::<bool>());
    prop::collection::vec(one, 1..60).prop_map(|gaps| {
        let mut now = 0;
        let at = |(gap, lbn, sectors, write)| {
            now += gap;
            (now, lbn, sectors, write)
        };
        gaps.into_iter().map(at).collect()
    })
}

fn slow_configs() -> impl Strategy<Value = SlowConfig> {
    let ms = |from: u64, to: u64| (from..to).prop_map(Duration::from_millis);
    (
        1.0f64..12.0,
        ms(0, 40),
        ms(0, 200),
        ms(41, 300),
        prop::option::of(ms(1, 300)),
        prop::bool::ANY,
        0u32..30,
        prop::option::of(ms(1, 60)),
    )
        .prop_map(
            |(factor, stall, from, lasts, every, area, bad, erc)| SlowConfig {
                factor: factor + 0.5,
                stall: if area { Duration::ZERO } else { stall },
                from,
                lasts: Some(lasts),
                every,
                lbns: area.then_some((100, 700)),
                bad_random: bad,
                recovery: (bad > 0).then_some(Duration::from_millis(30)),
                erc: erc.filter(|_| bad > 0),
                ..SlowConfig::default()
            },
        )
}

fn slowable(drive: DriveConfig) -> Box<dyn Node> {
    let model = DriveModel::new(drive).unwrap().slowable();
    assert!(!model.is_slow());
    model.branch().unwrap().node
}

fn order(node: &mut dyn Node, at: Time, thousandths: u32) -> Result<(), Refusal> {
    let mut out = Effects::new();
    let order = LayerOrder::Slow { thousandths };
    node.ordered(at, order, &mut NodeContext::alone(&mut out))
}

fn slow_s(node: &dyn Node, at: Time) -> Option<f64> {
    let mut counters = Counters::default();
    node.count(at, &mut counters);
    let layer = counters.layers.iter().find(|layer| layer.layer == "slow")?;
    layer
        .readings
        .iter()
        .find(|reading| reading.name == "slow_s")
        .map(|reading| reading.value)
}

#[test]
fn an_order_makes_a_drive_slow_and_another_order_ends_that() {
    let arrivals = [(0, 500, 8, false), (200_000_000, 100, 8, false)];
    let plain = run(&mut *node(small_drive(), None), &arrivals, 0);
    let mut slow = slowable(small_drive());
    assert_eq!(slow_s(&*slow, Time::ZERO), None);
    order(&mut *slow, Time::ZERO, 4000).unwrap();
    let first = run(&mut *slow, &arrivals[..1], 0);
    let response = |done: &[Completion], place: usize| done[place].breakdown.response().as_nanos();
    assert!(response(&first, 0).abs_diff(4 * response(&plain, 0)) <= 4);
    let end = Time::from_nanos(199_000_000);
    order(&mut *slow, end, 1000).unwrap();
    assert_eq!(slow_s(&*slow, end), Some(0.199));
    let later = [(200_000_000, 100, 8, false)];
    let second = run(&mut *slow, &later, 0);
    // The platters have turned less, so only the parts without rotation are as before.
    assert_eq!(second[0].breakdown.seek, plain[1].breakdown.seek);
    assert_eq!(second[0].breakdown.transfer, plain[1].breakdown.transfer);
    for wrong in [999, 0, 10_000_001] {
        let refusal = order(&mut *slow, end, wrong).unwrap_err().to_string();
        assert!(refusal.contains("expected 1 to 10000"), "{refusal}");
    }
}

proptest! {
    /// A drive that an order could make slow behaves as a plain drive until then.
    #[test]
    fn a_drive_without_an_order_is_a_plain_drive(arrivals in arrivals(), cache in any::<bool>(), late in 0u64..3_000_000) {
        let drive = || if cache { buffered() } else { small_drive() };
        let (mut plain, mut other) = (node(drive(), None), slowable(drive()));
        prop_assert_eq!(run(&mut *plain, &arrivals, late), run(&mut *other, &arrivals, late));
        let end = Time::from_nanos(60_000_000_000);
        for node in [&mut plain, &mut other] {
            // Destaging is a chore, which the run leaves undone.
            while node.next_wake().at() <= end {
                let due = node.next_wake().at();
                node.wake(due, &mut NodeContext::alone(&mut Effects::new()));
            }
        }
        let drives = [&*plain, &*other].map(|node| {
            let mut counters = Counters::default();
            node.count(end, &mut counters);
            counters.drives
        });
        prop_assert_eq!(&drives[0], &drives[1]);
    }

    /// Orders at any time lose no request, and parts add up.
    #[test]
    fn orders_at_any_time_lose_nothing(arrivals in arrivals(), slow in slow_configs(), orders in prop::collection::vec((0u64..40_000_000, 1000u32..9000), 1..8)) {
        let mut node = node(small_drive(), Some(slow));
        let (mut out, mut done, mut now) = (Effects::new(), 0, 0);
        let mut orders = orders.into_iter();
        for (id, (at, lbn, sectors, write)) in (0..).zip(arrivals.iter().copied()) {
            while node.next_wake().at() < Time::from_nanos(at) {
                let due = node.next_wake().at();
                node.wake(due, &mut NodeContext::alone(&mut out));
            }
            now = at.max(now);
            if let Some((_, thousandths)) = orders.next() {
                let order = LayerOrder::Slow { thousandths };
                node.ordered(Time::from_nanos(now), order, &mut NodeContext::alone(&mut out)).unwrap();
            }
            let operation = if write { Operation::Write } else { Operation::Read };
            let request = request(id, lbn, sectors, operation);
            node.submit(Time::from_nanos(now), Port::FIRST, request, &mut NodeContext::alone(&mut out));
        }
        while node.next_wake().is_work() {
            let due = node.next_wake().at();
            node.wake(due, &mut NodeContext::alone(&mut out));
        }
        for effect in out.drain() {
            if let Effect::Complete { completion, .. } = effect {
                done += 1;
                prop_assert_eq!(completion.finished.since(completion.submitted), completion.breakdown.response());
            }
        }
        prop_assert_eq!(done, arrivals.len());
    }

    #[test]
    fn each_request_ends_once_with_parts_that_add_up(arrivals in arrivals(), slow in slow_configs(), cache in any::<bool>()) {
        let drive = if cache { buffered() } else { small_drive() };
        let mut node = node(drive, Some(slow));
        let done = run(&mut *node, &arrivals, 0);
        let mut ids: Vec<u64> = done.iter().map(|completion| completion.id.0).collect();
        ids.sort_unstable();
        prop_assert_eq!(ids, (0..arrivals.len() as u64).collect::<Vec<_>>());
        for completion in &done {
            prop_assert_eq!(completion.finished.since(completion.submitted), completion.breakdown.response());
        }
        prop_assert!(done.is_sorted_by_key(|completion| completion.finished));
        let mut counters = Counters::default();
        let end = done.last().unwrap().finished + Duration::from_secs(1);
        node.count(end, &mut counters);
        prop_assert!(counters.drives[0].busy <= end.since(Time::ZERO));
    }

    #[test]
    fn late_wake_ups_do_not_move_the_timeline(arrivals in arrivals(), slow in slow_configs(), late in 0u64..30_000_000) {
        let on_time = run(&mut *node(small_drive(), Some(slow.clone())), &arrivals, 0);
        prop_assert_eq!(on_time, run(&mut *node(small_drive(), Some(slow)), &arrivals, late));
    }

    #[test]
    fn a_period_that_never_comes_changes_nothing(arrivals in arrivals()) {
        let never = SlowConfig { factor: 10.0, from: Duration::from_secs(3600), ..SlowConfig::default() };
        let slow = run(&mut *node(buffered(), Some(never)), &arrivals, 0);
        prop_assert_eq!(slow, run(&mut *node(buffered(), None), &arrivals, 0));
    }
}

/// Returns the response times in ms of single reads of one sector, 1 s apart.
fn responses(slow: Option<SlowConfig>, lbns: &[u64]) -> Vec<f64> {
    let at = |(index, &lbn): (u64, &u64)| (index * 1_000_000_000, lbn, 1, false);
    let arrivals: Vec<Arrival> = (0..).zip(lbns).map(at).collect();
    let done = run(&mut *node(small_drive(), slow), &arrivals, 0);
    done.iter()
        .map(|completion| completion.breakdown.response().as_millis_f64())
        .collect()
}

#[test]
fn a_factor_stretches_every_part() {
    let slow = |factor| SlowConfig {
        factor,
        ..SlowConfig::default()
    };
    let lbns: Vec<u64> = (0..200).map(|at| at * 577 % 1360).collect();
    let mean = |each: Vec<f64>| each.iter().sum::<f64>() / each.len() as f64;
    let whole = mean(responses(None, &lbns));
    for factor in [2.0, 10.0] {
        let ratio = mean(responses(Some(slow(factor)), &lbns)) / whole;
        assert!((ratio / factor - 1.0).abs() < 0.1, "{factor}: {ratio}");
    }
}

#[test]
fn a_stall_begins_and_ends_at_its_times() {
    let slow = SlowConfig {
        stall: Duration::from_secs(3),
        from: Duration::from_millis(1500),
        ..SlowConfig::default()
    };
    let whole = responses(None, &[0; 7]);
    let each = responses(Some(slow), &[0; 7]);
    // The reads of 2, 3 and 4 s wait until 4.5 s.
    for (index, (slow, whole)) in each.iter().zip(&whole).enumerate() {
        let waits = [0.0, 0.0, 2500.0, 1500.0, 500.0, 0.0, 0.0][index];
        assert!(
            (slow - whole - waits).abs() < 30.0,
            "{index}: {slow} {whole}"
        );
    }
}

#[test]
fn only_the_slow_area_is_slow() {
    let slow = SlowConfig {
        factor: 5.0,
        lbns: Some((100, 200)),
        ..SlowConfig::default()
    };
    let lbns = [0, 99, 100, 199, 200];
    let (slow, whole) = (responses(Some(slow), &lbns), responses(None, &lbns));
    let ratio: Vec<bool> = slow
        .iter()
        .zip(&whole)
        .map(|(slow, whole)| slow / whole > 3.0)
        .collect();
    assert_eq!(ratio, [false, false, true, true, false]);
}

#[test]
fn a_bad_sector_takes_its_retries_until_it_is_written() {
    let config = |erc| SlowConfig {
        bad: vec![50],
        recovery: Some(Duration::from_secs(20)),
        erc,
        ..SlowConfig::default()
    };
    let reads = [
        (0, 48, 4, false),
        (60_000_000_000, 48, 4, true),
        (61_000_000_000, 48, 4, false),
    ];
    for (erc, status, seconds) in [
        (None, RequestStatus::Done, 20.0),
        (Some(Duration::from_secs(7)), RequestStatus::Lost, 7.0),
    ] {
        let done = run(&mut *node(small_drive(), Some(config(erc))), &reads, 0);
        let response = done[0].breakdown.response().as_millis_f64() / 1e3;
        assert_eq!(done[0].status, status);
        assert!((response - seconds).abs() < 0.1, "{response}");
        assert!(done[2].breakdown.response() < Duration::from_millis(100));
        assert_eq!(done[2].status, RequestStatus::Done);
    }
}

#[test]
fn impossible_keys_are_refused_by_name() {
    let lasts = json!({ "factor": 2.0, "stall": "2s", "lasts": "1s" });
    for (key, keys) in [
        ("factor", json!({})),
        ("factor", json!({ "factor": 0.5 })),
        ("factor", json!({ "factor": 1e9 })),
        ("zone", json!({ "factor": 2.0, "zone": 99 })),
        ("lbns", json!({ "factor": 2.0, "lbns": [5, 5] })),
        ("lbns", json!({ "factor": 2.0, "zone": 0, "lbns": [5, 9] })),
        ("every", json!({ "factor": 2.0, "every": "1s" })),
        ("lasts", lasts),
        ("recovery", json!({ "bad": [3] })),
        ("erc", json!({ "factor": 2.0, "erc": "1s" })),
        ("bad[0]", json!({ "bad": [1u64 << 40], "recovery": "1s" })),
        ("bad_random", json!({ "bad_random": 900, "recovery": "1s" })),
        ("stall", json!({ "factor": 2.0, "stall": "1s", "zone": 0 })),
    ] {
        let config: SlowConfig = serde_json::from_value(keys.clone()).unwrap();
        let model = DriveModel::new(small_drive()).unwrap();
        let error = model.slow(&config).err();
        let error = error.unwrap_or_else(|| panic!("{keys}"));
        assert_eq!(error.key, key, "{error}");
        assert!(!error.message.is_empty());
    }
}
