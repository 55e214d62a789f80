//! What a stack serves: one workload, several side by side, or clients.

use crate::StackError;
use crate::document::Document;
use crate::workload::{Kind, REGISTRY, Workload, WorkloadError, kind_of, names, no_workload, read_workload};
use fullstroke_contract::registry::{Entry, Keys, known_keys, read, schema_of};
use fullstroke_contract::{ConfigError, Source};
use fullstroke_units::{Duration, Sectors, Seed};
use fullstroke_workload::{Part, SideBySide};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::path::Path;

/// The tables `[workload]` or `[[workloads]]` of a stack.
pub(crate) enum Workloads {
    /// None in the file: whoever serves the stack has clients.
    Clients,
    /// One.
    One(Box<dyn Workload>),
    /// Several, side by side.
    Several(Vec<NamedWorkload>),
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
pub(crate) struct NamedWorkload {
    keys: WorkloadKeys,
    workload: Box<dyn Workload>,
}

/// A process number of a trace is below this: `PID_MAX_LIMIT` of Linux
/// (`include/linux/threads.h`).
const PROCESSES_MAX: u32 = 1 << 22;

impl Workloads {
    /// Reads what the document says of them; files that they name lie in
    /// `folder`.
    ///
    /// # Errors
    /// At the key of what cannot be, or of a file that says so.
    pub(crate) fn read(document: &Document, folder: &Path) -> Result<Workloads, StackError> {
        let several = document.values().get("workloads");
        match (document.values().get("workload"), several) {
            (Some(_), Some(_)) => {
                let message = "found beside [workload]; give one of the two";
                Err(document.error(ConfigError::new("workloads", message)))
            }
            (None, Some(Value::Array(items))) => read_several(items, document, folder),
            (None, Some(other)) => {
                let message = format!("found {other}; expected [[workloads]]");
                Err(document.error(ConfigError::new("workloads", message)))
            }
            (_, None) => {
                let keys = document.section("workload").map_err(|error| document.error(error))?;
                read_one(&keys, folder).map_err(|error| error.at("workload", document))
            }
        }
    }

    /// What issues the requests on a volume of `capacity`.
    ///
    /// # Errors
    /// At the workload's key, or its file's.
    pub(crate) fn source(
        &self,
        capacity: Sectors,
        seed: Seed,
        document: &Document,
    ) -> Result<Box<dyn Source>, StackError> {
        match self {
            Workloads::Clients => Err(document.error(no_workload().below("workload"))),
            Workloads::One(one) => one.source(capacity, seed).map_err(|error| error.at("workload", document)),
            Workloads::Several(several) => {
                let parts = parts(several, capacity, seed);
                let source = parts.map(|parts| Box::new(SideBySide::new(parts)) as _);
                source.map_err(|(index, error)| error.at(&format!("workloads[{index}]"), document))
            }
        }
    }

    /// The workload, where there is one alone.
    pub(crate) fn one(&self) -> Option<&dyn Workload> {
        match self {
            Workloads::One(one) => Some(&**one),
            _ => None,
        }
    }

    /// The names of the processes of all, in order.
    pub(crate) fn process_names(&self) -> Vec<String> {
        match self {
            Workloads::Clients => Vec::new(),
            Workloads::One(one) => one.process_names(),
            Workloads::Several(several) => {
                several.iter().flat_map(|named| named.workload.process_names()).collect()
            }
        }
    }

    /// The names of several, by their index.
    pub(crate) fn names(&self) -> Vec<String> {
        match self {
            Workloads::Several(several) => several.iter().map(|named| named.keys.name.clone()).collect(),
            _ => Vec::new(),
        }
    }

