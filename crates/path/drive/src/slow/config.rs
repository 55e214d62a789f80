//! The keys of a slow drive.

use super::clock::ONE;
use crate::geometry::Geometry;
use fullstroke_contract::ConfigError;
use fullstroke_units::{Duration, Sectors, Seed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ops::Range;

/// Largest factor. A drive slower than this is a drive that stalls.
pub(super) const FACTOR_MAX: f64 = 10_000.0;

/// Largest number of random bad sectors.
const BAD_MAX: u32 = 1_000_000;

/// How a drive is slow, and when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SlowConfig {
    /// Factor by which the drive takes longer while the drive is slow. Default 1: no longer.
    pub factor: f64,
    /// Time in which the drive does nothing, at the beginning of each slow period. Default 0.
    pub stall: Duration,
    /// Start of the first slow period. Default 0.
    pub from: Duration,
    /// Length of a slow period. Default: without end; if `stall` is given without `factor` and bad
    /// sectors, the length of `stall`.
    pub lasts: Option<Duration>,
    /// Mean time from the end of a slow period to the next one. The times are random, from an
    /// exponential distribution. Default: one slow period only.
    pub every: Option<Duration>,
    /// Slow zone, counted from the outer edge from 0. `factor` then holds for requests in the zone
    /// only. Default: the whole drive is slow.
    pub zone: Option<u32>,
    /// Slow addresses: the first sector, and the sector after the last. `factor` then holds for
    /// requests of these sectors only. Default: the whole drive is slow.
    pub lbns: Option<(u64, u64)>,
    /// Bad sectors: each read of one holds the drive for `recovery`. Default none.
    pub bad: Vec<u64>,
    /// Number of further bad sectors at random places, in the slow area if there is one. Default 0.
    pub bad_random: u32,
    /// Time for which the drive retries until a bad sector is read. Needed with bad sectors. A
    /// drive for desktops may retry for two minutes.
    pub recovery: Option<Duration>,
    /// Time after which the drive gives up a read: SCT Error Recovery Control (ACS-3, 8.3), which
    /// makers also call TLER, ERC or CCTL. Drives for NAS: 7s. Default: the drive never gives up.
    pub erc: Option<Duration>,
    /// Seed of the random numbers; drives with the same seed are slow at the same times.
    pub seed: u64,
}

impl Default for SlowConfig {
    fn default() -> SlowConfig {
        SlowConfig {
            factor: 1.0,
            stall: Duration::ZERO,
            from: Duration::ZERO,
            lasts: None,
            every: None,
            zone: None,
            lbns: None,
            bad: Vec::new(),
            bad_random: 0,
            recovery: None,
            erc: None,
            seed: 1,
        }
    }
}

/// The checked keys of a slow drive.
#[derive(Clone, Debug)]
pub(crate) struct Slowness {
    /// Factor in thousandths.
    pub(super) factor: u64,
    /// Sectors with the factor. `None` for the whole drive.
    pub(super) area: Option<Range<u64>>,
    /// Bad sectors.
    pub(super) bad: BTreeSet<u64>,
    pub(super) recovery: Duration,
    pub(super) erc: Option<Duration>,
    pub(super) stall: Duration,
    pub(super) from: Duration,
    /// Length of a period. `None` = without end.
    pub(super) lasts: Option<Duration>,
    pub(super) every: Option<Duration>,
    pub(super) seed: Seed,
}

impl Slowness {
    /// Returns the keys of a drive that is slow by order only.
    pub(crate) fn none() -> Slowness {
        Slowness {
            factor: ONE,
            area: None,
            bad: BTreeSet::new(),
            recovery: Duration::ZERO,
            erc: None,
            stall: Duration::ZERO,
            from: Duration::from_nanos(u64::MAX),
            lasts: None,
            every: None,
            seed: Seed(0),
        }
    }

    /// Returns the same keys with the limit of the drive's retries, unless the keys have one.
    pub(crate) fn giving_up(self, erc: Option<Duration>) -> Slowness {
        let erc = self.erc.or(erc);
        Slowness { erc, ..self }
    }

    /// True if the drive is slow by order only.
    pub(crate) fn is_none(&self) -> bool {
        self.factor == ONE && self.stall == Duration::ZERO && self.bad.is_empty()
    }

    /// True if the drive may answer a read as lost.
    pub(crate) fn loses_reads(&self) -> bool {
        !self.bad.is_empty() && self.erc.is_some_and(|limit| limit < self.recovery)
    }
}

fn refuse<T>(key: &str, message: String) -> Result<T, ConfigError> {
    Err(ConfigError::new(key, message))
}

