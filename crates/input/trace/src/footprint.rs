//! Number of different blocks touched by a trace, in bounded memory.
//!
//! Blocks of 4 KiB are marked in regions of 64 blocks. Up to [`REGIONS_MAX`] touched regions, all
//! regions are kept, and the count is exact. Beyond that, only regions whose hash is below a limit
//! are kept. The limit is halved whenever there are too many regions again (adaptive sampling: P.
//! Flajolet, Computing 43, 1990). In the resulting sample every region has the same chance,
//! whatever the number of accesses to it. A request costs one hash for each touched region. Memory
//! is accessed only for regions in the sample.

use fullstroke_contract::Extent;

/// Number of sectors in a block.
const BLOCK_SECTORS: u64 = 8;
/// Number of blocks in a region, one bit each.
const REGION_BLOCKS: u64 = 64;
/// Largest number of regions kept. The sample has between half of this number and all of it. Its
/// standard error is below 0.4 % if all regions have the same number of blocks. It is below 1 % if
/// half of the regions have one block and half have all 64.
const REGIONS_MAX: usize = 1 << 17;
/// Largest number of blocks examined for one request: 64 MiB. No block layer makes larger requests,
/// and a damaged length must not stall the program.
const REQUEST_BLOCKS_MAX: u64 = 1 << 14;
/// Number of regions that are looked up together. The memory of their slots is then fetched at the
/// same time, because no look-up waits for the one before.
const PENDING_MAX: usize = 256;
/// Initial number of slots of the table.
const SLOTS_MIN: usize = 1 << 10;

/// Counter of the different blocks of extents.
#[derive(Debug)]
pub(crate) struct Footprint {
    /// Hash table: hashes of regions, and bits of their blocks. The lower bits of the hash give the
    /// first slot, and collisions use the following slots. An empty slot has no block bits. At most
    /// half of the slots are full.
    slots: Vec<(u64, u64)>,
    used: usize,
    /// Number of leading zero bits in the hash of a sampled region.
    level: u32,
    /// Latest device and its hash.
    device: (u32, u64),
    /// Regions of the latest extents, not in the table yet: hash, and bits of the blocks.
    pending: Vec<(u64, u64)>,
    /// Hashes in the first slots of the pending regions. Only the look-up has a purpose.
    found: Vec<u64>,
}

impl Footprint {
    pub(crate) fn new() -> Footprint {
        Footprint {
            slots: vec![(0, 0); SLOTS_MIN],
            used: 0,
            level: 0,
            device: (0, mixed(0)),
            pending: Vec::with_capacity(PENDING_MAX),
            found: Vec::with_capacity(PENDING_MAX),
        }
    }

    /// Counts the blocks of `device` that `extent` touches.
    #[inline]
    pub(crate) fn add(&mut self, device: u32, extent: Extent) {
        if device != self.device.0 {
            self.device = (device, mixed(u64::from(device)));
        }
        let device = self.device.1;
        let mut block = extent.start.0 / BLOCK_SECTORS;
        let end = extent
            .end()
            .0
            .div_ceil(BLOCK_SECTORS)
            .min(block + REQUEST_BLOCKS_MAX);
        while block < end {
            let region = block / REGION_BLOCKS;
            let from = block % REGION_BLOCKS;
            let count = (end - block).min(REGION_BLOCKS - from);
            let hash = mixed(device ^ region);
            if hash.leading_zeros() >= self.level {
                self.pending
                    .push((hash, (u64::MAX >> (REGION_BLOCKS - count)) << from));
                if self.pending.len() == PENDING_MAX {
                    self.mark_pending();
                }
            }
            block += count;
        }
    }

    /// Marks the blocks of all pending regions.
    fn mark_pending(&mut self) {
        // The first loop only brings the slots into the processor's cache. Without this loop each
        // search waits for memory before the processor knows whether the search has ended.
        let last = self.slots.len() - 1;
        let first = |&(hash, _): &(u64, u64)| self.slots[hash as usize & last].0;
        self.found.clear();
        self.found.extend(self.pending.iter().map(first));
        // Taken out, so that the table may grow during the loop. The list goes back with its
        // memory.
        let mut pending = std::mem::take(&mut self.pending);
        for &(hash, blocks) in &pending {
            // The limit may have been halved after the region was added.
            if hash.leading_zeros() >= self.level {
                self.mark(hash, blocks);
            }
        }
        pending.clear();
        self.pending = pending;
    }

    fn mark(&mut self, hash: u64, blocks: u64) {
        let slot = self.slot(hash);
        if self.slots[slot].1 == 0 {
            self.slots[slot].0 = hash;
            self.used += 1;
        }
        self.slots[slot].1 |= blocks;
        assert!(
            self.used < self.slots.len(),
            "an empty slot ends each search"
        );
        if self.used > REGIONS_MAX {
            self.halve();
        } else if self.used * 2 > self.slots.len() {
            let larger = vec![(0, 0); self.slots.len() * 2];
            self.refill(larger);
        }
    }

