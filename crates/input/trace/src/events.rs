//! Builds requests from the events of the Linux block layer, in binary form (blktrace) or as text
//! (blkparse, the kernel's blk tracer).
//!
//! A request is queued (Q), perhaps merged into another (M, F), inserted (I), issued to the driver
//! (D) and completed (C). D and C concern whole driver requests. A merged driver request covers
//! several queued requests. After a split (X), a driver request covers a part of a queued request.
//! D and C are matched to queued requests by their sectors, so merges and splits need no
//! bookkeeping of their own.
//!
//! The arrival is Q. If the first [`DECISION_EVENTS`] events have no Q, the arrival is I. If they
//! have no I either, the arrival is D. If they have completions alone, a request arrives when it
//! completes, and its response time is unknown.
//!
//! # Missing events
//!
//! The events of a processor may be missing altogether, or some of them may be dropped. Assume that
//! a request lost its completion, and that its sectors are accessed again later. The later
//! completion must not be taken for the completion of the old request, because the old request
//! would seem to have taken all the time in between. So an event goes to the **youngest** request
//! for its sectors that waits for such an event. An older request stays behind as *passed*:
//!
//! - If the older request gets an event of its own later, both requests were in the device's queue
//!   at once, and nothing is lost. The events are then assigned again, the oldest request first,
//!   and all of them are known.
//! - If not, its completion is unknown. The completions of the first two requests that passed it
//!   are doubtful, because each of these completions may belong to the older request.
//! - A request that the device cannot have kept for so long ([`OVERTAKEN_MAX`], [`COMMAND_NS_MAX`])
//!   is given up, and makes nothing doubtful.
//! - If the queue and issue events of a younger request are lost too, only the time gives a hint.
//!   In a trace that lacks events, a completion is doubtful if its request was overtaken by far
//!   more requests than usual.
//!
//! A doubtful completion is left out of the request, and counted.

mod event;
mod pool;
pub(crate) mod processors;
pub(crate) mod stream;

use crate::row::TraceRow;
use event::AwaitedEvent;
pub(crate) use event::{Action, KernelEvent};
use fullstroke_contract::Operation;
use pool::{OvertakingRequest, PendingRow, PendingRows};

/// Number of events examined before the arrival event is chosen.
pub(crate) const DECISION_EVENTS: usize = 4096;
/// Largest number of requests waiting for their completion. Beyond that, the oldest is released
/// without a completion.
const WAITING_MAX: usize = 32_768;
/// Largest number of later requests that a device may serve before a request in its queue: more
/// than the queue of any host adapter or NVMe device holds (1,024).
const OVERTAKEN_MAX: u64 = 4096;
/// Longest time that the kernel allows a command before it aborts the command: 30 s (`SD_TIMEOUT`
/// in drivers/scsi/sd.h, `nvme_io_timeout`; Linux 6.6).
const COMMAND_NS_MAX: u64 = 30_000_000_000;
/// Number of younger requests made doubtful by a passed request. Further younger requests were
/// answered one by one, so they are not doubtful.
const DOUBTED_MAX: usize = 2;
/// Number of younger requests for the same sectors that may pass a request before it is given up.
const PASSERS_MAX: usize = 64;

/// Factor of unlikely overtaking, if events are missing. A completion is unlikely to belong to a
/// request that was overtaken by more than this factor times the usual number. Nine in ten requests
/// are overtaken by at most the usual number.
const UNLIKELY_FACTOR: u64 = 8;
/// Smallest number that counts as unlikely: half of a SATA drive's queue.
const UNLIKELY_MIN: u64 = 16;
/// Smallest reported share of requests without a completion. A few requests are always in flight
/// when a trace ends.
const UNKNOWN_SHARE_TOLD: f64 = 0.01;
/// Smallest number of requests in a trace for such a report.
const GIVEN_MIN: u64 = 100;

/// Histogram of numbers by magnitude.
// One bucket for 0 and one for each of 64 bits.
type Buckets = [u64; 65];

