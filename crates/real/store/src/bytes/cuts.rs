//! Death of the process in the middle of a request, at every possible point.
//!
//! The media outlive the store here. All media stop changing after a given number of changes. The
//! last change is made by half. The store's files keep the state of that moment.

use crate::bytes::description::MemberRecord;
use crate::bytes::opening::DeviceSource;
use crate::bytes::samples::{SAMPLES, VolumeSample, folder, path, pattern};
use crate::bytes::{OpenReport, Opening, Store, StoreError};
use crate::label::Label;
use crate::{Device, MemoryDevice};
use fullstroke_contract::{Extent, Gear};
use fullstroke_units::{Lbn, Random, Sectors, Seed};
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// Changes that the host still makes.
type Allowance = Arc<Mutex<Allowed>>;

#[derive(Default)]
struct Allowed {
    /// Number of changes that will still be made; `None` = all.
    changes: Option<u64>,
    /// Member whose medium takes no changes at all.
    broken: Option<String>,
}

/// Media with a longer life than the store.
#[derive(Default)]
struct SharedMedia {
    media: BTreeMap<String, Arc<MemoryDevice>>,
    allowance: Allowance,
}

struct SharedMedium {
    name: String,
    memory: Arc<MemoryDevice>,
    allowance: Allowance,
}

impl DeviceSource for SharedMedia {
    fn complaint(&self, _: &MemberRecord, _: Option<Label>) -> Option<String> {
        None
    }
    fn member(&mut self, member: &MemberRecord) -> Result<Arc<dyn Device>, StoreError> {
        let new = || Arc::new(MemoryDevice::new(member.bytes()));
        let memory = self.media.entry(member.path.clone()).or_insert_with(new);
        Ok(Arc::new(SharedMedium {
            name: member.path.clone(),
            memory: Arc::clone(memory),
            allowance: Arc::clone(&self.allowance),
        }))
    }
}

impl SharedMedium {
    /// Returns how many of the `sectors` of a change are made, and an error if not all.
    fn allowed(&self, sectors: u64) -> (u64, io::Result<()>) {
        let cut = || Err(io::Error::from(io::ErrorKind::StorageFull));
        let mut allowed = self.allowance.lock().unwrap();
        if allowed.broken.as_ref() == Some(&self.name) {
            return (0, cut());
        }
        match &mut allowed.changes {
            None => (sectors, Ok(())),
            Some(0) => (0, cut()),
            Some(left) => {
                *left -= 1;
                if *left == 0 {
                    // By half, because a torn write is neither old nor new as a whole.
                    (sectors / 2, cut())
                } else {
                    (sectors, Ok(()))
                }
            }
        }
    }
}

impl Device for SharedMedium {
    fn name(&self) -> String {
        format!("member {}", self.name)
    }
    fn bytes(&self) -> u64 {
        self.memory.bytes()
    }
    fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        self.memory.read(at, into)
    }
    fn write(&self, at: u64, from: &[u8]) -> io::Result<()> {
        let (made, result) = self.allowed(from.len() as u64 / 512);
        self.memory.write(at, &from[..made as usize * 512])?;
        result
    }
    fn zero(&self, at: u64, bytes: u64, hole: bool) -> io::Result<()> {
        let (made, result) = self.allowed(bytes / 512);
        self.memory.zero(at, made * 512, hole)?;
        result
    }
    fn next_data(&self, at: u64, bytes: u64) -> io::Result<Option<Range<u64>>> {
        self.memory.next_data(at, bytes)
    }
    fn clear(&self) -> io::Result<()> {
        self.memory.clear()
    }
    fn flush(&self) -> io::Result<()> {
        Ok(())
    }
    fn is_volatile(&self) -> bool {
        true
    }
}

/// A volume with a model of its data. The volume dies and comes back.
struct Mortal {
    sample: VolumeSample,
    folder: tempfile::TempDir,
    shared: SharedMedia,
    store: Option<Store>,
    model: Vec<u8>,
    random: Random,
    version: u64,
}

/// State of an interrupted request after the next opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InterruptedState {
    /// The request's sectors are old or new, all others as before.
    Sound,
    /// Other sectors were changed.
    Damaged,
}

