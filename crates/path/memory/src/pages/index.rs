//! Slots by (object, page), sorted: a B+ tree with recycled nodes. At its largest size the tree
//! allocates no further memory.

use fullstroke_contract::Object;

/// Largest number of entries of a node.
const FAN_OUT: usize = 32;
/// A node with fewer entries is joined to its neighbour, if both fit into one.
const SPARSE: usize = FAN_OUT / 4;
/// More levels than a tree of 2^32 entries has, even with sparse nodes.
const LEVELS: usize = 24;
const NONE: u32 = u32::MAX;

/// Object and page as one number, sorted by object and then by page.
pub(crate) type Key = u128;

/// Returns the key of a page.
#[inline]
pub(crate) const fn key(object: Object, page: u64) -> Key {
    ((object.0 as u128) << 64) | page as u128
}

/// Returns the object of a key.
#[inline]
pub(crate) const fn object_of(key: Key) -> Object {
    Object((key >> 64) as u32)
}

/// A node. The values of a leaf are slots, the values of an inner node are its children. The key of
/// a child is a lower bound of all keys below it. The key of the first child is not used.
#[derive(Clone, Debug)]
struct IndexNode {
    keys: [Key; FAN_OUT],
    values: [u32; FAN_OUT],
    len: usize,
    /// Left and right neighbour of a leaf.
    left: u32,
    right: u32,
}

impl IndexNode {
    const EMPTY: IndexNode = IndexNode {
        keys: [0; FAN_OUT],
        values: [NONE; FAN_OUT],
        len: 0,
        left: NONE,
        right: NONE,
    };

    fn keys(&self) -> &[Key] {
        &self.keys[..self.len]
    }

    fn insert(&mut self, at: usize, key: Key, value: u32) {
        debug_assert!(
            at <= self.len && self.len < FAN_OUT,
            "entry {at} of a node of {}",
            self.len
        );
        self.keys.copy_within(at..self.len, at + 1);
        self.values.copy_within(at..self.len, at + 1);
        (self.keys[at], self.values[at]) = (key, value);
        self.len += 1;
    }

    fn remove(&mut self, at: usize) {
        self.keys.copy_within(at + 1..self.len, at);
        self.values.copy_within(at + 1..self.len, at);
        self.len -= 1;
    }
}

/// The path from the root to a leaf: the nodes, and the position of the child in each.
#[derive(Clone, Copy)]
struct Path {
    steps: [(u32, usize); LEVELS],
    len: usize,
}

/// The tree.
#[derive(Clone, Debug)]
pub(crate) struct Index {
    nodes: Vec<IndexNode>,
    free: Vec<u32>,
    root: u32,
    /// Number of inner levels.
    height: usize,
    len: usize,
}

impl Default for Index {
    fn default() -> Index {
        Index {
            nodes: vec![IndexNode::EMPTY],
            free: Vec::new(),
            root: 0,
            height: 0,
            len: 0,
        }
    }
}

impl Index {
    /// Returns the entry with the greatest key not above `key`.
    #[inline]
    pub fn at_or_before(&self, key: Key) -> Option<(Key, u32)> {
        let node = &self.nodes[self.leaf(key) as usize];
        match node.keys().partition_point(|&other| other <= key) {
            0 if node.left == NONE => None,
            0 => {
                let node = &self.nodes[node.left as usize];
                Some((node.keys[node.len - 1], node.values[node.len - 1]))
            }
            behind => Some((node.keys[behind - 1], node.values[behind - 1])),
        }
    }

    /// Returns the last entry with a key not above `key`, and the first with a key above.
    #[inline]
    pub fn around(&self, key: Key) -> (Option<u32>, Option<(Key, u32)>) {
        let node = &self.nodes[self.leaf(key) as usize];
        let behind = node.keys().partition_point(|&other| other <= key);
        let entry = |node: &IndexNode, at: usize| (node.keys[at], node.values[at]);
        let before = match behind {
            0 if node.left == NONE => None,
            0 => self
                .nodes
                .get(node.left as usize)
                .map(|left| entry(left, left.len - 1).1),
            _ => Some(entry(node, behind - 1).1),
        };
        let after = match node.right {
            _ if behind < node.len => Some(entry(node, behind)),
            NONE => None,
            right => self.nodes.get(right as usize).map(|right| entry(right, 0)),
        };
        (before, after)
    }

