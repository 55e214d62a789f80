//! Random block sizes.

use crate::job::Blocks;
use fullstroke_units::Random;

/// Number of draws before the smallest size is taken, when little room is left.
const DRAWS_MAX: u32 = 32;

/// Block sizes of one direction, in bytes.
#[derive(Clone, Debug)]
pub(crate) enum BlockSizes {
    Fixed(u64),
    /// Multiples of `low` up to `high`, and `high` itself.
    Range {
        low: u64,
        high: u64,
    },
    /// Sizes, each with the sum of the percentages up to this size.
    Split {
        parts: Vec<(u64, u64)>,
        smallest: u64,
    },
}

impl BlockSizes {
    pub(crate) fn new(blocks: &Blocks) -> BlockSizes {
        match blocks {
            Blocks::Range(low, high) if low == high => BlockSizes::Fixed(*low),
            Blocks::Range(low, high) => BlockSizes::Range {
                low: *low,
                high: *high,
            },
            Blocks::Split(parts) => {
                let mut sum = 0;
                let add = |(bytes, percent): &(u64, u8)| {
                    sum += u64::from(*percent);
                    (*bytes, sum)
                };
                BlockSizes::Split {
                    smallest: blocks.smallest(),
                    parts: parts.iter().map(add).collect(),
                }
            }
        }
    }

    /// Returns the smallest size.
    pub(crate) fn smallest(&self) -> u64 {
        match self {
            BlockSizes::Fixed(bytes) | BlockSizes::Range { low: bytes, .. } => *bytes,
            BlockSizes::Split { smallest, .. } => *smallest,
        }
    }

    /// Returns a size that fits into `room`. `room` must hold the smallest size. Like fio, draws
    /// again if a size does not fit.
    pub(crate) fn draw(&self, room: u64, random: &mut Random) -> u64 {
        if let BlockSizes::Fixed(bytes) = self {
            return *bytes;
        }
        // At the end of a region few sizes fit. The number of draws is limited, so that one draw
        // cannot last for ever.
        (0..DRAWS_MAX)
            .map(|_| self.any(random))
            .find(|bytes| *bytes <= room)
            .unwrap_or_else(|| self.smallest())
    }

    fn any(&self, random: &mut Random) -> u64 {
        match self {
            BlockSizes::Fixed(bytes) => *bytes,
            BlockSizes::Range { low, high } => {
                (1 + random.below(*high)).next_multiple_of(*low).min(*high)
            }
            BlockSizes::Split { parts, smallest } => {
                let percent = random.below(100);
                parts
                    .iter()
                    .find(|(_, sum)| percent < *sum)
                    .map_or(*smallest, |(bytes, _)| *bytes)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_units::Seed;

    fn shares(blocks: &Blocks, room: u64, size: u64) -> f64 {
        let sizes = BlockSizes::new(blocks);
        let mut random = Seed(1).stream("test");
        let hits = (0..10_000)
            .filter(|_| sizes.draw(room, &mut random) == size)
            .count();
        hits as f64 / 10_000.0
    }

    #[test]
    fn a_range_gives_each_multiple_as_often() {
        let range = Blocks::Range(4096, 16384);
        for size in [4096, 8192, 12288, 16384] {
            let share = shares(&range, u64::MAX, size);
            assert!((0.235..0.265).contains(&share), "{size}: {share}");
        }
    }

    #[test]
    fn a_range_that_is_no_multiple_ends_in_a_rarer_size() {
        // bsrange=4k-18k: 12 % of 5000 I/Os of fio 3.33 had 18 KiB.
        let range = Blocks::Range(4096, 18432);
        assert!((shares(&range, u64::MAX, 18432) - 1.0 / 9.0).abs() < 0.01);
        assert!((shares(&range, u64::MAX, 8192) - 2.0 / 9.0).abs() < 0.015);
    }

    #[test]
    fn a_split_gives_its_percentages() {
        let split = Blocks::Split(vec![(4096, 10), (65536, 90)]);
        assert!((shares(&split, u64::MAX, 4096) - 0.1).abs() < 0.01);
        assert_eq!(shares(&split, 10_000, 4096), 1.0);
    }
}
