//! Queues that wait for each other: the waker of a queue.

use super::Bfq;
use fullstroke_units::{Duration, Time};

/// Longest time between the completion and the new request (`bfq_check_waker`).
const PROMPT: Duration = Duration::from_millis(4);

impl Bfq {
    /// Looks for the waker of a queue whose process had no request and sends one. Only queues that
    /// think for long are blocked by others.
    pub(super) fn check_waker(&mut self, now: Time, queue: u32) {
        let Some(completed) = self.last_completed.filter(|&other| other != queue) else {
            return;
        };
        let slice_idle = self.config.slice_idle;
        let held = &mut self.queues[queue as usize];
        // A process that soon asks by itself needs no waker, and a late completion is no cause.
        if held.habits.thinks_shortly || self.last_completion + PROMPT <= now {
            return;
        }
        let before = held.waker.known;
        if held.waker.suspect(now, completed, slice_idle) {
            self.woken_by(queue, before, completed);
        }
    }

    /// Moves a queue with new requests to the front of the list of its waker (`bfq_add_bfqq_busy`).
    pub(super) fn first_of_the_woken(&mut self, queue: u32) {
        if let Some(waker) = self.queue(queue).waker.known {
            let woken = &mut self.queue_mut(waker).woken;
            if let Some(place) = woken.iter().position(|&other| other == queue) {
                woken[place..].rotate_left(1);
            }
        }
    }

    /// Enters `queue` among the queues that `waker` wakes.
    pub(super) fn woken_by(&mut self, queue: u32, before: Option<u32>, waker: u32) {
        if let Some(before) = before {
            self.queue_mut(before).woken.retain(|&other| other != queue);
        }
        self.queue_mut(waker).woken.push(queue);
    }
}
