//! Opens block devices, and files in place of devices, for measurement or use: past the page cache,
//! and through the [`gate`] for writing. Also sends commands to SCSI and SATA disks.

pub mod gate;
mod identity;
mod layers;
mod memory;
mod mounts;
pub mod scsi;
pub mod standby;

pub use gate::Claim;
pub use identity::DeviceIdentity;
pub use memory::Aligned;

use rustix::fs::{AtFlags, OFlags, StatxFlags};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek as _, SeekFrom};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use thiserror::Error;

/// Alignment in bytes if the kernel reports none: the largest logical block in use.
pub const ALIGNMENT_BYTES: u64 = 4096;
/// Size of a sector in bytes. No block is smaller.
const SECTOR_BYTES: u64 = 512;
/// `STATX_DIOALIGN` of `linux/stat.h` (Linux 6.1).
const STATX_DIOALIGN: u32 = 0x2000;

/// Kind of access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceAccess {
    /// Only reads.
    Read,
    /// Reads and writes. Refused if the target is in use.
    Write,
}

/// Use of the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheUse {
    /// Past the page cache (`O_DIRECT`).
    Past,
    /// Through the page cache.
    Through,
    /// Through the page cache for files, past the page cache for devices.
    OfFiles,
}

/// An opened file or device.
#[derive(Debug)]
pub struct Opened {
    /// The open file.
    pub file: File,
    /// Path of the file.
    pub name: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Alignment of requests in bytes; 512 through the page cache.
    pub block_bytes: u64,
    /// True for a block device, false for a file.
    pub is_block_device: bool,
    /// Claim of a target opened for writing. Together with `file`, the claim keeps others out.
    pub claim: Option<Claim>,
}

/// Reason why the target was not opened. The caller adds the path to the message.
#[derive(Debug, Error)]
pub enum OpenError {
    /// An error of the host.
    #[error("{}", in_words(.0))]
    Host(#[from] io::Error),
    /// The target is a folder, a pipe or the like.
    #[error("found {0}; expected a block device or a file")]
    Kind(&'static str),
    /// Another file took the path between the check and the opening.
    #[error("another file took this path during the opening; try again")]
    Replaced,
    /// The target is in use.
    #[error("{0}; it is not written to")]
    InUse(String),
    /// The target is a block device that refuses all writes.
    #[error("the device is read-only; expected a device that can be written to")]
    ReadOnly,
    /// The file system of the target does not support direct I/O.
    #[error("{0}: its file system cannot be read past the page cache")]
    NoWayPast(io::Error),
}

/// Returns an error of the host as text. The host does not say what it expects at a path where
/// nothing is.
fn in_words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => {
            format!("{error}; expected a block device or a file that exists")
        }
        _ => error.to_string(),
    }
}

/// Returns the kind of a file in words, for errors.
pub fn kind_name(kind: fs::FileType) -> &'static str {
    match kind {
        _ if kind.is_dir() => "a folder",
        _ if kind.is_file() => "a file",
        _ if kind.is_block_device() => "a block device",
        _ if kind.is_char_device() => "a character device",
        _ if kind.is_fifo() => "a named pipe",
        _ if kind.is_socket() => "a socket",
        _ => "a file of an unknown kind",
    }
}

/// Opens the block device or file at `path`.
///
/// # Errors
/// If the target has another kind, or is in use and should be written; or an error of the host.
pub fn open(path: &Path, access: DeviceAccess, cache: CacheUse) -> Result<Opened, OpenError> {
    let found = fs::metadata(path)?;
    let kind = found.file_type();
    let is_block_device = kind.is_block_device();
    if !is_block_device && !kind.is_file() {
        return Err(OpenError::Kind(kind_name(kind)));
    }
    let writes = access == DeviceAccess::Write;
    if writes && let Some(mounted) = mounted(path) {
        return Err(OpenError::InUse(mounted));
    }
    // The kernel opens a read-only device for writing, and fails the first write. By then other
    // members of an array may have been wiped.
    if writes && is_block_device && is_read_only(found.rdev()) {
        return Err(OpenError::ReadOnly);
    }
    let direct = cache == CacheUse::Past || cache == CacheUse::OfFiles && is_block_device;
    let mut flags = OFlags::empty();
    flags.set(OFlags::DIRECT, direct);
    // With O_EXCL the kernel refuses a device that is mounted, used for swap, or a member of
    // another device. This includes its partitions (open(2)). Nobody can mount the device
    // meanwhile.
    flags.set(OFlags::EXCL, writes && is_block_device);
    let opened = OpenOptions::new()
        .read(true)
        .write(writes)
        .custom_flags(flags.bits() as i32)
        .open(path);
    let mut file = opened.map_err(|error| match error.raw_os_error() {
        Some(libc::EINVAL) if direct => OpenError::NoWayPast(error),
        Some(libc::EBUSY) => OpenError::InUse(format!(
            "{error}: the device or one of its partitions is mounted or otherwise in use"
        )),
        _ => OpenError::Host(error),
    })?;
    // Another file may have taken the path meanwhile.
    if DeviceIdentity::from(&file.metadata()?) != DeviceIdentity::from(&found) {
        return Err(OpenError::Replaced);
    }
    let claim = writes.then(|| Claim::take(&file, path)).transpose()?;
    // The size of a block device is 0 in its metadata. Seeking to the end works for both.
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

/// Returns the mount point of a block device, because the kernel reports only that the device is
/// busy.
fn mounted(path: &Path) -> Option<String> {
    match DeviceIdentity::of(path).ok()? {
        DeviceIdentity::BlockDevice { number } => mounts::mount_of(number),
        DeviceIdentity::Inode { .. } => None,
    }
}

/// True if the block device with this number refuses writes (`blockdev --setro`, a write-protect
/// switch, a read-only loop device).
fn is_read_only(number: u64) -> bool {
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    // Without the file the first write tells.
    fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/ro"))
        .is_ok_and(|found| found.trim() == "1")
}

/// Returns the alignment of requests past the page cache, in bytes.
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
        // The kernel reports 0 for a file without support for direct I/O (statx(2)).
        .filter(|bytes| bytes.is_power_of_two() && *bytes >= SECTOR_BYTES)
        .unwrap_or(ALIGNMENT_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn refused(path: &Path, access: DeviceAccess) -> String {
        open(path, access, CacheUse::OfFiles)
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn what_is_no_device_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        for (path, kind) in [
            (
                folder.path(),
                "found a folder; expected a block device or a file",
            ),
            (Path::new("/dev/null"), "found a character device; expected"),
        ] {
            let error = refused(path, DeviceAccess::Read);
            assert!(error.starts_with(kind), "{error}");
        }
        assert!(refused(&folder.path().join("gone"), DeviceAccess::Read).contains("No such file"));
        let file = folder.path().join("file");
        fs::write(&file, [0; 700]).unwrap();
        let opened = open(&file, DeviceAccess::Write, CacheUse::OfFiles).unwrap();
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
            let error = refused(&device, DeviceAccess::Write);
            let root = File::open(&device).is_ok();
            assert!(!root || error.contains("not written to"), "{error}");
            tried += 1;
        }
        if tried == 0 {
            eprintln!("skipped: no block device is mounted here");
        }
    }
}
