//! Tests of every elevator: each request is dispatched once, no request is lost or invented,
//! flushes keep their order, no request starves if the elevator promises so, and every key has an
//! effect.

use super::testing::{
    ElevatorBench, Load, LoopProcess, RunRecord, SITE, build, run_entry, run_flushing, settings,
};
use super::{ElevatorBuilder, REGISTRY, TUNABLES, worked_example};
use crate::block::{BlockLayer, Flushing};
use fullstroke_contract::registry::{Keys, PolicyEntry, known_keys, schema_of};
use fullstroke_contract::{Operation, PriorityClass};
use fullstroke_units::{Duration, Time};
use proptest::prelude::*;
use std::collections::BTreeMap;

const EXAMPLE: PolicyEntry<ElevatorBuilder> = PolicyEntry {
    name: "lcfs",
    summary: worked_example::SUMMARY,
    schema: schema_of::<worked_example::Config>,
    build: ElevatorBuilder {
        build: worked_example::build,
        flush: Flushing::Sequence,
    },
};

fn every() -> impl Iterator<Item = &'static PolicyEntry<ElevatorBuilder>> {
    REGISTRY.iter().chain(&[EXAMPLE])
}

fn classes() -> impl Strategy<Value = PriorityClass> {
    use PriorityClass::{BestEffort, Idle, RealTime};
    // Mostly best-effort, as processes are: a real-time process alone would keep all others
    // waiting.
    prop::sample::select(vec![RealTime, BestEffort, BestEffort, BestEffort, Idle])
}

/// Processes whose requests are often adjacent.
fn processes() -> impl Strategy<Value = Vec<LoopProcess>> {
    let shape = (
        0u64..6,
        prop::sample::select(vec![-8i64, 0, 8, 16, 2000]),
        0u64..2,
        1u32..12,
    );
    let times = (
        0u64..3_000_000,
        prop::sample::select(vec![0u64, 0, 400_000, 9_000_000]),
        1u32..30,
    );
    let operation = prop::sample::select(vec![
        Operation::Read,
        Operation::Read,
        Operation::Write,
        Operation::Discard,
    ]);
    let kind = (operation, any::<bool>(), classes(), 0u8..8);
    let process = (shape, times, kind).prop_map(
        |(
            (start, stride, scatter, outstanding),
            (begins, think, count),
            (operation, synchronous, class, level),
        )| {
            LoopProcess {
                class,
                level,
                operation,
                synchronous,
                begins: Time::from_nanos(begins),
                start: 40_000 + start * 8,
                stride,
                span: scatter * 50_000_000,
                outstanding,
                think: Duration::from_nanos(think),
                count,
                ..LoopProcess::default()
            }
        },
    );
    prop::collection::vec(process, 1..6).prop_map(numbered)
}

fn numbered(mut processes: Vec<LoopProcess>) -> Vec<LoopProcess> {
    (1..)
        .zip(&mut processes)
        .for_each(|(number, process)| process.process = number);
    processes
}

/// Difference of two coverages of the sectors, by operation and address.
type Coverage = BTreeMap<(Operation, u64), i64>;

fn cover(coverage: &mut Coverage, operation: Operation, start: u64, sectors: u64) {
    // Merges and splits change requests but not the sectors, and differences at the ends take one
    // entry for each end.
    *coverage.entry((operation, start)).or_default() += 1;
    *coverage.entry((operation, start + sectors)).or_default() -= 1;
}

fn without_zeros(mut coverage: Coverage) -> Coverage {
    coverage.retain(|_, change| *change != 0);
    coverage
}

/// Checks two things. Each submitted request has completed once. The dispatched requests cover the
/// same sectors as often.
fn nothing_is_lost_or_invented(load: &Load, ran: &RunRecord) -> Result<(), TestCaseError> {
    let mut done: Vec<(u32, u32)> = ran
        .done
        .iter()
        .map(|&(process, number, _)| (process, number))
        .collect();
    done.sort_unstable();
    let wanted: Vec<(u32, u32)> = load
        .processes
        .iter()
        .flat_map(|process| (0..process.count).map(|number| (process.process, number)))
        .collect();
    prop_assert_eq!(done, wanted);
    let (mut submitted, mut sent) = (Coverage::new(), Coverage::new());
    for process in &load.processes {
        for extent in (0..process.count).map(|number| process.extent(number)) {
            cover(
                &mut submitted,
                process.operation,
                extent.start.0,
                extent.sectors.0,
            );
        }
    }
    for piece in &ran.sent {
        cover(
            &mut sent,
            piece.operation,
            piece.extent.start.0,
            piece.extent.sectors.0,
        );
    }
    prop_assert_eq!(without_zeros(sent), without_zeros(submitted));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_elevator_serves_each_request_once(processes in processes(), queue_depth in 1u32..9) {
        let load = Load { queue_depth, processes };
        for entry in every() {
            let ran = run_entry(entry, "{}", &load);
            nothing_is_lost_or_invented(&load, &ran)?;
        }
    }

    #[test]
    fn every_elevator_keeps_flushes_in_order(
        processes in processes(), queue_depth in 1u32..9, flushes in 1u32..6, think in 0u64..20_000_000,
    ) {
        let think = Duration::from_nanos(think);
        let flusher = LoopProcess { operation: Operation::Flush, count: flushes, think, ..LoopProcess::default() };
        let load = Load { queue_depth, processes: numbered([&processes[..], &[flusher]].concat()) };
        for entry in every() {
            let ran = run_entry(entry, "{}", &load);
            nothing_is_lost_or_invented(&load, &ran)?;
            let ran = run_flushing(entry, "{}", &load, Flushing::Sequence);
            nothing_is_lost_or_invented(&load, &ran)?;
        }
    }

    #[test]
    fn every_elevator_repeats_to_the_bit(processes in processes(), queue_depth in 1u32..9) {
        let load = Load { queue_depth, processes };
        for entry in every() {
            prop_assert_eq!(run_entry(entry, "{}", &load).sent, run_entry(entry, "{}", &load).sent);
        }
    }
}

