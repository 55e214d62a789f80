//! The chance of data loss: the mean time to data loss of Chen, Lee, Gibson, Katz and Patterson,
//! "RAID: High-performance, reliable secondary storage", ACM Computing Surveys 26(2), 1994, section
//! 3.4, extended by unreadable sectors while no redundancy is left.
//!
//! Drives fail independently at a constant rate `1 / MTTF`. A failed drive is replaced and rebuilt
//! within a time `R`. If `f` of `n` drives may fail, data are lost at the rate
//!
//! ```text
//! n / MTTF  x  (n - 1) R / MTTF  x ... (f factors in all)  x  (p R / MTTF + h)
//! ```
//!
//! In a pool of several vdevs, the factors after the first count the drives of one vdev.
//! Here `p` is the number of drives with data that have no copy left. `h` is the chance that one of
//! the bits without a copy is unreadable: `1 - (1 - 1/B)^bits` if one bit in `B` is unreadable.
//! Without redundancy the rate is `n / MTTF`.
//!
//! Field data show 2 to 1500 times as many double failures as this estimate (Elerath and Pecht, "A
//! highly accurate method for assessing reliability of RAID", IEEE Transactions on Computers 58(3),
//! 2009): failures are not independent, and rates are not constant. The estimate compares layouts;
//! it promises nothing.

use fullstroke_lab::SLOW_FACTOR;
use serde::{Deserialize, Serialize};

/// Hours in a year of 365.25 days.
const YEAR_HOURS: f64 = 8766.0;

/// Formula of the mean time to data loss of an array with redundancy, see the module's comment.
pub const FORMULA: &str = "1 / (n / MTTF x (n - 1) R / MTTF x ... (f factors) x (p R / MTTF + 1 - (1 - 1/B)^bits)): n is the number of drives, \
     of which f may fail; R is the number of hours from a failure to the end of the rebuild; p is the number of drives that hold \
     data without a copy once f have failed, bits is the number of bits of this data, and one bit in B is unreadable; without redundancy the \
     time is MTTF / n";

/// Assumptions about drives and their replacement.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Assumptions {
    /// Mean time to failure of a drive, in hours, from the data sheet. Default 10^6.
    pub mttf_hours: f64,
    /// Number of bits of which one is unreadable, from the data sheet. Default 10^15.
    pub unreadable_bits: f64,
    /// Hours until a failed drive is replaced. Default 24.
    pub replace_hours: f64,
    /// Factor by which the slow drive of the runs with a slow drive takes longer. Default 2.5.
    pub slow_factor: f64,
}

impl Default for Assumptions {
    /// 10^6 hours, 10^15 bits, a day, 2.5.
    fn default() -> Assumptions {
        Assumptions {
            // 10^6 hours and one unreadable sector in 10^15 bits are figures of data sheets of
            // enterprise disks.
            mttf_hours: 1e6,
            unreadable_bits: 1e15,
            replace_hours: 24.0,
            slow_factor: SLOW_FACTOR,
        }
    }
}

/// Parameters of an array that determine the chance of data loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Redundancy {
    /// Number of drives.
    pub drives: u32,
    /// Number of drives that lose data together: those of a vdev of a pool, otherwise all.
    pub group: u32,
    /// Number of drive failures without loss in the worst case.
    pub survived: u32,
    /// Number of drives with data without a copy after so many failures.
    pub partners: u32,
    /// Bytes without a copy after so many failures.
    pub bare_bytes: u64,
}

/// Chance of data loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct DataLossChance {
    /// Mean time to data loss, in years.
    pub mttdl_years: f64,
    /// Chance of data loss within a year.
    pub chance_a_year: f64,
    /// Chance of an unreadable sector once no redundancy is left, which makes the rebuild fail.
    pub unreadable_chance: f64,
    /// Hours from the failure of a drive until the replacement is rebuilt.
    pub repair_hours: f64,
}

/// Terms of the loss rate per hour: the failure rate of a first drive; the chance that each further
/// permitted drive fails before the first is rebuilt; and the chance that data are then lost.
struct LossTerms {
    first: f64,
    further: Vec<f64>,
    another: f64,
    unreadable: f64,
}

