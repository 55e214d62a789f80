//! Failures, restores and rebuilds of a volume, completion by completion.

use super::Volume;
use super::rebuild::Units;
use crate::Role;
use crate::bytes::build;
use fullstroke_contract::{
    Completion, Effect, Effects, Extent, Hints, LayerOrder, MemberState, Node, NodeContext, Notice,
    Operation, Port, PriorityClass, RebuildSpeed, Refusal, Request, RequestId, RequestStatus,
    Signal,
};
use fullstroke_units::{Bytes, Lbn, Sectors, Time};
use serde_json::json;

/// A volume with member completions from the test.
struct RebuildBench {
    volume: Volume,
    now: Time,
}

impl RebuildBench {
    fn new(name: &str, members: usize, sectors: u64) -> RebuildBench {
        let layout = build(name, &json!({}), &vec![sectors; members]).unwrap();
        let mut volume = Volume::new(layout);
        volume.rebuilds.sizes = Units {
            short: Sectors(UNIT),
            long: Sectors(UNIT),
            window: 1,
        };
        RebuildBench {
            volume,
            now: Time::ZERO,
        }
    }

    /// Returns a bench with several rebuild units in flight.
    fn pipelined(name: &str, members: usize, sectors: u64) -> RebuildBench {
        let mut bench = RebuildBench::new(name, members, sectors);
        bench.volume.rebuilds.sizes.window = 3;
        bench
    }

    fn call(&mut self, event: impl FnOnce(&mut Volume, Time, &mut Effects)) -> Vec<Effect> {
        let mut out = Effects::new();
        event(&mut self.volume, self.now, &mut out);
        out.drain().collect()
    }

    fn order(&mut self, order: LayerOrder) -> Vec<Effect> {
        self.call(|volume, now, out| {
            volume
                .ordered(now, order, &mut NodeContext::alone(out))
                .unwrap()
        })
    }

    fn refusal(&mut self, order: LayerOrder) -> String {
        let mut out = Effects::new();
        let Refusal(message) = self
            .volume
            .ordered(self.now, order, &mut NodeContext::alone(&mut out))
            .unwrap_err();
        assert!(out.is_empty());
        message
    }

    fn fail(&mut self, member: usize) -> Vec<Effect> {
        self.order(LayerOrder::Fail { member })
    }

    fn restore(&mut self, member: usize) -> Vec<Effect> {
        self.order(restore(member, None, false))
    }

    fn hear(&mut self, member: usize, signal: Signal) -> Vec<Effect> {
        self.call(|volume, now, out| {
            volume.noticed(
                now,
                Port::of(member),
                Notice::new(signal),
                &mut NodeContext::alone(out),
            )
        })
    }

    fn submit(&mut self, number: u64, operation: Operation, extent: Extent) -> Vec<Effect> {
        let request = Request {
            id: RequestId(number),
            origin: number,
            operation,
            extent,
            ..Request::default()
        };
        self.call(|volume, now, out| {
            volume.submit(now, Port::FIRST, request, &mut NodeContext::alone(out))
        })
    }

    fn finish(&mut self, effect: &Effect, status: RequestStatus) -> Vec<Effect> {
        let Effect::Issue { port, request } = *effect else {
            panic!("{effect:?} was not issued")
        };
        let completion = Completion {
            id: request.id,
            submitted: self.now,
            finished: self.now,
            status,
            ..Completion::default()
        };
        self.call(|volume, now, out| {
            volume.completed(now, port, completion, &mut NodeContext::alone(out));
        })
    }

    /// Wakes the volume at `nanoseconds`.
    fn wake(&mut self, nanoseconds: u64) -> Vec<Effect> {
        self.now = Time::from_nanos(nanoseconds);
        self.call(|volume, now, out| volume.wake(now, &mut NodeContext::alone(out)))
    }

    /// Completes all I/O, also resulting I/O, until only the passage of time can cause events.
    /// Returns all effects, in order.
    fn run(&mut self, effects: Vec<Effect>) -> Vec<Effect> {
        let mut all = effects;
        let mut next = 0;
        while next < all.len() {
            if matches!(all[next], Effect::Issue { .. }) {
                let more = self.finish(&all[next].clone(), RequestStatus::Done);
                all.extend(more);
            }
            next += 1;
        }
        all
    }

    fn state(&self, member: usize) -> MemberState {
        self.volume.layout().member_state(member)
    }
}

fn notice(signal: Signal) -> Effect {
    Effect::Notice {
        port: Port::FIRST,
        notice: Notice::new(signal),
    }
}

fn signals(effects: &[Effect]) -> Vec<Signal> {
    let all = effects.iter().filter_map(|effect| match effect {
        Effect::Notice { notice, .. } => Some(notice.signal),
        _ => None,
    });
    all.collect()
}

fn issued(effects: &[Effect]) -> Vec<(u32, Operation, Extent)> {
    let all = effects.iter().filter_map(|effect| match effect {
        Effect::Issue { port, request } => {
            Some((u32::from(port.0), request.operation, request.extent))
        }
        _ => None,
    });
    all.collect()
}

fn rebuilt(member: u32, done: u64, used: u64) -> Signal {
    Signal::Rebuilt {
        member,
        done: Sectors(done),
        used: Sectors(used),
        whole: done == used,
    }
}

