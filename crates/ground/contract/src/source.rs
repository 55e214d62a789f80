//! The interface of workloads.

use crate::Node;

/// A node without upper ports that issues requests. Requests follow the node's own timeline (open
/// arrivals) or the completions of earlier requests (closed).
///
/// Requests go to lower port 0. The driver numbers them in the order of issue
/// ([`Request::origin`](crate::Request::origin)). The node's [`next_wake`](Node::next_wake) may lie
/// in the past; the arrival then belongs to this past instant. A run ends when no workload wants to
/// be woken and nothing is in flight. A workload that can no longer read its input calls
/// [`Effects::stop`](crate::Effects::stop).
pub trait Source: Node {
    /// Returns true if requests or their times depend on completions (default). Otherwise requests
    /// come at their own times, regardless of earlier requests.
    fn depends_on_completions(&self) -> bool {
        true
    }

    /// Returns true if some requests come at their own times. In this case more requests may arrive
    /// than the storage can serve.
    fn arrivals_are_open(&self) -> bool {
        !self.depends_on_completions()
    }

    /// Returns the total number of requests if the source knows it, for progress bars.
    fn expected_requests(&self) -> Option<u64> {
        None
    }
}
