//! States of a folder in which a store is opened, and the messages about them.

mod common;

use common::{VolumeSample, folder, path, pattern, sample};
use fullstroke_contract::{Extent, MemberState};
use fullstroke_store::Repair;
use fullstroke_store::bytes::{
    JournalScope, MemberStatus, OpenReport, Opening, RedundancyCheck, Scrub, Store, StoreError,
    StoreLocation, TidyWork,
};
use fullstroke_units::{Lbn, Sectors};
use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::Duration;

fn open(sample: VolumeSample, folder: &Path) -> Result<(Store, OpenReport), StoreError> {
    let location = StoreLocation::Folder(folder.to_owned());
    Store::open((sample.shape)(), &location, "0123", Opening::default())
}

fn open_degraded(sample: VolumeSample, folder: &Path) -> Result<(Store, OpenReport), StoreError> {
    let location = StoreLocation::Folder(folder.to_owned());
    let opening = Opening {
        allow_degraded: true,
        ..Opening::default()
    };
    Store::open((sample.shape)(), &location, "0123", opening)
}

/// Blocks of 512 bytes of an empty drive's file: its label.
const LABEL_BLOCKS: u64 = 8;

/// Makes a closed store full of a pattern.
fn filled(sample: VolumeSample, folder: &Path) -> Vec<u8> {
    let (mut store, report) = open(sample, folder).unwrap();
    assert!(report.created);
    let bytes = pattern(0, store.capacity().0, 1);
    store.write(Lbn(0), &bytes).unwrap();
    store.close().unwrap();
    bytes
}

fn all_of(store: &mut Store) -> Vec<u8> {
    let mut bytes = vec![0; store.capacity().bytes().0 as usize];
    store.read(Lbn(0), &mut bytes).unwrap();
    bytes
}

