//! Arrays with gears: the soft state of members in standby is kept as bytes, too.
//!
//! The timing model decides when the volume shifts. A shift copies stale rows while requests are
//! served, and is [settled](Store::settle) when no requests are. After a crash the opening needs
//! one recorded fact: the volumes in the low gear.
//!
//! - The low gear is recorded after all rows are copied, and before the first write to one place
//!   only. Until then a crash finds a falling array in the high gear, and a rising array in the low
//!   gear. In these gears the data is whole, whatever was copied.
//! - Stale rows are not recorded: after an opening all rows count as stale. A volume in the low
//!   gear is copied home before serving, because the model begins with all members turning.
//! - In the low gear, and while rising, an array with parity makes its changes through the journal,
//!   like a degraded array. The data of the standby members follows from parity then.

use crate::bytes::records::Records;
use crate::bytes::store::Store;
use crate::bytes::{StoreError, states};
use fullstroke_contract::Gear;
use fullstroke_units::Sectors;

/// Size of a step of copying during an opening and when a shift is settled: 16 MiB.
const COPIED_SECTORS: Sectors = Sectors(16 << 11);

impl Store {
    /// Returns the paths of the volumes with gears, from the top.
    pub fn geared(&self) -> Vec<Vec<usize>> {
        states::geared(&self.root)
    }

    /// Returns the gear of the volume at `path`; `None` without gears.
    pub fn gear(&mut self, path: &[usize]) -> Option<Gear> {
        states::volume(&mut self.root, path)?.layout.gear()
    }

    /// Begins to shift the volume at `path`: to falling from the high gear, to rising from the low
    /// one. Returns true if the shift was possible.
    pub fn begin_shift(&mut self, path: &[usize], to: Gear) -> bool {
        states::volume(&mut self.root, path).is_some_and(|array| array.layout.shift(to))
    }

    /// During a shift, copies stale rows of the volume at `path`: about `most` sectors, but at
    /// least one row. Returns the number of copied sectors; zero if no row is stale.
    ///
    /// # Errors
    /// Lost, or the host's: these rows are stale as before.
    pub fn copy_stale(&mut self, path: &[usize], most: Sectors) -> Result<Sectors, StoreError> {
        self.check_changes()?;
        self.finish_pending()?;
        let mut copied = Sectors::ZERO;
        self.attempt(None, |store| {
            let Some(array) = states::volume(&mut store.root, path) else {
                return Ok(());
            };
            let Some(rows) = array.layout.plan_copy(most, &mut array.plan) else {
                return Ok(());
            };
            let filled = array.fill(&mut store.media);
            match &filled {
                Ok(()) => copied = rows.sectors,
                Err(_) => array.layout.copy_failed(rows),
            }
            filled
        })?;
        Ok(copied)
    }

    /// Ends the shift of the volume at `path`: copies the rest of the stale rows, and records the
    /// gear.
    ///
    /// # Errors
    /// As [`copy_stale`](Store::copy_stale), or the gear could not be recorded: the volume shifts
    /// on then.
    pub fn settle(&mut self, path: &[usize]) -> Result<(), StoreError> {
        let low = match self.gear(path) {
            Some(Gear::Falling) => true,
            Some(Gear::Rising) => false,
            _ => return Ok(()),
        };
        while self.copy_stale(path, COPIED_SECTORS)? > Sectors::ZERO {}
        if low {
            // In the low gear, data follows from parity. So parity must follow from the data before
            // that.
            while self.settle_or_give_up_lacking()? {}
        }
        // The record of the gear needs the copies to be durable. Members may fail during this sync,
        // which is why the gear is read again below.
        self.sync()?;
        if let Some(redo) = self.records.as_mut().and_then(Records::redo_mut) {
            // Copies are made without records. A record from before would overwrite data in the new
            // gear.
            redo.restart(self.media.epoch)?;
        }
        let gear = self.gear(path);
        if gear != Some(if low { Gear::Falling } else { Gear::Rising }) {
            return Ok(());
        }
        let name = states::dotted(path);
        if let Some(records) = &mut self.records {
            let mut description = records.description().clone();
            description.low_gear.retain(|other| *other != name);
            if low {
                description.low_gear.push(name);
            }
            records.replace(description)?;
        }
        if let Some(array) = states::volume(&mut self.root, path) {
            array.layout.settle();
        }
        self.choose_journalling()
    }

    /// Marks all rows as stale after a failed change, because only one of two copies may have been
    /// written.
    #[cold]
    pub(crate) fn distrust_copies(&mut self) {
        for path in states::geared(&self.root) {
            if let Some(array) = states::volume(&mut self.root, &path) {
                array.layout.distrust_copies();
            }
        }
    }

    /// Shifts volumes in the low gear up.
    pub(crate) fn rise(&mut self) -> Result<Sectors, StoreError> {
        let mut copied = Sectors::ZERO;
        for path in states::geared(&self.root) {
            if self.begin_shift(&path, Gear::Rising) {
                loop {
                    match self.copy_stale(&path, COPIED_SECTORS)? {
                        Sectors::ZERO => break,
                        sectors => copied += sectors,
                    }
                }
                self.settle(&path)?;
            }
        }
        Ok(copied)
    }
}

/// Sets the gears in which volumes were left. All rows count as stale.
pub(crate) fn found(root: &mut crate::bytes::node::StoreNode, low: &[String]) {
    for path in states::geared(root) {
        let name = states::dotted(&path);
        if let Some(array) = states::volume(root, &path) {
            array.layout.found(low.contains(&name));
        }
    }
}
