//! Shifts of an array with gears: conditions and procedure.
//!
//! - The utilisation of the working members is the share of the time in which they position and
//!   transfer. A window has twelve samples. The mean over the window decides. Copies do not count.
//! - The array shifts down if the mean is below `down`, and up if the mean is above `up`. A shift
//!   needs the minimum time in the present gear. A shift down also needs all members alive and an
//!   unused stop in the daily budget.
//! - A shift down copies stale rows and then stops the platters. A shift up starts the platters and
//!   copies the data home, while the soft state continues to serve. Copies have the class `Idle`,
//!   run one after the other, and obey the rate limit.
//! - If a member fails in the low gear of an array with redundancy, the array shifts up at once.
//!   The lost data is computed from the remaining soft state. Members are filled only in the high
//!   gear. An array without redundancy stays in its gear.
//! - A failed copy is tried again after a second.

use super::Volume;
use super::flight::RequestPurpose;
use crate::gears::{CopiedRows, ShiftRules};
use crate::layout::Layout;
use fullstroke_contract::{
    Effects, Gear, Operation, PriorityClass, RequestStatus, SHIFTS_KEPT, Signal,
};
use fullstroke_units::{Duration, SECTOR_BYTES, Sectors, Time};
use std::collections::VecDeque;

/// Number of samples of the utilisation in a window.
const SAMPLES: u64 = 12;
/// Length of one copy in sectors of the transient members: the same as a unit of a rebuild under
/// load.
const COPY: Sectors = Sectors(2048);
const SECOND: Duration = Duration::from_nanos(1_000_000_000);
const DAY: Duration = Duration::from_nanos(86_400_000_000_000);

/// State of the shifts; see the module.
#[derive(Debug)]
pub(super) struct Shifts {
    rules: ShiftRules,
    gear: Gear,
    /// Number of transient members.
    transient: u32,
    members: u32,
    /// Time when the array entered its gear.
    since: Time,
    /// Total service time of the members since the last sample.
    busy: Duration,
    samples: VecDeque<f64>,
    next_sample: Time,
    copy: Copying,
    /// Times of the stops in the last day.
    stops: VecDeque<Time>,
    /// True if a member has failed in the low gear.
    must_rise: bool,
    /// Number of completed shifts.
    pub(super) settled: u64,
    /// Number of requests in flight from before the low gear. Members stop when this number is 0;
    /// otherwise a request would spin them up again.
    older: u32,
    counted: Counted,
    /// Start times of the first [`SHIFTS_KEPT`] shifts.
    pub(super) begun: Vec<Time>,
}

/// State of the copies of a shift.
#[derive(Clone, Copy, Debug)]
enum Copying {
    /// No shift is running.
    No,
    /// The next copy may begin at this time.
    From(Time),
    /// A copy is in flight since this time.
    UnderWay(CopiedRows, Time),
}

#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    falls: u64,
    rises: u64,
    copied: Sectors,
    /// Time in each gear, without the present stay, indexed by [`Gear`].
    in_gear: [Duration; 4],
}

impl Shifts {
    /// Returns the shifts of a layout; `None` without gears.
    pub(super) fn of(layout: &mut dyn Layout) -> Option<Shifts> {
        let gear = layout.present_gear()?;
        let gears = layout.gears()?;
        let (rules, transient) = (gears.rules(), gears.transient());
        Some(Shifts {
            rules,
            gear,
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
        })
    }

    /// Adds service time of a member.
    #[inline]
    pub(super) fn worked(&mut self, service: Duration) {
        self.busy += service;
    }

    /// Returns the time of the next event.
    #[inline]
    pub(super) fn next(&self) -> Time {
        let copy = match self.copy {
            Copying::From(at) => at,
            Copying::No | Copying::UnderWay(..) => Time::NEVER,
        };
        // Rebuilds run only in the high gear (`next_unit`), so a failure in the low gear waits for
        // no sample.
        if self.must_rise {
            Time::ZERO
        } else {
            copy.min(self.next_sample)
        }
    }

