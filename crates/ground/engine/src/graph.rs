//! The nodes of a machine and the edges between them.

use fullstroke_contract::{
    Branch, Counters, Effects, Gauge, LayersBelow, MemberStatistics, Node, NodeContext, NodeId,
    NodeKind, Port, Refusal, TrackTable, Wake,
};
use fullstroke_units::{Time, order_by_key};
use std::any::Any;
use std::sync::Arc;

/// The name of a drive in reports: `0`, `1`, or `2.0` for drives of nested volumes.
pub type MemberName = String;

/// The nodes of a machine, numbered level by level from the top. Therefore at one instant a node is
/// woken before the nodes below. The edges below a node are adjacent, because the node reads the
/// gauges as one slice.
pub struct Graph {
    nodes: Vec<Box<dyn Node>>,
    places: Vec<NodePlace>,
    edges: Vec<Edge>,
    /// By edge: the readings of the node at the lower end, as visible from the nodes above.
    gauges: Vec<Gauge>,
    /// By edge: the address map at the lower end.
    tables: Vec<Option<Arc<dyn TrackTable>>>,
    /// Edges sorted by lower end: the edges above one node are adjacent.
    above: Vec<u32>,
    /// The node below several hosts, if hosts read the gauge of that node when they are called.
    shared: Option<NodeId>,
    /// The latest gauge of the shared node.
    shared_gauge: Gauge,
    drives: Vec<DriveEntry>,
    /// For each node, the path: the member indices of the volumes on the way from the top.
    paths: Vec<Vec<usize>>,
}

/// A drive. One node may contain several drives.
struct DriveEntry {
    name: MemberName,
    node: NodeId,
    tracks: Arc<dyn TrackTable>,
}

/// The place of a node in the graph.
#[derive(Clone, Copy, Debug, Default)]
struct NodePlace {
    /// The edge at upper port 0, for access without a search.
    up: UpperPort,
    /// Edge at lower port 0; the edges of the other lower ports follow.
    first_below: u32,
    below: u32,
    /// Index in `above` of the edge at upper port 0; the others follow.
    first_above: u32,
    above: u32,
    /// Number of the drive; `None` if the node is not one drive.
    drive: Option<u32>,
    /// Number of the drive to which this arm belongs; `None` if the node is not an arm.
    arm_of: Option<u32>,
    /// Drives to which the node's counters belong: the first drive and the number of drives. An
    /// arm's counters belong to the drive.
    counts_for: (u32, u32),
    volume: bool,
    /// True for a node that takes over the path and name of the one member below, and shows the arm
    /// of this member.
    cover: bool,
    /// True for a link, which shows the gauges of the members unchanged.
    link: bool,
    /// True for a workload, which has no node above.
    root: bool,
    publication: Publication,
    /// Number of edges from this node of a host down to the shared node; 0 elsewhere.
    column: u32,
}

/// The way in which the gauge of a node becomes visible after a call of the node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Publication {
    /// The node shows no gauge of its own: a workload or a link.
    Silent,
    /// The gauge has one reader, and this reader shows nothing further up. This is the usual case,
    /// and the cheapest.
    Plain,
    /// The same, for a node that shows the arm of the node below.
    Covering,
    /// Hosts read the gauge when the hosts are called.
    Shared,
    /// Several nodes read the gauge, or show the gauge further up.
    #[default]
    Everywhere,
}

/// An upper port: the edge above, and the node at the edge's upper end.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UpperPort {
    edge: u32,
    pub(crate) node: NodeId,
    pub(crate) port: Port,
    /// True if the node at the upper end is a workload, or if the edge leads to the outside.
    pub(crate) root: bool,
    /// Seat of the node at the lower end.
    pub(crate) lower_kind: LowerEnd,
}

/// An edge: requests go down and completions go up.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Edge {
    upper: NodeId,
    upper_end: Port,
    /// Lower node, and the upper port of the lower node at which the edge ends.
    pub(crate) lower: NodeId,
    pub(crate) lower_end: Port,
    /// True if the upper node is a workload or the outside.
    pub(crate) by_root: bool,
    /// Seat of the lower node, for observers.
    pub(crate) lower_kind: LowerEnd,
}

