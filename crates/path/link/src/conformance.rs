//! The promises of every link, tested with random offers.

use crate::link::Link;
use crate::transfer::{DeliveredTransfer, LinkTransfer, Payload, Station};
use crate::{LinkStatistics, REGISTRY};
use fullstroke_contract::registry::Keys;
use fullstroke_units::{Bytes, Duration, Time};
use proptest::prelude::*;
use serde_json::json;

const MEMBERS: usize = 9;

/// A transfer, and the time since the previous offer.
type Ask = (u64, u32, u32, u64);

fn build(kind: usize, keys: &Keys) -> Box<dyn Link> {
    (REGISTRY[kind].build)(keys, MEMBERS).unwrap()
}

/// Port, other port and bytes of the ask with number `token`. Zero bytes stand for a command, a
/// readiness or a status in turn.
fn transfer(token: u64, (_, from, step, bytes): Ask) -> LinkTransfer {
    let ports = MEMBERS as u32 + 1;
    let payload = match (bytes, token % 3) {
        (0, 0) => Payload::Command,
        (0, 1) => Payload::TransferReady,
        (0, _) => Payload::Status,
        (bytes, _) => Payload::Data(Bytes(bytes)),
    };
    LinkTransfer {
        token,
        from: Station(from),
        to: Station((from + step) % ports),
        payload,
    }
}

fn asks() -> impl Strategy<Value = Vec<Ask>> {
    let ports = MEMBERS as u32 + 1;
    let bytes = prop_oneof![Just(0), 1u64..20_000];
    prop::collection::vec((0u64..40_000, 0..ports, 1..ports, bytes), 1..120)
}

/// Offers all transfers, and advances the link `late` after each due wake-up.
fn run(
    link: &mut dyn Link,
    transfers: &[(Time, LinkTransfer)],
    late: u64,
) -> Vec<DeliveredTransfer> {
    let late = Duration::from_nanos(late);
    let mut delivered: Vec<DeliveredTransfer> = Vec::new();
    let mut advance = |link: &mut dyn Link| {
        let now = link.next_wake().saturating_add(late);
        link.advance(now, &mut delivered);
        assert!(
            delivered.last().is_none_or(|last| last.finished <= now),
            "delivered before it arrived"
        );
    };
    for &(at, transfer) in transfers {
        while link.next_wake().saturating_add(late) < at {
            advance(link);
        }
        link.offer(at, transfer);
    }
    while link.next_wake() != Time::NEVER {
        advance(link);
    }
    delivered
}

fn timed(asks: &[Ask]) -> Vec<(Time, LinkTransfer)> {
    let mut now = Time::ZERO;
    let at = |(token, &ask): (usize, &Ask)| {
        now += Duration::from_nanos(ask.0);
        (now, transfer(token as u64, ask))
    };
    asks.iter().enumerate().map(at).collect()
}

fn is_shared(kind: usize) -> bool {
    build(kind, &Keys::new()).statistics().lanes == 1
}

