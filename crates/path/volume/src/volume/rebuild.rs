//! The members to rebuild, their order, and the time of the next unit.

use super::pressure::Pressure;
use super::yielding::Yielding;
use crate::members::PAGE;
use fullstroke_contract::RebuildSpeed;
use fullstroke_units::{Bytes, Duration, SECTOR_BYTES, Sectors, Time, order_by_key};
use std::collections::VecDeque;
use std::ops::Range;

/// Sizes of the units of a rebuild.
#[derive(Clone, Copy, Debug)]
pub(super) struct Units {
    /// Length of a unit while requests come. The unit is long enough that arms transfer longer than
    /// they seek, and short enough that requests do not wait long.
    pub(super) short: Sectors,
    /// Length of a unit without requests. A drive without a buffer loses up to a revolution between
    /// two commands; with long units, the loss is small.
    pub(super) long: Sectors,
    /// Number of units in flight without requests: one is written while the next is read. When a
    /// unit ends, the next unit already waits in the drive's queue. Each drive then has one command
    /// in service and at most one in its queue. With two in the queue, a scheduler by access time
    /// takes the further command first, because the head has just passed the beginning of the
    /// nearer one. The drive then loses time on the way back.
    pub(super) window: usize,
}

impl Default for Units {
    fn default() -> Units {
        Units {
            short: Sectors(2048),
            long: Sectors(65_536),
            window: 2,
        }
    }
}

/// The rebuilds of a volume. Members at about the same place of their rebuilds are filled together.
/// The others follow one after the other, in the order of their restores. Units run from front to
/// back, several at a time while there is no other I/O.
#[derive(Debug, Default)]
pub(super) struct Rebuilds {
    queue: VecDeque<RebuildJob>,
    /// Units in flight, in the order of their plans. All valid units belong to the first job.
    units: VecDeque<Unit>,
    /// Time since which only the rate and the requests delay the next unit.
    ready: Time,
    /// Number of requests in flight from before the latest restore. Their writes ignore the new
    /// member and the rows of its rebuild. A unit therefore waits for these requests.
    older: u32,
    /// True if units wait for an operator because data was lost.
    pub(super) halted: bool,
    pub(super) speed: RebuildSpeed,
    pub(super) sizes: Units,
    /// The way in which a rebuild of md yields; `None` for other arrays, and before the first
    /// rebuild.
    pub(super) yielding: Option<Yielding>,
}

/// Members for a common rebuild.
#[derive(Clone, Debug)]
pub(super) struct RebuildJob {
    /// Members, ascending; at least one.
    members: Vec<Filling>,
    /// Units below this sector are in flight or over.
    pub(super) planned: Sectors,
    rate: Option<Bytes>,
    /// Earliest time of the next unit, by the rate; for a rebuild of md, the time of the latest unit.
    due: Time,
    marks: SpeedMarks,
}

/// A member to be filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Filling {
    pub(super) member: usize,
    /// The member is filled below this sector.
    pub(super) done: Sectors,
    /// End of the part to fill.
    pub(super) used: Sectors,
}

/// Two members are filled together if the member ahead leads by at most 1/`TOGETHER` of its used
/// sectors. The others catch up first, and the member ahead waits meanwhile. With a larger lead,
/// the member ahead is complete sooner if it continues alone; the array then survives more
/// failures. md's rule is stricter: both members must be present at the start
/// (`remove_and_add_spares` in md.c, 6.1, runs only between two recoveries). Two drives replaced
/// one after the other are as good as two drives replaced at the same time.
const TOGETHER: u64 = 100;

/// Sleep of a rebuild that is above its maximum rate (`md_do_sync`).
const NAP: Duration = Duration::from_nanos(500_000_000);

/// A unit in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unit {
    /// Slot of the unit's flight; `None` if the unit had nothing to do.
    pub(super) slot: Option<usize>,
    /// End of the filled part after the unit.
    pub(super) end: Sectors,
    /// Number of changes of states before the unit was planned.
    pub(super) changes: u64,
    state: UnitState,
    /// False if the result of the unit is void because its job has changed.
    counts: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UnitState {
    UnderWay,
    Filled,
    /// A source of the unit was not available.
    Spoilt,
}

/// Consequence of the end of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RebuildStep {
    /// The first job is filled up to this sector.
    Filled(Sectors),
    /// Units of the first job are planned again from the end of the filled part. `changes` is the
    /// number of changes of states before the plan of the first spoilt unit.
    Again { changes: u64 },
}

