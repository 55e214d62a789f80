//! Volumes of all layouts lose power.
//!
//! The fault model of arrays holds ([`crate::power`]), on the same simulated devices: power may
//! fail at any write or flush of any device. All devices stop then, the store's own included. Of
//! the writes to a device since its last flush any sector may have landed or not, in any version.
//! Afterwards members may be missing, and are refilled later. Power fails again while the store is
//! opened, while members are filled and while gears shift.
//!
//! The tests require two things. Each sector holds the data of the last sync, or newer data.
//! Redundancy follows from the data. A member may be missing after a loss of power if the volume
//! keeps copies, lacked a member when power was lost, or has a journal of all changes; else
//! [`OpenReport::regions_at_risk`] counts. Tests with a piece of the machinery left out show the need for each piece.
//! `FULLSTROKE_POWER` sets the lives of each volume (default 4).

use crate::Device;
use crate::bytes::description::{MemberRecord, StateRecord, StoredDescription};
use crate::bytes::node::StoreNode;
use crate::bytes::opening::DeviceSource;
use crate::bytes::records::StorePlaces;
use crate::bytes::samples::{SAMPLES, VolumeSample, folder, path, sample};
use crate::bytes::{JournalScope, Opening, Store, StoreError, TidyWork, states};
use crate::label::{self, Label};
use crate::power::{AllowedFingerprints, DevicePower, Simulated, SplitMix, fill, simulated};
use fullstroke_contract::{Extent, Gear, MemberState};
use fullstroke_units::{Lbn, Sectors};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

#[expect(unused_imports, reason = "named in the documentation")]
use crate::bytes::OpenReport;

/// Devices of a volume, with a longer life than the store.
struct Shelf {
    members: BTreeMap<String, Arc<Simulated>>,
    own: Arc<Simulated>,
    /// Members taken away and replaced with empty ones.
    gone: BTreeSet<String>,
}

impl DeviceSource for Shelf {
    fn complaint(&self, member: &MemberRecord, label: Option<Label>) -> Option<String> {
        member.file.as_ref()?;
        if self.gone.contains(&member.path) {
            return Some(format!("member {} is gone", member.path));
        }
        let device = &self.members[&member.path];
        label?.complaint(label::OF_FOLDERS.read(&**device, member.bytes()).as_ref())
    }
    fn member(&mut self, member: &MemberRecord) -> Result<Arc<dyn Device>, StoreError> {
        Ok(Arc::clone(&self.members[&member.path]) as Arc<dyn Device>)
    }
    fn own(&mut self, _: &Path, bytes: u64) -> Result<Arc<dyn Device>, StoreError> {
        assert!(self.own.bytes() >= bytes);
        Ok(Arc::clone(&self.own) as Arc<dyn Device>)
    }
}

/// Piece of the machinery to leave out in a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OmittedPiece {
    Nothing,
    /// Marks and records are not made durable before their changes.
    Flushes,
    /// Nothing is journalled.
    Journal,
}

#[derive(Clone, Copy, Debug, Default)]
struct PowerTally {
    losses: u64,
    degraded: u64,
    missing: u64,
    refilled: u64,
    replayed: u64,
    while_opened: u64,
    in_gears: u64,
}

struct Life {
    sample: VolumeSample,
    folder: tempfile::TempDir,
    shelf: Shelf,
    power: Arc<DevicePower>,
    random: SplitMix,
    model: AllowedFingerprints,
    left_out: OmittedPiece,
    journal: JournalScope,
    now: Duration,
    tag: u64,
    tally: PowerTally,
}

/// Error of a step in whose middle power failed.
struct Dark;

impl Life {
    fn new(sample: VolumeSample, seed: u64, left_out: OmittedPiece) -> Life {
        let root = StoreNode::new((sample.shape)(), &mut Vec::new());
        let drives: Vec<MemberRecord> = states::records(&root)
            .into_iter()
            .filter(|record| record.file.is_some())
            .collect();
        let places = StorePlaces::of(root.capacity(), states::any_parity(&root));
        let most = drives.iter().map(MemberRecord::bytes).max().unwrap_or(0) + label::BYTES;
        // One device more: the store's own, with records and journal, which loses power like the
        // others.
        let (mut devices, power) = simulated(drives.len() + 1, most.max(places.bytes()) as usize);
        let own = devices.pop().unwrap();
        let members = drives.into_iter().map(|drive| drive.path).zip(devices);
        Life {
            sample,
            folder: folder(),
            shelf: Shelf {
                members: members.collect(),
                own,
                gone: BTreeSet::new(),
            },
            power,
            random: SplitMix(seed),
            model: AllowedFingerprints::new(root.capacity().0),
            left_out,
            journal: JournalScope::default(),
            now: Duration::ZERO,
            tag: 0,
            tally: PowerTally::default(),
        }
    }