/// Identity of an edge's lower end for observers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum LowerEnd {
    /// Neither a drive nor an arm.
    #[default]
    Layer,
    /// A drive, by number.
    Drive(u32),
    /// An arm of a drive with several arms, by number in the drive.
    Arm { drive: u32, arm: u16 },
}

/// A numbered branch that is not yet in the graph.
enum PlannedBranch {
    Branch {
        branch: Branch,
        path: Vec<usize>,
        name: MemberName,
    },
    Link {
        node: Box<dyn Node>,
        members: Vec<PlannedBranch>,
        path: Vec<usize>,
    },
}

impl Graph {
    /// The sender of requests from outside the graph; no node.
    pub(crate) const OUTSIDE: NodeId = NodeId(u32::MAX);
    /// The edge from the outside to the top.
    const ENTRY: usize = 0;

    /// Creates the graph of `top` and all nodes below. Requests come from outside.
    pub fn new(top: Branch) -> Graph {
        Graph::below_all(Vec::new(), top)
    }

    /// Creates the graph of a workload above `top`.
    pub fn below(workload: Box<dyn Node>, top: Branch) -> Graph {
        Graph::below_all(vec![vec![workload]], top)
    }

    /// Creates the graph of several hosts above `top`. Each host is a workload followed by the
    /// nodes on the way of the requests, from the top. Lower port 0 of a host's last node is
    /// connected to the upper port of `top` with the host's number.
    pub fn below_all(hosts: Vec<Vec<Box<dyn Node>>>, top: Branch) -> Graph {
        let mut graph = Graph {
            nodes: Vec::new(),
            places: Vec::new(),
            edges: Vec::new(),
            gauges: Vec::new(),
            tables: Vec::new(),
            above: Vec::new(),
            shared: None,
            shared_gauge: Gauge::default(),
            drives: Vec::new(),
            paths: Vec::new(),
        };
        let several_hosts = hosts.len() > 1;
        let ways = graph.add_hosts(hosts, &top);
        let last_way = ways.last().copied();
        let top = PlannedBranch::Branch {
            branch: top,
            path: Vec::new(),
            name: MemberName::new(),
        };
        // Level by level. The edges to a node get their numbers before the node, so each node waits
        // together with its edges.
        let mut level = vec![(top, ways)];
        while !level.is_empty() {
            let mut next = Vec::new();
            for (planned, edges) in level {
                next.extend(graph.place(planned, &edges));
            }
            level = next;
        }
        graph.list_above();
        assert_eq!(
            graph.above.len(),
            graph.edges.len(),
            "an edge has an upper and a lower end"
        );
        if let Some(way) = last_way.filter(|_| several_hosts) {
            graph.share(graph.edges[way].lower);
        }
        for node in graph.nodes() {
            graph.show(node);
        }
        graph
    }

    /// Lets the hosts above `node` read the gauge of `node` when they are called.
    ///
    /// Without this, each event of `node` writes the gauge to every host: with 256 hosts that
    /// took 55 % of the time. If `node` shows the arm of a node below, the first host is left out,
    /// because [`show_through`](Graph::show_through) writes the gauge of the first upper port.
    fn share(&mut self, node: NodeId) {
        let place = self.places[node.0 as usize];
        if place.link {
            return;
        }
        self.shared = Some(node);
        if !place.cover {
            self.places[node.0 as usize].publication = Publication::Shared;
        }
        for edge in u32::from(place.cover)..place.above {
            let mut edge = self.edge_above(node, Port(edge as u16));
            let mut column = 1;
            while let Some(upper) = self.places.get_mut(self.edges[edge].upper.0 as usize) {
                upper.column = column;
                if upper.root {
                    break;
                }
                edge = upper.up.edge as usize;
                column += 1;
            }
        }
    }