    /// Returns the entry with the least key not below `key`.
    #[inline]
    pub fn at_or_after(&self, key: Key) -> Option<(Key, u32)> {
        let node = &self.nodes[self.leaf(key) as usize];
        let at = node.keys().partition_point(|&other| other < key);
        if at < node.len {
            return Some((node.keys[at], node.values[at]));
        }
        if node.right == NONE {
            return None;
        }
        let node = &self.nodes[node.right as usize];
        Some((node.keys[0], node.values[0]))
    }

    /// Adds an entry. The key must be new.
    pub fn insert(&mut self, key: Key, value: u32) {
        let (leaf, path) = self.descend(key);
        let at = self.nodes[leaf as usize]
            .keys()
            .partition_point(|&other| other < key);
        debug_assert!(
            self.nodes[leaf as usize].keys().get(at) != Some(&key),
            "two entries of one key"
        );
        self.len += 1;
        self.insert_into(leaf, at, key, value, &path, true);
    }

    /// Removes an entry.
    ///
    /// # Panics
    /// There is no such entry.
    pub fn remove(&mut self, key: Key) {
        let (leaf, path) = self.descend(key);
        let at = self.position(leaf, key);
        self.nodes[leaf as usize].remove(at);
        self.len -= 1;
        self.tidy(leaf, &path);
    }

    /// Gives an entry a greater key, between its own key and the next.
    ///
    /// # Panics
    /// There is no such entry.
    pub fn advance(&mut self, from: Key, to: Key) {
        debug_assert!(from < to, "keys of the levels above are bounds from below");
        // The bound of the subtree on the right may be less than its keys. The new key must stay
        // below this bound. Otherwise a search would look for the key in that subtree.
        let (mut node, mut bound) = (self.root, Key::MAX);
        for _ in 0..self.height {
            let child = self.child(node, from);
            let inner = &self.nodes[node as usize];
            bound = inner.keys().get(child + 1).copied().unwrap_or(bound);
            node = inner.values[child];
        }
        let at = self.position(node, from);
        if to < bound {
            self.nodes[node as usize].keys[at] = to;
        } else {
            let value = self.nodes[node as usize].values[at];
            self.remove(from);
            self.insert(to, value);
        }
    }

    /// Returns the number of entries.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns the number of nodes in use.
    #[cfg(test)]
    fn nodes(&self) -> usize {
        self.nodes.len() - self.free.len()
    }

    fn position(&self, leaf: u32, key: Key) -> usize {
        self.nodes[leaf as usize]
            .keys()
            .binary_search(&key)
            .expect("the entry is there")
    }

    fn child(&self, node: u32, key: Key) -> usize {
        // The key of the first child may be greater than the bounds behind it: keys below the first
        // child may be less than its own key, and so may the bound of a child that is split off.
        let keys = self.nodes[node as usize].keys();
        let bounds = keys.get(1..).unwrap_or_default();
        bounds.partition_point(|&bound| bound <= key)
    }

    #[inline]
    fn leaf(&self, key: Key) -> u32 {
        (0..self.height).fold(self.root, |node, _| {
            self.nodes[node as usize].values[self.child(node, key)]
        })
    }

    fn descend(&self, key: Key) -> (u32, Path) {
        let mut path = Path {
            steps: [(NONE, 0); LEVELS],
            len: self.height,
        };
        let mut node = self.root;
        for step in &mut path.steps[..self.height] {
            *step = (node, self.child(node, key));
            node = self.nodes[node as usize].values[step.1];
        }
        (node, path)
    }

    /// Adds an entry to `node`, and splits the node if it is full. `path` ends above `node`.
    fn insert_into(&mut self, node: u32, at: usize, key: Key, value: u32, path: &Path, leaf: bool) {
        if self.nodes[node as usize].len < FAN_OUT {
            self.nodes[node as usize].insert(at, key, value);
            return;
        }
        let right = self.split(node, at, leaf);
        let kept = self.nodes[node as usize].len;
        // The first key of the right node becomes its bound. This key is not above any key below
        // it.
        if at > kept || (at == kept && self.nodes[right as usize].len == 0) {
            self.nodes[right as usize].insert(at - kept, key, value);
        } else {
            self.nodes[node as usize].insert(at, key, value);
        }
        let bound = self.nodes[right as usize].keys[0];
        match path.len {
            0 => self.raise(node, right, bound),
            above => {
                let (parent, child) = path.steps[above - 1];
                let path = Path {
                    len: above - 1,
                    ..*path
                };
                self.insert_into(parent, child + 1, bound, right, &path, false);
            }
        }
    }