    fn open(&mut self) -> Result<Store, StoreError> {
        let opening = Opening {
            allow_degraded: true,
            survive_power_loss: self.left_out != OmittedPiece::Flushes,
            journal: self.journal,
            ..Opening::default()
        };
        let shape = (self.sample.shape)();
        let (store, report) = Store::open_in(
            self.folder.path(),
            &mut self.shelf,
            shape,
            "digest",
            opening,
        )?;
        self.tally.replayed += report.replayed_changes;
        // `take_one_away` takes members only where nothing is at risk.
        assert_eq!(report.regions_at_risk, 0, "{}", self.sample.name);
        Ok(store)
    }

    /// Restores power. Power may fail again while the store is opened. Returns the store, and the
    /// number of sectors with wrong data.
    fn come_back(&mut self) -> (Store, u64) {
        let store = loop {
            let fails = self.random.below(3) == 0;
            let left = if fails {
                1 + self.random.below(60) as i64
            } else {
                i64::MAX
            };
            self.power.0.store(left, SeqCst);
            match self.open() {
                // An opening may end well although power failed at its last write.
                Ok(store) if !self.power.is_off() => break store,
                Ok(_) => self.tally.while_opened += 1,
                Err(error) => {
                    assert!(self.power.is_off(), "{}: {error}", self.sample.name);
                    self.tally.while_opened += 1;
                }
            }
            self.lose_power();
        };
        self.power.0.store(i64::MAX, SeqCst);
        self.shelf.gone.clear();
        let mut store = store;
        let wrong = self.examine(&mut store);
        (store, wrong)
    }

    fn lose_power(&mut self) {
        let percent = [0, 30, 50, 70, 100][self.random.below(5) as usize];
        for device in self.shelf.members.values().chain([&self.shelf.own]) {
            device.lose_power(&mut self.random, percent);
        }
    }

    fn examine(&mut self, store: &mut Store) -> u64 {
        let mut bytes = vec![0; store.capacity().bytes().0 as usize];
        store.read(Lbn(0), &mut bytes).unwrap();
        let mut wrong = 0;
        for (lbn, sector) in bytes.chunks(512).enumerate() {
            wrong += u64::from(!self.model.takes(lbn, sector));
        }
        if self.left_out == OmittedPiece::Nothing {
            let found = store.scrub().unwrap();
            assert_eq!(found.mismatched_sectors, 0, "{}", self.sample.name);
        }
        // The sectors must keep the found data from now on.
        store.sync().unwrap();
        wrong
    }

    /// Checks the result of a step: an error is allowed only if power has failed.
    fn done<T>(&self, result: Result<T, StoreError>) -> Result<T, Dark> {
        result.map_err(|error| {
            assert!(self.power.is_off(), "{}: {error}", self.sample.name);
            Dark
        })
    }

    fn step(&mut self, store: &mut Store) -> Result<(), Dark> {
        match self.random.below(100) {
            0..55 => self.write(store)?,
            55..70 => {
                self.done(store.sync())?;
                // The answer of a sync counts only if power lasted to its end.
                if !self.power.is_off() {
                    self.model.flushed();
                }
            }
            70..78 => {
                self.now += Duration::from_secs(self.random.below(4));
                loop {
                    match self.done(store.tidy(self.now))? {
                        TidyWork::Again => {}
                        TidyWork::Sync => self.done(store.sync())?,
                        TidyWork::Done | TidyWork::At(_) => break,
                    }
                }
            }
            78..86 => self.shift(store)?,
            86..92 => self.fail_one(store)?,
            _ => self.refill(store)?,
        }
        if self.power.is_off() {
            Err(Dark)
        } else {
            Ok(())
        }
    }

    fn write(&mut self, store: &mut Store) -> Result<(), Dark> {
        let capacity = store.capacity().0;
        let start = self.random.below(capacity);
        let most = if self.random.below(2) == 0 { 8 } else { 60 };
        let extent = Extent::new(start, (1 + self.random.below(most)).min(capacity - start));
        let mut bytes = vec![0; extent.sectors.bytes().0 as usize];
        if self.random.below(6) == 0 {
            self.model.write(start, &bytes);
            return self.done(store.write_zeroes(extent.start, extent.sectors, true));
        }
        self.tag += 1;
        // The place is part of the content, so that a sector at a wrong place is found.
        fill(&mut bytes, self.tag << 20 | start);
        self.model.write(start, &bytes);
        self.done(store.write(extent.start, &bytes))
    }