impl RebuildJob {
    /// Returns a job for the rebuild of `member` from `done` up to `used`, at most at `rate`.
    pub(super) fn new(
        now: Time,
        member: usize,
        filling: Range<Sectors>,
        rate: Option<Bytes>,
    ) -> RebuildJob {
        let Range {
            start: done,
            end: used,
        } = filling;
        assert!(
            done <= used,
            "member {member} is filled up to {done} of {used}"
        );
        let members = vec![Filling { member, done, used }];
        RebuildJob {
            members,
            planned: done,
            rate,
            due: now,
            marks: SpeedMarks::new(now, done),
        }
    }

    /// Returns the end of the common filled part of all members.
    fn done(&self) -> Sectors {
        self.members
            .iter()
            .map(|filling| filling.done)
            .min()
            .unwrap_or(self.planned)
    }

    /// Returns the end of the longest member of the job.
    fn used(&self) -> Sectors {
        self.members
            .iter()
            .map(|filling| filling.used)
            .max()
            .unwrap_or(self.planned)
    }

    /// Sets `members` to the members of the next unit. Returns the maximum length of the unit: up
    /// to the place of a member ahead.
    pub(super) fn next_of(&self, members: &mut Vec<usize>) -> Sectors {
        members.clear();
        let mut most = Sectors(u64::MAX);
        for filling in &self.members {
            // A member ahead has this place already, so the unit ends where that member's gap
            // begins again.
            if filling.done <= self.planned {
                members.push(filling.member);
            } else {
                most = most.min(filling.done - self.planned);
            }
        }
        most
    }

    /// Returns the number of sectors of each member in flight.
    fn in_flight(&self) -> Sectors {
        Sectors(self.planned.0.saturating_sub(self.done().0))
    }

    /// Returns the time of the next unit by a maximum rate, as md keeps the rate: a rebuild that has been
    /// faster on average sleeps for half a second, and looks again (`md_do_sync`).
    fn within(&self, most: Option<Bytes>) -> Time {
        let Some(most) = most else { return self.due };
        // Nearly each event asks, and a division of 128 bits takes longer than the comparison.
        if self.marks.is_below(self.due, most, self.done()) {
            return self.due;
        }
        let late = self
            .marks
            .below(most, self.done())
            .saturating_since(self.due);
        self.due + NAP * late.as_nanos().div_ceil(NAP.as_nanos())
    }

    /// True if the rebuild is slower than `least`.
    fn is_slow(&self, now: Time, least: Bytes) -> bool {
        self.marks.is_slower(now, self.done(), least)
    }

    /// True if both jobs have the same rate and are near enough to become one job.
    fn goes_with(&self, other: &RebuildJob) -> bool {
        let (one, other_done) = (self.done().0, other.done().0);
        // An operator who gave a rate meant this member's rebuild, so only equal rates join.
        self.rate == other.rate && one.abs_diff(other_done) <= self.used().0 / TOGETHER
    }

    fn join(&mut self, now: Time, other: RebuildJob) {
        assert!(
            other
                .members
                .iter()
                .all(|one| self.members.iter().all(|other| other.member != one.member)),
            "a member is to be filled twice: {:?} and {:?}",
            self.members,
            other.members
        );
        self.members.extend(other.members);
        order_by_key(&mut self.members, |filling| filling.member);
        // The speed so far belongs to the old members. With that speed the job would count as fast
        // although it starts behind.
        self.marks = SpeedMarks::new(now, self.done());
    }
}

impl Rebuilds {
    /// Adds a job that begins at `now`, with `in_flight` requests in flight. With `together`, the
    /// job may join another job. Returns true if units in flight no longer count.
    #[must_use]
    pub(super) fn add(
        &mut self,
        now: Time,
        job: RebuildJob,
        together: bool,
        in_flight: u32,
    ) -> bool {
        self.older = in_flight;
        self.ready = self.ready.max(now);
        let place = self
            .queue
            .iter()
            .position(|other| together && other.goes_with(&job));
        let Some(place) = place else {
            self.queue.push_back(job);
            return false;
        };
        self.queue[place].join(now, job);
        self.plan_again(place)
    }

    /// Cancels the rebuild of `member`. Returns true if units in flight no longer count.
    #[must_use]
    pub(super) fn forget(&mut self, member: usize) -> bool {
        let of_it = |filling: &Filling| filling.member == member;
        let place = self
            .queue
            .iter()
            .position(|job| job.members.iter().any(of_it));
        let Some(place) = place else { return false };
        self.queue[place].members.retain(|filling| !of_it(filling));
        let again = self.plan_again(place);
        self.queue.retain(|job| !job.members.is_empty());
        again
    }

