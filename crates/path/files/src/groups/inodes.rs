//! Choice of the inode for a new file or directory: Orlov's allocator for directories, the parent's
//! group for files (`find_group_orlov`, `find_group_other`; fs/ext2/ialloc.c 2.6.24,
//! fs/ext4/ialloc.c).

use super::Groups;
use super::layout::{BLOCKS_PER_GROUP, FIRST_INODE};
use crate::format::NewObject;
use crate::system::ObjectKind;
use crate::{FileError, MetaAccesses};
use fullstroke_units::Random;

/// Assumed cost of a directory in inodes and blocks (`INODE_COST`, `BLOCK_COST`).
const INODE_COST: u64 = 64;
const BLOCK_COST: u64 = 256;

/// Conditions for a group to take a directory.
struct Needs {
    directories_below: u64,
    inodes: i64,
    blocks: i64,
    debt_below: u64,
}

/// Rules of the kernel's driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    /// Single groups, with debts.
    Ext2,
    /// Flex groups as one unit, without debts.
    Ext4,
}

/// Parameters of a search.
pub(crate) struct InodeSearch<'a> {
    pub(crate) parent: u32,
    /// Group of the parent.
    pub(crate) near: u32,
    /// True if the parent is the root. Directories below the root are spread over the groups.
    pub(crate) top: bool,
    pub(crate) directory: bool,
    pub(crate) name: &'a str,
    pub(crate) scheme: Scheme,
}

impl<'a> InodeSearch<'a> {
    /// Makes the search for `wanted`. `near` is the parent's group, `root` the root's inode.
    pub(crate) fn new<X>(
        wanted: &NewObject<'a, X>,
        near: u32,
        root: u32,
        scheme: Scheme,
    ) -> InodeSearch<'a> {
        let &NewObject {
            kind, parent, name, ..
        } = wanted;
        InodeSearch {
            parent,
            near,
            top: parent == root,
            directory: kind == ObjectKind::Directory,
            name,
            scheme,
        }
    }
}

/// Totals of a group or of a flex group.
#[derive(Clone, Copy, Default)]
struct Sum {
    blocks: u64,
    inodes: u64,
    directories: u64,
}

impl Groups {
    /// Allocates an inode for a new object.
    pub(crate) fn new_inode(
        &mut self,
        search: &InodeSearch<'_>,
        random: &mut Random,
        touches: &mut MetaAccesses,
    ) -> Result<u32, FileError> {
        let full = FileError::NoInode {
            inodes: u64::from(self.count()) * u64::from(self.layout.inodes_per_group),
        };
        let group = if search.directory {
            self.orlov(search, random)
        } else {
            self.near_parent(search)
        };
        let group = group.ok_or(full)?;
        let within = self.build(group).inodes.first_in(0..u64::MAX);
        let within = within.ok_or(FileError::NoInode { inodes: 0 })?;
        self.take_inode(group, within, search.directory, touches);
        Ok(group * self.layout.inodes_per_group + within as u32 + 1)
    }

    /// Allocates the reserved inodes of a new file system. The second is the root.
    pub(crate) fn reserve_inodes(&mut self) {
        for within in 0..u64::from(FIRST_INODE - 1) {
            self.take_inode(0, within, within == 1, &mut MetaAccesses::new());
        }
    }

    fn take_inode(&mut self, group: u32, within: u64, directory: bool, touches: &mut MetaAccesses) {
        self.build(group).inodes.remove(within..within + 1);
        self.free_inodes -= 1;
        self.directories += u64::from(directory);
        let counts = &mut self.counts[group as usize];
        counts.inodes -= 1;
        counts.directories += u32::from(directory);
        counts.debt = if directory {
            counts.debt.saturating_add(1)
        } else {
            counts.debt.saturating_sub(1)
        };
        self.change_inode_bitmap(group, touches);
        self.changed_counts(group, touches);
    }

    pub(crate) fn free_inode(&mut self, number: u32, directory: bool, touches: &mut MetaAccesses) {
        let group = self.layout.group_of_inode(number);
        let within = u64::from((number - 1) % self.layout.inodes_per_group);
        self.build(group).inodes.insert(within..within + 1);
        self.free_inodes += 1;
        self.directories -= u64::from(directory);
        let counts = &mut self.counts[group as usize];
        counts.inodes += 1;
        counts.directories -= u32::from(directory);
        self.change_inode_bitmap(group, touches);
        self.changed_counts(group, touches);
    }

    fn sum(&self, first: u32, groups: u32) -> Sum {
        let end = (first + groups).min(self.count());
        let mut sum = Sum::default();
        for counts in &self.counts[first as usize..end as usize] {
            sum.blocks += u64::from(counts.blocks);
            sum.inodes += u64::from(counts.inodes);
            sum.directories += u64::from(counts.directories);
        }
        sum
    }

    /// Returns the number of groups searched as one unit.
    fn together(&self, scheme: Scheme) -> u32 {
        if scheme == Scheme::Ext4 {
            self.layout.flex
        } else {
            1
        }
    }

