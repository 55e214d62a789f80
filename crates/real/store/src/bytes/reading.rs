//! A store that is only read: nothing of its folder is changed, and nothing
//! need be changeable.
//!
//! What would be mended in the folder is mended in memory: changes are collected
//! and never made, and reads see them as made. So an unclean store serves what
//! it would after it was mended: the journal's changes count as made, and copies
//! that a kill has left different are alike to every read.

use crate::bytes::file::FileMedium;
use crate::bytes::gears;
use crate::bytes::journal;
use crate::bytes::lock::Lock;
use crate::bytes::loss::Loss;
use crate::bytes::medium::Medium;
use crate::bytes::memory::MemoryMedium;
use crate::bytes::node::Node;
use crate::bytes::opening::{Files, Source, check_fits, fail_missing, open_media};
use crate::bytes::regions::Regions;
use crate::bytes::sealed::Label;
use crate::bytes::states;
use crate::bytes::store::Unsettled;
use crate::bytes::superblock::{MemberRecord, StateRecord, Superblock};
use crate::bytes::{OpenReport, Opening, Store, StoreError};
use fullstroke_contract::Extent;
use fullstroke_units::Sectors;
use fullstroke_volume::Shape;
use std::path::Path;

/// The files of a folder, as they are.
struct FilesAsTheyAre<'a>(&'a Path);

impl Source for FilesAsTheyAre<'_> {
    fn complaint(&self, member: &MemberRecord, label: Option<Label>) -> Option<String> {
        Files(self.0).complaint(member, label)
    }

    fn open(&mut self, member: &MemberRecord) -> Result<Box<dyn Medium>, StoreError> {
        // Nothing is asked of what has failed, and it may have no file.
        if member.state == StateRecord::Failed {
            return Ok(Box::new(MemoryMedium::new()));
        }
        let path = self.0.join(member.file.as_deref().unwrap_or_default());
        let medium = FileMedium::open_read_only(&path, Sectors(member.sectors));
        Ok(Box::new(
            medium.map_err(|error| StoreError::host("open", &path, error))?,
        ))
    }
}

impl Store {
    /// Opens the store of a folder and changes nothing there.
    pub(crate) fn open_read_only(
        folder: &Path,
        shape: Shape,
        digest: &str,
        opening: &Opening<'_>,
    ) -> Result<(Store, OpenReport), StoreError> {
        let lock = Lock::share(folder)?;
        let superblock = Superblock::read(folder)?.filter(|superblock| superblock.complete);
        let Some(mut superblock) = superblock else {
            return Err(StoreError::Refused(format!(
                "`{}` holds no store that was made to its end, and none is made read-only; open it once for \
                 writing, or give another folder",
                folder.display()
            )));
        };
        let mut root = Node::new(shape, &mut Vec::new());
        superblock.check(folder, digest, &states::records(&root))?;
        let mut report = OpenReport {
            clean: superblock.clean,
            ..OpenReport::default()
        };
        states::set_all(
            &mut root,
            &mut superblock.members.iter().map(|member| member.state.into()),
        );
        gears::found(&mut root, &superblock.low_gear);
        let mut source = FilesAsTheyAre(folder);
        report.newly_failed =
            fail_missing(&mut root, &superblock, &source, opening.allow_degraded)?;
        superblock.members = states::records(&root);
        let mut media = open_media(&superblock.members, &mut source)?;
        media.begin();
        let mut store = Store::over(root, media, None, opening.quiet);
        store.read_only = Some(lock);
        // Nothing is ever to be made durable.
        store.synced = store.media.epoch;
        store.look_at_losses(folder, &superblock)?;
        if !superblock.clean {
            store.look_at_journal(folder, &superblock, &mut report)?;
            store.look_at_regions(folder, &superblock, &mut report)?;
        }
        Ok((store, report))
    }

    /// Whether nothing of the store can be changed.
    pub fn is_read_only(&self) -> bool {
        self.read_only.is_some()
    }

    /// An error if nothing can be changed.
    #[inline]
    pub(crate) fn check_changes(&self) -> Result<(), StoreError> {
        match self.read_only {
            None => Ok(()),
            Some(_) => Err(StoreError::Refused("the store was opened read-only".into())),
        }
    }

    fn look_at_losses(&mut self, folder: &Path, superblock: &Superblock) -> Result<(), StoreError> {
        let (capacity, id) = (
            self.capacity(),
            superblock.id().map_err(StoreError::Refused)?,
        );
        let losses = superblock.losses.iter().enumerate();
        let losses =
            losses.map(|(index, loss)| Loss::look(index, &loss.members, capacity, folder, id));
        self.losses = losses.collect::<Result<_, _>>()?;
        Ok(())
    }

    /// What the journal holds counts as made.
    fn look_at_journal(
        &mut self,
        folder: &Path,
        superblock: &Superblock,
        report: &mut OpenReport,
    ) -> Result<(), StoreError> {
        if !states::any_parity(&self.root) {
            return Ok(());
        }
        let id = superblock.id().map_err(StoreError::Refused)?;
        let needed = states::any_impaired_parity(&self.root);
        if let Some(transaction) = journal::look(folder, id, needed)? {
            check_fits(folder, &superblock.members, &transaction)?;
            report.replayed_changes = transaction.changes.len() as u64;
            self.media.transaction = transaction;
        }
        Ok(())
    }

    /// What may be half written is compared as it is in a store that serves at
    /// once, and mended in memory.
    fn look_at_regions(
        &mut self,
        folder: &Path,
        superblock: &Superblock,
        report: &mut OpenReport,
    ) -> Result<(), StoreError> {
        if !states::any_redundancy(&self.root) {
            return Ok(());
        }
        let id = superblock.id().map_err(StoreError::Refused)?;
        let (capacity, size) = (self.capacity(), Sectors(superblock.region_sectors));
        let (extents, lost) = Regions::look(folder, capacity, size, &id);
        report.marks_lost = lost;
        report.regions = extents.len() as u64;
        report.region_bytes = extents.iter().map(|extent| extent.sectors.bytes().0).sum();
        if states::any_impaired_parity(&self.root) && !report.newly_failed.is_empty() {
            report.regions_at_risk = report.regions;
        }
        let unsettled = |extent: Extent| Unsettled {
            extent,
            media: Vec::new(),
        };
        self.unsettled.extend(extents.into_iter().map(unsettled));
        Ok(())
    }
}
