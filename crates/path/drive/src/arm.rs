//! The arm of a drive: where its heads are, how far the medium has turned, until
//! when it is taken, and what it has done.
//!
//! Whatever moves heads goes through it: requests, read-ahead and destaging. So
//! the time in which it worked is exact, whoever it worked for.

use crate::geometry::Position;
use crate::mechanics::{Access, Feed, Head, Mechanics, Piece};
use crate::power::{Meter, Power, Standing, Unloading};
use fullstroke_contract::{Extent, PowerState, PowerStatistics};
use fullstroke_units::{Angle, Cylinder, Duration, Time};
use std::collections::VecDeque;
use std::sync::Arc;

/// An arm, and its time until now.
#[derive(Clone, Debug)]
pub(crate) struct Arm {
    mechanics: Arc<Mechanics>,
    head: Head,
    /// It is with the medium until then.
    free: Time,
    work: Work,
    /// Up to here its time is in `work.busy`.
    counted: Time,
    /// The times in which it is taken, from begin to end and in order, of which some lies ahead: what it
    /// does is counted when it is planned.
    planned: VecDeque<(Time, Time)>,
    /// Where the platters stand still, or will again turn.
    rest: Option<Rest>,
    spin_up: Duration,
    /// When its heads leave the medium, if they do.
    unloading: Option<Unloading>,
    /// Somebody needs heads that were unloaded: they are back then.
    back: Option<Time>,
    /// What its time costs, if that is known.
    meter: Option<Box<Meter>>,
    /// They turn again from then on, and nobody was told.
    turned: Option<Time>,
    /// Somebody needed them again then.
    wanted: Time,
}

/// Platters that do not turn.
#[derive(Clone, Copy, Debug)]
struct Rest {
    since: Time,
    /// What stands under the heads.
    angle: Angle,
    /// They turn again from then on: somebody needs them.
    ready: Option<Time>,
}

/// What an arm has done since time 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Work {
    /// Time in which it was taken: commands' overheads before it moves, and all
    /// of the following.
    pub(crate) busy: Duration,
    /// Movement, head switches, settling.
    pub(crate) seek: Duration,
    /// Rotational latency.
    pub(crate) rotation: Duration,
    /// Sectors passing.
    pub(crate) transfer: Duration,
}

impl Arm {
    /// At rest at time 0, its heads at cylinder 0, surface 0.
    pub(crate) fn new(mechanics: &Arc<Mechanics>, phase: Angle, power: &Power) -> Arm {
        Arm {
            rest: None,
            spin_up: power.spin_up,
            unloading: power.unloading,
            back: None,
            meter: Meter::new(power).map(Box::new),
            turned: None,
            wanted: Time::ZERO,
            mechanics: Arc::clone(mechanics),
            head: Head {
                phase,
                ..Head::default()
            },
            free: Time::ZERO,
            work: Work::default(),
            counted: Time::ZERO,
            planned: VecDeque::with_capacity(4),
        }
    }

    /// What moves.
    #[inline]
    pub(crate) fn mechanics(&self) -> &Mechanics {
        &self.mechanics
    }

    /// Where the heads stand.
    #[inline]
    pub(crate) fn head(&self) -> Head {
        self.head
    }

    /// When it can leave the medium for a request that comes, or came, at `now`.
    #[inline]
    pub(crate) fn free_from(&self, now: Time) -> Time {
        let free = self.free.max(now);
        match &self.rest {
            None if self.unloading.is_none() => free,
            None => self.loaded_from(free),
            Some(Rest {
                ready: Some(ready), ..
            }) => free.max(*ready),
            Some(Rest { since, .. }) => free.max(*since) + self.spin_up,
        }
    }

    /// The same for a request that comes now, and needs it: what is not there begins to come back.
    #[inline]
    pub(crate) fn needed(&mut self, now: Time) -> Time {
        if self.is_away() {
            self.start(now);
        }
        self.free_from(now)
    }

    /// When the heads are on the medium that are needed from `from` on.
    #[inline(never)]
    fn loaded_from(&self, from: Time) -> Time {
        match (self.back, self.unloading) {
            (Some(back), _) => from.max(back),
            (None, Some(unloading)) => from + unloading.wake(from.saturating_since(self.counted)),
            (None, None) => from,
        }
    }

    /// Whether platters or heads may have to come back before it works.
    #[inline]
    pub(crate) fn is_away(&self) -> bool {
        self.rest.is_some() || self.unloading.is_some()
    }

    /// Whether the platters do not turn.
    pub(crate) fn rests(&self) -> bool {
        self.rest.is_some()
    }

