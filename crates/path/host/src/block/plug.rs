//! Plugging: holds requests back for a moment, so that neighbours can join before the device sees
//! the first request.

use super::LayerSettings;
use crate::TickClock;
use fullstroke_units::{Duration, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The ways of holding requests back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Plugging {
    /// Requests are not held back.
    None,
    /// As in Linux 2.6: a request that finds the elevator empty plugs the queue. Four events unplug
    /// the queue. Enough requests wait. The delay has passed. The device completes a request. A
    /// submitter has submitted everything before it waits.
    Queue,
    /// As in Linux today: requests of one submission are held back until all have arrived, until
    /// enough wait, or until another process submits (each task has its own plug).
    #[default]
    Task,
}

impl Plugging {
    /// Returns the name in a stack file.
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
    /// Limit of held requests; the plug is pulled there.
    threshold: u32,
    /// Longest time for which the plug holds.
    delay: Duration,
    clock: TickClock,
    /// Latest time of the unplugging; none while unplugged.
    due: Option<Time>,
    /// Number of requests added since the plugging.
    held: u32,
    /// Process that plugged the queue.
    process: u32,
}

impl Plug {
    pub(super) fn new(settings: &LayerSettings) -> Plug {
        let LayerSettings {
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
            process: 0,
        }
    }

    /// True if the plug belongs to one submission.
    pub(super) fn is_of_submission(&self) -> bool {
        self.kind == Plugging::Task && self.due.is_some()
    }

    /// True if another process than `process` holds its requests back. The plug is part of a task
    /// (`struct blk_plug` in `current`), so the requests of that task go on without a wait for
    /// `process`.
    pub(super) fn is_of_another(&self, process: u32) -> bool {
        self.is_of_submission() && self.process != process
    }

    /// Records a new request and the number of others in the elevator, `waiting`.
    pub(super) fn added(&mut self, now: Time, waiting: u32, synchronous: bool, process: u32) {
        if self.due.is_none() {
            self.process = process;
        }
        match (self.kind, self.due) {
            // `blk_plug_device` of 2.6 plugs an empty queue only.
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

    /// Records a request that joined another. A synchronous request pulls the plug at the end of
    /// the present instant. The reason: its submitter waits as soon as everything is submitted
    /// (`sync_page` in Linux 2.6, `blk_finish_plug` and `io_schedule` today).
    pub(super) fn joined(&mut self, now: Time, synchronous: bool) {
        if synchronous && let Some(due) = &mut self.due {
            // Somebody waits for a synchronous request, so the plug goes as soon as the instant is
            // over.
            *due = now.min(*due);
        }
    }

    /// Records the merge of two held requests.
    pub(super) fn coalesced(&mut self) {
        self.held = self.held.saturating_sub(1);
    }

    /// Records a completion of the device. In Linux 2.6 a completion runs the queue again, and so
    /// pulls the plug (`blk_run_queue` of `block/ll_rw_blk.c`).
    pub(super) fn completed(&mut self) {
        if self.kind == Plugging::Queue {
            self.pull();
        }
    }

    /// Pulls the plug if its time has come.
    pub(super) fn wake(&mut self, now: Time) {
        if self.due.is_some_and(|due| due <= now) {
            self.pull();
        }
    }

    /// Unplugs the queue.
    pub(super) fn pull(&mut self) {
        self.due = None;
    }

    /// Returns the latest time of the unplugging; none while unplugged.
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
