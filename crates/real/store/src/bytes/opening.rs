//! Makes stores, and opens existing ones after a close, a kill or damage.

use crate::bytes::StoreError;
use crate::bytes::checkpoints::Checkpoints;
use crate::bytes::description::{
    Description, JournalScope, MemberRecord, StateRecord, StoredDescription, damaged,
};
use crate::bytes::error::NAME;
use crate::bytes::gears;
use crate::bytes::lock::{Lock, found_in};
use crate::bytes::loss::LostData;
use crate::bytes::media::Media;
use crate::bytes::node::StoreNode;
use crate::bytes::old;
use crate::bytes::records::{Records, StorePlaces};
use crate::bytes::states;
use crate::bytes::store::{DoubtfulExtent, Store};
use crate::bytes::verify::Verifier;
use crate::comparison::RedundancyCheck;
use crate::journal::{self, Change};
use crate::label::{self, Label};
use crate::sparse::{FileLengths, SparseFile};
use crate::uuid::Uuid;
use crate::{Device, MemoryDevice};
use fullstroke_contract::{Extent, MemberState};
use fullstroke_units::{Bytes, Sectors};
use fullstroke_volume::Shape;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Place of a store's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreLocation {
    /// In memory; lost when the process ends.
    Memory,
    /// In files of this folder. A missing folder is made.
    Folder(PathBuf),
}

/// Options of an opening.
pub struct Opening<'a> {
    /// True if members with missing or short files count as failed, if the layout survives that.
    /// Otherwise such members are an error.
    pub allow_degraded: bool,
    /// True if a region's mark is made durable before the region's first write. The cost is an
    /// `fdatasync` for each new mark. Redundancy needs this to survive a loss of power, and not
    /// only the death of the process.
    pub survive_power_loss: bool,
    /// Time without writes before a region's mark is cleared.
    pub quiet: Duration,
    /// True if an unclean store serves at once, and [`Store::tidy`] compares a part at a time.
    /// Otherwise the opening compares first.
    pub compare_behind: bool,
    /// Changes of a store with parity that go to the journal first. An unclean store whose changes
    /// did not all go there compares before it serves all changes through the journal.
    pub journal: JournalScope,
    /// True if nothing in the folder is changed, so the folder may be read-only. An unclean store
    /// is mended in memory while serving. All changes are refused.
    pub read_only: bool,
    /// Callback for the progress of mending an unclean store.
    pub progress: Option<&'a mut dyn FnMut(MendingProgress)>,
}

impl Default for Opening<'_> {
    /// No degraded opening, power loss survived, marks cleared after five seconds, comparison
    /// before serving, a journal for degraded volumes, no progress.
    fn default() -> Self {
        let quiet = Duration::from_secs(5);
        Opening {
            allow_degraded: false,
            survive_power_loss: true,
            quiet,
            compare_behind: false,
            journal: JournalScope::default(),
            read_only: false,
            progress: None,
        }
    }
}

/// Progress of mending an unclean store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MendingProgress {
    /// Number of mended regions.
    pub done: u64,
    /// Number of all regions to mend.
    pub regions: u64,
}

/// Findings of an opening.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize)]
pub struct OpenReport {
    /// True if the opening made the store.
    pub created: bool,
    /// True if the store had been closed, rather than killed.
    pub clean: bool,
    /// Bytes copied home from the soft state, in volumes left in the low gear.
    pub copied_home: Bytes,
    /// Number of runs of sectors repeated from the journal.
    pub replayed_changes: u64,
    /// Number of mended regions.
    pub regions: u64,
    /// Number of bytes in the address ranges of these regions.
    pub region_bytes: u64,
    /// Differences found in these regions, and mended.
    pub mended: RedundancyCheck,
    /// Newly failed members: those with missing or short files.
    pub newly_failed: Vec<String>,
    /// True if the marks of regions were damaged, so all regions were compared.
    pub marks_lost: bool,
    /// Number of regions that could not be mended: writes were in progress during a kill, and
    /// members failed at the same time. Data computed for these members may be wrong there.
    pub regions_at_risk: u64,
}

/// Source of the devices of a store.
pub(crate) trait DeviceSource {
    /// Returns a description of the fault if the member's device is not as the store left it.
    fn complaint(&self, member: &MemberRecord, label: Option<Label>) -> Option<String>;

