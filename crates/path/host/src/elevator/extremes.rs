//! Elevators with waits, with keys at the ends of their ranges. No request may be lost, or left
//! behind by a missing wake-up.

use super::REGISTRY;
use super::testing::{ElevatorBench, Load, LoopProcess, build_at, settings};
use crate::TickClock;
use crate::block::{BlockLayer, LayerSettings};
use fullstroke_contract::registry::find;
use fullstroke_contract::{Operation, PriorityClass, Stripes};
use fullstroke_units::{Duration, Lbn, Sectors, Time};
use proptest::prelude::*;

/// Two members, one after the other.
pub(super) struct Halves;

impl Stripes for Halves {
    fn unit(&self) -> Sectors {
        Sectors(50_000_000)
    }
    fn member_of(&self, lbn: Lbn) -> u32 {
        (lbn.0 / 50_000_000) as u32
    }
}

const EXTREMES: &[(&str, &str)] = &[
    (
        "deadline",
        r#"{ "read_expire": "0s", "write_expire": "0s", "fifo_batch": 1 }"#,
    ),
    (
        "deadline",
        r#"{ "writes_starved": 0, "batch_count_fix": false, "start_sector_fix": false }"#,
    ),
    (
        "mq-deadline",
        r#"{ "read_expire": "0s", "write_expire": "1ns", "prio_aging_expire": "1ms" }"#,
    ),
    (
        "v-r",
        r#"{ "sync_expire": "1ns", "async_expire": "0s", "fifo_batch": 1 }"#,
    ),
    (
        "deadline",
        r#"{ "scale_expiries": true, "scale_reference": "1ns" }"#,
    ),
    ("anticipatory", r#"{ "antic_expire": "0s" }"#),
    (
        "anticipatory",
        r#"{ "read_expire": "0s", "write_expire": "0s", "batch_switch_fix": false }"#,
    ),
    (
        "anticipatory",
        r#"{ "read_batch_expire": "0s", "write_batch_expire": "0s" }"#,
    ),
    (
        "anticipatory",
        r#"{ "antic_expire": "1s", "back_seek_max": 0 }"#,
    ),
    ("cfq", r#"{ "slice_idle": "0s" }"#),
    (
        "cfq",
        r#"{ "quantum": 1, "slice_sync": "1us", "slice_async": "1us" }"#,
    ),
    (
        "cfq",
        r#"{ "queueing_detection_bug": true, "fifo_expire_sync": "0s", "fifo_expire_async": "0s" }"#,
    ),
    (
        "cfq",
        r#"{ "back_seek_max": 0, "slice_idle": "1s", "slice_async_rq": 1 }"#,
    ),
];

fn process() -> impl Strategy<Value = LoopProcess> {
    use PriorityClass::{BestEffort, Idle, RealTime};
    let place = (
        0u64..4,
        prop::sample::select(vec![0u64, 20_000_000]),
        1u32..9,
        0u64..12,
    );
    let kind = (
        any::<bool>(),
        prop::sample::select(vec![RealTime, BestEffort, BestEffort, Idle]),
        0u8..8,
    );
    (place, kind).prop_map(
        |((region, span, outstanding, think_ms), (reads, class, level))| LoopProcess {
            class,
            level,
            operation: if reads {
                Operation::Read
            } else {
                Operation::Write
            },
            synchronous: reads,
            start: region * 25_000_000,
            span,
            outstanding,
            think: Duration::from_millis(think_ms),
            count: 25,
            ..LoopProcess::default()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn extreme_keys_lose_nothing_and_leave_nobody_behind(
        mut processes in prop::collection::vec(process(), 1..6),
        (name, keys) in prop::sample::select(EXTREMES),
        queue_depth in 1u32..9,
        by_member: bool,
        hz in prop::sample::select(vec![None, Some(100), Some(250), Some(300), Some(1000)]),
    ) {
        (1..).zip(&mut processes).for_each(|(id, process)| process.process = id);
        let expected = 25 * processes.len();
        let clock = TickClock::new(hz).unwrap();
        let entry = find("elevator", REGISTRY, "elevator", name).unwrap();
        let elevator = build_at(clock, entry, keys, queue_depth);
        let settings = LayerSettings { per_member_anticipation: by_member, clock, ..settings(queue_depth) };
        let layer = BlockLayer::new(elevator, &settings, Some(Box::new(Halves)));
        let ran = ElevatorBench::new(layer, &Load { queue_depth, processes }).run(Time::NEVER);
        prop_assert_eq!(ran.done.len(), expected);
    }
}