fn said<T>(result: Result<T, StoreError>) -> String {
    match result {
        Ok(_) => panic!("expected an error"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn another_stacks_folder_is_refused_and_both_digests_are_named() {
    let folder = folder();
    filled(sample("raid5"), folder.path());
    let location = StoreLocation::Folder(folder.path().to_owned());
    let shape = (sample("raid6").shape)();
    let said = said(Store::open(shape, &location, "4567", Opening::default()));
    for part in [
        "0123",
        "4567",
        "raid5 of 5",
        &folder.path().display().to_string(),
    ] {
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn a_folder_with_something_else_in_it_is_refused() {
    let folder = folder();
    fs::write(folder.path().join("holiday.jpg"), "").unwrap();
    let said = said(open(sample("raid5"), folder.path()));
    assert!(
        said.contains("holiday.jpg") && said.contains("fullstroke.store"),
        "{said}"
    );
    assert_eq!(
        fs::read_dir(folder.path()).unwrap().count(),
        1,
        "the array was not created"
    );
}

#[test]
fn a_folder_in_use_is_refused_until_it_is_free() {
    let folder = folder();
    let (store, _) = open(sample("raid5"), folder.path()).unwrap();
    assert!(matches!(
        open(sample("raid5"), folder.path()),
        Err(StoreError::InUse { .. })
    ));
    drop(store);
    open(sample("raid5"), folder.path()).unwrap();
}

#[test]
fn missing_and_short_members_are_named_and_survived_if_that_is_allowed() {
    let folder = folder();
    let sample = sample("raid6");
    let bytes = filled(sample, folder.path());
    fs::remove_file(folder.path().join("member-1.img")).unwrap();
    fs::OpenOptions::new()
        .write(true)
        .open(folder.path().join("member-4.img"))
        .and_then(|file| file.set_len(100))
        .unwrap();
    let said = said(open(sample, folder.path()));
    assert!(
        said.contains("member-1.img") && said.contains("member-4.img` has 100 bytes"),
        "{said}"
    );
    let (mut store, report) = open_degraded(sample, folder.path()).unwrap();
    assert_eq!(report.newly_failed, ["1", "4"]);
    assert!(all_of(&mut store) == bytes);
    store.close().unwrap();
    // The files made in their places do not count as the members.
    let (mut store, report) = open(sample, folder.path()).unwrap();
    assert_eq!(report.newly_failed, [""; 0]);
    assert_eq!(
        store
            .status()
            .iter()
            .filter(|member| member.has_failed())
            .count(),
        2
    );
    assert!(all_of(&mut store) == bytes);
}

#[test]
fn more_missing_members_than_the_layout_survives_are_refused_always() {
    for (name, missing) in [
        ("raid5", &["member-0.img", "member-1.img"][..]),
        ("raid0", &["member-2.img"]),
    ] {
        let folder = folder();
        filled(sample(name), folder.path());
        for file in missing {
            fs::remove_file(folder.path().join(file)).unwrap();
        }
        assert!(matches!(
            open(sample(name), folder.path()),
            Err(StoreError::MembersMissing { .. })
        ));
        let said = said(open_degraded(sample(name), folder.path()));
        assert!(said.contains("does not survive"), "{said}");
        for file in missing {
            assert!(
                !folder.path().join(file).exists(),
                "nothing is made in their place"
            );
        }
    }
}

#[test]
fn a_drive_without_a_volume_has_no_redundancy_to_open_without_its_file() {
    let folder = folder();
    filled(sample("drive"), folder.path());
    fs::remove_file(folder.path().join("member.img")).unwrap();
    assert!(matches!(
        open_degraded(sample("drive"), folder.path()),
        Err(StoreError::TooManyMissing { .. })
    ));
}

/// Returns the path of the store's own file. The constants below are the places of its records for
/// a volume of one region.
fn own(folder: &Path) -> std::path::PathBuf {
    folder.join("fullstroke.store")
}
const COPY: u64 = 4096;
const MARKS: u64 = COPY + (1 << 20);
const MARKS_BYTES: u64 = 8192;
const JOURNAL: u64 = MARKS + MARKS_BYTES;
const JOURNAL_MARKERS_BYTES: u64 = 8192;

/// Overwrites a part of a file.
fn damage(path: &Path, at: u64, bytes: u64, with: u8) {
    let file = fs::OpenOptions::new().write(true).open(path).unwrap();
    file.write_all_at(&vec![with; bytes as usize], at).unwrap();
}

#[test]
fn a_damaged_description_is_an_error_that_names_it() {
    let folder = folder();
    filled(sample("raid1"), folder.path());
    let length = fs::metadata(own(folder.path())).unwrap().len();
    for with in [0, 7] {
        damage(&own(folder.path()), 0, length, with);
        let said = said(open(sample("raid1"), folder.path()));
        assert!(said.contains("fullstroke.store"), "{said}");
    }
    let file = fs::OpenOptions::new().write(true).open(own(folder.path()));
    file.unwrap().set_len(length / 2).unwrap();
    let cut = said(open(sample("raid1"), folder.path()));
    assert!(
        cut.contains("fullstroke.store") && cut.contains("bytes instead of"),
        "{cut}"
    );
    fs::remove_file(own(folder.path())).unwrap();
    let gone = said(open(sample("raid1"), folder.path()));
    assert!(gone.contains("fullstroke.store"), "{gone}");
}

#[test]
fn a_failure_is_remembered_and_so_is_how_far_a_member_is_filled() {
    let folder = folder();
    let sample = sample("raid5");
    let bytes = filled(sample, folder.path());
    let (mut store, _) = open(sample, folder.path()).unwrap();
    store.fail_member(&[2]).unwrap();
    drop(store);
    let (mut store, _) = open(sample, folder.path()).unwrap();
    assert_eq!(store.status()[2].state, MemberState::Failed);
    store.restore_member(&[2]).unwrap();
    let done = store.rebuild_member(&[2], Sectors(30)).unwrap();
    assert!((30..80).contains(&done.0));
    store.sync().unwrap();
    drop(store);
    let (mut store, _) = open(sample, folder.path()).unwrap();
    assert_eq!(store.status()[2].state, MemberState::Rebuilding { done });
    assert_eq!(
        store.rebuild_member(&[2], Sectors(u64::MAX)).unwrap(),
        Sectors(80)
    );
    store.close().unwrap();
    let (mut store, report) = open(sample, folder.path()).unwrap();
    assert!(report.clean);
    assert_eq!(store.status()[2].state, MemberState::Alive);
    assert!(all_of(&mut store) == bytes);
}

#[test]
fn members_that_missed_nothing_come_back_with_their_bytes() {
    let folder = folder();
    let sample = sample("raid5");
    let bytes = filled(sample, folder.path());
    let (mut store, _) = open(sample, folder.path()).unwrap();
    // Two cables fell out: the volume has failed, and has all its data again.
    store.fail_member(&[0]).unwrap();
    store.fail_member(&[2]).unwrap();
    assert!(store.has_failed());
    store.re_add_member(&[2]).unwrap();
    assert!(!store.has_failed() && all_of(&mut store) == bytes);
    store.re_add_member(&[0]).unwrap();
    assert!(store.status().iter().all(|member| member.is_alive()));
    assert!(all_of(&mut store) == bytes);
    assert_eq!(store.scrub().unwrap().mismatched_sectors, 0);
    store.close().unwrap();
    let (mut store, report) = open(sample, folder.path()).unwrap();
    assert!(report.clean && all_of(&mut store) == bytes);
    assert_eq!(store.scrub().unwrap().mismatched_sectors, 0);
}

#[test]
fn a_member_that_may_have_missed_something_is_not_re_added() {
    let folder = folder();
    let sample = sample("raid5");
    filled(sample, folder.path());
    let (mut store, _) = open(sample, folder.path()).unwrap();
    assert!(said(store.re_add_member(&[1])).contains("has not failed"));
    // Another sector is written meanwhile; its place does not matter.
    store.fail_member(&[1]).unwrap();
    store.write(Lbn(3), &pattern(3, 1, 9)).unwrap();
    assert!(said(store.re_add_member(&[1])).contains("restore it as an empty member"));
    // The member is empty meanwhile, and filled in part.
    store.restore_member(&[1]).unwrap();
    store.rebuild_member(&[1], Sectors(30)).unwrap();
    store.fail_member(&[1]).unwrap();
    assert!(said(store.re_add_member(&[1])).contains("restore it as an empty member"));
    store.restore_member(&[1]).unwrap();
    store.rebuild_member(&[1], Sectors(u64::MAX)).unwrap();
    // The file may have been changed while no server had it.
    store.fail_member(&[1]).unwrap();
    store.close().unwrap();
    let (mut store, _) = open(sample, folder.path()).unwrap();
    assert!(said(store.re_add_member(&[1])).contains("restore it as an empty member"));
    store.close().unwrap();
}

#[test]
fn what_a_degraded_volume_was_writing_is_made_again_once() {
    let folder = folder();
    let (mut store, _) = open(sample("raid6"), folder.path()).unwrap();
    store.fail_member(&[1]).unwrap();
    store.write(Lbn(5), &pattern(5, 20, 1)).unwrap();
    drop(store);
    let (store, report) = open(sample("raid6"), folder.path()).unwrap();
    assert!(report.replayed_changes > 0 && !report.clean);
    drop(store);
    let (mut store, report) = open(sample("raid6"), folder.path()).unwrap();
    assert_eq!(report.replayed_changes, 0);
    let mut bytes = vec![0; 20 * 512];
    store.read(Lbn(5), &mut bytes).unwrap();
    assert!(bytes == pattern(5, 20, 1));
}

#[test]
fn a_failed_members_file_is_emptied_when_it_is_restored() {
    use std::os::unix::fs::MetadataExt;
    let folder = folder();
    filled(sample("raid1"), folder.path());
    let blocks = || {
        fs::metadata(folder.path().join("member-1.img"))
            .unwrap()
            .blocks()
    };
    let (mut store, _) = open(sample("raid1"), folder.path()).unwrap();
    store.fail_member(&[1]).unwrap();
    assert!(blocks() > 0);
    store.restore_member(&[1]).unwrap();
    assert!(blocks() <= LABEL_BLOCKS);
}

#[test]
fn a_rebuild_takes_no_room_for_what_holds_nothing() {
    use std::os::unix::fs::MetadataExt;
    for (layout, count) in [("raid1", 2), ("raid5", 3), ("raid6", 5), ("raid10", 4)] {
        let large = || fullstroke_volume::Shape::Drive(Sectors((64 << 20) / 512));
        let shape = || {
            common::volume(
                layout,
                serde_json::json!({}),
                (0..count).map(|_| large()).collect(),
            )
        };
        let folder = folder();
        let location = StoreLocation::Folder(folder.path().to_owned());
        let (mut store, _) = Store::open(shape(), &location, "0123", Opening::default()).unwrap();
        let bytes = pattern(0, 8, 1);
        let places: Vec<Lbn> = (0..store.capacity().0 / (5 << 11))
            .map(|place| Lbn(place * (5 << 11)))
            .collect();
        for &place in &places {
            store.write(place, &bytes).unwrap();
        }
        let taken = |member: usize| {
            fs::metadata(folder.path().join(format!("member-{member}.img")))
                .unwrap()
                .blocks()
        };
        let before = taken(1);
        store.fail_member(&[1]).unwrap();
        store.restore_member(&[1]).unwrap();
        store.rebuild_member(&[1], Sectors(u64::MAX)).unwrap();
        assert!(
            taken(1) <= before + LABEL_BLOCKS,
            "{layout}: {} blocks instead of {before}",
            taken(1)
        );
        store.fail_member(&[0]).unwrap();
        for &place in &places {
            let mut found = vec![0; bytes.len()];
            store.read(place, &mut found).unwrap();
            assert!(found == bytes, "{layout} {place}");
        }
    }
}

#[test]
fn what_a_store_keeps_is_its_owners_alone() {
    use std::os::unix::fs::MetadataExt;
    let base = folder();
    let path = base.path().join("a").join("store");
    filled(sample("raid5"), &path);
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
    for entry in fs::read_dir(&path).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(
            entry.metadata().unwrap().mode() & 0o777,
            0o600,
            "{:?}",
            entry.file_name()
        );
    }
}

/// Changes one bit of the file.
fn flip(path: &Path, at: u64) {
    let file = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 0x10], at).unwrap();
}

#[test]
fn one_flipped_bit_of_the_description_is_made_good_and_two_are_refused() {
    let (before, sample) = (folder(), sample("raid5"));
    filled(sample, before.path());
    let (mut store, _) = open(sample, before.path()).unwrap();
    store.fail_member(&[2]).unwrap();
    store.restore_member(&[2]).unwrap();
    let states = |store: &Store| -> Vec<MemberState> {
        store.status().iter().map(|member| member.state).collect()
    };
    let expected = states(&store);
    drop(store);
    let length = fs::metadata(own(before.path())).unwrap().len();
    let other = length - (1 << 20);
    for at in (0..400).step_by(7).filter(|at| !(8..12).contains(at)) {
        let folder = folder();
        for entry in fs::read_dir(before.path()).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
        }
        let path = own(folder.path());
        for copy in [COPY, other] {
            flip(&path, copy + at);
            let (store, report) = open(sample, folder.path()).unwrap();
            assert!(
                !report.clean && states(&store) == expected,
                "{at}: {report:?}"
            );
            drop(store);
            assert!(
                open(sample, folder.path()).is_ok(),
                "both copies are whole again"
            );
        }
        flip(&path, COPY + at);
        flip(&path, other + at);
        let said = said(open(sample, folder.path()));
        assert!(said.contains("fullstroke.store"), "{at}: {said}");
    }
}

#[test]
fn files_that_were_swapped_or_put_back_from_elsewhere_are_refused_with_what_they_are() {
    let (folder, other) = (folder(), folder());
    let sample = sample("raid5");
    let bytes = filled(sample, folder.path());
    filled(sample, other.path());
    let file = |member: usize| folder.path().join(format!("member-{member}.img"));
    let kept: Vec<Vec<u8>> = (0..5)
        .map(|member| fs::read(file(member)).unwrap())
        .collect();
    let refused = |parts: &[&str]| {
        let said = said(open(sample, folder.path()));
        assert!(
            parts.iter().all(|part| said.contains(part)),
            "{parts:?}: {said}"
        );
    };
    fs::write(file(1), &kept[2]).unwrap();
    fs::write(file(2), &kept[1]).unwrap();
    refused(&["member-1.img", "is member `2`", "expected member `1`"]);
    fs::write(file(1), &kept[1]).unwrap();
    fs::write(file(2), &kept[2]).unwrap();
    fs::write(
        file(3),
        fs::read(other.path().join("member-3.img")).unwrap(),
    )
    .unwrap();
    refused(&["member-3.img", "is of another store"]);
    fs::write(file(3), &kept[3]).unwrap();
    let (store, _) = open(sample, folder.path()).unwrap();
    store.close().unwrap();
    let (store, _) = open(sample, folder.path()).unwrap();
    store.close().unwrap();
    fs::write(file(4), &kept[4]).unwrap();
    refused(&["member-4.img", "is out of date"]);
    let (mut store, report) = open_degraded(sample, folder.path()).unwrap();
    assert_eq!(report.newly_failed, ["4"]);
    assert!(all_of(&mut store) == bytes);
}

#[test]
fn marks_that_are_not_whole_cost_a_comparison_and_no_data() {
    for zeroed in [false, true] {
        let folder = folder();
        let sample = sample("raid5");
        let (mut store, _) = open(sample, folder.path()).unwrap();
        store.write(Lbn(5), &pattern(5, 9, 1)).unwrap();
        drop(store);
        damage(
            &own(folder.path()),
            MARKS,
            MARKS_BYTES,
            if zeroed { 0 } else { 7 },
        );
        let (mut store, report) = open(sample, folder.path()).unwrap();
        assert!(report.marks_lost && report.regions == 1, "{report:?}");
        assert_eq!(store.scrub().unwrap().mismatched_sectors, 0);
        store.close().unwrap();
        assert!(!open(sample, folder.path()).unwrap().1.marks_lost);
    }
}

#[test]
fn a_journal_that_is_gone_is_refused_if_it_may_have_been_needed() {
    for zeroed in [false, true] {
        let folder = folder();
        let sample = sample("raid5");
        let (mut store, _) = open(sample, folder.path()).unwrap();
        store.fail_member(&[2]).unwrap();
        store.write(Lbn(5), &pattern(5, 9, 1)).unwrap();
        drop(store);
        let path = own(folder.path());
        let whole = fs::read(&path).unwrap();
        let with = if zeroed { 0 } else { 7 };
        damage(&path, JOURNAL, JOURNAL_MARKERS_BYTES, with);
        let said = said(open(sample, folder.path()));
        assert!(
            said.contains("journal") && said.contains("restore the file"),
            "{said}"
        );
        fs::write(&path, whole).unwrap();
        let (store, _) = open(sample, folder.path()).unwrap();
        store.close().unwrap();
        damage(&path, JOURNAL, JOURNAL_MARKERS_BYTES, with);
        open(sample, folder.path()).unwrap();
    }
}

#[test]
fn a_member_lost_with_the_process_is_at_risk_only_without_a_journal_of_all_changes() {
    let sample = sample("raid5");
    let open = |folder: &Path, journal, allow_degraded, read_only| {
        let location = StoreLocation::Folder(folder.to_owned());
        let opening = Opening {
            allow_degraded,
            read_only,
            journal,
            compare_behind: true,
            ..Opening::default()
        };
        Store::open((sample.shape)(), &location, "0123", opening).unwrap()
    };
    use JournalScope::{All, Degraded};
    for (journals, at_risk) in [
        (vec![Degraded], 1),
        (vec![All], 0),
        (vec![All, All], 0),
        // The second server compares first what the first one may have torn.
        (vec![Degraded, All], 0),
        (vec![All, Degraded], 1),
    ] {
        let folder = folder();
        let mut bytes = filled(sample, folder.path());
        for (version, &journal) in (2..).zip(&journals) {
            let (mut store, report) = open(folder.path(), journal, false, false);
            let compared = journals[..] == [Degraded, All] && version == 3;
            assert_eq!(report.mended.compared_sectors > 0, compared, "{journals:?}");
            assert!(!compared || store.left_to_compare().0 == 0);
            store.write(Lbn(5), &pattern(5, 9, version)).unwrap();
            bytes[5 * 512..14 * 512].copy_from_slice(&pattern(5, 9, version));
        }
        fs::remove_file(folder.path().join("member-1.img")).unwrap();
        for read_only in [true, false] {
            let last = *journals.last().unwrap();
            let (mut store, report) = open(folder.path(), last, true, read_only);
            assert_eq!(report.newly_failed, ["1"]);
            let found = report.regions_at_risk;
            assert_eq!(found, at_risk, "{journals:?} {read_only}");
            assert!(all_of(&mut store) == bytes, "{journals:?} {read_only}");
        }
    }
}

#[test]
fn an_unclean_store_can_serve_at_once_and_is_compared_behind() {
    for name in ["raid1", "raid5", "raid6", "raid10", "raid50"] {
        let (folder, sample) = (folder(), sample(name));
        let mut bytes = filled(sample, folder.path());
        let (mut store, _) = open(sample, folder.path()).unwrap();
        store.write(Lbn(5), &pattern(5, 9, 2)).unwrap();
        bytes[5 * 512..14 * 512].copy_from_slice(&pattern(5, 9, 2));
        drop(store);
        // State after a kill in the middle of a write.
        let path = folder.path().join(if name == "raid50" {
            "member-0.1.img"
        } else {
            "member-1.img"
        });
        let mut member = fs::read(&path).unwrap();
        member[..8 * 512].fill(0xAB);
        fs::write(&path, member).unwrap();
        let opening = Opening {
            compare_behind: true,
            ..Opening::default()
        };
        let location = StoreLocation::Folder(folder.path().to_owned());
        let (mut store, report) =
            Store::open((sample.shape)(), &location, "0123", opening).unwrap();
        assert_eq!(
            (report.regions, report.mended.compared_sectors),
            (1, 0),
            "{name}"
        );
        assert!(store.left_to_compare().0 > 0);
        let first = all_of(&mut store);
        assert!(
            all_of(&mut store) == first,
            "{name}: the same to every read"
        );
        while store.tidy(Duration::ZERO).unwrap() == TidyWork::Again {}
        assert_eq!(store.left_to_compare().0, 0);
        assert_eq!(store.scrub().unwrap().mismatched_sectors, 0, "{name}");
        store.fail_member(&path_of(name)).unwrap();
        assert!(
            all_of(&mut store) == first,
            "{name}: redundancy follows from what was read"
        );
    }
}

/// A mirror of more than one region.
fn two_regions() -> fullstroke_volume::Shape {
    let drive = || fullstroke_volume::Shape::Drive(Sectors((96 << 20) / 512));
    common::volume("raid1", serde_json::json!({}), vec![drive(), drive()])
}

/// A host's disk whose flushes wait for the test.
struct HeldUp(std::sync::Mutex<std::sync::mpsc::Receiver<()>>);

impl fullstroke_store::Device for HeldUp {
    fn name(&self) -> String {
        "held up".to_owned()
    }
    fn bytes(&self) -> u64 {
        0
    }
    fn read(&self, _: u64, _: &mut [u8]) -> std::io::Result<()> {
        Err(std::io::ErrorKind::Unsupported.into())
    }
    fn write(&self, _: u64, _: &[u8]) -> std::io::Result<()> {
        Err(std::io::ErrorKind::Unsupported.into())
    }
    fn flush(&self) -> std::io::Result<()> {
        self.0.lock().unwrap().recv().map_err(std::io::Error::other)
    }
}

#[test]
fn others_are_served_while_the_mark_of_a_region_is_made_durable_elsewhere() {
    let (folder, shape) = (folder(), two_regions);
    let location = StoreLocation::Folder(folder.path().to_owned());
    let (mut store, _) = Store::open(shape(), &location, "0123", Opening::default()).unwrap();
    let (near, far) = (Extent::new(0, 8), Extent::new(80 << 11, 8));
    store.write(near.start, &pattern(0, 8, 1)).unwrap();
    assert!(store.announce(near).unwrap() && store.mark_job().is_none());
    assert!(!store.announce(far).unwrap(), "its mark is not durable");
    let (release, held_up) = std::sync::mpsc::channel();
    let job = store
        .mark_job()
        .unwrap()
        .over(std::sync::Arc::new(HeldUp(held_up.into())));
    let elsewhere = std::thread::spawn(|| job.run());
    let mut bytes = [0; 8 * 512];
    store.read(near.start, &mut bytes).unwrap();
    store.write(near.start, &bytes).unwrap();
    store.read(far.start, &mut bytes).unwrap();
    assert!(store.announce(near).unwrap() && !store.announce(far).unwrap());
    assert!(!elsewhere.is_finished());
    release.send(()).unwrap();
    store.note_marked(elsewhere.join().unwrap()).unwrap();
    assert!(store.announce(far).unwrap());
    store.write(far.start, &pattern(far.start.0, 8, 2)).unwrap();
    drop(store);
    let (_, report) = Store::open(shape(), &location, "0123", Opening::default()).unwrap();
    assert_eq!((report.clean, report.regions), (false, 2));
}

#[test]
fn marks_that_cannot_be_made_durable_stop_the_store() {
    let folder = folder();
    let location = StoreLocation::Folder(folder.path().to_owned());
    let (mut store, _) = Store::open(two_regions(), &location, "0123", Opening::default()).unwrap();
    assert!(!store.announce(Extent::new(0, 8)).unwrap());
    let (release, held_up) = std::sync::mpsc::channel();
    drop(release);
    let marked = store
        .mark_job()
        .unwrap()
        .over(std::sync::Arc::new(HeldUp(held_up.into())))
        .run();
    assert!(matches!(
        store.note_marked(marked),
        Err(StoreError::Stopped { .. })
    ));
    assert!(matches!(
        store.write(Lbn(0), &[1; 512]),
        Err(StoreError::Stopped { .. })
    ));
}

/// Returns the names, bytes and times of all files.
fn snapshot(folder: &Path) -> Vec<(String, Vec<u8>, std::time::SystemTime)> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let mut files: Vec<_> = entries
        .map(|entry| {
            let modified = entry.metadata().unwrap().modified().unwrap();
            (
                entry.file_name().to_str().unwrap().to_owned(),
                fs::read(entry.path()).unwrap(),
                modified,
            )
        })
        .collect();
    files.sort();
    files
}

