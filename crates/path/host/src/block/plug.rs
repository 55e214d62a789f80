//! Plugging: requests are held back for a moment, so that neighbours can join
//! them before the device sees the first.

use super::Settings;
use crate::Clock;
use fullstroke_units::{Duration, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How requests are held back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Plugging {
    /// Not at all.
    None,
    /// As Linux 2.6 did: the first request that finds the elevator empty plugs
    /// the queue. It is unplugged when enough requests wait, after a delay, when
    /// the device completes a request, and as soon as a submitter has submitted
    /// all that it will wait for.
    Queue,
    /// As Linux does today: what is submitted in one go is held back until all
    /// of it is there, or enough.
    #[default]
    Task,
}

impl Plugging {
    /// As written in a stack file.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Plugging::None => "none",
            Plugging::Queue => "queue",
            Plugging::Task => "task",
        }
    }
}

/// The plug of one queue.
#[derive(Debug)]
pub(super) struct Plug {
    kind: Plugging,
    /// Unplug when so many requests wait.
    threshold: u32,
    /// Unplug after so long.
    delay: Duration,
    clock: Clock,
    /// While plugged: when that ends at the latest.
    due: Option<Time>,
    /// Requests added since it was plugged.
    held: u32,
}

impl Plug {
    pub(super) fn new(settings: &Settings) -> Plug {
        let Settings {
            plug,
            unplug_threshold,
            unplug_delay,
            clock,
            ..
        } = *settings;
        let delay = clock.whole(unplug_delay);
        Plug {
            kind: plug,
            threshold: unplug_threshold,
            delay,
            clock,
            due: None,
            held: 0,
        }
    }

    /// A request was added; it found `waiting` others in the elevator.
    pub(super) fn added(&mut self, now: Time, waiting: u32, synchronous: bool) {
        match (self.kind, self.due) {
            (Plugging::Queue, None) if waiting == 0 => self.plug(self.clock.read(now) + self.delay),
            (Plugging::Task, None) => self.plug(now),
            _ => {}
        }
        self.held += 1;
        self.joined(now, synchronous);
        if self.held >= self.threshold {
            self.pull();
        }
    }

    /// A request joined another. Who submits what it waits for pulls the plug
    /// when all of it is there: when everything of this instant has arrived
    /// (`sync_page` in Linux 2.6, `blk_finish_plug` and `io_schedule` today).
    pub(super) fn joined(&mut self, now: Time, synchronous: bool) {
        if synchronous && let Some(due) = &mut self.due {
            *due = now.min(*due);
        }
    }

    /// Two requests have become one.
    pub(super) fn coalesced(&mut self) {
        self.held = self.held.saturating_sub(1);
    }

    /// The device has completed a request: in Linux 2.6 whoever runs the queue
    /// again pulls its plug (`blk_run_queue` of `block/ll_rw_blk.c`).
    pub(super) fn completed(&mut self) {
        if self.kind == Plugging::Queue {
            self.pull();
        }
    }

    /// The time has come to look at it.
    pub(super) fn wake(&mut self, now: Time) {
        if self.due.is_some_and(|due| due <= now) {
            self.pull();
        }
    }

    /// Lets everything through.
    pub(super) fn pull(&mut self) {
        self.due = None;
    }

    /// While plugged: when that ends at the latest.
    #[inline]
    pub(super) fn due(&self) -> Option<Time> {
        self.due
    }

    fn plug(&mut self, due: Time) {
        assert!(
            self.due.is_none(),
            "the plug is in already, until {:?}",
            self.due
        );
        self.due = Some(due);
        self.held = 0;
    }
}