impl Mortal {
    fn new(sample: VolumeSample) -> Mortal {
        let mut mortal = Mortal {
            sample,
            folder: folder(),
            shared: SharedMedia::default(),
            store: None,
            model: Vec::new(),
            random: Seed(7).stream(sample.name),
            version: 0,
        };
        mortal.open();
        let capacity = mortal.store().capacity();
        mortal.model = pattern(0, capacity.0, 0);
        let model = mortal.model.clone();
        mortal.store().write(Lbn(0), &model).unwrap();
        mortal
    }

    fn store(&mut self) -> &mut Store {
        self.store.as_mut().unwrap()
    }

    fn open(&mut self) -> OpenReport {
        self.store = None;
        self.shared.allowance.lock().unwrap().changes = None;
        let shape = (self.sample.shape)();
        let folder = self.folder.path();
        let opened = Store::open_in(
            folder,
            &mut self.shared,
            shape,
            "digest",
            Opening::default(),
        );
        let (store, report) =
            opened.unwrap_or_else(|error| panic!("{}: {error}", self.sample.name));
        self.store = Some(store);
        report
    }

    /// Fails drives, and fills some again.
    fn disturb(&mut self, disturbance: Disturbance) {
        for &(member, refill) in disturbance {
            let path = path(member);
            self.store().fail_member(&path).unwrap();
            if let Some(upto) = refill {
                self.store().restore_member(&path).unwrap();
                self.store().rebuild_member(&path, Sectors(upto)).unwrap();
            }
        }
    }

    fn some_extent(&mut self) -> Extent {
        let capacity = self.store().capacity().0;
        let start = self.random.below(capacity);
        let most = if self.random.chance(0.5) { 8 } else { 60 };
        Extent::new(start, (1 + self.random.below(most)).min(capacity - start))
    }

    /// Makes a change, and dies after `changes` changes of media. Returns true if the store lived,
    /// and the new bytes.
    fn change(&mut self, extent: Extent, zeroes: bool, changes: Option<u64>) -> (bool, Vec<u8>) {
        self.version += 1;
        let mut new = pattern(extent.start.0, extent.sectors.0, self.version);
        if zeroes {
            new.fill(0);
        }
        self.shared.allowance.lock().unwrap().changes = changes;
        let result = match zeroes {
            true => self
                .store()
                .write_zeroes(extent.start, extent.sectors, true),
            false => self.store().write(extent.start, &new),
        };
        if let Err(error) = &result {
            assert!(
                error.is_out_of_space() && error.to_string().contains("member "),
                "{error}"
            );
        }
        (result.is_ok(), new)
    }

    /// Compares the store's data with the model, and copies the data to the model.
    fn examine(&mut self, extent: Extent, new: &[u8]) -> InterruptedState {
        let mut held = vec![0; self.model.len()];
        let name = self.sample.name;
        self.store()
            .read(Lbn(0), &mut held)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let own = extent.start.0 as usize..extent.end().0 as usize;
        let mut found = InterruptedState::Sound;
        for (lbn, (held, model)) in held.chunks(512).zip(self.model.chunks(512)).enumerate() {
            let is_new = own.contains(&lbn) && held == &new[(lbn - own.start) * 512..][..512];
            if held != model && !is_new {
                found = InterruptedState::Damaged;
            }
        }
        self.model = held;
        found
    }
}

/// Drives to fail, and the sector up to which a restored one is filled again.
type Disturbance = &'static [(&'static str, Option<u64>)];

/// Filled to the end, and not recorded yet.
const WHOLE: Option<u64> = Some(u64::MAX);

/// Returns the states in which a volume is cut.
fn disturbances(sample: VolumeSample) -> &'static [Disturbance] {
    match sample.name {
        "raid6" => &[
            &[],
            &[("1", None)],
            &[("1", None), ("4", Some(40))],
            &[("0", Some(40)), ("1", WHOLE)],
        ],
        "raid1 in raid5" => &[&[], &[("1.0", None)], &[("1.0", None), ("1.1", None)]],
        name if name.contains("0 in") || name.contains("5 in") || name == "raid50" => &[
            &[],
            &[("1.0", None)],
            &[("1.0", Some(20))],
            &[("1.0", WHOLE)],
        ],
        _ if sample.tolerance == 0 => &[&[]],
        _ => &[&[], &[("1", None)], &[("1", Some(40))], &[("1", WHOLE)]],
    }
}

