//! The cache of clean records: the adaptive replacement cache of Megiddo & Modha ("ARC: a
//! self-tuning, low overhead replacement cache", FAST 2003), which ZFS's ARC follows
//! (`module/zfs/arc.c`).
//!
//! Two lists hold records: read once (`recent`), and read more than once (`frequent`). Two ghost
//! lists remember the numbers of evicted records. A hit in a ghost list shifts the target between
//! the two lists. The records of a volume are equally large, so that the cache counts records. The
//! records of files differ, and each counts with its size.

use std::collections::HashMap;

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum List {
    Recent,
    Frequent,
    RecentGhost,
    FrequentGhost,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    record: u64,
    /// Share of the capacity.
    weight: u32,
    list: List,
    before: u32,
    after: u32,
}

/// A list of entries, the newest first.
#[derive(Clone, Copy, Debug)]
struct Ends {
    newest: u32,
    oldest: u32,
    length: u64,
}

/// The cache.
#[derive(Debug)]
pub(crate) struct RecordCache {
    capacity: u64,
    /// True after the first eviction: `arc_warm`.
    has_evicted: bool,
    /// Target length of `recent`.
    target: u64,
    entries: Vec<Entry>,
    free: Vec<u32>,
    lists: [Ends; 4],
    index: HashMap<u64, u32>,
}

impl RecordCache {
    /// Returns an empty cache of `capacity` records.
    pub(crate) fn new(capacity: u64) -> RecordCache {
        let empty = Ends {
            newest: NONE,
            oldest: NONE,
            length: 0,
        };
        RecordCache {
            capacity,
            has_evicted: false,
            target: 0,
            entries: Vec::new(),
            free: Vec::new(),
            lists: [empty; 4],
            index: HashMap::new(),
        }
    }

    /// Returns true if the record is in memory. Changes nothing.
    pub(crate) fn holds(&self, record: u64) -> bool {
        self.index
            .get(&record)
            .is_some_and(|&at| self.is_resident(at))
    }

    fn is_resident(&self, at: u32) -> bool {
        matches!(
            self.entries[at as usize].list,
            List::Recent | List::Frequent
        )
    }

    /// Takes note of an access. Returns true if the record was in memory.
    pub(crate) fn access(&mut self, record: u64) -> bool {
        match self.index.get(&record).copied() {
            Some(at) if self.is_resident(at) => {
                self.unlink(at);
                self.link(at, List::Frequent);
                true
            }
            _ => false,
        }
    }

    /// Puts a record into memory. A record in a ghost list comes back as frequent and moves the
    /// target.
    pub(crate) fn insert(&mut self, record: u64) {
        self.insert_sized(record, 1);
    }

    /// Puts a record that takes `weight` of the capacity into memory, as `insert` does.
    pub(crate) fn insert_sized(&mut self, record: u64, weight: u32) {
        if self.capacity < weight.into() {
            return;
        }
        match self.index.get(&record).copied() {
            Some(at) if self.is_resident(at) => {
                let list = self.entries[at as usize].list;
                self.unlink(at);
                self.entries[at as usize].weight = weight;
                self.link(at, list);
                self.make_room(0, false);
            }
            Some(at) => {
                let (recent, frequent) = (
                    self.lists[List::RecentGhost as usize].length,
                    self.lists[List::FrequentGhost as usize].length,
                );
                let in_recent = self.entries[at as usize].list == List::RecentGhost;
                // Megiddo and Modha (FAST 2003), figure 4, cases II and III: a hit in a ghost list
                // moves the target towards the resident list of the same kind.
                self.target = if in_recent {
                    (self.target + (frequent / recent.max(1)).max(1) * u64::from(weight))
                        .min(self.capacity)
                } else {
                    self.target
                        .saturating_sub((recent / frequent.max(1)).max(1) * u64::from(weight))
                };
                self.make_room(weight, !in_recent);
                self.unlink(at);
                self.entries[at as usize].weight = weight;
                self.link(at, List::Frequent);
            }
            None => {
                self.make_room(weight, false);
                let at = self.new_entry(record, weight);
                self.link(at, List::Recent);
            }
        }
        self.trim_ghosts();
    }

    /// Forgets a record.
    pub(crate) fn forget(&mut self, record: u64) {
        if let Some(at) = self.index.remove(&record) {
            self.unlink(at);
            self.free.push(at);
        }
    }

    fn new_entry(&mut self, record: u64, weight: u32) -> u32 {
        let entry = Entry {
            record,
            weight,
            list: List::Recent,
            before: NONE,
            after: NONE,
        };
        let at = match self.free.pop() {
            Some(at) => {
                self.entries[at as usize] = entry;
                at
            }
            None => {
                self.entries.push(entry);
                self.entries.len() as u32 - 1
            }
        };
        self.index.insert(record, at);
        at
    }

    /// Moves records to the ghost lists until `weight` finds room.
    fn make_room(&mut self, weight: u32, from_frequent_ghost: bool) {
        let resident = |cache: &RecordCache| {
            cache.lists[List::Recent as usize].length + cache.lists[List::Frequent as usize].length
        };
        while resident(self) + u64::from(weight) > self.capacity {
            self.evict(from_frequent_ghost);
        }
    }

