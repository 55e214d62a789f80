//! Common checks of the layouts: keys and members' sizes.

use fullstroke_contract::ConfigError;
use fullstroke_units::{Bytes, SECTOR_BYTES, Sectors};

/// Chunk size without the key `chunk`.
pub(crate) const DEFAULT_CHUNK: Bytes = Bytes(64 << 10);

/// Sectors of a page of 4 KiB: `RAID5_STRIPE_SECTORS` (`drivers/md/raid5.h`).
pub(crate) const PAGE: u64 = 8;

/// Returns the chunk in sectors. The chunk must be a positive multiple of the sector.
pub(crate) fn chunk_sectors(chunk: Bytes) -> Result<u64, ConfigError> {
    match chunk.sectors() {
        Some(Sectors(sectors)) if sectors > 0 => Ok(sectors),
        _ => Err(ConfigError::new(
            "chunk",
            format!(
                "{chunk} is not a positive multiple of the sector, {SECTOR_BYTES} bytes; write for example 64KiB"
            ),
        )),
    }
}

/// Returns an error if there are fewer than `least` members.
pub(crate) fn at_least(layout: &str, members: &[Sectors], least: usize) -> Result<(), ConfigError> {
    if members.len() >= least {
        return Ok(());
    }
    let found = members.len();
    let message = format!(
        "{layout} needs at least {least} members; found {found}, add {}",
        least - found
    );
    Err(ConfigError::new("members", message))
}

/// Returns the number of whole chunks on every member, or an error if there are none.
pub(crate) fn common_rows(members: &[Sectors], chunk: u64) -> Result<u64, ConfigError> {
    let (smallest, capacity) = smallest(members);
    let rows = capacity.0 / chunk;
    if rows > 0 {
        return Ok(rows);
    }
    let message = format!(
        "a chunk of {} is larger than member {smallest}, which has {}; choose a smaller chunk",
        Sectors(chunk).bytes(),
        capacity.bytes()
    );
    Err(ConfigError::new("chunk", message))
}

/// Returns the index and the capacity of the smallest member. Among equal members, the first
/// counts.
pub(crate) fn smallest(members: &[Sectors]) -> (usize, Sectors) {
    let all = members.iter().copied().enumerate();
    all.min_by_key(|&(index, capacity)| (capacity, index))
        .unwrap_or_default()
}

/// Returns the product of `factors`, or an error if the volume would have more than 2^64 sectors.
pub(crate) fn capacity_of(factors: [u64; 3]) -> Result<Sectors, ConfigError> {
    let product = factors
        .iter()
        .try_fold(1u64, |product, &factor| product.checked_mul(factor));
    product.map(Sectors).ok_or_else(too_large)
}

/// Returns the error for an overflow of the number of sectors.
pub(crate) fn too_large() -> ConfigError {
    ConfigError::new(
        "members",
        "the members together have more than 2^64 sectors; use fewer or smaller ones",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_is_a_positive_multiple_of_the_sector() {
        assert_eq!(chunk_sectors(Bytes(65_536)), Ok(128));
        for bytes in [0, 1, 511, 513, 65_535] {
            let error = chunk_sectors(Bytes(bytes)).unwrap_err();
            assert_eq!(error.key, "chunk");
            assert!(error.message.contains("multiple of the sector"), "{error}");
        }
    }

    #[test]
    fn a_chunk_larger_than_a_member_names_the_member() {
        let error = common_rows(&[Sectors(1000), Sectors(100)], 128).unwrap_err();
        assert!(error.message.contains("member 1"), "{error}");
    }
}
