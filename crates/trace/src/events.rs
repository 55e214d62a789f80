//! Requests out of the Linux block layer's events, binary (blktrace) or text
//! (blkparse, the kernel's blk tracer).
//!
//! A request is queued (Q), perhaps merged into another (M, F), inserted (I),
//! issued to the driver (D) and completed (C). D and C speak of whole driver
//! requests: one that was merged covers several queued ones, one that was split
//! (X) covers a part. They are matched to queued requests by the sectors that
//! they cover, so merges and splits need no bookkeeping of their own, and the
//! loss of single events does little harm.
//!
//! The arrival is Q. Where the trace has no Q events at all (among the first
//! [`DECISION_EVENTS`]), it is I; where it has no I either, D.

use crate::row::Row;
use fullstroke_contract::Operation;
use std::collections::{BTreeMap, VecDeque};

/// Events that are looked at before it is decided what counts as an arrival.
pub(crate) const DECISION_EVENTS: usize = 4096;
/// Requests that may wait for their completion; the oldest is then given
/// without one.
const WAITING_MAX: usize = 32_768;
/// Requests that are looked at to find those that an event covers.
const NEIGHBOURS_MAX: usize = 1024;

/// What happened to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Queue,
    Insert,
    Issue,
    Requeue,
    Complete,
}

/// One event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub(crate) action: Action,
    pub(crate) time: u64,
    pub(crate) device: u32,
    pub(crate) process: u32,
    pub(crate) operation: Operation,
    pub(crate) start: u64,
    pub(crate) sectors: u64,
    pub(crate) place: u64,
}

/// Device, operation, first sector, number in order of arrival.
type Key = (u32, Operation, u64, u64);

#[derive(Debug)]
struct Waiting {
    row: Row,
    /// Sectors that are not complete yet.
    left: u64,
    done: bool,
    requeued: bool,
}

/// Makes requests of events.
#[derive(Debug, Default)]
pub(crate) struct Matcher {
    /// Events from before the decision.
    early: Vec<Event>,
    arrival: Option<Action>,
    /// Requests in order of arrival; the first has the number `first`.
    waiting: VecDeque<Waiting>,
    first: u64,
    index: BTreeMap<Key, u64>,
    flushes: VecDeque<(u32, u64)>,
}

impl Matcher {
    /// Takes an event; requests that can be given now are appended to `rows`.
    pub(crate) fn push(&mut self, event: Event, rows: &mut Vec<Row>) {
        if self.arrival.is_some() {
            return self.event(&event, rows);
        }
        self.early.push(event);
        if self.early.len() == DECISION_EVENTS {
            self.decide(rows);
        }
    }

    /// The last requests, whether complete or not.
    pub(crate) fn finish(&mut self, rows: &mut Vec<Row>) {
        self.decide(rows);
        while !self.waiting.is_empty() {
            self.release(rows);
        }
    }

    fn decide(&mut self, rows: &mut Vec<Row>) {
        let seen = |action| self.early.iter().any(|event| event.action == action);
        let first_of = [Action::Queue, Action::Insert].into_iter().find(|&action| seen(action));
        self.arrival = self.arrival.or(first_of).or(Some(Action::Issue));
        for event in std::mem::take(&mut self.early) {
            self.event(&event, rows);
        }
    }

    fn event(&mut self, event: &Event, rows: &mut Vec<Row>) {
        if Some(event.action) == self.arrival && !self.again(event) {
            self.arrive(event);
        }
        match event.action {
            Action::Queue | Action::Insert => {}
            Action::Issue => self.issue(event),
            Action::Requeue => self.requeue(event),
            Action::Complete => self.complete(event),
        }
        while self.waiting.len() > WAITING_MAX || self.waiting.front().is_some_and(|waiting| waiting.done) {
            self.release(rows);
        }
    }

    fn arrive(&mut self, event: &Event) {
        let number = self.first + self.waiting.len() as u64;
        let row = Row {
            device: event.device,
            process: event.process,
            place: event.place,
            ..Row::new(event.time, event.operation, event.start, event.sectors)
        };
        self.waiting.push_back(Waiting { row, left: event.sectors, done: false, requeued: false });
        if event.sectors == 0 {
            self.flushes.push_back((event.device, number));
        } else {
            let key = (event.device, event.operation, event.start, number);
            self.index.insert(key, event.start.saturating_add(event.sectors));
        }
    }

    /// Whether `event` is an old request's second try.
    fn again(&mut self, event: &Event) -> bool {
        let number = self.exactly(event, |waiting| waiting.requeued);
        if let Some(waiting) = number.and_then(|number| self.get(number)) {
            waiting.requeued = event.action == Action::Insert;
            return true;
        }
        false
    }

    fn issue(&mut self, event: &Event) {
        let fresh = |waiting: &Waiting| waiting.row.issued.is_none();
        let mut covered = self.covered(event, fresh);
        if covered.is_empty() {
            covered = self.covered(event, |waiting| waiting.requeued);
        }
        for (number, _) in covered {
            if let Some(waiting) = self.get(number) {
                waiting.row.issued = Some(event.time);
                waiting.requeued = false;
            }
        }
    }

    fn requeue(&mut self, event: &Event) {
        for (number, _) in self.covered(event, |waiting| waiting.row.issued.is_some()) {
            if let Some(waiting) = self.get(number) {
                waiting.requeued = true;
            }
        }
    }

