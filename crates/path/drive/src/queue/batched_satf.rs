//! Batched SATF: serves the requests of one batch, nearest first, before later requests. The rule
//! bounds the wait and keeps most of the gain.

use super::search::{Positioning, key, take_cheapest};
use super::sorted::Sorted;
use super::{ArmView, Discipline, NextRequest, NoKeys, WaitingRequest};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use fullstroke_units::Duration;

pub(super) const SUMMARY: &str = "batched shortest access time first: requests that arrive during a batch wait for the next batch; does not starve";
pub(super) type Config = NoKeys;

#[derive(Default)]
struct BatchedSatf {
    batch: Sorted,
    later: Sorted,
}

pub(super) fn build(keys: &Keys) -> Result<Box<dyn Discipline>, ConfigError> {
    let NoKeys {} = read(keys)?;
    Ok(Box::new(BatchedSatf::default()))
}

impl Discipline for BatchedSatf {
    fn insert(&mut self, waiting: WaitingRequest) {
        self.later.insert(key(&waiting), waiting);
    }

    fn take(&mut self, arm: ArmView<'_>) -> Option<NextRequest> {
        // Later requests wait for the whole batch, so no request starves.
        if self.batch.len() == 0 {
            std::mem::swap(&mut self.batch, &mut self.later);
        }
        let access = |waiting: &WaitingRequest, least_seek: Duration| {
            let Positioning { seek, rotation } = Positioning::of(waiting, &arm, least_seek);
            Some(seek + rotation)
        };
        take_cheapest(&mut self.batch, &arm, |seek| seek, access).map(NextRequest::direct)
    }

    fn remove(&mut self, slot: u32) -> Option<WaitingRequest> {
        self.batch
            .remove_slot(slot)
            .or_else(|| self.later.remove_slot(slot))
    }

    fn len(&self) -> usize {
        self.batch.len() + self.later.len()
    }
}
