//! Requests out of the Linux block layer's events, binary (blktrace) or text
//! (blkparse, the kernel's blk tracer).
//!
//! A request is queued (Q), perhaps merged into another (M, F), inserted (I),
//! issued to the driver (D) and completed (C). D and C speak of whole driver
//! requests: one that was merged covers several queued ones, one that was split
//! (X) covers a part. They are matched to queued requests by the sectors that
//! they cover, so merges and splits need no bookkeeping of their own.
//!
//! The arrival is Q. Where the trace has no Q events at all (among the first
//! [`DECISION_EVENTS`]), it is I; where it has no I either, D.
//!
//! # Events that are missing
//!
//! A processor's events may be missing altogether, or be dropped while others
//! are kept. A completion must then not become the answer to an older request
//! for the same sectors whose own was lost: it would seem to have taken as long
//! as the sectors were left alone. So an event goes to the **youngest** request
//! for its sectors that waits for one. An older one stays behind as *passed*:
//!
//! - If it gets an event of its own after all, both were in the device's queue
//!   at once, and nothing is lost: the events are dealt out anew, the oldest
//!   request first, and all of them are known.
//! - If not, its completion is unknown, and that of the first two requests that
//!   passed it is doubtful: either could be meant.
//! - What the device cannot have kept for so long ([`OVERTAKEN_MAX`],
//!   [`COMMAND_NS_MAX`]) is given up, and makes nothing doubtful.
//! - If a younger one's queue and issue events are lost, too, nothing tells but
//!   the time: in a trace that lacks events, the completion of a request that
//!   was overtaken by far more than are usual is doubtful.
//!
//! A doubtful completion is left out of the request and counted.

mod pool;
pub(crate) mod processors;

use crate::row::Row;
use fullstroke_contract::Operation;
use pool::{Passer, Pool, Waiting};

/// Events that are looked at before it is decided what counts as an arrival.
pub(crate) const DECISION_EVENTS: usize = 4096;
/// Requests that may wait for their completion; the oldest is then given
/// without one.
const WAITING_MAX: usize = 32_768;
/// Requests issued later that a device may prefer to one in its queue: more
/// than any host adapter's or NVMe queue holds (1,024).
const OVERTAKEN_MAX: u64 = 4096;
/// The longest that the kernel lets a command take before it aborts it: 30 s
/// (`SD_TIMEOUT` in drivers/scsi/sd.h, `nvme_io_timeout`; Linux 6.6).
const COMMAND_NS_MAX: u64 = 30_000_000_000;
/// Younger requests that may have taken an event that a request was due before
/// it makes them doubtful no more: they were answered one by one.
const DOUBTED_MAX: usize = 2;
/// Younger requests for the same sectors that pass a request before it is
/// given up.
const PASSERS_MAX: usize = 64;

/// A request that is overtaken by this many times as many as nine in ten are is
/// unlikely to be the one that a completion is of, if events are missing.
const UNLIKELY_FACTOR: u64 = 8;
/// But not below this, the half of a SATA drive's queue.
const UNLIKELY_MIN: u64 = 16;
/// Requests without a completion are told of from this share on; a few are under
/// way when a trace ends.
const UNKNOWN_SHARE_TOLD: f64 = 0.01;
/// In a trace of at least this many requests.
const GIVEN_MIN: u64 = 100;

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

/// What a request waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Issue,
    Complete,
}

/// Counts of numbers by their magnitude.
type Buckets = [u64; 65];

/// A number's magnitude in bits: numbers in bucket b are below 2^b.
fn bucket(number: u64) -> usize {
    (u64::BITS - number.leading_zeros()) as usize
}

/// Makes requests of events.
#[derive(Debug)]
pub(crate) struct Matcher {
    /// Events from before the decision.
    early: Vec<Event>,
    arrival: Option<Action>,
    pool: Pool,
    /// Requests issued so far.
    issues: u64,
    /// Events are known to be missing: a processor's file is.
    known_lossy: bool,
    /// Issues and completions of no request in the trace.
    strays: [u64; 2],
    /// Requests that were given up because younger ones for their sectors were
    /// answered.
    closed: u64,
    /// How many later issues requests were overtaken by, by [`bucket`].
    overtaken: Buckets,
    /// Requests that were given, and those of them without a known completion.
    given: u64,
    unknown: u64,
}

