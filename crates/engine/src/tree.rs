//! The layers of a stack and who stands above whom.

use fullstroke_contract::{Below, Gauge, Layer, LayerReadings, MemberStatistics, Refusal, TrackTable};
use fullstroke_units::Time;
use std::sync::Arc;

/// The name of a drive in reports: `0`, `1`, or `2.0` where volumes nest.
pub type MemberName = String;

/// A layer with its members, as it is described before the tree is built.
pub struct Node {
    layer: Box<dyn Layer>,
    members: Vec<Node>,
    kind: Kind,
}

/// What a layer is, as far as names and paths go.
enum Kind {
    Drive(Arc<dyn TrackTable>),
    Volume,
    /// It has one member, and the same name.
    Cover,
}

impl Node {
    /// A drive, whose addresses lie as `tracks` says.
    pub fn drive(layer: Box<dyn Layer>, tracks: Arc<dyn TrackTable>) -> Node {
        Node { layer, members: Vec::new(), kind: Kind::Drive(tracks) }
    }
    /// A volume of members, in order.
    pub fn volume(layer: Box<dyn Layer>, members: Vec<Node>) -> Node {
        Node { layer, members, kind: Kind::Volume }
    }
    /// A layer that everything on its way to `member` passes, such as a queue.
    pub fn over(layer: Box<dyn Layer>, member: Node) -> Node {
        Node { layer, members: vec![member], kind: Kind::Cover }
    }
    /// How addresses lie on it: a drive's table is also that of what covers it.
    fn tracks(&self) -> Option<Arc<dyn TrackTable>> {
        match &self.kind {
            Kind::Drive(table) => Some(Arc::clone(table)),
            Kind::Volume => None,
            Kind::Cover => self.members[0].tracks(),
        }
    }
}

/// The layers of a stack. They are numbered so that the members of one layer
/// are neighbours, and their gauges a slice.
pub struct Tree {
    layers: Vec<Box<dyn Layer>>,
    links: Vec<Link>,
    gauges: Vec<Gauge>,
    tables: Vec<Option<Arc<dyn TrackTable>>>,
    drives: Vec<(usize, MemberName)>,
    /// For each layer, the indices of the volumes' members on the way to it.
    paths: Vec<Vec<usize>>,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    parent: Option<(u32, u32)>,
    first_member: u32,
    members: u32,
    drive: Option<u32>,
    volume: bool,
    /// Whether the layer adds nothing to the place of its one member, and shows
    /// that member's arm as its own.
    cover: bool,
    /// Whether the layer above is such a one.
    covered: bool,
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
            paths: Vec::new(),
        };
        // Level by level, so that the members of a layer are neighbours.
        let mut level = vec![(root, None, Vec::new(), MemberName::new())];
        while !level.is_empty() {
            let mut next = Vec::new();
            let first_of_next = tree.layers.len() + level.len();
            for (node, parent, path, name) in level {
                let index = tree.layers.len();
                let tracks = node.tracks();
                let first_member = (first_of_next + next.len()) as u32;
                let members = node.members.len() as u32;
                let volume = matches!(node.kind, Kind::Volume);
                let below = node.members.into_iter().enumerate().map(|(member, child)| {
                    let within = if volume { [&path[..], &[member]].concat() } else { path.clone() };
                    let named = if members == 1 { name.clone() } else { member_name(&name, member) };
                    (child, Some((index as u32, member as u32)), within, named)
                });
                next.extend(below);
                let cover = matches!(node.kind, Kind::Cover);
                let covered = parent.is_some_and(|(above, _): (u32, u32)| tree.links[above as usize].cover);
                let mut link = Link { parent, first_member, members, drive: None, volume, cover, covered };
                if let Kind::Drive(_) = node.kind {
                    link.drive = Some(tree.drives.len() as u32);
                    tree.drives.push((index, if name.is_empty() { "0".into() } else { name }));
                }
                tree.links.push(link);
                tree.gauges.push(node.layer.gauge());
                tree.tables.push(tracks);
                tree.layers.push(node.layer);
                tree.paths.push(path);
            }
            level = next;
        }
        tree
    }

    /// The drives' names, in order.
    pub fn drive_names(&self) -> impl Iterator<Item = &str> {
        self.drives.iter().map(|(_, name)| name.as_str())
    }

    /// The drives' readings, in order.
    pub fn drive_gauges(&self) -> impl Iterator<Item = Gauge> {
        self.drives.iter().map(|&(node, _)| self.gauges[node])
    }

    /// How addresses lie on each drive, in order.
    pub fn drive_tracks(&self) -> impl Iterator<Item = &Arc<dyn TrackTable>> {
        self.drives.iter().filter_map(|&(node, _)| self.tables[node].as_ref())
    }

    /// The path of the drive called `name`, as [`drive_names`](Tree::drive_names) has it.
    pub fn drive_path(&self, name: &str) -> Option<&[usize]> {
        let (node, _) = self.drives.iter().find(|(_, known)| known == name)?;
        Some(&self.paths[*node])
    }

    /// The paths of all volumes that have members, from the top.
    pub fn volume_paths(&self) -> impl Iterator<Item = &[usize]> {
        let volumes = (0..self.layers.len()).filter(|&node| self.links[node].volume);
        volumes.map(|node| &self.paths[node][..])
    }

    /// The indices of the volumes' members on the way to `node`.
    pub(crate) fn path(&self, node: usize) -> &[usize] {
        &self.paths[node]
    }

    /// The volume at `path`.
    pub(crate) fn volume_at(&self, path: &[usize]) -> Result<usize, Refusal> {
        let mut volumes = (0..self.layers.len()).filter(|&node| self.links[node].volume);
        volumes
            .find(|&node| self.paths[node] == path)
            .ok_or_else(|| Refusal("there is no such volume in this stack".into()))
    }

    /// When a layer wants to be woken first.
    pub(crate) fn next_wake(&self, node: usize) -> Time {
        self.layers[node].next_wake()
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
        let next_wake = layer.next_wake();
        if link.cover || link.covered {
            self.show_arm(node);
        }
        next_wake
    }

    /// A cover shows the arm of what it covers, at any time.
    fn show_arm(&mut self, node: usize) {
        let mut link = self.links[node];
        if link.cover {
            self.gauges[node].head = self.gauges[link.first_member as usize].head;
        }
        let mut at = node;
        while let (true, Some((above, _))) = (link.covered, link.parent) {
            self.gauges[above as usize].head = self.gauges[at].head;
            at = above as usize;
            link = self.links[at];
        }
    }

    /// What layers have counted until `now`. Below the uppermost volume a layer's
    /// name ends in its place: `link fc-al, member 2`.
    pub(crate) fn readings(&self, now: Time) -> Vec<LayerReadings> {
        let mut all = Vec::new();
        for (layer, path) in self.layers.iter().zip(&self.paths) {
            let own = all.len();
            layer.readings(now, &mut all);
            let place = path.iter().fold(MemberName::new(), |name, &member| member_name(&name, member));
            for readings in all[own..].iter_mut().filter(|_| !place.is_empty()) {
                readings.layer = format!("{}, member {place}", readings.layer);
            }
        }
        all
    }

    pub(crate) fn drive_statistics(&self) -> Vec<MemberStatistics> {
        self.drives.iter().map(|&(node, _)| self.layers[node].statistics().unwrap_or_default()).collect()
    }
}

/// A layer of one member adds nothing to that member's name.
fn member_name(name: &str, member: usize) -> MemberName {
    if name.is_empty() { member.to_string() } else { format!("{name}.{member}") }
}
