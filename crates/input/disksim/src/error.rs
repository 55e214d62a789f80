//! The errors and the losses of an import.

use serde::Serialize;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// An unusable parameter file: the place, the text found and the text expected.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}{key}found {found}; expected {expected}", place(.file, *.line), key = quoted(.key))]
pub struct ImportError {
    /// File with the error; an included file, if the error is there.
    pub file: PathBuf,
    /// Line, counted from 1; 0 for the whole file.
    pub line: u32,
    /// Dotted path of the key, such as `Layout Model.Zones[3].slips`; empty without a key.
    pub key: String,
    /// Kind of the error.
    pub kind: ErrorKind,
    /// Text or value in the file.
    pub found: String,
    /// Expected text or value, and the remedy.
    pub expected: String,
}

/// The kinds of errors in parameter files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// A file cannot be read.
    Unreadable,
    /// The text does not follow the grammar.
    Syntax,
    /// A file includes itself, directly or through others.
    SourceCycle,
    /// Larger or more deeply nested than any genuine file.
    TooLarge,
    /// A required key is missing.
    MissingKey,
    /// A key that the block does not have (strict import only).
    UnknownKey,
    /// A value of the wrong type.
    WrongType,
    /// A value of the right type that is out of range.
    WrongValue,
    /// Addresses or places of a layout overlap, leave holes, or do not fit.
    Layout,
    /// A seek file whose contents contradict its header or are malformed.
    SeekFile,
    /// No disk with the wanted name.
    NoDisk,
    /// A feature of DiskSim that this reader lacks.
    Unsupported,
}

/// A property that could not be imported exactly.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ImportLoss {
    /// Key in the parameter file.
    pub key: String,
    /// Value in the file, and its substitute.
    pub what: String,
}

impl ImportLoss {
    pub(crate) fn new(key: impl Into<String>, what: impl Into<String>) -> ImportLoss {
        ImportLoss {
            key: key.into(),
            what: what.into(),
        }
    }
}

impl ImportError {
    /// Creates an error for a whole file.
    pub(crate) fn whole(
        kind: ErrorKind,
        file: &Path,
        found: impl Into<String>,
        expected: impl Into<String>,
    ) -> ImportError {
        ImportError {
            file: file.to_owned(),
            line: 0,
            key: String::new(),
            kind,
            found: found.into(),
            expected: expected.into(),
        }
    }
}

fn place(file: &Path, line: u32) -> String {
    match line {
        0 => format!("{}: ", file.display()),
        line => format!("{}:{line}: ", file.display()),
    }
}

fn quoted(key: &str) -> String {
    if key.is_empty() {
        String::new()
    } else {
        format!("`{key}`: ")
    }
}
