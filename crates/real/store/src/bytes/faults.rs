//! A store on media that fail, at random, from a seed.
//!
//! # The fault model
//! A medium is a disk with a volatile cache, as the host shows it to a process:
//!
//! - **Reads** fail in sectors that have gone bad (`EIO`), every time, until they are written: a
//!   disk puts another sector in their place then.
//! - **Writes** fail with `EIO` after any part of them was made (torn at a sector), or with
//!   `ENOSPC`, likewise.
//! - **Syncs** fail with `EIO`. Each sector that was written since the last sync is then as new or
//!   as old, by chance. The next sync succeeds nevertheless, as Linux does after it could not write
//!   pages back.
//! - **Death**: from some moment on a disk answers everything with `EIO`.
//! - **Kill**: the process ends between two requests; the media keep everything. The progress of
//!   rebuilds since the last sync is lost. So another disk that fails counts as one more failure.
//! - **Power loss**: each sector that was written since the last sync is as new or as old, by
//!   chance. Power is lost only while all members are alive and recorded as alive. The tests in
//!   `power.rs` cover degraded volumes, where the store's own device loses power as well.
//!
//! Not in the model: a medium that returns other bytes than it was given without an error, since no
//! data has check sums; writes that are torn within a sector; faults of the files beside the media,
//! each of which is tested on its own.
//!
//! # Requirements
//! With faults of as many members at once as the layout survives, every read is answered, every
//! flush succeeds, and a read returns the latest data. After a refused write a sector is old or
//! new, and may change between both until it can be mended. After a power loss an unflushed sector
//! is old or new as well. With faults of all members at once, reads return the same data or an
//! error, and never anything else. The message of every failure contains the seed;
//! `FULLSTROKE_FAULTS` sets the number of seeds for each volume (default 6).

use crate::bytes::description::MemberRecord;
use crate::bytes::opening::DeviceSource;
use crate::bytes::samples::{SAMPLES, VolumeSample, folder, path, pattern};
use crate::bytes::{MemberStatus, Opening, Store, StoreError};
use crate::label::{self, Label};
use crate::{Device, MemoryDevice};
use fullstroke_contract::{Extent, Gear};
use fullstroke_units::{Lbn, Random, Sectors, Seed};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// Rates of faults, per thousand operations.
#[derive(Clone, Copy, Default)]
struct FaultRates {
    write: u64,
    room: u64,
    sync: u64,
}

struct FaultyDisk {
    now: MemoryDevice,
    /// Durable content of the sectors with unsynced writes.
    durable: BTreeMap<u64, [u8; 512]>,
    bad: BTreeSet<u64>,
    dead: bool,
    rates: FaultRates,
    random: Random,
}

type SharedDisk = Arc<Mutex<FaultyDisk>>;

struct Faulty(String, SharedDisk);

fn broken<T>() -> io::Result<T> {
    Err(io::Error::from_raw_os_error(
        rustix::io::Errno::IO.raw_os_error(),
    ))
}

impl FaultyDisk {
    fn new(bytes: u64, random: Random) -> FaultyDisk {
        let (durable, bad) = (BTreeMap::new(), BTreeSet::new());
        FaultyDisk {
            now: MemoryDevice::new(bytes),
            durable,
            bad,
            dead: false,
            rates: FaultRates::default(),
            random,
        }
    }

    fn happens(&mut self, of_a_thousand: u64) -> bool {
        of_a_thousand > 0 && self.random.below(1000) < of_a_thousand
    }

    fn is_sound(&self) -> bool {
        let FaultRates { write, room, sync } = self.rates;
        !self.dead && self.bad.is_empty() && write + room + sync == 0
    }

    /// Decides how many sectors of a change are made, and how the change ends.
    fn change(&mut self, extent: Extent) -> (Sectors, io::Result<()>) {
        if self.dead {
            return (Sectors::ZERO, broken());
        }
        let result = if self.happens(self.rates.write) {
            broken()
        } else if self.happens(self.rates.room) {
            Err(io::ErrorKind::StorageFull.into())
        } else {
            Ok(())
        };
        let all = extent.sectors.0;
        let made = if result.is_ok() {
            all
        } else {
            self.random.below(all + 1)
        };
        for lbn in extent.start.0..extent.start.0 + made {
            let mut before = [0; 512];
            self.now.read(lbn * 512, &mut before).unwrap();
            // The first version since the last sync: later ones were never durable.
            self.durable.entry(lbn).or_insert(before);
            self.bad.remove(&lbn);
        }
        (Sectors(made), result)
    }

