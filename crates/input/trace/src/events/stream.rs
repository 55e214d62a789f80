//! Events of one or several runs of a tracer: if the times begin anew, the events of the new run
//! follow those of the run before.
//!
//! Events of several processors may come in blocks, so that a time falls from one line to the next. The
//! events of one processor are in order. So a run begins anew where a processor's own time falls.

use super::{KernelEvent, Matcher};
use crate::TracePlace;
use crate::row::TraceRow;
use std::collections::BTreeMap;

/// Number of events in the past that make a restart.
const EVENTS_PAST: usize = 5;
/// Smallest number of events of a run that ends before its first half comes again.
const EVENTS_MIN: u64 = 16;
/// Times above this count from an epoch, and never begin anew: 10 years.
const EPOCH_NS: u64 = 10 * 365 * 86_400 * 1_000_000_000;
/// Number of restarts whose lines are kept.
const PLACES_MAX: usize = 4;

/// Builds requests from events whose times may begin anew.
#[derive(Debug, Default)]
pub(crate) struct EventStream {
    matcher: Matcher,
    /// Events in the past, until it is known whether they are late or a new run.
    pending: Vec<(u32, KernelEvent)>,
    /// Latest time of each processor in the current run.
    processors: BTreeMap<u32, u64>,
    events: u64,
    first: u64,
    latest: u64,
    /// Time added to the times of the current run.
    offset: u64,
    restarts: u64,
    places: Vec<u64>,
    /// Notes of the runs that ended.
    ended: Vec<String>,
}

impl EventStream {
    /// Adds an event of `processor`. Complete requests go to `rows`.
    pub(crate) fn push(&mut self, processor: u32, event: KernelEvent, rows: &mut Vec<TraceRow>) {
        let past = event.time < self.latest;
        if past && (!self.pending.is_empty() || self.may_restart(processor, &event)) {
            self.pending.push((processor, event));
            if self.pending.len() == EVENTS_PAST {
                self.restart(rows);
            }
            return;
        }
        self.pass_pending(rows);
        self.pass(processor, event, rows);
    }

    /// Ends the trace.
    pub(crate) fn finish(&mut self, rows: &mut Vec<TraceRow>) {
        let begins_again = self
            .pending
            .first()
            .is_some_and(|(_, event)| event.time <= self.first);
        if begins_again && self.pending.len() > 1 {
            self.restart(rows);
        }
        self.pass_pending(rows);
        self.matcher.finish(rows);
    }

    /// Returns the notes about incomplete requests and restarts, one sentence each.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes = self.ended.clone();
        notes.extend(
            self.matcher
                .notes()
                .into_iter()
                .filter(|note| !self.ended.contains(note)),
        );
        if self.restarts > 0 {
            let places: Vec<String> = self
                .places
                .iter()
                .map(|&line| TracePlace::Line { line, column: 0 }.to_string())
                .collect();
            let more = if self.restarts as usize > self.places.len() {
                ", ..."
            } else {
                ""
            };
            let times = match self.restarts {
                1 => "once".to_owned(),
                times => format!("{times} times"),
            };
            notes.push(format!(
                "the times begin anew {times} ({}{more}); each part follows the part before. If the parts ran at the same \
                 time, sort the events by time",
                places.join(", ")
            ));
        }
        notes
    }

    /// Returns the matcher of the current run.
    pub(crate) fn matcher(&self) -> &Matcher {
        &self.matcher
    }

    /// Returns true if the run may have begun anew with an event in the past.
    fn may_restart(&self, processor: u32, event: &KernelEvent) -> bool {
        let own = self.processors.get(&processor).copied().unwrap_or(0);
        let half = self.first + (self.latest - self.first) / 2;
        let early = event.time <= self.first || (self.events >= EVENTS_MIN && event.time <= half);
        event.time < own && early && self.events > 1 && self.latest <= EPOCH_NS
    }

    fn restart(&mut self, rows: &mut Vec<TraceRow>) {
        self.matcher.finish(rows);
        let matcher = std::mem::take(&mut self.matcher);
        for note in matcher.notes() {
            if self.ended.len() < PLACES_MAX && !self.ended.contains(&note) {
                self.ended.push(note);
            }
        }
        self.offset = self.offset.saturating_add(self.latest);
        (self.events, self.latest) = (0, 0);
        self.processors.clear();
        self.restarts += 1;
        if let Some((_, event)) = self.pending.first()
            && self.places.len() < PLACES_MAX
        {
            self.places.push(event.place);
        }
        self.pass_pending(rows);
    }

    fn pass_pending(&mut self, rows: &mut Vec<TraceRow>) {
        for (processor, event) in std::mem::take(&mut self.pending) {
            self.pass(processor, event, rows);
        }
    }

    fn pass(&mut self, processor: u32, event: KernelEvent, rows: &mut Vec<TraceRow>) {
        let own = self.processors.entry(processor).or_default();
        *own = event.time.max(*own);
        if self.events == 0 {
            self.first = event.time;
        }
        self.events += 1;
        self.latest = self.latest.max(event.time);
        let event = KernelEvent {
            time: event.time.saturating_add(self.offset),
            ..event
        };
        self.matcher.push(event, rows);
    }
}
