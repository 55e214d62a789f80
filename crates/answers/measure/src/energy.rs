//! Energy, mean power, and the drives' time in each state.

use crate::MemberReport;
use fullstroke_contract::{PowerState, PowerStatistics};
use serde::{Serialize, Serializer};

/// Energy of the drives with power figures, from time 0 to the last completion, including the
/// warm-up.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EnergyReport {
    /// Number of drives with power figures.
    pub drives: u64,
    /// Energy of these drives, in joules.
    pub total_j: f64,
    /// Sum of the mean power of these drives, in watts.
    pub mean_w: f64,
    /// Energy for each successful read and write of a workload, in joules.
    pub j_per_io: f64,
    /// Number of spin-downs.
    pub spin_downs: u64,
    /// Number of spin-ups.
    pub spin_ups: u64,
    /// Number of times that unloaded heads had to be loaded.
    pub wakes: u64,
    /// Shares of the drives' time.
    pub residency_share: StateShares,
}

/// Share of the time in each state; the shares add up to one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StateShares([f64; PowerState::ALL.len()]);

impl StateShares {
    /// Returns the shares that `of` gives for each state.
    pub fn from_states(of: impl FnMut(PowerState) -> f64) -> StateShares {
        StateShares(PowerState::ALL.map(of))
    }

    /// Returns the shares of a drive, or of several drives together.
    pub fn of(power: &PowerStatistics) -> StateShares {
        let whole = power.residency().total().as_secs_f64();
        let share = |state| {
            // A run without duration has no shares.
            if whole > 0.0 {
                power.residency().of(state).as_secs_f64() / whole
            } else {
                0.0
            }
        };
        StateShares(PowerState::ALL.map(share))
    }

    /// Returns the share in `state`.
    pub fn in_state(&self, state: PowerState) -> f64 {
        self.0[state as usize]
    }
}

impl Serialize for StateShares {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(PowerState::ALL.map(|state| (state.name(), self.in_state(state))))
    }
}

impl EnergyReport {
    /// Returns the energy of `members` for `ios` reads and writes; `None` if no member has power
    /// figures.
    pub(crate) fn new(members: &[MemberReport], ios: u64) -> Option<EnergyReport> {
        let known = members.iter().filter_map(|member| member.statistics.power);
        let sum = known.clone().reduce(PowerStatistics::plus)?;
        let total_j = sum.energy().0;
        let mean_w = known.clone().map(|power| power.mean_power().0).sum();
        Some(EnergyReport {
            drives: known.clone().count() as u64,
            total_j,
            mean_w,
            j_per_io: if ios == 0 {
                f64::NAN
            } else {
                total_j / ios as f64
            },
            spin_downs: known.clone().map(|power| power.spin_downs()).sum(),
            spin_ups: known.clone().map(|power| power.spin_ups()).sum(),
            wakes: known.map(|power| power.wakes()).sum(),
            residency_share: StateShares::of(&sum),
        })
    }
}
