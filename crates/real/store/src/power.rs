//! Arrays lose power.
//!
//! The fault model, on simulated devices with volatile caches: at any write or flush of any device
//! all devices stop. Of the writes to a device since its last flush any sector may have landed or
//! not, in any of its versions. So writes land in any order, torn at any sector. Members may be
//! missing when the array is assembled again.
//!
//! The tests require two things. Each sector holds the data of the last answered flush, or newer
//! data. Parity and copies follow from the data once all members are present again. Tests with a
//! piece of the machinery left out show the need for each piece.

mod distrust;
mod full;
mod gears;
mod hangs;
mod late;
mod odd;
mod writers;

use crate::array::Sabotage;
use crate::assembly::assemble_without;
use crate::{
    Array, ArrayError, Design, Device, GearDirection, JournalPolicy, MemberName, RedundancyCheck,
    Repair, RequestScratch, assemble, create,
};
use fullstroke_contract::Gear;
use fullstroke_units::{Lbn, Sectors};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

const SECTOR: usize = 512;

/// splitmix64 (Steele, Lea, Flood, 2014).
pub(crate) struct SplitMix(pub(crate) u64);

impl SplitMix {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// Power of all devices: the number of remaining writes and flushes.
pub(crate) struct DevicePower(pub(crate) AtomicI64);

impl DevicePower {
    pub(crate) fn is_off(&self) -> bool {
        self.0.load(Ordering::SeqCst) < 0
    }
    fn use_some(&self) -> io::Result<()> {
        // The counter falls below 0 and stays there: later requests of other threads must fail as
        // well.
        if self.0.fetch_sub(1, Ordering::SeqCst) > 0 {
            Ok(())
        } else {
            Err(io::ErrorKind::BrokenPipe.into())
        }
    }
}

/// A device with a volatile cache.
pub(crate) struct Simulated {
    name: String,
    /// True if requests take time, so several threads meet.
    slow: AtomicBool,
    /// True if writes of superblocks do not begin.
    stuck: AtomicBool,
    power: Arc<DevicePower>,
    state: Mutex<Media>,
    /// True if all requests fail.
    pub(crate) dead: AtomicBool,
    /// True if every write fails, while reads and flushes work.
    read_only: AtomicBool,
    /// Number of reads, writes and flushes.
    touched: AtomicU64,
    /// True if every write fails, because the file system has no room.
    pub(crate) is_full: AtomicBool,
    /// True if no request ever ends.
    pub(crate) hangs: AtomicBool,
}

#[derive(Clone, Default)]
struct Media {
    durable: Vec<u8>,
    current: Vec<u8>,
    /// For each unflushed sector, the versions written.
    cached: BTreeMap<usize, Vec<[u8; SECTOR]>>,
    /// Sectors unreadable until the next write.
    bad: BTreeSet<usize>,
}

impl Simulated {
    fn lock(&self) -> std::sync::MutexGuard<'_, Media> {
        self.state.lock().unwrap()
    }
    fn take_time(&self, micros: u64) {
        if self.slow.load(Ordering::Relaxed) {
            std::thread::sleep(std::time::Duration::from_micros(micros));
        }
    }
    fn check(&self) -> io::Result<()> {
        self.touched.fetch_add(1, Ordering::SeqCst);
        while self.hangs.load(Ordering::SeqCst) {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let dead = self.dead.load(Ordering::SeqCst) || self.power.is_off();
        if dead {
            Err(io::ErrorKind::NotConnected.into())
        } else {
            Ok(())
        }
    }
    pub(crate) fn lose_power(&self, random: &mut SplitMix, percent: u64) {
        let mut media = self.lock();
        let cached = std::mem::take(&mut media.cached);
        for (sector, versions) in cached {
            if random.chance(percent) {
                // An older version may land last, because a drive may order its cache as it likes
                // until a flush.
                let landed = &versions[random.below(versions.len() as u64) as usize];
                media.durable[sector * SECTOR..][..SECTOR].copy_from_slice(landed);
            }
            let sector = sector * SECTOR..(sector + 1) * SECTOR;
            let Media {
                durable, current, ..
            } = &mut *media;
            current[sector.clone()].copy_from_slice(&durable[sector]);
        }
    }
    /// Returns a copy of the device's content, to be restored later.
    fn backup(&self) -> Media {
        self.lock().clone()
    }
    fn restore(&self, backup: &Media) {
        *self.lock() = backup.clone();
    }
    /// Cuts the device, or extends the device by zeros.
    fn resize(&self, bytes: u64) {
        let mut media = self.lock();
        media.durable.resize(bytes as usize, 0);
        media.current.resize(bytes as usize, 0);
        media
            .cached
            .retain(|&sector, _| sector < bytes as usize / SECTOR);
    }
    /// Writes to the device as another program would, past the array.
    fn scribble(&self, at: u64, bytes: &[u8]) {
        let mut media = self.lock();
        media.durable[at as usize..][..bytes.len()].copy_from_slice(bytes);
        media.current[at as usize..][..bytes.len()].copy_from_slice(bytes);
    }
    /// Replaces the device with an empty one.
    pub(crate) fn clear_unpowered(&self) {
        let mut media = self.lock();
        let bytes = media.durable.len();
        *media = Media {
            durable: vec![0; bytes],
            current: vec![0; bytes],
            ..Media::default()
        };
    }
    pub(crate) fn corrupt_sector(&self, sector: usize) {
        self.lock().bad.insert(sector);
    }
}

impl Device for Simulated {
    fn name(&self) -> String {
        self.name.clone()
    }
    fn bytes(&self) -> u64 {
        self.lock().durable.len() as u64
    }
    fn is_zero(&self) -> bool {
        self.lock().current.iter().all(|&byte| byte == 0)
    }
    fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        self.check()?;
        let media = self.lock();
        let sectors = at as usize / SECTOR..(at as usize + into.len()) / SECTOR;
        if at as usize + into.len() > media.current.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if media.bad.range(sectors).next().is_some() {
            return Err(io::ErrorKind::InvalidData.into());
        }
        into.copy_from_slice(&media.current[at as usize..][..into.len()]);
        Ok(())
    }
    fn write(&self, at: u64, from: &[u8]) -> io::Result<()> {
        assert!(at.is_multiple_of(512) && from.len().is_multiple_of(512));
        self.check()?;
        if self.read_only.load(Ordering::SeqCst) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        if self.is_full.load(Ordering::SeqCst) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.take_time(10);
        // The two copies of the superblock lie at the beginning and at the end of a member.
        let superblock = at < 64 << 10 || at + (16 << 10) >= self.bytes();
        while superblock && self.stuck.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        // A request that is in progress when power fails may land in part.
        let result = self.power.use_some();
        let mut media = self.lock();
        for (index, sector) in from.chunks(SECTOR).enumerate() {
            let number = at as usize / SECTOR + index;
            media
                .cached
                .entry(number)
                .or_default()
                .push(sector.try_into().unwrap());
            // A drive gives an unreadable sector a spare one at the next write.
            media.bad.remove(&number);
        }
        media.current[at as usize..][..from.len()].copy_from_slice(from);
        result
    }
    fn trims(&self) -> bool {
        true
    }
    fn trim(&self, at: u64, bytes: u64) -> io::Result<()> {
        self.write(at, &vec![0; bytes as usize])
    }
    fn flush(&self) -> io::Result<()> {
        self.check()?;
        self.power.use_some()?;
        let mut media = self.lock();
        for sector in std::mem::take(&mut media.cached).into_keys() {
            let sector = sector * SECTOR..(sector + 1) * SECTOR;
            let Media {
                durable, current, ..
            } = &mut *media;
            durable[sector.clone()].copy_from_slice(&current[sector]);
        }
        // Released before the sleep, so that other threads read and write while the flush takes its
        // time.
        drop(media);
        self.take_time(60);
        Ok(())
    }
}

