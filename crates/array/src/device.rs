//! What an array stands on: block devices and files.

use crate::ArrayError;
use crate::in_use::user_of;
use rustix::fs::{FallocateFlags, FlockOperation, OFlags};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek as _, SeekFrom};
use std::os::fd::{AsRawFd as _, RawFd};
use std::os::unix::fs::{FileExt as _, FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;

/// Whatever a device's blocks are, memory is aligned to this, and so are the
/// array's own areas.
pub const ALIGNMENT_BYTES: u64 = 4096;

/// Something that keeps bytes. Calls come from several threads.
///
/// **What it promises**: a sector of 512 bytes is written whole or not at all.
/// What was written before a [`flush`](Device::flush) began is there after a
/// loss of power once that has returned well. What was not flushed may be there
/// or not, sector by sector, in any order.
pub trait Device: Send + Sync {
    /// What it is called in errors: its path.
    fn name(&self) -> String;

    /// Its size.
    fn bytes(&self) -> u64;

    /// Reads and writes begin and end at multiples of this.
    fn block_bytes(&self) -> u64 {
        512
    }

    /// Reads from the byte `at` on.
    ///
    /// # Errors
    /// The device's; the buffer holds anything then.
    fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()>;

    /// Writes from the byte `at` on.
    ///
    /// # Errors
    /// The device's; any part may have been written then.
    fn write(&self, at: u64, from: &[u8]) -> io::Result<()>;

    /// Makes durable what was written.
    ///
    /// # Errors
    /// The device's. What was not durable before may be lost then, and a second
    /// call may know nothing of it.
    fn flush(&self) -> io::Result<()>;

    /// Whether it is known to have held nothing but zeros when it was opened.
    fn is_zero(&self) -> bool {
        false
    }

    /// What io_uring may be given in place of the calls above.
    fn descriptor(&self) -> Option<RawFd> {
        None
    }
}

/// What is to be done with a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It is only looked at.
    Look,
    /// It becomes, or is, part of an array, and nobody else's.
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
    /// A file that took no room when it was opened.
    was_hole: bool,
}

impl FileDevice {
    /// Opens it. Devices are used past the page cache, files through it.
    ///
    /// # Errors
    /// It is something else, is in use, or cannot be opened.
    pub fn open(path: &Path, access: Access) -> Result<FileDevice, ArrayError> {
        let name = path.display().to_string();
        let failed = |source| ArrayError::Device { device: name.clone(), action: "open", source };
        let kind = fs::metadata(path).map_err(failed)?.file_type();
        let is_block_device = kind.is_block_device();
        if !is_block_device && !kind.is_file() {
            let message = format!("`{name}` is neither a block device nor a file");
            return Err(ArrayError::Refused(message));
        }
        let owns = access == Access::Own;
        if owns && let Some(user) = user_of(path, is_block_device) {
            return Err(ArrayError::Refused(format!("`{name}`: {user}; it is not used for an array")));
        }
        let mut flags = OFlags::empty();
        flags.set(OFlags::DIRECT, is_block_device);
        // The kernel refuses what is mounted, swapped to or part of another
        // device (open(2)), and keeps others out meanwhile.
        flags.set(OFlags::EXCL, owns && is_block_device);
        let opened = OpenOptions::new().read(true).write(owns).custom_flags(flags.bits() as i32).open(path);
        let mut file = opened.map_err(|error| match error.raw_os_error() {
            Some(libc::EBUSY) => ArrayError::Refused(format!(
                "`{name}`: it, or a part of it, is mounted or otherwise in use; it is not used for an array"
            )),
            _ => failed(error),
        })?;
        if owns && rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            let message =
                format!("`{name}` is in use by another process: an array that is assembled, perhaps");
            return Err(ArrayError::Refused(message));
        }
        let bytes = file.seek(SeekFrom::End(0)).map_err(failed)?;
        let block_bytes = match is_block_device {
            true => rustix::fs::ioctl_blksszget(&file).map_or(ALIGNMENT_BYTES, u64::from),
            false => 512,
        };
        let data = || rustix::fs::seek(&file, rustix::fs::SeekFrom::Data(0));
        let was_hole = !is_block_device && data().err() == Some(rustix::io::Errno::NXIO);
        Ok(FileDevice { file, name, bytes, block_bytes, is_block_device, was_hole })
    }

    /// Takes all the room that it needs from its file system, so that no write
    /// fails later for want of it. A device has it already.
    ///
    /// # Errors
    /// There is not so much room.
    pub fn allocate(&self) -> Result<(), ArrayError> {
        if self.is_block_device {
            return Ok(());
        }
        let allocated = rustix::fs::fallocate(&self.file, FallocateFlags::empty(), 0, self.bytes);
        match allocated {
            // A file system that cannot is not held to it.
            Ok(()) | Err(rustix::io::Errno::OPNOTSUPP) => Ok(()),
            Err(error) => Err(ArrayError::Device {
                device: self.name.clone(),
                action: "take its room from the file system of",
                source: error.into(),
            }),
        }
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
        // A file would grow where a device ends.
        if at + from.len() as u64 > self.bytes {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.file.write_all_at(from, at)
    }
    fn flush(&self) -> io::Result<()> {
        // A file that was cut short grows again where it is written.
        if !self.is_block_device && self.file.metadata()?.len() < self.bytes {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.file.sync_data()
    }
    fn is_zero(&self) -> bool {
        self.was_hole
    }
    fn descriptor(&self) -> Option<RawFd> {
        Some(self.file.as_raw_fd())
    }
}

/// Bytes at an address that every device takes.
#[derive(Debug, Default)]
pub(crate) struct Aligned {
    bytes: Vec<u8>,
}

impl Aligned {
    /// The first `length` bytes, which hold anything.
    pub(crate) fn of(&mut self, length: usize) -> &mut [u8] {
        let alignment = ALIGNMENT_BYTES as usize;
        if self.bytes.len() < length + alignment {
            self.bytes.resize(length + alignment, 0);
        }
        let start = self.bytes.as_ptr().align_offset(alignment);
        &mut self.bytes[start..start + length]
    }
}
