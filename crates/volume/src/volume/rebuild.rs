//! Which members are to be rebuilt, in which order, and when the next unit may
//! begin.

use fullstroke_units::{Bytes, Duration, Sectors, Time};
use std::collections::VecDeque;

/// How much of a member is filled in one unit: long enough that the arms read
/// and write more than they seek, short enough that requests which need the
/// same rows do not wait long.
pub(super) const UNIT: Sectors = Sectors(2048);

/// The rebuilds of a volume: one unit at a time, one member after the other, in
/// the order in which they were restored.
#[derive(Debug, Default)]
pub(super) struct Rebuilds {
    queue: VecDeque<Job>,
    /// The unit that is under way.
    unit: Option<Unit>,
    /// Since when nothing but the rate holds the next unit up.
    ready: Time,
    /// Requests in flight that were planned before the latest restore. Their
    /// writes do not know of the member, nor of the rows that its rebuild
    /// needs: a unit waits for them.
    older: u32,
    /// Whether units wait for an operator, because data was lost.
    pub(super) halted: bool,
}

/// A member that is to be filled.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job {
    pub(super) member: usize,
    pub(super) done: Sectors,
    rate: Option<Bytes>,
    /// The earliest instant of the next unit, by the rate.
    due: Time,
}

/// A unit under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unit {
    pub(super) member: usize,
    /// How far the member is filled when it ends.
    pub(super) end: Sectors,
    /// How often states had changed when it was planned.
    pub(super) changes: u64,
    /// Whether the member still is what the unit fills.
    pub(super) counts: bool,
}

impl Rebuilds {
    /// Adds `member`, which is empty at `now`, while `in_flight` requests are.
    pub(super) fn add(&mut self, now: Time, member: usize, rate: Option<Bytes>, in_flight: u32) {
        self.queue.push_back(Job { member, done: Sectors::ZERO, rate, due: now });
        self.older = in_flight;
        self.ready = self.ready.max(now);
    }

    /// Rebuilds `member` no longer.
    pub(super) fn forget(&mut self, member: usize) {
        self.queue.retain(|job| job.member != member);
        if let Some(unit) = &mut self.unit
            && unit.member == member
        {
            unit.counts = false;
        }
    }

    /// When the next unit is to begin; never, if something else must happen
    /// before.
    #[inline]
    pub(super) fn next_unit(&self) -> Time {
        match self.queue.front() {
            Some(job) if self.unit.is_none() && self.older == 0 && !self.halted => job.due.max(self.ready),
            _ => Time::NEVER,
        }
    }

    /// The member whose turn it is.
    pub(super) fn job(&self) -> Option<Job> {
        self.queue.front().copied()
    }

    /// Notes that a unit of the first job begins at `now`. The one behind it
    /// begins no earlier than the rate allows.
    pub(super) fn begin(&mut self, now: Time, unit: Unit) {
        if let Some(job) = self.queue.front_mut() {
            job.due = now + duration(unit.end - job.done, job.rate);
        }
        self.unit = Some(unit);
    }

    /// Takes out the unit that has ended at `now`.
    pub(super) fn end(&mut self, now: Time) -> Option<Unit> {
        self.ready = self.ready.max(now);
        self.unit.take()
    }

    /// The unit that is under way.
    pub(super) fn unit(&self) -> Option<Unit> {
        self.unit
    }

    /// Notes that the first job is done up to `done`, or all.
    pub(super) fn advance(&mut self, done: Sectors, whole: bool) {
        if whole {
            self.queue.pop_front();
        } else if let Some(job) = self.queue.front_mut() {
            job.done = done;
        }
    }

    /// Notes the end of a request that was planned before the latest restore.
    pub(super) fn older_ended(&mut self, now: Time) {
        self.older -= 1;
        self.ready = self.ready.max(now);
    }
}

/// How long `sectors` take at `rate` bytes a second, rounded up.
fn duration(sectors: Sectors, rate: Option<Bytes>) -> Duration {
    let Some(rate) = rate else { return Duration::ZERO };
    let nanoseconds = (u128::from(sectors.bytes().0) * 1_000_000_000).div_ceil(u128::from(rate.0.max(1)));
    Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
}
