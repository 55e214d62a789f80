//! Why a file could not be imported, and what an import left behind.

use serde::Serialize;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// A parameter file that cannot be used: where, what was found there, and what
/// was expected.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}{key}found {found}; expected {expected}", place(.file, *.line), key = quoted(.key))]
pub struct ImportError {
    /// The file that holds the offending text; an included one, where it is.
    pub file: PathBuf,
    /// Its line, counted from 1; 0 where the whole file is meant.
    pub line: u32,
    /// Dotted path of the key, such as `Layout Model.Zones[3].slips`; empty
    /// where none is concerned.
    pub key: String,
    /// What kind of mistake it is.
    pub kind: ErrorKind,
    /// What stands there.
    pub found: String,
    /// What should, and how to mend it.
    pub expected: String,
}

/// The kinds of mistakes in parameter files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// A file cannot be read.
    Unreadable,
    /// The text does not follow the grammar.
    Syntax,
    /// A file includes itself, directly or through others.
    SourceCycle,
    /// Larger or more deeply nested than any honest file.
    TooLarge,
    /// A required key is not there.
    MissingKey,
    /// A key that the block does not have (strict import only).
    UnknownKey,
    /// A value of another type than the key wants.
    WrongType,
    /// A value of the right type that cannot be.
    WrongValue,
    /// Addresses or places of a layout overlap, leave holes, or do not fit.
    Layout,
    /// A seek file that does not hold what it says.
    SeekFile,
    /// No disk of the wanted name.
    NoDisk,
    /// Something that DiskSim has and this reader does not.
    Unsupported,
}

/// Something that could not be carried over exactly.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Loss {
    /// The key in the parameter file.
    pub key: String,
    /// What it said, and what has become of it.
    pub what: String,
}

impl Loss {
    pub(crate) fn new(key: impl Into<String>, what: impl Into<String>) -> Loss {
        Loss {
            key: key.into(),
            what: what.into(),
        }
    }
}

impl ImportError {
    /// An error about a whole file.
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