    /// Makes each unsynced sector old or new.
    fn forget(&mut self) {
        for (lbn, before) in std::mem::take(&mut self.durable) {
            if self.random.chance(0.5) {
                self.now.write(lbn * 512, &before).unwrap();
            }
        }
    }
}

impl Device for Faulty {
    fn name(&self) -> String {
        format!("member {}", self.0)
    }
    fn bytes(&self) -> u64 {
        self.1.lock().unwrap().now.bytes()
    }
    fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        let disk = self.1.lock().unwrap();
        let (first, end) = (at / 512, (at + into.len() as u64) / 512);
        if disk.dead || disk.bad.range(first..end).next().is_some() {
            // A failed read may leave anything in the buffer, and nobody may use it.
            into.fill(0xEE);
            return broken();
        }
        disk.now.read(at, into)
    }
    fn write(&self, at: u64, from: &[u8]) -> io::Result<()> {
        let mut disk = self.1.lock().unwrap();
        let (made, result) = disk.change(Extent::new(at / 512, from.len() as u64 / 512));
        disk.now.write(at, &from[..made.bytes().0 as usize])?;
        result
    }
    fn zero(&self, at: u64, bytes: u64, hole: bool) -> io::Result<()> {
        let mut disk = self.1.lock().unwrap();
        let (made, result) = disk.change(Extent::new(at / 512, bytes / 512));
        disk.now.zero(at, made.bytes().0, hole)?;
        result
    }
    fn next_data(&self, at: u64, bytes: u64) -> io::Result<Option<Range<u64>>> {
        self.1.lock().unwrap().now.next_data(at, bytes)
    }
    /// Replaces the disk with a sound empty one.
    fn clear(&self) -> io::Result<()> {
        let mut disk = self.1.lock().unwrap();
        // The new disk goes on with the random numbers, so that a seed repeats the whole trial.
        let random = disk.random.clone();
        *disk = FaultyDisk::new(disk.now.bytes(), random);
        Ok(())
    }
    fn flush(&self) -> io::Result<()> {
        let mut disk = self.1.lock().unwrap();
        let rate = disk.rates.sync;
        if disk.dead || disk.happens(rate) {
            disk.forget();
            return broken();
        }
        disk.durable.clear();
        Ok(())
    }
}

/// Disks with a longer life than the store.
struct Disks {
    disks: BTreeMap<String, SharedDisk>,
    seed: u64,
}

impl DeviceSource for Disks {
    fn complaint(&self, _: &MemberRecord, _: Option<Label>) -> Option<String> {
        None
    }
    fn member(&mut self, member: &MemberRecord) -> Result<Arc<dyn Device>, StoreError> {
        let bytes = member.bytes() + label::BYTES;
        let random = Seed(self.seed).stream(&member.path);
        let new = || Arc::new(Mutex::new(FaultyDisk::new(bytes, random)));
        let disk = self.disks.entry(member.path.clone()).or_insert_with(new);
        Ok(Arc::new(Faulty(member.path.clone(), Arc::clone(disk))))
    }
}

/// A volume on such disks, and the data allowed in each sector.
struct FaultTrial {
    sample: VolumeSample,
    folder: tempfile::TempDir,
    disks: Disks,
    store: Option<Store>,
    random: Random,
    version: u64,
    /// For each sector, the writes whose bytes may be there now.
    may: Vec<Vec<u64>>,
    /// As `may`, after a loss of power now.
    after_power_loss: Vec<Vec<u64>>,
    /// Disks with failures since all members were alive.
    faulty: BTreeSet<String>,
    /// True if errors are allowed, because more disks fail than the layout survives.
    anything_goes: bool,
    refused: u64,
    dropped: u64,
}

fn content(lbn: u64, version: u64) -> Vec<u8> {
    // Every fifth version is zeros, so that zeroing requests have contents that the model knows.
    if version.is_multiple_of(5) {
        vec![0; 512]
    } else {
        pattern(lbn, 1, version)
    }
}

impl FaultTrial {
    fn new(sample: VolumeSample, seed: u64) -> FaultTrial {
        let mut trial = FaultTrial {
            sample,
            folder: folder(),
            disks: Disks {
                disks: BTreeMap::new(),
                seed,
            },
            store: None,
            random: Seed(seed).stream("trial"),
            version: 0,
            may: Vec::new(),
            after_power_loss: Vec::new(),
            faulty: BTreeSet::new(),
            anything_goes: false,
            refused: 0,
            dropped: 0,
        };
        trial.open();
        let capacity = trial.store().capacity().0 as usize;
        trial.may = vec![vec![0]; capacity];
        trial.after_power_loss = trial.may.clone();
        trial
    }

