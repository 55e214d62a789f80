//! Segments sorted by their first sector, with the last sector that each group of segments reaches.
//!
//! The sorted sequence is cut into blocks of up to [`BLOCK`] segments. A directory lists the blocks
//! in order: the first segment of each block, the largest end in the block (the reach), and the largest
//! end in the block and all blocks before (the furthest). A second level holds the reach of 16
//! directory entries. A search for segments over a place finds the last possible block by
//! bisection. The search then goes back and skips blocks and groups of blocks that end before the
//! place. The search ends at a block whose furthest end lies before the place. Almost always this
//! is the first visited block.
//!
//! A block holds plain arrays, changed in place. The reason: a buffer of a current drive has a
//! thousand segments, and every write removes one and adds one. A tree of single nodes would cost a
//! cache miss for each level. All memory is reserved when the order is made.

mod block;

use block::{BLOCK, OrderBlock};

/// A block below this size is merged with a neighbour, if both fit into
/// [`MERGED`]. The number of blocks is therefore at most one eighth of the
/// number of segments, plus one.
const SPARSE: usize = 8;
/// Largest size of a merged block. A merged block is below [`BLOCK`], so that the block does not
/// split at once.
const MERGED: usize = 24;
/// Number of directory entries in one group.
const GROUP: usize = 16;

/// The sorted segments.
pub(super) struct SegmentOrder {
    blocks: Vec<OrderBlock>,
    free: Vec<u32>,
    /// The blocks in order.
    directory: Vec<BlockSummary>,
    /// The first sector of each block of the directory. The sectors stand apart, so that the
    /// bisection reads few lines of the processor's cache.
    firsts: Vec<u64>,
    /// The reach of each group of 16 directory entries.
    groups: Vec<u64>,
    /// The gap of the last search. A request searches several times at nearly the same place.
    gap: std::cell::Cell<Gap>,
    /// Place in the directory and index in the block of the segment that was changed last. The
    /// segment of read-ahead changes again and again.
    last: (u32, u32),
    /// Number of visited entries of all levels.
    #[cfg(test)]
    pub(super) looks: std::cell::Cell<u64>,
}

/// The result of a bisection, which holds for all places in `from..to`.
#[derive(Clone, Copy)]
struct Gap {
    from: u64,
    to: u64,
    /// Number of blocks that begin at or before the place.
    places: u32,
    /// Number of entries of the last of these blocks that begin at or before the place.
    at: u32,
    /// Upper bound of the ends of all segments that begin at or before the place. Almost every
    /// search of a random request finds nothing, and ends with a look at this value.
    furthest: u64,
}

impl Gap {
    /// Holds for no place.
    const NONE: Gap = Gap {
        from: 1,
        to: 0,
        places: 0,
        at: 0,
        furthest: u64::MAX,
    };

    /// Returns the gap after an entry was removed from a block that still has entries.
    fn without(self, place: usize, at: usize) -> Gap {
        if place + 1 != self.places as usize || at >= self.at as usize {
            return self;
        }
        match self.at {
            // The block begins behind the gap now.
            1 => Gap::NONE,
            at => Gap { at: at - 1, ..self },
        }
    }
}

/// Directory entry of a block.
#[derive(Clone, Copy)]
struct BlockSummary {
    segment: u32,
    block: u32,
    reach: u64,
    /// The largest reach of this block and all blocks before.
    furthest: u64,
}

impl SegmentOrder {
    /// Creates an order without segments and with room for `count` segments.
    pub(super) fn new(count: usize) -> SegmentOrder {
        let blocks = count / SPARSE + 2;
        SegmentOrder {
            blocks: Vec::with_capacity(blocks),
            free: Vec::with_capacity(blocks),
            directory: Vec::with_capacity(blocks),
            firsts: Vec::with_capacity(blocks),
            groups: Vec::with_capacity(blocks / GROUP + 1),
            gap: std::cell::Cell::new(Gap::NONE),
            last: (0, 0),
            #[cfg(test)]
            looks: std::cell::Cell::new(0),
        }
    }

