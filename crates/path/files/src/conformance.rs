//! Tests that every file system must pass, whatever its format: random operations checked against a
//! plain model of names and pages.

use crate::*;
use fullstroke_contract::registry::Keys;
use fullstroke_contract::{Extent, Object};
use fullstroke_tracks::{Boundaries, Builder};
use fullstroke_units::{Bytes, Duration, Sectors, Seed, Time};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

/// Returns every file system of the registry that has names and places pages on a device: with its
/// default keys, and with keys that change the allocation.
fn kinds() -> Vec<(&'static str, Value)> {
    let variants = [
        (
            "ext2",
            json!({ "allocation": "reservation", "mpage": false }),
        ),
        (
            "ext2",
            json!({ "allocation": "multiblock", "inode_size": 256 }),
        ),
        (
            "ext4",
            json!({ "delalloc": false, "flex_groups": 1, "data": "writeback" }),
        ),
        (
            "xfs",
            json!({ "kernel": "today", "agcount": 5, "log_size": "10MiB" }),
        ),
    ];
    let named = REGISTRY
        .iter()
        .map(|entry| entry.name)
        // `raw` has no names, and a pool places pages at each write.
        .filter(|&name| name != "raw" && name != "zfs");
    named
        .map(|name| (name, json!({})))
        .chain(variants)
        .collect()
}

/// Returns the kinds of `kinds`, and file systems on a device with tracks. The value `tracks` is
/// the number of sectors of a track; it is a property of the site, not a key of the file system.
fn kinds_and_aligned() -> Vec<(&'static str, Value)> {
    let aligned = [
        ("ext2", json!({ "tracks": 1003 })),
        ("ext2", json!({ "tracks": 61, "allocation": "reservation" })),
        ("ext4", json!({ "tracks": 1003 })),
    ];
    kinds().into_iter().chain(aligned).collect()
}

fn keys(value: &Value) -> Keys {
    let mut keys = value.as_object().cloned().unwrap_or_default();
    keys.remove("tracks");
    keys
}

/// Builds tracks of the length that the value `tracks` gives, in sectors.
fn tracks(value: &Value, pages: u64) -> Option<Arc<Boundaries>> {
    let (sectors, capacity) = (value["tracks"].as_u64()?, pages * PAGE_SECTORS);
    let mut builder = Builder::default();
    builder
        .push_run(Sectors(sectors), capacity / sectors)
        .unwrap();
    if capacity % sectors > 0 {
        builder.push(Sectors(capacity % sectors)).unwrap();
    }
    Some(Arc::new(builder.finish("a test").unwrap()))
}

fn site(pages: u64, seed: u64) -> FileSystemSite {
    FileSystemSite {
        capacity: Sectors(pages * PAGE_SECTORS),
        seed: Seed(seed),
        stripe: None,
        tracks: None,
    }
}

#[derive(Clone, Debug)]
enum FileStep {
    Create { directory: usize, name: u8 },
    MakeDirectory { directory: usize, name: u8 },
    Write { file: usize, page: u64, pages: u64 },
    Append { file: usize, pages: u64 },
    Truncate { file: usize, pages: u64 },
    Close { file: usize },
    WriteBack { file: usize },
    Remove { directory: usize, name: u8 },
    Rename { from: (usize, u8), to: (usize, u8) },
    Fsync { file: usize },
    Commit,
}

fn step() -> impl Strategy<Value = FileStep> {
    let place = || (0usize..6, 0u8..12);
    prop_oneof![
        4 => place().prop_map(|(directory, name)| FileStep::Create { directory, name }),
        1 => place().prop_map(|(directory, name)| FileStep::MakeDirectory { directory, name }),
        // The ranges reach direct, indirect, double and triple indirect blocks of ext2, with 12 and
        // then 1024 pointers.
        3 => (0usize..12, prop_oneof![0u64..40, 900u64..1400, 200_000u64..1_500_000], 1u64..60)
            .prop_map(|(file, page, pages)| FileStep::Write { file, page, pages }),
        5 => (0usize..12, 1u64..400).prop_map(|(file, pages)| FileStep::Append { file, pages }),
        1 => (0usize..12, 0u64..300).prop_map(|(file, pages)| FileStep::Truncate { file, pages }),
        2 => (0usize..12).prop_map(|file| FileStep::Close { file }),
        3 => (0usize..12).prop_map(|file| FileStep::WriteBack { file }),
        2 => place().prop_map(|(directory, name)| FileStep::Remove { directory, name }),
        1 => (place(), place()).prop_map(|(from, to)| FileStep::Rename { from, to }),
        1 => (0usize..12).prop_map(|file| FileStep::Fsync { file }),
        1 => Just(FileStep::Commit),
    ]
}

