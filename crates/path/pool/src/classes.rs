//! Classes of the I/O of a drive, and their limits (`module/zfs/vdev_queue.c`, OpenZFS 2.2).

/// Class of an I/O: `zio_priority_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    SyncRead,
    SyncWrite,
    AsyncRead,
    AsyncWrite,
    /// Scrub and healing resilver.
    Scrub,
    /// Sequential resilver: reads, and the writes of missing columns (`vdev_raidz.c`:
    /// `ZIO_PRIORITY_REBUILD` for both).
    Rebuild,
    /// TRIM of free space.
    Trim,
}

pub(crate) const CLASSES: [Class; 7] = [
    Class::SyncRead,
    Class::SyncWrite,
    Class::AsyncRead,
    Class::AsyncWrite,
    Class::Scrub,
    Class::Rebuild,
    Class::Trim,
];

/// Least and largest number of I/Os in the drive, by class: `zfs_vdev_*_min_active`,
/// `zfs_vdev_*_max_active`.
pub(crate) const LIMITS: [(u32, u32); CLASSES.len()] =
    [(10, 10), (10, 10), (1, 3), (2, 10), (1, 3), (1, 3), (1, 2)];

/// Largest number of I/Os in the drive: `zfs_vdev_max_active`.
pub(crate) const ACTIVE_MAX: u32 = 1000;

impl Class {
    /// Returns true for the classes that give way to interactive I/O (`vdev_queue_is_interactive`).
    pub(crate) fn is_of_scans(self) -> bool {
        matches!(self, Class::Scrub | Class::Rebuild)
    }
}

/// Returns the largest number of asynchronous writes in a drive for an amount of dirty data: 2 up to
/// 30 % of the largest amount, 10 from 60 %, and in proportion between
/// (`vdev_queue_max_async_writes`).
pub(crate) fn async_writes(dirty: u64, most: u64) -> u32 {
    let (least, largest) = LIMITS[Class::AsyncWrite as usize];
    // zfs_vdev_async_write_active_min_dirty_percent and
    // zfs_vdev_async_write_active_max_dirty_percent.
    let (from, to) = (most / 100 * 30, most / 100 * 60);
    if dirty < from {
        least
    } else if dirty >= to {
        largest
    } else {
        least + ((dirty - from) * u64::from(largest - least) / (to - from).max(1)) as u32
    }
}