    /// Adds a segment.
    pub(super) fn insert(&mut self, segment: usize, start: u64, end: u64) {
        let gap = self.gap.replace(Gap::NONE);
        let number = segment as u32;
        if self.directory.is_empty() {
            let block = self.new_block();
            self.firsts.push(start);
            self.directory.push(BlockSummary {
                segment: number,
                block,
                reach: 0,
                furthest: 0,
            });
            self.groups.push(0);
        }
        // The search before the change has often found the place. Segments that begin at the same
        // sector are in the order of their numbers, which a gap does not know.
        let known = gap.from < start && start < gap.to && gap.places > 0;
        let mut place = if known {
            gap.places as usize - 1
        } else {
            self.place_of(start, number)
        };
        let is_full = self.blocks[self.directory[place].block as usize].len == BLOCK;
        if is_full {
            self.split(place);
            place = self.place_of(start, number);
        }
        let summary = &mut self.directory[place];
        let block = &mut self.blocks[summary.block as usize];
        let at = if known && !is_full {
            gap.at as usize
        } else {
            block.position(start, number)
        };
        block.insert(at, number, start, end);
        self.last = (place as u32, at as u32);
        if known && !is_full {
            self.gap.set(Gap {
                from: start,
                at: gap.at + 1,
                furthest: gap.furthest.max(end),
                ..gap
            });
        }
        if at == 0 {
            (self.firsts[place], summary.segment) = (start, number);
        }
        if summary.reach < end {
            summary.reach = end;
            self.reach_further(place, end);
        }
    }

    /// Removes a segment, which begins at `start`.
    pub(super) fn remove(&mut self, segment: usize, start: u64) {
        let (place, at) = self.find(segment, start);
        self.remove_at(place, at);
    }

    fn remove_at(&mut self, place: usize, at: usize) {
        let block = &mut self.blocks[self.directory[place].block as usize];
        let end = block.entries()[at].end;
        block.remove(at);
        if block.len == 0 {
            let gone = self.directory.remove(place).block;
            self.firsts.remove(place);
            self.free.push(gone);
            // The known gap counts blocks, and the blocks behind have moved by one.
            self.gap.set(Gap::NONE);
            self.summarise_from(place);
            return;
        }
        let len = block.len;
        (self.firsts[place], self.directory[place].segment) = block.key(0);
        self.reach_less(place, end);
        self.gap.set(self.gap.get().without(place, at));
        if len < SPARSE {
            self.merge(place, len);
        }
    }

    /// Changes the first or last sector of a segment, which begins at `old_start` so far.
    pub(super) fn change(&mut self, segment: usize, old_start: u64, start: u64, end: u64) {
        let (place, at) = self.find(segment, old_start);
        if start != old_start {
            let key = (start, segment as u32);
            let first = |place: usize| (self.firsts[place], self.directory[place].segment);
            // Most changes are growth at the end of a stream. The entry keeps its place among the
            // blocks.
            let stays = (place == 0 || first(place) < key)
                && (place + 1 == self.firsts.len() || key < first(place + 1));
            if stays {
                return self.move_within(place, at, segment, start, end);
            }
            self.remove_at(place, at);
            return self.insert(segment, start, end);
        }
        let summary = &mut self.directory[place];
        let block = &mut self.blocks[summary.block as usize];
        let old = block.set_end(at, end);
        if old < end {
            let gap = self.gap.get_mut();
            if start < gap.to {
                gap.furthest = gap.furthest.max(end);
            }
            if summary.reach < end {
                summary.reach = end;
                self.reach_further(place, end);
            }
        } else if end < old {
            self.reach_less(place, old);
        }
    }

    /// Gives a segment another first sector. The segment must stay in its block.
    fn move_within(&mut self, place: usize, at: usize, segment: usize, start: u64, end: u64) {
        self.gap.set(Gap::NONE);
        let summary = &mut self.directory[place];
        let block = &mut self.blocks[summary.block as usize];
        let old = block.entries()[at].end;
        let at = block.shift(at, segment as u32, start, end);
        self.last = (place as u32, at as u32);
        (self.firsts[place], summary.segment) = block.key(0);
        if summary.reach < end {
            summary.reach = end;
            self.reach_further(place, end);
        } else {
            self.reach_less(place, old);
        }
    }