    /// Adds the nodes above `top`, level by level. Returns the edges to `top`.
    fn add_hosts(&mut self, hosts: Vec<Vec<Box<dyn Node>>>, top: &Branch) -> Vec<usize> {
        if hosts.is_empty() {
            return self.edges_below(Graph::OUTSIDE, 1);
        }
        let mut ways: Vec<Option<usize>> = vec![None; hosts.len()];
        let mut hosts: Vec<_> = hosts.into_iter().map(Vec::into_iter).collect();
        let longest = hosts.iter().map(ExactSizeIterator::len).max().unwrap_or(0);
        for _ in 0..longest {
            for (way, host) in ways.iter_mut().zip(&mut hosts) {
                // Hosts may have different numbers of nodes. A host without a node on this level
                // waits with its open edge.
                let Some(node) = host.next() else { continue };
                let root = way.is_none();
                let node = self.add(
                    node,
                    NodePlace {
                        root,
                        cover: !root,
                        ..NodePlace::default()
                    },
                    Vec::new(),
                );
                if let Some(edge) = *way {
                    self.edges[edge].lower = node;
                    self.tables[edge] = top.tracks();
                }
                *way = self.edges_below(node, 1).first().copied();
            }
        }
        // The first round adds the workload of every host, and a host has at least one node.
        ways.into_iter()
            .map(|way| way.expect("a host has a workload"))
            .collect()
    }

    fn add(&mut self, node: Box<dyn Node>, place: NodePlace, path: Vec<usize>) -> NodeId {
        self.nodes.push(node);
        self.places.push(place);
        self.paths.push(path);
        NodeId(self.nodes.len() as u32 - 1)
    }

    /// Adds edges below `node`, one per lower port. The lower ends are filled in later.
    fn edges_below(&mut self, node: NodeId, ports: usize) -> Vec<usize> {
        let first = self.edges.len();
        let mut by_root = true;
        if let Some(place) = self.places.get_mut(node.0 as usize) {
            by_root = place.root;
            (place.first_below, place.below) = (first as u32, ports as u32);
        }
        for port in 0..ports {
            let upper_end = Port::of(port);
            self.edges.push(Edge {
                upper: node,
                upper_end,
                by_root,
                ..Edge::default()
            });
            self.gauges.push(Gauge::default());
            self.tables.push(None);
        }
        (first..first + ports).collect()
    }

    /// Puts a node below `edges`. Returns the nodes below with the edges to them.
    fn place(
        &mut self,
        planned: PlannedBranch,
        edges: &[usize],
    ) -> Vec<(PlannedBranch, Vec<usize>)> {
        let (node, members) = match planned {
            PlannedBranch::Link {
                node,
                members,
                path,
            } => {
                assert_eq!(
                    edges.len(),
                    members.len(),
                    "a link has as many upper as lower ports"
                );
                for (&edge, member) in edges.iter().zip(&members) {
                    self.tables[edge] = member.tracks();
                }
                (
                    self.add(
                        node,
                        NodePlace {
                            link: true,
                            ..NodePlace::default()
                        },
                        path,
                    ),
                    members,
                )
            }
            PlannedBranch::Branch { branch, path, name } => {
                self.place_branch(branch, path, name, edges)
            }
        };
        for (port, &edge) in edges.iter().enumerate() {
            (self.edges[edge].lower, self.edges[edge].lower_end) = (node, Port::of(port));
            self.edges[edge].lower_kind = self.lower_kind(node, self.edges[edge].upper_end);
        }
        let joined = matches!(&members[..], [PlannedBranch::Link { .. }]);
        let ports = match &members[..] {
            [PlannedBranch::Link { members, .. }] => members.len(),
            members => members.len(),
        };
        let below = self.edges_below(node, ports);
        if joined {
            return members
                .into_iter()
                .map(|link| (link, below.clone()))
                .collect();
        }
        members
            .into_iter()
            .zip(below)
            .map(|(member, edge)| (member, vec![edge]))
            .collect()
    }

