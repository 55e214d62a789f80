//! Finds waiting requests next to a new request, by end and by start.

use super::request::Queued;
use fullstroke_contract::{Extent, Operation};
use fullstroke_tracks::Boundaries;
use fullstroke_units::{Lbn, Sectors};
use std::sync::Arc;

/// No slot.
const NONE: u32 = u32::MAX;

/// The waiting requests by end and by start. The kernel keeps one table for back merges
/// (`elv_rqhash_find` of `block/elevator.c`). For front merges the kernel asks the elevator for its
/// sorted requests (`elv_rb_find`).
#[derive(Debug, Default)]
pub(super) struct Neighbours {
    ends: Chains,
    starts: Chains,
}

impl Neighbours {
    /// True if a request can have neighbours: it transfers data and is not forced.
    pub(super) fn concern(request: &Queued) -> bool {
        request.operation.transfers() && !request.force_unit_access && request.extent.sectors.0 > 0
    }

    pub(super) fn insert(&mut self, slot: u32, request: &Queued) {
        if Neighbours::concern(request) {
            self.ends
                .insert(key(request.extent.end(), request.operation), slot);
            self.starts
                .insert(key(request.extent.start, request.operation), slot);
        }
    }

    pub(super) fn remove(&mut self, slot: u32, request: &Queued) {
        if Neighbours::concern(request) {
            self.ends.remove(slot);
            self.starts.remove(slot);
        }
    }

    /// Returns the latest request of this operation that ends at `lbn`.
    pub(super) fn ending_at(&self, lbn: Lbn, operation: Operation) -> Option<u32> {
        self.ends.find(key(lbn, operation))
    }

    /// Returns the latest request of this operation that begins at `lbn`.
    pub(super) fn starting_at(&self, lbn: Lbn, operation: Operation) -> Option<u32> {
        self.starts.find(key(lbn, operation))
    }
}

fn key(lbn: Lbn, operation: Operation) -> u64 {
    // Reads and writes never merge, so the direction is part of the key.
    lbn.0 << 1 | u64::from(operation == Operation::Write)
}

/// Limits on merges under every elevator.
pub(super) struct MergeLimits {
    /// Longest request.
    pub(super) sectors_max: Sectors,
    /// Number of addresses of the device. A request beyond the end must not join a valid request,
    /// because the device would refuse both.
    pub(super) capacity: Sectors,
    /// Requests that meet on a boundary of this unit stay separate.
    pub(super) stripe_unit: Option<Sectors>,
    /// Tracks at whose ends requests end.
    pub(super) tracks: Option<Arc<Boundaries>>,
}

impl MergeLimits {
    /// True if `first` and `second` may become one request: `second` begins where `first` ends, no
    /// limit separates them, and both have the same priority (`blk_rq_merge_ok` of Linux's
    /// `block/blk-merge.c`).
    pub(super) fn allow(&self, first: &Queued, second: &Queued) -> bool {
        let Extent { start, sectors } = second.extent;
        let adjacent = first.extent.end() == start;
        let alike = (first.class, first.level) == (second.class, second.level);
        let apart =
            self.stripe_unit.is_some_and(|unit| start.0 % unit.0 == 0) || self.ends_track(start);
        adjacent
            && alike
            && !apart
            && first.extent.sectors.0 + sectors.0 <= self.sectors_max.0
            && second.extent.within(self.capacity)
    }

    /// Splits `extent` (within the capacity). Returns the longest piece for one request, and the
    /// rest.
    pub(super) fn split(&self, extent: Extent) -> (Extent, Extent) {
        let track = self
            .tracks
            .as_ref()
            .and_then(|tracks| tracks.track_at(extent.start));
        let to_boundary = track.map_or(extent.sectors, |track| {
            Sectors(track.end().0 - extent.start.0)
        });
        let piece = Extent {
            sectors: extent.sectors.min(self.sectors_max).min(to_boundary),
            ..extent
        };
        (
            piece,
            Extent {
                start: piece.end(),
                sectors: extent.sectors - piece.sectors,
            },
        )
    }

    /// True if requests are aligned to tracks and a track ends just before `lbn`.
    pub(super) fn ends_track(&self, lbn: Lbn) -> bool {
        self.tracks
            .as_ref()
            .is_some_and(|tracks| lbn.0 >= tracks.capacity().0 || tracks.is_boundary(lbn))
    }
}