#[test]
fn a_store_can_be_given_to_another_thread() {
    fn can_be_given<T: Send>() {}
    can_be_given::<Store>();
    can_be_given::<crate::bytes::SyncJob>();
    can_be_given::<StoreError>();
}

#[test]
fn a_change_cut_at_any_point_leaves_old_or_new_sectors_and_sound_redundancy() {
    for &sample in SAMPLES {
        for disturbance in disturbances(sample) {
            let mut mortal = Mortal::new(sample);
            mortal.disturb(disturbance);
            for round in 0..12 {
                let extent = mortal.some_extent();
                // Until a change goes through: then every point of it has been cut.
                for changes in 0.. {
                    let (lived, new) = mortal.change(extent, round % 4 == 3, Some(changes));
                    mortal.open();
                    let what = format!(
                        "{} {disturbance:?} {extent:?} cut at {changes}",
                        sample.name
                    );
                    assert_eq!(
                        mortal.examine(extent, &new),
                        InterruptedState::Sound,
                        "{what}"
                    );
                    assert_eq!(
                        mortal.store().scrub().unwrap().mismatched_sectors,
                        0,
                        "{what}"
                    );
                    if lived {
                        break;
                    }
                }
            }
        }
    }
}

#[test]
fn without_mending_a_cut_leaves_redundancy_that_does_not_follow_from_the_data() {
    for &sample in SAMPLES.iter().filter(|sample| sample.tolerance > 0) {
        let mut mortal = Mortal::new(sample);
        let mut mismatches = 0;
        for _ in 0..20 {
            let extent = mortal.some_extent();
            let changes = 1 + mortal.random.below(3);
            mortal.change(extent, false, Some(changes));
            mortal.shared.allowance.lock().unwrap().changes = None;
            mismatches += mortal.store().scrub().unwrap().mismatched_sectors;
            let mended = mortal.open().mended.mismatched_sectors;
            assert_eq!(
                mortal.store().scrub().unwrap().mismatched_sectors,
                0,
                "{mended} mended"
            );
        }
        assert!(mismatches > 0, "{}", sample.name);
    }
}

#[test]
fn without_the_journal_a_cut_damages_what_nobody_wrote() {
    for name in [
        "raid4",
        "raid5",
        "raid6",
        "raid50",
        "raid1 in raid5",
        "raid5 in raid5",
    ] {
        let sample = crate::bytes::samples::sample(name);
        let mut mortal = Mortal::new(sample);
        // The last disturbance without a refill: with missing members a cut write damages data that
        // nobody wrote, and the journal protects such data.
        let degraded = disturbances(sample)
            .iter()
            .rfind(|all| all.iter().all(|(_, refill)| refill.is_none()));
        mortal.disturb(degraded.unwrap());
        let mut damaged = 0;
        for _ in 0..100 {
            mortal.store().journalled = false;
            let extent = mortal.some_extent();
            let changes = 1 + mortal.random.below(3);
            let (_, new) = mortal.change(extent, false, Some(changes));
            mortal.open();
            damaged += u32::from(mortal.examine(extent, &new) == InterruptedState::Damaged);
        }
        assert!(damaged > 0, "{name}");
    }
}

#[test]
fn a_request_that_the_host_failed_is_mended_by_tidying() {
    for &sample in SAMPLES {
        for disturbance in disturbances(sample) {
            let mut mortal = Mortal::new(sample);
            mortal.disturb(disturbance);
            for changes in (1..4).cycle().take(12) {
                let extent = mortal.some_extent();
                let (_, new) = mortal.change(extent, false, Some(changes));
                mortal.shared.allowance.lock().unwrap().changes = None;
                while mortal.store().tidy(std::time::Duration::ZERO).unwrap()
                    == crate::bytes::TidyWork::Again
                {}
                assert_eq!(
                    mortal.examine(extent, &new),
                    InterruptedState::Sound,
                    "{} {disturbance:?}",
                    sample.name
                );
                assert_eq!(
                    mortal.store().scrub().unwrap().mismatched_sectors,
                    0,
                    "{}",
                    sample.name
                );
            }
        }
    }
}

