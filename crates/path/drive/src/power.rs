//! How long an arm was in each of its states of power.
//!
//! What it does is booked when it is planned, so that some of it lies ahead: a flush plans all its
//! writes at once. A reading counts what lies before its instant, and whatever is not booked is
//! idle. Nothing is counted twice and nothing is left out: the times of the states add up to the
//! time that has passed. An access over several tracks is booked as one seek, one wait and one
//! transfer; while it goes on, that is the order in which they are read.

use crate::config::PowerConfig;
use crate::mechanics::Access;
use fullstroke_contract::{ConfigError, Draw, PowerState, PowerStatistics, Residency, Transition};
use fullstroke_units::{Duration, Joules, Time, Watts};
use std::collections::VecDeque;

/// What of a drive's `[power]` its arms need.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Power {
    pub(crate) spin_up: Duration,
    pub(crate) spin_down: Duration,
    /// When it unloads its heads, if it does.
    pub(crate) unloading: Option<Unloading>,
    /// What its states draw, if that is known.
    pub(crate) draw: Option<Draw>,
}

/// The idle states of a drive beyond the first, each with the idle time behind which it goes there
/// and the time to come back.
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

impl Power {
    /// # Errors
    /// Names the key that cannot be.
    pub(crate) fn new(config: &PowerConfig, arms: u32) -> Result<Power, ConfigError> {
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
        Ok(Power {
            spin_up: Duration::from_millis_f64(config.spin_up_ms),
            spin_down: Duration::from_millis_f64(config.spin_down_ms),
            unloading: (b.is_some() || c.is_some()).then_some(Unloading { b, c }),
            draw: draw(config, f64::from(arms)),
        })
    }
}

/// What one of `arms` arms draws: its share of what the idle drive does, and what work adds.
fn draw(config: &PowerConfig, arms: f64) -> Option<Draw> {
    let idle = config.idle_a_w?;
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
    /// Where a drive is that has been idle for so long.
    fn behind(&self, idle: Duration) -> Option<Idle> {
        [self.c, self.b]
            .into_iter()
            .flatten()
            .find(|state| idle >= state.after)
    }

    /// How long heads take to come back that have been idle for so long.
    pub(crate) fn wake(&self, idle: Duration) -> Duration {
        self.behind(idle).map_or(Duration::ZERO, |state| state.wake)
    }

    /// From where the heads have come back that are at work after `gap`, the way back included.
    fn woken(&self, gap: Duration) -> Option<Idle> {
        [self.c, self.b]
            .into_iter()
            .flatten()
            .find(|state| gap >= state.after + state.wake)
    }
}

/// Something that an arm does, in parts that follow each other.
#[derive(Clone, Copy, Debug)]
struct Span {
    begin: Time,
    end: Time,
    parts: [(PowerState, Duration); 3],
}

/// What an arm did and is about to do.
#[derive(Clone, Debug)]
pub struct Meter {
    draw: Draw,
    unloading: Option<Unloading>,
    /// Everything until `until`.
    so_far: Spent,
    /// What comes behind, in order. Between is idle time.
    planned: VecDeque<Span>,
    /// Of a movement that is about to be booked.
    detour: Duration,
}

/// Platters that stand: when they start, and turn again; [`Time::NEVER`] where nobody needs them.
#[derive(Clone, Copy, Debug)]
pub struct Standing {
    pub(crate) starts: Time,
    pub(crate) ready: Time,
}

/// Times until an instant.
#[derive(Clone, Copy, Debug, Default)]
struct Spent {
    until: Time,
    residency: Residency,
    spin_downs: u64,
    spin_ups: u64,
    wakes: u64,
}

// What books is kept out of line: the arms of drives that do not say what they draw pay for a
// comparison alone.
impl Meter {
    /// At time 0, for an arm of a drive of which `[power]` says what it draws.
    pub(crate) fn new(power: &Power) -> Option<Meter> {
        Some(Meter {
            draw: power.draw?,
            unloading: power.unloading,
            so_far: Spent::default(),
            planned: VecDeque::with_capacity(4),
            detour: Duration::ZERO,
        })
    }

    /// The part of the arm's movement that lies in what is booked next.
    pub(crate) fn detour(&mut self, time: Duration) {
        self.detour += time;
    }

    /// The arm has a command from `begin` to `end`, and does not work on it but for a detour.
    #[inline(never)]
    pub fn taken(&mut self, begin: Time, end: Time) {
        let whole = end.saturating_since(begin);
        let seek = std::mem::take(&mut self.detour).min(whole);
        let waits = (PowerState::Rotate, whole - seek);
        self.book(
            begin,
            [
                waits,
                (PowerState::Seek, seek),
                (PowerState::Rotate, Duration::ZERO),
            ],
        );
    }

    /// It carries out `access` from `begin` on.
    #[inline(never)]
    pub fn accessed(&mut self, begin: Time, access: &Access, write: bool) {
        let (seeks, passes) = match write {
            true => (PowerState::WriteSeek, PowerState::Write),
            false => (PowerState::Seek, PowerState::Read),
        };
        let Access {
            seek,
            rotation,
            transfer,
            ..
        } = *access;
        self.book(
            begin,
            [
                (seeks, seek),
                (PowerState::Rotate, rotation),
                (passes, transfer),
            ],
        );
    }

    /// It is in one state from `begin` to `end`.
    #[inline(never)]
    pub(crate) fn state(&mut self, state: PowerState, begin: Time, end: Time) {
        let whole = (state, end.saturating_since(begin));
        let nothing = (state, Duration::ZERO);
        self.book(begin, [whole, nothing, nothing]);
    }

    /// What overlaps with what is booked already is counted once.
    #[inline]
    fn book(&mut self, begin: Time, mut parts: [(PowerState, Duration); 3]) {
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
        let transition = matches!(parts[0].0, PowerState::SpinDown | PowerState::SpinUp);
        if end > free && end > begin || transition {
            let span = Span {
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

    /// What ends by `now` is behind it.
    #[inline(never)]
    pub fn passed(&mut self, now: Time) {
        while let Some(span) = self.planned.front().filter(|span| span.end <= now) {
            self.so_far.through(span, self.unloading, now);
            self.planned.pop_front();
        }
    }

    /// What was spent until `now`, which is not before the last call, by an arm whose platters
    /// may `stand`.
    pub fn reading(&self, now: Time, stand: Option<Standing>) -> PowerStatistics {
        let mut spent = self.so_far;
        self.planned
            .iter()
            .for_each(|span| spent.through(span, self.unloading, now));
        if let Some(Standing { starts, ready }) = stand {
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
        let Spent {
            residency,
            spin_downs,
            spin_ups,
            wakes,
            ..
        } = spent;
        PowerStatistics::new(&self.draw, residency, spin_downs, spin_ups, wakes)
    }
}

impl Spent {
    /// Idle time, then a span; both as far as they lie before `now`.
    fn through(&mut self, span: &Span, unloading: Option<Unloading>, now: Time) {
        let works = !matches!(
            span.parts[0].0,
            PowerState::SpinDown | PowerState::Standby | PowerState::SpinUp
        );
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

    /// Idle until `end`, when the heads are at work again if they `work` then.
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
        // One that comes back before it would have gone has not gone.
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

    /// In `state` until `end`, as far as that lies before `now`.
    #[inline]
    fn state_until(&mut self, state: PowerState, end: Time, now: Time) {
        let end = end.min(now);
        if end > self.until {
            self.residency.add(state, end.since(self.until));
            self.until = end;
        }
    }
}
