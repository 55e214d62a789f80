//! Free space of the vdevs: metaslabs, and the choice of a place for a block
//! (`module/zfs/metaslab.c`, OpenZFS 2.1).
//!
//! 1. The vdevs have turns: each gets [`ALIQUOT`](crate::place::ALIQUOT) for each data drive.
//! 2. A vdev writes into one metaslab until its largest free run is a quarter of what it was, or
//!    until a block does not fit. Then the metaslab with the longest free runs follows; among
//!    equals the first.
//! 3. In a metaslab the first run that fits counts, from the place of the last block of that
//!    alignment, within 16 MiB. Otherwise, and with less than 4 % free, the shortest run that fits.
//! 4. Metadata goes to other metaslabs than data. The copies of a block lie on different vdevs, or
//!    in different metaslabs of one vdev.
//! 5. Freed space is free again two transaction groups later.

use crate::capacity::Metaslabs;
use crate::config::PoolSettings;
use crate::place::{ALIQUOT, Dva, FirstPlaces};
use crate::trim_ranges::{self, BATCH, RANGE_MIN};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Below this largest free run the shortest run that fits is taken: `metaslab_df_alloc_threshold`.
const BEST_FIT_RUN: u64 = 128 << 10;

/// Below this percentage of free space as well: `metaslab_df_free_pct`.
const BEST_FIT_PERCENT: u64 = 4;

/// Bytes that the search for the first run looks at: `metaslab_df_max_search`.
const SEARCH: u64 = 16 << 20;

/// Number of halvings of the largest run after which another metaslab is chosen:
/// `zfs_metaslab_switch_threshold`.
const SWITCH: u32 = 2;

/// Transaction groups until freed space is free: `TXG_DEFER_SIZE`.
const DEFER: usize = 2;

/// Metaslabs of a vdev that take metadata in turn. `metaslab_group_alloc` gives the copies of a block
/// different metaslabs (`metaslab_is_unique`), and objects have different allocators. Seven metaslabs
/// took metadata in the kernel laboratory (OpenZFS 2.2.2), six of them no data.
pub(crate) const FOR_METADATA: usize = 8;

/// Free runs of a metaslab.
#[derive(Debug)]
struct Metaslab {
    size: u64,
    free: u64,
    runs: BTreeMap<u64, u64>,
    by_length: BTreeSet<(u64, u64)>,
    /// End of the last block, by the power of two of its alignment.
    cursors: Box<[u64; 64]>,
}

impl Metaslab {
    fn new(start: u64, size: u64, used: u64) -> Metaslab {
        let mut metaslab = Metaslab {
            size,
            free: 0,
            runs: BTreeMap::new(),
            by_length: BTreeSet::new(),
            cursors: Box::new([0; 64]),
        };
        if used < size {
            metaslab.add(start + used, size - used);
        }
        metaslab
    }

    fn longest(&self) -> u64 {
        self.by_length.last().map_or(0, |(length, _)| *length)
    }

    /// Returns the power of two below the longest run, and the number of runs of this class.
    fn weight(&self) -> (u32, usize) {
        let longest = self.longest();
        if longest == 0 {
            return (0, 0);
        }
        let bucket = longest.ilog2();
        // The count decides between equals only; counting stops early.
        let count = self.by_length.range((1 << bucket, 0)..).take(64).count();
        (bucket, count)
    }

    fn add(&mut self, start: u64, length: u64) {
        let (mut start, mut length) = (start, length);
        self.free += length;
        if let Some((&before, &its)) = self.runs.range(..start).next_back()
            && before + its == start
        {
            self.remove(before, its);
            start = before;
            length += its;
        }
        if let Some(&its) = self.runs.get(&(start + length)) {
            self.remove(start + length, its);
            length += its;
        }
        self.runs.insert(start, length);
        self.by_length.insert((length, start));
    }

    fn remove(&mut self, start: u64, length: u64) {
        self.runs.remove(&start);
        self.by_length.remove(&(length, start));
    }

