//! The map of dRAID: `vdev_draid_map_alloc_row` and `vdev_draid_logical_to_physical` of OpenZFS 2.1
//! (`module/zfs/vdev_draid.c`).
//!
//! 1. Each child is cut into rows of 16 MiB.
//! 2. A group has the data and parity of one stripe: `data + parities` columns. A group takes one row
//!    of as many children, and may continue at the beginning of the next row.
//! 3. A slice is the smallest number of rows with whole groups.
//! 4. Each slice has its own order of the children, a permutation. The last positions of the order
//!    are the distributed spares.
//! 5. All columns of a group are equally long. A block that does not fill them is padded, and the
//!    padding is written.

use crate::block::{BlockMap, Column};
use crate::draid_seeds::SEEDS;
use fullstroke_contract::ConfigError;
use fullstroke_units::greatest_common_divisor;

/// Bytes of a row on each child: `VDEV_DRAID_ROWHEIGHT`.
pub const ROW_HEIGHT: u64 = 16 << 20;

/// Bytes at the end of each child that stay free: `VDEV_DRAID_REFLOW_RESERVE`.
pub const RESERVE: u64 = 2 * ROW_HEIGHT;

/// Largest number of distributed spares (`draid_config_by_type`, `cmd/zpool/zpool_vdev.c`).
const SPARES_MAX: u64 = 100;

/// Data devices of a group without a key `data` (`draid_config_by_type`, `cmd/zpool/zpool_vdev.c`).
const DATA_USUAL: u64 = 8;

/// First word of the generator's state: `VDEV_DRAID_SEED`.
const GENERATOR: u64 = 0xd_7a1d_5eed;

/// A dRAID vdev.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draid {
    children: u64,
    data: u64,
    parities: u64,
    spares: u64,
    ashift: u32,
    /// Number of groups in a slice.
    groups: u64,
    /// The orders of the children, one after the other.
    permutations: Vec<u8>,
}

/// The shape of a dRAID, before any address is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DraidShape {
    /// Number of children.
    pub children: u64,
    /// Number of data columns of a group; `None` = 8, or as many as there are.
    pub data: Option<u64>,
    /// Number of parity columns of a group.
    pub parities: u64,
    /// Number of distributed spares.
    pub spares: u64,
}

impl Draid {
    /// Returns the map of a vdev.
    ///
    /// # Errors
    /// ZFS refuses the shape (`draid_config_by_type`).
    pub fn new(shape: DraidShape, ashift: u32) -> Result<Draid, ConfigError> {
        let DraidShape {
            children,
            parities,
            spares,
            ..
        } = shape;
        let data = shape.checked_data()?;
        let width = data + parities;
        let disks = children - spares;
        Ok(Draid {
            children,
            data,
            parities,
            spares,
            ashift,
            groups: disks / greatest_common_divisor(width, disks),
            permutations: permutations(children),
        })
    }

    /// Returns the number of children.
    pub fn children(&self) -> u64 {
        self.children
    }

    /// Returns the number of parity columns of a group.
    pub fn parities(&self) -> u64 {
        self.parities
    }

    /// Returns the number of distributed spares.
    pub fn spares(&self) -> u64 {
        self.spares
    }

    /// Returns the number of data columns of a group.
    pub fn data(&self) -> u64 {
        self.data
    }

    /// Returns the child that holds the first distributed spare at a byte of the children
    /// (`vdev_draid_spare_get_child`): the last position of the slice's order.
    pub fn spare_child(&self, physical: u64) -> u64 {
        let rows = self.width() * self.groups / self.disks();
        let (order, turn) = self.order(physical / (rows * ROW_HEIGHT));
        let last = order[self.children as usize - 1];
        (u64::from(last) + turn) % self.children
    }

    /// Returns the number of children without the distributed spares.
    pub fn disks(&self) -> u64 {
        self.children - self.spares
    }

    /// Returns the number of columns of a group.
    pub fn width(&self) -> u64 {
        self.data + self.parities
    }

    /// Returns the number of bytes of a group.
    pub fn group_size(&self) -> u64 {
        self.width() * ROW_HEIGHT
    }

    /// Returns the number of bytes of the vdev for a block of `psize` bytes: whole rows of the group
    /// (`vdev_draid_asize`).
    pub fn asize(&self, psize: u64) -> u64 {
        let rows = psize.div_ceil(self.data << self.ashift);
        (rows * self.width()) << self.ashift
    }

    /// Writes the places of a block into `map`. `offset` is the block's first byte on the vdev, a
    /// multiple of the group's width in sectors. A block that crosses the end of a group has two
    /// rows.
    pub fn map(&self, offset: u64, psize: u64, map: &mut BlockMap) {
        map.clear();
        let psize = psize.next_multiple_of(1 << self.ashift);
        let group_end = (offset / self.group_size() + 1) * self.group_size();
        // The part of the block in the first group has whole rows.
        let first = psize.min((group_end - offset) / self.width() * self.data);
        self.map_row(offset, first, map);
        if first < psize {
            self.map_row(group_end, psize - first, map);
        }
    }

