//! The power states of a drive: the energy and the time of each.
//!
//! Energy is residency times watts plus transitions times joules. The arithmetic uses integers:
//! microwatts times nanoseconds are femtojoules. Therefore sums over drives, intervals and runs are
//! exact.

use fullstroke_units::{Duration, Joules, Watts};

/// Number of power states.
const STATES: usize = PowerState::ALL.len();

/// The activity of an arm and its drive, as far as power depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PowerState {
    /// The arm moves or settles, but not for a write.
    Seek,
    /// The arm moves or settles for a write.
    WriteSeek,
    /// On track: waits for a sector or for data from the bus, or processes a command.
    Rotate,
    /// Sectors are read.
    Read,
    /// Sectors are written.
    Write,
    /// Ready at full speed, the heads on a track: T10's and T13's Idle_A.
    IdleA,
    /// The heads are unloaded: Idle_B.
    IdleB,
    /// Unloaded, and the platters turn slower: Idle_C.
    IdleC,
    /// The heads are loaded again, until the first access.
    Wake,
    /// The platters slow down to a stop.
    SpinDown,
    /// The platters stand.
    Standby,
    /// The platters accelerate to full speed.
    SpinUp,
}

impl PowerState {
    /// All states, in the order of their declaration.
    pub const ALL: [PowerState; 12] = [
        PowerState::Seek,
        PowerState::WriteSeek,
        PowerState::Rotate,
        PowerState::Read,
        PowerState::Write,
        PowerState::IdleA,
        PowerState::IdleB,
        PowerState::IdleC,
        PowerState::Wake,
        PowerState::SpinDown,
        PowerState::Standby,
        PowerState::SpinUp,
    ];

    /// Returns the name of the state in files, metrics and messages.
    pub const fn name(self) -> &'static str {
        match self {
            PowerState::Seek => "seek",
            PowerState::WriteSeek => "write_seek",
            PowerState::Rotate => "rotate",
            PowerState::Read => "read",
            PowerState::Write => "write",
            PowerState::IdleA => "idle_a",
            PowerState::IdleB => "idle_b",
            PowerState::IdleC => "idle_c",
            PowerState::Wake => "wake",
            PowerState::SpinDown => "spin_down",
            PowerState::Standby => "standby",
            PowerState::SpinUp => "spin_up",
        }
    }
}

/// Residency: the time in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Residency([Duration; STATES]);

impl Residency {
    /// Returns the time in `state`.
    #[inline]
    pub fn of(&self, state: PowerState) -> Duration {
        self.0[state as usize]
    }

    /// Adds `span` to the time in `state`.
    #[inline]
    pub fn add(&mut self, state: PowerState, span: Duration) {
        self.0[state as usize] += span;
    }

    /// Returns the time in all states.
    pub fn total(&self) -> Duration {
        self.0
            .iter()
            .fold(Duration::ZERO, |sum, &span| sum.saturating_add(span))
    }

    /// Returns the sums of both. Sums saturate because many arms count many years in one.
    #[must_use]
    pub fn plus(self, other: Residency) -> Residency {
        Residency(std::array::from_fn(|state| {
            self.0[state].saturating_add(other.0[state])
        }))
    }
}

/// The power of each state, for one arm's share of a drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Draw {
    /// Power by state. Zero for the two transitions, because their energy is given as a whole.
    microwatts: [u64; STATES],
    spin_down: Transition,
    spin_up: Transition,
}

/// A change of state with a fixed duration and energy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transition {
    /// Duration of the transition.
    pub time: Duration,
    /// Energy of the whole transition.
    femtojoules: u128,
}

impl Transition {
    /// Creates a transition with `time` and `energy`; the energy is rounded to microjoules.
    pub fn new(time: Duration, energy: Joules) -> Transition {
        assert!(energy.0 >= 0.0, "a transition costs {} J", energy.0);
        Transition {
            time,
            femtojoules: (energy.0 * 1e6).round() as u128 * 1_000_000_000,
        }
    }

    /// Returns the energy of `count` transitions that took `spent` together. A transition under way
    /// costs the share of the time that has passed.
    fn energy(&self, count: u64, spent: Duration) -> u128 {
        match u128::from(self.time.as_nanos()) {
            // A transition without duration has no share of time, so each one counts in full.
            0 => self.femtojoules * u128::from(count),
            // Multiplied first, because the integer quotient of a transition under way is 0.
            time => self.femtojoules * u128::from(spent.as_nanos()) / time,
        }
    }
}

impl Draw {
    /// Creates the power table from each state's watts, rounded to microwatts, and the two
    /// transitions. Watts for the two transition states are ignored.
    pub fn new(
        watts: impl Fn(PowerState) -> Watts,
        spin_down: Transition,
        spin_up: Transition,
    ) -> Draw {
        let of = |state: PowerState| match state {
            PowerState::SpinDown | PowerState::SpinUp => 0,
            state => (watts(state).0 * 1e6).round() as u64,
        };
        Draw {
            microwatts: PowerState::ALL.map(of),
            spin_down,
            spin_up,
        }
    }

    /// Returns the energy of these residencies and of the given numbers of stops and starts, in
    /// femtojoules.
    fn energy_fj(&self, residency: &Residency, spin_downs: u64, spin_ups: u64) -> u128 {
        let states = self.microwatts.iter().zip(&residency.0);
        let states: u128 = states
            .map(|(&watts, span)| u128::from(watts) * u128::from(span.as_nanos()))
            .sum();
        states
            + self
                .spin_down
                .energy(spin_downs, residency.of(PowerState::SpinDown))
            + self
                .spin_up
                .energy(spin_ups, residency.of(PowerState::SpinUp))
    }
}

