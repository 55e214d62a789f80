//! The checked settings of a pool.

use crate::capacity::{DRIVE_MIN, FRONT, PARTITION, PoolCapacity, child_size};
use crate::checks::{
    check_failed_special, check_l2arc, check_processor, check_small_blocks, check_trim, special,
};
use crate::draid::{Draid, DraidShape};
use crate::keys::{
    DraidKeys, Kind, Logbias, MemoryKeys, MirrorKeys, Primarycache, RaidzKeys, ResilverKind,
    ScanKeys, ScanRecords, Sync, TrimKeys, VdevKeys, VolumeKeys, part, schema,
};
use crate::raidz::Raidz;
use crate::scatter::Scatter;
use crate::vdev::Vdev;
use fullstroke_contract::registry::{Keys, check_known, known_keys};
use fullstroke_contract::{ConfigError, DatasetStart};
use fullstroke_units::{Bytes, SECTOR_BYTES, Sectors};
use std::sync::Arc;

/// The checked settings of a pool.
#[derive(Clone, Debug)]
pub struct PoolSettings {
    /// The vdevs, each with the bytes between the labels of its smallest drive. The drives of a vdev
    /// follow each other in the list of members.
    pub vdevs: Vec<(Vdev, u64)>,
    /// The mirror for metadata behind the data drives, with the bytes between the labels of its
    /// smallest drive.
    pub special: Option<(Vdev, u64)>,
    /// The map of records from before an expansion, for all vdevs.
    pub old: Option<Vdev>,
    /// Number of log drives, the last members.
    pub logs: usize,
    /// Number of drives with a cache of records, the last members in front of the log drives.
    pub caches: usize,
    /// Capacity of each member.
    pub members: Vec<Sectors>,
    /// The failed drives.
    pub failed: Vec<u32>,
    /// The sector is `2^ashift` bytes.
    pub ashift: u32,
    /// Bytes of a record, before compression.
    pub record: u64,
    /// Bytes of a record after compression.
    pub psize: u64,
    /// Size of the data divided by the size on the vdevs.
    pub compression: f64,
    /// The objects of a file system at the start of a run; `None` for a volume.
    pub files: Option<DatasetStart>,
    /// Capacity of the pool.
    pub capacity: PoolCapacity,
    /// Bytes of the volume.
    pub volsize: u64,
    /// The property `sync`.
    pub sync: Sync,
    /// The property `primarycache`.
    pub primarycache: Primarycache,
    /// The property `logbias`.
    pub logbias: Logbias,
    /// True if a snapshot keeps the blocks of the start.
    pub snapshot: bool,
    /// Largest block of data on the special vdev; 0 = none.
    pub small_blocks: u64,
    /// Kind of a resilver.
    pub resilver: ResilverKind,
    /// Bytes of data of a sequential resilver in flight for each drive.
    pub rebuild_limit: u64,
    /// The age of the pool, scrubs and healing resilvers.
    pub scan: ScanKeys,
    /// TRIM of free space.
    pub trim: TrimKeys,
    /// True for each member that takes TRIM.
    pub trims: Vec<bool>,
    /// True for each member that is a flash device (`vdev_nonrot`).
    pub flash: Vec<bool>,
    /// Memory and timing.
    pub memory: MemoryKeys,
}

