//! When an array with gears shifts, and what it does then.
//!
//! - The utilisation of the working members, the share of the time in which they position and transfer,
//!   is taken twelve times a window; its mean over the window decides. Copies do not count.
//! - Below `down` the array shifts down, above `up` it shifts up, but not before it has been in its
//!   gear for the least stay, nor down when the budget of stops is used up or a member is not alive.
//! - A shift down copies stale rows and then stops the platters; a shift up starts them and copies home,
//!   while the soft state goes on to serve. Copies are of the class `Idle`, one after the other, and no
//!   faster than the rate.
//! - A member that fails in the low gear of an array with redundancy makes it shift up at once: what is
//!   lost is computed from the soft state that is left. Members are filled in the high gear alone.
//!   An array without redundancy stays as it is.
//! - A copy that fails is tried again after a second.

use super::Volume;
use super::flight::Purpose;
use crate::gears::{CopiedRows, Gears, ShiftRules};
use fullstroke_contract::{Gear, Operation, Out, SHIFTS_KEPT, Signal, Status};
use fullstroke_units::{Duration, SECTOR_BYTES, Sectors, Time};
use std::collections::VecDeque;

/// Samples of utilisation in a window.
const SAMPLES: u64 = 12;
/// How much of the transient members one copy moves: a unit of a rebuild under load.
const COPY: Sectors = Sectors(2048);
const SECOND: Duration = Duration::from_nanos(1_000_000_000);
const DAY: Duration = Duration::from_nanos(86_400_000_000_000);

/// See the module.
#[derive(Debug)]
pub(super) struct Shifts {
    rules: ShiftRules,
    gear: Gear,
    /// Members that stop.
    transient: u32,
    members: u32,
    /// Since when it is in its gear.
    since: Time,
    /// Service of members since the last sample.
    busy: Duration,
    samples: VecDeque<f64>,
    next_sample: Time,
    copy: Copying,
    /// When members were stopped in the last day.
    stops: VecDeque<Time>,
    /// A member has failed in the low gear.
    must_rise: bool,
    /// How often a gear was settled in.
    pub(super) settled: u64,
    /// Requests in flight that were planned before the low gear: members stop when none is left, or they
    /// would start again.
    older: u32,
    counted: Counted,
    /// When shifts began: the first [`SHIFTS_KEPT`].
    pub(super) begun: Vec<Time>,
}

/// The copies of a shift.
#[derive(Clone, Copy, Debug)]
enum Copying {
    /// None: no shift is under way.
    No,
    /// The next may begin then.
    From(Time),
    /// One is under way since.
    UnderWay(CopiedRows, Time),
}

#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    falls: u64,
    rises: u64,
    copied: Sectors,
    /// Time in each gear that has been left, as [`Gear`] numbers them.
    in_gear: [Duration; 4],
}

impl Shifts {
    pub(super) fn new(gears: &dyn Gears) -> Shifts {
        let (rules, transient) = (gears.rules(), gears.transient());
        Shifts {
            rules,
            gear: gears.gear(),
            transient: transient.len() as u32,
            members: transient.end as u32,
            since: Time::ZERO,
            busy: Duration::ZERO,
            samples: VecDeque::with_capacity(SAMPLES as usize),
            next_sample: Time::ZERO + step(rules),
            copy: Copying::No,
            stops: VecDeque::new(),
            must_rise: false,
            settled: 0,
            older: 0,
            counted: Counted::default(),
            begun: Vec::new(),
        }
    }

    /// A member has worked for so long.
    #[inline]
    pub(super) fn worked(&mut self, service: Duration) {
        self.busy += service;
    }

    /// When there is something to do next.
    #[inline]
    pub(super) fn next(&self) -> Time {
        let copy = match self.copy {
            Copying::From(at) => at,
            Copying::No | Copying::UnderWay(..) => Time::NEVER,
        };
        if self.must_rise {
            Time::ZERO
        } else {
            copy.min(self.next_sample)
        }
    }

    /// Takes the samples that are due. Answers the mean over a whole window.
    fn sample(&mut self, now: Time) -> Option<f64> {
        let step = step(self.rules);
        while self.next_sample <= now {
            let working = self.members
                - if self.gear == Gear::Low {
                    self.transient
                } else {
                    0
                };
            let whole = step.as_nanos() as f64 * f64::from(working);
            if self.samples.len() == SAMPLES as usize {
                self.samples.pop_front();
            }
            self.samples
                .push_back(std::mem::take(&mut self.busy).as_nanos() as f64 / whole);
            self.next_sample += step;
        }
        let whole = self.samples.len() == SAMPLES as usize;
        whole.then(|| self.samples.iter().sum::<f64>() / SAMPLES as f64)
    }