fn open_read_only(sample: VolumeSample, folder: &Path) -> Result<(Store, OpenReport), StoreError> {
    let opening = Opening {
        read_only: true,
        ..Opening::default()
    };
    Store::open(
        (sample.shape)(),
        &StoreLocation::Folder(folder.to_owned()),
        "0123",
        opening,
    )
}

#[test]
fn a_store_that_is_opened_read_only_is_read_and_nothing_of_its_folder_changes() {
    for name in ["raid1", "raid5", "raid6", "raid10", "raid50"] {
        let (folder, sample) = (folder(), sample(name));
        let bytes = filled(sample, folder.path());
        let before = snapshot(folder.path());
        let (mut store, report) = open_read_only(sample, folder.path()).unwrap();
        assert!(report.clean && store.is_read_only(), "{name}");
        assert!(all_of(&mut store) == bytes, "{name}");
        for refused in [
            store.write(Lbn(0), &[1; 512]),
            store.discard(Lbn(0), Sectors(8)),
        ] {
            assert!(said(refused).contains("read-only"), "{name}");
        }
        assert!(
            said(store.restore_member(&path_of(name))).contains("read-only"),
            "{name}"
        );
        store.sync().unwrap();
        assert!(
            open_read_only(sample, folder.path()).is_ok(),
            "{name}: others may read"
        );
        assert!(
            matches!(open(sample, folder.path()), Err(StoreError::InUse { .. })),
            "{name}"
        );
        store.close().unwrap();
        assert!(snapshot(folder.path()) == before, "{name}");
    }
}

