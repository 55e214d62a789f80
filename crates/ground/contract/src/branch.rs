//! How nodes are put together.

use crate::{Node, TrackTable};
use std::sync::Arc;

/// A node with what is below it, as it is described before the graph is built.
pub struct Branch {
    /// What is asked.
    pub node: Box<dyn Node>,
    /// What it asks: that at its lower port 0 comes first.
    pub below: Vec<Branch>,
    /// What joins the node to these, if not edges of their own.
    pub link: Option<Box<dyn Node>>,
    /// What the node is.
    pub kind: Kind,
}

/// What a node is, as far as names, paths and counters go.
pub enum Kind {
    /// A drive, and how addresses lie on it. What is below are its arms.
    Drive(Arc<dyn TrackTable>),
    /// An arm of a drive, and how addresses lie under it: what it counts is the
    /// drive's.
    Arm(Arc<dyn TrackTable>),
    /// A volume of members.
    Volume,
    /// An array of drives that is one node, and how addresses lie on each: their
    /// disks speak with each other, which no edge of a graph carries.
    Array(Vec<Arc<dyn TrackTable>>),
    /// It has one member, and the same name.
    Cover,
}

impl Branch {
    fn new(node: Box<dyn Node>, below: Vec<Branch>, kind: Kind) -> Branch {
        Branch {
            node,
            below,
            link: None,
            kind,
        }
    }

    /// A drive, whose addresses lie as `tracks` says.
    pub fn drive(node: Box<dyn Node>, tracks: Arc<dyn TrackTable>) -> Branch {
        Branch::new(node, Vec::new(), Kind::Drive(tracks))
    }
    /// A drive that hands requests on to its arms.
    pub fn drive_of_arms(
        node: Box<dyn Node>,
        tracks: Arc<dyn TrackTable>,
        arms: Vec<Branch>,
    ) -> Branch {
        assert!(
            arms.iter().all(|arm| matches!(arm.kind, Kind::Arm(_))),
            "what stands below a drive are its arms"
        );
        Branch::new(node, arms, Kind::Drive(tracks))
    }
    /// An arm of a drive.
    pub fn arm(node: Box<dyn Node>, tracks: Arc<dyn TrackTable>) -> Branch {
        Branch::new(node, Vec::new(), Kind::Arm(tracks))
    }
    /// A volume of members, in order: that at its lower port 0 comes first.
    pub fn volume(node: Box<dyn Node>, members: Vec<Branch>) -> Branch {
        Branch::new(node, members, Kind::Volume)
    }
    /// An array that is one node; its drives' counters are the node's, in order.
    pub fn array(node: Box<dyn Node>, drives: Vec<Arc<dyn TrackTable>>) -> Branch {
        Branch::new(node, Vec::new(), Kind::Array(drives))
    }
    /// A node that everything on its way to `member` passes, such as a queue.
    pub fn over(node: Box<dyn Node>, member: Branch) -> Branch {
        Branch::new(node, vec![member], Kind::Cover)
    }
    /// The same, with `link` between the node and its members: a node with as
    /// many upper as lower ports, member `n` at port `n` of both. Nothing of it
    /// is seen in gauges; what reads them above it sees the members.
    #[must_use]
    pub fn behind(mut self, link: Box<dyn Node>) -> Branch {
        assert!(self.link.is_none(), "two links join a node to its members");
        self.link = Some(link);
        self
    }
    /// How addresses lie on it: a drive's table is also that of what covers it.
    pub fn tracks(&self) -> Option<Arc<dyn TrackTable>> {
        match &self.kind {
            Kind::Drive(table) | Kind::Arm(table) => Some(Arc::clone(table)),
            Kind::Volume | Kind::Array(_) => None,
            Kind::Cover => self.below[0].tracks(),
        }
    }
}
