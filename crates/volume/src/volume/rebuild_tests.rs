//! Failures, restores and rebuilds of a volume, answer by answer.

use super::Volume;
use crate::bytes::build;
use fullstroke_contract::{
    Below, Completion, Effect, Extent, Hints, Layer, MemberState, Operation, Order, Out, PriorityClass,
    Refusal, Request, RequestId, Signal, Status,
};
use fullstroke_units::{Bytes, Lbn, Sectors, Time};
use serde_json::json;

/// A volume and its members' answers, by hand.
struct Bench {
    volume: Volume,
    now: Time,
}

impl Bench {
    fn new(name: &str, members: usize, sectors: u64) -> Bench {
        let layout = build(name, &json!({}), &vec![sectors; members]).unwrap();
        Bench { volume: Volume::new(layout), now: Time::ZERO }
    }

    fn call(&mut self, event: impl FnOnce(&mut Volume, Time, &mut Out)) -> Vec<Effect> {
        let mut out = Out::new();
        event(&mut self.volume, self.now, &mut out);
        out.drain().collect()
    }

    fn order(&mut self, order: Order) -> Vec<Effect> {
        self.call(|volume, now, out| volume.ordered(now, order, Below::NOTHING, out).unwrap())
    }

    fn refusal(&mut self, order: Order) -> String {
        let mut out = Out::new();
        let Refusal(message) = self.volume.ordered(self.now, order, Below::NOTHING, &mut out).unwrap_err();
        assert!(out.effects().is_empty());
        message
    }

    fn fail(&mut self, member: usize) -> Vec<Effect> {
        self.order(Order::Fail { member })
    }

    fn restore(&mut self, member: usize) -> Vec<Effect> {
        self.order(Order::Restore { member, rate: None })
    }

    fn hear(&mut self, member: usize, signal: Signal) -> Vec<Effect> {
        self.call(|volume, now, out| volume.signalled(now, member, signal, Below::NOTHING, out))
    }

    fn submit(&mut self, number: u64, operation: Operation, extent: Extent) -> Vec<Effect> {
        let request =
            Request { id: RequestId(number), origin: number, operation, extent, ..Request::default() };
        self.call(|volume, now, out| volume.submit(now, request, Below::NOTHING, out))
    }

    fn finish(&mut self, effect: &Effect, status: Status) -> Vec<Effect> {
        let Effect::Issue { member, request } = *effect else { panic!("{effect:?} was not issued") };
        let completion = Completion {
            id: request.id,
            submitted: self.now,
            finished: self.now,
            status,
            ..Completion::default()
        };
        self.call(|volume, now, out| {
            volume.completed(now, member as usize, completion, Below::NOTHING, out);
        })
    }

    /// Wakes the volume at `nanoseconds`.
    fn wake(&mut self, nanoseconds: u64) -> Vec<Effect> {
        self.now = Time::from_nanos(nanoseconds);
        self.call(|volume, now, out| volume.wake(now, Below::NOTHING, out))
    }