impl Default for Matcher {
    fn default() -> Matcher {
        Matcher {
            early: Vec::new(),
            arrival: None,
            pool: Pool::default(),
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
    /// Takes an event; requests that can be given now are appended to `rows`.
    pub(crate) fn push(&mut self, event: Event, rows: &mut Vec<Row>) {
        // Flushes have no sectors, whatever place the event names.
        let start = if event.sectors == 0 { 0 } else { event.start };
        let event = Event { start, ..event };
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
        while self.pool.len() > 0 {
            self.release(rows);
        }
    }

    /// Events are missing: those of some processor.
    pub(crate) fn expect_losses(&mut self) {
        self.known_lossy = true;
    }

    /// What is missing of requests, in sentences.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        assert!(
            self.unknown <= self.given,
            "{} completions are unknown of {} requests",
            self.unknown,
            self.given
        );
        let share = self.unknown as f64 / self.given.max(1) as f64;
        if self.given >= GIVEN_MIN && share >= UNKNOWN_SHARE_TOLD {
            notes.push(format!(
                "{:.1} % of the requests have no completion that is surely theirs: the events of a processor are \
                 missing or were dropped; what is said of responses holds for the others",
                share * 100.0
            ));
        }
        let [issues, completions] = self.strays;
        if issues + completions > 0 {
            notes.push(format!(
                "{issues} issues and {completions} completions belong to no request in the trace: they were under way \
                 when it began, or their queue events are missing"
            ));
        }
        notes
    }

    fn decide(&mut self, rows: &mut Vec<Row>) {
        let seen = |action| self.early.iter().any(|event| event.action == action);
        let first_of = [Action::Queue, Action::Insert]
            .into_iter()
            .find(|&action| seen(action));
        self.arrival = self.arrival.or(first_of).or(Some(Action::Issue));
        assert!(
            self.early.len() <= DECISION_EVENTS,
            "the arrival is decided once, by the first events"
        );
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
        while self.pool.len() > WAITING_MAX || self.pool.oldest().is_some_and(is_settled) {
            self.release(rows);
        }
    }

    fn arrive(&mut self, event: &Event) {
        self.pool.add(Row {
            device: event.device,
            process: event.process,
            place: event.place,
            ..Row::new(event.time, event.operation, event.start, event.sectors)
        });
    }

    /// Whether `event` is the second try of a request that was requeued: its
    /// next insert, or its next issue. It is not queued again
    /// (`blk_mq_requeue_request`, Linux 6.6): a Q is always a new request.
    fn again(&mut self, event: &Event) -> bool {
        if event.action == Action::Queue {
            return false;
        }
        let requeued = self.pool.alike(event).find(|(_, waiting)| waiting.requeued);
        let Some(number) = requeued.map(|(number, _)| number) else {
            return false;
        };
        if let Some(waiting) = self.pool.get_mut(number) {
            waiting.requeued = event.action == Action::Issue;
        }
        true
    }

    fn issue(&mut self, event: &Event) {
        self.issues += 1;
        // A requeued request goes to the head of the queue.
        let requeued = self
            .pool
            .alike(event)
            .find(|(_, waiting)| waiting.requeued)
            .map(|(number, _)| number);
        let covered = match requeued {
            Some(number) => vec![(number, event.sectors)],
            None => self
                .pool
                .covered(event, |waiting| waiting.lacks(Stage::Issue)),
        };
        for &(number, sectors) in &covered {
            if let Some(waiting) = self.pool.get_mut(number) {
                waiting.requeued = false;
                waiting.issue_number = self.issues;
            }
            self.reach(Stage::Issue, number, sectors, event);
            self.vouch(number);
        }
        if covered.is_empty() {
            self.strays[0] += 1;
            self.reissued(event);
        }
    }

    /// `event` issues a request whose arrival is lost: if one for its sectors is
    /// with the device, the next completion may be either's.
    fn reissued(&mut self, event: &Event) {
        let in_flight =
            |waiting: &Waiting| waiting.at(Stage::Issue).begun && waiting.lacks(Stage::Complete);
        for (number, _) in self.pool.covered(event, in_flight) {
            if let Some(waiting) = self.pool.get_mut(number) {
                waiting.at_mut(Stage::Complete).doubts += 1;
            }
        }
    }

