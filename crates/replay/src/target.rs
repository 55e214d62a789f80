//! The device or file: its size, its alignment, and whether others use it.

use crate::{ReplayError, Writes};
use fullstroke_units::{SECTOR_BYTES, Sectors};
use rustix::fs::{AtFlags, OFlags, StatxFlags};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek as _, SeekFrom};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Alignment where the kernel does not say: that of the largest logical block in use.
const ALIGNMENT_UNKNOWN: u64 = 4096;

/// What a trace is replayed on.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) file: File,
    pub(crate) name: String,
    /// Whole blocks only.
    pub(crate) capacity: Sectors,
    /// Requests begin and end at multiples of this.
    pub(crate) alignment_bytes: u64,
}

impl Target {
    /// Opens it; for writing if that is allowed.
    pub(crate) fn open(path: &Path, writes: Writes, buffered: bool) -> Result<Target, ReplayError> {
        let name = path.display().to_string();
        let refuse = |reason: String| ReplayError::Target { device: name.clone(), reason };
        let write = writes == Writes::Overwrite;
        let kind = fs::metadata(path).map_err(|error| refuse(error.to_string()))?;
        let is_device = kind.file_type().is_block_device();
        if !is_device && !kind.is_file() {
            return Err(refuse("found something else; expected a block device or a file".to_owned()));
        }
        if write && let Some(user) = user_of(path, is_device) {
            return Err(refuse(format!("{user}; it is not written to")));
        }
        let mut file =
            open(path, write, is_device, buffered).map_err(|error| refuse(explain(&error, buffered)))?;
        let bytes = file.seek(SeekFrom::End(0))?;
        let alignment_bytes = if buffered { SECTOR_BYTES } else { alignment(&file, is_device) };
        let capacity = Sectors(bytes / alignment_bytes * (alignment_bytes / SECTOR_BYTES));
        if capacity == Sectors::ZERO {
            let reason = format!(
                "found {bytes} bytes; expected a device with a medium, or a file as large as the device that it \
                 stands for (`truncate --size 10G FILE`)"
            );
            return Err(refuse(reason));
        }
        Ok(Target { file, name, capacity, alignment_bytes })
    }
}

fn open(path: &Path, write: bool, is_device: bool, buffered: bool) -> io::Result<File> {
    let mut flags = OFlags::empty();
    flags.set(OFlags::DIRECT, !buffered);
    // With it the kernel refuses a device that is mounted, swapped to, or a member of another
    // device, and so are its partitions (open(2)); and nobody can mount it meanwhile.
    flags.set(OFlags::EXCL, write && is_device);
    OpenOptions::new().read(true).write(write).custom_flags(flags.bits() as i32).open(path)
}

fn explain(error: &io::Error, buffered: bool) -> String {
    match error.raw_os_error() {
        Some(libc::EINVAL) if !buffered => format!(
            "{error}: its file system cannot be read past the page cache; expected a device or another file \
             system, or --buffered, with which the page cache is measured"
        ),
        Some(libc::EBUSY) => {
            format!("{error}: it, or a part of it, is mounted or otherwise in use; it is not written to")
        }
        _ => error.to_string(),
    }
}

/// What requests are aligned to.
fn alignment(file: &File, is_device: bool) -> u64 {
    let found = if is_device {
        rustix::fs::ioctl_blksszget(file).ok().map(u64::from)
    } else {
        let statx =
            rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::from_bits_retain(STATX_DIOALIGN));
        statx.ok().map(|found| u64::from(found.stx_dio_offset_align))
    };
    found.filter(|bytes| bytes.is_power_of_two() && *bytes >= SECTOR_BYTES).unwrap_or(ALIGNMENT_UNKNOWN)
}

/// `STATX_DIOALIGN` of `linux/stat.h` (Linux 6.1).
const STATX_DIOALIGN: u32 = 0x2000;

/// Who uses what is to be written to, as far as it can be said in better words than the kernel's.
fn user_of(path: &Path, is_device: bool) -> Option<String> {
    if is_device {
        let number = fs::metadata(path).ok()?.rdev();
        let number = format!("{}:{}", rustix::fs::major(number), rustix::fs::minor(number));
        return mount_of(&number);
    }
    let path = path.canonicalize().ok()?;
    let (device, _) = loop_devices().into_iter().find(|(_, backing)| *backing == path)?;
    Some(format!("it is what the loop device `{device}` stands on"))
}

/// Where the device with this number is mounted, or a partition of it.
fn mount_of(number: &str) -> Option<String> {
    let device = fs::canonicalize(format!("/sys/dev/block/{number}")).ok()?;
    let partitions = fs::read_dir(&device).ok()?.filter_map(|entry| {
        let partition = entry.ok()?.path();
        partition.join("partition").exists().then(|| fs::read_to_string(partition.join("dev")).ok()).flatten()
    });
    let numbers: Vec<String> =
        partitions.map(|number| number.trim().to_owned()).chain([number.to_owned()]).collect();
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    // mountinfo: id, parent, major:minor, root, mount point, ...
    mounts.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(' ').collect();
        let (number, place) = (fields.get(2)?, fields.get(4)?);
        numbers.iter().any(|one| one == number).then(|| format!("it, or a part of it, is mounted at {place}"))
    })
}

/// Loop devices and what they stand on.
fn loop_devices() -> Vec<(String, PathBuf)> {
    let Ok(devices) = fs::read_dir("/sys/block") else { return Vec::new() };
    let stands_on = |device: fs::DirEntry| {
        let backing = fs::read_to_string(device.path().join("loop/backing_file")).ok()?;
        Some((format!("/dev/{}", device.file_name().display()), PathBuf::from(backing.trim_end())))
    };
    devices.filter_map(|device| stands_on(device.ok()?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(path: &Path, writes: Writes) -> String {
        Target::open(path, writes, false).unwrap_err().to_string()
    }

    #[test]
    fn what_is_no_device_is_refused_with_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let error = refused(folder.path(), Writes::Refuse);
        assert!(error.contains("expected a block device or a file") && error.contains("`/"), "{error}");
        let error = refused(&folder.path().join("gone"), Writes::Refuse);
        assert!(error.contains("gone") && error.contains("No such file"), "{error}");
        let empty = folder.path().join("empty");
        fs::write(&empty, "").unwrap();
        let error = Target::open(&empty, Writes::Refuse, true).unwrap_err().to_string();
        assert!(error.contains("found 0 bytes") && error.contains("truncate"), "{error}");
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
            let error = refused(&device, Writes::Overwrite);
            let root = File::open(&device).is_ok();
            assert!(!root || error.contains("not written to"), "{error}");
            tried += 1;
        }
        if tried == 0 {
            eprintln!("skipped: no block device is mounted here");
        }
    }
}
