//! The capacity of a pool, as `zpool list` and `zfs list` show the capacity.
//!
//! 1. A whole disk gets a partition: 1 MiB at the front and 8 MiB at the end stay outside.
//! 2. A drive has two labels and the boot block at the front, 4 MiB, and two labels at the end,
//!    512 KiB.
//! 3. A vdev is cut into metaslabs of a power of two. The rest behind the last metaslab is unused.
//! 4. `zpool list` shows the sum of the metaslabs. The figure of a RAIDZ or dRAID includes parity.
//! 5. `zfs list` counts in **deflated** bytes: the share of data in a block of 128 KiB, padding
//!    included, rounded down to 1/512.
//! 6. One metaslab of each vdev is kept for the intent log, and 1/32 of the rest is **slop**.

use crate::vdev::Vdev;
use fullstroke_units::{SECTOR_BYTES, Sectors};
use serde::Serialize;

/// Bytes of a label: `sizeof (vdev_label_t)` (`include/sys/vdev_impl.h`).
const LABEL: u64 = 256 << 10;

/// Bytes before the data of a drive: two labels and `VDEV_BOOT_SIZE`, 3.5 MiB.
pub const FRONT: u64 = 2 * LABEL + (7 << 19);

/// Bytes behind the data of a drive: two labels.
pub const END: u64 = 2 * LABEL;

/// First sector of the partition on a whole disk: `NEW_START_BLOCK` (`lib/libzfs/libzfs_impl.h`).
pub const PARTITION: u64 = 2048;

/// Sectors of the reserved partition at the end: `EFI_MIN_RESV_SIZE` (`libefi`).
const RESERVED: u64 = 16 * 1024;

/// Sectors behind the last usable sector of a disk: the second table of partitions.
const TABLE: u64 = 33;

/// Smallest drive of a pool: `SPA_MINDEVSIZE`.
pub const DRIVE_MIN: u64 = 64 << 20;

/// Smallest and largest slop: `spa_min_slop`, `spa_max_slop` (`module/zfs/spa_misc.c`, 2.1).
const SLOP_MIN: u64 = 128 << 20;
const SLOP_MAX: u64 = 128 << 30;

/// Share of slop, as a shift: `spa_slop_shift`.
const SLOP_SHIFT: u32 = 5;

/// Number of metaslabs from which a vdev keeps one for the intent log: `zfs_embedded_slog_min_ms`.
const LOG_METASLABS: u64 = 64;

/// The metaslabs of a vdev.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metaslabs {
    /// A metaslab has `2^shift` bytes.
    pub shift: u32,
    /// Number of metaslabs.
    pub count: u64,
}

/// The capacity of a pool in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PoolCapacity {
    /// `SIZE` of `zpool list`.
    #[serde(rename = "zpool_size_bytes")]
    pub size: u64,
    /// `USED` and `AVAIL` of `zfs list` for the root of the pool, together.
    #[serde(rename = "zfs_available_bytes")]
    pub available: u64,
    /// Slop, in deflated bytes.
    #[serde(rename = "slop_bytes")]
    pub slop: u64,
    /// Bytes of data that fit if all blocks have the size of a record.
    #[serde(rename = "data_bytes")]
    pub data: u64,
    /// Bytes of parity, copies and padding on the vdev for each record.
    #[serde(rename = "record_overhead_bytes")]
    pub record_parity: u64,
    /// Bytes of padding on the vdev for each record, a part of `record_parity`.
    #[serde(rename = "record_padding_bytes")]
    pub record_padding: u64,
}

/// Returns the bytes between the labels of a whole disk (`zpool_label_disk`, `vdev_open`).
pub fn child_size(disk: Sectors) -> u64 {
    // The partition ends at a whole MiB.
    let usable = disk.0.saturating_sub(TABLE + RESERVED + PARTITION);
    let partition = usable / PARTITION * PARTITION * SECTOR_BYTES;
    (partition / LABEL * LABEL).saturating_sub(FRONT + END)
}

