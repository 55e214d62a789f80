//! A store opened read-only: nothing in its folder is changed, and the folder may be read-only.
//!
//! Mending happens in memory: the members lie under an [`Overlay`], as those of an array that is
//! assembled read-only. So an unclean store serves the same data as after mending: the changes in the journal
//! count as made, and different copies after a kill give the same data to every read.

use crate::bytes::description::{Description, MemberRecord, StateRecord, StoredDescription};
use crate::bytes::error::NAME;
use crate::bytes::lock::Lock;
use crate::bytes::loss::LostData;
use crate::bytes::node::StoreNode;
use crate::bytes::old;
use crate::bytes::opening::{DeviceSource, FolderFiles, check_fits, find_states, open_media};
use crate::bytes::records::StorePlaces;
use crate::bytes::states;
use crate::bytes::store::DoubtfulExtent;
use crate::bytes::{OpenReport, Opening, Store, StoreError};
use crate::label::{self, Label};
use crate::overlay::Overlay;
use crate::sparse::{FileLengths, SparseFile};
use crate::{Device, MemoryDevice};
use fullstroke_volume::Shape;
use std::path::Path;
use std::sync::Arc;

/// Source of the devices of a folder, without changes to the folder.
struct FilesAsTheyAre<'a>(&'a Path);

impl DeviceSource for FilesAsTheyAre<'_> {
    fn complaint(&self, member: &MemberRecord, label: Option<Label>) -> Option<String> {
        FolderFiles(self.0).complaint(member, label)
    }

    fn member(&mut self, member: &MemberRecord) -> Result<Arc<dyn Device>, StoreError> {
        // A failed member is never read, and its file may be missing.
        if member.state == StateRecord::Failed {
            return Ok(Arc::new(MemoryDevice::new(member.bytes())));
        }
        let path = self.0.join(member.file.as_deref().unwrap_or_default());
        let file = look_at(&path, FileLengths::new(member.bytes(), label::BYTES))?;
        Ok(Arc::new(Overlay::over(file)))
    }
}

/// Opens a file read-only.
fn look_at(path: &Path, lengths: FileLengths) -> Result<Arc<dyn Device>, StoreError> {
    let file = SparseFile::open_read_only(path, lengths);
    Ok(Arc::new(
        file.map_err(|error| StoreError::host("open", path, error))?,
    ))
}

/// Error for a folder without a complete store: a read-only opening makes none.
fn no_store_in(folder: &Path) -> StoreError {
    StoreError::Refused(format!(
        "`{}` holds no complete store, and a read-only opening makes none; open the folder once for \
         writing, or give another folder",
        folder.display()
    ))
}

impl Store {
    /// Opens the store of a folder and changes nothing there.
    pub(crate) fn open_read_only(
        folder: &Path,
        shape: Shape,
        digest: &str,
        opening: &Opening<'_>,
    ) -> Result<(Store, OpenReport), StoreError> {
        if !folder.exists() {
            return Err(no_store_in(folder));
        }
        let lock = Lock::share(folder)?;
        old::refuse(folder)?;
        let mut root = StoreNode::new(shape, &mut Vec::new());
        let places = StorePlaces::of(root.capacity(), states::any_parity(&root));
        let path = folder.join(NAME);
        let device = path
            .exists()
            .then(|| look_at(&path, FileLengths::new(places.bytes(), 0)))
            .transpose()?;
        let kept = device
            .as_ref()
            .map(|device| StoredDescription::read(Arc::clone(device)));
        let description = kept.transpose()?.flatten();
        let description = description.map(|kept| kept.description().clone());
        let Some((mut description, device)) = description
            .filter(|description| description.complete)
            .zip(device)
        else {
            return Err(no_store_in(folder));
        };
        description.check(folder, digest, &states::records(&root))?;
        let mut report = OpenReport::default();
        let mut source = FilesAsTheyAre(folder);
        let degraded = opening.allow_degraded;
        let was_journalled =
            find_states(&mut root, &mut description, &source, degraded, &mut report)?;
        let media = open_media(&description.members, &mut source)?;
        let mut store = Store::over(root, media, None, opening.quiet);
        store.read_only = Some(lock);
        // There is never anything to make durable.
        store.checkpoints.note_synced(store.media.epoch);
        store.look_at_losses(folder, &description)?;
        if !description.clean {
            store.look_at_journal(folder, (&device, places), &description, &mut report)?;
            store.look_at_marks((&device, places), &description, &mut report);
            let impaired = states::any_impaired_parity(&store.root);
            if impaired && !was_journalled && !report.newly_failed.is_empty() {
                report.regions_at_risk = report.regions;
            }
        }
        Ok((store, report))
    }

    /// True if nothing of the store can be changed.
    pub fn is_read_only(&self) -> bool {
        self.read_only.is_some()
    }

    /// Returns an error if the store is read-only.
    #[inline]
    pub(crate) fn check_changes(&self) -> Result<(), StoreError> {
        match self.read_only {
            None => Ok(()),
            Some(_) => Err(StoreError::Refused("the store was opened read-only".into())),
        }
    }

    fn look_at_losses(
        &mut self,
        folder: &Path,
        description: &Description,
    ) -> Result<(), StoreError> {
        let (capacity, store) = (self.capacity(), description.store);
        let losses = description.losses.iter().enumerate();
        let losses = losses
            .map(|(index, loss)| LostData::look(index, &loss.members, capacity, folder, store));
        self.losses = losses.collect::<Result<_, _>>()?;
        Ok(())
    }

    /// Repeats the changes in the journal, in memory.
    fn look_at_journal(
        &mut self,
        folder: &Path,
        (device, places): (&Arc<dyn Device>, StorePlaces),
        description: &Description,
        report: &mut OpenReport,
    ) -> Result<(), StoreError> {
        let Some(redo) = places.redo(device, description.store, false) else {
            return Ok(());
        };
        let changes = redo.read(states::any_impaired_parity(&self.root))?;
        check_fits(folder, &description.members, &changes)?;
        report.replayed_changes = changes.iter().map(|change| change.runs.len() as u64).sum();
        self.media.repeat(changes)
    }

    /// Adds the marked regions to the unsettled extents, as in a store with a later comparison. The
    /// regions are mended in memory.
    fn look_at_marks(
        &mut self,
        (device, places): (&Arc<dyn Device>, StorePlaces),
        description: &Description,
        report: &mut OpenReport,
    ) {
        if !states::any_redundancy(&self.root) {
            return;
        }
        let marks = places.look_at_marks(device, description.store);
        report.marks_lost = marks.lost();
        let dirty = marks.dirty();
        report.regions = dirty.len() as u64;
        report.region_bytes = dirty.iter().map(|extent| extent.sectors.bytes().0).sum();
        self.unsettled
            .extend(dirty.into_iter().map(|extent| DoubtfulExtent {
                extent,
                media: Vec::new(),
            }));
    }
}