#[test]
fn an_unclean_store_that_is_opened_read_only_is_mended_in_memory() {
    for name in ["raid1", "raid5", "raid6", "raid10", "raid50"] {
        let (folder, sample) = (folder(), sample(name));
        filled(sample, folder.path());
        let (mut store, _) = open(sample, folder.path()).unwrap();
        store.write(Lbn(5), &pattern(5, 9, 2)).unwrap();
        drop(store);
        let path = folder.path().join(if name == "raid50" {
            "member-0.1.img"
        } else {
            "member-1.img"
        });
        let mut member = fs::read(&path).unwrap();
        member[..8 * 512].fill(0xAB);
        fs::write(&path, member).unwrap();
        let before = snapshot(folder.path());
        let (mut store, report) = open_read_only(sample, folder.path()).unwrap();
        assert_eq!((report.clean, report.regions), (false, 1), "{name}");
        let first = all_of(&mut store);
        assert!(
            all_of(&mut store) == first,
            "{name}: the same to every read"
        );
        while store.tidy(Duration::ZERO).unwrap() == TidyWork::Again {}
        assert_eq!(store.scrub().unwrap().mismatched_sectors, 0, "{name}");
        assert!(all_of(&mut store) == first, "{name}: mended and the same");
        store.close().unwrap();
        assert!(snapshot(folder.path()) == before, "{name}");
    }
}

