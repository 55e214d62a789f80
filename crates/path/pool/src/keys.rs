//! The keys of pools in a stack file.

use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, known_keys, known_part, read, schema_of};
use fullstroke_units::Bytes;
use schemars::{JsonSchema, Schema};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Keys of the vdevs of every pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct VdevKeys {
    /// Number of drives of each vdev. The pool stripes over its vdevs: 8 drives with `width = 4` are
    /// two vdevs of 4. Default: one vdev of all drives; for `mirror` 2.
    pub width: Option<u32>,
    /// The sector of the pool is `2^ashift` bytes: 9 to 16. Default 12, sectors of 4 KiB.
    pub ashift: Option<u32>,
    /// The failed drives, counted from 0. Default none.
    pub failed: Vec<u32>,
    /// Number of log drives, which hold the intent log and nothing else (SLOG). The list of members
    /// has, in this order: data drives, the drives of `special`, of `caches`, of `logs`. `drives`
    /// counts all of them. Default 0: the intent log lies on the vdevs.
    pub logs: u32,
    /// Number of drives that hold a cache of records (L2ARC), in front of the log drives in the
    /// list of members. The rules of the cache are in `l2arc`. Default 0.
    pub caches: u32,
    /// Number of drives that form the special vdev, a mirror; in the list of members they follow
    /// the data drives. The special vdev holds the metadata of the pool; data lies on the other
    /// vdevs. Default 0: no special vdev.
    pub special: u32,
    /// Largest block of data that lies on the special vdev, after compression: 0, or a power of two from
    /// 512 to half of `recordsize`. Only for `[host.files] kind = "zfs"`. Default 0: only metadata lies
    /// there.
    pub special_small_blocks: Bytes,
    /// True to take a special vdev that survives fewer or more failed drives than the other vdevs, as
    /// `zpool create -f` does. Default false.
    pub special_force: bool,
}

/// Further key of RAIDZ.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RaidzKeys {
    /// Number of drives of each vdev before an expansion. The data of the volume has the old width,
    /// and new writes have the new width. Default: no expansion.
    pub expanded_from: Option<u32>,
}

/// Further keys of dRAID.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DraidKeys {
    /// Number of data drives of a group. Default 8, or as many as there are.
    pub data: Option<u32>,
    /// Number of distributed spares of each vdev. Default 0.
    pub spares: u32,
    /// Kind of the resilver of `rebuild`: `healing` (the blocks of the volume, to a new drive),
    /// `sequential` (all used space in the order of the vdev, to a new drive) or `spare` (the same,
    /// to a distributed spare). Default `healing`.
    pub resilver: ResilverKind,
    /// Bytes of data of a sequential resilver in flight for each drive (`zfs_rebuild_vdev_limit`).
    /// All vdevs together have at most half of `arc`. Default 64MiB; OpenZFS before 2.2 had 32MiB.
    pub rebuild_limit: Option<Bytes>,
}

/// Further keys of mirrors.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MirrorKeys {
    /// Kind of the resilver of `rebuild`: `healing` (the blocks of the volume) or `sequential` (all
    /// used space in the order of the vdev). Default `healing`.
    pub resilver: ResilverKind,
    /// Bytes of data of a sequential resilver in flight for each drive (`zfs_rebuild_vdev_limit`).
    /// All vdevs together have at most half of `arc`. Default 64MiB; OpenZFS before 2.2 had 32MiB.
    pub rebuild_limit: Option<Bytes>,
}

/// Keys of the age of a pool, of scrubs and of healing resilvers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ScanKeys {
    /// Share of the records that lie scattered, at random places, as after years of overwriting.
    /// The other records lie in the order of the volume. Default 0.
    pub scattered: f64,
    /// True for a scrub from the start of the run: all records are read with their parity or
    /// copies. Default false.
    pub scrub: bool,
    /// Share of the records that the scrub has read at the start of the run. Default 0.
    pub scrub_from: f64,
    /// Records that a scrub or healing resilver reads: `all`, `ordered` (the records that lie in
    /// the order of the volume) or `scattered` (the other records, in the order in which a scan of
    /// all records reads them). With `ordered` or `scattered` the scan reads records of one kind
    /// only. A run then measures the scan rate of this kind. Default `all`.
    pub scan_records: ScanRecords,
    /// Bytes of data of a scrub or healing resilver in flight for each data drive of a vdev
    /// (`zfs_scan_vdev_limit`); a mirror counts as one drive. Default 16MiB; OpenZFS before 2.2 had
    /// 4MiB.
    pub scan_limit: Bytes,
    /// Memory for sorting the blocks of a scrub or healing resilver, at most a twentieth of the used
    /// space (`zfs_scan_mem_lim_fact`). Default: a tenth of `arc`, at least 16MiB.
    pub scan_memory: Option<Bytes>,
}

/// The records that a scan reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ScanRecords {
    /// All records.
    #[default]
    All,
    /// The records that lie in the order of the volume.
    Ordered,
    /// The scattered records.
    Scattered,
}

