//! What can go wrong with a table.

use crate::ColumnType;
#[cfg(feature = "parquet")]
use parquet::errors::ParquetError;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why a table could not be written or read.
#[derive(Debug, Error)]
pub enum TableError {
    /// The file could not be created.
    #[error("cannot create `{}`: {source}; give a folder that exists and may be written to", path.display())]
    Create {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Writing failed half-way, as when the disk is full.
    #[error("cannot write `{}`: {source}; no partial file was kept", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file could not be opened or read.
    #[error("cannot read `{}`: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is or would be Parquet, and this build has no Parquet.
    #[error("`{}` is a Parquet file, and this build of fullstroke has no Parquet; use .csv or .csv.gz, or build with the feature `parquet`", path.display())]
    NoParquet {
        /// The file.
        path: PathBuf,
    },
    /// The file is no Parquet, or a damaged one.
    #[error("`{}` is no readable Parquet file: {detail}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was found.
        detail: String,
    },
    /// A column that is needed is not there.
    #[error("`{}` has no column `{column}`; its columns are {known}", path.display())]
    MissingColumn {
        /// The file.
        path: PathBuf,
        /// The needed column.
        column: String,
        /// The columns that there are.
        known: String,
    },
    /// A column holds something else than is needed.
    #[error("column `{column}` of `{}` holds {found}; expected {expected}", path.display())]
    WrongType {
        /// The file.
        path: PathBuf,
        /// The column.
        column: String,
        /// What it holds.
        found: String,
        /// What was expected.
        expected: ColumnType,
    },
    /// A single value does not fit what is needed.
    #[error("row {row} of column `{column}` of `{}` is {found}; expected {expected}", path.display())]
    BadValue {
        /// The file.
        path: PathBuf,
        /// The column.
        column: String,
        /// The row, counted from 0.
        row: u64,
        /// What stands there.
        found: String,
        /// What was expected.
        expected: ColumnType,
    },
}

/// The error of the system inside one of the Parquet library, if there is one.
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
    /// `error`, met while writing `path`.
    pub(crate) fn writing(path: &Path, error: ParquetError) -> TableError {
        let source = system_error(error).unwrap_or_else(io::Error::other);
        TableError::Write {
            path: path.to_owned(),
            source,
        }
    }

    /// `error`, met while reading `path`.
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