/// A file system under test, with the model of its expected content.
struct FileSystemTrial {
    system: Box<dyn FileSystem>,
    /// Maps a directory and a name to the object.
    names: BTreeMap<(Object, String), Object>,
    /// Pages of each file that were written and not truncated.
    files: BTreeMap<Object, BTreeSet<u64>>,
    directories: BTreeSet<Object>,
    touches: MetaAccesses,
    now: Time,
    tracks: Option<Arc<Boundaries>>,
    /// True if pages below the end of a file may have a place although no program wrote them. This
    /// happens in XFS: preallocated pages stay when a later write goes beyond them.
    roomy: bool,
    /// Metadata pages that no plan has released yet.
    held: BTreeSet<u64>,
}

impl FileSystemTrial {
    fn new(name: &str, value: &Value, pages: u64, seed: u64) -> FileSystemTrial {
        let tracks = tracks(value, pages);
        let site = FileSystemSite {
            tracks: tracks.clone(),
            ..site(pages, seed)
        };
        let system = make(name, &keys(value), &site).unwrap();
        let root = system.root();
        let mut trial = FileSystemTrial {
            system,
            names: BTreeMap::new(),
            files: BTreeMap::new(),
            directories: [root].into(),
            touches: MetaAccesses::new(),
            now: Time::ZERO,
            tracks,
            roomy: name == "xfs",
            held: BTreeSet::new(),
        };
        for (name, object) in trial.system.entries(root).unwrap() {
            trial.names.insert((root, name), object);
            trial.directories.insert(object);
        }
        trial
    }

    fn caller(&self) -> Caller {
        Caller {
            now: self.now,
            process: 7,
        }
    }

    fn directory(&self, at: usize) -> Object {
        *self
            .directories
            .iter()
            .nth(at % self.directories.len())
            .unwrap()
    }

    fn file(&self, at: usize) -> Option<Object> {
        self.files.keys().nth(at % self.files.len().max(1)).copied()
    }

    /// Returns the runs of the device with metadata or directories, ascending.
    fn metadata(&self) -> Vec<Range<u64>> {
        let mut ranges = self.system.metadata();
        ranges.extend(
            self.directories
                .iter()
                .flat_map(|&directory| self.placed(directory)),
        );
        ranges.sort_by_key(|range| range.start);
        ranges
    }

    /// Returns the places of an object's pages on the device.
    fn placed(&self, object: Object) -> Vec<Range<u64>> {
        let mut extents = Vec::new();
        self.system.extents(object, &mut extents).unwrap();
        let on_device = extents.into_iter().filter_map(|mapped| match mapped.place {
            PagePlace::Device(lbn) => {
                Some(lbn.0 / PAGE_SECTORS..lbn.0 / PAGE_SECTORS + mapped.pages)
            }
            _ => None,
        });
        on_device.collect()
    }

    /// Executes a step. Checks the answer against the model, and checks the touched pages.
    fn take(&mut self, step: &FileStep) {
        self.now += Duration::from_millis(300);
        let before = self.metadata();
        self.touches.clear();
        self.act(step);
        let after = self.metadata();
        // A block of a tree may come and go within a step, when a write is cut off by a full disk.
        let last: BTreeMap<u64, &MetaAccess> = self
            .touches
            .list()
            .iter()
            .map(|touch| (touch.page(), touch))
            .collect();
        let is_gone = |page| matches!(last[&page], MetaAccess::Forget(_));
        for touch in self.touches.list() {
            let page = touch.page();
            assert!(
                has(&before, page) || has(&after, page) || is_gone(page),
                "{step:?} touched {page}, which is none"
            );
            match touch {
                MetaAccess::Dirty(page) | MetaAccess::Fresh(page) => drop(self.held.insert(*page)),
                MetaAccess::Forget(page) => drop(self.held.remove(page)),
                MetaAccess::Read(_) => {}
            }
        }
    }