    /// Returns the member's device, with room for a label behind its bytes. Makes an empty device
    /// if there is none.
    fn member(&mut self, member: &MemberRecord) -> Result<Arc<dyn Device>, StoreError>;

    /// Returns the device of the store's own records, with a length of `bytes`.
    fn own(&mut self, folder: &Path, bytes: u64) -> Result<Arc<dyn Device>, StoreError> {
        let path = folder.join(NAME);
        let lengths = FileLengths::new(bytes, 0);
        // An empty file is left when the process dies between making and filling the file.
        let found = std::fs::metadata(&path).map_or(0, |metadata| metadata.len());
        if found > 0
            && let Some(complaint) = SparseFile::complaint(&path, lengths)
        {
            return Err(damaged(
                path,
                &format!("{complaint}; restore the file as the server left it"),
            ));
        }
        let file = SparseFile::open(&path, bytes, 0);
        Ok(Arc::new(
            file.map_err(|error| StoreError::host("open", &path, error))?,
        ))
    }
}

/// Source of new devices in memory.
struct InMemory;

/// Source of devices in the files of a folder.
pub(crate) struct FolderFiles<'a>(pub(crate) &'a Path);

impl DeviceSource for InMemory {
    fn complaint(&self, _: &MemberRecord, _: Option<Label>) -> Option<String> {
        None
    }
    fn member(&mut self, member: &MemberRecord) -> Result<Arc<dyn Device>, StoreError> {
        Ok(Arc::new(MemoryDevice::new(member.bytes())))
    }
}

impl DeviceSource for FolderFiles<'_> {
    fn complaint(&self, member: &MemberRecord, label: Option<Label>) -> Option<String> {
        let path = self.0.join(member.file.as_ref()?);
        let lengths = FileLengths::new(member.bytes(), label::BYTES);
        SparseFile::complaint(&path, lengths).or_else(|| {
            let file = SparseFile::open_read_only(&path, lengths).ok();
            let found = file.and_then(|file| {
                label::OF_FOLDERS
                    .read(&file, member.bytes())
                    .or_else(|| old::label(&file, member.bytes()))
            });
            let complaint = label?.complaint(found.as_ref())?;
            Some(format!("`{}` {complaint}", path.display()))
        })
    }

    fn member(&mut self, member: &MemberRecord) -> Result<Arc<dyn Device>, StoreError> {
        let path = self.0.join(member.file.as_deref().unwrap_or_default());
        let file = SparseFile::open(&path, member.bytes(), label::BYTES);
        Ok(Arc::new(file.map_err(|error| {
            StoreError::host("open, or make as long as its drive,", &path, error)
        })?))
    }
}

/// Gives the tree the recorded states, and fails the members with missing or short files. Returns
/// true if all changes went to the journal so far.
pub(crate) fn find_states(
    root: &mut StoreNode,
    description: &mut Description,
    source: &dyn DeviceSource,
    allow_degraded: bool,
    report: &mut OpenReport,
) -> Result<bool, StoreError> {
    report.clean = description.clean;
    let mut states = description.members.iter().map(|member| member.state.into());
    states::set_all(root, &mut states);
    gears::found(root, &description.low_gear);
    let was_journalled = states::is_journalled(root, description);
    report.newly_failed = fail_missing(root, description, source, allow_degraded)?;
    description.members = states::records(root);
    Ok(was_journalled)
}

impl Store {
    /// Opens the bytes of a volume of this `shape`, or makes a store of zeros. `digest` identifies
    /// the volume and its drives: a folder is opened again only with its first digest.
    ///
    /// An unclean store is mended first. The changes in the journal are repeated. Then parity and
    /// copies are made to follow from the data in all marked regions.
    ///
    /// # Errors
    /// The folder is in use, is another stack's or no store's, lacks members, or is damaged; or the
    /// host's.
    pub fn open(
        shape: Shape,
        location: &StoreLocation,
        digest: &str,
        opening: Opening<'_>,
    ) -> Result<(Store, OpenReport), StoreError> {
        match location {
            StoreLocation::Memory => Store::open_in_memory(shape, &opening),
            StoreLocation::Folder(folder) if opening.read_only => {
                Store::open_read_only(folder, shape, digest, &opening)
            }
            StoreLocation::Folder(folder) => {
                Store::open_in(folder, &mut FolderFiles(folder), shape, digest, opening)
            }
        }
    }