impl SlowConfig {
    /// Checks the keys for a drive.
    ///
    /// # Errors
    /// Names the key, the value found and the value expected.
    pub(crate) fn check(&self, geometry: &Geometry) -> Result<Slowness, ConfigError> {
        let capacity = geometry.capacity();
        if !(1.0..=FACTOR_MAX).contains(&self.factor) {
            return refuse(
                "factor",
                format!("found {}; expected 1 to {FACTOR_MAX}", self.factor),
            );
        }
        let area = self.area(geometry)?;
        let bad = self.bad_sectors(area.as_ref(), capacity)?;
        if self.factor <= 1.0 && self.stall == Duration::ZERO && bad.is_empty() {
            let message = "found 1, without stall and bad sectors: the drive would not be slow; expected a factor above 1";
            return refuse("factor", message.into());
        }
        if self.stall > Duration::ZERO && area.is_some() {
            let message = format!(
                "found {}; a stall is of the whole drive. Remove zone and lbns, or the stall",
                self.stall
            );
            return refuse("stall", message);
        }
        let lasts = self.period(&bad)?;
        Ok(Slowness {
            factor: (self.factor * 1000.0).round() as u64,
            area,
            bad,
            recovery: self.recovery.unwrap_or_default(),
            erc: self.erc,
            stall: self.stall,
            from: self.from,
            lasts,
            every: self.every,
            seed: Seed(self.seed),
        })
    }

    /// Returns the length of a slow period; `None` for a period without end.
    fn period(&self, bad: &BTreeSet<u64>) -> Result<Option<Duration>, ConfigError> {
        let only_stalls = self.factor <= 1.0 && bad.is_empty();
        let lasts = self.lasts.or(only_stalls.then_some(self.stall));
        if let Some(lasts) = lasts
            && (lasts == Duration::ZERO || lasts < self.stall)
        {
            let message = format!(
                "found {lasts}; expected more than 0, and no less than the stall ({})",
                self.stall
            );
            return refuse("lasts", message);
        }
        match (self.every, lasts) {
            (Some(every), None) => refuse(
                "every",
                format!("found {every}, but the first slow period has no end; give `lasts`"),
            ),
            (Some(Duration::ZERO), _) => refuse("every", "found 0; expected a time above 0".into()),
            _ => Ok(lasts),
        }
    }

    fn area(&self, geometry: &Geometry) -> Result<Option<Range<u64>>, ConfigError> {
        let capacity = geometry.capacity().0;
        match (self.zone, self.lbns) {
            (Some(zone), Some(_)) => refuse(
                "lbns",
                format!("the slow area is zone {zone} already; give one of the two"),
            ),
            (None, None) => Ok(None),
            (None, Some((first, end))) if first < end && end <= capacity => Ok(Some(first..end)),
            (None, Some((first, end))) => {
                let message = format!(
                    "found [{first}, {end}]; expected the first sector and a larger end, at most {capacity}"
                );
                refuse("lbns", message)
            }
            (Some(zone), None) => {
                let zones: Vec<u64> = geometry.zones().map(|zone| zone.sectors.0).collect();
                let Some(&sectors) = zones.get(zone as usize) else {
                    let message = format!(
                        "found {zone}; the drive has the zones 0 to {}",
                        zones.len() - 1
                    );
                    return refuse("zone", message);
                };
                let first: u64 = zones[..zone as usize].iter().sum();
                Ok(Some(first..first + sectors))
            }
        }
    }

    /// Returns the bad sectors.
    fn bad_sectors(
        &self,
        area: Option<&Range<u64>>,
        capacity: Sectors,
    ) -> Result<BTreeSet<u64>, ConfigError> {
        if let Some((index, lbn)) =
            (self.bad.iter().enumerate()).find(|(_, lbn)| **lbn >= capacity.0)
        {
            let message = format!("found {lbn}; the drive has sectors 0 to {}", capacity.0 - 1);
            return refuse(&format!("bad[{index}]"), message);
        }
        let places = area.cloned().unwrap_or(0..capacity.0);
        let room = places.end - places.start;
        if self.bad_random > BAD_MAX || u64::from(self.bad_random) > room / 2 {
            let message = format!(
                "found {}; expected at most {}",
                self.bad_random,
                u64::from(BAD_MAX).min(room / 2)
            );
            return refuse("bad_random", message);
        }
        let mut bad: BTreeSet<u64> = self.bad.iter().copied().collect();
        let wanted = bad.len() + self.bad_random as usize;
        let mut random = Seed(self.seed).stream("bad sectors");
        while bad.len() < wanted {
            bad.insert(places.start + random.below(room));
        }
        match (bad.is_empty(), self.recovery, self.erc) {
            (true, Some(_), _) => refuse(
                "recovery",
                "the drive has no bad sectors to recover; give bad or bad_random".into(),
            ),
            (true, _, Some(_)) => refuse(
                "erc",
                "the drive has no bad sectors to give up; give bad or bad_random".into(),
            ),
            (false, None | Some(Duration::ZERO), _) => refuse(
                "recovery",
                "found none; expected the time for which the drive retries, such as \"20s\"".into(),
            ),
            (false, _, Some(Duration::ZERO)) => {
                refuse("erc", "found 0; expected a time, such as \"7s\"".into())
            }
            _ => Ok(bad),
        }
    }
}
