//! The layers of a stack and who stands above whom.

use fullstroke_contract::{Below, Gauge, Layer, MemberStatistics, TrackTable};
use fullstroke_units::Time;
use std::sync::Arc;

/// The name of a drive in reports: `0`, `1`, or `2.0` where volumes nest.
pub type MemberName = String;

/// A layer with its members, as it is described before the tree is built.
pub struct Node {
    /// The layer.
    pub layer: Box<dyn Layer>,
    /// Its members, in order; none for a drive.
    pub members: Vec<Node>,
    /// How addresses lie, if it is a drive.
    pub tracks: Option<Arc<dyn TrackTable>>,
}

/// The layers of a stack. They are numbered so that the members of one layer
/// are neighbours, and their gauges a slice.
pub struct Tree {
    layers: Vec<Box<dyn Layer>>,
    links: Vec<Link>,
    gauges: Vec<Gauge>,
    tables: Vec<Option<Arc<dyn TrackTable>>>,
    drives: Vec<(usize, MemberName)>,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    parent: Option<(u32, u32)>,
    first_member: u32,
    members: u32,
    drive: Option<u32>,
}

impl Tree {
    /// The place from which the root is reached: what has no layer above it.
    pub(crate) const ABOVE_ROOT: usize = usize::MAX;

    /// Numbers the layers below and including `root`.
    pub fn new(root: Node) -> Tree {
        let mut tree = Tree {
            layers: Vec::new(),
            links: Vec::new(),
            gauges: Vec::new(),
            tables: Vec::new(),
            drives: Vec::new(),
        };
        // Level by level, so that the members of a layer are neighbours.
        let mut level = vec![(root, None, MemberName::new())];
        while !level.is_empty() {
            let mut next = Vec::new();
            let first_of_next = tree.layers.len() + level.len();
            for (node, parent, name) in level {
                let index = tree.layers.len();
                let first_member = (first_of_next + next.len()) as u32;
                let members = node.members.len() as u32;
                let drive = node.tracks.is_some().then_some(tree.drives.len() as u32);
                if drive.is_some() {
                    tree.drives.push((index, if name.is_empty() { "0".into() } else { name.clone() }));
                }
                tree.links.push(Link { parent, first_member, members, drive });
                tree.gauges.push(node.layer.gauge());
                tree.tables.push(node.tracks);
                tree.layers.push(node.layer);
                // A layer of one member adds nothing to its name.
                let separator = if name.is_empty() { "" } else { "." };
                let named = |member: usize| match members {
                    1 => name.clone(),
                    _ => format!("{name}{separator}{member}"),
                };
                next.extend(
                    node.members
                        .into_iter()
                        .enumerate()
                        .map(|(member, child)| (child, Some((index as u32, member as u32)), named(member))),
                );
            }
            level = next;
        }
        tree
    }

    /// The drives' names, in order.
    pub fn drive_names(&self) -> impl Iterator<Item = &str> {
        self.drives.iter().map(|(_, name)| name.as_str())
    }

    pub(crate) fn len(&self) -> usize {
        self.layers.len()
    }

    /// Member `member` of `node`.
    #[inline]
    pub(crate) fn child(&self, node: usize, member: usize) -> usize {
        if node == Tree::ABOVE_ROOT {
            return 0;
        }
        let link = self.links[node];
        assert!(member < link.members as usize, "a layer issued to a member that it does not have");
        link.first_member as usize + member
    }

    /// The layer above `node`, and which of its members `node` is.
    #[inline]
    pub(crate) fn parent(&self, node: usize) -> Option<(usize, usize)> {
        self.links[node].parent.map(|(parent, member)| (parent as usize, member as usize))
    }

    /// The number of `node` among the drives, if it is one.
    #[inline]
    pub(crate) fn drive_number(&self, node: usize) -> Option<usize> {
        self.links[node].drive.map(|drive| drive as usize)
    }

    /// Calls a layer with its window on the members below it, publishes its
    /// gauge, and returns when it wants to be woken.
    #[inline]
    pub(crate) fn call(&mut self, node: usize, event: impl FnOnce(&mut dyn Layer, Below<'_>)) -> Time {
        let link = self.links[node];
        let members = link.first_member as usize..(link.first_member + link.members) as usize;
        let below = match link.members {
            0 => Below::NOTHING,
            _ => Below::new(&self.gauges[members.clone()], &self.tables[members]),
        };
        let layer = &mut *self.layers[node];
        event(layer, below);
        self.gauges[node] = layer.gauge();
        layer.next_wake()
    }

    pub(crate) fn drive_statistics(&self) -> Vec<MemberStatistics> {
        self.drives.iter().map(|&(node, _)| self.layers[node].statistics().unwrap_or_default()).collect()
    }
}