#[test]
fn a_drive_that_breaks_can_be_failed_without_loss_whatever_was_under_way() {
    for &sample in SAMPLES.iter().filter(|sample| sample.tolerance > 0) {
        for disturbance in disturbances(sample)
            .iter()
            .filter(|all| all.len() < sample.tolerance)
        {
            let drives = Mortal::new(sample)
                .store()
                .status()
                .into_iter()
                .filter(|member| member.file.is_some());
            let disturbed = |member: &str| {
                disturbance
                    .iter()
                    .any(|&(disturbed, _)| disturbed == member)
            };
            for broken in drives
                .map(|drive| drive.member)
                .filter(|member| !disturbed(member))
            {
                let mut mortal = Mortal::new(sample);
                mortal.disturb(disturbance);
                mortal.break_and_fail(&broken);
            }
        }
    }
}

impl Mortal {
    /// Breaks a drive. A server fails the drive when a request is refused.
    fn break_and_fail(&mut self, broken: &str) {
        self.shared.allowance.lock().unwrap().broken = Some(broken.to_owned());
        let (under_way, new) = loop {
            let extent = self.some_extent();
            let (lived, new) = self.change(extent, false, None);
            if !lived {
                break (extent, new);
            }
            self.examine(extent, &new);
        };
        self.store().fail_member(&path(broken)).unwrap();
        let what = format!("{} {broken} {under_way:?}", self.sample.name);
        assert_eq!(
            self.examine(under_way, &new),
            InterruptedState::Sound,
            "{what}"
        );
        self.open();
        assert_eq!(
            self.examine(under_way, &new),
            InterruptedState::Sound,
            "{what}"
        );
        assert_eq!(
            self.store().scrub().unwrap().mismatched_sectors,
            0,
            "{what}"
        );
    }

    /// Returns the first member under rebuild, and the number of filled sectors.
    fn rebuilding(&mut self) -> Option<(Vec<usize>, Sectors)> {
        let member = self
            .store()
            .status()
            .into_iter()
            .find(|member| member.filled().is_some())?;
        Some((path(&member.member), member.filled()?))
    }
}

#[test]
fn a_member_that_is_filled_but_not_recorded_so_is_not_relied_upon() {
    for &sample in SAMPLES {
        let filled = disturbances(sample)
            .iter()
            .filter(|all| all.iter().any(|&(_, upto)| upto == WHOLE));
        for disturbance in filled {
            for seed in 0..12 {
                let mut mortal = Mortal::new(sample);
                mortal.random = Seed(seed).stream(sample.name);
                mortal.disturb(disturbance);
                let extent = mortal.some_extent();
                let (_, new) = mortal.change(extent, false, Some(1 + seed % 4));
                mortal.open();
                let what = format!("{} {disturbance:?} {extent:?} {seed}", sample.name);
                assert_eq!(
                    mortal.examine(extent, &new),
                    InterruptedState::Sound,
                    "{what}"
                );
            }
        }
    }
}

#[test]
fn a_rebuild_cut_at_any_point_goes_on_from_where_it_was_recorded() {
    for &sample in SAMPLES.iter().filter(|sample| sample.tolerance > 0) {
        let drive = disturbances(sample)[1][0].0;
        cut_a_rebuild_of(sample, drive);
        // Fails a whole inner volume, where there is one.
        if drive != "1" && sample.name != "raid50" {
            cut_a_rebuild_of(sample, "1");
        }
    }
}

fn cut_a_rebuild_of(sample: VolumeSample, member: &str) {
    let nothing = Extent::new(0, 0);
    let mut mortal = Mortal::new(sample);
    mortal.store().fail_member(&path(member)).unwrap();
    mortal.store().restore_member(&path(member)).unwrap();
    let mut changes = 0;
    while let Some((path, done)) = mortal.rebuilding() {
        let what = format!("{} {path:?} from {done} cut at {changes}", sample.name);
        mortal.shared.allowance.lock().unwrap().changes = Some(changes);
        let result = mortal.store().rebuild_member(&path, done + Sectors(12));
        mortal.open();
        assert_eq!(
            mortal.examine(nothing, &[]),
            InterruptedState::Sound,
            "{what}"
        );
        assert_eq!(
            mortal.store().scrub().unwrap().mismatched_sectors,
            0,
            "{what}"
        );
        changes += 1;
        if result.is_ok() {
            changes = 0;
            // The rebuild begins again at the recorded sector.
            mortal
                .store()
                .rebuild_member(&path, done + Sectors(12))
                .unwrap();
            mortal.store().sync().unwrap();
            let states = mortal.store().states();
            mortal.store().record_better(&states, true).unwrap();
        }
    }
}

