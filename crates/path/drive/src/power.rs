//! Time of an arm in each power state.
//!
//! Work is booked when the arm plans the work, so some booked work lies in the future: a flush
//! plans all writes at once. A reading counts booked work before the instant of the reading.
//! Unbooked time is idle time. No time is counted twice or left out: the times of the states add up
//! to the elapsed time. An access over several tracks is booked as one seek, one wait and one
//! transfer. A reading in the middle of such an access sees the three parts in this order.

use crate::config::PowerConfig;
use crate::mechanics::AccessTimes;
use fullstroke_contract::{ConfigError, Draw, PowerState, PowerStatistics, Residency, Transition};
use fullstroke_units::{Duration, Joules, Time, Watts};
use std::collections::VecDeque;

/// Power data of a drive that the arms need.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ArmPower {
    pub(crate) spin_up: Duration,
    pub(crate) spin_down: Duration,
    /// Idle states with unloaded heads. `None` if the drive never unloads the heads.
    pub(crate) unloading: Option<Unloading>,
    /// Watts of the power states. `None` if not known.
    pub(crate) draw: Option<Draw>,
}

/// The idle states Idle_B and Idle_C. Each has an idle time after which the drive enters the state,
/// and a time to come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unloading {
    b: Option<Idle>,
    c: Option<Idle>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Idle {
    state: PowerState,
    after: Duration,
    wake: Duration,
}

impl ArmPower {
    /// Reads the keys of `[power]` for a drive with `arms` arms.
    ///
    /// # Errors
    /// Names the invalid key.
    pub(crate) fn new(config: &PowerConfig, arms: u32) -> Result<ArmPower, ConfigError> {
        config.check()?;
        let idle = |state, idle: Option<crate::config::IdleConfig>| {
            idle.map(|idle| Idle {
                state,
                after: Duration::from_millis_f64(idle.after_ms),
                wake: Duration::from_millis_f64(idle.wake_ms),
            })
        };
        let (b, c) = (
            idle(PowerState::IdleB, config.idle_b),
            idle(PowerState::IdleC, config.idle_c),
        );
        Ok(ArmPower {
            spin_up: Duration::from_millis_f64(config.spin_up_ms),
            spin_down: Duration::from_millis_f64(config.spin_down_ms),
            unloading: (b.is_some() || c.is_some()).then_some(Unloading { b, c }),
            draw: draw(config, f64::from(arms)),
        })
    }
}

/// Returns the power draw of one of `arms` arms. Each arm draws an equal share of the idle watts,
/// and the full addition of active work.
fn draw(config: &PowerConfig, arms: f64) -> Option<Draw> {
    let idle = config.idle_a_w?;
    // Each arm has its part of the idle power. Activity comes on top, and each active arm needs the
    // whole of it.
    let active = |w: f64| idle / arms + (w - idle);
    let (seek, rotate, read, write) = (
        config.seek_w?,
        config.rotate_w?,
        config.read_w?,
        config.write_w?,
    );
    let standby = config.standby_w?;
    let (spin_down, spin_up) = (config.spin_down_j?, config.spin_up_j?);
    let watts = |state| {
        Watts(match state {
            PowerState::Seek | PowerState::Wake => active(seek),
            PowerState::WriteSeek => active(config.write_seek_w.unwrap_or(seek)),
            PowerState::Rotate => active(rotate),
            PowerState::Read => active(read),
            PowerState::Write => active(write),
            PowerState::IdleA => idle / arms,
            PowerState::IdleB => config.idle_b.map_or(idle, |idle| idle.w) / arms,
            PowerState::IdleC => config.idle_c.map_or(idle, |idle| idle.w) / arms,
            PowerState::Standby => standby / arms,
            // The energy of a stop or a start is given in joules, as a transition below.
            PowerState::SpinDown | PowerState::SpinUp => 0.0,
        })
    };
    let transition = |ms: f64, joules: f64| {
        Transition::new(Duration::from_millis_f64(ms), Joules(joules / arms))
    };
    Some(Draw::new(
        watts,
        transition(config.spin_down_ms, spin_down),
        transition(config.spin_up_ms, spin_up),
    ))
}

impl Unloading {
    /// Returns the idle state of a drive that has been idle for `idle`. `None` for Idle_A.
    fn behind(&self, idle: Duration) -> Option<Idle> {
        // The deeper state comes first, because Idle_C has the longer timer.
        [self.c, self.b]
            .into_iter()
            .flatten()
            .find(|state| idle >= state.after)
    }

    /// Returns the time that heads need to come back after `idle` without work.
    pub(crate) fn wake(&self, idle: Duration) -> Duration {
        self.behind(idle).map_or(Duration::ZERO, |state| state.wake)
    }

