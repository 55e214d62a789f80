//! The changes of media by one request, collected before they are made.

use crate::buffers::extent_of;
use crate::journal::{Change, ChangeRun, ChangedContent};
use fullstroke_contract::Extent;
use fullstroke_units::{Lbn, SECTOR_BYTES};

/// Changes to make together, in this order, or not at all.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Transaction {
    change: Change,
}

impl ChangeRun {
    /// Returns the sectors of the medium.
    pub(crate) fn extent(&self) -> Extent {
        Extent::new(self.lbn, u64::from(self.sectors))
    }
}

impl Transaction {
    /// Joins the changes in the given order.
    pub(crate) fn of(changes: Vec<Change>) -> Transaction {
        let mut all = Change::default();
        for change in changes {
            all.runs.extend(change.runs);
            all.bytes.extend(change.bytes);
        }
        Transaction { change: all }
    }

    /// Returns the changes in the form of a journal record.
    pub(crate) fn change(&mut self) -> &mut Change {
        &mut self.change
    }

    /// Removes all changes, and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.change.runs.clear();
        self.change.bytes.clear();
    }

    pub(crate) fn write(&mut self, medium: usize, lbn: Lbn, from: &[u8]) {
        self.add(medium, extent_of(lbn, from.len()), ChangedContent::Written);
        self.change.bytes.extend_from_slice(from);
    }

    pub(crate) fn zero(&mut self, medium: usize, extent: Extent, hole: bool) {
        self.add(medium, extent, ChangedContent::Zeros { hole });
    }

    fn add(&mut self, medium: usize, extent: Extent, kind: ChangedContent) {
        assert!(
            extent.sectors.0 <= u64::from(u32::MAX),
            "what is collected is a part of a request"
        );
        self.change.runs.push(ChangeRun {
            slot: medium as u32,
            sectors: extent.sectors.0 as u32,
            lbn: extent.start.0,
            kind,
        });
    }

    /// Returns the runs in order; a run of data comes with its bytes.
    pub(crate) fn runs(&self) -> impl Iterator<Item = (ChangeRun, Option<&[u8]>)> {
        let mut at = 0;
        self.change.runs.iter().map(move |run| {
            let bytes = &self.change.bytes[at..at + run.bytes() as usize];
            at += bytes.len();
            (*run, (run.kind == ChangedContent::Written).then_some(bytes))
        })
    }

    /// Applies the changes to the bytes `read` of `medium` from `lbn` on, as if the changes had
    /// been made.
    pub(crate) fn overlay(&self, medium: usize, lbn: Lbn, read: &mut [u8]) {
        let own = extent_of(lbn, read.len());
        for (run, bytes) in self.runs().filter(|(run, _)| run.slot as usize == medium) {
            let extent = run.extent();
            let from = own.start.max(extent.start);
            let to = own.end().min(extent.end());
            if from >= to {
                continue;
            }
            let read = &mut read[within(own, from)..within(own, to)];
            match bytes {
                Some(bytes) => {
                    read.copy_from_slice(&bytes[within(extent, from)..within(extent, to)]);
                }
                None => read.fill(0),
            }
        }
    }
}

/// Returns the first byte of `lbn` within the buffer of `extent`.
fn within(extent: Extent, lbn: Lbn) -> usize {
    (lbn.since(extent.start).0 * SECTOR_BYTES) as usize
}
