//! Requests sorted by a key, in search trees. All nodes live in one vector. Insertion and removal
//! take O(log n), and allocate no memory once the vector has reached its size.
//!
//! The trees are treaps (Seidel & Aragon, "Randomized search trees", Algorithmica 1996). The
//! priority of a node is a hash of its slot. So no random generator is needed, and a run repeats
//! bit by bit.

use std::ops::{Index, IndexMut};

/// No slot.
const NONE: u32 = u32::MAX;

/// The nodes of any number of trees. A slot is in at most one tree of a `Forest`. For two orders of
/// the same slots, use two forests.
#[derive(Clone, Debug, Default)]
pub struct Forest {
    nodes: Vec<ForestNode>,
}

/// One tree: slots in ascending order of key. Slots of equal key stand in order of insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotTree {
    root: u32,
    length: u32,
}

#[derive(Clone, Copy, Debug)]
struct ForestNode {
    key: u64,
    parent: u32,
    children: Children,
}

/// Side of a node: smaller or larger keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Smaller,
    Larger,
}

impl Side {
    fn other(self) -> Side {
        match self {
            Side::Smaller => Side::Larger,
            Side::Larger => Side::Smaller,
        }
    }
}

/// The children of a node, by side. An array, because then a search selects the child without a
/// branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Children([u32; 2]);

impl Children {
    const NONE: Children = Children([NONE; 2]);
}

impl Index<Side> for Children {
    type Output = u32;
    #[inline]
    fn index(&self, side: Side) -> &u32 {
        &self.0[side as usize]
    }
}

impl IndexMut<Side> for Children {
    #[inline]
    fn index_mut(&mut self, side: Side) -> &mut u32 {
        &mut self.0[side as usize]
    }
}

impl Default for SlotTree {
    fn default() -> SlotTree {
        SlotTree {
            root: NONE,
            length: 0,
        }
    }
}

impl SlotTree {
    /// Returns the number of slots in the tree.
    pub fn len(&self) -> usize {
        self.length as usize
    }

    /// True if the tree is empty.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }
}

impl Forest {
    /// Adds `slot` after the slots of equal key. The slot must be in no tree of this forest.
    pub fn insert(&mut self, tree: &mut SlotTree, key: u64, slot: u32) {
        if self.nodes.len() <= slot as usize {
            let unused = ForestNode {
                key: 0,
                parent: NONE,
                children: Children::NONE,
            };
            self.nodes.resize(slot as usize + 1, unused);
        }
        let (mut parent, mut side, mut next) = (NONE, Side::Smaller, tree.root);
        while next != NONE {
            parent = next;
            // Equal keys go to the larger side, so that they stand in order of insertion.
            side = if self.node(next).key <= key {
                Side::Larger
            } else {
                Side::Smaller
            };
            next = self.node(next).children[side];
        }
        self.nodes[slot as usize] = ForestNode {
            key,
            parent,
            children: Children::NONE,
        };
        match parent {
            NONE => tree.root = slot,
            _ => self.nodes[parent as usize].children[side] = slot,
        }
        // Rotations restore the heap order of the priorities, which keeps the expected depth at
        // O(log n) for any order of insertion.
        while self.node(slot).parent != NONE && priority(slot) > priority(self.node(slot).parent) {
            self.raise(tree, slot);
        }
        tree.length += 1;
    }

    /// Removes `slot` from its tree, `tree`.
    pub fn remove(&mut self, tree: &mut SlotTree, slot: u32) {
        // The node sinks until it has one child at most, and only then can it be cut out without a
        // search.
        let single = loop {
            match self.node(slot).children.0 {
                [NONE, only] | [only, NONE] => break only,
                [smaller, larger] if priority(smaller) > priority(larger) => {
                    self.raise(tree, smaller)
                }
                [_, larger] => self.raise(tree, larger),
            }
        };
        let parent = self.node(slot).parent;
        assert!(
            tree.length > 0 && (parent != NONE || tree.root == slot),
            "slot {slot} is not in the tree that it is to leave"
        );
        self.replace_child(tree, parent, slot, single);
        tree.length -= 1;
    }

    /// Returns the key of `slot`. The slot must be in a tree.
    pub fn key(&self, slot: u32) -> u64 {
        self.node(slot).key
    }

    /// Returns the slot of the least key.
    pub fn first(&self, tree: &SlotTree) -> Option<u32> {
        self.outermost(tree.root, Side::Smaller)
    }

    /// Returns the slot of the greatest key.
    pub fn last(&self, tree: &SlotTree) -> Option<u32> {
        self.outermost(tree.root, Side::Larger)
    }

    /// Returns the slot after `slot` in its tree.
    pub fn next(&self, slot: u32) -> Option<u32> {
        self.neighbour(slot, Side::Larger)
    }

    /// Returns the slot before `slot` in its tree.
    pub fn previous(&self, slot: u32) -> Option<u32> {
        self.neighbour(slot, Side::Smaller)
    }

    /// Returns the first slot with a key of at least `key`.
    pub fn at_or_after(&self, tree: &SlotTree, key: u64) -> Option<u32> {
        let (mut found, mut next) = (None, tree.root);
        while next != NONE {
            let node = self.node(next);
            if node.key >= key {
                (found, next) = (Some(next), node.children[Side::Smaller]);
            } else {
                next = node.children[Side::Larger];
            }
        }
        found
    }

