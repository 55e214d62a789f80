//! A workload of a stack file, by its kind.
//!
//! Each kind has one file with its keys, a type that implements [`Workload`], its entry, and one
//! line in [`REGISTRY`]. Programs are kinds, too, with a registry of their own
//! ([`fullstroke_programs::REGISTRY`]).

mod background;
mod fio;
mod processes;
mod program;
mod streams;
mod synthetic;
mod trace;

#[cfg(test)]
mod conformance;
/// The example of CONTRIBUTING.md, compiled and checked by the conformance tests.
#[cfg(test)]
#[path = "../../../../docs/examples/workload.rs"]
mod worked_example;

pub(crate) use trace::parts_of;

use crate::StackError;
use crate::document::Document;
use crate::folder::Folder;
use fullstroke_contract::registry::{Keys, PolicyEntry, check_known, find, known_keys};
use fullstroke_contract::{ConfigError, Source};
use fullstroke_programs::Program;
use fullstroke_units::{Duration, Sectors, Seed};
use schemars::Schema;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::LazyLock;

/// A workload as described by its keys.
pub(crate) trait Workload: Send + Sync {
    /// Creates the source of the requests on a volume of `capacity`, fresh, at time 0.
    fn source(&self, capacity: Sectors, seed: Seed) -> Result<Box<dyn Source>, WorkloadError>;

    /// Returns the program, if the workload is a program. A program works on files and has no
    /// source of its own.
    ///
    /// # Errors
    /// If a setting of the workload is impossible on files.
    fn program(&self, _seed: Seed) -> Result<Option<StartedAs>, ConfigError> {
        Ok(None)
    }

    /// Changes the keys for the digest of the stack. In the digest, the contents of a file count,
    /// not its path.
    fn identify(&self, _keys: &mut Value) {}

    /// Returns the names of the processes. Process `n` has index `n - 1` here. Empty for a workload
    /// without process names.
    fn process_names(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns the replayed trace.
    fn trace_file(&self) -> Option<PathBuf> {
        None
    }

    /// Returns the arrival time of each request of a trace, in the time of the trace; `None` if the
    /// workload is not a trace.
    fn arrival_times(&self) -> Option<Result<Vec<Duration>, StackError>> {
        None
    }

    /// Returns the seconds that a second of the trace takes in a run: 1 unless `time_scale` is set.
    fn time_scale(&self) -> f64 {
        1.0
    }

    /// Returns true for a job file of fio.
    fn is_job_file(&self) -> bool {
        false
    }

    /// Returns the number of media streams.
    fn streams(&self) -> Option<u32> {
        None
    }
}

/// A program at its start.
pub(crate) struct StartedAs {
    /// Kind of the program.
    pub(crate) kind: &'static str,
    /// File from which the program was read, if there is one.
    pub(crate) file: Option<String>,
    pub(crate) program: Box<dyn Program>,
}

/// Reads a workload from its keys. Files that the keys name are relative to the folder.
pub(crate) type ReadWorkload = fn(&Keys, &Folder) -> Result<Box<dyn Workload>, WorkloadError>;

/// The reader of a workload.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WorkloadReader {
    /// The workload's own function.
    Itself(ReadWorkload),
    /// The reader of programs.
    Program(&'static PolicyEntry<fullstroke_programs::ProgramKind>),
}

/// The key of a table inside a workload's keys, and the schema of the table.
pub(crate) type Table = (&'static str, fn() -> Schema);

/// The properties of a kind of workload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorkloadKind {
    /// Reader of the workload.
    pub(crate) read: WorkloadReader,
    /// Tables, or lists of tables, inside the keys.
    pub(crate) tables: &'static [Table],
    /// True for a workload with results of its own, which cannot run beside others.
    pub(crate) alone: bool,
    /// Keys of a small example, without `kind`. Files are relative to the root of the sources.
    pub(crate) example: &'static str,
}

impl WorkloadKind {
    /// True for a program that works on files.
    pub(crate) fn is_program(&self) -> bool {
        matches!(self.read, WorkloadReader::Program(_))
    }
}

/// All kinds of workload; programs are last.
pub(crate) static REGISTRY: LazyLock<Vec<PolicyEntry<WorkloadKind>>> = LazyLock::new(|| {
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

/// The reason why there is no workload or no source.
#[derive(Debug)]
pub(crate) enum WorkloadError {
    /// Error in one of the workload's keys, relative to its table.
    Key(ConfigError),
    /// Error in a file that the keys name.
    File(StackError),
}

impl WorkloadError {
    /// Returns the error for the user, with the workload at the key `at` of `document`.
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

/// Returns the kind that the key `kind` names.
pub(crate) fn kind_of(keys: &Keys) -> Result<&'static PolicyEntry<WorkloadKind>, ConfigError> {
    match keys.get("kind") {
        Some(Value::String(name)) => find("workload", &REGISTRY, "kind", name),
        _ => Err(no_workload()),
    }
}

/// Reads a workload of this kind.
pub(crate) fn read_workload(
    kind: &PolicyEntry<WorkloadKind>,
    keys: &Keys,
    folder: &Folder,
) -> Result<Box<dyn Workload>, WorkloadError> {
    let mut own = keys.clone();
    own.remove("kind");
    check_known(&own, &known_keys(&(kind.schema)()))?;
    kind.build
        .tables
        .iter()
        .try_for_each(|&(key, schema)| check_table(&own, key, schema))?;
    match kind.build.read {
        WorkloadReader::Itself(read) => read(&own, folder),
        WorkloadReader::Program(entry) => program::read(entry, &own, folder),
    }
}

/// Checks a table inside the keys, or each table of a list, for unknown keys. The error suggests
/// the most similar known key.
fn check_table(keys: &Keys, key: &str, schema: fn() -> Schema) -> Result<(), ConfigError> {
    let check = |value: &Value, at: &str| match value {
        Value::Object(table) => {
            check_known(table, &known_keys(&schema())).map_err(|error| error.below(at))
        }
        // A value that is not a table becomes an error later, when the keys are read.
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

/// Returns the names of these kinds, for messages.
pub(crate) fn names<'a>(kinds: impl Iterator<Item = &'a PolicyEntry<WorkloadKind>>) -> String {
    kinds.map(|kind| kind.name).collect::<Vec<_>>().join(", ")
}

pub(crate) fn no_workload() -> ConfigError {
    let kinds = names(REGISTRY.iter());
    let message =
        format!("the stack has no workload; set kind to one of {kinds}, or give --trace or --fio");
    ConfigError::new("kind", message)
}
