//! Which members are to be rebuilt, in which order, and when the next unit may
//! begin.

use super::pressure::Pressure;
use fullstroke_contract::RebuildSpeed;
use fullstroke_units::{Bytes, Duration, SECTOR_BYTES, Sectors, Time};
use std::collections::VecDeque;
use std::ops::Range;

/// How rebuilds are cut into units.
#[derive(Clone, Copy, Debug)]
pub(super) struct Units {
    /// How much of a member a unit fills while requests come: long enough that
    /// the arms read and write more than they seek, short enough that requests
    /// do not wait long.
    pub(super) short: Sectors,
    /// The same while nobody asks for anything: so long that what a drive
    /// without a buffer loses between two commands, up to a revolution, is
    /// little beside it.
    pub(super) long: Sectors,
    /// How many are under way while nobody asks for anything: one is written
    /// while the next is read. Where one ends, the next to be read waits already
    /// behind that which is being read: each drive has one command, and at most
    /// one in its queue. With two there, a drive that goes by access time takes
    /// the further first, since it has just passed the beginning of the nearer,
    /// and pays for coming back.
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

/// The rebuilds of a volume: members that stand at about the same place are
/// filled together, the others one after the other, in the order in which they
/// were restored; units from front to back, several at a time while there is no
/// other I/O.
#[derive(Debug, Default)]
pub(super) struct Rebuilds {
    queue: VecDeque<Job>,
    /// The units under way, in the order in which they were planned. Those that
    /// count are of the first job.
    units: VecDeque<Unit>,
    /// Since when nothing but rate and requests holds the next unit up.
    ready: Time,
    /// Requests in flight that were planned before the latest restore. Their
    /// writes do not know of the member, nor of the rows that its rebuild
    /// needs: a unit waits for them.
    older: u32,
    /// Whether units wait for an operator, because data was lost.
    pub(super) halted: bool,
    pub(super) speed: RebuildSpeed,
    pub(super) sizes: Units,
}

/// Members that are to be filled together.
#[derive(Clone, Debug)]
pub(super) struct Job {
    /// Ascending; one at least.
    members: Vec<Filling>,
    /// Units are under way, or over, below this.
    pub(super) planned: Sectors,
    rate: Option<Bytes>,
    /// The earliest instant of the next unit, by the rate.
    due: Time,
    marks: Marks,
}

/// A member that is to be filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Filling {
    pub(super) member: usize,
    /// It is filled below this.
    pub(super) done: Sectors,
    /// As far as it is to be filled.
    pub(super) used: Sectors,
}

/// Members are filled together if the one that is ahead is so by no more than
/// this part of itself: the others catch up first, and until they have it gains
/// nothing. Where it is further, it is whole sooner if it goes on alone, and the
/// array survives more from then on. md's rule is the stricter one that both must
/// be there when it begins (`remove_and_add_spares` in md.c, 6.1, runs between
/// two recoveries only); two drives that somebody changes one after the other
/// are as good as changed at once.
const TOGETHER: u64 = 100;

/// A unit under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unit {
    /// Its flight; `None` if there was nothing to do.
    pub(super) slot: Option<usize>,
    /// How far the member is filled when it ends.
    pub(super) end: Sectors,
    /// How often states had changed when it was planned.
    pub(super) changes: u64,
    state: UnitState,
    /// Whether the member still is what the unit fills.
    counts: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UnitState {
    UnderWay,
    Filled,
    /// What it needed was not there.
    Spoilt,
}

/// What follows from the end of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The first job is filled up to here.
    Filled(Sectors),
    /// Units of the first job are planned again from where it is filled; the
    /// first that was spoilt had been planned after so many changes of states.
    Again { changes: u64 },
}

impl Job {
    /// Fills `member` from `done` up to `used`, at `rate` at most.
    pub(super) fn new(
        now: Time,
        member: usize,
        filling: Range<Sectors>,
        rate: Option<Bytes>,
    ) -> Job {
        let Range {
            start: done,
            end: used,
        } = filling;
        assert!(
            done <= used,
            "member {member} is filled up to {done} of {used}"
        );
        let members = vec![Filling { member, done, used }];
        Job {
            members,
            planned: done,
            rate,
            due: now,
            marks: Marks::new(now, done),
        }
    }

    /// All of its members are filled below this.
    fn done(&self) -> Sectors {
        self.members
            .iter()
            .map(|filling| filling.done)
            .min()
            .unwrap_or(self.planned)
    }

