//! The drive's queue: a discipline, and two rules with precedence over the discipline.

use super::{ArmView, Discipline, NextRequest, WaitingRequest};
use fullstroke_units::{Duration, Lbn, Time};
use std::collections::VecDeque;

/// The waiting requests inside the drive.
///
/// Requests are taken in this order of precedence:
///
/// 0. a request that a host has hurried;
/// 1. a request that has waited longer than the age limit, the oldest first;
/// 2. a continuation of the last transfer, if `concatenate` is set;
/// 3. the discipline's choice.
pub struct CommandQueue {
    discipline: Box<dyn Discipline>,
    /// Number of waiting requests, because the drive asks several times at each event.
    len: usize,
    age_limit: Option<Duration>,
    concatenate: bool,
    /// A choice that was taken and put back, because another request goes first.
    first: Option<NextRequest>,
    /// Requests that a host has hurried, in order.
    hurried: VecDeque<WaitingRequest>,
    /// Waiting requests in order of arrival; kept only if one of the two rules needs the order.
    arrivals: VecDeque<QueuedCommand>,
    /// True if the last served request was a write.
    last_write: bool,
}

#[derive(Clone, Copy)]
struct QueuedCommand {
    slot: u32,
    arrived: Time,
    lbn: Lbn,
    write: bool,
}

impl CommandQueue {
    pub(super) fn new(
        discipline: Box<dyn Discipline>,
        age_limit: Option<Duration>,
        concatenate: bool,
    ) -> CommandQueue {
        CommandQueue {
            discipline,
            len: 0,
            age_limit,
            concatenate,
            first: None,
            hurried: VecDeque::new(),
            arrivals: VecDeque::new(),
            last_write: false,
        }
    }

    /// Number of waiting requests.
    #[inline]
    pub fn len(&self) -> usize {
        debug_assert_eq!(
            self.len,
            self.discipline.len() + usize::from(self.first.is_some()) + self.hurried.len(),
            "requests in the queue are miscounted"
        );
        self.len
    }

    /// True if no request waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True if no request waits for longer than a limit and the older requests.
    pub fn has_age_limit(&self) -> bool {
        self.age_limit.is_some()
    }

    /// True if the oldest request has waited longer than the age limit by `now`, or if a request has
    /// been hurried.
    pub fn is_overdue(&self, now: Time) -> bool {
        self.overdue(now).is_some() || !self.hurried.is_empty()
    }

    /// Serves the request in `slot` before all other requests, behind requests that were hurried
    /// before. Returns false if no such request waits.
    pub fn hurry(&mut self, slot: u32) -> bool {
        if self.hurried.iter().any(|hurried| hurried.slot == slot) {
            return false;
        }
        let last_write = self.last_write;
        let Some(waiting) = self.remove(slot) else {
            return false;
        };
        self.last_write = last_write;
        self.hurried.push_back(waiting);
        self.len += 1;
        true
    }

    fn overdue(&self, now: Time) -> Option<&QueuedCommand> {
        let limit = self.age_limit?;
        let oldest = self.arrivals.front()?;
        (now.saturating_since(oldest.arrived) > limit).then_some(oldest)
    }

    /// Adds a request.
    pub fn insert(&mut self, waiting: WaitingRequest) {
        if self.age_limit.is_some() || self.concatenate {
            let WaitingRequest {
                slot,
                arrived,
                lbn,
                write,
                ..
            } = waiting;
            self.arrivals.push_back(QueuedCommand {
                slot,
                arrived,
                lbn,
                write,
            });
        }
        self.discipline.insert(waiting);
        self.len += 1;
    }

    /// Removes and returns the next request.
    pub fn take(&mut self, arm: ArmView<'_>) -> Option<NextRequest> {
        if let Some(first) = self.first.take() {
            self.len -= 1;
            return Some(first);
        }
        if let Some(waiting) = self.hurried.pop_front() {
            self.len -= 1;
            self.last_write = waiting.write;
            return Some(NextRequest::direct(waiting));
        }
        let choice = match self.out_of_turn(&arm) {
            Some(slot) => self.discipline.remove(slot).map(NextRequest::direct),
            None => self.discipline.take(arm),
        };
        if let Some(NextRequest { waiting, .. }) = &choice {
            self.len -= 1;
            self.last_write = waiting.write;
            self.forget_arrival(waiting.slot);
        }
        choice
    }

