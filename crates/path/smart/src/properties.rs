//! Properties that hold under any load.

use crate::discipline::REGISTRY;
use crate::testing::{Arrival, array, arrivals, run};
use fullstroke_contract::{Completion, Node};
use proptest::prelude::*;
use serde_json::{Value, json};

fn with(keys: &Value, arrivals: &[Arrival]) -> Vec<Completion> {
    run(&mut array(keys), arrivals, 0)
}

fn discipline(name: &str, segments: u32) -> Value {
    json!({ "discipline": name, "segments": segments })
}

proptest! {
    /// No request blocks for ever, even with the fewest segments for an XDW.
    #[test]
    fn every_request_completes_once_and_its_parts_add_up(
        arrivals in arrivals(2_000_000), segments in 2u32..6, which in 0..REGISTRY.len(),
    ) {
        let done = with(&discipline(REGISTRY[which].name, segments), &arrivals);
        let mut ids: Vec<u64> = done.iter().map(|completion| completion.id.0).collect();
        ids.sort_unstable();
        prop_assert_eq!(ids, (0..arrivals.len() as u64).collect::<Vec<_>>());
        for completion in done {
            prop_assert_eq!(completion.finished.since(completion.submitted), completion.breakdown.response());
        }
    }

    #[test]
    fn nothing_blocks_where_everything_comes_at_once(
        arrivals in arrivals(1), which in 0..REGISTRY.len(),
    ) {
        prop_assert_eq!(with(&discipline(REGISTRY[which].name, 2), &arrivals).len(), arrivals.len());
    }

    #[test]
    fn late_wake_ups_do_not_move_the_timeline(
        arrivals in arrivals(3_000_000), late in 0u64..30_000_000, which in 0..REGISTRY.len(),
    ) {
        let keys = discipline(REGISTRY[which].name, 3);
        prop_assert_eq!(run(&mut array(&keys), &arrivals, 0), run(&mut array(&keys), &arrivals, late));
    }

    /// Chang & Du, sections 3.2 and 3.3.
    #[test]
    fn without_a_preference_both_promotions_are_greedy(arrivals in arrivals(1_000_000), segments in 2u32..6) {
        let greedy = with(&discipline("greedy", segments), &arrivals);
        let xpwt = json!({ "discipline": "xpwt", "segments": segments, "delta_ms": 0 });
        let xpwq = json!({ "discipline": "xpwq", "segments": segments, "max_xpw": u64::MAX });
        prop_assert_eq!(&greedy, &with(&xpwt, &arrivals));
        prop_assert_eq!(&greedy, &with(&xpwq, &arrivals));
    }

    /// Chang & Du, sections 3.2 and 3.3.
    #[test]
    fn with_the_fullest_preference_both_promotions_are_one(arrivals in arrivals(1_000_000), segments in 2u32..6) {
        // No access of this drive takes 3 + 6 ms.
        let xpwt = json!({ "discipline": "xpwt", "segments": segments, "delta_ms": 9 });
        let xpwq = json!({ "discipline": "xpwq", "segments": segments, "max_xpw": 0 });
        prop_assert_eq!(with(&xpwt, &arrivals), with(&xpwq, &arrivals));
    }

    #[test]
    fn all_segments_are_free_at_the_end_and_every_update_was_two_commands(
        arrivals in arrivals(1_000_000), segments in 2u32..6,
    ) {
        let mut array = array(&discipline("xpwt", segments));
        run(&mut array, &arrivals, 0);
        let (mut xdws, mut xpws) = (0, 0);
        for disk in 0..array.disks() {
            prop_assert_eq!(array.segments(disk).free(), segments);
            let counts = array.disk_statistics(disk);
            xdws += counts.xdws;
            xpws += counts.xpws;
            let elapsed = u128::from(array.latest().as_nanos());
            prop_assert!(counts.segments_ns <= elapsed * u128::from(segments));
            prop_assert!(counts.results_ns <= elapsed * u128::from(segments - 1), "the last one is never a result");
            prop_assert!(u128::from((counts.drive.busy + counts.forced_idle).as_nanos()) <= elapsed);
        }
        prop_assert_eq!(xdws, xpws);
        prop_assert_eq!(array.gauge().queue_length, 0);
    }
}
