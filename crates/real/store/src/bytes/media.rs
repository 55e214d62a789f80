//! All media of a store, and their collected changes.

use crate::Device;
use crate::buffers::extent_of;
use crate::bytes::StoreError;
use crate::bytes::error::first_error;
use crate::bytes::sync::ToSync;
use crate::bytes::transaction::Transaction;
use crate::journal::{Change, ChangeRun, ChangedContent};
use crate::label::{self, Label};
use fullstroke_contract::Extent;
use fullstroke_units::{Lbn, SECTOR_BYTES, Sectors};
use std::cell::Cell;
use std::io;
use std::sync::Arc;

/// The empty extent.
const NOWHERE: Extent = Extent {
    start: Lbn(0),
    sectors: Sectors::ZERO,
};
/// Length of the search for a hole behind a queried extent: 64 GiB.
const LOOKED_AHEAD: Sectors = Sectors((64 << 30) / SECTOR_BYTES);

/// The media of all drives. Changes are made at once, or collected into a
/// [`Transaction`] first; reads see collected changes as made.
pub(crate) struct Media {
    media: Vec<Arc<dyn Device>>,
    /// For each medium, the epoch of its last change.
    changed: Vec<u64>,
    /// Epoch of present changes; each sync begins a new one.
    pub(crate) epoch: u64,
    collecting: bool,
    /// True if reads apply the transaction, because the transaction is incomplete.
    pub(crate) overlaid: bool,
    pub(crate) transaction: Transaction,
    /// For each medium, an extent known as a hole.
    holes: Vec<Cell<Extent>>,
    /// Latest failed read.
    failed_read: Cell<Option<(usize, Extent)>>,
    /// Media with failed changes; true if only for lack of room.
    failed_changes: Vec<(usize, bool)>,
    /// Media with failed flushes.
    failed_syncs: Vec<(usize, StoreError)>,
}

impl Media {
    pub(crate) fn new(media: Vec<Arc<dyn Device>>) -> Media {
        // The writes of an earlier process may not be durable, so the first sync covers all media.
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
        // Noted before the write: a failed write may have changed the medium, too.
        self.note_change(medium);
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
        self.note_change(medium);
        self.holes[medium].set(NOWHERE);
        match self.media[medium].zero(byte_of(extent.start), extent.sectors.bytes().0, hole) {
            Ok(()) => Ok(()),
            Err(error) => Err(self.failed_change("write zeros to", medium, error)),
        }
    }

    /// Notes a change in the present epoch.
    #[inline]
    fn note_change(&mut self, medium: usize) {
        debug_assert!(
            self.changed[medium] <= self.epoch,
            "medium {medium} was changed in a later epoch"
        );
        self.changed[medium] = self.epoch;
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

    /// True if nothing of `extent` takes room on a medium of `capacity`. For queries in ascending
    /// order, the host is asked only once for each hole.
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
        self.note_change(medium);
        self.media[medium]
            .clear()
            .map_err(|error| self.error("empty", medium, error))
    }

    /// Writes the labels behind the bytes of the media, and flushes the media. A medium whose label
    /// cannot be written is recognised as out of date at the next opening. Media in memory need no
    /// labels.
    ///
    /// # Errors
    /// The host has no room for a label. The caller must not write the description then: the
    /// written labels are one event ahead of the old description, which is allowed, so no medium
    /// counts as out of date.
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
            match label::OF_FOLDERS
                .write(&label, &**medium, bytes)
                .map(|()| medium.flush())
            {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    // The host reports such an error only once, and the medium may have lost
                    // earlier writes. So the error is kept for [`Media::take_failed_syncs`].
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

    /// Returns the media whose flush failed in [`Media::write_labels`], since the last call.
    pub(crate) fn take_failed_syncs(&mut self) -> Vec<(usize, StoreError)> {
        std::mem::take(&mut self.failed_syncs)
    }

    /// From now on, changes are collected and not made.
    pub(crate) fn begin(&mut self) {
        assert!(
            !self.collecting && !self.overlaid,
            "collected changes would be dropped before they are made"
        );
        self.transaction.clear();
        self.collecting = true;
    }

    /// From now on, changes are made at once again. Collected changes stay until [`Media::apply`]
    /// or [`Media::begin`].
    pub(crate) fn end(&mut self) {
        assert!(self.collecting, "changes are not being collected");
        self.collecting = false;
    }

    /// Makes the collected changes, without the changes of the media `without`. If one change
    /// fails, the others are made nevertheless. The call may be repeated.
    pub(crate) fn apply(&mut self, without: &[usize]) -> Result<(), StoreError> {
        assert!(!self.collecting, "a change would be collected again");
        let transaction = std::mem::take(&mut self.transaction);
        let mut result = Ok(());
        let wanted = |(run, _): &(ChangeRun, _)| !without.contains(&(run.slot as usize));
        for (run, bytes) in transaction.runs().filter(wanted) {
            result = first_error(result, self.make(&run, bytes));
        }
        self.transaction = transaction;
        result
    }

    /// Makes the changes of a journal again.
    pub(crate) fn repeat(&mut self, changes: Vec<Change>) -> Result<(), StoreError> {
        self.transaction = Transaction::of(changes);
        self.apply(&[])
    }

    fn make(&mut self, run: &ChangeRun, bytes: Option<&[u8]>) -> Result<(), StoreError> {
        let medium = run.slot as usize;
        match run.kind {
            ChangedContent::Zeros { hole } => self.zero(medium, run.extent(), hole),
            ChangedContent::Written => self.write(medium, Lbn(run.lbn), bytes.unwrap_or_default()),
        }
    }

    /// Returns the media with changes after the epoch `synced`, without the media `without` and
    /// without media in memory.
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

    /// Returns the latest failed read since the last call.
    pub(crate) fn take_failed_read(&self) -> Option<(usize, Extent)> {
        self.failed_read.take()
    }

    /// Returns the media with failed changes since the last call, each medium once. The flag is
    /// true if the only cause was lack of room.
    pub(crate) fn take_failed_changes(&mut self) -> Vec<(usize, bool)> {
        let mut failed = std::mem::take(&mut self.failed_changes);
        // Sorts a failure of another kind (`false`) before lack of room, so the deduplication keeps
        // the former.
        failed.sort_unstable();
        failed.dedup_by_key(|&mut (medium, _)| medium);
        failed
    }

    /// Returns the error for a medium without room on the host.
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

/// Returns the first byte of a sector.
fn byte_of(lbn: Lbn) -> u64 {
    lbn.0 * SECTOR_BYTES
}
