//! Requests among which whoever schedules several queues finds the nearest.

use super::search::{Positioning, cheapest, key};
use super::sorted::Sorted;
use super::{ArmView, Waiting};
use fullstroke_units::Duration;

/// Requests in the order of their cylinders, searched by access time: seek and
/// rotation until the transfer could begin.
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
    pub fn insert(&mut self, waiting: Waiting) {
        self.waiting.insert(key(&waiting), waiting);
    }

    /// The shortest access time, and the index of its request until the next
    /// change; `None` if no access is shorter than `limit`. At equal times the
    /// nearer request is found.
    pub fn find(&self, arm: &ArmView<'_>, limit: Duration) -> Option<(Duration, usize)> {
        let access = |waiting: &Waiting| {
            let Positioning { seek, rotation } = Positioning::of(waiting, arm);
            Some(seek + rotation)
        };
        cheapest(&self.waiting, arm, Some(limit), |seek| seek, access)
    }

    /// Removes the request at `index`.
    ///
    /// # Panics
    /// If there is no such request.
    pub fn take(&mut self, index: usize) -> Waiting {
        self.waiting.remove(index)
    }

    /// Requests that wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
