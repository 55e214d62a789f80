//! Shortest access time first: seek and rotation together.
//!
//! The queue is sorted by cylinder. From the arm outward on both sides, the
//! seek alone is a lower bound of the access time, and it only grows: the
//! search ends where the bound passes the best access found.

use super::sorted::Sorted;
use super::{Arm, Discipline, NoKeys, Waiting};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use fullstroke_units::Duration;

pub(super) const SUMMARY: &str = "shortest access time first: seek and rotation together; may starve";
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
    fn insert(&mut self, waiting: Waiting) {
        self.waiting.insert(u64::from(waiting.position.cylinder.0), waiting);
    }

    fn take(&mut self, arm: Arm<'_>) -> Option<Waiting> {
        let here = u64::from(arm.head.cylinder.0);
        let seek_table = arm.mechanics.seek_table();
        let bound = |key: u64| seek_table.at_least(key.abs_diff(here) as u32);
        let mut inward = self.waiting.at_or_after(here);
        let mut outward = inward.checked_sub(1);
        let mut best = (Duration::MAX, usize::MAX);
        loop {
            let in_bound = self.waiting.key(inward).map(bound);
            let out_bound = outward.and_then(|index| self.waiting.key(index)).map(bound);
            let (lower, index) = match (in_bound, out_bound) {
                (Some(lower), out) if out.is_none_or(|out| lower <= out) => {
                    inward += 1;
                    (lower, inward - 1)
                }
                (_, Some(lower)) => {
                    let index = outward.unwrap_or(0);
                    outward = index.checked_sub(1);
                    (lower, index)
                }
                _ => break,
            };
            if lower > best.0 {
                break;
            }
            let access = access_time(self.waiting.get(index), &arm);
            if access < best.0 {
                best = (access, index);
            }
        }
        (best.1 != usize::MAX).then(|| self.waiting.remove(best.1))
    }

    fn len(&self) -> usize {
        self.waiting.len()
    }
}

/// Time from now until the transfer begins.
#[inline]
fn access_time(waiting: &Waiting, arm: &Arm<'_>) -> Duration {
    let position = &waiting.position;
    let seek = arm.mechanics.seek(arm.head, position.cylinder, position.surface, waiting.write);
    seek + arm.mechanics.rotation(arm.now + seek, position.angle, waiting.span)
}