/// Returns the magnitude of a number in bits. Numbers in bucket b are below 2^b.
fn bucket(number: u64) -> usize {
    (u64::BITS - number.leading_zeros()) as usize
}

/// Builds requests from events.
#[derive(Debug)]
pub(crate) struct Matcher {
    /// Events before the choice of the arrival event.
    early: Vec<KernelEvent>,
    arrival: Option<Action>,
    pool: PendingRows,
    /// Number of requests issued so far.
    issues: u64,
    /// True if events are known to be missing, because the file of a processor is missing.
    known_lossy: bool,
    /// Number of issues, and of completions, without a request in the trace.
    strays: [u64; 2],
    /// Number of requests given up because younger requests for their sectors were answered.
    closed: u64,
    /// Histogram of the number of issues overtaking a request, by [`bucket`].
    overtaken: Buckets,
    /// Number of released requests, and number of those without a known completion.
    given: u64,
    unknown: u64,
}

/// Returns the request that arrives with `event`.
fn row_of(event: &KernelEvent) -> TraceRow {
    TraceRow {
        device: event.device,
        process: event.process,
        place: event.place,
        ..TraceRow::new(event.time, event.operation, event.start, event.sectors)
    }
}

impl Default for Matcher {
    fn default() -> Matcher {
        Matcher {
            early: Vec::new(),
            arrival: None,
            pool: PendingRows::default(),
            issues: 0,
            known_lossy: false,
            strays: [0; 2],
            closed: 0,
            overtaken: [0; 65],
            given: 0,
            unknown: 0,
        }
    }
}

impl Matcher {
    /// Takes an event. Appends the requests ready for release to `rows`.
    pub(crate) fn push(&mut self, event: KernelEvent, rows: &mut Vec<TraceRow>) {
        // Flushes have no sectors, so the address of the event is ignored.
        let start = if event.sectors == 0 { 0 } else { event.start };
        let event = KernelEvent { start, ..event };
        if self.arrival.is_some() {
            return self.event(&event, rows);
        }
        self.early.push(event);
        if self.early.len() == DECISION_EVENTS {
            self.decide(rows);
        }
    }

    /// Releases the last requests, complete or not.
    pub(crate) fn finish(&mut self, rows: &mut Vec<TraceRow>) {
        self.decide(rows);
        while self.pool.len() > 0 {
            self.release(rows);
        }
    }

    /// Records that the events of some processor are missing.
    pub(crate) fn expect_losses(&mut self) {
        self.known_lossy = true;
    }

