//! Ticks of entries, to find the least recently used entry.
//!
//! Almost every change gives an entry the newest tick of all, because the entry was used. Such an
//! entry goes to the end of a queue, in constant time. An entry with an older tick goes into a
//! heap. An entry that gets another tick leaves its old place behind; a search drops the places at
//! the front that are no longer valid.
//!
//! A hidden entry keeps its place, and a search passes over the entry. Dirty data are hidden: on
//! the medium they have the same tick as before. A place that a search has dropped meanwhile comes
//! back when the entry is shown.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// A tick and the index of the entry.
type Place = (u64, u32);

/// Age of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Age {
    /// The entry takes no part.
    Absent,
    /// A search passes over the entry, which has this tick.
    Hidden(u64),
    /// A search finds the entry, which has this tick.
    Shown(u64),
}

impl Age {
    fn tick(self) -> Option<u64> {
        match self {
            Age::Absent => None,
            Age::Hidden(tick) | Age::Shown(tick) => Some(tick),
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct AgedEntry {
    age: Age,
    /// True if one of the lists has a place of the entry with the present tick.
    listed: bool,
}

/// Ages by index.
pub(super) struct Ages {
    entries: Vec<AgedEntry>,
    /// Places in ascending order.
    queue: VecDeque<Place>,
    /// Places that came with an older tick than the last place of the queue.
    others: BinaryHeap<Reverse<Place>>,
    /// Number of places in one of the lists at which invalid places are removed.
    most: usize,
}

impl Ages {
    /// Creates `count` absent entries.
    pub(super) fn new(count: usize) -> Ages {
        // At most `count` entries are current, so a full list has at least as many stale places as
        // current ones: a clean-up pays for itself.
        let most = 2 * count + 16;
        let absent = AgedEntry {
            age: Age::Absent,
            listed: false,
        };
        Ages {
            entries: vec![absent; count],
            queue: VecDeque::with_capacity(most),
            others: BinaryHeap::with_capacity(most),
            most,
        }
    }

    pub(super) fn set(&mut self, index: usize, age: Age) {
        let entry = &mut self.entries[index];
        let old = std::mem::replace(&mut entry.age, age);
        let Some(tick) = age.tick() else {
            return;
        };
        // A hidden entry needs no place before a search shows the entry, but only a place of the
        // newest tick is cheap.
        if old.tick() == age.tick() && entry.listed {
            return;
        }
        entry.listed = true;
        self.list((tick, index as u32));
    }

    fn list(&mut self, place: Place) {
        // Ticks mostly rise, and a rising tick goes to the end of the queue without a heap.
        if self.queue.back().is_none_or(|&last| last < place) {
            if self.queue.len() == self.most {
                let entries = &self.entries;
                self.queue.retain(|&place| is_current(entries, place));
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
        places.retain(|&Reverse(place)| is_current(&self.entries, place));
        places.sort_unstable();
        places.dedup();
        self.others = places.into();
    }

    /// Returns the lowest index with the least tick among the shown entries.
    pub(super) fn first(&mut self) -> Option<usize> {
        while let Some(&place) = self.queue.front()
            && !self.is_shown(place)
        {
            self.queue.pop_front();
            self.dropped(place);
        }
        while let Some(&Reverse(place)) = self.others.peek()
            && !self.is_shown(place)
        {
            self.others.pop();
            self.dropped(place);
        }
        let first = match (self.queue.front(), self.others.peek()) {
            (Some(&queued), Some(&Reverse(other))) => queued.min(other),
            (Some(&queued), None) => queued,
            (None, other) => other?.0,
        };
        Some(first.1 as usize)
    }

    fn is_shown(&self, (tick, index): Place) -> bool {
        self.entries[index as usize].age == Age::Shown(tick)
    }

    /// Records that a place has left its list.
    fn dropped(&mut self, place: Place) {
        if is_current(&self.entries, place) {
            self.entries[place.1 as usize].listed = false;
        }
    }
}

/// True if an entry still has the tick of a place, hidden or shown.
fn is_current(entries: &[AgedEntry], (tick, index): Place) -> bool {
    entries[index as usize].age.tick() == Some(tick)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Ticks rise, fall and are equal, so that both lists fill up with invalid places. Entries
        /// are hidden and shown again with the tick that they had.
        #[test]
        fn the_first_of_the_least_is_found(
            count in 1usize..20,
            steps in prop::collection::vec((0usize..20, 0u64..30, 0u8..6, any::<bool>()), 0..600),
        ) {
            let mut ages = Ages::new(count);
            let mut plain = vec![Age::Absent; count];
            for (step, (index, tick, kind, asks)) in steps.into_iter().enumerate() {
                let newest = 30 + step as u64;
                let age = match (kind, plain[index % count].tick()) {
                    (0, _) => Age::Absent,
                    (1, _) => Age::Shown(tick),
                    (2, _) => Age::Hidden(newest),
                    (3, Some(tick)) => Age::Hidden(tick),
                    (4, Some(tick)) => Age::Shown(tick),
                    _ => Age::Shown(newest),
                };
                ages.set(index % count, age);
                plain[index % count] = age;
                if asks {
                    let shown = plain.iter().enumerate().filter_map(|(index, age)| match age {
                        Age::Shown(tick) => Some((*tick, index)),
                        _ => None,
                    });
                    prop_assert_eq!(ages.first(), shown.min().map(|(_, index)| index));
                }
            }
        }
    }
}
