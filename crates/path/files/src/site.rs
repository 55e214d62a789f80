//! The device on which a file system is made.

use crate::groups::MakeRefusal;
use crate::{FileError, PAGE_SECTORS};
use fullstroke_contract::ConfigError;
use fullstroke_tracks::Boundaries;
use fullstroke_units::{Bytes, Lbn, Sectors, Seed};
use std::sync::Arc;

/// Device and seed for a new file system.
#[derive(Clone, Debug)]
pub struct FileSystemSite {
    /// Capacity of the device.
    pub capacity: Sectors,
    /// Seed for the random choices of the kernel.
    pub seed: Seed,
    /// Striping of the device; `None` if the device is not striped.
    pub stripe: Option<Stripe>,
    /// Track boundaries. No block with sectors of two tracks is given to a file, because `mke2fs`
    /// gets these blocks in its list of bad blocks (Qian & Wang, section 4.2).
    pub tracks: Option<Arc<Boundaries>>,
}

/// Stripes of an array, as given to `mkfs.xfs -d su=,sw=`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stripe {
    /// Stripe unit on one member.
    pub unit: Sectors,
    /// Number of members with data.
    pub width: u32,
}

impl FileSystemSite {
    /// Returns the number of whole 4 KiB pages of the device. A smaller rest is not used.
    pub(crate) fn pages(&self) -> u64 {
        self.capacity.0 / PAGE_SECTORS
    }

    /// Yields the 4 KiB blocks with sectors of two tracks, ascending.
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

    /// Returns an error if `tracks` is set, for a file system that cannot avoid the boundaries of
    /// tracks.
    pub(crate) fn refuse_tracks(&self, name: &str) -> Result<(), ConfigError> {
        match self.tracks {
            None => Ok(()),
            Some(_) => {
                let message = format!(
                    "{name} has no list of blocks to avoid; set kind = \"ext2\" or \"ext4\", or align_read_ahead = true alone"
                );
                Err(ConfigError::new("align", message))
            }
        }
    }

    /// Returns the error for a device too small for the metadata.
    pub(crate) fn too_small(&self, error: &FileError) -> ConfigError {
        let message = format!(
            "a device of {} is too small for this file system: {error}",
            self.capacity.bytes()
        );
        ConfigError::new("", message)
    }

    /// Returns the error for a device on which `mke2fs` makes no file system.
    pub(crate) fn unmade(&self, refusal: MakeRefusal) -> ConfigError {
        match refusal {
            MakeRefusal::TooSmall { needed } => self.too_small(&FileError::NoSpace {
                needed,
                free: self.pages(),
            }),
            MakeRefusal::TooLarge { most } => {
                let message = format!(
                    "a device of {} is too large for this file system: the first group holds the descriptors of all groups, and is full at {} at the latest; expected a smaller device",
                    self.capacity.bytes(),
                    Bytes(most * 4096)
                );
                ConfigError::new("", message)
            }
        }
    }
}
