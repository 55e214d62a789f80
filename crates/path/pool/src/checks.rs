//! Checks of the keys of the processor, of the cache on flash devices, of the special vdev and of files.

use crate::capacity::child_size;
use crate::keys::{L2arcKeys, MemoryKeys, ProcessorKeys, TrimKeys, VdevKeys};
use crate::vdev::Vdev;
use fullstroke_contract::ConfigError;
use fullstroke_units::{Bytes, Sectors};

/// Bytes of the header of a record that is on a device only: `HDR_L2ONLY_SIZE` (2.2).
pub(crate) const HEADER: u64 = 96;

/// Largest share of the ARC for headers in percent: `l2arc_meta_percent`.
pub(crate) const HEADERS_PERCENT: u64 = 33;

/// Checks the cache of records: the headers of all records on the devices must find room in the
/// memory of the ARC.
pub(crate) fn check_l2arc(
    memory: &MemoryKeys,
    drives: &[Sectors],
    psize: u64,
) -> Result<(), ConfigError> {
    let keys = &memory.l2arc;
    let fail = |key: &str, message: String| Err(ConfigError::new(key, message));
    if drives.is_empty() {
        if *keys != L2arcKeys::default() {
            let message = "no drive holds the cache; give caches = 1, or remove this key";
            return fail("l2arc", message.to_owned());
        }
        return Ok(());
    }
    if keys.write_max.0 < psize {
        let message = format!(
            "found {}; expected at least one record of {}",
            keys.write_max,
            Bytes(psize)
        );
        return fail("l2arc.write_max", message);
    }
    if keys.headroom == 0 {
        let message = "found 0; expected at least 1 (the feeding thread would look at nothing)";
        return fail("l2arc.headroom", message.to_owned());
    }
    let mut bytes = 0;
    for drive in drives {
        let size = child_size(*drive);
        if let Some(wanted) = keys.size
            && !(psize..=size).contains(&wanted.0)
        {
            let message = format!(
                "found {wanted}; the drive has {} for the cache",
                Bytes(size)
            );
            return fail("l2arc.size", message);
        }
        bytes += keys.size.map_or(size, |wanted| wanted.0);
    }
    let headers = bytes / psize * HEADER;
    let limit = memory.arc.0 / 100 * HEADERS_PERCENT;
    if headers > limit {
        let message = format!(
            "the cache holds {} records of {}, and their headers need {} of memory. ZFS stops writing at {HEADERS_PERCENT} % of the ARC (l2arc_meta_percent), {} here. Give a larger arc, larger records, or a smaller l2arc.size, at most {}",
            bytes / psize,
            Bytes(psize),
            Bytes(headers),
            Bytes(limit),
            Bytes(limit / HEADER * psize / drives.len() as u64)
        );
        return fail("caches", message);
    }
    Ok(())
}

/// Checks the rates and threads of the processor.
pub(crate) fn check_processor(keys: Option<&ProcessorKeys>) -> Result<(), ConfigError> {
    let Some(keys) = keys else {
        return Ok(());
    };
    if !(1..=1024).contains(&keys.threads) {
        let message = format!("found {}; expected 1 to 1024 threads", keys.threads);
        return Err(ConfigError::new("processor.threads", message));
    }
    let rates = [
        ("checksum_mb_per_s", keys.checksum_mb_per_s),
        ("encryption_mb_per_s", keys.encryption_mb_per_s),
        ("compress_mb_per_s", keys.compress_mb_per_s),
        ("decompress_mb_per_s", keys.decompress_mb_per_s),
        ("parity_mb_per_s", keys.parity_mb_per_s),
        ("copy_mb_per_s", keys.copy_mb_per_s),
    ];
    for (key, rate) in rates {
        if let Some(rate) = rate
            && !(0.001..=1e9).contains(&rate)
        {
            let message = format!("found {rate}; expected 0.001 to 10^9, in 10^6 bytes a second");
            return Err(ConfigError::new(format!("processor.{key}"), message));
        }
    }
    Ok(())
}

/// Returns the special vdev, with the bytes between the labels of its smallest drive. `behind` are the
/// drives behind the data drives. `zpool create` asks for the redundancy of the other vdevs
/// (`check_replication` in `cmd/zpool/zpool_vdev.c`).
pub(crate) fn special(
    keys: &VdevKeys,
    behind: &[Sectors],
    data: &Vdev,
    ashift: u32,
) -> Result<Option<(Vdev, u64)>, ConfigError> {
    let children = u64::from(keys.special);
    if children == 0 {
        return match keys.special_force {
            false => Ok(None),
            true => {
                let message = "found true, and the pool has no special vdev; give special, or remove this key";
                Err(ConfigError::new("special_force", message))
            }
        };
    }
    let survives = children - 1;
    if survives != data.survives() && !keys.special_force {
        let message = format!(
            "found {children}; the special vdev survives {survives} failed drives, the other vdevs {} (mismatched replication level: without its special vdev a pool is lost). Give special = {}, or special_force = true",
            data.survives(),
            data.survives() + 1
        );
        return Err(ConfigError::new("special", message));
    }
    let drives = &behind[..keys.special as usize];
    let smallest = drives.iter().copied().min().unwrap_or(Sectors::ZERO);
    Ok(Some((
        Vdev::Mirror { children, ashift },
        child_size(smallest),
    )))
}

/// Checks the size of the blocks of data on the special vdev (`zfs_valid_proplist` in
/// `lib/libzfs/libzfs_dataset.c`: zero, or a power of two from 512 to 1 MiB).
pub(crate) fn check_small_blocks(keys: &VdevKeys, record: u64) -> Result<(), ConfigError> {
    let found = keys.special_small_blocks;
    let fail = |message: String| Err(ConfigError::new("special_small_blocks", message));
    if found.0 == 0 {
        return Ok(());
    }
    if keys.special == 0 {
        return fail(format!(
            "found {found}, and the pool has no special vdev; give special, or remove this key"
        ));
    }
    if !found.0.is_power_of_two() || !(512..=1 << 20).contains(&found.0) {
        return fail(format!(
            "found {found}; must be zero or a power of 2 from 512B to 1MiB"
        ));
    }
    if found.0 >= record {
        return fail(format!(
            "found {found}; with recordsize = {} all data goes to the special vdev. Give at most {}",
            Bytes(record),
            Bytes(record / 2)
        ));
    }
    Ok(())
}

/// Checks that a drive of the special vdev is left. The special vdev begins behind `data` drives.
pub(crate) fn check_failed_special(keys: &VdevKeys, data: usize) -> Result<(), ConfigError> {
    let special = data..data + keys.special as usize;
    let failed = keys.failed.iter();
    let lost = failed.filter(|&&member| special.contains(&(member as usize)));
    if keys.special > 0 && lost.count() == special.len() {
        let message = "all drives of the special vdev have failed, and the pool is lost";
        return Err(ConfigError::new("failed", message));
    }
    Ok(())
}

/// Checks the keys of TRIM.
pub(crate) fn check_trim(keys: &TrimKeys) -> Result<(), ConfigError> {
    let fail = |message: &str| Err(ConfigError::new("trim_rate", message.to_owned()));
    match keys.trim_rate {
        Some(Bytes(0)) => fail("found 0; expected the bytes of a second, such as \"100MB\""),
        Some(_) if !keys.trim => {
            fail("no TRIM on demand runs; give trim = true, or remove this key")
        }
        _ => Ok(()),
    }
}
