//! What a run cost: energy, mean power, and the drives' time in each state.

use crate::MemberReport;
use fullstroke_contract::{PowerState, PowerStatistics};
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

/// The energy of the drives whose files say what they draw, from time 0 to the last completion, the
/// warm-up included.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EnergyReport {
    /// How many drives those are.
    pub drives: u64,
    /// What they took.
    pub total_j: f64,
    /// The same for each second, all of them together.
    pub mean_w: f64,
    /// For each read and write that a workload issued and that was done.
    pub j_per_io: f64,
    /// How often their platters began to stop.
    pub spin_downs: u64,
    /// How often they began to start.
    pub spin_ups: u64,
    /// How often heads that were unloaded were needed.
    pub wakes: u64,
    /// Shares of the drives' time.
    pub residency_share: Shares,
}

/// A share of the time for each state; the states add up to one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Shares([f64; PowerState::ALL.len()]);

impl Shares {
    /// The share that `of` gives of each state.
    pub fn from_states(of: impl FnMut(PowerState) -> f64) -> Shares {
        Shares(PowerState::ALL.map(of))
    }

    /// Those of a drive, or of several.
    pub fn of(power: &PowerStatistics) -> Shares {
        let whole = power.residency().total().as_secs_f64();
        let share = |state| {
            if whole > 0.0 {
                power.residency().of(state).as_secs_f64() / whole
            } else {
                0.0
            }
        };
        Shares(PowerState::ALL.map(share))
    }

    /// The share in `state`.
    pub fn in_state(&self, state: PowerState) -> f64 {
        self.0[state as usize]
    }
}

impl Serialize for Shares {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(PowerState::ALL.map(|state| (state.name(), self.in_state(state))))
    }
}

impl EnergyReport {
    /// That of `members`, of whom some say what they draw, for so many reads and writes.
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
            residency_share: Shares::of(&sum),
        })
    }
}

/// One drive's seconds in each state, and its starts and stops.
pub(crate) struct MemberPower<'a>(pub(crate) &'a PowerStatistics);

impl Serialize for MemberPower<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for state in PowerState::ALL {
            map.serialize_entry(
                &format!("{}_s", state.name()),
                &self.0.time_in(state).as_secs_f64(),
            )?;
        }
        map.serialize_entry("spin_downs", &self.0.spin_downs())?;
        map.serialize_entry("spin_ups", &self.0.spin_ups())?;
        map.serialize_entry("wakes", &self.0.wakes())?;
        map.end()
    }
}