    /// Takes `size` bytes out of the free runs.
    fn take(&mut self, size: u64, alignment: u64) -> Option<u64> {
        if self.longest() < size {
            return None;
        }
        // `metaslab_df_alloc` keeps a cursor for each power of two that divides a size, so sizes do
        // not mix.
        let cursor = size.trailing_zeros() as usize;
        // Full or fragmented metaslabs take the smallest fitting run, so that long runs last
        // (`metaslab_df_alloc`).
        let best = self.longest() < BEST_FIT_RUN.max(size)
            || self.free * 100 / self.size < BEST_FIT_PERCENT;
        let found = if best {
            None
        } else {
            self.first_fit(self.cursors[cursor], size, alignment)
        };
        let at = found.or_else(|| self.best_fit(size, alignment))?;
        let (&run, &length) = self.runs.range(..=at).next_back()?;
        self.remove(run, length);
        // The alignment may leave a rest in front of the block.
        if run < at {
            self.runs.insert(run, at - run);
            self.by_length.insert((at - run, run));
        }
        let (end, run_end) = (at + size, run + length);
        if end < run_end {
            self.runs.insert(end, run_end - end);
            self.by_length.insert((run_end - end, end));
        }
        self.free -= size;
        self.cursors[cursor] = end;
        Some(at)
    }

    fn first_fit(&self, cursor: u64, size: u64, alignment: u64) -> Option<u64> {
        let before = self.runs.range(..cursor).next_back();
        let split = before
            .map(|(&start, &length)| (start.max(cursor), start + length))
            .filter(|(start, end)| start < end);
        let after = self
            .runs
            .range(cursor..)
            .map(|(&start, &length)| (start, start + length));
        let mut first = None;
        for (start, end) in split.into_iter().chain(after) {
            // The distance counts from the first candidate, so a search behind the cursor is as
            // long as one from the start.
            let from = *first.get_or_insert(start);
            if start - from > SEARCH {
                return None;
            }
            let at = start.next_multiple_of(alignment);
            if at + size <= end {
                return Some(at);
            }
        }
        None
    }

    fn best_fit(&self, size: u64, alignment: u64) -> Option<u64> {
        self.by_length
            .range((size, 0)..)
            .map(|&(length, start)| (start.next_multiple_of(alignment), start + length))
            .find(|(at, end)| at + size <= *end)
            .map(|(at, _)| at)
    }
}

/// The metaslabs of a vdev.
#[derive(Debug)]
struct VdevSpace {
    metaslabs: Vec<Metaslab>,
    shift: u32,
    /// The metaslab in use, and the class of its longest run when it was chosen.
    active: Option<(usize, u32)>,
    /// The metaslabs in use for metadata, and the one whose turn it is.
    for_metadata: [Option<usize>; FOR_METADATA],
    next_for_metadata: usize,
    alignment: u64,
    /// Bytes of a turn.
    turn: u64,
    /// Freed ranges for TRIM, none of which crosses a metaslab; `None` without `autotrim`.
    freed: Option<BTreeMap<u64, u64>>,
}

impl VdevSpace {
    fn take(&mut self, size: u64) -> Option<u64> {
        let at = self.find(size)?;
        self.is_taken(at, size);
        Some(at)
    }

    fn is_taken(&mut self, at: u64, size: u64) {
        // TRIM must not reach a place in use (`metaslab_block_alloc`).
        if let Some(freed) = &mut self.freed {
            trim_ranges::remove(freed, at, size);
        }
    }

    fn find(&mut self, size: u64) -> Option<u64> {
        // A metaslab stays in use until its weight has clearly fallen. A change for each block
        // would scatter the blocks.
        if let Some((index, weight)) = self.active
            && self.metaslabs[index].weight().0 + SWITCH > weight
            && let Some(at) = self.metaslabs[index].take(size, self.alignment)
        {
            return Some(at);
        }
        for (bucket, index) in self.by_weight() {
            if let Some(at) = self.metaslabs[index].take(size, self.alignment) {
                self.active = Some((index, bucket));
                return Some(at);
            }
        }
        None
    }

