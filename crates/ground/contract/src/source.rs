//! Where requests come from.

use crate::Node;

/// A node without uppers: a state machine that issues requests, by its own
/// timeline (open arrivals) or as earlier ones complete (closed).
///
/// Requests go to lower port 0. The driver numbers them in the order in which
/// they are issued ([`Request::origin`](crate::Request::origin)). The node's
/// [`next_wake`](Node::next_wake) may lie in the past: then the arrival belongs
/// to that instant. A run is over when no workload wants to be woken and nothing
/// is in flight. What a workload reads from and cannot read further, it says by
/// [`Out::stop`](crate::Out::stop).
pub trait Source: Node {
    /// Whether what is issued, or when, depends on completions. If not,
    /// requests come by their own times, whatever becomes of earlier ones.
    fn heeds_completions(&self) -> bool {
        true
    }

    /// Whether some requests come by their own times, so that more may arrive
    /// than can be served.
    fn arrivals_are_open(&self) -> bool {
        !self.heeds_completions()
    }

    /// How many requests there will be in all, if the source knows; for
    /// progress bars.
    fn expected_requests(&self) -> Option<u64> {
        None
    }
}
