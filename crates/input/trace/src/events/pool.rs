//! Requests that wait for issue or completion, with a look-up by sectors.

use super::event::{AwaitedEvent, KernelEvent};
use crate::row::TraceRow;
use fullstroke_contract::Operation;
use std::collections::{BTreeMap, VecDeque};

/// Largest number of requests examined for one event.
const NEIGHBOURS_MAX: usize = 1024;

/// Device, operation, first sector, and number in order of arrival.
type Key = (u32, Operation, u64, u64);

/// A younger request that took an event. The event may have belonged to an older request for the
/// same sectors.
#[derive(Clone, Copy, Debug)]
pub(super) struct OvertakingRequest {
    pub(super) number: u64,
    /// True if the younger request is doubtful while the older one waits.
    pub(super) doubted: bool,
}

/// Progress of a request at one [`AwaitedEvent`].
#[derive(Debug, Default)]
pub(super) struct StageProgress {
    /// Number of sectors not yet at the stage.
    pub(super) left: u64,
    /// True if the request reached the stage, wholly or in part.
    pub(super) begun: bool,
    /// Number of waiting older requests to which this request's event may belong.
    pub(super) doubts: u32,
    /// Younger requests that took an event which may belong to this request.
    pub(super) passers: Vec<OvertakingRequest>,
}

#[derive(Debug)]
pub(super) struct PendingRow {
    pub(super) row: TraceRow,
    pub(super) stages: [StageProgress; 2],
    pub(super) done: bool,
    /// True if the request was given up, because it is too old to be still waiting.
    pub(super) closed: bool,
    pub(super) requeued: bool,
    /// Number of requests issued to all devices before this one.
    pub(super) issue_number: u64,
    /// Number of requests issued (or, without issue events, arrived) between this request's issue
    /// and its completion.
    pub(super) overtaken: u64,
    /// Request whose completion is in doubt until this request is issued.
    pub(super) vouches_for: Option<u64>,
}

impl PendingRow {
    pub(super) fn at(&self, stage: AwaitedEvent) -> &StageProgress {
        &self.stages[stage as usize]
    }

    pub(super) fn at_mut(&mut self, stage: AwaitedEvent) -> &mut StageProgress {
        &mut self.stages[stage as usize]
    }

    /// Returns true if the request still waits for `stage`, wholly or in part.
    pub(super) fn lacks(&self, stage: AwaitedEvent) -> bool {
        let progress = self.at(stage);
        !self.done && !self.closed && (progress.left > 0 || !progress.begun)
    }

    pub(super) fn is_doubtful(&self) -> bool {
        self.stages.iter().any(|progress| progress.doubts > 0)
    }

    pub(super) fn time_mut(&mut self, stage: AwaitedEvent) -> &mut Option<u64> {
        match stage {
            AwaitedEvent::Issue => &mut self.row.issued,
            AwaitedEvent::Complete => &mut self.row.completed,
        }
    }
}

/// Requests in order of arrival, with look-ups by number and by sectors.
#[derive(Debug, Default)]
pub(super) struct PendingRows {
    waiting: VecDeque<PendingRow>,
    /// Number of the oldest request.
    first: u64,
    /// End sector of each request neither complete nor given up.
    index: BTreeMap<Key, u64>,
}

impl PendingRows {
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Returns the number of requests added so far.
    pub(super) fn arrivals(&self) -> u64 {
        self.first + self.waiting.len() as u64
    }

    pub(super) fn oldest(&self) -> Option<&PendingRow> {
        self.waiting.front()
    }

    /// Adds a request as the youngest.
    pub(super) fn add(&mut self, row: TraceRow) {
        let number = self.arrivals();
        let progress = || StageProgress {
            left: row.sectors,
            ..StageProgress::default()
        };
        self.index
            // A damaged length may reach beyond the range; such a request ends at the top.
            .insert(key(&row, number), row.start.saturating_add(row.sectors));
        self.waiting.push_back(PendingRow {
            row,
            stages: [progress(), progress()],
            done: false,
            closed: false,
            requeued: false,
            issue_number: 0,
            overtaken: 0,
            vouches_for: None,
        });
    }

    /// Removes the oldest request.
    pub(super) fn pop(&mut self) -> Option<PendingRow> {
        self.forget(self.first);
        let waiting = self.waiting.pop_front()?;
        self.first += 1;
        Some(waiting)
    }

    pub(super) fn get(&self, number: u64) -> Option<&PendingRow> {
        self.waiting
            // A request older than the pool was released and is unknown.
            .get(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    pub(super) fn get_mut(&mut self, number: u64) -> Option<&mut PendingRow> {
        self.waiting
            .get_mut(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    /// Removes a request from the index of sectors.
    pub(super) fn forget(&mut self, number: u64) {
        if let Some(row) = self.get(number).map(|waiting| waiting.row) {
            self.index.remove(&key(&row, number));
        }
    }

    /// Yields the requests for exactly the sectors of `event`, youngest first.
    pub(super) fn alike(&self, event: &KernelEvent) -> impl Iterator<Item = (u64, &PendingRow)> {
        let key = |number| (event.device, event.operation, event.start, number);
        let end = event.start.saturating_add(event.sectors);
        self.index
            .range(key(0)..=key(u64::MAX))
            .rev()
            .take(NEIGHBOURS_MAX)
            .filter(move |&(_, &last)| last == end)
            .filter_map(|(&(_, _, _, number), _)| Some((number, self.get(number)?)))
    }

    /// Returns the requests covered by `event`, if they `fit`: their numbers, and the number of
    /// sectors of each. Of several requests for the same sectors, the youngest is taken. The device
    /// answered the older ones before the younger one came, or the events of the older ones are
    /// lost; see [`super::Matcher`].
    pub(super) fn covered(
        &self,
        event: &KernelEvent,
        fit: impl Fn(&PendingRow) -> bool,
    ) -> Vec<(u64, u64)> {
        if let Some((number, _)) = self.alike(event).find(|(_, waiting)| fit(waiting)) {
            return vec![(number, event.sectors)];
        }
        let end = event.start.saturating_add(event.sectors);
        let below = (event.device, event.operation, 0, 0)..(event.device, event.operation, end, 0);
        // From the highest start down, because the requests nearest to the event's end are likely
        // to overlap the event.
        let near = self.index.range(below).rev().take(NEIGHBOURS_MAX);
        let mut found: Vec<(u64, u64, u64)> = near
            .filter(|&(&(_, _, _, number), &last)| {
                last > event.start && self.get(number).is_some_and(&fit)
            })
            .map(|(&(_, _, start, number), &last)| (start.max(event.start), number, last.min(end)))
            .collect();
        // By start, and of equal starts the youngest first, so that the result does not depend on
        // the index.
        found.sort_unstable_by_key(|&(start, number, _)| (start, std::cmp::Reverse(number)));
        let mut passed = event.start;
        found.retain(|&(start, _, last)| {
            let next = start >= passed;
            passed = if next { last } else { passed };
            next
        });
        assert!(
            found.iter().all(|&(start, _, last)| start < last),
            "an event covers sectors of each request"
        );
        found
            .into_iter()
            .map(|(start, number, last)| (number, last - start))
            .collect()
    }
}

fn key(row: &TraceRow, number: u64) -> Key {
    (row.device, row.operation, row.start, number)
}