    /// Returns the metaslabs: those in use for metadata last, then the longest runs first, then the
    /// most of them, then the outermost.
    fn by_weight(&self) -> Vec<(u32, usize)> {
        let weighed = self.metaslabs.iter().enumerate().map(|(index, metaslab)| {
            let (bucket, count) = metaslab.weight();
            let is_in_use = self.for_metadata.contains(&Some(index));
            (is_in_use, std::cmp::Reverse((bucket, count)), index)
        });
        let mut order: Vec<_> = weighed.collect();
        order.sort_unstable();
        order
            .into_iter()
            .map(|(_, std::cmp::Reverse((bucket, _)), index)| (bucket, index))
            .collect()
    }

    /// Takes a place for a copy of a block of metadata, in the next metaslab for metadata.
    fn take_copy(&mut self, size: u64) -> Option<u64> {
        let turn = self.next_for_metadata;
        self.next_for_metadata = (turn + 1) % FOR_METADATA;
        let in_use = self.for_metadata[turn];
        let found = in_use.and_then(|index| self.metaslabs[index].take(size, self.alignment));
        let at = found.or_else(|| self.change_for_metadata(turn, size))?;
        self.is_taken(at, size);
        Some(at)
    }

    /// Chooses a metaslab for metadata that nothing else uses; without one the metaslab for data.
    fn change_for_metadata(&mut self, turn: usize, size: u64) -> Option<u64> {
        self.for_metadata[turn] = None;
        let data = self.active.map(|(index, _)| index);
        for (_, index) in self.by_weight() {
            if Some(index) == data || self.for_metadata.contains(&Some(index)) {
                continue;
            }
            if let Some(at) = self.metaslabs[index].take(size, self.alignment) {
                self.for_metadata[turn] = Some(index);
                return Some(at);
            }
        }
        self.find(size)
    }
}

/// Free space of a pool.
#[derive(Debug)]
pub(crate) struct PoolSpace {
    vdevs: Vec<VdevSpace>,
    /// The vdev whose turn it is, and the bytes of the turn so far.
    rotor: usize,
    taken: u64,
    /// The vdev of the first copy of the next block of metadata.
    first_copy: usize,
    /// Freed places by transaction group, the present group last.
    freed: VecDeque<Vec<(Dva, u64)>>,
    /// Places of metadata, to be freed by the next group.
    pub(crate) metadata: Vec<(Dva, u64)>,
    /// Bytes that were taken in the run and are not free again, and the bytes of all metaslabs.
    used: u64,
    total: u64,
}

impl PoolSpace {
    /// Returns the free space of a pool whose volume was written once.
    pub(crate) fn new(settings: &PoolSettings, places: &FirstPlaces, asize: u64) -> PoolSpace {
        let records = settings.volsize / settings.record;
        let per = places.records_in_metaslab();
        let vdev = |(index, (vdev, child)): (usize, &(crate::Vdev, u64))| {
            let cut = Metaslabs::of(vdev.size(*child));
            let alignment = vdev.alignment(settings.ashift);
            let on_vdev = places.count_on(index as u64, records);
            // The last metaslab is kept for the intent log.
            // `vdev_metaslab_init` keeps the emptiest metaslab for the log. Records lie from the
            // start on, so the last is empty.
            let metaslabs = (0..cut.count - cut.for_log())
                .map(|number| {
                    let start = (number << cut.shift).next_multiple_of(alignment);
                    let end = ((number + 1) << cut.shift) / alignment * alignment;
                    let used = on_vdev.saturating_sub(number * per).min(per) * asize;
                    Metaslab::new(start, end - start, used)
                })
                .collect();
            VdevSpace {
                metaslabs,
                shift: cut.shift,
                active: None,
                for_metadata: [None; FOR_METADATA],
                next_for_metadata: 0,
                alignment,
                turn: vdev.turn(ALIQUOT),
                freed: settings.trim.autotrim.then(BTreeMap::new),
            }
        };
        PoolSpace::with(settings.vdevs.iter().enumerate().map(vdev).collect())
    }

