//! The workload of a stack file, by its kind.

use crate::FioConfig;
use fullstroke_contract::registry::{self, Keys, check_known, known_keys, read, schema_of};
use fullstroke_contract::{ConfigError, Operation};
use fullstroke_trace::{Beyond, Options};
use fullstroke_units::Duration;
use fullstroke_workload::{
    ProcessConfig, ProcessesConfig, StreamsConfig, SyntheticConfig, VariationConfig, WeightedBitRate,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::PathBuf;

/// A trace as a workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TraceConfig {
    /// The file; relative to the stack file.
    pub path: PathBuf,
    /// Its format; recognised unless said.
    pub format: Option<String>,
    /// Only these devices; all unless said.
    #[serde(default)]
    pub devices: Vec<u32>,
    /// Only these operations; all unless said.
    #[serde(default)]
    pub operations: Vec<Operation>,
    /// Only requests from this time after the first on.
    #[serde(default)]
    pub from: Duration,
    /// Only requests before this time after the first.
    pub to: Option<Duration>,
    /// Arrivals are multiplied by this: 0.5 is twice the load.
    #[serde(default = "unscaled")]
    pub time_scale: f64,
    /// What to do with addresses beyond the volume.
    #[serde(default)]
    pub beyond: BeyondConfig,
    /// Tolerate, and count, this many damaged rows.
    #[serde(default)]
    pub skip_bad: u64,
    /// End after this many requests.
    pub requests: Option<u64>,
    /// Replay closed, with so many requests outstanding, in place of the
    /// trace's own times.
    pub outstanding: Option<u32>,
}

/// What to do with addresses beyond the volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BeyondConfig {
    /// It is an error.
    #[default]
    Reject,
    /// Modulo the capacity.
    Wrap,
    /// In proportion.
    Scale,
}

fn unscaled() -> f64 {
    1.0
}

impl TraceConfig {
    /// The reader's options, but for the volume's capacity.
    pub(crate) fn options(&self) -> Options {
        Options {
            format: self.format.clone(),
            devices: self.devices.clone(),
            operations: self.operations.clone(),
            from: self.from,
            to: self.to,
            time_scale: self.time_scale,
            beyond: match self.beyond {
                BeyondConfig::Reject => Beyond::Reject,
                BeyondConfig::Wrap => Beyond::Wrap,
                BeyondConfig::Scale => Beyond::Scale,
            },
            skip_bad: self.skip_bad,
            ..Options::default()
        }
    }
}

/// The workload of a stack.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum WorkloadConfig {
    Trace(TraceConfig),
    Synthetic(SyntheticConfig),
    Processes(ProcessesConfig),
    Streams(StreamsConfig),
    Fio(FioConfig),
    /// Several, side by side.
    Several(Vec<NamedWorkload>),
    /// None in the file: whoever serves the stack has clients.
    Clients,
}

/// One of several workloads: keys that each has beside those of its kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkloadKeys {
    /// What it is called in results: `workloads.NAME.response_ms.p99`.
    pub name: String,
    /// When it begins.
    #[serde(default)]
    pub start: Duration,
    /// Whether the run ends without waiting for it.
    #[serde(default)]
    pub background: bool,
}

/// One of several workloads.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NamedWorkload {
    pub(crate) keys: WorkloadKeys,
    pub(crate) workload: WorkloadConfig,
}

/// The kinds of workload.
const WORKLOADS: &[&str] = &["trace", "synthetic", "processes", "streams", "fio"];

pub(crate) fn read_workload(keys: &Keys) -> Result<WorkloadConfig, ConfigError> {
    let mut keys = keys.clone();
    match keys.remove("kind").as_ref().and_then(Value::as_str) {
        Some("trace") => match read::<TraceConfig>(&keys)? {
            TraceConfig { outstanding: Some(0), .. } => {
                Err(ConfigError::new("outstanding", "found 0; expected at least 1, or leave it out"))
            }
            trace => Ok(WorkloadConfig::Trace(trace)),
        },
        Some("synthetic") => read(&keys).map(WorkloadConfig::Synthetic),
        Some("processes") => read_processes(&keys).map(WorkloadConfig::Processes),
        Some("streams") => read_streams(&keys).map(WorkloadConfig::Streams),
        Some("fio") => read(&keys).map(WorkloadConfig::Fio),
        Some(other) => Err(ConfigError::new(
            "kind",
            format!(
                "there is no workload `{other}`{}; known: {}",
                registry::nearest(other, WORKLOADS),
                WORKLOADS.join(", ")
            ),
        )),
        None if keys.is_empty() => Ok(WorkloadConfig::Clients),
        None => Err(no_workload()),
    }
}

