//! Timed reads of a device or file under the real clock.

use crate::output::CommandFailure;
use fullstroke_calibrate::extract::{BlockDevice, ExtractedDevice as _};
use fullstroke_contract::Extent;
use fullstroke_lab::lzvs::{LzvsError, TimedReads};
use fullstroke_units::{Duration, Lbn, Sectors};
use std::path::Path;

/// Device for timed reads past the page cache, one read at a time.
pub(crate) struct TimedDevice {
    device: BlockDevice,
    part: Extent,
}

impl TimedDevice {
    /// Opens the device at `path`, or only `part` of it. Address 0 is then the first sector of the
    /// part.
    pub(crate) fn open(path: &Path, part: Option<Extent>) -> Result<TimedDevice, CommandFailure> {
        let opened = BlockDevice::open(path);
        let device = opened
            .map_err(|error| CommandFailure::Input(format!("`{}`: {error}", path.display())))?;
        // All reads are aligned to the largest block size, so that they fit any device.
        let all = Extent {
            start: Lbn(0),
            sectors: Sectors(device.capacity().0 / BLOCK * BLOCK),
        };
        Ok(TimedDevice {
            part: part.unwrap_or(all),
            device,
        })
    }
}

/// Largest logical block in use, in sectors.
const BLOCK: u64 = fullstroke_store::ALIGNMENT_BYTES / fullstroke_units::SECTOR_BYTES;

impl TimedReads for TimedDevice {
    fn capacity(&self) -> Sectors {
        self.part.sectors
    }

    fn read(&mut self, extent: Extent) -> Result<Duration, LzvsError> {
        // Direct I/O refuses an address or a length that is no multiple of the logical block
        // (`open(2)`, O_DIRECT).
        let at = Lbn((self.part.start.0 + extent.start.0) / BLOCK * BLOCK);
        let there = Extent {
            start: at,
            sectors: Sectors(extent.sectors.0.next_multiple_of(BLOCK)),
        };
        let answer = self.device.read(there);
        let answer = answer.map_err(|error| LzvsError::Read {
            extent: there,
            reason: error.to_string(),
        })?;
        Ok(answer.completed.saturating_since(answer.issued))
    }
}