/// Allowed contents of sectors, as fingerprints; the last is the newest.
pub(crate) struct AllowedFingerprints(Vec<Vec<u64>>);

fn fingerprint(sector: &[u8]) -> u64 {
    let first = u64::from_le_bytes(sector[..8].try_into().unwrap());
    // The first word alone would take a torn sector for a whole one.
    first ^ u64::from(crc32fast::hash(sector)) << 20
}

pub(crate) fn fill(bytes: &mut [u8], mut tag: u64) {
    for sector in bytes.chunks_mut(SECTOR) {
        tag = tag.wrapping_mul(0x2545_F491_4F6C_DD1D).wrapping_add(1);
        sector
            .chunks_mut(8)
            .for_each(|word| word.copy_from_slice(&tag.to_le_bytes()));
    }
}

impl AllowedFingerprints {
    pub(crate) fn new(sectors: u64) -> AllowedFingerprints {
        AllowedFingerprints(vec![vec![fingerprint(&[0; SECTOR])]; sectors as usize])
    }
    pub(crate) fn write(&mut self, first: u64, bytes: &[u8]) {
        for (index, sector) in bytes.chunks(SECTOR).enumerate() {
            self.0[first as usize + index].push(fingerprint(sector));
        }
    }
    /// True if the sector may hold these bytes. Only these bytes are allowed from now on.
    pub(crate) fn takes(&mut self, sector: usize, bytes: &[u8]) -> bool {
        let found = fingerprint(bytes);
        let takes = self.0[sector].contains(&found);
        self.0[sector] = vec![found];
        takes
    }
    pub(crate) fn flushed(&mut self) {
        self.0
            .iter_mut()
            .for_each(|versions| drop(versions.drain(..versions.len() - 1)));
    }
    /// Checks the bytes after a loss of power: each sector must hold an allowed version, except the
    /// `excused` ones. Only these versions are allowed from now on.
    fn settle(&mut self, bytes: &[u8], excused: &dyn Fn(usize) -> bool) -> Result<(), String> {
        for (index, sector) in bytes.chunks(SECTOR).enumerate() {
            let found = fingerprint(sector);
            if !self.0[index].contains(&found) && !excused(index) {
                return Err(format!(
                    "sector {index} holds neither what was flushed nor anything written since"
                ));
            }
            self.0[index] = vec![found];
        }
        Ok(())
    }
    fn expect_latest(&self, bytes: &[u8]) -> Result<(), String> {
        let wrong = bytes
            .chunks(SECTOR)
            .enumerate()
            .find(|(index, sector)| self.0[*index].last() != Some(&fingerprint(sector)));
        wrong.map_or(Ok(()), |(index, _)| {
            Err(format!("sector {index} is not what was written last"))
        })
    }
}

struct Case {
    layout: &'static str,
    members: usize,
    chunk: u64,
    policy: JournalPolicy,
}

impl Case {
    /// Number of members that may be missing.
    fn survives(&self) -> usize {
        match self.layout {
            "raid0" | "jbod" | "lzvs" | "paraid of raid0" | "e-paraid of raid0" => 0,
            "raid6" => 2,
            _ => 1,
        }
    }
}

pub(crate) fn simulated(count: usize, bytes: usize) -> (Vec<Arc<Simulated>>, Arc<DevicePower>) {
    let power = Arc::new(DevicePower(AtomicI64::new(i64::MAX)));
    let device = |index: usize| {
        let media = Media {
            durable: vec![0; bytes],
            current: vec![0; bytes],
            ..Media::default()
        };
        let (power, name) = (Arc::clone(&power), format!("device {index}"));
        let slow = AtomicBool::new(false);
        let stuck = AtomicBool::new(false);
        Arc::new(Simulated {
            name,
            slow,
            stuck,
            power,
            state: Mutex::new(media),
            dead: AtomicBool::new(false),
            read_only: AtomicBool::new(false),
            touched: AtomicU64::new(0),
            is_full: AtomicBool::new(false),
            hangs: AtomicBool::new(false),
        })
    };
    ((0..count).map(device).collect(), power)
}

