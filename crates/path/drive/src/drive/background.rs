//! Requests for which nobody waits, in what the arm would else wait: free-block scheduling
//! (Lumb, Schindler, Ganger, Nagle & Riedel, *Towards Higher Disk Head Utilization*, OSDI 2000)
//! of writes that hosts have put off, and of what layers do by themselves.
//!
//! They wait beside the queue. Before the arm leaves for one of the others, it serves each of
//! them that lets that one begin on the medium no later. Where nothing else has come for a
//! time they are served as others are, one by one; so they are when they have waited too long,
//! or are too many.

use super::{Drive, Lookup};
use crate::config::{BackgroundConfig, milliseconds};
use crate::electronics::Before;
use crate::mechanics::Head;
use crate::queue::{Choice, Waiting};
use fullstroke_contract::{ConfigError, LayerReadings, Operation, Request};
use fullstroke_units::{Duration, Sectors, Time};
use std::collections::VecDeque;

#[cfg(test)]
mod tests;

/// Those that wait, in the order in which they came, and what became of the others.
pub(super) struct Background {
    most: usize,
    age: Duration,
    idle: Duration,
    margin: Duration,
    waiting: VecDeque<Waiting>,
    /// The last of the others ended then.
    quiet: Time,
    free: Sectors,
    at_idle: Sectors,
    late: Sectors,
}

/// A drive that has a command before it.
#[derive(Clone, Copy)]
struct Ahead {
    /// When the arm is free of the one before.
    free: Time,
    /// When that was prepared.
    prepared: Time,
    head: Head,
    last: Before,
}

/// The least by which instants that are reckoned one from another may differ.
const ROUNDING: Duration = Duration::from_nanos(4);

/// Whether nobody waits for it: a write that was put off, or a layer's own read.
pub(super) fn is_background(request: &Request) -> bool {
    let Request {
        operation,
        hints,
        origin,
        ..
    } = request;
    let own_read =
        *operation == Operation::Read && !hints.synchronous && *origin == Request::BACKGROUND;
    own_read || request.is_put_off() && !hints.force_unit_access
}

impl Background {
    /// Nothing waits.
    ///
    /// # Errors
    /// A margin that is no time, or room for none.
    pub(super) fn new(config: &BackgroundConfig) -> Result<Background, ConfigError> {
        let BackgroundConfig {
            most,
            age,
            idle,
            margin_ms,
        } = *config;
        if most == 0 {
            return Err(ConfigError::new("most", "found 0; expected at least one"));
        }
        Ok(Background {
            most: most as usize,
            age,
            idle,
            margin: milliseconds("margin_ms", margin_ms)?,
            waiting: VecDeque::new(),
            quiet: Time::ZERO,
            free: Sectors::ZERO,
            at_idle: Sectors::ZERO,
            late: Sectors::ZERO,
        })
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Takes one in. Where they are too many, the oldest waits no longer.
    fn keep(&mut self, waiting: Waiting) -> Option<Waiting> {
        self.waiting.push_back(waiting);
        debug_assert!(
            self.waiting.len() <= self.most + 1,
            "{} requests wait where {} may",
            self.waiting.len(),
            self.most
        );
        (self.waiting.len() > self.most)
            .then(|| self.waiting.pop_front())
            .flatten()
    }

    fn take_overdue(&mut self, now: Time) -> Option<Waiting> {
        let overdue = self
            .waiting
            .front()
            .is_some_and(|oldest| oldest.arrived + self.age <= now);
        overdue.then(|| self.waiting.pop_front()).flatten()
    }

    /// Takes out the one in `slot`.
    pub(super) fn remove(&mut self, slot: u32) {
        self.waiting.retain(|waiting| waiting.slot != slot);
    }

    /// One of the others has ended.
    pub(super) fn ended(&mut self, now: Time) {
        assert!(
            now >= self.quiet,
            "a request ends at {now:?}, before the one that ended first, at {:?}",
            self.quiet
        );
        self.quiet = now;
    }

    /// What was served, and how.
    pub(super) fn readings(&self) -> LayerReadings {
        let megabytes = |sectors: Sectors| sectors.bytes().0 as f64 / 1e6;
        LayerReadings::new(
            "background requests",
            &[
                ("background_free_mb", megabytes(self.free)),
                ("background_idle_mb", megabytes(self.at_idle)),
                ("background_late_mb", megabytes(self.late)),
            ],
        )
    }
}

impl Drive {
    /// Puts a request where it waits: under the discipline, or beside it.
    pub(super) fn insert(&mut self, slot: u32, now: Time) {
        let waiting = self.waiting(slot, now);
        let request = &self.slots[slot].request;
        let background = self.background.as_mut().filter(|_| is_background(request));
        let Some(background) = background else {
            return self.queue.insert(waiting);
        };
        if let Some(oldest) = background.keep(waiting) {
            background.late += self.slots[oldest.slot].request.extent.sectors;
            self.queue.insert(oldest);
        }
    }

