//! Arrival processes: when requests arrive. A process is one file and one line in [`REGISTRY`].

mod bursts;
mod closed;
mod constant;
mod poisson;

use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, PolicyEntry, schema_of};
use fullstroke_units::{Duration, Random};

/// An arrival process.
pub enum Arrivals {
    /// A fixed number of outstanding requests. A completion triggers the next request after
    /// `think_time`.
    Closed {
        /// Outstanding requests.
        outstanding: u32,
        /// Time from a completion to the next request.
        think_time: Duration,
        /// True if `think_time` is the mean of an exponential distribution.
        exponential: bool,
    },
    /// Requests arrive independently of completions.
    Open(Box<dyn OpenProcess>),
}

/// Gaps between open arrivals.
pub trait OpenProcess: Send {
    /// The time from this arrival to the next.
    fn gap(&mut self, random: &mut Random) -> Duration;
}

impl Arrivals {
    pub(crate) fn gap(&mut self, random: &mut Random) -> Duration {
        match self {
            // Completions trigger the requests of a closed load, so no arrival of its own may fall
            // due.
            Arrivals::Closed { .. } => Duration::MAX,
            Arrivals::Open(process) => process.gap(random),
        }
    }
}

/// Builds a process from its keys.
pub type BuildArrivals = fn(&Keys) -> Result<Arrivals, ConfigError>;

/// Every arrival process.
pub const REGISTRY: &[PolicyEntry<BuildArrivals>] = &[
    PolicyEntry {
        name: "closed",
        summary: closed::SUMMARY,
        schema: schema_of::<closed::Config>,
        build: closed::build,
    },
    PolicyEntry {
        name: "constant",
        summary: constant::SUMMARY,
        schema: schema_of::<constant::Config>,
        build: constant::build,
    },
    PolicyEntry {
        name: "poisson",
        summary: poisson::SUMMARY,
        schema: schema_of::<poisson::Config>,
        build: poisson::build,
    },
    PolicyEntry {
        name: "bursts",
        summary: bursts::SUMMARY,
        schema: schema_of::<bursts::Config>,
        build: bursts::build,
    },
];

/// The gap of a rate, or an error at the key `rate_per_s`. The gap is at least a
/// nanosecond: with a gap of zero the time of arrivals would stand still, and a run
/// that ends after a duration would never end.
fn gap_of_rate(rate_per_s: f64) -> Result<Duration, ConfigError> {
    let refuse = |expected: &str| {
        let message = format!("found {rate_per_s}; expected requests a second, {expected}");
        Err(ConfigError::new("rate_per_s", message))
    };
    if !(rate_per_s.is_finite() && rate_per_s > 0.0) {
        return refuse("above 0");
    }
    let gap = Duration::from_secs_f64(1.0 / rate_per_s);
    match gap {
        Duration::ZERO => refuse("at most 1e9, one a nanosecond"),
        Duration::LONGEST => refuse("at least 3.2e-10, one in a hundred years"),
        gap => Ok(gap),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn built(process: &str, keys: serde_json::Value) -> Result<Arrivals, ConfigError> {
        let entry = REGISTRY.iter().find(|entry| entry.name == process).unwrap();
        (entry.build)(keys.as_object().unwrap())
    }

    #[test]
    fn rates_whose_gaps_are_no_span_of_time_are_refused_at_their_key() {
        for process in ["constant", "poisson"] {
            for rate in [0.0, -1.0, 1e-300, 1e-10, 3e9, 1e300] {
                let error = built(process, json!({ "rate_per_s": rate })).err();
                assert_eq!(error.unwrap().key, "rate_per_s", "{process} {rate}");
            }
            for rate in [1e-9, 1e9] {
                assert!(
                    built(process, json!({ "rate_per_s": rate })).is_ok(),
                    "{rate}"
                );
            }
        }
    }

    #[test]
    fn bursts_longer_than_time_are_refused_at_their_key() {
        let keys = json!({ "requests": u32::MAX, "spacing": "876000h", "interval": "876000h" });
        assert_eq!(built("bursts", keys).err().unwrap().key, "interval");
    }
}
