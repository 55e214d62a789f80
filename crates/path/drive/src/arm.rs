//! The arm of a drive: position of the heads, rotation of the medium, end of the current work, and
//! totals of the work done.
//!
//! Every movement of the heads goes through the arm: requests, read-ahead and destaging. Therefore
//! the busy time is exact for all kinds of work.

use crate::geometry::Position;
use crate::mechanics::{AccessTimes, BusArrival, HeadPosition, Mechanics, SectorPassage};
use crate::physical::SectorSizes;
use crate::power::{ArmPower, Meter, StoppedPlatters, Unloading};
use fullstroke_contract::{Extent, PowerState, PowerStatistics};
use fullstroke_units::{Angle, Cylinder, Duration, Time};
use std::collections::VecDeque;
use std::sync::Arc;

/// An arm with the work done so far.
#[derive(Clone, Debug)]
pub(crate) struct DriveArm {
    mechanics: Arc<Mechanics>,
    /// Sizes of the sectors, for writes that cover a part of a physical sector.
    sizes: SectorSizes,
    head: HeadPosition,
    /// End of the arm's current work on the medium.
    free: Time,
    work: ArmTotals,
    /// Time up to which `work.busy` counts.
    counted: Time,
    /// Busy intervals, in order, from begin to end, that reach into the future. Work is counted
    /// when the arm plans the work.
    planned: VecDeque<(Time, Time)>,
    /// Standing platters. `None` while the platters turn.
    rest: Option<Standstill>,
    spin_up: Duration,
    /// Idle states with unloaded heads. `None` if the drive never unloads the heads.
    unloading: Option<Unloading>,
    /// Time when unloaded heads are back on the medium, once a request needs the heads.
    back: Option<Time>,
    /// Energy meter. `None` if the watts are not known.
    meter: Option<Box<Meter>>,
    /// Time when the platters last reached full speed, until a notice goes out.
    turned: Option<Time>,
    /// Time when the platters last began to start.
    wanted: Time,
}

/// Platters that stand still.
#[derive(Clone, Copy, Debug)]
struct Standstill {
    since: Time,
    /// Angle under the heads while the platters stand.
    angle: Angle,
    /// Time when the platters turn again. `None` while no request needs the platters.
    ready: Option<Time>,
}

/// Work of an arm since time 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ArmTotals {
    /// Busy time: command overheads before the arm moves, seek, rotation and transfer.
    pub(crate) busy: Duration,
    /// Time of movement, head switches and settling.
    pub(crate) seek: Duration,
    /// Rotational latency.
    pub(crate) rotation: Duration,
    /// Time in which sectors pass under the heads.
    pub(crate) transfer: Duration,
}

impl DriveArm {
    /// Creates an arm at rest at time 0, with the heads at cylinder 0, surface 0.
    pub(crate) fn new(
        mechanics: &Arc<Mechanics>,
        sizes: SectorSizes,
        phase: Angle,
        power: &ArmPower,
    ) -> DriveArm {
        DriveArm {
            sizes,
            rest: None,
            spin_up: power.spin_up,
            unloading: power.unloading,
            back: None,
            meter: Meter::new(power).map(Box::new),
            turned: None,
            wanted: Time::ZERO,
            mechanics: Arc::clone(mechanics),
            head: HeadPosition {
                phase,
                ..HeadPosition::default()
            },
            free: Time::ZERO,
            work: ArmTotals::default(),
            counted: Time::ZERO,
            planned: VecDeque::with_capacity(4),
        }
    }

    /// Returns the moving parts.
    #[inline]
    pub(crate) fn mechanics(&self) -> &Mechanics {
        &self.mechanics
    }

    /// Sizes of the sectors.
    pub(crate) fn sizes(&self) -> SectorSizes {
        self.sizes
    }

    /// Returns the position of the heads.
    #[inline]
    pub(crate) fn head(&self) -> HeadPosition {
        self.head
    }

    /// Returns when the arm can leave the medium for a request of time `now`. Spin-up and loading
    /// of the heads are included.
    #[inline]
    pub(crate) fn free_from(&self, now: Time) -> Time {
        let free = self.free.max(now);
        match &self.rest {
            None if self.unloading.is_none() => free,
            None => self.loaded_from(free),
            Some(Standstill {
                ready: Some(ready), ..
            }) => free.max(*ready),
            Some(Standstill { since, .. }) => free.max(*since) + self.spin_up,
        }
    }

    /// Does the same as [`free_from`](DriveArm::free_from) for a request that needs the arm now.
    /// Standing platters start, and unloaded heads come back.
    #[inline]
    pub(crate) fn needed(&mut self, now: Time) -> Time {
        if self.is_away() {
            self.start(now);
        }
        self.free_from(now)
    }

    /// Returns when the heads are on the medium, if work needs the heads from `from` on.
    #[inline(never)]
    fn loaded_from(&self, from: Time) -> Time {
        match (self.back, self.unloading) {
            (Some(back), _) => from.max(back),
            (None, Some(unloading)) => from + unloading.wake(from.saturating_since(self.counted)),
            (None, None) => from,
        }
    }