    /// Splits all jobs, to fill the members one after the other. If several members are lost
    /// together, the first filled member becomes a source for the next. Returns true if units in
    /// flight no longer count.
    #[must_use]
    pub(super) fn part(&mut self) -> bool {
        if self.queue.iter().all(|job| job.members.len() == 1) {
            return false;
        }
        let again = !self.units.is_empty();
        self.drop_units();
        for job in std::mem::take(&mut self.queue) {
            let alone = |&filling: &Filling| RebuildJob {
                members: vec![filling],
                planned: filling.done,
                ..job.clone()
            };
            self.queue.extend(job.members.iter().map(alone));
        }
        again
    }

    /// Plans the units of the job at `place` again. Returns true if there were units in flight.
    fn plan_again(&mut self, place: usize) -> bool {
        // Only the first job has units in flight.
        let again = place == 0 && !self.units.is_empty();
        if again {
            self.drop_units();
        }
        self.queue[place].planned = self.queue[place].done();
        again
    }

    /// Marks the units of the first job that are in flight as void.
    fn drop_units(&mut self) {
        self.units.iter_mut().for_each(|unit| unit.counts = false);
        self.units.retain(|unit| unit.state == UnitState::UnderWay);
    }

    /// Limits the speed of all rebuilds, including running rebuilds.
    pub(super) fn limit(&mut self, now: Time, speed: RebuildSpeed) {
        self.speed = speed;
        for job in &mut self.queue {
            job.rate = None;
            // A new limit counts at once. Otherwise a job with a low rate would wait for its old
            // time.
            job.due = now;
        }
    }

    /// Returns the time of the next unit; `NEVER` if another event must happen first.
    #[inline]
    pub(super) fn next_unit(&self, pressure: &Pressure) -> Time {
        match self.queue.front() {
            Some(job) if self.older == 0 && !self.halted => self.next_unit_of(job, pressure),
            _ => Time::NEVER,
        }
    }

    /// Returns the time of the next unit of a job. While there is other I/O, a rebuild above its
    /// minimum speed waits until none of its own units is in flight. A rebuild of md waits only if
    /// its latest look found other I/O.
    fn next_unit_of(&self, job: &RebuildJob, pressure: &Pressure) -> Time {
        let due = match &self.yielding {
            Some(_) => job.within(self.rate()),
            None => job.due,
        };
        let at = due.max(self.ready);
        let sound = |unit: &Unit| unit.counts && unit.state != UnitState::Spoilt;
        let gone = at.max(self.idle_from(pressure));
        if let Some(yielding) = &self.yielding
            && at < gone
        {
            let at = at.max(yielding.earliest);
            let may = job.planned < job.used() && self.units.iter().all(sound);
            return match self.units.is_empty() || may {
                true if yielding.may_begin(job.in_flight()) => at,
                true if self.units.len() < self.sizes.window => gone,
                _ => Time::NEVER,
            };
        }
        match self.units.len() {
            0 => at,
            _ if job.planned >= job.used() || !self.units.iter().all(sound) => Time::NEVER,
            // The end of a unit brings the next look.
            count if count >= self.sizes.window => Time::NEVER,
            _ if self.yielding.is_some() || job.is_slow(at, self.speed.least) => at,
            _ => gone,
        }
    }

    /// Returns the time from which on the array counts as idle if no further request comes.
    fn idle_from(&self, pressure: &Pressure) -> Time {
        let of_rebuild = self.yielding.as_ref().map(|yielding| yielding.idle_from);
        pressure.gone().max(of_rebuild.unwrap_or(Time::ZERO))
    }

    /// Takes note of a unit of `sectors` that has begun at `now`, for the way in which md yields.
    pub(super) fn sent(&mut self, now: Time, sectors: Sectors, pressure: &Pressure) {
        if let (Some(yielding), Some(job)) = (&mut self.yielding, self.queue.front()) {
            let is_slow = job.is_slow(now, self.speed.least);
            yielding.sent(now, sectors, job.in_flight(), is_slow, pressure);
        }
    }

    /// Returns the pages of each member in flight, in units of md.
    pub(super) fn pages_in_flight(&self) -> u32 {
        let in_flight = self.queue.front().map(RebuildJob::in_flight);
        match (&self.yielding, in_flight) {
            (Some(yielding), Some(sectors)) if yielding.holds(sectors) => {
                u32::try_from(sectors.0.div_ceil(PAGE)).unwrap_or(u32::MAX)
            }
            _ => 0,
        }
    }

