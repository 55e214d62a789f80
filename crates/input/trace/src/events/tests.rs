use super::*;
use fullstroke_units::Seed;
use proptest::prelude::*;
use std::collections::VecDeque;

fn event(action: Action, time: u64, start: u64, sectors: u64) -> KernelEvent {
    let operation = Operation::Write;
    KernelEvent {
        action,
        time,
        device: 1,
        process: 7,
        operation,
        start,
        sectors,
        place: time,
    }
}

/// Returns the requests, and true for each doubtful one.
fn matched(events: &[KernelEvent]) -> (Vec<TraceRow>, Vec<bool>) {
    let (mut matcher, mut rows) = (Matcher::default(), Vec::new());
    for &event in events {
        matcher.push(event, &mut rows);
    }
    matcher.finish(&mut rows);
    let doubtful = rows.iter().map(|row| row.doubtful).collect();
    (rows, doubtful)
}

fn rows_of(events: &[KernelEvent]) -> Vec<(u64, u64, Option<u64>, Option<u64>)> {
    let (mut matcher, mut rows) = (Matcher::default(), Vec::new());
    for &event in events {
        matcher.push(event, &mut rows);
    }
    matcher.finish(&mut rows);
    rows.iter()
        .map(|row| (row.arrival, row.start, row.issued, row.completed))
        .collect()
}

use Action::{Complete, Insert, Issue, Queue, Requeue};

#[test]
fn merged_requests_share_the_issue_and_completion_of_the_one_they_joined() {
    let rows = rows_of(&[
        event(Queue, 1, 100, 8),
        event(Queue, 2, 108, 8),
        event(Queue, 3, 92, 8),
        event(Issue, 10, 92, 24),
        event(Complete, 20, 92, 24),
    ]);
    let expected = [
        (1, 100, Some(10), Some(20)),
        (2, 108, Some(10), Some(20)),
        (3, 92, Some(10), Some(20)),
    ];
    assert_eq!(rows, expected);
}

#[test]
fn a_split_request_completes_with_its_last_part() {
    let rows = rows_of(&[
        event(Queue, 1, 0, 16),
        event(Issue, 5, 0, 8),
        event(Issue, 6, 8, 8),
        event(Complete, 9, 8, 8),
        event(Complete, 12, 0, 8),
    ]);
    assert_eq!(rows, [(1, 0, Some(5), Some(12))]);
}

#[test]
fn no_request_is_issued_after_its_completion() {
    let rows = rows_of(&[
        event(Queue, 1, 0, 8),
        event(Queue, 2, 0, 8),
        event(Issue, 10, 0, 8),
        event(Complete, 15, 0, 8),
        event(Issue, 20, 0, 8),
        event(Complete, 25, 0, 8),
    ]);
    assert_eq!(rows.len(), 2);
    for (_, _, issued, completed) in rows {
        assert!(completed.is_some() && issued.is_none_or(|issued| Some(issued) <= completed));
    }
}

#[test]
fn two_requests_for_the_same_sectors_complete_one_after_the_other() {
    let rows = rows_of(&[
        event(Queue, 1, 0, 8),
        event(Queue, 2, 0, 8),
        event(Issue, 3, 0, 8),
        event(Issue, 4, 0, 8),
        event(Complete, 5, 0, 8),
        event(Complete, 6, 0, 8),
    ]);
    assert_eq!(rows, [(1, 0, Some(3), Some(5)), (2, 0, Some(4), Some(6))]);
}

#[test]
fn a_requeued_request_is_one_request_served_at_its_second_issue() {
    let rows = rows_of(&[
        event(Insert, 1, 0, 8),
        event(Issue, 2, 0, 8),
        event(Requeue, 3, 0, 8),
        event(Insert, 4, 0, 8),
        event(Issue, 5, 0, 8),
        event(Complete, 6, 0, 8),
    ]);
    assert_eq!(rows, [(1, 0, Some(5), Some(6))]);
}

#[test]
fn without_queue_events_the_issue_is_the_arrival() {
    let rows = rows_of(&[event(Issue, 2, 0, 8), event(Complete, 6, 0, 8)]);
    assert_eq!(rows, [(2, 0, Some(2), Some(6))]);
}