    /// True if platters or heads may have to come back before the next access.
    #[inline]
    pub(crate) fn is_away(&self) -> bool {
        self.rest.is_some() || self.unloading.is_some()
    }

    /// True if the arm counts energy, or unloads idle heads.
    #[inline]
    pub(crate) fn has_idle_states(&self) -> bool {
        self.meter.is_some() || self.unloading.is_some()
    }

    /// True if the platters do not turn.
    pub(crate) fn is_stopped(&self) -> bool {
        self.rest.is_some()
    }

    /// Stops the platters. The platters turn until `last` and stand from `since` on.
    pub(crate) fn stop(&mut self, last: Time, since: Time) {
        assert!(
            self.rest.is_none() && last <= since,
            "platters that turn until {last:?} stand from {since:?}, or stand already"
        );
        // Platters keep their angle while they stand. The phase after the start follows from the
        // angle.
        let angle = self.mechanics.spindle().angle_at(last) + self.head.phase;
        self.rest = Some(Standstill {
            since,
            angle,
            ready: None,
        });
        self.back = None;
        // No access may begin before the platters have stopped.
        self.keep_until(since);
        if let Some(meter) = &mut self.meter {
            meter.state(PowerState::SpinDown, last, since);
        }
    }

    /// Starts standing platters and loads unloaded heads, because work needs them from `now` on.
    pub(crate) fn start(&mut self, now: Time) {
        let ready = self.free_from(now);
        match &mut self.rest {
            // A start in progress keeps its end: a second command does not begin the start anew.
            Some(rest) => _ = rest.ready.get_or_insert(ready),
            None if self.unloading.is_some() => _ = self.back.get_or_insert(ready),
            None => {}
        }
    }

    /// Ends the standstill of platters that have started for work at `now` or earlier. The platters
    /// turn on from the angle at which they stood.
    pub(crate) fn turn(&mut self, now: Time) {
        let Some(Standstill {
            since,
            angle,
            ready,
        }) = self.rest.take()
        else {
            return;
        };
        let ready = ready.unwrap_or(now);
        assert!(
            since <= ready && ready <= now,
            "platters that stood from {since:?} turn at {ready:?} for what begins at {now:?}"
        );
        // The spindle's clock ran on while the platters stood, so the phase moves back by that
        // angle.
        self.head.phase = angle - self.mechanics.spindle().angle_at(ready);
        self.turned = Some(ready);
        self.wanted = started(ready, self.spin_up);
        self.keep_until(ready);
        if let Some(meter) = &mut self.meter {
            let starts = started(ready, self.spin_up);
            meter.state(PowerState::Standby, since, starts);
            meter.state(PowerState::SpinUp, starts, ready);
        }
    }

    /// Returns the time since which the platters turn again, if that time has come by `now`.
    /// Returns each start once.
    pub(crate) fn take_turned(&mut self, now: Time) -> Option<Time> {
        self.turned.take_if(|at| *at <= now)
    }

    /// True if [`take_turned`](DriveArm::take_turned) has a start to return, now or later.
    #[inline]
    pub(crate) fn has_turned(&self) -> bool {
        self.turned.is_some()
    }

    /// Returns when the platters last began to start.
    pub(crate) fn turns_since(&self) -> Time {
        self.wanted
    }

    /// Returns the work done, including all planned work.
    pub(crate) fn work(&self) -> ArmTotals {
        self.work
    }

    /// Returns the busy time until `now`. `now` must not lie before the last event. `ahead` is an
    /// interval of read-ahead that `work` does not include yet.
    pub(crate) fn busy(&self, now: Time, ahead: Option<(Time, Time)>) -> Duration {
        // `busy` was added when each access was planned. The part after now has not happened yet.
        let left = self
            .planned
            .iter()
            .map(|&(begin, end)| end.saturating_since(begin.max(now)));
        let read = ahead.map_or(Duration::ZERO, |(begin, end)| {
            end.min(now).saturating_since(begin.max(self.counted))
        });
        let left: Duration = left.sum();
        assert!(
            left <= self.work.busy,
            "{left} of work lie ahead, and {} were counted",
            self.work.busy
        );
        self.work.busy - left + read
    }

    /// Keeps the arm with the medium until `end`.
    pub(crate) fn keep_until(&mut self, end: Time) {
        self.free = self.free.max(end);
    }

    /// Occupies the arm with a command from `begin` to `end`. Overlapping time counts once. While
    /// the platters stand, a command costs the electronics time but the arm no energy.
    #[inline]
    pub(crate) fn take(&mut self, begin: Time, end: Time) {
        self.count(begin, end);
        if self.meter.is_some() {
            self.meter_command(begin, end);
        }
    }

    #[inline(never)]
    fn meter_command(&mut self, begin: Time, end: Time) {
        if self
            .rest
            .is_some_and(|rest| rest.ready.is_some_and(|ready| ready <= begin))
        {
            self.turn(begin);
        }
        if let Some(meter) = self.meter.as_mut().filter(|_| self.rest.is_none()) {
            meter.taken(begin, end);
        }
    }

