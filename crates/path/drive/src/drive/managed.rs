//! Orders of a host about commands that wait in the drive: commands whose duration limit is near or has
//! passed (`limits/`).

use super::{Drive, RequestInService};
use fullstroke_contract::{Breakdown, Effects, QueueOrder, RequestId, RequestStatus};
use fullstroke_units::Time;

impl Drive {
    /// Carries out an order. Returns false if the command does not wait.
    pub(super) fn manage_waiting(
        &mut self,
        now: Time,
        id: RequestId,
        order: QueueOrder,
        out: &mut Effects,
    ) -> bool {
        self.catch_up(now, out);
        let slots = self.slot_of.as_ref();
        let Some(&slot) = slots.and_then(|slots| slots.get(&id.0)) else {
            return false;
        };
        match order {
            QueueOrder::Ask => self.waits(slot),
            QueueOrder::Hurry => self.queue.hurry(slot),
            QueueOrder::Abort => {
                if !self.waits(slot) || !self.leave(slot) {
                    return false;
                }
                let breakdown = Breakdown {
                    queue: now.since(self.slots[slot].submitted),
                    ..Breakdown::default()
                };
                let service = RequestInService {
                    slot,
                    finish: now,
                    breakdown,
                };
                self.finish_as(service, RequestStatus::Lost, out);
                self.admit(now);
                true
            }
        }
    }

    /// True if neither the arm nor the bus works for the command.
    fn waits(&self, slot: u32) -> bool {
        let is_served = self.service.is_some_and(|service| service.slot == slot);
        !is_served && self.passing.iter().all(|passing| passing.slot != slot)
    }

    /// Takes a command out of the place where the command waits.
    fn leave(&mut self, slot: u32) -> bool {
        if let Some(at) = self.outside.iter().position(|&other| other == slot) {
            self.outside.remove(at);
            return true;
        }
        if self.queue.remove(slot).is_some() {
            let start = self.slots[slot].request.extent.start.0;
            if let Some(beside) = &mut self.beside {
                beside.remove(start, slot);
            }
            return true;
        }
        self.beside
            .as_mut()
            .is_some_and(|beside| beside.remove_writer(slot))
    }
}
