//! Inodes, 64 at a time.

use super::space::{INODES, Space, Wish};
use crate::{FileError, Touches};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Inodes of a chunk (`XFS_INODES_PER_CHUNK`).
const CHUNK: u64 = 64;

/// 64 inodes on pages that follow each other.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    page: u64,
    /// A bit for each free one.
    free: u64,
}

/// All inodes. Number `64 s + n + 1` is the `n`th of the chunk in slot `s`.
#[derive(Debug)]
pub(super) struct Inodes {
    inode_bytes: u64,
    slots: Vec<Option<Chunk>>,
    vacant: BTreeSet<usize>,
    /// Chunks by their page, which is also their order in a group's B-tree.
    by_page: BTreeMap<u64, usize>,
    with_free: BTreeSet<u64>,
    /// The group that the next directory goes to (`m_agirotor`).
    rotor: u32,
    used: u64,
}

impl Inodes {
    pub(super) fn new(inode_bytes: u64) -> Inodes {
        Inodes {
            inode_bytes,
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

    /// All there are, and the free ones.
    pub(super) fn counts(&self) -> (u64, u64) {
        let all = self.by_page.len() as u64 * CHUNK;
        (all, all - self.used)
    }

    /// The pages of all chunks.
    pub(super) fn chunks(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.by_page
            .keys()
            .map(|&page| page..page + self.chunk_pages())
    }

    /// The page that an inode is on.
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

    /// The root, and two hidden inodes for real-time space, in a new file system.
    pub(super) fn first(&mut self, space: &mut Space) -> Option<u32> {
        let touches = &mut Touches::new();
        let page = self.grow(space, 0, touches).ok()?;
        let root = self.take_from(space, page, touches);
        self.take_from(space, page, touches);
        self.take_from(space, page, touches);
        Some(root)
    }

    /// An inode for a new object whose directory's inode is on the page `near`.
    pub(super) fn take(
        &mut self,
        space: &mut Space,
        near: u64,
        directory: bool,
        touches: &mut Touches,
    ) -> Result<u32, FileError> {
        let group = if directory {
            self.next_group(space)
        } else {
            space.group_of(near)
        };
        for step in 0..space.count() {
            let group = (group + step) % space.count();
            touches.read(space.header(group, INODES));
            if let Some(page) = self.free_near(space, group, near) {
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

    /// `xfs_ialloc_next_ag`.
    fn next_group(&mut self, space: &Space) -> u32 {
        let group = self.rotor;
        self.rotor = (self.rotor + 1) % space.count();
        group
    }

    /// The chunk of the group with a free inode that is nearest to the directory's.
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

    /// A new chunk: behind the group's last one, else near its beginning
    /// (`xfs_ialloc_ag_alloc`).
    fn grow(
        &mut self,
        space: &mut Space,
        group: u32,
        touches: &mut Touches,
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
        if run.end - run.start < pages {
            let (needed, free) = (pages, space.free());
            space.give(run, touches);
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

    /// The first free inode of the chunk at `page`.
    fn take_from(&mut self, space: &Space, page: u64, touches: &mut Touches) -> u32 {
        let slot = self.by_page.get(&page).copied().unwrap_or(0);
        let Some(chunk) = self.slots.get_mut(slot).and_then(Option::as_mut) else {
            return 0;
        };
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

    /// Headers and the root of the group's B-tree of inodes.
    fn touch(&self, space: &Space, page: u64, touches: &mut Touches) {
        let group = space.group_of(page);
        touches.change(space.header(group, 0));
        touches.change(space.header(group, INODES));
    }

    /// The inode is free; a chunk without any used one becomes free space
    /// (`xfs_difree`, without the mount option `ikeep`).
    pub(super) fn give(&mut self, space: &mut Space, number: u32, touches: &mut Touches) {
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
            (page..page + pages).for_each(|page| touches.forget(page));
            space.give(page..page + pages, touches);
        }
    }
}

/// Slot, and place in the chunk.
fn parts(number: u32) -> (usize, u64) {
    let number = u64::from(number.saturating_sub(1));
    ((number / CHUNK) as usize, number % CHUNK)
}
