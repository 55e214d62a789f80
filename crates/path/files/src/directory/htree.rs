//! ext4's directories: one plain page at first, later leaves that the hash of a name selects.

use super::linear::{DOTS, entry_bytes};
use super::{Directory, PAGE, PageTouch, hash};
use std::ops::Bound::{Excluded, Unbounded};

/// Largest number of leaves below the root (`dx_root_limit`: 4096 bytes less both dots, the header
/// and the checksum tail, 8 bytes for each leaf).
const ROOT_LIMIT: usize = 507;
/// Largest number of leaves below a second-level index page (`dx_node_limit`).
const NODE_LIMIT: usize = 510;

impl Directory {
    /// Reads the root, the index page if there is one, and the leaf (`dx_probe`).
    pub(super) fn probe(&mut self, name: &str, touched: &mut Vec<PageTouch>) {
        touched.push(PageTouch::Read(0));
        if self.leaves.is_empty() {
            return;
        }
        touched.extend(self.node_of(hash(name)).map(PageTouch::Read));
        touched.push(PageTouch::Read(self.leaf_of(name)));
    }

    /// Returns the page where `name` is, or where it would be inserted.
    pub(super) fn leaf_of(&self, name: &str) -> u64 {
        self.leaves
            .range(..=hash(name))
            .next_back()
            .map_or(0, |(_, &page)| page)
    }

    fn node_of(&self, hash: u32) -> Option<u64> {
        self.nodes.range(..=hash).next_back().map(|(_, &page)| page)
    }

    pub(super) fn htree_growth(&self, name: &str) -> Vec<u64> {
        let next = self.used.len() as u64;
        let leaf = self.leaf_of(name);
        if self.used[leaf as usize] + entry_bytes(name) <= PAGE {
            return Vec::new();
        }
        if self.leaves.is_empty() {
            // Page 0 becomes the root, and its entries move to two new leaves.
            return vec![next, next + 1];
        }
        let nodes = u64::from(self.needs_node(hash(name)));
        (next..=next + nodes).collect()
    }

    /// Returns true if one more leaf needs one more index page.
    fn needs_node(&self, hash: u32) -> bool {
        match self.nodes.range(..=hash).next_back() {
            None => self.leaves.len() >= ROOT_LIMIT,
            Some((&first, _)) => self.leaves_of(first) >= NODE_LIMIT,
        }
    }

    /// Returns the number of leaves below the index page whose lowest hash is `first`.
    fn leaves_of(&self, first: u32) -> usize {
        match self.nodes.range((Excluded(first), Unbounded)).next() {
            Some((&next, _)) => self.leaves.range(first..next).count(),
            None => self.leaves.range(first..).count(),
        }
    }

    pub(super) fn htree_insert(&mut self, name: &str, touched: &mut Vec<PageTouch>) -> u32 {
        let leaf = self.leaf_of(name) as usize;
        if self.used[leaf] + entry_bytes(name) > PAGE {
            self.make_room(name, touched);
        }
        let leaf = self.leaf_of(name) as usize;
        self.used[leaf] += entry_bytes(name);
        touched.push(PageTouch::Change(leaf as u64));
        leaf as u32
    }

    fn make_room(&mut self, name: &str, touched: &mut Vec<PageTouch>) {
        if self.leaves.is_empty() {
            // `make_indexed_dir`: page 0 becomes the root, so the entries move to a new leaf.
            self.leaves.insert(0, self.used.len() as u64);
            touched.push(PageTouch::Fresh(self.used.len() as u64));
            self.used.push(self.used[0] - DOTS);
            // The root holds only addresses now. As a full page it takes no further name.
            self.used[0] = PAGE;
        } else if self.needs_node(hash(name)) {
            self.add_node(hash(name), touched);
        }
        self.split(name, touched);
        // The index page (or the root) gets the address of the new leaf.
        touched.push(PageTouch::Change(self.node_of(hash(name)).unwrap_or(0)));
    }

    /// Moves the upper half of the leaf, counted in bytes, to a new page (`do_split`).
    fn split(&mut self, name: &str, touched: &mut Vec<PageTouch>) {
        let Some((&first, &page)) = self.leaves.range(..=hash(name)).next_back() else {
            return;
        };
        let next = self
            .leaves
            .range((Excluded(first), Unbounded))
            .next()
            .map(|(&next, _)| next);
        let from = (first, Box::from(""));
        let entries: Vec<(u32, u32)> = self
            .entries
            .range(from..)
            .map(|((hash, name), _)| (*hash, entry_bytes(name)))
            .take_while(|(hash, _)| next.is_none_or(|next| *hash < next))
            .collect();
        let half = entries.iter().map(|(_, bytes)| bytes).sum::<u32>() / 2;
        let mut kept = 0;
        let middle = entries.iter().position(|(_, bytes)| {
            kept += bytes;
            kept > half
        });
        // Names with the same hash must stay in one leaf, because a look-up here reads only one
        // leaf. A leaf full of names with one hash could not be split. Collisions are too rare for
        // that.
        let boundary = middle.and_then(|at| entries[at..].iter().find(|(hash, _)| *hash > first));
        let Some(&(boundary, _)) = boundary else {
            return;
        };
        let moved = entries
            .iter()
            .filter(|(hash, _)| *hash >= boundary)
            .map(|(_, bytes)| bytes)
            .sum::<u32>();
        let new = self.used.len() as u64;
        self.used.push(moved);
        self.used[page as usize] -= moved;
        self.leaves.insert(boundary, new);
        touched.extend([PageTouch::Fresh(new), PageTouch::Change(page)]);
    }

    /// Adds an index page. The leaves of the root move below it; if index pages exist already, a
    /// full index page is split.
    fn add_node(&mut self, hash: u32, touched: &mut Vec<PageTouch>) {
        let new = self.used.len() as u64;
        // An index page is full for names.
        self.used.push(PAGE);
        touched.extend([PageTouch::Fresh(new), PageTouch::Change(0)]);
        match self
            .nodes
            .range(..=hash)
            .next_back()
            .map(|(&first, &page)| (first, page))
        {
            None => {
                self.nodes.insert(0, new);
            }
            Some((first, page)) => {
                let half = self.leaves_of(first) / 2;
                if let Some(&middle) = self.leaves.range(first..).nth(half).map(|(hash, _)| hash) {
                    self.nodes.insert(middle, new);
                }
                touched.push(PageTouch::Change(page));
            }
        }
    }
}