proptest! {
    #[test]
    fn every_transfer_is_delivered_once_and_in_order(kind in 0..REGISTRY.len(), asks in asks()) {
        let transfers = timed(&asks);
        let delivered = run(&mut *build(kind, &Keys::new()), &transfers, 0);
        prop_assert!(delivered.windows(2).all(|pair| pair[0].finished <= pair[1].finished));
        let mut tokens: Vec<u64> = delivered.iter().map(|delivered| delivered.token).collect();
        // A port's transfers over one lane keep their order.
        for (from, to) in (0..=MEMBERS as u32).flat_map(|from| (0..=MEMBERS as u32).map(move |to| (from, to))) {
            let own = tokens.iter().filter(|&&token| {
                let transfer = transfers[token as usize].1;
                transfer.from.0 == from && (is_shared(kind) || transfer.to.0 == to)
            });
            prop_assert!(own.is_sorted());
        }
        tokens.sort_unstable();
        prop_assert_eq!(tokens, (0..asks.len() as u64).collect::<Vec<_>>());
    }

    #[test]
    fn none_arrives_before_what_it_takes_alone(kind in 0..REGISTRY.len(), asks in asks()) {
        let transfers = timed(&asks);
        for delivered in run(&mut *build(kind, &Keys::new()), &transfers, 0) {
            let (offered, transfer) = transfers[delivered.token as usize];
            let alone = run(&mut *build(kind, &Keys::new()), &[(Time::ZERO, transfer)], 0)[0];
            prop_assert_eq!(delivered.offered, offered);
            prop_assert!(delivered.began >= offered);
            prop_assert_eq!(delivered.finished.since(delivered.began), alone.finished.since(alone.began));
        }
    }

    #[test]
    fn a_shared_medium_carries_one_transfer_at_a_time(kind in 0..REGISTRY.len(), asks in asks()) {
        if is_shared(kind) {
            let delivered = run(&mut *build(kind, &Keys::new()), &timed(&asks), 0);
            prop_assert!(delivered.windows(2).all(|pair| pair[0].finished <= pair[1].began));
        }
    }

    #[test]
    fn late_advances_change_nothing(kind in 0..REGISTRY.len(), asks in asks(), late in 1u64..2_000_000) {
        let transfers = timed(&asks);
        let (mut prompt, mut slow) = (build(kind, &Keys::new()), build(kind, &Keys::new()));
        prop_assert_eq!(run(&mut *prompt, &transfers, 0), run(&mut *slow, &transfers, late));
        let counts = |link: &dyn Link| LinkStatistics { busy: Duration::ZERO, ..link.statistics() };
        prop_assert_eq!(counts(&*prompt), counts(&*slow));
    }

    #[test]
    fn what_is_counted_adds_up(kind in 0..REGISTRY.len(), asks in asks()) {
        let transfers = timed(&asks);
        let mut link = build(kind, &Keys::new());
        let mut delivered = Vec::new();
        for &(at, transfer) in &transfers {
            link.offer(at, transfer);
            link.advance(at, &mut delivered);
            let LinkStatistics { busy, lanes, .. } = link.statistics();
            prop_assert!(busy <= at.since(Time::ZERO) * u64::from(lanes));
        }
        while link.next_wake() != Time::NEVER {
            let now = link.next_wake();
            link.advance(now, &mut delivered);
            let LinkStatistics { busy, lanes, .. } = link.statistics();
            prop_assert!(busy <= now.since(Time::ZERO) * u64::from(lanes));
        }
        let counted = link.statistics();
        let waited = delivered.iter().map(|delivered| delivered.began.since(delivered.offered));
        prop_assert_eq!(counted.waiting, waited.clone().sum());
        prop_assert_eq!(Some(counted.waiting_max), waited.max());
        let sent: Duration = delivered.iter().map(|delivered| delivered.finished.since(delivered.began)).sum();
        prop_assert!(counted.busy >= sent);
        prop_assert_eq!(counted.transfers(), asks.len() as u64);
        let bytes = |select: &dyn Fn(&LinkTransfer) -> bool| -> u64 {
            transfers.iter().filter(|(_, one)| select(one)).map(|(_, one)| one.payload.data().0).sum()
        };
        prop_assert_eq!(counted.payload().0, bytes(&|_| true));
        prop_assert_eq!(counted.to_members.payload.0, bytes(&|one| one.from == Station::HOST));
        prop_assert_eq!(counted.to_host.payload.0, bytes(&|one| one.to == Station::HOST));
    }

    /// A port may have used its turn in this window: then each other port may win once in this
    /// window and once in the next.
    #[test]
    fn fairness_bounds_how_often_others_win_while_a_port_waits(asks in asks()) {
        let transfers = timed(&asks);
        let delivered = run(&mut *build(0, &Keys::new()), &transfers, 0);
        let sender = |delivered: &DeliveredTransfer| transfers[delivered.token as usize].1.from.0 as usize;
        let mut last_turn = [Time::ZERO; MEMBERS + 1];
        for (index, turn) in delivered.iter().enumerate() {
            let waits_since = turn.offered.max(last_turn[sender(turn)]);
            let mut wins = [0; MEMBERS + 1];
            delivered[..index].iter().filter(|other| other.began > waits_since).for_each(|other| wins[sender(other)] += 1);
            prop_assert!(wins.iter().all(|&wins| wins <= 2), "{wins:?}");
            last_turn[sender(turn)] = turn.began;
        }
    }
}

/// Returns the winners if all ports always have more to send.
fn winners(kind: &str, keys: serde_json::Value) -> Vec<u32> {
    let entry = REGISTRY.iter().find(|entry| entry.name == kind).unwrap();
    let mut link = (entry.build)(keys.as_object().unwrap(), 3).unwrap();
    let offers: Vec<(Time, LinkTransfer)> = (0..60)
        .map(|token| {
            let from = token as u32 % 4;
            let to = Station(if from == 0 { 1 } else { 0 });
            (
                Time::ZERO,
                LinkTransfer {
                    token,
                    from: Station(from),
                    to,
                    payload: Payload::Data(Bytes(512)),
                },
            )
        })
        .collect();
    run(&mut *link, &offers, 0)
        .iter()
        .map(|delivered| delivered.token as u32 % 4)
        .collect()
}

