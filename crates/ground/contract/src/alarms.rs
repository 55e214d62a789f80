//! Wake-up times, with fast access to the earliest.

use fullstroke_units::Time;

/// One alarm for each of a fixed number of sleepers, in a tournament tree. To set an alarm costs
/// the logarithm of the number of sleepers; to read the first alarm takes constant time. Of two
/// alarms at one instant, the sleeper with the lower number comes first.
#[derive(Clone, Debug)]
pub struct Alarms {
    due: Vec<Time>,
    /// `winners[1]` is the sleeper with the earliest alarm. The children of node `i` are `2i` and
    /// `2i+1`.
    winners: Vec<u32>,
    leaves: usize,
}

impl Alarms {
    /// Creates alarms for `sleepers` sleepers; no alarm is set.
    pub fn new(sleepers: usize) -> Alarms {
        // A power of two makes the tree complete, so each parent has two children. Unused leaves
        // never have an alarm.
        let leaves = sleepers.next_power_of_two();
        let mut winners = vec![0; 2 * leaves];
        for (sleeper, winner) in winners[leaves..].iter_mut().enumerate() {
            *winner = sleeper as u32;
        }
        // All alarms are equal at first, so the left child wins everywhere.
        for node in (1..leaves).rev() {
            winners[node] = winners[2 * node];
        }
        Alarms {
            due: vec![Time::NEVER; leaves],
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
        // Most calls leave the alarm of a node unchanged. The comparison saves the way up the tree.
        if self.due[sleeper] == due {
            return;
        }
        debug_assert!(
            sleeper < self.leaves,
            "sleeper {sleeper} has no alarm among {}",
            self.leaves
        );
        self.due[sleeper] = due;
        let mut node = (self.leaves + sleeper) / 2;
        while node > 0 {
            let (left, right) = (self.winners[2 * node], self.winners[2 * node + 1]);
            // On equal times the left child wins, because its sleepers have the lower numbers.
            let first = if self.due[right as usize] < self.due[left as usize] {
                right
            } else {
                left
            };
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
            sleepers in 1usize..20, sets in prop::collection::vec((any::<usize>(), 0u64..10), 1..100),
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
