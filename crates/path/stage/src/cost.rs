//! Processor time of the stage per request.
//!
//! A model is one file with a type for [`RequestCost`], keys, tests, and one line in [`REGISTRY`].

mod cycles;
mod fixed;
mod governor;

use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, PolicyEntry, find, schema_of};
use fullstroke_units::{Duration, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The cost of requests.
pub trait RequestCost: Send {
    /// Takes a request at `at` and returns the processing time. `at` must not lie before the end of
    /// the previous request.
    fn take(&mut self, at: Time) -> Duration;
    /// Counters, by names of the registry of readings.
    fn readings(&self, _now: Time) -> Vec<(&'static str, f64)> {
        Vec::new()
    }
}

/// Function to build a model from its keys.
pub type BuildCost = fn(&Keys) -> Result<Box<dyn RequestCost>, ConfigError>;

/// Every model.
#[rustfmt::skip]
pub const REGISTRY: &[PolicyEntry<BuildCost>] = &[
    PolicyEntry { name: "fixed", summary: fixed::SUMMARY, schema: schema_of::<fixed::FixedConfig>, build: fixed::build },
    PolicyEntry { name: "cycles", summary: cycles::SUMMARY, schema: schema_of::<cycles::CyclesConfig>, build: cycles::build },
];

/// `cost`: a time, or a model with keys.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected a time such as \"170us\", or a table: { model = \"cycles\", ... }"
)]
pub enum CostKeys {
    /// The same time for each request.
    Time(Duration),
    /// A table: `model` and the model's own keys.
    Model(Keys),
}

impl Default for CostKeys {
    fn default() -> CostKeys {
        CostKeys::Time(Duration::ZERO)
    }
}

impl CostKeys {
    /// The model.
    ///
    /// # Errors
    /// An unknown model, or an impossible key.
    pub fn build(&self) -> Result<Box<dyn RequestCost>, ConfigError> {
        let table = match self {
            CostKeys::Time(time) => return Ok(Box::new(fixed::Fixed::new(*time))),
            CostKeys::Model(table) => table,
        };
        let mut keys = table.clone();
        match keys.remove("model") {
            Some(Value::String(name)) => {
                (find("model of cost", REGISTRY, "model", &name)?.build)(&keys)
            }
            found => {
                let names: Vec<&str> = REGISTRY.iter().map(|entry| entry.name).collect();
                let found = found.map_or("nothing".to_owned(), |found| found.to_string());
                let message = format!(
                    "found {found}; expected one of {}, in quotes",
                    names.join(", ")
                );
                Err(ConfigError::new("model", message))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn build(value: Value) -> Result<Box<dyn RequestCost>, ConfigError> {
        serde_json::from_value::<CostKeys>(value).unwrap().build()
    }

    #[test]
    fn a_time_alone_is_the_fixed_model() {
        for value in [json!("170us"), json!({ "model": "fixed", "time": "170us" })] {
            let mut cost = build(value).unwrap();
            assert_eq!(cost.take(Time::ZERO), Duration::from_micros(170));
        }
    }

    #[test]
    fn what_cannot_be_is_refused_at_its_key() {
        let cycles = |key: &str, value: Value| {
            let mut table = json!({ "model": "cycles", "time": "170us", "cycles": 56_400, "frequencies_mhz": [1400, 2400] });
            table[key] = value;
            table
        };
        for (value, key, part) in [
            (
                json!({}),
                "model",
                "found nothing; expected one of fixed, cycles",
            ),
            (
                json!({ "model": "fxed", "time": "1us" }),
                "model",
                "did you mean `fixed`",
            ),
            (json!({ "model": "fixed" }), "", "the key `time` is missing"),
            (
                json!({ "model": "fixed", "time": "1us", "cycles": 3 }),
                "cycles",
                "unknown key",
            ),
            (
                cycles("cycles", json!(0)),
                "cycles",
                "found 0; expected at least 1",
            ),
            (
                cycles("frequencies_mhz", json!([])),
                "frequencies_mhz",
                "expected one at least",
            ),
            (
                cycles("frequencies_mhz", json!([2400, 1400])),
                "frequencies_mhz",
                "ascending",
            ),
            (
                cycles("frequencies_mhz", json!([0, 1400])),
                "frequencies_mhz",
                "above 0",
            ),
            (
                cycles("governor", json!("conservative")),
                "governor",
                "found `conservative`; expected one of",
            ),
            (
                cycles("waiting", json!("171us")),
                "waiting",
                "no more than `time`",
            ),
            (cycles("sampling", json!("0s")), "sampling", "some time"),
            (
                cycles("up_threshold", json!(10)),
                "up_threshold",
                "found 10; expected 11 to 100",
            ),
        ] {
            let error = build(value.clone()).err().unwrap();
            assert_eq!(error.key, key, "{value}: {error}");
            assert!(error.message.contains(part), "{error}");
        }
    }
}
