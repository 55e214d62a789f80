//! Records of a store's folder beside the media.

use crate::Device;
use crate::bytes::StoreError;
use crate::bytes::description::{COPIES, Description, StoredDescription};
use crate::bytes::lock::Lock;
use crate::bytes::marks::{self, RegionMarks};
use crate::bytes::redo::{self, Redo};
use crate::copies::START_BYTES;
use crate::uuid::Uuid;
use fullstroke_units::Sectors;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Places of the records in the store's own file. The first copy of the description comes before
/// all of them, the second behind them at the end of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StorePlaces {
    /// Capacity of the volume, and size of a region.
    sizes: [Sectors; 2],
    redo_at: u64,
    redo_bytes: u64,
}

impl StorePlaces {
    const MARKS_AT: u64 = START_BYTES + COPIES.room;

    /// Returns the places for a volume of this capacity, with a journal if it has `parity`.
    pub(crate) fn of(capacity: Sectors, parity: bool) -> StorePlaces {
        let region = marks::region_size(capacity);
        StorePlaces {
            sizes: [capacity, region],
            redo_at: StorePlaces::MARKS_AT + marks::room(capacity, region),
            redo_bytes: if parity { redo::room(capacity) } else { 0 },
        }
    }

    pub(crate) fn region(&self) -> Sectors {
        self.sizes[1]
    }

    /// Length of the file in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.redo_at + self.redo_bytes + COPIES.room
    }

    /// Reads the marks, and changes nothing.
    pub(crate) fn look_at_marks(&self, device: &Arc<dyn Device>, store: Uuid) -> RegionMarks {
        RegionMarks::look(Arc::clone(device), StorePlaces::MARKS_AT, store, self.sizes)
    }

    /// Opens the marks for changes: see [`RegionMarks::open`].
    pub(crate) fn open_marks(
        &self,
        device: &Arc<dyn Device>,
        store: Uuid,
        durable: bool,
        none_is_dirty: bool,
    ) -> Result<RegionMarks, StoreError> {
        let device = Arc::clone(device);
        RegionMarks::open(
            device,
            StorePlaces::MARKS_AT,
            store,
            self.sizes,
            durable,
            none_is_dirty,
        )
    }

    /// Returns the journal, if there is parity.
    pub(crate) fn redo(
        &self,
        device: &Arc<dyn Device>,
        store: Uuid,
        durable: bool,
    ) -> Option<Redo> {
        let places = [self.redo_at, self.redo_bytes];
        (self.redo_bytes > 0).then(|| Redo::new(Arc::clone(device), store, places, durable))
    }
}

/// Open records of a folder.
pub(crate) struct Records {
    folder: PathBuf,
    _lock: Lock,
    kept: StoredDescription,
    /// `None` without redundancy, because there is nothing to mend then.
    marks: Option<RegionMarks>,
    /// `None` without parity, because only parity has a write hole.
    redo: Option<Redo>,
}

impl Records {
    pub(crate) fn new(
        folder: &Path,
        lock: Lock,
        kept: StoredDescription,
        marks: Option<RegionMarks>,
        redo: Option<Redo>,
    ) -> Records {
        Records {
            folder: folder.to_owned(),
            _lock: lock,
            kept,
            marks,
            redo,
        }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn marks(&self) -> Option<&RegionMarks> {
        self.marks.as_ref()
    }

    pub(crate) fn marks_mut(&mut self) -> Option<&mut RegionMarks> {
        self.marks.as_mut()
    }

    pub(crate) fn redo(&self) -> Option<&Redo> {
        self.redo.as_ref()
    }

    pub(crate) fn redo_mut(&mut self) -> Option<&mut Redo> {
        self.redo.as_mut()
    }

    /// Returns the description on the device.
    pub(crate) fn description(&self) -> &Description {
        self.kept.description()
    }

    /// Replaces the description durably.
    pub(crate) fn replace(&mut self, description: Description) -> Result<(), StoreError> {
        self.kept.replace(description)
    }
}