#[test]
fn what_the_journal_holds_is_read_from_it_where_nothing_may_be_changed() {
    for name in ["raid5", "raid6", "raid50"] {
        let (folder, sample) = (folder(), sample(name));
        let mut bytes = filled(sample, folder.path());
        let (mut store, _) = open(sample, folder.path()).unwrap();
        store.fail_member(&path_of(name)).unwrap();
        store.write(Lbn(5), &pattern(5, 9, 2)).unwrap();
        bytes[5 * 512..14 * 512].copy_from_slice(&pattern(5, 9, 2));
        drop(store);
        // State as if the kill had come before the first of the journal's changes.
        let written = pattern(5, 9, 2);
        let mut unmade = 0;
        for entry in fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
        {
            if entry.extension().is_none_or(|extension| extension != "img") {
                continue;
            }
            let mut member = fs::read(&entry).unwrap();
            for sector in member.chunks_mut(512) {
                if written.chunks(512).any(|new| new == sector) {
                    sector.fill(0x77);
                    unmade += 1;
                }
            }
            fs::write(&entry, member).unwrap();
        }
        assert!(unmade > 0, "{name}: something was written");
        let before = snapshot(folder.path());
        let (mut store, report) = open_read_only(sample, folder.path()).unwrap();
        assert!(!report.clean && report.replayed_changes > 0, "{name}");
        assert!(all_of(&mut store) == bytes, "{name}");
        store.close().unwrap();
        assert!(snapshot(folder.path()) == before, "{name}");
    }
}

#[test]
fn no_store_is_made_read_only() {
    let folder = folder();
    assert!(
        said(open_read_only(sample("raid5"), folder.path())).contains("holds no complete store")
    );
    assert_eq!(snapshot(folder.path()).len(), 0);
}

fn path_of(name: &str) -> Vec<usize> {
    path(if name == "raid50" { "0.1" } else { "1" })
}

#[test]
fn orders_that_make_no_sense_are_refused_with_the_reason() {
    let (mut store, _) = Store::open(
        (sample("raid50").shape)(),
        &StoreLocation::Memory,
        "0123",
        Opening::default(),
    )
    .unwrap();
    for (path, reason) in [
        (&[][..], "no member"),
        (&[2], "no member"),
        (&[0, 3], "no member"),
        (&[0, 0, 0], "no member"),
    ] {
        assert!(said(store.fail_member(path)).contains(reason));
        assert!(said(store.restore_member(path)).contains(reason));
        assert!(said(store.rebuild_member(path, Sectors(1))).contains(reason));
    }
    assert!(said(store.restore_member(&[0, 1])).contains("has not failed"));
    store.fail_member(&[0, 1]).unwrap();
    assert!(said(store.fail_member(&[0, 1])).contains("failed already"));
    assert!(said(store.rebuild_member(&[0, 1], Sectors(1))).contains("restore it first"));
    store.fail_member(&[0, 2]).unwrap();
    assert!(said(store.restore_member(&[0])).contains("restore its members"));
}

#[test]
fn a_volume_fails_with_too_many_of_its_members_and_is_replaced_with_them() {
    let (mut store, _) = Store::open(
        (sample("raid0 in raid1").shape)(),
        &StoreLocation::Memory,
        "0123",
        Opening::default(),
    )
    .unwrap();
    let bytes = pattern(0, store.capacity().0, 1);
    store.write(Lbn(0), &bytes).unwrap();
    let states = |store: &Store| {
        store
            .status()
            .iter()
            .map(|member| member.state)
            .collect::<Vec<_>>()
    };
    store.fail_member(&[0, 1]).unwrap();
    let (alive, failed, empty) = (
        MemberState::Alive,
        MemberState::Failed,
        MemberState::Rebuilding {
            done: Sectors::ZERO,
        },
    );
    assert_eq!(states(&store), [failed, alive, failed, alive, alive, alive]);
    store.restore_member(&[0, 1]).unwrap();
    store.rebuild_member(&[0, 1], Sectors(u64::MAX)).unwrap();
    assert_eq!(states(&store), [empty, alive, alive, alive, alive, alive]);
    store.rebuild_member(&[0], Sectors(u64::MAX)).unwrap();
    store.fail_member(&[1]).unwrap();
    assert!(all_of(&mut store) == bytes);
    store.fail_member(&[0, 0]).unwrap();
    assert!(matches!(
        store.read(Lbn(0), &mut [0; 512]),
        Err(StoreError::Lost { .. })
    ));
}