    /// Where the mean leads.
    fn wants(&mut self, now: Time, mean: Option<f64>) -> Option<Gear> {
        if std::mem::take(&mut self.must_rise) && self.gear == Gear::Low {
            return Some(Gear::Rising);
        }
        let mean = mean.filter(|_| now >= self.since + self.rules.stay)?;
        let (down, up) = (mean < self.rules.down, mean > self.rules.up);
        match self.gear {
            Gear::High => (down && self.may_stop(now)).then_some(Gear::Falling),
            Gear::Low => up.then_some(Gear::Rising),
            Gear::Falling | Gear::Rising => None,
        }
    }

    fn may_stop(&mut self, now: Time) -> bool {
        while self.stops.front().is_some_and(|&stop| stop + DAY <= now) {
            self.stops.pop_front();
        }
        self.rules
            .stops_a_day
            .is_none_or(|most| self.stops.len() < most as usize)
    }

    fn enter(&mut self, now: Time, gear: Gear) {
        assert!(
            now >= self.since
                && matches!(
                    (self.gear, gear),
                    (Gear::High, Gear::Falling)
                        | (Gear::Falling, Gear::Low | Gear::High)
                        | (Gear::Low, Gear::Rising)
                        | (Gear::Rising, Gear::High)
                ),
            "the {} gear follows the {} gear of {:?} at {now:?}",
            gear.name(),
            self.gear.name(),
            self.since
        );
        self.counted.in_gear[self.gear as usize] += now.since(self.since);
        match gear {
            Gear::Low => {
                self.counted.falls += 1;
                self.stops.push_back(now);
            }
            Gear::Rising => self.counted.rises += 1,
            Gear::High | Gear::Falling => {}
        }
        if matches!(gear, Gear::Falling | Gear::Rising) && self.begun.len() < SHIFTS_KEPT {
            self.begun.push(now);
        }
        if matches!(gear, Gear::High | Gear::Low) {
            self.samples.clear();
            self.settled += 1;
        }
        self.since = now;
        self.gear = gear;
    }

    /// What was counted until `now`, by name.
    pub(super) fn readings(&self, now: Time) -> [(&'static str, f64); 7] {
        let Counted {
            falls,
            rises,
            copied,
            mut in_gear,
        } = self.counted;
        in_gear[self.gear as usize] += now.saturating_since(self.since);
        let whole = now.saturating_since(Time::ZERO).as_nanos() as f64;
        let share = |gear: Gear| in_gear[gear as usize].as_nanos() as f64 / whole;
        [
            ("volume_shifts_down", falls as f64),
            ("volume_shifts_up", rises as f64),
            ("volume_high_gear_share", share(Gear::High)),
            ("volume_falling_gear_share", share(Gear::Falling)),
            ("volume_low_gear_share", share(Gear::Low)),
            ("volume_rising_gear_share", share(Gear::Rising)),
            ("volume_shift_copied_mb", copied.bytes().0 as f64 / 1e6),
        ]
    }
}

fn step(rules: ShiftRules) -> Duration {
    Duration::from_nanos((rules.window.as_nanos() / SAMPLES).max(1))
}

impl Volume {
    /// Does what is due by `now`.
    #[cold]
    pub(super) fn shift_on(&mut self, now: Time, out: &mut Out) {
        let Some(shifts) = &mut self.shifts else {
            return;
        };
        let mean = shifts.sample(now);
        if let Some(gear) = shifts.wants(now, mean) {
            self.begin_shift(now, gear, out);
        }
        self.begin_copy(now, out);
    }

    fn begin_shift(&mut self, now: Time, gear: Gear, out: &mut Out) {
        let (Some(shifts), Some(gears)) = (&mut self.shifts, self.layout.gears()) else {
            return;
        };
        if gear == Gear::Rising {
            shifts.enter(now, gear);
            if !self.platters(now, Operation::Start, out) {
                self.platters_ended(now, out);
            }
        } else if gears.shift(gear) {
            shifts.enter(now, gear);
            shifts.copy = Copying::From(now);
            out.signal(Signal::Shifted(gear));
        }
    }

    /// Members have stopped or started. Until they turn, the layout is in the low gear: no write waits for
    /// a start.
    pub(super) fn platters_ended(&mut self, at: Time, out: &mut Out) {
        let (Some(shifts), Some(gears)) = (&mut self.shifts, self.layout.gears()) else {
            return;
        };
        if shifts.gear == Gear::Rising && gears.shift(Gear::Rising) {
            shifts.copy = Copying::From(at);
            out.signal(Signal::Shifted(Gear::Rising));
        }
    }