pub(crate) fn dynamic(devices: &[Arc<Simulated>]) -> Vec<Arc<dyn Device>> {
    devices
        .iter()
        .map(|device| Arc::clone(device) as Arc<dyn Device>)
        .collect()
}

pub(crate) fn design(layout: &str, chunk: u64, policy: JournalPolicy) -> Design {
    let keys = match layout {
        "raid1" | "jbod" => serde_json::json!({}),
        "lzvs" => serde_json::json!({ "zones": 4, "blocking": 1024 }),
        "paraid of raid0" => serde_json::json!({ "chunk": chunk, "level": "raid0" }),
        "e-paraid of raid0" => {
            serde_json::json!({ "chunk": chunk, "level": "raid0", "cluster": 3 })
        }
        "paraid, 4 turn" => serde_json::json!({ "chunk": chunk, "active": 4 }),
        "e-paraid, 4 turn" => serde_json::json!({ "chunk": chunk, "active": 4, "cluster": 3 }),
        _ => serde_json::json!({ "chunk": chunk }),
    };
    Design {
        name: "test".into(),
        layout: layout.split([',', ' ']).next().unwrap_or_default().into(),
        keys: keys.as_object().unwrap().clone(),
        journal: policy,
        spares: 0,
        force: false,
        sparse: true,
        member_bytes: Some(96 << 10),
        // Small regions, so an unmarked region is not marked by accident with another.
        region_bytes: Some(if layout.contains("paraid") {
            4 << 10
        } else {
            16 << 10
        }),
        measured: Vec::new(),
    }
}

/// One life of an array with one writer: several losses of power, members missing after
/// some.
fn live(case: &Case, seed: u64, losses: u64, sabotage: Sabotage) -> Result<LossTally, String> {
    live_with(1, case, seed, losses, sabotage)
}

/// As `live`, with several writers, each in a thread.
fn live_with(
    writers: u64,
    case: &Case,
    seed: u64,
    losses: u64,
    sabotage: Sabotage,
) -> Result<LossTally, String> {
    let mut random = SplitMix(seed);
    let (devices, power) = simulated(case.members, 1300 << 10);
    let mut design = design(case.layout, case.chunk, case.policy);
    // Members of different sizes end in different places of a row.
    design.member_bytes = Some((64 + 8 * random.below(5)) << 10);
    let told = |error: ArrayError| error.to_string();
    create(&design, &dynamic(&devices)).map_err(told)?;
    let mut life = Life {
        case,
        devices,
        power,
        random,
        model: AllowedFingerprints::new(0),
        loose: BTreeSet::new(),
        died: None,
        gear: None,
        tally: LossTally::default(),
        sabotage,
    };
    let (array, _) = assemble_without(&dynamic(&life.devices), false, sabotage).map_err(told)?;
    life.model = AllowedFingerprints::new(array.capacity().0);
    let mut array = array;
    array.shift.set_step(COPIED);
    for _ in 0..losses {
        array = life.until_power_fails(array, writers)?;
    }
    Ok(life.tally)
}

#[derive(Clone, Copy, Debug, Default)]
struct LossTally {
    losses: u64,
    missing: u64,
    died: u64,
    replayed: u64,
    compared: u64,
    writes: u64,
    /// Number of flushes by several writers.
    flushes: u64,
    /// Number of zeroed sectors.
    trimmed: u64,
    /// Number of times that each gear was entered.
    low: u64,
    high: u64,
    /// Losses of power in the high, falling, low and rising gear.
    in_gear: [u64; 4],
}

/// Size of a step of a shift: so small that power fails within shifts.
const COPIED: Sectors = Sectors(24);

struct Life<'a> {
    case: &'a Case,
    devices: Vec<Arc<Simulated>>,
    power: Arc<DevicePower>,
    random: SplitMix,
    model: AllowedFingerprints,
    /// Rows written whole since the last flush.
    loose: BTreeSet<u64>,
    /// Device that died by itself.
    died: Option<usize>,
    /// Gear before the latest step: a loss of power looks like a member that fails.
    gear: Option<Gear>,
    tally: LossTally,
    sabotage: Sabotage,
}

