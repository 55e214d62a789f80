//! Checks of the keys of the processor and of the cache on flash devices.

use crate::capacity::child_size;
use crate::keys::{L2arcKeys, MemoryKeys, ProcessorKeys};
use crate::l2arc::{HEADER, HEADERS_PERCENT};
use fullstroke_contract::ConfigError;
use fullstroke_units::{Bytes, Sectors};

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
            "the cache holds {} records of {}, and their headers need {} of memory. ZFS stops writing at              {HEADERS_PERCENT} % of the ARC (l2arc_meta_percent), {} here. Give a larger arc, larger records,              or a smaller l2arc.size, at most {}",
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
