//! Tests of flushes, discards and the stripe cache.

use crate::common::{refused, success};
use serde_json::Value;
use std::path::Path;

fn demo(layout: &str) -> String {
    format!(
        "{}/../../stacks/demo/{layout}.toml",
        env!("CARGO_MANIFEST_DIR")
    )
}

/// Returns the report of the demo stack under the PostgreSQL sample, with `set` applied.
fn report(layout: &str, set: &[&str]) -> Value {
    let stack = demo(layout);
    assert!(Path::new(&stack).exists(), "{stack}");
    let mut arguments = vec!["run", &stack, "--json"];
    set.iter().for_each(|set| arguments.extend(["--set", set]));
    serde_json::from_str(&success(&arguments)).unwrap()
}

fn number(report: &Value, path: &str) -> f64 {
    report
        .pointer(path)
        .and_then(Value::as_f64)
        .unwrap_or_else(|| panic!("{path}: {report}"))
}

#[test]
fn the_readmes_stack_answers_with_a_host_about_as_it_does_without() {
    let mean = |set: &[&str]| number(&report("raid5", set), "/response_ms/mean");
    let without = mean(&[]);
    let of = |rule: &str| mean(&["host.elevator=mq-deadline", "host.queue_depth=64", rule]);
    let with = of("host.flush=sequence");
    assert!(
        with < 2.0 * without,
        "{with} ms with a host, {without} ms without"
    );
    let barriers = of("host.flush=drain");
    assert!(
        barriers > 2.0 * with,
        "barriers drain the queue: {barriers} ms, {with} ms without barriers"
    );
}

#[test]
fn flushes_have_their_own_times_in_a_report_and_cost_nothing_without_a_write_cache() {
    let cached = report("raid5", &["volume.write_cache=true"]);
    assert!(number(&cached, "/operations/flush/requests") > 10_000.0);
    assert!(
        number(&cached, "/operations/flush/response_ms/p50") > 1.0,
        "what the cache holds is written first"
    );
    assert_eq!(
        number(&cached, "/operations/write/response_ms/mean"),
        number(&cached, "/writes/response_ms/mean")
    );
    let through = report("raid5", &["volume.write_cache=false"]);
    assert_eq!(number(&through, "/operations/flush/response_ms/max"), 0.0);
}

#[test]
fn a_stripe_cache_spares_reads_and_is_a_variant_like_any_other() {
    let reads = |stripes: &str| {
        // Only the ideal planner has arrays without stripes in memory.
        let stripes = format!("volume.stripe_cache={stripes}");
        let report = report("raid6", &["volume.like=ideal", &stripes]);
        let members = report["members"].as_array().unwrap();
        members
            .iter()
            .map(|member| number(member, "/reads"))
            .sum::<f64>()
    };
    let (without, with) = (reads("0"), reads("256"));
    assert!(
        with < 0.9 * without,
        "{with} reads of members with the cache, {without} without"
    );
    let error = refused(&["run", &demo("raid5"), "--set", "volume.stripe_cache=100000"]);
    assert!(
        error.contains("stripe_cache") && error.contains("32768"),
        "{error}"
    );
}
