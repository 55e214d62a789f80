//! Closed: a fixed number of outstanding requests.

use super::Arrivals;
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use fullstroke_units::Duration;
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) const SUMMARY: &str =
    "closed: a fixed number of requests outstanding, each followed by another after a think time";

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Config {
    /// Outstanding requests.
    #[serde(default = "one")]
    outstanding: u32,
    /// Time from a completion to the next request.
    #[serde(default)]
    think_time: Duration,
    /// Draw think times from an exponential distribution with the mean `think_time`.
    #[serde(default)]
    exponential: bool,
}

fn one() -> u32 {
    1
}

/// Largest number of outstanding requests. Each takes memory from the start of a run on.
const OUTSTANDING_MAX: u32 = 1 << 20;

pub(super) fn build(keys: &Keys) -> Result<Arrivals, ConfigError> {
    let Config {
        outstanding,
        think_time,
        exponential,
    } = read(keys)?;
    if !(1..=OUTSTANDING_MAX).contains(&outstanding) {
        let message = format!("found {outstanding}; expected 1 to {OUTSTANDING_MAX}");
        return Err(ConfigError::new("outstanding", message));
    }
    Ok(Arrivals::Closed {
        outstanding,
        think_time,
        exponential,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_number_that_takes_all_memory_is_refused() {
        let refused = |outstanding: u64| {
            let keys = json!({ "outstanding": outstanding });
            build(keys.as_object().unwrap())
                .err()
                .map(|error| error.key)
        };
        for outstanding in [0, 1 + u64::from(OUTSTANDING_MAX), u64::from(u32::MAX)] {
            assert_eq!(refused(outstanding).as_deref(), Some("outstanding"));
        }
        assert_eq!(refused(OUTSTANDING_MAX.into()), None);
    }
}