    /// Request `number` is issued, so that it was not this one that completed
    /// before.
    fn vouch(&mut self, number: u64) {
        let vouched = self
            .pool
            .get_mut(number)
            .and_then(|waiting| waiting.vouches_for.take());
        if let Some(other) = vouched.and_then(|other| self.pool.get_mut(other)) {
            let doubts = &mut other.at_mut(Stage::Complete).doubts;
            assert!(*doubts > 0, "a doubt is taken back that nobody had");
            *doubts -= 1;
        }
    }

    fn requeue(&mut self, event: &Event) {
        let in_flight =
            |waiting: &Waiting| waiting.at(Stage::Issue).begun && waiting.lacks(Stage::Complete);
        for (number, _) in self.pool.covered(event, in_flight) {
            let Some(waiting) = self.pool.get_mut(number) else {
                continue;
            };
            waiting.requeued = true;
            let sectors = waiting.row.sectors;
            let issue = waiting.at_mut(Stage::Issue);
            (issue.left, issue.begun) = (sectors, false);
        }
    }

    fn complete(&mut self, event: &Event) {
        let in_flight =
            |waiting: &Waiting| waiting.at(Stage::Issue).begun && waiting.lacks(Stage::Complete);
        let mut covered = self.pool.covered(event, in_flight);
        if covered.is_empty() {
            // Its issue is lost, or there is none: stacked devices have only Q and C.
            covered = self
                .pool
                .covered(event, |waiting| waiting.lacks(Stage::Complete));
        }
        self.strays[1] += u64::from(covered.is_empty());
        for (number, sectors) in covered {
            if self.is_left_behind(number) {
                self.strays[1] += 1;
                continue;
            }
            self.reach(Stage::Complete, number, sectors, event);
        }
    }

    /// `event` takes `sectors` of request `number` through `stage`.
    fn reach(&mut self, stage: Stage, number: u64, sectors: u64, event: &Event) {
        let Some(waiting) = self.pool.get_mut(number) else {
            return;
        };
        let progress = waiting.at_mut(stage);
        let whole = progress.left == sectors && !progress.begun;
        progress.left = progress.left.saturating_sub(sectors);
        let first = !std::mem::replace(&mut progress.begun, true);
        let last = progress.left == 0;
        // A split request is issued with its first part and complete with its last.
        if (stage == Stage::Issue && !first) || (stage == Stage::Complete && !last) {
            return;
        }
        *waiting.time_mut(stage) = Some(event.time);
        self.deal_anew(stage, number, whole);
        if stage == Stage::Complete {
            self.doubt_if_overdue(number, event);
            self.settle(number);
        }
        self.pass(stage, number);
    }

