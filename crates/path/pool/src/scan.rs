//! The order of blocks of a scrub and of a healing resilver (`module/zfs/dsl_scan.c`, OpenZFS 2.2).
//!
//! 1. The scan walks the tree of blocks, and keeps each found block in memory, sorted by place.
//! 2. If the memory is full, the scan issues the largest runs of neighbouring blocks until some
//!    memory is free (`dsl_scan_should_clear`, `scan_io_queue_fetch_ext`).
//! 3. After the walk, the scan issues all remaining blocks in the order of their places.
//! 4. The pool's own objects go last (`pool/objects.rs`).
//!
//! So records that lie together go first, memory fills with scattered records, and a memory full of
//! scattered records is left for the end. Here a **batch** has as many scattered records as memory
//! holds. The scattered records of a batch are issued by place, in slices, while the walk collects
//! the next batch. Those of the last batch follow after the walk.

use crate::config::PoolSettings;
use crate::keys::ScanRecords;
use crate::scatter::Scatter;

/// Bytes of memory for a block: `sizeof (scan_io_t)` with one address, and its entry in the tree of
/// runs (`module/zfs/dsl_scan.c`: pointers, checksum, bookmark and links).
const BLOCK: u64 = 136;

/// Least memory for sorting: `zfs_scan_mem_lim_min`.
const MEMORY_MIN: u64 = 16 << 20;

/// Largest part of the used space for sorting: `alloc / 20` in `dsl_scan_should_clear`.
const USED_PARTS: u64 = 20;

/// Memory that the scan frees at once: `zfs_scan_mem_lim_soft_max`, and a twentieth of the memory
/// (`zfs_scan_mem_lim_soft_fact`).
const FREED: u64 = 128 << 20;
const FREED_PARTS: u64 = 20;

/// Most blocks of a batch that this simulation sorts at once. A batch with all scattered records
/// needs no sorting here.
const BATCH_MAX: u64 = 1 << 23;

/// The order of the records of a scan.
#[derive(Debug)]
pub(crate) struct ScanOrder {
    records: u64,
    part: ScanRecords,
    scatter: Scatter,
    /// Number of scattered records in a batch. The first batch has the remainder.
    batch: u64,
    /// Number of slices in which a batch is issued.
    slices: u64,
    /// Scattered records of a batch in the order of their places, and the number of this batch.
    sorted: Vec<u64>,
    of: Option<u64>,
}

impl ScanOrder {
    /// Returns the order of the records of a pool.
    pub(crate) fn new(settings: &PoolSettings) -> ScanOrder {
        let records = settings.volsize / settings.record;
        let used = records * settings.vdevs[0].0.asize(settings.psize);
        // ZFS takes a twentieth of the memory, and the ARC of Linux is half of the memory.
        let usual = (settings.memory.arc.0 / 10).max(MEMORY_MIN);
        let memory = settings.scan.scan_memory.map_or(usual, |memory| memory.0);
        let memory = memory.min(used / USED_PARTS);
        let scatter = Scatter::new(records, settings.scan.scattered);
        let batch = match memory / BLOCK {
            batch if batch < scatter.count() => batch.min(BATCH_MAX),
            batch => batch,
        };
        ScanOrder {
            records,
            part: settings.scan.scan_records,
            scatter,
            batch: batch.max(1),
            slices: (memory / FREED).max(FREED_PARTS),
            sorted: Vec::new(),
            of: None,
        }
    }

    /// Returns the number of records that the scan reads.
    pub(crate) fn units(&self) -> u64 {
        match self.part {
            ScanRecords::All => self.records,
            ScanRecords::Ordered => self.records - self.scatter.count(),
            ScanRecords::Scattered => self.scatter.count(),
        }
    }

    /// Returns a record whose place stands for the place of the pointers above unit `unit`: a scattered
    /// record of the same part of the volume, or without scattered records the record in proportion.
    pub(crate) fn near(&self, unit: u64) -> u64 {
        let part = |of: u64| {
            let units = u128::from(self.units().max(1));
            (u128::from(unit) * u128::from(of) / units) as u64
        };
        match self.scatter.count() {
            0 => part(self.records),
            scattered => self.scatter.scattered(part(scattered)),
        }
    }

