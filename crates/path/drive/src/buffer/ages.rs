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

/// A tick and the index of the entry, in one word in this order. Words are small, because the
/// places of an array's drives compete for the processor's second cache.
type Place = u64;

/// Bits of the index in a place.
const INDEX_BITS: u32 = 20;

fn place_of(tick: u64, index: usize) -> Place {
    debug_assert!(
        tick >> (u64::BITS - INDEX_BITS) == 0,
        "tick {tick} exceeds the ticks of a run"
    );
    tick << INDEX_BITS | index as u64
}

fn tick_of(place: Place) -> u64 {
    place >> INDEX_BITS
}

fn index_of(place: Place) -> usize {
    (place & ((1 << INDEX_BITS) - 1)) as usize
}

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

/// Age of an entry in one word: the tick and three flags; 0 for an absent entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct AgedEntry(u64);

/// Number of flags.
const FLAGS: u32 = 3;
/// True if one of the lists has a place of the entry with the present tick.
const LISTED: u64 = 1;
/// True if a search finds the entry.
const SHOWN: u64 = 2;
/// True if the entry has an age.
const PRESENT: u64 = 4;

impl AgedEntry {
    const ABSENT: AgedEntry = AgedEntry(0);

    /// Returns the entry of an age whose tick has a place.
    fn listed(age: Age) -> AgedEntry {
        match age {
            Age::Absent => AgedEntry::ABSENT,
            Age::Hidden(tick) => AgedEntry(tick << FLAGS | PRESENT | LISTED),
            Age::Shown(tick) => AgedEntry(tick << FLAGS | PRESENT | SHOWN | LISTED),
        }
    }

    fn is_listed(self) -> bool {
        self.0 & LISTED != 0
    }

    /// True if the entry has this tick, hidden or shown.
    fn has(self, tick: u64) -> bool {
        self.0 & !(LISTED | SHOWN) == tick << FLAGS | PRESENT
    }

    /// True if a search finds the entry with this tick.
    fn shows(self, tick: u64) -> bool {
        self.0 & !LISTED == tick << FLAGS | PRESENT | SHOWN
    }
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
        assert!(count <= 1 << INDEX_BITS, "{count} entries are too many");
        Ages {
            entries: vec![AgedEntry::ABSENT; count],
            queue: VecDeque::with_capacity(most),
            others: BinaryHeap::with_capacity(most),
            most,
        }
    }

    pub(super) fn set(&mut self, index: usize, age: Age) {
        let old = std::mem::replace(&mut self.entries[index], AgedEntry::listed(age));
        let Some(tick) = age.tick() else {
            return;
        };
        // A hidden entry needs no place before a search shows the entry, but only a place of the
        // newest tick is cheap.
        if !(old.has(tick) && old.is_listed()) {
            self.list(place_of(tick, index));
        }
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
        Some(index_of(first))
    }

    fn is_shown(&self, place: Place) -> bool {
        self.entries[index_of(place)].shows(tick_of(place))
    }

    /// Records that a place has left its list.
    fn dropped(&mut self, place: Place) {
        if is_current(&self.entries, place) {
            self.entries[index_of(place)].0 &= !LISTED;
        }
    }
}

/// True if an entry still has the tick of a place, hidden or shown.
fn is_current(entries: &[AgedEntry], place: Place) -> bool {
    entries[index_of(place)].has(tick_of(place))
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