/// Returns the volumes with gears of a sample, and the drives to stand in the low gear.
fn geared(sample: VolumeSample) -> Option<(&'static [&'static [usize]], &'static [&'static str])> {
    match sample.name {
        "paraid" => Some((&[&[]], &["4"])),
        "e-paraid" => Some((&[&[]], &["4", "5"])),
        "paraid of raid0" => Some((&[&[]], &["2", "3"])),
        "paraid in raid1" => Some((&[&[0], &[1]], &["0.4", "1.4"])),
        _ => None,
    }
}

impl Mortal {
    fn held_by(&self, drive: &str) -> Vec<u8> {
        let mut held = vec![0; 90 * 512];
        self.shared.media[drive].read(0, &mut held).unwrap();
        held
    }

    /// Continues a shift: begins, copies a part, or settles. Returns true if the store lived.
    fn shift_on(&mut self, volume: &[usize], changes: Option<u64>) -> bool {
        self.shared.allowance.lock().unwrap().changes = changes;
        let settles = self.random.chance(0.3);
        let store = self.store.as_mut().unwrap();
        match store.gear(volume).unwrap() {
            Gear::High => _ = store.begin_shift(volume, Gear::Falling),
            Gear::Low => _ = store.begin_shift(volume, Gear::Rising),
            Gear::Falling | Gear::Rising if settles => return store.settle(volume).is_ok(),
            Gear::Falling | Gear::Rising => return store.copy_stale(volume, Sectors(9)).is_ok(),
        }
        true
    }

    /// Makes one change, cut or not. In the low gear none of `standing` may be written.
    fn change_in_gear(
        &mut self,
        volumes: &[&[usize]],
        standing: &[&str],
        changes: Option<u64>,
    ) -> bool {
        let low = volumes
            .iter()
            .all(|volume| self.store().gear(volume) == Some(Gear::Low));
        let before: Vec<Vec<u8>> = standing.iter().map(|drive| self.held_by(drive)).collect();
        let (extent, zeroes) = (self.some_extent(), self.random.chance(0.2));
        let (lived, new) = self.change(extent, zeroes, changes);
        if low {
            let after: Vec<Vec<u8>> = standing.iter().map(|drive| self.held_by(drive)).collect();
            assert!(
                before == after,
                "{}: a standing drive was written",
                self.sample.name
            );
        }
        if !lived {
            self.open();
        }
        self.shared.allowance.lock().unwrap().changes = None;
        assert_eq!(
            self.examine(extent, &new),
            InterruptedState::Sound,
            "{} {extent:?} {changes:?}",
            self.sample.name
        );
        lived
    }
}