    /// Request `number`, which had been passed, has its event: those that passed
    /// it take the next one's each, so that the oldest has the first.
    fn deal_anew(&mut self, stage: Stage, number: u64, whole: bool) {
        let Some(waiting) = self.pool.get_mut(number) else {
            return;
        };
        let mut passers = std::mem::take(&mut waiting.at_mut(stage).passers);
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
            if whole {
                self.swap(stage, older, passer.number);
                older = passer.number;
            }
        }
    }

    /// Exchanges when two requests reached `stage`.
    fn swap(&mut self, stage: Stage, one: u64, other: u64) {
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

    /// Marks the older requests that `number` passed in reaching `stage`, and
    /// closes those that cannot still be waiting.
    fn pass(&mut self, stage: Stage, number: u64) {
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
            passers.push(Passer { number, doubted });
            doubts += u32::from(doubted);
        }
        if let Some(waiting) = self.pool.get_mut(number) {
            waiting.at_mut(stage).doubts += doubts;
        }
    }

    /// The requests older than `number` for just its sectors that could have had
    /// its event.
    fn older_alike(&self, number: u64, stage: Stage) -> Vec<u64> {
        let Some(passer) = self.pool.get(number) else {
            return Vec::new();
        };
        let issued = |waiting: &Waiting| waiting.at(Stage::Issue).begun;
        let due = |waiting: &Waiting| {
            waiting.lacks(stage) && (stage == Stage::Issue || issued(waiting) == issued(passer))
        };
        let event = event_for(&passer.row);
        let older = self
            .pool
            .alike(&event)
            .filter(|(other, waiting)| *other < number && due(waiting));
        older.map(|(other, _)| other).collect()
    }

    /// Whether `older` cannot have been waiting for `stage` any more when the
    /// request of `row` arrived or was issued.
    fn is_dead(&self, older: u64, stage: Stage, issue_number: u64, row: &Row) -> bool {
        let Some(waiting) = self.pool.get(older) else {
            return false;
        };
        let since = match stage {
            Stage::Issue => waiting.row.arrival,
            Stage::Complete => waiting.row.issued.unwrap_or(waiting.row.arrival),
        };
        let overtaken = issue_number.saturating_sub(waiting.issue_number);
        let by_others = stage == Stage::Complete && overtaken > OVERTAKEN_MAX;
        by_others || row.arrival.saturating_sub(since) > COMMAND_NS_MAX
    }

    /// A completion is doubtful if no command takes so long, or if a younger
    /// request for the same sectors waits whose issue may be lost.
    fn doubt_if_overdue(&mut self, number: u64, event: &Event) {
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
                *other > number && waiting.lacks(Stage::Issue) && row.issued.is_some()
            })
            .map(|(other, _)| other);
        let younger = younger.and_then(|younger| self.pool.get_mut(younger));
        let younger = younger.filter(|younger| younger.vouches_for.is_none());
        let unsure = younger
            .map(|younger| younger.vouches_for = Some(number))
            .is_some();
        if let Some(waiting) = self.pool.get_mut(number) {
            waiting.overtaken = overtaken;
            waiting.at_mut(Stage::Complete).doubts += u32::from(overdue) + u32::from(unsure);
        }
    }

    /// Request `number` is complete: what it made doubtful is so no more.
    fn settle(&mut self, number: u64) {
        self.pool.forget(number);
        let Some(waiting) = self.pool.get_mut(number) else {
            return;
        };
        waiting.done = true;
        let passers = std::mem::take(&mut waiting.at_mut(Stage::Issue).passers);
        for passer in passers.into_iter().filter(|passer| passer.doubted) {
            if let Some(waiting) = self.pool.get_mut(passer.number) {
                waiting.at_mut(Stage::Issue).doubts -= 1;
            }
        }
    }

    /// Whether the trace demonstrably lacks events.
    fn is_lossy(&self) -> bool {
        let lost = self.closed + self.strays[0] + self.strays[1];
        self.known_lossy || lost as f64 > UNKNOWN_SHARE_TOLD * self.pool.arrivals() as f64
    }

    /// Whether a request that was overtaken by so many others is rather not the
    /// one that a completion is of, but a younger one whose queue and issue
    /// events are lost. Where no events are, it is.
    fn is_unlikely(&self, overtaken: u64) -> bool {
        if overtaken <= UNLIKELY_MIN || !self.is_lossy() {
            return false;
        }
        let (mut seen, all) = (0, self.overtaken.iter().sum::<u64>());
        let usual = self.overtaken.iter().position(|count| {
            seen += count;
            seen * 10 >= all * 9
        });
        // Nine in ten are overtaken by fewer than this.
        let usual = usual.map_or(u64::MAX, |bucket| {
            1u64.checked_shl(bucket as u32).unwrap_or(u64::MAX)
        });
        overtaken > usual.saturating_mul(UNLIKELY_FACTOR)
    }

    /// Whether `number`, which younger requests have passed, was left behind so
    /// far that a completion for its sectors is rather of a request whose other
    /// events are lost. It is given up then.
    fn is_left_behind(&mut self, number: u64) -> bool {
        let Some(waiting) = self.pool.get(number) else {
            return false;
        };
        let passed = !waiting.at(Stage::Complete).passers.is_empty();
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

    /// Gives the oldest request.
    fn release(&mut self, rows: &mut Vec<Row>) {
        let Some(waiting) = self.pool.pop() else {
            return;
        };
        let mut row = waiting.row;
        // Dealt out anew, an issue may have come to a request that was complete before.
        let is_late = row
            .issued
            .zip(row.completed)
            .is_some_and(|(issued, completed)| issued > completed);
        if waiting.at(Stage::Issue).doubts > 0 || is_late {
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

/// Whether nothing that follows can change what is known of a request.
fn is_settled(waiting: &Waiting) -> bool {
    waiting.closed || (waiting.done && !waiting.is_doubtful())
}

/// An event for the sectors of `row`, to find requests by.
fn event_for(row: &Row) -> Event {
    Event {
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
mod tests;
