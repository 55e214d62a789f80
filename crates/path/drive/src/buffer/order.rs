//! Segments in the order of where they begin, with how far each group of them
//! reaches.
//!
//! A treap (Seidel and Aragon, "Randomized search trees", 1996): a tree sorted
//! by place, whose shape follows from ranks that look random, so that its depth
//! is a few times the logarithm of the number of segments whatever comes in
//! which order. Each node knows the last sector that its subtree reaches: who
//! looks for what lies over a place passes by all that ends before it. Nodes
//! are numbered as segments are, so that nothing is allocated.

/// No node.
const NONE: u32 = u32::MAX;

/// The tree.
pub(super) struct Order {
    nodes: Vec<Node>,
    root: u32,
    /// Nodes at which searches have looked.
    #[cfg(test)]
    pub(super) looks: std::cell::Cell<u64>,
}

#[derive(Clone, Copy)]
struct Node {
    start: u64,
    end: u64,
    /// The most of `end` in the subtree.
    reach: u64,
    left: u32,
    right: u32,
}

impl Order {
    /// None of `count` segments.
    pub(super) fn new(count: usize) -> Order {
        let node = Node {
            start: 0,
            end: 0,
            reach: 0,
            left: NONE,
            right: NONE,
        };
        Order {
            nodes: vec![node; count],
            root: NONE,
            #[cfg(test)]
            looks: std::cell::Cell::new(0),
        }
    }

    /// Adds a segment.
    pub(super) fn insert(&mut self, segment: usize, start: u64, end: u64) {
        let segment = segment as u32;
        self.nodes[segment as usize] = Node {
            start,
            end,
            reach: end,
            left: NONE,
            right: NONE,
        };
        self.root = self.with(self.root, segment);
    }

    /// Takes out a segment.
    pub(super) fn remove(&mut self, segment: usize) {
        self.root = self.without(self.root, segment as u32);
    }

    /// A segment has another beginning or end.
    pub(super) fn change(&mut self, segment: usize, start: u64, end: u64) {
        if self.nodes[segment].start != start {
            self.remove(segment);
            self.insert(segment, start, end);
        } else {
            let grows = self.nodes[segment].end <= end;
            self.nodes[segment].end = end;
            if grows {
                self.reach_further(segment as u32, end);
            } else {
                self.measure_down_to(self.root, segment as u32);
            }
        }
    }

    /// A node has grown, as with each step of read-ahead: what is above it
    /// reaches as far, at least.
    fn reach_further(&mut self, node: u32, end: u64) {
        let mut at = self.root;
        while at != node {
            assert_ne!(at, NONE, "only a segment that was added changes");
            let Node {
                reach, left, right, ..
            } = self.nodes[at as usize];
            self.nodes[at as usize].reach = reach.max(end);
            at = if self.is_before(node, at) {
                left
            } else {
                right
            };
        }
        self.nodes[node as usize].reach = self.nodes[node as usize].reach.max(end);
    }

    /// Visits the segments that begin at `last` or before and end at `least` or
    /// behind, those that begin last first, until a visit says that it is
    /// enough.
    pub(super) fn back_from(
        &self,
        last: u64,
        least: u64,
        mut is_enough: impl FnMut(usize) -> bool,
    ) {
        self.visit(self.root, last, least, &mut is_enough);
    }

    /// Whether a visit in the subtree of `at` said that it is enough.
    fn visit(
        &self,
        at: u32,
        last: u64,
        least: u64,
        is_enough: &mut impl FnMut(usize) -> bool,
    ) -> bool {
        if at == NONE {
            return false;
        }
        #[cfg(test)]
        self.looks.set(self.looks.get() + 1);
        let node = self.nodes[at as usize];
        if node.reach < least {
            return false;
        }
        if node.start <= last {
            let found = self.visit(node.right, last, least, is_enough);
            if found || node.end >= least && is_enough(at as usize) {
                return true;
            }
        }
        self.visit(node.left, last, least, is_enough)
    }

    /// The subtree of `at` with a node.
    fn with(&mut self, at: u32, new: u32) -> u32 {
        if at == NONE || rank(at) < rank(new) {
            let (left, right) = self.split(at, new);
            (
                self.nodes[new as usize].left,
                self.nodes[new as usize].right,
            ) = (left, right);
            self.measure(new);
            return new;
        }
        if self.is_before(new, at) {
            self.nodes[at as usize].left = self.with(self.nodes[at as usize].left, new);
        } else {
            self.nodes[at as usize].right = self.with(self.nodes[at as usize].right, new);
        }
        self.measure(at);
        at
    }