    fn store(&mut self) -> &mut Store {
        self.store.as_mut().unwrap()
    }

    fn open(&mut self) {
        self.store = None;
        let shape = (self.sample.shape)();
        let opened = Store::open_in(
            self.folder.path(),
            &mut self.disks,
            shape,
            "digest",
            Opening::default(),
        );
        self.store = Some(
            opened
                .unwrap_or_else(|error| panic!("{}: {error}", self.what()))
                .0,
        );
    }

    fn what(&self) -> String {
        format!(
            "{} seed {} version {}",
            self.sample.name, self.disks.seed, self.version
        )
    }

    fn some_extent(&mut self) -> Extent {
        let capacity = self.may.len() as u64;
        let start = self.random.below(capacity);
        let most = if self.random.chance(0.6) { 8 } else { 90 };
        Extent::new(start, (1 + self.random.below(most)).min(capacity - start))
    }

    fn all_alive(&mut self) -> bool {
        self.store().status().iter().all(|member| member.is_alive())
    }

    fn step(&mut self) {
        match self.random.below(100) {
            0..45 => self.write(),
            45..75 => self.read(),
            75..83 => self.flush(),
            83..86 => self.tidy(),
            86..90 => self.goes_bad(),
            90..93 => self.kill(),
            93..95 => self.lose_power(),
            _ => self.see_to_members(),
        }
        self.dropped += self.store().take_dropped().len() as u64;
    }

    fn write(&mut self) {
        self.version += 1;
        let (extent, version) = (self.some_extent(), self.version);
        let result = if version.is_multiple_of(5) {
            let may_punch = self.random.chance(0.5);
            self.store()
                .write_zeroes(extent.start, extent.sectors, may_punch)
        } else {
            let bytes: Vec<u8> = (extent.start.0..extent.end().0)
                .flat_map(|lbn| content(lbn, version))
                .collect();
            self.store().write(extent.start, &bytes)
        };
        let sectors = extent.start.0 as usize..extent.end().0 as usize;
        match &result {
            Ok(()) => self.may[sectors.clone()].fill(vec![version]),
            Err(error) => {
                let allowed = self.anything_goes || error.is_out_of_space();
                assert!(allowed, "{}: {extent:?} {error}", self.what());
                self.refused += 1;
                self.may[sectors.clone()]
                    .iter_mut()
                    .for_each(|may| may.push(version));
            }
        }
        self.after_power_loss[sectors]
            .iter_mut()
            .for_each(|may| may.push(version));
    }

    fn read(&mut self) {
        let extent = self.some_extent();
        self.look(extent);
    }

    fn look(&mut self, extent: Extent) {
        let mut bytes = vec![0xEE; extent.sectors.bytes().0 as usize];
        if let Err(error) = self.store().read(extent.start, &mut bytes) {
            assert!(self.anything_goes, "{}: {extent:?} {error}", self.what());
            return;
        }
        let settled = self.store().unsettled.is_empty();
        for (lbn, held) in (extent.start.0..).zip(bytes.chunks(512)) {
            let may = &self.may[lbn as usize];
            let found = may
                .iter()
                .copied()
                .find(|&version| held == content(lbn, version));
            let held = (0..=self.version)
                .rev()
                .find(|&version| held == content(lbn, version));
            assert!(
                found.is_some(),
                "{}: LBN {lbn} holds {held:?}, none of {may:?}",
                self.what()
            );
            // Until the store has mended a refused write, another read may still find the other
            // version.
            if settled {
                self.may[lbn as usize] = found.into_iter().collect();
            }
        }
    }

    fn flush(&mut self) {
        match self.store().sync() {
            Ok(()) => self.after_power_loss.clone_from(&self.may),
            Err(error) => assert!(self.anything_goes, "{}: {error}", self.what()),
        }
    }

    fn tidy(&mut self) {
        let now = std::time::Duration::from_secs(self.version);
        let done = self.store().tidy(now);
        let allowed =
            self.anything_goes || done.as_ref().err().is_none_or(StoreError::is_out_of_space);
        assert!(allowed, "{}: {done:?}", self.what());
    }

