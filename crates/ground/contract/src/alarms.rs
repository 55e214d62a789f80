//! Wake-up times, with fast access to the earliest.

use fullstroke_units::Time;

/// Number of sleepers in a group.
const GROUP: usize = 16;

/// One alarm for each of a fixed number of sleepers. Sleepers stand in groups, and a tournament
/// tree finds the group with the earliest alarm. Most machines have one group: to set an alarm then
/// takes one comparison, unless the earliest alarm of the group moves to a later time. To read the
/// first alarm takes constant time. Of two alarms at one instant, the sleeper with the lower number
/// comes first.
#[derive(Clone, Debug)]
pub struct Alarms {
    due: Vec<Time>,
    /// `winners[1]` is the sleeper with the earliest alarm. The children of node `i` are `2i` and
    /// `2i+1`. The leaves are the sleepers with the earliest alarm of each group.
    winners: Vec<u32>,
    /// Number of leaves, a power of two.
    leaves: usize,
}

impl Alarms {
    /// Creates alarms for `sleepers` sleepers; no alarm is set.
    pub fn new(sleepers: usize) -> Alarms {
        // A power of two makes the tree complete, so each parent has two children. Unused groups
        // never have an alarm.
        let leaves = sleepers.div_ceil(GROUP).next_power_of_two();
        // All alarms are equal at first, so the first sleeper and the left child win everywhere.
        let mut winners = vec![0; 2 * leaves];
        for (group, winner) in winners[leaves..].iter_mut().enumerate() {
            *winner = (GROUP * group) as u32;
        }
        for node in (1..leaves).rev() {
            winners[node] = winners[2 * node];
        }
        // A single group has no more places than sleepers, because a search visits all of them.
        let places = if leaves == 1 {
            sleepers.max(1)
        } else {
            GROUP * leaves
        };
        Alarms {
            due: vec![Time::NEVER; places],
            winners,
            leaves,
        }
    }

    /// Sets the alarm of `sleeper` to `due`. The previous alarm of the sleeper is gone.
    ///
    /// # Panics
    /// If there is no such sleeper.
    #[inline]
    pub fn set(&mut self, sleeper: usize, due: Time) {
        // Most calls leave the alarm of a node unchanged.
        let old = std::mem::replace(&mut self.due[sleeper], due);
        if old == due {
            return;
        }
        let leaf = self.leaves + sleeper / GROUP;
        let before = self.winners[leaf] as usize;
        let now = if before != sleeper {
            let first = self.due[before];
            // Of equal times the lower number wins, as in `earliest_of_group`.
            if due > first || due == first && sleeper > before {
                return;
            }
            sleeper
        } else if due < old {
            sleeper
        } else {
            self.earliest_of_group(sleeper / GROUP)
        };
        self.winners[leaf] = now as u32;
        if self.leaves > 1 {
            self.climb(leaf, sleeper as u32);
        }
    }

    /// Returns the sleeper with the earliest alarm of a group.
    #[inline]
    fn earliest_of_group(&self, group: usize) -> usize {
        let first = GROUP * group;
        let end = self.due.len().min(first + GROUP);
        let (mut earliest, mut at) = (Time::NEVER, first);
        for (place, &due) in self.due[first..end].iter().enumerate() {
            // Of equal times the first wins.
            if due < earliest {
                (earliest, at) = (due, first + place);
            }
        }
        at
    }

    /// Carries the changed alarm of `sleeper`, in the group of `leaf`, up the tree.
    fn climb(&mut self, leaf: usize, sleeper: u32) {
        let mut node = leaf / 2;
        while node > 0 {
            let (left, right) = (self.winners[2 * node], self.winners[2 * node + 1]);
            // On equal times the left child wins, because its sleepers have the lower numbers.
            let first = if self.due[right as usize] < self.due[left as usize] {
                right
            } else {
                left
            };
            // If another sleeper stays the winner, the winners above depend on nothing that has
            // changed.
            if first != sleeper && self.winners[node] == first {
                return;
            }
            self.winners[node] = first;
            node /= 2;
        }
    }

    /// Returns the sleeper with the earliest alarm and the time of the alarm.
    #[inline]
    pub fn first(&self) -> (usize, Time) {
        let first = self.winners[1] as usize;
        debug_assert!(
            self.leaves < 2 || self.due[first] <= self.due[self.winners[2] as usize],
            "the alarm of {first} is not the earliest of the tree"
        );
        (first, self.due[first])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_first_is_the_earliest_and_then_the_lowest(
            sleepers in 1usize..100, sets in prop::collection::vec((any::<usize>(), 0u64..10), 1..300),
        ) {
            let mut alarms = Alarms::new(sleepers);
            let mut plain = vec![Time::NEVER; sleepers];
            for (sleeper, due) in sets {
                let due = if due == 9 { Time::NEVER } else { Time::from_nanos(due) };
                alarms.set(sleeper % sleepers, due);
                plain[sleeper % sleepers] = due;
                let earliest = *plain.iter().min().unwrap();
                let lowest = plain.iter().position(|&due| due == earliest).unwrap();
                prop_assert_eq!(alarms.first().1, earliest);
                prop_assert!(earliest == Time::NEVER || alarms.first().0 == lowest);
            }
        }
    }
}
