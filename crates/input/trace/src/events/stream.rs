//! Events of one or several runs of a tracer: if the times begin anew, the events of the new run
//! follow those of the run before.
//!
//! Events of several processors may come in blocks, so that a time falls from one line to the next. The
//! events of one processor are in order. So a run begins anew where a processor's own time falls.

use super::Matcher;
use super::event::KernelEvent;
use crate::TracePlace;
use crate::restarts::{EPOCH_NS, Restarts};
use crate::row::TraceRow;
use std::collections::BTreeMap;

/// Number of events in the past that make a restart.
const EVENTS_PAST: usize = 5;
/// Smallest number of events of a run that ends before its first half comes again.
const EVENTS_MIN: u64 = 16;
/// Number of notes of ended runs that are kept.
const ENDED_MAX: usize = 4;

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
    restarts: Restarts,
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
        let place = |line| TracePlace::Line { line, column: 0 };
        notes.extend(self.restarts.note(place, "events"));
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
            if self.ended.len() < ENDED_MAX && !self.ended.contains(&note) {
                self.ended.push(note);
            }
        }
        self.offset = self.offset.saturating_add(self.latest);
        (self.events, self.latest) = (0, 0);
        self.processors.clear();
        self.restarts
            .add(self.pending.first().map(|(_, event)| event.place));
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