/// Times and energy of a drive since the beginning of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PowerStatistics {
    /// Number of arms. Times, starts and stops are sums over the arms.
    arms: u32,
    residency: Residency,
    energy_fj: u128,
    spin_downs: u64,
    spin_ups: u64,
    wakes: u64,
}

impl PowerStatistics {
    /// Creates the statistics of one arm from its residencies and its numbers of stops, starts and
    /// wake-ups. Each counts when it begins.
    pub fn new(
        draw: &Draw,
        residency: Residency,
        spin_downs: u64,
        spin_ups: u64,
        wakes: u64,
    ) -> PowerStatistics {
        let energy_fj = draw.energy_fj(&residency, spin_downs, spin_ups);
        PowerStatistics {
            arms: 1,
            residency,
            energy_fj,
            spin_downs,
            spin_ups,
            wakes,
        }
    }

    /// Returns the sums of both.
    #[must_use]
    pub fn plus(self, other: PowerStatistics) -> PowerStatistics {
        PowerStatistics {
            arms: self.arms + other.arms,
            residency: self.residency.plus(other.residency),
            energy_fj: self.energy_fj + other.energy_fj,
            spin_downs: self.spin_downs + other.spin_downs,
            spin_ups: self.spin_ups + other.spin_ups,
            wakes: self.wakes + other.wakes,
        }
    }

    /// Returns the statistics of a drive that stays in `state` for `span` longer.
    #[must_use]
    pub fn staying(mut self, draw: &Draw, state: PowerState, span: Duration) -> PowerStatistics {
        let mut more = Residency::default();
        more.add(state, span);
        self.energy_fj += draw.energy_fj(&more, 0, 0);
        self.residency = self.residency.plus(more);
        self
    }

    /// Returns the number of arms.
    pub fn arms(&self) -> u32 {
        self.arms
    }

    /// Returns the times of all arms together.
    pub fn residency(&self) -> &Residency {
        &self.residency
    }

    /// Returns the time in `state`. For a drive with several arms: the mean over the arms.
    pub fn time_in(&self, state: PowerState) -> Duration {
        self.residency.of(state) / u64::from(self.arms.max(1))
    }

    /// Returns the energy in femtojoules, exact.
    pub fn energy_fj(&self) -> u128 {
        self.energy_fj
    }

    /// Returns the energy in joules.
    pub fn energy(&self) -> Joules {
        Joules(self.energy_fj as f64 / 1e15)
    }

    /// Returns the mean power: energy divided by the time of one arm. Zero at time 0.
    pub fn mean_power(&self) -> Watts {
        // Residencies are sums over the arms, the energy is that of the whole drive.
        let seconds = self.residency.total().as_secs_f64() / f64::from(self.arms.max(1));
        Watts(if seconds > 0.0 {
            self.energy().0 / seconds
        } else {
            0.0
        })
    }

    /// Returns how often the platters have begun to stop.
    pub fn spin_downs(&self) -> u64 {
        // All arms of a drive share its platters, so the sum over the arms counts each stop once
        // per arm.
        self.spin_downs / u64::from(self.arms.max(1))
    }

    /// Returns how often the platters have begun to start.
    pub fn spin_ups(&self) -> u64 {
        self.spin_ups / u64::from(self.arms.max(1))
    }

    /// Returns how often unloaded heads were needed.
    pub fn wakes(&self) -> u64 {
        self.wakes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(spin_up_ms: u64) -> Draw {
        let watts = |state| {
            Watts(if state == PowerState::Standby {
                0.5
            } else {
                5.0
            })
        };
        let transition = |ms, joules| Transition::new(Duration::from_millis(ms), Joules(joules));
        Draw::new(watts, transition(1000, 2.0), transition(spin_up_ms, 100.0))
    }

    fn spent(draw: &Draw, ms: &[(PowerState, u64)], ups: u64) -> f64 {
        let mut residency = Residency::default();
        ms.iter()
            .for_each(|&(state, ms)| residency.add(state, Duration::from_millis(ms)));
        PowerStatistics::new(draw, residency, 0, ups, 0).energy().0
    }

    #[test]
    fn energy_is_residency_times_watts_plus_transitions_times_joules() {
        let ms = [
            (PowerState::IdleA, 2000),
            (PowerState::Standby, 4000),
            (PowerState::SpinDown, 1000),
        ];
        assert_eq!(spent(&draw(10_000), &ms, 0), 10.0 + 2.0 + 2.0);
        assert_eq!(
            spent(&draw(10_000), &[(PowerState::SpinUp, 20_000)], 2),
            200.0
        );
    }

    #[test]
    fn of_a_transition_under_way_its_part_is_spent() {
        assert_eq!(spent(&draw(10_000), &[(PowerState::SpinUp, 2500)], 1), 25.0);
        assert_eq!(
            spent(&draw(0), &[], 1),
            100.0,
            "one that takes no time is spent at once"
        );
    }

    #[test]
    fn the_states_are_in_the_order_of_their_numbers() {
        for (index, state) in PowerState::ALL.into_iter().enumerate() {
            assert_eq!(state as usize, index);
        }
    }
}