    /// Splits a full node. The upper half moves to a new node on the right. If the new entry comes
    /// after the last, nothing moves, so that a tree filled in order has full nodes.
    fn split(&mut self, node: u32, at: usize, leaf: bool) -> u32 {
        let right = self.free.pop().unwrap_or_else(|| {
            self.nodes.push(IndexNode::EMPTY);
            self.nodes.len() as u32 - 1
        });
        // A split at the end leaves the left node full, because a sequential file adds keys in
        // ascending order.
        let keep = if at == FAN_OUT { FAN_OUT } else { FAN_OUT / 2 };
        let [left_node, right_node] = self
            .nodes
            .get_disjoint_mut([node as usize, right as usize])
            .expect("two nodes");
        *right_node = IndexNode::EMPTY;
        right_node.len = FAN_OUT - keep;
        right_node.keys[..FAN_OUT - keep].copy_from_slice(&left_node.keys[keep..]);
        right_node.values[..FAN_OUT - keep].copy_from_slice(&left_node.values[keep..]);
        left_node.len = keep;
        if leaf {
            (right_node.left, right_node.right) = (node, left_node.right);
            left_node.right = right;
            let behind = self.nodes[right as usize].right;
            if behind != NONE {
                self.nodes[behind as usize].left = right;
            }
        }
        right
    }

    /// Adds a new root above the two halves of the old one.
    fn raise(&mut self, left: u32, right: u32, bound: Key) {
        let mut root = IndexNode::EMPTY;
        root.insert(0, 0, left);
        root.insert(1, bound, right);
        self.root = match self.free.pop() {
            Some(node) => {
                self.nodes[node as usize] = root;
                node
            }
            None => {
                self.nodes.push(root);
                self.nodes.len() as u32 - 1
            }
        };
        self.height += 1;
    }

    /// Joins a sparse node to a neighbour, and continues upwards.
    fn tidy(&mut self, node: u32, path: &Path) {
        let mut node = node;
        for level in (0..path.len).rev() {
            if self.nodes[node as usize].len >= SPARSE {
                return;
            }
            let (parent, child) = path.steps[level];
            let leaves = level + 1 == self.height;
            let siblings = self.nodes[parent as usize].len;
            if self.nodes[node as usize].len == 0 {
                self.drop_child(parent, child, leaves);
            } else if child + 1 < siblings {
                self.join(parent, child, leaves);
            } else if child > 0 {
                self.join(parent, child - 1, leaves);
            }
            node = parent;
        }
        while self.height > 0 && self.nodes[self.root as usize].len == 1 {
            let old = self.root;
            self.root = self.nodes[old as usize].values[0];
            self.free.push(old);
            self.height -= 1;
        }
    }

    /// Removes a node without entries.
    fn drop_child(&mut self, parent: u32, child: usize, leaf: bool) {
        let node = self.nodes[parent as usize].values[child];
        let IndexNode { left, right, .. } = self.nodes[node as usize];
        if leaf && left != NONE {
            self.nodes[left as usize].right = right;
        }
        if leaf && right != NONE {
            self.nodes[right as usize].left = left;
        }
        self.free.push(node);
        self.nodes[parent as usize].remove(child);
    }