#[test]
fn a_replaced_volume_is_emptied_and_filled_with_sound_parity_of_its_own() {
    use std::os::unix::fs::MetadataExt;
    let (sample, folder) = (sample("raid5 in raid5"), folder());
    let (mut store, _) = open(sample, folder.path()).unwrap();
    let bytes = pattern(0, store.capacity().0, 1);
    store.write(Lbn(0), &bytes).unwrap();
    store.fail_member(&[0, 0]).unwrap();
    store.fail_member(&[0, 1]).unwrap();
    for member in [0, 1] {
        store.restore_member(&[0, member]).unwrap();
    }
    for member in [0, 1] {
        store
            .rebuild_member(&[0, member], Sectors(u64::MAX))
            .unwrap();
    }
    assert!(
        fs::metadata(folder.path().join("member-0.2.img"))
            .unwrap()
            .blocks()
            <= LABEL_BLOCKS
    );
    store.rebuild_member(&[0], Sectors(u64::MAX)).unwrap();
    assert!(store.status().iter().all(|member| member.is_alive()));
    assert_eq!(store.scrub().unwrap().mismatched_sectors, 0);
    store.fail_member(&[1]).unwrap();
    store.fail_member(&[0, 2]).unwrap();
    assert!(all_of(&mut store) == bytes);
}

/// Returns the number of sectors equal to `bytes`, and the number of lost ones. Others are an
/// error.
fn right_and_lost(store: &mut Store, bytes: &[u8]) -> (usize, usize) {
    let (mut right, mut lost) = (0, 0);
    for (lbn, expected) in bytes.chunks(512).enumerate() {
        let mut found = [0xEE; 512];
        match store.read(Lbn(lbn as u64), &mut found) {
            Ok(()) => {
                assert!(found == expected, "LBN {lbn} is returned, and wrong");
                right += 1;
            }
            Err(StoreError::Lost { .. }) => lost += 1,
            Err(error) => panic!("{error}"),
        }
    }
    (right, lost)
}

/// Volumes, the first drives to fail, and one drive needed then.
const TOO_MANY: &[(&str, &[&str], &str)] = &[
    ("raid1", &["0", "1"], "2"),
    ("raid10", &["1"], "0"),
    ("raid5", &["1"], "3"),
    ("raid6", &["1", "2"], "3"),
    ("raid50", &["0.1"], "0.2"),
    ("raid0 in raid1", &["0.0"], "1.1"),
    ("raid1 in raid5", &["0.0", "0.1", "1.0"], "1.1"),
];

/// Restores the drive, and begins to fill the outermost member emptied as a consequence.
fn begin_to_fill(store: &mut Store, drive: &str) -> Vec<usize> {
    store.restore_member(&path(drive)).unwrap();
    loop {
        let filling = store
            .status()
            .into_iter()
            .find(|member| member.filled().is_some())
            .unwrap();
        let filling = path(&filling.member);
        store.rebuild_member(&filling, Sectors(20)).unwrap();
        if store.member_state(&filling).unwrap() != MemberState::Alive {
            return filling;
        }
    }
}

#[test]
fn a_rebuild_whose_last_source_fails_rests_and_nothing_reads_as_zeros() {
    for &(name, first, needed) in TOO_MANY {
        let (folder, sample) = (folder(), sample(name));
        let bytes = filled(sample, folder.path());
        let (mut store, _) = open(sample, folder.path()).unwrap();
        first
            .iter()
            .for_each(|drive| store.fail_member(&path(drive)).unwrap());
        let filling = begin_to_fill(&mut store, first[0]);
        store.fail_member(&path(needed)).unwrap();
        assert!(store.has_failed(), "{name}");
        let state = store.member_state(&filling).unwrap();
        assert!(
            matches!(state, MemberState::Rebuilding { done } if done.0 >= 20),
            "{name}: {state:?}"
        );
        let refused = store.rebuild_member(&filling, Sectors(u64::MAX));
        assert!(
            matches!(refused, Err(StoreError::Failed { .. })),
            "{name}: {refused:?}"
        );
        let before = right_and_lost(&mut store, &bytes);
        assert!(before.1 > 0, "{name}");
        drop(store);
        let (mut store, _) = open(sample, folder.path()).unwrap();
        assert!(
            store.has_failed()
                && store
                    .status()
                    .iter()
                    .any(|member| member.filled().is_some())
        );
        assert_eq!(right_and_lost(&mut store, &bytes), before, "{name}");
    }
}

#[test]
fn a_failed_volume_takes_no_changes_and_no_empty_member_until_its_data_is_given_up() {
    for &(name, first, needed) in TOO_MANY {
        let (folder, sample) = (folder(), sample(name));
        let bytes = filled(sample, folder.path());
        let (mut store, _) = open(sample, folder.path()).unwrap();
        assert!(said(store.accept_data_loss()).contains("the member has not failed"));
        first
            .iter()
            .for_each(|drive| store.fail_member(&path(drive)).unwrap());
        store.fail_member(&path(needed)).unwrap();
        let before = right_and_lost(&mut store, &bytes);
        for drive in first.iter().chain([&needed]) {
            let said = said(store.restore_member(&path(drive)));
            let inner = name == "raid1 in raid5" || name == "raid0 in raid1";
            assert!(
                inner || said.contains("the volume has failed") && said.contains(drive),
                "{name}: {said}"
            );
        }
        assert!(
            matches!(store.write(Lbn(0), &[1; 512]), Err(StoreError::Lost { .. })),
            "{name}"
        );
        assert_eq!(right_and_lost(&mut store, &bytes), before, "{name}");
        drop(store);
        let (mut store, _) = open(sample, folder.path()).unwrap();
        assert_eq!(right_and_lost(&mut store, &bytes), before, "{name}");
    }
}

/// Restores and fills members until all are alive.
fn fill_all(store: &mut Store) {
    loop {
        let paths = |store: &Store, wanted: fn(&MemberStatus) -> bool| {
            let members = store.status().into_iter().filter(wanted);
            members
                .map(|member| path(&member.member))
                .collect::<Vec<_>>()
        };
        for member in paths(store, MemberStatus::has_failed) {
            // A volume is restored through its members.
            let _ = store.restore_member(&member);
        }
        let rebuilding = paths(store, |member| member.filled().is_some());
        for member in &rebuilding {
            store.rebuild_member(member, Sectors(u64::MAX)).unwrap();
        }
        if rebuilding.is_empty() {
            return assert!(store.status().iter().all(|member| member.is_alive()));
        }
    }
}