#[test]
fn where_all_wait_fairness_gives_everyone_a_turn_and_priority_does_not() {
    let fair = winners("fc-al", json!({}));
    assert!(
        fair.chunks(4).all(|window| window == [0, 1, 2, 3]),
        "{fair:?}"
    );
    let unfair = winners("fc-al", json!({ "fairness": false }));
    assert!(unfair.is_sorted(), "{unfair:?}");
    // The host's id is 7, the members' ids are 0, 1, 2; a higher id goes first.
    let bus = winners("scsi", json!({}));
    assert!(
        bus[15..].is_sorted_by(|one, other| one >= other) && bus[..15] == [0; 15],
        "{bus:?}"
    );
}

#[test]
fn bad_keys_name_the_key_and_what_was_expected() {
    for (kind, keys, members, key, part) in [
        (
            "fc-al",
            json!({ "rate_gbaud": 0.0 }),
            4,
            "rate_gbaud",
            "expected 10^9 bits a second",
        ),
        (
            "fc-al",
            json!({ "propagation_ns": -1.0 }),
            4,
            "propagation_ns",
            "expected nanoseconds",
        ),
        (
            "fc-al",
            json!({ "frame_payload": "2113B" }),
            4,
            "frame_payload",
            "multiple of 4, up to 2112",
        ),
        (
            "fc-al",
            json!({ "fairnes": false }),
            4,
            "fairnes",
            "did you mean `fairness`",
        ),
        ("fc-al", json!({}), 126, "kind", "125 beside the host"),
        ("scsi", json!({}), 16, "kind", "15 beside the host"),
        (
            "scsi",
            json!({ "rate_mb_per_s": 0 }),
            4,
            "rate_mb_per_s",
            "expected 10^6 bytes a second",
        ),
        (
            "sas",
            json!({ "frame_payload": 2048 }),
            4,
            "frame_payload",
            "up to 1024",
        ),
        ("sas", json!({ "latency": 3 }), 4, "latency", "expected"),
    ] {
        let entry = REGISTRY.iter().find(|entry| entry.name == kind).unwrap();
        let error = (entry.build)(keys.as_object().unwrap(), members)
            .err()
            .unwrap();
        assert_eq!(error.key, key);
        assert!(error.message.contains(part), "{error}");
    }
}

/// Arbitration time and duration of one transfer alone, among the host and eight members.
fn alone(kind: &str, from: u32, to: u32, payload: Payload) -> (u64, u64) {
    let entry = REGISTRY.iter().find(|entry| entry.name == kind).unwrap();
    let mut link = (entry.build)(&Keys::new(), 8).unwrap();
    let transfer = LinkTransfer {
        token: 0,
        from: Station(from),
        to: Station(to),
        payload,
    };
    let mut delivered = Vec::new();
    link.offer(Time::ZERO, transfer);
    let due = link.next_wake().as_nanos();
    link.advance(Time::from_nanos(due - 1), &mut delivered);
    assert!(delivered.is_empty(), "{kind} delivers early");
    link.advance(Time::from_nanos(due), &mut delivered);
    (
        delivered[0].began.as_nanos(),
        delivered[0].finished.since(delivered[0].began).as_nanos(),
    )
}

