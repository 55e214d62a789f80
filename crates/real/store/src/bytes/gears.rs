//! Arrays with gears: the soft state of members that stand is kept as bytes, too.
//!
//! Whoever times the volume says when it shifts. A shift copies what is stale while requests are served,
//! and is [settled](Store::settle) when nothing is. What survives a death rests on one thing that is
//! recorded: which volumes are in the low gear.
//!
//! - It is recorded when all is copied, before the first write that goes to one place alone. Until then
//!   an array that falls is found in the high gear and one that rises in the low gear: there the data of
//!   all is whole, whatever was copied.
//! - Which rows were stale is recorded nowhere: all count as stale behind an opening. One that is found in the
//!   low gear is copied home before it serves, since whoever times it begins with all members turning.
//! - In the low gear, and while it rises, an array with parity makes its changes through the journal, as
//!   one does that lacks a member: what the standing members hold follows from parity there.

use crate::bytes::array::Array;
use crate::bytes::records::Records;
use crate::bytes::store::Store;
use crate::bytes::{StoreError, states};
use fullstroke_contract::Gear;
use fullstroke_units::Sectors;

/// What of an array is copied at once when it is opened.
const COPIED_SECTORS: Sectors = Sectors(16 << 11);

impl Store {
    /// The volumes that have gears, from the top, by their indices.
    pub fn geared(&self) -> Vec<Vec<usize>> {
        states::geared(&self.root)
    }

    /// The gear of the volume at `path`: its indices from the top. `None` if it has none.
    pub fn gear(&mut self, path: &[usize]) -> Option<Gear> {
        states::volume(&mut self.root, path)?.layout.present_gear()
    }

    /// Begins to shift the volume at `path`: falling from the high gear, rising from the low one.
    /// Answers whether it could.
    pub fn begin_shift(&mut self, path: &[usize], to: Gear) -> bool {
        let array = states::volume(&mut self.root, path);
        array
            .and_then(|array| array.layout.gears())
            .is_some_and(|gears| gears.shift(to))
    }

    /// Copies some rows of the volume at `path` that are stale, `most` sectors of them or one row, if
    /// it shifts. Answers how many sectors it copied; none if nothing is stale.
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
            let Array { layout, plan, .. } = &mut *array;
            let Some(rows) = layout.gears().and_then(|gears| gears.plan_copy(most, plan)) else {
                return Ok(());
            };
            let filled = array.fill(&mut store.media);
            match (&filled, array.layout.gears()) {
                (Err(_), Some(gears)) => gears.again(rows),
                _ => copied = rows.sectors,
            }
            filled
        })?;
        Ok(copied)
    }

    /// The shift of the volume at `path` is over: copies what is stale still, and records the gear.
    ///
    /// # Errors
    /// As [`copy_stale`](Store::copy_stale), or it could not be recorded: it shifts on then.
    pub fn settle(&mut self, path: &[usize]) -> Result<(), StoreError> {
        let low = match self.gear(path) {
            Some(Gear::Falling) => true,
            Some(Gear::Rising) => false,
            _ => return Ok(()),
        };
        while self.copy_stale(path, COPIED_SECTORS)? > Sectors::ZERO {}
        if low {
            // Parity that is not settled could not be told from what follows from it.
            while self.settle_or_give_up_lacking()? {}
        }
        // What is recorded rests on what was copied, and members may fail on the way.
        self.sync()?;
        if let Some(redo) = self.records.as_mut().and_then(Records::redo_mut) {
            // Copies go by without records: none of before must undo them in the new gear.
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
        if let Some(gears) =
            states::volume(&mut self.root, path).and_then(|array| array.layout.gears())
        {
            gears.settle();
        }
        self.choose_journalling()
    }

    /// A change has failed: what was to be in two places may be in one.
    #[cold]
    pub(crate) fn distrust_copies(&mut self) {
        for path in states::geared(&self.root) {
            if let Some(gears) =
                states::volume(&mut self.root, &path).and_then(|array| array.layout.gears())
            {
                gears.distrust();
            }
        }
    }

    /// Volumes that were left in the low gear shift up.
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

/// Sets the gears in which volumes were left. Which rows are stale is not known.
pub(crate) fn found(root: &mut crate::bytes::node::Node, low: &[String]) {
    for path in states::geared(root) {
        let name = states::dotted(&path);
        let Some(gears) = states::volume(root, &path).and_then(|array| array.layout.gears()) else {
            continue;
        };
        match low.contains(&name) {
            true => gears.found_low(),
            false => gears.distrust(),
        }
    }
}
