//! All media of a store, and what is about to change on them.

use crate::Device;
use crate::buffers::extent_of;
use crate::bytes::StoreError;
use crate::bytes::description::Label;
use crate::bytes::error::first_error;
use crate::bytes::sync::ToSync;
use crate::bytes::transaction::Transaction;
use crate::journal::{Kind, Run};
use fullstroke_contract::Extent;
use fullstroke_units::{Lbn, SECTOR_BYTES, Sectors};
use std::cell::Cell;
use std::io;
use std::sync::Arc;

/// No place.
const NOWHERE: Extent = Extent {
    start: Lbn(0),
    sectors: Sectors::ZERO,
};
/// How far behind what is asked for a hole is looked for.
const LOOKED_AHEAD: Sectors = Sectors((64 << 30) / SECTOR_BYTES);

/// The media of all drives. Changes are made at once, or collected into a
/// [`Transaction`] first; reads see collected changes as made.
pub(crate) struct Media {
    media: Vec<Arc<dyn Device>>,
    /// For each medium, the epoch of its last change.
    changed: Vec<u64>,
    /// The epoch that changes belong to: a sync begins a new one.
    pub(crate) epoch: u64,
    collecting: bool,
    /// Whether reads see the transaction as made, although it was not made to
    /// its end.
    pub(crate) overlaid: bool,
    pub(crate) transaction: Transaction,
    /// For each medium, where it is known to be a hole.
    holes: Vec<Cell<Extent>>,
    /// The latest read that the host failed.
    failed_read: Cell<Option<(usize, Extent)>>,
    /// The media that the host did not change as it should have, and whether
    /// for want of room.
    failed_changes: Vec<(usize, bool)>,
    /// The media of which the host failed to make durable what they hold.
    failed_syncs: Vec<(usize, StoreError)>,
}

impl Media {
    pub(crate) fn new(media: Vec<Arc<dyn Device>>) -> Media {
        // What an earlier process wrote need not be durable: the first sync is
        // of all of them.
        let changed = vec![1; media.len()];
        let holes = media.iter().map(|_| Cell::new(NOWHERE)).collect();
        Media {
            holes,
            media,
            changed,
            epoch: 1,
            collecting: false,
            overlaid: false,
            transaction: Transaction::default(),
            failed_read: Cell::new(None),
            failed_changes: Vec::new(),
            failed_syncs: Vec::new(),
        }
    }