#[test]
fn what_a_transfer_takes_is_the_sum_of_its_parts() {
    let data = Payload::Data(Bytes(4096));
    // Each of 9 ports adds six words and 3.5 ns, in femtoseconds. Opening takes a turn around the
    // loop and 2 words; 1024 words of data have 2 x 15 words around them; 8 hops from member 0 to
    // the host, 1 back; rounded up.
    let (word, hop) = (37_647_059, 6 * 37_647_059 + 3_500_000);
    let of_loop = |words: u64, hops: u64| {
        (
            2065,
            ((9 + hops) * hop + (2 + words) * word).div_ceil(1_000_000),
        )
    };
    assert_eq!(alone("fc-al", 1, 0, data), of_loop(1054, 8));
    assert_eq!(alone("fc-al", 0, 1, data), of_loop(1054, 1));
    // A command is 32 bytes in one frame.
    assert_eq!(alone("fc-al", 0, 1, Payload::Command), of_loop(23, 1));
    // Selection, messages of 3 bytes of 200 ns, then 10 more, or 25 ns per byte.
    assert_eq!(
        alone("scsi", 0, 1, Payload::Command),
        (4800, 490 + 13 * 200)
    );
    assert_eq!(alone("scsi", 1, 0, data), (4800, 490 + 3 * 200 + 4096 * 25));
    assert_eq!(alone("scsi", 0, 1, data), (0, 4096 * 25));
    // 11 words of 13.3333 ns to open, three times 100 ns, four frames of 9 words, and the data.
    assert_eq!(
        alone("sas", 1, 0, data),
        (0, 147 + 300 + (1060.0 * 40.0 / 3.0_f64).ceil() as u64)
    );
    assert_eq!(
        alone("sas", 1, 2, data),
        (0, 147 + 900 + (1060.0 * 40.0 / 3.0_f64).ceil() as u64)
    );
}

#[test]
fn the_status_of_an_exchange_follows_its_data_in_one_tenancy() {
    for entry in REGISTRY {
        let exchange = |token| {
            let send = |payload| {
                (
                    Time::ZERO,
                    LinkTransfer {
                        token,
                        from: Station(1),
                        to: Station(0),
                        payload,
                    },
                )
            };
            [send(Payload::Data(Bytes(512))), send(Payload::Status)]
        };
        let mut link = (entry.build)(&Keys::new(), 8).unwrap();
        // The second exchange's transfers wait in the queue at the win.
        let delivered = run(&mut *link, &[exchange(0), exchange(1)].concat(), 0);
        assert_eq!(
            delivered.iter().map(|one| one.token).collect::<Vec<_>>(),
            [0, 0, 1, 1]
        );
        assert!(
            delivered
                .chunks(2)
                .all(|exchange| exchange[0].finished == exchange[1].began),
            "{delivered:?}"
        );
        assert_eq!(link.statistics().tenancies, 2, "{}", entry.name);
    }
}

#[test]
fn members_reach_each_other_past_the_host_where_each_has_lanes() {
    let mut link = build(2, &Keys::new());
    let send = |token, from, to| {
        (
            Time::ZERO,
            LinkTransfer {
                token,
                from: Station(from),
                to: Station(to),
                payload: Payload::Data(Bytes(4096)),
            },
        )
    };
    // Only transfers on the lanes of members 0 and 1 wait for the first.
    let delivered = run(
        &mut *link,
        &[send(0, 1, 2), send(1, 0, 1), send(2, 2, 0), send(3, 3, 0)],
        0,
    );
    let waited: Vec<bool> = (0..4)
        .map(|token| {
            delivered
                .iter()
                .find(|one| one.token == token)
                .is_some_and(|one| one.began > one.offered)
        })
        .collect();
    assert_eq!(waited, [false, true, true, false]);
    assert_eq!(link.statistics().between_members.payload, Bytes(4096));
}

#[test]
fn the_next_begins_when_what_was_before_is_closed_and_busy_time_knows_it() {
    // Two statuses of member 0 in a row, in nanoseconds: arbitration, sending, closing. The holder
    // keeps the loop while no other port asks.
    let loop_closing = (37_647_059_u64 + 6 * 37_647_059 + 3_500_000).div_ceil(1_000_000);
    let sas_closing = 2 * 100 + 4 * 40 / 3 + 1;
    for (kind, again, closing) in [
        ("fc-al", 0, loop_closing),
        ("scsi", 4800, 200),
        ("sas", 0, sas_closing),
    ] {
        let entry = REGISTRY.iter().find(|entry| entry.name == kind).unwrap();
        let mut link = (entry.build)(&Keys::new(), 8).unwrap();
        let status = |token| {
            (
                Time::ZERO,
                LinkTransfer {
                    token,
                    from: Station(1),
                    to: Station(0),
                    payload: Payload::Status,
                },
            )
        };
        let delivered = run(&mut *link, &[status(0), status(1)], 0);
        let gap = Duration::from_nanos(closing + again);
        assert_eq!(delivered[1].began, delivered[0].finished + gap, "{kind}");
        // The second transfer's closing is still in progress.
        assert_eq!(
            link.statistics().busy,
            delivered[1].finished.since(Time::ZERO),
            "{kind}"
        );
    }
}
