//! The arm of a drive: where its heads are, how far the medium has turned, until
//! when it is taken, and what it has done.
//!
//! Whatever moves heads goes through it: requests, read-ahead and destaging. So
//! the time in which it worked is exact, whoever it worked for.

use crate::geometry::Position;
use crate::mechanics::{Access, Feed, Head, Mechanics, Piece};
use fullstroke_contract::Extent;
use fullstroke_units::{Angle, Cylinder, Duration, Time};
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
    /// Where the platters stand still, or will again turn.
    rest: Option<Rest>,
    spin_up: Duration,
    /// They turn again from then on, and nobody was told.
    turned: Option<Time>,
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
    pub(crate) fn new(mechanics: &Arc<Mechanics>, phase: Angle, spin_up: Duration) -> Arm {
        Arm {
            rest: None,
            spin_up,
            turned: None,
            mechanics: Arc::clone(mechanics),
            head: Head { phase, ..Head::default() },
            free: Time::ZERO,
            work: Work::default(),
            counted: Time::ZERO,
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
            None => free,
            Some(Rest { ready: Some(ready), .. }) => free.max(*ready),
            Some(Rest { since, .. }) => free.max(*since) + self.spin_up,
        }
    }

    /// Whether the platters do not turn.
    pub(crate) fn rests(&self) -> bool {
        self.rest.is_some()
    }

    /// The platters, which turn until `last`, stand still from `since` on.
    pub(crate) fn stop(&mut self, last: Time, since: Time) {
        let angle = self.mechanics.spindle().angle_at(last) + self.head.phase;
        self.rest = Some(Rest { since, angle, ready: None });
        self.keep_until(since);
    }

    /// Somebody needs the platters from `now` on.
    pub(crate) fn start(&mut self, now: Time) {
        let ready = self.free_from(now);
        if let Some(rest) = &mut self.rest {
            rest.ready.get_or_insert(ready);
        }
    }

    /// The platters have started for what begins at `now`, or earlier. They turn
    /// on from the angle at which they stood.
    pub(crate) fn turn(&mut self, now: Time) {
        let Some(Rest { angle, ready, .. }) = self.rest.take() else { return };
        let ready = ready.unwrap_or(now);
        self.head.phase = angle - self.mechanics.spindle().angle_at(ready);
        self.turned = Some(ready);
    }

    /// Since when the platters turn again, once they do at `now`, and once.
    pub(crate) fn take_turned(&mut self, now: Time) -> Option<Time> {
        self.turned.take_if(|at| *at <= now)
    }

    /// What it has done.
    pub(crate) fn work(&self) -> Work {
        self.work
    }

    /// It is with the medium until `end`.
    pub(crate) fn keep_until(&mut self, end: Time) {
        self.free = self.free.max(end);
    }

    /// It is taken from `begin` to `end`; what overlaps is counted once.
    #[inline]
    pub(crate) fn take(&mut self, begin: Time, end: Time) {
        self.work.busy += end.saturating_since(self.counted.max(begin));
        self.counted = self.counted.max(end);
    }

    /// Carries out an access from `now` on.
    #[inline]
    pub(crate) fn access(&mut self, now: Time, extent: Extent, position: &Position, write: bool) -> Access {
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
        let access = self.mechanics.access_fed(&mut self.head, now, extent, position, write, feed, passed);
        self.work.seek += access.seek;
        self.work.rotation += access.rotation;
        self.work.transfer += access.transfer;
        self.take(now, now + access.duration());
        access
    }

    /// Moves to `cylinder` without transferring anything; how long that takes.
    pub(crate) fn visit(&mut self, cylinder: Cylinder) -> Duration {
        let time = self.mechanics.seek(self.head, cylinder, self.head.surface, false);
        self.head.cylinder = cylinder;
        self.work.seek += time;
        time
    }

    /// Its heads, which left their track at `since`, have landed at `position`
    /// to read.
    pub(crate) fn lands(&mut self, since: Time, landed: Time, position: &Position) {
        self.head = self.head.reading(position);
        self.work.seek += landed.since(since);
        self.take(since, landed);
    }

    /// Sectors pass under the heads, which have waited for them since `since`,
    /// from `start` to `end`.
    pub(crate) fn passes(&mut self, since: Time, start: Time, end: Time) {
        self.work.rotation += start.since(since);
        self.work.transfer += end.since(start);
        self.take(since, end);
    }
}