impl Life<'_> {
    fn until_power_fails(&mut self, array: Array, writers: u64) -> Result<Array, String> {
        let mut worker = RequestScratch::one_by_one();
        let most = if writers > 1 { 240 } else { 120 };
        // A shift needs several times the writes of a request, and power should fail within shifts
        // too.
        let most = if array.gear().is_some() {
            3 * most
        } else {
            most
        };
        self.power
            .0
            .store(5 + self.random.below(most) as i64, Ordering::SeqCst);
        if writers > 1 {
            self.devices
                .iter()
                .for_each(|device| device.slow.store(true, Ordering::Relaxed));
            self.many_until_power_fails(&array, writers)?;
            self.devices
                .iter()
                .for_each(|device| device.slow.store(false, Ordering::Relaxed));
        } else {
            while self.step(&array, &mut worker)? {}
        }
        if let Some(gear) = self.gear.take() {
            self.tally.in_gear[gear as usize] += 1;
        }
        drop(array);
        self.tally.losses += 1;
        let percent = [0, 10, 50, 90, 100][self.random.below(5) as usize];
        for device in &self.devices {
            device.lose_power(&mut self.random, percent);
        }
        self.power.0.store(i64::MAX, Ordering::SeqCst);
        self.come_back(&mut worker)
    }

    /// Makes one random step. Returns false if power is gone. Standing members in the low gear
    /// learn nothing of the step.
    fn step(&mut self, array: &Array, worker: &mut RequestScratch) -> Result<bool, String> {
        let standing: Vec<usize> = (0..self.devices.len())
            .filter(|&slot| array.is_in_standby(slot))
            .collect();
        let touched = |devices: &[Arc<Simulated>]| -> Vec<u64> {
            standing
                .iter()
                .map(|&slot| devices[slot].touched.load(Ordering::SeqCst))
                .collect()
        };
        self.gear = array.gear();
        let before = touched(&self.devices);
        let goes_on = self.step_in_gear(array, worker)?;
        if standing.iter().all(|&slot| array.is_in_standby(slot))
            && touched(&self.devices) != before
        {
            return Err("something was asked of a member that stands".to_owned());
        }
        Ok(goes_on)
    }

    fn step_in_gear(&mut self, array: &Array, worker: &mut RequestScratch) -> Result<bool, String> {
        let sectors = array.capacity().0;
        // One death a life: RAID 6 would survive two, but the others of the list would not.
        if self.died.is_none() && self.case.survives() > 0 && self.random.chance(2) {
            let slot = self.random.below(self.devices.len() as u64) as usize;
            self.devices[slot].dead.store(true, Ordering::SeqCst);
            self.died = Some(slot);
            self.tally.died += 1;
        }
        let shifts = array.gear().is_some() && self.random.chance(40);
        let ended = match self.random.below(20) {
            _ if shifts => {
                let shifted = shift_on(array, worker, &mut self.random);
                self.tally.note(shifted.as_ref().ok().copied().flatten());
                shifted.map(drop)
            }
            0..3 => {
                let flushed = array.flush();
                if flushed.is_ok() {
                    self.model.flushed();
                    self.loose.clear();
                }
                flushed
            }
            3 => array.tidy(),
            4 => {
                let mut bytes = vec![0; sectors as usize * SECTOR];
                array
                    .read(worker, 0, &mut bytes)
                    .map(|()| self.model.expect_latest(&bytes))
                    .transpose_into()?
            }
            5 => self.trim(array, worker, sectors)?,
            _ => self.write(array, worker, sectors),
        };
        match ended {
            Ok(()) => Ok(true),
            Err(error) if self.power.0.load(Ordering::SeqCst) > 0 => {
                Err(format!("with power: {error}"))
            }
            Err(_) => Ok(false),
        }
    }

    fn write(
        &mut self,
        array: &Array,
        worker: &mut RequestScratch,
        sectors: u64,
    ) -> Result<(), ArrayError> {
        let row = array.facts.rows.map_or(64, |rows| rows.data.0);
        let random = &mut self.random;
        let length = match random.below(4) {
            0 => 1 + random.below(8),
            1 => 1 + random.below(row),
            2 => row,
            _ => 1 + random.below(3 * row),
        };
        let length = length.min(sectors);
        // Some places are written repeatedly.
        let room = sectors - length;
        let first = if random.chance(40) {
            random.below(room.min(2 * row) + 1)
        } else {
            random.below(room + 1)
        };
        let first = if random.chance(30) {
            (first / row * row).min(room)
        } else {
            first
        };
        let mut bytes = vec![0; length as usize * SECTOR];
        fill(&mut bytes, random.next());
        self.model.write(first, &bytes);
        // In the low gear all changes are journalled.
        if !array.reads_soft() {
            self.loose
                .extend(first.div_ceil(row)..(first + length) / row);
        }
        self.tally.writes += 1;
        array.write(worker, first * SECTOR as u64, &bytes)
    }

    /// Trims an extent. Each sector is zeros afterwards, or as before.
    fn trim(
        &mut self,
        array: &Array,
        worker: &mut RequestScratch,
        sectors: u64,
    ) -> Result<Result<(), ArrayError>, String> {
        let row = array.facts.rows.map_or(64, |rows| rows.data.0);
        let length = (1 + self.random.below(3 * row)).min(sectors);
        let first = self.random.below(sectors - length + 1);
        let zero = fingerprint(&[0; SECTOR]);
        for versions in &mut self.model.0[first as usize..(first + length) as usize] {
            // Before the newest, because the trim may also have left the sector as it was.
            versions.insert(versions.len() - 1, zero);
        }
        self.loose
            .extend(first.div_ceil(row)..(first + length) / row);
        let mut bytes = vec![0; length as usize * SECTOR];
        let at = first * SECTOR as u64;
        let trimmed = array.trim(worker, at, bytes.len() as u64);
        if let Err(error) = trimmed.and_then(|()| array.read(worker, at, &mut bytes)) {
            return Ok(Err(error));
        }
        for (versions, sector) in self.model.0[first as usize..]
            .iter_mut()
            .zip(bytes.chunks(SECTOR))
        {
            let found = fingerprint(sector);
            if found != zero && versions.last() != Some(&found) {
                return Err("a trimmed sector is neither zeros nor what it was".to_owned());
            }
            self.tally.trimmed += u64::from(versions.last() != Some(&found));
            versions.push(found);
        }
        Ok(Ok(()))
    }

    /// Assembles the array again, perhaps without a member at first.
    #[expect(
        clippy::too_many_lines,
        reason = "the steps of a return, one after the other"
    )]
    fn come_back(&mut self, worker: &mut RequestScratch) -> Result<Array, String> {
        let told = |error: ArrayError| error.to_string();
        let died = self.died.take();
        for device in &self.devices {
            device.dead.store(false, Ordering::SeqCst);
        }
        let back = self.random.chance(50);
        let absent = match self.random.below(3) {
            // The dead device may be back or not; it misses writes in either case.
            _ if died.is_some() && back => BTreeSet::new(),
            _ if self.case.survives() == 0 => BTreeSet::new(),
            _ if died.is_some() => died.into_iter().collect(),
            0 => BTreeSet::new(),
            1 => BTreeSet::from([self.random.below(self.devices.len() as u64) as usize]),
            _ if self.case.layout == "raid6" => {
                let mut one = || self.random.below(self.case.members as u64) as usize;
                BTreeSet::from([one(), one()])
            }
            _ => BTreeSet::from([self.random.below(self.devices.len() as u64) as usize]),
        };
        self.tally.missing += u64::from(!absent.is_empty());
        let mut present: Vec<Arc<dyn Device>> = dynamic(&self.devices);
        let away: Vec<Arc<dyn Device>> = absent
            .iter()
            .map(|&slot| Arc::clone(&present[slot]))
            .collect();
        let mut slot = 0;
        present.retain(|_| {
            slot += 1;
            !absent.contains(&(slot - 1))
        });
        let (mut array, report) = assemble_without(&present, true, self.sabotage).map_err(told)?;
        array.shift.set_step(COPIED);
        // A member that died may be failed at the return even if the device is there again: it
        // missed writes.
        if died.is_none() && report.newly_failed.len() > absent.len() {
            return Err(format!(
                "members count as failed that are here: {:?}",
                report.newly_failed
            ));
        }
        self.tally.replayed += report.replayed_changes;
        self.tally.compared += report.compared_regions;
        let mut bytes = vec![0; array.capacity().0 as usize * SECTOR];
        array.read(worker, 0, &mut bytes).map_err(told)?;
        let row = array.facts.rows.map_or(u64::MAX, |rows| rows.data.0);
        let lacking = !absent.is_empty() || array.planner().is_impaired();
        // The policy `partial` journals no rows that are written whole. If a member is missing
        // after a loss of power, its block of such a row may be neither old nor new.
        let usual = self.case.policy == JournalPolicy::Partial && lacking;
        let loose = std::mem::take(&mut self.loose);
        let excused = |sector: usize| usual && loose.contains(&(sector as u64 / row));
        self.model.settle(&bytes, &excused)?;
        // Some steps run while members are missing; then the members come back.
        for _ in 0..self.random.below(6) {
            let sectors = array.capacity().0;
            self.write(&array, worker, sectors).map_err(told)?;
        }
        let out = self
            .devices
            .iter()
            .enumerate()
            .filter(|(slot, _)| array.devices()[*slot].is_none());
        let out = out
            .filter(|(slot, _)| !absent.contains(slot))
            .map(|(_, device)| Arc::clone(device) as Arc<dyn Device>);
        for device in away.into_iter().chain(out.collect::<Vec<_>>()) {
            array.add(device, false).map_err(told)?;
        }
        while array.advance_maintenance(worker).map_err(told)? {}
        let mut found = RedundancyCheck::default();
        let mut next = Some(Lbn(0)).filter(|_| self.case.survives() > 0);
        while let Some(from) = next {
            next = array
                .scrub_step(worker, from, Repair::Nothing, &mut found)
                .map_err(told)?;
        }
        if found.mismatched_sectors > 0 {
            return Err(format!(
                "redundancy does not follow from the data: {found:?}"
            ));
        }
        array.read(worker, 0, &mut bytes).map_err(told)?;
        self.model.expect_latest(&bytes)?;
        array.flush().map_err(told)?;
        self.model.flushed();
        self.loose.clear();
        Ok(array)
    }
}

