//! Shifts of a volume with gears, completion by completion.

use super::Volume;
use crate::bytes::build;
use fullstroke_contract::{
    Breakdown, Completion, Effect, Effects, Extent, LayerOrder, Node, NodeContext, Operation, Port,
    Request, RequestId, RequestStatus,
};
use fullstroke_units::{Duration, Time};
use serde_json::{Value, json};

/// Six members, four active in the low gear. Each member I/O has half a second of service.
struct ShiftBench {
    volume: Volume,
    now: Time,
    asked: u64,
}

const SECOND: u64 = 1_000_000_000;

impl ShiftBench {
    fn new(further: Value) -> ShiftBench {
        let mut keys = json!({ "chunk": 512, "active": 4, "window_s": 12, "stay_s": 12, "shift_down": 0.1, "shift_up": 0.4 });
        keys.as_object_mut()
            .unwrap()
            .extend(further.as_object().unwrap().clone());
        ShiftBench {
            volume: Volume::new(build("paraid", &keys, &[400; 6]).unwrap()),
            now: Time::ZERO,
            asked: 0,
        }
    }

    fn call(&mut self, event: impl FnOnce(&mut Volume, Time, &mut NodeContext<'_>)) -> Vec<Effect> {
        let mut out = Effects::new();
        event(
            &mut self.volume,
            self.now,
            &mut NodeContext::alone(&mut out),
        );
        let mut all: Vec<Effect> = out.drain().collect();
        let mut next = 0;
        while next < all.len() {
            if let Effect::Issue { port, request } = all[next] {
                let breakdown = Breakdown {
                    seek: Duration::from_nanos(SECOND / 2),
                    ..Breakdown::default()
                };
                let completion = Completion {
                    id: request.id,
                    submitted: self.now,
                    finished: self.now,
                    status: RequestStatus::Done,
                    breakdown,
                };
                self.volume.completed(
                    self.now,
                    port,
                    completion,
                    &mut NodeContext::alone(&mut out),
                );
                all.extend(out.drain());
            }
            next += 1;
        }
        all
    }

    /// Lets `seconds` seconds pass, with `writes` writes per second.
    fn pass(&mut self, seconds: u64, writes: u64) -> Vec<Effect> {
        let mut all = Vec::new();
        for _ in 0..seconds {
            self.now += Duration::from_nanos(SECOND);
            for _ in 0..writes {
                all.extend(self.ask(Operation::Write));
            }
            all.extend(self.call(|volume, now, cx| volume.wake(now, cx)));
        }
        all
    }

    fn ask(&mut self, operation: Operation) -> Vec<Effect> {
        self.asked += 1;
        let extent = if operation.transfers() {
            Extent::new(self.asked * 37 % 700, 9)
        } else {
            Extent::default()
        };
        let request = Request {
            id: RequestId(self.asked),
            operation,
            extent,
            ..Request::default()
        };
        self.call(|volume, now, cx| volume.submit(now, Port::FIRST, request, cx))
    }

    fn reading(&self, name: &str) -> f64 {
        self.volume
            .shifts
            .as_ref()
            .unwrap()
            .readings(self.now)
            .iter()
            .find(|(own, _)| *own == name)
            .unwrap()
            .1
    }
}

/// Returns the members with this operation.
fn members(effects: &[Effect], operation: Operation) -> Vec<usize> {
    let of = |effect: &Effect| match effect {
        Effect::Issue { port, request } if request.operation == operation => Some(port.index()),
        _ => None,
    };
    effects.iter().filter_map(of).collect()
}

#[test]
fn a_quiet_array_copies_what_was_written_and_stops_members_and_a_busy_one_starts_them_again() {
    let mut bench = ShiftBench::new(json!({}));
    bench.ask(Operation::Write);
    let quiet = bench.pass(14, 0);
    assert_eq!(members(&quiet, Operation::Standby), [4, 5]);
    assert!(
        members(&quiet, Operation::Write)
            .iter()
            .all(|&member| member < 4),
        "the soft state alone"
    );
    assert_eq!(
        members(&bench.ask(Operation::Flush), Operation::Flush),
        [0, 1, 2, 3],
        "a flush starts nobody"
    );
    let low = bench.pass(5, 1);
    assert!(
        members(&low, Operation::Write)
            .iter()
            .all(|&member| member < 4),
        "nobody who stands"
    );
    let busy = bench.pass(30, 2);
    assert_eq!(members(&busy, Operation::Start), [4, 5]);
    assert!(
        members(&busy, Operation::Write)
            .iter()
            .any(|&member| member >= 4),
        "copied home"
    );
    assert_eq!(
        (
            bench.reading("volume_shifts_down"),
            bench.reading("volume_shifts_up")
        ),
        (1.0, 1.0)
    );
    let share = |gear: &str| bench.reading(&format!("volume_{gear}_gear_share"));
    let shares = ["high", "falling", "low", "rising"].map(share);
    assert!(
        (shares.iter().sum::<f64>() - 1.0).abs() < 1e-12,
        "all of the time: {shares:?}"
    );
    assert!(shares[0] > 0.2 && shares[2] > 0.1, "{shares:?}");
}

#[test]
fn a_gear_is_kept_for_its_least_stay_and_the_budget_of_stops_is_kept() {
    let mut bench = ShiftBench::new(json!({ "stops_a_day": 1, "stay_s": 40 }));
    assert!(members(&bench.pass(39, 0), Operation::Standby).is_empty());
    assert_eq!(members(&bench.pass(3, 0), Operation::Standby).len(), 2);
    assert!(members(&bench.pass(30, 2), Operation::Start).is_empty());
    assert_eq!(members(&bench.pass(20, 2), Operation::Start).len(), 2);
    assert!(
        members(&bench.pass(200, 0), Operation::Standby).is_empty(),
        "once a day"
    );
}

#[test]
fn a_failure_in_the_low_gear_shifts_up_at_once_and_then_the_member_can_be_filled() {
    let mut bench = ShiftBench::new(json!({}));
    assert_eq!(members(&bench.pass(14, 0), Operation::Standby), [4, 5]);
    bench.ask(Operation::Write);
    let failed = bench.call(|volume, now, cx| {
        volume
            .ordered(now, LayerOrder::Fail { member: 1 }, cx)
            .unwrap()
    });
    assert_eq!(members(&failed, Operation::Start), [4, 5]);
    let order = LayerOrder::Restore {
        member: 1,
        done: Default::default(),
        rate: None,
        accept_data_loss: false,
    };
    let filled = bench.call(|volume, now, cx| volume.ordered(now, order, cx).unwrap());
    assert!(!members(&filled, Operation::Write).is_empty());
    bench.pass(2, 0);
    assert_eq!(
        bench.volume.layout().member_state(1),
        fullstroke_contract::MemberState::Alive
    );
    assert_eq!(
        members(&bench.pass(14, 0), Operation::Standby),
        [4, 5],
        "whole again, it falls"
    );
}

#[test]
fn copies_keep_their_rate() {
    let mut bench = ShiftBench::new(json!({ "copy_rate": "10KiB", "native_percent": 50 }));
    (0..30).for_each(|_| drop(bench.ask(Operation::Write)));
    let begun = bench.pass(14, 0);
    let copied = members(&begun, Operation::Standby).is_empty();
    assert!(copied, "more is stale than a second's");
    assert!(!members(&bench.pass(60, 0), Operation::Standby).is_empty());
}

#[test]
fn a_failure_ends_a_shift_down_and_the_time_of_each_gear_is_counted_in_that_gear() {
    let mut bench = ShiftBench::new(json!({ "copy_rate": "1KiB" }));
    (0..30).for_each(|_| drop(bench.ask(Operation::Write)));
    bench.pass(20, 0);
    let falling = bench.reading("volume_falling_gear_share") * 20.0;
    assert!(falling > 5.0, "the shift down lasts: {falling} s");
    bench.call(|volume, now, cx| {
        volume
            .ordered(now, LayerOrder::Fail { member: 5 }, cx)
            .unwrap()
    });
    bench.pass(20, 0);
    let share = |gear: &str| bench.reading(&format!("volume_{gear}_gear_share")) * 40.0;
    assert_eq!(share("falling"), falling);
    assert_eq!(share("high"), 40.0 - falling);
}