fn restore(member: usize, rate: Option<Bytes>, accept_data_loss: bool) -> LayerOrder {
    LayerOrder::Restore {
        member,
        done: Sectors::ZERO,
        rate,
        accept_data_loss,
    }
}

const UNIT: u64 = 2048;

#[test]
fn a_mirror_is_copied_unit_by_unit_and_says_how_far() {
    let mut bench = RebuildBench::new("raid1", 2, 2 * UNIT + 100);
    assert_eq!(bench.fail(1), [], "one of two is survived in silence");
    let effects = bench.restore(1);
    let effects = bench.run(effects);
    let units = [(0, UNIT), (UNIT, UNIT), (2 * UNIT, 100)];
    let ios: Vec<_> = units
        .iter()
        .map(|&(start, sectors)| Extent::new(start, sectors))
        .flat_map(|extent| [(0, Operation::Read, extent), (1, Operation::Write, extent)])
        .collect();
    assert_eq!(issued(&effects), ios);
    let end = 2 * UNIT + 100;
    let expected = [
        rebuilt(1, UNIT, end),
        rebuilt(1, 2 * UNIT, end),
        rebuilt(1, end, end),
    ];
    assert_eq!(signals(&effects), expected);
    assert_eq!(bench.state(1), MemberState::Alive);
    assert_eq!(bench.volume.next_wake().at(), Time::NEVER);
}

#[test]
fn a_row_of_parity_is_read_from_all_others_and_written_to_the_new_member() {
    let mut bench = RebuildBench::new("raid5", 4, 3 * UNIT);
    bench.fail(2);
    let effects = bench.restore(2);
    let unit = Extent::new(0, UNIT);
    let read = |member| (member, Operation::Read, unit);
    let mut reads = issued(&effects);
    reads.sort_unstable();
    assert_eq!(reads, [read(0), read(1), read(3)]);
    let all = issued(&bench.run(effects));
    assert_eq!(all.len(), 3 * 4);
    let writes = all.iter().filter(|io| io.1 == Operation::Write);
    assert!(writes.clone().all(|io| io.0 == 2));
    assert_eq!(writes.map(|io| io.2.sectors.0).sum::<u64>(), 3 * UNIT);
}

#[test]
fn units_begin_no_faster_than_the_rate_and_no_later() {
    const SECOND: u64 = 1_000_000_000;
    let mut bench = RebuildBench::new("raid1", 2, 4 * UNIT);
    bench.fail(0);
    let rate = Some(Bytes(1 << 20));
    let effects = bench.order(restore(0, rate, false));
    let mut effects = bench.run(effects);
    for unit in 1..4 {
        assert_eq!(signals(&effects), [rebuilt(0, unit * UNIT, 4 * UNIT)]);
        assert_eq!(
            bench.volume.next_wake().at(),
            Time::from_nanos(unit * SECOND)
        );
        assert_eq!(
            bench.wake(unit * SECOND - 1),
            [],
            "to be woken early is harmless"
        );
        // A late wake-up does not delay the following units.
        effects = bench.wake(unit * SECOND + unit);
        effects = bench.run(effects);
    }
    assert_eq!(signals(&effects), [rebuilt(0, 4 * UNIT, 4 * UNIT)]);
}

#[test]
fn a_unit_that_takes_longer_than_the_rate_allows_is_not_caught_up_with() {
    let mut bench = RebuildBench::new("raid1", 2, 4 * UNIT);
    bench.fail(0);
    let rate = Some(Bytes(1 << 20));
    let effects = bench.order(restore(0, rate, false));
    bench.now = Time::from_nanos(2_500_000_000);
    let effects = bench.run(effects);
    assert_eq!(issued(&effects).len(), 4, "the next begins at once");
    assert_eq!(
        bench.volume.next_wake().at(),
        Time::from_nanos(3_500_000_000),
        "and those behind keep the rate"
    );
}

#[test]
fn what_is_due_begins_before_what_is_submitted_later() {
    let mut bench = RebuildBench::new("raid1", 2, 4 * UNIT);
    bench.fail(0);
    let effects = bench.order(restore(0, Some(Bytes(1 << 20)), false));
    bench.run(effects);
    bench.now = Time::from_nanos(1_000_000_000);
    let effects = bench.submit(5, Operation::Write, Extent::new(UNIT, 8));
    assert_eq!(
        issued(&effects),
        [(1, Operation::Read, Extent::new(UNIT, UNIT))],
        "the write waits for its rows"
    );
    let effects = bench.run(effects);
    let writes: Vec<_> = issued(&effects)
        .into_iter()
        .filter(|io| io.2.sectors == Sectors(8))
        .collect();
    assert_eq!(writes.len(), 2, "and then reaches both");
}