impl LossTerms {
    fn new(array: Redundancy, assumed: Assumptions, repair_hours: f64) -> LossTerms {
        let Redundancy {
            drives,
            group,
            survived,
            partners,
            bare_bytes,
        } = array;
        assert!(
            group <= drives && survived <= group && partners <= group,
            "of {group} drives of {drives} {survived} may fail, and {partners} are partners"
        );
        assert!(
            repair_hours >= 0.0,
            "a drive is filled after {repair_hours} hours"
        );
        let bits = 8.0 * bare_bytes as f64;
        let failing = |left: u32| f64::from(left) / assumed.mttf_hours;
        // A probability. With a long rebuild and many drives, the linear form would exceed 1.
        let another = |left: u32| (failing(left) * repair_hours).min(1.0);
        LossTerms {
            first: failing(drives),
            further: (1..survived)
                .map(|gone| another(group.saturating_sub(gone)))
                .collect(),
            another: another(partners),
            // The logarithm form keeps the digits of 1/B, which `1 - 1/B` would lose to rounding.
            unreadable: -(bits * (-1.0 / assumed.unreadable_bits).ln_1p()).exp_m1(),
        }
    }

    fn rate(&self, survived: u32) -> f64 {
        match survived {
            0 => self.first,
            _ => {
                // The sum of both chances is exact only for small chances and may exceed 1.
                let gone = (self.another + self.unreadable).min(1.0);
                self.first * self.further.iter().product::<f64>() * gone
            }
        }
    }
}

/// Returns the chance of data loss of an array whose drives are rebuilt in `rebuild_hours`.
pub fn loss(array: Redundancy, assumed: Assumptions, rebuild_hours: f64) -> DataLossChance {
    let survived = array.survived;
    let repair_hours = assumed.replace_hours + rebuild_hours;
    let terms = LossTerms::new(array, assumed, repair_hours);
    let rate = terms.rate(survived);
    DataLossChance {
        mttdl_years: 1.0 / rate / YEAR_HOURS,
        chance_a_year: -(-rate * YEAR_HOURS).exp_m1(),
        unreadable_chance: if survived == 0 {
            f64::NAN
        } else {
            terms.unreadable
        },
        repair_hours: if survived == 0 {
            f64::NAN
        } else {
            repair_hours
        },
    }
}