/// Keys of TRIM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TrimKeys {
    /// True to tell drives that take TRIM about freed space, 32 transaction groups later at most.
    /// Flash devices take TRIM, and shingled drives with `trim = true`. Default false.
    pub autotrim: bool,
    /// True to tell the drives about all free space from the start of the run, as `zpool trim` does.
    /// Default false.
    pub trim: bool,
    /// Largest rate of this TRIM of all free space, in bytes a second of each vdev (`zpool trim -r`).
    /// Default: no limit.
    pub trim_rate: Option<Bytes>,
}

/// The kind of a resilver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ResilverKind {
    /// The blocks of the volume are read, and written to a new drive.
    #[default]
    Healing,
    /// The used space of the vdev is read in its order, and written to a new drive.
    Sequential,
    /// The used space of the vdev is read in its order, and written to a distributed spare.
    Spare,
}

/// Keys of the volume in the pool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct VolumeKeys {
    /// Size of a record: `recordsize` of a file system, `volblocksize` of a volume. A power of two
    /// from the sector to 16MiB. Default 128KiB.
    pub recordsize: Bytes,
    /// Compression: size of the data divided by the size on the vdevs, at least 1. A record that
    /// would shrink by less than an eighth is not compressed. Default 1.
    pub compression: f64,
    /// Size of the volume, at most the free space of the pool. Default: 80 % of the free space. All
    /// records have been written once, from front to back, at the start of a run.
    pub volsize: Option<Bytes>,
    /// Writes that wait for the intent log: `standard` (only synchronous writes: fsync and FUA),
    /// `always` (all writes) or `disabled` (none). Default `standard`.
    pub sync: Sync,
    /// Blocks that stay in the memory of the pool (ARC): `all`, `metadata` (inodes, directories and
    /// pointers) or `none`. Data that was read ahead stays until it is read once. Default `all`.
    pub primarycache: Primarycache,
    /// How synchronous writes are logged. `latency`: the data go into the log; without a log drive,
    /// large writes go to their final places, and the log gets only their addresses. `throughput`:
    /// all data go to their final places, and log drives are not used. Default `latency`.
    pub logbias: Logbias,
    /// True if a snapshot of the start of the run exists. The snapshot keeps the blocks of the start,
    /// so that overwritten and removed data frees no space. Default false.
    pub snapshot: bool,
}

/// The property `primarycache`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Primarycache {
    /// Data and metadata.
    #[default]
    All,
    /// Metadata only.
    Metadata,
    /// Nothing but the inodes of open files.
    None,
}

/// The property `logbias`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Logbias {
    /// Small writes go into the log.
    #[default]
    Latency,
    /// All records go to their places.
    Throughput,
}

/// The property `sync`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sync {
    /// Flushes and forced writes wait for the intent log.
    #[default]
    Standard,
    /// Every write waits for the intent log.
    Always,
    /// Nothing waits.
    Disabled,
}

/// Keys of the pool's memory and timing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MemoryKeys {
    /// Memory for clean records (ARC). 0 = no cache for data. The cache is empty at the start of a
    /// run. Default 8GiB.
    pub arc: Bytes,
    /// Largest amount of dirty data (`zfs_dirty_data_max`). Writes are delayed from 60 % of it, and
    /// a transaction group is written from 20 % of it. Default 1638MiB, a tenth of 16 GiB of memory.
    pub dirty_data_max: Bytes,
    /// Longest time in seconds between two transaction groups (`zfs_txg_timeout`). Default 5.
    pub txg_timeout_s: u32,
    /// True to read ahead of sequential reads (zfetch). Default true.
    pub prefetch: bool,
    /// Largest distance of the read-ahead (`zfetch_max_distance`). Default 64MiB; OpenZFS 0.8 had
    /// 8MiB.
    pub prefetch_distance: Bytes,
    /// Time of the processor for records, such as `{ threads = 8, encryption_mb_per_s = 64 }`.
    /// `threads`: number of threads that work on records, by default 8. Rates in 10^6 bytes a
    /// second, of one thread: `checksum_mb_per_s`, `encryption_mb_per_s`, `compress_mb_per_s`,
    /// `parity_mb_per_s`. Rates of the caller: `decompress_mb_per_s`, `copy_mb_per_s`. Work without
    /// a rate needs no time. Default: the processor needs no time.
    pub processor: Option<ProcessorKeys>,
    /// Rules of the cache on the drives of `caches`, such as `{ write_max = "32MiB" }`. `write_max`:
    /// largest number of bytes written at a time, once a second. `headroom`: bytes that the feeding
    /// thread looks at in each list of the ARC, in multiples of `write_max`. `noprefetch`: true if
    /// records that were only read ahead are not written. `size`: bytes in use on each drive, by
    /// default the whole drive.
    pub l2arc: L2arcKeys,
}