    fn act(&mut self, step: &FileStep) {
        match *step {
            FileStep::Create { directory, name } => self.make(directory, name, ObjectKind::File),
            FileStep::MakeDirectory { directory, name } => {
                self.make(directory, name, ObjectKind::Directory)
            }
            FileStep::Write { file, page, pages } => self.write(file, Some(page), pages),
            FileStep::Append { file, pages } => self.write(file, None, pages),
            FileStep::Truncate { file, pages } => self.truncate(file, pages),
            FileStep::Close { file } => {
                if let Some(file) = self.file(file) {
                    self.system
                        .close(self.caller(), file, &mut self.touches)
                        .unwrap();
                }
            }
            FileStep::WriteBack { file } => {
                if let Some(file) = self.file(file) {
                    self.write_back(file);
                }
            }
            FileStep::Remove { directory, name } => self.remove(directory, name),
            FileStep::Rename { from, to } => self.rename(from, to),
            FileStep::Fsync { file } => self.fsync(file),
            FileStep::Commit => {
                let mut plan = SyncPlan::default();
                self.system.commit(self.now, &mut plan);
                self.release(&plan);
                assert_eq!(self.system.next_commit(), Time::NEVER);
            }
        }
    }

    fn release(&mut self, plan: &SyncPlan) {
        for page in &plan.released {
            assert!(
                self.held.remove(page),
                "{page} is released, but was not held"
            );
        }
        if self.system.holds_metadata() {
            assert_eq!(self.held, BTreeSet::new(), "a commit releases all");
        } else {
            self.held.clear();
        }
    }