    /// Those whose time has come are served as others are.
    pub(super) fn let_background_in(&mut self, now: Time) {
        let Some(background) = &mut self.background else {
            return;
        };
        while let Some(overdue) = background.take_overdue(now) {
            background.late += self.slots[overdue.slot].request.extent.sectors;
            self.queue.insert(overdue);
        }
        if self.background_due() > now || !self.of_all.is_empty() {
            return;
        }
        let ahead = self.ahead(now);
        let nearest = self.least_of_background(|waiting| Some(self.foresee(&ahead, waiting).1));
        if let (Some(at), Some(background)) = (nearest, &mut self.background)
            && let Some(nearest) = background.waiting.remove(at)
        {
            background.at_idle += self.slots[nearest.slot].request.extent.sectors;
            self.queue.insert(nearest);
        }
    }

    /// When one of them is served though nothing ends then: nothing else has come for a time.
    pub(super) fn background_due(&self) -> Time {
        let waits = |background: &&Background| {
            !background.waiting.is_empty() && self.service.is_none() && self.queue.is_empty()
        };
        let background = self.background.as_ref().filter(waits);
        background.map_or(Time::NEVER, |background| background.quiet + background.idle)
    }

    /// One of them that costs `choice` nothing, which the arm would leave for at `now`: the
    /// one that ends first. What the buffer answers needs no arm.
    pub(super) fn ride(&mut self, now: Time, choice: &Choice) -> Option<Waiting> {
        let margin = self
            .background
            .as_ref()
            .filter(|background| background.len() > 0)?
            .margin;
        let Choice { waiting: next, via } = choice;
        let extent = self.slots[next.slot].request.extent;
        let answered = !next.write && !matches!(self.look_up(extent, now), Lookup::Miss);
        if answered || via.is_some() || self.arm.rests() {
            return None;
        }
        let ahead = self.ahead(now);
        let (_, alone) = self.foresee(&ahead, next);
        let at = self.least_of_background(|waiting| {
            let (after, end) = self.foresee(&ahead, waiting);
            let after = Ahead {
                free: after.free + margin,
                ..after
            };
            (self.foresee(&after, next).1 <= alone + ROUNDING).then_some(end)
        })?;
        let background = self.background.as_mut()?;
        let ride = background.waiting.remove(at)?;
        background.free += self.slots[ride.slot].request.extent.sectors;
        Some(ride)
    }

    /// The one of which `end` is least, of those that have one.
    fn least_of_background(&self, end: impl Fn(&Waiting) -> Option<Time>) -> Option<usize> {
        let waiting = &self.background.as_ref()?.waiting;
        let ends = waiting
            .iter()
            .enumerate()
            .filter_map(|(at, waiting)| Some((end(waiting)?, at)));
        ends.min().map(|(_, at)| at)
    }

    /// The drive as it is at `now`.
    fn ahead(&self, now: Time) -> Ahead {
        let (free, last) = (self.arm.free_from(now), self.last.kind);
        Ahead {
            free,
            prepared: self.prepared,
            head: self.arm.head(),
            last,
        }
    }

    /// How a request on the medium leaves the drive, and when it ends on the medium.
    fn foresee(&self, ahead: &Ahead, waiting: &Waiting) -> (Ahead, Time) {
        let (mechanics, electronics) = (self.arm.mechanics(), &self.electronics);
        let extent = self.slots[waiting.slot].request.extent;
        let mut head = ahead.head;
        let position = &waiting.position;
        if !waiting.write {
            let overhead = electronics.read_miss(ahead.last, head.is_on(position));
            let (prepared, moves) =
                self.prepared(ahead.prepared, waiting.arrived, ahead.free, overhead);
            let mut bus = self.bus(extent.sectors);
            let passed = |piece| bus.passed(piece);
            let end = moves
                + mechanics
                    .access_fed(&mut head, moves, extent, position, false, None, passed)
                    .duration();
            let free = bus.end.max(end) + electronics.read_completion;
            return (
                Ahead {
                    free,
                    prepared,
                    head,
                    last: Before::Read,
                },
                end,
            );
        }
        let (overhead, data) = electronics.write_miss(ahead.last);
        let (prepared, moves) =
            self.prepared(ahead.prepared, waiting.arrived, ahead.free, overhead);
        let feed = Some(self.feed(moves, overhead, data, extent));
        let end = moves
            + mechanics
                .access_fed(&mut head, moves, extent, position, true, feed, |_| {})
                .duration();
        let free = end + electronics.write_reselect + electronics.write_completion;
        (
            Ahead {
                free,
                prepared,
                head,
                last: Before::Write,
            },
            end,
        )
    }
}
