//! What a folder keeps beside the media.

use crate::Device;
use crate::bytes::StoreError;
use crate::bytes::description::{COPIES, Description, Kept};
use crate::bytes::lock::Lock;
use crate::bytes::marks::{self, Marks};
use crate::bytes::redo::{self, Redo};
use crate::copies::START_BYTES;
use crate::superblock::Uuid;
use fullstroke_units::Sectors;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where things are in the store's own file, behind the first copy of the description. The
/// other stands at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Places {
    /// Of the volume, and of a region.
    sizes: [Sectors; 2],
    redo_at: u64,
    redo_bytes: u64,
}

impl Places {
    const MARKS_AT: u64 = START_BYTES + COPIES.room;

    /// Those of a volume of so many sectors, which has `parity` or not.
    pub(crate) fn of(capacity: Sectors, parity: bool) -> Places {
        let region = marks::region_size(capacity);
        Places {
            sizes: [capacity, region],
            redo_at: Places::MARKS_AT + marks::room(capacity, region),
            redo_bytes: if parity { redo::room(capacity) } else { 0 },
        }
    }

    pub(crate) fn region(&self) -> Sectors {
        self.sizes[1]
    }

    /// The length of the file.
    pub(crate) fn bytes(&self) -> u64 {
        self.redo_at + self.redo_bytes + COPIES.room
    }

    /// The marks as they are, of which nothing is changed.
    pub(crate) fn look_at_marks(&self, device: &Arc<dyn Device>, store: Uuid) -> Marks {
        Marks::look(Arc::clone(device), Places::MARKS_AT, store, self.sizes)
    }

    /// The marks, to be set: see [`Marks::open`].
    pub(crate) fn open_marks(
        &self,
        device: &Arc<dyn Device>,
        store: Uuid,
        durable: bool,
        none_is_dirty: bool,
    ) -> Result<Marks, StoreError> {
        let device = Arc::clone(device);
        Marks::open(
            device,
            Places::MARKS_AT,
            store,
            self.sizes,
            durable,
            none_is_dirty,
        )
    }

    /// The journal, if there is parity.
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

/// What a folder keeps beside the media.
pub(crate) struct Records {
    folder: PathBuf,
    _lock: Lock,
    kept: Kept,
    /// Without redundancy there is nothing to mend.
    marks: Option<Marks>,
    /// Without parity there is no need.
    redo: Option<Redo>,
}

impl Records {
    pub(crate) fn new(
        folder: &Path,
        lock: Lock,
        kept: Kept,
        marks: Option<Marks>,
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

    pub(crate) fn marks(&self) -> Option<&Marks> {
        self.marks.as_ref()
    }

    pub(crate) fn marks_mut(&mut self) -> Option<&mut Marks> {
        self.marks.as_mut()
    }

    pub(crate) fn redo(&self) -> Option<&Redo> {
        self.redo.as_ref()
    }

    pub(crate) fn redo_mut(&mut self) -> Option<&mut Redo> {
        self.redo.as_mut()
    }

    /// As it is on its device.
    pub(crate) fn description(&self) -> &Description {
        self.kept.description()
    }

    /// Puts a description in place of the one before, durably.
    pub(crate) fn replace(&mut self, description: Description) -> Result<(), StoreError> {
        self.kept.replace(description)
    }
}