    fn complete(&mut self, event: &Event) {
        let issued = |waiting: &Waiting| waiting.row.issued.is_some();
        let mut covered = self.covered(event, issued);
        if covered.is_empty() {
            covered = self.covered(event, |_| true);
        }
        for (number, sectors) in covered {
            let Some(waiting) = self.get(number) else { continue };
            waiting.left = waiting.left.saturating_sub(sectors);
            if waiting.left == 0 {
                waiting.done = true;
                waiting.row.completed = Some(event.time);
                self.forget(number);
            }
        }
    }

    /// The requests that `event` covers among those that `fit`, by number, and
    /// how many sectors of each.
    fn covered(&mut self, event: &Event, fit: impl Fn(&Waiting) -> bool) -> Vec<(u64, u64)> {
        if event.sectors == 0 {
            let flush = self
                .flushes
                .iter()
                .find(|(device, number)| *device == event.device && self.peek(*number).is_some_and(&fit));
            return flush.map(|&(_, number)| (number, 0)).into_iter().collect();
        }
        if let Some(number) = self.exactly(event, &fit) {
            return vec![(number, event.sectors)];
        }
        let end = event.start.saturating_add(event.sectors);
        let below = (event.device, event.operation, 0, 0)..(event.device, event.operation, end, 0);
        let near = self.index.range(below).rev().take(NEIGHBOURS_MAX);
        let mut found: Vec<(u64, u64, u64)> = near
            .filter(|&(&(_, _, _, number), &last)| last > event.start && self.peek(number).is_some_and(&fit))
            .map(|(&(_, _, start, number), &last)| (start.max(event.start), number, last.min(end)))
            .collect();
        found.sort_unstable();
        // Of several requests for the same sectors only the first is covered.
        let mut passed = event.start;
        found.retain(|&(start, _, last)| {
            let next = start >= passed;
            passed = if next { last } else { passed };
            next
        });
        found.into_iter().map(|(start, number, last)| (number, last - start)).collect()
    }

    /// The oldest request for just the sectors of `event` that `fits`.
    fn exactly(&self, event: &Event, fits: impl Fn(&Waiting) -> bool) -> Option<u64> {
        let from = (event.device, event.operation, event.start, 0);
        let to = (event.device, event.operation, event.start, u64::MAX);
        let end = event.start.saturating_add(event.sectors);
        self.index
            .range(from..=to)
            .take(NEIGHBOURS_MAX)
            .find(|&(&(_, _, _, number), &last)| last == end && self.peek(number).is_some_and(&fits))
            .map(|(&(_, _, _, number), _)| number)
    }

    fn peek(&self, number: u64) -> Option<&Waiting> {
        self.waiting.get(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    fn get(&mut self, number: u64) -> Option<&mut Waiting> {
        self.waiting.get_mut(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    /// Takes a request out of the ways in which it is found.
    fn forget(&mut self, number: u64) {
        let Some(row) = self.peek(number).map(|waiting| waiting.row) else { return };
        if row.sectors == 0 {
            self.flushes.retain(|&(_, other)| other != number);
        } else {
            self.index.remove(&(row.device, row.operation, row.start, number));
        }
    }

    /// Gives the oldest request.
    fn release(&mut self, rows: &mut Vec<Row>) {
        self.forget(self.first);
        if let Some(waiting) = self.waiting.pop_front() {
            rows.push(waiting.row);
            self.first += 1;
        }
    }
}

/// What the block layer's one-letter flags (`rwbs`) say: `None` if the event
/// moves no data and is no flush (`N`, zone management).
pub(crate) fn operation_of_flags(flags: &[u8], sectors: u64) -> Option<Operation> {
    let (flush, rest) = match flags {
        [b'F', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    match (rest.first(), sectors) {
        (_, 0) => flush.then_some(Operation::Flush),
        (Some(b'R'), _) => Some(Operation::Read),
        (Some(b'W'), _) => Some(Operation::Write),
        (Some(b'D'), _) => Some(Operation::Discard),
        _ => None,
    }
}

/// The kernel's device number.
pub(crate) fn device_number(major: u64, minor: u64) -> Option<u32> {
    const MINOR_BITS: u32 = 20;
    let (major, minor) = (u32::try_from(major).ok()?, u32::try_from(minor).ok()?);
    (major < 1 << 12 && minor < 1 << MINOR_BITS).then_some(major << MINOR_BITS | minor)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(action: Action, time: u64, start: u64, sectors: u64) -> Event {
        let operation = Operation::Write;
        Event { action, time, device: 1, process: 7, operation, start, sectors, place: time }
    }

    fn rows_of(events: &[Event]) -> Vec<(u64, u64, Option<u64>, Option<u64>)> {
        let (mut matcher, mut rows) = (Matcher::default(), Vec::new());
        for &event in events {
            matcher.push(event, &mut rows);
        }
        matcher.finish(&mut rows);
        rows.iter().map(|row| (row.arrival, row.start, row.issued, row.completed)).collect()
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
        let expected =
            [(1, 100, Some(10), Some(20)), (2, 108, Some(10), Some(20)), (3, 92, Some(10), Some(20))];
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
        let events: Vec<Event> =
            (0..WAITING_MAX as u64 + 10).map(|number| event(Queue, number, number * 8, 8)).collect();
        let rows = rows_of(&events);
        assert_eq!(rows.len(), events.len());
        assert!(rows.iter().all(|row| row.3.is_none()));
    }

    #[test]
    fn a_flush_is_matched_by_its_device_alone() {
        let flush = |action, time| Event { operation: Operation::Flush, ..event(action, time, 0, 0) };
        let rows = rows_of(&[flush(Queue, 1), flush(Issue, 2), flush(Complete, 3)]);
        assert_eq!(rows, [(1, 0, Some(2), Some(3))]);
    }
}
