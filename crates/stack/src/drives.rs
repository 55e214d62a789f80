//! The drive library and drive files.

use crate::StackError;
use crate::document::Document;
use fullstroke_contract::registry::read;
use fullstroke_drive::{DriveConfig, Model, checks};
use include_dir::{Dir, include_dir};
use serde_json::{Map, Value};
use std::path::Path;

/// `drives/*.toml` of this project, within the binary.
static LIBRARY: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../drives");

/// The names of the drives in the library, sorted.
pub fn names() -> Vec<&'static str> {
    let mut names: Vec<&str> = LIBRARY
        .files()
        .filter(|file| file.path().extension().is_some_and(|extension| extension == "toml"))
        .filter_map(|file| file.path().file_stem()?.to_str())
        .collect();
    names.sort_unstable();
    names
}

/// The drive called `name` in the library, or described by the file of that
/// path (it ends in `.toml`).
///
/// # Errors
/// Names file, line and key of what cannot be, the nearest name of an unknown
/// drive, and the first check that the description fails (see
/// [`fullstroke_drive::checks`]).
pub fn load(name: &str) -> Result<Model, StackError> {
    load_with(name, Path::new(""), &Map::new())
}

/// The same without the checks: for showing which of them fail.
///
/// # Errors
/// As [`load`], for what cannot be read or built.
pub fn load_unchecked(name: &str) -> Result<Model, StackError> {
    let document = document(name, Path::new(""))?;
    model(&document, document.values())
}

/// [`load`], for a stack file in `folder`, with some keys replaced by
/// `settings`.
pub(crate) fn load_with(
    name: &str,
    folder: &Path,
    settings: &Map<String, Value>,
) -> Result<Model, StackError> {
    let document = document(name, folder)?;
    let described = model(&document, document.values())?;
    if let Some(failed) = checks(&described).into_iter().find(|check| !check.passed) {
        let message = format!("{}: found {}, expected {}", failed.name, failed.found, failed.expected);
        return Err(document.error(fullstroke_contract::ConfigError::new(failed.key, message)));
    }
    if settings.is_empty() {
        return Ok(described);
    }
    let mut values = document.values().clone();
    merge(&mut values, settings);
    model(&document, &values)
}

fn document(name: &str, folder: &Path) -> Result<Document, StackError> {
    if Path::new(name).extension().is_some_and(|extension| extension == "toml") {
        return Document::read(&folder.join(name));
    }
    match LIBRARY.get_file(format!("{name}.toml")).and_then(include_dir::File::contents_utf8) {
        Some(text) => Document::parse(format!("drives/{name}.toml"), text),
        None => Err(StackError::whole(
            name,
            format!(
                "there is no such drive in the library{}; `fullstroke drive list` shows them; \
                 a file's name ends in .toml",
                fullstroke_contract::registry::nearest(name, &names())
            ),
        )),
    }
}

fn model(document: &Document, values: &Map<String, Value>) -> Result<Model, StackError> {
    let config: DriveConfig = read(values).map_err(|error| document.error(error))?;
    Model::new(config).map_err(|error| document.error(error))
}

/// Lays `settings` over `values`, table by table.
fn merge(values: &mut Map<String, Value>, settings: &Map<String, Value>) {
    for (key, setting) in settings {
        match (values.get_mut(key), setting) {
            (Some(Value::Object(below)), Value::Object(above)) => merge(below, above),
            _ => {
                values.insert(key.clone(), setting.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_drive_of_the_library_loads_and_passes_its_checks() {
        assert!(names().len() >= 4);
        for name in names() {
            load(name).unwrap_or_else(|error| panic!("{error}"));
        }
    }

    #[test]
    fn an_unknown_drive_names_the_nearest() {
        let error = load("seagate-cheetah-9pl").unwrap_err();
        assert!(error.message.contains("did you mean `seagate-cheetah-9lp`"), "{error}");
    }

    #[test]
    fn a_misspelt_key_names_file_line_and_the_nearest_key() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("drive.toml");
        let text = LIBRARY.get_file("seagate-cheetah-9lp.toml").unwrap().contents_utf8().unwrap();
        std::fs::write(&path, text.replace("head_switch_ms = 0.03", "head_swich_ms = 0.03")).unwrap();
        let error = load(path.to_str().unwrap()).unwrap_err();
        assert!(error.line.is_some() && error.message.contains("did you mean `head_switch_ms`"), "{error}");
    }

    #[test]
    fn settings_replace_single_keys() {
        let settings =
            serde_json::from_str(r#"{"queue": {"discipline": "fcfs"}, "zero_latency": true}"#).unwrap();
        let model = load_with("seagate-cheetah-9lp", Path::new(""), &settings).unwrap();
        assert_eq!(model.config().queue.discipline, "fcfs");
        assert_eq!(model.config().queue.depth, 64);
        assert!(model.config().zero_latency);
    }
}