/// Readers without pauses: one sequential, others close to it.
fn hostile_readers() -> Vec<LoopProcess> {
    let sequential = LoopProcess {
        count: u32::MAX,
        ..LoopProcess::default()
    };
    let close = LoopProcess {
        count: u32::MAX,
        span: 20_000,
        ..LoopProcess::default()
    };
    numbered([vec![sequential], vec![close; 7]].concat())
}

/// Writers without pauses, with many requests each.
fn hostile_writers() -> Vec<LoopProcess> {
    let write = |process: LoopProcess| LoopProcess {
        operation: Operation::Write,
        synchronous: false,
        outstanding: 8,
        ..process
    };
    hostile_readers().into_iter().map(write).collect()
}

#[test]
fn no_request_starves_where_the_elevator_promises_it() {
    let victim = LoopProcess {
        process: 99,
        start: 90_000_000,
        count: 1,
        begins: Time::from_nanos(50_000_000),
        ..LoopProcess::default()
    };
    let writer = LoopProcess {
        operation: Operation::Write,
        synchronous: false,
        ..victim
    };
    // The longest expiry is 5 s (`write_expire`, `block/mq-deadline.c`), so that a minute leaves no
    // doubt.
    let end = Time::from_nanos(60_000_000_000);
    for entry in every().filter(|entry| !build(entry, "{}", 1).may_starve()) {
        for hostile in [hostile_readers(), hostile_writers()] {
            for victim in [victim, writer] {
                let processes = [&hostile[..], &[victim]].concat();
                let layer = BlockLayer::new(build(entry, "{}", 1), &settings(1), None);
                let served = ElevatorBench::new(
                    layer,
                    &Load {
                        queue_depth: 1,
                        processes,
                    },
                )
                .serves(99, end);
                let kind = (victim.operation, hostile[0].operation);
                assert!(
                    served,
                    "{}: a {:?} beside {:?}s has waited for a minute",
                    entry.name, kind.0, kind.1
                );
            }
        }
    }
}

#[test]
fn every_key_has_a_description_and_an_effect() {
    for (entry, tunables) in REGISTRY.iter().zip(TUNABLES) {
        let schema = (entry.schema)();
        let tunables = tunables();
        for key in known_keys(&schema) {
            let described = schema
                .get("properties")
                .is_some_and(|all| all[&key]["description"].is_string());
            assert!(described, "{}: `{key}` has no description", entry.name);
            let tried = tunables.iter().any(|tunable| tunable.key == key);
            assert!(
                tried,
                "{}: no test shows what `{key}` does; add it to `tunables`",
                entry.name
            );
        }
        for tunable in tunables {
            let sent = tunable.values.map(|value| {
                let mut keys: Keys = serde_json::from_str(tunable.others).unwrap();
                keys.insert(tunable.key.to_owned(), serde_json::from_str(value).unwrap());
                run_entry(entry, &serde_json::to_string(&keys).unwrap(), &tunable.load).sent
            });
            let [one, other] = tunable.values;
            assert_ne!(
                sent[0], sent[1],
                "{}: `{}` = {one} and {other} do the same",
                entry.name, tunable.key
            );
        }
    }
}

#[test]
fn every_elevator_refuses_keys_that_it_does_not_have() {
    let keys: Keys = serde_json::from_str(r#"{ "no_such_key": 1 }"#).unwrap();
    let site = SITE;
    for entry in every() {
        let error = (entry.build.build)(&keys, &site)
            .err()
            .unwrap_or_else(|| panic!("{} took it", entry.name));
        assert_eq!(error.key, "no_such_key");
    }
}
