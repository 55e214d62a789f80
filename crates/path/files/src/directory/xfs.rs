//! XFS's directories. At first the names are in the inode, then in one block. Larger directories
//! have data pages, leaves by hash and a table of free space. Leaves and table have fixed positions
//! far behind the data in the directory's address space (fs/xfs/xfs_dir2_sf.c, _block.c, _leaf.c,
//! _node.c).

use super::{Directory, EntryLocation, PAGE, PageTouch, hash};

/// First page of the leaves, 32 GiB into the directory (`XFS_DIR2_LEAF_OFFSET`).
const LEAVES: u64 = (32 << 30) / 4096;
/// First page of the table of free space (`XFS_DIR2_FREE_OFFSET`).
const FREE: u64 = 2 * LEAVES;
/// Largest number of entries in a leaf: 8 bytes each, less the header and the table at the end of
/// the leaf.
const LEAF_LIMIT: usize = 500;
/// Bytes of the header and of both dots in a data page or block.
const HEADER: u32 = 16 + 2 * 16;

/// Returns the bytes of an entry in a data page: inode, length, name and tag, rounded up to a
/// multiple of 8.
fn entry_bytes(name: &str) -> u32 {
    (11 + name.len() as u32 + 7) & !7
}

/// Returns the bytes of an entry in an inode: length, offset, name and inode number.
fn inline_bytes(name: &str) -> u32 {
    7 + name.len() as u32
}

impl Directory {
    /// Returns true if the names are in the inode.
    fn is_inline(&self) -> bool {
        self.used.is_empty()
    }

    /// Returns true if the leaves are outside the data pages.
    fn has_leaves(&self) -> bool {
        !self.leaves.is_empty()
    }

    pub(super) fn search(
        &mut self,
        name: &str,
        found: Option<EntryLocation>,
        touched: &mut Vec<PageTouch>,
    ) {
        if self.is_inline() {
            return;
        }
        if self.has_leaves() {
            self.read_leaf(name, touched);
        }
        match found {
            Some(slot) => touched.push(PageTouch::Read(u64::from(slot.page))),
            // A single-block directory has its leaf inside the block, so a miss reads the block
            // too.
            None if !self.has_leaves() => touched.push(PageTouch::Read(0)),
            None => {}
        }
    }

    /// Reads the leaf of `name`. If there are several leaves, also reads the root above the leaves.
    fn read_leaf(&self, name: &str, touched: &mut Vec<PageTouch>) {
        if self.leaves.len() > 1 {
            touched.push(PageTouch::Read(LEAVES));
        }
        touched.push(PageTouch::Read(self.xfs_leaf(name)));
    }

    fn xfs_leaf(&self, name: &str) -> u64 {
        self.leaves
            .range(..=hash(name))
            .next_back()
            .map_or(LEAVES, |(_, &page)| page)
    }

    /// Returns true if a single block holds these names: the entries, and 8 bytes for each name in
    /// the leaf at the end of the block.
    fn block_holds(&self, bytes: u32, names: usize) -> bool {
        HEADER + bytes + 8 * (names as u32 + 2) + 8 <= PAGE
    }

    fn data_bytes(&self) -> u32 {
        self.entries.keys().map(|(_, name)| entry_bytes(name)).sum()
    }

    fn data_page(&self, name: &str) -> usize {
        let needed = entry_bytes(name);
        self.used
            .iter()
            .position(|used| used + needed <= PAGE)
            .unwrap_or(self.used.len())
    }

    pub(super) fn xfs_growth(&self, name: &str, inline: u32) -> Vec<u64> {
        if self.is_inline() {
            return if self.inline + inline_bytes(name) + 6 <= inline {
                Vec::new()
            } else {
                vec![0]
            };
        }
        let mut pages = Vec::new();
        if !self.has_leaves() {
            if self.block_holds(
                self.used[0] - HEADER + entry_bytes(name),
                self.entries.len() + 1,
            ) {
                return pages;
            }
            pages.push(LEAVES);
        }
        let data = self.data_page(name);
        if data == self.used.len() {
            pages.push(data as u64);
        }
        pages.extend(self.leaf_growth(name));
        pages
    }

    /// Returns the new pages for a split of a full leaf. The first split also needs the table of
    /// free space, and a root. The root takes the page of the first leaf, so the first leaf needs
    /// another page.
    fn leaf_growth(&self, name: &str) -> Vec<u64> {
        if !self.has_leaves() || self.leaf_entries(name) < LEAF_LIMIT {
            return Vec::new();
        }
        let next = LEAVES + self.leaves.len() as u64;
        if self.leaves.len() == 1 {
            vec![next, next + 1, FREE]
        } else {
            vec![next + 1]
        }
    }

