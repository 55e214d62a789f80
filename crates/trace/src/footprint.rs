//! How much of its devices a trace touches, in bounded memory.
//!
//! Blocks of 4 KiB are counted exactly up to [`EXACT_BLOCKS_MAX`] different
//! ones, then estimated by HyperLogLog (P. Flajolet et al., AofA 2007) with
//! 2^14 registers, whose standard error is 1.04 / sqrt(2^14) = 0.8 %. With a
//! 64-bit hash the correction for large ranges is not needed; small ranges are
//! counted exactly.

use fullstroke_contract::Extent;
use std::collections::HashSet;

/// Sectors in a block.
const BLOCK_SECTORS: u64 = 8;
/// Different blocks that are counted exactly.
const EXACT_BLOCKS_MAX: usize = 1 << 16;
/// Blocks of one request that are looked at: 64 MiB. No block layer makes
/// larger ones, and a damaged length must not stop the program.
const REQUEST_BLOCKS_MAX: u64 = 1 << 14;
const REGISTER_BITS: u32 = 14;
const REGISTERS: usize = 1 << REGISTER_BITS;
/// HyperLogLog's correction of bias for this many registers: 0.7213 / (1 + 1.079 / m).
const BIAS: f64 = 0.7213 / (1.0 + 1.079 / REGISTERS as f64);

/// Counts the different blocks of extents.
#[derive(Debug)]
pub(crate) struct Footprint {
    /// Hashes of blocks; `None` when there were too many.
    exact: Option<HashSet<u64>>,
    /// For each register the longest run of zero bits seen, plus 1.
    registers: Vec<u8>,
}

impl Footprint {
    pub(crate) fn new() -> Footprint {
        Footprint { exact: Some(HashSet::new()), registers: vec![0; REGISTERS] }
    }

    /// Counts the blocks that `extent` of `device` touches.
    pub(crate) fn add(&mut self, device: u32, extent: Extent) {
        let first = extent.start.0 / BLOCK_SECTORS;
        let end = extent.end().0.div_ceil(BLOCK_SECTORS).min(first + REQUEST_BLOCKS_MAX);
        for block in first..end {
            self.add_hash(mixed(mixed(u64::from(device)) ^ block));
        }
    }

    #[inline]
    fn add_hash(&mut self, hash: u64) {
        let register = (hash >> (u64::BITS - REGISTER_BITS)) as usize;
        // The bit below the register's keeps the count within the word.
        let zeros = (hash << REGISTER_BITS | 1 << (REGISTER_BITS - 1)).leading_zeros() as u8 + 1;
        self.registers[register] = self.registers[register].max(zeros);
        if let Some(exact) = &mut self.exact {
            exact.insert(hash);
            if exact.len() > EXACT_BLOCKS_MAX {
                self.exact = None;
            }
        }
    }

    /// Whether the count is exact.
    pub(crate) fn is_exact(&self) -> bool {
        self.exact.is_some()
    }

    /// Different bytes touched, in whole blocks.
    pub(crate) fn bytes(&self) -> f64 {
        let blocks = self.exact.as_ref().map_or_else(|| self.estimate(), |exact| exact.len() as f64);
        blocks * (BLOCK_SECTORS * fullstroke_units::SECTOR_BYTES) as f64
    }

    fn estimate(&self) -> f64 {
        let sum: f64 = self.registers.iter().map(|&zeros| 0.5f64.powi(i32::from(zeros))).sum();
        BIAS * (REGISTERS * REGISTERS) as f64 / sum
    }
}

/// The finalizer of SplitMix64 (G. Steele et al., OOPSLA 2014), which is one to
/// one: different blocks of a device never collide.
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
        assert!(footprint.is_exact());
        assert_eq!(footprint.bytes(), 3.0 * 4096.0);
    }

    #[test]
    fn large_footprints_are_estimated_within_three_standard_errors() {
        for blocks in [100_000u64, 3_000_000] {
            let mut footprint = Footprint::new();
            (0..blocks).for_each(|block| footprint.add(0, Extent::new(block * 8, 8)));
            assert!(!footprint.is_exact());
            let ratio = footprint.bytes() / (blocks * 4096) as f64;
            assert!((ratio - 1.0).abs() < 0.025, "{blocks}: {ratio}");
        }
    }

    #[test]
    fn an_absurd_length_is_looked_at_in_part() {
        let mut footprint = Footprint::new();
        footprint.add(0, Extent::new(0, u64::MAX / 512));
        assert_eq!(footprint.bytes(), (64 << 20) as f64);
    }
}
