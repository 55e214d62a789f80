//! The kinds of vdevs: one map, one size rule and one choice of redundancy each.

use crate::block::{BlockMap, Column};
use crate::draid::{self, Draid};
use crate::raidz::Raidz;
use std::sync::Arc;

/// A vdev: drives with common redundancy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Vdev {
    /// Every child holds all data.
    Mirror {
        /// Number of children.
        children: u64,
        /// The sector is `2^ashift` bytes.
        ashift: u32,
    },
    /// Blocks with parity, on as many children as the block needs.
    Raidz(Raidz),
    /// Blocks with parity in groups of fixed width, and spares on all children.
    Draid(Arc<Draid>),
}

impl Vdev {
    /// Returns the number of children.
    pub fn children(&self) -> u64 {
        match self {
            Vdev::Mirror { children, .. } => *children,
            Vdev::Raidz(raidz) => raidz.children(),
            Vdev::Draid(draid) => draid.children(),
        }
    }

    /// Returns the number of arbitrary children whose loss the vdev survives.
    pub fn survives(&self) -> u64 {
        match self {
            Vdev::Mirror { children, .. } => children - 1,
            Vdev::Raidz(raidz) => raidz.parities(),
            Vdev::Draid(draid) => draid.parities(),
        }
    }

    /// Returns the number of bytes of the vdev for a block of `psize` bytes.
    pub fn asize(&self, psize: u64) -> u64 {
        match self {
            Vdev::Mirror { ashift, .. } => psize.next_multiple_of(1 << ashift),
            Vdev::Raidz(raidz) => raidz.asize(psize),
            Vdev::Draid(draid) => draid.asize(psize),
        }
    }

    /// Returns the bytes of a vdev whose smallest child has `child` bytes between its labels
    /// (`vdev_raidz_open`, `vdev_draid_open`, `vdev_mirror_open`).
    pub fn size(&self, child: u64) -> u64 {
        match self {
            Vdev::Mirror { .. } => child,
            Vdev::Raidz(raidz) => child * raidz.children(),
            Vdev::Draid(draid) => {
                let rows = child.saturating_sub(draid::RESERVE) / draid::ROW_HEIGHT;
                let all = rows * draid::ROW_HEIGHT * draid.disks();
                all / draid.group_size() * draid.group_size()
            }
        }
    }

    /// Returns the unit in which the vdev deals with addresses: blocks begin at its multiples.
    pub fn alignment(&self, ashift: u32) -> u64 {
        match self {
            Vdev::Draid(draid) => draid.width() << ashift,
            _ => 1 << ashift,
        }
    }

    /// Returns the bytes after which the pool goes on to its next vdev. ZFS's unit is `aliquot` for
    /// each data drive (`metaslab_group_activate`: `metaslab_aliquot * (ndisks - nparity)`).
    pub fn turn(&self, aliquot: u64) -> u64 {
        aliquot * self.data_drives()
    }

    /// Returns the number of drives without parity drives (`vdev_get_ndisks`, `vdev_get_nparity`). A
    /// mirror counts as one drive, and spares of a dRAID do not count.
    pub fn data_drives(&self) -> u64 {
        let drives = match self {
            Vdev::Mirror { .. } => 1,
            Vdev::Raidz(raidz) => raidz.children() - raidz.parities(),
            Vdev::Draid(draid) => draid.disks() - draid.parities(),
        };
        drives.max(1)
    }

    /// Writes the places of a block into `map`. The columns of a mirror are its copies.
    pub fn map(&self, offset: u64, psize: u64, map: &mut BlockMap) {
        match self {
            Vdev::Mirror { children, ashift } => {
                map.clear();
                map.begin_row(0);
                for child in 0..*children as u32 {
                    map.push(Column {
                        child,
                        offset,
                        size: psize.next_multiple_of(1 << ashift),
                    });
                }
            }
            Vdev::Raidz(raidz) => raidz.map(offset, psize, map),
            Vdev::Draid(draid) => draid.map(offset, psize, map),
        }
    }

    /// Returns true if the columns of a row are copies.
    pub fn is_mirror(&self) -> bool {
        matches!(self, Vdev::Mirror { .. })
    }
}
