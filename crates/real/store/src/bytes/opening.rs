//! Stores are made, and opened again after whatever happened meanwhile.

use crate::bytes::StoreError;
use crate::bytes::file::FileMedium;
use crate::bytes::gears;
use crate::bytes::journal::Journal;
use crate::bytes::lock::{Lock, found_in};
use crate::bytes::loss::Loss;
use crate::bytes::media::Media;
use crate::bytes::medium::Medium;
use crate::bytes::memory::MemoryMedium;
use crate::bytes::node::Node;
use crate::bytes::regions::Regions;
use crate::bytes::sealed::{Label, StoreId};
use crate::bytes::states;
use crate::bytes::store::{Records, Store, Unsettled};
use crate::bytes::superblock::{MemberRecord, StateRecord, Superblock};
use crate::bytes::transaction::{Change, Transaction};
use crate::bytes::verify::{Comparison, Verifier};
use fullstroke_contract::MemberState;
use fullstroke_units::{Bytes, Sectors};
use fullstroke_volume::Shape;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where a store keeps its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// In memory: they are gone with the process.
    Memory,
    /// In files of this folder, which is made if it is missing.
    Folder(PathBuf),
}

/// How a store is opened.
pub struct Opening<'a> {
    /// Whether members whose files are missing or short are counted as failed,
    /// if the layout survives that. Otherwise they are an error.
    pub allow_degraded: bool,
    /// Whether a region's mark is made durable before the region is first
    /// written, at the cost of an `fdatasync` each: needed if redundancy is to
    /// survive a loss of power and not only the death of the process.
    pub survive_power_loss: bool,
    /// How long a region stays marked after it was last written.
    pub quiet: Duration,
    /// Whether an unclean store serves at once, and is compared behind: by
    /// [`Store::tidy`], a part at a time. Otherwise it is compared first.
    pub compare_behind: bool,
    /// Whether nothing of the folder is changed, nor need be changeable. What an
    /// unclean store needs is mended in memory, behind; all changes are refused.
    pub read_only: bool,
    /// Told how far the mending of an unclean store is.
    pub progress: Option<&'a mut dyn FnMut(Progress)>,
}

impl Default for Opening<'_> {
    /// No degraded opening, power loss survived, five seconds, no progress.
    fn default() -> Self {
        let quiet = Duration::from_secs(5);
        Opening {
            allow_degraded: false,
            survive_power_loss: true,
            quiet,
            compare_behind: false,
            read_only: false,
            progress: None,
        }
    }
}

/// How far the mending of an unclean store is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Regions that have been mended.
    pub done: u64,
    /// Regions that are to be mended.
    pub regions: u64,
}

/// What was found when a store was opened.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize)]
pub struct OpenReport {
    /// Whether it was made just now.
    pub created: bool,
    /// Whether it had been closed, rather than killed.
    pub clean: bool,
    /// What stood in the soft state of arrays that were left in the low gear, and was copied home.
    pub copied_home: Bytes,
    /// Changes in the journal that were made again.
    pub replayed_changes: u64,
    /// Regions that were mended.
    pub regions: u64,
    /// Bytes of these regions' addresses.
    pub region_bytes: u64,
    /// What was found in them, and mended.
    pub mended: Comparison,
    /// Members whose files were missing or short, and which count as failed
    /// now.
    pub newly_failed: Vec<String>,
    /// Whether the marks of regions were not whole, so that all regions were
    /// compared.
    pub marks_lost: bool,
    /// Regions that were being written when the store was killed, and could
    /// not be mended since members failed at the same time: what these members
    /// held there may be computed wrongly.
    pub regions_at_risk: u64,
}

/// Where media come from.
pub(crate) trait Source {
    /// What is the matter with the member's medium, if it was not left as it
    /// should be.
    fn complaint(&self, member: &MemberRecord, label: Option<Label>) -> Option<String>;

    /// The member's medium; an empty one if there is none.
    fn open(&mut self, member: &MemberRecord) -> Result<Box<dyn Medium>, StoreError>;
}

/// Media in memory, none of which exists before.
struct Memory;

/// Media in the files of a folder.
pub(crate) struct Files<'a>(pub(crate) &'a Path);

impl Source for Memory {
    fn complaint(&self, _: &MemberRecord, _: Option<Label>) -> Option<String> {
        None
    }
    fn open(&mut self, _: &MemberRecord) -> Result<Box<dyn Medium>, StoreError> {
        Ok(Box::new(MemoryMedium::new()))
    }
}

