//! The kind of a dropped file.

use crate::commands::CommandError;
use fullstroke_fio::JobSet;
use fullstroke_stack::{FileSource, MdArray, facts};
use fullstroke_trace::{TraceOptions, TraceReader, TraceSummary};
use serde_json::{Value, json};
use std::path::Path;

/// Largest number of bytes of a file that is tried as text other than a trace: job files, stacks
/// and outputs of mdadm are smaller.
const TEXT_BYTES_MAX: usize = 1 << 20;

/// Returns the kind of a file: `stack`, `wishes`, `drive`, `fio`, `mdadm` or `trace`, with the facts
/// that a page shows.
pub(crate) fn recognise(files: &FileSource, path: &Path) -> Result<Value, CommandError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let bytes = files
        .read(path)
        .map_err(|error| CommandError::Other(format!("{name}: cannot be read: {error}")))?;
    if bytes.is_empty() {
        return Err(CommandError::Other(format!("{name}: the file is empty")));
    }
    let text = std::str::from_utf8(&bytes).ok();
    if let Some(text) = text.filter(|text| text.len() <= TEXT_BYTES_MAX) {
        if let Some(refusal) = refusal(text) {
            return Err(CommandError::Other(format!("{name}: {refusal}")));
        }
        if let Ok(table) = toml::from_str::<toml::Table>(text)
            && let Some(kind) = kind_of(&table)
        {
            return Ok(json!({ "kind": kind, "title": table.get("title") }));
        }
        if text.contains("Raid Level :") || text.contains(" : active ") {
            return mdadm(&name, text);
        }
        if is_job_file(text) {
            let jobs = JobSet::parse(&name, text, &files.variables());
            let jobs = jobs.map_err(CommandError::other)?;
            return Ok(json!({ "kind": "fio", "of_files": jobs.is_of_files() }));
        }
    }
    drop(bytes);
    let options = TraceOptions {
        files: files.clone(),
        needs_addresses: false,
        ..TraceOptions::default()
    };
    let mut reader = TraceReader::open(path, &options).map_err(CommandError::other)?;
    let summary = TraceSummary::of(&mut reader).map_err(CommandError::other)?;
    Ok(json!({ "kind": "trace", "trace": summary }))
}

fn kind_of(table: &toml::Table) -> Option<&'static str> {
    let has = |key: &str| table.contains_key(key);
    match () {
        () if has("wishes") || has("stack") => Some("wishes"),
        () if ["workload", "workloads", "hosts", "volume"]
            .into_iter()
            .any(has) =>
        {
            Some("stack")
        }
        () if has("zones") => Some("drive"),
        () => None,
    }
}

/// Returns the reason why a known kind of text cannot be used here.
fn refusal(text: &str) -> Option<&'static str> {
    let begins = |word: &str| text.lines().any(|line| line.trim_start().starts_with(word));
    if begins("pool:") && begins("state:") {
        return Some(
            "this is the output of zpool status, and the page knows no pools; expected a stack file, a trace, a fio job or the output of mdadm --detail",
        );
    }
    let is_result = text.contains("\"fio version\"") && text.contains("\"jobs\"");
    is_result.then_some(
        "these are results of fio, and the page needs the job file; the command `fullstroke fit` reads results",
    )
}

/// True if the text has a section and an option that only job files have.
fn is_job_file(text: &str) -> bool {
    let lines = || text.lines().map(str::trim);
    let has_section = lines().any(|line| line.starts_with('[') && line.ends_with(']'));
    let options = ["rw", "readwrite", "ioengine", "bs", "blocksize", "iodepth"];
    let has_option = lines().any(|line| {
        line.split_once('=')
            .is_some_and(|(key, _)| options.contains(&key.trim()))
    });
    has_section && has_option
}

fn mdadm(name: &str, text: &str) -> Result<Value, CommandError> {
    let arrays = MdArray::read(name, text)?;
    let mut found = Vec::new();
    for array in arrays {
        let drive = facts::nearest(array.member_bytes, &array.devices);
        found.push(json!({ "array": array, "drive": drive, "stack": array.to_stack(&drive) }));
    }
    Ok(json!({ "kind": "mdadm", "arrays": found }))
}