#[test]
fn data_that_was_given_up_stays_lost_until_it_is_written() {
    for &(name, first, needed) in TOO_MANY {
        let (folder, sample) = (folder(), sample(name));
        let mut bytes = filled(sample, folder.path());
        let (mut store, _) = open(sample, folder.path()).unwrap();
        first
            .iter()
            .for_each(|drive| store.fail_member(&path(drive)).unwrap());
        begin_to_fill(&mut store, first[0]);
        store.fail_member(&path(needed)).unwrap();
        let before = right_and_lost(&mut store, &bytes);
        store.accept_data_loss().unwrap();
        assert!(
            store.has_lost_data() && said(store.accept_data_loss()).contains("given up already")
        );
        fill_all(&mut store);
        assert!(!store.has_failed());
        assert_eq!(store.scrub().unwrap().mismatched_sectors, 0, "{name}");
        assert_eq!(
            right_and_lost(&mut store, &bytes).1,
            before.1,
            "{name}: filling brings nothing back"
        );
        let end = store.capacity().0;
        let (at, new) = (end - 97, pattern(end - 97, 30, 9));
        store.write(Lbn(at), &new).unwrap();
        bytes[at as usize * 512..][..new.len()].copy_from_slice(&new);
        store
            .write_zeroes(Lbn(end - 40), Sectors(40), true)
            .unwrap();
        bytes[(end - 40) as usize * 512..].fill(0);
        let after = right_and_lost(&mut store, &bytes);
        assert!(after.1 < before.1, "{name}: what is written can be read");
        drop(store);
        let (mut store, _) = open(sample, folder.path()).unwrap();
        assert!(store.has_lost_data());
        assert_eq!(
            right_and_lost(&mut store, &bytes),
            after,
            "{name}: after a kill"
        );
        assert_eq!(store.scrub().unwrap().mismatched_sectors, 0, "{name}");
        // The redundancy covers the data that is there again.
        fill_all(&mut store);
        store.fail_member(&path(needed)).unwrap();
        assert_eq!(
            right_and_lost(&mut store, &bytes),
            after,
            "{name}: without {needed}"
        );
        let mut takes_room = true;
        let mut visit = |_, takes| {
            takes_room &= takes;
            std::ops::ControlFlow::Continue(())
        };
        store
            .allocated(Lbn(0), store.capacity(), &mut visit)
            .unwrap();
        assert!(takes_room, "{name}: what is lost is not told as zeros");
    }
}

#[test]
fn a_region_is_forgotten_some_seconds_after_its_last_write_and_a_sync() {
    let folder = folder();
    let sample = sample("raid5");
    let (mut store, _) = open(sample, folder.path()).unwrap();
    let second = Duration::from_secs;
    let dirty = || fs::read(own(folder.path())).unwrap()[MARKS as usize];
    assert_eq!(store.tidy(second(100)).unwrap(), TidyWork::Done);
    store.write(Lbn(3), &pattern(3, 1, 1)).unwrap();
    assert_eq!(dirty(), 1);
    assert_eq!(store.tidy(second(101)).unwrap(), TidyWork::At(second(106)));
    assert_eq!(store.tidy(second(102)).unwrap(), TidyWork::At(second(106)));
    assert_eq!(store.tidy(second(106)).unwrap(), TidyWork::Sync);
    let job = store.sync_job();
    store.write(Lbn(4), &pattern(4, 1, 1)).unwrap();
    let synced = std::thread::spawn(move || job.run()).join().unwrap();
    store.note_synced(synced).unwrap();
    assert_eq!(
        store.tidy(second(107)).unwrap(),
        TidyWork::At(second(112)),
        "it was written meanwhile"
    );
    assert_eq!(dirty(), 1);
    assert_eq!(store.tidy(second(112)).unwrap(), TidyWork::Sync);
    store.sync().unwrap();
    assert_eq!(store.tidy(second(113)).unwrap(), TidyWork::Done);
    assert_eq!(dirty(), 0);
}

#[test]
fn an_unclean_store_is_mended_with_progress_and_a_clean_one_is_not() {
    let folder = folder();
    let shape = || {
        common::volume(
            "raid5",
            serde_json::json!({}),
            (0..3).map(|_| large()).collect(),
        )
    };
    fn large() -> fullstroke_volume::Shape {
        fullstroke_volume::Shape::Drive(Sectors((40 << 20) / 512))
    }
    let location = StoreLocation::Folder(folder.path().to_owned());
    let (mut store, _) = Store::open(shape(), &location, "0123", Opening::default()).unwrap();
    for mebibyte in [0, 20, 60] {
        store.write(Lbn(mebibyte << 11), &pattern(0, 8, 1)).unwrap();
    }
    drop(store);
    let mut told = Vec::new();
    let mut progress = |progress: fullstroke_store::bytes::MendingProgress| {
        told.push((progress.done, progress.regions))
    };
    let opening = Opening {
        progress: Some(&mut progress),
        ..Opening::default()
    };
    let (store, report) = Store::open(shape(), &location, "0123", opening).unwrap();
    assert_eq!(
        (
            report.clean,
            report.regions,
            report.mended.mismatched_sectors
        ),
        (false, 3, 0)
    );
    assert!(
        report.mended.compared_sectors < 3 * 4096,
        "holes are passed over: {report:?}"
    );
    assert_eq!(told, [(1, 3), (2, 3), (3, 3)]);
    store.close().unwrap();
    let (_, report) = Store::open(shape(), &location, "0123", Opening::default()).unwrap();
    assert_eq!((report.clean, report.regions), (true, 0));
}

#[test]
fn requests_outside_the_volume_are_refused() {
    for name in ["drive", "raid5", "raid50"] {
        let (mut store, _) = Store::open(
            (sample(name).shape)(),
            &StoreLocation::Memory,
            "0123",
            Opening::default(),
        )
        .unwrap();
        let capacity = store.capacity().0;
        for (lbn, sectors) in [(capacity, 1), (capacity - 1, 2), (u64::MAX, 1), (0, 0)] {
            let mut bytes = vec![0; sectors * 512];
            let sectors = Sectors(sectors as u64);
            let refused = |result| matches!(result, Err(StoreError::OutOfRange { .. }));
            assert!(refused(store.read(Lbn(lbn), &mut bytes)));
            assert!(refused(store.write(Lbn(lbn), &bytes)));
            assert!(refused(store.write_zeroes(Lbn(lbn), sectors, true)));
            assert!(refused(store.discard(Lbn(lbn), sectors)));
        }
    }
}

