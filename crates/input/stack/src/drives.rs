//! The drive library and drive files.

#[cfg(feature = "disksim")]
mod disksim;
#[cfg(not(feature = "disksim"))]
#[path = "drives/no_disksim.rs"]
mod disksim;
mod settings;

use crate::document::Document;
use crate::drive_names::DriveNameError;
use crate::folder::Folder;
use crate::{StackError, drive_names};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::read;
use fullstroke_drive::{DriveConfig, DriveModel, checks, complete_flash};
use fullstroke_trace::FileSource;
use include_dir::{Dir, include_dir};
use serde::Serialize as _;
use serde_json::{Map, Value};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Number of models that [`built`] keeps. Comparisons and searches build the same few drives
/// several hundred times. The limit exists because a search over drive settings must not fill the
/// memory with seek tables.
const KEPT_MODELS: usize = 32;

/// The latest models with their descriptions. A model is immutable and shared, so a second drive
/// with the same description needs no second seek table.
static MODELS: Mutex<VecDeque<(DriveConfig, DriveModel)>> = Mutex::new(VecDeque::new());

/// The files `drives/*.toml` of this project, embedded in the binary.
static LIBRARY: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../../drives");

/// Folder of the flash devices in the library.
const FLASH: &str = "flash";

/// Returns the names of the disks in the library, sorted.
pub fn names() -> Vec<&'static str> {
    names_in(&LIBRARY)
}

/// Returns the names of the flash devices in the library, sorted.
pub fn flash_names() -> Vec<&'static str> {
    LIBRARY.get_dir(FLASH).map_or(Vec::new(), names_in)
}

fn names_in(folder: &'static Dir<'static>) -> Vec<&'static str> {
    let mut names: Vec<&str> = folder
        .files()
        .filter(|file| {
            file.path()
                .extension()
                .is_some_and(|extension| extension == "toml")
        })
        .filter_map(|file| file.path().file_stem()?.to_str())
        .collect();
    names.sort_unstable();
    names
}

/// Loads the drive called `name` in the library, or the drive of the file with this path. The file
/// is a drive file of this project (`.toml`) or a file of DiskSim (`.parv`, `.diskspecs`,
/// `.model`). `FILE#BLOCK` names one of several disks in a DiskSim file.
///
/// # Errors
/// Names the file, line and key of the error, the most similar name for an unknown drive, or the
/// first failed check of the description (see [`fullstroke_drive::checks`]).
pub fn load(name: &str) -> Result<DriveModel, StackError> {
    load_with(name, &Folder::default(), &Map::new())
}

/// Like [`load`], for a drive file of `files`.
///
/// # Errors
/// As for [`load`].
pub fn load_in(files: &FileSource, name: &str) -> Result<DriveModel, StackError> {
    load_with(name, &Folder::of(Path::new(""), files), &Map::new())
}

/// Like [`load`], without the checks, to show which checks fail.
///
/// # Errors
/// As for [`load`], if the file cannot be read or the drive cannot be built.
pub fn load_unchecked(name: &str) -> Result<DriveModel, StackError> {
    if let Some(imported) = disksim::imported(name, &Folder::default()) {
        return built(name, imported?);
    }
    let document = document(name, &Folder::default())?;
    model(&document, document.values())
}

/// Returns a drive as the text of a drive file, with `comments` at the top. Each zone is one line,
/// as in the library.
///
/// # Errors
/// If a number does not fit into the format.
pub fn to_toml(config: &DriveConfig, comments: &[String]) -> Result<String, StackError> {
    let fail = |error: toml::ser::Error| StackError::whole(&config.title, error.to_string());
    let mut zones = String::from("zones = [\n");
    for zone in &config.zones {
        let mut row = String::new();
        zone.serialize(toml::ser::ValueSerializer::new(&mut row))
            .map_err(fail)?;
        zones.extend(["  ", &row, ",\n"]);
    }
    zones.push_str("]\n");
    let others = DriveConfig {
        zones: Vec::new(),
        ..config.clone()
    };
    let body = toml::to_string(&others)
        .map_err(fail)?
        // The serializer writes a table for each zone, five lines long; a drive has up to a hundred
        // zones.
        .replacen("zones = []\n", &zones, 1);
    let comments: String = comments
        .iter()
        .map(|comment| format!("# {comment}\n"))
        .collect();
    Ok(format!("{comments}\n{body}"))
}

