//! What a file system is made on.

use crate::{FileError, PAGE_SECTORS};
use fullstroke_contract::ConfigError;
use fullstroke_tracks::Boundaries;
use fullstroke_units::{Lbn, Sectors, Seed};
use std::sync::Arc;

/// Where a file system is made.
#[derive(Clone, Debug)]
pub struct Site {
    /// Addresses of the device.
    pub capacity: Sectors,
    /// For what the kernel draws by chance.
    pub seed: Seed,
    /// How the device below is striped, if it is.
    pub stripe: Option<Stripe>,
    /// Tracks between which no block is given to a file: `mke2fs` is told so by its
    /// list of bad blocks (Qian & Wang, section 4.2).
    pub tracks: Option<Arc<Boundaries>>,
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
        self.capacity.0 / PAGE_SECTORS
    }

    /// 4 KiB blocks that hold sectors of two tracks, ascending.
    pub(crate) fn straddling(&self) -> impl Iterator<Item = u64> {
        let tracks = self
            .tracks
            .iter()
            .flat_map(|tracks| tracks.tracks_from(Lbn(0)));
        tracks
            .map(|track| track.end().0)
            .filter(|end| !end.is_multiple_of(PAGE_SECTORS))
            .map(|end| end / PAGE_SECTORS)
    }

    /// The error for one that cannot keep off the boundaries of tracks.
    pub(crate) fn refuse_tracks(&self, name: &str) -> Result<(), ConfigError> {
        match self.tracks {
            None => Ok(()),
            Some(_) => {
                let message = format!(
                    "{name} has no list of blocks that files keep off; say kind = \"ext2\" or \"ext4\", or \
                     align_read_ahead = true alone"
                );
                Err(ConfigError::new("align", message))
            }
        }
    }

    /// The error for a device that does not hold the metadata.
    pub(crate) fn too_small(&self, error: &FileError) -> ConfigError {
        let message = format!(
            "a device of {} is too small for this file system: {error}",
            self.capacity.bytes()
        );
        ConfigError::new("", message)
    }
}