impl Source for Files<'_> {
    fn complaint(&self, member: &MemberRecord, label: Option<Label>) -> Option<String> {
        let path = self.0.join(member.file.as_ref()?);
        FileMedium::complaint(&path, Sectors(member.sectors)).or_else(|| {
            let found = FileMedium::label(&path, Sectors(member.sectors));
            let complaint = label?.complaint(found.as_ref())?;
            Some(format!("`{}` {complaint}", path.display()))
        })
    }

    fn open(&mut self, member: &MemberRecord) -> Result<Box<dyn Medium>, StoreError> {
        let path = self.0.join(member.file.as_deref().unwrap_or_default());
        let medium = FileMedium::open(&path, Sectors(member.sectors));
        Ok(Box::new(medium.map_err(|error| {
            StoreError::host("open, or make as long as its drive,", &path, error)
        })?))
    }
}

impl Store {
    /// Opens the bytes of a volume of this `shape`, or makes them, all zeros.
    /// `digest` names volume and drives: a folder is opened again only with the
    /// digest that it was made with.
    ///
    /// An unclean store is mended first: what the journal holds is done again,
    /// then parity and copies are made to follow from the data in all regions
    /// that were being written.
    ///
    /// # Errors
    /// The folder is in use, is another stack's or no store's, lacks members,
    /// or is damaged; or the host's.
    pub fn open(
        shape: Shape,
        location: &Location,
        digest: &str,
        opening: Opening<'_>,
    ) -> Result<(Store, OpenReport), StoreError> {
        match location {
            Location::Memory => Store::open_in_memory(shape, &opening),
            Location::Folder(folder) if opening.read_only => {
                Store::open_read_only(folder, shape, digest, &opening)
            }
            Location::Folder(folder) => {
                Store::open_in(folder, &mut Files(folder), shape, digest, opening)
            }
        }
    }

    fn open_in_memory(
        shape: Shape,
        opening: &Opening<'_>,
    ) -> Result<(Store, OpenReport), StoreError> {
        let root = Node::new(shape, &mut Vec::new());
        let members = states::records(&root);
        let media = open_media(&members, &mut Memory)?;
        let report = OpenReport {
            created: true,
            clean: true,
            ..OpenReport::default()
        };
        Ok((Store::over(root, media, None, opening.quiet), report))
    }

    /// Opens a folder whose media come from `source`.
    pub(crate) fn open_in(
        folder: &Path,
        source: &mut dyn Source,
        shape: Shape,
        digest: &str,
        opening: Opening<'_>,
    ) -> Result<(Store, OpenReport), StoreError> {
        refuse_strange(folder)?;
        let lock = Lock::take(folder)?;
        let mut root = Node::new(shape, &mut Vec::new());
        let members = states::records(&root);
        let mut report = OpenReport {
            clean: true,
            ..OpenReport::default()
        };
        let mut superblock = match Superblock::read(folder)? {
            Some(superblock) => superblock,
            None => begin(folder, digest, &root, members.clone())?,
        };
        superblock.check(folder, digest, &members)?;
        // Before anything is written: a file that somebody else uses is not missing.
        refuse_used(folder, &superblock.members)?;
        let id = superblock.id().map_err(StoreError::Refused)?;
        if superblock.complete {
            report.clean = superblock.clean;
            states::set_all(
                &mut root,
                &mut superblock.members.iter().map(|member| member.state.into()),
            );
            gears::found(&mut root, &superblock.low_gear);
            report.newly_failed =
                fail_missing(&mut root, &superblock, source, opening.allow_degraded)?;
            superblock.members = states::records(&root);
            superblock.clean = false;
            // Before their files are made anew: an empty file must not be taken
            // for a member's.
            superblock.write(folder)?;
        } else {
            report.created = true;
        }
        let mut media = open_media(&superblock.members, source)?;
        let regions = states::any_redundancy(&root)
            .then(|| {
                let size = Sectors(superblock.region_sectors);
                let durable = opening.survive_power_loss;
                let trusted = !superblock.complete || report.clean;
                Regions::open(folder, root.capacity(), size, durable, id, trusted)
            })
            .transpose()?;
        report.marks_lost = regions.as_ref().is_some_and(|regions| regions.lost);
        let needed = superblock.complete && !report.clean && states::any_impaired_parity(&root);
        let journal = states::any_parity(&root)
            .then(|| Journal::open(folder, id, needed))
            .transpose()?;
        superblock.complete = true;
        superblock.clean = false;
        superblock.events += 1;
        media.write_labels(labels(&superblock));
        superblock.write(folder)?;
        let records = Records {
            folder: folder.to_owned(),
            _lock: lock,
            superblock,
            regions,
            journal,
        };
        let mut store = Store::over(root, media, Some(records), opening.quiet);
        store.open_losses()?;
        store.choose_journalling()?;
        store.replay(&mut report)?;
        if opening.compare_behind {
            store.resynchronise_later(&mut report);
        } else {
            store.resynchronise(&mut report, opening.progress)?;
        }
        report.copied_home = store.rise()?.bytes();
        Ok((store, report))
    }

