//! Errors of reading and writing tables.

use crate::ColumnType;
#[cfg(feature = "parquet")]
use parquet::errors::ParquetError;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The reason why a table could not be written or read.
#[derive(Debug, Error)]
pub enum TableError {
    /// The file could not be created.
    #[error("cannot create `{}`: {source}; give a folder that exists and may be written to", path.display())]
    Create {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// Writing failed half-way, for example because the disk is full.
    #[error("cannot write `{}`: {source}; no partial file was kept", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The file could not be opened or read.
    #[error("cannot read `{}`: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The file is Parquet, or would become Parquet, but this build has no Parquet support.
    #[error("`{}` is a Parquet file, and this build of fullstroke has no Parquet; use .csv or .csv.gz, or build with the feature `parquet`", path.display())]
    NoParquet {
        /// The file.
        path: PathBuf,
    },
    /// The file is not Parquet, or is damaged.
    #[error("`{}` is no readable Parquet file: {detail}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Description of the damage.
        detail: String,
    },
    /// A required column is missing.
    #[error("`{}` has no column `{column}`; its columns are {known}", path.display())]
    MissingColumn {
        /// The file.
        path: PathBuf,
        /// The required column.
        column: String,
        /// The columns of the file.
        known: String,
    },
    /// A column has another type than required.
    #[error("column `{column}` of `{}` holds {found}; expected {expected}", path.display())]
    WrongType {
        /// The file.
        path: PathBuf,
        /// The column.
        column: String,
        /// Type in the file.
        found: String,
        /// Required type.
        expected: ColumnType,
    },
    /// A single value does not fit the required type.
    #[error("row {row} of column `{column}` of `{}` is {found}; expected {expected}", path.display())]
    BadValue {
        /// The file.
        path: PathBuf,
        /// The column.
        column: String,
        /// The row, counted from 0.
        row: u64,
        /// Value in the file.
        found: String,
        /// Required type.
        expected: ColumnType,
    },
}

/// Returns the operating system's error inside an error of the Parquet library. Returns the
/// original error if there is none inside.
#[cfg(feature = "parquet")]
fn system_error(error: ParquetError) -> Result<io::Error, ParquetError> {
    match error {
        ParquetError::External(inner) => inner
            .downcast::<io::Error>()
            .map(|inner| *inner)
            .map_err(ParquetError::External),
        other => Err(other),
    }
}

#[cfg(not(feature = "parquet"))]
impl TableError {
    pub(crate) fn no_parquet(path: &Path) -> TableError {
        TableError::NoParquet {
            path: path.to_owned(),
        }
    }
}

#[cfg(feature = "parquet")]
impl TableError {
    /// Wraps an error from writing `path`.
    pub(crate) fn writing(path: &Path, error: ParquetError) -> TableError {
        // The Parquet library wraps an error of the file, such as a full disk, and the user needs
        // the system's message.
        let source = system_error(error).unwrap_or_else(io::Error::other);
        TableError::Write {
            path: path.to_owned(),
            source,
        }
    }

    /// Wraps an error from reading `path`.
    pub(crate) fn reading(path: &Path, error: ParquetError) -> TableError {
        match system_error(error) {
            Ok(source) => TableError::Read {
                path: path.to_owned(),
                source,
            },
            Err(other) => TableError::Damaged {
                path: path.to_owned(),
                detail: other.to_string(),
            },
        }
    }
}
