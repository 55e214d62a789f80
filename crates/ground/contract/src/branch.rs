//! The description of a tree of nodes before the graph is built.

use crate::{Node, TrackTable};
use std::sync::Arc;

/// A node and the nodes below it, as a description from which the graph is built.
pub struct Branch {
    /// The node at the top of the branch.
    pub node: Box<dyn Node>,
    /// The branches at the node's lower ports, in the order of the ports from 0.
    pub below: Vec<Branch>,
    /// The node between this node and the branches below, such as a bus; `None` = direct edges.
    pub link: Option<Box<dyn Node>>,
    /// Kind of the node.
    pub kind: NodeKind,
}

/// The kind of a node: decides about names, paths and counters.
pub enum NodeKind {
    /// A drive with its address map. The branches below are the drive's arms.
    Drive(Arc<dyn TrackTable>),
    /// An arm of a drive, with the map of the addresses under this arm. The arm's counters belong
    /// to the drive.
    Arm(Arc<dyn TrackTable>),
    /// A volume of members.
    Volume,
    /// An array of drives in one node, with the address map of each drive. The drives are one node
    /// because they exchange messages with each other, and the edges of a graph lead only up and
    /// down.
    Array(Vec<Arc<dyn TrackTable>>),
    /// A layer above one member; it has the name of the member.
    Cover,
}

impl Branch {
    fn new(node: Box<dyn Node>, below: Vec<Branch>, kind: NodeKind) -> Branch {
        Branch {
            node,
            below,
            link: None,
            kind,
        }
    }

    /// Describes a drive whose addresses are laid out according to `tracks`.
    pub fn drive(node: Box<dyn Node>, tracks: Arc<dyn TrackTable>) -> Branch {
        Branch::new(node, Vec::new(), NodeKind::Drive(tracks))
    }
    /// Describes a drive that passes requests on to its arms.
    pub fn drive_of_arms(
        node: Box<dyn Node>,
        tracks: Arc<dyn TrackTable>,
        arms: Vec<Branch>,
    ) -> Branch {
        assert!(
            arms.iter().all(|arm| matches!(arm.kind, NodeKind::Arm(_))),
            "only arms are below a drive"
        );
        Branch::new(node, arms, NodeKind::Drive(tracks))
    }
    /// Describes an arm of a drive.
    pub fn arm(node: Box<dyn Node>, tracks: Arc<dyn TrackTable>) -> Branch {
        Branch::new(node, Vec::new(), NodeKind::Arm(tracks))
    }
    /// Describes a volume. The first member is at lower port 0.
    pub fn volume(node: Box<dyn Node>, members: Vec<Branch>) -> Branch {
        Branch::new(node, members, NodeKind::Volume)
    }
    /// Describes an array that is one node. The node counts for its drives, in their order.
    pub fn array(node: Box<dyn Node>, drives: Vec<Arc<dyn TrackTable>>) -> Branch {
        Branch::new(node, Vec::new(), NodeKind::Array(drives))
    }
    /// Describes a node that every request to `member` passes, such as a queue.
    pub fn over(node: Box<dyn Node>, member: Branch) -> Branch {
        Branch::new(node, vec![member], NodeKind::Cover)
    }
    /// Puts `link` between the node and its members. A link has as many upper as lower ports, and
    /// member `n` is at port `n` on both sides. Links are invisible in gauges: a node above the
    /// link reads the gauges of the members.
    #[must_use]
    pub fn behind(mut self, link: Box<dyn Node>) -> Branch {
        assert!(self.link.is_none(), "two links join a node to its members");
        self.link = Some(link);
        self
    }
    /// Returns the address map of the branch. A cover has the map of the drive below. `None` for a
    /// volume or an array, whose addresses are spread over several drives.
    pub fn tracks(&self) -> Option<Arc<dyn TrackTable>> {
        match &self.kind {
            NodeKind::Drive(table) | NodeKind::Arm(table) => Some(Arc::clone(table)),
            NodeKind::Volume | NodeKind::Array(_) => None,
            NodeKind::Cover => self.below[0].tracks(),
        }
    }
}