    /// True if the heads came back from an idle state in a gap of `gap` between two works.
    fn wakes(&self, gap: Duration) -> bool {
        let wakes =
            |state: Option<Idle>| state.is_some_and(|state| gap >= state.after + state.wake);
        wakes(self.b) || wakes(self.c)
    }

    /// Returns the idle state from which the heads came back in a gap of `gap` between two works.
    /// The gap includes the way back.
    fn woken(&self, gap: Duration) -> Option<Idle> {
        [self.c, self.b]
            .into_iter()
            .flatten()
            .find(|state| gap >= state.after + state.wake)
    }
}

/// A piece of work of an arm, in consecutive parts.
#[derive(Clone, Copy, Debug)]
struct ArmWork {
    begin: Time,
    end: Time,
    parts: [(PowerState, Duration); 3],
}

/// Past and planned work of an arm, with the energy.
#[derive(Clone, Debug)]
pub struct Meter {
    draw: Draw,
    unloading: Option<Unloading>,
    /// Totals until `so_far.until`.
    so_far: PowerTotals,
    /// Planned work after `so_far`, in order. The time between two spans is idle time.
    planned: VecDeque<ArmWork>,
    /// Time of a movement that belongs to the next booked command.
    detour: Duration,
}

/// Standing platters: when the platters start and when they turn again. Both are [`Time::NEVER`]
/// while no request needs the platters.
#[derive(Clone, Copy, Debug)]
pub struct StoppedPlatters {
    pub(crate) starts: Time,
    pub(crate) ready: Time,
}

/// Totals of all states until an instant.
#[derive(Clone, Copy, Debug, Default)]
struct PowerTotals {
    until: Time,
    residency: Residency,
    spin_downs: u64,
    spin_ups: u64,
    wakes: u64,
}

/// Number of planned spans at which the past spans are added up.
const PLANNED_MANY: usize = 16;

// Functions that book work stay out of line. Arms of drives without watts then pay for one
// comparison only.
impl Meter {
    /// Creates a meter at time 0. `None` if `[power]` has no watts.
    pub(crate) fn new(power: &ArmPower) -> Option<Meter> {
        Some(Meter {
            draw: power.draw?,
            unloading: power.unloading,
            so_far: PowerTotals::default(),
            planned: VecDeque::with_capacity(2 * PLANNED_MANY),
            detour: Duration::ZERO,
        })
    }

    /// Adds a movement to the work that is booked next.
    pub(crate) fn add_movement(&mut self, time: Duration) {
        self.detour += time;
    }

    /// Books a command from `begin` to `end`. The arm does not work on the command except for a
    /// detour.
    #[inline(never)]
    pub fn taken(&mut self, begin: Time, end: Time) {
        let whole = end.saturating_since(begin);
        let seek = std::mem::take(&mut self.detour).min(whole);
        let waits = (PowerState::Rotate, whole - seek);
        self.add_times(
            begin,
            [
                waits,
                (PowerState::Seek, seek),
                (PowerState::Rotate, Duration::ZERO),
            ],
        );
    }

    /// Books `access` from `begin` on.
    #[inline(never)]
    pub fn accessed(&mut self, begin: Time, access: &AccessTimes, write: bool) {
        let (seeks, passes) = match write {
            true => (PowerState::WriteSeek, PowerState::Write),
            false => (PowerState::Seek, PowerState::Read),
        };
        let AccessTimes {
            seek,
            rotation,
            transfer,
            ..
        } = *access;
        self.add_times(
            begin,
            [
                (seeks, seek),
                (PowerState::Rotate, rotation),
                (passes, transfer),
            ],
        );
    }

    /// Books one state from `begin` to `end`. Most calls have nothing to book: the arm stands on
    /// the right track already, or the time is booked.
    #[inline]
    pub(crate) fn state(&mut self, state: PowerState, begin: Time, end: Time) {
        let transition = matches!(state, PowerState::SpinDown | PowerState::SpinUp);
        if end > begin || transition {
            self.add_state_time(state, begin, end);
        }
    }

    #[inline(never)]
    fn add_state_time(&mut self, state: PowerState, begin: Time, end: Time) {
        let whole = (state, end.saturating_since(begin));
        let nothing = (state, Duration::ZERO);
        self.add_times(begin, [whole, nothing, nothing]);
    }

    /// Books parts that follow each other. Time that overlaps with booked time counts once.
    #[inline]
    fn add_times(&mut self, begin: Time, mut parts: [(PowerState, Duration); 3]) {
        let end = begin + parts[0].1 + parts[1].1 + parts[2].1;
        let free = self
            .planned
            .back()
            .map_or(self.so_far.until, |span| span.end);
        let mut twice = free.saturating_since(begin);
        if twice > Duration::ZERO {
            for (_, time) in &mut parts {
                let cut = twice.min(*time);
                *time -= cut;
                twice -= cut;
            }
        }
        // A transition is booked even without duration, because the number of transitions counts.
        let transition = matches!(parts[0].0, PowerState::SpinDown | PowerState::SpinUp);
        if end > free && end > begin || transition {
            let span = ArmWork {
                begin: begin.max(free),
                end: end.max(free),
                parts,
            };
            debug_assert!(
                span.begin <= span.end && span.begin >= self.so_far.until,
                "a span from {:?} to {:?} lies before {:?}",
                span.begin,
                span.end,
                self.so_far.until
            );
            self.planned.push_back(span);
        }
    }

