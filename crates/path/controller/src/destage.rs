//! Destaging: when dirty data go to the array.

use crate::controller::Controller;
use crate::io::{ControllerIo, IoPurpose};
use fullstroke_contract::{Completion, Operation, RequestStatus};
use fullstroke_units::Time;

impl Controller {
    /// Starts destages up to the depth, if destaging is due.
    pub(crate) fn destage(&mut self, now: Time) {
        while self.destaging.inside() < self.config.destage.depth && self.is_time_to_destage(now) {
            let Some(extent) = self.memory.take_dirty(self.constants.unit_blocks) else {
                break;
            };
            self.destaging.begin();
            self.counts.destages += 1;
            self.counts.destaged += extent.sectors;
            self.array.ask(ControllerIo::own(
                IoPurpose::Destage,
                Operation::Write,
                extent,
            ));
        }
    }

    /// True if a command waits for destaging, too many blocks are dirty, or the host is idle.
    fn is_time_to_destage(&mut self, now: Time) -> bool {
        // `buffered` includes data on the way, `writable` does not. Destaging thus ends when enough
        // data are on the way, not when the array has answered.
        let above_high = self.memory.buffered() > self.constants.high_blocks;
        let at_low = self.memory.writable() <= self.constants.low_blocks;
        let pressed = self.destaging.is_pressed(above_high, at_low);
        let idle = self
            .admission
            .idle_since()
            .is_some_and(|since| since + self.config.destage.idle_delay <= now);
        // A waiting write needs room, and a flush needs old data on the array. Both begin destaging
        // below the high watermark; otherwise they would wait for ever.
        pressed || idle || !self.waits.is_empty()
    }

    /// Returns when the host will have been idle for the delay. [`Time::NEVER`] if that time is not
    /// after `now` or no block is dirty.
    pub(crate) fn idle_destage_due(&self, now: Time) -> Time {
        match self
            .admission
            .idle_since()
            .map(|since| since + self.config.destage.idle_delay)
        {
            Some(due) if due > now && self.memory.writable() > 0 => due,
            _ => Time::NEVER,
        }
    }

    /// Ends a destage after the array's answer.
    pub(crate) fn destaged(&mut self, io: &ControllerIo, completion: &Completion) {
        self.destaging.end(io.request.extent);
        // After a failed write, memory and array differ. `written` then drops these data, so that
        // no read sees data that the array does not have.
        self.memory
            .written(io.request.extent, completion.status == RequestStatus::Done);
    }
}
