//! Block devices and files as members.

use crate::stoppable::StoppableDevice;
use crate::{ArrayError, Device};
use fullstroke_device::standby::ScsiDisk;
use fullstroke_device::{CacheUse, Claim, OpenError, Opened};
use rustix::fs::FallocateFlags;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd as _, RawFd};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Purpose of an opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenPurpose {
    /// Only for reading, also while others write.
    Look,
    /// Only for reading, while nobody writes.
    Read,
    /// For exclusive use as part of an array.
    Own,
}

/// A block device or a file.
#[derive(Debug)]
pub struct FileDevice {
    file: File,
    name: String,
    bytes: u64,
    block_bytes: u64,
    is_block_device: bool,
    /// True for a file that took no room when it was opened.
    was_hole: bool,
    /// True for a device that has refused no discard, and for a file that lacks some of its room. A
    /// file with all its room keeps it, because the room protects it from a full host.
    trims: AtomicBool,
    /// Claim against other processes.
    _claim: Option<Claim>,
}

impl FileDevice {
    /// Opens a device or file. Requests of devices bypass the page cache; those of files use the
    /// cache.
    ///
    /// # Errors
    /// The path is something else, is in use, or cannot be opened.
    pub fn open(path: &Path, access: OpenPurpose) -> Result<FileDevice, ArrayError> {
        let name = path.display().to_string();
        let owns = access == OpenPurpose::Own;
        let wanted = if owns {
            fullstroke_device::DeviceAccess::Write
        } else {
            fullstroke_device::DeviceAccess::Read
        };
        let opened = fullstroke_device::open(path, wanted, CacheUse::OfFiles);
        let Opened {
            file,
            bytes,
            block_bytes,
            is_block_device,
            claim,
            ..
        } = opened.map_err(|error| why_not(&name, error))?;
        let claim = match access {
            OpenPurpose::Read => {
                Some(Claim::share(&file, path).map_err(|error| why_not(&name, error))?)
            }
            OpenPurpose::Look | OpenPurpose::Own => claim,
        };
        let data = || rustix::fs::seek(&file, rustix::fs::SeekFrom::Data(0));
        // ENXIO: the file has no data at all (lseek(2)).
        let was_hole = !is_block_device && data().err() == Some(rustix::io::Errno::NXIO);
        let room = file
            .metadata()
            // Without the number the file counts as one with all its room, and keeps it.
            .map_or(u64::MAX, |metadata| metadata.blocks() * 512);
        let trims = AtomicBool::new(is_block_device || room < bytes);
        Ok(FileDevice {
            file,
            name,
            bytes,
            block_bytes,
            is_block_device,
            was_hole,
            trims,
            _claim: claim,
        })
    }

    /// Shares the device for an array. A block device can be [put to standby](crate::check_standby)
    /// then.
    ///
    /// # Errors
    /// The host has no more descriptors.
    pub fn shared(self) -> Result<Arc<dyn Device>, ArrayError> {
        if !self.is_block_device {
            return Ok(Arc::new(self));
        }
        let file = self.file.try_clone();
        let file = file.map_err(|error| ArrayError::device(self.name.clone(), "open", error))?;
        Ok(Arc::new(StoppableDevice::new(
            self,
            Box::new(ScsiDisk::new(file)),
        )))
    }
}

/// Errors of the host for a dead or removed device.
const GONE: [i32; 8] = [
    libc::ENOENT,
    libc::ENXIO,
    libc::ENODEV,
    libc::EIO,
    libc::ENOMEDIUM,
    libc::ETIMEDOUT,
    libc::ESHUTDOWN,
    libc::EREMOTEIO,
];

/// A device that is in use or may not be opened is not gone. Without this device an array would
/// lack a member by mistake.
fn why_not(name: &str, error: OpenError) -> ArrayError {
    match error {
        OpenError::Host(source)
            if source
                .raw_os_error()
                .is_some_and(|code| GONE.contains(&code)) =>
        {
            ArrayError::Gone {
                device: name.to_owned(),
                source,
            }
        }
        error => ArrayError::Refused(format!("`{name}`: {error}")),
    }
}

impl Device for FileDevice {
    fn name(&self) -> String {
        self.name.clone()
    }
    fn bytes(&self) -> u64 {
        self.bytes
    }
    fn block_bytes(&self) -> u64 {
        self.block_bytes
    }
    fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(into, at)
    }
    fn write(&self, at: u64, from: &[u8]) -> io::Result<()> {
        debug_assert!(
            at.is_multiple_of(512) && from.len().is_multiple_of(512),
            "{} bytes at {at} are no whole sectors",
            from.len()
        );
        // A file would grow where a device ends.
        if at + from.len() as u64 > self.bytes {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.file.write_all_at(from, at)
    }
    fn flush(&self) -> io::Result<()> {
        // A file that was cut short grows again when it is written, so the length is checked.
        if !self.is_block_device && self.file.metadata()?.len() < self.bytes {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.file.sync_data()
    }
    fn allocate(&self) -> io::Result<()> {
        if self.is_block_device {
            return Ok(());
        }
        self.trims.store(false, Ordering::Relaxed);
        let allocated = rustix::fs::fallocate(&self.file, FallocateFlags::empty(), 0, self.bytes);
        match allocated {
            // A file system without fallocate may run out of room later.
            Ok(()) | Err(rustix::io::Errno::OPNOTSUPP) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
    fn next_data(&self, at: u64, bytes: u64) -> io::Result<Option<Range<u64>>> {
        let end = at + bytes;
        if self.is_block_device {
            return Ok((bytes > 0).then_some(at..end));
        }
        let seek = |to| match rustix::fs::seek(&self.file, to) {
            Ok(byte) => Ok(byte.min(end)),
            Err(rustix::io::Errno::NXIO) => Ok(end),
            Err(error) => Err(error),
        };
        let start = seek(rustix::fs::SeekFrom::Data(at))?;
        if start >= end {
            return Ok(None);
        }
        Ok(Some(start..seek(rustix::fs::SeekFrom::Hole(start))?))
    }
    fn is_zero(&self) -> bool {
        self.was_hole
    }
    fn trims(&self) -> bool {
        self.trims.load(Ordering::Relaxed)
    }
    fn trim(&self, at: u64, bytes: u64) -> io::Result<()> {
        // On a device the kernel does this only where it reads as zeros then
        // (fallocate(2), BLKDEV_ZERO_NOFALLBACK in block/fops.c).
        let how = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let trimmed = rustix::fs::fallocate(&self.file, how, at, bytes);
        if trimmed == Err(rustix::io::Errno::OPNOTSUPP) {
            self.trims.store(false, Ordering::Relaxed);
            return Err(io::ErrorKind::Unsupported.into());
        }
        Ok(trimmed?)
    }
    fn is_cached(&self) -> bool {
        !self.is_block_device
    }
    fn descriptor(&self) -> Option<RawFd> {
        Some(self.file.as_raw_fd())
    }
}
