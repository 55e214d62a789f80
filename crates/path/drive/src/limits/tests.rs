//! Commands with limits: answers, order, and the work of the arm.

use super::{DurationLimit, LimitPolicy, LimitsConfig};
use crate::config::DriveConfig;
use crate::config::tests::small_drive;
use crate::drive::DriveModel;
use crate::drive::tests::{request, serve_work};
use crate::slow::SlowConfig;
use fullstroke_contract::{
    Completion, Counters, Node, Operation, PriorityClass, Request, RequestStatus,
};
use fullstroke_units::{Duration, Time};
use proptest::prelude::*;
use serde_json::{Value, json};

fn limited(limits: Value) -> DriveConfig {
    DriveConfig {
        limits: Some(serde_json::from_value(limits).unwrap()),
        ..small_drive()
    }
}

fn node(drive: DriveConfig) -> Box<dyn Node> {
    DriveModel::new(drive).unwrap().branch().unwrap().node
}

/// Returns the completions of requests at their times. Each wake-up comes `late` ns after the due
/// time.
fn run(node: &mut dyn Node, arrivals: &[(u64, Request)], late: u64) -> Vec<Completion> {
    let requests = arrivals
        .iter()
        .map(|&(at, request)| (Time::from_nanos(at), request));
    serve_work(node, requests, late)
}

fn reading(node: &dyn Node, name: &str) -> f64 {
    let mut counters = Counters::default();
    node.count(Time::ZERO, &mut counters);
    let readings = counters.layers.iter().flat_map(|layer| &layer.readings);
    let named = readings.filter(|reading| reading.name == name);
    named.map(|reading| reading.value).sum()
}

/// Twenty reads at once, the last of the class real-time.
fn twenty() -> Vec<(u64, Request)> {
    (0..20u64)
        .map(|id| {
            let mut one = request(id, (id * 613) % 1300, 8, Operation::Read);
            if id == 19 {
                one.hints.class = PriorityClass::RealTime;
            }
            (0, one)
        })
        .collect()
}

fn ms(completion: &Completion) -> f64 {
    completion.finished.as_nanos() as f64 / 1e6
}

#[test]
fn a_command_near_its_limit_goes_next() {
    let plain = run(&mut *node(small_drive()), &twenty(), 0);
    let last = plain.iter().find(|done| done.id.0 == 19).unwrap();
    let limit = json!({ "read": [{ "class": "real-time", "duration": "40ms" }] });
    let mut drive = node(limited(limit));
    let done = run(&mut *drive, &twenty(), 0);
    let hurried = done.iter().find(|done| done.id.0 == 19).unwrap();
    assert!(
        ms(last) > 80.0 && ms(hurried) < 40.0,
        "{} {}",
        ms(last),
        ms(hurried)
    );
    assert!(done.iter().all(|done| done.status == RequestStatus::Done));
    assert_eq!(reading(&*drive, "limit_hurried"), 1.0);
    assert_eq!(reading(&*drive, "limit_late"), 0.0);
}

#[test]
fn an_abort_ends_a_waiting_command_at_its_limit_and_spares_the_arm() {
    let limit = json!({
        "read": [{ "inactive": "50ms", "inactive_policy": "abort" }], "ahead": "0ms"
    });
    let mut drive = node(limited(limit));
    let done = run(&mut *drive, &twenty(), 0);
    let aborted: Vec<&Completion> = done
        .iter()
        .filter(|done| done.status == RequestStatus::Lost)
        .collect();
    assert!(aborted.len() > 3, "{done:?}");
    assert!(aborted.iter().all(|done| ms(done) == 50.0));
    let whole = run(&mut *node(small_drive()), &twenty(), 0);
    let end = |done: &[Completion]| done.iter().map(ms).fold(0.0, f64::max);
    assert!(end(&done) < 70.0 && end(&whole) > 80.0);
    assert_eq!(reading(&*drive, "limit_aborted"), aborted.len() as f64);
}

#[test]
fn a_limit_of_the_work_does_not_count_the_queue() {
    let limit = |active: &str| json!({ "read": [{ "active": active, "active_policy": "abort" }] });
    let count = |active: &str| {
        let done = run(&mut *node(limited(limit(active))), &twenty(), 0);
        done.iter()
            .filter(|done| done.status == RequestStatus::Lost)
            .count()
    };
    assert_eq!(count("100ms"), 0, "no access takes as long");
    assert_eq!(count("100us"), 20, "each access takes longer");
}

