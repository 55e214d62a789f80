//! What a file system is made on.

use crate::FileError;
use fullstroke_contract::ConfigError;
use fullstroke_units::{Sectors, Seed};

/// Where a file system is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site {
    /// Addresses of the device.
    pub capacity: Sectors,
    /// For what the kernel draws by chance.
    pub seed: Seed,
    /// How the device below is striped, if it is.
    pub stripe: Option<Stripe>,
}

/// The stripes of an array, as `mkfs.xfs -d su=,sw=` is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stripe {
    /// Of one member.
    pub unit: Sectors,
    /// Members with data.
    pub width: u32,
}

impl Site {
    /// 4 KiB pages of the device; what is left over is not used.
    pub(crate) fn pages(&self) -> u64 {
        self.capacity.0 / crate::PAGE_SECTORS
    }

    /// The error for a device that does not hold the metadata.
    pub(crate) fn too_small(&self, error: &FileError) -> ConfigError {
        let message =
            format!("a device of {} is too small for this file system: {error}", self.capacity.bytes());
        ConfigError::new("", message)
    }
}
