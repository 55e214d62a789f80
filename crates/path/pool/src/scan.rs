//! The order of blocks of a scrub and of a healing resilver (`module/zfs/dsl_scan.c`, OpenZFS 2.2).
//!
//! 1. The scan walks the tree of blocks, and keeps each found block in memory, sorted by place.
//! 2. If the memory is full, the scan issues the largest runs of neighbouring blocks until some
//!    memory is free (`dsl_scan_should_clear`, `scan_io_queue_fetch_ext`).
//! 3. After the walk, the scan issues all remaining blocks in the order of their places.
//!
//! So records that lie together go first, and memory fills with scattered records. Here a **batch**
//! has as many scattered records as memory holds, with the ordered records between them: first the
//! ordered records, then the scattered ones by place.

use crate::config::PoolSettings;
use crate::scatter::Scatter;

/// Bytes of memory for a block: `sizeof (scan_io_t)` with one address, and its entry in the tree of
/// runs (`module/zfs/dsl_scan.c`: pointers, checksum, bookmark and links).
const BLOCK: u64 = 136;

/// Least memory for sorting: `zfs_scan_mem_lim_min`.
const MEMORY_MIN: u64 = 16 << 20;

/// Largest part of the used space for sorting: `alloc / 20` in `dsl_scan_should_clear`.
const USED_PARTS: u64 = 20;

/// Most blocks of a batch that this simulation sorts at once.
const BATCH_MAX: u64 = 1 << 23;

/// The order of the records of a scan.
#[derive(Debug)]
pub(crate) struct ScanOrder {
    records: u64,
    scatter: Scatter,
    /// Number of scattered records in a batch.
    batch: u64,
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
        ScanOrder {
            records,
            scatter: Scatter::new(records, settings.scan.scattered),
            batch: (memory / BLOCK).clamp(1, BATCH_MAX),
            sorted: Vec::new(),
            of: None,
        }
    }

    /// Returns the record that the scan reads as number `unit`.
    pub(crate) fn record(&mut self, unit: u64) -> u64 {
        let count = self.scatter.count();
        if count == 0 {
            return unit;
        }
        let number = self.scatter.before(unit + 1).saturating_sub(1) / self.batch;
        let first = number * self.batch;
        let last = (first + self.batch).min(count);
        let begin = match number {
            0 => 0,
            _ => self.scatter.scattered(first),
        };
        let end = match last == count {
            true => self.records,
            false => self.scatter.scattered(last),
        };
        let ordered = (end - begin) - (last - first);
        let within = unit - begin;
        if within < ordered {
            return self.scatter.ordered(begin - first + within);
        }
        let rank = within - ordered;
        if last - first == count {
            // Memory holds all scattered records.
            return self.scatter.scattered(self.scatter.at_rank(rank));
        }
        if self.of != Some(number) {
            self.of = Some(number);
            self.sorted.clear();
            self.sorted.extend(first..last);
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
    use std::collections::HashSet;

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
            let all: HashSet<u64> = (0..order.records).map(|unit| order.record(unit)).collect();
            assert_eq!(all.len() as u64, order.records, "{share} {batch}");
            assert!(all.iter().all(|&record| record < order.records));
        }
    }

    #[test]
    fn ordered_records_go_first_and_scattered_ones_by_place() {
        let mut order = order(json!({ "volsize": "1GiB", "scattered": 0.25 }), 512);
        let scatter = order.scatter;
        let is_scattered = |record: u64| scatter.before(record + 1) > scatter.before(record);
        let first: Vec<u64> = (0..2051).map(|unit| order.record(unit)).collect();
        // The batch ends before the scattered record with number 512, which is record 2051.
        assert!(first[..1539].windows(2).all(|pair| pair[0] < pair[1]));
        assert!(!first[..1539].iter().any(|&record| is_scattered(record)));
        assert!(first[1539..].iter().all(|&record| is_scattered(record)));
        let places: Vec<u64> = first[1539..].iter().map(|&r| scatter.place(r)).collect();
        assert!(places.windows(2).all(|pair| pair[0] < pair[1]));
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