    /// Begins the next copy if it is due; without stale rows the shift is over.
    fn begin_copy(&mut self, now: Time, out: &mut Out) {
        let due = |shifts: &Shifts| matches!(shifts.copy, Copying::From(at) if at <= now);
        if !self.shifts.as_ref().is_some_and(due) {
            return;
        }
        let slot = self.new_slot();
        let (Some(shifts), Some(gears)) = (&mut self.shifts, self.layout.gears()) else {
            return;
        };
        let plan = &mut self.flights[slot].plan;
        if let Some(rows) = gears.plan_copy(COPY, plan) {
            assert!(
                rows.sectors > Sectors::ZERO && !plan.ios().is_empty(),
                "a copy of stale rows copies nothing"
            );
            shifts.copy = Copying::UnderWay(rows, now);
            self.flights[slot].begin_background(now, Purpose::Copy);
            return self.begin_strands(slot, out);
        }
        self.free.push(slot as u32);
        gears.settle();
        let gear = gears.gear();
        shifts.copy = Copying::No;
        shifts.enter(now, gear);
        out.signal(Signal::Shifted(gear));
        shifts.older = self.in_flight;
        if gear == Gear::Low && self.in_flight == 0 {
            self.platters(now, Operation::Standby, out);
        }
    }

    /// A request has ended that was planned when so many gears had been settled in.
    pub(super) fn ended_before_gear(&mut self, at: Time, settled: u64, out: &mut Out) {
        let Some(shifts) = &mut self.shifts else {
            return;
        };
        if settled == shifts.settled {
            return;
        }
        shifts.older = shifts.older.saturating_sub(1);
        if shifts.older == 0 && shifts.gear == Gear::Low {
            self.platters(at, Operation::Standby, out);
        }
    }

    /// When the next unit of a rebuild may begin: in the high gear.
    #[inline]
    pub(super) fn next_unit(&self) -> Time {
        match &self.shifts {
            Some(shifts) if shifts.gear != Gear::High => Time::NEVER,
            _ => self.rebuilds.next_unit(&self.pressure),
        }
    }

    /// The copy that was under way has ended.
    pub(super) fn copy_ended(&mut self, at: Time, status: Status) {
        let (Some(shifts), Some(gears)) = (&mut self.shifts, self.layout.gears()) else {
            return;
        };
        let Copying::UnderWay(rows, begun) = shifts.copy else {
            return;
        };
        if status != Status::Done {
            gears.again(rows);
            shifts.copy = Copying::From(at + SECOND);
            return;
        }
        shifts.counted.copied += rows.sectors;
        let rate = shifts.rules.rate.map_or(u64::MAX, |rate| rate.0);
        let least = u128::from(rows.sectors.0 * SECTOR_BYTES) * 1_000_000_000 / u128::from(rate);
        shifts.copy = Copying::From(at.max(begun + Duration::from_nanos(least as u64)));
    }

    /// Stops or starts the members that stop in the low gear, those that have not failed. Answers
    /// whether there are any.
    fn platters(&mut self, now: Time, operation: Operation, out: &mut Out) -> bool {
        let Some(gears) = self.layout.gears() else {
            return false;
        };
        let transient = gears.transient();
        let there = |member: &u32| self.layout.failed().binary_search(member).is_err();
        let members: Vec<u32> = (transient.start as u32..transient.end as u32)
            .filter(there)
            .collect();
        if members.is_empty() {
            return false;
        }
        let slot = self.new_slot();
        let plan = &mut self.flights[slot].plan;
        plan.clear();
        plan.of_some(operation, members.into_iter());
        self.flights[slot].begin_background(now, Purpose::Platters);
        self.begin_strands(slot, out);
        true
    }

    /// A member's state has changed: a shift down is given up, the low gear is left.
    pub(super) fn gears_changed(&mut self, out: &mut Out) {
        let survived = self.layout.failures_survived();
        let impaired = !self.layout.member_states().impaired().is_empty();
        let (Some(shifts), Some(gears)) = (&mut self.shifts, self.layout.gears()) else {
            return;
        };
        let gear = gears.gear();
        if shifts.gear == Gear::Falling && gear == Gear::High {
            shifts.gear = gear;
            shifts.copy = Copying::No;
            out.signal(Signal::Shifted(gear));
        }
        shifts.must_rise = gear == Gear::Low && impaired && survived > 0;
    }
}
