//! The mathematics of logical zones (Lloyd, "Constant transfer rate RAID striping for QoS", 2002,
//! section 2.7.7), in whole numbers throughout.
//!
//! A disk of T blocks is divided into z logical zones. Zone i of one disk is paired with zone z-1-i
//! of the other. For every `blocking` blocks of the slower zone, the faster zone holds r(i) times
//! as many. With R = p_max/p_min,
//!
//! ```text
//! increment         dr   = (R - 1) / (z/2 - 1)                    (2.1)
//! ideal ratio       r(i) = R - i dr              0 <= i < z/2     (2.2)
//! block-exact ratio r(i) = floor(r(i) blocking) / blocking        (2.3)
//! zone sizes        b(i) = 2T/z r(i) / (r(i) + 1)                 (2.4)
//!                   b(z-1-i) = b(i) / r(i)
//! ```
//!
//! Deviations from the text of the paper:
//! - (2.4) is printed as `r(i) / r(i+1)`. The printed formula does not give figure 2.4, but `r(i) /
//!   (r(i) + 1)` does.
//! - The text calls zone 0 innermost, but in (2.4) and in figure 2.4 zone 0 is the larger of its
//!   pair. Here zone 0 is the outermost, with the lowest addresses.
//! - The text says that block-exact sizes are multiples of `blocking r(i)`. The code of appendix C
//!   rounds to `blocking` times as much. Figure 2.4 rounds to whole rows of one chunk on each disk.
//!   This module does the same, because whole rows leave out less.
//! - For z = 2, (2.1) divides by 0. This value is refused.

use super::Ratio;
use fullstroke_contract::ConfigError;

/// Maximum number of logical zones of a disk.
pub const ZONES_MAX: u32 = 1 << 16;

/// A positive fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fraction {
    /// Value above the line.
    pub numerator: u128,
    /// Value below the line; not 0.
    pub denominator: u128,
}

impl Fraction {
    /// Returns the nearest `f64`.
    pub fn as_f64(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }
}

/// Logical zone i of one disk together with zone z-1-i of the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZonePair {
    /// r(i) by (2.2).
    pub ideal_ratio: Fraction,
    /// Blocks of the faster zone by the ideal ratio, rounded to the nearest.
    pub ideal_faster: u64,
    /// Blocks of the slower zone by the ideal ratio, rounded to the nearest.
    pub ideal_slower: u64,
    /// Blocks of the faster zone in one row. Divided by `blocking`, this is r(i) by (2.3).
    pub chunk: u64,
    /// Number of rows of one chunk on each disk.
    pub rows: u64,
}

/// The logical zones of two equal disks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zoning {
    blocking: u64,
    total: u64,
    increment: Fraction,
    pairs: Vec<ZonePair>,
}

impl Zoning {
    /// Divides disks of `total` blocks into `zones` logical zones.
    ///
    /// # Errors
    /// Names the key with the impossible value: `zones`, `blocking` or `members`.
    pub fn new(zones: u32, total: u64, blocking: u64, ratio: Ratio) -> Result<Zoning, ConfigError> {
        if zones < 4 || !zones.is_multiple_of(2) || zones > ZONES_MAX {
            let reason = match zones {
                2 => {
                    "; of two zones the one pair would be the outermost and the middle one at once"
                }
                _ if zones % 2 == 1 => "; each zone has a counterpart on the other disk",
                _ => "",
            };
            let message =
                format!("found {zones}; expected an even number from 4 to {ZONES_MAX}{reason}");
            return Err(ConfigError::new("zones", message));
        }
        if blocking == 0 {
            return Err(ConfigError::new(
                "blocking",
                "found 0; expected at least one block",
            ));
        }
        let half = zones / 2;
        let (outer, inner) = (u128::from(ratio.outer()), u128::from(ratio.inner()));
        let denominator = inner * u128::from(half - 1);
        let pairs = (0..half)
            .map(|index| {
                let numerator = outer * u128::from(half - 1) - u128::from(index) * (outer - inner);
                ZonePair::new(
                    zones,
                    total,
                    blocking,
                    Fraction {
                        numerator,
                        denominator,
                    },
                )
            })
            .collect::<Option<Vec<_>>>();
        let pairs = pairs.filter(|pairs| pairs.iter().all(|pair| pair.rows > 0)).ok_or_else(|| {
            let message = format!(
                "found {blocking} blocks; a zone of about {} has no room for a chunk of them, and for one of \
                 the ratio's times as many on the other disk; choose a smaller one, or fewer zones",
                total / u64::from(zones)
            );
            ConfigError::new("blocking", message)
        })?;
        let increment = Fraction {
            numerator: outer - inner,
            denominator,
        };
        Ok(Zoning {
            blocking,
            total,
            increment,
            pairs,
        })
    }

    /// Returns dr by (2.1).
    pub fn increment(&self) -> Fraction {
        self.increment
    }

    /// Returns the number of blocks of the slower zone in one row.
    pub fn blocking(&self) -> u64 {
        self.blocking
    }

    /// Returns the z/2 pairs, from the outermost zone with the innermost to the two zones in the
    /// middle.
    pub fn pairs(&self) -> &[ZonePair] {
        &self.pairs
    }

    /// Returns the number of blocks of each of the z zones of a disk, from the outermost on.
    pub fn zone_sizes(&self) -> impl Iterator<Item = u64> + '_ {
        let outer = self.pairs.iter().map(|pair| pair.rows * pair.chunk);
        outer.chain(
            self.pairs
                .iter()
                .rev()
                .map(|pair| pair.rows * self.blocking),
        )
    }

    /// Returns the first block of each zone on its disk, from the outermost on. The starts are the
    /// same on both disks.
    pub fn start_blocks(&self) -> Vec<u64> {
        let starts = self.zone_sizes().scan(0, |next, size| {
            let start = *next;
            *next += size;
            Some(start)
        });
        starts.collect()
    }

    /// Returns the number of blocks of each disk inside the zones.
    pub fn used(&self) -> u64 {
        self.zone_sizes().sum()
    }

    /// Returns the number of blocks of each disk left over by whole rows.
    pub fn lost(&self) -> u64 {
        self.total - self.used()
    }
}