    fn shift(&mut self, store: &mut Store) -> Result<(), Dark> {
        let geared = store.geared();
        if geared.is_empty() {
            return Ok(());
        }
        self.tally.in_gears += 1;
        let volume = &geared[self.random.below(geared.len() as u64) as usize];
        match store.gear(volume) {
            Some(Gear::High) => _ = store.begin_shift(volume, Gear::Falling),
            Some(Gear::Low) => _ = store.begin_shift(volume, Gear::Rising),
            _ if self.random.below(3) == 0 => self.done(store.settle(volume))?,
            _ => _ = self.done(store.copy_stale(volume, Sectors(9)))?,
        }
        Ok(())
    }

    fn drives(store: &Store, state: impl Fn(MemberState) -> bool) -> Vec<String> {
        let members = store.status().into_iter();
        members
            .filter(|member| member.file.is_some() && state(member.state))
            .map(|member| member.member)
            .collect()
    }

    /// True if one more drive may fail. A volume under rebuild may lose all of its drives.
    fn survives_one_more(&self, store: &Store) -> bool {
        let all = store.status();
        let (drives, volumes): (Vec<_>, Vec<_>) = all
            .iter()
            .filter(|member| !member.is_alive())
            .partition(|member| member.file.is_some());
        volumes.is_empty() && drives.len() < self.sample.tolerance
    }

    fn fail_one(&mut self, store: &mut Store) -> Result<(), Dark> {
        if !self.survives_one_more(store) {
            return Ok(());
        }
        let alive = Life::drives(store, |state| state == MemberState::Alive);
        let drive = path(&alive[self.random.below(alive.len() as u64) as usize]);
        self.done(store.fail_member(&drive))
    }

    /// Restores a failed drive, or continues to fill one.
    fn refill(&mut self, store: &mut Store) -> Result<(), Dark> {
        let failed = Life::drives(store, |state| state == MemberState::Failed);
        let filling = store.status().into_iter();
        let filling = filling.filter(|member| member.filled().is_some());
        let filling: Vec<String> = filling.map(|member| member.member).collect();
        // Members are filled only in the high gear.
        let geared = store.geared();
        for volume in geared {
            match store.gear(&volume) {
                Some(Gear::High) => {}
                Some(Gear::Low) => _ = store.begin_shift(&volume, Gear::Rising),
                _ => self.done(store.settle(&volume))?,
            }
            // The shift goes on in a later step.
            if store.gear(&volume) != Some(Gear::High) {
                return Ok(());
            }
        }
        if let Some(member) = filling.first() {
            let upto = if self.random.below(2) == 0 {
                u64::MAX
            } else {
                self.random.below(80)
            };
            self.done(store.rebuild_member(&path(member), Sectors(upto)))?;
            self.tally.refilled += 1;
        } else if let Some(member) = failed.first() {
            self.done(store.restore_member(&path(member)))?;
        }
        Ok(())
    }

    /// Runs steps until power fails and comes back. Returns the number of wrong sectors.
    fn until_power_fails(&mut self, mut store: Store) -> (Store, u64) {
        let left = 5 + self.random.below(400) as i64;
        self.power.0.store(left, SeqCst);
        while self.step(&mut store).is_ok() {}
        self.tally.losses += 1;
        let parity = states::any_parity(&store.root);
        drop(store);
        self.lose_power();
        self.power.0.store(i64::MAX, SeqCst);
        self.take_one_away(parity);
        self.come_back()
    }