impl PoolSettings {
    /// Reads and checks the keys of a pool.
    ///
    /// # Errors
    /// Names the key that ZFS refuses, with ZFS's rule.
    pub fn read(kind: Kind, keys: &Keys, members: &[Sectors]) -> Result<PoolSettings, ConfigError> {
        check_known(keys, &known_keys(&schema(kind)))?;
        let vdev_keys: VdevKeys = part(keys)?;
        let volume: VolumeKeys = part(keys)?;
        let memory: MemoryKeys = part(keys)?;
        let scan: ScanKeys = part(keys)?;
        check_scan(&scan)?;
        let trim: TrimKeys = part(keys)?;
        check_trim(&trim)?;
        let ashift = vdev_keys.ashift.unwrap_or(12);
        check_numbers(ashift, &volume, &memory)?;
        check_processor(memory.processor.as_ref())?;
        let (logs, caches) = (vdev_keys.logs as usize, vdev_keys.caches as usize);
        let others = logs + caches + vdev_keys.special as usize;
        let data = members.len().saturating_sub(others);
        let width = width(kind, &vdev_keys, data)?;
        check_drives(members)?;
        let (new, old) = vdev(kind, width as u64, ashift, keys)?;
        let vdevs: Vec<(Vdev, u64)> = members[..data]
            .chunks(width)
            .map(|drives| {
                let smallest = drives.iter().copied().min().unwrap_or(Sectors::ZERO);
                (new.clone(), child_size(smallest))
            })
            .collect();
        let record = volume.recordsize.0;
        let psize = compressed(record, volume.compression, ashift);
        let cached = members.len() - logs - caches..members.len() - logs;
        check_l2arc(&memory, &members[cached], psize)?;
        check_small_blocks(&vdev_keys, record)?;
        let special = special(&vdev_keys, &members[data..], &new, ashift)?;
        let capacity = PoolCapacity::of(&shown(&vdevs, old.as_ref()), record, psize);
        let volsize = volsize(&volume, &capacity)?;
        check_scan_records(&scan, volsize / record)?;
        check_failed(&vdev_keys.failed, &vdevs, width, members.len())?;
        check_failed_special(&vdev_keys, data)?;
        let (resilver, rebuild_limit) = resilver_kind(kind, keys)?;
        Ok(PoolSettings {
            vdevs,
            special,
            old,
            logs,
            caches,
            members: members.to_vec(),
            failed: vdev_keys.failed,
            ashift,
            record,
            psize,
            compression: volume.compression,
            files: None,
            capacity,
            volsize,
            sync: volume.sync,
            primarycache: volume.primarycache,
            logbias: volume.logbias,
            snapshot: volume.snapshot,
            small_blocks: vdev_keys.special_small_blocks.0,
            resilver,
            rebuild_limit,
            scan,
            trim,
            trims: vec![false; members.len()],
            flash: vec![false; members.len()],
            memory,
        })
    }

    /// Returns the settings with the members that are flash devices.
    pub fn on_flash(self, flash: Vec<bool>) -> PoolSettings {
        PoolSettings { flash, ..self }
    }

    /// Returns the end of the data on a member at the start of a run, in sectors of the member. The
    /// data of a vdev spreads evenly over its children; a member without data has no end.
    pub fn member_used(&self, member: usize) -> Sectors {
        let Some((vdev, child)) = self.vdevs.get(member / self.width()) else {
            return Sectors(PARTITION);
        };
        let asize = self.old.as_ref().unwrap_or(vdev).asize(self.psize);
        let records = self.volsize / self.record / self.vdevs.len() as u64;
        let share = (records * asize) as f64 / vdev.size(*child).max(1) as f64;
        let bytes = FRONT + (*child as f64 * share.min(1.0)) as u64;
        Sectors((PARTITION + bytes / SECTOR_BYTES).min(self.members[member].0))
    }

    /// Returns the share of scattered records if a scan reads ordered and scattered records, and
    /// otherwise `None`.
    pub fn scattered_beside_ordered(&self) -> Option<f64> {
        let records = self.volsize / self.record;
        let scattered = Scatter::new(records, self.scan.scattered).count();
        let both = self.scan.scan_records == ScanRecords::All && (1..records).contains(&scattered);
        both.then(|| scattered as f64 / records as f64)
    }

    /// Returns true if a resilver reads records, and not the space of a vdev.
    pub fn resilvers_records(&self) -> bool {
        self.resilver == ResilverKind::Healing
    }