    /// Returns the number of batches.
    fn batches(&self) -> u64 {
        self.scatter.count().div_ceil(self.batch)
    }

    /// Returns the number of scattered records in the batches below `number`.
    fn first(&self, number: u64) -> u64 {
        self.scatter
            .count()
            .saturating_sub((self.batches() - number) * self.batch)
    }

    /// Returns the number of records that are not scattered and that the walk passes before batch
    /// `number`.
    fn ordered_before(&self, number: u64) -> u64 {
        match number {
            0 => 0,
            _ if number == self.batches() => self.records - self.scatter.count(),
            _ => self.scatter.scattered(self.first(number)) - self.first(number),
        }
    }

    /// Returns the first unit of the part in which the walk collects batch `number`.
    fn begin(&self, number: u64) -> u64 {
        let issued = number.saturating_sub(1);
        self.ordered_before(number) + self.first(issued)
    }

    /// Returns the record that the scan reads as number `unit`.
    pub(crate) fn record(&mut self, unit: u64) -> u64 {
        match self.part {
            _ if self.scatter.count() == 0 => return unit,
            ScanRecords::All => {}
            ScanRecords::Ordered => return self.scatter.ordered(unit),
            ScanRecords::Scattered => return self.scattered(unit),
        }
        // The part with this unit: the last part that begins at or before the unit.
        let (mut number, mut above) = (0, self.batches() + 1);
        while number + 1 < above {
            let middle = number.midpoint(above);
            match self.begin(middle) <= unit {
                true => number = middle,
                false => above = middle,
            }
        }
        let within = unit - self.begin(number);
        if number == 0 {
            return self.scatter.ordered(within);
        }
        let batch = number - 1;
        if number == self.batches() {
            return self.by_place(batch, within);
        }
        let ordered = self.ordered_before(number + 1) - self.ordered_before(number);
        let scattered = self.first(number) - self.first(batch);
        let slices = self.slices;
        let border = |slice: u64| (ordered * slice / slices, scattered * slice / slices);
        // A slice has ordered records, then scattered ones.
        let begins = |slice: u64| border(slice).0 + border(slice).1;
        // The estimate is off by at most a few, because the borders are rounded. The loops below
        // mend the estimate.
        let mut slice = (within * slices / (ordered + scattered)).min(slices - 1);
        while begins(slice) > within {
            slice -= 1;
        }
        while begins(slice + 1) <= within {
            slice += 1;
        }
        let (first_ordered, first_scattered) = border(slice);
        let in_slice = within - begins(slice);
        let ordered_in_slice = border(slice + 1).0 - first_ordered;
        if in_slice < ordered_in_slice {
            let before = self.ordered_before(number);
            return self.scatter.ordered(before + first_ordered + in_slice);
        }
        self.by_place(batch, first_scattered + in_slice - ordered_in_slice)
    }

    /// Returns the scattered record that the scan reads as number `number` among the scattered ones.
    fn scattered(&mut self, number: u64) -> u64 {
        // The first batch has the remainder, and all other batches are full.
        let batch = match number.checked_sub(self.first(1)) {
            None => 0,
            Some(behind) => 1 + behind / self.batch,
        };
        self.by_place(batch, number - self.first(batch))
    }

