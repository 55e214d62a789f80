//! Dirty data, written to the medium in order of age.

use super::oldest::Oldest;
use super::order::SegmentOrder;
use fullstroke_contract::{Extent, Slots};
use fullstroke_units::Time;

/// Acknowledged data, not yet on the medium.
#[derive(Clone, Copy, Debug)]
pub(super) struct DirtyData {
    pub(super) extent: Extent,
    /// Earliest time of an arm movement for the data.
    pub(super) since: Time,
    /// Time when all data are in the buffer.
    pub(super) arrived: Time,
}

/// Dirty data in order of arrival. A second index by address finds overwritten data without a look
/// at all entries.
pub(super) struct DirtyFifo {
    entries: Slots<FifoEntry>,
    ends: Option<ListEnds>,
    places: SegmentOrder,
    /// Earliest time of an arm movement, for each entry.
    since: Oldest,
    /// Scratch space for the overwritten entries of one write.
    found: Vec<u32>,
}

/// An entry of the linked list.
#[derive(Clone, Copy, Debug)]
struct FifoEntry {
    dirty: DirtyData,
    older: Option<u32>,
    newer: Option<u32>,
}

#[derive(Clone, Copy, Debug)]
struct ListEnds {
    oldest: u32,
    newest: u32,
}

impl DirtyFifo {
    /// Creates an empty list with room for `count` entries.
    pub(super) fn new(count: usize) -> DirtyFifo {
        DirtyFifo {
            entries: Slots::default(),
            ends: None,
            places: SegmentOrder::new(count),
            since: Oldest::new(count, Oldest::NEVER),
            found: Vec::with_capacity(count),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the oldest entry.
    pub(super) fn oldest(&self) -> Option<&DirtyData> {
        self.ends.map(|ends| &self.entries[ends.oldest].dirty)
    }

    /// Returns the newest entry.
    pub(super) fn newest(&self) -> Option<&DirtyData> {
        self.ends.map(|ends| &self.entries[ends.newest].dirty)
    }

    /// True if the arm may move for any entry at `asked`.
    pub(super) fn any_since(&self, asked: Time) -> bool {
        self.since.least() <= asked.as_nanos()
    }

    /// Adds the newest entry.
    pub(super) fn push(&mut self, dirty: DirtyData) {
        let older = self.ends.map(|ends| ends.newest);
        debug_assert!(
            dirty.extent.sectors.0 > 0 && dirty.since <= dirty.arrived,
            "dirty data that are none, or arrive before they begin: {dirty:?}"
        );
        let slot = self.entries.keep(FifoEntry {
            dirty,
            older,
            newer: None,
        });
        if let Some(older) = older {
            self.entries[older].newer = Some(slot);
        }
        self.ends = Some(ListEnds {
            oldest: self.ends.map_or(slot, |ends| ends.oldest),
            newest: slot,
        });
        self.places
            .insert(slot as usize, dirty.extent.start.0, dirty.extent.end().0);
        self.since.set(slot as usize, dirty.since.as_nanos());
    }

    /// Removes the oldest entry.
    pub(super) fn pop(&mut self) -> Option<DirtyData> {
        let ends = self.ends?;
        Some(self.remove(ends.oldest))
    }

    /// Extends the newest entry by `sectors`, which arrive at `arrived`.
    pub(super) fn grow_newest(&mut self, sectors: u64, arrived: Time) {
        let Some(ListEnds { newest, .. }) = self.ends else {
            return;
        };
        let dirty = &mut self.entries[newest].dirty;
        dirty.extent.sectors.0 += sectors;
        dirty.arrived = arrived;
        let extent = dirty.extent;
        let start = extent.start.0;
        self.places
            .change(newest as usize, start, start, extent.end().0);
    }

    /// Removes the entries completely inside `extent`.
    pub(super) fn remove_within(&mut self, extent: Extent) {
        let mut found = std::mem::take(&mut self.found);
        let (start, end) = (extent.start.0, extent.end().0);
        self.places
            .back_from(end.saturating_sub(1), start.saturating_add(1), |slot| {
                let dirty = self.entries[slot as u32].dirty.extent;
                if extent.start <= dirty.start && dirty.end() <= extent.end() {
                    found.push(slot as u32);
                }
                false
            });
        for slot in found.drain(..) {
            self.remove(slot);
        }
        self.found = found;
    }

    fn remove(&mut self, slot: u32) -> DirtyData {
        let FifoEntry {
            dirty,
            older,
            newer,
        } = self.entries.take(slot);
        assert!(
            self.ends
                .is_some_and(|ends| (ends.oldest == slot) == older.is_none()
                    && (ends.newest == slot) == newer.is_none()),
            "the chain of dirty data is broken at slot {slot}"
        );
        if let Some(older) = older {
            self.entries[older].newer = newer;
        }
        if let Some(newer) = newer {
            self.entries[newer].older = older;
        }
        self.ends = self.ends.and_then(|ListEnds { oldest, newest }| {
            // The question marks end a list whose only entry goes.
            let oldest = if oldest == slot { newer? } else { oldest };
            let newest = if newest == slot { older? } else { newest };
            Some(ListEnds { oldest, newest })
        });
        self.places.remove(slot as usize, dirty.extent.start.0);
        self.since.set(slot as usize, Oldest::NEVER);
        dirty
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_write_looks_only_at_dirty_data_in_its_place() {
        for count in [8u64, 512, 65_536] {
            let mut fifo = DirtyFifo::new(count as usize);
            let at = |place: u64| Extent::new(8 * (place * 7919 % count), 8);
            let dirty = |extent| DirtyData {
                extent,
                since: Time::ZERO,
                arrived: Time::ZERO,
            };
            (0..count).for_each(|place| fifo.push(dirty(at(place))));
            fifo.places.looks.set(0);
            fifo.remove_within(at(count / 2));
            assert_eq!(fifo.len() as u64, count - 1);
            let (looks, most) = (fifo.places.looks.get(), 8 * u64::from(count.ilog2()) + 8);
            assert!(
                looks <= most,
                "{count} dirty: {looks} looks, at most {most} expected"
            );
        }
    }

    proptest! {
        /// Few addresses, so that writes often overwrite each other.
        #[test]
        fn the_chain_is_a_list_from_which_what_is_overwritten_leaves(
            steps in prop::collection::vec((0u32..4, 0u64..100, 1u64..30), 0..300), asked in 0u64..400,
        ) {
            let mut fifo = DirtyFifo::new(300);
            let mut plain: Vec<DirtyData> = Vec::new();
            for (tick, (step, start, sectors)) in steps.into_iter().enumerate() {
                let (extent, at) = (Extent::new(start, sectors), Time::from_nanos(tick as u64 ^ start));
                match step {
                    0 => prop_assert_eq!(fifo.pop().map(|dirty| dirty.extent), (!plain.is_empty()).then(|| plain.remove(0).extent)),
                    1 => {
                        fifo.grow_newest(sectors, at);
                        plain.last_mut().into_iter().for_each(|dirty| dirty.extent.sectors.0 += sectors);
                    }
                    _ => {
                        let dirty = DirtyData { extent, since: at, arrived: at };
                        fifo.remove_within(extent);
                        plain.retain(|dirty| dirty.extent.start < extent.start || extent.end() < dirty.extent.end());
                        fifo.push(dirty);
                        plain.push(dirty);
                    }
                }
                prop_assert_eq!(fifo.len(), plain.len());
                prop_assert_eq!(fifo.oldest().map(|dirty| dirty.extent), plain.first().map(|dirty| dirty.extent));
                prop_assert_eq!(fifo.newest().map(|dirty| dirty.extent), plain.last().map(|dirty| dirty.extent));
                let asked = Time::from_nanos(asked);
                prop_assert_eq!(fifo.any_since(asked), plain.iter().any(|dirty| dirty.since <= asked));
            }
        }
    }
}