#[test]
fn requests_that_never_complete_are_given_without_a_completion() {
    let events: Vec<KernelEvent> = (0..WAITING_MAX as u64 + 10)
        .map(|number| event(Queue, number, number * 8, 8))
        .collect();
    let rows = rows_of(&events);
    assert_eq!(rows.len(), events.len());
    assert!(rows.iter().all(|row| row.3.is_none()));
}

#[test]
fn a_flush_is_matched_by_its_device_alone() {
    let flush = |action, time| KernelEvent {
        operation: Operation::Flush,
        ..event(action, time, 0, 0)
    };
    let rows = rows_of(&[flush(Queue, 1), flush(Issue, 2), flush(Complete, 3)]);
    assert_eq!(rows, [(1, 0, Some(2), Some(3))]);
}

#[test]
fn a_queue_event_for_the_sectors_of_a_requeued_request_is_a_new_request() {
    let rows = rows_of(&[
        event(Queue, 1, 0, 8),
        event(Issue, 2, 0, 8),
        event(Requeue, 3, 0, 8),
        event(Queue, 4, 0, 8),
        event(Issue, 5, 0, 8),
        event(Complete, 6, 0, 8),
        event(Issue, 7, 0, 8),
        event(Complete, 8, 0, 8),
    ]);
    assert_eq!(rows, [(1, 0, Some(5), Some(6)), (4, 0, Some(7), Some(8))]);
    // Inserts are the arrivals here. Only the first repeated insert is the second try.
    let rows = rows_of(&[
        event(Insert, 1, 0, 8),
        event(Issue, 2, 0, 8),
        event(Requeue, 3, 0, 8),
        event(Insert, 4, 0, 8),
        event(Insert, 5, 0, 8),
        event(Issue, 6, 0, 8),
        event(Issue, 7, 0, 8),
        event(Complete, 8, 0, 8),
        event(Complete, 9, 0, 8),
    ]);
    assert_eq!(rows, [(1, 0, Some(6), Some(8)), (5, 0, Some(7), Some(9))]);
}

const SECOND: u64 = 1_000_000_000;

#[test]
fn a_completion_after_a_second_issue_is_not_the_first_ones_answer() {
    // The first completion is lost; the sectors are written again a minute later.
    let (rows, doubtful) = matched(&[
        event(Queue, 1, 0, 8),
        event(Issue, 2, 0, 8),
        event(Queue, 60 * SECOND, 0, 8),
        event(Issue, 60 * SECOND + 1, 0, 8),
        event(Complete, 60 * SECOND + 2, 0, 8),
    ]);
    let completed: Vec<_> = rows.iter().map(|row| row.completed).collect();
    assert_eq!(completed, [None, Some(60 * SECOND + 2)]);
    assert_eq!(doubtful, [false, false]);
}

#[test]
fn a_completion_that_two_requests_may_be_due_is_doubtful_until_both_have_theirs() {
    let once = [
        event(Queue, 1, 0, 8),
        event(Issue, 2, 0, 8),
        event(Queue, 3, 0, 8),
        event(Issue, 4, 0, 8),
        event(Complete, 5, 0, 8),
    ];
    let (rows, doubtful) = matched(&once);
    assert!(rows.iter().all(|row| row.completed.is_none()), "{rows:?}");
    assert_eq!(doubtful, [false, true]);
    let twice = [&once[..], &[event(Complete, 6, 0, 8)]].concat();
    let (rows, doubtful) = matched(&twice);
    let completed: Vec<_> = rows.iter().map(|row| row.completed).collect();
    assert_eq!(
        (completed, doubtful),
        (vec![Some(5), Some(6)], vec![false, false])
    );
}