    /// Makes a disk begin to fail, or a failing one worse.
    fn goes_bad(&mut self) {
        let names: Vec<String> = self.disks.disks.keys().cloned().collect();
        self.faulty
            .retain(|name| !self.disks.disks[name].lock().unwrap().is_sound());
        let name = names[self.random.below(names.len() as u64) as usize].clone();
        let tolerated = if self.anything_goes {
            names.len()
        } else {
            self.sample.tolerance.min(2)
        };
        let all_alive = self.all_alive() || self.anything_goes;
        if !self.faulty.contains(&name) && (self.faulty.len() >= tolerated || !all_alive) {
            return;
        }
        self.faulty.insert(name.clone());
        let mut disk = self.disks.disks[&name].lock().unwrap();
        match self.random.below(5) {
            0 => {
                disk.rates = FaultRates {
                    write: 40,
                    ..FaultRates::default()
                }
            }
            1 => {
                disk.rates = FaultRates {
                    room: 100,
                    ..FaultRates::default()
                }
            }
            2 => {
                disk.rates = FaultRates {
                    sync: 300,
                    ..FaultRates::default()
                }
            }
            3 => {
                let bad: Vec<u64> = (0..1 + self.random.below(6))
                    .map(|_| self.random.below(60))
                    .collect();
                disk.bad.extend(bad);
            }
            _ => disk.dead = true,
        }
    }

    /// True if some disk has unreadable sectors. A comparison would stop there.
    fn has_bad_sectors(&self) -> bool {
        let bad = |disk: &SharedDisk| {
            disk.lock()
                .map(|disk| disk.dead || !disk.bad.is_empty())
                .unwrap()
        };
        self.disks.disks.values().any(bad)
    }

    /// After a kill, a filled member counts as empty unless the filling is recorded. Another
    /// failing disk may be one too many for the layout.
    fn kill(&mut self) {
        self.faulty
            .retain(|name| !self.disks.disks[name].lock().unwrap().is_sound());
        let too_many = self.store().records_lag() && !self.faulty.is_empty() && !self.anything_goes;
        if !self.has_bad_sectors() && !too_many {
            self.spare_the_opening(FaultTrial::open);
        }
    }

    fn lose_power(&mut self) {
        if self.has_bad_sectors() || !self.all_alive() || self.store().records_lag() {
            return;
        }
        self.disks
            .disks
            .values()
            .for_each(|disk| disk.lock().unwrap().forget());
        for (may, later) in self.may.iter_mut().zip(&self.after_power_loss) {
            may.extend(later);
        }
        self.spare_the_opening(FaultTrial::open);
        // The opening made this data durable.
        self.look(Extent::new(0, self.may.len() as u64));
        self.flush();
    }

    /// Opens the store without faults. An opening may end in an error during the flush of mended
    /// data; another test covers that.
    fn spare_the_opening(&mut self, open: impl FnOnce(&mut FaultTrial)) {
        let quiet = |disk: &SharedDisk| std::mem::take(&mut disk.lock().unwrap().rates);
        let rates: Vec<FaultRates> = self.disks.disks.values().map(quiet).collect();
        open(self);
        for (disk, rates) in self.disks.disks.values().zip(rates) {
            disk.lock().unwrap().rates = rates;
        }
    }

    /// Replaces failed members, and fills them.
    fn see_to_members(&mut self) {
        let failed = self
            .store()
            .status()
            .into_iter()
            .filter(MemberStatus::has_failed);
        for member in failed
            .map(|member| path(&member.member))
            .collect::<Vec<_>>()
        {
            // The disk may fail again at once; the trial goes on with what is left.
            let _ = self.store().restore_member(&member);
        }
        let empty = self
            .store()
            .status()
            .into_iter()
            .filter(|member| member.filled().is_some());
        for member in empty.map(|member| path(&member.member)).collect::<Vec<_>>() {
            let _ = self.store().rebuild_member(&member, Sectors(u64::MAX));
        }
    }

    fn finish(&mut self) {
        for disk in self.disks.disks.values() {
            disk.lock().unwrap().rates = FaultRates::default();
        }
        if self.store().stopped().is_none() {
            while matches!(
                self.store().tidy(std::time::Duration::ZERO),
                Ok(crate::bytes::TidyWork::Again)
            ) {}
        }
        self.look(Extent::new(0, self.may.len() as u64));
        for lbn in 0..self.may.len() as u64 {
            self.look(Extent::new(lbn, 1));
        }
        if !self.anything_goes {
            let found = self.store().scrub();
            let found = found.unwrap_or_else(|error| panic!("{}: {error}", self.what()));
            assert_eq!(found.mismatched_sectors, 0, "{}", self.what());
        }
    }
}

fn seeds() -> u64 {
    std::env::var("FULLSTROKE_FAULTS")
        .ok()
        .and_then(|seeds| seeds.parse().ok())
        .unwrap_or(6)
}

