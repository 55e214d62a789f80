//! When dirty data go to the array.

use crate::controller::Controller;
use crate::io::{Io, Purpose};
use fullstroke_contract::{Completion, Operation, Status};
use fullstroke_units::Time;

impl Controller {
    /// Lets as many dirty pieces go as may be on their way, if it is time.
    pub(crate) fn destage(&mut self, now: Time) {
        while self.destaging < self.config.destage.depth && self.is_time_to_destage(now) {
            let Some(extent) = self.memory.take_dirty(self.constants.unit_blocks) else {
                break;
            };
            self.destaging += 1;
            self.counts.destages += 1;
            self.counts.destaged += extent.sectors;
            self.ask(Io::own(Purpose::Destage, Operation::Write, extent));
        }
    }

    /// Somebody waits for it, too much is dirty, or the host is idle.
    fn is_time_to_destage(&mut self, now: Time) -> bool {
        if self.memory.buffered() > self.constants.high_blocks {
            self.pressed = true;
        } else if self.memory.writable() <= self.constants.low_blocks {
            self.pressed = false;
        }
        let idle = self
            .host_idle_since
            .is_some_and(|since| since + self.config.destage.idle_delay <= now);
        self.pressed || idle || !self.writers.is_empty() || !self.drains.is_empty()
    }

    /// When the host will have been idle long enough, if that lies behind `now`
    /// and something is dirty.
    pub(crate) fn idle_destage_due(&self, now: Time) -> Time {
        match self
            .host_idle_since
            .map(|since| since + self.config.destage.idle_delay)
        {
            Some(due) if due > now && self.memory.writable() > 0 => due,
            _ => Time::NEVER,
        }
    }

    /// The array has answered a destage.
    pub(crate) fn destaged(&mut self, io: &Io, completion: &Completion) {
        assert!(
            self.destaging > 0,
            "a destage of {:?} ends, and none is on its way",
            io.request.extent
        );
        self.destaging -= 1;
        self.memory
            .written(io.request.extent, completion.status == Status::Done);
    }
}
