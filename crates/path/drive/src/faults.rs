//! Faulty writes that the drive reports as done: lost, torn and misdirected writes (*Pro-active
//! storage systems*, 2012, section 5.6.1).
//!
//! A **lost** write changes nothing. A **torn** write ends before the last sector. A
//! **misdirected** write lands on other sectors and destroys their data. The drive reports no
//! error: a later read delivers the content of the medium as if the content were right. Only a read
//! with the hint [`verify`](fullstroke_contract::Hints::verify) is compared with the last written
//! data. Such a read answers [`Differs`](fullstroke_contract::RequestStatus::Differs) if the data
//! differ.
//!
//! The model keeps neither bytes nor versions of good sectors. A sector is *wrong* while the sector
//! does not hold the data last written to that address. A good write makes the written sectors
//! right. A faulty write makes some of them wrong, and perhaps other sectors too.

use fullstroke_contract::{ConfigError, Extent, LayerReadings};
use fullstroke_units::{Random, Sectors, Seed, map_of};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Configuration of the faulty writes of a drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FaultsConfig {
    /// Share of writes with a random fault, 0 to 1. Default 0.
    pub rate: f64,
    /// Weight of lost writes among the random faults. Default 1.
    pub lost: f64,
    /// Weight of torn writes. Default 1.
    pub torn: f64,
    /// Weight of misdirected writes. Default 1.
    pub misdirected: f64,
    /// Distance in sectors from the right address to the address of a misdirected write. Behind the
    /// last sector, the address continues at 0. Default 1024.
    pub distance: u64,
    /// Seed of the random numbers; drives with the same seed draw the same numbers.
    pub seed: u64,
    /// Addresses whose first write goes wrong.
    pub at: Vec<FaultAt>,
}

/// An address whose first write goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FaultAt {
    /// The sector.
    pub lbn: u64,
    /// Fault of the first write to the sector.
    pub kind: FaultKind,
}

/// Kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// The medium keeps the old data.
    Lost,
    /// Only the first sectors are written.
    Torn,
    /// The data land on other sectors.
    Misdirected,
}

impl Default for FaultsConfig {
    fn default() -> FaultsConfig {
        FaultsConfig {
            rate: 0.0,
            lost: 1.0,
            torn: 1.0,
            misdirected: 1.0,
            distance: 1024,
            seed: 1,
            at: Vec::new(),
        }
    }
}

/// The state of a medium with faulty writes.
#[derive(Clone, Debug)]
pub(crate) struct Faults {
    config: FaultsConfig,
    capacity: Sectors,
    random: Random,
    /// Wrong sectors. Maps the first sector of each run to the end of the run (exclusive).
    wrong: BTreeMap<u64, u64>,
    /// Configured addresses whose faulty write is still to come.
    due: BTreeMap<u64, FaultKind>,
    pub(crate) counts: FaultCounts,
}

/// Number of faulty writes of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FaultCounts {
    pub lost: u64,
    pub torn: u64,
    pub misdirected: u64,
}

impl Faults {
    /// Creates the faults of a drive with `capacity`.
    ///
    /// # Errors
    /// Fails if the rate is not between 0 and 1, a weight is negative, or all weights are 0. Fails
    /// if an address or the distance exceeds the capacity.
    pub fn new(config: &FaultsConfig, capacity: Sectors) -> Result<Faults, ConfigError> {
        let FaultsConfig {
            rate,
            lost,
            torn,
            misdirected,
            distance,
            seed,
            ..
        } = *config;
        if !(0.0..=1.0).contains(&rate) {
            return Err(ConfigError::new(
                "rate",
                format!("found {rate}; expected 0 to 1"),
            ));
        }
        for (key, weight) in [("lost", lost), ("torn", torn), ("misdirected", misdirected)] {
            if !(weight.is_finite() && weight >= 0.0) {
                return Err(ConfigError::new(
                    key,
                    format!("found {weight}; expected 0 or more"),
                ));
            }
        }
        if rate > 0.0 && lost + torn + misdirected <= 0.0 {
            let message = format!(
                "found {rate}, and lost, torn and misdirected are all 0; expected one above"
            );
            return Err(ConfigError::new("rate", message));
        }
        if !(1..capacity.0).contains(&distance) {
            let message = format!(
                "found {distance}; expected 1 to {}, the last sector of the drive",
                capacity.0 - 1
            );
            return Err(ConfigError::new("distance", message));
        }
        if let Some((index, at)) = config
            .at
            .iter()
            .enumerate()
            .find(|(_, at)| at.lbn >= capacity.0)
        {
            let message = format!(
                "found {}; the drive has sectors 0 to {}",
                at.lbn,
                capacity.0 - 1
            );
            return Err(ConfigError::new(format!("at[{index}].lbn"), message));
        }
        Ok(Faults {
            capacity,
            random: Seed(seed).stream("faults"),
            wrong: BTreeMap::new(),
            due: map_of(config.at.iter().map(|at| (at.lbn, at.kind))),
            counts: FaultCounts::default(),
            config: config.clone(),
        })
    }