#[test]
fn the_rebuild_of_an_array_like_md_has_the_class_of_other_io() {
    for layout in ["raid1", "raid5", "raid6", "raid10"] {
        let keys = match layout {
            "raid5" | "raid6" => json!({ "like": "md", "stripe_cache": 256 }),
            _ => json!({ "like": "md" }),
        };
        let volume = Volume::new(build(layout, &keys, &[4 * UNIT; 4]).unwrap());
        let mut bench = RebuildBench {
            volume,
            now: Time::ZERO,
        };
        bench.fail(3);
        let effects = bench.restore(3);
        let classes: Vec<_> = bench
            .run(effects)
            .into_iter()
            .filter_map(|effect| match effect {
                Effect::Issue { request, .. } => Some(request.hints.class),
                _ => None,
            })
            .collect();
        assert!(
            !classes.is_empty()
                && classes
                    .iter()
                    .all(|&class| class == PriorityClass::BestEffort),
            "{layout}: {classes:?}"
        );
    }
}

#[test]
fn rebuilds_go_in_the_background() {
    let mut bench = RebuildBench::new("raid5", 4, 2 * UNIT);
    bench.fail(3);
    let effects = bench.restore(3);
    assert_eq!(bench.volume.gauge().queue_length, 0, "nothing from above");
    assert_eq!(bench.volume.gauge().idle_since, None, "but something to do");
    bench.now = Time::from_nanos(70);
    for effect in bench.run(effects) {
        if let Effect::Issue { request, .. } = effect {
            assert_eq!(request.origin, Request::BACKGROUND);
            let Hints {
                class, synchronous, ..
            } = request.hints;
            assert_eq!((class, synchronous), (PriorityClass::Idle, false));
        }
    }
    assert_eq!(bench.volume.gauge().idle_since, Some(bench.now));
}

#[test]
fn reads_take_a_new_member_where_it_is_filled_and_the_others_where_it_is_not() {
    let mut bench = RebuildBench::new("raid5", 3, 2 * UNIT);
    bench.fail(0);
    let effects = bench.order(restore(0, Some(Bytes(1)), false));
    bench.run(effects);
    assert_eq!(
        bench.state(0),
        MemberState::Rebuilding {
            done: Sectors(UNIT)
        }
    );
    // Row 0 and row 18 have their first data chunk on member 0.
    let near = bench.submit(1, Operation::Read, Extent::new(0, 8));
    assert_eq!(issued(&near), [(0, Operation::Read, Extent::new(0, 8))]);
    let far = bench.submit(2, Operation::Read, Extent::new(18 * 256, 8));
    let mut members: Vec<u32> = issued(&far).iter().map(|io| io.0).collect();
    members.sort_unstable();
    assert_eq!(members, [1, 2]);
}

#[test]
fn a_volume_that_loses_data_says_so_and_its_rebuild_rests() {
    let mut bench = RebuildBench::new("raid1", 2, 4 * UNIT);
    bench.fail(0);
    let effects = bench.restore(0);
    let writes = bench.finish(&effects[0], RequestStatus::Done);
    let reads = bench.finish(&writes[0], RequestStatus::Done);
    assert_eq!(
        bench.state(0),
        MemberState::Rebuilding {
            done: Sectors(UNIT)
        }
    );
    assert_eq!(signals(&bench.fail(1)), [Signal::Failed]);
    assert!(!bench.volume.gauge().alive);
    let begun: Vec<Effect> = reads
        .into_iter()
        .filter(|effect| matches!(effect, Effect::Issue { .. }))
        .collect();
    let effects = bench.run(begun);
    assert_eq!(
        issued(&effects).len(),
        2,
        "what was under way ends, and nothing begins"
    );
    assert_eq!(
        signals(&effects),
        [],
        "what was read of a member that has failed since fills nothing"
    );
    assert_eq!(
        bench.state(0),
        MemberState::Rebuilding {
            done: Sectors(UNIT)
        }
    );
    assert_eq!(bench.volume.next_wake().at(), Time::NEVER);
    let kept = bench.submit(1, Operation::Read, Extent::new(UNIT - 8, 8));
    assert_eq!(issued(&kept).len(), 1, "what is left can be read");
    let lost = bench.submit(2, Operation::Read, Extent::new(UNIT, 8));
    assert!(matches!(
        lost[..],
        [Effect::Complete {
            completion: Completion {
                status: RequestStatus::Lost,
                ..
            },
            ..
        }]
    ));
}

#[test]
fn beyond_its_redundancy_a_volume_stays_failed_until_somebody_accepts_the_loss() {
    for (name, members, failures) in [
        ("raid1", 2, 2),
        ("raid5", 5, 2),
        ("raid6", 6, 3),
        ("raid10", 4, 2),
    ] {
        let mut bench = RebuildBench::new(name, members, 4 * UNIT);
        let said: Vec<Signal> = (0..failures)
            .flat_map(|member| signals(&bench.fail(member)))
            .collect();
        assert_eq!(said, [Signal::Failed], "{name}");
        for member in 0..failures {
            let reason = bench.refusal(restore(member, None, false));
            assert!(
                reason.contains("the volume has failed: member 0 has failed"),
                "{reason}"
            );
            assert!(
                reason.contains("re-add") && reason.contains("accept the loss"),
                "{reason}"
            );
        }
        assert!(!bench.volume.gauge().alive);
        let lost = bench.submit(1, Operation::Read, Extent::new(0, 4 * UNIT));
        assert!(
            matches!(
                lost[..],
                [Effect::Complete {
                    completion: Completion {
                        status: RequestStatus::Lost,
                        ..
                    },
                    ..
                }]
            ),
            "{name}"
        );
        let effects = bench.order(restore(0, None, true));
        assert_eq!(signals(&effects).last(), Some(&Signal::Replaced), "{name}");
    }
}

