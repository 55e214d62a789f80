//! The keys of arrays that md runs.

use super::{MdKernel, ParityUpdates, Setup};
use crate::like::Like;
use crate::parity::RowMap;
use fullstroke_contract::ConfigError;
use fullstroke_units::{Bytes, SECTOR_BYTES};

/// Limits of the number of stripes (`raid5_set_cache_size`).
const STRIPES_MIN: u32 = 17;
const STRIPES_MAX: u32 = 32_768;

/// Default of `preread_bypass_threshold`: `BYPASS_THRESHOLD` (`drivers/md/raid5.h`).
const BYPASS: u32 = 1;

/// Default largest member I/O: `BLK_DEF_MAX_SECTORS_CAP` (`include/linux/blkdev.h`), 2560 sectors.
const LARGEST: Bytes = Bytes(1280 * 1024);

/// Bytes of a page.
const PAGE: u64 = 4096;

/// The keys of a parity array that md runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MdKeys {
    pub(crate) stripe_cache: u32,
    pub(crate) parity_updates: ParityUpdates,
    pub(crate) preread_bypass_threshold: u32,
    pub(crate) largest_member_io: Bytes,
    pub(crate) kernel: MdKernel,
}

impl Default for MdKeys {
    fn default() -> MdKeys {
        MdKeys {
            stripe_cache: 0,
            parity_updates: ParityUpdates::default(),
            preread_bypass_threshold: BYPASS,
            largest_member_io: LARGEST,
            kernel: MdKernel::default(),
        }
    }
}

impl MdKeys {
    /// Returns the keys if the layout is `like` md.
    ///
    /// # Errors
    /// If a key of md is given and the layout is not like md.
    pub(crate) fn of(self, like: Like) -> Result<Option<MdKeys>, ConfigError> {
        if like == Like::Md {
            return Ok(Some(self));
        }
        let usual = MdKeys::default();
        let changed = [
            (
                "parity_updates",
                self.parity_updates != usual.parity_updates,
            ),
            (
                "preread_bypass_threshold",
                self.preread_bypass_threshold != usual.preread_bypass_threshold,
            ),
            (
                "largest_member_io",
                self.largest_member_io != usual.largest_member_io,
            ),
            ("kernel", self.kernel != usual.kernel),
        ];
        match changed.into_iter().find(|(_, changed)| *changed) {
            None => Ok(None),
            Some((key, _)) => {
                let message =
                    "only an array like md has this setting; say like = \"md\", or leave it out";
                Err(ConfigError::new(key, message))
            }
        }
    }

    /// Returns the settings of an array with this map.
    ///
    /// # Errors
    /// Names the key that md refuses, with md's limit.
    pub(crate) fn setup(self, map: RowMap) -> Result<Setup, ConfigError> {
        check_chunk(map.chunk)?;
        let stripes = self.stripe_cache;
        if !(STRIPES_MIN..=STRIPES_MAX).contains(&stripes) {
            let message = format!(
                "found {stripes}; md allows {STRIPES_MIN} to {STRIPES_MAX} stripes. Or say like = \"ideal\""
            );
            return Err(ConfigError::new("stripe_cache", message));
        }
        let bypass_threshold = self.preread_bypass_threshold;
        if bypass_threshold > stripes {
            let message = format!(
                "found {bypass_threshold}; md allows at most the number of stripes, {stripes}"
            );
            return Err(ConfigError::new("preread_bypass_threshold", message));
        }
        if self.largest_member_io.0 < PAGE {
            let found = self.largest_member_io;
            let message = format!("found {found}; expected at least one page of 4 KiB");
            return Err(ConfigError::new("largest_member_io", message));
        }
        Ok(Setup {
            map,
            stripes,
            updates: self.parity_updates,
            bypass_threshold,
            largest: self.largest_member_io.0 / SECTOR_BYTES,
            kernel: self.kernel,
        })
    }
}

/// md's arrays need chunks of whole pages, and a power of two (`setup_conf` of
/// `drivers/md/raid5.c` and of `drivers/md/raid10.c`).
pub(crate) fn check_chunk(sectors: u64) -> Result<(), ConfigError> {
    let bytes = sectors * SECTOR_BYTES;
    if sectors.is_power_of_two() && bytes.is_multiple_of(PAGE) {
        return Ok(());
    }
    let message = format!(
        "found {}; md's chunks are a power of two, at least 4 KiB. Or say like = \"ideal\"",
        Bytes(bytes)
    );
    Err(ConfigError::new("chunk", message))
}

/// md never reads parity together with data only to discard the parity.
pub(crate) fn no_dummy_reads() -> ConfigError {
    let message = "found true; md has no such reads. Say like = \"ideal\", or leave it out";
    ConfigError::new("dummy_parity_reads", message)
}

/// Chunks of md's RAID 0 may have any number of whole pages (`chunk_sectors` of `mddev`,
/// `create_strip_zones` of `drivers/md/raid0.c`).
pub(crate) fn check_whole_pages(sectors: u64) -> Result<(), ConfigError> {
    let bytes = sectors * SECTOR_BYTES;
    if bytes.is_multiple_of(PAGE) {
        return Ok(());
    }
    let message = format!(
        "found {}; md's RAID 0 has chunks of whole pages of 4 KiB. Or say like = \"ideal\"",
        Bytes(bytes)
    );
    Err(ConfigError::new("chunk", message))
}