/// Returns the mean time to data loss in hours as [`FORMULA`] with the numbers of an array.
pub(crate) fn with_numbers(
    array: Redundancy,
    assumed: Assumptions,
    loss: DataLossChance,
) -> String {
    let Redundancy {
        drives,
        group,
        survived,
        partners,
        ..
    } = array;
    let Assumptions { mttf_hours, .. } = assumed;
    if survived == 0 {
        return format!("{mttf_hours:e} / {drives}");
    }
    let terms = LossTerms::new(array, assumed, loss.repair_hours);
    let hours = loss.repair_hours;
    let mut factors = vec![format!("{drives} / {mttf_hours:e}")];
    factors.extend((1..survived).map(|gone| {
        format!(
            "{} x {hours:.2} / {mttf_hours:e}",
            group.saturating_sub(gone)
        )
    }));
    let last = format!(
        "({partners} x {hours:.2} / {mttf_hours:e} + {:.4e})",
        terms.unreadable
    );
    factors.push(last);
    format!("1 / ({})", factors.join(" x "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SURE: Assumptions = Assumptions {
        mttf_hours: 200_000.0,
        unreadable_bits: 1e300,
        replace_hours: 0.0,
        slow_factor: SLOW_FACTOR,
    };

    fn array(drives: u32, survived: u32, partners: u32) -> Redundancy {
        Redundancy {
            drives,
            group: drives,
            survived,
            partners,
            bare_bytes: u64::from(partners) * 1_000_000_000_000,
        }
    }

    #[test]
    fn without_unreadable_sectors_it_is_the_formula_of_the_survey() {
        // MTTF^2 / (N (G - 1) MTTR), MTTF^3 / (N (G - 1) (G - 2) MTTR^2), MTTF / N, in years.
        for (survived, partners, hours) in [
            (1, 15, 2e5 * 2e5 / (16.0 * 15.0)),
            (2, 14, 2e5f64.powi(3) / (16.0 * 15.0 * 14.0)),
            (0, 16, 2e5 / 16.0),
        ] {
            let found = loss(array(16, survived, partners), SURE, 1.0);
            assert!(
                (found.mttdl_years * YEAR_HOURS / hours - 1.0).abs() < 1e-6,
                "{survived}: {found:?}"
            );
        }
    }

    /// Returns the value of a formula of numbers, `x`, `/`, `+` and parentheses.
    fn value(text: &str) -> f64 {
        let text = text.trim();
        let mut depth = 0;
        let mut places = Vec::new();
        for (place, letter) in text.char_indices() {
            depth += i32::from(letter == '(') - i32::from(letter == ')');
            if depth == 0 {
                places.push((place, letter));
            }
        }
        let split = |of: &[char]| {
            let last = places
                .iter()
                .rev()
                .find(|(place, letter)| *place > 0 && of.contains(letter));
            last.map(|(place, letter)| (value(&text[..*place]), *letter, value(&text[place + 1..])))
        };
        // The sign of an exponent has no blanks around it, so numbers are tried first.
        let number = || text.parse::<f64>().ok();
        if let Some(number) = number() {
            return number;
        }
        match split(&['+']).or_else(|| split(&['x', '/'])) {
            Some((one, '+', other)) => one + other,
            Some((one, 'x', other)) => one * other,
            Some((one, _, other)) => one / other,
            None => value(&text[1..text.len() - 1]),
        }
    }

    #[test]
    fn the_formula_with_its_numbers_is_the_time_that_is_told() {
        let assumed = Assumptions::default();
        for (drives, survived, partners) in [(4, 1, 3), (5, 1, 2), (6, 2, 4), (8, 3, 5), (4, 0, 4)]
        {
            let array = array(drives, survived, partners);
            let found = loss(array, assumed, 17.25);
            let formula = with_numbers(array, assumed, found);
            let years = value(&formula) / YEAR_HOURS;
            assert!(
                (years / found.mttdl_years - 1.0).abs() < 1e-3,
                "{formula}: {years}, {found:?}"
            );
        }
    }

    /// Two RAIDZ2 of four lose data only by three failures in one vdev.
    #[test]
    fn vdevs_lose_data_on_their_own() {
        let assumed = SURE;
        let two = Redundancy {
            group: 4,
            partners: 2,
            ..array(8, 2, 2)
        };
        let found = loss(two, assumed, 1.0);
        let hours = 2e5f64.powi(3) / (8.0 * 3.0 * 2.0);
        assert!((found.mttdl_years * YEAR_HOURS / hours - 1.0).abs() < 1e-6);
        let formula = value(&with_numbers(two, assumed, found)) / YEAR_HOURS;
        assert!((formula / found.mttdl_years - 1.0).abs() < 1e-3);
    }

    #[test]
    fn reading_twelve_terabytes_at_one_bit_in_ten_to_the_fourteen_mostly_fails() {
        // 8 x 12e12 bits: 1 - exp(-0.96) = 0.617.
        let sheet = Assumptions {
            unreadable_bits: 1e14,
            ..SURE
        };
        let found = loss(array(13, 1, 12), sheet, 10.0);
        assert!((found.unreadable_chance - 0.617).abs() < 1e-3, "{found:?}");
        assert!(found.mttdl_years < 0.02 * loss(array(13, 1, 12), SURE, 10.0).mttdl_years);
    }

    proptest! {
        #[test]
        fn longer_repairs_and_less_redundancy_never_lose_less(
            drives in 4u32..60, hours in 0.1..500.0f64, bits in 1e13..1e17f64, mttf in 1e5..3e6f64,
        ) {
            let assumed = Assumptions { mttf_hours: mttf, unreadable_bits: bits, replace_hours: 4.0, ..SURE };
            let of = |survived, hours| loss(array(drives, survived, drives - survived), assumed, hours);
            for survived in 0..3 {
                let (short, long) = (of(survived, hours), of(survived, 2.0 * hours));
                prop_assert!(long.chance_a_year >= short.chance_a_year);
                prop_assert!((0.0..=1.0).contains(&short.chance_a_year) && short.mttdl_years > 0.0);
            }
            prop_assert!(of(1, hours).chance_a_year <= of(0, hours).chance_a_year * (1.0 + 1e-9));
            prop_assert!(of(2, hours).chance_a_year <= of(1, hours).chance_a_year * (1.0 + 1e-9));
        }
    }
}
