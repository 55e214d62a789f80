//! Any device or file that can be read, under the real clock.

use crate::ExtractError;
use crate::machine::{Answer, Device, Place};
use fullstroke_contract::Extent;
use fullstroke_units::{Duration, SECTOR_BYTES, Sectors, Time};
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek as _, SeekFrom};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::Instant;

/// Alignment of the buffer: that of the largest logical block.
const ALIGNMENT: usize = 4096;

/// A device or file, read past the page cache with one request outstanding.
pub struct BlockDevice {
    file: File,
    capacity: Sectors,
    began: Instant,
    buffer: Vec<u8>,
}

impl BlockDevice {
    /// Opens it for reading, past the page cache.
    ///
    /// # Errors
    /// As the system's; a file system that knows no `O_DIRECT` refuses.
    pub fn open(path: &Path) -> io::Result<BlockDevice> {
        let direct = OFlags::DIRECT.bits() as i32;
        let mut file = OpenOptions::new().read(true).custom_flags(direct).open(path)?;
        let capacity = Sectors(file.seek(SeekFrom::End(0))? / SECTOR_BYTES);
        if capacity == Sectors::ZERO {
            return Err(io::Error::other(
                "found no sectors; expected a block device, or a file with content",
            ));
        }
        Ok(BlockDevice { file, capacity, began: Instant::now(), buffer: Vec::new() })
    }

    fn now(&self) -> Time {
        Time::from_nanos(self.began.elapsed().as_nanos() as u64)
    }
}

impl Device for BlockDevice {
    fn capacity(&self) -> Sectors {
        self.capacity
    }

    fn read(&mut self, extent: Extent) -> Result<Answer, ExtractError> {
        let bytes = extent.sectors.bytes().0 as usize;
        if self.buffer.len() < bytes + ALIGNMENT {
            self.buffer.resize(bytes + ALIGNMENT, 0);
        }
        let skip = self.buffer.as_ptr().align_offset(ALIGNMENT);
        let offset = extent.start.0 * SECTOR_BYTES;
        let issued = self.now();
        let read = self.file.read_exact_at(&mut self.buffer[skip..skip + bytes], offset);
        let completed = self.now();
        match read {
            Ok(()) => Ok(Answer { issued, completed, place: Place::default() }),
            Err(error) => Err(ExtractError::Device { extent, reason: error.to_string() }),
        }
    }

    fn idle(&mut self, span: Duration) -> Answer {
        let issued = self.now();
        std::thread::sleep(std::time::Duration::from_nanos(span.as_nanos()));
        Answer { issued, completed: self.now(), place: Place::default() }
    }
}