impl Metaslabs {
    /// Cuts a vdev of `size` bytes into metaslabs: about 200, of 512 MiB to 16 GiB, but not more
    /// than 131,072 (`vdev_metaslab_set_size`, `module/zfs/vdev.c`, 2.1).
    pub fn of(size: u64) -> Metaslabs {
        // `vdev_metaslab_set_size` (module/zfs/vdev.c): zfs_vdev_default_ms_shift,
        // SPA_MAXBLOCKSHIFT, zfs_vdev_max_ms_shift, zfs_vdev_min_ms_count,
        // zfs_vdev_default_ms_count, zfs_vdev_ms_count_limit.
        const DEFAULT_SHIFT: u32 = 29;
        const SHIFT_MIN: u32 = 24;
        const SHIFT_MAX: u32 = 34;
        const LEAST: u64 = 16;
        const USUAL: u64 = 200;
        const LIMIT: u64 = 1 << 17;
        // The number of bits of a quotient: the power of two above the quotient.
        let shift_of = |quotient: u64| u64::BITS - quotient.leading_zeros();
        let at_default = size >> DEFAULT_SHIFT;
        let mut shift = if at_default < LEAST {
            shift_of(size / LEAST)
        } else if at_default > USUAL {
            shift_of(size / USUAL)
        } else {
            DEFAULT_SHIFT
        };
        if shift < SHIFT_MIN {
            shift = SHIFT_MIN;
        } else if shift > SHIFT_MAX {
            shift = SHIFT_MAX;
            if size >> shift > LIMIT {
                shift = shift_of(size / LIMIT);
            }
        }
        Metaslabs {
            shift,
            count: size >> shift,
        }
    }

    /// Returns the bytes of all metaslabs.
    pub fn bytes(&self) -> u64 {
        self.count << self.shift
    }

    /// Returns the number of metaslabs that are kept for the intent log.
    pub fn for_log(&self) -> u64 {
        u64::from(self.count > LOG_METASLABS)
    }
}

/// Returns the deflated bytes of 512 bytes of a vdev: data in a block of 128 KiB
/// (`vdev_set_deflate_ratio`).
fn deflate_ratio(vdev: &Vdev) -> u64 {
    const BLOCK: u64 = 1 << 17;
    BLOCK / (vdev.asize(BLOCK) / SECTOR_BYTES)
}

/// Returns the deflated bytes of `bytes` of a vdev (`vdev_deflated_space`).
fn deflated(vdev: &Vdev, bytes: u64) -> u64 {
    bytes / SECTOR_BYTES * deflate_ratio(vdev)
}

/// Returns the slop of a pool (`spa_get_slop_space`). `log` are the bytes that the vdevs keep for
/// the intent log. `most` is the largest slop.
fn slop(space: u64, log: u64, most: u64) -> u64 {
    let share = (space >> SLOP_SHIFT).min(most);
    let share = share - log.min(share >> 1);
    share.max(SLOP_MIN.min(space >> 1))
}

impl PoolCapacity {
    /// Returns the capacity of a pool of vdevs, each with the size of its smallest child. A record
    /// has `record` bytes, and `psize` bytes after compression. The vdevs are of one kind.
    pub fn of(vdevs: &[(Vdev, u64)], record: u64, psize: u64) -> PoolCapacity {
        PoolCapacity::with_slop(vdevs, record, psize, SLOP_MAX)
    }

    fn with_slop(vdevs: &[(Vdev, u64)], record: u64, psize: u64, most: u64) -> PoolCapacity {
        let mut size = 0;
        let (mut space, mut log) = (0, 0);
        for (vdev, child) in vdevs {
            let metaslabs = Metaslabs::of(vdev.size(*child));
            let for_log = metaslabs.for_log() << metaslabs.shift;
            size += metaslabs.bytes();
            space += deflated(vdev, metaslabs.bytes() - for_log);
            log += deflated(vdev, for_log);
        }
        let slop = slop(space, log, most);
        let available = space - slop;
        let Some((vdev, _)) = vdevs.first() else {
            return PoolCapacity::default();
        };
        // A pool whose vdevs differ in size has one shape for all vdevs, so the first vdev tells
        // the size of a record.
        let asize = vdev.asize(psize);
        let each = deflated(vdev, asize).max(1);
        PoolCapacity {
            size,
            available,
            slop,
            data: available / each * record,
            record_parity: asize.saturating_sub(psize),
            record_padding: padding(vdev, psize),
        }
    }
}

