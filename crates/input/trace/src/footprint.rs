//! How much of its devices a trace touches, in bounded memory.
//!
//! Blocks of 4 KiB are marked in regions of 64. While no more than
//! [`REGIONS_MAX`] regions are touched all are kept, and the count is exact.
//! Beyond, only regions whose hash is below a limit are kept, which is halved
//! whenever there are too many again (adaptive sampling: P. Flajolet, Computing
//! 43, 1990): a sample in which each region is with the same chance, whatever
//! happens in it. A request then costs a hash for each region it touches, and a
//! look into memory only if that one is in the sample.

use fullstroke_contract::Extent;

/// Sectors in a block.
const BLOCK_SECTORS: u64 = 8;
/// Blocks in a region, one bit each.
const REGION_BLOCKS: u64 = 64;
/// Regions that are kept. Between half and all of them make the sample, so that
/// its standard error is below 0.4 % if all have as many blocks, and below 1 %
/// if half of the regions have one block and half all 64.
const REGIONS_MAX: usize = 1 << 17;
/// Blocks of one request that are looked at: 64 MiB. No block layer makes
/// larger ones, and a damaged length must not stop the program.
const REQUEST_BLOCKS_MAX: u64 = 1 << 14;
/// Slots of the table at first.
const SLOTS_MIN: usize = 1 << 10;

/// Counts the different blocks of extents.
#[derive(Debug)]
pub(crate) struct Footprint {
    /// Hashes of regions and their blocks, found by the hash's lower bits, then
    /// in order. An empty slot has no blocks. At most half of them are full.
    slots: Vec<(u64, u64)>,
    used: usize,
    /// Regions are kept if their hash begins with this many zero bits.
    level: u32,
}

impl Footprint {
    pub(crate) fn new() -> Footprint {
        Footprint {
            slots: vec![(0, 0); SLOTS_MIN],
            used: 0,
            level: 0,
        }
    }

    /// Counts the blocks that `extent` of `device` touches.
    #[inline]
    pub(crate) fn add(&mut self, device: u32, extent: Extent) {
        let device = mixed(u64::from(device));
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
                self.mark(hash, (u64::MAX >> (REGION_BLOCKS - count)) << from);
            }
            block += count;
        }
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

    /// Where the region of `hash` is, or would be.
    #[inline]
    fn slot(&self, hash: u64) -> usize {
        let last = self.slots.len() - 1;
        let mut slot = hash as usize & last;
        while self.slots[slot].1 != 0 && self.slots[slot].0 != hash {
            slot = (slot + 1) & last;
        }
        slot
    }

    /// Leaves half of the regions in the sample.
    #[cold]
    fn halve(&mut self) {
        while self.used > REGIONS_MAX {
            self.level += 1;
            let empty = vec![(0, 0); self.slots.len()];
            self.refill(empty);
        }
    }

    /// Puts the regions that are in the sample into `slots`.
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

    /// Whether the count is exact.
    pub(crate) fn is_exact(&self) -> bool {
        self.level == 0
    }

    /// Different bytes touched, in whole blocks.
    pub(crate) fn bytes(&self) -> f64 {
        let blocks: f64 = self.counts().sum();
        blocks
            * 2f64.powi(self.level.cast_signed())
            * (BLOCK_SECTORS * fullstroke_units::SECTOR_BYTES) as f64
    }

    /// The standard error of the count, as a share of it: of a sum over regions
    /// that were drawn with a chance of 1 in 2^level each.
    pub(crate) fn error(&self) -> f64 {
        let chance = 0.5f64.powi(self.level.cast_signed());
        let squares: f64 = self.counts().map(|count| count * count).sum();
        (squares * (1.0 - chance)).sqrt() / self.counts().sum::<f64>().max(1.0)
    }

    /// The blocks of each region.
    fn counts(&self) -> impl Iterator<Item = f64> {
        self.slots
            .iter()
            .map(|(_, blocks)| f64::from(blocks.count_ones()))
    }
}

/// The finalizer of SplitMix64 (G. Steele et al., OOPSLA 2014), which is one to
/// one: different regions of a device never collide.
#[inline]
fn mixed(value: u64) -> u64 {
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
        // Over the end of a region, and whole regions.
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
        // Alone in their regions; and a tenth of the regions full.
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