    /// Returns all members to be filled.
    pub(super) fn all(&self) -> impl Iterator<Item = &Filling> {
        self.queue.iter().flat_map(|job| &job.members)
    }

    /// Returns the members of the present job.
    pub(super) fn job(&self) -> Option<&RebuildJob> {
        self.queue.front()
    }

    /// Returns the length of a unit that begins at `now`.
    pub(super) fn unit_size(&self, now: Time, pressure: &Pressure) -> Sectors {
        if now < self.idle_from(pressure) {
            let in_flight = self
                .queue
                .front()
                .map_or(Sectors::ZERO, RebuildJob::in_flight);
            return match &self.yielding {
                Some(yielding) => yielding.unit_size(in_flight),
                None => self.sizes.short,
            };
        }
        // With a rate limit, a unit longer than a quarter of a second's data is useless.
        let most = self
            .rate()
            .map_or(u64::MAX, |rate| rate.0 / SECTOR_BYTES / 4);
        Sectors(self.sizes.long.0.min(most).max(self.sizes.short.0))
    }

    /// Returns the maximum rate of the first job.
    fn rate(&self) -> Option<Bytes> {
        self.queue
            .front()
            .and_then(|job| job.rate)
            .or(self.speed.most)
    }

    /// Records the start of a unit of the first job at `now`. Without a flight, the unit is over at
    /// once. The next unit begins no earlier than the rate allows.
    pub(super) fn begin(&mut self, now: Time, slot: Option<usize>, end: Sectors, changes: u64) {
        let rate = self.rate();
        if let Some(job) = self.queue.front_mut() {
            if slot.is_some() {
                assert!(
                    end > job.planned,
                    "a unit of a rebuild from {} ends at {end}",
                    job.planned
                );
                job.due = match self.yielding {
                    Some(_) => now,
                    None => now + duration(end - job.planned, rate),
                };
            }
            job.planned = end;
        }
        let state = if slot.is_some() {
            UnitState::UnderWay
        } else {
            UnitState::Filled
        };
        assert!(
            self.units
                .back()
                .is_none_or(|last| !last.counts || last.end <= end),
            "units are planned from front to back; one ends at {end}"
        );
        self.units.push_back(Unit {
            slot,
            end,
            changes,
            state,
            counts: true,
        });
    }

    /// Records the end of the unit in `slot` at `now`.
    pub(super) fn end(&mut self, now: Time, slot: usize, filled: bool) {
        self.ready = self.ready.max(now);
        // A unit that has ended and waits for the units before it may have had the same slot.
        let ended = |unit: &Unit| unit.slot == Some(slot) && unit.state == UnitState::UnderWay;
        let Some(place) = self.units.iter().position(ended) else {
            return;
        };
        let unit = &mut self.units[place];
        unit.state = if filled {
            UnitState::Filled
        } else {
            UnitState::Spoilt
        };
        if !unit.counts {
            self.units.remove(place);
        }
    }

    /// Returns the next consequence of finished units, in order.
    pub(super) fn step(&mut self) -> Option<RebuildStep> {
        let first = *self.units.front()?;
        let under_way = self
            .units
            .iter()
            .any(|unit| unit.state == UnitState::UnderWay);
        match first.state {
            _ if !first.counts => None,
            UnitState::Filled => {
                self.units.pop_front();
                Some(RebuildStep::Filled(first.end))
            }
            UnitState::Spoilt if !under_way => {
                self.units.clear();
                if let Some(job) = self.queue.front_mut() {
                    job.planned = job.done();
                }
                Some(RebuildStep::Again {
                    changes: first.changes,
                })
            }
            UnitState::Spoilt | UnitState::UnderWay => None,
        }
    }

    /// True if a unit is in flight.
    pub(super) fn is_busy(&self) -> bool {
        !self.units.is_empty()
    }

    /// Returns the units in flight.
    #[cfg(test)]
    pub(super) fn units(&self) -> impl Iterator<Item = &Unit> {
        self.units.iter()
    }