    /// Visits the segments with a first sector of at most `last` and an end of at
    /// least `least`, from the largest first sector down, until a visit returns
    /// true.
    pub(super) fn back_from(
        &self,
        last: u64,
        least: u64,
        mut is_enough: impl FnMut(usize) -> bool,
    ) {
        let gap = self.gap_at(last);
        if gap.furthest < least {
            return;
        }
        let begin = gap.places as usize;
        let mut places = begin;
        while let Some(place) = self.last_reaching(places, least) {
            let block = &self.blocks[self.directory[place].block as usize];
            // All entries of the blocks before begin at or before the place.
            let at = if place + 1 == begin {
                gap.at as usize
            } else {
                block.len
            };
            for entry in block.entries()[..at].iter().rev() {
                if entry.reach < least {
                    break;
                }
                self.look();
                if entry.end >= least && is_enough(entry.segment as usize) {
                    return;
                }
            }
            places = place;
        }
    }

    /// Finds the number of blocks, and of entries of the last of these blocks, that begin at or
    /// before a place.
    #[inline]
    fn gap_at(&self, place: u64) -> Gap {
        let gap = self.gap.get();
        if gap.from <= place && place < gap.to {
            return gap;
        }
        let gap = self.search_gap(place);
        self.gap.set(gap);
        gap
    }

    /// Does the same as [`gap_at`](SegmentOrder::gap_at) by bisection.
    fn search_gap(&self, place: u64) -> Gap {
        let places = self.firsts.partition_point(|&first| {
            self.look();
            first <= place
        });
        let next = |place: usize| self.firsts.get(place).copied().unwrap_or(u64::MAX);
        let Some(before) = places.checked_sub(1) else {
            return Gap {
                from: 0,
                to: next(0),
                places: 0,
                at: 0,
                furthest: 0,
            };
        };
        let block = &self.blocks[self.directory[before].block as usize];
        self.look();
        let at = block.before(place.saturating_add(1));
        debug_assert!(
            at > 0,
            "a block of the directory begins with its first entry"
        );
        let (from, _) = block.key(at - 1);
        Gap {
            from,
            to: block.start(at).unwrap_or_else(|| next(places)),
            places: places as u32,
            at: at as u32,
            furthest: block.entries()[at - 1]
                .reach
                .max(self.furthest_before(before)),
        }
    }

    /// Returns the last of the first `places` blocks with a reach of at least `least`.
    fn last_reaching(&self, mut places: usize, least: u64) -> Option<usize> {
        while places > 0 {
            self.look();
            let place = places - 1;
            let summary = &self.directory[place];
            if summary.furthest < least {
                return None;
            }
            if places.is_multiple_of(GROUP) && self.groups[place / GROUP] < least {
                places -= GROUP;
            } else if summary.reach < least {
                places = place;
            } else {
                return Some(place);
            }
        }
        None
    }

    /// Returns the block that holds a key or will hold a new key.
    fn place_of(&self, start: u64, segment: u32) -> usize {
        let mut place = self.firsts.partition_point(|&first| first < start);
        // Almost always no block begins at the same sector.
        while self.firsts.get(place) == Some(&start) && self.directory[place].segment <= segment {
            place += 1;
        }
        place.saturating_sub(1)
    }

    /// Returns the block of a segment in the directory, and the index in the block. The segment
    /// begins at `start`.
    fn find(&self, segment: usize, start: u64) -> (usize, usize) {
        let number = segment as u32;
        let holds = |place: usize, at: usize| {
            let Some(summary) = self.directory.get(place) else {
                return false;
            };
            let entries = self.blocks[summary.block as usize].entries();
            entries.get(at).is_some_and(|entry| entry.segment == number)
        };
        let (place, at) = (self.last.0 as usize, self.last.1 as usize);
        if holds(place, at) {
            return (place, at);
        }
        let place = self.place_of(start, number);
        let block = &self.blocks[self.directory[place].block as usize];
        let at = block.position(start, number);
        assert!(
            holds(place, at),
            "segment {segment} from sector {start} was not added"
        );
        (place, at)
    }