    /// Records a write of `extent`. The write may go wrong.
    pub fn write(&mut self, extent: Extent) {
        let kind = self.draw(extent);
        let (start, end) = (extent.start.0, extent.end().0);
        match kind {
            None => self.right(start, end),
            Some(FaultKind::Lost) => {
                self.counts.lost += 1;
                self.make_wrong(start, end);
            }
            Some(FaultKind::Torn) => {
                self.counts.torn += 1;
                // A torn write misses the last sector at least.
                let whole = start + self.random.below(extent.sectors.0.max(1));
                self.right(start, whole);
                self.make_wrong(whole, end);
            }
            Some(FaultKind::Misdirected) => {
                self.counts.misdirected += 1;
                self.make_wrong(start, end);
                self.strike(start + self.config.distance, extent.sectors.0);
            }
        }
    }

    /// True if any sector of `extent` is wrong.
    pub fn differs(&self, extent: Extent) -> bool {
        // Runs never overlap, so of all runs before the end, the last one reaches farthest.
        let before = self.wrong.range(..extent.end().0).next_back();
        before.is_some_and(|(_, end)| *end > extent.start.0)
    }

    /// Returns the number of faulty writes and the amount of wrong data.
    pub fn readings(&self) -> LayerReadings {
        let FaultCounts {
            lost,
            torn,
            misdirected,
        } = self.counts;
        let wrong = self.wrong().bytes().0 as f64 / 1e6;
        let counts = [
            ("faults_lost", lost),
            ("faults_torn", torn),
            ("faults_misdirected", misdirected),
        ];
        let mut readings = counts.map(|(name, count)| (name, count as f64)).to_vec();
        readings.push(("faults_wrong_mb", wrong));
        LayerReadings::new("faults", &readings)
    }

    /// Number of wrong sectors.
    pub fn wrong(&self) -> Sectors {
        Sectors(self.wrong.iter().map(|(start, end)| end - start).sum())
    }

    fn draw(&mut self, extent: Extent) -> Option<FaultKind> {
        let due = self.due.range(extent.start.0..extent.end().0).next();
        if let Some((lbn, kind)) = due.map(|(lbn, kind)| (*lbn, *kind)) {
            self.due.remove(&lbn);
            return Some(kind);
        }
        let FaultsConfig {
            rate,
            lost,
            torn,
            misdirected,
            ..
        } = self.config;
        if rate <= 0.0 || !self.random.chance(rate) {
            return None;
        }
        let drawn = self.random.unit() * (lost + torn + misdirected);
        Some(match drawn {
            drawn if drawn < lost => FaultKind::Lost,
            drawn if drawn < lost + torn => FaultKind::Torn,
            _ => FaultKind::Misdirected,
        })
    }

    /// Overwrites sectors from `at` on with foreign data. Addresses wrap at the end of the medium.
    fn strike(&mut self, at: u64, sectors: u64) {
        let capacity = self.capacity.0;
        let start = at % capacity;
        let here = sectors.min(capacity - start);
        self.make_wrong(start, start + here);
        self.make_wrong(0, sectors - here);
    }

    fn make_wrong(&mut self, start: u64, end: u64) {
        // Older runs give way first, because runs never overlap.
        self.right(start, end);
        if start < end {
            assert!(
                end <= self.capacity.0,
                "sectors {start} to {end} go wrong on a drive of {}",
                self.capacity
            );
            let other = self.wrong.insert(start, end);
            assert!(
                other.is_none(),
                "two runs of wrong sectors begin at {start}"
            );
        }
    }

