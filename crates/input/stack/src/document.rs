//! A TOML file that remembers the line of each key. The command line can replace values.

use crate::StackError;
use crate::ready::ready;
use fullstroke_contract::ConfigError;
use fullstroke_trace::FileSource;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::OnceLock;
use thiserror::Error;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The text of standard input. A command reads a stack several times, and a pipe only once.
static STANDARD_INPUT: OnceLock<Result<String, String>> = OnceLock::new();

/// True for `-`, the name of standard input. Paths inside such a file begin at the working
/// directory.
pub(crate) fn is_standard_input(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Returns the text of a file; `-` is standard input.
///
/// # Errors
/// Errors of the operating system.
pub fn read_text(path: &Path) -> io::Result<String> {
    if !is_standard_input(path) {
        return std::fs::read_to_string(path);
    }
    let text = STANDARD_INPUT
        .get_or_init(|| io::read_to_string(io::stdin()).map_err(|error| error.to_string()));
    text.clone().map_err(io::Error::other)
}

/// Says why a file cannot be read. A folder is a usual mistake, and the operating system does not
/// say what was expected.
fn unreadable(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::IsADirectory => "found a folder; expected a file".to_owned(),
        _ => format!("cannot be read: {error}"),
    }
}

/// The parsed file.
#[derive(Clone, Debug)]
pub struct Document {
    file: String,
    /// The text of the file. Only an error needs the lines of keys, and the search for the lines
    /// takes as long as the reading of the values.
    text: String,
    values: Map<String, Value>,
    /// The keys that the command line has set: dotted paths, with `[n]` for items of arrays.
    assigned: BTreeSet<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeyPlace {
    Line(usize),
    CommandLine,
}

impl Document {
    /// Reads a file.
    ///
    /// # Errors
    /// Names the line with a TOML error.
    pub fn read(path: &Path) -> Result<Document, StackError> {
        Document::read_in(&FileSource::default(), path)
    }

    /// Reads a file of `files`.
    ///
    /// # Errors
    /// As for [`read`](Document::read).
    pub fn read_in(files: &FileSource, path: &Path) -> Result<Document, StackError> {
        let file = match is_standard_input(path) {
            true => "standard input".to_owned(),
            false => path.display().to_string(),
        };
        if let Some(load) = ready(path) {
            let load = load.map_err(|unknown| StackError::whole(&file, unknown))?;
            return Document::parse(file, load.text);
        }
        // Only the file system has a standard input (`-`).
        let text = match files.are_on_disk() {
            true => read_text(path),
            false => files.read_text(path),
        };
        let text = text.map_err(|error| StackError::whole(&file, unreadable(&error)))?;
        Document::parse(file, &text)
    }

    /// Parses the text of `file`.
    pub(crate) fn parse(file: impl Into<String>, text: &str) -> Result<Document, StackError> {
        let file = file.into();
        let broken = |error: toml::de::Error| StackError {
            line: error.span().map(|span| line_of(text, span.start)),
            ..StackError::whole(&file, error.message())
        };
        let values: Map<String, Value> = toml::from_str(text).map_err(broken)?;
        Ok(Document {
            file,
            text: text.to_owned(),
            values,
            assigned: BTreeSet::new(),
        })
    }

    /// Returns the file's name as given by the user.
    pub(crate) fn file(&self) -> &str {
        &self.file
    }

    /// Returns all values.
    pub fn values(&self) -> &Map<String, Value> {
        &self.values
    }

    /// Returns the top-level table called `name`; empty if there is none.
    ///
    /// # Errors
    /// If the value is not a table.
    pub(crate) fn section(&self, name: &str) -> Result<Map<String, Value>, ConfigError> {
        match self.values.get(name) {
            None => Ok(Map::new()),
            Some(Value::Object(table)) => Ok(table.clone()),
            Some(other) => Err(ConfigError::new(
                name,
                format!("found {other}; expected a table, [{name}]"),
            )),
        }
    }

    /// Removes a top-level key with everything below.
    pub(crate) fn remove(&mut self, key: &str) {
        self.values.remove(key);
    }

    /// Carries out `--set key=value`. The value is read as TOML, or else as a plain string
    /// (`256KiB`).
    pub(crate) fn set(&mut self, assignment: &str) -> Result<(), StackError> {
        let refuse = |message: String| StackError::whole(format!("--set {assignment}"), message);
        // Only the first = divides, because the value may be a table with further =.
        let (path, text) = assignment
            .split_once('=')
            .ok_or_else(|| refuse("expected key=value, such as volume.chunk=256KiB".into()))?;
        let path = path.trim();
        self.put(path, assigned(text))
            .map_err(|error| refuse(error.to_string()))
    }