    fn open_in_memory(
        shape: Shape,
        opening: &Opening<'_>,
    ) -> Result<(Store, OpenReport), StoreError> {
        let root = StoreNode::new(shape, &mut Vec::new());
        let members = states::records(&root);
        let media = open_media(&members, &mut InMemory)?;
        let report = OpenReport {
            created: true,
            clean: true,
            ..OpenReport::default()
        };
        Ok((Store::over(root, media, None, opening.quiet), report))
    }

    /// Opens the store in `folder`. The media come from `source`.
    pub(crate) fn open_in(
        folder: &Path,
        source: &mut dyn DeviceSource,
        shape: Shape,
        digest: &str,
        opening: Opening<'_>,
    ) -> Result<(Store, OpenReport), StoreError> {
        refuse_strange(folder)?;
        let lock = Lock::take(folder)?;
        let mut root = StoreNode::new(shape, &mut Vec::new());
        let members = states::records(&root);
        let mut report = OpenReport {
            clean: true,
            ..OpenReport::default()
        };
        let parity = states::any_parity(&root);
        let places = StorePlaces::of(root.capacity(), parity);
        old::migrate(folder, digest, &members, places, root.capacity())?;
        let device = source.own(folder, places.bytes())?;
        let mut kept = match StoredDescription::read(Arc::clone(&device))? {
            Some(kept) => kept,
            None => {
                refuse_members(folder)?;
                begin(&device, digest, &root, places, members.clone())?
            }
        };
        let mut description = kept.description().clone();
        description.check(folder, digest, &members)?;
        // This check comes before the first write, and before members with missing files are
        // failed: a file that another process uses is not missing.
        refuse_used(folder, &description.members)?;
        let store = description.store;
        let mut was_journalled = description.journal == JournalScope::All;
        if description.complete {
            let degraded = opening.allow_degraded;
            was_journalled =
                find_states(&mut root, &mut description, source, degraded, &mut report)?;
            description.clean = false;
            // The failures are recorded before the missing files are made anew. Otherwise a crash
            // in between would leave an empty file that counts as a good member.
            kept.replace(description.clone())?;
        } else {
            report.created = true;
        }
        let mut media = open_media(&description.members, source)?;
        let durable = opening.survive_power_loss;
        let marks = states::any_redundancy(&root)
            .then(|| {
                let trusted = !description.complete || report.clean;
                places.open_marks(&device, store, durable, trusted)
            })
            .transpose()?;
        report.marks_lost = marks.as_ref().is_some_and(|marks| marks.lost());
        let redo = places.redo(&device, store, durable);
        let changes = match &redo {
            Some(redo) if !report.clean => redo.read(states::any_impaired_parity(&root))?,
            _ => Vec::new(),
        };
        check_fits(folder, &description.members, &changes)?;
        // The directory entries of new files must be durable before the description says that the
        // store is complete.
        let synced = std::fs::File::open(folder).and_then(|folder| folder.sync_all());
        synced.map_err(|error| StoreError::host("make durable", folder, error))?;
        description.complete = true;
        description.clean = false;
        description.events += 1;
        let always_was = description.journal == opening.journal;
        // All changes go to the journal only after older changes are compared (below).
        if !always_was {
            description.journal = JournalScope::Degraded;
        }
        // The labels come first. A label may be one event ahead of the description, but not behind
        // (see `Label::complaint`).
        media.write_labels(labels(&description))?;
        kept.replace(description)?;
        let records = Records::new(folder, lock, kept, marks, redo);
        let mut store = Store::over(root, media, Some(records), opening.quiet);
        store.open_losses()?;
        store.choose_journalling()?;
        store.drop_unlabelled()?;
        store.replay(changes, &mut report)?;
        if store.journalled && !was_journalled && !report.newly_failed.is_empty() {
            report.regions_at_risk = store.dirty().map_or(0, |dirty| dirty.len() as u64);
        }
        store.compare_marked(opening, always_was, &mut report)?;
        Ok((store, report))
    }