    fn make(&mut self, directory: usize, name: u8, kind: ObjectKind) {
        let directory = self.directory(directory);
        let name = format!("name-{name}");
        let caller = self.caller();
        let made = match kind {
            ObjectKind::File => self
                .system
                .create(caller, directory, &name, &mut self.touches),
            ObjectKind::Directory => {
                self.system
                    .make_directory(caller, directory, &name, &mut self.touches)
            }
        };
        let known = self.names.contains_key(&(directory, name.clone()));
        match made {
            Ok(object) => {
                assert!(!known);
                self.names.insert((directory, name), object);
                match kind {
                    ObjectKind::File => drop(self.files.insert(object, BTreeSet::new())),
                    ObjectKind::Directory => drop(self.directories.insert(object)),
                }
            }
            Err(FileError::Exists(_)) => assert!(known),
            Err(FileError::NoSpace { .. } | FileError::NoInode { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }

    fn write(&mut self, file: usize, page: Option<u64>, pages: u64) {
        let Some(file) = self.file(file) else { return };
        let length = self.system.attributes(file).unwrap().bytes.0;
        let offset = page.map_or(length, |page| page * PAGE_BYTES);
        // No whole page, so that the end of a file lies within one.
        let bytes = pages * PAGE_BYTES - 1000;
        let caller = self.caller();
        match self
            .system
            .write(caller, file, Bytes(offset), Bytes(bytes), &mut self.touches)
        {
            Ok(()) => {
                let written = offset / PAGE_BYTES..(offset + bytes).div_ceil(PAGE_BYTES);
                self.files.get_mut(&file).unwrap().extend(written);
                assert_eq!(
                    self.system.attributes(file).unwrap().bytes.0,
                    length.max(offset + bytes)
                );
            }
            Err(FileError::NoSpace { .. }) => {
                assert_eq!(
                    self.system.attributes(file).unwrap().bytes.0,
                    length,
                    "an error changes no length"
                );
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn truncate(&mut self, file: usize, pages: u64) {
        let Some(file) = self.file(file) else { return };
        let caller = self.caller();
        self.system
            .truncate(caller, file, Bytes(pages * PAGE_BYTES), &mut self.touches)
            .unwrap();
        self.files
            .get_mut(&file)
            .unwrap()
            .retain(|&page| page < pages);
    }

    fn write_back(&mut self, file: Object) {
        let end = self.files[&file].last().map_or(0, |&last| last + 1);
        let mut extents = Vec::new();
        let caller = self.caller();
        match self
            .system
            .write_back(caller, file, 0..end, &mut extents, &mut self.touches)
        {
            Ok(()) => assert!(
                extents
                    .iter()
                    .all(|mapped| mapped.place != PagePlace::Delayed)
            ),
            Err(FileError::NoSpace { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }

    fn remove(&mut self, directory: usize, name: u8) {
        let directory = self.directory(directory);
        let name = format!("name-{name}");
        self.remove_name(directory, &name);
    }

    fn remove_name(&mut self, directory: Object, name: &str) {
        let caller = self.caller();
        let known = self.names.get(&(directory, name.to_owned())).copied();
        match self
            .system
            .remove(caller, directory, name, &mut self.touches)
        {
            Ok(object) => {
                assert_eq!(Some(object), known);
                self.names.remove(&(directory, name.to_owned()));
                self.files.remove(&object);
                self.directories.remove(&object);
                assert!(self.system.attributes(object).is_err());
            }
            Err(FileError::NotFound(_)) => assert_eq!(known, None),
            Err(FileError::NotEmpty(_)) => {
                assert!(
                    self.names
                        .keys()
                        .any(|(directory, _)| Some(*directory) == known)
                );
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn rename(&mut self, from: (usize, u8), to: (usize, u8)) {
        let from = (self.directory(from.0), format!("name-{}", from.1));
        let to = (self.directory(to.0), format!("name-{}", to.1));
        let caller = self.caller();
        let moved = self
            .system
            .rename(caller, (from.0, &from.1), (to.0, &to.1), &mut self.touches);
        match moved {
            Ok(()) if from != to => {
                let object = self.names.remove(&from).unwrap();
                if let Some(gone) = self.names.insert(to, object) {
                    self.files.remove(&gone);
                    self.directories.remove(&gone);
                }
            }
            Ok(()) => {}
            Err(FileError::NotFound(_)) => assert!(!self.names.contains_key(&from)),
            Err(
                FileError::NotEmpty(_)
                | FileError::IntoItself(_)
                | FileError::IsADirectory(_)
                | FileError::NotADirectory(_)
                | FileError::NoSpace { .. },
            ) => {}
            Err(error) => panic!("{error}"),
        }
    }

    fn fsync(&mut self, file: usize) {
        let Some(file) = self.file(file) else { return };
        let mut plan = SyncPlan::default();
        self.write_back(file);
        // The pages touched by the write-back count before the fsync releases any.
        self.take_held();
        self.system
            .fsync(self.caller(), file, &mut plan, &mut self.touches)
            .unwrap();
        assert!(plan.data.contains(&file));
        self.release(&plan);
        self.touches.clear();
    }

    /// Updates `held` with the pages touched so far in this step.
    fn take_held(&mut self) {
        for touch in self.touches.list() {
            match touch {
                MetaAccess::Dirty(page) | MetaAccess::Fresh(page) => drop(self.held.insert(*page)),
                MetaAccess::Forget(page) => drop(self.held.remove(page)),
                MetaAccess::Read(_) => {}
            }
        }
    }

    /// Checks the whole state: no page is used twice or lost, extents are ascending and complete,
    /// and all names exist.
    fn check(&self) {
        let usage = self.system.usage();
        let mut used: Vec<Range<u64>> = self.system.metadata();
        for object in self.system.objects() {
            used.extend(self.placed(object));
        }
        used.sort_by_key(|range| range.start);
        for pair in used.windows(2) {
            assert!(
                pair[0].end <= pair[1].start,
                "{:?} and {:?} share pages",
                pair[0],
                pair[1]
            );
        }
        assert!(used.last().is_none_or(|last| last.end <= usage.pages));
        let pages: u64 = used.iter().map(|range| range.end - range.start).sum();
        assert_eq!(
            pages + usage.pages_free + self.system.set_aside(),
            usage.pages,
            "all is accounted for"
        );
        self.check_files(usage);
        for ((directory, name), object) in &self.names {
            let listed = self.system.entries(*directory).unwrap();
            assert!(listed.contains(&(name.clone(), *object)), "{name} is lost");
        }
        let listed: usize = self
            .directories
            .iter()
            .map(|&directory| self.system.entries(directory).unwrap().len())
            .sum();
        assert_eq!(listed, self.names.len());
        assert_eq!(
            self.system.objects().len(),
            self.files.len() + self.directories.len()
        );
    }

    fn check_files(&self, usage: Usage) {
        let mut delayed = 0;
        for (&file, written) in &self.files {
            let mut extents = Vec::new();
            self.system.extents(file, &mut extents).unwrap();
            assert!(
                extents
                    .windows(2)
                    .all(|pair| pair[0].page + pair[0].pages <= pair[1].page)
            );
            let there: BTreeSet<u64> = extents
                .iter()
                .flat_map(|mapped| mapped.page..mapped.page + mapped.pages)
                .collect();
            assert!(written.is_subset(&there), "a written page is a hole");
            let end = self
                .system
                .attributes(file)
                .unwrap()
                .bytes
                .0
                .div_ceil(PAGE_BYTES);
            let hole = there.difference(written).find(|&&page| page < end);
            assert!(
                self.roomy || hole.is_none(),
                "a page that nobody wrote has a place: {hole:?}"
            );
            self.check_tracks(&extents);
            let waiting = extents
                .iter()
                .filter(|mapped| mapped.place == PagePlace::Delayed);
            delayed += waiting.map(|mapped| mapped.pages).sum::<u64>();
        }
        assert_eq!(delayed, usage.pages_delayed);
    }

    /// Checks that no page of a file has sectors of two tracks.
    fn check_tracks(&self, extents: &[PageMapping]) {
        let Some(tracks) = &self.tracks else { return };
        for mapped in extents {
            let PagePlace::Device(start) = mapped.place else {
                continue;
            };
            for page in 0..mapped.pages {
                let sectors = Extent::new(start.0 + page * PAGE_SECTORS, PAGE_SECTORS);
                assert!(!tracks.straddles(sectors), "{mapped:?}");
            }
        }
    }

    /// Removes all files and directories below the root.
    fn clear(&mut self) {
        while !self.names.is_empty() {
            let names: Vec<_> = self.names.keys().cloned().collect();
            // A name may be that of a directory with entries, so several passes are needed.
            for (directory, name) in names.into_iter().rev() {
                if self.directories.contains(&directory) {
                    self.remove_name(directory, &name);
                }
            }
        }
        self.take_held();
        self.touches.clear();
    }

    /// Returns the visible layout as text, for comparisons.
    fn layout(&self) -> String {
        let objects = self.system.objects();
        let placed: Vec<_> = objects.iter().map(|&object| self.placed(object)).collect();
        format!("{objects:?} {placed:?} {:?}", self.system.usage())
    }
}

/// Returns true if one of the ascending runs contains `page`.
fn has(runs: &[Range<u64>], page: u64) -> bool {
    runs.get(runs.partition_point(|run| run.end <= page))
        .is_some_and(|run| run.start <= page)
}

/// Pages of the usual test device: about half a gibibyte, in five groups with a short last group.
const USUAL: u64 = 140_000;

/// Returns the usual size, and the smallest size, which fills quickly: 24 MiB, or the minimum of
/// today's XFS (300 MiB).
fn sizes(value: &Value) -> [u64; 2] {
    [
        USUAL,
        if value["kernel"] == "today" {
            77_000
        } else {
            6_000
        },
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn any_operations_keep_all_space_accounted_for(
        steps in proptest::collection::vec(step(), 1..70), seed in 0u64..1000
    ) {
        for (name, value) in kinds_and_aligned() {
            for pages in sizes(&value) {
                let mut trial = FileSystemTrial::new(name, &value, pages, seed);
                for step in &steps {
                    trial.take(step);
                    trial.check();
                }
            }
        }
    }

    #[test]
    fn when_all_is_removed_all_is_free_again(steps in proptest::collection::vec(step(), 1..150)) {
        for (name, value) in kinds_and_aligned() {
            for pages in sizes(&value) {
                let mut trial = FileSystemTrial::new(name, &value, pages, 1);
                let root = trial.system.root();
                trial.clear();
                let empty = trial.system.usage();
                let of_root = trial.system.attributes(root).unwrap().pages;
                steps.iter().for_each(|step| trial.take(step));
                trial.clear();
                trial.check();
                let usage = trial.system.usage();
                let grown = trial.system.attributes(root).unwrap().pages - of_root;
                // The root directory never shrinks, and the blocks set aside for all small files
                // stay set aside.
                prop_assert_eq!(usage.pages_free + trial.system.set_aside() + grown, empty.pages_free);
                prop_assert_eq!(usage.pages_delayed, 0);
                prop_assert_eq!(usage.inodes_free, empty.inodes_free);
            }
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_layout(steps in proptest::collection::vec(step(), 1..100), seed in 0u64..9) {
        for (name, value) in kinds() {
            let run = || {
                let mut trial = FileSystemTrial::new(name, &value, USUAL, seed);
                steps.iter().for_each(|step| trial.take(step));
                trial.layout()
            };
            prop_assert_eq!(run(), run());
        }
    }
}

#[test]
fn four_tebibytes_are_made_in_no_time_and_hold_a_file() {
    for (name, value) in kinds() {
        let mut trial = FileSystemTrial::new(name, &value, 1 << 30, 1);
        trial.act(&FileStep::Create {
            directory: 0,
            name: 1,
        });
        trial.act(&FileStep::Append {
            file: 0,
            pages: 100_000,
        });
        trial.act(&FileStep::WriteBack { file: 0 });
        let file = trial.file(0).unwrap();
        assert_eq!(
            trial.system.attributes(file).unwrap().pages,
            100_000,
            "{name}"
        );
    }
}

#[test]
fn a_device_that_is_too_small_is_refused() {
    for (name, value) in kinds() {
        for pages in [0, 1, 100, 2000] {
            let error = make(name, &keys(&value), &site(pages, 1)).err().unwrap();
            assert!(error.to_string().contains("too small"), "{error}");
        }
    }
    assert!(make("raw", &Keys::new(), &site(0, 1)).is_err());
}

#[test]
fn a_file_that_its_format_cannot_address_is_refused() {
    for (name, value) in kinds() {
        let mut trial = FileSystemTrial::new(name, &value, USUAL, 1);
        trial.take(&FileStep::Create {
            directory: 0,
            name: 1,
        });
        let file = trial.file(0).unwrap();
        for (offset, length) in [(u64::MAX, 1), (1 << 63, 1), (0, u64::MAX)] {
            let (offset, length) = (Bytes(offset), Bytes(length));
            let written = trial.system.write(
                Caller::default(),
                file,
                offset,
                length,
                &mut MetaAccesses::new(),
            );
            assert!(
                matches!(written, Err(FileError::TooLarge { .. })),
                "{name}: {written:?}"
            );
        }
        trial.check();
    }
}

#[test]
fn what_is_not_there_is_named() {
    for (name, value) in kinds() {
        let mut trial = FileSystemTrial::new(name, &value, USUAL, 1);
        let (caller, nowhere, root) = (Caller::default(), Object(999_999), trial.system.root());
        let touches = &mut MetaAccesses::new();
        assert!(matches!(
            trial.system.look_up(caller, root, "x", touches),
            Err(FileError::NotFound(_))
        ));
        assert!(matches!(
            trial.system.look_up(caller, nowhere, "x", touches),
            Err(FileError::NotFound(_))
        ));
        let file = trial.system.create(caller, root, "x", touches).unwrap();
        let below = trial.system.create(caller, file, "y", touches);
        assert!(
            matches!(below, Err(FileError::NotADirectory(_))),
            "{below:?}"
        );
        let written = trial
            .system
            .write(caller, root, Bytes(0), Bytes(1), touches);
        assert!(
            matches!(written, Err(FileError::IsADirectory(_))),
            "{written:?}"
        );
        // `NAME_MAX` is 255 bytes (`include/uapi/linux/limits.h`).
        for bad in ["", ".", "..", "a/b", &"x".repeat(256)] {
            let made = trial.system.create(caller, root, bad, touches);
            assert!(matches!(made, Err(FileError::BadName(_))), "{made:?}");
        }
    }
}

#[test]
fn raw_lies_where_it_lies_and_has_no_names() {
    let mut raw = make("raw", &Keys::new(), &site(1000, 1)).unwrap();
    let mut out = Vec::new();
    let (caller, touches) = (Caller::default(), &mut MetaAccesses::new());
    raw.read_map(caller, Object::DEVICE, 10..20, &mut out, touches)
        .unwrap();
    let place = PagePlace::Device(fullstroke_units::Lbn(80));
    assert_eq!(
        out,
        [PageMapping {
            page: 10,
            pages: 10,
            place
        }]
    );
    assert!(raw.create(caller, Object::DEVICE, "a", touches).is_err());
    let beyond = raw.write(
        caller,
        Object::DEVICE,
        Bytes(999 * PAGE_BYTES),
        Bytes(PAGE_BYTES + 1),
        touches,
    );
    assert_eq!(
        beyond,
        Err(FileError::TooLarge {
            pages: 1001,
            limit: 1000
        })
    );
    assert_eq!(touches.list(), []);
}

#[test]
fn where_nothing_can_be_kept_off_alignment_is_refused() {
    let value = json!({ "tracks": 1003 });
    for name in ["xfs", "raw"] {
        let site = FileSystemSite {
            tracks: tracks(&value, USUAL),
            ..site(USUAL, 1)
        };
        let error = make(name, &Keys::new(), &site).err().unwrap();
        assert_eq!(error.key, "align", "{error}");
    }
}

/// Returns the tracks touched by the pages of a file, in order.
fn tracks_of(trial: &FileSystemTrial, file: usize) -> Vec<Extent> {
    let mut extents = Vec::new();
    trial
        .system
        .extents(trial.file(file).unwrap(), &mut extents)
        .unwrap();
    let table = trial.tracks.as_ref().unwrap();
    let pages = extents.iter().flat_map(|mapped| {
        let PagePlace::Device(start) = mapped.place else {
            panic!("{mapped:?}")
        };
        (0..mapped.pages).map(move |page| {
            table
                .track_at(start + Sectors(page * PAGE_SECTORS))
                .unwrap()
        })
    });
    let mut tracks: Vec<Extent> = pages.collect();
    tracks.dedup();
    tracks
}

#[test]
fn ext2_gives_whole_tracks_to_files_that_grow_side_by_side() {
    let aligned = json!({ "tracks": 1003 });
    let mut trial = FileSystemTrial::new("ext2", &aligned, USUAL, 1);
    trial.act(&FileStep::Create {
        directory: 0,
        name: 1,
    });
    trial.act(&FileStep::Create {
        directory: 0,
        name: 2,
    });
    for _ in 0..300 {
        trial.act(&FileStep::Append { file: 0, pages: 1 });
        trial.act(&FileStep::Append { file: 1, pages: 1 });
    }
    trial.check();
    let (one, other) = (tracks_of(&trial, 0), tracks_of(&trial, 1));
    // A track has 124 or 125 whole blocks. The file has 300 times 3,096 bytes, so 227 blocks, and
    // one indirect block.
    assert_eq!((one.len(), other.len()), (2, 2), "{one:?} {other:?}");
    assert!(one.iter().all(|track| !other.contains(track)));
}