    fn leaf_entries(&self, name: &str) -> usize {
        self.leaf_names
            .range(..=hash(name))
            .next_back()
            .map_or(0, |(_, &names)| names)
    }

    fn leaf_range(&self, name: &str) -> (u32, Option<u32>) {
        let first = self
            .leaves
            .range(..=hash(name))
            .next_back()
            .map_or(0, |(&first, _)| first);
        let next = self
            .leaves
            .range(first.saturating_add(1)..)
            .next()
            .map(|(&next, _)| next);
        (first, next)
    }

    pub(super) fn xfs_insert(
        &mut self,
        name: &str,
        inline: u32,
        touched: &mut Vec<PageTouch>,
    ) -> u32 {
        let growth = self.xfs_growth(name, inline);
        self.inline += inline_bytes(name);
        if self.is_inline() {
            if !growth.is_empty() {
                self.leave_inode(name, touched);
            }
            return 0;
        }
        if growth.contains(&LEAVES) {
            self.leaves.insert(0, LEAVES);
            self.leaf_names.insert(0, self.entries.len());
            touched.push(PageTouch::Fresh(LEAVES));
        } else if self.leaf_entries(name) >= LEAF_LIMIT && self.has_leaves() {
            self.split_leaf(name, touched);
        }
        self.put(name, touched)
    }

    /// Moves the names from the inode to a block (`xfs_dir2_sf_to_block`).
    fn leave_inode(&mut self, name: &str, touched: &mut Vec<PageTouch>) {
        self.used
            .push(HEADER + self.data_bytes() + entry_bytes(name));
        touched.push(PageTouch::Fresh(0));
    }

    /// Adds the entry to the first data page with room, and to its leaf.
    fn put(&mut self, name: &str, touched: &mut Vec<PageTouch>) -> u32 {
        let page = self.data_page(name);
        if page == self.used.len() {
            self.used.push(HEADER);
            touched.push(PageTouch::Fresh(page as u64));
        } else {
            touched.push(PageTouch::Change(page as u64));
        }
        self.used[page] += entry_bytes(name);
        if let Some((_, names)) = self.leaf_names.range_mut(..=hash(name)).next_back() {
            *names += 1;
        }
        self.change_leaf(name, touched);
        page as u32
    }

    fn change_leaf(&self, name: &str, touched: &mut Vec<PageTouch>) {
        if self.has_leaves() {
            touched.push(PageTouch::Change(self.xfs_leaf(name)));
        }
        if self.leaves.len() > 1 {
            touched.push(PageTouch::Change(FREE));
        }
    }

    fn split_leaf(&mut self, name: &str, touched: &mut Vec<PageTouch>) {
        if self.leaves.len() == 1 {
            // The first leaf moves to another page, because the root must be at `LEAVES`.
            self.leaves.insert(0, LEAVES + 1);
            touched.extend([PageTouch::Fresh(LEAVES + 1), PageTouch::Fresh(FREE)]);
        }
        let (first, next) = self.leaf_range(name);
        let from = (first, Box::from(""));
        let hashes: Vec<u32> = self
            .entries
            .range(from..)
            .map(|((hash, _), _)| *hash)
            .take_while(|hash| next.is_none_or(|next| *hash < next))
            .collect();
        // Half of the names and not of the bytes, because every name takes 8 bytes of a leaf.
        let middle = hashes[hashes.len() / 2];
        let old = self.xfs_leaf(name);
        let new = LEAVES + self.leaves.len() as u64 + 1;
        self.leaves.insert(middle, new);
        let kept = hashes.partition_point(|&hash| hash < middle);
        self.leaf_names
            .extend([(first, kept), (middle, hashes.len() - kept)]);
        touched.extend([
            PageTouch::Fresh(new),
            PageTouch::Change(old),
            PageTouch::Change(LEAVES),
        ]);
    }

    pub(super) fn xfs_removed(
        &mut self,
        name: &str,
        slot: EntryLocation,
        touched: &mut Vec<PageTouch>,
    ) {
        self.inline -= inline_bytes(name);
        if let Some(used) = self.used.get_mut(slot.page as usize) {
            *used = used.saturating_sub(entry_bytes(name));
        }
        if let Some((_, names)) = self.leaf_names.range_mut(..=hash(name)).next_back() {
            *names -= 1;
        }
        self.change_leaf(name, touched);
    }
}