#[test]
fn the_reason_of_a_refusal_names_members_that_are_not_filled_yet() {
    let mut bench = RebuildBench::new("raid5", 4, 4 * UNIT);
    bench.fail(2);
    bench.restore(2);
    bench.fail(0);
    let reason = bench.refusal(restore(0, None, false));
    assert!(
        reason.contains("member 0 has failed, member 2 is not filled"),
        "{reason}"
    );
}

#[test]
fn members_that_come_back_with_their_bytes_bring_the_volume_back() {
    let mut bench = RebuildBench::new("raid5", 4, 4 * UNIT);
    bench.fail(1);
    bench.fail(3);
    assert_eq!(
        signals(&bench.order(LayerOrder::ReAdd { member: 3 })),
        [Signal::Returned]
    );
    assert!(bench.volume.gauge().alive);
    assert_eq!(bench.state(3), MemberState::Alive);
    assert_eq!(
        bench.volume.next_wake().at(),
        Time::NEVER,
        "there is nothing to fill"
    );
    assert!(
        bench
            .refusal(LayerOrder::ReAdd { member: 3 })
            .contains("is alive")
    );
    assert_eq!(bench.order(LayerOrder::ReAdd { member: 1 }), []);
}

#[test]
fn a_rebuild_that_rests_goes_on_when_its_source_comes_back() {
    let mut bench = RebuildBench::new("raid5", 4, 4 * UNIT);
    bench.fail(1);
    let reads = bench.restore(1);
    bench.fail(3);
    bench.run(reads);
    assert_eq!(bench.volume.next_wake().at(), Time::NEVER);
    let effects = bench.order(LayerOrder::ReAdd { member: 3 });
    let effects = bench.run(effects);
    assert_eq!(
        signals(&effects).last(),
        Some(&rebuilt(1, 4 * UNIT, 4 * UNIT))
    );
}

#[test]
fn a_loss_that_is_accepted_passes_over_what_is_lost_and_fills_the_rest() {
    let mut bench = RebuildBench::new("raid1", 2, 4 * UNIT);
    bench.fail(0);
    assert_eq!(signals(&bench.fail(1)), [Signal::Failed]);
    let effects = bench.order(restore(1, None, true));
    assert_eq!(issued(&effects), [], "there is nothing to fill it from");
    assert_eq!(
        signals(&effects),
        [rebuilt(1, 4 * UNIT, 4 * UNIT), Signal::Replaced]
    );
    assert!(bench.volume.gauge().alive);
    let effects = bench.restore(0);
    let effects = bench.run(effects);
    assert_eq!(issued(&effects).len(), 8, "the other is copied from it");
    assert_eq!(bench.state(0), MemberState::Alive);
}

#[test]
fn without_redundancy_a_failure_loses_data_and_a_new_member_is_alive_at_once() {
    for name in ["raid0", "jbod"] {
        let mut bench = RebuildBench::new(name, 3, 4 * UNIT);
        assert_eq!(signals(&bench.fail(1)), [Signal::Failed]);
        let whole = bench.submit(0, Operation::Read, Extent::new(0, 12 * UNIT));
        assert!(matches!(
            whole[..],
            [Effect::Complete {
                completion: Completion {
                    status: RequestStatus::Lost,
                    ..
                },
                ..
            }]
        ));
        let part = bench.submit(1, Operation::Write, Extent::new(0, 128));
        assert_eq!(
            issued(&part),
            [(0, Operation::Write, Extent::new(0, 128))],
            "the others serve on"
        );
        bench.run(part);
        assert!(
            bench
                .refusal(restore(1, None, false))
                .contains("the volume has failed")
        );
        let effects = bench.order(restore(1, None, true));
        assert_eq!(
            signals(&effects),
            [rebuilt(1, 4 * UNIT, 4 * UNIT), Signal::Replaced]
        );
        assert_eq!(bench.state(1), MemberState::Alive);
    }
}

#[test]
fn what_a_member_offers_is_offered_above_in_the_volumes_addresses_and_no_parity() {
    const CHUNK: u64 = 128;
    let mut bench = RebuildBench::new("raid5", 3, 4 * UNIT);
    let layout = bench.volume.layout();
    let chunk_of = |row: u64| match layout.role_of(1, Lbn(row * CHUNK)) {
        Role::Data(of) => Some(Extent::new(of.0, CHUNK)),
        _ => None,
    };
    let owned: Vec<Extent> = (0..6).filter_map(chunk_of).collect();
    assert_eq!(
        owned.len(),
        4,
        "two of three rows have data here, the third parity"
    );
    let offered = bench.hear(1, Signal::Push(Extent::new(0, 6 * CHUNK)));
    assert_eq!(
        signals(&offered),
        owned
            .iter()
            .map(|&extent| Signal::Push(extent))
            .collect::<Vec<_>>()
    );
    let any = Signal::Pull {
        extent: None,
        sectors: Sectors(64),
    };
    assert_eq!(
        bench.hear(1, any),
        [notice(any)],
        "which blocks is for those above to choose"
    );
}