/// Runs lives of arrays with gears, with so many events each. Returns the number of events in each
/// gear, and the number of cut events.
#[expect(
    clippy::too_many_lines,
    reason = "the events of a life, one after the other"
)]
fn live_in_gears(sample: VolumeSample, seed: u64, events: u32) -> ([u64; 4], u64) {
    let (volumes, standing) = geared(sample).unwrap();
    let mut mortal = Mortal::new(sample);
    mortal.random = Seed(seed).stream(sample.name);
    let (mut in_gear, mut cuts) = ([0; 4], 0);
    let mut failed: Option<Vec<usize>> = None;
    for event in 0..events {
        let what = format!("{} seed {seed} event {event}", sample.name);
        let volume = volumes[mortal.random.below(volumes.len() as u64) as usize];
        in_gear[mortal.store().gear(volume).unwrap() as usize] += 1;
        let changes = if mortal.random.chance(0.25) {
            Some(mortal.random.below(12))
        } else {
            None
        };
        let mut dies = mortal.random.chance(0.03);
        match mortal.random.below(20) {
            0..8 => cuts += u64::from(!mortal.change_in_gear(volumes, standing, changes)),
            8..18 => {
                let lived = mortal.shift_on(volume, changes);
                dies |= !lived;
                cuts += u64::from(!lived);
            }
            18 if sample.tolerance > 0 && failed.is_none() => {
                mortal.shared.allowance.lock().unwrap().changes = None;
                let drives = mortal.store().status();
                let drives: Vec<_> = drives
                    .iter()
                    .filter(|member| member.file.is_some())
                    .collect();
                let drive = path(&drives[mortal.random.below(drives.len() as u64) as usize].member);
                mortal.store().fail_member(&drive).unwrap();
                failed = Some(drive);
            }
            _ => {
                mortal.shared.allowance.lock().unwrap().changes = None;
                let Some(drive) = failed.clone() else {
                    continue;
                };
                // Members are filled only in the high gear.
                let (_, above) = drive.split_last().unwrap();
                match mortal.store().gear(above) {
                    Some(Gear::Low) => _ = mortal.store().begin_shift(above, Gear::Rising),
                    Some(Gear::Rising) => mortal.store().settle(above).unwrap(),
                    Some(Gear::High) => {
                        mortal.store().restore_member(&drive).unwrap();
                        mortal
                            .store()
                            .rebuild_member(&drive, Sectors(u64::MAX))
                            .unwrap();
                        // Behind a sync the state counts after the next opening.
                        mortal.store().sync().unwrap();
                        failed = None;
                    }
                    other => panic!("{what}: {other:?} with a member failed"),
                }
            }
        }
        mortal.shared.allowance.lock().unwrap().changes = None;
        if dies {
            mortal.open();
            assert!(
                volumes
                    .iter()
                    .all(|volume| mortal.store().gear(volume) == Some(Gear::High)),
                "{what}"
            );
        }
        assert_eq!(
            mortal.examine(Extent::new(0, 0), &[]),
            InterruptedState::Sound,
            "{what}"
        );
        assert_eq!(
            mortal.store().scrub().unwrap().mismatched_sectors,
            0,
            "{what}"
        );
    }
    (in_gear, cuts)
}

#[test]
fn a_shift_loses_nothing_wherever_it_is_cut_and_whatever_fails() {
    for &sample in SAMPLES.iter().filter(|sample| geared(**sample).is_some()) {
        let (mut in_gear, mut cuts) = ([0; 4], 0);
        let lives = std::env::var("FULLSTROKE_LIVES")
            .ok()
            .and_then(|lives| lives.parse().ok())
            .unwrap_or(6);
        for seed in 0..lives {
            let (gears, cut) = live_in_gears(sample, seed, 150);
            cuts += cut;
            in_gear
                .iter_mut()
                .zip(gears)
                .for_each(|(sum, more)| *sum += more);
        }
        println!(
            "{}: events in the high, falling, low and rising gear {in_gear:?}, {cuts} cut",
            sample.name
        );
        assert!(
            in_gear.iter().all(|&events| events > 20) && cuts > 20,
            "{} {in_gear:?} {cuts}",
            sample.name
        );
    }
}

#[test]
fn a_low_gear_that_is_not_recorded_or_not_journalled_loses_data() {
    for journalled in [true, false] {
        let mut damaged = 0;
        for seed in 0..40 {
            let mut mortal = Mortal::new(crate::bytes::samples::sample("paraid"));
            mortal.random = Seed(seed).stream("sabotage");
            mortal.store().begin_shift(&[], Gear::Falling);
            mortal.store().settle(&[]).unwrap();
            let changes = 1 + mortal.random.below(3);
            if journalled {
                let records = mortal.store().records.as_mut().unwrap();
                let mut description = records.description().clone();
                description.low_gear.clear();
                records.replace(description).unwrap();
            } else {
                mortal.store().fail_member(&path("0")).unwrap();
                mortal.store().journalled = false;
            }
            let extent = mortal.some_extent();
            let (lived, new) = mortal.change(extent, false, (!journalled).then_some(changes));
            if lived {
                assert_eq!(mortal.examine(extent, &new), InterruptedState::Sound);
            }
            mortal.open();
            damaged += u32::from(
                mortal.examine(if lived { Extent::new(0, 0) } else { extent }, &new)
                    == InterruptedState::Damaged,
            );
        }
        assert!(damaged > 0, "journalled: {journalled}");
    }
}