    pub(crate) fn over(
        root: Node,
        media: Media,
        records: Option<Records>,
        quiet: Duration,
    ) -> Store {
        Store {
            has_copies: states::any_copies(&root),
            root,
            media,
            records,
            journalled: false,
            pending: false,
            unsettled: Vec::new(),
            losses: Vec::new(),
            stopped: None,
            dropped: Vec::new(),
            missed_nothing: Vec::new(),
            synced: 0,
            checkpoint: None,
            quiet,
            state_changes: 0,
            read_only: None,
        }
    }

    fn open_losses(&mut self) -> Result<(), StoreError> {
        let Some(records) = &self.records else {
            return Ok(());
        };
        let (capacity, folder) = (self.root.capacity(), Some(records.folder.as_path()));
        let losses = records.superblock.losses.iter().enumerate();
        let id = records.superblock.id().ok();
        let losses =
            losses.map(|(index, loss)| Loss::open(index, &loss.members, capacity, folder.zip(id)));
        self.losses = losses.collect::<Result<_, _>>()?;
        Ok(())
    }

    /// Makes again what the journal holds. What was made already is the same
    /// the second time, since nothing was changed after it.
    fn replay(&mut self, report: &mut OpenReport) -> Result<(), StoreError> {
        let Some(Records {
            journal: Some(journal),
            folder,
            superblock,
            ..
        }) = &mut self.records
        else {
            return Ok(());
        };
        let Some(transaction) = journal.read()? else {
            return Ok(());
        };
        check_fits(folder, &superblock.members, &transaction)?;
        report.replayed_changes = transaction.changes.len() as u64;
        self.media.transaction = transaction;
        self.media.apply(&[])?;
        self.sync()?;
        // Requests from now on may go by without a record: this one must not
        // undo them at the next opening.
        match &mut self.records {
            Some(Records {
                journal: Some(journal),
                ..
            }) => journal.clear(self.media.epoch),
            _ => Ok(()),
        }
    }

    /// Leaves the marked regions to be compared when there is nothing better to
    /// do. Data is right until then; redundancy counts for nothing there.
    fn resynchronise_later(&mut self, report: &mut OpenReport) {
        let capacity = self.capacity();
        let Some(Records {
            regions: Some(regions),
            ..
        }) = &self.records
        else {
            return;
        };
        if self.journalled && !report.newly_failed.is_empty() {
            report.regions_at_risk = regions.dirty().len() as u64;
        }
        for &region in regions.dirty() {
            let mut extent = regions.extent(region);
            extent.sectors = extent.sectors.min(Sectors(capacity.0 - extent.start.0));
            report.regions += 1;
            report.region_bytes += extent.sectors.bytes().0;
            self.unsettled.push(Unsettled {
                extent,
                media: Vec::new(),
            });
        }
    }

    /// Makes parity and copies follow from the data in all marked regions, and
    /// clears the marks.
    fn resynchronise(
        &mut self,
        report: &mut OpenReport,
        mut progress: Option<&mut dyn FnMut(Progress)>,
    ) -> Result<(), StoreError> {
        let capacity = self.capacity();
        let Some(Records {
            regions: Some(regions),
            ..
        }) = &mut self.records
        else {
            return Ok(());
        };
        let mut dirty: Vec<u32> = regions.dirty().to_vec();
        dirty.sort_unstable();
        if self.journalled && !report.newly_failed.is_empty() {
            report.regions_at_risk = dirty.len() as u64;
        }
        let mut verifier = Verifier::new(&mut self.media, true);
        for (index, &region) in dirty.iter().enumerate() {
            let mut extent = regions.extent(region);
            extent.sectors = extent.sectors.min(Sectors(capacity.0 - extent.start.0));
            verifier.check(&mut self.root, "", extent)?;
            report.regions += 1;
            report.region_bytes += extent.sectors.bytes().0;
            if let Some(progress) = &mut progress {
                progress(Progress {
                    done: index as u64 + 1,
                    regions: dirty.len() as u64,
                });
            }
        }
        report.mended = verifier.found;
        if !dirty.is_empty() {
            self.sync()?;
            let Some(Records {
                regions: Some(regions),
                ..
            }) = &mut self.records
            else {
                return Ok(());
            };
            regions.clear_before(self.media.epoch)?;
        }
        Ok(())
    }
}