    /// Returns the kind of `node`, below port `port` of another node.
    fn lower_kind(&self, node: NodeId, port: Port) -> LowerEnd {
        let NodePlace { drive, arm_of, .. } = self.places[node.0 as usize];
        match (drive, arm_of) {
            (Some(drive), _) => LowerEnd::Drive(drive),
            (None, Some(drive)) => LowerEnd::Arm { drive, arm: port.0 },
            (None, None) => LowerEnd::Layer,
        }
    }

    fn place_branch(
        &mut self,
        branch: Branch,
        path: Vec<usize>,
        name: MemberName,
        edges: &[usize],
    ) -> (NodeId, Vec<PlannedBranch>) {
        for &edge in edges {
            self.tables[edge] = branch.tracks();
        }
        let mut place = NodePlace::default();
        let node = NodeId(self.nodes.len() as u32);
        let first = self.drives.len() as u32;
        match &branch.kind {
            NodeKind::Drive(tracks) => {
                // The arms count for the drive. The drive shows the first arm as its own.
                let has_arms = !branch.below.is_empty();
                (place.drive, place.cover) = (Some(first), has_arms);
                place.counts_for = (first, u32::from(!has_arms));
                let name = if name.is_empty() {
                    "0".into()
                } else {
                    name.clone()
                };
                self.drives.push(DriveEntry {
                    name,
                    node,
                    tracks: Arc::clone(tracks),
                });
            }
            NodeKind::Array(drives) => {
                place.volume = true;
                place.counts_for = (first, drives.len() as u32);
                for (member, tracks) in drives.iter().enumerate() {
                    let name = member_name(&name, member);
                    self.drives.push(DriveEntry {
                        name,
                        node,
                        tracks: Arc::clone(tracks),
                    });
                }
            }
            // The arms of a drive are placed after the drive, so the number of the drive is known.
            NodeKind::Arm(_) => {
                let above = self.places.get(self.edges[edges[0]].upper.0 as usize);
                let drive = above.and_then(|above| above.drive);
                place.arm_of = drive;
                place.counts_for = drive.map_or((0, 0), |drive| (drive, 1));
            }
            NodeKind::Volume => place.volume = true,
            NodeKind::Cover => place.cover = true,
        }
        let below = plan_below(branch.below, place.volume, &path, &name);
        let below = match branch.link {
            None => below,
            Some(node) => vec![PlannedBranch::Link {
                node,
                members: below,
                path: path.clone(),
            }],
        };
        (self.add(branch.node, place, path), below)
    }

    /// Lists the edges above each node, by upper port.
    fn list_above(&mut self) {
        for node in self.nodes() {
            let mut above: Vec<u32> = (0..self.edges.len() as u32)
                .filter(|&edge| self.edges[edge as usize].lower == node)
                .collect();
            // Ports are numbered by the volume, edges by the order of placing. Completions leave by
            // port.
            order_by_key(&mut above, |&edge| self.edges[edge as usize].lower_end);
            assert!(
                above.is_empty() || !self.is_root(node),
                "an edge ends above a workload: node {}",
                node.0
            );
            let shows = |edge: &u32| {
                let upper = self.places.get(self.edges[*edge as usize].upper.0 as usize);
                upper.is_some_and(|upper| upper.cover || upper.link)
            };
            let shown = above.iter().any(shows);
            let up = above
                .first()
                .map_or_else(UpperPort::default, |&edge| self.up_from(edge));
            let place = &mut self.places[node.0 as usize];
            place.up = up;
            (place.first_above, place.above) = (self.above.len() as u32, above.len() as u32);
            // A workload above counts as plain as well: it shows nothing further up.
            let alone = above.len() == 1 && !shown;
            place.publication = match (place.root || place.link, place.cover) {
                (true, _) => Publication::Silent,
                (false, false) if alone => Publication::Plain,
                (false, true) if alone => Publication::Covering,
                _ => Publication::Everywhere,
            };
            self.above.append(&mut above);
        }
    }

