//! The changes of media that one request amounts to, before they are made.

use crate::bytes::medium::extent_of;
use fullstroke_contract::Extent;
use fullstroke_units::{Lbn, SECTOR_BYTES};

/// Changes that are made together, in this order, or not at all.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Transaction {
    pub(crate) changes: Vec<Change>,
    /// What the writes write, one behind the other.
    pub(crate) bytes: Vec<u8>,
}

/// One change of one medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    /// Index among the media.
    pub(crate) medium: u32,
    pub(crate) extent: Extent,
    pub(crate) kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Write the transaction's bytes from `at` on.
    Write { at: usize },
    /// See [`Medium::zero`](crate::bytes::Medium::zero).
    Zero { hole: bool },
}

impl Change {
    /// The bytes to write, if it is a write.
    pub(crate) fn bytes<'a>(&self, all: &'a [u8]) -> Option<&'a [u8]> {
        match self.kind {
            Kind::Write { at } => Some(&all[at..at + self.extent.sectors.bytes().0 as usize]),
            Kind::Zero { .. } => None,
        }
    }
}

impl Transaction {
    /// Takes everything out; the room is kept.
    pub(crate) fn clear(&mut self) {
        self.changes.clear();
        self.bytes.clear();
    }

    pub(crate) fn write(&mut self, medium: usize, lbn: Lbn, from: &[u8]) {
        let kind = Kind::Write {
            at: self.bytes.len(),
        };
        self.changes.push(Change {
            medium: medium as u32,
            extent: extent_of(lbn, from.len()),
            kind,
        });
        self.bytes.extend_from_slice(from);
    }

    pub(crate) fn zero(&mut self, medium: usize, extent: Extent, hole: bool) {
        self.changes.push(Change {
            medium: medium as u32,
            extent,
            kind: Kind::Zero { hole },
        });
    }

    /// Changes what was read of `medium` from `lbn` on into what it will be.
    pub(crate) fn overlay(&self, medium: usize, lbn: Lbn, read: &mut [u8]) {
        let own = extent_of(lbn, read.len());
        for change in self
            .changes
            .iter()
            .filter(|change| change.medium as usize == medium)
        {
            let from = own.start.max(change.extent.start);
            let to = own.end().min(change.extent.end());
            if from >= to {
                continue;
            }
            let read = &mut read[within(own, from)..within(own, to)];
            match change.bytes(&self.bytes) {
                Some(bytes) => {
                    let range = within(change.extent, from)..within(change.extent, to);
                    read.copy_from_slice(&bytes[range]);
                }
                None => read.fill(0),
            }
        }
    }
}

/// The byte at which `lbn` begins within the buffer of `extent`.
fn within(extent: Extent, lbn: Lbn) -> usize {
    (lbn.since(extent.start).0 * SECTOR_BYTES) as usize
}