    /// Joins two neighbouring children into one node, if they fit.
    fn join(&mut self, parent: u32, child: usize, leaves: bool) {
        let (left, right) = (
            self.nodes[parent as usize].values[child],
            self.nodes[parent as usize].values[child + 1],
        );
        let bound = self.nodes[parent as usize].keys[child + 1];
        let [left_node, right_node] = self
            .nodes
            .get_disjoint_mut([left as usize, right as usize])
            .expect("two nodes");
        let (kept, moved) = (left_node.len, right_node.len);
        if kept + moved > FAN_OUT {
            return;
        }
        left_node.keys[kept..kept + moved].copy_from_slice(&right_node.keys[..moved]);
        left_node.values[kept..kept + moved].copy_from_slice(&right_node.values[..moved]);
        left_node.len = kept + moved;
        if leaves {
            left_node.right = right_node.right;
            let behind = left_node.right;
            if behind != NONE {
                self.nodes[behind as usize].left = left;
            }
        } else if moved > 0 {
            // The key of a first child is not a bound, because the keys below it may be less. The
            // parent's bound replaces this key.
            left_node.keys[kept] = bound;
        }
        self.free.push(right);
        self.nodes[parent as usize].remove(child + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn agree(index: &Index, model: &BTreeMap<Key, u32>, at: Key) -> Result<(), TestCaseError> {
        let before = model
            .range(..=at)
            .next_back()
            .map(|(&key, &slot)| (key, slot));
        let after = model.range(at..).next().map(|(&key, &slot)| (key, slot));
        prop_assert_eq!(index.at_or_before(at), before);
        prop_assert_eq!(index.at_or_after(at), after);
        let behind = model
            .range(at + 1..)
            .next()
            .map(|(&key, &slot)| (key, slot));
        prop_assert_eq!(index.around(at), (before.map(|(_, slot)| slot), behind));
        prop_assert_eq!(index.len(), model.len());
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn an_index_is_a_sorted_map(
            steps in prop::collection::vec((0u8..8, 0u64..3000, 1u64..40), 1..3000),
        ) {
            let (mut index, mut model) = (Index::default(), BTreeMap::new());
            for (step, page, more) in steps {
                let at = key(Object((page % 3) as u32), page);
                match (step, model.contains_key(&at)) {
                    (0..=3, false) => {
                        index.insert(at, page as u32);
                        model.insert(at, page as u32);
                    }
                    (4..=5, true) => {
                        index.remove(at);
                        model.remove(&at);
                    }
                    (6, true) => {
                        let to = at + Key::from(more);
                        if model.range(at + 1..=to).next().is_none() {
                            index.advance(at, to);
                            let slot = model.remove(&at).unwrap();
                            model.insert(to, slot);
                        }
                    }
                    // Removes whole ranges, so that nodes become empty.
                    (7, _) => {
                        let to = at + Key::from(more * 20);
                        let gone: Vec<Key> = model.range(at..to).map(|(&key, _)| key).collect();
                        for key in gone {
                            index.remove(key);
                            model.remove(&key);
                        }
                    }
                    _ => {}
                }
                agree(&index, &model, at)?;
                agree(&index, &model, at + Key::from(more))?;
            }
        }
    }

    /// The first leaf below an inner node goes, and keys that are less than those of the next leaf
    /// come to the same inner node. The bounds of the leaves that these keys fill are then less than
    /// the key of the first child.
    #[test]
    fn keys_come_before_the_first_child() {
        const APART: u64 = 100;
        let leaf = FAN_OUT as u64;
        let (mut index, mut model) = (Index::default(), BTreeMap::new());
        for number in 0..leaf * leaf * 3 {
            let at = key(Object(1), APART * number);
            index.insert(at, number as u32);
            model.insert(at, number as u32);
        }
        for first in (0..leaf * leaf * 3).step_by(FAN_OUT) {
            for number in first..first + leaf {
                let at = key(Object(1), APART * number);
                index.remove(at);
                model.remove(&at);
            }
            for number in (0..80).rev() {
                let page = APART * first + 40 * number;
                let at = key(Object(1), page + 1);
                index.insert(at, page as u32);
                model.insert(at, page as u32);
                agree(&index, &model, at).unwrap();
                agree(&index, &model, at + 20).unwrap();
            }
        }
        for &at in model.keys() {
            agree(&index, &model, at).unwrap();
        }
    }

    #[test]
    fn nodes_are_full_where_keys_come_in_order_and_free_where_they_go() {
        let mut index = Index::default();
        for round in 0..3 {
            (0..32_000).for_each(|page| index.insert(key(Object(round), page), 0));
            assert!(
                index.nodes() < 1100,
                "{} nodes for 1000 full leaves",
                index.nodes()
            );
            (0..32_000)
                .rev()
                .for_each(|page| index.remove(key(Object(round), page)));
            assert!(index.nodes() <= 2, "{} nodes for nothing", index.nodes());
        }
        assert!(index.nodes.len() < 1100);
    }
}