/// An error if the folder holds something, but no store. Looked at before
/// anything is put into it. What another process may be making there has its
/// superblock before all else.
fn refuse_strange(folder: &Path) -> Result<(), StoreError> {
    if !folder.exists() {
        return Ok(());
    }
    match found_in(folder)? {
        Some(found) if !folder.join(crate::bytes::superblock::NAME).exists() => {
            Err(StoreError::NoStore {
                folder: folder.to_owned(),
                found,
            })
        }
        _ => Ok(()),
    }
}

/// An error if another process uses a member's file, by whatever name.
fn refuse_used(folder: &Path, members: &[MemberRecord]) -> Result<(), StoreError> {
    let files = drives_of(members).filter_map(|member| Some(folder.join(member.file.as_ref()?)));
    for file in files {
        if let Some(user) = fullstroke_device::gate::user_of(&file) {
            let message = format!("`{}`: {user}; the store is not opened", file.display());
            return Err(StoreError::Refused(message));
        }
    }
    Ok(())
}

/// A superblock for a new store in an empty folder.
fn begin(
    folder: &Path,
    digest: &str,
    root: &Node,
    members: Vec<MemberRecord>,
) -> Result<Superblock, StoreError> {
    let region = Regions::size_for(root.capacity());
    let id = StoreId::new()
        .map_err(|error| StoreError::host("read", Path::new("/dev/urandom"), error))?;
    let superblock = Superblock::new(id, digest, states::describe(root), region, members);
    superblock.write(folder)?;
    Ok(superblock)
}

/// An error if the journal's record is not one of these members.
pub(crate) fn check_fits(
    folder: &Path,
    members: &[MemberRecord],
    transaction: &Transaction,
) -> Result<(), StoreError> {
    let drives: Vec<Sectors> = drives_of(members)
        .map(|drive| Sectors(drive.sectors))
        .collect();
    let fits = |change: &Change| {
        drives
            .get(change.medium as usize)
            .is_some_and(|&capacity| change.extent.within(capacity))
    };
    if transaction.changes.iter().all(fits) {
        return Ok(());
    }
    let file = folder.join(crate::bytes::journal::NAME);
    let detail = "its record does not fit the members; remove the file to go on without it".into();
    Err(StoreError::Damaged { file, detail })
}

/// Counts members as failed whose media are not as they were left, and names
/// them.
pub(crate) fn fail_missing(
    root: &mut Node,
    superblock: &Superblock,
    source: &dyn Source,
    allowed: bool,
) -> Result<Vec<String>, StoreError> {
    let expected = superblock
        .members
        .iter()
        .filter(|member| member.state != StateRecord::Failed);
    let found = expected.filter_map(|member| {
        Some((
            member.path.clone(),
            source.complaint(member, superblock.label(member))?,
        ))
    });
    let (paths, complaints): (Vec<String>, Vec<String>) = found.unzip();
    if paths.is_empty() {
        return Ok(paths);
    }
    let detail = complaints.join(", ");
    if !allowed {
        return Err(StoreError::MembersMissing { detail });
    }
    let Node::Volume(array) = root else {
        return Err(StoreError::TooManyMissing { detail });
    };
    for path in &paths {
        let path: Vec<usize> = path
            .split('.')
            .filter_map(|index| index.parse().ok())
            .collect();
        // A failure changes no media.
        states::set(
            array,
            &path,
            MemberState::Failed,
            &mut Media::new(Vec::new()),
        )?;
    }
    if root.answers() {
        Ok(paths)
    } else {
        Err(StoreError::TooManyMissing { detail })
    }
}

/// The labels of the drives, in the order of their media; none for those that
/// have failed: they are part of the store no longer.
pub(crate) fn labels(superblock: &Superblock) -> impl Iterator<Item = Option<Label>> + '_ {
    let alive = |member: &&MemberRecord| member.state != StateRecord::Failed;
    drives_of(&superblock.members).map(move |member| {
        Some(member)
            .filter(alive)
            .and_then(|member| superblock.label(member))
    })
}

/// The drives, in the order of their media.
fn drives_of(members: &[MemberRecord]) -> impl Iterator<Item = &MemberRecord> {
    members.iter().filter(|member| member.file.is_some())
}

pub(crate) fn open_media(
    members: &[MemberRecord],
    source: &mut dyn Source,
) -> Result<Media, StoreError> {
    let media = drives_of(members)
        .map(|member| source.open(member))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(Media::new(media))
}
