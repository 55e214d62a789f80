//! Background requests, served in the rotational latency of other requests. This is free-block
//! scheduling (Lumb, Schindler, Ganger, Nagle & Riedel, *Towards Higher Disk Head Utilization*,
//! OSDI 2000) for writes that hosts have put off, and for the layers' own work.
//!
//! Background requests wait beside the queue. Before the arm leaves for a foreground request, the
//! drive serves each background request that does not delay the foreground request on the medium.
//! If no foreground request has come for a time, background requests are served one by one. A
//! background request that is too old, or one too many, becomes a normal request.

use super::{Drive, Lookup};
use crate::config::{BackgroundConfig, milliseconds};
use crate::electronics::PreviousKind;
use crate::mechanics::HeadPosition;
use crate::queue::{NextRequest, WaitingRequest};
use fullstroke_contract::{ConfigError, LayerReadings, Operation, Request};
use fullstroke_units::{Duration, Sectors, Time};
use std::collections::VecDeque;

#[cfg(test)]
mod tests;

/// The waiting background requests in order of arrival, and counters of the served ones.
pub(super) struct Background {
    most: usize,
    age: Duration,
    idle: Duration,
    margin: Duration,
    waiting: VecDeque<WaitingRequest>,
    /// End of the last foreground request.
    quiet: Time,
    free: Sectors,
    at_idle: Sectors,
    late: Sectors,
}

/// State of a drive before the next command.
#[derive(Clone, Copy)]
struct DriveOutlook {
    /// Time when the arm is free of the previous command.
    free: Time,
    /// Time when the previous command was prepared.
    prepared: Time,
    head: HeadPosition,
    last: PreviousKind,
}

/// Largest rounding error between two instants computed from each other.
const ROUNDING: Duration = Duration::from_nanos(4);

/// True for a background request: a put-off write, or a read of a layer's own.
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
    /// Creates an empty store.
    ///
    /// # Errors
    /// Fails if the margin is no valid time or `most` is 0.
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

    /// Adds a request. If too many requests wait, returns the oldest.
    fn keep(&mut self, waiting: WaitingRequest) -> Option<WaitingRequest> {
        self.waiting.push_back(waiting);
        debug_assert!(
            self.waiting.len() <= self.most + 1,
            "{} requests wait where {} may",
            self.waiting.len(),
            self.most
        );
        // The oldest request leaves, because it has waited longest for free time.
        (self.waiting.len() > self.most)
            .then(|| self.waiting.pop_front())
            .flatten()
    }

    fn take_overdue(&mut self, now: Time) -> Option<WaitingRequest> {
        let overdue = self
            .waiting
            .front()
            .is_some_and(|oldest| oldest.arrived + self.age <= now);
        overdue.then(|| self.waiting.pop_front()).flatten()
    }

    /// Removes the request in `slot`.
    pub(super) fn remove(&mut self, slot: u32) {
        self.waiting.retain(|waiting| waiting.slot != slot);
    }

    /// Records the end of a foreground request.
    pub(super) fn ended(&mut self, now: Time) {
        assert!(
            now >= self.quiet,
            "a request ends at {now:?}, before the one that ended first, at {:?}",
            self.quiet
        );
        self.quiet = now;
    }

    /// Returns the amount of served data by kind of service.
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
    /// Adds a request to the discipline, or to the background requests.
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

    /// Moves due background requests to the queue.
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

    /// Due time of a background request, because no foreground request has come for the idle time.
    pub(super) fn background_due(&self) -> Time {
        let waits = |background: &&Background| {
            !background.waiting.is_empty() && self.service.is_none() && self.queue.is_empty()
        };
        let background = self.background.as_ref().filter(waits);
        background.map_or(Time::NEVER, |background| background.quiet + background.idle)
    }

    /// Returns a background request that does not delay `choice`, if the arm leaves at `now`. Of
    /// several, returns the request that ends first. A choice that the buffer answers needs no arm.
    pub(super) fn request_on_the_way(
        &mut self,
        now: Time,
        choice: &NextRequest,
    ) -> Option<WaitingRequest> {
        let margin = self
            .background
            .as_ref()
            .filter(|background| background.len() > 0)?
            .margin;
        let NextRequest { waiting: next, via } = choice;
        let extent = self.slots[next.slot].request.extent;
        let answered = !next.write && !matches!(self.look_up(extent, now), Lookup::Miss);
        // Standing platters, a detour and a hit in the buffer leave no rotational latency to use.
        if answered || via.is_some() || self.arm.is_stopped() {
            return None;
        }
        let ahead = self.ahead(now);
        let (_, alone) = self.foresee(&ahead, next);
        let at = self.least_of_background(|waiting| {
            let (after, end) = self.foresee(&ahead, waiting);
            let after = DriveOutlook {
                free: after.free + margin,
                ..after
            };
            // The chosen request must not end later than without the background request.
            (self.foresee(&after, next).1 <= alone + ROUNDING).then_some(end)
        })?;
        let background = self.background.as_mut()?;
        let ride = background.waiting.remove(at)?;
        background.free += self.slots[ride.slot].request.extent.sectors;
        Some(ride)
    }

    /// Returns the index of the request with the earliest `end`, among the requests with an end.
    fn least_of_background(&self, end: impl Fn(&WaitingRequest) -> Option<Time>) -> Option<usize> {
        let waiting = &self.background.as_ref()?.waiting;
        let ends = waiting
            .iter()
            .enumerate()
            .filter_map(|(at, waiting)| Some((end(waiting)?, at)));
        ends.min().map(|(_, at)| at)
    }

    /// Returns the state of the drive at `now`.
    fn ahead(&self, now: Time) -> DriveOutlook {
        let (free, last) = (self.arm.free_from(now), self.last.kind);
        DriveOutlook {
            free,
            prepared: self.prepared,
            head: self.arm.head(),
            last,
        }
    }

    /// Predicts the state of the drive after a request on the medium, and the end of the request on
    /// the medium.
    fn foresee(&self, ahead: &DriveOutlook, waiting: &WaitingRequest) -> (DriveOutlook, Time) {
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
                DriveOutlook {
                    free,
                    prepared,
                    head,
                    last: PreviousKind::Read,
                },
                end,
            );
        }
        let (overhead, data) = electronics.write_miss(ahead.last);
        let (prepared, moves) =
            self.prepared(ahead.prepared, waiting.arrived, ahead.free, overhead);
        let feed = Some(self.bus_arrivals(moves, overhead, data, extent));
        let end = moves
            + mechanics
                .access_fed(&mut head, moves, extent, position, true, feed, |_| {})
                .duration();
        let free = end + electronics.write_reselect + electronics.write_completion;
        (
            DriveOutlook {
                free,
                prepared,
                head,
                last: PreviousKind::Write,
            },
            end,
        )
    }
}