#[test]
fn the_limit_of_the_drive_ends_retries() {
    let slow = |keys: Value| -> SlowConfig { serde_json::from_value(keys).unwrap() };
    let bad = json!({ "bad": [700], "recovery": "30s" });
    let answer = |drive: DriveConfig| {
        let model = DriveModel::new(drive)
            .unwrap()
            .slow(&slow(bad.clone()))
            .unwrap();
        let loses = model.loses_reads();
        let mut node = model.branch().unwrap().node;
        let arrivals = [
            (0, request(0, 700, 8, Operation::Read)),
            (1_000_000, request(1, 10, 8, Operation::Read)),
        ];
        let done = run(&mut *node, &arrivals, 0);
        let seconds = |id: u64| {
            let found = done.iter().find(|done| done.id.0 == id).unwrap();
            (found.finished.as_secs_f64().round(), found.status)
        };
        (seconds(0), seconds(1), loses)
    };
    let (first, second, loses) = answer(small_drive());
    assert_eq!((first, second.0), ((30.0, RequestStatus::Done), 30.0));
    assert!(!loses);
    let (first, second, loses) = answer(limited(json!({ "erc": "7s" })));
    assert_eq!((first, second.0), ((7.0, RequestStatus::Lost), 7.0));
    assert!(loses);
    let limit = json!({ "read": [{ "duration": "2s", "duration_policy": "abort" }] });
    let (first, second, _) = answer(limited(limit));
    assert_eq!(
        (first, second),
        ((2.0, RequestStatus::Lost), (2.0, RequestStatus::Lost))
    );
}

#[test]
fn limits_that_cannot_hold_are_refused_by_name() {
    let error = |limits: Value| {
        let limits: LimitsConfig = serde_json::from_value(limits).unwrap();
        let config = DriveConfig {
            limits: Some(limits),
            ..small_drive()
        };
        DriveModel::new(config).unwrap_err()
    };
    let eight: Vec<DurationLimit> = vec![
        DurationLimit {
            duration: Some(Duration::from_millis(5)),
            duration_policy: LimitPolicy::Complete,
            ..DurationLimit::default()
        };
        8
    ];
    for (limits, key, says) in [
        (json!({ "erc": "50ms" }), "limits.erc", "100ms"),
        (json!({ "erc": "2h" }), "limits.erc", "found 7200s"),
        (json!({ "ahead": "5ms" }), "limits.ahead", "no command"),
        (json!({ "read": eight }), "limits.read", "at most 7"),
        (
            json!({ "read": [{}] }),
            "limits.read[0].duration",
            "no time",
        ),
        (
            json!({ "read": [{ "duration": "0ms" }] }),
            "limits.read[0].duration",
            "above 0",
        ),
        (
            json!({ "read": [{ "duration": "9ms", "inactive": "9ms" }] }),
            "limits.read[0].inactive",
            "passes first",
        ),
        (
            json!({ "read": [{ "duration": "9ms", "active_policy": "abort" }] }),
            "limits.read[0].active_policy",
            "no time",
        ),
        (
            json!({ "read": [{ "duration": "9ms" }, { "class": "idle", "duration": "9ms" }] }),
            "limits.read[1].class",
            "earlier limit",
        ),
        (
            json!({ "write": [{ "duration": "9ms", "duration_policy": "abort" }] }),
            "limits.write[0]",
            "complete",
        ),
    ] {
        let error = error(limits);
        assert_eq!(error.key, key, "{error}");
        assert!(error.message.contains(says), "{error}");
    }
}

proptest! {
    /// Each command is answered once with parts that add up, whenever wake-ups come, and a late
    /// wake-up changes no answer.
    #[test]
    fn limited_commands_are_answered_once(
        commands in prop::collection::vec((0u64..8_000_000, 0u64..1360, 1u64..40, any::<bool>(), any::<bool>()), 1..50),
        inactive in 1u64..60, more in 1u64..60, aborts in any::<(bool, bool)>(), late in 0u64..20_000_000,
        buffered in any::<bool>(),
    ) {
        let policy = |aborts: bool| if aborts { "abort" } else { "complete" };
        let limit = json!({
            "read": [{
                "inactive": format!("{inactive}ms"), "inactive_policy": policy(aborts.0),
                "duration": format!("{}ms", inactive + more), "duration_policy": policy(aborts.1)
            }],
            "write": [{ "class": "real-time", "duration": "15ms" }]
        });
        let mut config = limited(limit);
        if buffered {
            let keys = json!({ "segments": 4, "segment_sectors": 64, "write_back": true, "write_segments": 2, "buffered_first": true });
            config.buffer = Some(serde_json::from_value(keys).unwrap());
        }
        let mut now = 0;
        let arrivals: Vec<(u64, Request)> = commands.iter().enumerate().map(|(id, &(gap, lbn, sectors, write, urgent))| {
            now += gap;
            let operation = if write { Operation::Write } else { Operation::Read };
            let mut one = request(id as u64, lbn, sectors, operation);
            if urgent {
                one.hints.class = PriorityClass::RealTime;
            }
            (now, one)
        }).collect();
        let done = run(&mut *node(config.clone()), &arrivals, 0);
        for one in &done {
            prop_assert_eq!(one.breakdown.response(), one.finished.since(one.submitted));
        }
        let by_id = |mut done: Vec<Completion>| {
            done.sort_by_key(|one| one.id.0);
            done.iter().map(|one| (one.finished, one.status)).collect::<Vec<_>>()
        };
        let delayed = run(&mut *node(config), &arrivals, late);
        prop_assert_eq!(by_id(done), by_id(delayed));
    }
}
