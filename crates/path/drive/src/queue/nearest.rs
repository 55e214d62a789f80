//! A store of requests for a scheduler with several queues that searches the nearest request.

use super::search::{Positioning, cheapest, key};
use super::sorted::Sorted;
use super::{ArmView, WaitingRequest};
use fullstroke_units::Duration;

/// Requests in the order of their cylinders, searched by access time: seek and rotation until the
/// transfer could begin.
///
/// - **In**: [`insert`](Nearest::insert).
/// - **Out**: [`take`](Nearest::take).
/// - **Getters**: [`find`](Nearest::find), [`len`](Nearest::len).
#[derive(Clone, Debug, Default)]
pub struct Nearest {
    waiting: Sorted,
}

impl Nearest {
    /// Adds a request.
    pub fn insert(&mut self, waiting: WaitingRequest) {
        self.waiting.insert(key(&waiting), waiting);
    }

    /// Returns the shortest access time, and the index of the request. The index is valid until the
    /// next change. `None` if no access is shorter than `limit`. At equal times, the nearer request
    /// wins.
    pub fn find(&self, arm: &ArmView<'_>, limit: Duration) -> Option<(Duration, usize)> {
        let access = |waiting: &WaitingRequest, least_seek: Duration| {
            let Positioning { seek, rotation } = Positioning::of(waiting, arm, least_seek);
            Some(seek + rotation)
        };
        cheapest(&self.waiting, arm, Some(limit), |seek| seek, access)
    }

    /// Removes the request at `index`.
    ///
    /// # Panics
    /// Panics if there is no such request.
    pub fn take(&mut self, index: usize) -> WaitingRequest {
        self.waiting.remove(index)
    }

    /// Number of waiting requests.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// True if no request waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