    /// Returns the free space of the special vdev, which is empty.
    pub(crate) fn of_special(
        (vdev, child): &(crate::Vdev, u64),
        settings: &PoolSettings,
    ) -> PoolSpace {
        let ashift = settings.ashift;
        let cut = Metaslabs::of(vdev.size(*child));
        let alignment = vdev.alignment(ashift);
        let metaslabs = (0..cut.count).map(|number| {
            let size = 1u64 << cut.shift;
            Metaslab::new(number << cut.shift, size / alignment * alignment, 0)
        });
        PoolSpace::with(vec![VdevSpace {
            metaslabs: metaslabs.collect(),
            shift: cut.shift,
            active: None,
            for_metadata: [None; FOR_METADATA],
            next_for_metadata: 0,
            alignment,
            turn: vdev.turn(ALIQUOT),
            freed: settings.trim.autotrim.then(BTreeMap::new),
        }])
    }

    fn with(vdevs: Vec<VdevSpace>) -> PoolSpace {
        let all = vdevs.iter().flat_map(|vdev| &vdev.metaslabs);
        let total = all.map(|metaslab| metaslab.size).sum();
        PoolSpace {
            used: 0,
            total,
            vdevs,
            rotor: 0,
            taken: 0,
            first_copy: 0,
            freed: (0..=DEFER).map(|_| Vec::new()).collect(),
            metadata: Vec::new(),
        }
    }

    /// Takes a place for a block. `asize` gives the size on each vdev. `open` is true for a vdev
    /// with room for another write; if no vdev has room, the result is `None`.
    pub(crate) fn take(
        &mut self,
        asize: impl Fn(usize) -> u64,
        open: impl Fn(usize) -> bool,
    ) -> Result<Dva, NoPlace> {
        // A vdev with too many writes in flight is not full: the caller waits instead of writing in
        // place.
        let mut why = NoPlace::Busy;
        for _ in 0..self.vdevs.len() {
            let index = self.rotor;
            if open(index) {
                let size = asize(index);
                if let Some(offset) = self.vdevs[index].take(size) {
                    self.taken += size;
                    self.used += size;
                    if self.taken >= self.vdevs[index].turn {
                        self.go_on();
                    }
                    return Ok(Dva {
                        vdev: index as u32,
                        offset,
                    });
                }
                why = NoPlace::Full;
            }
            self.go_on();
        }
        Err(why)
    }

    /// Takes a place for a copy of a block of metadata. The copies of a block, from 0 on, lie on
    /// vdevs that follow each other (`metaslab_alloc_dva`); `None` if all vdevs are full.
    pub(crate) fn take_copy(&mut self, asize: impl Fn(usize) -> u64, copy: u32) -> Option<Dva> {
        let vdevs = self.vdevs.len();
        if copy == 0 {
            self.first_copy = (self.first_copy + 1) % vdevs;
        }
        let first = self.first_copy + copy as usize;
        (first..first + vdevs).find_map(|number| {
            let index = number % vdevs;
            let size = asize(index);
            let offset = self.vdevs[index].take_copy(size)?;
            self.used += size;
            Some(Dva {
                vdev: index as u32,
                offset,
            })
        })
    }

    fn go_on(&mut self) {
        self.rotor = (self.rotor + 1) % self.vdevs.len();
        self.taken = 0;
    }

    /// Frees a place in the present transaction group.
    pub(crate) fn free(&mut self, place: Dva, size: u64) {
        if let Some(now) = self.freed.back_mut() {
            now.push((place, size));
        }
    }