    /// Changes their tables in `values` for the digest of the stack.
    pub(crate) fn identify(&self, values: &mut Map<String, Value>) {
        match self {
            Workloads::Clients => {}
            Workloads::One(one) => values.get_mut("workload").into_iter().for_each(|keys| one.identify(keys)),
            Workloads::Several(several) => {
                let items = values.get_mut("workloads").and_then(Value::as_array_mut).into_iter().flatten();
                several.iter().zip(items).for_each(|(named, keys)| named.workload.identify(keys));
            }
        }
    }
}

fn read_one(keys: &Keys, folder: &Path) -> Result<Workloads, WorkloadError> {
    if keys.is_empty() {
        return Ok(Workloads::Clients);
    }
    read_workload(kind_of(keys)?, keys, folder).map(Workloads::One)
}

fn read_several(items: &[Value], document: &Document, folder: &Path) -> Result<Workloads, StackError> {
    let mut several: Vec<NamedWorkload> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let named = read_named(item, &several, folder);
        several.push(named.map_err(|error| error.at(&format!("workloads[{index}]"), document))?);
    }
    if several.iter().all(|named| named.keys.background) {
        let message = "every workload is in the background, so that nothing ends the run; \
                       leave out `background = true` in one";
        return Err(document.error(ConfigError::new("workloads", message)));
    }
    Ok(Workloads::Several(several))
}

/// Reads one of several, behind these.
fn read_named(item: &Value, before: &[NamedWorkload], folder: &Path) -> Result<NamedWorkload, WorkloadError> {
    let Value::Object(keys) = item else {
        return Err(ConfigError::new("", format!("found {item}; expected a table")).into());
    };
    let mut of_kind = keys.clone();
    let own = known_keys(&schema_of::<WorkloadKeys>());
    let own = own.into_iter().filter_map(|key| Some((of_kind.remove(&key)?, key)));
    let own: WorkloadKeys = read(&own.map(|(value, key)| (key, value)).collect())?;
    check_name(&own.name)?;
    let kind = kind_of(&of_kind)?;
    check_beside_others(kind)?;
    let workload = read_workload(kind, &of_kind, folder)?;
    if before.iter().any(|other| other.keys.name == own.name) {
        let message = format!("found `{}` twice; workloads are told apart by name", own.name);
        return Err(ConfigError::new("name", message).into());
    }
    Ok(NamedWorkload { keys: own, workload })
}

/// It is a part of metrics' names, and of paths.
fn check_name(name: &str) -> Result<(), ConfigError> {
    let plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_');
    if name.is_empty() || !name.chars().all(plain) {
        return Err(ConfigError::new("name", format!("found `{name}`; expected letters, digits, - and _")));
    }
    Ok(())
}

fn check_beside_others(kind: &Entry<Kind>) -> Result<(), ConfigError> {
    if !kind.build.alone {
        return Ok(());
    }
    let message = format!(
        "found `{}`; workloads that have results of their own run alone ({}); expected one of {}",
        kind.name,
        names(REGISTRY.iter().filter(|kind| kind.build.alone)),
        names(REGISTRY.iter().filter(|kind| !kind.build.alone)),
    );
    Err(ConfigError::new("kind", message))
}

/// The sources of several workloads. Each has a seed of its own by its name, so
/// that one more does not change what the others do. An error names the index
/// of its workload.
fn parts(
    several: &[NamedWorkload],
    capacity: Sectors,
    seed: Seed,
) -> Result<Vec<Part>, (usize, WorkloadError)> {
    let mut named_processes = 0;
    let mut part = |(index, NamedWorkload { keys, workload }): (usize, &NamedWorkload)| {
        let seed = seed.of(&format!("workload {}", keys.name));
        let source = workload.source(capacity, seed).map_err(|error| (index, error))?;
        // Processes with names are numbered through, as results count them; those
        // of a trace lie above all of them.
        let first_process = match workload.process_names().len() as u32 {
            0 => (index as u32 + 1).saturating_mul(PROCESSES_MAX),
            named => {
                named_processes += named;
                named_processes - named
            }
        };
        Ok(Part { source, start: keys.start, background: keys.background, first_process })
    };
    several.iter().enumerate().map(&mut part).collect()
}