    /// The subtree of `at` without a node of it.
    fn without(&mut self, at: u32, old: u32) -> u32 {
        assert_ne!(at, NONE, "a segment leaves from where it was added");
        let Node { left, right, .. } = self.nodes[at as usize];
        if at == old {
            return self.join(left, right);
        }
        if self.is_before(old, at) {
            self.nodes[at as usize].left = self.without(left, old);
        } else {
            self.nodes[at as usize].right = self.without(right, old);
        }
        self.measure(at);
        at
    }

    /// What lies before a node and what lies behind it.
    fn split(&mut self, at: u32, place: u32) -> (u32, u32) {
        if at == NONE {
            return (NONE, NONE);
        }
        let Node { left, right, .. } = self.nodes[at as usize];
        if self.is_before(at, place) {
            let (before, behind) = self.split(right, place);
            self.nodes[at as usize].right = before;
            self.measure(at);
            (at, behind)
        } else {
            let (before, behind) = self.split(left, place);
            self.nodes[at as usize].left = behind;
            self.measure(at);
            (before, at)
        }
    }

    /// One tree of two, all of the first before all of the second.
    fn join(&mut self, before: u32, behind: u32) -> u32 {
        if before == NONE || behind == NONE {
            return if before == NONE { behind } else { before };
        }
        if rank(before) > rank(behind) {
            self.nodes[before as usize].right =
                self.join(self.nodes[before as usize].right, behind);
            self.measure(before);
            before
        } else {
            self.nodes[behind as usize].left = self.join(before, self.nodes[behind as usize].left);
            self.measure(behind);
            behind
        }
    }

    /// Measures the reach of a node and of all above it.
    fn measure_down_to(&mut self, at: u32, node: u32) {
        assert_ne!(at, NONE, "only a segment that was added changes");
        if at != node {
            let Node { left, right, .. } = self.nodes[at as usize];
            self.measure_down_to(
                if self.is_before(node, at) {
                    left
                } else {
                    right
                },
                node,
            );
        }
        self.measure(at);
    }

    fn measure(&mut self, at: u32) {
        let Node {
            end, left, right, ..
        } = self.nodes[at as usize];
        let reach = |at: u32| {
            if at == NONE {
                0
            } else {
                self.nodes[at as usize].reach
            }
        };
        self.nodes[at as usize].reach = end.max(reach(left)).max(reach(right));
    }

    /// Whether a node comes before another.
    fn is_before(&self, one: u32, other: u32) -> bool {
        (self.nodes[one as usize].start, one) < (self.nodes[other as usize].start, other)
    }
}

/// Who is above whom in the tree: a bijection, so that no two are equal, whose
/// values look random (the finalizer of MurmurHash3).
fn rank(segment: u32) -> u32 {
    let mut mixed = segment.wrapping_add(0x9e37_79b9);
    mixed = (mixed ^ (mixed >> 16)).wrapping_mul(0x85eb_ca6b);
    mixed = (mixed ^ (mixed >> 13)).wrapping_mul(0xc2b2_ae35);
    mixed ^ (mixed >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What is found, in the order of the visits.
    fn found(order: &Order, last: u64, least: u64) -> Vec<usize> {
        let mut found = Vec::new();
        order.back_from(last, least, |segment| {
            found.push(segment);
            false
        });
        found
    }

    proptest! {
        /// Against a plain list; few places, so that many begin at the same.
        #[test]
        fn the_order_is_that_of_a_sorted_list(
            steps in prop::collection::vec((0usize..200, 0u64..120, 0u64..40), 0..900),
            limits in prop::collection::vec((0u64..130, 0u64..150), 8),
        ) {
            let mut order = Order::new(200);
            let mut plain: Vec<Option<(u64, u64)>> = vec![None; 200];
            for (segment, start, length) in steps {
                let end = start + length;
                match plain[segment] {
                    None => order.insert(segment, start, end),
                    Some(_) if start % 2 == 0 => order.change(segment, start, end),
                    Some((old, _)) if start % 3 == 0 => order.change(segment, old, old + length),
                    Some(_) => order.remove(segment),
                }
                plain[segment] = match plain[segment] {
                    Some((old, _)) if start % 2 != 0 && start % 3 == 0 => Some((old, old + length)),
                    Some(_) if start % 2 != 0 => None,
                    _ => Some((start, end)),
                };
            }
            for (last, least) in limits {
                let mut expected: Vec<usize> = (0..plain.len())
                    .filter(|&segment| plain[segment].is_some_and(|(start, end)| start <= last && end >= least))
                    .collect();
                expected.sort_unstable_by_key(|&segment| std::cmp::Reverse((plain[segment].map(|(start, _)| start), segment)));
                prop_assert_eq!(found(&order, last, least), expected);
            }
        }
    }
}