    /// Records the end of a unit of the first job for the job's members below `end`. Each call
    /// returns the next such member, lowest first, and at last `None`. A complete member leaves the
    /// job. A job without members is removed.
    pub(super) fn advance(&mut self, end: Sectors) -> Option<Filling> {
        let job = self.queue.front_mut()?;
        let behind = |filling: &Filling| filling.done < end || filling.done >= filling.used;
        let Some(place) = job.members.iter().position(behind) else {
            if job.members.is_empty() {
                self.queue.pop_front();
            }
            return None;
        };
        let filling = &mut job.members[place];
        assert!(
            filling.done <= filling.used,
            "member {} is filled behind its end: {filling:?}",
            filling.member
        );
        filling.done = end.min(filling.used);
        let filling = *filling;
        if filling.done == filling.used {
            job.members.remove(place);
        }
        job.marks.note(self.ready, end);
        Some(filling)
    }

    /// Records the completion of a request from before the latest restore.
    pub(super) fn older_ended(&mut self, now: Time) {
        assert!(
            self.older > 0,
            "a request ends at {now:?} that is older than the restore, and none was"
        );
        self.older -= 1;
        self.ready = self.ready.max(now);
    }
}

/// Progress of a job at some times, for the present speed: ten marks, three seconds apart, as in md
/// (`SYNC_MARKS` and `SYNC_MARK_STEP` in md.c).
#[derive(Clone, Copy, Debug)]
struct SpeedMarks {
    all: [(Time, Sectors); SpeedMarks::COUNT],
    latest: usize,
}

impl SpeedMarks {
    const COUNT: usize = 10;
    const STEP: Duration = Duration::from_nanos(3_000_000_000);
    /// Time that md adds to the time since a mark; otherwise a new rebuild would seem fast.
    const GRACE: Duration = Duration::from_nanos(1_000_000_000);

    fn new(now: Time, done: Sectors) -> SpeedMarks {
        SpeedMarks {
            all: [(now, done); SpeedMarks::COUNT],
            latest: 0,
        }
    }

    fn note(&mut self, now: Time, done: Sectors) {
        debug_assert!(
            now >= self.all[self.latest].0,
            "a rebuild is at {done} at {now:?}, before its latest mark"
        );
        if now >= self.all[self.latest].0 + SpeedMarks::STEP {
            self.latest = (self.latest + 1) % SpeedMarks::COUNT;
            self.all[self.latest] = (now, done);
        }
    }

    /// True if the speed since the oldest mark is less than `least`, in whole bytes per second.
    fn is_slower(&self, now: Time, done: Sectors, least: Bytes) -> bool {
        self.bytes_times_second(done) < self.elapsed_ns(now) * u128::from(least.0)
    }

    /// True if the speed since the oldest mark is at most `most` at `now`: [`SpeedMarks::below`] has
    /// passed.
    fn is_below(&self, now: Time, most: Bytes, done: Sectors) -> bool {
        now >= self.oldest().0
            && self.bytes_times_second(done) <= self.elapsed_ns(now) * u128::from(most.0.max(1))
    }

    /// Returns the time since the oldest mark, with md's second more.
    fn elapsed_ns(&self, now: Time) -> u128 {
        let elapsed = now.saturating_since(self.oldest().0).as_nanos();
        u128::from(elapsed) + u128::from(SpeedMarks::GRACE.as_nanos())
    }

    /// Returns the bytes since the oldest mark, times the nanoseconds of a second.
    fn bytes_times_second(&self, done: Sectors) -> u128 {
        let sectors = done.0.saturating_sub(self.oldest().1.0);
        u128::from(sectors) * u128::from(SECTOR_BYTES) * 1_000_000_000
    }

    /// Returns the time from which on the speed is at most `most`.
    fn below(&self, most: Bytes, done: Sectors) -> Time {
        let (since, before) = self.oldest();
        let span = duration(Sectors(done.0.saturating_sub(before.0)), Some(most));
        since + span.saturating_sub(SpeedMarks::GRACE)
    }

    fn oldest(&self) -> (Time, Sectors) {
        self.all[(self.latest + 1) % SpeedMarks::COUNT]
    }
}

/// Returns the time of `sectors` at `rate` bytes per second, rounded up. The result is at most
/// [`Duration::LONGEST`], because an operator may choose a rate of one byte per second.
fn duration(sectors: Sectors, rate: Option<Bytes>) -> Duration {
    let Some(rate) = rate else {
        return Duration::ZERO;
    };
    let nanoseconds =
        (u128::from(sectors.bytes().0) * 1_000_000_000).div_ceil(u128::from(rate.0.max(1)));
    u64::try_from(nanoseconds)
        .map_or(Duration::LONGEST, Duration::from_nanos)
        .min(Duration::LONGEST)
}