    /// Ends a transaction group: the space that was freed two groups ago is free.
    pub(crate) fn group_ended(&mut self) {
        // The emptied list goes to the back, so that freeing allocates nothing after the first
        // groups.
        let mut oldest = self.freed.pop_front().unwrap_or_default();
        for (place, size) in oldest.drain(..) {
            let vdev = &mut self.vdevs[place.vdev as usize];
            let metaslab = (place.offset >> vdev.shift) as usize;
            vdev.metaslabs[metaslab].add(place.offset, size);
            if let Some(freed) = &mut vdev.freed {
                trim_ranges::add(freed, place.offset, size, vdev.shift);
            }
            // Blocks of the start do not count as taken.
            self.used = self.used.saturating_sub(size);
        }
        self.freed.push_back(oldest);
    }

    /// Takes the freed ranges of the metaslabs whose turn it is, and leaves out small ranges.
    pub(crate) fn freed_for_trim(&mut self, vdev: usize, turn: u64) -> Vec<(u64, u64)> {
        let vdev = &mut self.vdevs[vdev];
        let Some(freed) = &mut vdev.freed else {
            return Vec::new();
        };
        let is_due = |start: u64| (start >> vdev.shift) % BATCH == turn;
        let due: Vec<(u64, u64)> = freed
            .iter()
            .filter(|(start, _)| is_due(**start))
            .map(|(&start, &size)| (start, size))
            .collect();
        freed.retain(|&start, _| !is_due(start));
        due.into_iter()
            .filter(|&(_, size)| size >= RANGE_MIN)
            .collect()
    }

    /// Returns the first run of free space from an address on that is long enough for TRIM.
    pub(crate) fn free_from(&self, vdev: usize, from: u64) -> Option<(u64, u64)> {
        let vdev = &self.vdevs[vdev];
        let first = (from >> vdev.shift) as usize;
        let runs = vdev.metaslabs.iter().skip(first);
        runs.flat_map(|metaslab| &metaslab.runs)
            .map(|(&start, &size)| (start.max(from), start + size))
            .map(|(start, end)| (start, end.saturating_sub(start)))
            .find(|&(_, size)| size >= RANGE_MIN)
    }

    /// Takes the free parts of a range out of the free space, until [`let_go`](PoolSpace::let_go).
    pub(crate) fn hold(&mut self, vdev: usize, start: u64, size: u64) -> Vec<(u64, u64)> {
        let vdev = &mut self.vdevs[vdev];
        let Some(metaslab) = vdev.metaslabs.get_mut((start >> vdev.shift) as usize) else {
            return Vec::new();
        };
        let end = start + size;
        let runs = metaslab.runs.range(..end).rev();
        let free: Vec<(u64, u64)> = runs
            .map(|(&run, &length)| (run, run + length))
            .take_while(|&(_, run_end)| run_end > start)
            .collect();
        let mut held = Vec::new();
        for (run, run_end) in free.into_iter().rev() {
            let (from, to) = (run.max(start), run_end.min(end));
            metaslab.remove(run, run_end - run);
            metaslab.free -= run_end - run;
            if run < from {
                metaslab.add(run, from - run);
            }
            if to < run_end {
                metaslab.add(to, run_end - to);
            }
            held.push((from, to - from));
        }
        held
    }

    /// Gives back a range that [`hold`](PoolSpace::hold) has taken.
    pub(crate) fn let_go(&mut self, vdev: usize, start: u64, size: u64) {
        let vdev = &mut self.vdevs[vdev];
        vdev.metaslabs[(start >> vdev.shift) as usize].add(start, size);
    }

    /// Returns true if less than `percent` of the space is taken.
    pub(crate) fn is_below(&self, percent: u64) -> bool {
        self.used < self.total / 100 * percent
    }

    /// Returns the number of free runs, and the free bytes.
    pub(crate) fn fragments(&self) -> (u64, u64) {
        let all = self.vdevs.iter().flat_map(|vdev| &vdev.metaslabs);
        all.fold((0, 0), |(runs, bytes), metaslab| {
            (runs + metaslab.runs.len() as u64, bytes + metaslab.free)
        })
    }
}

/// The reason why a block has no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoPlace {
    /// All vdevs have as many writes in flight as they may.
    Busy,
    /// No free run is long enough.
    Full,
}

#[cfg(test)]
#[path = "allocate_tests.rs"]
mod tests;