    /// Returns the notes about incomplete requests, one sentence each.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.arrival == Some(Action::Complete) {
            notes.push(
                "the trace has completions alone: each request arrives here when it completes, and response times are unknown; record the issue events, too"
                    .to_owned(),
            );
        }
        assert!(
            self.unknown <= self.given,
            "{} completions are unknown of {} requests",
            self.unknown,
            self.given
        );
        let share = self.unknown as f64 / self.given.max(1) as f64;
        if self.given >= GIVEN_MIN && share >= UNKNOWN_SHARE_TOLD {
            notes.push(format!(
                "{:.1} % of the requests have no certain completion, because events of a processor are missing or were dropped; response times cover only the other requests",
                share * 100.0
            ));
        }
        let [issues, completions] = self.strays;
        if issues + completions > 0 {
            notes.push(format!(
                "{issues} issues and {completions} completions belong to no request in the trace: these requests were in flight when the trace began, or their queue events are missing"
            ));
        }
        notes
    }

    fn decide(&mut self, rows: &mut Vec<TraceRow>) {
        let seen = |action| self.early.iter().any(|event| event.action == action);
        let first_of = [
            Action::Queue,
            Action::Insert,
            Action::Issue,
            Action::Complete,
        ]
        .into_iter()
        .find(|&action| seen(action));
        self.arrival = self.arrival.or(first_of).or(Some(Action::Issue));
        assert!(
            self.early.len() <= DECISION_EVENTS,
            "the arrival is decided once, by the first events"
        );
        // Taken out, because the events change the matcher that holds them.
        for event in std::mem::take(&mut self.early) {
            self.event(&event, rows);
        }
    }

    fn event(&mut self, event: &KernelEvent, rows: &mut Vec<TraceRow>) {
        if self.arrival == Some(Action::Complete) {
            if event.action == Action::Complete {
                rows.push(row_of(event));
            }
            return;
        }
        if Some(event.action) == self.arrival && !self.again(event) {
            self.arrive(event);
        }
        match event.action {
            Action::Queue | Action::Insert => {}
            Action::Issue => self.issue(event),
            Action::Requeue => self.requeue(event),
            Action::Complete => self.complete(event),
        }
        while self.pool.len() > WAITING_MAX || self.pool.oldest().is_some_and(is_settled) {
            self.release(rows);
        }
    }

    fn arrive(&mut self, event: &KernelEvent) {
        self.pool.add(row_of(event));
    }

    /// Returns true if `event` is the second try of a requeued request: its next insert, or its
    /// next issue. A requeued request is not queued again (`blk_mq_requeue_request`, Linux 6.6), so
    /// a Q is always a new request.
    fn again(&mut self, event: &KernelEvent) -> bool {
        if event.action == Action::Queue {
            return false;
        }
        let requeued = self.pool.alike(event).find(|(_, waiting)| waiting.requeued);
        let Some(number) = requeued.map(|(number, _)| number) else {
            return false;
        };
        if let Some(waiting) = self.pool.get_mut(number) {
            // `issue` still needs the mark and takes it off. The issue behind a second insert is an
            // ordinary one.
            waiting.requeued = event.action == Action::Issue;
        }
        true
    }

    fn issue(&mut self, event: &KernelEvent) {
        self.issues += 1;
        // A requeued request goes to the head of the queue, so it has precedence.
        let requeued = self
            .pool
            .alike(event)
            .find(|(_, waiting)| waiting.requeued)
            .map(|(number, _)| number);
        let covered = match requeued {
            Some(number) => vec![(number, event.sectors)],
            None => self
                .pool
                .covered(event, |waiting| waiting.lacks(AwaitedEvent::Issue)),
        };
        for &(number, sectors) in &covered {
            if let Some(waiting) = self.pool.get_mut(number) {
                waiting.requeued = false;
                waiting.issue_number = self.issues;
            }
            self.reach(AwaitedEvent::Issue, number, sectors, event);
            self.vouch(number);
        }
        if covered.is_empty() {
            self.strays[0] += 1;
            self.reissued(event);
        }
    }

    /// Handles the issue of a request whose arrival is lost. If another request for the same
    /// sectors is in flight, the next completion may belong to either.
    fn reissued(&mut self, event: &KernelEvent) {
        let in_flight = |waiting: &PendingRow| {
            waiting.at(AwaitedEvent::Issue).begun && waiting.lacks(AwaitedEvent::Complete)
        };
        for (number, _) in self.pool.covered(event, in_flight) {
            if let Some(waiting) = self.pool.get_mut(number) {
                waiting.at_mut(AwaitedEvent::Complete).doubts += 1;
            }
        }
    }

    /// Request `number` is issued only now, so the earlier completion was not its own. Removes the
    /// doubt about that completion.
    fn vouch(&mut self, number: u64) {
        let vouched = self
            .pool
            .get_mut(number)
            .and_then(|waiting| waiting.vouches_for.take());
        if let Some(other) = vouched.and_then(|other| self.pool.get_mut(other)) {
            let doubts = &mut other.at_mut(AwaitedEvent::Complete).doubts;
            assert!(*doubts > 0, "a doubt is taken back that nobody had");
            *doubts -= 1;
        }
    }

    fn requeue(&mut self, event: &KernelEvent) {
        let in_flight = |waiting: &PendingRow| {
            waiting.at(AwaitedEvent::Issue).begun && waiting.lacks(AwaitedEvent::Complete)
        };
        for (number, _) in self.pool.covered(event, in_flight) {
            let Some(waiting) = self.pool.get_mut(number) else {
                continue;
            };
            waiting.requeued = true;
            let sectors = waiting.row.sectors;
            let issue = waiting.at_mut(AwaitedEvent::Issue);
            // The whole request is issued again, even if only a part had been issued.
            (issue.left, issue.begun) = (sectors, false);
        }
    }

    fn complete(&mut self, event: &KernelEvent) {
        let in_flight = |waiting: &PendingRow| {
            waiting.at(AwaitedEvent::Issue).begun && waiting.lacks(AwaitedEvent::Complete)
        };
        let mut covered = self.pool.covered(event, in_flight);
        if covered.is_empty() {
            // The issue is lost, or there is none: stacked devices have only Q and C.
            covered = self
                .pool
                .covered(event, |waiting| waiting.lacks(AwaitedEvent::Complete));
        }
        self.strays[1] += u64::from(covered.is_empty());
        for (number, sectors) in covered {
            if self.is_left_behind(number) {
                self.strays[1] += 1;
                continue;
            }
            self.reach(AwaitedEvent::Complete, number, sectors, event);
        }
    }

    /// Records that `event` took `sectors` of request `number` through `stage`.
    fn reach(&mut self, stage: AwaitedEvent, number: u64, sectors: u64, event: &KernelEvent) {
        let Some(waiting) = self.pool.get_mut(number) else {
            return;
        };
        let progress = waiting.at_mut(stage);
        let whole = progress.left == sectors && !progress.begun;
        // A completion of more sectors than are left is damage, and completes the request.
        progress.left = progress.left.saturating_sub(sectors);
        let first = !std::mem::replace(&mut progress.begun, true);
        let last = progress.left == 0;
        // A split request is issued with its first part and complete with its last.
        if (stage == AwaitedEvent::Issue && !first) || (stage == AwaitedEvent::Complete && !last) {
            return;
        }
        *waiting.time_mut(stage) = Some(event.time);
        self.deal_anew(stage, number, whole);
        if stage == AwaitedEvent::Complete {
            self.doubt_if_overdue(number, event);
            self.settle(number);
        }
        self.pass(stage, number);
    }

    /// Assigns events again after request `number`, which had been passed, got its own event. Each
    /// request that passed it takes the next request's event, so that the oldest has the first.
    fn deal_anew(&mut self, stage: AwaitedEvent, number: u64, whole: bool) {
        let Some(waiting) = self.pool.get_mut(number) else {
            return;
        };
        let mut passers = std::mem::take(&mut waiting.at_mut(stage).passers);
        // In order of arrival, because each passer takes over from the next older request.
        passers.sort_unstable_by_key(|passer| passer.number);
        let mut older = number;
        for passer in passers {
            if passer.doubted
                && let Some(waiting) = self.pool.get_mut(passer.number)
            {
                let doubts = &mut waiting.at_mut(stage).doubts;
                assert!(*doubts > 0, "a doubt is taken back that nobody had");
                *doubts -= 1;
            }
            // The parts of a split request have several times, so there is no single one to
            // exchange.
            if whole {
                self.swap(stage, older, passer.number);
                older = passer.number;
            }
        }
    }

    /// Exchanges the times at which two requests reached `stage`.
    fn swap(&mut self, stage: AwaitedEvent, one: u64, other: u64) {
        let time = self
            .pool
            .get_mut(one)
            .and_then(|waiting| *waiting.time_mut(stage));
        let Some(waiting) = self.pool.get_mut(other) else {
            return;
        };
        let others = std::mem::replace(waiting.time_mut(stage), time);
        if let Some(waiting) = self.pool.get_mut(one) {
            *waiting.time_mut(stage) = others;
        }
    }

    /// Marks the older requests that `number` passed at `stage`, and gives up those that cannot
    /// still be waiting.
    fn pass(&mut self, stage: AwaitedEvent, number: u64) {
        let Some(passer) = self.pool.get(number) else {
            return;
        };
        let (row, issued) = (passer.row, passer.issue_number);
        let mut doubts = 0;
        for older in self.older_alike(number, stage) {
            let dead = self.is_dead(older, stage, issued, &row);
            let Some(waiting) = self.pool.get_mut(older) else {
                continue;
            };
            let passers = &mut waiting.at_mut(stage).passers;
            if dead || passers.len() == PASSERS_MAX {
                self.give_up(older);
                continue;
            }
            let doubted = passers.len() < DOUBTED_MAX;
            passers.push(OvertakingRequest { number, doubted });
            doubts += u32::from(doubted);
        }
        if let Some(waiting) = self.pool.get_mut(number) {
            waiting.at_mut(stage).doubts += doubts;
        }
    }

    /// Returns the older requests for exactly the same sectors as `number` that could have had its
    /// event.
    fn older_alike(&self, number: u64, stage: AwaitedEvent) -> Vec<u64> {
        let Some(passer) = self.pool.get(number) else {
            return Vec::new();
        };
        let issued = |waiting: &PendingRow| waiting.at(AwaitedEvent::Issue).begun;
        let due = |waiting: &PendingRow| {
            waiting.lacks(stage)
                && (stage == AwaitedEvent::Issue || issued(waiting) == issued(passer))
        };
        let event = event_for(&passer.row);
        let older = self
            .pool
            .alike(&event)
            .filter(|(other, waiting)| *other < number && due(waiting));
        older.map(|(other, _)| other).collect()
    }

    /// Returns true if `older` can no longer have waited for `stage` when the request of `row`
    /// arrived or was issued.
    fn is_dead(&self, older: u64, stage: AwaitedEvent, issue_number: u64, row: &TraceRow) -> bool {
        let Some(waiting) = self.pool.get(older) else {
            return false;
        };
        let since = match stage {
            AwaitedEvent::Issue => waiting.row.arrival,
            AwaitedEvent::Complete => waiting.row.issued.unwrap_or(waiting.row.arrival),
        };
        let overtaken = issue_number.saturating_sub(waiting.issue_number);
        let by_others = stage == AwaitedEvent::Complete && overtaken > OVERTAKEN_MAX;
        by_others || row.arrival.saturating_sub(since) > COMMAND_NS_MAX
    }

    /// Marks a completion as doubtful if no command takes so long. Also marks it if a younger
    /// request for the same sectors waits whose issue event may be lost.
    fn doubt_if_overdue(&mut self, number: u64, event: &KernelEvent) {
        let Some(waiting) = self.pool.get(number) else {
            return;
        };
        let row = waiting.row;
        let service = event.time.saturating_sub(row.issued.unwrap_or(row.arrival));
        let overtaken = match row.issued {
            Some(_) => self.issues.saturating_sub(waiting.issue_number),
            None => self.pool.arrivals() - number,
        };
        self.overtaken[bucket(overtaken)] += 1;
        let overdue =
            service > COMMAND_NS_MAX || (row.issued.is_some() && overtaken > OVERTAKEN_MAX);
        let event = event_for(&row);
        let younger = self
            .pool
            .alike(&event)
            .find(|(other, waiting)| {
                // Without issue events, as on stacked devices, a missing issue says nothing.
                *other > number && waiting.lacks(AwaitedEvent::Issue) && row.issued.is_some()
            })
            .map(|(other, _)| other);
        let younger = younger.and_then(|younger| self.pool.get_mut(younger));
        // One lost issue puts one completion in doubt.
        let younger = younger.filter(|younger| younger.vouches_for.is_none());
        let unsure = younger
            .map(|younger| younger.vouches_for = Some(number))
            .is_some();
        if let Some(waiting) = self.pool.get_mut(number) {
            waiting.overtaken = overtaken;
            waiting.at_mut(AwaitedEvent::Complete).doubts += u32::from(overdue) + u32::from(unsure);
        }
    }

    /// Completes request `number`, and removes the doubts about the request.
    fn settle(&mut self, number: u64) {
        self.pool.forget(number);
        let Some(waiting) = self.pool.get_mut(number) else {
            return;
        };
        waiting.done = true;
        let passers = std::mem::take(&mut waiting.at_mut(AwaitedEvent::Issue).passers);
        for passer in passers.into_iter().filter(|passer| passer.doubted) {
            if let Some(waiting) = self.pool.get_mut(passer.number) {
                waiting.at_mut(AwaitedEvent::Issue).doubts -= 1;
            }
        }
    }

    /// Returns true if the trace demonstrably lacks events.
    fn is_lossy(&self) -> bool {
        let lost = self.closed + self.strays[0] + self.strays[1];
        self.known_lossy || lost as f64 > UNKNOWN_SHARE_TOLD * self.pool.arrivals() as f64
    }

    /// Returns true if a completion is unlikely to belong to a request that was overtaken by
    /// `overtaken` others. It then more likely belongs to a younger request whose queue and issue
    /// events are lost. Without lost events the result is always false.
    fn is_unlikely(&self, overtaken: u64) -> bool {
        if overtaken <= UNLIKELY_MIN || !self.is_lossy() {
            return false;
        }
        let (mut seen, all) = (0, self.overtaken.iter().sum::<u64>());
        let usual = self.overtaken.iter().position(|count| {
            seen += count;
            // In integers: nine in ten without rounding.
            seen * 10 >= all * 9
        });
        // Nine in ten requests are overtaken by fewer than this.
        let usual = usual.map_or(u64::MAX, |bucket| {
            // Bucket 64 has no bound within 64 bits.
            1u64.checked_shl(bucket as u32).unwrap_or(u64::MAX)
        });
        overtaken > usual.saturating_mul(UNLIKELY_FACTOR)
    }

    /// Gives request `number` up if younger requests have passed it by far. A completion for its
    /// sectors then more likely belongs to a request whose other events are lost. Returns true in
    /// this case.
    fn is_left_behind(&mut self, number: u64) -> bool {
        let Some(waiting) = self.pool.get(number) else {
            return false;
        };
        let passed = !waiting.at(AwaitedEvent::Complete).passers.is_empty();
        let left_behind =
            passed && self.is_unlikely(self.issues.saturating_sub(waiting.issue_number));
        if left_behind {
            self.give_up(number);
        }
        left_behind
    }

    fn give_up(&mut self, number: u64) {
        self.pool.forget(number);
        if let Some(waiting) = self.pool.get_mut(number) {
            waiting.closed = true;
            self.closed += 1;
        }
    }

    /// Releases the oldest request.
    fn release(&mut self, rows: &mut Vec<TraceRow>) {
        let Some(waiting) = self.pool.pop() else {
            return;
        };
        let mut row = waiting.row;
        // After a new assignment, a request may have got an issue later than its completion.
        let is_late = row
            .issued
            .zip(row.completed)
            .is_some_and(|(issued, completed)| issued > completed);
        if waiting.at(AwaitedEvent::Issue).doubts > 0 || is_late {
            row.issued = None;
        }
        if (waiting.is_doubtful() || self.is_unlikely(waiting.overtaken))
            && row.completed.take().is_some()
        {
            row.doubtful = true;
        }
        self.given += 1;
        self.unknown += u64::from(row.completed.is_none());
        rows.push(row);
    }
}

/// Returns true if no later event can change the request.
fn is_settled(waiting: &PendingRow) -> bool {
    waiting.closed || (waiting.done && !waiting.is_doubtful())
}

/// Makes an event for the sectors of `row`, for look-ups.
fn event_for(row: &TraceRow) -> KernelEvent {
    KernelEvent {
        action: Action::Complete,
        time: row.arrival,
        device: row.device,
        process: row.process,
        operation: row.operation,
        start: row.start,
        sectors: row.sectors,
        place: row.place,
    }
}

/// Decodes the block layer's one-letter flags (`rwbs`). Returns `None` if the event moves no data
/// and is no flush (`N`, zone management).
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

/// Returns the kernel's device number.
pub(crate) fn device_number(major: u64, minor: u64) -> Option<u32> {
    const MINOR_BITS: u32 = 20;
    let (major, minor) = (u32::try_from(major).ok()?, u32::try_from(minor).ok()?);
    (major < 1 << 12 && minor < 1 << MINOR_BITS).then_some(major << MINOR_BITS | minor)
}

#[cfg(test)]
mod tests;