impl ZonePair {
    /// Returns the pair with the ideal ratio `ideal`; `None` if the length of a row overflows.
    fn new(zones: u32, total: u64, blocking: u64, ideal: Fraction) -> Option<ZonePair> {
        let chunk = u128::from(blocking).checked_mul(ideal.numerator)? / ideal.denominator;
        let chunk = u64::try_from(chunk).ok()?;
        let row = chunk.checked_add(blocking)?;
        // The two zones of a pair together have 2T/z blocks.
        let (both, zones) = (2 * u128::from(total), u128::from(zones));
        let share = |part: u128| {
            let whole = zones * (ideal.numerator + ideal.denominator);
            rounded_product(both, part, whole)
        };
        Some(ZonePair {
            ideal_ratio: ideal,
            ideal_faster: share(ideal.numerator)?,
            ideal_slower: share(ideal.denominator)?,
            chunk,
            rows: u64::try_from(both / (zones * u128::from(row))).ok()?,
        })
    }
}

/// Returns `a b / c`, rounded to the nearest, halves up; `None` on overflow.
fn rounded_product(a: u128, b: u128, c: u128) -> Option<u64> {
    let product = a.checked_mul(b)?.checked_mul(2)?.checked_add(c)?;
    u64::try_from(product / (2 * c)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ratio(outer: u32, inner: u32) -> Ratio {
        Ratio::new(outer, inner).unwrap()
    }

    /// One line of Lloyd's figure 2.4: the ideal and the block-exact r in thousandths, and the
    /// ideal and block-exact sizes of both zones.
    type Line = (u64, u64, (u64, u64), (u64, u64));

    const FIGURE_2_4: [Line; 7] = [
        (2162, 2125, (4884005, 2258852), (4857138, 2285712)),
        (1968, 1875, (4736614, 2406243), (4658385, 2484472)),
        (1775, 1750, (4568646, 2574212), (4545450, 2597400)),
        (1581, 1500, (4375467, 2767390), (4285704, 2857136)),
        (1387, 1375, (4150943, 2991914), (4135329, 3007512)),
        (1194, 1125, (3886770, 3256087), (3781512, 3361344)),
        (1000, 1000, (3571429, 3571429), (3571424, 3571424)),
    ];

    #[test]
    fn figure_2_4_is_met_to_the_block() {
        let zoning = Zoning::new(14, 50_000_000, 8, ratio(800, 370)).unwrap();
        let thousandths =
            |Fraction {
                 numerator,
                 denominator,
             }| { ((2000 * numerator + denominator) / (2 * denominator)) as u64 };
        let line = |pair: &ZonePair| -> Line {
            let exact = (pair.rows * pair.chunk, pair.rows * 8);
            let ideal = (pair.ideal_faster, pair.ideal_slower);
            (
                thousandths(pair.ideal_ratio),
                pair.chunk * 1000 / 8,
                ideal,
                exact,
            )
        };
        assert_eq!(
            zoning.pairs().iter().map(line).collect::<Vec<_>>(),
            FIGURE_2_4
        );
        assert_eq!((zoning.used(), zoning.lost()), (49_999_942, 58));
        assert_eq!(
            zoning.increment(),
            Fraction {
                numerator: 430,
                denominator: 370 * 6
            }
        );
        assert_eq!(zoning.start_blocks()[..3], [0, 4857138, 4857138 + 4658385]);
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_key() {
        let refused = |zones, total, blocking| {
            Zoning::new(zones, total, blocking, ratio(2, 1))
                .map(|zoning| zoning.used())
                .unwrap_err()
        };
        for zones in [0, 1, 2, 3, 7, ZONES_MAX + 2, u32::MAX] {
            let error = refused(zones, 1 << 40, 8);
            assert_eq!(error.key, "zones", "{zones}");
            assert!(
                error
                    .message
                    .contains(&format!("found {zones}; expected an even number")),
                "{error}"
            );
        }
        assert_eq!(refused(14, 1000, 0).key, "blocking");
        for blocking in [48, 1000, u64::MAX] {
            assert_eq!(refused(14, 1000, blocking).key, "blocking", "{blocking}");
        }
        assert_eq!(refused(14, 0, 1).key, "blocking");
    }

    proptest! {
        #[test]
        fn zones_cover_a_disk_but_for_less_than_a_row_of_each_pair(
            half in 2u32..40, total in prop_oneof![1u64..5000, 1u64..], blocking in 1u64..100,
            inner in 1u32..1000, more in 1u32..3000,
        ) {
            let Ok(zoning) = Zoning::new(2 * half, total, blocking, ratio(inner + more, inner)) else {
                return Ok(());
            };
            let rows: u64 = zoning.pairs().iter().map(|pair| pair.chunk + blocking).sum();
            prop_assert!(zoning.lost() < rows + u64::from(2 * half));
            prop_assert_eq!(zoning.zone_sizes().count() as u32, 2 * half);
            let chunks: Vec<u64> = zoning.pairs().iter().map(|pair| pair.chunk).collect();
            prop_assert!(chunks.is_sorted_by(|a, b| a >= b), "ratios fall towards the middle");
            prop_assert_eq!(chunks[half as usize - 1], blocking, "and are 1 there");
        }
    }
}