    /// Puts `value` at `path` and creates missing tables.
    /// An item of an array of tables may be named instead of numbered: `workloads.films.streams` is
    /// the key `streams` of the table with `name = "films"`, as in the names of metrics.
    pub(crate) fn put(&mut self, path: &str, value: Value) -> Result<(), PathError> {
        // Numbers first, because the lines of keys are recorded by number.
        let path = &self.numbered(path)?;
        let mut steps = Vec::new();
        for part in path.split('.') {
            let (name, rest) = part.split_at(part.find('[').unwrap_or(part.len()));
            if name.is_empty() {
                return Err(PathError::Name {
                    path: path.to_owned(),
                });
            }
            steps.push(PathStep::Key(name));
            for index in rest.split_terminator(']').filter(|index| !index.is_empty()) {
                let index = index.strip_prefix('[').and_then(|index| index.parse().ok());
                let index = index.ok_or_else(|| PathError::Index {
                    part: part.to_owned(),
                })?;
                steps.push(PathStep::Item(index));
            }
        }
        let Some((PathStep::Key(first), rest)) = steps.split_first() else {
            return Err(PathError::Name {
                path: path.to_owned(),
            });
        };
        let place = self
            .values
            .entry(*first)
            .or_insert_with(|| Value::Object(Map::new()));
        place_at(place, rest, path).map(|place| *place = value)?;
        // Errors at the replaced values must name the command line, not their old lines.
        self.assigned
            .retain(|key| key != path && !key.starts_with(&format!("{path}.")));
        self.assigned.insert(path.to_owned());
        Ok(())
    }

    /// Returns the path with a number in place of each item's name.
    fn numbered(&self, path: &str) -> Result<String, PathError> {
        let mut numbered = String::new();
        let mut place: Option<&Value> = None;
        for (index, part) in path.split('.').enumerate() {
            if let Some(Value::Array(items)) = place {
                let named = |item: &Value| item.get("name").and_then(Value::as_str) == Some(part);
                let Some(found) = items.iter().position(named) else {
                    let names = items.iter().filter_map(|item| item.get("name")?.as_str());
                    return Err(PathError::NoItemOfName {
                        path: path.to_owned(),
                        name: part.to_owned(),
                        names: names.collect::<Vec<&str>>().join(", "),
                    });
                };
                numbered.push_str(&format!("[{found}]"));
                place = items.get(found);
                continue;
            }
            if index > 0 {
                numbered.push('.');
            }
            numbered.push_str(part);
            let (name, rest) = part.split_at(part.find('[').unwrap_or(part.len()));
            place = if index == 0 {
                self.values.get(name)
            } else {
                place.and_then(|place| place.get(name))
            };
            for index in rest.split_terminator(']').filter(|index| !index.is_empty()) {
                let index: Option<usize> =
                    index.strip_prefix('[').and_then(|index| index.parse().ok());
                place = place.zip(index).and_then(|(place, index)| place.get(index));
            }
        }
        Ok(numbered)
    }

    /// Maps each key to the place that set the key.
    fn places(&self) -> BTreeMap<String, KeyPlace> {
        let mut places = BTreeMap::new();
        // A text from which the values were read parses again.
        if let Ok(table) = DeTable::parse(&self.text) {
            record_places(&self.text, "", table.get_ref(), &mut places);
        }
        for path in &self.assigned {
            // The command line replaced the table as a whole, so that the lines below it in the
            // file say nothing about the values.
            places.retain(|key, _| key != path && !key.starts_with(&format!("{path}.")));
        }
        let assigned = self.assigned.iter();
        places.extend(assigned.map(|path| (path.clone(), KeyPlace::CommandLine)));
        places
    }

    /// Returns `error` with the file and the line of its key, or of the nearest enclosing table.
    pub fn error(&self, error: ConfigError) -> StackError {
        let places = self.places();
        let mut key = error.key.as_str();
        // A missing key has no line. The error names the line of the nearest table above.
        let place = loop {
            if let Some(place) = places.get(key) {
                break Some(*place);
            }
            match key.rfind(['.', '[']) {
                Some(at) => key = &key[..at],
                None => break None,
            }
        };
        let file = match place {
            Some(KeyPlace::CommandLine) => format!("--set {key}"),
            _ => self.file.clone(),
        };
        let line = match place {
            Some(KeyPlace::Line(line)) => Some(line),
            _ => None,
        };
        StackError {
            file,
            line,
            key: error.key,
            message: error.message,
        }
    }
}

/// A path in a document that cannot be set.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum PathError {
    #[error("`{path}` is not a path of keys, such as volume.chunk")]
    Name { path: String },
    #[error("`{part}` has no whole number in [ ]")]
    Index { part: String },
    #[error("`{path}`: no table has the name `{name}`; expected one of: {names}")]
    NoItemOfName {
        path: String,
        name: String,
        names: String,
    },
    #[error("`{path}`: the array has {items} items, from [0]")]
    NoItem { path: String, items: usize },
    #[error("`{path}`: the value before `{key}` is not a table")]
    NoTable { path: String, key: String },
    #[error("`{path}`: the value before `[{index}]` is not an array")]
    NoArray { path: String, index: usize },
}

#[derive(Clone, Copy)]
enum PathStep<'a> {
    Key(&'a str),
    Item(usize),
}

