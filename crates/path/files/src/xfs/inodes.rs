//! Inodes, in chunks of 64.

use super::space::{FREE_INODES, INODES, Space, Wish};
use crate::{FileError, MetaAccesses};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Number of inodes in a chunk (`XFS_INODES_PER_CHUNK`).
const CHUNK: u64 = 64;

/// 64 inodes on contiguous pages.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    page: u64,
    /// One bit for each inode; a set bit means free.
    free: u64,
}

/// All inodes. Inode `64 s + n + 1` is inode `n` of the chunk in slot `s`.
#[derive(Debug)]
pub(super) struct Inodes {
    inode_bytes: u64,
    /// True if each group has a second B-tree, of the chunks with free inodes.
    by_free: bool,
    slots: Vec<Option<Chunk>>,
    vacant: BTreeSet<usize>,
    /// Slots of the chunks by page. This is also their order in a group's B-tree.
    by_page: BTreeMap<u64, usize>,
    with_free: BTreeSet<u64>,
    /// Group for the next directory (`m_agirotor`).
    rotor: u32,
    used: u64,
}

impl Inodes {
    pub(super) fn new(inode_bytes: u64, by_free: bool) -> Inodes {
        Inodes {
            inode_bytes,
            by_free,
            slots: Vec::new(),
            vacant: BTreeSet::new(),
            by_page: BTreeMap::new(),
            with_free: BTreeSet::new(),
            rotor: 0,
            used: 0,
        }
    }

    fn chunk_pages(&self) -> u64 {
        CHUNK * self.inode_bytes / 4096
    }

    /// Returns the number of all inodes, and of the free inodes.
    pub(super) fn counts(&self) -> (u64, u64) {
        let all = self.by_page.len() as u64 * CHUNK;
        (all, all - self.used)
    }

    /// Yields the pages of all chunks.
    pub(super) fn chunks(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.by_page
            .keys()
            .map(|&page| page..page + self.chunk_pages())
    }

    /// Returns the pages of the cluster of inodes that holds `page`, or `page` alone if the page
    /// holds no inodes. A cluster has 32 inodes: 8 KiB for each 256 bytes of an inode
    /// (`XFS_INODE_BIG_CLUSTER_SIZE`; `xfs_ialloc_setup_geometry`).
    pub(super) fn cluster(&self, page: u64) -> Range<u64> {
        let pages = (2 * self.inode_bytes / 256).max(1);
        let chunk = self.by_page.range(..=page).next_back();
        match chunk {
            Some((&start, _)) if page < start + self.chunk_pages() => {
                let first = start + (page - start) / pages * pages;
                first..(first + pages).min(start + self.chunk_pages())
            }
            _ => page..page + 1,
        }
    }

    /// Returns the page that holds an inode.
    pub(super) fn page(&self, number: u32) -> u64 {
        let (slot, within) = parts(number);
        let page = self
            .slots
            .get(slot)
            .copied()
            .flatten()
            .map_or(0, |chunk| chunk.page);
        page + within * self.inode_bytes / 4096
    }

    /// Allocates the root, and two hidden inodes for real-time space, in a new file system.
    pub(super) fn first(&mut self, space: &mut Space) -> Option<u32> {
        let touches = &mut MetaAccesses::new();
        let page = self.grow(space, 0, touches).ok()?;
        let root = self.take_from(space, page, touches);
        self.take_from(space, page, touches);
        self.take_from(space, page, touches);
        Some(root)
    }

    /// Allocates an inode for a new object. The inode of its directory is on the page `near`.
    pub(super) fn take(
        &mut self,
        space: &mut Space,
        near: u64,
        directory: bool,
        touches: &mut MetaAccesses,
    ) -> Result<u32, FileError> {
        let group = if directory {
            self.next_group(space)
        } else {
            space.group_of(near)
        };
        for step in 0..space.count() {
            let group = (group + step) % space.count();
            let found = self.free_near(space, group, near);
            if !self.by_free {
                touches.read(space.header(group, INODES));
            } else if found.is_some() {
                // Whether a group has free inodes stands in its AGI (`pagi_freecount`).
                touches.read(space.header(group, FREE_INODES));
                touches.read(space.header(group, INODES));
            }
            if let Some(page) = found {
                return Ok(self.take_from(space, page, touches));
            }
            if space.group_free(group) >= 2 * self.chunk_pages()
                && let Ok(page) = self.grow(space, group, touches)
            {
                return Ok(self.take_from(space, page, touches));
            }
        }
        Err(FileError::NoSpace {
            needed: self.chunk_pages(),
            free: space.free(),
        })
    }

    /// Returns the groups in turn (`xfs_ialloc_next_ag`).
    fn next_group(&mut self, space: &Space) -> u32 {
        let group = self.rotor;
        self.rotor = (self.rotor + 1) % space.count();
        group
    }

    /// Returns the chunk of the group that has a free inode and is nearest to the directory's
    /// inode.
    fn free_near(&self, space: &Space, group: u32, near: u64) -> Option<u64> {
        let start = u64::from(group) * space.group_pages();
        let end = start + space.group_pages();
        let behind = self
            .with_free
            .range(near.clamp(start, end)..end)
            .next()
            .copied();
        let before = self
            .with_free
            .range(start..near.clamp(start, end))
            .next_back()
            .copied();
        [before, behind]
            .into_iter()
            .flatten()
            .min_by_key(|page| page.abs_diff(near))
    }

