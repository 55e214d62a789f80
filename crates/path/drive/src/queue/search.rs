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
    /// Returns the positioning for a request, whose seek takes at least `least_seek` by
    /// [`OutwardSearch::least_seek`].
    #[inline]
    pub(super) fn of(
        waiting: &WaitingRequest,
        arm: &ArmView<'_>,
        least_seek: Duration,
    ) -> Positioning {
        let position = &waiting.position;
        let mechanics = arm.mechanics;
        let (head, surface, write) = (arm.head, position.surface, waiting.write);
        // The bound of a seek curve that never falls is the time of the movement itself. The time
        // costs a square root or a look-up in a large table.
        let seek = if mechanics.seek_table().never_falls() {
            mechanics.seek_of(least_seek, head, surface, write)
        } else {
            mechanics.seek(head, position.cylinder, surface, write)
        };
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
/// requests with that seek or a longer one. The bound must not fall as the seek grows. `cost` gets
/// the least seek too. At equal cost the nearer request is taken.
#[inline]
pub(super) fn take_cheapest<C: PartialOrd + Copy>(
    waiting: &mut Sorted,
    arm: &ArmView<'_>,
    bound: impl Fn(Duration) -> C,
    cost: impl Fn(&WaitingRequest, Duration) -> Option<C>,
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
    cost: impl Fn(&WaitingRequest, Duration) -> Option<C>,
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
        if let Some(cost) = cost(waiting.get(index), seek)
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
    /// Bound of the next request on each side, [`NO_REQUEST`] behind the last. Both bounds are kept,
    /// because a step changes one side only, and a bound costs a square root or a look-up in a
    /// large table.
    inner: Duration,
    outer: Duration,
}

/// The bound of a side without further requests. No seek takes 584 years.
const NO_REQUEST: Duration = Duration::from_nanos(u64::MAX);

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
            inner: NO_REQUEST,
            outer: NO_REQUEST,
        };
        search.inner = search.bound(inward);
        search.outer = search.bound(inward.wrapping_sub(1));
        search
    }

    /// Returns the bound of a request; [`NO_REQUEST`] if the index is that of no request.
    #[inline]
    fn bound(&self, index: usize) -> Duration {
        match self.waiting.key(index) {
            Some(key) => self.least_seek(key),
            None => NO_REQUEST,
        }
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
        let (inner, outer) = (self.inner, self.outer);
        if outer < inner {
            self.outward -= 1;
            // Without a request on the outer side, the index wraps around to that of no request.
            self.outer = self.bound(self.outward.wrapping_sub(1));
            return Some((outer, self.outward));
        }
        if inner == NO_REQUEST {
            return None;
        }
        let index = self.inward;
        self.inward += 1;
        self.inner = self.bound(self.inward);
        Some((inner, index))
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