#[test]
fn what_the_layout_survives_costs_no_data_no_flush_and_no_read() {
    let (mut dropped, mut refused) = (0, 0);
    for &sample in SAMPLES.iter().filter(|sample| sample.tolerance > 0) {
        for seed in 0..seeds() {
            let mut trial = FaultTrial::new(sample, seed);
            (0..400).for_each(|_| trial.step());
            trial.finish();
            (dropped, refused) = (dropped + trial.dropped, refused + trial.refused);
        }
    }
    assert!(
        dropped > 0 && refused > 0,
        "{dropped} members were dropped, {refused} writes refused"
    );
}

#[test]
fn what_no_layout_survives_is_an_error_and_never_wrong() {
    for &sample in SAMPLES {
        for seed in 0..seeds() {
            let mut trial = FaultTrial::new(sample, seed);
            trial.anything_goes = true;
            for _ in 0..300 {
                trial.step();
                if trial.store().stopped().is_some() {
                    break;
                }
            }
            trial.finish();
        }
    }
}

#[test]
fn a_sync_that_failed_stops_a_store_without_redundancy_for_good() {
    let mut trial = FaultTrial::new(crate::bytes::samples::sample("raid0"), 1);
    trial.anything_goes = true;
    trial.write();
    let disks: Vec<SharedDisk> = trial.disks.disks.values().cloned().collect();
    disks
        .iter()
        .for_each(|disk| disk.lock().unwrap().rates.sync = 1000);
    while trial.store().stopped().is_none() {
        trial.write();
        assert!(
            matches!(trial.store().sync(), Err(StoreError::Stopped { .. })) || trial.refused > 0
        );
    }
    disks
        .iter()
        .for_each(|disk| disk.lock().unwrap().rates.sync = 0);
    assert!(
        matches!(trial.store().sync(), Err(StoreError::Stopped { .. })),
        "also the next"
    );
    assert!(matches!(
        trial.store().read(Lbn(0), &mut [0; 512]),
        Err(StoreError::Stopped { .. })
    ));
    assert!(matches!(
        trial.store.take().unwrap().close(),
        Err(StoreError::Stopped { .. })
    ));
}

#[test]
fn a_full_disk_below_a_degraded_volume_does_not_stop_reads_and_room_mends_it() {
    let mut trial = FaultTrial::new(crate::bytes::samples::sample("raid5"), 1);
    trial.version = 1;
    trial.write();
    trial.store().fail_member(&[4]).unwrap();
    let full = |trial: &FaultTrial, rate| {
        trial
            .disks
            .disks
            .values()
            .for_each(|disk| disk.lock().unwrap().rates.room = rate);
    };
    full(&trial, 1000);
    trial.version += 1;
    trial.write();
    assert_eq!(trial.refused, 1);
    trial.look(Extent::new(0, trial.may.len() as u64));
    full(&trial, 0);
    trial.write();
    trial.finish();
}

#[test]
fn a_change_that_one_copy_has_no_room_for_and_another_cannot_compute_is_made_all_the_same() {
    for lbn in 6..10 {
        let mut trial = FaultTrial::new(crate::bytes::samples::sample("raid5 in raid1"), 1);
        let disk = |trial: &FaultTrial, name: &str| Arc::clone(&trial.disks.disks[name]);
        disk(&trial, "1.0").lock().unwrap().rates.room = 1000;
        disk(&trial, "0.2").lock().unwrap().bad.extend(0..60);
        trial.version = 1;
        trial.store().write(Lbn(lbn), &content(lbn, 1)).unwrap();
        trial.may[lbn as usize] = vec![1];
        trial.finish();
    }
}

#[test]
fn an_unreadable_sector_in_the_low_gear_is_computed_from_the_data_of_that_gear() {
    for (name, active) in [("paraid", 4), ("e-paraid", 4)] {
        let mut trial = FaultTrial::new(crate::bytes::samples::sample(name), 1);
        let capacity = trial.may.len() as u64;
        trial
            .store()
            .write(Lbn(0), &pattern(0, capacity, 1))
            .unwrap();
        assert!(trial.store().begin_shift(&[], Gear::Falling));
        trial.store().settle(&[]).unwrap();
        assert_eq!(trial.store().gear(&[]), Some(Gear::Low));
        // The standing members keep the data of before.
        trial
            .store()
            .write(Lbn(0), &pattern(0, capacity, 2))
            .unwrap();
        for member in 0..active {
            let disk = Arc::clone(&trial.disks.disks[&member.to_string()]);
            for bad in 0..90 {
                disk.lock().unwrap().bad.insert(bad);
                let mut read = vec![0; capacity as usize * 512];
                trial.store().read(Lbn(0), &mut read).unwrap();
                assert!(read == pattern(0, capacity, 2), "{name} {member} {bad}");
                disk.lock().unwrap().bad.clear();
            }
        }
        assert!(trial.store().take_dropped().is_empty(), "{name}");
    }
}