/// An error of the model fails the test; an error of the array is examined.
trait TransposeInto {
    fn transpose_into(self) -> Result<Result<(), ArrayError>, String>;
}

impl TransposeInto for Result<Result<(), String>, ArrayError> {
    fn transpose_into(self) -> Result<Result<(), ArrayError>, String> {
        match self {
            Ok(Ok(())) => Ok(Ok(())),
            Ok(Err(wrong)) => Err(wrong),
            Err(error) => Ok(Err(error)),
        }
    }
}

const CASES: &[Case] = &[
    Case {
        layout: "raid5",
        members: 4,
        chunk: 4096,
        policy: JournalPolicy::Partial,
    },
    Case {
        layout: "raid5",
        members: 3,
        chunk: 8192,
        policy: JournalPolicy::All,
    },
    Case {
        layout: "raid6",
        members: 5,
        chunk: 4096,
        policy: JournalPolicy::All,
    },
    Case {
        layout: "raid6",
        members: 4,
        chunk: 4096,
        policy: JournalPolicy::Partial,
    },
    Case {
        layout: "raid4",
        members: 4,
        chunk: 4096,
        policy: JournalPolicy::Partial,
    },
    Case {
        layout: "raid1",
        members: 2,
        chunk: 4096,
        policy: JournalPolicy::Partial,
    },
    Case {
        layout: "raid1",
        members: 3,
        chunk: 4096,
        policy: JournalPolicy::Partial,
    },
    Case {
        layout: "raid10",
        members: 4,
        chunk: 4096,
        policy: JournalPolicy::Partial,
    },
    Case {
        layout: "raid0",
        members: 3,
        chunk: 4096,
        policy: JournalPolicy::Partial,
    },
    Case {
        layout: "jbod",
        members: 3,
        chunk: 4096,
        policy: JournalPolicy::Partial,
    },
    Case {
        layout: "lzvs",
        members: 4,
        chunk: 4096,
        policy: JournalPolicy::Partial,
    },
];

const GEARED: &[Case] = &[
    Case {
        layout: "paraid",
        members: 4,
        chunk: 4096,
        policy: JournalPolicy::Partial,
    },
    Case {
        layout: "paraid, 4 turn",
        members: 6,
        chunk: 2048,
        policy: JournalPolicy::All,
    },
    Case {
        layout: "e-paraid, 4 turn",
        members: 6,
        chunk: 2048,
        policy: JournalPolicy::Partial,
    },
    Case {
        layout: "paraid of raid0",
        members: 4,
        chunk: 4096,
        policy: JournalPolicy::Partial,
    },
    Case {
        layout: "e-paraid of raid0",
        members: 4,
        chunk: 2048,
        policy: JournalPolicy::Partial,
    },
];

/// Number of lives, of five losses each. FULLSTROKE_LIVES raises the number.
fn lives() -> u64 {
    std::env::var("FULLSTROKE_LIVES")
        .ok()
        .and_then(|lives| lives.parse().ok())
        .unwrap_or(4)
}

/// Runs so many lives of arrays of all cases, with so many writers.
fn live_all(cases: &[Case], writers: u64, lives: u64) {
    for case in cases {
        let mut all = LossTally::default();
        for seed in 0..lives {
            let tally =
                live_with(writers, case, seed, 5, Sabotage::Nothing).unwrap_or_else(|error| {
                    panic!(
                        "{} of {}, {:?}, seed {seed}: {error}",
                        case.layout, case.members, case.policy
                    )
                });
            all.add(&tally);
        }
        eprintln!(
            "{writers} writers, {} of {}, {:?}: {all:?}",
            case.layout, case.members, case.policy
        );
    }
}