    /// Makes a new chunk behind the group's last chunk, else near the beginning of the group
    /// (`xfs_ialloc_ag_alloc`).
    fn grow(
        &mut self,
        space: &mut Space,
        group: u32,
        touches: &mut MetaAccesses,
    ) -> Result<u64, FileError> {
        let start = u64::from(group) * space.group_pages();
        let last = self
            .by_page
            .range(start..start + space.group_pages())
            .next_back();
        let pages = self.chunk_pages();
        let target = last.map_or(start, |(&page, _)| page + pages);
        let wish = Wish {
            target,
            exact: last.is_some(),
            length: pages,
            data: false,
            align: pages,
        };
        let run = space.allocate(&wish, touches)?;
        // The search returns a shorter run if there is no longer one, and a chunk must be whole.
        if run.end - run.start < pages {
            let (needed, free) = (pages, space.free());
            space.free_pages(run, touches);
            return Err(FileError::NoSpace { needed, free });
        }
        let slot = self.vacant.pop_first().unwrap_or(self.slots.len());
        let chunk = Chunk {
            page: run.start,
            free: u64::MAX,
        };
        if slot == self.slots.len() {
            self.slots.push(Some(chunk));
        } else {
            self.slots[slot] = Some(chunk);
        }
        assert!(
            !self.by_page.contains_key(&run.start),
            "two chunks of inodes lie at page {}",
            run.start
        );
        self.by_page.insert(run.start, slot);
        self.with_free.insert(run.start);
        run.clone().for_each(|page| touches.fresh(page));
        Ok(run.start)
    }

    /// Takes the first free inode of the chunk at `page`.
    fn take_from(&mut self, space: &Space, page: u64, touches: &mut MetaAccesses) -> u32 {
        let slot = self.by_page.get(&page).copied().unwrap_or(0);
        let Some(chunk) = self.slots.get_mut(slot).and_then(Option::as_mut) else {
            return 0;
        };
        // The lowest free inode: `xfs_inobt_first_free_inode`.
        let within = chunk.free.trailing_zeros();
        assert!(
            u64::from(within) < CHUNK,
            "no inode of the chunk at page {page} is free"
        );
        chunk.free &= !(1 << within);
        if chunk.free == 0 {
            self.with_free.remove(&page);
        }
        self.used += 1;
        self.touch(space, page, touches);
        slot as u32 * CHUNK as u32 + within + 1
    }

    /// Reports that the group's headers and the root of its B-tree of inodes change.
    fn touch(&self, space: &Space, page: u64, touches: &mut MetaAccesses) {
        let group = space.group_of(page);
        touches.change(space.header(group, 0));
        touches.change(space.header(group, INODES));
        if self.by_free {
            touches.change(space.header(group, FREE_INODES));
        }
    }

    /// Frees the inode. A chunk without used inodes becomes free space (`xfs_difree`, without the
    /// mount option `ikeep`).
    pub(super) fn free_inode(
        &mut self,
        space: &mut Space,
        number: u32,
        touches: &mut MetaAccesses,
    ) {
        let (slot, within) = parts(number);
        let pages = self.chunk_pages();
        let Some(chunk) = self.slots.get_mut(slot).and_then(Option::as_mut) else {
            return;
        };
        assert!(
            chunk.free & 1 << within == 0 && self.used > 0,
            "the inode {number} is given back, and is free"
        );
        chunk.free |= 1 << within;
        let Chunk { page, free } = *chunk;
        self.used -= 1;
        self.with_free.insert(page);
        self.touch(space, page, touches);
        if free == u64::MAX {
            self.slots[slot] = None;
            self.vacant.insert(slot);
            self.by_page.remove(&page);
            self.with_free.remove(&page);
            // The freed pages must not be written back later (`xfs_ifree_cluster`).
            (page..page + pages).for_each(|page| touches.forget(page));
            space.free_pages(page..page + pages, touches);
        }
    }
}

/// Returns the slot, and the position in the chunk.
fn parts(number: u32) -> (usize, u64) {
    let number = u64::from(number.saturating_sub(1));
    ((number / CHUNK) as usize, number % CHUNK)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MetaAccess;

    /// Linux 6.18, `mkfs.xfs` of Debian 12: the first file in a directory of group 0 reads the roots
    /// of both B-trees of inodes.
    #[test]
    fn today_the_tree_of_free_inodes_is_read_before_the_tree_of_all() {
        let reads = |by_free| {
            let mut space = Space::new(1 << 20, 4, 10);
            let mut inodes = Inodes::new(512, by_free);
            inodes.first(&mut space).unwrap();
            let mut touches = MetaAccesses::new();
            inodes.take(&mut space, 0, false, &mut touches).unwrap();
            touches
                .list()
                .iter()
                .filter_map(|touch| match touch {
                    MetaAccess::Read(page) => Some(*page),
                    _ => None,
                })
                .collect::<Vec<u64>>()
        };
        assert_eq!(reads(true)[..2], [FREE_INODES, INODES]);
        assert_eq!(reads(false)[0], INODES);
    }
}