    /// Takes a member away, if the volume survives the loss according to its records. The volume
    /// must keep copies only, or use the journal: for all changes, or because a parity volume
    /// lacked a member already.
    fn take_one_away(&mut self, parity: bool) {
        let own = Arc::clone(&self.shelf.own) as Arc<dyn Device>;
        // From the device and not from the store: only the durable records count after a loss of
        // power.
        let Ok(Some(kept)) = StoredDescription::read(own) else {
            return;
        };
        let members = &kept.description().members;
        let is_alive = |member: &MemberRecord| member.state == StateRecord::Alive;
        let volumes = members
            .iter()
            .filter(|member| member.file.is_none())
            .all(is_alive);
        let drives = members.iter().filter(|member| member.file.is_some());
        let (alive, out): (Vec<_>, Vec<_>) = drives.partition(|member| is_alive(member));
        self.tally.degraded += u64::from(!out.is_empty());
        let root = StoreNode::new((self.sample.shape)(), &mut Vec::new());
        let journalled = states::any_degraded_parity(&root, &mut members.iter());
        let safe = !parity || journalled || self.journal == JournalScope::All;
        let survived = volumes && out.len() < self.sample.tolerance;
        if safe && survived && self.random.below(3) == 0 {
            let gone = &alive[self.random.below(alive.len() as u64) as usize].path;
            // Emptied as well, so that nothing on it can be used by mistake.
            self.shelf.members[gone].clear_unpowered();
            self.shelf.gone.insert(gone.clone());
            self.tally.missing += 1;
        }
    }
}

/// Runs the lives of one volume. Returns the number of wrong sectors after losses of power.
fn live(sample: VolumeSample, seed: u64, losses: u64, left_out: OmittedPiece) -> (PowerTally, u64) {
    live_with(JournalScope::Degraded, sample, seed, losses, left_out)
}

fn live_with(
    journal: JournalScope,
    sample: VolumeSample,
    seed: u64,
    losses: u64,
    left_out: OmittedPiece,
) -> (PowerTally, u64) {
    let mut life = Life {
        journal,
        ..Life::new(sample, seed, left_out)
    };
    let mut store = life.open().unwrap_or_else(|error| panic!("{error}"));
    let mut all_wrong = 0;
    for _ in 0..losses {
        if left_out == OmittedPiece::Journal {
            // For each life of the store again, because the store switches the journal on where a
            // member is missing.
            store.journalled = false;
        }
        let (next, wrong) = life.until_power_fails(store);
        store = next;
        all_wrong += wrong;
    }
    (life.tally, all_wrong)
}

fn lives() -> u64 {
    let lives = std::env::var("FULLSTROKE_POWER").ok();
    lives.and_then(|lives| lives.parse().ok()).unwrap_or(4)
}

#[test]
fn no_loss_of_power_costs_what_was_synced_on_any_layout() {
    for &sample in SAMPLES {
        let mut all = PowerTally::default();
        for seed in 0..lives() {
            let (tally, wrong) = live(sample, seed, 25, OmittedPiece::Nothing);
            assert_eq!(wrong, 0, "{} seed {seed}: sectors lost", sample.name);
            all.losses += tally.losses;
            all.degraded += tally.degraded;
            all.missing += tally.missing;
            all.refilled += tally.refilled;
            all.replayed += tally.replayed;
            all.while_opened += tally.while_opened;
            all.in_gears += tally.in_gears;
        }
        println!("{}: {all:?}", sample.name);
        let redundant = sample.tolerance > 0;
        assert!(
            !redundant || all.degraded > 0 && all.refilled > 0,
            "{}: {all:?}",
            sample.name
        );
    }
}

#[test]
fn with_a_journal_of_all_changes_a_member_may_be_lost_together_with_power() {
    for &sample in SAMPLES {
        let root = StoreNode::new((sample.shape)(), &mut Vec::new());
        if sample.tolerance == 0 || !states::any_parity(&root) {
            continue;
        }
        let mut all = PowerTally::default();
        for seed in 0..lives() {
            let (tally, wrong) =
                live_with(JournalScope::All, sample, seed, 12, OmittedPiece::Nothing);
            assert_eq!(wrong, 0, "{} seed {seed}: sectors lost", sample.name);
            all.losses += tally.losses;
            all.missing += tally.missing;
            all.replayed += tally.replayed;
        }
        println!("{}: {all:?}", sample.name);
        assert!(
            all.missing > 0 && all.replayed > 0,
            "{}: {all:?}",
            sample.name
        );
    }
    let sample = sample("raid5");
    let costs = |seed| live_with(JournalScope::All, sample, seed, 20, OmittedPiece::Journal).1 > 0;
    assert!((0..40).any(costs), "the journal is not needed");
}

#[test]
fn without_a_flush_or_a_journal_a_loss_of_power_costs_what_was_synced() {
    for left_out in [OmittedPiece::Flushes, OmittedPiece::Journal] {
        let costs = (0..40).any(|seed| live(sample("raid5"), seed, 20, left_out).1 > 0);
        assert!(costs, "{left_out:?} is not needed");
    }
}
