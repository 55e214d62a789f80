//! Shortest access time first: seek and rotation together.

use super::search::{Positioning, key, take_cheapest};
use super::sorted::Sorted;
use super::{ArmView, Discipline, NextRequest, NoKeys, WaitingRequest};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use fullstroke_units::Duration;

pub(super) const SUMMARY: &str =
    "shortest access time first: seek and rotation together; may starve";
pub(super) type Config = NoKeys;

#[derive(Default)]
struct Satf {
    waiting: Sorted,
}

pub(super) fn build(keys: &Keys) -> Result<Box<dyn Discipline>, ConfigError> {
    let NoKeys {} = read(keys)?;
    Ok(Box::new(Satf::default()))
}

impl Discipline for Satf {
    fn insert(&mut self, waiting: WaitingRequest) {
        self.waiting.insert(key(&waiting), waiting);
    }

    fn take(&mut self, arm: ArmView<'_>) -> Option<NextRequest> {
        // A single request needs no comparison, and the positioning time is the expensive part.
        if self.waiting.len() == 1 {
            return Some(NextRequest::direct(self.waiting.remove(0)));
        }
        let access = |waiting: &WaitingRequest, least_seek: Duration| {
            let Positioning { seek, rotation } = Positioning::of(waiting, &arm, least_seek);
            Some(seek + rotation)
        };
        take_cheapest(&mut self.waiting, &arm, |seek| seek, access).map(NextRequest::direct)
    }

    fn remove(&mut self, slot: u32) -> Option<WaitingRequest> {
        self.waiting.remove_slot(slot)
    }

    fn len(&self) -> usize {
        self.waiting.len()
    }
}
