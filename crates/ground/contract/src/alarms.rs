//! Wake-up times, with fast access to the earliest.

use fullstroke_units::Time;

/// One alarm for each of a fixed number of sleepers, in a tournament tree. To set an alarm costs
/// the logarithm of the number of sleepers; to read the first alarm takes constant time. Of two
/// alarms at one instant, the sleeper with the lower number comes first.
#[derive(Clone, Debug)]
pub struct Alarms {
    /// `winners[1]` is the earliest alarm. The children of node `i` are `2i` and `2i+1`; the leaves
    /// are the sleepers in order.
    winners: Vec<Alarm>,
    leaves: usize,
}

/// An alarm. Alarms of one instant are ordered by sleeper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Alarm {
    due: Time,
    sleeper: u32,
}

impl Alarms {
    /// Creates alarms for `sleepers` sleepers; no alarm is set.
    pub fn new(sleepers: usize) -> Alarms {
        // A power of two makes the tree complete, so each parent has two children. Unused leaves
        // never have an alarm.
        let leaves = sleepers.next_power_of_two();
        let alarm = |sleeper: usize| Alarm {
            due: Time::NEVER,
            sleeper: sleeper as u32,
        };
        let mut winners = vec![alarm(0); 2 * leaves];
        for (sleeper, winner) in winners[leaves..].iter_mut().enumerate() {
            *winner = alarm(sleeper);
        }
        // All alarms are equal at first, so the left child wins everywhere.
        for node in (1..leaves).rev() {
            winners[node] = winners[2 * node];
        }
        Alarms { winners, leaves }
    }

    /// Sets the alarm of `sleeper` to `due`. The previous alarm of the sleeper is gone.
    ///
    /// # Panics
    /// If there is no such sleeper.
    #[inline]
    pub fn set(&mut self, sleeper: usize, due: Time) {
        let leaf = &mut self.winners[self.leaves + sleeper];
        // Most calls leave the alarm of a node unchanged. The comparison saves the way up the tree.
        if leaf.due != due {
            leaf.due = due;
            let changed = *leaf;
            self.rise(self.leaves + sleeper, changed);
        }
    }

    /// Carries a changed alarm up from a node, as far as the change matters.
    fn rise(&mut self, mut node: usize, changed: Alarm) {
        let mut winner = changed;
        while node > 1 {
            let other = self.winners[node ^ 1];
            if other < winner {
                winner = other;
            }
            node /= 2;
            let place = &mut self.winners[node];
            // The alarm neither won here before nor wins now.
            if *place == winner {
                return;
            }
            *place = winner;
        }
    }

    /// Returns the sleeper with the earliest alarm and the time of the alarm.
    #[inline]
    pub fn first(&self) -> (usize, Time) {
        let first = self.winners[1];
        debug_assert!(
            self.leaves < 2 || first <= self.winners[2],
            "the alarm of {first:?} is not the earliest of the tree"
        );
        (first.sleeper as usize, first.due)
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
