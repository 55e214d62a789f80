//! Block devices and files that stand for them, opened as whoever measures or
//! owns them needs: past the page cache, and through the [`gate`] if they are
//! written; and commands to those that are SCSI or SATA disks.

pub mod gate;
mod layers;
mod memory;
mod mounts;
pub mod scsi;
pub mod standby;

pub use gate::{Claim, Identity};
pub use memory::Aligned;

use rustix::fs::{AtFlags, OFlags, StatxFlags};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek as _, SeekFrom};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;
use thiserror::Error;

/// Alignment where the kernel does not say: that of the largest logical block in
/// use.
pub const ALIGNMENT_BYTES: u64 = 4096;
/// A sector; no block is smaller.
const SECTOR_BYTES: u64 = 512;
/// `STATX_DIOALIGN` of `linux/stat.h` (Linux 6.1).
const STATX_DIOALIGN: u32 = 0x2000;

/// What is to be done with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It is only read.
    Read,
    /// It is written, too: not if somebody uses it.
    Write,
}

/// Whether the page cache stands in front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cache {
    /// No (`O_DIRECT`).
    Past,
    /// Yes.
    Through,
    /// In front of files, and not of devices.
    OfFiles,
}

/// What was opened.
#[derive(Debug)]
pub struct Opened {
    /// Itself.
    pub file: File,
    /// Its path.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// Requests begin and end at multiples of this; 512 through the page cache.
    pub block_bytes: u64,
    /// It is a file otherwise.
    pub is_block_device: bool,
    /// If it was opened to be written: keeps others out, together with `file`.
    pub claim: Option<Claim>,
}

/// Why it was not. The path is the caller's to say.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The host's.
    #[error("{0}")]
    Host(#[from] io::Error),
    /// It is a folder, a pipe or the like.
    #[error("found something else; expected a block device or a file")]
    Kind,
    /// Somebody uses it.
    #[error("{0}; it is not written to")]
    InUse(String),
    /// Its file system has no way past the page cache.
    #[error("{0}: its file system cannot be read past the page cache")]
    NoWayPast(io::Error),
}

/// Opens the block device or file at `path`.
///
/// # Errors
/// It is something else, somebody uses it and it is to be written to, or the
/// host's.
pub fn open(path: &Path, access: Access, cache: Cache) -> Result<Opened, OpenError> {
    let found = fs::metadata(path)?;
    let kind = found.file_type();
    let is_block_device = kind.is_block_device();
    if !is_block_device && !kind.is_file() {
        return Err(OpenError::Kind);
    }
    let writes = access == Access::Write;
    if writes && let Some(mounted) = mounted(path) {
        return Err(OpenError::InUse(mounted));
    }
    let direct = cache == Cache::Past || cache == Cache::OfFiles && is_block_device;
    let mut flags = OFlags::empty();
    flags.set(OFlags::DIRECT, direct);
    // With it the kernel refuses a device that is mounted, swapped to, or a member of another
    // device, and so are its partitions (open(2)); and nobody can mount it meanwhile.
    flags.set(OFlags::EXCL, writes && is_block_device);
    let opened = OpenOptions::new()
        .read(true)
        .write(writes)
        .custom_flags(flags.bits() as i32)
        .open(path);
    let mut file = opened.map_err(|error| match error.raw_os_error() {
        Some(libc::EINVAL) if direct => OpenError::NoWayPast(error),
        Some(libc::EBUSY) => OpenError::InUse(format!(
            "{error}: it, or a part of it, is mounted or otherwise in use"
        )),
        _ => OpenError::Host(error),
    })?;
    // The path may have been given to something else meanwhile.
    if Identity::from(&file.metadata()?) != Identity::from(&found) {
        return Err(OpenError::Kind);
    }
    let claim = writes.then(|| Claim::take(&file, path)).transpose()?;
    let bytes = file.seek(SeekFrom::End(0))?;
    let block_bytes = if direct {
        block_bytes(&file, is_block_device)
    } else {
        SECTOR_BYTES
    };
    Ok(Opened {
        file,
        name: path.display().to_string(),
        bytes,
        block_bytes,
        is_block_device,
        claim,
    })
}

/// Where a block device is mounted; the kernel says only that it is busy.
fn mounted(path: &Path) -> Option<String> {
    match Identity::of(path).ok()? {
        Identity::BlockDevice { number } => mounts::mount_of(number),
        Identity::Inode { .. } => None,
    }
}

/// What requests past the page cache are aligned to.
fn block_bytes(file: &File, is_block_device: bool) -> u64 {
    let found = if is_block_device {
        rustix::fs::ioctl_blksszget(file).ok().map(u64::from)
    } else {
        let statx = rustix::fs::statx(
            file,
            c"",
            AtFlags::EMPTY_PATH,
            StatxFlags::from_bits_retain(STATX_DIOALIGN),
        );
        statx
            .ok()
            .map(|found| u64::from(found.stx_dio_offset_align))
    };
    found
        .filter(|bytes| bytes.is_power_of_two() && *bytes >= SECTOR_BYTES)
        .unwrap_or(ALIGNMENT_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn refused(path: &Path, access: Access) -> String {
        open(path, access, Cache::OfFiles).unwrap_err().to_string()
    }

    #[test]
    fn what_is_no_device_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        assert!(refused(folder.path(), Access::Read).contains("expected a block device or a file"));
        assert!(refused(&folder.path().join("gone"), Access::Read).contains("No such file"));
        let file = folder.path().join("file");
        fs::write(&file, [0; 700]).unwrap();
        let opened = open(&file, Access::Write, Cache::OfFiles).unwrap();
        assert_eq!(
            (opened.bytes, opened.block_bytes, opened.is_block_device),
            (700, 512, false)
        );
    }

    #[test]
    fn a_mounted_device_is_not_written_to() {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let devices = mounts.lines().filter_map(|line| {
            let source = line.split(" - ").nth(1)?.split(' ').nth(1)?;
            fs::metadata(source)
                .is_ok_and(|found| found.file_type().is_block_device())
                .then(|| PathBuf::from(source))
        });
        let mut tried = 0;
        for device in devices {
            let error = refused(&device, Access::Write);
            let root = File::open(&device).is_ok();
            assert!(!root || error.contains("not written to"), "{error}");
            tried += 1;
        }
        if tried == 0 {
            eprintln!("skipped: no block device is mounted here");
        }
    }
}