#[test]
fn what_was_flushed_is_there_after_any_loss_of_power_also_without_a_member() {
    live_all(CASES, 1, lives());
}

#[test]
fn what_several_writers_flushed_is_there_after_any_loss_of_power() {
    live_all(CASES, 4, lives().div_ceil(2));
}

#[test]
fn gears_keep_what_was_flushed_through_any_loss_of_power_also_without_a_member() {
    live_all(GEARED, 1, lives());
}

#[test]
fn gears_keep_what_several_writers_flushed_through_any_loss_of_power() {
    live_all(GEARED, 4, lives().div_ceil(2));
}

/// Some faults need several writers; the others occur with several writers too.
#[test]
fn without_a_piece_of_what_keeps_writers_apart_something_is_lost() {
    for sabotage in [
        Sabotage::FlushShared,
        Sabotage::JoinedEarly,
        Sabotage::RowsUnlocked,
        Sabotage::NoMarks,
        Sabotage::FailureForgotten,
    ] {
        // The seed does not fix the order of the threads, so that a fault shows only in some lives.
        let caught = (0..200).find(|&seed| {
            CASES[..4]
                .iter()
                .any(|case| live_with(4, case, seed, 5, sabotage).is_err())
        });
        eprintln!("{sabotage:?}: caught with seed {caught:?}");
        assert!(caught.is_some(), "{sabotage:?} was not caught");
    }
}

#[test]
fn without_a_piece_of_the_machinery_something_is_lost() {
    for sabotage in [
        Sabotage::JournalUnflushed,
        Sabotage::NoJournal,
        Sabotage::NoMarks,
        Sabotage::RetiredEarly,
        Sabotage::FailureForgotten,
    ] {
        let caught = (0..200).find(|&seed| {
            CASES[..4]
                .iter()
                .any(|case| live(case, seed, 5, sabotage).is_err())
        });
        eprintln!("{sabotage:?}: caught with seed {caught:?}");
        assert!(caught.is_some(), "{sabotage:?} was not caught");
    }
}

/// Begins a shift, or continues one. Returns the gear at its entry.
fn shift_on(
    array: &Array,
    worker: &mut RequestScratch,
    random: &mut SplitMix,
) -> Result<Option<Gear>, ArrayError> {
    let before = array.gear();
    let towards = match before {
        Some(Gear::High) => Some(GearDirection::Down),
        Some(Gear::Low) if random.chance(30) => Some(GearDirection::Up),
        _ => None,
    };
    match towards.map(|towards| array.shift(towards)) {
        // Members may be missing.
        None | Some(Ok(()) | Err(ArrayError::Refused(_))) => {}
        Some(Err(error)) => return Err(error),
    }
    for _ in 0..1 + random.below(4) {
        array.advance_maintenance(worker)?;
    }
    let now = array
        .gear()
        .filter(|gear| matches!(gear, Gear::High | Gear::Low));
    Ok(now.filter(|_| now != before))
}

/// Rarer faults are provoked in `power/gears.rs`.
#[test]
fn without_a_piece_of_what_keeps_gears_something_is_lost() {
    let mut uncaught = Vec::new();
    for (sabotage, writers) in [
        (Sabotage::GearUnrecorded, 1),
        (Sabotage::CopiesUnflushed, 1),
        (Sabotage::LowUnjournalled, 1),
        (Sabotage::GroupsUnlocked, 4),
    ] {
        let caught = (0..200).find_map(|seed| {
            GEARED
                .iter()
                .find_map(|case| Some((seed, live_with(writers, case, seed, 5, sabotage).err()?)))
        });
        eprintln!("{sabotage:?}: {caught:?}");
        uncaught.extend(caught.is_none().then_some(sabotage));
    }
    assert!(uncaught.is_empty(), "{uncaught:?} were not caught");
}

fn content(array: &Array, worker: &mut RequestScratch) -> Vec<u8> {
    let mut bytes = vec![0; array.capacity().0 as usize * SECTOR];
    array.read(worker, 0, &mut bytes).unwrap();
    bytes
}

fn some_bytes(length: u64, tag: u64) -> Vec<u8> {
    let mut bytes = vec![0; length as usize];
    fill(&mut bytes, tag);
    bytes
}

fn made(
    layout: &str,
    members: usize,
    spares: usize,
) -> (Array, Vec<Arc<Simulated>>, RequestScratch) {
    let (devices, _) = simulated(members + spares, 1300 << 10);
    let design = Design {
        spares,
        ..design(layout, 4096, JournalPolicy::Partial)
    };
    create(&design, &dynamic(&devices)).unwrap();
    let (array, report) = assemble(&dynamic(&devices), false).unwrap();
    assert!(report.clean && report.newly_failed.is_empty());
    (array, devices, RequestScratch::one_by_one())
}

fn kinds(array: &Array) -> Vec<&'static str> {
    array
        .take_happenings()
        .into_iter()
        .map(|happening| happening.kind)
        .collect()
}

#[test]
fn a_member_that_dies_is_done_without_and_a_spare_takes_its_place() {
    for (layout, members) in [("raid1", 2), ("raid5", 4), ("raid6", 4), ("raid10", 4)] {
        let (array, devices, mut worker) = made(layout, members, 1);
        let bytes = some_bytes(array.capacity().bytes().0, 7);
        array.write(&mut worker, 0, &bytes).unwrap();
        devices[1].dead.store(true, Ordering::SeqCst);
        array
            .write(&mut worker, 1000, &some_bytes(5000, 8))
            .unwrap();
        assert_eq!(content(&array, &mut worker)[..1000], bytes[..1000]);
        array.flush().unwrap();
        assert_eq!(array.status().state, "degraded");
        while array.advance_maintenance(&mut worker).unwrap() {}
        assert_eq!(array.status().state, "whole");
        assert_eq!(
            kinds(&array),
            ["failed", "spare", "filling", "filled"],
            "{layout}"
        );
        let now = content(&array, &mut worker);
        assert_eq!(now[1000..6000], some_bytes(5000, 8));
        array.stop().unwrap();
        // The dead device comes back, and does not count as a member.
        devices[1].dead.store(false, Ordering::SeqCst);
        let (array, report) = assemble(&dynamic(&devices), false).unwrap();
        assert!(report.clean && report.newly_failed.is_empty());
        assert_eq!(content(&array, &mut worker), now);
    }
}

