//! Who uses a device or file, as far as it can be said in better words than the
//! kernel's.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Why it should not be written to.
pub(crate) fn user_of(path: &Path, is_block_device: bool) -> Option<String> {
    if is_block_device {
        let number = fs::metadata(path).ok()?.rdev();
        return mount_of(&format!(
            "{}:{}",
            rustix::fs::major(number),
            rustix::fs::minor(number)
        ));
    }
    let path = path.canonicalize().ok()?;
    let (device, _) = loop_devices()
        .into_iter()
        .find(|(_, backing)| *backing == path)?;
    Some(format!("it is what the loop device `{device}` stands on"))
}

/// Where the device with this number is mounted, or a partition of it.
fn mount_of(number: &str) -> Option<String> {
    let device = fs::canonicalize(format!("/sys/dev/block/{number}")).ok()?;
    let partitions = fs::read_dir(&device).ok()?.filter_map(|entry| {
        let partition = entry.ok()?.path();
        partition
            .join("partition")
            .exists()
            .then(|| fs::read_to_string(partition.join("dev")).ok())
            .flatten()
    });
    let numbers: Vec<String> = partitions
        .map(|number| number.trim().to_owned())
        .chain([number.to_owned()])
        .collect();
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    // mountinfo: id, parent, major:minor, root, mount point, ...
    mounts.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(' ').collect();
        let (number, place) = (fields.get(2)?, fields.get(4)?);
        numbers
            .iter()
            .any(|one| one == number)
            .then(|| format!("it, or a part of it, is mounted at {place}"))
    })
}

/// Loop devices and what they stand on.
fn loop_devices() -> Vec<(String, PathBuf)> {
    let Ok(devices) = fs::read_dir("/sys/block") else {
        return Vec::new();
    };
    let stands_on = |device: fs::DirEntry| {
        let backing = fs::read_to_string(device.path().join("loop/backing_file")).ok()?;
        Some((
            format!("/dev/{}", device.file_name().display()),
            PathBuf::from(backing.trim_end()),
        ))
    };
    devices
        .filter_map(|device| stands_on(device.ok()?))
        .collect()
}