    /// Takes the request in `slot` out of the arrivals, if they are kept.
    fn forget_arrival(&mut self, slot: u32) {
        // Most queues take old requests first, so the search is short.
        let place = self
            .arrivals
            .iter()
            .position(|arrival| arrival.slot == slot);
        if let Some(place) = place {
            self.arrivals.remove(place);
        }
    }

    /// Puts a taken choice back as the next request, regardless of later arrivals. The drive calls
    /// this to serve a background request that does not delay the choice.
    pub fn put_first(&mut self, choice: NextRequest) {
        self.len += 1;
        self.first = Some(choice);
    }

    /// Removes the request in `slot`, because the drive serves the request out of turn.
    pub fn remove(&mut self, slot: u32) -> Option<WaitingRequest> {
        if let Some(first) = self.first.take_if(|first| first.waiting.slot == slot) {
            self.len -= 1;
            return Some(first.waiting);
        }
        let hurried = self.hurried.iter().position(|other| other.slot == slot);
        let waiting = match hurried.and_then(|at| self.hurried.remove(at)) {
            Some(waiting) => waiting,
            None => self.discipline.remove(slot)?,
        };
        self.len -= 1;
        self.last_write = waiting.write;
        self.forget_arrival(slot);
        Some(waiting)
    }

    /// Returns the slot of a request that one of the two rules prefers.
    fn out_of_turn(&self, arm: &ArmView<'_>) -> Option<u32> {
        let overdue = self.overdue(arm.now);
        let follower = || {
            let follows = |arrival: &&QueuedCommand| {
                arrival.lbn == arm.next_lbn && arrival.write == self.last_write
            };
            self.arrivals
                .iter()
                .find(follows)
                .filter(|_| self.concatenate)
        };
        // Age goes before concatenation, or a long stream could starve the oldest command.
        overdue.or_else(follower).map(|arrival| arrival.slot)
    }
}

#[cfg(test)]
mod tests {
    use super::super::QueueConfig;
    use super::super::tests::{arm, waiting};
    use super::*;
    use crate::config::tests::small_drive;
    use crate::mechanics::Mechanics;

    fn order(config: &str, requests: &[(u64, u64)], now_ms: u64) -> Vec<u64> {
        let mechanics = Mechanics::new(&small_drive()).unwrap();
        let config: QueueConfig = serde_json::from_str(config).unwrap();
        let mut queue = config.build().unwrap();
        for (slot, &(arrived_ms, lbn)) in requests.iter().enumerate() {
            let arrived = Time::from_nanos(arrived_ms * 1_000_000);
            queue.insert(WaitingRequest {
                arrived,
                ..waiting(&mechanics, slot as u32, lbn, false)
            });
        }
        let (mut at, mut served) = (0, Vec::new());
        while let Some(NextRequest { waiting, .. }) =
            queue.take(arm(&mechanics, at, now_ms * 1_000_000))
        {
            served.push(waiting.lbn.0);
            at = waiting.lbn.0 + 1;
        }
        served
    }

    #[test]
    fn a_request_beyond_the_age_limit_goes_first() {
        let requests = [(0, 1300), (90, 10), (95, 20)];
        let plain = r#"{"discipline": "sstf", "by": "lbn"}"#;
        let aged = r#"{"discipline": "sstf", "by": "lbn", "age_limit": "50ms"}"#;
        assert_eq!(order(plain, &requests, 100), [10, 20, 1300]);
        assert_eq!(order(aged, &requests, 100), [1300, 20, 10]);
    }

    #[test]
    fn a_request_that_goes_on_is_served_next_where_configured() {
        let requests = [(0, 500), (0, 10), (0, 501)];
        assert_eq!(
            order(r#"{"discipline": "fcfs"}"#, &requests, 0),
            [500, 10, 501]
        );
        assert_eq!(
            order(
                r#"{"discipline": "fcfs", "concatenate": true}"#,
                &requests,
                0
            ),
            [500, 501, 10]
        );
    }
}