    /// Returns the number of data drives.
    pub fn data_drives(&self) -> usize {
        self.vdevs.len() * self.width()
    }

    /// Returns the members with a cache of records.
    pub fn caches(&self) -> std::ops::Range<usize> {
        let end = self.members.len() - self.logs;
        end - self.caches..end
    }

    /// Returns the number of drives of each vdev.
    pub fn width(&self) -> usize {
        self.vdevs
            .first()
            .map_or(1, |(vdev, _)| vdev.children() as usize)
    }
}

/// Returns the psize of a record: whole sectors, or the record itself if compression saves less
/// than an eighth (`zio_compress_data`, `module/zfs/zio_compress.c`).
pub(crate) fn compressed(record: u64, ratio: f64, ashift: u32) -> u64 {
    let size = (record as f64 / ratio).ceil() as u64;
    let size = size.next_multiple_of(1 << ashift);
    // `zio_compress_data` keeps the original unless at least an eighth is saved.
    if size > record - record / 8 {
        record
    } else {
        size
    }
}

fn check_numbers(ashift: u32, volume: &VolumeKeys, memory: &MemoryKeys) -> Result<(), ConfigError> {
    let fail = |key: &str, message: String| Err(ConfigError::new(key, message));
    // ASHIFT_MIN and ASHIFT_MAX (include/sys/vdev_impl.h).
    if !(9..=16).contains(&ashift) {
        return fail(
            "ashift",
            format!("found {ashift}; zpool create allows 9 to 16"),
        );
    }
    let record = volume.recordsize;
    // SPA_MINBLOCKSIZE and SPA_MAXBLOCKSIZE (include/sys/spa.h).
    if !record.0.is_power_of_two() || record.0 > 16 << 20 || record.0 < 512 {
        return fail(
            "recordsize",
            format!("found {record}; zfs allows powers of two from 512 to 16MiB"),
        );
    }
    if record.0 < 1 << ashift {
        return fail(
            "recordsize",
            format!(
                "found {record}; a record is at least one sector of the pool, {} with ashift = {ashift}",
                Bytes(1 << ashift)
            ),
        );
    }
    if !(1.0..=1000.0).contains(&volume.compression) {
        return fail(
            "compression",
            format!(
                "found {}; expected 1 to 1000, the size of the data divided by the size on disk",
                volume.compression
            ),
        );
    }
    if memory.dirty_data_max.0 < 4 * record.0 || memory.dirty_data_max.0 < 1 << 20 {
        return fail(
            "dirty_data_max",
            format!(
                "found {}; expected at least 1MiB and four records of {record}",
                memory.dirty_data_max
            ),
        );
    }
    if !(1..=3600).contains(&memory.txg_timeout_s) {
        return fail(
            "txg_timeout_s",
            format!("found {}; expected 1 to 3600", memory.txg_timeout_s),
        );
    }
    Ok(())
}

/// Returns the number of drives of each vdev.
fn width(kind: Kind, keys: &VdevKeys, data: usize) -> Result<usize, ConfigError> {
    if data == 0 {
        // Only the keys that take drives: a message with `special = 0` would blame a key that
        // nobody gave.
        let taken: Vec<String> = [
            ("logs", keys.logs),
            ("caches", keys.caches),
            ("special", keys.special),
        ]
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(key, count)| format!("{key} = {count}"))
        .collect();
        let message = match taken.is_empty() {
            true => "a pool needs drives; found none".to_owned(),
            false => format!(
                "found no drives for data, because {} take all drives; add drives",
                taken.join(" and ")
            ),
        };
        return Err(ConfigError::new("members", message));
    }
    let usual = match kind {
        // A mirror of all drives would have the capacity of one drive.
        Kind::Mirror => 2.min(data),
        _ => data,
    };
    let width = keys.width.map_or(usual, |width| width as usize);
    if width == 0 || !data.is_multiple_of(width) {
        let message = format!(
            "found {width}; {data} drives are not whole vdevs of {width} (the vdevs of a pool here are equally wide)"
        );
        let key = if keys.width.is_some() {
            "width"
        } else {
            "members"
        };
        return Err(ConfigError::new(key, message));
    }
    Ok(width)
}