    fn new_block(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.blocks.push(OrderBlock::EMPTY);
            self.blocks.len() as u32 - 1
        })
    }

    /// Moves the upper half of a full block into a new block.
    fn split(&mut self, place: usize) {
        let new = self.new_block();
        let old = self.directory[place].block;
        let [lower, upper] = self
            .blocks
            .get_disjoint_mut([old as usize, new as usize])
            .expect("a new block is no block of the directory");
        lower.move_to(BLOCK / 2, upper);
        let (start, segment) = upper.key(0);
        let summary = BlockSummary {
            segment,
            block: new,
            reach: upper.reach(),
            furthest: 0,
        };
        self.directory[place].reach = lower.reach();
        self.directory.insert(place + 1, summary);
        self.firsts.insert(place + 1, start);
        self.summarise_from(place);
    }

    /// Merges a block of `len` segments with a neighbour, if both fit.
    fn merge(&mut self, place: usize, len: usize) {
        let size = |place: usize| {
            let summary = self.directory.get(place)?;
            Some(self.blocks[summary.block as usize].len)
        };
        let fits = |size: Option<usize>| size.is_some_and(|size| size + len <= MERGED);
        let lower = if fits(size(place + 1)) {
            place
        } else if place > 0 && fits(size(place - 1)) {
            place - 1
        } else {
            return;
        };
        // The known gap counts blocks, and the blocks behind have moved by one.
        self.gap.set(Gap::NONE);
        let gone = self.directory.remove(lower + 1);
        self.firsts.remove(lower + 1);
        let kept = &mut self.directory[lower];
        let [to, from] = self
            .blocks
            .get_disjoint_mut([kept.block as usize, gone.block as usize])
            .expect("two blocks of the directory are never one");
        from.move_to(0, to);
        kept.reach = kept.reach.max(gone.reach);
        self.free.push(gone.block);
        self.summarise_from(lower);
    }

    /// Records that a block reaches further than before.
    fn reach_further(&mut self, place: usize, end: u64) {
        let group = &mut self.groups[place / GROUP];
        *group = end.max(*group);
        let later = self.directory[place..].iter_mut();
        // The furthest end never falls from one block to the next.
        for summary in later.take_while(|summary| summary.furthest < end) {
            summary.furthest = end;
        }
    }

    /// Records that a segment of a block, which ended at `end`, is gone or shorter.
    fn reach_less(&mut self, place: usize, end: u64) {
        if end < self.directory[place].reach {
            return;
        }
        let reach = self.blocks[self.directory[place].block as usize].reach();
        self.directory[place].reach = reach;
        self.summarise(place / GROUP);
        // The update stops at the first block with an unchanged furthest end, because later blocks
        // do not change either.
        let mut furthest = self.furthest_before(place);
        for summary in &mut self.directory[place..] {
            furthest = furthest.max(summary.reach);
            if summary.furthest == furthest {
                break;
            }
            summary.furthest = furthest;
        }
    }

    fn furthest_before(&self, place: usize) -> u64 {
        match place {
            0 => 0,
            place => self.directory[place - 1].furthest,
        }
    }

    /// Computes the reach of a group again.
    fn summarise(&mut self, group: usize) {
        let from = group * GROUP;
        let blocks = &self.directory[from..self.directory.len().min(from + GROUP)];
        let reach = blocks.iter().map(|summary| summary.reach).max();
        self.groups[group] = reach.unwrap_or(0);
    }

    /// Computes all summaries again from a block on, because blocks have moved.
    fn summarise_from(&mut self, place: usize) {
        self.groups.resize(self.directory.len().div_ceil(GROUP), 0);
        for group in place / GROUP..self.groups.len() {
            self.summarise(group);
        }
        let mut furthest = self.furthest_before(place);
        for summary in self.directory.iter_mut().skip(place) {
            furthest = furthest.max(summary.reach);
            summary.furthest = furthest;
        }
    }

    /// Counts one visit of a search. A test checks the number of visits.
    fn look(&self) {
        #[cfg(test)]
        self.looks.set(self.looks.get() + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the found segments in the order of the visits.
    fn found(order: &SegmentOrder, last: u64, least: u64) -> Vec<usize> {
        let mut found = Vec::new();
        order.back_from(last, least, |segment| {
            found.push(segment);
            false
        });
        found
    }

    proptest! {
        /// Compares with a plain list. Few addresses, so that many segments begin at the same
        /// address.
        #[test]
        fn the_order_is_that_of_a_sorted_list(
            steps in prop::collection::vec((0usize..200, 0u64..120, 0u64..40), 0..900),
            limits in prop::collection::vec((0u64..130, 0u64..150), 8),
        ) {
            let mut order = SegmentOrder::new(200);
            let mut plain: Vec<Option<(u64, u64)>> = vec![None; 200];
            for (segment, start, length) in steps {
                let end = start + length;
                match plain[segment] {
                    None => order.insert(segment, start, end),
                    Some((old, _)) if start % 2 == 0 => order.change(segment, old, start, end),
                    Some((old, _)) if start % 3 == 0 => order.change(segment, old, old, old + length),
                    Some((old, _)) => order.remove(segment, old),
                }
                plain[segment] = match plain[segment] {
                    Some((old, _)) if start % 2 != 0 && start % 3 == 0 => Some((old, old + length)),
                    Some(_) if start % 2 != 0 => None,
                    _ => Some((start, end)),
                };
            }
            for (last, least) in limits {
                let mut expected: Vec<usize> = (0..plain.len())
                    .filter(|&segment| plain[segment].is_some_and(|(start, end)| start <= last && end >= least))
                    .collect();
                expected.sort_unstable_by_key(|&segment| std::cmp::Reverse((plain[segment].map(|(start, _)| start), segment)));
                prop_assert_eq!(found(&order, last, least), expected);
            }
        }
    }

    /// With enough blocks for all three levels of the directory.
    #[test]
    fn thousands_of_segments_are_found_as_in_a_plain_list() {
        const COUNT: usize = 6000;
        let mut state = 1u64;
        let mut draw = |below: u64| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 33) % below
        };
        let mut order = SegmentOrder::new(COUNT);
        let mut plain: Vec<Option<(u64, u64)>> = vec![None; COUNT];
        for step in 0..40_000 {
            let segment = draw(COUNT as u64) as usize;
            let (start, end) = {
                let start = draw(100_000);
                (
                    start,
                    start + draw(if step % 97 == 0 { 20_000 } else { 30 }),
                )
            };
            match plain[segment] {
                None => order.insert(segment, start, end),
                // Late steps only remove, so that blocks merge and disappear.
                Some((old, _)) if step > 30_000 || draw(4) == 0 => order.remove(segment, old),
                Some((old, _)) if draw(2) == 0 => {
                    order.change(segment, old, old, old + 7);
                    plain[segment] = Some((old, old + 7));
                    continue;
                }
                Some((old, _)) => order.change(segment, old, start, end),
            }
            plain[segment] = if plain[segment].is_some() && !order_holds(&order, segment) {
                None
            } else {
                Some((start, end))
            };
            if step % 400 == 0 {
                let last = draw(120_000);
                let least = last.saturating_sub(draw(30));
                let mut expected: Vec<usize> = (0..COUNT)
                    .filter(|&at| {
                        plain[at].is_some_and(|(start, end)| start <= last && end >= least)
                    })
                    .collect();
                expected.sort_unstable_by_key(|&at| {
                    std::cmp::Reverse((plain[at].map(|(start, _)| start), at))
                });
                assert_eq!(found(&order, last, least), expected, "step {step}");
            }
        }
    }

    fn order_holds(order: &SegmentOrder, segment: usize) -> bool {
        order.directory.iter().any(|summary| {
            let block = &order.blocks[summary.block as usize];
            block
                .entries()
                .iter()
                .any(|entry| entry.segment == segment as u32)
        })
    }
}
