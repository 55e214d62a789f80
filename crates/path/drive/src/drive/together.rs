//! Answers of several commands together. Some firmware orders a batch of commands, serves the
//! batch, and reports the ends of all commands at once (`answer_together`).

use super::{Drive, RequestInService};
use fullstroke_units::Time;

/// Commands that have ended on the medium and are not answered yet.
pub(super) struct UnansweredCommands {
    /// Number of commands that are answered together; at least 2.
    most: usize,
    ended: Vec<RequestInService>,
    /// Time when the answers go out; [`Time::NEVER`] while the batch goes on.
    pub(super) due: Time,
}

impl UnansweredCommands {
    /// Returns the store for batches of `most` commands. `None` if each command is answered alone.
    pub(super) fn new(most: u32) -> Option<UnansweredCommands> {
        (most > 1).then(|| UnansweredCommands {
            most: most as usize,
            ended: Vec::with_capacity(most as usize),
            due: Time::NEVER,
        })
    }

    /// Number of commands that have ended and are not answered yet.
    pub(super) fn len(&self) -> usize {
        self.ended.len()
    }
}

impl Drive {
    /// Keeps the answer of a command until the batch ends. Returns the service if the drive answers
    /// the command at once.
    pub(super) fn keep_answer(&mut self, service: RequestInService) -> Option<RequestInService> {
        let alone = self.slots[service.slot].request.operation.is_of_all();
        let Some(together) = self.together.as_mut().filter(|_| !alone) else {
            return Some(service);
        };
        let finish = service.finish;
        together.ended.push(service);
        if together.ended.len() >= together.most {
            together.due = finish;
        }
        None
    }

    /// Ends the batch at `now` if no command waits for the arm. Otherwise commands would wait for
    /// their answers although nothing happens.
    pub(super) fn end_batch(&mut self, now: Time) {
        let idle = self.service.is_none() && self.queue.is_empty();
        if let Some(together) = self.together.as_mut().filter(|_| idle)
            && !together.ended.is_empty()
        {
            // A drive without further commands answers at once: no later command would fill the
            // batch.
            together.due = together.due.min(now);
        }
    }

    /// Time when the answers of a batch go out.
    pub(super) fn answers_due(&self) -> Time {
        self.together
            .as_ref()
            .map_or(Time::NEVER, |together| together.due)
    }

    /// Returns the oldest answer that is due, with the wait for the other commands as overhead.
    pub(super) fn take_answer(&mut self) -> Option<RequestInService> {
        let together = self.together.as_mut()?;
        let due = together.due;
        if due == Time::NEVER || together.ended.is_empty() {
            together.due = Time::NEVER;
            return None;
        }
        let mut service = together.ended.remove(0);
        if together.ended.is_empty() {
            together.due = Time::NEVER;
        }
        service.breakdown.overhead += due.since(service.finish);
        service.finish = due;
        Some(service)
    }
}
