//! An idle time that learns: longer after a stop that did not pay, shorter after a stop that paid
//! (after Douglis, Krishnan and Bershad, Adaptive disk spin-down policies for mobile computers,
//! 1995).

use super::{Costs, SpinDown, check_after, keys};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::Keys;
use fullstroke_units::{Duration, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(super) const SUMMARY: &str =
    "waits longer behind a stop that was too short to pay, shorter behind one that did";

/// Keys of the policy.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Idle time at the beginning.
    pub after: Duration,
    /// Shortest idle time. Default: the time to stop and to start.
    #[serde(default)]
    pub least: Option<Duration>,
    /// Longest idle time. Default: one hour.
    #[serde(default = "an_hour")]
    pub most: Duration,
    /// Shortest time from the start of a stop to the next need of the platters for which the stop
    /// pays. Default: the break-even time.
    #[serde(default)]
    pub pays: Option<Duration>,
    /// Factor of the idle time after a stop that did not pay. Default 2.
    #[serde(default = "two")]
    pub longer: f64,
    /// Divisor of the idle time after a stop that paid. Default 1.25. A value above `longer` would
    /// let the idle time swing for ever.
    #[serde(default = "a_quarter_more")]
    pub shorter: f64,
}

fn an_hour() -> Duration {
    Duration::from_secs(3600)
}

fn two() -> f64 {
    2.0
}

fn a_quarter_more() -> f64 {
    1.25
}

struct Adaptive {
    after: Duration,
    least: Duration,
    most: Duration,
    pays: Duration,
    longer: f64,
    shorter: f64,
}

pub(super) fn build(own: &Keys, costs: &Costs) -> Result<Box<dyn SpinDown>, ConfigError> {
    let Config {
        after,
        least,
        most,
        pays,
        longer,
        shorter,
    } = keys(own)?;
    let least = least.unwrap_or(costs.round_trip);
    check_after("least", least, costs)?;
    if !(least..=most).contains(&after) {
        let message = format!(
            "found {} s; expected `least`, {} s, to `most`, {} s",
            after.as_secs_f64(),
            least.as_secs_f64(),
            most.as_secs_f64()
        );
        return Err(ConfigError::new("after", message));
    }
    for (key, factor) in [("longer", longer), ("shorter", shorter)] {
        if !(factor.is_finite() && factor > 1.0 && factor <= 100.0) {
            return Err(ConfigError::new(
                key,
                format!("found {factor}; expected more than 1, up to 100"),
            ));
        }
    }
    if shorter > longer {
        let message =
            format!("found {shorter}; more than `longer`, {longer}, lets the time swing for ever");
        return Err(ConfigError::new("shorter", message));
    }
    let Some(pays) = pays.or(costs.break_even) else {
        let message =
            "missing, and the drive's file does not say what it draws, from which it would follow";
        return Err(ConfigError::new("pays", message));
    };
    Ok(Box::new(Adaptive {
        after,
        least,
        most,
        pays,
        longer,
        shorter,
    }))
}

impl SpinDown for Adaptive {
    fn stops_at(&self, idle: Time) -> Time {
        idle + self.after
    }

    fn least_idle(&self) -> Duration {
        self.least
    }

    fn woken(&mut self, away: Duration) {
        let seconds = self.after.as_secs_f64();
        let seconds = if away < self.pays {
            seconds * self.longer
        } else {
            seconds / self.shorter
        };
        self.after = Duration::from_secs_f64(seconds).clamp(self.least, self.most);
    }
}
