//! Aged SATF: a request that has waited long counts as nearer.

use super::search::{Positioning, key, take_cheapest};
use super::sorted::Sorted;
use super::{ArmView, Choice, Discipline, Waiting};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use fullstroke_units::Time;
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) const SUMMARY: &str = "aged shortest access time first: access time less a share of the time waited (Jacobson & Wilkes 1991)";

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Config {
    /// Access time in ms that one second of waiting outweighs.
    #[serde(default = "usual")]
    weight_ms_per_s: f64,
}

fn usual() -> f64 {
    6.0
}

struct AgedSatf {
    /// Nanoseconds of access time per nanosecond of waiting.
    weight: f64,
    waiting: Sorted,
    /// Lower bound of the arrival times of all waiting requests.
    oldest: Time,
}

pub(super) fn build(keys: &Keys) -> Result<Box<dyn Discipline>, ConfigError> {
    let Config { weight_ms_per_s } = read(keys)?;
    if !(weight_ms_per_s.is_finite() && weight_ms_per_s >= 0.0) {
        return Err(ConfigError::new(
            "weight_ms_per_s",
            format!("found {weight_ms_per_s}; expected 0 or more"),
        ));
    }
    Ok(Box::new(AgedSatf {
        weight: weight_ms_per_s / 1000.0,
        waiting: Sorted::default(),
        oldest: Time::NEVER,
    }))
}

impl Discipline for AgedSatf {
    fn insert(&mut self, waiting: Waiting) {
        self.oldest = if self.waiting.len() == 0 {
            waiting.arrived
        } else {
            self.oldest.min(waiting.arrived)
        };
        self.waiting.insert(key(&waiting), waiting);
    }

    fn take(&mut self, arm: ArmView<'_>) -> Option<Choice> {
        let credit =
            |arrived: Time| self.weight * arm.now.saturating_since(arrived).as_nanos() as f64;
        // No request has more credit than the oldest arrival, so the bound holds for all requests.
        // After a removal, `oldest` may be too early. The bound is then weaker but still valid.
        let most = credit(self.oldest);
        let effective = |waiting: &Waiting| {
            let Positioning { seek, rotation } = Positioning::of(waiting, &arm);
            Some((seek + rotation).as_nanos() as f64 - credit(waiting.arrived))
        };
        let bound = |seek: fullstroke_units::Duration| seek.as_nanos() as f64 - most;
        take_cheapest(&mut self.waiting, &arm, bound, effective).map(Choice::direct)
    }

    fn remove(&mut self, slot: u32) -> Option<Waiting> {
        self.waiting.remove_slot(slot)
    }

    fn len(&self) -> usize {
        self.waiting.len()
    }
}
