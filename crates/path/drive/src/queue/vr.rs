//! V(R): a continuum from SSTF to the elevator.
//!
//! Geist & Daniel, "A continuum of disk scheduling algorithms" (TOCS 1987): a request behind the
//! arm counts as farther by R times the width of the disk.

use super::sorted::Sorted;
use super::{ArmView, Discipline, NextRequest, SortBy, WaitingRequest};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) const SUMMARY: &str = "V(R): the nearest request; turning costs R times the width of the disk; R = 0 is sstf, R = 1 is look";

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Config {
    /// Price of a turn as a share of the width of the disk, 0 to 1. Default 0.2.
    #[serde(default = "usual")]
    r: f64,
    /// Unit of distance.
    #[serde(default)]
    by: SortBy,
}

fn usual() -> f64 {
    0.2
}

struct Vr {
    config: Config,
    inward: bool,
    waiting: Sorted,
}

pub(super) fn build(keys: &Keys) -> Result<Box<dyn Discipline>, ConfigError> {
    let config: Config = read(keys)?;
    if !(0.0..=1.0).contains(&config.r) {
        return Err(ConfigError::new(
            "r",
            format!("found {}; expected 0 to 1", config.r),
        ));
    }
    Ok(Box::new(Vr {
        config,
        inward: true,
        waiting: Sorted::default(),
    }))
}

impl Discipline for Vr {
    fn insert(&mut self, waiting: WaitingRequest) {
        self.waiting.insert(self.config.by.key(&waiting), waiting);
    }

    fn take(&mut self, arm: ArmView<'_>) -> Option<NextRequest> {
        let here = self.config.by.here(&arm);
        let turn = self.config.r * self.config.by.width(&arm) as f64;
        let (outer, inner) = self.waiting.neighbours(here);
        let price = |distance: u64, ahead: bool| distance as f64 + if ahead { 0.0 } else { turn };
        let outer = outer.map(|(distance, index)| (price(distance, !self.inward), false, index));
        let inner = inner.map(|(distance, index)| (price(distance, self.inward), true, index));
        let (_, inward, index) = match (outer, inner) {
            (Some(outer), Some(inner)) if outer.0 < inner.0 => outer,
            (outer, inner) => inner.or(outer)?,
        };
        // A request at the arm's place moves the arm in no direction.
        if self.waiting.key(index) != Some(here) {
            self.inward = inward;
        }
        Some(NextRequest::direct(self.waiting.remove_first_of_key(index)))
    }

    fn remove(&mut self, slot: u32) -> Option<WaitingRequest> {
        self.waiting.remove_slot(slot)
    }

    fn len(&self) -> usize {
        self.waiting.len()
    }
}
