//! The addressed part of a volume.

use crate::addresses::AddressedRegion;
use crate::sizes::SizeDraws;
use fullstroke_contract::ConfigError;
use fullstroke_units::{Bytes, Sectors};

/// The user's keys of the region.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RegionKeys {
    pub(crate) start: Bytes,
    pub(crate) size: Option<Bytes>,
    pub(crate) alignment: Option<Bytes>,
}

/// The addressed part of a volume of `capacity`, large enough for every request size.
///
/// # Errors
/// Names the impossible key.
pub(crate) fn region(
    keys: RegionKeys,
    sizes: &SizeDraws,
    capacity: Sectors,
) -> Result<AddressedRegion, ConfigError> {
    let start = sectors("region_start", keys.start)?;
    let rest = Sectors(capacity.0.saturating_sub(start.0));
    let length = keys
        .size
        .map_or(Ok(rest), |size| sectors("region_size", size))?;
    if length > rest {
        return Err(ConfigError::new(
            "region_size",
            format!("the region ends behind the volume of {capacity}"),
        ));
    }
    if length < sizes.largest() {
        return Err(ConfigError::new(
            "size",
            format!(
                "a request of {} does not fit into {length}",
                sizes.largest()
            ),
        ));
    }
    let alignment = keys
        .alignment
        .map_or(Ok(sizes.smallest()), |bytes| sectors("alignment", bytes))?;
    if alignment == Sectors::ZERO {
        return Err(ConfigError::new(
            "alignment",
            "found 0; expected a positive multiple of 512B",
        ));
    }
    assert!(
        start.0 + length.0 <= capacity.0 && sizes.largest() <= length,
        "a region of {length} from sector {start} on, of {capacity}"
    );
    Ok(AddressedRegion {
        start,
        length,
        alignment,
        largest: sizes.largest(),
    })
}

/// `bytes` in sectors, or an error at `key`.
pub(crate) fn sectors(key: &str, bytes: Bytes) -> Result<Sectors, ConfigError> {
    bytes
        .sectors()
        .ok_or_else(|| ConfigError::new(key, format!("found {bytes}; expected a multiple of 512B")))
}