/// Reads `[[workloads]]`.
pub(crate) fn read_workloads(value: &Value) -> Result<WorkloadConfig, ConfigError> {
    let Value::Array(items) = value else {
        return Err(ConfigError::new("workloads", format!("found {value}; expected [[workloads]]")));
    };
    let mut several: Vec<NamedWorkload> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let read = || {
            let named = read_named(item)?;
            let taken = several.iter().any(|other| other.keys.name == named.keys.name);
            if taken {
                let message = format!("found `{}` twice; workloads are told apart by name", named.keys.name);
                return Err(ConfigError::new("name", message));
            }
            Ok(named)
        };
        several.push(read().map_err(|error| error.below(&format!("workloads[{index}]")))?);
    }
    if several.iter().all(|named| named.keys.background) {
        let message = "every workload is in the background, so that nothing ends the run; \
                       leave out `background = true` in one";
        return Err(ConfigError::new("workloads", message));
    }
    Ok(WorkloadConfig::Several(several))
}

fn read_named(item: &Value) -> Result<NamedWorkload, ConfigError> {
    let Value::Object(keys) = item else {
        return Err(ConfigError::new("", format!("found {item}; expected a table")));
    };
    let mut own = Keys::new();
    let mut keys = keys.clone();
    for key in known_keys(&schema_of::<WorkloadKeys>()) {
        own.extend(keys.remove(&key).map(|value| (key, value)));
    }
    let own: WorkloadKeys = read(&own)?;
    // It is a part of metrics' names, and of paths.
    let plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_');
    if own.name.is_empty() || !own.name.chars().all(plain) {
        let message = format!("found `{}`; expected letters, digits, - and _", own.name);
        return Err(ConfigError::new("name", message));
    }
    if let Some(alone @ ("fio" | "streams")) = keys.get("kind").and_then(Value::as_str) {
        let message = format!(
            "found `{alone}`; fio jobs and media streams have results of their own and run alone; \
             expected trace, synthetic or processes"
        );
        return Err(ConfigError::new("kind", message));
    }
    match read_workload(&keys)? {
        WorkloadConfig::Clients => Err(no_workload()),
        workload => Ok(NamedWorkload { keys: own, workload }),
    }
}

pub(crate) fn no_workload() -> ConfigError {
    let kinds = WORKLOADS.join(", ");
    let message = format!("the stack has no workload; say kind = one of {kinds}, or give --trace or --fio");
    ConfigError::new("kind", message)
}

/// Reads a load of processes entry by entry, so that an unknown key names the
/// nearest one.
fn read_processes(keys: &Keys) -> Result<ProcessesConfig, ConfigError> {
    if let Some(Value::Array(entries)) = keys.get("processes") {
        for (index, entry) in entries.iter().enumerate() {
            if let Value::Object(entry) = entry {
                read::<ProcessConfig>(entry).map_err(|error| error.below(&format!("processes[{index}]")))?;
            }
        }
    }
    read(keys)
}

/// Reads a load of streams table by table, so that an unknown key names the
/// nearest one.
fn read_streams(keys: &Keys) -> Result<StreamsConfig, ConfigError> {
    if let Some(Value::Object(variation)) = keys.get("variation") {
        let known = known_keys(&schema_of::<VariationConfig>());
        check_known(variation, &known).map_err(|error| error.below("variation"))?;
    }
    if let Some(Value::Array(rates)) = keys.get("bit_rates") {
        let known = known_keys(&schema_of::<WeightedBitRate>());
        for (index, rate) in rates.iter().enumerate() {
            if let Value::Object(rate) = rate {
                check_known(rate, &known).map_err(|error| error.below(&format!("bit_rates[{index}]")))?;
            }
        }
    }
    read(keys)
}
