use super::*;
use crate::config::tests::small_drive;
use crate::config::{BufferConfig, DriveConfig, QueueConfig};
use crate::drive::DriveModel;
use crate::drive::tests::{request, serve};
use crate::freeblock::tests::buffer;
use fullstroke_contract::{Completion, Hints};
use proptest::prelude::*;

/// A request: arrival in ns, address, sectors, true for a write, true for a foreground request.
type Asked = (u64, u64, u64, bool, bool);

fn put(id: usize, &(_, lbn, sectors, write, waits): &Asked) -> Request {
    let operation = if write || !waits {
        Operation::Write
    } else {
        Operation::Read
    };
    let hints = Hints {
        synchronous: waits,
        ..Hints::default()
    };
    Request {
        hints,
        ..request(id as u64, lbn, sectors, operation)
    }
}

fn drive(background: Option<BackgroundConfig>, discipline: &str) -> DriveConfig {
    let queue = QueueConfig {
        background,
        discipline: discipline.into(),
        depth: 64,
        ..QueueConfig::default()
    };
    DriveConfig {
        queue,
        command_overhead_ms: 0.2,
        queued_overhead_ms: 0.05,
        ..small_drive()
    }
}

/// Background requests wait for free latency only, longer than any test runs.
fn only_free() -> BackgroundConfig {
    let long = Duration::from_secs(3600);
    BackgroundConfig {
        most: 64,
        age: long,
        idle: long,
        margin_ms: 0.0,
    }
}

/// Returns the completions and the drive's counters.
fn run(config: DriveConfig, asked: &[Asked]) -> (Vec<Completion>, Vec<f64>) {
    let mut drive = DriveModel::new(config).unwrap().drive().unwrap();
    let requests = asked
        .iter()
        .enumerate()
        .map(|(id, asked)| (Time::from_nanos(asked.0), put(id, asked)));
    let done = serve(&mut drive, requests, 0);
    let background = drive.background.as_ref();
    let counted =
        background.map(|background| [background.free, background.at_idle, background.late]);
    (
        done,
        counted
            .into_iter()
            .flatten()
            .map(|sectors| sectors.0 as f64)
            .collect(),
    )
}

fn asked() -> impl Strategy<Value = Vec<Asked>> {
    let gaps = prop::collection::vec(
        (
            0u64..6_000_000,
            0u64..1360,
            1u64..12,
            any::<bool>(),
            any::<bool>(),
        ),
        1..80,
    );
    gaps.prop_map(|mut gaps| {
        let mut now = 0;
        for gap in &mut gaps {
            now += gap.0;
            gap.0 = now;
        }
        gaps
    })
}

/// Returns the end of each foreground request.
fn waited(asked: &[Asked], done: &[Completion]) -> Vec<(u64, u64)> {
    let mut ends: Vec<(u64, u64)> = done
        .iter()
        .filter(|completion| asked[completion.id.0 as usize].4)
        .map(|completion| (completion.id.0, completion.finished.as_nanos()))
        .collect();
    ends.sort_unstable();
    ends
}

proptest! {
    /// With a discipline that ignores the arm position, foreground requests end as without
    /// background requests.
    #[test]
    fn nobody_who_waits_notices(asked in asked()) {
        let alone: Vec<Asked> = asked.iter().copied().filter(|asked| asked.4).collect();
        let (without, _) = run(drive(None, "fcfs"), &alone);
        let (with, _) = run(drive(Some(only_free()), "fcfs"), &asked);
        let without: Vec<u64> = waited(&alone, &without).into_iter().map(|(_, end)| end).collect();
        let with: Vec<u64> = waited(&asked, &with).into_iter().map(|(_, end)| end).collect();
        prop_assert_eq!(with.len(), without.len());
        for (with, without) in with.iter().zip(&without) {
            prop_assert!(with.abs_diff(*without) <= 300, "{} and {}", with, without);
        }
    }

    /// Under any load, each request ends once and its parts add up.
    #[test]
    fn each_ends_once(
        asked in asked(), most in 1u32..8, age in 0u64..40, idle in 0u64..20, margin in 0.0..2.0f64,
        buffered in any::<bool>(), first in any::<bool>(), satf in any::<bool>(), depth in 1u32..12,
    ) {
        let background = BackgroundConfig {
            most, age: Duration::from_millis(age), idle: Duration::from_millis(idle), margin_ms: margin,
        };
        let mut config = drive(Some(background), if satf { "satf" } else { "look" });
        config.queue.depth = depth;
        config.buffer = buffered.then(|| BufferConfig { buffered_first: first, ..buffer() });
        let (done, counted) = run(config, &asked);
        let mut ids: Vec<u64> = done.iter().map(|completion| completion.id.0).collect();
        ids.sort_unstable();
        prop_assert_eq!(ids, (0..asked.len() as u64).collect::<Vec<_>>());
        for completion in &done {
            prop_assert_eq!(completion.finished.since(completion.submitted), completion.breakdown.response());
        }
        let put_off = asked.iter().filter(|asked| !asked.4).map(|asked| asked.2 as f64).sum::<f64>();
        prop_assert_eq!(counted.iter().sum::<f64>(), put_off);
    }
}

#[test]
fn a_write_that_passes_on_the_way_is_served_first() {
    // One track has 40 sectors of 0.15 ms each. The read waits for sector 20 from 0.2 ms on.
    let asked = [(0, 10, 2, true, false), (0, 20, 1, true, true)];
    let (done, counted) = run(drive(Some(only_free()), "satf"), &asked);
    assert_eq!(
        done.iter().map(|done| done.id.0).collect::<Vec<_>>(),
        [0, 1]
    );
    assert_eq!(counted, [2.0, 0.0, 0.0]);
}

#[test]
fn one_that_does_not_pass_waits_for_idle_time_or_its_age() {
    let asked = [(0, 18, 2, true, false), (0, 20, 1, true, true)];
    let idle = BackgroundConfig {
        idle: Duration::from_millis(50),
        ..only_free()
    };
    let (done, counted) = run(drive(Some(idle), "satf"), &asked);
    assert_eq!(counted, [0.0, 2.0, 0.0]);
    assert!(done[1].id.0 == 0 && done[1].finished >= done[0].finished + Duration::from_millis(50));
    let many = [asked[0], (0, 30, 2, true, false), asked[1]];
    let (_, counted) = run(
        drive(Some(BackgroundConfig { most: 1, ..idle }), "satf"),
        &many,
    );
    assert_eq!(
        counted[2], 2.0,
        "the older of two is served as others are where one may wait"
    );
}

#[test]
fn a_buffer_that_takes_writes_is_refused() {
    let buffer = BufferConfig {
        write_back: true,
        ..buffer()
    };
    let config = DriveConfig {
        buffer: Some(buffer),
        ..drive(Some(only_free()), "satf")
    };
    let refused = DriveModel::new(config).unwrap_err();
    assert_eq!(refused.key, "queue.background");
    let none = BackgroundConfig {
        most: 0,
        ..only_free()
    };
    assert_eq!(
        DriveModel::new(drive(Some(none), "satf")).unwrap_err().key,
        "queue.background.most"
    );
}