fn check_drives(members: &[Sectors]) -> Result<(), ConfigError> {
    for (index, drive) in members.iter().enumerate() {
        if child_size(*drive) < DRIVE_MIN {
            let message = format!(
                "member {index} has {}; zpool create needs devices of 64 MiB, and 14 MiB for labels and partitions",
                drive.saturating_bytes()
            );
            return Err(ConfigError::new("members", message));
        }
        if drive.0 > 1 << 53 {
            let message = format!("member {index} has {drive}; a drive has at most 2^53 sectors");
            return Err(ConfigError::new("members", message));
        }
    }
    Ok(())
}

/// Returns the map of new blocks, and the map of blocks before an expansion.
fn vdev(
    kind: Kind,
    width: u64,
    ashift: u32,
    keys: &Keys,
) -> Result<(Vdev, Option<Vdev>), ConfigError> {
    match kind {
        Kind::Mirror if width < 2 => {
            let message = format!("found {width}; mirror requires at least 2 devices");
            Err(ConfigError::new("members", message))
        }
        Kind::Mirror => Ok((
            Vdev::Mirror {
                children: width,
                ashift,
            },
            None,
        )),
        Kind::Raidz(parities) => {
            let further: RaidzKeys = part(keys)?;
            let raidz = Raidz::new(width, parities, ashift)?;
            let old = further
                .expanded_from
                .filter(|&from| u64::from(from) != width)
                .map(|from| raidz.before_expansion(from.into()));
            Ok((Vdev::Raidz(raidz), old.transpose()?.map(Vdev::Raidz)))
        }
        Kind::Draid(parities) => {
            let further: DraidKeys = part(keys)?;
            let shape = DraidShape {
                children: width,
                data: further.data.map(u64::from),
                parities,
                spares: further.spares.into(),
            };
            Ok((Vdev::Draid(Arc::new(Draid::new(shape, ashift)?)), None))
        }
    }
}

/// Checks the keys of scans.
fn check_scan(keys: &ScanKeys) -> Result<(), ConfigError> {
    let fail = |key: &str, message: String| Err(ConfigError::new(key, message));
    if !(0.0..=1.0).contains(&keys.scattered) {
        let message = format!("found {}; expected 0 to 1", keys.scattered);
        return fail("scattered", message);
    }
    if !(0.0..1.0).contains(&keys.scrub_from) {
        let message = format!("found {}; expected 0 to less than 1", keys.scrub_from);
        return fail("scrub_from", message);
    }
    if keys.scrub_from > 0.0 && !keys.scrub {
        let message = format!(
            "found {}, and no scrub runs; give scrub = true, or remove this key",
            keys.scrub_from
        );
        return fail("scrub_from", message);
    }
    if keys.scan_limit.0 == 0 {
        let message = "found 0; a scan without data in flight does not end".to_owned();
        return fail("scan_limit", message);
    }
    Ok(())
}

/// Returns the vdevs whose capacity the pool shows: since 2.3 the ratio of deflation stays that of the
/// width before an expansion.
fn shown(vdevs: &[(Vdev, u64)], old: Option<&Vdev>) -> Vec<(Vdev, u64)> {
    let Some(old) = old else {
        return vdevs.to_vec();
    };
    vdevs
        .iter()
        .map(|(new, child)| (old.clone(), child * new.children() / old.children()))
        .collect()
}

