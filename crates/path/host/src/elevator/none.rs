//! `none`: no scheduler, as in Linux 6. Requests go in order of arrival.
//!
//! Without a scheduler, `blk_mq_sched_bio_merge` (`block/blk-mq-sched.c`, Linux 6) tries to merge a
//! new request with the requests that wait in the software queue of the processor. The search
//! begins with the newest request and ends after eight. Back merges and front merges are allowed.
//! Two waiting requests are never merged: `attempt_back_merge` is called for schedulers only.
//!
//! The kernel also limits the requests to the tags of the device, and has one software queue for
//! each processor. The layer here has one queue, and limits requests by `nr_requests`.

use super::fifos::{Fifo, Fifos};
use super::{Context, Elevator, NoKeys, Site};
use crate::block::{Join, Queued, Requests};
use fullstroke_contract::registry::{Keys, read};
use fullstroke_contract::{ConfigError, Operation};
use fullstroke_units::{Lbn, Time};

pub(super) const SUMMARY: &str = "Linux 6 without a scheduler: in order of arrival; merges with one of the eight newest waiting requests";
pub(super) type Config = NoKeys;

/// Number of waiting requests that a merge looks at: `checked` in `blk_bio_list_merge`
/// (`block/blk-merge.c`).
const CHECKED: usize = 8;

#[derive(Default)]
struct Unscheduled {
    waiting: Fifo,
    links: Fifos,
    /// By slot: first address and operation of a waiting request.
    starts: Vec<(Lbn, Operation)>,
}

pub(super) fn build(keys: &Keys, _: &Site) -> Result<Box<dyn Elevator>, ConfigError> {
    let NoKeys {} = read(keys)?;
    Ok(Box::new(Unscheduled::default()))
}

impl Unscheduled {
    fn note(&mut self, slot: u32, request: &Queued) {
        let index = slot as usize;
        if self.starts.len() <= index {
            self.starts
                .resize(index + 1, (Lbn::default(), Operation::Read));
        }
        self.starts[index] = (request.extent.start, request.operation);
    }
}

impl Elevator for Unscheduled {
    fn may_join(&self, kept: &Queued, _: &Queued, join: Join) -> bool {
        let newest = std::iter::successors(self.waiting.back(), |&slot| self.links.before(slot));
        join != Join::Coalesce
            && newest
                .take(CHECKED)
                .any(|slot| self.starts[slot as usize] == (kept.extent.start, kept.operation))
    }

    fn add(&mut self, _: Time, slot: u32, requests: &Requests) {
        self.note(slot, &requests[slot]);
        self.links.push_back(&mut self.waiting, slot);
    }

    fn grown(&mut self, _: Time, slot: u32, _: Join, _: &Queued, _: &Queued, requests: &Requests) {
        self.note(slot, &requests[slot]);
    }

    fn coalesced(&mut self, _: Time, _: u32, _: u32, _: &Requests) {
        unreachable!("waiting requests are not merged here")
    }

    fn dispatch(&mut self, _: Time, _: &Context<'_>) -> Option<u32> {
        self.links.pop_front(&mut self.waiting)
    }

    fn starves(&self) -> bool {
        false
    }
}

#[cfg(test)]
pub(super) fn tunables() -> Vec<super::testing::Tunable> {
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_contract::{Extent, Slots};
    use fullstroke_units::Sectors;

    fn read_of(start: u64) -> Queued {
        Queued {
            extent: Extent {
                start: Lbn(start),
                sectors: Sectors(8),
            },
            ..Queued::default()
        }
    }

    #[test]
    fn a_request_merges_with_one_of_the_eight_newest_at_either_end() {
        let mut requests: Requests = Slots::default();
        let mut elevator = Unscheduled::default();
        for number in 0..9 {
            let slot = requests.keep(read_of(1000 * number));
            elevator.add(Time::ZERO, slot, &requests);
        }
        let arrival = read_of(0);
        for join in [Join::Back, Join::Front] {
            assert!(elevator.may_join(&read_of(8000), &arrival, join));
            assert!(elevator.may_join(&read_of(1000), &arrival, join));
            assert!(!elevator.may_join(&read_of(0), &arrival, join));
        }
        assert!(!elevator.may_join(&read_of(8000), &arrival, Join::Coalesce));
    }
}