    fn right(&mut self, start: u64, end: u64) {
        if start >= end {
            return;
        }
        while let Some((&from, &to)) = self
            .wrong
            .range(..end)
            .next_back()
            .filter(|(_, to)| **to > start)
        {
            self.wrong.remove(&from);
            if to > end {
                self.wrong.insert(end, to);
            }
            if from < start {
                self.wrong.insert(from, start);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CAPACITY: u64 = 500;

    fn faults(config: FaultsConfig) -> Faults {
        Faults::new(&config, Sectors(CAPACITY)).unwrap()
    }

    fn at(lbn: u64, kind: FaultKind) -> FaultsConfig {
        FaultsConfig {
            at: vec![FaultAt { lbn, kind }],
            distance: 100,
            ..FaultsConfig::default()
        }
    }

    #[test]
    fn the_first_write_of_an_address_goes_wrong_and_the_next_mends_it() {
        for (kind, elsewhere) in [
            (FaultKind::Lost, false),
            (FaultKind::Torn, false),
            (FaultKind::Misdirected, true),
        ] {
            let mut faults = faults(at(12, kind));
            faults.write(Extent::new(0, 8));
            assert_eq!(faults.wrong(), Sectors::ZERO, "another address");
            faults.write(Extent::new(8, 8));
            assert!(faults.differs(Extent::new(15, 1)), "{kind:?}");
            assert!(!faults.differs(Extent::new(16, 84)) && !faults.differs(Extent::new(0, 8)));
            assert_eq!(faults.differs(Extent::new(108, 8)), elsewhere);
            faults.write(Extent::new(8, 8));
            assert!(!faults.differs(Extent::new(0, 100)), "{kind:?}");
            assert_eq!(faults.wrong(), Sectors(if elsewhere { 8 } else { 0 }));
        }
    }

    #[test]
    fn a_share_of_writes_goes_wrong_the_same_with_each_run() {
        let config = FaultsConfig {
            rate: 0.1,
            torn: 0.0,
            ..FaultsConfig::default()
        };
        let config = FaultsConfig {
            distance: 7,
            ..config
        };
        let run = || {
            let mut faults = faults(config.clone());
            (0..10_000).for_each(|step| faults.write(Extent::new(step * 8 % 400, 8)));
            faults
        };
        let (first, again) = (run(), run());
        assert_eq!((first.counts, &first.wrong), (again.counts, &again.wrong));
        let FaultCounts {
            lost,
            torn,
            misdirected,
        } = first.counts;
        assert!(
            (900..1100).contains(&(lost + misdirected)) && torn == 0,
            "{:?}",
            first.counts
        );
    }

    #[test]
    fn what_cannot_be_is_refused_at_its_key() {
        let no_weights = FaultsConfig {
            rate: 0.5,
            lost: 0.0,
            torn: 0.0,
            misdirected: 0.0,
            ..FaultsConfig::default()
        };
        for (config, key) in [
            (
                FaultsConfig {
                    rate: 1.5,
                    ..FaultsConfig::default()
                },
                "rate",
            ),
            (
                FaultsConfig {
                    rate: f64::NAN,
                    ..FaultsConfig::default()
                },
                "rate",
            ),
            (
                FaultsConfig {
                    lost: -1.0,
                    ..FaultsConfig::default()
                },
                "lost",
            ),
            (no_weights, "rate"),
            (
                FaultsConfig {
                    distance: 500,
                    ..FaultsConfig::default()
                },
                "distance",
            ),
            (
                FaultsConfig {
                    distance: 0,
                    ..FaultsConfig::default()
                },
                "distance",
            ),
            (
                FaultsConfig {
                    distance: 9,
                    ..at(500, FaultKind::Lost)
                },
                "at[0].lbn",
            ),
        ] {
            assert_eq!(
                Faults::new(&config, Sectors(CAPACITY)).unwrap_err().key,
                key,
                "{config:?}"
            );
        }
    }

    proptest! {
        /// Compares the wrong sectors with a model that keeps a version of each sector.
        #[test]
        fn wrong_is_what_does_not_hold_its_newest_version(
            writes in prop::collection::vec((0u64..480, 1u64..20), 1..60), rate in 0.0f64..1.0, distance in 1u64..499,
        ) {
            let mut faults = faults(FaultsConfig { rate, distance, ..FaultsConfig::default() });
            // For each sector, the version that was written last and the version that the sector
            // holds.
            let (mut meant, mut holds) = (vec![(0, 0); 500], vec![(0, 0); 500]);
            for (version, &(start, sectors)) in (1u64..).zip(&writes) {
                let before = (faults.counts, faults.clone());
                faults.write(Extent::new(start, sectors));
                let sector = |at: u64| ((start + at) % 500) as usize;
                (0..sectors).for_each(|at| meant[sector(at)] = (version, at));
                let after = faults.counts;
                let whole = if after.lost > before.0.lost || after.misdirected > before.0.misdirected {
                    0
                } else if after.torn > before.0.torn {
                    (0..sectors).take_while(|&at| !faults.differs(Extent::new(start + at, 1))).count() as u64
                } else {
                    sectors
                };
                prop_assert!(after.torn == before.0.torn || whole < sectors, "a torn write misses some");
                (0..whole).for_each(|at| holds[sector(at)] = (version, at));
                if after.misdirected > before.0.misdirected {
                    // Data written to the wrong address are never the right data of that address.
                    (0..sectors).for_each(|at| holds[sector(at + distance)] = (u64::MAX, version));
                }
            }
            for at in 0..500 {
                let differs = faults.differs(Extent::new(at as u64, 1));
                prop_assert_eq!(differs, meant[at] != holds[at], "sector {}", at);
            }
            let wrong = (0..500).filter(|&at| meant[at] != holds[at]).count() as u64;
            prop_assert_eq!(faults.wrong(), Sectors(wrong));
        }
    }
}
