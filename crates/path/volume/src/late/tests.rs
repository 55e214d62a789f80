use super::*;
use fullstroke_contract::registry::Keys;
use serde_json::json;

fn rule(keys: serde_json::Value, members: usize) -> Result<Box<dyn LateRule>, ConfigError> {
    let keys: Keys = keys.as_object().unwrap().clone();
    late_rule(&keys, members)
}

#[test]
fn impossible_keys_are_refused_by_name() {
    for (keys, members, key) in [
        (json!({}), 8, "policy"),
        (json!({ "policy": "wiat" }), 8, "policy"),
        (json!({ "policy": 3 }), 8, "policy"),
        (json!({ "policy": "wait", "after": "1s" }), 8, "after"),
        (
            json!({ "policy": "read-around", "after": "1s", "percentile": 0.9 }),
            8,
            "percentile",
        ),
        (json!({ "policy": "read-around", "after": 0 }), 8, "after"),
        (
            json!({ "policy": "read-around", "percentile": 1.0 }),
            8,
            "percentile",
        ),
        (json!({ "policy": "fail", "timeout": 0 }), 8, "timeout"),
        (json!({ "policy": "sit-out" }), 3, "policy"),
        (json!({ "policy": "sit-out", "fence": -1 }), 8, "fence"),
        (json!({ "policy": "sit-out", "checks": 0 }), 8, "checks"),
        (json!({ "policy": "sit-out", "rest": 0 }), 8, "rest"),
    ] {
        let error = rule(keys.clone(), members)
            .err()
            .unwrap_or_else(|| panic!("{keys}"));
        assert_eq!(error.key, key, "{keys}: {error}");
    }
}

#[test]
fn every_policy_builds_with_its_defaults() {
    for entry in LATE_REGISTRY {
        assert!(
            rule(json!({ "policy": entry.name }), 8).is_ok(),
            "{}",
            entry.name
        );
    }
}

/// Gives `rule` a second of reads: 100 of each of eight members, 10 to 11 ms long, with those of
/// member 3 longer by `factor`.
fn second(rule: &mut dyn LateRule, at: u64, factor: u64) -> bool {
    let mut begins = false;
    for read in 0..100 {
        for member in 0..8 {
            let now = Time::from_nanos(at * 1_000_000_000 + read * 10_000_000 + member);
            let factor = if member == 3 { factor } else { 1 };
            let response = Duration::from_micros((10_000 + member * 100) * factor);
            begins |= rule.ended(now, member as usize, response);
        }
    }
    begins
}

#[test]
fn a_member_beyond_the_fence_sits_out_and_comes_back() {
    let keys = json!({ "policy": "sit-out", "rest": "60s" });
    let mut slow = rule(keys.clone(), 8).unwrap();
    let began = (1..100).find(|&at| second(&mut *slow, at, 10)).unwrap();
    assert!(
        (20..24).contains(&began),
        "after 20 checks of a second: {began}"
    );
    let at = |seconds: u64| Time::from_nanos(seconds * 1_000_000_000);
    assert!(slow.sits_out(3, at(began + 30)) && !slow.sits_out(2, at(began + 30)));
    assert!(!slow.sits_out(3, at(began + 62)));
    // Twice as long is within the fence of 50 distances.
    let mut mild = rule(keys, 8).unwrap();
    assert!((1..60).all(|at| !second(&mut *mild, at, 2)));
}

#[test]
fn the_delay_is_the_percentile_of_recent_reads() {
    let mut around = rule(json!({ "policy": "read-around", "percentile": 0.9 }), 8).unwrap();
    assert_eq!(around.reads_around_after(), None, "nothing is known yet");
    for read in 0..1024u64 {
        around.ended(Time::ZERO, 0, Duration::from_millis(read % 100));
    }
    let delay = around.reads_around_after().unwrap().as_millis_f64();
    assert!((88.0..=92.0).contains(&delay), "{delay}");
}