fn built(file: &str, config: DriveConfig) -> Result<DriveModel, StackError> {
    let fail = |error: ConfigError| StackError {
        line: None,
        file: file.to_owned(),
        key: error.key,
        message: error.message,
    };
    shared(config).map_err(fail)
}

/// Returns the model of a description, from the kept models or newly built.
fn shared(config: DriveConfig) -> Result<DriveModel, ConfigError> {
    // The key is the whole description, because two files may have the same name.
    // A panic of another thread leaves whole entries behind, because an entry is pushed at once.
    let models = || MODELS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, model)) = models().iter().find(|(known, _)| *known == config) {
        return Ok(model.clone());
    }
    // The lock is released here, so that other threads can build other models.
    let model = DriveModel::new(config.clone())?;
    let mut models = models();
    if models.len() == KEPT_MODELS {
        models.pop_front();
    }
    models.push_back((config, model.clone()));
    Ok(model)
}

/// Like [`load`], for a stack file in `folder`, with some keys replaced by `settings`.
pub(crate) fn load_with(
    name: &str,
    folder: &Folder,
    settings: &Map<String, Value>,
) -> Result<DriveModel, StackError> {
    if let Some(imported) = disksim::imported(name, folder) {
        let mut values = match serde_json::to_value(imported?) {
            Ok(Value::Object(values)) => values,
            other => {
                return Err(StackError::whole(
                    name,
                    format!("is not a table: {other:?}"),
                ));
            }
        };
        // Before the merge, which would hide whether a key comes from the file or from the
        // settings.
        settings::prepare(&mut values, settings);
        merge(&mut values, settings);
        let config = read(&values)
            .map_err(|error: ConfigError| StackError::whole(name, error.to_string()))?;
        return built(name, config);
    }
    let document = document(name, folder)?;
    let described = model(&document, document.values())?;
    // The checks come before the settings, because settings may deviate from the data sheet on
    // purpose.
    if let Some(failed) = checks(&described).into_iter().find(|check| !check.passed) {
        let message = format!(
            "{}: found {}, expected {}",
            failed.name, failed.found, failed.expected
        );
        return Err(document.error(ConfigError::new(failed.key, message)));
    }
    if settings.is_empty() {
        return Ok(described);
    }
    let mut values = document.values().clone();
    settings::prepare(&mut values, settings);
    merge(&mut values, settings);
    model(&document, &values)
}

/// Returns true for a drive of the library with shingled tracks, zones or several actuators.
pub(crate) fn is_special(name: &str) -> bool {
    has_one_of(name, &["shingled", "zoned", "actuators"])
}

/// Returns true for a drive of the library whose shingled tracks the drive manages itself.
pub(crate) fn is_shingled(name: &str) -> bool {
    has_one_of(name, &["shingled"])
}

/// Returns true if the file of a drive of the library has one of these keys.
fn has_one_of(name: &str, keys: &[&str]) -> bool {
    let document = document(name, &Folder::default());
    document.is_ok_and(|document| keys.iter().any(|&key| document.values().contains_key(key)))
}

fn document(name: &str, folder: &Folder) -> Result<Document, StackError> {
    if Path::new(name)
        .extension()
        .is_some_and(|extension| extension == "toml")
    {
        return Document::read_in(folder.files(), &folder.join(name));
    }
    let known = resolve(name).map_err(|error| StackError::whole(name, error.to_string()))?;
    let file = file_of(known);
    let text = LIBRARY
        .get_file(&file)
        .and_then(include_dir::File::contents_utf8);
    let text = text.unwrap_or_else(|| unreachable!("`names` lists the library's files"));
    Document::parse(format!("drives/{file}"), text)
}

/// Returns the library's name of the drive that a user means by `name`; see `drive_names.rs`.
pub(crate) fn resolve(name: &str) -> Result<&'static str, DriveNameError> {
    let titles: Vec<(&str, String)> = (names().into_iter())
        .chain(flash_names())
        .map(|known| (known, title(known)))
        .collect();
    let library: Vec<(&str, &str)> = titles
        .iter()
        .map(|(known, title)| (*known, title.as_str()))
        .collect();
    drive_names::resolve(name, &library)
}

/// Returns the file of the library's drive `known`.
fn file_of(known: &str) -> String {
    match flash_names().contains(&known) {
        true => format!("{FLASH}/{known}.toml"),
        false => format!("{known}.toml"),
    }
}

