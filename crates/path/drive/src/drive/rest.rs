//! Platters that stop by themselves while the drive is idle.

use super::Drive;
use fullstroke_units::Time;

impl Drive {
    /// Time of the next stop of the platters, or of the next notice of a stop.
    #[inline]
    pub(super) fn rests_at(&self) -> Time {
        if self.spin_down.is_none() {
            return Time::NEVER;
        }
        let told = self.stopped_before.or(self.stopped);
        told.unwrap_or(Time::NEVER).min(self.stops_at())
    }

    /// Time of the next stop of the platters. The buffer's own work does not postpone the stop.
    fn stops_at(&self) -> Time {
        let idle = self.slots.is_empty() && !self.arm.is_stopped();
        let timer = self.timer.as_ref().filter(|_| idle);
        timer.map_or(Time::NEVER, |timer| {
            timer.stops_at(self.idle_since).max(self.idle_since)
        })
    }

    /// Stops the platters at the due time, if that time has come. Dirty data go to the medium
    /// first.
    #[inline]
    pub(super) fn rest_when_due(&mut self, now: Time) {
        if self.timer.is_some() {
            self.rest_by_timer(now);
        }
    }

    fn rest_by_timer(&mut self, now: Time) {
        // The rule learns the length of the last stop before the rule decides on the next.
        self.learn();
        // A late wake-up may cover several stops, because the buffer can start the platters in
        // between.
        while self.slots.is_empty() {
            self.turn_for_buffer(now);
            let due = self.stops_at();
            if due > now {
                return;
            }
            // Dirty data go to the medium first. Otherwise the data would start the platters again.
            let last = self.settle(due);
            assert!(
                last >= due && !self.arm.is_stopped(),
                "the platters stop at {last:?}, before they are due to at {due:?}, or stand already"
            );
            let Some(spin_down) = self.spin_down else {
                return;
            };
            self.stopping = Some(last);
            self.arm.stop(last, last + spin_down);
            self.stand_from(last + spin_down);
        }
    }

    /// Lets the buffer start standing platters if the buffer needs the platters.
    fn turn_for_buffer(&mut self, now: Time) {
        if let Some(buffer) = self.buffer.as_mut().filter(|_| self.arm.is_stopped()) {
            buffer.catch_up(now, false, &mut self.arm);
            self.learn();
        }
    }

    /// Records that the platters stand from `at` on, so that a notice goes out.
    pub(super) fn stand_from(&mut self, at: Time) {
        // Two stops may lie within one late wake-up, and both must be reported.
        self.stopped_before = self.stopped_before.or(self.stopped.take());
        self.stopped = Some(at);
    }

    /// Writes all dirty data to the medium from `due` on. Returns the end of the writes.
    fn settle(&mut self, due: Time) -> Time {
        let from = self.arm.free_from(due).max(due);
        let Some(buffer) = &mut self.buffer else {
            return from;
        };
        buffer.catch_up(due, false, &mut self.arm);
        let mut work = crate::mechanics::AccessTimes::default();
        let last = buffer
            .flush(self.arm.free_from(due), due, &mut self.arm, &mut work)
            .max(due);
        buffer.stop_fill(last);
        last
    }

    /// Tells the policy that stopped platters are needed again.
    fn learn(&mut self) {
        if self.arm.is_stopped() {
            return;
        }
        let (Some(timer), Some(stopping)) = (&mut self.timer, self.stopping.take()) else {
            return;
        };
        timer.woken(self.arm.turns_since().saturating_since(stopping));
    }
}
