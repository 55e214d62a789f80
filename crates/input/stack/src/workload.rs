//! A workload of a stack file, by its kind.
//!
//! A kind is one file: its keys, a type that implements [`Workload`], its
//! entry, and one line in [`REGISTRY`]. Programs are kinds, too, by a registry of
//! their own ([`fullstroke_programs::REGISTRY`]).

mod background;
mod fio;
mod processes;
mod program;
mod streams;
mod synthetic;
mod trace;

#[cfg(test)]
mod conformance;
/// The example of CONTRIBUTING.md, compiled and held to the conformance tests.
#[cfg(test)]
#[path = "../../../../docs/examples/workload.rs"]
mod worked_example;

pub(crate) use trace::parts_of;

use crate::StackError;
use crate::document::Document;
use fullstroke_contract::registry::{Entry, Keys, check_known, find, known_keys};
use fullstroke_contract::{ConfigError, Source};
use fullstroke_programs::Program;
use fullstroke_units::{Duration, Sectors, Seed};
use schemars::Schema;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// A workload as its keys describe it.
pub(crate) trait Workload: Send + Sync {
    /// What issues its requests on a volume of `capacity`, fresh, at time 0.
    fn source(&self, capacity: Sectors, seed: Seed) -> Result<Box<dyn Source>, WorkloadError>;

    /// The program that it is, if it is one: it works on files, and has no source of
    /// its own.
    ///
    /// # Errors
    /// What it was told does not go with files.
    fn program(&self, _seed: Seed) -> Result<Option<StartedAs>, ConfigError> {
        Ok(None)
    }

    /// Changes its keys for the digest of the stack: files are what they say,
    /// not where they lie.
    fn identify(&self, _keys: &mut Value) {}

    /// The names of its processes by their number, which is one more than the
    /// index here; empty where it names none.
    fn process_names(&self) -> Vec<String> {
        Vec::new()
    }

    /// The trace that it replays.
    fn trace_file(&self) -> Option<PathBuf> {
        None
    }

    /// When each request of a trace arrives; `None` if it is no trace.
    fn arrival_times(&self) -> Option<Result<Vec<Duration>, StackError>> {
        None
    }

    /// Whether it is a job file of fio's.
    fn is_job_file(&self) -> bool {
        false
    }

    /// How many media streams it starts.
    fn streams(&self) -> Option<u32> {
        None
    }
}

/// A program at its beginning.
pub(crate) struct StartedAs {
    /// What kind.
    pub(crate) kind: &'static str,
    /// The file that it was read from, if it was.
    pub(crate) file: Option<String>,
    pub(crate) program: Box<dyn Program>,
}

/// Reads a workload from its keys, and the files that they name in a folder if
/// these describe it.
pub(crate) type ReadWorkload = fn(&Keys, &Path) -> Result<Box<dyn Workload>, WorkloadError>;

/// Who reads a workload.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Read {
    /// A function of its own.
    Itself(ReadWorkload),
    /// The program's.
    Program(&'static Entry<fullstroke_programs::Kind>),
}

/// The key of a table within a workload's keys, and its schema.
pub(crate) type Table = (&'static str, fn() -> Schema);

/// How a workload comes about, and what goes with its kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    /// Reads it.
    pub(crate) read: Read,
    /// Tables within its keys, or lists of them.
    pub(crate) tables: &'static [Table],
    /// Whether it has results of its own, so that nothing runs beside it.
    pub(crate) alone: bool,
    /// Keys of a small one, beside `kind`; files are named from the root of the
    /// sources.
    pub(crate) example: &'static str,
}

/// Every kind of workload, those that are programs last.
pub(crate) static REGISTRY: LazyLock<Vec<Entry<Kind>>> = LazyLock::new(|| {
    let own = [
        trace::ENTRY,
        synthetic::ENTRY,
        processes::ENTRY,
        streams::ENTRY,
        fio::ENTRY,
        background::ENTRY,
    ];
    own.into_iter().chain(program::entries()).collect()
});

/// Why there is no workload, or no source of its requests.
#[derive(Debug)]
pub(crate) enum WorkloadError {
    /// One of its keys, seen from its table.
    Key(ConfigError),
    /// A file that it names.
    File(StackError),
}

impl WorkloadError {
    /// The error for whoever wrote the workload at the key `at` of `document`.
    pub(crate) fn at(self, at: &str, document: &Document) -> StackError {
        match self {
            WorkloadError::Key(error) => document.error(error.below(at)),
            WorkloadError::File(error) => error,
        }
    }
}

impl From<ConfigError> for WorkloadError {
    fn from(error: ConfigError) -> WorkloadError {
        WorkloadError::Key(error)
    }
}

impl From<StackError> for WorkloadError {
    fn from(error: StackError) -> WorkloadError {
        WorkloadError::File(error)
    }
}

/// The kind that the key `kind` names.
pub(crate) fn kind_of(keys: &Keys) -> Result<&'static Entry<Kind>, ConfigError> {
    match keys.get("kind") {
        Some(Value::String(name)) => find("workload", &REGISTRY, "kind", name),
        _ => Err(no_workload()),
    }
}

/// Reads a workload of this kind.
pub(crate) fn read_workload(
    kind: &Entry<Kind>,
    keys: &Keys,
    folder: &Path,
) -> Result<Box<dyn Workload>, WorkloadError> {
    let mut own = keys.clone();
    own.remove("kind");
    check_known(&own, &known_keys(&(kind.schema)()))?;
    kind.build
        .tables
        .iter()
        .try_for_each(|&(key, schema)| check_table(&own, key, schema))?;
    match kind.build.read {
        Read::Itself(read) => read(&own, folder),
        Read::Program(entry) => program::read(entry, &own, folder),
    }
}

/// An error that names the nearest known key if a table within the keys, or one
/// of a list, has an unknown one.
fn check_table(keys: &Keys, key: &str, schema: fn() -> Schema) -> Result<(), ConfigError> {
    let check = |value: &Value, at: &str| match value {
        Value::Object(table) => {
            check_known(table, &known_keys(&schema())).map_err(|error| error.below(at))
        }
        // What is no table, reading finds.
        _ => Ok(()),
    };
    match keys.get(key) {
        Some(Value::Array(items)) => {
            let mut each = items.iter().enumerate();
            each.try_for_each(|(index, item)| check(item, &format!("{key}[{index}]")))
        }
        Some(table) => check(table, key),
        None => Ok(()),
    }
}

/// The names of these kinds, for people.
pub(crate) fn names<'a>(kinds: impl Iterator<Item = &'a Entry<Kind>>) -> String {
    kinds.map(|kind| kind.name).collect::<Vec<_>>().join(", ")
}

pub(crate) fn no_workload() -> ConfigError {
    let kinds = names(REGISTRY.iter());
    let message =
        format!("the stack has no workload; say kind = one of {kinds}, or give --trace or --fio");
    ConfigError::new("kind", message)
}