    fn up_from(&self, edge: u32) -> UpperPort {
        let Edge {
            upper,
            upper_end,
            by_root,
            lower_kind,
            ..
        } = self.edges[edge as usize];
        UpperPort {
            edge,
            node: upper,
            port: upper_end,
            root: by_root,
            lower_kind,
        }
    }

    /// Returns the drives' names, in order.
    pub fn drive_names(&self) -> impl Iterator<Item = &str> {
        self.drives.iter().map(|drive| drive.name.as_str())
    }

    /// Returns true if a node contains several drives. Requests to these drives cross no edge and
    /// are invisible to observers.
    pub fn hides_drives(&self) -> bool {
        self.drives.iter().any(|drive| self.is_hidden(drive))
    }

    fn is_hidden(&self, drive: &DriveEntry) -> bool {
        self.places[drive.node.0 as usize].drive.is_none()
    }

    /// Returns the drives' readings, in order.
    pub fn drive_gauges(&self) -> impl Iterator<Item = Gauge> {
        self.drives
            .iter()
            .map(|drive| *self.gauge_on(self.edge_above(drive.node, Port::FIRST)))
    }

    /// Returns the address map of each drive, in order.
    pub fn drive_tracks(&self) -> impl Iterator<Item = &Arc<dyn TrackTable>> {
        self.drives.iter().map(|drive| &drive.tracks)
    }

    /// Returns the path of the drive called `name`, a name from
    /// [`drive_names`](Graph::drive_names). `None` for a drive inside a node, because this drive is
    /// no node.
    pub fn drive_path(&self, name: &str) -> Option<&[usize]> {
        let drive = self.drives.iter().find(|drive| drive.name == name)?;
        (!self.is_hidden(drive)).then(|| self.path(drive.node))
    }

    /// Returns the paths of all volumes, from the top.
    pub fn volume_paths(&self) -> impl Iterator<Item = &[usize]> {
        let volumes = (0..self.nodes.len()).filter(|&node| self.places[node].volume);
        volumes.map(|node| &self.paths[node][..])
    }

    /// Returns the first workload of type `W`, for access to results beyond the counters.
    pub fn workload<W: Node>(&self) -> Option<&W> {
        let roots = self
            .nodes
            .iter()
            .zip(&self.places)
            .filter(|(_, place)| place.root);
        roots
            .map(|(node, _)| &**node as &dyn Any)
            .find_map(|node| node.downcast_ref())
    }

    /// Returns the member indices of the volumes on the way to `node`.
    pub(crate) fn path(&self, node: NodeId) -> &[usize] {
        &self.paths[node.0 as usize]
    }

    /// Returns the volume at `path`.
    pub(crate) fn volume_at(&self, path: &[usize]) -> Result<NodeId, Refusal> {
        let mut volumes = (0..self.nodes.len()).filter(|&node| self.places[node].volume);
        volumes
            .find(|&node| self.paths[node] == path)
            .map(|node| NodeId(node as u32))
            .ok_or_else(|| Refusal("there is no such volume in this stack".into()))
    }

    /// Returns the drive at `path`.
    pub(crate) fn drive_at(&self, path: &[usize]) -> Result<NodeId, Refusal> {
        let mut drives = self.drives.iter().filter(|drive| !self.is_hidden(drive));
        drives
            .find(|drive| self.path(drive.node) == path)
            .map(|drive| drive.node)
            .ok_or_else(|| Refusal("there is no such drive in this stack".into()))
    }