/// Found when several writers first lived in hundreds of arrays: a writer came while another thread
/// recorded a failure, and was answered before the record was durable. Power failed, the member was
/// back, and nothing showed the missed write. A flush gives up the records of earlier changes and
/// then writes a marker. If the marker fails, the given-up records no longer count, nor do the
/// other records of the failed member.
#[test]
fn a_member_that_fails_while_a_flush_marks_its_journal_leaves_no_record_counted() {
    let (array, devices, mut worker) = made("raid5", 4, 0);
    let row = array.facts.rows.unwrap().data.bytes().0;
    for at in [0, 4 * row] {
        // Rows 0 and 4 of a RAID 5 of four members have their parity on the same member.
        array.write(&mut worker, at, &[7; SECTOR]).unwrap();
        assert!(array.journals.hold_any());
        if at == 0 {
            array.flush().unwrap();
        }
    }
    let holder = array.journals.first_holder().unwrap();
    devices[holder].read_only.store(true, Ordering::SeqCst);
    array.flush().unwrap();
    assert!(array.planner().is_impaired());
    assert!(!array.journals.hold_any());
}

#[test]
fn a_write_that_a_member_missed_waits_for_whoever_is_writing_that_down() {
    let (array, devices, mut worker) = made("raid1", 2, 0);
    array.write(&mut worker, 0, &some_bytes(4096, 1)).unwrap();
    devices[0].dead.store(true, Ordering::SeqCst);
    devices[1].stuck.store(true, Ordering::SeqCst);
    let answered = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            array
                .write(&mut RequestScratch::one_by_one(), 0, &some_bytes(512, 2))
                .unwrap()
        });
        while array.condition.failures() == 0 || array.devices()[0].is_some() {
            std::thread::yield_now();
        }
        // The first thread holds the book now, or soon.
        std::thread::sleep(std::time::Duration::from_millis(50));
        scope.spawn(|| {
            array
                .write(&mut RequestScratch::one_by_one(), 1024, &some_bytes(512, 3))
                .unwrap();
            answered.store(true, Ordering::SeqCst);
        });
        std::thread::sleep(std::time::Duration::from_millis(300));
        let early = answered.load(Ordering::SeqCst);
        devices[1].stuck.store(false, Ordering::SeqCst);
        assert!(
            !early,
            "it was answered while the other did not know of the failure"
        );
    });
    assert!(answered.load(Ordering::SeqCst));
    assert_eq!(array.status().state, "degraded");
}

#[test]
fn sectors_that_cannot_be_read_are_computed_and_written_again() {
    for (layout, members) in [("raid1", 2), ("raid5", 3), ("raid6", 4), ("raid10", 4)] {
        let (array, devices, mut worker) = made(layout, members, 0);
        let bytes = some_bytes(array.capacity().bytes().0, 3);
        array.write(&mut worker, 0, &bytes).unwrap();
        let data = array.facts.data_at as usize / SECTOR;
        for sector in [0, 9, 40] {
            devices[0].corrupt_sector(data + sector);
        }
        assert_eq!(content(&array, &mut worker), bytes, "{layout}");
        assert_eq!(array.status().state, "whole");
        assert!(kinds(&array).iter().all(|&kind| kind == "mended"));
        // Without another member the sectors cannot be computed: only requests for them fail.
        array.fail(1).unwrap();
        devices[0].corrupt_sector(data);
        let needs = |array: &Array, worker: &mut RequestScratch| {
            array.read(worker, 0, &mut vec![0; 40 << 10])
        };
        if layout != "raid6" && layout != "raid10" {
            assert!(
                matches!(needs(&array, &mut worker), Err(ArrayError::Device { .. })),
                "{layout}"
            );
            assert_eq!(array.status().state, "degraded");
        }
    }
}

/// Scrubs the whole array.
fn scrubbed(array: &Array, worker: &mut RequestScratch, repair: Repair) -> RedundancyCheck {
    let (mut found, mut next) = (RedundancyCheck::default(), Some(Lbn(0)));
    while let Some(from) = next {
        next = array.scrub_step(worker, from, repair, &mut found).unwrap();
    }
    found
}

/// Makes sectors of each member unreadable, whose sources on the other members are readable: data,
/// parity and copies.
fn spoil_here_and_there(array: &Array, devices: &[Arc<Simulated>]) -> usize {
    let data = array.facts.data_at as usize / SECTOR;
    for (slot, device) in devices.iter().enumerate() {
        // Chunks are of eight sectors: never two unreadable chunks of a row.
        (0..3).for_each(|run| device.corrupt_sector(data + 8 * (run * devices.len() + slot)));
    }
    3 * devices.len()
}

#[test]
fn a_scrub_goes_on_where_a_sector_cannot_be_read_and_mends_it() {
    for (layout, members) in [("raid1", 2), ("raid5", 3), ("raid6", 4), ("raid10", 4)] {
        let (array, devices, mut worker) = made(layout, members, 0);
        let bytes = some_bytes(array.capacity().bytes().0, 5);
        array.write(&mut worker, 0, &bytes).unwrap();
        let bad = |devices: &[Arc<Simulated>]| {
            devices
                .iter()
                .map(|device| device.lock().bad.len())
                .sum::<usize>()
        };
        let spoilt = spoil_here_and_there(&array, &devices);
        // A scrub without repair mends data, as for a client; parity and copies are only reported.
        let found = scrubbed(&array, &mut worker, Repair::Nothing);
        let left = bad(&devices);
        let parity = array.facts.rows.is_some();
        assert!(
            left < spoilt && (left > 0 || !parity),
            "{layout}: {left} of {spoilt} are parity or copies"
        );
        assert!(found.failed_reads > 0, "{layout}: {found:?}");
        assert!(
            found.mismatched_sectors >= left as u64 && found.first.is_empty() == (left == 0),
            "{layout}: {found:?}"
        );
        let found = scrubbed(&array, &mut worker, Repair::Proven);
        assert!(
            found.failed_reads >= left.min(1) as u64,
            "{layout}: {found:?}"
        );
        assert_eq!(
            bad(&devices),
            0,
            "{layout}: what cannot be read is written again"
        );
        let found = scrubbed(&array, &mut worker, Repair::Nothing);
        assert_eq!(
            (found.mismatched_sectors, found.failed_reads),
            (0, 0),
            "{layout}: {found:?}"
        );
        assert_eq!(content(&array, &mut worker), bytes, "{layout}");
        assert_eq!(array.status().state, "whole", "{layout}");
    }
}