    /// Answers everything, and what follows from it, until only time can bring
    /// more. Answers all of it, in order.
    fn run(&mut self, effects: Vec<Effect>) -> Vec<Effect> {
        let mut all = effects;
        let mut next = 0;
        while next < all.len() {
            if matches!(all[next], Effect::Issue { .. }) {
                let more = self.finish(&all[next].clone(), Status::Done);
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

fn signals(effects: &[Effect]) -> Vec<Signal> {
    let all = effects.iter().filter_map(|effect| match effect {
        Effect::Signal(signal) => Some(*signal),
        _ => None,
    });
    all.collect()
}

fn issued(effects: &[Effect]) -> Vec<(u32, Operation, Extent)> {
    let all = effects.iter().filter_map(|effect| match effect {
        Effect::Issue { member, request } => Some((*member, request.operation, request.extent)),
        _ => None,
    });
    all.collect()
}

fn rebuilt(member: u32, done: u64, whole: bool) -> Signal {
    Signal::Rebuilt { member, done: Sectors(done), whole }
}

const UNIT: u64 = 2048;

#[test]
fn a_mirror_is_copied_unit_by_unit_and_says_how_far() {
    let mut bench = Bench::new("raid1", 2, 2 * UNIT + 100);
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
    let expected = [rebuilt(1, UNIT, false), rebuilt(1, 2 * UNIT, false), rebuilt(1, end, true)];
    assert_eq!(signals(&effects), expected);
    assert_eq!(bench.state(1), MemberState::Alive);
    assert_eq!(bench.volume.next_wake(), Time::NEVER);
}

#[test]
fn a_row_of_parity_is_read_from_all_others_and_written_to_the_new_member() {
    let mut bench = Bench::new("raid5", 4, 3 * UNIT);
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
    let mut bench = Bench::new("raid1", 2, 4 * UNIT);
    bench.fail(0);
    let rate = Some(Bytes(1 << 20));
    let effects = bench.order(Order::Restore { member: 0, rate });
    let mut effects = bench.run(effects);
    for unit in 1..4 {
        assert_eq!(signals(&effects), [rebuilt(0, unit * UNIT, false)]);
        assert_eq!(bench.volume.next_wake(), Time::from_nanos(unit * SECOND));
        assert_eq!(bench.wake(unit * SECOND - 1), [], "to be woken early is harmless");
        // To be woken late does not move the units behind.
        effects = bench.wake(unit * SECOND + unit);
        effects = bench.run(effects);
    }
    assert_eq!(signals(&effects), [rebuilt(0, 4 * UNIT, true)]);
}

#[test]
fn a_unit_that_takes_longer_than_the_rate_allows_is_not_caught_up_with() {
    let mut bench = Bench::new("raid1", 2, 4 * UNIT);
    bench.fail(0);
    let rate = Some(Bytes(1 << 20));
    let effects = bench.order(Order::Restore { member: 0, rate });
    bench.now = Time::from_nanos(2_500_000_000);
    let effects = bench.run(effects);
    assert_eq!(issued(&effects).len(), 4, "the next begins at once");
    assert_eq!(bench.volume.next_wake(), Time::from_nanos(3_500_000_000), "and those behind keep the rate");
}

#[test]
fn what_is_due_begins_before_what_is_submitted_later() {
    let mut bench = Bench::new("raid1", 2, 4 * UNIT);
    bench.fail(0);
    let effects = bench.order(Order::Restore { member: 0, rate: Some(Bytes(1 << 20)) });
    bench.run(effects);
    bench.now = Time::from_nanos(1_000_000_000);
    let effects = bench.submit(5, Operation::Write, Extent::new(UNIT, 8));
    assert_eq!(
        issued(&effects),
        [(1, Operation::Read, Extent::new(UNIT, UNIT))],
        "the write waits for its rows"
    );
    let effects = bench.run(effects);
    let writes: Vec<_> = issued(&effects).into_iter().filter(|io| io.2.sectors == Sectors(8)).collect();
    assert_eq!(writes.len(), 2, "and then reaches both");
}

#[test]
fn rebuilds_go_in_the_background() {
    let mut bench = Bench::new("raid5", 4, 2 * UNIT);
    bench.fail(3);
    let effects = bench.restore(3);
    assert_eq!(bench.volume.gauge().queue_length, 0, "nothing from above");
    assert_eq!(bench.volume.gauge().idle_since, None, "but something to do");
    bench.now = Time::from_nanos(70);
    for effect in bench.run(effects) {
        if let Effect::Issue { request, .. } = effect {
            assert_eq!(request.origin, Request::BACKGROUND);
            let Hints { class, synchronous, .. } = request.hints;
            assert_eq!((class, synchronous), (PriorityClass::Idle, false));
        }
    }
    assert_eq!(bench.volume.gauge().idle_since, Some(bench.now));
}

#[test]
fn reads_take_a_new_member_where_it_is_filled_and_the_others_where_it_is_not() {
    let mut bench = Bench::new("raid5", 3, 2 * UNIT);
    bench.fail(0);
    let effects = bench.order(Order::Restore { member: 0, rate: Some(Bytes(1)) });
    bench.run(effects);
    assert_eq!(bench.state(0), MemberState::Rebuilding { done: Sectors(UNIT) });
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
    let mut bench = Bench::new("raid1", 2, 4 * UNIT);
    bench.fail(0);
    let reads = bench.restore(0);
    assert_eq!(signals(&bench.fail(1)), [Signal::Failed]);
    assert!(!bench.volume.gauge().alive);
    let effects = bench.run(reads);
    assert_eq!(issued(&effects).len(), 2, "what was under way ends, and nothing begins");
    assert_eq!(signals(&effects), [rebuilt(0, UNIT, false)]);
    assert_eq!(bench.volume.next_wake(), Time::NEVER);
    let kept = bench.submit(1, Operation::Read, Extent::new(UNIT - 8, 8));
    assert_eq!(issued(&kept).len(), 1, "what is left can be read");
    let lost = bench.submit(2, Operation::Read, Extent::new(UNIT, 8));
    assert!(matches!(lost[..], [Effect::Complete(Completion { status: Status::Lost, .. })]));
}

#[test]
fn a_volume_whose_lost_members_are_replaced_answers_again_and_says_so() {
    let mut bench = Bench::new("raid1", 2, 4 * UNIT);
    bench.fail(0);
    assert_eq!(signals(&bench.fail(1)), [Signal::Failed]);
    let effects = bench.restore(1);
    assert_eq!(issued(&effects), [], "there is nothing to fill it from");
    assert_eq!(signals(&effects), [rebuilt(1, 4 * UNIT, true), Signal::Replaced]);
    assert!(bench.volume.gauge().alive);
    let effects = bench.restore(0);
    let effects = bench.run(effects);
    assert_eq!(issued(&effects).len(), 8, "the other is copied from it");
    assert_eq!(bench.state(0), MemberState::Alive);
}

#[test]
fn without_redundancy_a_failure_loses_data_and_a_new_member_is_alive_at_once() {
    for name in ["raid0", "jbod"] {
        let mut bench = Bench::new(name, 3, 4 * UNIT);
        assert_eq!(signals(&bench.fail(1)), [Signal::Failed]);
        let whole = bench.submit(0, Operation::Read, Extent::new(0, 12 * UNIT));
        assert!(matches!(whole[..], [Effect::Complete(Completion { status: Status::Lost, .. })]));
        let part = bench.submit(1, Operation::Write, Extent::new(0, 128));
        assert_eq!(issued(&part), [(0, Operation::Write, Extent::new(0, 128))], "the others serve on");
        bench.run(part);
        assert_eq!(signals(&bench.restore(1)), [rebuilt(1, 4 * UNIT, true), Signal::Replaced]);
        assert_eq!(bench.state(1), MemberState::Alive);
    }
}

#[test]
fn a_member_that_says_it_failed_has_failed_and_is_rebuilt_when_it_says_it_was_replaced() {
    let mut bench = Bench::new("raid5", 3, 4 * UNIT);
    assert_eq!(bench.hear(1, Signal::Failed), []);
    assert_eq!(bench.state(1), MemberState::Failed);
    assert_eq!(bench.hear(1, Signal::Failed), [], "once is enough");
    assert_eq!(bench.hear(2, rebuilt(7, 8, false)), [], "of its own members");
    assert_eq!(bench.hear(2, Signal::SpunUp), [Effect::Signal(Signal::SpunUp)], "not for the volume");
    let effects = bench.hear(1, Signal::Replaced);
    let effects = bench.run(effects);
    assert_eq!(signals(&effects).last(), Some(&rebuilt(1, 4 * UNIT, true)));
    assert_eq!(bench.state(1), MemberState::Alive);
    bench.fail(0);
    assert_eq!(signals(&bench.hear(2, Signal::Failed)), [Signal::Failed], "two are too many");
}

#[test]
fn a_second_failure_of_a_raid6_does_not_stop_the_rebuild_of_the_first() {
    let mut bench = Bench::new("raid6", 5, 4 * UNIT);
    bench.fail(0);
    let reads = bench.restore(0);
    assert_eq!(bench.fail(1), []);
    let effects = bench.run(reads);
    assert_eq!(signals(&effects).last(), Some(&rebuilt(0, 4 * UNIT, true)));
    let behind = issued(&effects).into_iter().filter(|io| io.2.start >= Lbn(UNIT));
    assert!(behind.clone().all(|io| io.0 != 1), "and does without it");
    assert_eq!(bench.state(1), MemberState::Failed);
}

#[test]
fn members_are_rebuilt_one_after_the_other_as_they_were_restored() {
    let mut bench = Bench::new("raid6", 5, 2 * UNIT);
    bench.fail(3);
    bench.fail(1);
    let effects = bench.restore(3);
    assert!(issued(&bench.restore(1)).is_empty(), "one unit at a time");
    let effects = bench.run(effects);
    let expected = [
        rebuilt(3, UNIT, false),
        rebuilt(3, 2 * UNIT, true),
        rebuilt(1, UNIT, false),
        rebuilt(1, 2 * UNIT, true),
    ];
    assert_eq!(signals(&effects), expected);
}

#[test]
fn a_rebuild_waits_for_writes_that_do_not_know_of_it() {
    let mut bench = Bench::new("raid1", 2, 4 * UNIT);
    bench.fail(1);
    let write = bench.submit(1, Operation::Write, Extent::new(0, 8));
    assert_eq!(bench.restore(1), []);
    assert_eq!(bench.volume.next_wake(), Time::NEVER);
    bench.now = Time::from_nanos(9);
    let effects = bench.finish(&write[0], Status::Done);
    assert!(matches!(effects[0], Effect::Complete(_)));
    assert_eq!(issued(&effects), [(0, Operation::Read, Extent::new(0, UNIT))]);
}

#[test]
fn a_member_that_fails_again_is_filled_from_the_beginning() {
    let mut bench = Bench::new("raid1", 2, 4 * UNIT);
    bench.fail(1);
    let reads = bench.restore(1);
    bench.fail(1);
    assert_eq!(bench.restore(1), [], "the unit under way is still in the way");
    let writes = bench.finish(&reads[0], Status::Done);
    let effects = bench.finish(&writes[0], Status::Done);
    assert_eq!(signals(&effects), [], "and fills nothing");
    assert_eq!(issued(&effects), [(0, Operation::Read, Extent::new(0, UNIT))]);
}

#[test]
fn a_unit_that_fails_halts_the_rebuild_until_somebody_sees_to_it() {
    let mut bench = Bench::new("raid5", 3, 4 * UNIT);
    bench.fail(1);
    let reads = bench.restore(1);
    bench.finish(&reads[0], Status::Lost);
    assert_eq!(bench.finish(&reads[1], Status::Done), [], "nothing is written");
    assert_eq!(bench.volume.next_wake(), Time::NEVER);
    assert_eq!(bench.state(1), MemberState::Rebuilding { done: Sectors::ZERO });
    bench.fail(1);
    assert!(!issued(&bench.restore(1)).is_empty());
}

#[test]
fn orders_that_make_no_sense_are_refused() {
    let mut bench = Bench::new("raid5", 4, 4 * UNIT);
    let restore = |member, rate| Order::Restore { member, rate };
    assert!(bench.refusal(Order::Fail { member: 4 }).contains("no member 4"));
    assert!(bench.refusal(restore(9, None)).contains("counted from 0 to 3"));
    assert!(bench.refusal(restore(1, None)).contains("is alive"));
    bench.fail(1);
    assert!(bench.refusal(Order::Fail { member: 1 }).contains("failed already"));
    assert!(bench.refusal(restore(1, Some(Bytes(0)))).contains("positive rate"));
    bench.restore(1);
    assert!(bench.refusal(restore(1, None)).contains("being rebuilt"));
}