/// Returns the value at the end of `steps`, starting from `value`.
fn place_at<'a>(
    value: &'a mut Value,
    steps: &[PathStep<'_>],
    path: &str,
) -> Result<&'a mut Value, PathError> {
    let Some((step, rest)) = steps.split_first() else {
        return Ok(value);
    };
    let next = match (step, value) {
        // `--set` may name a table that the file does not have yet.
        (PathStep::Key(key), Value::Object(table)) => table
            .entry(*key)
            .or_insert_with(|| Value::Object(Map::new())),
        (PathStep::Item(index), Value::Array(items)) => {
            let items_there = items.len();
            items.get_mut(*index).ok_or_else(|| PathError::NoItem {
                path: path.to_owned(),
                items: items_there,
            })?
        }
        (PathStep::Key(key), _) => {
            return Err(PathError::NoTable {
                path: path.to_owned(),
                key: (*key).to_owned(),
            });
        }
        (PathStep::Item(index), _) => {
            return Err(PathError::NoArray {
                path: path.to_owned(),
                index: *index,
            });
        }
    };
    place_at(next, rest, path)
}

fn record_places(
    text: &str,
    prefix: &str,
    table: &DeTable<'_>,
    places: &mut BTreeMap<String, KeyPlace>,
) {
    for (key, value) in table.iter() {
        let path = if prefix.is_empty() {
            key.get_ref().to_string()
        } else {
            format!("{prefix}.{}", key.get_ref())
        };
        places.insert(
            path.clone(),
            KeyPlace::Line(line_of(text, key.span().start)),
        );
        record_value(text, &path, value, places);
    }
}

fn record_value(
    text: &str,
    path: &str,
    value: &Spanned<DeValue<'_>>,
    places: &mut BTreeMap<String, KeyPlace>,
) {
    match value.get_ref() {
        DeValue::Table(table) => record_places(text, path, table, places),
        DeValue::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                if let DeValue::Table(table) = item.get_ref() {
                    let path = format!("{path}[{index}]");
                    places.insert(
                        path.clone(),
                        KeyPlace::Line(line_of(text, item.span().start)),
                    );
                    record_places(text, &path, table, places);
                }
            }
        }
        _ => {}
    }
}

/// Returns the line of a byte, counted from 1.
fn line_of(text: &str, byte: usize) -> usize {
    text.as_bytes()[..byte.min(text.len())]
        .iter()
        .filter(|&&byte| byte == b'\n')
        .count()
        + 1
}

/// Returns the value of `=text` on the command line: a TOML value, or a name without quotes.
pub fn assigned(text: &str) -> Value {
    toml::from_str::<Map<String, Value>>(&format!("value = {text}"))
        .ok()
        .and_then(|mut table| table.remove("value"))
        .unwrap_or_else(|| Value::String(text.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "seed = 1\n\n[volume]\nlayout = \"raid0\"\n\n[[volume.members]]\ndrives = 2\n[[volume.members]]\ndrives = 3\n";

    #[test]
    fn an_error_names_the_line_of_its_key() {
        let document = Document::parse("a.toml", TEXT).unwrap();
        let line = |key: &str| document.error(ConfigError::new(key, "wrong")).line;
        assert_eq!(line("seed"), Some(1));
        assert_eq!(line("volume.layout"), Some(4));
        assert_eq!(line("volume.members[1].drives"), Some(9));
        assert_eq!(line("volume.chunk"), Some(3));
        assert_eq!(line("host.queue_depth"), None);
    }

    #[test]
    fn a_value_is_set_by_its_path_and_errors_say_so() {
        let mut document = Document::parse("a.toml", TEXT).unwrap();
        for assignment in [
            "volume.chunk=256KiB",
            "volume.members[1].drives=7",
            "host.queue_depth=4",
            "seed = 0x10",
        ] {
            document.set(assignment).unwrap();
        }
        let values = document.values();
        assert_eq!(values["volume"]["chunk"], "256KiB");
        assert_eq!(values["volume"]["members"][1]["drives"], 7);
        assert_eq!(values["host"]["queue_depth"], 4);
        assert_eq!(values["seed"], 16);
        assert_eq!(
            document
                .error(ConfigError::new("volume.chunk", "wrong"))
                .file,
            "--set volume.chunk"
        );
    }

    #[test]
    fn a_path_that_leads_nowhere_is_refused() {
        let mut document = Document::parse("a.toml", TEXT).unwrap();
        for assignment in [
            "volume",
            "=3",
            "seed.a=1",
            "volume.members[2].drives=1",
            "volume.members[x]=1",
            "seed[0]=1",
        ] {
            assert!(document.set(assignment).is_err(), "{assignment}");
        }
    }

    #[test]
    fn a_file_that_is_no_toml_names_the_line() {
        let error = Document::parse("a.toml", "seed = 1\nvolume = {\n").unwrap_err();
        assert!(error.line.is_some(), "{error}");
    }
}
