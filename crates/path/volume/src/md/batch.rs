//! Batches of full writes: neighbouring stripes that are overwritten as a whole are written
//! together (`stripe_add_to_batch_list`, `drivers/md/raid5.c`, Linux 6.12).

use super::core::Core;
use super::plug::NONE;
use super::stripes::{PAGE, StripePage, state};

impl Core {
    /// True if waiting writes cover all data of a stripe that was not handled yet
    /// (`stripe_can_batch`).
    pub(super) fn can_batch(&self, at: u32) -> bool {
        // Each stripe is logged for itself (`raid5_has_log` and `raid5_has_ppl` in
        // `stripe_can_batch`).
        let never = self.log.is_some() || !self.kernel.batches();
        if never || !self.stripes.has(at, state::BATCH_READY) {
            return false;
        }
        // Only the head of a batch is handled, so that reads of the others would wait for ever.
        let pages = self.stripes.pages_of(at);
        let covered = pages.iter().filter(|page| page.overwritten()).count() as u64;
        covered == self.map.data() && !pages.iter().any(StripePage::reads)
    }

    /// Adds a stripe to the batch of the stripe before. `last` is the stripe that the same request
    /// was added to before. A batch ends at the end of a chunk, because the parity of the next row
    /// is on another member.
    pub(super) fn add_to_batch(&mut self, at: u32, last: u32) {
        let number = self.stripes.stripe(at).number;
        if (number * PAGE).is_multiple_of(self.map.chunk) {
            return;
        }
        let is_last = last != NONE && self.stripes.stripe(last).number == number - 1;
        let before = match is_last {
            true => Some(last),
            false => self.stripes.find(number - 1),
        };
        let Some(before) = before.filter(|&before| self.can_batch(before)) else {
            return;
        };
        if self.stripes.stripe(at).batch_head != NONE {
            return;
        }
        let same_kind = |&stripe: &u32| {
            let hints = self.stripes.stripe(stripe).hints;
            hints.synchronous || hints.direct
        };
        if same_kind(&before) != same_kind(&at) {
            return;
        }
        let head = match self.stripes.stripe(before).batch_head {
            NONE => before,
            head => head,
        };
        self.stripes.stripe_mut(head).batch_head = head;
        self.stripes.stripe_mut(at).batch_head = head;
        let batch = &self.stripes.stripe(head).batch;
        let place = match before == head {
            true => 0,
            false => batch
                .iter()
                .rposition(|&other| other == before)
                .map_or(0, |place| place + 1),
        };
        self.stripes.stripe_mut(head).batch.insert(place, at);
        self.end_prereads(at);
        // The batch is a holder until it ends.
        self.stripes.stripe_mut(at).count += 1;
    }

    /// Ends the readiness of a stripe and of its batch for further stripes. Returns true for a
    /// stripe that is handled with the head of its batch (`clear_batch_ready`).
    pub(super) fn clear_batch_ready(&mut self, at: u32) -> bool {
        let ready = self.stripes.clear(at, state::BATCH_READY);
        let head = self.stripes.stripe(at).batch_head;
        if head != NONE && head != at {
            return true;
        }
        if ready && head == at {
            for place in 0..self.stripes.stripe(at).batch.len() {
                let other = self.stripes.stripe(at).batch[place];
                self.stripes.clear(other, state::BATCH_READY);
            }
        }
        false
    }

    /// Ends a batch that has been written (`break_stripe_batch_list`).
    pub(super) fn end_batch(&mut self, head: u32) {
        let mut batch = std::mem::take(&mut self.stripes.stripe_mut(head).batch);
        self.stripes.stripe_mut(head).batch_head = NONE;
        for other in batch.drain(..) {
            for member in 0..self.stripes.members {
                let flags = self.stripes.page(head, member).flags;
                self.stripes.page_mut(other, member).take_over(flags);
            }
            self.stripes.stripe_mut(other).batch_head = NONE;
            self.stripes.clear(other, state::HANDLE | state::DELAYED);
            self.release(other);
        }
        self.stripes.stripe_mut(head).batch = batch;
    }

    /// Returns the stripe number `place` of a batch, or of a stripe without a batch: 0 is the head.
    pub(super) fn of_batch(&self, head: u32, place: usize) -> Option<u32> {
        match place {
            0 => Some(head),
            _ => self.stripes.stripe(head).batch.get(place - 1).copied(),
        }
    }
}
