//! Mount points of block devices, for a better message than the kernel's `Device or resource busy`.

use std::fs;

/// Returns a sentence with the mount point of the device with this number, or of one of its
/// partitions.
pub(crate) fn mount_of(number: u64) -> Option<String> {
    let number = format!(
        "{}:{}",
        rustix::fs::major(number),
        rustix::fs::minor(number)
    );
    let partitions = fs::canonicalize(format!("/sys/dev/block/{number}"))
        .and_then(fs::read_dir)
        .map_or_else(
            |_| Vec::new(),
            |entries| entries.filter_map(Result::ok).collect(),
        );
    let partitions = partitions.into_iter().filter_map(|entry| {
        let partition = entry.path();
        partition
            .join("partition")
            .exists()
            .then(|| fs::read_to_string(partition.join("dev")).ok())
            .flatten()
    });
    let numbers: Vec<String> = partitions
        .map(|number| number.trim().to_owned())
        .chain([number])
        .collect();
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    // mountinfo: id, parent, major:minor, root, mount point, ...
    mounts.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(' ').collect();
        let (number, place) = (fields.get(2)?, fields.get(4)?);
        numbers
            .iter()
            .any(|one| one == number)
            .then(|| format!("the device or one of its partitions is mounted at {place}"))
    })
}
