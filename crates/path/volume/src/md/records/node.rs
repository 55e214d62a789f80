//! The events of an array with its records.

use super::{FLUSH, HeldRequest, KIND, LATER, LATER_FLUSH, OWN, Recorder, WRITE};
use fullstroke_contract::{
    Completion, CounterReading, Counters, Extent, Gauge, LayerOrder, Node, NodeContext, Notice,
    Port, Refusal, Request, Wake,
};
use fullstroke_units::Time;

impl Node for Recorder {
    fn submit(&mut self, now: Time, from: Port, request: Request, cx: &mut NodeContext<'_>) {
        let held = HeldRequest {
            request,
            from,
            submitted: now,
            regions: None,
        };
        match self.blocked.get_mut(&request.hints.process) {
            Some(behind) => {
                behind.push_back(held);
                self.behind += 1;
            }
            None => self.take(now, held, cx),
        }
    }

    fn completed(
        &mut self,
        now: Time,
        from: Port,
        completion: Completion,
        cx: &mut NodeContext<'_>,
    ) {
        let id = completion.id.0;
        // The ids of the array have the highest bit, or neither.
        if id >> OWN.trailing_zeros() != 1 {
            return self.call(cx, |node, cx| node.completed(now, from, completion, cx));
        }
        match id & KIND {
            FLUSH => {
                self.flying -= 1;
                for place in 0..self.extents.len() {
                    self.flying += 1;
                    let write = self.record(WRITE, self.extents[place]);
                    cx.out.issue(from.index(), write);
                }
            }
            WRITE => {
                self.flying -= 1;
                if self.flying == 0 {
                    self.end(now, cx);
                }
            }
            LATER_FLUSH => {
                self.later_flushes -= 1;
                for place in 0..self.later.len() {
                    let write = self.record(LATER, self.later[place]);
                    cx.out.issue(from.index(), write);
                }
            }
            _ => {}
        }
    }

    fn wake(&mut self, now: Time, cx: &mut NodeContext<'_>) {
        // The thread writes new bits before it handles more stripes.
        let turns = self.node_ref().next_wake().at() <= now && !self.held.is_empty();
        if self.due.is_some_and(|due| due <= now) || (turns && self.step.is_none()) {
            self.due = None;
            self.advance(now, cx);
        }
        if self.safe_mode.is_some_and(|due| due <= now) {
            self.safe_mode = None;
            self.check_clean(now, cx);
        }
        if self.daemon.is_some_and(|daemon| daemon <= now) {
            self.daemon = None;
            self.run_daemon(now, cx);
        }
        if !self.thread_waits() && self.node_ref().next_wake().at() <= now {
            self.call(cx, |node, cx| node.wake(now, cx));
        }
    }

    fn noticed(&mut self, now: Time, from: Port, notice: Notice, cx: &mut NodeContext<'_>) {
        self.call(cx, |node, cx| node.noticed(now, from, notice, cx));
    }

    fn owners(&self, from: Port, extent: Extent, owner: &mut dyn FnMut(Port, Extent)) {
        self.node_ref().owners(from, extent, owner);
    }

    fn ordered(
        &mut self,
        now: Time,
        order: LayerOrder,
        cx: &mut NodeContext<'_>,
    ) -> Result<(), Refusal> {
        let mut result = Ok(());
        self.call(cx, |node, cx| result = node.ordered(now, order, cx));
        result
    }

    fn next_wake(&self) -> Wake {
        let never = Time::NEVER;
        let inner = match self.thread_waits() {
            true => Wake::NEVER,
            false => self.node_ref().next_wake(),
        };
        let due = self.due.unwrap_or(never);
        let chore = self
            .daemon
            .unwrap_or(never)
            .min(self.safe_mode.unwrap_or(never));
        let first = inner.at().min(due).min(chore);
        match inner.is_work() || self.due.is_some() {
            true => Wake::Work(first),
            // A run does not wait for the daemon, and not for the mark of a clean array.
            false if first == never => inner,
            false => Wake::Chore(first),
        }
    }

    fn count(&self, now: Time, counters: &mut Counters) {
        let before = counters.layers.len();
        self.node_ref().count(now, counters);
        if let Some(readings) = counters.layers.get_mut(before)
            && self.written > 0
        {
            readings.readings.push(CounterReading {
                name: "volume_record_writes",
                value: self.written as f64,
            });
        }
    }

    fn gauge(&self) -> Gauge {
        let gauge = self.node_ref().gauge();
        let held = (self.held.len() + self.waiting.len()) as u32 + self.behind;
        Gauge {
            queue_length: gauge.queue_length + held,
            idle_since: gauge.idle_since.filter(|_| held == 0),
            ..gauge
        }
    }
}
