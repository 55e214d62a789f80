//! The due internal steps of commands, and the time up to which they are carried out.

use fullstroke_units::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// An internal step of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CommandStep {
    /// The processor has decoded the command.
    Understood,
    /// The data of a write have arrived over the link.
    Arrived,
    /// The data of a read have gone over the link.
    Delivered,
}

/// Due steps, in order of time. Steps at the same instant are in order of their entry.
#[derive(Debug)]
pub(crate) struct DueSteps {
    /// The second element is a running number. Slots are reused, so the slot number would be no
    /// order.
    due: BinaryHeap<Reverse<(Time, u64, u32, CommandStep)>>,
    entered: u64,
    /// Everything due before this instant has been carried out.
    now: Time,
}

impl Default for DueSteps {
    fn default() -> DueSteps {
        DueSteps {
            due: BinaryHeap::new(),
            entered: 0,
            now: Time::ZERO,
        }
    }
}

impl DueSteps {
    /// Time of the last event or step.
    pub(crate) fn now(&self) -> Time {
        self.now
    }

    /// Enters a step that is due at `time`.
    pub(crate) fn add(&mut self, time: Time, slot: u32, step: CommandStep) {
        debug_assert!(
            time >= self.now,
            "{step:?} of slot {slot} is due at {time:?}, before {:?}",
            self.now
        );
        self.entered += 1;
        self.due.push(Reverse((time, self.entered, slot, step)));
    }

    /// Time of the next step; [`Time::NEVER`] without one.
    pub(crate) fn next(&self) -> Time {
        let next = self.due.peek();
        next.map_or(Time::NEVER, |&Reverse((time, ..))| time)
    }

    /// Advances to `due`, where a step or something else is due. Returns the step, if one is.
    pub(crate) fn advance(&mut self, due: Time) -> Option<(Time, u32, CommandStep)> {
        debug_assert!(
            due >= self.now,
            "something was due at {due:?}, before {:?}",
            self.now
        );
        self.now = due;
        if self.next() > due {
            return None;
        }
        let Reverse((time, _, slot, step)) = self.due.pop()?;
        Some((time, slot, step))
    }

    /// Advances to the time of an event, before which nothing is due any more.
    pub(crate) fn catch_up(&mut self, now: Time) {
        self.now = self.now.max(now);
    }
}
