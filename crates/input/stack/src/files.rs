//! The list of files from which a stack is read, and the text of a changed stack file.

use crate::folder::Folder;
use crate::{Document, Overrides, StackError};
use fullstroke_trace::FileKind;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Returns the files of the stack file at `path`: the file itself, and the files named by its
/// values, such as traces, job files and drive files. Errors are not reported here; the list is as
/// long as possible. [`Stack::load`](crate::Stack::load) reports the errors of a stack.
pub fn files(path: &Path, overrides: &Overrides) -> Vec<PathBuf> {
    let source = &overrides.files;
    let mut files = vec![path.to_owned()];
    // An error of the file is reported where the file is loaded.
    let Ok(mut document) = Document::read_in(source, path) else {
        return files;
    };
    if overrides.apply(&mut document).is_err() {
        return files;
    }
    let folder = Folder::of(path, source);
    let is_plain = |file: &Path| source.kind(file) == FileKind::Plain;
    let mut names = Vec::new();
    document
        .values()
        .values()
        .for_each(|value| strings(value, &mut names));
    for name in names {
        // A `#` separates the file from the name of one of its disks.
        let file = folder.join(name.split('#').next().unwrap_or(name));
        let each = if is_plain(&file) {
            Ok(vec![file])
        } else {
            // The name of a blktrace is no file: the files have the number of the processor behind
            // it.
            fullstroke_trace::files_in(source, &file)
        };
        files.extend(
            each.unwrap_or_default()
                .into_iter()
                .filter(|file| is_plain(file)),
        );
    }
    files
}

/// Returns the stack file at `path` with all changes of `overrides` written into the text.
///
/// # Errors
/// If the file cannot be read, or a change is impossible.
pub fn resolved(path: &Path, overrides: &Overrides) -> Result<String, StackError> {
    let mut document = Document::read_in(&overrides.files, path)?;
    overrides.apply(&mut document)?;
    toml::to_string(document.values())
        .map_err(|error| StackError::whole(path.display().to_string(), error.to_string()))
}

fn strings<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::String(text) if !text.is_empty() => found.push(text),
        Value::Array(items) => items.iter().for_each(|item| strings(item, found)),
        Value::Object(table) => table.values().for_each(|value| strings(value, found)),
        _ => {}
    }
}