    /// Makes redundancy follow from the data in the marked regions, now or later, and then returns
    /// the volumes with gears to the high gear. `always_was` is true if the scope of the journal is
    /// the recorded one.
    fn compare_marked(
        &mut self,
        opening: Opening<'_>,
        always_was: bool,
        report: &mut OpenReport,
    ) -> Result<(), StoreError> {
        if opening.compare_behind && (always_was || opening.journal == JournalScope::Degraded) {
            self.resynchronise_later(report);
        } else {
            self.resynchronise(report, opening.progress)?;
        }
        if !always_was {
            self.keep_journal(opening.journal)?;
        }
        report.copied_home = self.rise()?.bytes();
        Ok(())
    }

    pub(crate) fn over(
        root: StoreNode,
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
            checkpoints: Checkpoints::new(quiet),
            dying: Vec::new(),
            state_changes: 0,
            read_only: None,
        }
    }

    fn open_losses(&mut self) -> Result<(), StoreError> {
        let Some(records) = &self.records else {
            return Ok(());
        };
        let capacity = self.root.capacity();
        let description = records.description();
        let kept = Some((records.folder(), description.store));
        let losses = description.losses.iter().enumerate();
        let losses =
            losses.map(|(index, loss)| LostData::open(index, &loss.members, capacity, kept));
        self.losses = losses.collect::<Result<_, _>>()?;
        Ok(())
    }

    /// Repeats the changes in the journal. Some changes may have been made before. To repeat these
    /// is harmless, because the journal also holds every later change to the same sectors.
    fn replay(&mut self, changes: Vec<Change>, report: &mut OpenReport) -> Result<(), StoreError> {
        if self.records.as_ref().and_then(Records::redo).is_none() {
            return Ok(());
        }
        if !changes.is_empty() {
            report.replayed_changes = changes.iter().map(|change| change.runs.len() as u64).sum();
            self.media.repeat(changes)?;
            self.sync()?;
        }
        // Later requests may be made without a record. A record that stayed in the journal would
        // overwrite their data at the next opening.
        match self.records.as_mut().and_then(Records::redo_mut) {
            Some(redo) => redo.restart(self.media.epoch),
            None => Ok(()),
        }
    }

    /// Adds the marked regions to the unsettled extents; [`Store::tidy`] compares later. The data
    /// is right until then; the redundancy of these regions is not used.
    fn resynchronise_later(&mut self, report: &mut OpenReport) {
        let Some(dirty) = self.dirty() else { return };
        for extent in dirty {
            report.regions += 1;
            report.region_bytes += extent.sectors.bytes().0;
            self.unsettled.push(DoubtfulExtent {
                extent,
                media: Vec::new(),
            });
        }
    }

    /// Records which changes go to the journal from now on.
    fn keep_journal(&mut self, journal: JournalScope) -> Result<(), StoreError> {
        if let Some(records) = &mut self.records {
            let mut description = records.description().clone();
            description.journal = journal;
            records.replace(description)?;
        }
        self.choose_journalling()
    }

    /// Returns the extents of the marked regions, if the store has marks.
    fn dirty(&self) -> Option<Vec<Extent>> {
        let marks = self.records.as_ref().and_then(Records::marks)?;
        Some(marks.dirty())
    }

    /// Makes parity and copies follow from the data in all marked regions, and
    /// clears the marks.
    fn resynchronise(
        &mut self,
        report: &mut OpenReport,
        mut progress: Option<&mut dyn FnMut(MendingProgress)>,
    ) -> Result<(), StoreError> {
        let Some(dirty) = self.dirty() else {
            return Ok(());
        };
        let mut verifier = Verifier::mending(&mut self.media);
        for (index, &extent) in dirty.iter().enumerate() {
            verifier.check(&mut self.root, "", extent)?;
            report.regions += 1;
            report.region_bytes += extent.sectors.bytes().0;
            if let Some(progress) = &mut progress {
                progress(MendingProgress {
                    done: index as u64 + 1,
                    regions: dirty.len() as u64,
                });
            }
        }
        report.mended = verifier.found;
        if !dirty.is_empty() {
            self.sync()?;
            if let Some(marks) = self.records.as_mut().and_then(Records::marks_mut) {
                marks.clear_before(self.media.epoch)?;
            }
        }
        Ok(())
    }
}