#[test]
fn a_member_that_says_it_failed_has_failed_and_is_rebuilt_when_it_says_it_was_replaced() {
    let mut bench = RebuildBench::new("raid5", 3, 4 * UNIT);
    assert_eq!(bench.hear(1, Signal::Failed), []);
    assert_eq!(bench.state(1), MemberState::Failed);
    assert_eq!(bench.hear(1, Signal::Failed), [], "once is enough");
    assert_eq!(bench.hear(2, rebuilt(7, 8, 9)), [], "of its own members");
    assert_eq!(
        bench.hear(2, Signal::SpunUp),
        [notice(Signal::SpunUp)],
        "who counts platters is above"
    );
    let effects = bench.hear(1, Signal::Replaced);
    let effects = bench.run(effects);
    assert_eq!(
        signals(&effects).last(),
        Some(&rebuilt(1, 4 * UNIT, 4 * UNIT))
    );
    assert_eq!(bench.state(1), MemberState::Alive);
    bench.fail(0);
    assert_eq!(
        signals(&bench.hear(2, Signal::Failed)),
        [Signal::Failed],
        "two are too many"
    );
}

#[test]
fn a_second_failure_of_a_raid6_does_not_stop_the_rebuild_of_the_first() {
    let mut bench = RebuildBench::new("raid6", 5, 4 * UNIT);
    bench.fail(0);
    let reads = bench.restore(0);
    assert_eq!(bench.fail(1), []);
    let effects = bench.run(reads);
    assert_eq!(
        signals(&effects).last(),
        Some(&rebuilt(0, 4 * UNIT, 4 * UNIT))
    );
    let behind = issued(&effects)
        .into_iter()
        .filter(|io| io.2.start >= Lbn(UNIT));
    assert!(behind.clone().all(|io| io.0 != 1), "and does without it");
    assert_eq!(bench.state(1), MemberState::Failed);
}

#[test]
fn two_members_of_a_raid6_are_filled_from_one_read_of_the_others() {
    let mut bench = RebuildBench::new("raid6", 5, 2 * UNIT);
    bench.volume = bench.volume.rebuilding(&[3, 1], RebuildSpeed::default());
    let effects = bench.wake(0);
    let effects = bench.run(effects);
    let expected = [
        rebuilt(1, UNIT, 2 * UNIT),
        rebuilt(3, UNIT, 2 * UNIT),
        rebuilt(1, 2 * UNIT, 2 * UNIT),
        rebuilt(3, 2 * UNIT, 2 * UNIT),
    ];
    assert_eq!(signals(&effects), expected);
    let sectors = |member| {
        let own = issued(&effects)
            .into_iter()
            .filter(move |io| io.0 == member);
        own.map(|io| io.2.sectors.0).sum::<u64>()
    };
    assert_eq!(
        [0, 1, 2, 3, 4].map(sectors),
        [2 * UNIT; 5],
        "each drive moves what it holds once"
    );
}

#[test]
fn members_of_different_pairs_are_filled_side_by_side() {
    let mut bench = RebuildBench::new("raid10", 4, 2 * UNIT);
    bench.fail(0);
    bench.fail(3);
    let first = bench.restore(0);
    assert_eq!(
        issued(&bench.restore(3)),
        [],
        "what is under way ends first"
    );
    let unit = bench.run(first);
    let reads = issued(&unit)
        .into_iter()
        .filter(|io| io.1 == Operation::Read)
        .skip(1)
        .take(2);
    assert_eq!(
        reads.map(|io| io.0).collect::<Vec<_>>(),
        [1, 2],
        "both partners at once"
    );
    let both = |done| [rebuilt(0, done, 2 * UNIT), rebuilt(3, done, 2 * UNIT)];
    assert_eq!(signals(&unit), [both(UNIT), both(2 * UNIT)].concat());
    assert_eq!(
        [0, 3].map(|member| bench.state(member)),
        [MemberState::Alive; 2]
    );
}

#[test]
fn two_copies_of_a_third_are_written_from_one_read() {
    let mut bench = RebuildBench::new("raid1", 3, UNIT);
    bench.volume = bench.volume.rebuilding(&[0, 2], RebuildSpeed::default());
    let effects = bench.wake(0);
    let unit = Extent::new(0, UNIT);
    let (read, write) = (Operation::Read, Operation::Write);
    assert_eq!(
        issued(&bench.run(effects)),
        [(1, read, unit), (0, write, unit), (2, write, unit)]
    );
}

/// Returns a raid6: member 0 is filled for some units when member 1 is restored.
fn one_ahead_by(units: u64, of: u64) -> (RebuildBench, Vec<Effect>) {
    let mut bench = RebuildBench::new("raid6", 5, of * UNIT);
    bench.fail(0);
    bench.fail(1);
    let mut all = bench.restore(0);
    let mut next = 0;
    let ahead = |bench: &RebuildBench| {
        bench.state(0)
            == MemberState::Rebuilding {
                done: Sectors(units * UNIT),
            }
    };
    while !ahead(&bench) {
        let more = bench.finish(&all[next].clone(), RequestStatus::Done);
        all.extend(
            more.into_iter()
                .filter(|effect| matches!(effect, Effect::Issue { .. })),
        );
        next += 1;
    }
    (bench, all.split_off(next))
}

