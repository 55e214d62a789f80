//! Tests of each policy against a table, and of the values that all policies refuse.

use super::*;
use crate::config::tests::small_drive;
use crate::drive::DriveModel;
use serde_json::{Value, json};

fn power() -> PowerConfig {
    PowerConfig {
        spin_up_ms: 10_000.0,
        spin_down_ms: 5_000.0,
        idle_a_w: Some(5.0),
        standby_w: Some(1.0),
        spin_down_j: Some(15.0),
        spin_up_j: Some(200.0),
        ..PowerConfig::assumed_for(&small_drive()).0
    }
}

fn policy(keys: Value) -> Result<Box<dyn SpinDown>, ConfigError> {
    let spin_down = Some(serde_json::from_value(keys).unwrap());
    let config = DriveConfig {
        power: Some(power()),
        spin_down,
        ..small_drive()
    };
    build(&config).map(|policy| policy.expect("it has one"))
}

fn after(policy: &dyn SpinDown, idle_s: u64) -> f64 {
    let idle = Time::ZERO + Duration::from_secs(idle_s);
    policy.stops_at(idle).since(idle).as_secs_f64()
}

fn refused(keys: Value) -> String {
    policy(keys.clone())
        .err()
        .unwrap_or_else(|| panic!("{keys} is refused"))
        .key
}

#[test]
fn a_stop_of_the_break_even_time_costs_what_turning_on_would() {
    let power = power();
    let away = power.break_even().unwrap().as_secs_f64();
    // (15 + 200 - 1 x 5 - 5 x 10) / (5 - 1) s.
    assert_eq!(away, 40.0);
    let turning = 5.0 * (away + 10.0);
    let stopping = 15.0 + 1.0 * (away - 5.0) + 200.0;
    assert_eq!(turning, stopping);
    assert_eq!(
        after(&*policy(json!({ "policy": "break-even" })).unwrap(), 7),
        40.0
    );
}

#[test]
fn a_fixed_time_does_not_learn() {
    let mut fixed = policy(json!({ "policy": "fixed", "after": "60s" })).unwrap();
    fixed.woken(Duration::from_secs(1));
    assert_eq!(after(&*fixed, 0), 60.0);
}

#[test]
fn an_adaptive_time_grows_behind_stops_that_did_not_pay() {
    let mut adaptive =
        policy(json!({ "policy": "adaptive", "after": "60s", "most": "200s", "least": "50s" }))
            .unwrap();
    let mut behind = |away| {
        adaptive.woken(Duration::from_secs(away));
        after(&*adaptive, 0)
    };
    assert_eq!(
        [behind(39), behind(1), behind(400), behind(40)],
        [120.0, 200.0, 160.0, 128.0]
    );
    assert_eq!(
        [
            behind(500),
            behind(500),
            behind(500),
            behind(500),
            behind(500)
        ][4],
        50.0
    );
}

#[test]
fn a_schedule_waits_for_its_hours() {
    let keys = json!({ "policy": "schedule", "after": "60s", "from_hour": 22, "to_hour": 6, "begins_at_hour": 20 });
    let schedule = policy(keys).unwrap();
    let hour = 3600;
    assert_eq!(
        after(&*schedule, 0),
        2.0 * 3600.0,
        "it is 20 h: from 22 h on"
    );
    assert_eq!(after(&*schedule, 3 * hour), 60.0, "23 h");
    assert_eq!(after(&*schedule, 9 * hour), 60.0, "5 h");
    assert_eq!(
        after(&*schedule, 10 * hour),
        16.0 * 3600.0,
        "6 h: the next night"
    );
}

#[test]
fn what_would_oscillate_is_refused() {
    assert_eq!(
        refused(json!({ "policy": "fixed", "after": "10s" })),
        "after"
    );
    assert_eq!(
        refused(json!({ "policy": "schedule", "after": "1s", "from_hour": 1, "to_hour": 2 })),
        "after"
    );
    assert_eq!(
        refused(json!({ "policy": "adaptive", "after": "60s", "least": "3s" })),
        "least"
    );
    assert_eq!(
        refused(json!({ "policy": "adaptive", "after": "60s", "longer": 1.0 })),
        "longer"
    );
    assert_eq!(
        refused(json!({ "policy": "adaptive", "after": "60s", "shorter": 3.0 })),
        "shorter"
    );
    assert_eq!(
        refused(json!({ "policy": "adaptive", "after": "60s", "most": "30s" })),
        "after"
    );
    assert_eq!(
        refused(json!({ "policy": "schedule", "after": "60s", "from_hour": 5, "to_hour": 5 })),
        "to_hour"
    );
    assert_eq!(
        refused(json!({ "policy": "schedule", "after": "60s", "from_hour": -1, "to_hour": 5 })),
        "from_hour"
    );
    assert_eq!(
        refused(json!({ "policy": "break-even", "factor": 0.0 })),
        "factor"
    );
    assert_eq!(
        refused(json!({ "policy": "fixd", "after": "60s" })),
        "policy"
    );
}

#[test]
fn a_policy_needs_a_drive_that_stops() {
    let spin_down: Option<SpinDownConfig> =
        serde_json::from_value(json!({ "policy": "fixed", "after": "60s" })).unwrap();
    let without = DriveConfig {
        spin_down: spin_down.clone(),
        ..small_drive()
    };
    assert_eq!(
        DriveModel::new(without).map(|_| ()).unwrap_err().key,
        "spin_down.policy"
    );
    let times = PowerConfig {
        spin_up_ms: 10.0,
        spin_down_ms: 10.0,
        ..PowerConfig::default()
    };
    let fixed = DriveConfig {
        spin_down,
        power: Some(times),
        ..small_drive()
    };
    assert!(
        DriveModel::new(fixed.clone()).is_ok(),
        "a fixed time needs no watts"
    );
    let break_even = serde_json::from_value(json!({ "policy": "break-even" })).unwrap();
    let unknown = DriveConfig {
        spin_down: Some(break_even),
        ..fixed
    };
    assert_eq!(
        DriveModel::new(unknown).map(|_| ()).unwrap_err().key,
        "spin_down.policy"
    );
}
