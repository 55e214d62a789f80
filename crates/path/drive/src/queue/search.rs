//! The search for the cheapest access, without a look at the whole queue.
//!
//! The queue is sorted by cylinder. The search goes from the arm outward on both sides. The seek
//! alone is a lower bound of the access time, and the seek bound only grows. The search ends when
//! the bound exceeds the best access found.

use super::sorted::Sorted;
use super::{ArmView, WaitingRequest};
use crate::seek::SeekTable;
use fullstroke_units::Duration;

/// Seek and rotation until a transfer could begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Positioning {
    pub(super) seek: Duration,
    pub(super) rotation: Duration,
}

impl Positioning {
    pub(super) fn of(waiting: &WaitingRequest, arm: &ArmView<'_>) -> Positioning {
        let position = &waiting.position;
        let seek = arm
            .mechanics
            .seek(arm.head, position.cylinder, position.surface, waiting.write);
        let rotation = arm.mechanics.rotation(
            arm.head,
            arm.now + seek,
            position.angle,
            waiting.span,
            waiting.write,
        );
        Positioning { seek, rotation }
    }
}

/// Returns the key by which requests must be sorted.
pub(super) fn key(waiting: &WaitingRequest) -> u64 {
    u64::from(waiting.position.cylinder.0)
}

/// Removes the request of least `cost`. `bound` maps a seek to a lower bound of the cost of all
/// requests with that seek or a longer one. The bound must not fall as the seek grows. At equal
/// cost the nearer request is taken.
#[inline]
pub(super) fn take_cheapest<C: PartialOrd + Copy>(
    waiting: &mut Sorted,
    arm: &ArmView<'_>,
    bound: impl Fn(Duration) -> C,
    cost: impl Fn(&WaitingRequest) -> Option<C>,
) -> Option<WaitingRequest> {
    let (_, index) = cheapest(waiting, arm, None, bound, cost)?;
    Some(waiting.remove(index))
}

/// Returns the least `cost` and the index of the request. With a `limit`, only costs below the
/// limit count.
#[inline]
pub(super) fn cheapest<C: PartialOrd + Copy>(
    waiting: &Sorted,
    arm: &ArmView<'_>,
    limit: Option<C>,
    bound: impl Fn(Duration) -> C,
    cost: impl Fn(&WaitingRequest) -> Option<C>,
) -> Option<(C, usize)> {
    let mut best: Option<(C, usize)> = None;
    for (seek, index) in OutwardSearch::new(waiting, arm) {
        if best
            .map(|(least, _)| least)
            .or(limit)
            .is_some_and(|least| bound(seek) > least)
        {
            break;
        }
        if let Some(cost) = cost(waiting.get(index))
            && best
                .map(|(least, _)| least)
                .or(limit)
                .is_none_or(|least| cost < least)
        {
            best = Some((cost, index));
        }
    }
    best
}

/// Yields all waiting requests from the arm outward on both sides: a lower bound of the seek
/// time, which never falls, and the index of the request. At equal bounds the requests on the
/// inner side come first.
pub(super) struct OutwardSearch<'a> {
    waiting: &'a Sorted,
    seek_table: &'a SeekTable,
    here: u64,
    inward: usize,
    /// Number of requests on the outer side that are left.
    outward: usize,
    /// Bound of the next request on each side. Both bounds are kept, because a step changes one
    /// side only, and a bound costs a square root or a look-up in a large table.
    inner: Option<Duration>,
    outer: Option<Duration>,
}

impl<'a> OutwardSearch<'a> {
    #[inline]
    pub(super) fn new(waiting: &'a Sorted, arm: &ArmView<'a>) -> OutwardSearch<'a> {
        let here = u64::from(arm.head.cylinder.0);
        debug_assert!(
            here < u64::from(arm.mechanics.geometry().cylinders()),
            "the arm stands at cylinder {here}, beyond the innermost"
        );
        let inward = waiting.at_or_after(here);
        let mut search = OutwardSearch {
            waiting,
            seek_table: arm.mechanics.seek_table(),
            here,
            inward,
            outward: inward,
            inner: None,
            outer: None,
        };
        search.inner = search.bound(inward);
        search.outer = search.bound_outward();
        search
    }

    /// Returns the bound of a request; `None` behind the last request.
    #[inline]
    fn bound(&self, index: usize) -> Option<Duration> {
        self.waiting.key(index).map(|key| self.least_seek(key))
    }

    #[inline]
    fn bound_outward(&self) -> Option<Duration> {
        self.bound(self.outward.checked_sub(1)?)
    }

    /// Returns a lower bound of the seek time to the cylinder `key`.
    #[inline]
    pub(super) fn least_seek(&self, key: u64) -> Duration {
        self.seek_table.at_least(key.abs_diff(self.here) as u32)
    }
}

impl Iterator for OutwardSearch<'_> {
    type Item = (Duration, usize);

    #[inline]
    fn next(&mut self) -> Option<(Duration, usize)> {
        match (self.inner, self.outer) {
            (Some(seek), other) if other.is_none_or(|other| seek <= other) => {
                let index = self.inward;
                self.inward += 1;
                self.inner = self.bound(self.inward);
                Some((seek, index))
            }
            (_, Some(seek)) => {
                self.outward -= 1;
                self.outer = self.bound_outward();
                Some((seek, self.outward))
            }
            _ => None,
        }
    }
}

/// Returns a value that orders requests as [`OutwardSearch`] yields them.
pub(super) fn outward_order(waiting: &Sorted, arm: &ArmView<'_>, slot: u32) -> impl Ord + use<> {
    let index = waiting.index_of(slot);
    let seek = index.and_then(|index| {
        let key = waiting.key(index)?;
        Some(OutwardSearch::new(waiting, arm).least_seek(key))
    });
    let inward = waiting.at_or_after(u64::from(arm.head.cylinder.0));
    let distance = index.map(|index| index.abs_diff(inward));
    (seek, index.is_some_and(|index| index < inward), distance)
}