/// Rules of the cache of records on flash devices (L2ARC).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct L2arcKeys {
    /// Bytes in use on each drive. Default: the whole drive.
    pub size: Option<Bytes>,
    /// Largest number of bytes written at a time (`l2arc_write_max`), once a second. Default 8MiB;
    /// since OpenZFS 2.3 32MiB.
    pub write_max: Bytes,
    /// Bytes that the feeding thread looks at in each list of the ARC, in multiples of `write_max`
    /// (`l2arc_headroom`). Default 2; since OpenZFS 2.3 8.
    pub headroom: u32,
    /// True if records that were only read ahead are not written, and if read-ahead does not read
    /// from the cache (`l2arc_noprefetch`). Default true.
    pub noprefetch: bool,
}

impl Default for L2arcKeys {
    fn default() -> L2arcKeys {
        L2arcKeys {
            size: None,
            write_max: Bytes(8 << 20),
            headroom: 2,
            noprefetch: true,
        }
    }
}

/// Time of the processor for the records of a pool. Work without a rate needs no time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ProcessorKeys {
    /// Number of threads that check, compress and encrypt records. Default 8.
    pub threads: u32,
    /// Checksums by a thread, in 10^6 bytes a second (`fletcher_4_bench`: 4,000 without vector units,
    /// 8,000 with SSE). Default: no time.
    pub checksum_mb_per_s: Option<f64>,
    /// Encryption and decryption by a thread, in 10^6 bytes a second. AES-GCM of OpenZFS 0.8 without
    /// vector units has about 64, by AVX since 0.8.4 about 12 times as much. Default: no encryption.
    pub encryption_mb_per_s: Option<f64>,
    /// Compression by a thread, in 10^6 bytes a second. Default: no time.
    pub compress_mb_per_s: Option<f64>,
    /// Decompression by the caller, in 10^6 bytes a second. Default: no time.
    pub decompress_mb_per_s: Option<f64>,
    /// Data whose parity a thread computes, in 10^6 bytes a second (`vdev_raidz_bench`, times the
    /// number of data drives). Default: no time.
    pub parity_mb_per_s: Option<f64>,
    /// Copies of the caller between memory and program, in 10^6 bytes a second. This rate also
    /// stands for all other work of a single program. Default: no time.
    pub copy_mb_per_s: Option<f64>,
}

impl Default for ProcessorKeys {
    fn default() -> ProcessorKeys {
        ProcessorKeys {
            threads: 8,
            checksum_mb_per_s: None,
            encryption_mb_per_s: None,
            compress_mb_per_s: None,
            decompress_mb_per_s: None,
            parity_mb_per_s: None,
            copy_mb_per_s: None,
        }
    }
}

impl Default for VolumeKeys {
    fn default() -> VolumeKeys {
        VolumeKeys {
            recordsize: Bytes(128 << 10),
            compression: 1.0,
            volsize: None,
            sync: Sync::Standard,
            primarycache: Primarycache::All,
            logbias: Logbias::Latency,
            snapshot: false,
        }
    }
}

impl Default for ScanKeys {
    fn default() -> ScanKeys {
        ScanKeys {
            scattered: 0.0,
            scrub: false,
            scrub_from: 0.0,
            scan_records: ScanRecords::All,
            scan_limit: Bytes(16 << 20),
            scan_memory: None,
        }
    }
}

impl Default for MemoryKeys {
    fn default() -> MemoryKeys {
        MemoryKeys {
            // A host with 16 GiB: half for the ARC on Linux, a tenth for dirty data
            // (zfs_dirty_data_max_percent).
            arc: Bytes(8 << 30),
            dirty_data_max: Bytes(1638 << 20),
            txg_timeout_s: 5,
            prefetch: true,
            prefetch_distance: Bytes(64 << 20),
            processor: None,
            l2arc: L2arcKeys::default(),
        }
    }
}

/// The kind of a pool's vdevs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Mirrors.
    Mirror,
    /// RAIDZ with this number of parities.
    Raidz(u64),
    /// dRAID with this number of parities.
    Draid(u64),
}

/// Returns the part of `keys` that is known to `C`.
pub(crate) fn part<C: DeserializeOwned + JsonSchema>(keys: &Keys) -> Result<C, ConfigError> {
    read(&known_part(keys, &known_keys(&schema_of::<C>())))
}

/// Returns the schema of a pool's keys.
pub(crate) fn schema(kind: Kind) -> Schema {
    let mut schema = schema_of::<VdevKeys>();
    let further = match kind {
        Kind::Mirror => Some(schema_of::<MirrorKeys>()),
        Kind::Raidz(_) => Some(schema_of::<RaidzKeys>()),
        Kind::Draid(_) => Some(schema_of::<DraidKeys>()),
    };
    let more = [
        schema_of::<VolumeKeys>(),
        schema_of::<MemoryKeys>(),
        schema_of::<ScanKeys>(),
        schema_of::<TrimKeys>(),
    ];
    for part in further.into_iter().chain(more) {
        for name in ["properties", "$defs"] {
            let Some(Value::Object(own)) = part.get(name) else {
                continue;
            };
            let own = own.clone();
            match schema.get_mut(name) {
                Some(Value::Object(all)) => all.extend(own),
                _ => {
                    schema.insert(name.to_owned(), Value::Object(own));
                }
            }
        }
    }
    schema
}