#[test]
fn a_request_that_was_answered_around_makes_only_two_others_doubtful() {
    let again = |at| {
        [
            event(Queue, at, 0, 8),
            event(Issue, at + 1, 0, 8),
            event(Complete, at + 2, 0, 8),
        ]
    };
    let lost = [event(Queue, 1, 0, 8), event(Issue, 2, 0, 8)];
    let events = [&lost[..], &again(10), &again(20), &again(30), &again(40)].concat();
    let (rows, doubtful) = matched(&events);
    assert_eq!(doubtful, [false, true, true, false, false]);
    assert_eq!(rows[4].completed, Some(42));
}

#[test]
fn a_completion_while_a_younger_request_waits_is_doubtful_unless_that_one_is_issued() {
    let lost = [
        event(Queue, 1, 0, 8),
        event(Issue, 2, 0, 8),
        event(Queue, 3, 0, 8),
        event(Complete, 5, 0, 8),
    ];
    assert_eq!(matched(&lost).1, [true, false]);
    let kept = [
        &lost[..],
        &[event(Issue, 6, 0, 8), event(Complete, 7, 0, 8)],
    ]
    .concat();
    let (rows, doubtful) = matched(&kept);
    assert_eq!((rows[0].completed, rows[1].completed), (Some(5), Some(7)));
    assert_eq!(doubtful, [false, false]);
}

#[test]
fn a_completion_later_than_any_command_lasts_is_doubtful() {
    let events = [
        event(Queue, 1, 0, 8),
        event(Issue, 2, 0, 8),
        event(Complete, 31 * SECOND, 0, 8),
    ];
    assert_eq!(matched(&events).1, [true]);
}

/// Events of a device with several requests for few places at once. Only the order of the queue
/// decides which events belong together.
fn served(places: &[u64], at_once: usize) -> Vec<KernelEvent> {
    let mut events = Vec::new();
    let mut queue = VecDeque::new();
    for (index, &place) in places.iter().enumerate() {
        let time = index as u64 * 10;
        events.push(event(Queue, time, place * 8, 8));
        events.push(event(Issue, time + 1, place * 8, 8));
        queue.push_back(place);
        if queue.len() == at_once {
            events.push(event(Complete, time + 2, queue.pop_front().unwrap() * 8, 8));
        }
    }
    let first = places.len() - queue.len();
    for (index, place) in queue.into_iter().enumerate() {
        let time = (first + index + at_once - 1) as u64 * 10 + 2;
        events.push(event(Complete, time, place * 8, 8));
    }
    events
}

proptest! {
    #[test]
    fn whole_traces_are_matched_in_order_and_leave_no_doubt(
        places in prop::collection::vec(0u64..6, 1..200),
        at_once in 1usize..9,
    ) {
        let (rows, doubtful) = matched(&served(&places, at_once));
        prop_assert_eq!(rows.len(), places.len());
        prop_assert!(doubtful.iter().all(|doubtful| !doubtful));
        for (index, row) in rows.iter().enumerate() {
            prop_assert_eq!(row.issued, Some(index as u64 * 10 + 1));
            prop_assert_eq!(row.completed, Some((index + at_once - 1) as u64 * 10 + 2));
        }
    }
}

/// If a request's issue and an older request's completion are both lost, nothing shows to which of
/// them the completion belongs. So a few results are wrong, not none.
#[test]
fn what_is_known_of_a_trace_with_lost_events_is_true() {
    let mut random = Seed(1).stream("lost events");
    let (mut known, mut wrong) = (0, 0);
    for at_once in (1..9).cycle().take(200) {
        let places: Vec<u64> = (0..600).map(|_| random.below(4000)).collect();
        let whole = served(&places, at_once);
        // Queue events are kept, because requests are counted by them.
        let kept: Vec<KernelEvent> = whole
            .iter()
            .filter(|event| event.action == Queue || random.below(10) > 3)
            .copied()
            .collect();
        let (rows, truth) = (matched(&kept).0, matched(&whole).0);
        assert_eq!(rows.len(), truth.len());
        for (row, truth) in rows
            .iter()
            .zip(&truth)
            .filter(|(row, _)| row.completed.is_some())
        {
            known += 1;
            wrong += u32::from(row.completed != truth.completed);
        }
    }
    assert!(known > 60_000, "{known}");
    assert!(wrong * 200 <= known, "{wrong} of {known}");
}