    /// Moves spans ending by `now` from the plan to the totals, once many spans are planned. A
    /// reading counts planned spans as well.
    #[inline]
    pub fn passed(&mut self, now: Time) {
        if self.planned.len() >= PLANNED_MANY {
            self.total_until(now);
        }
    }

    #[inline(never)]
    fn total_until(&mut self, now: Time) {
        while let Some(span) = self.planned.front().filter(|span| span.end <= now) {
            self.so_far.through(span, self.unloading, now);
            self.planned.pop_front();
        }
    }

    /// Returns the time and energy until `now` of an arm whose platters may `stand`. `now` must not
    /// lie before the last call.
    pub fn reading(&self, now: Time, stand: Option<StoppedPlatters>) -> PowerStatistics {
        let mut spent = self.so_far;
        self.planned
            .iter()
            .for_each(|span| spent.through(span, self.unloading, now));
        if let Some(StoppedPlatters { starts, ready }) = stand {
            spent.state_until(PowerState::Standby, starts, now);
            spent.spin_ups += u64::from(starts <= now);
            spent.state_until(PowerState::SpinUp, ready, now);
        }
        spent.idle_until(now, now, self.unloading, false);
        assert_eq!(
            spent.residency.total(),
            spent.until.since(Time::ZERO),
            "the times of all states add up to the time that has passed"
        );
        let PowerTotals {
            residency,
            spin_downs,
            spin_ups,
            wakes,
            ..
        } = spent;
        PowerStatistics::new(&self.draw, residency, spin_downs, spin_ups, wakes)
    }
}

impl PowerTotals {
    /// Adds idle time up to a span, and then the span, as far as both lie before `now`.
    fn through(&mut self, span: &ArmWork, unloading: Option<Unloading>, now: Time) {
        let works = !matches!(
            span.parts[0].0,
            PowerState::SpinDown | PowerState::Standby | PowerState::SpinUp
        );
        let gap = span.begin.saturating_since(self.until);
        if works && span.end <= now && unloading.is_none_or(|unloading| !unloading.wakes(gap)) {
            // The usual case: the heads were loaded all the time.
            self.residency.add(PowerState::IdleA, gap);
            for (state, time) in span.parts {
                self.residency.add(state, time);
            }
            // The parts of a span add up to the span.
            self.until = span.end;
            return;
        }
        self.idle_until(span.begin, now, unloading, works);
        if span.begin > now {
            return;
        }
        match span.parts[0].0 {
            PowerState::SpinDown => self.spin_downs += 1,
            PowerState::SpinUp => self.spin_ups += 1,
            _ => {}
        }
        for (state, time) in span.parts {
            self.state_until(state, self.until + time, now);
        }
    }

    /// Adds idle time until `end`. If `work` is true, the heads are at work again at `end`.
    fn idle_until(&mut self, end: Time, now: Time, unloading: Option<Unloading>, work: bool) {
        let begin = self.until;
        let Some(unloading) = unloading.filter(|_| end > begin) else {
            return self.state_until(PowerState::IdleA, end, now);
        };
        let woken = if work {
            unloading.woken(end.since(begin))
        } else {
            None
        };
        let back = woken.map_or(Duration::ZERO, |state| state.wake);
        let leaves = Time::from_nanos(end.as_nanos() - back.as_nanos());
        let (b, c) = (unloading.b, unloading.c);
        // Heads that are needed before the idle timer has run out were never unloaded.
        let goes = |idle: Option<Idle>| match idle {
            Some(Idle { after, .. }) if !work || woken.is_some() => leaves.min(begin + after),
            _ => leaves,
        };
        let (from_b, from_c) = (goes(b), goes(c));
        self.state_until(PowerState::IdleA, from_b.min(from_c), now);
        if b.is_some() {
            self.state_until(PowerState::IdleB, from_c, now);
        }
        self.state_until(PowerState::IdleC, leaves, now);
        if woken.is_some() {
            self.wakes += u64::from(leaves <= now);
            self.state_until(PowerState::Wake, end, now);
        }
    }

    /// Stays in `state` until `end`, as far as `end` lies before `now`.
    #[inline]
    fn state_until(&mut self, state: PowerState, end: Time, now: Time) {
        let end = end.min(now);
        if end > self.until {
            self.residency.add(state, end.since(self.until));
            self.until = end;
        }
    }
}