    fn map_row(&self, offset: u64, psize: u64, map: &mut BlockMap) {
        let (p, ashift) = (self.parities, self.ashift);
        let (start, permutation, mut physical) = self.place(offset);
        let (order, turn) = self.order(permutation);
        let wrap = self.disks() - start;
        let data = psize >> ashift;
        let quotient = data / self.data;
        let remainder = data % self.data;
        let big = if remainder == 0 { 0 } else { remainder + p };
        let longest = quotient + u64::from(remainder > 0);
        map.begin_row(p as u32);
        for index in 0..self.width() {
            // A group may begin near the end of a row of drives. The rest of the group lies one row
            // further down.
            if index == wrap {
                physical += ROW_HEIGHT;
            }
            let position = (start + index) % self.disks();
            let child = (u64::from(order[position as usize]) + turn) % self.children;
            let sectors = quotient + u64::from(index < big);
            let column = Column {
                child: child as u32,
                offset: physical,
                size: sectors << ashift,
            };
            map.push(column);
            if sectors < longest {
                map.skip(Column {
                    offset: column.offset + column.size,
                    size: 1 << ashift,
                    ..column
                });
            }
        }
    }

    /// Returns the first position of the group of `offset` in the order of its slice, the number of
    /// the slice, and the byte on the group's first child.
    fn place(&self, offset: u64) -> (u64, u64, u64) {
        let (width, disks) = (self.width(), self.disks());
        let group = offset / self.group_size();
        let within = offset % self.group_size() / width;
        let permutation = group / self.groups;
        let rows = width * self.groups / disks;
        let row = permutation * rows + group % self.groups * width / disks;
        let start = group * width % disks;
        // Sectors of a group run across its columns.
        let sector = within >> self.ashift << self.ashift;
        (start, permutation, row * ROW_HEIGHT + sector)
    }

    /// Returns the order of the children of a slice: a stored order and the number of steps by which
    /// each child is turned on.
    fn order(&self, permutation: u64) -> (&[u8], u64) {
        let children = self.children as usize;
        let index = permutation % self.permutations.len() as u64;
        let row = index as usize / children;
        let order = &self.permutations[row * children..][..children];
        (order, index % self.children)
    }
}

impl DraidShape {
    /// Returns the number of data columns of a group.
    fn checked_data(&self) -> Result<u64, ConfigError> {
        let DraidShape {
            children,
            parities,
            spares,
            ..
        } = *self;
        let fail = |key: &str, message: String| Err(ConfigError::new(key, message));
        if children > crate::raidz::CHILDREN_MAX {
            return fail(
                "members",
                format!("found {children}; draid has at most 255 devices"),
            );
        }
        if self.data == Some(0) {
            return fail("data", "found 0; a group has at least 1 data device".into());
        }
        if children <= parities {
            let message = format!(
                "found {children}; 1 data and {parities} parity need at least {} devices",
                1 + parities
            );
            return fail("members", message);
        }
        // The smallest group has one data device, so that more spares fit no `data` at all.
        let spares_most = (children - parities - 1).min(SPARES_MAX);
        if spares > spares_most {
            let message = format!(
                "found {spares}; {children} devices with {parities} parity have at most {spares_most} distributed spares"
            );
            return fail("spares", message);
        }
        let data_most = children - parities - spares;
        match self.data {
            // `data` is named, because every smaller value is right with these spares.
            Some(data) if data > data_most => fail(
                "data",
                format!(
                    "found {data}; {children} devices with {parities} parity and {spares} distributed spares have groups of at most {data_most} data devices ({data} need {} devices)",
                    data + parities + spares
                ),
            ),
            Some(data) => Ok(data),
            None => Ok(data_most.min(DATA_USUAL)),
        }
    }
}

/// Returns the orders of `children` children. Each order is the one before, shuffled by Fisher and
/// Yates with the generator xoroshiro128++ (`vdev_draid_generate_perms`, `vdev_draid_rand`).
fn permutations(children: u64) -> Vec<u8> {
    // The numbers of permutations of `draid_maps` (module/zcommon/zfs_draid.c).
    let count = if children < 32 { 256 } else { 512 };
    let children = children as usize;
    // The table begins with two children.
    let (seed, _) = SEEDS[children - 2];
    let mut state = [GENERATOR, seed];
    let mut order: Vec<u8> = (0..children).map(|child| child as u8).collect();
    let mut all = Vec::with_capacity(children * count);
    for _ in 0..count {
        // The shuffle of `vdev_draid_generate_perms`. Another shuffle of the same numbers would
        // place the blocks elsewhere.
        for last in (1..children).rev() {
            order.swap(last, (next(&mut state) % (last as u64 + 1)) as usize);
        }
        all.extend_from_slice(&order);
    }
    all
}

/// The generator xoroshiro128++ of Blackman and Vigna.
fn next([a, b]: &mut [u64; 2]) -> u64 {
    let number = a.wrapping_add(*b).rotate_left(17).wrapping_add(*a);
    let both = *b ^ *a;
    *a = a.rotate_left(49) ^ both ^ (both << 21);
    *b = both.rotate_left(28);
    number
}

#[cfg(test)]
#[path = "draid_tests.rs"]
mod tests;