    #[inline]
    pub(crate) fn read(&self, medium: usize, lbn: Lbn, into: &mut [u8]) -> Result<(), StoreError> {
        if let Err(error) = self.media[medium].read(byte_of(lbn), into) {
            self.failed_read
                .set(Some((medium, extent_of(lbn, into.len()))));
            return Err(self.error("read", medium, error));
        }
        if self.collecting || self.overlaid {
            self.transaction.overlay(medium, lbn, into);
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn write(&mut self, medium: usize, lbn: Lbn, from: &[u8]) -> Result<(), StoreError> {
        if self.collecting {
            self.transaction.write(medium, lbn, from);
            return Ok(());
        }
        self.changed[medium] = self.epoch;
        self.holes[medium].set(NOWHERE);
        match self.media[medium].write(byte_of(lbn), from) {
            Ok(()) => Ok(()),
            Err(error) => Err(self.failed_change("write to", medium, error)),
        }
    }

    pub(crate) fn zero(
        &mut self,
        medium: usize,
        extent: Extent,
        hole: bool,
    ) -> Result<(), StoreError> {
        if self.collecting {
            self.transaction.zero(medium, extent, hole);
            return Ok(());
        }
        self.changed[medium] = self.epoch;
        self.holes[medium].set(NOWHERE);
        match self.media[medium].zero(byte_of(extent.start), extent.sectors.bytes().0, hole) {
            Ok(()) => Ok(()),
            Err(error) => Err(self.failed_change("write zeros to", medium, error)),
        }
    }

    pub(crate) fn next_data(
        &self,
        medium: usize,
        extent: Extent,
    ) -> Result<Option<Extent>, StoreError> {
        let found = self.media[medium].next_data(byte_of(extent.start), extent.sectors.bytes().0);
        let found = found.map_err(|error| self.error("look for holes in", medium, error))?;
        Ok(found.map(|run| {
            let (first, behind) = (run.start / SECTOR_BYTES, run.end.div_ceil(SECTOR_BYTES));
            Extent::new(first, behind - first)
        }))
    }

    /// Whether nothing of `extent` takes room on a medium of `capacity`. Where it is asked in order the
    /// host is asked once a hole.
    pub(crate) fn is_hole(
        &self,
        medium: usize,
        capacity: Sectors,
        extent: Extent,
    ) -> Result<bool, StoreError> {
        let known = self.holes[medium].get();
        if known.start <= extent.start && extent.end() <= known.end() {
            return Ok(true);
        }
        let end = capacity.0.min(extent.end().0 + LOOKED_AHEAD.0);
        let ahead = Extent::new(extent.start.0, end - extent.start.0);
        let data = self
            .next_data(medium, ahead)?
            .map_or(Lbn(end), |data| data.start);
        self.holes[medium].set(Extent {
            start: extent.start,
            sectors: data.since(extent.start),
        });
        Ok(extent.end() <= data)
    }

    pub(crate) fn clear(&mut self, medium: usize) -> Result<(), StoreError> {
        self.changed[medium] = self.epoch;
        self.media[medium]
            .clear()
            .map_err(|error| self.error("empty", medium, error))
    }

    /// Labels the media, each behind its bytes, and durably. One that takes no label is found
    /// out of date later. Media that end with the process need none.
    ///
    /// # Errors
    /// The host has no room for a label. Then no medium is to be found out of date: the labels that
    /// were written are one event ahead of a description that does not follow.
    pub(crate) fn write_labels(
        &mut self,
        labels: impl Iterator<Item = Option<(Label, u64)>>,
    ) -> Result<(), StoreError> {
        let mut result = Ok(());
        for (index, label) in labels.enumerate() {
            let Some(medium) = self.media.get(index).filter(|medium| !medium.is_volatile()) else {
                continue;
            };
            let Some((label, bytes)) = label else {
                continue;
            };
            match label.write(&**medium, bytes).map(|()| medium.flush()) {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    // The host says so once, and what the medium holds may be older than it was.
                    let error = self.error("make durable", index, error);
                    self.failed_syncs.push((index, error));
                }
                Err(error) => {
                    let error = self.error("write the label of", index, error);
                    if error.is_out_of_space() {
                        result = first_error(result, Err(error));
                    }
                }
            }
        }
        result
    }

    /// The media that the host failed to make durable when they were labelled, since this was
    /// asked.
    pub(crate) fn take_failed_syncs(&mut self) -> Vec<(usize, StoreError)> {
        std::mem::take(&mut self.failed_syncs)
    }

    /// From now on, changes are collected and not made.
    pub(crate) fn begin(&mut self) {
        self.transaction.clear();
        self.collecting = true;
    }

    /// From now on, changes are made at once again. What was collected stays
    /// until it is made or the next begins.
    pub(crate) fn end(&mut self) {
        self.collecting = false;
    }

    /// Makes the collected changes, but for those of the media `without`. Where
    /// one cannot be made, the others are all the same. May be repeated.
    pub(crate) fn apply(&mut self, without: &[usize]) -> Result<(), StoreError> {
        let transaction = std::mem::take(&mut self.transaction);
        let mut result = Ok(());
        let wanted = |(run, _): &(Run, _)| !without.contains(&(run.slot as usize));
        for (run, bytes) in transaction.runs().filter(wanted) {
            result = first_error(result, self.make(&run, bytes));
        }
        self.transaction = transaction;
        result
    }

    fn make(&mut self, run: &Run, bytes: Option<&[u8]>) -> Result<(), StoreError> {
        let medium = run.slot as usize;
        match run.kind {
            Kind::Zeros { hole } => self.zero(medium, run.extent(), hole),
            Kind::Written => self.write(medium, Lbn(run.lbn), bytes.unwrap_or_default()),
        }
    }

    /// All media that were changed after the epoch `synced`, but for the media `without` and
    /// those that end with the process.
    pub(crate) fn changed_since(&self, synced: u64, without: &[usize]) -> Vec<ToSync> {
        let media = self.media.iter().zip(&self.changed).enumerate();
        let changed = media.filter(|&(index, (medium, &changed))| {
            changed > synced && !without.contains(&index) && !medium.is_volatile()
        });
        let changed = changed.map(|(index, (medium, _))| ToSync {
            medium: Some(index),
            device: Arc::clone(medium),
        });
        changed.collect()
    }

    #[cold]
    fn failed_change(
        &mut self,
        action: &'static str,
        medium: usize,
        source: io::Error,
    ) -> StoreError {
        let error = self.error(action, medium, source);
        self.failed_changes.push((medium, error.is_out_of_space()));
        error
    }

    /// The latest read that the host failed since this was asked.
    pub(crate) fn take_failed_read(&self) -> Option<(usize, Extent)> {
        self.failed_read.take()
    }

    /// The media that the host did not change as it should have since this was
    /// asked, each once, and whether for want of room only.
    pub(crate) fn take_failed_changes(&mut self) -> Vec<(usize, bool)> {
        let mut failed = std::mem::take(&mut self.failed_changes);
        // What failed in another way as well comes first.
        failed.sort_unstable();
        failed.dedup_by_key(|&mut (medium, _)| medium);
        failed
    }

    /// That the host had no room for a change of the medium.
    pub(crate) fn want_of_room(&self, medium: usize) -> StoreError {
        self.error("write to", medium, io::ErrorKind::StorageFull.into())
    }

    fn error(&self, action: &'static str, medium: usize, source: io::Error) -> StoreError {
        StoreError::Host {
            file: self.media[medium].name(),
            action,
            source,
        }
    }
}

/// The byte at which a sector begins.
fn byte_of(lbn: Lbn) -> u64 {
    lbn.0 * SECTOR_BYTES
}