#[test]
fn an_array_that_was_not_stopped_starts_beside_sectors_that_cannot_be_read() {
    for (layout, members) in [("raid1", 2), ("raid5", 3), ("raid6", 4), ("raid10", 4)] {
        let (array, devices, mut worker) = made(layout, members, 0);
        let bytes = some_bytes(array.capacity().bytes().0, 6);
        array.write(&mut worker, 0, &bytes).unwrap();
        array.flush().unwrap();
        spoil_here_and_there(&array, &devices);
        drop(array);
        let (array, report) = assemble(&dynamic(&devices), false).unwrap();
        assert!(
            !report.clean && report.compared_regions > 0,
            "{layout}: {report:?}"
        );
        assert!(report.mended.failed_reads > 0, "{layout}: {report:?}");
        assert_eq!(content(&array, &mut worker), bytes, "{layout}");
        assert_eq!(array.status().state, "whole", "{layout}");
        assert_eq!(
            scrubbed(&array, &mut worker, Repair::Nothing).mismatched_sectors,
            0,
            "{layout}"
        );
    }
}

#[test]
fn a_member_that_comes_back_is_filled_only_where_it_has_missed_something() {
    let (array, devices, mut worker) = made("raid5", 4, 0);
    let bytes = some_bytes(array.capacity().bytes().0, 1);
    array.write(&mut worker, 0, &bytes).unwrap();
    // Several rounds, because a region becomes clean only after two looks without a write.
    for _ in 0..5 {
        array.tidy().unwrap();
    }
    array.fail(2).unwrap();
    let row = array.facts.rows.unwrap().data.bytes().0;
    array
        .write(&mut worker, 5 * row, &some_bytes(4096, 2))
        .unwrap();
    let wrong = array
        .add(Arc::clone(&devices[1]) as Arc<dyn Device>, true)
        .unwrap_err()
        .to_string();
    assert!(wrong.contains("part of the array already"), "{wrong}");
    // The repair must not read other sectors of the member: they are made unreadable to show that.
    let data = array.facts.data_at as usize;
    devices[2].lock().current[data..data + 8].fill(0xEE);
    assert_eq!(
        array
            .add(Arc::clone(&devices[2]) as Arc<dyn Device>, false)
            .unwrap(),
        "filling the missed changes"
    );
    while array.advance_maintenance(&mut worker).unwrap() {}
    assert_eq!(array.status().state, "whole");
    assert_eq!(devices[2].lock().current[data..data + 8], [0xEE; 8]);
    let mut found = RedundancyCheck::default();
    let next = array
        .scrub_step(&mut worker, Lbn(0), Repair::Data, &mut found)
        .unwrap();
    assert_eq!(
        (next, found.mismatched_sectors, &found.first[0].member),
        (None, 1, &MemberName::Slot(3)),
        "parity follows from the data"
    );
}

#[test]
fn writers_beside_each_other_keep_redundancy_right_while_members_fail_and_are_filled() {
    let (array, devices, mut worker) = made("raid6", 5, 0);
    let sectors = array.capacity().0;
    let ended = AtomicBool::new(false);
    // Each writer has every fourth run of five sectors to itself, so rows are shared.
    let mine = |writer: u64| (writer * 5..sectors - 5).step_by(20).collect::<Vec<u64>>();
    std::thread::scope(|scope| {
        let writers = (0..4).map(|writer| {
            let (array, runs) = (&array, mine(writer));
            scope.spawn(move || {
                let mut worker = RequestScratch::one_by_one();
                for round in 0..3 {
                    for &run in &runs {
                        let tag = run * 100 + round;
                        array
                            .write(&mut worker, run * 512, &some_bytes(5 * 512, tag))
                            .unwrap();
                    }
                    array.flush().unwrap();
                }
            })
        });
        let writers: Vec<_> = writers.collect();
        let keeper = scope.spawn(|| {
            let mut worker = RequestScratch::one_by_one();
            let mut slot = 0;
            while !ended.load(Ordering::SeqCst) {
                array.fail(slot).unwrap();
                array.tidy().unwrap();
                array
                    .add(Arc::clone(&devices[slot]) as Arc<dyn Device>, false)
                    .unwrap();
                while array.advance_maintenance(&mut worker).unwrap() {}
                slot = (slot + 1) % 5;
            }
        });
        writers
            .into_iter()
            .for_each(|writer| writer.join().unwrap());
        ended.store(true, Ordering::SeqCst);
        keeper.join().unwrap();
    });
    for writer in 0..4 {
        for run in mine(writer) {
            let mut bytes = vec![0; 5 * 512];
            array.read(&mut worker, run * 512, &mut bytes).unwrap();
            assert_eq!(
                bytes,
                some_bytes(5 * 512, run * 100 + 2),
                "sectors from {run} on"
            );
        }
    }
    let (mut found, mut next) = (RedundancyCheck::default(), Some(Lbn(0)));
    while let Some(from) = next {
        next = array
            .scrub_step(&mut worker, from, Repair::Nothing, &mut found)
            .unwrap();
    }
    assert_eq!(found.mismatched_sectors, 0, "{found:?}");
    assert_eq!(array.status().state, "whole");
}