    /// Returns the last slot with a key below `key`.
    pub fn before(&self, tree: &SlotTree, key: u64) -> Option<u32> {
        let (mut found, mut next) = (None, tree.root);
        while next != NONE {
            let node = self.node(next);
            if node.key < key {
                (found, next) = (Some(next), node.children[Side::Larger]);
            } else {
                next = node.children[Side::Smaller];
            }
        }
        found
    }

    /// Iterates over the slots of a tree, in order.
    pub fn iter(&self, tree: &SlotTree) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(self.first(tree), |&slot| self.next(slot))
    }

    #[inline]
    fn node(&self, slot: u32) -> &ForestNode {
        &self.nodes[slot as usize]
    }

    fn outermost(&self, root: u32, side: Side) -> Option<u32> {
        let mut found = root;
        if found == NONE {
            return None;
        }
        while self.node(found).children[side] != NONE {
            found = self.node(found).children[side];
        }
        Some(found)
    }

    fn neighbour(&self, slot: u32, side: Side) -> Option<u32> {
        if let Some(found) = self.outermost(self.node(slot).children[side], side.other()) {
            return Some(found);
        }
        let (mut below, mut above) = (slot, self.node(slot).parent);
        while above != NONE && self.node(above).children[side] == below {
            (below, above) = (above, self.node(above).parent);
        }
        (above != NONE).then_some(above)
    }

    /// Returns the side of `parent` on which `child` stands.
    #[inline]
    fn side_of(&self, parent: u32, child: u32) -> Side {
        let children = &self.node(parent).children;
        if children[Side::Larger] == child {
            return Side::Larger;
        }
        debug_assert_eq!(
            children[Side::Smaller],
            child,
            "slot {child} is no child of slot {parent}"
        );
        Side::Smaller
    }

    /// Rotates `slot` above its parent.
    fn raise(&mut self, tree: &mut SlotTree, slot: u32) {
        let parent = self.node(slot).parent;
        let side = self.side_of(parent, slot);
        let between = self.node(slot).children[side.other()];
        let above = self.node(parent).parent;
        self.replace_child(tree, above, parent, slot);
        self.nodes[slot as usize].children[side.other()] = parent;
        self.nodes[parent as usize].parent = slot;
        self.nodes[parent as usize].children[side] = between;
        if between != NONE {
            self.nodes[between as usize].parent = parent;
        }
    }

    /// Replaces the child `old` of `parent` by `new`. `new` may be no slot.
    fn replace_child(&mut self, tree: &mut SlotTree, parent: u32, old: u32, new: u32) {
        match parent {
            NONE => tree.root = new,
            _ => {
                let side = self.side_of(parent, old);
                self.nodes[parent as usize].children[side] = new;
            }
        }
        if new != NONE {
            self.nodes[new as usize].parent = parent;
        }
    }
}

/// Returns the hash of a slot: the finaliser of MurmurHash3. The hash is one-to-one, so no two
/// slots have equal priorities.
#[inline]
fn priority(slot: u32) -> u32 {
    // The offset keeps slot 0 from the fixed point of the finaliser, which maps 0 to 0.
    let mut bits = slot.wrapping_add(0x9e37_79b9);
    bits = (bits ^ (bits >> 16)).wrapping_mul(0x85eb_ca6b);
    bits = (bits ^ (bits >> 13)).wrapping_mul(0xc2b2_ae35);
    bits ^ (bits >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn trees_of_one_forest_behave_as_sorted_vectors(
            steps in prop::collection::vec((0u8..3, 0u32..40, 0u64..30, 0usize..2), 1..300),
        ) {
            let mut forest = Forest::default();
            let mut trees = [SlotTree::default(); 2];
            let mut model: [Vec<(u64, u32)>; 2] = Default::default();
            for (step, slot, key, which) in steps {
                let held = model.iter().position(|list| list.iter().any(|&(_, other)| other == slot));
                match (step, held) {
                    (0 | 1, None) => {
                        forest.insert(&mut trees[which], key, slot);
                        let at = model[which].partition_point(|&(other, _)| other <= key);
                        model[which].insert(at, (key, slot));
                    }
                    (2, Some(tree)) => {
                        forest.remove(&mut trees[tree], slot);
                        model[tree].retain(|&(_, other)| other != slot);
                    }
                    _ => {}
                }
                for (tree, list) in trees.iter().zip(&model) {
                    let slots: Vec<u32> = list.iter().map(|&(_, slot)| slot).collect();
                    prop_assert_eq!(&forest.iter(tree).collect::<Vec<_>>(), &slots);
                    let backwards: Vec<u32> =
                        std::iter::successors(forest.last(tree), |&slot| forest.previous(slot)).collect();
                    prop_assert_eq!(backwards, slots.iter().rev().copied().collect::<Vec<_>>());
                    let at = list.partition_point(|&(other, _)| other < key);
                    prop_assert_eq!(forest.at_or_after(tree, key), slots.get(at).copied());
                    let before = at.checked_sub(1).map(|at| slots[at]);
                    prop_assert_eq!(forest.before(tree, key), before);
                }
            }
        }
    }

    #[test]
    fn a_tree_filled_in_order_stays_shallow() {
        let (mut forest, mut tree) = (Forest::default(), SlotTree::default());
        (0..100_000).for_each(|slot| forest.insert(&mut tree, u64::from(slot), slot));
        let depth = |slot: u32| {
            let above =
                |&slot: &u32| Some(forest.node(slot).parent).filter(|&parent| parent != NONE);
            std::iter::successors(Some(slot), above).count()
        };
        let deepest = (0..100_000).map(depth).max().unwrap();
        assert!(deepest < 60, "{deepest} levels for 2^17 slots");
    }
}
