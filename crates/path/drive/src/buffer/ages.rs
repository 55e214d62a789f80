//! Ticks of entries, to find the least recently used entry.
//!
//! Almost every change gives an entry the newest tick of all, because the entry was used. Such an
//! entry goes to the end of a queue, in constant time. An entry with an older tick, such as a freed
//! entry, goes into a heap. An entry that gets another tick leaves its old place behind; a search
//! drops the places at the front that are no longer valid.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// A tick and the index of the entry.
type Place = (u64, u32);

/// Ticks by index. An index with [`Ages::NEVER`] takes no part.
pub(super) struct Ages {
    ticks: Vec<u64>,
    /// Places in ascending order.
    queue: VecDeque<Place>,
    /// Places that came with an older tick than the last place of the queue.
    others: BinaryHeap<Reverse<Place>>,
    /// Number of places in one of the lists at which invalid places are removed.
    most: usize,
}

impl Ages {
    /// Tick of an index hidden from the search.
    pub(super) const NEVER: u64 = u64::MAX;

    /// Creates `count` entries with `tick`.
    pub(super) fn new(count: usize, tick: u64) -> Ages {
        let most = 2 * count + 16;
        let mut queue = VecDeque::with_capacity(most);
        if tick != Ages::NEVER {
            queue.extend((0..count as u32).map(|index| (tick, index)));
        }
        Ages {
            ticks: vec![tick; count],
            queue,
            others: BinaryHeap::with_capacity(most),
            most,
        }
    }

    pub(super) fn set(&mut self, index: usize, tick: u64) {
        self.ticks[index] = tick;
        if tick == Ages::NEVER {
            return;
        }
        let place = (tick, index as u32);
        if self.queue.back().is_none_or(|&last| last < place) {
            if self.queue.len() == self.most {
                let ticks = &self.ticks;
                self.queue.retain(|&place| is_valid(ticks, place));
            }
            self.queue.push_back(place);
        } else {
            if self.others.len() == self.most {
                self.clear_others();
            }
            self.others.push(Reverse(place));
        }
    }

    /// Removes invalid places from the heap, and places that are there twice.
    #[cold]
    fn clear_others(&mut self) {
        let mut places = std::mem::take(&mut self.others).into_vec();
        places.retain(|&Reverse(place)| is_valid(&self.ticks, place));
        places.sort_unstable();
        places.dedup();
        self.others = places.into();
    }

    /// Returns the lowest index with the least tick.
    pub(super) fn first(&mut self) -> Option<usize> {
        while let Some(&place) = self.queue.front()
            && !is_valid(&self.ticks, place)
        {
            self.queue.pop_front();
        }
        while let Some(&Reverse(place)) = self.others.peek()
            && !is_valid(&self.ticks, place)
        {
            self.others.pop();
        }
        let first = match (self.queue.front(), self.others.peek()) {
            (Some(&queued), Some(&Reverse(other))) => queued.min(other),
            (Some(&queued), None) => queued,
            (None, other) => other?.0,
        };
        Some(first.1 as usize)
    }
}

/// True if an entry still has the tick of a place.
fn is_valid(ticks: &[u64], (tick, index): Place) -> bool {
    ticks[index as usize] == tick
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Ticks rise, fall and are equal, so that both lists fill up with invalid places.
        #[test]
        fn the_first_of_the_least_is_found(
            count in 1usize..20,
            steps in prop::collection::vec((0usize..20, 0u64..30, 0u8..4, any::<bool>()), 0..600),
        ) {
            let mut ages = Ages::new(count, 0);
            let mut plain = vec![0; count];
            for (step, (index, tick, kind, asks)) in steps.into_iter().enumerate() {
                let tick = match kind {
                    0 => Ages::NEVER,
                    1 => tick,
                    _ => 30 + step as u64,
                };
                ages.set(index % count, tick);
                plain[index % count] = tick;
                if asks {
                    let least = plain.iter().enumerate().filter(|(_, tick)| **tick != Ages::NEVER);
                    prop_assert_eq!(ages.first(), least.min_by_key(|(_, tick)| **tick).map(|(index, _)| index));
                }
            }
        }
    }
}