/// A hash table from addresses to slots. The chains are linked by slot. After the largest number of
/// slots has been reached, the table allocates no memory.
#[derive(Debug, Default)]
struct Chains {
    /// First slot of each chain. The number of chains is a power of two.
    heads: Vec<u32>,
    links: Vec<NeighbourLink>,
    length: usize,
}

#[derive(Clone, Copy, Debug)]
struct NeighbourLink {
    key: u64,
    before: u32,
    behind: u32,
}

impl Chains {
    fn insert(&mut self, key: u64, slot: u32) {
        // One chain for each request on average keeps a search short.
        if self.length >= self.heads.len() {
            self.grow();
        }
        if self.links.len() <= slot as usize {
            self.links.resize(
                slot as usize + 1,
                NeighbourLink {
                    key: 0,
                    before: NONE,
                    behind: NONE,
                },
            );
        }
        self.links[slot as usize].key = key;
        self.push(slot);
        self.length += 1;
    }

    fn remove(&mut self, slot: u32) {
        assert!(
            self.length > 0,
            "slot {slot} leaves an empty table of neighbours"
        );
        let NeighbourLink {
            key,
            before,
            behind,
        } = self.links[slot as usize];
        match before {
            NONE => {
                let chain = self.chain(key);
                debug_assert_eq!(
                    self.heads[chain], slot,
                    "the chain of {key} does not begin with the slot that leaves"
                );
                self.heads[chain] = behind;
            }
            _ => self.links[before as usize].behind = behind,
        }
        if behind != NONE {
            self.links[behind as usize].before = before;
        }
        self.length -= 1;
    }

    fn find(&self, key: u64) -> Option<u32> {
        let mut slot = *self.heads.get(self.chain(key))?;
        while slot != NONE && self.links[slot as usize].key != key {
            slot = self.links[slot as usize].behind;
        }
        (slot != NONE).then_some(slot)
    }

    /// Puts a slot at the head of the chain of its key.
    fn push(&mut self, slot: u32) {
        let chain = self.chain(self.links[slot as usize].key);
        let behind = std::mem::replace(&mut self.heads[chain], slot);
        let link = &mut self.links[slot as usize];
        (link.before, link.behind) = (NONE, behind);
        if behind != NONE {
            self.links[behind as usize].before = slot;
        }
    }

    /// Doubles the number of chains. Moves the slots from the last of a chain to the first, because
    /// `push` inserts at the head: slots of one key keep their order.
    fn grow(&mut self) {
        let wider = (self.heads.len() * 2).max(64);
        let old = std::mem::replace(&mut self.heads, vec![NONE; wider]);
        for head in old.into_iter().filter(|&head| head != NONE) {
            let mut slot = head;
            while self.links[slot as usize].behind != NONE {
                slot = self.links[slot as usize].behind;
            }
            while slot != NONE {
                let before = self.links[slot as usize].before;
                self.push(slot);
                slot = before;
            }
        }
    }

    /// Fibonacci hashing: the upper bits of a product.
    #[inline]
    fn chain(&self, key: u64) -> usize {
        let bits = self.heads.len().trailing_zeros();
        // Fibonacci hashing (Knuth, volume 3, section 6.4): the upper bits of the product depend on
        // all bits of the key.
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32 >> 32u32.saturating_sub(bits)) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn chains_find_the_latest_slot_of_a_key(
            steps in prop::collection::vec((any::<bool>(), 0u32..300, 0u64..40), 1..600),
        ) {
            let mut chains = Chains::default();
            let mut model: Vec<(u64, u32)> = Vec::new();
            for (add, slot, key) in steps {
                let held = model.iter().position(|&(_, other)| other == slot);
                match (add, held) {
                    (true, None) => {
                        chains.insert(key, slot);
                        model.push((key, slot));
                    }
                    (false, Some(index)) => {
                        chains.remove(slot);
                        model.remove(index);
                    }
                    _ => {}
                }
                for key in 0..40 {
                    let latest = model.iter().rev().find(|&&(other, _)| other == key);
                    prop_assert_eq!(chains.find(key), latest.map(|&(_, slot)| slot));
                }
            }
        }
    }
}