    /// Returns the slot where the region of `hash` is, or would be.
    #[inline]
    fn slot(&self, hash: u64) -> usize {
        let last = self.slots.len() - 1;
        let mut slot = hash as usize & last;
        while self.slots[slot].1 != 0 && self.slots[slot].0 != hash {
            slot = (slot + 1) & last;
        }
        slot
    }

    /// Removes half of the regions from the sample.
    #[cold]
    fn halve(&mut self) {
        while self.used > REGIONS_MAX {
            self.level += 1;
            let empty = vec![(0, 0); self.slots.len()];
            self.refill(empty);
        }
    }

    /// Inserts the regions of the sample into `slots`.
    fn refill(&mut self, slots: Vec<(u64, u64)>) {
        assert!(
            slots.len().is_power_of_two() && slots.len() >= self.slots.len(),
            "{} slots for what {} hold",
            slots.len(),
            self.slots.len()
        );
        let old = std::mem::replace(&mut self.slots, slots);
        self.used = 0;
        for (hash, blocks) in old.into_iter().filter(|&(_, blocks)| blocks != 0) {
            if hash.leading_zeros() >= self.level {
                let slot = self.slot(hash);
                self.slots[slot] = (hash, blocks);
                self.used += 1;
            }
        }
    }

    /// Returns true if the count is exact.
    pub(crate) fn is_exact(&mut self) -> bool {
        self.mark_pending();
        self.level == 0
    }

    /// Returns the number of different bytes touched, in whole blocks.
    pub(crate) fn bytes(&mut self) -> f64 {
        self.mark_pending();
        let blocks: f64 = self.counts().sum();
        blocks
            * 2f64.powi(self.level.cast_signed())
            * (BLOCK_SECTORS * fullstroke_units::SECTOR_BYTES) as f64
    }

    /// Returns the relative standard error of the count. The count is a sum over regions drawn with
    /// a probability of 1 in 2^level each.
    pub(crate) fn error(&mut self) -> f64 {
        self.mark_pending();
        let chance = 0.5f64.powi(self.level.cast_signed());
        let squares: f64 = self.counts().map(|count| count * count).sum();
        // The variance of a sample in which each region was kept with the probability `chance`.
        (squares * (1.0 - chance)).sqrt() / self.counts().sum::<f64>().max(1.0)
    }

    /// Yields the number of touched blocks of each region.
    fn counts(&self) -> impl Iterator<Item = f64> {
        self.slots
            .iter()
            .map(|(_, blocks)| f64::from(blocks.count_ones()))
    }
}

/// Finaliser of SplitMix64 (G. Steele et al., OOPSLA 2014). It is a bijection, so different regions
/// of a device never collide.
#[inline]
pub(crate) fn mixed(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_counted_once_and_for_each_device() {
        let mut footprint = Footprint::new();
        footprint.add(0, Extent::new(0, 16));
        footprint.add(0, Extent::new(7, 2));
        footprint.add(1, Extent::new(0, 1));
        // An extent across the end of a region, and an extent of whole regions.
        footprint.add(2, Extent::new(63 * 8, 16));
        footprint.add(3, Extent::new(64 * 8, 128 * 8));
        assert!(footprint.is_exact());
        assert_eq!(footprint.bytes(), (3.0 + 2.0 + 128.0) * 4096.0);
        assert_eq!(footprint.error(), 0.0);
    }

    #[test]
    fn many_blocks_close_together_are_counted_exactly() {
        let mut footprint = Footprint::new();
        (0..3_000_000u64).for_each(|block| footprint.add(0, Extent::new(block * 8, 8)));
        assert!(footprint.is_exact());
        assert_eq!(footprint.bytes(), 3_000_000.0 * 4096.0);
    }

    #[test]
    fn large_footprints_are_estimated_within_three_standard_errors() {
        // Regions with one block each, and a mix where one region in ten is full.
        for (regions, every) in [
            (300_000u64, u64::MAX),
            (3_000_000, u64::MAX),
            (1_000_000, 10),
        ] {
            let mut footprint = Footprint::new();
            let mut blocks = 0;
            for region in 0..regions {
                let count = if region % every == 0 { 64 } else { 1 };
                footprint.add(0, Extent::new(region * 64 * 8, count * 8));
                blocks += count;
            }
            assert!(!footprint.is_exact());
            let ratio = footprint.bytes() / (blocks * 4096) as f64;
            let error = footprint.error();
            assert!(
                error < 0.01 && (ratio - 1.0).abs() < 3.0 * error,
                "{regions}: {ratio} within {error}"
            );
        }
    }

    #[test]
    fn an_absurd_length_is_looked_at_in_part() {
        let mut footprint = Footprint::new();
        footprint.add(0, Extent::new(0, u64::MAX / 512));
        assert_eq!(footprint.bytes(), (64 << 20) as f64);
    }
}