/// Returns an error if the folder holds files, but no store. The check comes before the first write
/// to the folder. If another process is making a store, the store's own file comes before all
/// others.
fn refuse_strange(folder: &Path) -> Result<(), StoreError> {
    if !folder.exists() {
        return Ok(());
    }
    match found_in(folder, &[])? {
        Some(found) if !folder.join(NAME).exists() && !old::is_in(folder) => {
            Err(StoreError::NoStore {
                folder: folder.to_owned(),
                found,
            })
        }
        _ => Ok(()),
    }
}

/// Returns an error if another process uses a member's file, under any name.
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

/// Returns an error if the folder holds more than an empty store file. The store file is written
/// before any member is made, so the missing description must have been lost.
fn refuse_members(folder: &Path) -> Result<(), StoreError> {
    match found_in(folder, &[NAME])? {
        None => Ok(()),
        Some(found) => {
            let detail = format!(
                "the file is empty, and `{found}` exists beside it; restore the file as the server left it"
            );
            Err(damaged(folder.join(NAME), &detail))
        }
    }
}

/// Writes the first description of a new store.
fn begin(
    device: &Arc<dyn Device>,
    digest: &str,
    root: &StoreNode,
    places: StorePlaces,
    members: Vec<MemberRecord>,
) -> Result<StoredDescription, StoreError> {
    let store =
        Uuid::new().map_err(|error| StoreError::host("read", Path::new("/dev/urandom"), error))?;
    let layout = states::describe(root);
    let description = Description::new(store, digest, layout, places.region(), members);
    StoredDescription::begin(Arc::clone(device), description)
}

/// Returns an error if the journal's records do not fit the members.
pub(crate) fn check_fits(
    folder: &Path,
    members: &[MemberRecord],
    changes: &[Change],
) -> Result<(), StoreError> {
    let drives: Vec<Sectors> = drives_of(members)
        .map(|drive| Sectors(drive.sectors))
        .collect();
    let mut runs = changes.iter().flat_map(|change| &change.runs);
    let fits = |run: &journal::ChangeRun| {
        drives
            .get(run.slot as usize)
            .is_some_and(|&capacity| run.extent().within(capacity))
    };
    if runs.all(fits) {
        return Ok(());
    }
    let detail =
        "a record of the journal does not fit the members; restore the file as the server left it";
    Err(damaged(folder.join(NAME), detail))
}

/// Counts members as failed whose media are not as the store left them, and returns their names.
fn fail_missing(
    root: &mut StoreNode,
    description: &Description,
    source: &dyn DeviceSource,
    allowed: bool,
) -> Result<Vec<String>, StoreError> {
    let expected = description
        .members
        .iter()
        .filter(|member| member.state != StateRecord::Failed);
    let found = expected.filter_map(|member| {
        Some((
            member.path.clone(),
            source.complaint(member, Some(description.label(member)))?,
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
    let StoreNode::Volume(array) = root else {
        return Err(StoreError::TooManyMissing { detail });
    };
    for path in &paths {
        let path: Vec<usize> = path
            .split('.')
            .filter_map(|index| index.parse().ok())
            .collect();
        // A failure changes no media, so an empty set suffices.
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

/// Returns the label of each drive and its first byte, in the order of the media. Failed drives get
/// `None`, because such drives are no part of the store any more.
pub(crate) fn labels(description: &Description) -> impl Iterator<Item = Option<(Label, u64)>> + '_ {
    drives_of(&description.members).map(move |member| {
        let alive = member.state != StateRecord::Failed;
        alive.then(|| (description.label(member), member.bytes()))
    })
}

/// Returns the drives, in the order of their media.
fn drives_of(members: &[MemberRecord]) -> impl Iterator<Item = &MemberRecord> {
    members.iter().filter(|member| member.file.is_some())
}

pub(crate) fn open_media(
    members: &[MemberRecord],
    source: &mut dyn DeviceSource,
) -> Result<Media, StoreError> {
    let media = drives_of(members)
        .map(|member| source.member(member))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(Media::new(media))
}