#[test]
fn a_member_that_is_a_little_behind_catches_up_and_goes_on_together() {
    let (mut bench, under_way) = one_ahead_by(2, 200);
    bench.restore(1);
    let effects = bench.run(under_way);
    let of = 200 * UNIT;
    let said = signals(&effects);
    assert_eq!(
        said[..2],
        [rebuilt(1, UNIT, of), rebuilt(1, 2 * UNIT, of)],
        "first it alone"
    );
    assert_eq!(
        said[2..4],
        [rebuilt(0, 3 * UNIT, of), rebuilt(1, 3 * UNIT, of)],
        "then both"
    );
    assert_eq!(said.len() as u64, 2 + 2 * 198);
}

#[test]
fn a_member_that_is_far_behind_waits_until_the_other_is_whole() {
    let (mut bench, under_way) = one_ahead_by(3, 200);
    bench.restore(1);
    let said = signals(&bench.run(under_way));
    let members: Vec<u32> = said
        .iter()
        .map(|signal| match signal {
            Signal::Rebuilt { member, .. } => *member,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(members, [vec![0; 197], vec![1; 200]].concat());
}

#[test]
fn of_two_that_are_filled_together_one_can_fail_again() {
    let mut bench = RebuildBench::pipelined("raid6", 5, 8 * UNIT);
    bench.volume = bench.volume.rebuilding(&[0, 1], RebuildSpeed::default());
    let under_way = bench.wake(0);
    assert_eq!(bench.fail(1), []);
    let effects = bench.run(under_way);
    let expected: Vec<Signal> = (1..=8)
        .map(|unit| rebuilt(0, unit * UNIT, 8 * UNIT))
        .collect();
    assert_eq!(signals(&effects), expected);
    // Writes in the meantime do not rely on the plan for both members.
    assert_eq!(
        (bench.state(0), bench.state(1)),
        (MemberState::Alive, MemberState::Failed)
    );
}

#[test]
fn a_rebuild_waits_for_writes_that_do_not_know_of_it() {
    let mut bench = RebuildBench::new("raid1", 2, 4 * UNIT);
    bench.fail(1);
    let write = bench.submit(1, Operation::Write, Extent::new(0, 8));
    assert_eq!(bench.restore(1), []);
    assert_eq!(bench.volume.next_wake().at(), Time::NEVER);
    bench.now = Time::from_nanos(9);
    let effects = bench.finish(&write[0], RequestStatus::Done);
    assert!(matches!(effects[0], Effect::Complete { completion: _, .. }));
    assert_eq!(
        issued(&effects),
        [(0, Operation::Read, Extent::new(0, UNIT))]
    );
}

#[test]
fn a_member_that_fails_again_is_filled_from_the_beginning() {
    let mut bench = RebuildBench::new("raid1", 2, 4 * UNIT);
    bench.fail(1);
    let reads = bench.restore(1);
    bench.fail(1);
    assert_eq!(
        bench.restore(1),
        [],
        "the unit under way is still in the way"
    );
    let writes = bench.finish(&reads[0], RequestStatus::Done);
    let effects = bench.finish(&writes[0], RequestStatus::Done);
    assert_eq!(signals(&effects), [], "and fills nothing");
    assert_eq!(
        issued(&effects),
        [(0, Operation::Read, Extent::new(0, UNIT))]
    );
}

#[test]
fn a_unit_that_fails_halts_the_rebuild_until_somebody_sees_to_it() {
    let mut bench = RebuildBench::new("raid5", 3, 4 * UNIT);
    bench.fail(1);
    let reads = bench.restore(1);
    bench.finish(&reads[0], RequestStatus::Lost);
    assert_eq!(
        bench.finish(&reads[1], RequestStatus::Done),
        [],
        "nothing is written"
    );
    assert_eq!(bench.volume.next_wake().at(), Time::NEVER);
    assert_eq!(
        bench.state(1),
        MemberState::Rebuilding {
            done: Sectors::ZERO
        }
    );
    bench.fail(1);
    assert!(!issued(&bench.restore(1)).is_empty());
}

#[test]
fn orders_that_make_no_sense_are_refused() {
    let mut bench = RebuildBench::new("raid5", 4, 4 * UNIT);
    assert!(
        bench
            .refusal(LayerOrder::Fail { member: 4 })
            .contains("no member 4")
    );
    assert!(
        bench
            .refusal(restore(9, None, false))
            .contains("counted from 0 to 3")
    );
    assert!(bench.refusal(restore(1, None, false)).contains("is alive"));
    bench.fail(1);
    assert!(
        bench
            .refusal(LayerOrder::Fail { member: 1 })
            .contains("failed already")
    );
    assert!(
        bench
            .refusal(restore(1, Some(Bytes(0)), false))
            .contains("positive rate")
    );
    bench.restore(1);
    assert!(
        bench
            .refusal(restore(1, None, false))
            .contains("being rebuilt")
    );
}

#[test]
fn a_member_volume_that_returns_is_taken_back_unless_others_were_written_without_it() {
    let mut bench = RebuildBench::new("raid5", 3, 4 * UNIT);
    bench.hear(1, Signal::Failed);
    assert_eq!(bench.hear(1, Signal::Returned), []);
    assert_eq!(bench.state(1), MemberState::Alive);
    bench.hear(1, Signal::Failed);
    let write = bench.submit(1, Operation::Write, Extent::new(0, 8));
    bench.run(write);
    let effects = bench.hear(1, Signal::Returned);
    assert_eq!(
        bench.state(1),
        MemberState::Rebuilding {
            done: Sectors::ZERO
        }
    );
    let effects = bench.run(effects);
    assert_eq!(
        signals(&effects).last(),
        Some(&rebuilt(1, 4 * UNIT, 4 * UNIT))
    );
    // Without redundancy, a failed member misses no writes.
    let mut bench = RebuildBench::new("raid0", 3, 4 * UNIT);
    assert_eq!(signals(&bench.hear(1, Signal::Failed)), [Signal::Failed]);
    let write = bench.submit(1, Operation::Write, Extent::new(0, 8));
    bench.run(write);
    assert_eq!(bench.hear(1, Signal::Returned), [notice(Signal::Returned)]);
    assert_eq!(bench.state(1), MemberState::Alive);
}

#[test]
fn what_a_member_refuses_after_its_failure_is_planned_anew() {
    let mut bench = RebuildBench::new("raid5", 3, 4 * UNIT);
    let reads = bench.submit(7, Operation::Write, Extent::new(0, 8));
    bench.hear(0, Signal::Failed);
    let mut effects = Vec::new();
    for read in &reads {
        effects.extend(bench.finish(read, RequestStatus::Done));
    }
    // The second phase reaches a member volume that has failed, and the member refuses.
    let writes: Vec<Effect> = effects.clone();
    assert_eq!(writes.len(), 2);
    let mut again = Vec::new();
    for write in &writes {
        let Effect::Issue { port, .. } = write else {
            panic!("{write:?}")
        };
        let status = if *port == Port::FIRST {
            RequestStatus::Lost
        } else {
            RequestStatus::Done
        };
        again.extend(bench.finish(write, status));
    }
    assert!(
        issued(&again).iter().all(|io| io.0 != 0),
        "without the member: {again:?}"
    );
    let end = bench.run(again);
    assert!(
        matches!(
            end.last(),
            Some(Effect::Complete {
                completion: Completion {
                    status: RequestStatus::Done,
                    ..
                },
                ..
            })
        ),
        "{end:?}"
    );
}

#[test]
fn what_a_member_refuses_is_lost_where_nothing_has_changed_or_too_much() {
    let mut bench = RebuildBench::new("raid5", 3, 4 * UNIT);
    let reads = bench.submit(7, Operation::Read, Extent::new(0, 8));
    let end = bench.finish(&reads[0], RequestStatus::Lost);
    assert!(matches!(
        end[..],
        [Effect::Complete {
            completion: Completion {
                status: RequestStatus::Lost,
                ..
            },
            ..
        }]
    ));
    let reads = bench.submit(8, Operation::Read, Extent::new(0, 8));
    bench.hear(0, Signal::Failed);
    bench.hear(1, Signal::Failed);
    let end = bench.finish(&reads[0], RequestStatus::Lost);
    assert!(matches!(
        end[..],
        [Effect::Complete {
            completion: Completion {
                status: RequestStatus::Lost,
                ..
            },
            ..
        }]
    ));
}

#[test]
fn while_nobody_asks_for_anything_the_next_units_are_read_while_one_is_written() {
    let mut bench = RebuildBench::pipelined("raid1", 2, 8 * UNIT);
    bench.fail(1);
    let reads = bench.restore(1);
    let unit = |number: u64| Extent::new(number * UNIT, UNIT);
    let expected: Vec<_> = (0..3)
        .map(|number| (0, Operation::Read, unit(number)))
        .collect();
    assert_eq!(issued(&reads), expected, "three units are under way");
    let write = bench.finish(&reads[0], RequestStatus::Done);
    assert_eq!(issued(&write), [(1, Operation::Write, unit(0))]);
    let effects = bench.finish(&write[0], RequestStatus::Done);
    assert_eq!(issued(&effects), [(0, Operation::Read, unit(3))]);
    assert_eq!(signals(&effects), [rebuilt(1, UNIT, 8 * UNIT)]);
}

#[test]
fn units_that_end_out_of_order_count_in_order() {
    let mut bench = RebuildBench::pipelined("raid1", 2, 8 * UNIT);
    bench.fail(1);
    let reads = bench.restore(1);
    let second = bench.finish(&reads[1], RequestStatus::Done);
    let effects = bench.finish(&second[0], RequestStatus::Done);
    assert_eq!(signals(&effects), []);
    assert_eq!(
        bench.state(1),
        MemberState::Rebuilding {
            done: Sectors::ZERO
        }
    );
    let first = bench.finish(&reads[0], RequestStatus::Done);
    let effects = bench.finish(&first[0], RequestStatus::Done);
    assert_eq!(
        signals(&effects),
        [rebuilt(1, UNIT, 8 * UNIT), rebuilt(1, 2 * UNIT, 8 * UNIT)]
    );
    // A write to sectors that are being filled waits for the unit, and then reaches the new member.
    assert_eq!(
        bench.submit(1, Operation::Write, Extent::new(2 * UNIT, 8)),
        []
    );
    let effects = bench.run(vec![reads[2]]);
    let writes: Vec<u32> = issued(&effects)
        .iter()
        .filter(|io| io.2.sectors == Sectors(8))
        .map(|io| io.0)
        .collect();
    assert_eq!(writes, [0, 1]);
}

#[test]
fn a_rebuild_that_is_fast_enough_makes_way_for_requests_until_they_have_been_gone_for_a_second() {
    const SECOND: u64 = 1_000_000_000;
    let mut bench = RebuildBench::pipelined("raid1", 2, 64 * UNIT);
    bench.volume.rebuilds.sizes.long = Sectors(4 * UNIT);
    bench.fail(1);
    let reads = bench.restore(1);
    assert_eq!(
        issued(&reads)[2].2,
        Extent::new(8 * UNIT, 4 * UNIT),
        "long units"
    );
    let request = bench.submit(1, Operation::Read, Extent::new(63 * UNIT, 8));
    let mut next = Vec::new();
    for read in &reads {
        let write = bench.finish(read, RequestStatus::Done);
        next.extend(bench.finish(&write[0], RequestStatus::Done));
    }
    assert_eq!(
        issued(&next),
        [(0, Operation::Read, Extent::new(12 * UNIT, UNIT))],
        "one, and a short one"
    );
    bench.finish(&request[0], RequestStatus::Done);
    assert_eq!(bench.volume.next_wake().at(), Time::from_nanos(SECOND));
    let more = bench.wake(SECOND);
    let expected = [13, 17].map(|at| (0, Operation::Read, Extent::new(at * UNIT, 4 * UNIT)));
    assert_eq!(issued(&more), expected);
}

#[test]
fn a_rebuild_that_is_slower_than_its_least_does_not_make_way() {
    let mut bench = RebuildBench::pipelined("raid1", 2, 64 * UNIT);
    let least = Bytes(1 << 40);
    bench.order(LayerOrder::Speed(RebuildSpeed { least, most: None }));
    let request = bench.submit(1, Operation::Read, Extent::new(63 * UNIT, 8));
    bench.fail(1);
    bench.restore(1);
    let reads = bench.finish(&request[0], RequestStatus::Done);
    assert_eq!(
        issued(&reads).len(),
        3,
        "all three, though a request has just been there"
    );
}

#[test]
fn the_speed_of_a_rebuild_is_bounded_while_it_goes_on() {
    let mut bench = RebuildBench::new("raid1", 2, 8 * UNIT);
    bench.fail(1);
    let effects = bench.restore(1);
    let most = Some(Bytes(1 << 20));
    bench.order(LayerOrder::Speed(RebuildSpeed {
        most,
        ..RebuildSpeed::default()
    }));
    let effects = bench.run(effects);
    assert_eq!(
        signals(&effects),
        [rebuilt(1, UNIT, 8 * UNIT), rebuilt(1, 2 * UNIT, 8 * UNIT)]
    );
    assert_eq!(
        bench.volume.next_wake().at(),
        Time::from_nanos(1_000_000_000)
    );
    bench.order(LayerOrder::Speed(RebuildSpeed::default()));
    assert_ne!(
        bench.volume.next_wake().at(),
        Time::from_nanos(1_000_000_000)
    );
    assert!(
        bench
            .refusal(LayerOrder::Speed(RebuildSpeed {
                least: Bytes(1),
                most: Some(Bytes(0))
            }))
            .contains("rate")
    );
}

#[test]
fn a_rebuild_that_was_broken_off_goes_on_where_it_was() {
    let mut bench = RebuildBench::new("raid5", 4, 4 * UNIT);
    bench.fail(2);
    let effects = bench.order(LayerOrder::Restore {
        member: 2,
        done: Sectors(3 * UNIT),
        rate: None,
        accept_data_loss: false,
    });
    assert!(
        issued(&effects)
            .iter()
            .all(|io| io.2 == Extent::new(3 * UNIT, UNIT))
    );
    let effects = bench.run(effects);
    assert_eq!(signals(&effects), [rebuilt(2, 4 * UNIT, 4 * UNIT)]);
}

#[test]
fn a_unit_that_is_spoilt_is_filled_again_with_those_behind_it() {
    let mut bench = RebuildBench::pipelined("raid6", 5, 8 * UNIT);
    bench.fail(0);
    let reads = bench.restore(0);
    let of_member = |effects: &[Effect], member| {
        let all = effects
            .iter()
            .filter(|effect| matches!(effect, Effect::Issue { port, .. } if port.0 == member));
        all.copied().collect::<Vec<_>>()
    };
    assert!(!of_member(&reads, 1).is_empty());
    bench.fail(1);
    let effects = bench.run(reads);
    let progress = signals(&effects);
    let expected: Vec<Signal> = (1..=8)
        .map(|unit| rebuilt(0, unit * UNIT, 8 * UNIT))
        .collect();
    assert_eq!(progress, expected, "each once");
    let units_of_member_0 = issued(&effects)
        .iter()
        .filter(|io| io.0 == 0 && io.1 == Operation::Write)
        .count();
    assert_eq!(units_of_member_0, 8 + 3, "three of them twice");
}