    /// As far as the longest of its members is to be filled.
    fn used(&self) -> Sectors {
        self.members
            .iter()
            .map(|filling| filling.used)
            .max()
            .unwrap_or(self.planned)
    }

    /// The members that the next unit fills, and how much of them at most: up to
    /// where one that is ahead joins them.
    pub(super) fn next_of(&self, members: &mut Vec<usize>) -> Sectors {
        members.clear();
        let mut most = Sectors(u64::MAX);
        for filling in &self.members {
            if filling.done <= self.planned {
                members.push(filling.member);
            } else {
                most = most.min(filling.done - self.planned);
            }
        }
        most
    }

    /// Whether the two are near enough to be one, and as fast.
    fn goes_with(&self, other: &Job) -> bool {
        let (one, other_done) = (self.done().0, other.done().0);
        self.rate == other.rate && one.abs_diff(other_done) <= self.used().0 / TOGETHER
    }

    fn join(&mut self, now: Time, other: Job) {
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
        self.members.sort_unstable_by_key(|filling| filling.member);
        self.marks = Marks::new(now, self.done());
    }
}

impl Rebuilds {
    /// Adds a job that begins at `now`, while `in_flight` requests are. It may
    /// go `together` with another. Answers whether units under way count no
    /// longer.
    #[must_use]
    pub(super) fn add(&mut self, now: Time, job: Job, together: bool, in_flight: u32) -> bool {
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

    /// Rebuilds `member` no longer. Answers whether units under way count no
    /// longer.
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

    /// Members are filled one after the other: of those that are lost together,
    /// the first becomes what the next is filled from. Answers whether units
    /// under way count no longer.
    #[must_use]
    pub(super) fn part(&mut self) -> bool {
        if self.queue.iter().all(|job| job.members.len() == 1) {
            return false;
        }
        let again = !self.units.is_empty();
        self.drop_units();
        for job in std::mem::take(&mut self.queue) {
            let alone = |&filling: &Filling| Job {
                members: vec![filling],
                planned: filling.done,
                ..job.clone()
            };
            self.queue.extend(job.members.iter().map(alone));
        }
        again
    }

    /// What is under way of the job at `place` is done over. Answers whether
    /// anything is.
    fn plan_again(&mut self, place: usize) -> bool {
        let again = place == 0 && !self.units.is_empty();
        if again {
            self.drop_units();
        }
        self.queue[place].planned = self.queue[place].done();
        again
    }

    /// Units of the first job that are under way do not count.
    fn drop_units(&mut self) {
        self.units.iter_mut().for_each(|unit| unit.counts = false);
        self.units.retain(|unit| unit.state == UnitState::UnderWay);
    }

    /// Bounds all rebuilds, those that go on as well.
    pub(super) fn limit(&mut self, now: Time, speed: RebuildSpeed) {
        self.speed = speed;
        for job in &mut self.queue {
            job.rate = None;
            job.due = now;
        }
    }

    /// When the next unit is to begin; never, if something else must happen
    /// before.
    #[inline]
    pub(super) fn next_unit(&self, pressure: &Pressure) -> Time {
        match self.queue.front() {
            Some(job) if self.older == 0 && !self.halted => self.next_unit_of(job, pressure),
            _ => Time::NEVER,
        }
    }

    /// As md does in `md_do_sync` (md.c, 6.1): a rebuild that is faster than its
    /// least waits, while there is other I/O, until nothing of its own is under
    /// way.
    fn next_unit_of(&self, job: &Job, pressure: &Pressure) -> Time {
        let at = job.due.max(self.ready);
        let sound = |unit: &Unit| unit.counts && unit.state != UnitState::Spoilt;
        match self.units.len() {
            0 => at,
            _ if job.planned >= job.used() || !self.units.iter().all(sound) => Time::NEVER,
            count if count >= self.sizes.window => Time::NEVER,
            _ if job.marks.bytes_per_s(at, job.done()) < self.speed.least.0 => at,
            _ => at.max(pressure.gone()),
        }
    }

    /// All members that are to be filled.
    pub(super) fn all(&self) -> impl Iterator<Item = &Filling> {
        self.queue.iter().flat_map(|job| &job.members)
    }

    /// The members whose turn it is.
    pub(super) fn job(&self) -> Option<&Job> {
        self.queue.front()
    }

    /// How much a unit fills that begins at `now`.
    pub(super) fn unit_size(&self, now: Time, pressure: &Pressure) -> Sectors {
        if now < pressure.gone() {
            return self.sizes.short;
        }
        // A bounded rebuild has no use for more than a quarter of a second's.
        let most = self
            .rate()
            .map_or(u64::MAX, |rate| rate.0 / SECTOR_BYTES / 4);
        Sectors(self.sizes.long.0.min(most).max(self.sizes.short.0))
    }

    /// The most bytes a second of the first job.
    fn rate(&self) -> Option<Bytes> {
        self.queue
            .front()
            .and_then(|job| job.rate)
            .or(self.speed.most)
    }

    /// Notes that a unit of the first job begins at `now`, or is over at once
    /// if it has no flight. The one behind it begins no earlier than the rate
    /// allows.
    pub(super) fn begin(&mut self, now: Time, slot: Option<usize>, end: Sectors, changes: u64) {
        let rate = self.rate();
        if let Some(job) = self.queue.front_mut() {
            if slot.is_some() {
                assert!(
                    end > job.planned,
                    "a unit of a rebuild from {} ends at {end}",
                    job.planned
                );
                job.due = now + duration(end - job.planned, rate);
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

    /// Notes that the unit in `slot` has ended at `now`.
    pub(super) fn end(&mut self, now: Time, slot: usize, filled: bool) {
        self.ready = self.ready.max(now);
        let Some(place) = self.units.iter().position(|unit| unit.slot == Some(slot)) else {
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

    /// What follows from the units that are over, in order, if anything does.
    pub(super) fn step(&mut self) -> Option<Step> {
        let first = *self.units.front()?;
        let under_way = self
            .units
            .iter()
            .any(|unit| unit.state == UnitState::UnderWay);
        match first.state {
            _ if !first.counts => None,
            UnitState::Filled => {
                self.units.pop_front();
                Some(Step::Filled(first.end))
            }
            UnitState::Spoilt if !under_way => {
                self.units.clear();
                if let Some(job) = self.queue.front_mut() {
                    job.planned = job.done();
                }
                Some(Step::Again {
                    changes: first.changes,
                })
            }
            UnitState::Spoilt | UnitState::UnderWay => None,
        }
    }

    /// Whether a unit is under way.
    pub(super) fn is_busy(&self) -> bool {
        !self.units.is_empty()
    }

    /// The units under way.
    #[cfg(test)]
    pub(super) fn units(&self) -> impl Iterator<Item = &Unit> {
        self.units.iter()
    }

    /// Notes that a unit of the first job is over that filled up to `end` those
    /// of its members that were behind. Answers the next of these, lowest
    /// first, until there is none; what is whole leaves the job, and a job that
    /// nothing is left of leaves last.
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

    /// Notes the end of a request that was planned before the latest restore.
    pub(super) fn older_ended(&mut self, now: Time) {
        assert!(
            self.older > 0,
            "a request ends at {now:?} that is older than the restore, and none was"
        );
        self.older -= 1;
        self.ready = self.ready.max(now);
    }
}

/// How far a job was at some instants, to tell its present speed from: ten marks
/// three seconds apart, as md has them (`SYNC_MARKS` and `SYNC_MARK_STEP` in md.c).
#[derive(Clone, Copy, Debug)]
struct Marks {
    all: [(Time, Sectors); Marks::COUNT],
    latest: usize,
}

impl Marks {
    const COUNT: usize = 10;
    const STEP: Duration = Duration::from_nanos(3_000_000_000);

    fn new(now: Time, done: Sectors) -> Marks {
        Marks {
            all: [(now, done); Marks::COUNT],
            latest: 0,
        }
    }

    fn note(&mut self, now: Time, done: Sectors) {
        debug_assert!(
            now >= self.all[self.latest].0,
            "a rebuild is at {done} at {now:?}, before its latest mark"
        );
        if now >= self.all[self.latest].0 + Marks::STEP {
            self.latest = (self.latest + 1) % Marks::COUNT;
            self.all[self.latest] = (now, done);
        }
    }

    /// The speed since the oldest mark. md adds a second to the time, so that a
    /// rebuild that has just begun does not seem fast.
    fn bytes_per_s(&self, now: Time, done: Sectors) -> u64 {
        let (since, before) = self.all[(self.latest + 1) % Marks::COUNT];
        let elapsed_ns = u128::from(now.saturating_since(since).as_nanos()) + 1_000_000_000;
        let bytes = u128::from(done.0.saturating_sub(before.0)) * u128::from(SECTOR_BYTES);
        u64::try_from(bytes * 1_000_000_000 / elapsed_ns).unwrap_or(u64::MAX)
    }
}

/// How long `sectors` take at `rate` bytes a second, rounded up; at most
/// [`Duration::LONGEST`], because an operator may ask for a byte a second.
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