#[test]
fn a_large_drive_in_memory_costs_nothing_until_it_is_written() {
    let shape = fullstroke_volume::Shape::Drive(Sectors(24_000_000_000_000 / 512));
    let (mut store, _) =
        Store::open(shape, &StoreLocation::Memory, "0123", Opening::default()).unwrap();
    let last = Lbn(store.capacity().0 - 8);
    store.write(last, &pattern(0, 8, 1)).unwrap();
    let mut bytes = vec![0; 4096];
    store.read(last, &mut bytes).unwrap();
    assert!(bytes == pattern(0, 8, 1));
    let (start, sectors) = (Lbn(last.0 - (1 << 30)), Sectors((1 << 30) + 8));
    let mut runs = Vec::new();
    let mut visit = |run: fullstroke_contract::Extent, takes_room| {
        runs.push((run.sectors.0, takes_room));
        std::ops::ControlFlow::Continue(())
    };
    store.allocated(start, sectors, &mut visit).unwrap();
    assert_eq!(
        runs.iter().map(|run| run.1).collect::<Vec<_>>(),
        [false, true]
    );
    store.discard(Lbn(0), Sectors(last.0 + 8)).unwrap();
    store.read(last, &mut bytes).unwrap();
    assert!(bytes.iter().all(|&byte| byte == 0));
}

#[test]
fn what_a_full_journal_gave_up_and_took_anew_is_made_again_wherever_the_process_dies() {
    for name in ["raid5", "paraid", "raid5 in raid5"] {
        let (folder, sample) = (folder(), sample(name));
        let mut bytes = filled(sample, folder.path());
        let (mut store, _) = open(sample, folder.path()).unwrap();
        let drive = if name == "raid5 in raid5" {
            vec![1, 0]
        } else {
            vec![0]
        };
        store.fail_member(&drive).unwrap();
        store.restore_member(&drive).unwrap();
        store.rebuild_member(&drive, Sectors(25)).unwrap();
        let capacity = store.capacity().0;
        for round in 0..60u64 {
            let start = round * 37 % (capacity - 60);
            let sectors = 1 + round * 13 % 60;
            let written = pattern(start, sectors, 2 + round);
            bytes[start as usize * 512..][..written.len()].copy_from_slice(&written);
            store.write(Lbn(start), &written).unwrap();
            let killed = common::folder();
            for entry in fs::read_dir(folder.path()).unwrap() {
                let entry = entry.unwrap();
                fs::copy(entry.path(), killed.path().join(entry.file_name())).unwrap();
            }
            let (mut again, report) = open(sample, killed.path()).unwrap();
            let wrong = all_of(&mut again)
                .chunks(512)
                .zip(bytes.chunks(512))
                .filter(|(found, expected)| found != expected)
                .count();
            assert_eq!(wrong, 0, "{name} round {round}: {report:?}");
        }
    }
}

#[test]
fn what_a_volume_was_filled_with_undoes_nothing_that_was_written_afterwards() {
    for name in ["raid5 in raid1", "raid5 in raid5"] {
        let (folder, sample) = (folder(), sample(name));
        let mut bytes = filled(sample, folder.path());
        let (mut store, _) = open(sample, folder.path()).unwrap();
        store.fail_member(&[0]).unwrap();
        store.restore_member(&[0]).unwrap();
        // The rebuild goes through the journal, because the inner volume has parity of its own.
        store.rebuild_member(&[0], Sectors(20)).unwrap();
        store.sync().unwrap();
        let written = pattern(3, 9, 7);
        bytes[3 * 512..12 * 512].copy_from_slice(&written);
        store.write(Lbn(3), &written).unwrap();
        drop(store);
        let (mut store, _) = open(sample, folder.path()).unwrap();
        assert!(all_of(&mut store) == bytes, "{name}");
        assert_eq!(store.scrub().unwrap().mismatched_sectors, 0, "{name}");
    }
}

/// First byte of a member's data in its file.
const MEMBER_DATA: u64 = 0;

/// Scrubs the whole store.
fn scrubbed(store: &mut Store, repair: Repair) -> RedundancyCheck {
    let mut scrub = Scrub {
        repair,
        ..Scrub::default()
    };
    while store.scrub_step(&mut scrub, Sectors(64)).unwrap() {}
    scrub.found
}

/// Makes a store with one wrong sector on each of these members. Returns the findings of a scrub,
/// and of repairs.
fn with_wrong_sectors(name: &str, members: &[usize], sector: u64) -> [RedundancyCheck; 3] {
    let folder = folder();
    let sample = sample(name);
    let bytes = filled(sample, folder.path());
    for (tag, member) in members.iter().enumerate() {
        let file = folder.path().join(format!("member-{member}.img"));
        damage(&file, MEMBER_DATA + sector * 512, 512, 7 + tag as u8);
    }
    let (mut store, _) = open(sample, folder.path()).unwrap();
    let looked = scrubbed(&mut store, Repair::Nothing);
    let repaired = scrubbed(&mut store, Repair::Proven);
    if repaired.undecided_sectors == 0 {
        assert!(all_of(&mut store) == bytes, "{name} {members:?}");
        assert_eq!(store.scrub().unwrap().mismatched_sectors, 0);
    }
    let trusted = scrubbed(&mut store, Repair::Data);
    assert_eq!(store.scrub().unwrap().mismatched_sectors, 0);
    [looked, repaired, trusted]
}

#[test]
fn a_scrub_repairs_what_the_other_members_prove_wrong_and_nothing_else() {
    for (name, member) in [
        ("raid1", 0),
        ("raid1", 1),
        ("raid1", 2),
        ("raid6", 0),
        ("raid6", 3),
        ("raid6", 4),
        ("raid6", 5),
    ] {
        let [looked, repaired, trusted] = with_wrong_sectors(name, &[member], 2);
        assert_eq!(
            (looked.mismatched_sectors, looked.undecided_sectors),
            (1, 0),
            "{name} {member}: {looked:?}"
        );
        assert_eq!(
            looked.first[0].member.to_string(),
            member.to_string(),
            "{name}"
        );
        assert_eq!(repaired.repaired_sectors, 1, "{name} {member}");
        assert_eq!(trusted.mismatched_sectors, 0, "{name} {member}");
    }
    for (name, members) in [
        ("raid10", &[0][..]),
        ("raid4", &[1]),
        ("raid5", &[0]),
        ("raid6", &[0, 1]),
        ("raid1", &[0, 1]),
    ] {
        let [looked, repaired, trusted] = with_wrong_sectors(name, members, 2);
        assert!(looked.undecided_sectors > 0, "{name}: {looked:?}");
        assert_eq!(looked, repaired, "{name}: nothing was touched");
        assert!(looked.first[0].undecided && looked.first[0].address.is_some());
        assert_eq!(trusted.repaired_sectors, looked.undecided_sectors, "{name}");
    }
}