    /// Returns the next wake-up of a node.
    pub(crate) fn next_wake(&self, node: NodeId) -> Wake {
        self.nodes[node.0 as usize].next_wake()
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns all nodes, in order.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.nodes.len() as u32).map(NodeId)
    }

    /// Returns true if `node` is a workload.
    pub(crate) fn is_root(&self, node: NodeId) -> bool {
        self.places[node.0 as usize].root
    }

    /// Returns the edge at lower port `port` of `node`.
    #[inline]
    pub(crate) fn lower(&self, node: NodeId, port: Port) -> &Edge {
        let Some(place) = self.places.get(node.0 as usize) else {
            return &self.edges[Graph::ENTRY];
        };
        assert!(
            port.index() < place.below as usize,
            "a node issued at a lower port that it does not have"
        );
        &self.edges[place.first_below as usize + port.index()]
    }

    /// Returns the readings of the node below lower port `port` of `node`.
    #[inline]
    pub(crate) fn gauge_below(&self, node: NodeId, port: Port) -> &Gauge {
        let place = self.places.get(node.0 as usize);
        self.gauge_on(place.map_or(Graph::ENTRY, |place| {
            place.first_below as usize + port.index()
        }))
    }

    /// Returns the gauge of the node below `edge`.
    #[inline]
    fn gauge_on(&self, edge: usize) -> &Gauge {
        let Edge {
            lower, lower_end, ..
        } = self.edges[edge];
        match self.shared {
            Some(shared) if lower == shared => {
                let written = self.places[shared.0 as usize].cover && lower_end == Port::FIRST;
                // `show` has written the gauge of the first port with the arm of the node below,
                // which the shared gauge does not have.
                if written {
                    &self.gauges[edge]
                } else {
                    &self.shared_gauge
                }
            }
            _ => &self.gauges[edge],
        }
    }

    /// Brings the gauges on the `column` edges from `edge` down to the shared node up to date.
    fn read_shared(&mut self, edge: usize, column: u32) {
        if column == 1 {
            self.gauges[edge] = self.shared_gauge;
            return;
        }
        let below = self.places[self.edges[edge].lower.0 as usize].first_below as usize;
        self.read_shared(below, column - 1);
        self.gauges[edge] = self.gauges[edge].with_arm_of(&self.gauges[below]);
    }

    /// Returns the edge and the node at upper port `port` of `node`; `None` above a workload.
    #[inline]
    pub(crate) fn upper(&self, node: NodeId, port: Port) -> Option<UpperPort> {
        let place = &self.places[node.0 as usize];
        if place.root {
            return None;
        }
        if port == Port::FIRST {
            return Some(place.up);
        }
        assert!(
            port.index() < place.above as usize,
            "a node answered at an upper port that it does not have"
        );
        Some(self.up_from(self.above[place.first_above as usize + port.index()]))
    }

    #[inline]
    fn edge_above(&self, node: NodeId, port: Port) -> usize {
        self.above[self.places[node.0 as usize].first_above as usize + port.index()] as usize
    }

    /// Calls a node with a view on the nodes below, publishes the node's gauge, and returns the
    /// next wake-up.
    #[inline]
    pub(crate) fn call(
        &mut self,
        node: NodeId,
        out: &mut Effects,
        event: impl FnOnce(&mut dyn Node, &mut NodeContext<'_>),
    ) -> Wake {
        let node_index = node.0 as usize;
        let NodePlace {
            column,
            first_below,
            ..
        } = self.places[node_index];
        if column > 0 {
            self.read_shared(first_below as usize, column);
        }
        let place = &self.places[node_index];
        let edges = place.first_below as usize..(place.first_below + place.below) as usize;
        let below = match place.below {
            0 => LayersBelow::NOTHING,
            _ => LayersBelow::new(&self.gauges[edges.clone()], &self.tables[edges]),
        };
        let called = &mut *self.nodes[node_index];
        event(called, &mut NodeContext { below, out });
        let next_wake = called.next_wake();
        match place.publication {
            Publication::Silent => {}
            Publication::Plain => self.gauges[place.up.edge as usize] = called.gauge(),
            Publication::Covering => {
                let arm = &self.gauges[first_below as usize];
                self.gauges[place.up.edge as usize] = called.gauge().with_arm_of(arm);
            }
            Publication::Shared => self.shared_gauge = called.gauge(),
            Publication::Everywhere => self.show(node),
        }
        next_wake
    }

    /// Publishes a node's gauge to the nodes above.
    fn show(&mut self, node: NodeId) {
        let NodePlace {
            cover,
            above,
            first_below,
            ..
        } = self.places[node.0 as usize];
        let mut gauge = self.nodes[node.0 as usize].gauge();
        if cover {
            gauge = gauge.with_arm_of(&self.gauges[first_below as usize]);
        }
        let mut written = above;
        if self.shared == Some(node) {
            self.shared_gauge = gauge;
            written = u32::from(cover);
        }
        for port in 0..written {
            let edge = self.edge_above(node, Port(port as u16));
            self.gauges[edge] = gauge;
            self.show_through(edge);
        }
    }

    /// Carries a new gauge further up. A link shows the gauge unchanged; a cover shows the arm
    /// position, even if the cover itself is not called.
    fn show_through(&mut self, mut edge: usize) {
        loop {
            let Edge {
                upper, upper_end, ..
            } = self.edges[edge];
            let Some(place) = self.places.get(upper.0 as usize) else {
                return;
            };
            let seen = self.gauges[edge];
            if place.link {
                edge = self.edge_above(upper, upper_end);
                self.gauges[edge] = seen;
            } else if place.cover && upper_end == Port::FIRST {
                edge = self.edge_above(upper, Port::FIRST);
                self.gauges[edge] = self.gauges[edge].with_arm_of(&seen);
            } else {
                return;
            }
        }
    }

    /// Returns the nodes' counters up to `now`. Below the uppermost volume, the name of a layer
    /// ends with its place: `link fc-al, member 2`. The counters of a drive are the sums over the
    /// arms; only the busy time is the mean.
    pub(crate) fn count(&self, now: Time) -> Counters {
        let mut all = Counters::default();
        let mut drives = vec![(MemberStatistics::default(), 0); self.drives.len()];
        for ((node, path), place) in self.nodes.iter().zip(&self.paths).zip(&self.places) {
            let own = all.layers.len();
            node.count(now, &mut all);
            // A node adds the counters of its own drives to the list. The list is emptied into the
            // sums after each node, so the next node finds an empty list.
            let (first, count) = place.counts_for;
            assert_eq!(
                all.drives.len(),
                count as usize,
                "each drive counts, and nobody else as one"
            );
            for ((sum, arms), counted) in drives[first as usize..]
                .iter_mut()
                .zip(all.drives.drain(..))
            {
                (*sum, *arms) = (sum.plus(counted), *arms + 1);
            }
            let place = path.iter().fold(MemberName::new(), |name, &member| {
                member_name(&name, member)
            });
            for readings in all.layers[own..].iter_mut().filter(|_| !place.is_empty()) {
                readings.layer = format!("{}, member {place}", readings.layer);
            }
        }
        let mean = |(sum, arms): (MemberStatistics, u64)| MemberStatistics {
            // Arms work at the same time. A sum would show a drive as busy for longer than the run.
            busy: sum.busy / arms.max(1),
            ..sum
        };
        all.drives = drives.into_iter().map(mean).collect();
        all
    }
}

impl PlannedBranch {
    fn tracks(&self) -> Option<Arc<dyn TrackTable>> {
        match self {
            PlannedBranch::Branch { branch, .. } => branch.tracks(),
            PlannedBranch::Link { .. } => None,
        }
    }
}

/// Returns the branches below a layer, each with its name. Below a volume each branch has its own
/// path.
fn plan_below(
    below: Vec<Branch>,
    volume: bool,
    path: &[usize],
    name: &MemberName,
) -> Vec<PlannedBranch> {
    let count = below.len();
    let plan = |(member, branch)| {
        let path = if volume {
            [path, &[member]].concat()
        } else {
            path.to_vec()
        };
        // A layer of one member adds nothing to the member's name.
        let name = if count == 1 {
            name.clone()
        } else {
            member_name(name, member)
        };
        PlannedBranch::Branch { branch, path, name }
    };
    below.into_iter().enumerate().map(plan).collect()
}

/// Returns the name of member number `member` of a layer called `name`.
fn member_name(name: &str, member: usize) -> MemberName {
    if name.is_empty() {
        member.to_string()
    } else {
        format!("{name}.{member}")
    }
}
