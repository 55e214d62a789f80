//! All media of a store, and what is about to change on them.

use crate::StoreError;
use crate::array::first_error;
use crate::medium::Medium;
use crate::transaction::{Change, Kind, Transaction};
use fullstroke_contract::Extent;
use fullstroke_units::Lbn;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// The media of all drives. Changes are made at once, or collected into a
/// [`Transaction`] first; reads see collected changes as made.
pub(crate) struct Media {
    media: Vec<Box<dyn Medium>>,
    /// For each medium, the epoch of its last change.
    changed: Vec<u64>,
    /// The epoch that changes belong to: a sync begins a new one.
    pub(crate) epoch: u64,
    collecting: bool,
    pub(crate) transaction: Transaction,
}

impl Media {
    pub(crate) fn new(media: Vec<Box<dyn Medium>>) -> Media {
        let changed = vec![0; media.len()];
        Media { media, changed, epoch: 1, collecting: false, transaction: Transaction::default() }
    }

    #[inline]
    pub(crate) fn read(&self, medium: usize, lbn: Lbn, into: &mut [u8]) -> Result<(), StoreError> {
        self.media[medium].read(lbn, into).map_err(|error| self.error("read", medium, error))?;
        if self.collecting {
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
        self.media[medium].write(lbn, from).map_err(|error| self.error("write to", medium, error))
    }

    pub(crate) fn zero(&mut self, medium: usize, extent: Extent, hole: bool) -> Result<(), StoreError> {
        if self.collecting {
            self.transaction.zero(medium, extent, hole);
            return Ok(());
        }
        self.changed[medium] = self.epoch;
        self.media[medium].zero(extent, hole).map_err(|error| self.error("write zeros to", medium, error))
    }

    pub(crate) fn next_data(&self, medium: usize, extent: Extent) -> Result<Option<Extent>, StoreError> {
        self.media[medium].next_data(extent).map_err(|error| self.error("look for holes in", medium, error))
    }

    pub(crate) fn clear(&mut self, medium: usize) -> Result<(), StoreError> {
        self.changed[medium] = self.epoch;
        self.media[medium].clear().map_err(|error| self.error("empty", medium, error))
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
        let wanted = |change: &&Change| !without.contains(&(change.medium as usize));
        for change in transaction.changes.iter().filter(wanted) {
            result = first_error(result, self.make(change, &transaction.bytes));
        }
        self.transaction = transaction;
        result
    }

    fn make(&mut self, change: &Change, bytes: &[u8]) -> Result<(), StoreError> {
        let medium = change.medium as usize;
        match (change.kind, change.bytes(bytes)) {
            (Kind::Zero { hole }, _) => self.zero(medium, change.extent, hole),
            (Kind::Write { .. }, bytes) => self.write(medium, change.extent.start, bytes.unwrap_or_default()),
        }
    }

    /// The files of all media that were changed after the epoch `synced`, but
    /// for the media `without`.
    pub(crate) fn files_changed_since(&self, synced: u64, without: &[usize]) -> Vec<(PathBuf, Arc<File>)> {
        let media = self.media.iter().zip(&self.changed).enumerate();
        let changed = media.filter(|&(index, (_, &changed))| changed > synced && !without.contains(&index));
        let files = changed.flat_map(|(_, (medium, _))| {
            medium.files().iter().map(|file| (medium.name().into(), Arc::clone(file)))
        });
        files.collect()
    }

    fn error(&self, action: &'static str, medium: usize, source: io::Error) -> StoreError {
        StoreError::Host { file: self.media[medium].name(), action, source }
    }
}
