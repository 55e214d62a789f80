//! The search for the cheapest access, without a look at the whole queue.
//!
//! The queue is sorted by cylinder. The search goes from the arm outward on both sides. The seek
//! alone is a lower bound of the access time, and the seek bound only grows. The search ends when
//! the bound exceeds the best access found.

use super::sorted::Sorted;
use super::{ArmView, Waiting};
use fullstroke_units::Duration;

/// Seek and rotation until a transfer could begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Positioning {
    pub(super) seek: Duration,
    pub(super) rotation: Duration,
}

impl Positioning {
    pub(super) fn of(waiting: &Waiting, arm: &ArmView<'_>) -> Positioning {
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
pub(super) fn key(waiting: &Waiting) -> u64 {
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
    cost: impl Fn(&Waiting) -> Option<C>,
) -> Option<Waiting> {
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
    cost: impl Fn(&Waiting) -> Option<C>,
) -> Option<(C, usize)> {
    let here = u64::from(arm.head.cylinder.0);
    debug_assert!(
        here < u64::from(arm.mechanics.geometry().cylinders()),
        "the arm stands at cylinder {here}, beyond the innermost"
    );
    let seek_table = arm.mechanics.seek_table();
    let least_seek = |key: u64| seek_table.at_least(key.abs_diff(here) as u32);
    let mut inward = waiting.at_or_after(here);
    let mut outward = inward.checked_sub(1);
    let mut best: Option<(C, usize)> = None;
    loop {
        let inner = waiting.key(inward).map(least_seek);
        let outer = outward.and_then(|index| waiting.key(index)).map(least_seek);
        let (seek, index) = match (inner, outer) {
            (Some(seek), other) if other.is_none_or(|other| seek <= other) => {
                inward += 1;
                (seek, inward - 1)
            }
            (_, Some(seek)) => {
                let index = outward.unwrap_or(0);
                outward = index.checked_sub(1);
                (seek, index)
            }
            _ => break,
        };
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