    /// Moves a record to a ghost list.
    fn evict(&mut self, from_frequent_ghost: bool) {
        let recent = self.lists[List::Recent as usize].length;
        let frequent = self.lists[List::Frequent as usize].length;
        // REPLACE of the same figure: at the target itself, only a hit in the ghosts of the
        // frequent list takes from the recent list.
        let over = recent > self.target || (from_frequent_ghost && recent == self.target);
        let (from, ghost) = if recent > 0 && (over || frequent == 0) {
            (List::Recent, List::RecentGhost)
        } else {
            (List::Frequent, List::FrequentGhost)
        };
        let at = self.lists[from as usize].oldest;
        self.unlink(at);
        self.link(at, ghost);
        self.has_evicted = true;
    }

    /// Returns true if records have been evicted.
    pub(crate) fn has_evicted(&self) -> bool {
        self.has_evicted
    }

    /// Returns the records of a list in the order in which they leave the cache. Before the first
    /// eviction the newest record is first.
    pub(crate) fn leaving(&self, is_frequent: bool) -> impl Iterator<Item = u64> + '_ {
        let list = match is_frequent {
            true => List::Frequent,
            false => List::Recent,
        };
        let ends = self.lists[list as usize];
        let mut at = match self.has_evicted {
            true => ends.oldest,
            false => ends.newest,
        };
        std::iter::from_fn(move || {
            let entry = self.entries.get(at as usize)?;
            at = match self.has_evicted {
                true => entry.before,
                false => entry.after,
            };
            Some(entry.record)
        })
    }

    /// Changes the capacity. Evicts the records that do not fit.
    pub(crate) fn resize(&mut self, capacity: u64) {
        self.capacity = capacity;
        self.target = self.target.min(capacity);
        self.make_room(0, false);
        self.trim_ghosts();
    }

    fn trim_ghosts(&mut self) {
        // The recent lists together hold at most the capacity, all lists twice as much.
        for ghost in [List::RecentGhost, List::FrequentGhost] {
            let length = |list: List| self.lists[list as usize].length;
            let recent = length(List::Recent);
            let most = match ghost {
                List::RecentGhost => self.capacity.saturating_sub(recent),
                _ => {
                    let others = recent + length(List::RecentGhost) + length(List::Frequent);
                    (2 * self.capacity).saturating_sub(others)
                }
            };
            while self.lists[ghost as usize].length > most {
                let record = self.entries[self.lists[ghost as usize].oldest as usize].record;
                self.forget(record);
            }
        }
    }

    fn unlink(&mut self, at: u32) {
        let Entry {
            weight,
            list,
            before,
            after,
            ..
        } = self.entries[at as usize];
        let ends = &mut self.lists[list as usize];
        ends.length -= u64::from(weight);
        match before {
            NONE => ends.newest = after,
            before => self.entries[before as usize].after = after,
        }
        let ends = &mut self.lists[list as usize];
        match after {
            NONE => ends.oldest = before,
            after => self.entries[after as usize].before = before,
        }
    }

    fn link(&mut self, at: u32, list: List) {
        let newest = self.lists[list as usize].newest;
        let entry = &mut self.entries[at as usize];
        entry.list = list;
        entry.before = NONE;
        entry.after = newest;
        let weight = entry.weight;
        let ends = &mut self.lists[list as usize];
        ends.length += u64::from(weight);
        ends.newest = at;
        match newest {
            NONE => ends.oldest = at,
            newest => self.entries[newest as usize].before = at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_units::Seed;

    fn read(cache: &mut RecordCache, record: u64) -> bool {
        let hit = cache.access(record);
        if !hit {
            cache.insert(record);
        }
        hit
    }

    #[test]
    fn a_scan_does_not_evict_what_is_read_often() {
        let mut cache = RecordCache::new(100);
        for _ in 0..3 {
            (0..50).for_each(|record| _ = read(&mut cache, record));
        }
        (1000..5000).for_each(|record| _ = read(&mut cache, record));
        let kept = (0..50).filter(|&record| cache.holds(record)).count();
        assert_eq!(kept, 50);
    }

    #[test]
    fn a_smaller_cache_evicts_the_oldest() {
        let mut cache = RecordCache::new(10);
        (0..10).for_each(|record| _ = read(&mut cache, record));
        assert_eq!(
            cache.leaving(false).next(),
            Some(9),
            "the newest, as nothing was evicted"
        );
        cache.resize(4);
        assert_eq!(cache.leaving(false).collect::<Vec<_>>(), [6, 7, 8, 9]);
        assert!((0..6).all(|record| !cache.holds(record)));
    }

    #[test]
    fn the_cache_never_holds_more_than_its_capacity() {
        let mut random = Seed(8).stream("records");
        for capacity in [0, 1, 7, 100] {
            let mut cache = RecordCache::new(capacity);
            let mut hits = 0;
            for _ in 0..20_000 {
                let record = random.below(1 + random.clone().below(300));
                hits += u32::from(read(&mut cache, record));
                if random.below(20) == 0 {
                    cache.forget(random.below(300));
                }
                let [recent, frequent, ..] = cache.lists;
                assert!(recent.length + frequent.length <= capacity);
                assert!(cache.index.len() as u64 <= 2 * capacity + 1);
            }
            assert_eq!(hits > 0, capacity > 0);
        }
    }
}