    /// Returns the scattered record of a batch whose place has this rank in the batch.
    fn by_place(&mut self, batch: u64, rank: u64) -> u64 {
        // One batch holds all scattered records, so the inverse permutation gives the order without
        // a sort.
        if self.batches() == 1 {
            return self.scatter.scattered(self.scatter.at_rank(rank));
        }
        if self.of != Some(batch) {
            self.of = Some(batch);
            self.sorted.clear();
            self.sorted.extend(self.first(batch)..self.first(batch + 1));
            let scatter = self.scatter;
            self.sorted
                .sort_by_cached_key(|&number| scatter.permuted(number));
        }
        self.scatter.scattered(self.sorted[rank as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::Kind;
    use fullstroke_units::Sectors;
    use serde_json::json;
    use std::collections::BTreeSet;

    fn order(keys: serde_json::Value, batch: u64) -> ScanOrder {
        let drives = vec![Sectors(20_000_000); 6];
        let keys = keys.as_object().unwrap();
        let settings = PoolSettings::read(Kind::Raidz(2), keys, &drives).unwrap();
        ScanOrder {
            batch,
            ..ScanOrder::new(&settings)
        }
    }

    #[test]
    fn a_scan_reads_every_record_once_with_any_memory() {
        for (share, batch) in [(0.0, 5), (0.1, 7), (0.1, 100_000), (0.5, 311), (1.0, 64)] {
            let mut order = order(json!({ "volsize": "1GiB", "scattered": share }), batch);
            let all: BTreeSet<u64> = (0..order.records).map(|unit| order.record(unit)).collect();
            assert_eq!(all.len() as u64, order.records, "{share} {batch}");
            assert!(all.iter().all(|&record| record < order.records));
        }
    }

    #[test]
    fn both_parts_of_a_scan_have_the_order_of_the_whole_scan() {
        for (share, batch) in [(0.1, 7), (0.1, 100_000), (0.5, 311), (0.999, 64)] {
            let keys = json!({ "volsize": "128MiB", "scattered": share });
            let mut whole = order(keys.clone(), batch);
            let scatter = whole.scatter;
            let is_scattered = |record: &u64| scatter.before(record + 1) > scatter.before(*record);
            let all: Vec<u64> = (0..whole.units()).map(|unit| whole.record(unit)).collect();
            for part in [ScanRecords::Ordered, ScanRecords::Scattered] {
                let mut half = order(keys.clone(), batch);
                half.part = part;
                let read: Vec<u64> = (0..half.units()).map(|unit| half.record(unit)).collect();
                let wanted = all
                    .iter()
                    .copied()
                    .filter(|record| is_scattered(record) == (part == ScanRecords::Scattered));
                assert!(wanted.eq(read), "{share} {batch} {part:?}");
            }
        }
    }

    #[test]
    fn ordered_records_go_first_and_a_memory_full_of_scattered_ones_last() {
        let mut order = order(json!({ "volsize": "1GiB", "scattered": 0.25 }), 512);
        let scatter = order.scatter;
        let is_scattered = |record: u64| scatter.before(record + 1) > scatter.before(record);
        let all: Vec<u64> = (0..8192).map(|unit| order.record(unit)).collect();
        // The second batch begins at the scattered record with number 512, which is record 2051.
        assert!(all[..1539].windows(2).all(|pair| pair[0] < pair[1]));
        assert!(!all[..1539].iter().any(|&record| is_scattered(record)));
        let last = &all[8192 - 512..];
        assert!(last.iter().all(|&record| is_scattered(record)));
        let places: Vec<u64> = last.iter().map(|&record| scatter.place(record)).collect();
        assert!(places.windows(2).all(|pair| pair[0] < pair[1]));
        // Between, scattered records are issued at the pace of the walk.
        let between = &all[1539..8192 - 512];
        for part in between.chunks(200) {
            let scattered = part.iter().filter(|&&record| is_scattered(record)).count();
            let share = scattered as f64 / part.len() as f64;
            assert!((0.1..0.4).contains(&share), "{share}");
        }
    }

    #[test]
    fn memory_is_a_tenth_of_the_arc_and_at_most_a_twentieth_of_the_used_space() {
        let settings = |keys: serde_json::Value| {
            let drives = vec![Sectors(20_000_000_000); 6];
            let keys = keys.as_object().unwrap();
            ScanOrder::new(&PoolSettings::read(Kind::Raidz(2), keys, &drives).unwrap()).batch
        };
        assert_eq!(settings(json!({ "arc": "8GiB" })), (8 << 30) / 10 / BLOCK);
        assert_eq!(settings(json!({ "arc": 0 })), MEMORY_MIN / BLOCK);
        let own = json!({ "scan_memory": "1GiB" });
        assert_eq!(settings(own), (1 << 30) / BLOCK);
        let small = json!({ "volsize": "128MiB" });
        let used = 1024 * 48 * 4096;
        assert_eq!(settings(small), used / 20 / BLOCK);
    }
}