/// Returns the bytes of padding in a block.
fn padding(vdev: &Vdev, psize: u64) -> u64 {
    let mut map = crate::BlockMap::default();
    vdev.map(0, psize, &mut map);
    map.skips().iter().map(|skip| skip.size).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Draid, DraidShape, Raidz};
    use std::sync::Arc;

    const TB: u64 = 1_000_000_000_000;
    const TIB: f64 = 1_099_511_627_776.0;

    fn raidz(children: u64, parities: u64, ashift: u32) -> Vdev {
        Vdev::Raidz(Raidz::new(children, parities, ashift).unwrap())
    }

    fn capacity(vdev: Vdev, disk: u64, slop: u64) -> PoolCapacity {
        let child = child_size(Sectors(disk / 512));
        PoolCapacity::with_slop(&[(vdev, child)], 131_072, 131_072, slop)
    }

    /// "ZFS storage overhead" (wintelguy.com, 2017): a disk of 1,000 GiB becomes a pool of 124
    /// metaslabs of 8 GiB.
    #[test]
    fn a_disk_of_1000_gib_is_a_pool_of_992_gib() {
        let disk = Vdev::Mirror {
            children: 1,
            ashift: 9,
        };
        let pool = capacity(disk, 1_073_741_824_000, SLOP_MAX);
        assert_eq!(pool.size, 1_065_151_889_408);
    }

    /// OpenZFS issue 15467: `draid2:6d:24c:0s` of disks of 1 TB has 1,396 metaslabs of 16 GiB, and
    /// `zfs list -p` shows 15,835,678,638,080 bytes.
    #[test]
    fn the_reported_draid_has_its_capacity_to_the_byte() {
        let shape = DraidShape {
            children: 24,
            data: Some(6),
            parities: 2,
            spares: 0,
        };
        let draid = Vdev::Draid(Arc::new(Draid::new(shape, 12).unwrap()));
        let metaslabs = Metaslabs::of(draid.size(child_size(Sectors(TB / 512))));
        assert_eq!((metaslabs.count, metaslabs.shift), (1396, 34));
        let pool = capacity(draid, TB, SLOP_MAX);
        assert_eq!(pool.available, 15_835_678_638_080);
    }

    /// OpenZFS issue 8163 (version 0.7.9, without a largest slop and a largest metaslab): RAIDZ2 of
    /// 11 disks of 4 TB, TiB available by `ashift`. Metaslabs of 256 GiB there leave 40.0 TiB; this
    /// crate's metaslabs of 16 GiB leave at most 16 GiB more.
    #[test]
    fn a_raidz2_has_the_published_capacity_at_each_sector_size() {
        for (ashift, tib) in [
            (9, 31.5),
            (10, 31.2),
            (11, 30.6),
            (12, 29.5),
            (13, 29.5),
            (14, 25.8),
            (15, 25.8),
            (16, 12.9),
        ] {
            let vdev = raidz(11, 2, ashift);
            let space = deflated(&vdev, 160 << 38);
            let found = (space - slop(space, 0, u64::MAX)) as f64 / TIB;
            assert!((found - tib).abs() < 0.05, "ashift {ashift}: {found}");
        }
    }

    /// "Zpool size doesn't match" (equivariant.org): RAIDZ1 of three disks of 4 TB: 10.9 TiB in
    /// `zpool list`, 7.04 TiB in `zfs list`, without a largest slop.
    #[test]
    fn a_raidz1_of_three_has_the_published_sizes() {
        let pool = capacity(raidz(3, 1, 12), 4_000_787_030_016, u64::MAX);
        assert_eq!(format!("{:.1}", pool.size as f64 / TIB), "10.9");
        assert_eq!(format!("{:.2}", pool.available as f64 / TIB), "7.04");
        // Since 2.1, the slop is at most 128 GiB.
        let pool = capacity(raidz(3, 1, 12), 4_000_787_030_016, SLOP_MAX);
        assert_eq!(format!("{:.2}", pool.available as f64 / TIB), "7.14");
    }

    #[test]
    fn metaslabs_are_cut_by_the_size_of_the_vdev() {
        for (size, shift, count) in [
            (200 << 20, 24, 12),
            (10 << 30, 29, 20),
            (100 << 30, 29, 200),
            (128 << 30, 30, 128),
            (16 << 40, 34, 1024),
            (4 << 50, 36, 65_536),
        ] {
            assert_eq!(Metaslabs::of(size), Metaslabs { shift, count }, "{size}");
        }
    }

    /// Small records waste space on a wide vdev: 16 KiB on RAIDZ2 of 11 take 2 parities and 0 of
    /// padding, 8 KiB take 2 and 2.
    #[test]
    fn padding_and_parity_of_a_record_are_told() {
        let child = child_size(Sectors(TB / 512));
        let of = |record| PoolCapacity::of(&[(raidz(11, 2, 12), child)], record, record);
        let (small, large) = (of(8 << 10), of(128 << 10));
        assert_eq!(
            (small.record_parity, small.record_padding),
            (16 << 10, 8 << 10)
        );
        assert_eq!(
            (large.record_parity, large.record_padding),
            (40 << 10, 8 << 10)
        );
        assert!(small.data < large.data / 2);
    }
}
