//! The places for commands: a command beyond the queue depth waits outside.

use fullstroke_units::Time;
use std::collections::VecDeque;

/// The places, and the idle time of the host.
#[derive(Debug)]
pub(crate) struct Admission {
    depth: u32,
    held: u32,
    /// Commands without a place, in order of arrival.
    outside: VecDeque<u32>,
    /// Start of the host's idle time; `None` while a command is inside.
    idle_since: Option<Time>,
}

impl Admission {
    /// Returns `depth` free places.
    pub(crate) fn new(depth: u32) -> Admission {
        Admission {
            depth,
            held: 0,
            outside: VecDeque::new(),
            idle_since: Some(Time::ZERO),
        }
    }

    /// Takes a place for a command that has arrived. Without a free place the command waits, and
    /// the answer is false.
    pub(crate) fn enter(&mut self, slot: u32) -> bool {
        if self.held == self.depth {
            self.outside.push_back(slot);
            return false;
        }
        assert!(
            self.outside.is_empty(),
            "slot {slot} takes a place before commands that wait for one"
        );
        self.held += 1;
        self.idle_since = None;
        true
    }

    /// Frees the place of a command that ends at `now`. Returns the command that takes the place.
    pub(crate) fn leave(&mut self, now: Time) -> Option<u32> {
        assert!(
            self.held > 0,
            "a command ends at {now:?}, and no place is taken"
        );
        let next = self.outside.pop_front();
        if next.is_none() {
            self.held -= 1;
        }
        if self.held == 0 {
            self.idle_since = Some(now);
        }
        next
    }

    /// Start of the host's idle time; `None` while a command is inside.
    pub(crate) fn idle_since(&self) -> Option<Time> {
        self.idle_since
    }
}