    /// The platters, which turn until `last`, stand still from `since` on.
    pub(crate) fn stop(&mut self, last: Time, since: Time) {
        assert!(
            self.rest.is_none() && last <= since,
            "platters that turn until {last:?} stand from {since:?}, or stand already"
        );
        let angle = self.mechanics.spindle().angle_at(last) + self.head.phase;
        self.rest = Some(Rest {
            since,
            angle,
            ready: None,
        });
        self.back = None;
        self.keep_until(since);
        if let Some(meter) = &mut self.meter {
            meter.state(PowerState::SpinDown, last, since);
        }
    }

    /// Somebody needs the platters, and the heads on them, from `now` on.
    pub(crate) fn start(&mut self, now: Time) {
        let ready = self.free_from(now);
        match &mut self.rest {
            Some(rest) => _ = rest.ready.get_or_insert(ready),
            None if self.unloading.is_some() => _ = self.back.get_or_insert(ready),
            None => {}
        }
    }

    /// The platters have started for what begins at `now`, or earlier. They turn
    /// on from the angle at which they stood.
    pub(crate) fn turn(&mut self, now: Time) {
        let Some(Rest {
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

    /// Since when the platters turn again, once they do at `now`, and once.
    pub(crate) fn take_turned(&mut self, now: Time) -> Option<Time> {
        self.turned.take_if(|at| *at <= now)
    }

    /// When platters began to start last.
    pub(crate) fn turns_since(&self) -> Time {
        self.wanted
    }

    /// What it has done, and will have done with all that is planned.
    pub(crate) fn work(&self) -> Work {
        self.work
    }

    /// Time in which it was taken until `now`, which is not before the last event, with what it has
    /// read `ahead` from begin to end and its work does not know yet.
    pub(crate) fn busy(&self, now: Time, ahead: Option<(Time, Time)>) -> Duration {
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

    /// It is with the medium until `end`.
    pub(crate) fn keep_until(&mut self, end: Time) {
        self.free = self.free.max(end);
    }

    /// It is taken by a command from `begin` to `end`; what overlaps is counted once. While the
    /// platters stand, that concerns the electronics alone.
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

    /// It is taken from `begin` to `end`.
    #[inline]
    fn count(&mut self, begin: Time, end: Time) {
        let begin = begin.max(self.counted);
        if end > begin {
            debug_assert!(
                self.planned.back().is_none_or(|&(_, last)| last <= begin),
                "what the arm does from {begin:?} on overlaps with what is planned"
            );
            self.work.busy += end.since(begin);
            self.counted = end;
            match self.planned.back_mut() {
                Some((_, last)) if *last == begin => *last = end,
                _ => self.planned.push_back((begin, end)),
            }
        }
        self.back = None;
    }

    /// It reads ahead, of which its work knows whole sectors.
    #[inline]
    pub(crate) fn meter_ahead(&mut self, state: PowerState, begin: Time, end: Time) {
        if let Some(meter) = &mut self.meter {
            meter.state(state, begin, end);
        }
    }

    /// What its work cost until `now`, if that is known; `ahead` books what it is reading meanwhile.
    pub(crate) fn power(
        &self,
        now: Time,
        ahead: impl FnOnce(&mut Meter),
    ) -> Option<PowerStatistics> {
        let stand = self.rest.map(|Rest { ready, .. }| {
            let ready = ready.unwrap_or(Time::NEVER);
            Standing {
                starts: started(ready, self.spin_up),
                ready,
            }
        });
        let mut meter = Meter::clone(self.meter.as_ref()?);
        ahead(&mut meter);
        Some(meter.reading(now, stand))
    }

    /// Nothing is planned any more before `now`.
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
    ) -> Access {
        self.access_fed(now, extent, position, write, None, |_| {})
    }

    /// The same as [`Mechanics::access_fed`].
    #[inline]
    pub(crate) fn access_fed(
        &mut self,
        now: Time,
        extent: Extent,
        position: &Position,
        write: bool,
        feed: Option<Feed>,
        passed: impl FnMut(Piece),
    ) -> Access {
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

    /// Moves to `cylinder` without transferring anything; how long that takes.
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
            meter.detour(time);
        }
        time
    }

    /// Its heads, which left their track at `since`, have landed at `position`
    /// to read.
    pub(crate) fn lands(&mut self, since: Time, landed: Time, position: &Position) {
        self.head = self.head.reading(position);
        self.work.seek += landed.since(since);
        self.count(since, landed);
        if let Some(meter) = &mut self.meter {
            meter.state(PowerState::Seek, since, landed);
        }
    }

    /// Sectors pass under the heads, which have waited for them since `since`,
    /// from `start` to `end`.
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

/// When platters began to start that turn from `ready` on.
fn started(ready: Time, spin_up: Duration) -> Time {
    if ready == Time::NEVER {
        ready
    } else {
        Time::from_nanos(ready.as_nanos().saturating_sub(spin_up.as_nanos()))
    }
}
