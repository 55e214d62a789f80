//! What the command line changes in a stack file.

use crate::document::Document;
use crate::{StackError, drives};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

/// What the command line changes in a stack file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overrides {
    /// `key=value`, in order.
    pub set: Vec<String>,
    /// A trace in place of the file's workload; relative to the current folder.
    pub trace: Option<PathBuf>,
    /// A job file of fio's in place of the file's workload; relative to the
    /// current folder.
    pub fio: Option<PathBuf>,
    /// More keys of the trace, such as `beyond` or `time_scale`.
    pub trace_keys: Map<String, Value>,
    /// A drive in place of the file's: a name of the library, or a file,
    /// relative to the current folder.
    pub drive: Option<String>,
    /// Another seed.
    pub seed: Option<u64>,
    /// End the workload after so many requests.
    pub requests: Option<u64>,
}

impl Overrides {
    /// Writes them into the document; `set` comes last.
    ///
    /// # Errors
    /// What cannot be changed, and why.
    pub(crate) fn apply(&self, document: &mut Document) -> Result<(), StackError> {
        self.apply_to_several(document)?;
        if let Some(trace) = &self.trace {
            replace_by_trace(document, trace)?;
        }
        if let Some(fio) = &self.fio {
            put(document, "workload", json!({ "kind": "fio", "path": absolute(fio)? }))?;
        }
        if let Some(drive) = &self.drive {
            put(document, "volume.drive", json!(name_of(drive)))?;
        }
        for (key, value) in &self.trace_keys {
            put(document, &format!("workload.{key}"), value.clone())?;
        }
        if let Some(requests) = self.requests {
            put(document, "workload.requests", json!(requests))?;
        }
        if let Some(seed) = self.seed {
            put(document, "seed", json!(seed))?;
        }
        self.set.iter().try_for_each(|assignment| document.set(assignment))
    }

    /// Where there are several workloads or hosts, a trace or a job file stands in place
    /// of all of them, and a key is nobody's.
    fn apply_to_several(&self, document: &mut Document) -> Result<(), StackError> {
        if self.trace.is_some() || self.fio.is_some() {
            ["workloads", "hosts", "shared"].into_iter().for_each(|key| document.remove(key));
            return Ok(());
        }
        let changed = !self.trace_keys.is_empty() || self.requests.is_some();
        let several =
            [("workloads", "workloads[0].requests=1000"), ("hosts", "hosts[0].workload.requests=1000")];
        let several = several.into_iter().find(|(key, _)| document.values().contains_key(*key));
        match several.filter(|_| changed) {
            None => Ok(()),
            Some((key, example)) => {
                let message =
                    format!("the stack has several {key}; change one with --set, as in --set {example}");
                Err(StackError::whole(document.file(), message))
            }
        }
    }
}

/// Another trace keeps the keys of the one that it replaces, but for the format.
fn replace_by_trace(document: &mut Document, trace: &Path) -> Result<(), StackError> {
    let mut workload = match document.values().get("workload") {
        Some(Value::Object(keys)) if keys.get("kind") == Some(&json!("trace")) => keys.clone(),
        _ => Map::from_iter([("kind".to_owned(), json!("trace"))]),
    };
    workload.insert("path".into(), json!(absolute(trace)?));
    workload.remove("format");
    put(document, "workload", Value::Object(workload))
}

/// One drive has one name in digests, however it was called. A file is named
/// from the current folder, not from the stack's.
fn name_of(drive: &str) -> String {
    let file = drive.split('#').next().is_some_and(|file| Path::new(file).exists());
    let path = std::path::absolute(drive).ok().filter(|_| file);
    let known = || drives::resolve(drive).map_or_else(|_| drive.to_owned(), str::to_owned);
    path.map_or_else(known, |path| path.display().to_string())
}

fn absolute(path: &Path) -> Result<PathBuf, StackError> {
    std::path::absolute(path)
        .map_err(|error| StackError::whole(path.display().to_string(), error.to_string()))
}

fn put(document: &mut Document, key: &str, value: Value) -> Result<(), StackError> {
    document.put(key, value).map_err(|message| StackError::whole(document.file(), message))
}
