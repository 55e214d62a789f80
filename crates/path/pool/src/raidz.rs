//! The map of RAIDZ: `vdev_raidz_map_alloc` of OpenZFS 2.1 (`module/zfs/vdev_raidz.c`), and the map
//! of old blocks after an expansion: `vdev_raidz_map_alloc_expanded` of OpenZFS 2.3.
//!
//! A vdev counts its sectors across its children: sector `b` lies on child `b mod n`, at sector
//! `b / n`. A block takes consecutive sectors of the vdev, and each block has rows of its own: `p`
//! parity sectors and up to `n - p` data sectors. So no write reads old data. The price is padding:
//! a block takes a multiple of `p + 1` sectors, because a shorter hole could hold no block.

use crate::block::{BlockMap, Column};
use fullstroke_contract::ConfigError;

/// Largest number of parities: `VDEV_RAIDZ_MAXPARITY` (`include/sys/fs/zfs.h`).
pub const PARITIES_MAX: u64 = 3;

/// Largest number of children: 255 (`VDEV_RAIDZ_MAX_CHILDREN`, and the powers of the field).
pub const CHILDREN_MAX: u64 = 255;

/// Parity of single-parity blocks changes the column at every other MiB of the vdev.
const SWAP: u64 = 1 << 20;

/// A RAIDZ vdev.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raidz {
    /// Number of children: the physical width.
    children: u64,
    /// Number of children when the blocks were written: the logical width.
    width: u64,
    parities: u64,
    ashift: u32,
}

impl Raidz {
    /// Returns the map of a vdev.
    ///
    /// # Errors
    /// ZFS refuses the number of children (`zpool_vdev.c`: `is_grouping` asks for one more child than
    /// parities).
    pub fn new(children: u64, parities: u64, ashift: u32) -> Result<Raidz, ConfigError> {
        let least = parities + 1;
        if children < least {
            let message = format!(
                "found {children}; raidz{parities} requires at least {least} devices, and {} are useful",
                least + 1
            );
            return Err(ConfigError::new("members", message));
        }
        if children > CHILDREN_MAX {
            let message = format!("found {children}; raidz has at most {CHILDREN_MAX} devices");
            return Err(ConfigError::new("members", message));
        }
        Ok(Raidz {
            children,
            width: children,
            parities,
            ashift,
        })
    }

    /// Returns the map of the blocks that were written when the vdev had `width` children.
    ///
    /// # Errors
    /// `width` is more than the number of children, or too few for the parities.
    pub fn before_expansion(self, width: u64) -> Result<Raidz, ConfigError> {
        let least = self.parities + 1;
        if width < least || width > self.children {
            let message = format!(
                "found {width}; expected {least} to {}, the number of devices before the expansion",
                self.children
            );
            return Err(ConfigError::new("expanded_from", message));
        }
        Ok(Raidz { width, ..self })
    }

    /// Returns the number of children.
    pub fn children(&self) -> u64 {
        self.children
    }

    /// Returns the number of parities.
    pub fn parities(&self) -> u64 {
        self.parities
    }

    /// Returns the number of bytes of the vdev for a block of `psize` bytes: data, parity and
    /// padding (`vdev_raidz_asize`).
    pub fn asize(&self, psize: u64) -> u64 {
        let data = psize.div_ceil(1 << self.ashift);
        let rows = data.div_ceil(self.width - self.parities);
        // Rounded up to parity + 1, so that a freed block is never too small for another block
        // (`vdev_raidz_asize`).
        (data + self.parities * rows).next_multiple_of(self.parities + 1) << self.ashift
    }

    /// Writes the places of a block into `map`. `offset` is the block's first byte on the vdev, a
    /// multiple of the sector. A size between two sectors takes the whole last sector.
    pub fn map(&self, offset: u64, psize: u64, map: &mut BlockMap) {
        map.clear();
        if self.width == self.children {
            self.map_whole(offset, psize, map);
        } else {
            self.map_expanded(offset, psize, map);
        }
    }

    /// Writes the map of a block as wide as the vdev: each column is one run of bytes.
    fn map_whole(&self, offset: u64, psize: u64, map: &mut BlockMap) {
        let (n, p, ashift) = (self.children, self.parities, self.ashift);
        let data = psize.div_ceil(1 << ashift);
        // Names of the columns' lengths as in ZFS: `big` columns have a sector more.
        let quotient = data / (n - p);
        let remainder = data % (n - p);
        let big = if remainder == 0 { 0 } else { remainder + p };
        let total = data + p * (quotient + u64::from(remainder > 0));
        let (used, touched) = if quotient == 0 {
            (big, n.min(big.next_multiple_of(p + 1)))
        } else {
            (n, n)
        };
        let first = offset >> ashift;
        let column = |index: u64| {
            let sectors = if index >= used {
                0
            } else {
                quotient + u64::from(index < big)
            };
            Column {
                child: ((first + index) % n) as u32,
                offset: ((first + index) / n) << ashift,
                size: sectors << ashift,
            }
        };
        map.begin_row(p as u32);
        (0..used).for_each(|index| map.push(column(index)));
        let swaps = p == 1 && used > 1 && offset & SWAP != 0;
        if swaps {
            map.swap_first_two();
        }
        // The padding continues where the block ends: at the first short column.
        let padding = total.next_multiple_of(p + 1) - total;
        let begin = if swaps && big == 0 { 1 } else { big };
        for index in begin..begin + padding {
            let index = index % touched;
            let place = match index {
                0 | 1 if swaps => map.columns()[index as usize],
                _ => column(index),
            };
            map.skip(Column {
                offset: place.offset + place.size,
                size: 1 << ashift,
                ..place
            });
        }
    }

    /// Writes the map of an old, narrower block: each of its rows has one sector a column, and the
    /// sectors follow each other on all children.
    fn map_expanded(&self, offset: u64, psize: u64, map: &mut BlockMap) {
        let (n, width, p, ashift) = (self.children, self.width, self.parities, self.ashift);
        let data = psize.div_ceil(1 << ashift);
        let quotient = data / (width - p);
        let remainder = data % (width - p);
        let big = if remainder == 0 { 0 } else { remainder + p };
        let total = data + p * (quotient + u64::from(remainder > 0));
        let rows = total.div_ceil(width);
        for row in 0..rows {
            // Only the last row may be shorter, and only if the data do not fill the row.
            let used = match big {
                0 => width,
                _ if row + 1 == rows => big,
                _ => width,
            };
            let first = (offset >> ashift) + row * width;
            map.begin_row(p as u32);
            for index in first..first + used {
                map.push(Column {
                    child: (index % n) as u32,
                    offset: (index / n) << ashift,
                    size: 1 << ashift,
                });
            }
            if p == 1 && used > 1 && offset & SWAP != 0 {
                map.swap_first_two();
            }
        }
        let end = (offset >> ashift) + total;
        for index in end..end + total.next_multiple_of(p + 1) - total {
            map.skip(Column {
                child: (index % n) as u32,
                offset: (index / n) << ashift,
                size: 1 << ashift,
            });
        }
    }
}

#[cfg(test)]
#[path = "raidz_tests.rs"]
mod tests;
