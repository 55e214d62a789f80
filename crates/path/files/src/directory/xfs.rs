//! XFS's directories: names in the inode; then one block; then data pages, with
//! leaves by hash and a table of free space elsewhere in the directory's address
//! space (fs/xfs/xfs_dir2_sf.c, _block.c, _leaf.c, _node.c).

use super::{Directory, PAGE, PageTouch, Slot, hash};

/// The first page of the leaves: 32 GiB into the directory (`XFS_DIR2_LEAF_OFFSET`).
const LEAVES: u64 = (32 << 30) / 4096;
/// The first page of the table of free space (`XFS_DIR2_FREE_OFFSET`).
const FREE: u64 = 2 * LEAVES;
/// Entries in a leaf: 8 bytes each, less header and the table at its end.
const LEAF_LIMIT: usize = 500;
/// Header and both dots of a data page or block.
const HEADER: u32 = 16 + 2 * 16;

/// Bytes of an entry in a data page: inode, length, name, tag, a multiple of 8.
fn entry_bytes(name: &str) -> u32 {
    (11 + name.len() as u32 + 7) & !7
}

/// Bytes of an entry in an inode: length, offset, name, inode number.
fn inline_bytes(name: &str) -> u32 {
    7 + name.len() as u32
}

impl Directory {
    /// Whether the names are in the inode.
    fn is_inline(&self) -> bool {
        self.used.is_empty()
    }

    /// Whether the leaves are apart from the data.
    fn has_leaves(&self) -> bool {
        !self.leaves.is_empty()
    }

    pub(super) fn search(&mut self, name: &str, found: Option<Slot>, touched: &mut Vec<PageTouch>) {
        if self.is_inline() {
            return;
        }
        if self.has_leaves() {
            self.read_leaf(name, touched);
        }
        match found {
            Some(slot) => touched.push(PageTouch::Read(u64::from(slot.page))),
            // A block has its leaf within it.
            None if !self.has_leaves() => touched.push(PageTouch::Read(0)),
            None => {}
        }
    }

    /// The leaf of `name`, and the page above it if there are several.
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

    /// Whether `name` still fits where there is one block: entries, and 8 bytes for
    /// each in the leaf at its end.
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

    /// Pages that splitting a full leaf takes: the new leaf, and with the first split
    /// a root, which takes the first leaf's page, and the table of free space.
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

    /// `xfs_dir2_sf_to_block`.
    fn leave_inode(&mut self, name: &str, touched: &mut Vec<PageTouch>) {
        self.used
            .push(HEADER + self.data_bytes() + entry_bytes(name));
        touched.push(PageTouch::Fresh(0));
    }

    /// Into the first data page with room, and into the leaf.
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
            // The first leaf moves, and its page becomes the root.
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

    pub(super) fn xfs_removed(&mut self, name: &str, slot: Slot, touched: &mut Vec<PageTouch>) {
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