    fn orlov(&self, search: &InodeSearch<'_>, random: &mut Random) -> Option<u32> {
        let together = self.together(search.scheme);
        let count = self.count().div_ceil(together);
        let near = search.near / together;
        let found = if search.top {
            // The start must not be the same for all directories of the root. 2.6 draws it at
            // random; ext4 takes the hash of the name, so that the same tree gets the same layout.
            let from = match search.scheme {
                Scheme::Ext2 => random.below(u64::from(count)) as u32,
                Scheme::Ext4 => crate::directory::hash(search.name) % count,
            };
            self.spread(from, count, together)
        } else {
            let needs = self.needs(search.scheme, count, together);
            self.around(near, count)
                .find(|&at| self.suits(at, together, &needs, search.scheme))
        };
        if let Some(found) = found {
            return self.first_with_inode(found * together, together);
        }
        self.fallback(search.near)
    }

    fn around(&self, from: u32, count: u32) -> impl Iterator<Item = u32> + use<> {
        (0..count).map(move |step| (from + step) % count)
    }

    /// Of the groups whose free inodes and blocks reach the average, returns the group with the
    /// fewest directories.
    fn spread(&self, from: u32, count: u32, together: u32) -> Option<u32> {
        let inodes = self.free_inodes / u64::from(count);
        let blocks = self.free_blocks / u64::from(count);
        let mut best = None;
        let mut fewest = u64::from(self.layout.inodes_per_group) * u64::from(together);
        for at in self.around(from, count) {
            let sum = self.sum(at * together, together);
            let enough = sum.inodes > 0 && sum.inodes >= inodes && sum.blocks >= blocks;
            if enough && sum.directories < fewest {
                fewest = sum.directories;
                best = Some(at);
                // No group can have fewer directories.
                if fewest == 0 {
                    break;
                }
            }
        }
        best
    }

    fn needs(&self, scheme: Scheme, count: u32, together: u32) -> Needs {
        let (count, together) = (u64::from(count), u64::from(together));
        let per_group = u64::from(self.layout.inodes_per_group) * together;
        let blocks_per_group = BLOCKS_PER_GROUP * together;
        let directories = self.directories.max(1);
        let used = (self.layout.blocks - self.free_blocks) / directories;
        let debt = blocks_per_group / used.max(BLOCK_COST);
        let debt = debt.min(per_group / INODE_COST).clamp(1, 255);
        let blocks = self.free_blocks / count;
        Needs {
            // The tolerances around the averages are those of `find_group_orlov` (`max_dirs`,
            // `min_inodes`, `min_blocks`).
            directories_below: directories / count + per_group / 16,
            inodes: (self.free_inodes / count) as i64 - (per_group / 4) as i64,
            blocks: blocks as i64 - (blocks_per_group / 4) as i64,
            debt_below: if scheme == Scheme::Ext2 {
                debt
            } else {
                u64::MAX
            },
        }
    }

    fn suits(&self, at: u32, together: u32, needs: &Needs, scheme: Scheme) -> bool {
        let sum = self.sum(at * together, together);
        // ext4 wants at least one free inode in a group (`min_inodes < 1`).
        let inodes = if scheme == Scheme::Ext4 {
            needs.inodes.max(1)
        } else {
            needs.inodes
        };
        sum.inodes > 0
            && (scheme == Scheme::Ext4
                || u64::from(self.counts[at as usize].debt) < needs.debt_below)
            && sum.directories < needs.directories_below
            && sum.inodes as i64 >= inodes
            && sum.blocks as i64 >= needs.blocks
    }

    fn first_with_inode(&self, first: u32, together: u32) -> Option<u32> {
        let end = (first + together).min(self.count());
        (first..end).find(|&group| self.counts[group as usize].inodes > 0)
    }

    /// Returns the next group whose free inodes reach the average, else the next with any free
    /// inode.
    fn fallback(&self, near: u32) -> Option<u32> {
        let average = self.free_inodes / u64::from(self.count());
        let at_least = |least: u64| {
            self.around(near, self.count())
                .find(|&at| u64::from(self.counts[at as usize].inodes) >= least.max(1))
        };
        at_least(average).or_else(|| at_least(1))
    }

    /// Returns the parent's group, else a group by quadratic hash, else any group with a free
    /// inode.
    fn near_parent(&self, search: &InodeSearch<'_>) -> Option<u32> {
        let count = self.count();
        let usable = |group: u32| {
            let counts = self.counts[group as usize];
            counts.inodes > 0 && counts.blocks > 0
        };
        if search.scheme == Scheme::Ext4 {
            // Any group of the parent's flex group (`find_group_other` with `flex_size > 1`).
            let first = search.near - search.near % self.layout.flex;
            let end = (first + self.layout.flex).min(count);
            if let Some(group) = (first..end).find(|&group| self.counts[group as usize].inodes > 0)
            {
                return Some(group);
            }
        } else if usable(search.near) {
            return Some(search.near);
        }
        // The parent directory's inode number enters the hash. So the files of one directory go to
        // the same group, and files of other directories in the parent's group go elsewhere
        // (`find_group_other`).
        let mut group =
            ((u64::from(search.near) + u64::from(search.parent)) % u64::from(count)) as u32;
        let mut step = 1;
        while step < count {
            group = (group + step) % count;
            if usable(group) {
                return Some(group);
            }
            step <<= 1;
        }
        let from = (search.near + 1) % count;
        self.around(from, count)
            .find(|&group| self.counts[group as usize].inodes > 0)
    }
}