    /// Takes the due samples. Returns the mean if there are samples for a whole window.
    fn sample(&mut self, now: Time) -> Option<f64> {
        let step = step(self.rules);
        while self.next_sample <= now {
            // Stopped members do no work, so the mean is over the others.
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

    /// Returns the gear to shift to, if a shift is due.
    fn wants(&mut self, now: Time, mean: Option<f64>) -> Option<Gear> {
        if std::mem::take(&mut self.must_rise) && self.gear == Gear::Low {
            return Some(Gear::Rising);
        }
        // Without a shortest stay, a load near a threshold would start and stop members all day,
        // and starts wear the drives.
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
            // A stop counts where it happens, at the entry of the low gear, because a given-up
            // shift stops no member.
            Gear::Low => {
                self.counted.falls += 1;
                self.stops.push_back(now);
            }
            Gear::Rising => self.counted.rises += 1,
            Gear::High | Gear::Falling => {}
        }
        // The list must not grow with the length of the run.
        if matches!(gear, Gear::Falling | Gear::Rising) && self.begun.len() < SHIFTS_KEPT {
            self.begun.push(now);
        }
        // Samples from another gear say nothing about this gear.
        if matches!(gear, Gear::High | Gear::Low) {
            self.samples.clear();
            self.settled += 1;
        }
        self.since = now;
        self.gear = gear;
    }

    /// Returns the counts until `now`, by name.
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
    /// Carries out the work due by `now`.
    #[cold]
    pub(super) fn shift_on(&mut self, now: Time, out: &mut Effects) {
        let Some(shifts) = &mut self.shifts else {
            return;
        };
        let mean = shifts.sample(now);
        if let Some(gear) = shifts.wants(now, mean) {
            self.begin_shift(now, gear, out);
        }
        self.begin_copy(now, out);
    }

    fn begin_shift(&mut self, now: Time, gear: Gear, out: &mut Effects) {
        let (Some(shifts), Some(gears)) = (&mut self.shifts, self.layout.gears()) else {
            return;
        };
        // The members must spin up before the copies to them begin.
        if gear == Gear::Rising {
            shifts.enter(now, gear);
            // All members to start have failed, so no completion will come, and the shift goes on
            // at once.
            if !self.platters(now, Operation::Start, out) {
                self.platters_ended(now, out);
            }
        } else if gears.shift(gear) {
            shifts.enter(now, gear);
            shifts.copy = Copying::From(now);
            out.signal(Signal::Shifted(gear));
        }
    }

    /// Handles the end of a stop or start of members. The layout stays in the low gear until the
    /// members are ready. No write has to wait for a start.
    pub(super) fn platters_ended(&mut self, at: Time, out: &mut Effects) {
        let (Some(shifts), Some(gears)) = (&mut self.shifts, self.layout.gears()) else {
            return;
        };
        if shifts.gear == Gear::Rising && gears.shift(Gear::Rising) {
            shifts.copy = Copying::From(at);
            out.signal(Signal::Shifted(Gear::Rising));
        }
    }

    /// Begins the next copy if it is due. Without stale rows, the shift is complete.
    fn begin_copy(&mut self, now: Time, out: &mut Effects) {
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
            self.flights[slot].begin_background(now, RequestPurpose::Copy, PriorityClass::Idle);
            return self.begin_strands(slot, out);
        }
        // Nothing was planned, so nothing will free the slot later.
        self.free.push(slot as u32);
        gears.settle();
        let Some(gear) = self.layout.present_gear() else {
            return;
        };
        shifts.copy = Copying::No;
        shifts.enter(now, gear);
        out.signal(Signal::Shifted(gear));
        // Requests that were planned in the old gear may still go to the members that are about to
        // stop.
        shifts.older = self.in_flight;
        if gear == Gear::Low && self.in_flight == 0 {
            self.platters(now, Operation::Standby, out);
        }
    }

    /// Handles the completion of a request. `settled` is the number of completed shifts before the
    /// request was planned.
    pub(super) fn ended_before_gear(&mut self, at: Time, settled: u64, out: &mut Effects) {
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

    /// Returns the time of the next unit of a rebuild. Rebuilds run only in the high gear.
    #[inline]
    pub(super) fn next_unit(&self) -> Time {
        match &self.shifts {
            Some(shifts) if shifts.gear != Gear::High => Time::NEVER,
            _ => self.next_turn(),
        }
    }

    /// Handles the end of a copy.
    pub(super) fn copy_ended(&mut self, at: Time, status: RequestStatus) {
        let (Some(shifts), Some(gears)) = (&mut self.shifts, self.layout.gears()) else {
            return;
        };
        let Copying::UnderWay(rows, begun) = shifts.copy else {
            return;
        };
        if status != RequestStatus::Done {
            gears.again(rows);
            // A member that failed a copy may answer later. Without a pause the copies would fail
            // in a tight loop.
            shifts.copy = Copying::From(at + SECOND);
            return;
        }
        shifts.counted.copied += rows.sectors;
        // The next copy begins when this one would end at the given rate, so that foreground
        // requests have the rest of the time.
        let rate = shifts.rules.rate.map_or(u64::MAX, |rate| rate.0);
        let least = u128::from(rows.sectors.0 * SECTOR_BYTES) * 1_000_000_000 / u128::from(rate);
        shifts.copy = Copying::From(at.max(begun + Duration::from_nanos(least as u64)));
    }

    /// Stops or starts the transient members, except failed ones. Returns false if all of them have
    /// failed.
    fn platters(&mut self, now: Time, operation: Operation, out: &mut Effects) -> bool {
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
        self.flights[slot].begin_background(now, RequestPurpose::Platters, PriorityClass::Idle);
        self.begin_strands(slot, out);
        true
    }

    /// Handles a change of a member's state: gives up a shift down, or leaves the low gear.
    pub(super) fn gears_changed(&mut self, now: Time, out: &mut Effects) {
        let survived = self.layout.failures_survived();
        let impaired = !self.layout.member_states().impaired().is_empty();
        let (Some(shifts), Some(gear)) = (&mut self.shifts, self.layout.present_gear()) else {
            return;
        };
        if shifts.gear == Gear::Falling && gear == Gear::High {
            shifts.enter(now, gear);
            shifts.copy = Copying::No;
            out.signal(Signal::Shifted(gear));
        }
        shifts.must_rise = gear == Gear::Low && impaired && survived > 0;
    }
}