/// Returns the title in the file of the library's drive `known`.
fn title(known: &str) -> String {
    let text = LIBRARY
        .get_file(file_of(known))
        .and_then(include_dir::File::contents_utf8);
    // Only one line is read, because each look-up of a name reads the titles of all drives.
    let title = text.and_then(|text| text.lines().find_map(|line| line.strip_prefix("title = ")));
    title.unwrap_or_default().trim_matches('"').to_owned()
}

fn model(document: &Document, values: &Map<String, Value>) -> Result<DriveModel, StackError> {
    let mut values = values.clone();
    complete_flash(&mut values);
    let config: DriveConfig = read(&values).map_err(|error| document.error(error))?;
    shared(config).map_err(|error| document.error(error))
}

/// Merges `settings` into `values`, table by table. A table with a policy replaces the old table
/// completely, because the keys of another policy do not apply.
fn merge(values: &mut Map<String, Value>, settings: &Map<String, Value>) {
    for (key, setting) in settings {
        match (values.get_mut(key), setting) {
            // A table with another policy replaces the whole table, because the keys of the former
            // policy would be unknown.
            (Some(Value::Object(below)), Value::Object(above)) if !above.contains_key("policy") => {
                merge(below, above);
            }
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
    fn every_flash_device_of_the_library_loads_and_passes_its_checks() {
        assert!(flash_names().len() >= 3);
        for name in flash_names() {
            let model = load(name).unwrap_or_else(|error| panic!("{error}"));
            assert!(model.is_flash(), "{name}");
        }
    }

    #[test]
    fn drives_of_a_terabyte_and_more_say_what_they_draw_and_what_of_it_is_assumed() {
        let drives: Vec<DriveModel> = names()
            .into_iter()
            .map(|name| load(name).unwrap())
            .collect();
        let large = drives
            .iter()
            .filter(|drive| drive.config().capacity_sectors.bytes().0 >= 1_000_000_000_000);
        let powers = large.map(|drive| {
            let config = drive.config();
            let power = config.power.unwrap_or_default();
            assert!(
                power.counts_energy(),
                "{} lacks {}",
                config.title,
                power.missing().join(", ")
            );
            assert!(
                config.sources["power"].contains("assumed"),
                "{}",
                config.title
            );
            power
        });
        let powers: Vec<_> = powers.collect();
        assert!(powers.len() >= 17, "{}", powers.len());
        assert!(
            powers
                .iter()
                .any(|power| power.idle_b.is_some() && power.idle_c.is_some())
        );
    }

    #[test]
    fn an_unknown_drive_names_the_nearest() {
        let error = load("seagate-cheetah-9pl").unwrap_err();
        assert!(
            error.message.contains("did you mean `seagate-cheetah-9lp`"),
            "{error}"
        );
    }

    #[test]
    fn a_misspelt_key_names_file_line_and_the_nearest_key() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("drive.toml");
        let text = LIBRARY
            .get_file("seagate-cheetah-9lp.toml")
            .unwrap()
            .contents_utf8()
            .unwrap();
        std::fs::write(
            &path,
            text.replace("head_switch_ms = 0.03", "head_swich_ms = 0.03"),
        )
        .unwrap();
        let error = load(path.to_str().unwrap()).unwrap_err();
        assert!(
            error.line.is_some() && error.message.contains("did you mean `head_switch_ms`"),
            "{error}"
        );
    }

    #[test]
    fn a_drive_survives_the_way_through_its_file() {
        let folder = tempfile::tempdir().unwrap();
        for name in names() {
            let config = load(name).unwrap().config().clone();
            let path = folder.path().join("drive.toml");
            std::fs::write(
                &path,
                to_toml(&config, &["written by a test".into()]).unwrap(),
            )
            .unwrap();
            assert_eq!(
                load(path.to_str().unwrap()).unwrap().config(),
                &config,
                "{name}"
            );
        }
    }

    #[test]
    fn settings_replace_single_keys() {
        let settings =
            serde_json::from_str(r#"{"queue": {"discipline": "fcfs"}, "zero_latency": true}"#)
                .unwrap();
        let model = load_with("seagate-cheetah-9lp", &Folder::default(), &settings).unwrap();
        assert_eq!(model.config().queue.discipline, "fcfs");
        assert_eq!(model.config().queue.depth, 64);
        assert!(model.config().zero_latency.reads());
    }
}
