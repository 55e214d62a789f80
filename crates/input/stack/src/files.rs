//! Which files a stack is read from.

use crate::{Document, Overrides};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The files that are read for the stack file at `path`: its own, and those that values of it name, as traces, job files
/// and drive files. What is wrong with a stack, [`Stack::load`](crate::Stack::load) tells; here it names what it can.
pub fn files(path: &Path, overrides: &Overrides) -> Vec<PathBuf> {
    let mut files = vec![path.to_owned()];
    let Ok(mut document) = Document::read(path) else {
        return files;
    };
    if overrides.apply(&mut document).is_err() {
        return files;
    }
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut names = Vec::new();
    document
        .values()
        .values()
        .for_each(|value| strings(value, &mut names));
    for name in names {
        // One of several disks of a parameter file stands behind its name.
        let file = folder.join(name.split('#').next().unwrap_or(name));
        let each = if file.is_file() {
            Ok(vec![file])
        } else {
            fullstroke_trace::files_of(&file)
        };
        files.extend(
            each.unwrap_or_default()
                .into_iter()
                .filter(|file| file.is_file()),
        );
    }
    files
}

fn strings<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::String(text) if !text.is_empty() => found.push(text),
        Value::Array(items) => items.iter().for_each(|item| strings(item, found)),
        Value::Object(table) => table.values().for_each(|value| strings(value, found)),
        _ => {}
    }
}