    /// Adds the interval from `begin` to `end` to the busy time.
    #[inline]
    fn count(&mut self, begin: Time, end: Time) {
        // Overhead of a command may overlap the end of read-ahead. Overlapping time counts once.
        let begin = begin.max(self.counted);
        if end > begin {
            debug_assert!(
                self.planned.back().is_none_or(|&(_, last)| last <= begin),
                "what the arm does from {begin:?} on overlaps with what is planned"
            );
            self.work.busy += end.since(begin);
            self.counted = end;
            match self.planned.back_mut() {
                // Adjacent times become one entry, so the list stays short.
                Some((_, last)) if *last == begin => *last = end,
                _ => self.planned.push_back((begin, end)),
            }
        }
        // The arm has work, so the heads are back on the medium from now on.
        self.back = None;
    }

    /// Adds read-ahead from `begin` to `end` to the busy time, because the read-ahead is given up.
    pub(crate) fn counts_read_ahead(&mut self, begin: Time, end: Time) {
        let back = self.back;
        self.count(begin, end);
        self.back = back;
    }

    /// Books read-ahead in the energy meter. `work` counts whole sectors only.
    #[inline]
    pub(crate) fn meter_ahead(&mut self, state: PowerState, begin: Time, end: Time) {
        if let Some(meter) = &mut self.meter {
            meter.state(state, begin, end);
        }
    }

    /// Returns the energy until `now`. `None` if the watts are not known. `ahead` books the current
    /// read-ahead.
    pub(crate) fn power(
        &self,
        now: Time,
        ahead: impl FnOnce(&mut Meter),
    ) -> Option<PowerStatistics> {
        let stand = self.rest.map(|Standstill { ready, .. }| {
            let ready = ready.unwrap_or(Time::NEVER);
            StoppedPlatters {
                starts: started(ready, self.spin_up),
                ready,
            }
        });
        let mut meter = Meter::clone(self.meter.as_ref()?);
        ahead(&mut meter);
        Some(meter.reading(now, stand))
    }

    /// Drops planned intervals ending by `now`.
    #[inline]
    pub(crate) fn passed(&mut self, now: Time) {
        while self.planned.front().is_some_and(|&(_, end)| end <= now) {
            self.planned.pop_front();
        }
        if let Some(meter) = &mut self.meter {
            meter.passed(now);
        }
    }

    /// Carries out an access from `now` on.
    #[inline]
    pub(crate) fn access(
        &mut self,
        now: Time,
        extent: Extent,
        position: &Position,
        write: bool,
    ) -> AccessTimes {
        self.access_fed(now, extent, position, write, None, |_| {})
    }

    /// Carries out an access as [`Mechanics::access_fed`] does, and counts the work.
    #[inline]
    pub(crate) fn access_fed(
        &mut self,
        now: Time,
        extent: Extent,
        position: &Position,
        write: bool,
        feed: Option<BusArrival>,
        passed: impl FnMut(SectorPassage),
    ) -> AccessTimes {
        // Platters that have started turn from here on, with the angle at which they stood.
        self.turn(now);
        let access =
            self.mechanics
                .access_fed(&mut self.head, now, extent, position, write, feed, passed);
        self.work.seek += access.seek;
        self.work.rotation += access.rotation;
        self.work.transfer += access.transfer;
        self.count(now, now + access.duration());
        if let Some(meter) = &mut self.meter {
            meter.accessed(now, &access, write);
        }
        access
    }

    /// Moves the arm to `cylinder` without a transfer and returns the time for the movement.
    pub(crate) fn visit(&mut self, cylinder: Cylinder) -> Duration {
        debug_assert!(
            cylinder.0 < self.mechanics.geometry().cylinders(),
            "{cylinder:?} lies beyond the innermost cylinder"
        );
        let time = self
            .mechanics
            .seek(self.head, cylinder, self.head.surface, false);
        self.head.cylinder = cylinder;
        self.work.seek += time;
        if let Some(meter) = &mut self.meter {
            meter.add_movement(time);
        }
        time
    }

    /// Books a landing for read-ahead. The heads left their track at `since` and landed at `landed`
    /// on the track of `position`.
    pub(crate) fn lands(&mut self, since: Time, landed: Time, position: &Position) {
        self.head = self.head.reading(position);
        self.work.seek += landed.since(since);
        self.count(since, landed);
        if let Some(meter) = &mut self.meter {
            meter.state(PowerState::Seek, since, landed);
        }
    }

    /// Books sectors passing under the heads from `start` to `end`. The heads have waited for these
    /// sectors since `since`.
    pub(crate) fn passes(&mut self, since: Time, start: Time, end: Time) {
        self.work.rotation += start.since(since);
        self.work.transfer += end.since(start);
        self.count(since, end);
        if let Some(meter) = &mut self.meter {
            meter.state(PowerState::Rotate, since, start);
            meter.state(PowerState::Read, start, end);
        }
    }
}

/// Returns when platters began to start, if they turn from `ready` on.
fn started(ready: Time, spin_up: Duration) -> Time {
    // `NEVER` less the time of a start would be an instant.
    if ready == Time::NEVER {
        ready
    } else {
        Time::from_nanos(ready.as_nanos().saturating_sub(spin_up.as_nanos()))
    }
}