/// Checks that a scan has a record to read.
fn check_scan_records(keys: &ScanKeys, records: u64) -> Result<(), ConfigError> {
    let scattered = Scatter::new(records, keys.scattered).count();
    let (name, found) = match keys.scan_records {
        ScanRecords::All => return Ok(()),
        ScanRecords::Ordered => ("ordered", records - scattered),
        ScanRecords::Scattered => ("scattered", scattered),
    };
    if found > 0 {
        return Ok(());
    }
    let message = format!(
        "found \"{name}\", and scattered = {} leaves none of the {records} records {name}; give another `scattered`, or remove this key",
        keys.scattered
    );
    Err(ConfigError::new("scan_records", message))
}

/// Returns the kind of a resilver, and the data of a sequential resilver in flight for each drive.
/// RAIDZ has no choice: the width of its stripes varies, so that only blocks tell the parity
/// (`vdev_rebuild.c`).
fn resilver_kind(kind: Kind, keys: &Keys) -> Result<(ResilverKind, u64), ConfigError> {
    // `zfs_rebuild_vdev_limit` (2.2).
    const LIMIT: Bytes = Bytes(64 << 20);
    let (resilver, limit, spares) = match kind {
        Kind::Raidz(_) => return Ok((ResilverKind::Healing, LIMIT.0)),
        Kind::Mirror => {
            let further: MirrorKeys = part(keys)?;
            (further.resilver, further.rebuild_limit, 0)
        }
        Kind::Draid(_) => {
            let further: DraidKeys = part(keys)?;
            (further.resilver, further.rebuild_limit, further.spares)
        }
    };
    if resilver == ResilverKind::Spare && spares == 0 {
        let message = match kind {
            Kind::Mirror => {
                "found \"spare\"; only draid has distributed spares. Expected healing or sequential"
            }
            _ => "found \"spare\"; the vdev has no distributed spare. Give spares = 1",
        };
        return Err(ConfigError::new("resilver", message));
    }
    match limit {
        Some(limit) if resilver == ResilverKind::Healing => {
            let message = format!(
                "found {limit}; only a sequential resilver has this limit. Give resilver = \"sequential\", or the key scan_limit"
            );
            Err(ConfigError::new("rebuild_limit", message))
        }
        Some(Bytes(0)) => {
            let message = "found 0; a resilver without data in flight does not end";
            Err(ConfigError::new("rebuild_limit", message))
        }
        limit => Ok((resilver, limit.unwrap_or(LIMIT).0)),
    }
}

/// Returns the size of the volume in whole records.
fn volsize(keys: &VolumeKeys, capacity: &PoolCapacity) -> Result<u64, ConfigError> {
    let record = keys.recordsize.0;
    let wanted = keys.volsize.map_or(capacity.data / 5 * 4, |size| size.0);
    let size = wanted / record * record;
    if size == 0 || size > capacity.data {
        let message = format!(
            "found {}; the pool has space for {} in records of {}",
            Bytes(wanted),
            Bytes(capacity.data),
            keys.recordsize
        );
        let key = if keys.volsize.is_some() {
            "volsize"
        } else {
            "members"
        };
        return Err(ConfigError::new(key, message));
    }
    Ok(size)
}

/// Checks that every vdev survives its failed drives.
fn check_failed(
    failed: &[u32],
    vdevs: &[(Vdev, u64)],
    width: usize,
    members: usize,
) -> Result<(), ConfigError> {
    let fail = |message: String| Err(ConfigError::new("failed", message));
    for (index, &member) in failed.iter().enumerate() {
        if member as usize >= members {
            let last = members - 1;
            return fail(format!(
                "there is no member {member}: the {members} are counted from 0 to {last}"
            ));
        }
        if failed[..index].contains(&member) {
            return fail(format!("member {member} is listed twice; list each once"));
        }
    }
    for (index, (vdev, _)) in vdevs.iter().enumerate() {
        let lost = failed
            .iter()
            .filter(|&&member| member as usize / width == index)
            .count() as u64;
        if lost > vdev.survives() {
            return fail(format!(
                "{lost} drives of vdev {index} have failed, and the vdev survives {}",
                vdev.survives()
            ));
        }
    }
    Ok(())
}
