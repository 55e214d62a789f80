//! The policy `read-around`: late data come from the other members.
//!
//! A read is late after a fixed time, or after a percentile of the recent response times. The second
//! is a hedged request (Dean & Barroso, "The Tail at Scale", CACM 56(2), 2013): a delay at the 95th
//! percentile adds about 5 % of load.

use super::LateRule;
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use fullstroke_units::{Duration, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Number of response times that a percentile is taken of.
const RECENT: usize = 1024;
/// Number of response times before the first percentile, and between two percentiles.
const FRESH: usize = 128;

/// Keys of `read-around`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AroundConfig {
    /// Time after which a read of a member is late. Default: by `percentile`.
    pub after: Option<Duration>,
    /// Share of the recent member reads that are not late, above 0 and below 1. The delay is the
    /// response time at this share of the last 1024 reads of all members. Default 0.95.
    pub percentile: Option<f64>,
}

/// Reads around late members.
#[derive(Debug)]
struct LateReadAround {
    delay: Option<Duration>,
    percentile: Option<f64>,
    recent: Vec<Duration>,
    at: usize,
    sorted: Vec<Duration>,
}

impl LateRule for LateReadAround {
    fn reads_around_after(&self) -> Option<Duration> {
        self.delay
    }

    fn ended(&mut self, _: Time, _: usize, response: Duration) -> bool {
        let Some(percentile) = self.percentile else {
            return false;
        };
        if self.recent.len() < RECENT {
            self.recent.push(response);
        } else {
            self.recent[self.at % RECENT] = response;
        }
        self.at += 1;
        // The percentile moves slowly, and a sort for each I/O would cost more than the rest of the
        // rule.
        if self.at.is_multiple_of(FRESH) {
            self.sorted.clear();
            self.sorted.extend_from_slice(&self.recent);
            self.sorted.sort_unstable();
            let place = (percentile * self.sorted.len() as f64) as usize;
            self.delay = self.sorted.get(place.min(self.sorted.len() - 1)).copied();
        }
        false
    }
}

pub(super) fn build(keys: &Keys, _: usize) -> Result<Box<dyn LateRule>, ConfigError> {
    let AroundConfig { after, percentile } = read(keys)?;
    if let (Some(after), Some(percentile)) = (after, percentile) {
        let message = format!("found {percentile} beside after = {after}; give one of the two");
        return Err(ConfigError::new("percentile", message));
    }
    if after == Some(Duration::ZERO) {
        let message = "found 0, at which every read is late; expected a time above 0";
        return Err(ConfigError::new("after", message));
    }
    let percentile = match after {
        Some(_) => None,
        None => Some(percentile.unwrap_or(0.95)),
    };
    if let Some(share) = percentile
        && !(share > 0.0 && share < 1.0)
    {
        let message = format!("found {share}; expected above 0 and below 1");
        return Err(ConfigError::new("percentile", message));
    }
    Ok(Box::new(LateReadAround {
        delay: after,
        percentile,
        recent: Vec::with_capacity(RECENT),
        at: 0,
        sorted: Vec::with_capacity(RECENT),
    }))
}
