//! What a drive's states cost, and how long it was in each.
//!
//! Energy is residency times watts plus transitions times joules, in integers: microwatts times
//! nanoseconds are femtojoules, so that what drives, intervals and runs add up to is exact.

use fullstroke_units::{Duration, Joules, Watts};

/// How many states there are.
const STATES: usize = PowerState::ALL.len();

/// What an arm, and the drive with it, is doing, as far as that costs power.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PowerState {
    /// The arm moves, or settles, for anything but a write.
    Seek,
    /// It moves, or settles, to write.
    WriteSeek,
    /// On track: waiting for a sector, for data from the bus, or with a command.
    Rotate,
    /// Sectors pass that are read.
    Read,
    /// Sectors pass that are written.
    Write,
    /// Ready at full speed, the heads on a track: T10's and T13's Idle_A.
    IdleA,
    /// The heads are unloaded: Idle_B.
    IdleB,
    /// Unloaded, and the platters turn slower: Idle_C.
    IdleC,
    /// From unloaded heads to the first access.
    Wake,
    /// The platters come to a stop.
    SpinDown,
    /// They stand.
    Standby,
    /// They come to full speed.
    SpinUp,
}

impl PowerState {
    /// All of them, in the order of their declaration.
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

    /// Its name in files, metrics and messages.
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

/// Time in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Residency([Duration; STATES]);

impl Residency {
    /// The time in `state`.
    #[inline]
    pub fn of(&self, state: PowerState) -> Duration {
        self.0[state as usize]
    }

    /// Adds `span` in `state`.
    #[inline]
    pub fn add(&mut self, state: PowerState, span: Duration) {
        self.0[state as usize] += span;
    }

    /// The time in all states.
    pub fn total(&self) -> Duration {
        self.0
            .iter()
            .fold(Duration::ZERO, |sum, &span| sum.saturating_add(span))
    }

    /// The sums of both, saturating: many arms count many years in one.
    #[must_use]
    pub fn plus(self, other: Residency) -> Residency {
        Residency(std::array::from_fn(|state| {
            self.0[state].saturating_add(other.0[state])
        }))
    }
}

/// What the states of one arm's share of a drive draw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Draw {
    /// By state. Nothing for the two transitions, whose energy is given.
    microwatts: [u64; STATES],
    spin_down: Transition,
    spin_up: Transition,
}

/// A change of state that takes so long and costs so much.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transition {
    /// How long it takes.
    pub time: Duration,
    /// What it costs, as a whole.
    femtojoules: u128,
}

impl Transition {
    /// One that takes `time` and costs `energy`, to the microjoule.
    pub fn new(time: Duration, energy: Joules) -> Transition {
        assert!(energy.0 >= 0.0, "a transition costs {} J", energy.0);
        Transition {
            time,
            femtojoules: (energy.0 * 1e6).round() as u128 * 1_000_000_000,
        }
    }

    /// What it costs for `count` of them, which together have gone on for `spent`: of one that
    /// is under way, its part of the time.
    fn energy(&self, count: u64, spent: Duration) -> u128 {
        match u128::from(self.time.as_nanos()) {
            0 => self.femtojoules * u128::from(count),
            time => self.femtojoules * u128::from(spent.as_nanos()) / time,
        }
    }
}

impl Draw {
    /// The states' watts, to the microwatt, and what stopping and starting the platters costs.
    /// Watts for either transition are passed over.
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

    /// The energy of such times and so many stops and starts, in femtojoules.
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

/// What a drive has spent since the beginning of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PowerStatistics {
    /// Arms that it speaks of: times, starts and stops are the sums over them.
    arms: u32,
    residency: Residency,
    energy_fj: u128,
    spin_downs: u64,
    spin_ups: u64,
    wakes: u64,
}

impl PowerStatistics {
    /// One arm that was in its states for so long, and has begun to stop, to start and to wake
    /// so often.
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

    /// The sums of both.
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

    /// Arms that it speaks of.
    pub fn arms(&self) -> u32 {
        self.arms
    }

    /// The times of all arms.
    pub fn residency(&self) -> &Residency {
        &self.residency
    }

    /// Time in `state`: of a drive with several arms, the mean over them.
    pub fn time_in(&self, state: PowerState) -> Duration {
        self.residency.of(state) / u64::from(self.arms.max(1))
    }

    /// The energy in femtojoules, exact.
    pub fn energy_fj(&self) -> u128 {
        self.energy_fj
    }

    /// The energy.
    pub fn energy(&self) -> Joules {
        Joules(self.energy_fj as f64 / 1e15)
    }

    /// The energy for each second of an arm's time; nothing at time 0.
    pub fn mean_power(&self) -> Watts {
        let seconds = self.residency.total().as_secs_f64() / f64::from(self.arms.max(1));
        Watts(if seconds > 0.0 {
            self.energy().0 / seconds
        } else {
            0.0
        })
    }

    /// How often the platters have begun to stop.
    pub fn spin_downs(&self) -> u64 {
        self.spin_downs / u64::from(self.arms.max(1))
    }

    /// How often they have begun to start.
    pub fn spin_ups(&self) -> u64 {
        self.spin_ups / u64::from(self.arms.max(1))
    }

    /// How often heads that were unloaded have been needed.
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
